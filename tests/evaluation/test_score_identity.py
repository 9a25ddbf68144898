"""A score knows what made it: an edit that could change it makes it again, any other edit does not.

Every line of the tables is done for real: a user's files are written and loaded, a run is evaluated, one file is edited and
loaded again, and the same run is evaluated once more. A score was made again where the run has another evaluation.
"""

import contextlib
import importlib
import itertools
import logging
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import themis
from themis.storage import ExperimentStorage

ROWS = [{"id": "a", "q": "1 + 1", "answer": "2"}, {"id": "b", "q": "2 + 2", "answer": "4"}]

# The files of a user, with a metric for each way in which code depends on something.
PROJECT = Path(__file__).parent / "shop"

METRICS, HELPERS, SETTINGS, LATE, BUILD, MORE, MIXINS = (
    f"shop/{name}.py" for name in ("metrics", "helpers", "settings", "late", "build", "more", "mixins")
)

EVEN = "def even(n):\n    return True if n == 0 else odd(n - 1)\n\n\n"
ODD = "def odd(n):\n    return False if n == 0 else even(n - 1)\n\n\n"
FLOOR, CEILING = '"floor": 0.1', '"ceiling": 0.9'

# metric, file, what is replaced, by what
MAKES_SCORES_AGAIN = {
    "a global": ("Global", METRICS, "LIMIT = 0.25", "LIMIT = 0.3"),
    "an int that becomes a float": ("Global", METRICS, "LIMIT = 0.25", "LIMIT = 0"),
    "a config dict": ("Config", METRICS, '"floor": 0.1', '"floor": 0.2'),
    "the order of a dict that is gone through": ("Rules", METRICS, '"first": "a", "second": "b"', '"second": "b", "first": "a"'),
    "a set": ("Rules", METRICS, '{"yes", "no"}', '{"yes", "never"}'),
    "a date": ("Values", METRICS, "date(2026, 1, 1)", "date(2026, 1, 2)"),
    "a decimal": ("Values", METRICS, 'Decimal("1.50")', 'Decimal("1.51")'),
    "a path": ("Values", METRICS, "data/words.txt", "data/other.txt"),
    "one number of an array": ("Values", METRICS, "[1.0, 2.0, 3.0]", "[1.0, 2.0, 4.0]"),
    "bytes": ("Values", METRICS, 'b"abc"', 'b"abd"'),
    "deep inside a value": ("Values", METRICS, '{"min": 2}', '{"min": 3}'),
    "a namespace's attribute": ("Values", METRICS, "SimpleNamespace(limit=0.5)", "SimpleNamespace(limit=0.6)"),
    "a field of a dataclass": ("Values", METRICS, "Policy(tolerance=0.02)", "Policy(tolerance=0.03)"),
    "a method of a value's class": ("Values", METRICS, "difference <= self", "difference < self"),
    "a helper's helper": ("Helped", HELPERS, "text.strip()", "text.strip().lower()"),
    "a list that a helper's helper reads": ("Helped", HELPERS, '["kg", "cm"]', '["kg"]'),
    "a regular expression in another module": ("Helped", HELPERS, "[.,]", "[.,;]"),
    "a regular expression's flags": ("Helped", HELPERS, 're.compile(r"[.,]")', 're.compile(r"[.,]", re.I)'),
    "an attribute of an imported module": ("Dotted", SETTINGS, "THRESHOLD = 0.5", "THRESHOLD = 0.6"),
    "a value that a module imports from a third": ("Dotted", SETTINGS, '"exact": 0.7', '"exact": 0.8'),
    "which member of an enum": ("Dotted", SETTINGS, "MODE = Mode.STRICT", "MODE = Mode.LAX"),
    "the value of an enum's member": ("Dotted", SETTINGS, 'STRICT = "strict"', 'STRICT = "exact"'),
    "what a function imports when it runs": ("Late", LATE, "LATE = 0.1", "LATE = 0.2"),
    "what a module has that is imported late": ("Late", "shop/deep/inner.py", "DEPTH = 3", "DEPTH = 4"),
    "a class attribute": ("Attribute", METRICS, "LIMIT * 2", "LIMIT * 3"),
    "a global behind a class attribute": ("Attribute", METRICS, "LIMIT = 0.25", "LIMIT = 0.3"),
    "how a cache begins that holds a setting": ("Counting", METRICS, 'CACHE = {"limit": 0.5}', 'CACHE = {"limit": 0.6}'),
    "what the constructor keeps of its arguments": ("given", BUILD, "m.Given(0.5)", "m.Given(0.6)"),
    "a global in a default of a keyword": ("Spelled", METRICS, "LIMIT = 0.25", "LIMIT = 0.3"),
    "a default that is written out": ("Spelled", METRICS, "step=2", "step=3"),
    "a base class": ("Global", METRICS, "score(self.judge", "1 - score(self.judge"),
    "a cached function": ("Cached", METRICS, "len(text) > LIMIT", "len(text) >= LIMIT"),
    "what a cached function reads": ("Cached", METRICS, "LIMIT = 0.25", "LIMIT = 0.3"),
    "a decorator": ("Decorated", METRICS, "max(limit, function", "min(limit, function"),
    "a decorator's argument": ("Decorated", METRICS, "FLOOR = 0.0", "FLOOR = 0.1"),
    "a static method": ("Decorated", METRICS, "return 1\n\n    @property", "return 3\n\n    @property"),
    "what a function closes over": ("closure", BUILD, "make_metric(0.5)", "make_metric(0.6)"),
    "an argument of a partial": ("partial", BUILD, "tolerance=1", "tolerance=2"),
    "a function behind a partial": ("partial", METRICS, "<= tolerance", "< tolerance"),
    "a plain function": ("plain", METRICS, 'len(prediction) > CONFIG["floor"]', 'len(prediction) > 2 * CONFIG["floor"]'),
    "one of two functions that call each other": ("plain", METRICS, "False if n == 0", "None if n == 0"),
    "a lambda in a list": ("Lambdas", METRICS, "lambda p: p > 2]", "lambda p: p > 3]"),
    "an inner object's default": ("Composed", METRICS, "Policy(0.5))", "Policy(0.6))"),
}  # fmt: skip

