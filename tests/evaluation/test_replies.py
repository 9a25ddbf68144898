"""Whether every family of labelled replies is read as a careful person reads it."""

from __future__ import annotations

import importlib
from collections import Counter

import pytest

from tests.evaluation.replies import BARS, FAMILIES, Line, load, misread


@pytest.mark.parametrize("held_out", [False, True], ids=["in-sample", "held-out"])
@pytest.mark.parametrize("family", FAMILIES)
def test_replies_are_read_as_a_person_reads_them(family: str, held_out: bool) -> None:
    lines = load(family, held_out=held_out)
    reader = importlib.import_module(f"benchmarks.reference_readers.{family}").READERS["themis"]

    wrong = misread(family, lines, reader)

    right = 1 - len(wrong) / len(lines)
    shown = "\n".join(map(str, wrong[:20]))
    assert right >= BARS[family], f"{right:.1%} of {len(lines)}, {len(wrong)} are misread:\n{shown}"


@pytest.mark.parametrize("held_out", [False, True], ids=["in-sample", "held-out"])
@pytest.mark.parametrize("family", FAMILIES)
def test_labelled_replies_are_whole_and_none_is_there_twice(family: str, held_out: bool) -> None:
    lines = load(family, held_out=held_out)
    ids = Counter(line["id"] for line in lines)
    asked = Counter(_asked(line) for line in lines if line["reply"].strip())

    assert [name for name, count in ids.items() if count > 1] == []
    assert [reply for reply, count in asked.items() if count > 1] == []
    assert all(isinstance(line["reply"], str) and "expected" in line and line["style"] for line in lines)
    assert held_out or {line["written"] for line in lines} <= {"before", "after"}


def _asked(line: Line) -> tuple[str, ...]:
    """What makes a line another one: the same reply may be asked for another field, or held against another key."""
    return (
        line["reply"],
        *(str(line.get(name, "")) for name in ("field", "reference", "letters", "options", "language")),
    )
