"""The Hugging Face Hub, with the real client against a small server of its protocol."""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import themis
from themis.config.schema import HuggingFaceHubConfig
from themis.exceptions import ConfigurationError, DependencyError
from themis.integrations import huggingface
from themis.integrations.huggingface import HuggingFaceHubUploader, hub_tracker
from themis.storage import ExperimentStorage


class Hub:
    """What the server was asked for: repositories made, and the files of every commit."""

    def __init__(self) -> None:
        self.repositories: list[dict[str, Any]] = []
        self.commits: list[dict[str, bytes]] = []
        self.endpoint = ""


@pytest.fixture
def hub() -> Iterator[Hub]:
    state = Hub()

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path == "/api/repos/create":
                asked = json.loads(body)
                state.repositories.append(asked)
                name = "/".join(part for part in (asked.get("organization"), asked["name"]) if part)
                self.answer({"url": f"{state.endpoint}/datasets/{name}"})
            elif "/preupload/" in self.path:
                files = json.loads(body)["files"]
                self.answer(
                    {"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]}
                )
            elif "/commit/" in self.path:
                lines = [json.loads(line) for line in body.splitlines()]
                files = {
                    line["value"]["path"]: base64.b64decode(line["value"]["content"])
                    for line in lines
                    if line["key"] == "file"
                }
                state.commits.append(files)
                url = f"{state.endpoint}/datasets/org/results/commit/{'a' * 40}"
                self.answer({"success": True, "commitUrl": url, "commitOid": "a" * 40})
            else:
                self.send_error(404)

        def answer(self, value: dict[str, Any]) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    state.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


def uploader(hub: Hub) -> HuggingFaceHubUploader:
    config = HuggingFaceHubConfig(enable=True, repository="org/results")
    return HuggingFaceHubUploader(config, endpoint=hub.endpoint, token="hf_test")


def test_a_run_is_one_commit_of_report_manifest_and_samples(hub, report, tmp_path):
    run_path = ExperimentStorage(tmp_path / "store").get_run_path("tracked")
    before = (run_path / "report.json").read_bytes()
    address = uploader(hub).upload_results(report, run_path)

    (files,) = hub.commits
    assert address == f"{hub.endpoint}/datasets/org/results/commit/{'a' * 40}"
    assert hub.repositories == [{"name": "results", "organization": "org", "type": "dataset", "visibility": "private"}]
    assert set(files) == {
        "tracked/report.json",
        "tracked/manifest.json",
        *(f"tracked/generations/q{n}.json" for n in range(12)),
    }
    sample = json.loads(files["tracked/generations/q3.json"])
    assert (sample["sample_id"], sample["prompt"]) == ("q3", "What is 3 + 3?")
    assert len(json.loads(files["tracked/report.json"])["samples"]) == 12
    assert (run_path / "report.json").read_bytes() == before


def test_ids_of_rows_never_decide_where_a_file_goes(hub, tmp_path):
    ids = ["../../escape", "/etc/passwd", "a/b", "a\\b", "..", "Item", "item", "ünï", "x" * 500, "con\u202e.gpj"]
    rows = [{"id": one, "question": "?", "answer": "!"} for one in ids]
    report = themis.evaluate(
        rows, model="fake/perfect", prompt="{question}", storage=tmp_path / "s", run_id="a run", progress=False
    )
    uploader(hub).upload_results(report, tmp_path)

    (files,) = hub.commits
    names = [path for path in files if "/generations/" in path]
    assert len({name.casefold() for name in names}) == len(ids)
    for name in names:
        folder, generations, file = name.split("/")
        assert (folder, generations) == (next(iter(files)).split("/")[0], "generations")
        assert file.isascii()
        assert ".." not in file
        assert len(file) < 100
    assert sorted(json.loads(files[name])["sample_id"] for name in names) == sorted(ids)


def test_a_long_run_is_uploaded_in_parts(hub, report, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface, "_MOST_FILES", 10)
    monkeypatch.setattr(huggingface, "_LINES_A_PART", 5)
    hub_tracker("org/results", endpoint=hub.endpoint, token="hf_test").publish(report)

    (files,) = hub.commits
    parts = sorted(name for name in files if "/generations/" in name)
    assert parts == [f"tracked/generations/part-0000{n}.jsonl" for n in range(3)]
    lines = [json.loads(line) for part in parts for line in files[part].splitlines()]
    assert [line["sample_id"] for line in lines] == [f"q{n}" for n in range(12)]


def test_a_finished_run_is_uploaded_by_its_observer(hub, watched):
    watched(uploader(hub))
    assert len(hub.commits) == 1


def test_nothing_is_uploaded_unless_the_config_enables_it(hub, report):
    config = HuggingFaceHubConfig(enable=False, repository="org/results")
    assert HuggingFaceHubUploader(config, endpoint=hub.endpoint).upload_results(report) is None
    assert hub.repositories == []


def test_a_missing_repository_is_named_before_anything_is_sent(report):
    with pytest.raises(ConfigurationError, match="needs a repository such as 'org/name'"):
        HuggingFaceHubUploader(HuggingFaceHubConfig(enable=True)).upload_results(report)


def test_without_the_package_one_line_says_what_to_install(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DependencyError, match=r"pip install 'themis-eval\[hub\]'"):
        hub_tracker("org/results").publish(report)
