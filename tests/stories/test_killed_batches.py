"""Nothing is submitted twice, whatever kills the process, at whatever step of a batch: the server counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

from themis.runs.prices import price_of
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.batches import read_open_batches

HERE = Path(__file__).parent
PROGRAM, SERVER = HERE / "batched_run.py", HERE.parent / "batch_server.py"
MODELS = {"openai": "openai/gpt-4o", "anthropic": "anthropic/claude-sonnet-4-20250514"}
ROWS = 60


class Stub:
    """The server as a process of its own, which outlives those that talk to it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}"

    def control(self, **behaviour: Any) -> None:
        asked = urllib.request.Request(f"{self.url}/_control", json.dumps(behaviour).encode())
        urllib.request.urlopen(asked, timeout=30).close()

    @property
    def seen(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/_seen", timeout=30) as answer:
            return json.load(answer)

    def stop(self) -> None:
        self.process.communicate("", timeout=60)


@pytest.fixture
def stub() -> Iterator[Stub]:
    started = Stub()
    yield started
    started.stop()


def start(vendor: str, stub: Stub, root: Path, rows: int = ROWS, **variables: str) -> subprocess.Popen[str]:
    base_url = stub.url + ("/v1" if vendor == "openai" else "")
    words = [sys.executable, str(PROGRAM), MODELS[vendor], base_url, str(root / "store"), str(rows)]
    environment = {**os.environ, "THEMIS_NO_DOTENV": "1", **variables}
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def kill(process: subprocess.Popen[str]) -> None:
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGKILL)
    process.wait()


def count_looks(stub: Stub) -> int:
    return sum(count for what, count in stub.seen["requests"].items() if what.startswith("GET") and "batches" in what)


def finish(vendor: str, stub: Stub, root: Path, rows: int = ROWS, **variables: str) -> None:
    """The same program again: it ends, with every answer, each of which was asked for once."""
    again = start(vendor, stub, root, rows, **variables)
    output, errors = again.communicate(timeout=300)
    assert again.returncode == 0, errors
    mean, count, cost = map(float, output.split())
    provider, _, model = MODELS[vendor].partition("/")
    price = price_of(model, provider)
    assert price is not None
    assert (mean, count) == (1.0, rows)
    assert cost == pytest.approx(rows * price.in_batch.of(40, 10))
    seen = stub.seen
    assert len(seen["accepted"]) == rows
    assert set(seen["accepted"].values()) == {1}
    assert seen["singly"] == {}
    storage = ExperimentStorage(root / "store")
    assert storage.get_run("story").status is RunStatus.COMPLETED
    assert read_open_batches(storage.reader("story")) == []
    assert storage.validate_integrity("story")["errors"] == []


STEPS = [
    *(("openai", step) for step in ("upload-before", "upload-after", "create-before", "create-after", "results-half")),
    *(("anthropic", step) for step in ("create-before", "create-after", "results-half")),
]


@pytest.mark.parametrize(("vendor", "step"), STEPS)
def test_a_process_that_is_killed_at_a_step_of_its_batch_submits_nothing_twice(vendor, step, stub, tmp_path):
    stub.control(hold=step)
    process = start(vendor, stub, tmp_path)
    wait_until(lambda: step in stub.seen["held"])
    kill(process)
    stub.control(hold="")

    finish(vendor, stub, tmp_path)
    # What had been uploaded and never became a batch is not left lying about.
    uploaded = [name for name in stub.seen["files"] if name not in ("output.jsonl", "error.jsonl")]
    assert len(uploaded) == (1 if vendor == "openai" else 0)


@pytest.mark.parametrize("vendor", MODELS)
def test_a_process_that_is_killed_while_the_provider_works_finds_its_batches_again(vendor, stub, tmp_path):
    stub.control(is_open=False)
    process = start(vendor, stub, tmp_path, BATCH_SIZE="25")
    wait_until(lambda: len(stub.seen["accepted"]) == ROWS)
    kill(process)
    # A batch is looked at by its id; one whose id had not reached its sender when that was killed is looked for in the list.
    looked = count_looks(stub)
    again = start(vendor, stub, tmp_path, BATCH_SIZE="25")
    wait_until(lambda: count_looks(stub) > looked + 6)
    kill(again)
    stub.control(is_open=True)

    finish(vendor, stub, tmp_path, BATCH_SIZE="25")


