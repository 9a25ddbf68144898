"""A call of `evaluate`, a row, a turn, a page and a comparison walk through few modules, and the house stays small."""

import importlib.util
import re
import subprocess
import sys

import pytest

from tests.shape.tree import PROJECT

SHAPE = PROJECT / "scripts" / "shape.py"
# The most modules of ours that each may run through.
MOST_MODULES = {"one evaluate": 40, "one row": 22, "one turn": 18, "one page": 18, "one comparison": 14}
MOST_LINES_WITH_ANY = 500
LONGEST_FUNCTION = 70
# It has a line for each of its parameters twice: where they come in, and where they become the specification.
LONGER = {"evaluate"}


def load_shape():
    spec = importlib.util.spec_from_file_location("shape", SHAPE)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.fixture(scope="module")
def walks():
    """Each walk's modules, counted in a process of its own: what other tests left running would be counted too."""
    printed = subprocess.run(
        [sys.executable, str(SHAPE), "-v"], capture_output=True, text=True, check=True, timeout=120, cwd=PROJECT
    ).stdout
    found: dict[str, list[str]] = {}
    name = ""
    for line in printed.splitlines():
        if module := re.match(r"    (themis[\w.]*):", line):
            found[name].append(module[1])
        elif title := re.match(r"(one \w+) ", line):
            name = title[1]
            found[name] = []
    return found


@pytest.mark.parametrize("name", MOST_MODULES)
def test_a_walk_goes_through_few_modules(name, walks):
    assert 5 < len(walks[name]) <= MOST_MODULES[name], "\n".join(walks[name])


def test_types_say_what_they_hold_and_functions_are_short():
    shape = load_shape()
    size = shape.measure()
    lengths = shape.function_lengths(path.read_text(encoding="utf-8") for path in shape.PACKAGE.rglob("*.py"))

    assert size["lines with Any"] <= MOST_LINES_WITH_ANY
    assert size["function length p95"] <= 26
    assert {name for name, length in lengths if length > LONGEST_FUNCTION} == LONGER
