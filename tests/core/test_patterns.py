"""Patterns are compiled when they are first used, and each of them can be."""

import importlib
import pickle
import pkgutil
import re
from dataclasses import dataclass

import themis
from themis.core.identity import describe_object
from themis.core.patterns import LazyPattern, lazy_pattern


@dataclass
class Reader:
    """Somebody's own."""

    pattern: re.Pattern[str]


def test_a_lazy_pattern_does_what_a_compiled_one_does():
    lazy, compiled = lazy_pattern(r"(\w)\1", re.IGNORECASE), re.compile(r"(\w)\1", re.IGNORECASE)
    text = "Aa b cC"

    assert lazy.sub("-", text) == compiled.sub("-", text) == "- b -"
    assert [found.span() for found in lazy.finditer(text)] == [found.span() for found in compiled.finditer(text)]
    assert (lazy.pattern, lazy.flags, lazy.groups) == (compiled.pattern, compiled.flags, compiled.groups)
    assert pickle.loads(pickle.dumps(lazy)).split(text) == compiled.split(text)
    assert repr(lazy) == repr(compiled)


def test_scores_are_known_by_the_pattern_however_it_is_kept():
    described = describe_object(Reader(lazy_pattern("a|b")))

    assert described == describe_object(Reader(re.compile("a|b")))
    assert described != describe_object(Reader(lazy_pattern("a|c")))
    assert "unknown" not in described


def test_every_lazy_pattern_can_be_compiled():
    compiled = 0
    for package in ("evaluation.extractors", "memory.scoring", "memory.tests"):
        path = importlib.import_module(f"themis.{package}").__path__
        for info in pkgutil.iter_modules(path, f"{themis.__name__}.{package}."):
            for value in vars(importlib.import_module(info.name)).values():
                for one in value if isinstance(value, tuple | list) else (value,):
                    if isinstance(one, LazyPattern):
                        one.compile()
                        compiled += 1
    assert compiled > 300
