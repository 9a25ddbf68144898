"""The memory test that CONTRIBUTING shows is found by its class alone, and keeps what every kind promises."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import pytest

from tests.memory.tests.conversation import Repeater, play
from themis.exceptions import ConfigurationError
from themis.memory.agents.calibration import Amnesiac, Oracle
from themis.memory.examples import MEMORY_TESTS, find_kinds

PAGE = Path(__file__).parents[3] / "CONTRIBUTING.md"


@pytest.fixture
def tea(tmp_path, monkeypatch):
    """The class of the page, in a package of its own."""
    section = PAGE.read_text(encoding="utf-8").partition("### A memory test")[2].partition("\n### ")[0]
    (block,) = re.findall(r"^ *```python\n(.*?)^ *```$", section, re.MULTILINE | re.DOTALL)
    (tmp_path / "more_tests").mkdir()
    (tmp_path / "more_tests" / "__init__.py").write_text("")
    (tmp_path / "more_tests" / "drinks.py").write_text(textwrap.dedent(block), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield find_kinds("more_tests")
    for module in ("more_tests", "more_tests.drinks"):
        sys.modules.pop(module, None)


def test_a_kind_is_found_by_its_class_alone_and_keeps_what_it_promises(tea):
    assert tea == {"favourite_tea": "more_tests.drinks:FavouriteTea"}
    kind = sys.modules["more_tests.drinks"].FavouriteTea
    for seed in range(20):
        (test,) = kind(seed=seed).generate_examples(1)
        everything = " and ".join(kind.answers)
        assert play(test, Oracle()).grade.score == 1.0
        assert play(test, Amnesiac()).grade.score == 0.0
        assert play(test, Repeater(everything)).grade.score == 0.0
    with pytest.raises(ConfigurationError, match=r"favourite_tea: mentions must be .* between 1 and 3, got 4"):
        kind(mentions=4).generate_examples(1)


def test_every_kind_of_the_package_is_registered_under_its_own_name():
    found = find_kinds("themis.memory.tests")

    assert {name: MEMORY_TESTS.get(name).kind for name in found} == {name: name for name in found}
    assert all(not MEMORY_TESTS.is_of_this_program(name) for name in found)
