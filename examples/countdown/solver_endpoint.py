"""A local endpoint for readers without a model server: `python examples/countdown/solver_endpoint.py [--port 1234]`.

It speaks the tutorial's protocol, POST {model, system_prompt, input}, and answers as `common.solver_reply` does; asked the
same a second time, it draws its answer anew, as a model would. GET tells how many questions it has answered.
"""

from __future__ import annotations

import argparse
import itertools
import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from common import solver_reply


class SolverEndpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    draws: ClassVar[dict[str, Iterator[int]]] = defaultdict(itertools.count)
    answered = 0

    def do_POST(self) -> None:
        try:
            prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            with self.lock:
                draw = next(self.draws[prompt])
                type(self).answered += 1
            text = solver_reply(prompt, draw)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            self.reply(400, {"error": f"expected input with 'Numbers: ...' and 'Target: ...': {error!r}"})
            return
        stats = {"input_tokens": len(prompt.split()), "total_output_tokens": len(text.split())}
        self.reply(200, {"output": [{"type": "message", "content": text}], "stats": stats})

    def do_GET(self) -> None:
        self.reply(200, {"status": "ok", "answered": self.answered})

    def reply(self, status: int, payload: dict[str, Any]) -> None:
        body = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: a run of a hundred puzzles would fill the terminal."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Answers Countdown puzzles at http://localhost:PORT/api/v1/chat.")
    parser.add_argument("--port", type=int, default=1234, help="0 takes a free one (default: 1234)")
    with ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), SolverEndpoint) as server:
        print(f"answering at http://localhost:{server.server_port}/api/v1/chat until Ctrl-C", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
