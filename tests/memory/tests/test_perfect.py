"""Whoever hears everything and forgets nothing scores 1.0: what every kind of test asks follows from what was said."""

from __future__ import annotations

import random

import pytest

from themis.config.schema import MemoryConfig, MemoryTestConfig
from themis.memory.actions import Outcome
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


def listen(defined: list[Defined], seed: int, **options: int) -> dict[str, Outcome]:
    filler = create_filler("mixed", seed=seed)
    return rehearse(create_agent("perfect"), defined, conflicts_of(defined, ()), filler, **options)


def play(defined: list[Defined], seed: int, **options: int) -> dict[str, float]:
    return {test: outcome.grade.score for test, outcome in listen(defined, seed, **options).items()}


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


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_whoever_missed_the_beginning_loses_only_what_was_told_then(share):
    defined = define(5, READABLE, examples=2)
    turns = max(message.turn for outcome in listen(defined, 5).values() for message in outcome.said)
    cut = round(share * turns)
    lost, kept = [], 0
    for test, outcome in listen(defined, 5, deaf_until_turn=cut).items():
        asked = [(place, said) for place, said in enumerate(outcome.said) if said.question]
        for (place, question), grade in zip(asked, outcome.grade.questions, strict=False):
            needs = range(place) if question.needs is None else question.needs
            if all(turn > cut for turn in (question.turn, *(outcome.said[need].turn for need in needs))):
                kept += 1
                if grade.score != 1:
                    lost.append((test, question.text, question.reply))

    assert lost == []
    assert kept >= 10
