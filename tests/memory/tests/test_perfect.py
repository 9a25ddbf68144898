"""Whoever hears everything and forgets nothing scores 1.0: what every kind of test asks follows from what was said."""

from __future__ import annotations

import random

import pytest

from themis.config.schema import MemoryConfig, MemoryTestConfig
from themis.memory.actions import Message, Outcome
from themis.memory.agents import create_agent
from themis.memory.definitions import Defined, conflicts_of, generate
from themis.memory.examples import MEMORY_TESTS, find_kinds
from themis.memory.filler import create_filler
from themis.memory.rehearsal import rehearse

READABLE = [
    name for name in sorted(find_kinds("themis.memory.tests")) if MEMORY_TESTS.get(name).make_reader() is not None
]
SPAN = 12_000


def define(seed: int, kinds: list[str], examples: int = 3, span_tokens: int = SPAN) -> list[Defined]:
    tests = [MemoryTestConfig(name=name, examples=examples, arguments={"memory_span": span_tokens}) for name in kinds]
    return generate(MemoryConfig(run_name="readable", tests=tests, seed=seed))


def rehearse_all(defined: list[Defined], seed: int, deaf_until_turn: int = 0) -> dict[str, Outcome]:
    conflicts, filler = conflicts_of(defined, ()), create_filler("mixed", seed=seed)
    return rehearse(create_agent("perfect"), defined, conflicts, filler, deaf_until_turn=deaf_until_turn)


def play(defined: list[Defined], seed: int) -> dict[str, float]:
    return {test: outcome.grade.score for test, outcome in rehearse_all(defined, seed).items()}


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


@pytest.mark.parametrize("seed", range(2))
def test_whoever_missed_the_beginning_loses_only_what_it_told(seed):
    """A question all of whose needed messages were heard is answered as before, whatever was said before them."""
    defined = define(seed, READABLE, examples=1, span_tokens=3_000)
    turns = max(message.turn for outcome in rehearse_all(defined, seed).values() for message in outcome.said)
    heard = 0
    for cut in random.Random(f"cut {seed}").sample(range(1, turns), 4):
        for outcome in rehearse_all(defined, seed, deaf_until_turn=cut).values():
            for message, grade in zip(questions_of(outcome), outcome.grade.questions, strict=False):
                if heard_all(outcome, message, cut):
                    heard += 1
                    assert grade.score == 1, (outcome.test_id, cut, message.text, grade.reasons)
    assert heard > len(defined)


def questions_of(outcome: Outcome) -> list[Message]:
    """The questions of a test that has a verdict for each of them; none of one that judges replies to others."""
    asked = [message for message in outcome.said if message.question]
    return asked if len(asked) == len(outcome.grade.questions) else []


def heard_all(outcome: Outcome, message: Message, cut: int) -> bool:
    """Whether a question and all that its answer rests on came after a turn."""
    place = outcome.said.index(message)
    needed = range(place) if message.needs is None else message.needs
    return message.turn > cut and all(outcome.said[line].turn > cut for line in needed)
