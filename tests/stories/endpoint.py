"""An OpenAI-compatible endpoint that misbehaves on request: the model's name says how."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Endpoint:
    """What the server has seen and where it is."""

    def __init__(self) -> None:
        self.url = ""
        self.calls: Counter[str] = Counter()
        self.keys: set[str] = set()
        self.lock = threading.Lock()
        # Calls of `waits-at-the-gate` are answered while it is open.
        self.gate = threading.Event()


@contextmanager
def misbehaving_endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model, question = body["model"], body["messages"][-1]["content"]
            with endpoint.lock:
                endpoint.calls[question] += 1
                seen = endpoint.calls[question]
                endpoint.keys.add(self.headers.get("Authorization", ""))
            self.body = body
            number = int("".join(c for c in question if c.isdigit()) or 0)
            getattr(self, f"_{model.replace('-', '_')}")(question, number, seen)

        def _good(self, question: str, number: int, seen: int) -> None:
            self._answer(question.removeprefix("say "))

        def _fails_half_the_time(self, question: str, number: int, seen: int) -> None:
            if seen == 1 and number % 2:
                self._send(503, {"error": {"message": "overloaded"}})
            else:
                self._good(question, number, seen)

        def _always_fails_on_odd(self, question: str, number: int, seen: int) -> None:
            if number % 2:
                self._send(500, {"error": {"message": "broken"}})
            else:
                self._good(question, number, seen)

        def _hangs_on_three(self, question: str, number: int, seen: int) -> None:
            if number == 3:
                time.sleep(3)
            self._good(question, number, seen)

        def _malformed(self, question: str, number: int, seen: int) -> None:
            if number % 2:
                self._raw(200, b'{"choices": [{"message": ')
            else:
                self._good(question, number, seen)

        def _slow_down(self, question: str, number: int, seen: int) -> None:
            if seen == 1 and number % 4 == 0:
                self._send(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.05"})
            else:
                self._good(question, number, seen)

        def _cuts_the_connection(self, question: str, number: int, seen: int) -> None:
            if seen == 1 and number % 2:
                self.close_connection = True
                self.connection.close()
            else:
                self._good(question, number, seen)

        def _takes_its_time(self, question: str, number: int, seen: int) -> None:
            time.sleep(0.03)
            self._good(question, number, seen)

        def _waits_at_the_gate(self, question: str, number: int, seen: int) -> None:
            endpoint.gate.wait()
            self._good(question, number, seen)

        def _cuts_every_connection(self, question: str, number: int, seen: int) -> None:
            self.close_connection = True
            self.connection.close()

        def _huge(self, question: str, number: int, seen: int) -> None:
            self._answer("x" * 2_000_000)

        def _silent(self, question: str, number: int, seen: int) -> None:
            self._raw(200, b"")

        def _refuses_the_key(self, question: str, number: int, seen: int) -> None:
            self._send(
                401, {"error": {"message": f"Incorrect API key provided: {self.headers.get('Authorization', '')[7:]}"}}
            )

        def _no_such_model(self, question: str, number: int, seen: int) -> None:
            self._send(
                404, {"error": {"message": "The model `no-such-model` does not exist", "code": "model_not_found"}}
            )

        def _no_temperature(self, question: str, number: int, seen: int) -> None:
            if "temperature" in self.body:
                self._send(
                    400, {"error": {"message": "Unsupported value: 'temperature' does not support 0 with this model."}}
                )
            else:
                self._good(question, number, seen)

        def _refuses_the_request(self, question: str, number: int, seen: int) -> None:
            self._send(400, {"error": {"message": "This model cannot be asked at this address."}})

        def _moved(self, question: str, number: int, seen: int) -> None:
            self._send(308, {}, {"Location": "https://elsewhere.example/v1"})

        def _come_back_tomorrow(self, question: str, number: int, seen: int) -> None:
            self._send(429, {"error": {"message": "quota of the day"}}, {"Retry-After": "86400"})

        def _tomorrow_once(self, question: str, number: int, seen: int) -> None:
            if sum(endpoint.calls.values()) == 1:
                self._come_back_tomorrow(question, number, seen)
            else:
                self._good(question, number, seen)

        def _wait_five_seconds_once(self, question: str, number: int, seen: int) -> None:
            if sum(endpoint.calls.values()) == 1:
                self._send(429, {"error": {"message": "slow down"}}, {"Retry-After": "5"})
            else:
                self._good(question, number, seen)

        def _revoked_after_ten(self, question: str, number: int, seen: int) -> None:
            if sum(endpoint.calls.values()) > 10:
                self._refuses_the_key(question, number, seen)
            else:
                self._good(question, number, seen)

        def _answer(self, text: str) -> None:
            usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
            message = {"role": "assistant", "content": text}
            self._send(200, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

        def _send(self, status: int, payload: dict[str, Any], headers: dict[str, str] | None = None) -> None:
            self._raw(status, json.dumps(payload).encode(), headers)

        def _raw(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
