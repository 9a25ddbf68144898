"""Follows a page as a reader does: Python goes into one session, shell blocks into bash, servers into a second terminal.

    python reader.py PAGE RESULT < settings.json

`settings` has `instead`, what is written in place of what on the page (ports), `not_typed`, lines of shell blocks that are
left out, and `beside`, a command that runs in a second terminal from the start. A page that has one is followed for its
Python alone, after the commands `first`. RESULT becomes a JSON list with a step for each block that was followed. It is a
program of its own because what the page registers would otherwise stay registered for the tests that follow.
"""

from __future__ import annotations

import codeop
import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import traceback
import types
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SECOND_TERMINAL = "# in a second terminal"


@dataclass
class Block:
    language: str
    text: str
    line: int


@dataclass
class Step:
    """`shown` is what the page shows below the block, `calls` how many questions the endpoint answered meanwhile."""

    language: str
    text: str
    line: int
    shown: str | None = None
    output: str = ""
    problem: str = ""
    calls: int = 0


def blocks(page: str) -> list[Block]:
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [Block(block[1], block[2], page[: block.start()].count("\n") + 2) for block in found]


def follow(
    page: str, *, instead: dict[str, str], not_typed: list[str], endpoint: str, beside: str, first: list[str]
) -> list[Step]:
    for old, new in instead.items():
        page, beside = page.replace(old, new), beside.replace(old, new)
    steps: list[Step] = []
    session, terminals = PythonSession(), list[subprocess.Popen[str]]()
    try:
        if beside:
            steps.append(Step("bash", beside, 0))
            terminals.append(open_terminal(steps[0]))
        for command in first:
            steps.append(Step("bash", command, 0))
            type_in(steps[-1])
        for block in blocks(page):
            if beside and block.language != "python":
                continue
            if block.language == "text":
                steps[-1].shown = block.text
                continue
            if block.language not in ("python", "bash"):
                continue
            step = Step(**asdict(block))
            before = answered(endpoint)
            if block.language == "python":
                session.paste(step)
            elif block.text.startswith(SECOND_TERMINAL):
                terminals.append(open_terminal(step))
            else:
                step.text = "".join(line for line in block.text.splitlines(True) if line.rstrip("\n") not in not_typed)
                type_in(step)
            step.calls = answered(endpoint) - before
            steps.append(step)
    finally:
        for terminal in terminals:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(terminal.pid, signal.SIGTERM)
            terminal.wait()
    return steps


class PythonSession:
    """One session, in which later blocks see what earlier ones defined; it goes on after an error."""

    def __init__(self) -> None:
        self.module = types.ModuleType("__main__")
        self.compile = codeop.Compile()  # remembers `from __future__`

    def paste(self, step: Step) -> None:
        sys.modules["__main__"] = self.module
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            try:
                exec(self.compile(step.text, f"<line {step.line}>", "exec"), vars(self.module))
            except (Exception, SystemExit):
                step.problem = traceback.format_exc()
        step.output = output.getvalue()


def type_in(step: Step) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", step.text], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
    )  # fmt: skip
    step.output = done.stdout
    if done.returncode:
        step.problem = f"exit {done.returncode}\n{done.stderr}"


def open_terminal(step: Step) -> subprocess.Popen[str]:
    """Leaves the command running, once its port answers."""
    port = int(re.findall(r"--port (\d+)", step.text)[-1])
    terminal = subprocess.Popen(["bash", "-c", step.text], stdout=subprocess.DEVNULL, start_new_session=True, text=True)
    for _ in range(600):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return terminal
        if terminal.poll() is not None:
            break
        time.sleep(0.1)
    step.problem = f"nothing answers at port {port}"
    return terminal


def answered(endpoint: str) -> int:
    """As the stand-in of the examples tells; 0 before it is started."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(endpoint, timeout=10) as response:
            return int(json.load(response)["answered"])
    except OSError:
        return 0


if __name__ == "__main__":
    settings: dict[str, Any] = json.load(sys.stdin)
    page_file, result_file = map(Path, sys.argv[1:])
    steps = follow(page_file.read_text(encoding="utf-8"), **settings)
    result_file.write_text(json.dumps([asdict(step) for step in steps]), encoding="utf-8")
