"""What tests of experiments share: a folder with rows, and an experiment of pretended models over them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROWS = [{"id": str(n), "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(12)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with rows in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return tmp_path


@pytest.fixture
def sums(folder: Path) -> dict:
    """Two subjects and two prompts over the rows."""
    return {
        "name": "sums",
        "datasets": ["rows.jsonl"],
        "subjects": ["fake/perfect", {"name": "weak", "model": "fake/noisy-0.5"}],
        "prompts": {"plain": "{question}", "terse": "Only the number: {question}"},
    }