KEEPS_SCORES = {
    "nothing": ("Values", METRICS, "", ""),
    "a comment": ("Global", METRICS, "# Closer than the limit.", "# Closer than the limit, that is."),
    "a comment that goes": ("Global", METRICS, "        # Closer than the limit.\n", ""),
    "a docstring": ("Global", METRICS, '"""Within the limit."""', '"""Within the limit, or at it."""'),
    "a docstring that goes": ("Global", METRICS, '        """Within the limit."""\n', ""),
    "the module's docstring": ("Global", METRICS, "Metrics of the shop.", "What the shop measures."),
    "lines above": ("Global", METRICS, "LIMIT = 0.25", "\n\n\nLIMIT = 0.25"),
    "blanks and brackets": ("Global", METRICS, "return len(prediction) * LIMIT > 0", "return (len( prediction )*LIMIT) > 0"),
    "quotes": ("Config", METRICS, 'CONFIG["floor"] < 1', "CONFIG['floor'] < 1"),
    "how a number is written": ("Global", METRICS, "LIMIT = 0.25", "LIMIT = 25e-2"),
    "a function that nobody calls": ("Global", METRICS, "return 1\n\n\ndef score", "return 2\n\n\ndef score"),
    "a class that nobody uses": ("Global", METRICS, "CONFIG[\"floor\"] < 1", "CONFIG[\"floor\"] < 2"),
    "a global that it does not read": ("Global", METRICS, '"floor": 0.1', '"floor": 0.2'),
    "another attribute of an imported module": ("Dotted", SETTINGS, "UNRELATED = 1", "UNRELATED = 2"),
    "a function beside a helper": ("Helped", HELPERS, "text.upper()", "text.lower()"),
    "another value beside a late import": ("Late", "shop/deep/inner.py", "OTHER = 4", "OTHER = 5"),
    "the order of a dict that is looked up by key": ("Config", METRICS, f"{FLOOR}, {CEILING}", f"{CEILING}, {FLOOR}"),
    "the order of a set": ("Rules", METRICS, '{"yes", "no"}', '{"no", "yes"}'),
    "the order of two functions": ("plain", METRICS, EVEN + ODD, ODD + EVEN),
    "what the code itself counts": ("Counting", METRICS, "calls = 0\n    seen", "calls = 0\n\n    seen"),
    "the size of a cache": ("Cached", METRICS, "lru_cache(maxsize=16)", "lru_cache(  maxsize=16  )"),
    "a counter that a closure keeps": ("closure", METRICS, "nonlocal calls\n", "nonlocal calls  # counted\n"),
    "how an object was built": ("given", BUILD, "m.Given(0.5)", "m.Given(limit=1 / 2)"),
}  # fmt: skip

