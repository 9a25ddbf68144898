"""One file evaluates a function, an application and two models on the same rows with a tool and images; killed twice, the same
command goes on, and no step whose outcome was stored is made again."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from themis.storage import ExperimentStorage

ROWS, WORKERS, PARALLEL, SUBJECTS = 8, 2, 2, 4
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

FILE = """
name: colours
datasets: [rows.jsonl]
prompt: "What colour has item {id}? Look at the picture and ask the tool."
system_prompt: Reply with the colour alone.
attach: [image]
tools: ["tools.py:look_up"]
workers: 2
parallel: 2
subjects:
  function: python:app.py:answer
  app: http://127.0.0.1:PORT/ask
  small: {model: stub/small, provider_options: {base_url: "http://127.0.0.1:PORT/v1"}}
  large: {model: stub/large, provider_options: {base_url: "http://127.0.0.1:PORT/v1"}}
metrics: [exact_match, "tool_called('look_up')"]
baseline: small
"""

APP = """
import json, os, urllib.request


def answer(messages):
    request = urllib.request.Request(os.environ["ENDPOINT"] + "/function", json.dumps({"messages": messages}).encode())
    return json.load(urllib.request.urlopen(request))
"""

TOOLS = """
import json, os, urllib.request


def look_up(item: str) -> str:
    "The colour of an item."
    request = urllib.request.Request(os.environ["ENDPOINT"] + "/tool", json.dumps({"item": item}).encode())
    return json.load(urllib.request.urlopen(request))["colour"]
"""


class Endpoint:
    """Plays every subject and the tool, slowly, and counts what it has answered, by subject, item and step."""

    def __init__(self) -> None:
        self.answered: Counter[str] = Counter()
        self.with_images = 0
        self.lock = threading.Lock()

    def reply(self, path: str, body: dict) -> dict:
        time.sleep(0.02)
        if path == "/tool":
            return {"colour": f"colour-{body['item']}"}
        messages = body["messages"]
        question = next(one for one in messages if one["role"] == "user")["content"]
        text = next(part["text"] for part in question if part["type"] == "text")
        item = text.removeprefix("What colour has item ").partition("?")[0]
        results = [one for one in messages if one["role"] == "tool"]
        subject = body.get("model", path)
        with self.lock:
            self.answered[f"{subject}:{item}:{len(results)}"] += 1
            self.with_images += any(part["type"] in ("image", "image_url") for part in question)
        call = {"id": f"call-{item}", "name": "look_up", "arguments": {"item": item}}
        if path != "/v1/chat/completions":
            return {"text": results[-1]["content"]} if results else {"text": "", "tool_calls": [call]}
        message: dict = {"role": "assistant", "content": results[-1]["content"] if results else None}
        if not results:
            function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
            message["tool_calls"] = [{"id": call["id"], "type": "function", "function": function}]
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        return {"id": "1", "model": "stub", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}


@pytest.fixture
def endpoint():
    played = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = json.dumps(played.reply(self.path, body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    played.url = f"http://127.0.0.1:{server.server_port}"
    yield played
    server.shutdown()


def test_one_file_with_four_subjects_tools_and_images_goes_on_after_two_kills(tmp_path: Path, endpoint):
    assert len(FILE.strip().splitlines()) <= 30
    port = endpoint.url.rpartition(":")[2]
    (tmp_path / "experiment.yml").write_text(FILE.replace("PORT", port))
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "dot.png").write_bytes(PNG)
    rows = [{"id": str(n), "image": "dot.png", "answer": f"colour-{n}"} for n in range(ROWS)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "themis", "run", "experiment.yml", "--storage", "store", "-y"]
        environment = {**os.environ, "ENDPOINT": endpoint.url, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    kills = 2
    for kill in range(kills):
        process, wanted = start(), (kill + 1) * 12
        deadline = time.monotonic() + 120
        while endpoint.answered.total() < wanted and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = start()
    output, errors = process.communicate(timeout=300)

    assert process.returncode == 0, output + errors
    assert "4 of 4 runs complete" in output
    store = ExperimentStorage(tmp_path / "store")
    for run in store.list_runs():
        reader = store.reader(run.run_id)
        assert (run.total_samples, run.failed_generations) == (ROWS, 0)
        assert all(
            record.output.text == f"colour-{record.task.metadata['dataset_id']}" for _, record in reader.records()
        )
    # Asked again is only what was under way when a process died: its outcome was seen by nobody.
    again = sum(times - 1 for times in endpoint.answered.values())
    assert again <= kills * WORKERS * PARALLEL
    assert len(endpoint.answered) == SUBJECTS * ROWS * 2
    assert endpoint.with_images == endpoint.answered.total()
