"""Whatever is wrong with a published file, it is named in one line and everything else is imported."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.memory.results.published import write_folder
from themis.memory.importing import ImportedAgent, import_folder
from themis.memory.rejudging import rejudge_memory_run
from themis.memory.report import read_view
from themis.memory.report.pages import run_page
from themis.memory.results import load_results, summarise_results
from themis.storage import ExperimentStorage

RESULT, DEFINITION = "results/Some Agent/Colours/0_0.json", "definitions/Colours/0.def.json"
LOG, STATS, CONFIG = "results/Some Agent/master_log.jsonl", "results/Some Agent/runstats.json", "definitions/config.yml"


def field(name: str, value: Any) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        file.write_text(json.dumps({**json.loads(file.read_text()), name: value}))

    return change


def event(place: int, **fields: Any) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        lines = file.read_text().splitlines()
        lines[place] = json.dumps({**json.loads(lines[place]), **fields})
        file.write_text("\n".join(lines))

    return change


def content(data: bytes) -> Callable[[Path], None]:
    return lambda file: file.write_bytes(data) and None


def named(name: bytes) -> Callable[[Path], None]:
    return lambda file: file.rename(file.with_name(os.fsdecode(name))) and None


# The file, what is done to it, how many of the two tests are left, and where the damage is said to be.
DAMAGES: dict[str, tuple[str, Callable[[Path], None], int, str]] = {
    "a file that is cut off": (RESULT, content(b'{"score": 1, "max_'), 1, "Colours/0_0.json"),
    "an empty file": (RESULT, content(b""), 1, "Colours/0_0.json"),
    "bytes that are no text": (RESULT, content(b"\xff\xfe\x00\xd8{"), 1, "Colours/0_0.json"),
    "a list in place of a result": (RESULT, content(b"[1, 2]"), 1, "Colours/0_0.json"),
    "nested without end": (RESULT, content(b"[" * 100_000), 1, "Colours/0_0.json"),
    "nested deeply": (RESULT, field("expected_responses", json.loads("[" * 600 + "]" * 600)), 1, "Colours/0_0.json"),
    "no score": (RESULT, lambda file: file.write_text('{"reasoning": []}') and None, 1, "Colours/0_0.json"),
    "a score beyond its range": (RESULT, field("score", 7), 2, "Colours/0_0.json"),
    "a negative score": (RESULT, field("score", -1), 2, "Colours/0_0.json"),
    "a score of hundreds of digits": (RESULT, field("score", 10**400), 2, "Colours/0_0.json"),
    "a maximum of hundreds of digits": (RESULT, field("max_score", 10**400), 2, "Colours/0_0.json"),
    "tokens of hundreds of digits": (RESULT, field("tokens", 10**400), 1, "Colours/0_0.json"),
    "a wait of hundreds of digits": (DEFINITION, field("waits", [{"tokens": 10**400}]), 2, "definitions/Colours/0.def.json"),
    "a score that is no number": (RESULT, field("score", float("nan")), 2, "Colours/0_0.json"),
    "a maximum without end": (RESULT, field("max_score", float("inf")), 2, "Colours/0_0.json"),
    "tokens that are no number": (RESULT, field("tokens", "many"), 1, "Colours/0_0.json"),
    "endless needles": (RESULT, field("needles", float("inf")), 1, "Colours/0_0.json"),
    "half of a character": (RESULT, field("actual_responses", ["\ud800"]), 2, ""),
    "a definition that is cut off": (DEFINITION, content(b'{"script": ['), 2, "definitions/Colours/0.def.json"),
    "a script that is no list": (DEFINITION, field("script", 5), 2, "definitions/Colours/0.def.json"),
    "too few flags": (DEFINITION, field("is_question", [True]), 2, "definitions/Colours/0.def.json"),
    "waits that are none": (DEFINITION, field("waits", [{"time": "soon"}]), 2, "definitions/Colours/0.def.json"),
    "nothing expected": (DEFINITION, field("expected_responses", None), 2, ""),
    "a configuration that is none": (CONFIG, content(b"{["), 2, "definitions/config.yml"),
    "a configuration of another program": (CONFIG, content(b"config: {run_name: 5}\ndatasets: 3"), 2, "definitions/config.yml"),
    "statistics that are none": (STATS, field("agent_tokens", "many"), 2, "runstats.json"),
    "endless costs": (STATS, field("agent_costs_usd", float("inf")), 2, "runstats.json"),
    "a log that is no text": (LOG, content(b"\x80\x81\n" * 5), 2, "master_log.jsonl line 1"),
    "an event of no time": (LOG, event(6, timestamp="noon"), 2, "master_log.jsonl line 7"),
    "a wait without end": (LOG, event(6, data={"tokens": 20, "time": 1e300}), 2, "master_log.jsonl line 7"),
    "a wait for nothing countable": (LOG, event(6, data={"tokens": "a few"}), 2, "master_log.jsonl line 7"),
    "a test named by half a character": (LOG, event(6, test_id="Colours - \ud800"), 2, "master_log.jsonl line 7"),
    "a definition in strange letters": (DEFINITION, named(b"\xff.def.json"), 2, "definitions/Colours/\udcff.def.json"),
    "a result in strange letters": (RESULT, named(b"caf\xe9_0.json"), 1, "Colours/caf\udce9_0.json"),
    "a message that is lost": (LOG, event(4, type=7), 2, "master_log.jsonl line 6"),
}  # fmt: skip


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[ExperimentStorage, dict[str, ImportedAgent]]:
    """All of them side by side, and some whose bytes are changed at random, imported in one go."""
    root = tmp_path_factory.mktemp("damaged")
    for damage, (file, change, _, _) in DAMAGES.items():
        change(write_folder(root / "all" / damage) / file)
    for number in range(12):
        shuffle_bytes(write_folder(root / "all" / f"random {number}"), Random(f"damage {number}"))
    storage = ExperimentStorage(root / "store")
    done = import_folder(root / "all", storage, name="Tiny")
    return storage, {one.run_id.partition("(from ")[2].partition(")")[0]: one for one in done}


def shuffle_bytes(folder: Path, rng: Random) -> None:
    file = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    data = bytearray(file.read_bytes())
    for _ in range(rng.randrange(1, 6)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    file.write_bytes(bytes(data[: rng.randrange(len(data))] if rng.random() < 0.3 else data))


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_named_and_the_rest_is_imported(imported, damage: str) -> None:
    storage, every = imported
    done, (_, _, left, where) = every[damage], DAMAGES[damage]

    assert done.tests == left
    assert (where in [part.where for part in done.broken]) or not where
    judged = load_results(storage, done.run_id, "rescored").results
    assert not [reason for result in judged for reason in result.reasoning if "raised" in reason]
    scores = [
        result.score for result in load_results(storage, done.run_id, "published").results if result.score is not None
    ]
    assert all(0 <= score <= 1 for score in scores)
    assert len(scores) == left - ("score" in damage or "maximum" in damage) * (left == 2)


def test_no_change_of_bytes_ends_an_import(imported) -> None:
    _, every = imported

    assert len(every) == len(DAMAGES) + 12
    assert all(done.tests >= 1 for done in every.values())


@pytest.mark.parametrize("damage", ["a score beyond its range", "half of a character", "a message that is lost"])
def test_what_was_imported_from_a_damaged_folder_is_judged_and_shown_like_any_other(imported, damage: str) -> None:
    storage, every = imported
    rejudge_memory_run(storage, every[damage].run_id)

    assert "Tiny (from " in run_page(read_view(storage, every[damage].run_id))


def test_a_score_out_of_range_is_marked_and_no_score(imported) -> None:
    storage, every = imported
    found = load_results(storage, every["a negative score"].run_id, "published")

    (marked,) = [result for result in found.results if result.score is None]
    assert marked.reasoning == ["published without a score that counts: its score is -1 of 1, which cannot be"]
    summary = summarise_results(found)
    assert (summary.score, summary.scored, summary.undecided) == (1.0, 1, 1)
