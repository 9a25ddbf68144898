"""What is committed is told: to WebSockets and event streams, whoever committed it."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from fastapi.testclient import TestClient

from tests.running_server import RunningServer
from themis.core.codec import encode
from themis.server import create_app
from themis.storage import ExperimentStorage
from themis.storage.runs import Turn

SOCKET = "ws://127.0.0.1/ws"
WRITER = """
import sys, themis
rows = [{"id": f"q{n}", "question": f"{n} + {n}", "answer": str(2 * n)} for n in range(int(sys.argv[2]))]
fixed = dict(prompt="{question}", metrics=["exact_match"], run_id="live", workers=2)
themis.evaluate(rows, model=sys.argv[3], storage=sys.argv[1], **fixed)
"""


def write_elsewhere(root: Path, count: int = 12, model: str = "fake/slow-30ms") -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(root), str(count), model], stderr=subprocess.DEVNULL)


@pytest.fixture
def socket(tmp_path: Path) -> Iterator[Any]:
    app = create_app(tmp_path, poll_seconds=0.05)
    with TestClient(app, base_url="http://127.0.0.1") as client, client.websocket_connect(SOCKET) as socket:
        yield socket


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ('{"type": "ping"}', {"type": "pong"}),
        ('{"type": "subscribe", "run_id": "a"}', {"type": "subscribed", "run_id": "a"}),
        ('{"type": "unsubscribe", "run_id": "a"}', {"type": "unsubscribed", "run_id": "a"}),
        ("not json", {"type": "error", "message": "Invalid JSON"}),
    ],
)
def test_a_socket_answers_every_message(socket, sent, answer):
    socket.send_text(sent)
    assert socket.receive_json() == answer


WRONG = (
    *("[]", '"ping"', '{"type": "dance"}', '{"type": "subscribe"}', '{"type": "subscribe", "run_id": 7}'),
    *("[" * 5_000, "9" * 20_000),
)


@pytest.mark.parametrize("sent", WRONG)
def test_a_wrong_message_is_an_error_and_the_socket_stays_open(socket, sent):
    socket.send_text(sent)
    assert socket.receive_json()["type"] == "error"
    socket.send_bytes(b'{"type": "ping"}')
    assert socket.receive_json() == {"type": "pong"}


def test_a_run_of_another_process_is_told_to_its_end(socket, tmp_path):
    socket.send_text('{"type": "subscribe", "run_id": "live"}')
    assert socket.receive_json()["type"] == "subscribed"
    writer = write_elsewhere(tmp_path)
    samples, status = set(), ""
    while status != "completed":
        event = socket.receive_json()
        assert event["run_id"] == "live"
        if event["type"] == "sample":
            samples.add(event["id"])
        else:
            status = event["status"]
    writer.wait()

    assert samples == {f"q{n}" for n in range(12)}
    assert event["metrics"] == {"ExactMatch": 1.0}
    assert event["num_answered"] == 12


def test_turns_are_told_even_when_they_are_committed_out_of_order(socket, tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("talk", kind="memory")
    socket.send_text('{"type": "subscribe", "run_id": "talk"}')
    assert socket.receive_json()["type"] == "subscribed"
    assert socket.receive_json()["type"] == "run"
    told = []
    with store.open_run("talk") as writer:
        for numbers in ([0, 2], [1], [4], [3, 5]):
            writer.append_turns([Turn(n, "say", "t", encode({"message": f"hello {n}"})) for n in numbers])
            while not {f"hello {n}" for n in numbers} <= set(told):
                event = socket.receive_json()
                if event["type"] == "turn":
                    told.append(event["body"]["message"])

    assert sorted(told) == [f"hello {n}" for n in range(6)]


def test_the_first_run_of_a_new_store_is_told_to_those_who_waited_for_it(tmp_path):
    root = tmp_path / "new"
    app = create_app(root, poll_seconds=0.05)
    with TestClient(app, base_url="http://127.0.0.1") as client, client.websocket_connect(SOCKET) as socket:
        socket.send_text('{"type": "subscribe", "run_id": "*"}')
        assert socket.receive_json()["type"] == "subscribed"
        time.sleep(0.2)  # the server looks, and there is nothing yet
        ExperimentStorage(root).start_run("first")

        assert socket.receive_json()["run_id"] == "first"


def test_unsubscribed_means_untold(socket, tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("quiet")
    store.start_run("loud")
    for kind, run_id in (("subscribe", "quiet"), ("unsubscribe", "quiet"), ("subscribe", "loud")):
        socket.send_text(json.dumps({"type": kind, "run_id": run_id}))
        while socket.receive_json() != {"type": f"{kind}d", "run_id": run_id}:
            pass  # a run event may come between
    store.complete_run("quiet")
    store.complete_run("loud")
    seen = []
    while not any(event.get("run_id") == "loud" and event.get("status") == "completed" for event in seen):
        seen.append(socket.receive_json())

    assert not [event for event in seen if event.get("run_id") == "quiet" and event.get("status") == "completed"]


def events(server: RunningServer, path: str, until: str) -> list[tuple[str, dict[str, Any]]]:
    """Reads a real stream until an event's text holds `until`."""
    parts = urlsplit(server.address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=300)
    connection.request("GET", path, headers=server.bearer)
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    found, kind = [], ""
    while True:
        line = answer.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            found.append((kind, json.loads(line.removeprefix("data: "))))
            if until in line:
                connection.close()
                return found


