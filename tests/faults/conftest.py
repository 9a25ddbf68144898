"""What the tests of faults share: the row of the table that a test stands for, and the command line as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from tests.stories.endpoint import Endpoint, misbehaving_endpoint


@dataclass(frozen=True)
class Fault:
    """A row of the table: where, what goes wrong, what Themis does, and how the run and the command end."""

    area: str
    wrong: str
    does: str
    status: str
    exit_code: int | None


@pytest.fixture
def fault(request: pytest.FixtureRequest) -> Fault:
    """What the table promises of the fault that the test makes."""
    marker = request.node.get_closest_marker("fault")
    assert marker is not None, "a test that takes `fault` has the marker of that name"
    return Fault(**marker.kwargs)


class CommandLine(Protocol):
    def __call__(self, *words: str, cwd: Path | None = ..., **variables: str) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def themis(tmp_path: Path) -> CommandLine:
    """Runs `themis WORDS` as a process of its own, in an empty directory, with these environment variables beside ours."""

    def run(*words: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "themis", *words],
            cwd=cwd or tmp_path,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200", **variables},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    """An endpoint whose models misbehave as their names say, and which counts its calls."""
    with misbehaving_endpoint() as opened:
        yield opened
