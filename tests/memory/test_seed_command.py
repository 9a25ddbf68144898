"""The benchmark's own command, as its page writes it, against a server that answers as OpenAI's does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from themis.core.tokens import count_tokens
from themis.exceptions import ConfigurationError
from themis.memory.agents import create_agent
from themis.memory.short_names import MODELS, expand_model
from themis.runs.prices import Price, price_of
from themis.storage import ExperimentStorage

ROOT = Path(__file__).parents[2]
USAGE = {"prompt_tokens": 1_000, "completion_tokens": 100}


class OpenAi(BaseHTTPRequestHandler):
    """Answers every conversation with the same words."""

    seen: list[dict[str, object]] = []  # noqa: RUF012 - one a test

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append({**asked, "key": self.headers["Authorization"]})
        said = {"choices": [{"message": {"content": "I see."}, "finish_reason": "stop"}], "usage": USAGE}
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    OpenAi.seen.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), OpenAi)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()


def test_the_seeds_command_runs_as_it_is_written(tmp_path, address):
    command = "run_benchmark.py -c ./configurations/blogpost_tests/benchmark-1k.yml -a gpt-4-1106 -m 4096"
    settings = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": address, "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        [sys.executable, *command.split(), "--storage", str(tmp_path / "store"), "--json"],
        cwd=ROOT, env={**os.environ, **settings}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["run_id"] == "blogpost benchmark 1k - gpt-4-1106 4096"
    assert len(report["scores"]) == 30
    assert {(asked["model"], asked["key"]) for asked in OpenAi.seen} == {("gpt-4-1106-preview", "Bearer key")}
    assert max(sum(count_tokens(said["content"]) for said in asked["messages"]) for asked in OpenAi.seen) <= 4_096
    # $10 and $30 a million.
    cost = ExperimentStorage(tmp_path / "store").get_run(report["run_id"]).cost_usd
    assert cost == pytest.approx(len(OpenAi.seen) * (1_000 * 10 + 100 * 30) / 1e6)


def test_a_python_without_what_themis_needs_is_told_which_one_to_use():
    bare = [sys.executable, "-S", "run_benchmark.py", "-c", "quick", "-a", "oracle"]

    done = subprocess.run(bare, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "run `make install`, then .venv/bin/python run_benchmark.py" in done.stderr


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("gpt", "openai/gpt-4"),
        ("gpt-4-1106", "openai/gpt-4-1106-preview"),
        ("gpt-3.5-turbo", "openai/gpt-3.5-turbo"),
        ("gpt-4o", "openai/gpt-4o"),
        ("claude", "anthropic/claude-2.1"),
        ("claude-3-opus", "anthropic/claude-3-opus-20240229"),
        ("Claude-3-Haiku", "anthropic/claude-3-haiku-20240307"),
        ("gemini", "gemini/gemini-1.5-pro-latest"),
        ("mixtral-8x7b", "together/mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("together_ai/meta-llama/Llama-3-70b-chat-hf", "together/meta-llama/Llama-3-70b-chat-hf"),
        ("huggingface/author/model", "huggingface/author/model"),
        ("local/smollm2", "local/smollm2"),
        ("fake:gpt-4", "fake:gpt-4"),
        ("oracle", "oracle"),
    ],
)
def test_the_benchmarks_short_names_are_models_of_todays_providers(name, model):
    assert expand_model(name) == model


def test_a_short_name_is_the_same_model_with_timestamps_too(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")

    agents = [create_agent(text) for text in ("gpt-4-1106", "ts-gpt-4-1106", "chat(gpt-4-1106)")]

    assert {agent.model.spec.identifier for agent in agents} == {"gpt-4-1106-preview"}
    assert {agent.model.price for agent in agents} == {Price(10.0, 30.0)}
    assert agents[0].name == "gpt-4-1106 (16384 tokens)"
    assert agents[1].name.startswith("ts-gpt-4-1106 ")


@pytest.mark.parametrize(
    ("name", "way_on"),
    [
        ("ltm_agent_1(claude-3-opus)", r"retrieval\(MODEL\)"),
        ("memgpt", "command:PROGRAM"),
        ("length_bias", "amnesiac"),
        ("LLMChatSession", "name the model itself"),
    ],
)
def test_an_agent_of_the_benchmark_that_is_not_here_is_an_error_with_a_way_on(name, way_on):
    with pytest.raises(ConfigurationError, match=f"not here; .*{way_on}"):
        create_agent(name)


def test_every_short_name_of_a_vendor_with_a_price_list_has_its_own_price():
    priced = {
        name: price_of(*reversed(model.split("/", 1))) for name, model in MODELS.items() if "together" not in model
    }

    assert None not in priced.values()
    assert priced["gpt-4-1106"] == priced["gpt-4-0125"] == Price(10.0, 30.0)
    assert priced["gpt-4"] == Price(30.0, 60.0)
    assert priced["claude-3-sonnet"] == Price(3.0, 15.0, cached_usd=0.3, cache_write_usd=3.75, cache_write_1h_usd=6.0)


@pytest.mark.parametrize(
    ("snapshot", "price"),
    [
        ("gpt-4-0613", Price(30.0, 60.0)),
        ("gpt-4-1106", Price(10.0, 30.0)),
        ("gpt-4-turbo-2024-04-09", Price(10.0, 30.0)),
        ("gpt-4o-2024-05-13", Price(5.0, 15.0)),
        ("gpt-4o-2024-08-06", Price(2.5, 10.0, cached_usd=1.25)),
        ("gpt-3.5-turbo-0613", Price(1.5, 2.0)),
        ("gpt-3.5-turbo-0125", Price(0.5, 1.5)),
        ("gpt-4-32k-0613", Price(60.0, 120.0)),
    ],
)
def test_a_snapshot_with_a_price_of_its_own_is_not_priced_as_its_family(snapshot, price):
    assert price_of(snapshot, "openai") == price
