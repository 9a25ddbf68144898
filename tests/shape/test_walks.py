"""A call of `evaluate`, a row, a turn, a page and a comparison walk through few modules, and the house stays small."""

import importlib.util

import pytest

from tests.shape.tree import PROJECT

# The most modules of ours that each may run through.
MOST_MODULES = {"one evaluate": 36, "one row": 22, "one turn": 18, "one page": 18, "one comparison": 14}
MOST_LINES_WITH_ANY = 500
LONGEST_FUNCTION = 70
# It has a line for each of its parameters twice: where they come in, and where they become the specification.
LONGER = {"evaluate"}


def load_shape():
    spec = importlib.util.spec_from_file_location("shape", PROJECT / "scripts" / "shape.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.parametrize("name", MOST_MODULES)
def test_a_walk_goes_through_few_modules(name, tmp_path):
    calls = load_shape().WALKS[name](tmp_path)

    assert calls
    assert len({module for module, _ in calls}) <= MOST_MODULES[name], sorted({module for module, _ in calls})


def test_types_say_what_they_hold_and_functions_are_short():
    shape = load_shape()
    size = shape.measure()
    lengths = shape.function_lengths(path.read_text(encoding="utf-8") for path in shape.PACKAGE.rglob("*.py"))

    assert size["lines with Any"] <= MOST_LINES_WITH_ANY
    assert size["function length p95"] <= 26
    assert {name for name, length in lengths if length > LONGEST_FUNCTION} == LONGER