# Written when the code was done, and not touched since: what it had not been made for.
MAKES_SCORES_AGAIN_UNSEEN = {
    "a function in a table of functions": ("Many", MORE, "text.isdigit()", "text.isdecimal()"),
    "which function a table has": ("Many", MORE, '"numbers": rule_of_numbers', '"numbers": rule_of_words'),
    "one way of a function that goes by type": ("Many", MORE, "return len(value)", "return len(value) + 1"),
    "the other way": ("Many", MORE, "return 0\n", "return 1\n"),
    "a callable object's parameter": ("Many", MORE, "Checker(1)", "Checker(2)"),
    "a callable object's code": ("Many", MORE, ">= self.least", "> self.least"),
    "a coroutine": ("Asked", MORE, 'text + "!"', 'text + "?"'),
    "a generator": ("Asked", MORE, 'split(",")', 'split(";")'),
    "the end of a long text": ("Asked", MORE, "Say yes or no.", "Say yes, or no."),
    "a context manager": ("Kept", MORE, "weight * 2", "weight * 3"),
    "a context manager's default": ("Kept", MORE, "weight=1", "weight=2"),
    "a named tuple": ("Kept", MORE, "Span(0, 1)", "Span(0, 2)"),
    "a table of pandas": ("Kept", MORE, "[1, 2, 3], index", "[1, 2, 4], index"),
    "the index of a table": ("Kept", MORE, '"a", "b", "c"', '"a", "b", "d"'),
    "a fraction": ("Kept", MORE, "Fraction(1, 3)", "Fraction(1, 4)"),
    "a range": ("Kept", MORE, "range(0, 10, 2)", "range(0, 10, 3)"),
    "what a default dict gives": ("Kept", MORE, "lambda: 1)", "lambda: 2)"),
    "a module that is looked into by name": ("Dynamic", SETTINGS, "THRESHOLD = 0.5", "THRESHOLD = 0.6"),
    "an attribute of a class of options": ("Dynamic", MORE, "scale = 2", "scale = 4"),
    "deep in an attribute of a class": ("Dynamic", MORE, '{"limit": 1}', '{"limit": 2}'),
    "the object of a bound method": ("Dynamic", METRICS, "Policy(tolerance=0.02)", "Policy(tolerance=0.03)"),
    "a partial of a built-in function": ("Dynamic", MORE, "partial(max, 3)", "partial(max, 4)"),
    "a partial's built-in function": ("Dynamic", MORE, "partial(max, 3)", "partial(min, 3)"),
    "a name that came with a star": ("Starred", SETTINGS, "THRESHOLD = 0.5", "THRESHOLD = 0.6"),
    "a mixin in another file": ("Mixed", MIXINS, "round(value, DIGITS)", "round(value, DIGITS + 1)"),
    "a constant that a mixin reads": ("Mixed", MIXINS, "DIGITS = 2", "DIGITS = 3"),
    "a cached property": ("Mixed", MORE, "max(self.levels", "min(self.levels"),
    "a public attribute": ("Mixed", MORE, '"high": 2', '"high": 3'),
    "the order of a public attribute": ("Mixed", MORE, '"low": 1, "high": 2', '"high": 2, "low": 1'),
    "a keyword of a class": ("Keyworded", MORE, "scale=3", "scale=5"),
    "what a class does with its subclasses": ("Keyworded", MORE, "cls.scale = scale", "cls.scale = scale + 1"),
    "a global in the default of a lambda": ("Keyworded", SETTINGS, "THRESHOLD = 0.5", "THRESHOLD = 0.6"),
    "a method that was put in from outside": ("Patched", MORE, "return settings.UNRELATED", "return -settings.UNRELATED"),
    "what such a method reads": ("Patched", SETTINGS, "UNRELATED = 1", "UNRELATED = 2"),
}  # fmt: skip

