"""Keys in every place a key can stand, through everything that Themis writes or prints: none may come out.

Every planted key begins with CANARY, so that a part of one is found as well. The endpoint tells all it was sent: in answers, in
errors, escaped and in base64. What it received proves that the keys were really used.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from fastapi.testclient import TestClient

from themis.cli import main
from themis.server import create_app
from themis.storage import ExperimentStorage

MARK = "CANARY"
# In clear whatever the case, and as base64 has it at each of the three places it may begin at.
SIGNS = re.compile(rb"(?i:canary)|Q0FOQVJZ|NBTkFSW|DQU5BUl")
EXPORTS = "csv,json,html,summary,jsonl,markdown,latex,junit,inspect,lm-eval,parquet"


def key(name: str, tail: str = "") -> str:
    """A key that nobody could take for a word, and that says where it was planted."""
    return f"{MARK}{sum(name.encode()):05d}x7f3a9{tail}"


class Gossip:
    """An endpoint that tells everything: as a model, a judge, an agent, a proxy and a collector of traces."""

    def __init__(self) -> None:
        self.port = 0
        self.received: list[str] = []
        self.traces: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, told: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "/agent" in path:
            return self._as_agent(path, told, body)
        model, question = body["model"], body["messages"][-1]["content"]
        if model == "refuse":
            return 400, {"error": {"message": _retold(told, question)}}
        text = json.dumps({"scores": {"right": 0.5}, "reason": told}) if model == "judge" else f"I was sent {told}"
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        return 200, {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}

    def _as_agent(self, path: str, told: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "broken" in path:
            return 400, {"error": told}
        return 200, {"last_turn": 0} if body["type"] == "session" else {"reply": f"I was sent {told}"}


def _retold(told: str, question: str) -> str:
    """As servers quote what they refuse: in clear, in a URL, in base64, alone or behind a name, and across the cut."""
    in_base64 = base64.b64encode(told.encode()).decode(), base64.b64encode(f"user:{told}".encode()).decode()
    ways = [told, quote(told, safe=""), *in_base64, repr(told), "." * 480 + told]
    return f"refused: {ways[int(question[-1]) % len(ways)]}"


@pytest.fixture(scope="module")
def gossip() -> Iterator[Gossip]:
    endpoint = Gossip()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.endswith("/v1/traces"):
                endpoint.traces.append(content)
                return self._send(200, {})
            body = json.loads(content)
            told = " ".join(
                [self.path, *(f"{name}: {value}" for name, value in self.headers.items()), str(body.get("more"))]
            )
            endpoint.received.append(told)
            return self._send(*endpoint.answer(self.path, told, body))

        def _send(self, status: int, payload: dict[str, Any]) -> None:
            data = json.dumps(payload).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield endpoint
    server.shutdown()
    server.server_close()


class Tour:
    """Calls the command line and keeps what it prints."""

    def __init__(self, folder: Path, storage: str) -> None:
        self.folder = folder
        self.storage = storage
        self.printed: dict[str, str] = {}

    def __call__(self, *words: str, storage: str | None = None) -> int:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), pytest.raises(SystemExit) as ended:
            main([*words, "--storage", storage or self.storage])
        self.printed[" ".join(words)] = out.getvalue()
        return int(ended.value.code or 0)

    def as_process(self, *words: str) -> None:
        ended = subprocess.run(
            [sys.executable, "-m", "themis", *words, "--storage", self.storage],
            cwd=self.folder / "given", capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        self.printed[" ".join(words)] = ended.stdout + ended.stderr

    def leaks(self) -> list[str]:
        """Where a key or a part of one is found, in what was printed and in every file that was written."""
        written = {
            str(path.relative_to(self.folder)): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()
        }
        written = {name: content for name, content in written.items() if not name.startswith("given")}
        assert any(name.endswith("themis.db") for name in written)
        told = {f"printed by {words}": text.encode("utf-8", "replace") for words, text in self.printed.items()}
        return _leaks(written | told)


def _leaks(texts: dict[str, bytes]) -> list[str]:
    return [
        f"{name}: …{text[max(0, found.start() - 60) : found.end() + 60]!r}"
        for name, text in texts.items()
        if (found := SIGNS.search(text))
    ]


@pytest.fixture
def tour(tmp_path: Path, gossip: Gossip, monkeypatch: pytest.MonkeyPatch) -> Tour:
    """An environment full of keys, and files that a user would have."""
    for name in [name for name in os.environ if name.startswith(("WANDB_", "MLFLOW_", "OTEL_"))]:
        monkeypatch.delenv(name)
    variables = {
        "ACME_BASE_URL": f"{gossip.url}/v1",
        "PLAIN_BASE_URL": f"http://ada:{key('user info')}@127.0.0.1:{gossip.port}/v1"
                          f"?subscription={key('query')}&sig={key('sig', '%2B')}",
        "ACME_API_KEY": key("environment"),
        "THEMIS_SECRETS": "LAB_LOGIN, OTHER",
        "LAB_LOGIN": key("marked", "+/&<"),
        "REFERRED": key("referred"),
        "THEMIS_SERVER_TOKEN": key("server token"),
        "OTEL_EXPORTER_OTLP_HEADERS": f"x-honeycomb-team={key('otel')}",
        "HTTPS_PROXY": f"http://ada:{key('proxy of environment')}@127.0.0.1:9",
        "WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_ERROR_REPORTING": "false",
        "WANDB_DIR": str(tmp_path / "out"), "WANDB_CONFIG_DIR": str(tmp_path / "out" / "config"),
        "WANDB_CACHE_DIR": str(tmp_path / "out" / "cache"), "WANDB_DATA_DIR": str(tmp_path / "out" / "data"),
        "WANDB_API_KEY": key("wandb") + "0" * 40, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true",
        "COLUMNS": "100", "THEMIS_NO_DOTENV": "",
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    given = tmp_path / "given"
    given.mkdir()
    rows = [{"id": f"r{n}", "question": f"number {n}", "answer": str(n)} for n in range(6)]
    (given / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (given / ".env").write_text(f"DOTTED_BASE_URL={gossip.url}/v1\nDOTTED_API_KEY='{key('dotenv')}'\n")
    (given / "memory.yml").write_text(
        "config: {run_name: small}\n"
        "datasets: {args: {memory_span: 900, dataset_examples: 1}, datasets: [{name: colours}]}\n"
    )
    (given / "agent.py").write_text(
        "import json, os, sys\n"
        "told = ' '.join(['I do not know.', *sys.argv, os.environ['ACME_API_KEY'], os.environ['LAB_LOGIN']])\n"
        "for line in sys.stdin:\n"
        "    print(told if 'broken' in sys.argv else json.dumps({'reply': told}), flush=True)\n"
    )
    monkeypatch.chdir(tmp_path)
    return Tour(tmp_path, str(tmp_path / "store"))


def options_of(gossip: Gossip, flag: str = "--option", headers: str = "extra_headers") -> list[str]:
    """Keys in every option that can hold one, under names that are known and names that are not."""
    sent = {
        "X-Custom-Auth": key("X-Custom-Auth", "/+=&"), "Ocp-Apim-Subscription-Key": key("Ocp-Apim-Subscription-Key"),
        "X-Key": key("X-Key"), "Helicone-Auth": f"Bearer {key('Helicone-Auth')}", "X-Auth-Key": key("X-Auth-Key", "\"'<"),
        "X-Unheard-Of": key("X-Unheard-Of"), "X-Team": os.environ["LAB_LOGIN"], "X-Referred": "${REFERRED}", "X-Title": "tour",
    }  # fmt: skip
    given = {
        "api_key": key("api_key option"),
        headers: json.dumps(sent),
        "extra_body": json.dumps({"more": {"auth": {"jwt": key("jwt")}, "token": key("token of body")}}),
        "proxy": f"http://ada:{key('proxy')}@127.0.0.1:{gossip.port}",
        "base_url": f"{gossip.url}/v1?sig={key('sig of option')}&api-version=2024-01-01",
    }
    return [word for name, value in given.items() for word in (flag, f"{name}={value}")]


@pytest.mark.fault(
    area="Secrets",
    wrong="An endpoint, agent or judge repeats a key, in an answer or an error",
    does="The key is taken out, also escaped or in base64, before anything is stored, printed, exported or sent",
    status="completed",
    exit_code=0,
)
def test_no_key_comes_out_of_sample_runs(tour, gossip, fault):
    judge = {"api_key": key("judge"), "extra_headers": {"X-Judge": key("judge's header")}}
    metric = f"rubric_judge(model='acme/judge', rubric=['right'], provider_options={judge!r})"
    rows = ("given/rows.jsonl", "--prompt", "{question}", "-y", "-n", "6", "--max-retries", "1")

    told = tour("eval", *rows, "-m", "acme/echo", "--run-id", "told", "--metric", metric, *options_of(gossip))
    assert told == fault.exit_code
    assert ExperimentStorage(tour.storage).get_run("told").status.value == fault.status
    assert tour("eval", *rows, "-m", "plain/echo", "--run-id", "plain") == 0
    tour("eval", *rows, "-m", "acme/refuse", "--run-id", "refused", *options_of(gossip))
    tour("eval", *rows, "-m", "plain/refuse", "--run-id", "plain-refused", "--json")
    tour.as_process(
        "-v", "eval", "rows.jsonl", *rows[1:], "-m", "dotted/refuse", "--run-id", "dotted", *options_of(gossip)[2:]
    )
    tour("eval", *rows, "-m", "acme/echo", "--option", f'extra_headers={{"X-Key": "{key("broken JSON")}"')
    tour("eval", *rows, "-m", "acme/echo", "--option", f"api_kye={key('misspelt')}")
    tour("eval", *rows, "-m", "acme/echo", "--option", f"base_url=ada:{key('no address')}@nowhere")

    everything = " ".join(gossip.received)
    for place in (
        "api_key option",
        "X-Key",
        "jwt",
        "sig of option",
        "judge",
        "judge's header",
        "query",
        "dotenv",
        "referred",
    ):
        assert key(place) in everything, f"the key of {place} was never sent"
    assert base64.b64encode(f"ada:{key('user info')}".encode()).decode() in everything
    _look_at_everything(tour, gossip, ("told", "refused", "plain", "dotted"))
    assert "tour" in tour.printed["manifest show told --json"]
    assert "${REFERRED}" in tour.printed["manifest show told --json"]
    assert tour.leaks() == []


def _look_at_everything(tour: Tour, gossip: Gossip, runs: tuple[str, ...]) -> None:
    """Every way in which a run is shown, exported, published or served."""
    out = tour.folder / "out"
    for run in runs:
        tour("show", run)
        tour("show", run, "--json")
        tour("manifest", "show", run)
        tour("manifest", "show", run, "--json")
        tour("reproduce", run)
    for run in runs[:2]:
        assert tour("export", run, "--to", str(out / run), "--format", EXPORTS) == 0
    tour("list", "runs")
    tour("share", runs[0], "--output-dir", str(out / "share"))
    tour("compare", runs[0], runs[2], "--output", str(out / "compare.html"))
    assert tour("serve", "--bundle", str(out / "bundle")) == 0
    places = ("--to", "wandb", "--to", "mlflow", "--to", "otel", "--option", f"tracking_uri={out / 'mlruns'}")
    assert (
        tour("publish", runs[0], *places, "--option", f"endpoint={gossip.url}/v1/traces", "--option", "content=true")
        == 0
    )
    assert gossip.traces
    assert _leaks({"traces": b"".join(gossip.traces)}) == []
    ExperimentStorage(tour.storage).get_run_path(runs[0])
    _crawl(tour)


def _crawl(tour: Tour) -> None:
    """Every page and answer of the server that can be reached by links, to whoever knows the token."""
    token = os.environ["THEMIS_SERVER_TOKEN"]
    app = create_app(tour.storage, token=token, requests_per_second=1_000)
    waiting, seen = ["/runs", "/api/runs", "/docs"], set[str]()
    with TestClient(app, base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {token}"}) as client:
        while waiting and len(seen) < 80:
            path = waiting.pop(0)
            if path in seen:
                continue
            seen.add(path)
            answer = client.get(
                path, headers={"Accept": "text/html" if not path.startswith("/api") else "application/json"}
            )
            tour.printed[f"GET {path}"] = answer.text + str(answer.headers)
            links = re.findall(r'href="(/[^"#]*)"', answer.text)
            waiting += [link for link in links if not link.startswith(("/static", "/logout"))]
            waiting += [f"/api/{path[1:]}"] if path.startswith("/runs/") else []
    assert len(seen) > 10


@pytest.mark.fault(
    area="Secrets",
    wrong="A run whose options hold a secret, such as a header, is resumed by its name alone",
    does="Refused before a call, with the option's name; written as `${NAME}`, a variable of the environment, it is found again",
    status="–",
    exit_code=2,
)
def test_a_run_is_not_resumed_without_the_secret_it_was_given(tour, gossip, fault):
    rows = ("given/rows.jsonl", "--prompt", "{question}", "-y", "-m", "acme/refuse", "--max-retries", "1")
    written, referred = (json.dumps({"X-Key": value}) for value in (key("X-Key"), "${REFERRED}"))
    tour("eval", *rows, "--run-id", "written", "--option", f"extra_headers={written}")
    tour("eval", *rows, "--run-id", "referred", "--option", f"extra_headers={referred}")
    asked = len(gossip.received)

    assert tour("resume", "written") == fault.exit_code
    assert "a secret in the option extra_headers" in tour.printed["resume written"]
    assert len(gossip.received) == asked

    tour("resume", "referred")
    assert len(gossip.received) > asked
    assert all(key("referred") in told for told in gossip.received[asked:])
    assert tour("reproduce", "referred") == 0
    assert "${REFERRED}" in tour.printed["reproduce referred"]
    assert tour.leaks() == []


@pytest.mark.fault(
    area="Secrets",
    wrong="An option refers to an environment variable (`${NAME}`) that is not set",
    does="Refused before the first call, with the names of the option and the variable",
    status="–",
    exit_code=2,
)
@pytest.mark.parametrize("kind", ["samples", "memory"])
def test_a_reference_to_a_variable_that_is_not_set_is_refused(tour, kind, fault):
    command = {
        "samples": ("eval", "given/rows.jsonl", "--prompt", "{question}", "-m", "acme/echo", "--run-id", "never"),
        "memory": ("memory", "run", "-c", "given/memory.yml", "-a", "acme/echo", "--run-id", "never"),
    }[kind]

    assert tour(*command, "-y", "--option", 'extra_headers={"X-Key": "${NOWHERE_SET}"}') == fault.exit_code

    said = next(iter(tour.printed.values()))
    assert "'extra_headers.X-Key' refers to the environment variable NOWHERE_SET, which is not set" in said
    assert not ExperimentStorage(tour.storage).run_exists("never")


def test_no_key_comes_out_of_memory_runs(tour, gossip):
    run = ("memory", "run", "-c", "given/memory.yml", "-y")
    headers = json.dumps({"X-Key": key("agent's header"), "X-Secretless": key("agent's other")})
    web = f"{gossip.url}/agent?sig={key('agent sig')}&room=${{REFERRED}}"
    program = f"command:{sys.executable} given/agent.py --token {key('argument')} ACME_PASSWORD={key('assignment')} {key('bare')}"
    chat = (
        "--option",
        f"api_key={key('chat key')}",
        "--judge",
        "acme/judge",
        "--judge-option",
        f"api_key={key('judge key')}",
    )

    assert tour(*run, "-a", web, "--option", f"headers={headers}", "--run-id", "web") == 0
    assert tour(*run, "-a", program.replace(f" {key('bare')}", " ${REFERRED}")) == 0
    assert tour(*run, "-a", "acme/echo", *chat, "-m", "600", "--run-id", "chat") == 0
    broken = web.replace("/agent", "/agent-broken")
    assert tour(*run, "-a", broken, "--option", f"headers={headers}", "--option", "attempts=1", "--run-id", "lost") == 3
    assert tour(*run, "-a", program.replace(key("bare"), "broken"), "--run-id", "mute") == 3
    (tour.folder / "given" / "wrong.yml").write_text(
        f"config: {{run_name: x, judge: {{api_key: {key('yaml')}}}}}\ndatasets: 1\n"
    )
    assert tour("memory", "run", "-c", "given/wrong.yml", "-a", "oracle", "-y") == 2

    everything = " ".join(gossip.received)
    for place in ("agent's header", "agent's other", "agent sig", "referred", "chat key"):
        assert key(place) in everything, f"the key of {place} was never sent"
    names = [stored.run_id for stored in ExperimentStorage(tour.storage).list_runs()]
    out = tour.folder / "out"
    for name in names:
        tour("show", name, "--json")
        tour("reproduce", name)
        tour("memory", "turns", name)
        tour("memory", "report", name, "--to", str(out / f"{names.index(name)}.html"))
        tour("memory", "export", name, "--to", str(out / "folders"))
        tour("export", name, "--to", str(out / "exported"), "--format", EXPORTS)
    tour("list", "runs")
    tour("serve", "--bundle", str(out / "bundle"))
    _crawl(tour)
    assert tour.leaks() == []


@pytest.mark.postgres
def test_no_key_comes_out_of_a_postgresql_store(tour, gossip, empty_postgres):
    import psycopg

    place = urlsplit(empty_postgres)
    host = place.netloc.rpartition("@")[2]
    user = place.username or "postgres"
    url = place._replace(netloc=f"{user}:{key('postgres')}@{host}").geturl()
    rows = ("given/rows.jsonl", "--prompt", "{question}", "-y", "--run-id", "run")

    tour.storage = url
    assert tour("eval", *rows, "-m", "acme/echo", *options_of(gossip)) == 0
    tour("show", "run", "--json")
    tour("reproduce", "run")
    tour("doctor")
    for password in (f"a@{key('behind an at')}", f"a/{key('behind a slash')}@b", f"{key('unreachable')}"):
        nowhere = f"postgresql://ada:{password}@127.0.0.1:1/runs"
        assert tour("list", "runs", storage=nowhere) == 3

    with psycopg.connect(empty_postgres) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        stored = {name: str(connection.execute(f'SELECT * FROM "{name}"').fetchall()).encode() for (name,) in tables}
    assert b"number 3" in stored["items"]
    assert _leaks(stored) == []
    assert _leaks({words: text.encode() for words, text in tour.printed.items()}) == []


def test_the_server_does_not_print_the_token_that_the_environment_gave_it(tour):
    server = subprocess.Popen(
        [sys.executable, "-m", "themis", "serve", "--port", "0", "--storage", tour.storage],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stderr is not None
    banner = server.stderr.readline()
    # It listens before it prints, and answers when all is printed.
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(re.search(r"http://[\w.:]+", banner)[0], timeout=60).close()
    server.send_signal(signal.SIGTERM)
    # Not `communicate`: what came with the first line is in the stream's buffer already.
    banner += server.stderr.read()
    server.wait(timeout=60)

    assert tour.storage in banner
    assert _leaks({"banner": banner.encode()}) == []
