"""Who else is on the machine or the network, and what they can do to a server: read, delete, guess, hold connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

import themis
from tests.running_server import RunningServer, StartServer, servers
from themis.storage import ExperimentStorage

# As many half requests as a test can afford to open.
HALF_REQUESTS = 200
NOBODY = 65534


@pytest.fixture(scope="module")
def start_server() -> Iterator[StartServer]:
    with servers() as start:
        yield start


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("store")
    rows = [{"id": "a", "question": "1 + 1", "answer": "2"}]
    themis.evaluate(
        rows, model="fake/perfect", prompt="{question}", metrics=["exact_match"], run_id="mine", storage=root
    )
    return root


@pytest.fixture(scope="module")
def server(start_server: StartServer, store: Path) -> Iterator[RunningServer]:
    """A server as anybody starts it, but with less patience, so that the tests need less too."""
    started = start_server(store, "--request-timeout", "1.5")
    yield started
    started.process.terminate()
    assert started.process.stderr is not None
    # Whatever clients did, none of it was an error of the server.
    assert "Traceback" not in started.process.stderr.read()


def ask_for_everything(address: str, token_file: Path) -> tuple[list[int], str]:
    """Statuses of what a stranger is answered, and whether they can read the token."""
    statuses = []
    for method, path in (
        *(("GET", path) for path in ("/api/runs", "/runs", "/api/runs/mine/export", "/api/events")),
        ("DELETE", "/api/runs/mine"),
    ):
        asked = urllib.request.Request(address + path, method=method, headers={"x-confirm-delete": "mine"})
        try:
            statuses.append(urllib.request.urlopen(asked, timeout=300).status)
        except urllib.error.HTTPError as error:
            statuses.append(error.code)
    try:
        token_file.read_text()
    except OSError as error:
        return statuses, type(error).__name__
    return statuses, "read"


def as_another_user(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls it in a process of the user nobody; where these tests may not change users, in one of their own."""
    context = multiprocessing.get_context("fork")  # nobody may not start our interpreter, which is root's
    here, there = context.Pipe()

    def become_nobody_and_call() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        there.send(function(*arguments))

    process = context.Process(target=become_nobody_and_call)
    process.start()
    there.close()
    try:
        return here.recv()
    finally:
        process.join(60)


@pytest.mark.fault(
    area="Server",
    wrong="Another user of the machine asks a server on 127.0.0.1",
    does="Every page and API call but the login page is refused (401); the token is in a file that only its owner can read",
    status="–",
    exit_code=None,
)
def test_another_user_of_the_machine_can_neither_read_nor_delete(fault, server, store):
    for folder in (server.token_file.parent, server.token_file.parent.parent):
        folder.chmod(0o755)  # so that the file alone keeps others out

    refused, read = as_another_user(ask_for_everything, server.address, server.token_file)

    assert refused == [401] * 5
    assert read == ("PermissionError" if os.geteuid() == 0 else "read")
    assert server.token_file.stat().st_mode & 0o777 == 0o600
    assert ExperimentStorage(store).run_exists("mine")
    assert json.load(server.open("/api/runs"))[0]["run_id"] == "mine"


@pytest.mark.fault(
    area="Server",
    wrong="The server's token comes from THEMIS_SERVER_TOKEN and its output goes to a service's log",
    does="The banner says where the token comes from; neither it nor the log holds the token",
    status="–",
    exit_code=None,
)
def test_a_token_from_the_environment_is_never_printed(fault, start_server, store):
    token = "from-the-environment-and-secret"
    server = start_server(store, "--access-log", THEMIS_SERVER_TOKEN=token)
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    assert browser.open(f"{server.address}/login?token={token}", timeout=300).url == f"{server.address}/runs"
    server.process.terminate()
    assert server.process.stderr is not None
    printed = server.banner + server.process.stderr.read()

    assert "token    from THEMIS_SERVER_TOKEN" in printed
    assert '"path": "/login"' in printed
    assert token not in printed
    assert "/login?token" not in printed


def half_requests(server: RunningServer, begun: bytes, count: int) -> list[socket.socket]:
    parts = urlsplit(server.address)
    opened = [socket.create_connection((parts.hostname or "", parts.port), timeout=60) for _ in range(count)]
    for connection in opened:
        connection.sendall(begun)
    return opened


@pytest.mark.fault(
    area="Server",
    wrong="Clients open connections and send half a request",
    does="After --request-timeout (10 s) each is answered 408 and closed, others are served meanwhile, open pages stay",
    status="–",
    exit_code=None,
)
@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"GET /api/health HTTP/1.1\r\nHost: ", id="headers"),
        pytest.param(
            b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\ntoken=", id="body of a form"
        ),
        pytest.param(
            b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ntok", id="chunks"
        ),
    ],
)
def test_half_requests_are_let_go(fault, server, begun):
    waiting = half_requests(server, begun, HALF_REQUESTS)
    assert server.open("/api/runs").status == 200

    answers = [connection.makefile("rb").read() for connection in waiting]

    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)
    assert json.loads(answers[0].partition(b"\r\n\r\n")[2])["code"] == "too_slow"
    assert server.open("/api/runs").status == 200


def test_bytes_that_drip_in_do_not_buy_more_time(server):
    (connection,) = half_requests(server, b"GET /api/health HTTP/1.1\r\n", 1)
    dripped = 0
    with contextlib.suppress(OSError):
        connection.settimeout(0.2)
        while dripped < 600:
            connection.sendall(b"x: y\r\n")
            dripped += 1
            with contextlib.suppress(TimeoutError):
                if not connection.recv(1_000):
                    break

    assert dripped < 600


def test_a_connection_that_says_nothing_is_closed_without_a_word(server):
    (connection,) = half_requests(server, b"", 1)

    assert connection.makefile("rb").read() == b""


def test_open_streams_and_idle_sockets_outlive_the_deadline_of_requests(server):

    async def stay() -> dict[str, str]:
        async with (
            aiohttp.ClientSession(headers=server.bearer) as session,
            session.get(f"{server.address}/api/runs/mine/events") as stream,
            session.ws_connect(f"{server.address}/ws") as idle,
        ):
            await asyncio.sleep(3)
            await idle.send_json({"type": "ping"})
            assert stream.status == 200
            assert not stream.content.at_eof()
            answer: dict[str, str] = await idle.receive_json(timeout=60)
            return answer

    assert asyncio.run(stay()) == {"type": "pong"}


@pytest.mark.fault(
    area="Server",
    wrong="Somebody tries many tokens, also through a proxy",
    does="After five tries that client waits (429), by its own address if the proxy is named with --trusted-proxy; others do not",
    status="–",
    exit_code=None,
)
def test_tries_are_counted_by_client_behind_a_proxy_that_is_named(fault, start_server, store):
    behind = start_server(store, "--trusted-proxy", "127.0.0.1")

    def tried(server: RunningServer, client: str) -> int:
        form = urllib.request.Request(f"{server.address}/login", b"token=guessed-wrong", {"x-forwarded-for": client})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(form, timeout=300)
        return refused.value.code

    assert [tried(behind, "192.0.2.1") for _ in range(6)] == [403] * 5 + [429]
    assert tried(behind, "192.0.2.2") == 403
