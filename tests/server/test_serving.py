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


def test_a_few_lines_say_where_it_is_and_how_to_come_in(start_server, two_runs):
    server = start_server(two_runs)

    lines = server.banner.splitlines()
    assert lines[0].startswith("Themis is at http://127.0.0.1:")
    assert [line.split()[0] for line in lines[1:]] == ["open", "storage", "API", "token"]
    assert lines[-1] == f"  token    in {server.token_file}"
    assert server.token not in server.banner
    assert len(json.load(server.open("/api/runs"))) == 3


def test_servers_of_one_user_share_a_token_that_others_cannot_read(start_server, two_runs):
    first, second = start_server(two_runs), start_server(two_runs, "--host", "0.0.0.0")

    assert first.token_file == second.token_file
    assert len(first.token) >= 32
    assert first.token_file.stat().st_mode & 0o777 == 0o600
    assert second.open("/api/runs").status == 200
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{second.address}/api/runs")


def test_without_a_token_only_if_that_was_asked_for(start_server, two_runs):
    server = start_server(two_runs, "--no-token")

    assert server.banner.splitlines()[-1].endswith("none; every user of this machine can read and delete runs")
    assert "  open " not in server.banner
    assert urllib.request.urlopen(f"{server.address}/api/runs").status == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--no-token", "--token", "long-enough"), "leave one out"),
        (("--no-token", "--host", "0.0.0.0"), "needs a token"),
        (("--trusted-proxy", "proxy.example"), "a trusted proxy is an address"),
    ],
)
def test_options_that_contradict_each_other_are_refused(tmp_path, options, words):
    result = CliRunner().invoke(serve, ["--storage", str(tmp_path), "--port", "0", *options])

    assert isinstance(result.exception, ConfigurationError)
    assert words in str(result.exception)


def test_it_ends_quietly_when_told(start_server, two_runs):
    server = start_server(two_runs, "--access-log")
    server.open("/api/version").close()
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
