"""What the tests of the command line share: calling it in this process, and what it said."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from themis.cli import _run


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def run(*arguments: str) -> Said:
        code = _run(arguments)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run
