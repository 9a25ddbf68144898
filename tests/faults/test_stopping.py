"""Stopping and going on, for both kinds of run: signals, budgets, full disks, and the command that is printed."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import themis
from themis.cli import main
from themis.config.specification import load_specification
from themis.evaluation.aggregations import register_aggregation
from themis.exceptions import RunInterrupted
from themis.runs.observers import Observer
from themis.runs.prices import Budget
from themis.runs.resuming import how_to_repeat, how_to_resume
from themis.storage import ExperimentStorage

ROOT = Path(__file__).parents[2]
CONFIGURATION = """
config: {run_name: small}
datasets:
  args: {memory_span: 400, dataset_examples: 2}
  datasets: [{name: names}, {name: colours}]
"""


@dataclass
class Slow:
    """An OpenAI-compatible endpoint that takes its time and remembers what it was asked, by model."""

    url: str = ""
    seconds: float = 0.0
    asked: list[tuple[str, str]] = field(default_factory=list)
    # From so many calls on, an answer takes a minute.
    hangs_after: int = 1_000_000

    def __len__(self) -> int:
        return len(self.asked)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    slow = Slow()
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            slow.asked.append((body["model"], body["messages"][-1]["content"]))
            ended.wait(60 if len(slow) > slow.hangs_after else slow.seconds)
            said = '{"verdict": "pass", "rationale": "right"}' if body["model"] == "judge" else "Noted."
            answer = {
                "choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 10},
            }
            data = json.dumps(answer).encode()
            try:
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                pass  # the other side was stopped

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    slow.url = f"http://127.0.0.1:{server.server_port}/v1"
    monkeypatch.setenv("ACME_BASE_URL", slow.url)
    monkeypatch.setenv("ACME_API_KEY", "none")
    yield slow
    ended.set()
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass(frozen=True)
class Kind:
    """One kind of run, as a user starts it in a directory that holds its files."""

    name: str
    run_id: str
    start: tuple[str, ...]

    def words(self, *more: str) -> list[str]:
        return [*self.start, *more]


SAMPLES = Kind(
    "samples",
    "it's r",
    ("eval", "rows.jsonl", "--model", "acme/m", "--max-tokens", "10", "-j", "2", "--run-id", "it's r", "-y"),
)
MEMORY = Kind(
    "memory",
    "it's r",
    ("memory", "run", "-c", "c.yml", "-a", "acme/m", "--option", "max_tokens=10", "--run-id", "it's r", "-y"),
)


@pytest.fixture(params=[SAMPLES, MEMORY], ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest, here: Path) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory with the files of both kinds, and `themis` as a command; commands of the test run in it."""
    rows = [{"id": str(n), "question": f"question {n}", "answer": "Noted."} for n in range(30)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "c.yml").write_text(CONFIGURATION)
    command = tmp_path / "bin" / "themis"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m themis "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("THEMIS_STORAGE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def begin(*words: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["themis", *words],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def printed_command(said: str) -> str:
    found = re.search(r"Go on with: (themis .*)$", said, re.MULTILINE)
    assert found, said
    return found[1]


def status_in(storage: str, run_id: str) -> str:
    store = ExperimentStorage(storage)
    try:
        return store.get_run(run_id).status.value
    finally:
        store.close()


# --- signals ----------------------------------------------------------------------------------------------------------


@pytest.mark.fault(
    area="Stopping and resuming",
    wrong="Ctrl-C or SIGTERM while a run of either kind goes on",
    does="Finishes the calls under way, saves them, prints the command that goes on",
    status="interrupted",
    exit_code=130,
)
@pytest.mark.parametrize(
    ("number", "storage"),
    [(signal.SIGINT, ("--storage", "my store's")), (signal.SIGTERM, ())],
    ids=["ctrl-c, storage of an odd name", "SIGTERM, storage from the environment"],
)
def test_a_signal_saves_the_run_and_the_printed_command_goes_on(here, slow, kind, number, storage, fault):
    slow.seconds = 0.03
    place = storage[1] if storage else "from-environment"
    variables = {} if storage else {"THEMIS_STORAGE": place}
    process = begin(*kind.words(*storage), **variables)
    wait_until(lambda: len(slow) >= 4, process)

    process.send_signal(number)
    _, said = process.communicate(timeout=120)

    assert process.returncode == fault.exit_code
    assert "Traceback" not in said
    assert status_in(place, kind.run_id) == fault.status
    slow.seconds = 0.0
    # As it is printed, by a shell, without the variable of the first process.
    done = subprocess.run(printed_command(said), shell=True, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert status_in(place, kind.run_id) == "completed"
    if kind is SAMPLES:
        assert len(slow) == len(set(slow.asked)) == 30, "an answered question was asked again"


@pytest.mark.fault(
    area="Stopping and resuming",
    wrong="Ctrl-C or SIGTERM a second time, while a call hangs",
    does="Stops at once; what was answered before is saved",
    status="interrupted",
    exit_code=130,
)
def test_a_second_signal_does_not_wait_for_what_hangs(here, slow, kind, fault):
    slow.hangs_after = 3
    process = begin(*kind.words("--storage", "s"))
    wait_until(lambda: len(slow) > 3, process)

    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=50)

    assert time.monotonic() - began < 40
    assert process.returncode == fault.exit_code
    assert "Traceback" not in said
    assert status_in("s", kind.run_id) == fault.status
    assert printed_command(said).startswith("themis resume")


class Impatient(Observer):
    """Presses Ctrl-C again when the run is over, as its status has been stored."""

    def on_end(self, status, report):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def heeds_interrupts():
    """What runs in the background of a shell is told to ignore them, and so are the tests in it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
def test_one_more_signal_while_the_report_is_made_hides_neither_the_status_nor_how_to_go_on(here):
    presses = [signal.SIGINT]

    def press(sums):
        if presses:
            os.kill(os.getpid(), presses.pop())
        return sums[:, 0]

    def pressed(prediction, reference):
        return 1.0, {"statistics": [1.0]}

    register_aggregation("pressed", press)
    pressed = themis.metric(aggregation="pressed")(pressed)
    asked = {"model": lambda prompt: "4", "prompt": "{q}", "storage": here / "s", "progress": False}

    with pytest.raises(RunInterrupted, match=r"run late interrupted; everything finished is saved\. To go on"):
        themis.evaluate([{"id": "1", "q": "2+2?", "answer": "4"}], metrics=[pressed], run_id="late", **asked)
    assert status_in("s", "late") == "interrupted"
    with pytest.raises(RunInterrupted, match="To go on"):
        themis.evaluate([{"id": "1", "q": "2+2?", "answer": "4"}], run_id="done", observers=[Impatient()], **asked)
    assert status_in("s", "done") == "completed"


@pytest.mark.fault(
    area="Stopping and resuming",
    wrong="SIGTERM while a sweep runs in several processes",
    does="Tells each of its runs to save and stop, prints the command that goes on",
    status="interrupted",
    exit_code=130,
)
def test_a_sweep_stops_with_all_its_runs_and_the_printed_command_goes_on(here, slow, fault):
    slow.seconds = 0.03
    words = ("memory", "sweep", "-c", "c.yml", "-a", "acme/m", "-a", "oracle", "--spans", "400", "--parallel", "2")
    process = begin(*words, THEMIS_STORAGE="a store")
    wait_until(lambda: len(slow) >= 3, process)

    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)

    assert process.returncode == fault.exit_code
    assert "Traceback" not in said
    assert status_in("a store", "small 400 s0 - acme-m") == fault.status
    command = printed_command(said)
    assert command == f"themis {shlex.join(words)} --storage 'a store'"
    slow.seconds = 0.0
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert status_in("a store", "small 400 s0 - acme-m") == "completed"


@pytest.mark.fault(
    area="Stopping and resuming",
    wrong="Ctrl-C or SIGTERM while a run is judged again",
    does="Keeps what the judge has answered, prints the command that goes on; the run keeps its status",
    status="completed",
    exit_code=130,
)
def test_judging_again_is_stopped_and_taken_up_without_paying_twice(here, slow, fault):
    assert call(*SAMPLES.words("--storage", "s")) == 0
    slow.asked.clear()
    slow.seconds = 0.03
    words = ("rejudge", "it's r", "--metric", "rubric_judge(model='acme/judge')", "--storage", "s")
    process = begin(*words)
    wait_until(lambda: len(slow) >= 6, process)

    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)

    assert process.returncode == fault.exit_code
    assert "Traceback" not in said
    assert status_in("s", SAMPLES.run_id) == fault.status
    assert printed_command(said) == f"themis {shlex.join(words)}"
    slow.seconds = 0.0
    assert call(*shlex.split(printed_command(said))[1:]) == 0
    assert len(slow) == len(set(slow.asked)), "an answered question was asked again"


@pytest.mark.fault(
    area="Stopping and resuming",
    wrong="Ctrl-C or SIGTERM while a judge is audited",
    does="Finishes the calls under way, saves them, prints the command that goes on; no verdict is paid for twice",
    status="interrupted",
    exit_code=130,
)
def test_an_audit_is_stopped_and_taken_up_without_paying_twice(here, slow, fault):
    assert call(*SAMPLES.words("--storage", "s")) == 0
    slow.asked.clear()
    slow.seconds = 0.03
    words = ("judge", "audit", "it's r", "--judge", "rubric_judge(model='acme/judge')", "-n", "20", "--storage", "s")
    process = begin(*words)
    wait_until(lambda: len(slow) >= 6, process)

    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)

    assert process.returncode == fault.exit_code
    assert "Traceback" not in said
    (stopped,) = ExperimentStorage("s").list_runs("judge-audits")
    assert stopped.status == fault.status
    assert printed_command(said) == f"themis {shlex.join(words)}"
    slow.seconds = 0.0
    call(*shlex.split(printed_command(said))[1:])
    assert len(slow) == len(set(slow.asked)), "an answered question was asked again"


# --- budgets ----------------------------------------------------------------------------------------------------------


def call(*words: str) -> int:
    """The command in this process; its exit code."""
    with pytest.raises(SystemExit) as left:
        main(words)
    code = left.value.code
    assert isinstance(code, int)
    return code


@pytest.fixture
def prices(here: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what models cost, in US dollars per million tokens in and out."""

    def set_prices(**models: float) -> None:
        named = {name: [price, price] for name, price in models.items()}
        (here / f"{'-'.join(models)}.json").write_text(json.dumps({"version": "test", "models": named}))
        monkeypatch.setenv("THEMIS_PRICES", str(here / f"{'-'.join(models)}.json"))

    return set_prices


RUBRIC = ("--metric", "rubric_judge(model='acme/judge')")


@pytest.mark.fault(
    area="Before the first call",
    wrong="A budget, and a model, agent or judge whose price is not known",
    does="Refuses before the first call, and says how to name the price",
    status="–",
    exit_code=2,
)
@pytest.mark.parametrize("unknown", ["the model or agent", "the judge"])
def test_a_budget_over_an_unknown_price_is_refused_before_the_first_call(
    here, slow, kind, prices, capsys, unknown, fault
):
    judge = RUBRIC if kind is SAMPLES else ("--judge", "acme/judge")
    more = ()
    if unknown == "the judge":
        prices(m=1.0)
        more = judge

    code = call(*kind.words("--storage", "s", "--budget-usd", "1", *more))

    said = capsys.readouterr().err
    assert code == fault.exit_code
    assert re.search(
        r"a budget needs the price of the (model|agent|judge) .*, which is not known; .*THEMIS_PRICES", said
    )
    assert len(slow) == 0
    assert ExperimentStorage("s").list_runs() == []


ECHO = """
import json, sys
for line in sys.stdin:
    told = {"cost_usd": 0.02} if sys.argv[1] == "says" else {}
    print(json.dumps({"reply": "Noted.", **told}), flush=True)
"""


@pytest.mark.parametrize("agent", ["command:{python} echo.py says", "http://127.0.0.1:9/agent"])
def test_an_agent_that_alone_knows_its_prices_needs_a_bound_for_a_budget(here, capsys, agent):
    (here / "echo.py").write_text(ECHO)
    agent = agent.format(python=sys.executable)

    code = call("memory", "run", "-c", "c.yml", "-a", agent, "--budget-usd", "1", "--storage", "s")

    assert code == 2
    assert "--option most_cost_usd=0.05" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("costs", "spent"), [("says", 0.10), ("silent", 0.20)], ids=["what it says counts", "its bound counts"]
)
def test_a_bounded_agent_is_held_to_the_budget(here, capsys, costs, spent):
    (here / "echo.py").write_text(ECHO)
    words = (
        "memory",
        "run",
        "-c",
        "c.yml",
        "-a",
        f"command:{sys.executable} echo.py {costs}",
        "--storage",
        "s",
        "--run-id",
        "r",
        "--json",
    )

    turns = []
    for _ in range(2):  # a resumed run has spent it, too
        code = call(*words, "--option", "most_cost_usd=0.04", "--budget-usd", "0.21" if costs == "silent" else "0.13")

        assert code == 130
        said = capsys.readouterr().err
        assert f"(${spent:.4f} spent)" in said, said
        turns.append(ExperimentStorage("s").get_run("r").calls)
    assert turns[0] == turns[1]


