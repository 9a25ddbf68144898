"""What the memory engine itself costs: CPU per token of conversation, resuming, memory. `python benchmarks/memory_engine.py`.

The agent is the oracle, which does nothing, so that what is left is ours. Each conversation runs in a process of its own. The
floor is tokenising the same text once and writing the same log once, as durably, with nothing in between.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from themis.core.codec import decode, encode
from themis.core.tokens import count_tokens
from themis.memory.actions import Ask, Grade, Listen, Say, Wait
from themis.memory.agents.calibration import Oracle
from themis.memory.benchmark import Benchmark
from themis.memory.driver import run
from themis.memory.examples import DatasetInterface, DynamicExample, TestExample
from themis.memory.filler.facts import facts
from themis.storage import ExperimentStorage

_LENGTHS = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)


@dataclass(kw_only=True)
class Needle(DatasetInterface):
    """Two statements and a question, spread over the span."""

    name = "Needle"

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        return [
            TestExample(
                dataset=self,
                example_id=str(number),
                script=[
                    f"Box {number} holds a lamp.",
                    f"Box {number} holds a kettle.",
                    f"What does box {number} hold?",
                ],
                expected_responses=["kettle"],
            )
            for number in range(num_examples)
        ]

    def evaluate(self, questions: Any, responses: Any, expected: Any) -> Grade:
        return Grade.when(expected[0] in responses[0], "kettle")


@dataclass(kw_only=True)
class Listener(DatasetInterface):
    """Hears every reply to the end of the conversation."""

    name = "Listener"

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        return [Listening(dataset=self, example_id=str(number)) for number in range(num_examples)]


class Listening(DynamicExample):
    def play(self) -> Any:
        yield Say("Count your replies.")
        while (yield Listen(patience=0)) is not None:
            pass
        yield Ask("Done?", ideal="yes", needs=())
        yield Wait()
        yield Grade(1.0)


def benchmark_of(tokens: int, *, listening: bool) -> Benchmark:
    """One conversation of about so many tokens: ten tests at a time, each over a tenth of it."""
    span = max(2_000, tokens // 10)
    needles = Needle(memory_span=span).generate_examples(10)
    listeners = Listener(memory_span=span).generate_examples(1) if listening else []
    tests = [*needles, *listeners]
    # Needles run one after the other, so that ten spans make up the conversation.
    return Benchmark(
        run_id="bench",
        name="bench",
        tests=tests,
        kinds={test.test_id: test.dataset.name for test in tests},
        conflicts={"Needle": ["Needle"]},
        agent_name="oracle",
        make_agent=lambda session: Oracle(),
        filler=facts(),
        start=datetime(2030, 1, 1, tzinfo=UTC),
    )


def measure(tokens: int, folder: Path, *, listening: bool) -> dict[str, float]:
    """CPU seconds of a run, of playing its whole tape again, and of the floor; and the memory it took."""
    storage = ExperimentStorage(folder)
    small = benchmark_of(2_000, listening=listening)
    run(small, ExperimentStorage(folder / "warm"))  # imports and first uses are not what is measured
    imported_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    report = run(benchmark_of(tokens, listening=listening), storage)
    run_seconds = time.process_time() - began
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    run(benchmark_of(tokens, listening=listening), storage)
    resume_seconds = time.process_time() - began
    rows = [(turn.kind, turn.body) for turn in storage.reader("bench").turns()]
    return {
        "tokens": report.metadata["memory"]["conversation_tokens"],
        "turns": report.metadata["memory"]["turns"],
        "run": run_seconds,
        "resume": resume_seconds,
        "tokenise": _tokenising(rows),
        "write": _writing(rows, folder / "log.db"),
        "grown_mib": (peak_kib - imported_kib) / 1024,
        "peak_mib": peak_kib / 1024,
    }


def _tokenising(rows: list[tuple[str, str]]) -> float:
    texts = [body.get("message") or body.get("reply") or "" for body in (decode(text) for _, text in rows)]
    began = time.process_time()
    for text in texts:
        count_tokens(text)
    return time.process_time() - began


def _writing(rows: list[tuple[str, str]], path: Path) -> float:
    """Writing the log as durably as a tape must be: one commit, forced to the disk, for each exchange."""
    values = [(kind, decode(body)) for kind, body in rows]
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE log (seq INTEGER PRIMARY KEY, kind TEXT, body TEXT)")
    began = time.process_time()
    for kind, value in values:
        connection.execute("INSERT INTO log (kind, body) VALUES (?, ?)", (kind, encode(value)))
        if kind == "reply":
            connection.commit()
    connection.commit()
    seconds = time.process_time() - began
    connection.close()
    return seconds


def in_processes(lengths: tuple[int, ...], *, listening: bool) -> Iterator[dict[str, float]]:
    for tokens in lengths:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--one", str(tokens), "--folder", folder]
            finished = subprocess.run(command + ["--listening"] * listening, capture_output=True, text=True, check=True)
            yield json.loads(finished.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longest", type=int, default=_LENGTHS[-1], help="longest conversation, in tokens")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--listening", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.folder, listening=arguments.listening)))
        return
    lengths = tuple(length for length in _LENGTHS if length <= arguments.longest)
    for listening in (False, True):
        print(f"\n{'with a test that listens throughout' if listening else 'tests that wait'}")
        print("      tokens  turns   run s  tokenise s  write s  run/floor  resume s  resume/run  grown MiB  peak MiB")
        measured = []
        for row in in_processes(lengths, listening=listening):
            measured.append(row)
            floor = row["tokenise"] + row["write"]
            print(
                f"{row['tokens']:>12,} {row['turns']:>6,.0f} {row['run']:>7.2f} {row['tokenise']:>11.2f} "
                f"{row['write']:>8.2f} {row['run'] / floor:>10.2f} {row['resume']:>9.3f} {row['resume'] / row['run']:>11.1%} "
                f"{row['grown_mib']:>10.1f} {row['peak_mib']:>9.0f}",
                flush=True,
            )
        first, last = measured[0], measured[-1]
        if last["tokens"] > first["tokens"]:
            grown = math.log(last["run"] / first["run"]) / math.log(last["tokens"] / first["tokens"])
            print(f"CPU grows with tokens to the power of {grown:.2f}")


if __name__ == "__main__":
    main()
