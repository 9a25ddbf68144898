"""How quick the server is: lists, long runs, search, listeners, memory; a real `themis serve` on loopback.

    python benchmarks/server.py [runs] [samples of the long run] [samples to search]

Prints one line a figure: what was asked, what was measured, what is wanted.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
from sqlalchemy import insert

from themis.core.codec import digest, encode
from themis.core.entities import ModelSpec
from themis.storage import ExperimentStorage, schema
from themis.storage.runs import Frame

CLIENTS = 50
LIST_REQUESTS = 4_000
STEADY_REQUESTS = 10_000
LISTENERS = 200


def main() -> None:
    runs, long, searched = (int(given) for given in [*sys.argv[1:], "10000", "1000000", "100000"][:3])
    with tempfile.TemporaryDirectory(prefix="themis-bench-") as folder:
        root = Path(folder)
        began = time.process_time()
        make_runs(root / "many", runs)
        make_run(root / "long", long)
        make_run(root / "searched", searched)
        print(f"stores made in {time.process_time() - began:.0f} s of CPU")
        with Server(root / "many") as server:
            asyncio.run(measure_list(server, runs))
        with Server(root / "long") as server:
            asyncio.run(measure_long_run(server, long))
        with Server(root / "searched") as server:
            asyncio.run(measure_search(server, searched))
            asyncio.run(measure_listeners(server, root / "searched"))
            asyncio.run(measure_memory(server))


# --- what is measured -------------------------------------------------------------------------------------------------


async def measure_list(server: Server, runs: int) -> None:
    for path in ("/api/runs", "/api/runs?sort=model&q=m-7&limit=50", "/runs", "/runs?sort=model&q=m-7"):
        await load(server.address + path, 2 * CLIENTS, CLIENTS)  # the process has to start, and to open the store
        before = server.cpu_seconds()
        times = await load(server.address + path, LIST_REQUESTS, CLIENTS)
        each = (server.cpu_seconds() - before) / LIST_REQUESTS * 1000
        print(f"GET {path} of {runs} runs: {each:.2f} ms of CPU a request")
        report(f"the same, {CLIENTS} clients: p50 {share(times, 0.5):.1f} ms, p99", share(times, 0.99), 50)
    before = server.cpu_seconds()
    for offset in range(0, 5_000, 50):
        await load(f"{server.address}/runs?offset={offset}", 1, 1)
    print(f"a page of the list that nobody has asked for yet: {(server.cpu_seconds() - before) * 10:.1f} ms of CPU")


async def measure_long_run(server: Server, samples: int) -> None:
    for path in ("/runs/long", "/api/runs/long", f"/runs/long?offset={samples - 100}"):
        before = server.cpu_seconds()
        times = await load(server.address + path, 30, 1)
        each = (server.cpu_seconds() - before) / 30 * 1000
        report(f"GET {path} of {samples} samples: {each:.0f} ms of CPU, first byte p90", share(times, 0.9), 100)
    times = await load(server.address + "/runs/long/overview", 3, 1)
    print(
        f"its overview, loaded after the page: {share(times, 0.5):.0f} ms; the server holds {server.megabytes():.0f} MB"
    )


async def measure_search(server: Server, samples: int) -> None:
    for text in ("zebra", "word", f"what is {samples - 1}?"):
        before = server.cpu_seconds()
        times = await load(f"{server.address}/api/runs/long?q={text.replace(' ', '%20')}", 10, 1)
        each = (server.cpu_seconds() - before) * 100
        report(f"search for {text!r} in {samples} samples: {each:.0f} ms of CPU, p90", share(times, 0.9), 300)


async def measure_listeners(server: Server, root: Path) -> None:
    """One commit, heard by all: from the commit to the last listener."""
    timeout = aiohttp.ClientTimeout(total=120)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        ready = [asyncio.Event() for _ in range(LISTENERS)]
        heard = [asyncio.create_task(listen(session, server.address, one)) for one in ready]
        await asyncio.gather(*(one.wait() for one in ready))
        before = server.cpu_seconds()
        await asyncio.sleep(2)
        idle = (server.cpu_seconds() - before) / 2
        committed = time.monotonic()
        await asyncio.to_thread(ExperimentStorage(root).fail_run, "long", "for the listeners")
        last = max(await asyncio.gather(*heard)) - committed
    report(f"{LISTENERS} listeners of one run: the last hears a commit after", last * 1000, 2_000)
    print(f"{LISTENERS} listeners and no news: {idle:.1%} of a core")


async def listen(session: aiohttp.ClientSession, address: str, ready: asyncio.Event) -> float:
    async with session.get(f"{address}/api/runs/long/events") as answer:
        async for line in answer.content:
            if line.startswith(b"data:"):
                ready.set()
                if b'"status": "failed"' in line:
                    return time.monotonic()
    raise AssertionError("the stream ended")


async def measure_memory(server: Server) -> None:
    paths = ("/api/runs", "/api/runs/long?limit=20", "/runs/long", "/api/runs/long/samples/7")
    for path in paths:
        await load(server.address + path, 250, 8)
    before = server.megabytes()
    for path in paths:
        await load(server.address + path, STEADY_REQUESTS // len(paths), 8)
    report(
        f"memory after {STEADY_REQUESTS} more requests: {before:.0f} MB before, growth",
        server.megabytes() - before,
        20,
        "MB",
    )


async def load(address: str, requests: int, clients: int) -> list[float]:
    """Milliseconds to the first byte of each request; every client asks again as soon as it is answered."""
    times: list[float] = []
    left = iter(range(requests))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def client() -> None:
            for _ in left:
                began = time.perf_counter()
                async with session.get(address) as answer:
                    times.append((time.perf_counter() - began) * 1000)
                    assert answer.status == 200, await answer.text()
                    await answer.read()

        await asyncio.gather(*(client() for _ in range(clients)))
    return sorted(times)


def share(times: list[float], part: float) -> float:
    return times[min(len(times) - 1, int(len(times) * part))]


def report(what: str, measured: float, wanted: float, unit: str = "ms") -> None:
    verdict = "ok" if measured <= wanted else "MISSED"
    print(f"{what} {measured:.1f} {unit} (wanted <= {wanted:g}) {verdict}", flush=True)


# --- what it is measured on -------------------------------------------------------------------------------------------


class Server:
    """`themis serve` in a process of its own."""

    def __init__(self, storage: Path) -> None:
        command = [sys.executable, "-c", "from themis.cli.serving import serve; serve()"]
        self._process = subprocess.Popen(
            [*command, "--storage", str(storage), "--port", "0", "--no-token"], stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        found = re.search(r"http://\S+", self._process.stderr.readline())
        assert found
        self.address = found[0]

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(20)

    def megabytes(self) -> float:
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_runs(root: Path, count: int) -> None:
    store = ExperimentStorage(root)
    summary = {"metrics": {"ExactMatch": {"mean": 0.5, "count": 100, "failed": 0, "unparsed": 0, "ci": [0.4, 0.6]}}}
    row = {**_RUN, "summary": encode(summary), "config": encode({"reproducibility_manifest": {"filler": "x" * 1_500}})}
    with store.engine.begin() as connection:
        rows = [
            {**row, "run_id": f"run-{n}", "model": f"m-{n % 17}", "created_at": float(n), "updated_at": float(n)}
            for n in range(count)
        ]
        connection.execute(insert(schema.runs), rows)
    store.close()


_RUN = {
    **dict.fromkeys(("calls", "unpriced_calls", "prompt_tokens", "completion_tokens", "judge_calls", "failed"), 0),
    **dict.fromkeys(("cost_usd", "judge_cost_usd", "seconds"), 0.0),
    "kind": "samples",
    "experiment_id": "default",
    "status": "completed",
    "identity": "{}",
    "tags": "{}",
    "planned": 1,
    "total": 100,
    "succeeded": 100,
}


def make_run(root: Path, samples: int) -> None:
    """One finished run, its rows written straight into the tables."""
    store = ExperimentStorage(root)
    frame = Frame(model=ModelSpec("m", "fake"), reference_field="answer")
    store.start_run("long", config={"task": frame.to_config()}, model="fake:m")
    summary = {
        "metrics": {"ExactMatch": {"mean": 0.5, "count": samples, "failed": 0, "unparsed": 0, "ci": [0.49, 0.51]}}
    }
    with store.open_run("long") as writer:
        evaluation = writer.open_evaluation("f" * 64, {})
    answer = "word " * 60
    content = encode({"question": "what is it?", "answer": "1"})
    item = digest(content)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO items VALUES (?, ?)", (item, content))
        for start in range(0, samples, 20_000):
            numbers = range(start, min(start + 20_000, samples))
            connection.exec_driver_sql(
                "INSERT INTO samples VALUES (1, ?, ?, ?, NULL)", [(n, str(n), item) for n in numbers]
            )
            connection.exec_driver_sql(
                "INSERT INTO records VALUES (1, ?, 0, ?, 1, ?, 100, 60, 0.0, ?, ?)",
                [
                    (
                        n,
                        f"{n:032x}",
                        encode({"prompt": f"what is {n}? {'x' * 200}", "text": answer}),
                        n % 97 / 100,
                        1.0 + n,
                    )
                    for n in numbers
                ],
            )
            connection.exec_driver_sql(
                "INSERT INTO scores VALUES (?, ?, 'ExactMatch', 0, ?, 'scored', NULL)",
                [(evaluation, n, float(n % 2)) for n in numbers],
            )
    with store.open_run("long") as writer:
        writer.update(total=samples, succeeded=samples, planned=1, summary=encode(summary), status="completed")
    store.close()


if __name__ == "__main__":
    main()