@pytest.mark.fault(
    area="Stopping and resuming",
    wrong="The budget is used up",
    does="Stops before the call that could pass it, prints the command that goes on with a larger one",
    status="interrupted",
    exit_code=130,
)
def test_a_used_up_budget_prints_a_command_that_goes_on(here, slow, kind, prices, capsys, fault):
    prices(m=1_000.0)
    words = kind.words("--storage", "s", "--budget-usd", "0.25" if kind is SAMPLES else "1", "--json")

    code = call(*words)

    printed, said = capsys.readouterr()
    assert code == fault.exit_code
    assert "allows no further call" in said
    assert json.loads(printed)["status"] == status_in("s", kind.run_id) == fault.status
    before = len(slow)
    assert before > 0
    command = shlex.split(printed_command(said))
    assert call(*command[1:]) in (0, 130)
    assert len(slow) > before
    cost = ExperimentStorage("s").get_run(kind.run_id).total_cost_usd
    assert cost is not None
    assert cost <= float(command[command.index("--budget-usd") + 1]) + 1e-9  # a sum of many


def test_answers_that_the_budget_leaves_unjudged_are_no_completed_run(here, slow, prices, capsys):
    prices(m=1.0, judge=1_000.0)

    code = call(*SAMPLES.words(*RUBRIC, "--storage", "s", "--budget-usd", "1"))

    said = capsys.readouterr().err
    assert code == 130
    assert re.search(r"allows no further call .*; \d+ questions to judges are left", said)
    assert status_in("s", SAMPLES.run_id) == "interrupted"
    for _ in range(9):
        if call(*shlex.split(printed_command(said))[1:]) == 0:
            break
        said = capsys.readouterr().err
    assert status_in("s", SAMPLES.run_id) == "completed"
    summary = ExperimentStorage("s").get_run(SAMPLES.run_id).summary["metrics"]["RubricJudge"]
    assert (summary["count"], summary["failed"]) == (30, 0)


