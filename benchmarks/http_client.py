"""Requests per second of the OpenAI-compatible provider beside a bare aiohttp client, against one stub with latency.

    python benchmarks/http_client.py [--concurrency 100 1000] [--requests 6000] [--rounds 5]

The stub runs in a process of its own and answers every request after 50 ms. Rounds of both clients are interleaved, so
that a busy neighbour slows both; shown are medians over the rounds, and the share of the bare client's rate as the median
of the rounds' own shares. CPU time per request is the client's. The bare client sends bytes that are ready and does not
look at the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median

import aiohttp

from themis.core.entities import GenerationTask, ModelSpec, PromptRender, PromptSpec, SamplingConfig
from themis.generation.providers.openai_compatible import OpenAICompatible

LATENCY_SECONDS = 0.05
PROMPT = "Using the numbers 3, 21, 95, each at most once, write one arithmetic expression that equals 88."


@dataclass(frozen=True)
class Measured:
    requests_per_second: float
    cpu_microseconds: float


Call = Callable[[], Awaitable[object]]


def main() -> None:
    arguments = parse()
    if arguments.serve:
        asyncio.run(serve())
        return
    stub = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert stub.stdout is not None
        base_url = f"http://127.0.0.1:{int(stub.stdout.readline())}/v1"
        print(f"{'concurrency':>11}  {'client':<28}{'requests/s':>11}{'CPU µs/request':>16}{'of bare':>9}")
        for concurrency in arguments.concurrency:
            show(concurrency, asyncio.run(compare(base_url, concurrency, arguments.requests, arguments.rounds)))
    finally:
        stub.terminate()
        stub.wait()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def show(concurrency: int, measured: dict[str, list[Measured]]) -> None:
    bare = measured["bare aiohttp"]
    for client, rounds in measured.items():
        rate = median(one.requests_per_second for one in rounds)
        cpu = median(one.cpu_microseconds for one in rounds)
        share = median(one.requests_per_second / b.requests_per_second for one, b in zip(rounds, bare, strict=True))
        print(f"{concurrency:>11}  {client:<28}{rate:>11,.0f}{cpu:>16,.0f}{share:>9.0%}")


async def compare(base_url: str, concurrency: int, requests: int, rounds: int) -> dict[str, list[Measured]]:
    provider = OpenAICompatible(base_url=base_url)
    provider.set_concurrency(concurrency)
    task = GenerationTask(
        prompt=PromptRender(spec=PromptSpec(name="default", template="{question}"), text=PROMPT),
        model=ModelSpec(identifier="stub", provider="openai_compatible"),
        sampling=SamplingConfig(),
    )
    body = json.dumps({"model": "stub", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 512}).encode()
    url, headers = f"{base_url}/chat/completions", {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers) as session:

        async def bare() -> object:
            async with session.post(url, data=body) as response:
                return await response.read()

        async def ours() -> object:
            return await provider.execute(task)

        clients: dict[str, Call] = {"bare aiohttp": bare, "themis OpenAICompatible": ours}
        measured: dict[str, list[Measured]] = {client: [] for client in clients}
        for call in clients.values():  # opens the connections
            await timed(call, concurrency, 2 * concurrency)
        for _ in range(rounds):
            for client, call in clients.items():
                measured[client].append(await timed(call, concurrency, requests))
    await provider.aclose()
    return measured


async def timed(call: Call, concurrency: int, requests: int) -> Measured:
    left = iter(range(requests))

    async def work() -> None:
        for _ in left:
            await call()

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Measured(requests_per_second=requests / wall, cpu_microseconds=cpu / requests * 1e6)


ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "stub",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "95 - (21 / 3)"}, "finish_reason": "stop"},
        ],
        "usage": {"prompt_tokens": 31, "completion_tokens": 9, "total_tokens": 40},
    }
).encode()
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER)


class Stub(asyncio.Protocol):
    """Answers each request of a keep-alive connection after the latency. Reads lengths only, to cost next to nothing."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.received = transport, b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, rest = self.received.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if end and len(rest) >= length:
            self.received = rest[length:]
            asyncio.get_running_loop().call_later(LATENCY_SECONDS, self.transport.write, RESPONSE)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    main()
