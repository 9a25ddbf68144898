"""`themis serve` as a process: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner

from themis.cli.serving import serve
from themis.exceptions import ConfigurationError, DependencyError
from themis.storage import ExperimentStorage


def test_four_lines_say_where_it_is(start_server, two_runs):
    server = start_server(two_runs)

    lines = server.banner.splitlines()
    assert lines[0].startswith("Themis is at http://127.0.0.1:")
    assert [line.split()[0] for line in lines[1:]] == ["storage", "API", "token"]
    runs = json.load(urllib.request.urlopen(f"{server.address}/api/runs"))
    assert len(runs) == 3


def test_for_other_machines_a_token_is_made_up_and_asked_for(start_server, two_runs):
    server = start_server(two_runs, "--host", "0.0.0.0")
    asked = urllib.request.Request(f"{server.address}/api/runs", headers={"authorization": f"Bearer {server.token}"})

    assert len(server.token) >= 32
    assert urllib.request.urlopen(asked).status == 200
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{server.address}/api/runs")


def test_it_ends_quietly_when_told(start_server, two_runs):
    server = start_server(two_runs, "--access-log")
    urllib.request.urlopen(f"{server.address}/api/version").close()
    server.process.terminate()

    assert server.process.stderr is not None
    rest = server.process.stderr.read()
    assert server.process.wait(300) == 0
    assert "Traceback" not in rest
    logged = [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
    assert logged[-1]["path"] == "/api/version"
    assert "stopped" in rest


def test_several_servers_share_a_store_and_a_token(start_server, store_location):
    store = ExperimentStorage(store_location)
    store.start_run("shared")
    servers = [start_server(store_location, "--token", "shared-by-the-team") for _ in range(2)]
    form = b"token=shared-by-the-team&next=/runs"

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    with pytest.raises(urllib.error.HTTPError) as entered:
        urllib.request.build_opener(Stay).open(f"{servers[0].address}/login", form)
    cookie = entered.value.headers["set-cookie"].partition(";")[0]

    def ask(server, path, method="GET", **headers):
        origin = {"origin": server.address, "cookie": cookie}
        asked = urllib.request.Request(server.address + path, method=method, headers={**origin, **headers})
        return json.load(urllib.request.urlopen(asked, timeout=300))

    assert [run["run_id"] for server in servers for run in ask(server, "/api/runs")] == ["shared", "shared"]
    assert ask(servers[1], "/api/runs/shared", "DELETE", **{"x-confirm-delete": "shared"}) == {"deleted": "shared"}
    assert ask(servers[0], "/api/runs?limit=9") == []


def test_a_port_that_is_taken_is_said_in_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(serve, ["--storage", str(tmp_path), "--port", port])

    assert isinstance(result.exception, ConfigurationError)
    assert f"cannot listen on 127.0.0.1:{port}" in str(result.exception)


def test_runs_are_chosen_only_for_a_copy(tmp_path):
    result = CliRunner().invoke(serve, ["--storage", str(tmp_path), "--run", "x"])

    assert isinstance(result.exception, ConfigurationError)


def test_a_missing_package_is_one_line_that_names_the_remedy():
    without = "import sys; sys.modules['fastapi'] = None\nimport themis.server"
    result = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)

    assert DependencyError.__name__ in result.stderr
    assert "pip install 'themis-eval[server]'" in result.stderr.splitlines()[-1]
