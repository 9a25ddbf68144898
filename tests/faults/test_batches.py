"""What can go wrong with batches, from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_server import BatchServer, batch_server

from themis.storage import ExperimentStorage


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with batch_server() as running:
        yield running


@pytest.fixture
def batched(themis, server, tmp_path):
    """`themis eval` by batches, over rows that are numbers."""

    def run(count: int = 6, mark: str = "", *words: str):
        rows = [{"id": str(n), "question": f"say {n}{mark}", "answer": str(n)} for n in range(count)]
        (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        asked = ["eval", "rows.jsonl", "-m", "openai/gpt-4o", "--run-id", "batched", "--batch", "--batch-poll", "0.02"]
        options = ["--storage", "store", "--option", f"base_url={server.url}/v1", *words]
        return themis(*asked, *options, OPENAI_API_KEY="key-one")

    return run


def status_of(tmp_path: Path) -> str:
    return ExperimentStorage(tmp_path / "store").get_run("batched").status.value


@pytest.mark.fault(
    area="Batches",
    wrong="The provider, or the server at `base_url`, has no batches",
    does="Refuses, and names those that have",
    status="–",
    exit_code=2,
)
def test_a_server_without_batches(fault, batched, server, tmp_path):
    server.behaviour.has_batches = False
    ended = batched()

    assert ended.returncode == fault.exit_code
    assert "takes no batches; they work with openai, groq and anthropic" in ended.stderr
    assert not ExperimentStorage(tmp_path / "store").run_exists("batched")


@pytest.mark.fault(
    area="Batches",
    wrong="The answer to the making of a batch is lost: 5xx, or the connection is cut",
    does="Looks whether the provider has it before it is sent again; nothing is submitted twice",
    status="completed",
    exit_code=0,
)
def test_the_answer_to_the_making_of_a_batch_is_lost(fault, batched, server, tmp_path):
    server.behaviour.create_answers = [[0, "taken"]]
    ended = batched()

    assert (ended.returncode, status_of(tmp_path)) == (fault.exit_code, fault.status)
    assert set(server.accepted.values()) == {1}


@pytest.mark.fault(
    area="Batches",
    wrong="Some items of a batch fail, or expire",
    does="Asks them singly at the full price, or in another batch where they are more than 1,000",
    status="completed",
    exit_code=0,
)
def test_some_items_of_a_batch_expire(fault, batched, server, tmp_path):
    ended = batched(4, " [expires]")

    assert (ended.returncode, status_of(tmp_path)) == (fault.exit_code, fault.status)
    assert len(server.singly) == 4


@pytest.mark.fault(
    area="Batches",
    wrong="The provider fails a batch as a whole",
    does="Ends with the provider's words; the same command sends it again",
    status="failed",
    exit_code=3,
)
def test_a_batch_fails_as_a_whole(fault, batched, server, tmp_path):
    server.behaviour.fails_with = ["model_not_found"]
    ended = batched()

    assert (ended.returncode, status_of(tmp_path)) == (fault.exit_code, fault.status)
    assert "model_not_found" in ended.stderr


@pytest.mark.fault(
    area="Batches",
    wrong="Too many tokens of the account wait in batches already",
    does="Sends smaller batches, one after another, and waits",
    status="completed",
    exit_code=0,
)
def test_too_much_waits_already(fault, batched, server, tmp_path):
    server.behaviour.most_enqueued = 4
    ended = batched(10)

    assert (ended.returncode, status_of(tmp_path)) == (fault.exit_code, fault.status)
    assert set(server.accepted.values()) == {1}
    assert max(len(one.items) for one in server.batches.values() if not one.failure) <= 4
