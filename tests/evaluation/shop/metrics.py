# ruff: noqa: I001, RUF012, TID252 -- as users write
"""Metrics of the shop."""

import datetime
import decimal
import functools
import pathlib
import re
import types
from dataclasses import dataclass, field

import numpy as np

from themis.core.entities import MetricScore
from themis.evaluation.metrics import ExactMatch
from themis.interfaces import Metric

from . import helpers, settings
from .helpers import normalise

# How close is close enough.
LIMIT = 0.25
CONFIG = {"floor": 0.1, "ceiling": 0.9}
RULES = {"first": "a", "second": "b"}
WORDS = {"yes", "no"}
SINCE = datetime.date(2026, 1, 1)
PRICE = decimal.Decimal("1.50")
ROOT = pathlib.PurePosixPath("data/words.txt")
TABLE = np.array([1.0, 2.0, 3.0])
PAYLOAD = b"abc"
NESTED = {"levels": [{"min": 1}, {"min": 2}]}
PLACE = types.SimpleNamespace(limit=0.5)
COUNT = 0
CACHE = {"limit": 0.5}
SEEN = []


@dataclass(frozen=True)
class Policy:
    tolerance: float = 0.01
    tags: tuple = ("a",)

    def allows(self, difference):
        return difference <= self.tolerance


POLICY = Policy(tolerance=0.02)


def unrelated():
    """Nobody calls it."""
    return 1


def score(value):
    return float(bool(value))


class Base(Metric):
    name = "shop"

    def compute(self, *, prediction, references, metadata=None):
        return MetricScore(self.name, score(self.judge(str(prediction), str(references[0]))))

    def judge(self, prediction, reference):
        raise NotImplementedError


class Global(Base):
    def judge(self, prediction, reference):
        """Within the limit."""
        # Closer than the limit.
        return len(prediction) * LIMIT > 0


class Config(Base):
    def judge(self, prediction, reference):
        return CONFIG["floor"] < 1


class Rules(Base):
    def judge(self, prediction, reference):
        return [value for name, value in RULES.items()] and WORDS


class Values(Base):
    def judge(self, prediction, reference):
        return (SINCE, PRICE, ROOT, TABLE, PAYLOAD, NESTED, PLACE.limit, POLICY.allows(0))


class Helped(Base):
    def judge(self, prediction, reference):
        return normalise(prediction) == normalise(reference)


class Dotted(Base):
    def judge(self, prediction, reference):
        return helpers.weigh("exact") > settings.THRESHOLD and settings.MODE


class Late(Base):
    def judge(self, prediction, reference):
        from shop.late import tolerance
        import shop.deep.inner as inner

        return tolerance() + inner.DEPTH


class Attribute(Base):
    limit = LIMIT * 2
    pattern = re.compile("a+")

    def judge(self, prediction, reference):
        return self.limit and self.pattern.search(prediction)


class Counting(Base):
    calls = 0
    seen = {}

    def judge(self, prediction, reference):
        global COUNT
        COUNT += 1
        CACHE[prediction] = reference
        SEEN.append(prediction)
        self.seen[prediction] = True
        type(self).calls += 1
        return CACHE["limit"]


class Given(Base):
    def __init__(self, limit):
        self._limit = limit
        self._client = object()
        self._cache = {}

    def judge(self, prediction, reference):
        self._cache[prediction] = self._limit
        return self._limit


class Spelled(Base):
    def judge(self, prediction, reference, *, scale=LIMIT + 1, step=2):
        return scale * step


class Built(ExactMatch):
    def compute(self, *, prediction, references, metadata=None):
        return super().compute(prediction=prediction, references=references, metadata=metadata)


@functools.lru_cache(maxsize=16)
def cached(text):
    return len(text) > LIMIT


class Cached(Base):
    def judge(self, prediction, reference):
        return cached(prediction)


def at_least(limit):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return max(limit, function(*args, **kwargs))

        return wrapper

    return decorate


FLOOR = 0.0


class Decorated(Base):
    @at_least(FLOOR)
    def judge(self, prediction, reference):
        return 0.5

    @staticmethod
    def helper():
        return 1

    @property
    def size(self):
        return 2


def make_metric(limit=0.5):
    calls = 0

    def closure(prediction, reference):
        nonlocal calls
        calls += 1
        return prediction > str(limit)

    return closure


def compare(prediction, reference, tolerance):
    return abs(len(prediction) - len(reference)) <= tolerance


def plain(prediction, reference):
    return even(3) is not None and len(prediction) > CONFIG["floor"]


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


ways = [lambda p: p > LIMIT, lambda p: p > 2]


class Lambdas(Base):
    def judge(self, prediction, reference):
        return [way(1) for way in ways]


@dataclass
class Composed(Base):
    inner: Policy = field(default_factory=lambda: Policy(0.5))
    name: str = "composed"

    def judge(self, prediction, reference):
        return self.inner.allows(0.1)


def extract(text):
    return text.split(SEPARATOR)[0]


SEPARATOR = "|"