@pytest.mark.parametrize("vendor", MODELS)
def test_a_process_that_is_killed_in_the_middle_of_its_results_stores_the_rest_later(vendor, stub, tmp_path):
    process = start(vendor, stub, tmp_path, 900, DIES_AFTER="300")
    process.wait(timeout=300)
    assert process.returncode == -signal.SIGKILL
    storage = ExperimentStorage(tmp_path / "store")
    assert 0 < len(storage.load_cached_records("story")) < 900
    storage.close()

    finish(vendor, stub, tmp_path, 900)


@pytest.mark.parametrize("vendor", MODELS)
def test_a_process_that_is_killed_again_while_it_finds_out_what_became_of_its_batch_submits_nothing_twice(
    vendor, stub, tmp_path
):
    stub.control(hold="create-after", is_open=False)
    process = start(vendor, stub, tmp_path)
    wait_until(lambda: "create-after" in stub.seen["held"])
    kill(process)
    stub.control(hold="")
    listing = "GET /v1/batches" if vendor == "openai" else "GET /v1/messages/batches"
    asked = stub.seen["requests"][listing]
    again = start(vendor, stub, tmp_path)
    wait_until(lambda: stub.seen["requests"][listing] > asked)
    kill(again)
    stub.control(is_open=True)

    finish(vendor, stub, tmp_path)


@pytest.mark.parametrize("vendor", MODELS)
def test_a_batch_that_is_taken_up_after_its_sender_was_killed_is_not_sent_again(vendor, stub, tmp_path):
    stub.control(create_delay_seconds=0.4)
    process = start(vendor, stub, tmp_path)
    making = "POST /v1/batches" if vendor == "openai" else "POST /v1/messages/batches"
    wait_until(lambda: stub.seen["requests"].get(making))
    kill(process)
    stub.control(create_delay_seconds=0.0)

    finish(vendor, stub, tmp_path)


# --- the command line -------------------------------------------------------------------------------------------------


def themis(root: Path, *words: str, key: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OPENAI_API_KEY": key, "NO_COLOR": "1", "COLUMNS": "200", "THEMIS_NO_DOTENV": "1"}
    command = [sys.executable, "-m", "themis", *words, "--storage", str(root / "store")]
    return subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def start_command(stub: Stub, root: Path) -> subprocess.Popen[str]:
    rows = [{"id": str(n), "question": f"say {n}", "answer": str(n)} for n in range(12)]
    (root / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = ["eval", "rows.jsonl", "-m", "openai/gpt-4o", "--run-id", "story", "--batch", "--batch-poll", "0.02"]
    return themis(root, *asked, "--option", f"base_url={stub.url}/v1", key="key-one")


def test_ctrl_c_leaves_the_batch_to_the_provider_and_says_how_it_is_collected(stub, tmp_path):
    stub.control(is_open=False)
    process = start_command(stub, tmp_path)
    wait_until(lambda: stub.seen["requests"].get("GET /v1/batches/{id}"))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)

    (batch,) = stub.seen["batches"]
    assert process.returncode == 130
    assert f"batch {batch['id']} of 12 items goes on at 127.0.0.1" in said
    assert "Go on with: themis resume story" in said
    shown, _ = themis(tmp_path, "show", "story", key="key-one").communicate(timeout=300)
    assert f"batch {batch['id']} of 12 items goes on at" in shown

    stub.control(is_open=True)
    collected, _ = themis(tmp_path, "resume", "story", key="key-one").communicate(timeout=300)
    assert "run story: 12 samples, 12 calls, $" in collected
    assert set(stub.seen["accepted"].values()) == {1}


def test_resume_can_cancel_what_is_open_and_ask_the_rest_singly_later(stub, tmp_path):
    stub.control(is_open=False)
    process = start_command(stub, tmp_path)
    wait_until(lambda: stub.seen["requests"].get("GET /v1/batches/{id}"))
    kill(process)
    cancelling = themis(tmp_path, "resume", "story", "--cancel-batches", key="key-one")
    _, said = cancelling.communicate(timeout=300)
    assert cancelling.returncode == 130
    assert "was cancelled, 6 of them are not answered" in said
    assert stub.seen["singly"] == {}

    finishing = themis(tmp_path, "resume", "story", "--no-batch", key="key-one")
    finishing.communicate(timeout=300)
    assert finishing.returncode == 0
    assert len(stub.seen["singly"]) == 6