def test_a_memory_runs_judge_is_paid_from_its_budget(here, slow, prices, capsys):
    prices(m=1.0, judge=1_000.0)
    (here / "asks.py").write_text(
        textwrap.dedent("""
        from dataclasses import dataclass
        from themis.memory import DatasetInterface, DynamicExample, register_memory_test
        from themis.memory.actions import Ask, Consult, Grade

        @register_memory_test("asks_the_judge")
        @dataclass(kw_only=True)
        class Asking(DatasetInterface):
            name = "Asking"

            def generate_examples(self, num_examples):
                return [Asked(dataset=self, example_id=str(n)) for n in range(num_examples)]

            def load_example(self, example_id, definition):
                return Asked(dataset=self, example_id=example_id)

        class Asked(DynamicExample):
            def play(self):
                yield Ask("How are you?")
                ruling = yield Consult("Is that an answer?")
                yield Grade.failure(ruling.failure) if ruling.failed else Grade(1.0)
        """)
    )
    (here / "judged.yml").write_text(
        "config: {run_name: judged, judge: acme/judge}\n"
        "datasets: {args: {dataset_examples: 2, memory_span: 600}, datasets: [{name: asks_the_judge}]}\n"
    )
    words = (
        "memory",
        "run",
        "-c",
        "judged.yml",
        "--load",
        "asks.py",
        "-a",
        "acme/m",
        "--run-id",
        "r",
        "--storage",
        "s",
    )

    assert call(*words, "--budget-usd", "1.04") == 130

    said = capsys.readouterr().err
    assert [model for model, _ in slow.asked].count("judge") == 1
    assert status_in("s", "r") == "interrupted"
    # The file of the user's is named in what was stored, so that the printed command needs no more.
    assert call(*shlex.split(printed_command(said))[1:]) == 0
    assert [model for model, _ in slow.asked].count("judge") == 2


