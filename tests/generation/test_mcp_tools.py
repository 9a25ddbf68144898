"""Tools of real MCP servers: programs, and one that answers over HTTP."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from themis.core.messages import ToolCall
from themis.exceptions import ConfigurationError, ToolError
from themis.generation.tools import McpServer, Toolset

SERVER = str(Path(__file__).parent / "mcp_server.py")


def call(session, name, /, **arguments):
    return session.call(ToolCall(name, arguments, id="call-1"))


def servers_running() -> list[str]:
    listed = subprocess.run(["ps", "-eww", "-o", "ppid,args"], capture_output=True, text=True, check=True).stdout
    mine = [line.split(None, 1) for line in listed.splitlines()]
    return [args for parent, args in mine if parent == str(os.getpid()) and f"{SERVER} stdio" in args]


@pytest.fixture(scope="module")
def tools():
    with Toolset([McpServer(command=[sys.executable, SERVER, "stdio"], env={"FLAVOUR": "plain"})]) as made:
        yield made


def test_a_server_s_tools_are_listed_with_their_schemas(tools):
    told = {schema["name"]: schema for schema in tools.schemas}

    assert told["add"]["description"] == "Adds two numbers."
    assert told["add"]["parameters"]["required"] == ["a", "b"]
    # No provider takes a dot in a name.
    assert "files_read" in told


def test_a_server_answers_calls(tools):
    session = tools.open({})

    assert call(session, "add", a=2, b=3) == {
        "role": "tool",
        "tool_call_id": "call-1",
        "name": "add",
        "content": "5",
    }
    assert call(session, "files_read", name="a.txt")["content"] == "contents of a.txt"


def test_arguments_are_checked_before_the_server_sees_them(tools):
    message = call(tools.open({}), "add", a="two")

    assert message["error"] is True
    assert message["content"].startswith("add: argument 'a': 'two' is not of type 'integer'; missing argument 'b'")


def test_what_a_server_says_went_wrong_is_an_error(tools):
    message = call(tools.open({}), "refuse", reason="not on Sundays")

    assert (message["content"], message["error"]) == ("not on Sundays", True)


def test_images_and_resources_are_parts(tools):
    session = tools.open({})

    assert call(session, "picture")["content"] == [{"type": "image", "media_type": "image/png", "data": "iVBORw0K"}]
    assert call(session, "documents")["content"] == [
        {"type": "text", "text": "a memo"},
        {"type": "file", "name": "memo://2", "media_type": "application/pdf", "data": "QUJD"},
    ]


def test_calls_run_side_by_side(tools):
    said = []
    session = tools.open({})
    threads = [threading.Thread(target=lambda: said.append(call(session, "meet")["content"])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert said == ["met"] * 3


def test_a_server_is_known_by_its_name_version_and_tools(tools):
    described = tools.describe()

    assert described["made_of"] == [{"mcp_server": "arithmetic", "version": "1.2"}]
    assert [told["name"] for told in described["tools"]][:2] == ["add", "files_read"]


def test_a_server_gets_the_variables_that_it_is_given_and_no_others(tools, monkeypatch):
    session = tools.open({})

    assert call(session, "tell_environment", name="FLAVOUR")["content"] == "plain"
    monkeypatch.setenv("PLANTED_KEY", "planted")
    assert call(session, "tell_environment", name="PLANTED_KEY")["content"] == "not set"


def test_a_server_that_died_is_started_once_more_and_asked_again(tmp_path):
    before = len(servers_running())
    with Toolset([f"mcp:{sys.executable} {SERVER} stdio"]) as tools:
        session = tools.open({})
        (tmp_path / "once").mkdir()
        (tmp_path / "always").mkdir()

        assert call(session, "die", marks=f"{tmp_path}/once", times=1)["content"] == "alive after 1 deaths"
        assert call(session, "add", a=1, b=1)["content"] == "2"
        assert len(servers_running()) == before + 1

        message = call(session, "die", marks=f"{tmp_path}/always", times=9)
        assert message["content"] == "the server ended while it ran die:\ncannot go on"
        assert message["error"] is True
        assert len(os.listdir(tmp_path / "always")) == 2
        assert call(session, "add", a=1, b=1)["content"] == "2"
    assert len(servers_running()) == before


def test_a_secret_of_the_environment_is_referred_to_and_reaches_no_description(monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "tok-19f3ac77b2d4")
    with Toolset([f"mcp:TOKEN=${{SHOP_TOKEN}} {sys.executable} {SERVER} stdio"]) as tools:
        assert call(tools.open({}), "tell_environment", name="TOKEN")["content"] == "tok-19f3ac77b2d4"
        assert "tok-19f3" not in str(tools.describe())


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("mcp:no-such-program --port 1", r"the MCP server no-such-program --port 1 cannot be used: FileNotFoundError"),
        (f"mcp:{sys.executable} -c 'raise SystemExit(\"no config.toml\")'", r"Connection closed:\nno config\.toml"),
        ("mcp:http://127.0.0.1:1/mcp", r"the MCP server http://127\.0\.0\.1:1/mcp cannot be used"),
        ("mcp:", "an MCP server is written as mcp:COMMAND ARGUMENTS or mcp:http://HOST/PATH"),
        ("mcp:'open", "cannot read the MCP server"),
        ("mcp:http://host/mcp oops", "stand headers as NAME=VALUE, got 'oops'"),
        ("mcp:A=${NO_SUCH_VARIABLE} server", "which is not set"),
    ],
)
def test_a_server_that_cannot_be_used_is_found_before_the_first_call(tool, said):
    with pytest.raises(ConfigurationError, match=said):
        Toolset([tool])


def test_a_server_that_says_nothing_is_not_waited_for_without_end():
    silent = McpServer(command=[sys.executable, "-c", "import sys; sys.stdin.read()"], connect_seconds=1)

    with pytest.raises(ConfigurationError, match="did not answer for 1 s"):
        Toolset([silent])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "has a command or a url, and not both"),
        ({"command": ["a"], "url": "http://b"}, "has a command or a url, and not both"),
        ({"url": "ftp://b"}, "begins with http:// or https://"),
        ({"command": ["a"], "headers": {"X": "y"}}, "headers are sent to a url"),
    ],
)
def test_a_server_is_one_thing_or_the_other(options, said):
    with pytest.raises(ConfigurationError, match=said):
        McpServer(**options)


def test_words_before_a_command_are_variables_and_behind_a_url_headers():
    program = McpServer.parse("A=1 B='x y' run --c=2 D=3")
    remote = McpServer.parse("https://host/mcp Authorization='Bearer ${TOKEN}'")

    assert (program.env, program.command) == ({"A": "1", "B": "x y"}, ("run", "--c=2", "D=3"))
    assert (remote.url, remote.headers) == ("https://host/mcp", {"Authorization": "Bearer ${TOKEN}"})


# --- over HTTP --------------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class HttpServer:
    """The same server, behind a port of this machine."""

    def __init__(self) -> None:
        self.port = free_port()
        self.start()

    def start(self) -> None:
        command = [sys.executable, SERVER, "streamable-http", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                assert time.monotonic() < until, "the server did not start"
                time.sleep(0.05)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def test_a_server_over_http_is_reached_and_reached_again():
    server = HttpServer()
    try:
        with Toolset([f"mcp:http://127.0.0.1:{server.port}/mcp"]) as tools:
            session = tools.open({})
            assert call(session, "add", a=2, b=3)["content"] == "5"

            server.stop()
            with pytest.raises(ToolError, match="cannot be used"):
                call(session, "add", a=2, b=3)

            server.start()
            assert call(session, "add", a=2, b=3)["content"] == "5"
    finally:
        server.stop()
