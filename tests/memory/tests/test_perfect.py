"""Whoever hears everything and forgets nothing scores 1.0: what every kind of test asks follows from what was said."""

from __future__ import annotations

import random

import pytest

from themis.config.schema import MemoryConfig, MemoryTestConfig
from themis.memory.agents import create_agent
from themis.memory.definitions import Defined, conflicts_of, generate
from themis.memory.examples import MEMORY_TESTS, find_kinds
from themis.memory.filler import create_filler
from themis.memory.rehearsal import rehearse

READABLE = [
    name for name in sorted(find_kinds("themis.memory.tests")) if MEMORY_TESTS.get(name).make_reader() is not None
]
SPAN = 12_000


def define(seed: int, kinds: list[str], examples: int = 3) -> list[Defined]:
    tests = [MemoryTestConfig(name=name, examples=examples, arguments={"memory_span": SPAN}) for name in kinds]
    return generate(MemoryConfig(run_name="readable", tests=tests, seed=seed))


def play(defined: list[Defined], seed: int, **options: int) -> dict[str, float]:
    outcomes = rehearse(
        create_agent("perfect"), defined, conflicts_of(defined, ()), create_filler("facts", seed=seed), **options
    )
    return {test: outcome.grade.score for test, outcome in outcomes.items()}


@pytest.mark.parametrize("seed", range(3))
def test_all_kinds_together_with_several_examples_each_are_answered_rightly(seed):
    assert {test: score for test, score in play(define(seed, READABLE), seed).items() if score != 1.0} == {}


@pytest.mark.parametrize("kind", READABLE)
def test_a_kind_alone_is_answered_rightly_for_any_seed(kind):
    seeds = random.Random(kind).sample(range(1_000_000), 3)
    wrong = {
        (seed, test): score for seed in seeds for test, score in play(define(seed, [kind]), seed).items() if score != 1
    }
    assert wrong == {}