def test_a_larger_budget_lets_the_refused_call_be_made():
    for cap, spent, most in ((0.01, 0.0, 0.5), (1.0, 0.9, 0.2), (3e-7, 2e-7, 9e-7), (250.0, 249.0, 3.0)):
        budget = Budget(cap, spent)
        assert not budget.reserve(most)
        larger = budget.larger_cap_usd()
        assert larger > cap
        assert Budget(float(f"{larger:g}"), spent).reserve(most)


# --- what is printed ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run_id", "location", "variable", "printed"),
    [
        ("r", ".cache/experiments", None, "Go on with: themis resume r"),
        ("r", ".cache/experiments", "elsewhere", "Go on with: themis resume r --storage .cache/experiments"),
        ("my run", "a b/s", None, "Go on with: themis resume 'my run' --storage 'a b/s'"),
        ("--odd", "s", None, "Go on with: themis resume --storage s -- --odd"),
        ("r", "postgresql://u:secret@h/d", "postgresql://u:secret@h/d", "Go on with: themis resume r"),
        ("r", "postgresql://u@h/d", None, "Go on with: themis resume r --storage postgresql://u@h/d"),
    ],
)
def test_the_command_names_the_store_as_this_directory_needs_it(monkeypatch, run_id, location, variable, printed):
    monkeypatch.delenv("THEMIS_STORAGE", raising=False)
    if variable is not None:
        monkeypatch.setenv("THEMIS_STORAGE", variable)

    assert how_to_resume(run_id, "", location) == printed


