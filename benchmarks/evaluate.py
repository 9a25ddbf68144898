"""What `themis.evaluate` costs: CPU per sample, memory, resuming, and requests per second over real HTTP.

    python benchmarks/evaluate.py [slope] [memory] [resume] [judging] [http]

Each measurement runs in a process of its own. CPU per sample is the slope between 2,000 and 12,000 rows with a SQLite store,
one metric and an in-process provider, so that start-up is not in it.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
STUB = HERE.with_name("http_client.py")


def main() -> None:
    wanted = sys.argv[1:] or ["slope", "memory", "resume", "judging", "http"]
    if wanted[0] == "--part":
        print(json.dumps(PARTS[wanted[1]](*map(int, wanted[2:]))))
        return
    print("| what | measured |\n|---|---|")
    for name in wanted:
        for line in globals()[f"show_{name}"]():
            print(line, flush=True)


def part(name: str, *arguments: int) -> Any:
    command = [sys.executable, str(HERE), "--part", name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# --- what is shown --------------------------------------------------------------------------------------------------


def show_slope() -> list[str]:
    lines = []
    for kind in ("threaded", "instant"):
        small, large = part(kind, 2_000), part(kind, 12_000)
        lines.append(f"| CPU per sample, {kind} provider, stored durably | {(large - small) / 10_000 * 1e6:.0f} µs |")
    return lines


def show_memory() -> list[str]:
    small, large = part("streamed", 10_000), part("streamed", 1_000_000)
    return [f"| peak memory at 10,000 and 1,000,000 rows | {small:.0f} MB and {large:.0f} MB |"]


def show_resume() -> list[str]:
    return [f"| resuming a finished run of 100,000 rows | {part('resumed', 100_000):.2f} s CPU |"]


def show_judging() -> list[str]:
    reading, judging = part("judged", 10_000)
    what = "judging 10,000 stored records by exact match, beyond reading them: CPU per record"
    return [f"| {what} | {judging / 10_000 * 1e6:.0f} µs (reading: {reading / 10_000 * 1e6:.0f} µs) |"]


def show_http() -> list[str]:
    lines = []
    for concurrency in (100, 1_000):
        bare, ours = part("http", concurrency, 20 * concurrency)
        what = f"requests/s at concurrency {concurrency:,}: bare aiohttp, evaluate"
        lines.append(f"| {what} | {bare:,.0f}, {ours:,.0f} ({ours / bare:.0%}) |")
    return lines


# --- what is measured, each in its own process --------------------------------------------------------------------------


def threaded(count: int) -> float:
    return _cpu(count, "threaded")


def instant(count: int) -> float:
    return _cpu(count, "instant")


def _cpu(count: int, kind: str) -> float:
    import themis
    from themis.core import entities as core
    from themis.interfaces import StatelessTaskExecutor

    class Threaded(StatelessTaskExecutor):
        def __init__(self, **_: Any) -> None:
            pass

        def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
            assert task.reference is not None
            return core.GenerationRecord(task=task, output=core.ModelOutput(text=task.reference.value), error=None)

    class Instant(Threaded):
        instant = True

    themis.register_provider("bench", Instant if kind == "instant" else Threaded)
    rows = [{"id": str(n), "question": f"what is {n} + 1?", "answer": str(n + 1)} for n in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        warm = {"model": "bench:m", "prompt": "{question}", "progress": False}
        themis.evaluate(rows[:50], storage=Path(folder) / "warm", **warm)
        began = time.process_time()
        themis.evaluate(rows, storage=Path(folder) / "store", **warm)
        return time.process_time() - began


def streamed(count: int) -> float:
    import themis

    rows = ({"id": n, "question": f"say {n} " + "padding " * 30, "answer": str(n)} for n in range(count))
    with tempfile.TemporaryDirectory() as folder:
        themis.evaluate(rows, model="fake/perfect", prompt="{question}", storage=folder, progress=False)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resumed(count: int) -> float:
    import themis

    rows = [{"id": n, "question": f"say {n}", "answer": str(n)} for n in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        call = {"model": "fake/perfect", "prompt": "{question}", "storage": folder, "run_id": "r", "progress": False}
        themis.evaluate(rows, **call)
        began = time.process_time()
        themis.evaluate(rows, **call)
        return time.process_time() - began


def judged(count: int) -> tuple[float, float]:
    """Seconds of reading the records, and of judging them and storing the scores."""
    import themis
    from themis.evaluation.extractors import IdentityExtractor
    from themis.evaluation.metrics import ExactMatch
    from themis.evaluation.pipeline import EvaluationPipeline
    from themis.runs.judging import rejudge
    from themis.storage import ExperimentStorage

    rows = [{"id": n, "question": f"say {n}", "answer": str(n)} for n in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        themis.evaluate(
            rows,
            model="fake/perfect",
            prompt="{question}",
            metrics=["response_length"],
            storage=folder,
            run_id="r",
            progress=False,
        )
        storage = ExperimentStorage(folder)
        began = time.process_time()
        assert sum(1 for _ in storage.reader("r").records()) == count
        reading = time.process_time() - began
        began = time.process_time()
        rejudge(storage, "r", EvaluationPipeline(extractor=IdentityExtractor(), metrics=[ExactMatch()]))
        return reading, time.process_time() - began - reading


def http(concurrency: int, requests: int) -> tuple[float, float]:
    """Best of three interleaved rounds: bare aiohttp, and evaluate with everything it does."""
    import themis

    stub = subprocess.Popen([sys.executable, str(STUB), "--serve"], stdout=subprocess.PIPE, text=True)
    assert stub.stdout is not None
    base_url = f"http://127.0.0.1:{int(stub.stdout.readline())}/v1"
    best_bare = best_ours = 0.0
    try:
        for _ in range(3):
            best_bare = max(best_bare, asyncio.run(_bare(base_url, concurrency, requests)))
            rows = [{"id": n, "question": f"what is {n}?", "answer": "x"} for n in range(requests)]
            with tempfile.TemporaryDirectory() as folder:
                first: list[float] = []
                report = themis.evaluate(
                    rows, model="openai_compatible/stub", prompt="{question}", base_url=base_url, storage=folder,
                    workers=concurrency, progress=False, on_result=lambda record, seen=first: seen.append(time.perf_counter()),
                )  # fmt: skip
                assert report.metric("exact_match").count == requests
                # From the first answers on: planning and the last report are not requests.
                skipped = concurrency
                best_ours = max(best_ours, (requests - skipped) / (first[-1] - first[skipped]))
    finally:
        stub.terminate()
        stub.wait()
    return best_bare, best_ours


async def _bare(base_url: str, concurrency: int, requests: int) -> float:
    import aiohttp

    body = json.dumps(
        {"model": "stub", "messages": [{"role": "user", "content": "what is 1?"}], "max_tokens": 512}
    ).encode()
    left = iter(range(requests))
    stamps: list[float] = []

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def worker() -> None:
            for _ in left:
                async with session.post(
                    f"{base_url}/chat/completions", data=body, headers={"Content-Type": "application/json"}
                ) as answer:
                    await answer.json()
                stamps.append(time.perf_counter())

        await asyncio.gather(*(worker() for _ in range(concurrency)))
    return (requests - concurrency) / (stamps[-1] - stamps[concurrency])


PARTS = {
    "threaded": threaded,
    "instant": instant,
    "streamed": streamed,
    "resumed": resumed,
    "judged": judged,
    "http": http,
}

if __name__ == "__main__":
    main()
