"""Follows a page of the tutorial's kind in a folder of its own, with stand-ins for what is not on this machine.

    python -m tests.contract.following PAGE... [--undouble-backslashes] [--first COMMAND] [--set NAME=VALUE]

follows the Python of any such page, or of several one after the other in one folder, and says of each block whether it works.
The endpoint of the examples answers at the page's address, on another port, and a module `datasets` has the Hub's puzzles.
`--first` is for what a page's Python takes for granted, such as the runs that a script of the examples makes. The tests follow
our own page, shell included.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.contract.countdown import offline_environment, working_copy
from tests.contract.reader import Step

# The page's `datasets.load_dataset`, with the puzzles that the Hub's dataset would have.
STAND_IN_FOR_DATASETS = """
import re
from types import SimpleNamespace

from themis.presets.countdown import raw_puzzles

config = SimpleNamespace(HF_HUB_OFFLINE=False, HF_ENDPOINT="http://127.0.0.1:9")
exceptions = SimpleNamespace(DatasetsError=type("DatasetsError", (Exception,), {}))


def load_dataset(path, name=None, *, split):
    if path != "predibase/countdown":
        raise FileNotFoundError(path)
    return list(raw_puzzles(int(re.fullmatch(r"train\\[:(\\d+)\\]", split)[1])))
"""


def follow_page(
    page: Path,
    root: Path,
    *,
    not_typed: Iterable[str] = (),
    beside: str = "",
    first: Iterable[str] = (),
    ports: Sequence[int] = (),
    **environment: str,
) -> list[Step]:
    """The steps taken; they are also in `steps.json`. `ports` are those of an earlier page, so that its runs are taken up."""
    stand_in = root / "stand-ins" / "datasets.py"
    stand_in.parent.mkdir(exist_ok=True)
    stand_in.write_text(STAND_IN_FOR_DATASETS, encoding="utf-8")
    # The page's ports may be taken here: free ones are written in their place, in the page's text before it is followed
    # and, for the scripts, in the environment.
    endpoint_port, server_port = ports or free_ports(2)
    endpoint = f"http://localhost:{endpoint_port}/api/v1/chat"
    settings = {
        "instead": {
            "localhost:1234": f"localhost:{endpoint_port}",
            "--port 1234": f"--port {endpoint_port}",
            "localhost:8080": f"localhost:{server_port}",
            "--port 8080": f"--port {server_port}",
        },
        "not_typed": list(not_typed),
        "endpoint": endpoint,
        "beside": beside,
        "first": list(first),
    }
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("reader.py"), page, root / "steps.json"],
        input=json.dumps(settings),
        cwd=root,
        env=offline_environment(root, PYTHONPATH=str(stand_in.parent), COUNTDOWN_API_BASE=endpoint, **environment),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return [Step(**step) for step in json.loads((root / "steps.json").read_text(encoding="utf-8"))]


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [taken.getsockname()[1] for taken in sockets]
    for taken in sockets:
        taken.close()
    return ports


def main() -> int:
    parser = argparse.ArgumentParser(description="Follows the Python of pages and says which blocks work.")
    parser.add_argument("pages", type=Path, nargs="+", metavar="PAGE")
    parser.add_argument("--undouble-backslashes", action="store_true", help="the page was written with each one twice")
    parser.add_argument("--first", action="append", default=[], metavar="COMMAND", help="typed before the first block")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="in the environment")
    asked = parser.parse_args()
    environment = dict(text.split("=", 1) for text in asked.set)
    endpoint = "python examples/countdown/solver_endpoint.py --port 1234"
    ports, problems = free_ports(2), 0
    with tempfile.TemporaryDirectory() as folder:
        root = working_copy(Path(folder))
        for number, page in enumerate(asked.pages):
            text = page.read_text(encoding="utf-8")
            copy = root / "page.md"
            copy.write_text(text.replace("\\\\", "\\") if asked.undouble_backslashes else text, encoding="utf-8")
            first = asked.first if number == 0 else ()
            steps = follow_page(copy, root, beside=endpoint, first=first, ports=ports, **environment)
            problems += print_outcome(steps)
    return int(problems > 0)


def print_outcome(steps: Sequence[Step]) -> int:
    """Says which steps do not work; how many."""
    failed = [step for step in steps if step.problem]
    for step in failed:
        where = f"the block at line {step.line}" if step.line else repr(step.text)
        print(f"{where} does not work: {step.problem}")
    python = [step for step in steps if step.language == "python"]
    calls = sum(step.calls for step in steps)
    print(
        f"{sum(not step.problem for step in python)} of {len(python)} Python blocks work, with {calls} questions asked"
    )
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
