"""The reference page names every memory test with its arguments as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.memory.tests.conversation import TESTS
from themis.memory.examples import MEMORY_TESTS
from themis.memory.tests.invented import InventedTest

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "memory-tests.md"
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_page_lists_exactly_the_tests_there_are():
    assert sorted(ROWS) == TESTS


@pytest.mark.parametrize("name", TESTS)
def test_a_row_names_the_arguments_with_their_defaults(name):
    kind = MEMORY_TESTS.get(name)
    common = {"seed", "memory_span", "max_message_size"}
    if issubclass(kind, InventedTest):
        common |= set(InventedTest.arguments())
        assert "[generator](#material-by-a-model)" in ROWS[name]
    for argument, field in kind.arguments().items():
        if argument not in common:
            shown = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
            assert f"`{argument}`" in ROWS[name]
            assert field.default is None or f"`{argument}` ({shown}" in ROWS[name]


def test_the_page_names_every_pair_that_interferes():
    text = PAGE.read_text(encoding="utf-8").partition("## Which tests never run side by side")[2].partition("## ")[0]
    interfering = {name for name in TESTS if MEMORY_TESTS.get(name).interferes_with}

    assert set(re.findall(r"`(\w+)`", text)) - {"incompatibilities"} == interfering


@pytest.mark.parametrize("name", TESTS)
def test_every_kind_says_what_it_scores_costs_and_disturbs(name):
    said = " ".join((MEMORY_TESTS.get(name).__doc__ or "").split())

    for promise in ("Scores: perfect 1, memoryless 0", "tokens", "Interferes with"):
        assert promise in said