KEEPS_SCORES_UNSEEN = {
    "when it was made": ("Mixed", MORE, "", ""),
    "a cache that is filled": ("Kept", MORE, "", ""),
    "what is done when run as a script": ("Many", MORE, "print(Many())", "print(Many().name)"),
    "an import more": ("Many", MORE, "import asyncio\n", "import asyncio\nimport abc\n"),
    "a constant more": ("Many", MORE, "MEMO = {}\n", "MEMO = {}\nMORE = 1\n"),
    "a metric more": ("Many", MORE, "class Asked(Base):", "class Fresh(Base):\n    limit = 1\n\n\nclass Asked(Base):"),
    "how a text is cut into lines": ("Asked", MORE, 'lenient with words, and never', 'lenient with words," " and never'),
    "a docstring of a mixin's": ("Mixed", MIXINS, "class Rounded:\n", 'class Rounded:\n    """Rounds."""\n\n'),
    "a comment of a base class": ("Mixed", METRICS, "raise NotImplementedError", "raise NotImplementedError  # abstract"),
    "pass after a docstring": ("Mixed", MORE, '"""Rounds."""\n', '"""Rounds."""\n\n    pass\n'),
    "where a mixin stands in its file": ("Mixed", MIXINS, "DIGITS = 2\n", "OTHER = 1\nDIGITS = 2\n\n\ndef other(): ...\n"),
    "another way of a table that is not its own": ("Asked", MORE, "text.isdigit()", "text.isdecimal()"),
}  # fmt: skip


class Shop:
    """A user's files, the store they evaluate into, and how often scores were made."""

    def __init__(self, folder: Path, store: Path) -> None:
        self.folder, self.store = folder, store
        shutil.copytree(PROJECT, folder / "shop")

    def edit(self, name: str, old: str, new: str) -> None:
        file = self.folder / name
        text = file.read_text()
        assert old in text, f"{old!r} is not in {name}"
        file.write_text(text.replace(old, new, 1))

    def load(self, name: str):
        for loaded in [one for one in sys.modules if one.partition(".")[0] == "shop"]:
            del sys.modules[loaded]
        importlib.invalidate_caches()
        return importlib.import_module(name)

    def evaluate(self, metric, run_id: str, **options) -> int:
        """The number of the run's evaluation after another call."""
        themis.evaluate(
            ROWS, model="fake/perfect", prompt="{q}", metrics=[metric], run_id=run_id, storage=self.store, progress=False,
            **options,
        )  # fmt: skip
        reader = ExperimentStorage(self.store).reader(run_id)
        return reader.list_evaluations()[-1].evaluation


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def shop(tmp_path, store, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Shop(tmp_path, store)
    for loaded in [one for one in sys.modules if one.partition(".")[0] == "shop"]:
        del sys.modules[loaded]


def is_scored_again(shop: Shop, metric: str, file: str, old: str, new: str, run_id: str) -> bool:
    before = shop.evaluate(shop.load("shop.build").build(metric), run_id)
    shop.edit(file, old, new)
    return shop.evaluate(shop.load("shop.build").build(metric), run_id) != before


def named(edit: str) -> str:
    return re.sub(r"\W+", "-", edit)


@pytest.mark.parametrize("edit", [*MAKES_SCORES_AGAIN, *MAKES_SCORES_AGAIN_UNSEEN])
def test_an_edit_that_could_change_a_score_makes_it_again(shop, edit):
    change = {**MAKES_SCORES_AGAIN, **MAKES_SCORES_AGAIN_UNSEEN}[edit]

    assert is_scored_again(shop, *change, run_id=f"again-{named(edit)}")


@pytest.mark.parametrize("edit", [*KEEPS_SCORES, *KEEPS_SCORES_UNSEEN])
def test_an_edit_that_cannot_change_a_score_keeps_it(shop, edit):
    change = {**KEEPS_SCORES, **KEEPS_SCORES_UNSEEN}[edit]

    assert not is_scored_again(shop, *change, run_id=f"kept-{named(edit)}")
