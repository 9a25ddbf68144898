"""Kills runs at random moments and counts what was lost, wrong, or paid for twice.

    python benchmarks/kills.py [samples KILLS] [memory KILLS] [generating KILLS]

A run asks an endpoint of its own over HTTP, is killed with SIGKILL again and again, and taken up with the same command until it
ends. The endpoint notes when each question was answered: one that was answered before a kill and is asked after it was paid for
twice. In the end the stored answers are compared with those of a run that nobody killed. `generating` are memory runs that make
their definitions themselves, so that a kill may fall into that too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WORKERS = 32
LATENCY_SECONDS = 0.05
ROWS_PER_KILL = 160
CONFIGURATION = """\
config: {run_name: kills}
datasets:
  args: {memory_span: 3000, dataset_examples: 2}
  datasets: [{name: names}, {name: colours}, {name: shopping}, {name: sallyanne}, {name: jokes}]
"""


def main() -> None:
    words = sys.argv[1:] or ["samples", "100", "memory", "25", "generating", "25"]
    print(
        "| kind | kills | lost | wrong | asked again | of these answered before | a kill |\n|---|---|---|---|---|---|---|"
    )
    for kind, kills in zip(words[::2], map(int, words[1::2]), strict=True):
        found = measure(kind, kills)
        print(f"| {kind} | {kills} | {found['lost']} | {found['wrong']} | {found['repeated']} | {found['answered']} "
              f"| {found['answered'] / kills:.2f} |", flush=True)  # fmt: skip


def measure(kind: str, kills: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder, endpoint() as seen:
        place = Path(folder)
        seen_before = len(seen)
        whole = play(kind, place / "whole", kills, seen, kill=False)
        asked = len(seen) - seen_before
        killed = play(kind, place / "killed", kills, seen, kill=True)
        return {
            "lost": len(whole["answers"].keys() - killed["answers"].keys()),
            "wrong": sum(killed["answers"].get(key) != value for key, value in whole["answers"].items()),
            "repeated": killed["calls"] - asked,
            "answered": killed["answered"],
        }


def play(kind: str, place: Path, kills: int, seen: Any, *, kill: bool) -> dict[str, Any]:
    """One run to its end, killed on the way; what it stored, what was called, what was answered and asked again."""
    place.mkdir()
    command = commands(kind, place, kills)
    chance, before, moments = random.Random(kills), len(seen), []
    while True:
        called = len(seen)
        process = subprocess.Popen(command, cwd=place, env=environment(seen), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)  # fmt: skip
        if kill and len(moments) < kills:
            while len(seen) == called and process.poll() is None:
                time.sleep(0.001)
            time.sleep(chance.random() * 0.3)
            os.kill(process.pid, signal.SIGKILL)
            moments.append(time.monotonic())
            process.wait()
        else:
            _, said = process.communicate()
            assert process.returncode == 0, said
            break
    calls = list(seen)[before:]
    return {"answers": stored(place), "calls": len(calls), "answered": paid_twice(calls, moments)}


def paid_twice(calls: list[tuple[str, float, float]], moments: list[float]) -> int:
    """How many answers were sent before a kill and asked for again after it."""
    last_asked = {key: max(asked for other, asked, _ in group) for key, group in grouped(calls).items()}
    ends = [*moments, float("inf")]
    return sum(
        last_asked[key] > next(end for end in ends if end > asked) > answered
        for key, asked, answered in calls
        if answered
    )


def grouped(calls: list[tuple[str, float, float]]) -> dict[str, list[tuple[str, float, float]]]:
    groups: dict[str, list[tuple[str, float, float]]] = {}
    for call in calls:
        groups.setdefault(call[0], []).append(call)
    return groups


def commands(kind: str, place: Path, kills: int) -> list[str]:
    themis = [sys.executable, "-m", "themis"]
    if kind == "samples":
        rows = place / "rows.jsonl"
        rows.write_text(
            "".join(
                json.dumps({"id": n, "question": f"q{n}", "answer": "x"}) + "\n" for n in range(ROWS_PER_KILL * kills)
            )
        )
        return [
            *themis,
            "eval",
            str(rows),
            "-m",
            "kills/m",
            "--run-id",
            "r",
            "-j",
            str(WORKERS),
            "--storage",
            "store",
            "-y",
        ]
    (place / "c.yml").write_text(CONFIGURATION)
    command = [*themis, "memory", "run", "-c", "c.yml", "-a", "kills/m", "--run-id", "r", "--storage", "store", "-y"]
    if kind == "memory":
        first = [
            *themis,
            "memory",
            "run",
            "-c",
            "c.yml",
            "-a",
            "oracle",
            "--run-id",
            "first",
            "--storage",
            "store",
            "-y",
        ]
        made = subprocess.run(first, cwd=place, text=True, capture_output=True)
        assert made.returncode == 0, made.stderr
    return command


def environment(seen: Any) -> dict[str, str]:
    return {**os.environ, "KILLS_BASE_URL": f"http://127.0.0.1:{seen.port}/v1", "KILLS_API_KEY": "none"}


def stored(place: Path) -> dict[str, Any]:
    """Every answer and score by what it is of."""
    from themis.memory.tape import read_body
    from themis.storage import ExperimentStorage

    storage = ExperimentStorage(place / "store")
    run = storage.get_run("r")
    assert run.status.value == "completed", run
    scores = storage.load_cached_evaluations("r")
    if run.kind == "memory":
        said = {turn.seq: (turn.kind, turn.test_id, read_body(turn).reply) for turn in storage.reader("r").turns()}
        return {**said, "scores": {key: [score.value for score in record.scores] for key, record in scores.items()}}
    return {key: (record.output.text, [score.value for score in scores[key].scores])
            for key, record in storage.load_cached_records("r").items()}  # fmt: skip


# --- the endpoint, in a process of its own ----------------------------------------------------------------------------


class Seen:
    """The calls so far, as (question, when it was asked, when it was answered), read from the endpoint's notes."""

    def __init__(self, port: int, notes: Path) -> None:
        self.port, self._notes, self._rows, self._read = port, notes, list[tuple[str, float, float]](), 0

    def __iter__(self) -> Iterator[tuple[str, float, float]]:
        len(self)
        return iter(self._rows)

    def __len__(self) -> int:
        with self._notes.open() as lines:
            lines.seek(self._read)
            for line in iter(lines.readline, ""):
                if not line.endswith("\n"):
                    break
                key, asked, answered = line.split()
                self._rows.append((key, float(asked), float(answered)))
                self._read += len(line)
        return len(self._rows)


