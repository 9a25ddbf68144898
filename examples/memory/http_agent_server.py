"""An agent behind HTTP in sixty lines: run it, then `python run_benchmark.py -c ... -a http://localhost:8080 -l`.

It remembers every message of a session and answers a question with the latest message that shares most words with it.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar


class Memory:
    """What is known of one session; a turn that comes again is answered as before and remembered once."""

    def __init__(self):
        self.replies = {}
        self.messages = []
        self.lock = threading.Lock()

    def message(self, turn, text, presupplied):
        with self.lock:
            if turn not in self.replies:
                self.replies[turn] = self.answer(text) if presupplied is None else presupplied
                self.messages.append(text)
            return self.replies[turn]

    def observe(self, turn, text, reply):
        with self.lock:
            if turn not in self.replies:
                self.replies[turn] = reply
                self.messages.append(text)

    def answer(self, text):
        if not text.endswith("?"):
            return "Noted."
        wanted = set(text.lower().strip("?").split())
        best = max(reversed(self.messages), key=lambda said: len(wanted & set(said.lower().split())), default="")
        return f"You said: {best[:200]}"


class Handler(BaseHTTPRequestHandler):
    sessions: ClassVar = {}
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        memory = self.sessions.setdefault(asked["session"], Memory())
        said = {}
        if asked["type"] == "message":
            said["reply"] = memory.message(asked["turn"], asked["message"], asked["presupplied"])
            said["cost_usd"] = 0.0
        elif asked["type"] == "observe":
            memory.observe(asked["turn"], asked["message"], asked["reply"])
        elif asked["type"] == "session":
            said["last_turn"] = max(memory.replies, default=0)
        elif asked["type"] == "reset":
            self.sessions.pop(asked["session"])
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8080), Handler).serve_forever()