def test_many_listeners_of_a_real_server_hear_the_same(start_server, tmp_path):
    ExperimentStorage(tmp_path).start_run("other")
    server = start_server(tmp_path)
    heard: list[Any] = [None] * 5

    def listen(number: int) -> None:
        heard[number] = events(server, "/api/events", '"status": "completed"')

    listeners = [threading.Thread(target=listen, args=(number,)) for number in range(len(heard))]
    for listener in listeners:
        listener.start()
    writer = write_elsewhere(tmp_path, 6)
    for listener in listeners:
        listener.join(300)
    writer.wait()

    assert all(one and one[-1][1]["run_id"] == "live" for one in heard)


def test_a_stream_of_an_unknown_run_is_a_404(client):
    assert client.get("/api/runs/nobody/events").status_code == 404


def test_a_server_with_open_streams_stops_when_told(start_server, tmp_path):
    ExperimentStorage(tmp_path).start_run("watched")
    server = start_server(tmp_path)
    parts = urlsplit(server.address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=300)
    connection.request("GET", "/api/runs/watched/events", headers=server.bearer)
    answer = connection.getresponse()
    assert answer.readline().startswith(b"retry")

    server.process.terminate()
    rest = answer.read()

    assert b"event: run" in rest
    assert server.process.wait(300) == 0


def test_plain_http_at_the_socket_says_what_to_do(client):
    assert client.get("/ws").status_code == 426
    assert client.get("/ws", headers={"upgrade": "websocket"}).status_code == 501


def test_a_real_socket_is_told_of_a_run_of_another_process(start_server, tmp_path):
    async def listen() -> list[dict[str, Any]]:
        async with (
            aiohttp.ClientSession(headers=server.bearer) as session,
            session.ws_connect(f"{server.address}/ws") as socket,
        ):
            await socket.send_json({"type": "subscribe", "run_id": "live"})
            writer = await asyncio.to_thread(write_elsewhere, tmp_path, 6)
            found = []
            async for message in socket:
                found.append(message.json())
                if found[-1].get("status") == "completed":
                    break
            await asyncio.to_thread(writer.wait)
            return found

    server = start_server(tmp_path)
    told = asyncio.run(asyncio.wait_for(listen(), 60))

    assert {event["id"] for event in told if event["type"] == "sample"} == {f"q{n}" for n in range(6)}