@contextmanager
def endpoint() -> Iterator[Seen]:
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.touch()
        mine, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=serve, args=(theirs, str(notes)), daemon=True)
        process.start()
        try:
            yield Seen(mine.recv(), notes)
        finally:
            process.kill()
            process.join()


def serve(pipe: Any, notes: str) -> None:
    asyncio.run(_serve(pipe, os.open(notes, os.O_WRONLY | os.O_APPEND)))


async def _serve(pipe: Any, notes: int) -> None:
    from aiohttp import web

    async def answer(request: web.Request) -> web.StreamResponse:
        asked = time.monotonic()
        body = await request.json()
        key = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()[:16]
        await asyncio.sleep(LATENCY_SECONDS * (0.5 + int(key[:4], 16) / 65536))
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        message = {"message": {"role": "assistant", "content": f"answer {key}"}, "finish_reason": "stop"}
        response = web.json_response({"choices": [message], "usage": usage})
        answered = 0.0
        try:
            await response.prepare(request)
            await response.write_eof()
            answered = time.monotonic()
        except ConnectionError:
            pass  # whoever asked was killed
        finally:
            os.write(notes, f"{key} {asked} {answered}\n".encode())
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    pipe.send(runner.addresses[0][1])
    await asyncio.Event().wait()


if __name__ == "__main__":
    main()