def test_no_command_is_printed_that_would_tell_a_password(monkeypatch):
    monkeypatch.delenv("THEMIS_STORAGE", raising=False)
    address = "postgresql://u:secret@h/d"

    resume, repeat = how_to_resume("r", "", address), how_to_repeat(["rejudge", "r", "--storage", address], address)

    assert "run the same command or program again with the run id 'r'" in resume
    assert repeat == "To go on, run the same command again"
    assert "secret@" not in resume + repeat


PROGRAM = """
import os, signal
import themis
from themis.core.entities import GenerationRecord, ModelOutput
from themis.interfaces import StatelessTaskExecutor

class Mine(StatelessTaskExecutor):
    def execute(self, task):
        if task.metadata["dataset_id"] == "3":
            os.kill(os.getpid(), signal.SIGTERM)
        return GenerationRecord(task, ModelOutput("x"), None)

themis.register_provider("mine", lambda **options: Mine())
rows = [{"id": str(n), "question": str(n), "answer": "x"} for n in range(500)]
themis.evaluate(rows, model="mine/m", prompt="{question}", run_id="r", storage="s", workers=1)
"""


def test_a_program_with_a_provider_of_its_own_is_told_to_run_again(here):
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)

    again = "run the same command or program again with the run id 'r': the provider 'mine' is the program's own"
    assert again in done.stderr
    assert "themis resume" not in done.stderr
    assert status_in("s", "r") == "interrupted"


