# ruff: noqa: RUF012, TID252 -- as users write
"""More ways in which users write metrics."""

import asyncio
import contextlib
import fractions
import logging
import threading
import time
from collections import defaultdict, namedtuple
from functools import cached_property, partial, singledispatch

import pandas as pd

from . import settings
from .metrics import POLICY, Base
from .mixins import Rounded
from .settings import *  # noqa: F403

logger = logging.getLogger(__name__)
LOCK = threading.Lock()
Span = namedtuple("Span", "low high")
SPAN = Span(0, 1)
SERIES = pd.Series([1, 2, 3], index=["a", "b", "c"])
SHARE = fractions.Fraction(1, 3)
EVERY = range(0, 10, 2)
FALLBACK = defaultdict(lambda: 1)
MEMO = {}
PROMPT = (
    "You read an answer and say whether it is right. Be strict with numbers, lenient with words, and never be moved by "
    "politeness, length or confidence; where the answer has no number at all it is wrong, whatever it says besides. "
    "Say yes or no."
)


class Options:
    scale = 2
    nested = {"deep": {"limit": 1}}

    @classmethod
    def limit(cls):
        return cls.nested["deep"]["limit"] * cls.scale


class Checker:
    def __init__(self, least):
        self.least = least

    def __call__(self, text):
        return len(text) >= self.least


CHECK = Checker(1)
allowed = POLICY.allows
shift = partial(max, 3)


def rule_of_words(text):
    return text.isalpha()


def rule_of_numbers(text):
    return text.isdigit()


DISPATCH = {"words": rule_of_words, "numbers": rule_of_numbers}


@singledispatch
def size(value):
    return 0


@size.register
def _(value: str):
    return len(value)


@contextlib.contextmanager
def scoring(weight=1):
    yield weight * 2


async def ask(text):
    await asyncio.sleep(0)
    return text + "!"


def parts(text):
    yield from text.split(",")


class Many(Base):
    def judge(self, prediction, reference):
        return all(DISPATCH[name](prediction) or True for name in DISPATCH) and size(prediction) and CHECK(prediction)


class Asked(Base):
    def judge(self, prediction, reference):
        return asyncio.run(ask(prediction)) and list(parts(prediction)) and PROMPT


class Kept(Base):
    def judge(self, prediction, reference):
        with LOCK, scoring() as weight:
            logger.debug("scored %s", prediction)
            if prediction not in MEMO:
                MEMO[prediction] = weight
            return MEMO[prediction] + SPAN.high + len(SERIES) + SHARE + len(EVERY) + FALLBACK["x"]


class Dynamic(Base):
    def judge(self, prediction, reference):
        return getattr(settings, "THRESHOLD") + Options.limit() + allowed(0) + shift(2)  # noqa: B009


class Starred(Base):
    def judge(self, prediction, reference):
        return sum(weight for weight in WEIGHTS.values() if weight > THRESHOLD)  # noqa: F405


class Mixed(Rounded, Base):
    """Rounds."""

    def __init__(self):
        self._started = time.time()
        self.levels = {"low": 1, "high": 2}

    @cached_property
    def most(self):
        return max(self.levels.values())

    def judge(self, prediction, reference):
        return self.rounded(self.most) + min(self.levels)[0].count("l")


class Scaled:
    def __init_subclass__(cls, scale=1, **others):
        super().__init_subclass__(**others)
        cls.scale = scale


class Keyworded(Scaled, Base, scale=3):
    if settings.THRESHOLD > 0:

        def judge(self, prediction, reference):
            return self.scale + (lambda value, most=settings.THRESHOLD: value * most)(2)


def replacement(self, prediction, reference):
    return settings.UNRELATED


class Patched(Base):
    pass


Patched.judge = replacement

if __name__ == "__main__":
    print(Many())