def test_what_the_store_does_not_keep_is_named_instead_of_a_command(here, slow, kind, prices, capsys):
    prices(m=1_000.0)
    key = ("--option", "api_key=sk-very-secret-0123456789")

    assert call(*kind.words("--storage", "s", "--budget-usd", "0.25" if kind is SAMPLES else "1", *key)) == 130

    said = capsys.readouterr().err
    assert "run the same command or program again" in said
    assert "api_key" in said
    assert "themis resume" not in said
    assert "very-secret" not in said
    assert load_specification(ExperimentStorage("s").get_run(kind.run_id)).needs_program


# --- a full disk --------------------------------------------------------------------------------------------------------

# Reads `LIMIT OUTPUT WORDS` as JSON, runs the command in a fork of its own with so little room, and answers with the exit code.
# A limit in pages is SQLite's own and gives its error for a full disk, one in bytes is the kernel's (a quota).
WITH_LITTLE_ROOM = """
import json, os, resource, sqlite3, sys
import themis.cli.evaluating, themis.cli.memory, themis.runs.report, themis.generation.providers.fake
from themis.cli import main
from themis.config.specification import load_specification

connect = sqlite3.connect
def limited(pages):
    def opened(*args, **named):
        connection = connect(*args, **named)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection
    return opened

for line in sys.stdin:
    kind, size, output, words = json.loads(line)
    child = os.fork()
    if child == 0:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1), os.dup2(file, 2)
        if kind == "pages":
            sqlite3.connect = limited(size)
        elif kind == "bytes":
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            main(words)
        except SystemExit as left:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(left.code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.fault(
    area="Storage",
    wrong="The disk is full, or a quota used up, at any moment of a run of either kind, its set-up included",
    does="Says so in one sentence; what was committed is safe, and the run goes on when there is room",
    status="in_progress or failed",
    exit_code=3,
)
@pytest.mark.parametrize("limit", ["pages", "bytes"])
def test_a_full_disk_is_one_sentence_at_any_moment(here, kind, limit, fault):
    start = {
        "samples": ["eval", "rows.jsonl", "--model", "fake/perfect", "--run-id", "r", "-y"],
        "memory": ["memory", "run", "-c", "c.yml", "-a", "oracle", "--run-id", "r", "-y"],
    }[kind.name]
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_LITTLE_ROOM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def run(limit: str, size: int, storage: str) -> tuple[int, str]:
        words = [*start, "--storage", storage]
        process.stdin.write(json.dumps([limit, size, "said", words]) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline()), (here / "said").read_text()

    codes = []
    sizes = (10, 22, 23, 24, 25, 27, 29) if limit == "pages" else (20, 112, 136, 150, 400)
    for size in sizes:
        storage = f"s{size}"
        code, said = run(limit, size if limit == "pages" else size * 1024, storage)
        codes.append(code)
        if code == 0:
            break
        assert code == fault.exit_code, said
        assert "Traceback" not in said
        assert said.count("Error: ") == 1
        assert "is full" in said or "failed (" in said
        if ExperimentStorage(storage).exists() and ExperimentStorage(storage).run_exists("r"):
            assert status_in(storage, "r") in fault.status
        assert run("none", 0, storage)[0] == 0, "it does not go on when there is room"
        assert status_in(storage, "r") == "completed"
    process.stdin.close()
    process.wait(timeout=60)
    assert codes.count(fault.exit_code) >= 3
