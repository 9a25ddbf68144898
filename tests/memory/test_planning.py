"""What the shipped configurations cost: tokens, idle filler, and that every test keeps to its span."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import pytest

from themis.config.specification import MemorySpecification
from themis.core.tokens import tokenizer
from themis.memory.assembling import load_config
from themis.memory.definitions import Defined, conflicts_of, generate
from themis.memory.filler import create_filler
from themis.memory.planning import Bar, Plan, draw, make_plan, plan_test

SHIPPED = sorted((Path(__file__).parents[2] / "configurations").rglob("*.yml"))
# Tokens of the published conversations of the benchmark that these configurations follow.
PUBLISHED_TOKENS = {
    "benchmark-32k": 121_376,
    "benchmark-120k": 358_195,
    "benchmark-200k": 574_428,
    "benchmark-500k": 1_384_405,
}


@dataclass(frozen=True)
class Planned:
    plan: Plan
    tests: list[Defined]
    conflicts: dict[str, set[str]]


@functools.cache
def planned(path: Path, span_tokens: int | None = None) -> Planned:
    config = load_config(MemorySpecification(configuration=str(path), agent="", span_tokens=span_tokens))
    tests = generate(config)
    conflicts = conflicts_of(tests, config.incompatibilities)
    return Planned(
        make_plan(tests, conflicts, create_filler("facts"), tokenizer_name=config.tokenizer), tests, conflicts
    )


def longest_chain(made: Planned) -> float:
    """Tokens of the tests that have to run one after the other, each within its span."""
    lengths: dict[str, float] = {}
    for one in made.tests:
        lengths[one.kind] = lengths.get(one.kind, 0) + one.example.dataset.memory_span
    return max(sum(lengths.get(kind, 0) for kind in {kind, *others}) for kind, others in made.conflicts.items())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_configuration_costs_hardly_more_than_its_longest_chain_and_what_its_tests_say(path):
    made = planned(path)
    plan = made.plan

    assert plan.tokens <= PUBLISHED_TOKENS.get(path.stem, 10**9)
    assert plan.tokens <= longest_chain(made) + 1.5 * (plan.tokens - plan.filler_tokens)
    assert plan.idle_filler_share <= 0.1
    for half in (0, 1):
        places = [int(plan.tokens * (half + place / 100) / 2) for place in range(100)]
        assert sum(plan.count_running(place) >= 2 for place in places) >= 70


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_no_test_of_a_shipped_configuration_takes_longer_than_its_span(path):
    assert [bar.test_id for bar in planned(path).plan.bars if bar.overran] == []


@pytest.mark.parametrize("span_tokens", [4_000, 8_000, 16_000])
def test_nor_does_one_at_another_span(span_tokens):
    path = next(path for path in SHIPPED if path.stem == "benchmark-32k")

    assert [bar.test_id for bar in planned(path, span_tokens).plan.bars if bar.overran] == []


def test_a_test_is_estimated_as_a_perfect_agent_would_play_it():
    made = planned(next(path for path in SHIPPED if path.stem == "quick"))
    colours = next(one for one in made.tests if one.kind == "colours")

    stretches = plan_test(colours.example, "colours", tokenizer("cl100k_base")).stretches

    assert [len(stretch.tokens) for stretch in stretches] == [1] * len(colours.example.script)
    assert [stretch.wait.until_tokens for stretch in stretches] == [0, 600, 1_200, 1_800]


def test_the_chart_says_how_many_tests_run_at_once_and_repeats_its_scale_above_many_rows():
    bars = [Bar(f"t{number}", number * 10, number * 10 + 95, [number * 10]) for number in range(40)]
    rows = draw(Plan(bars=bars, tokens=500), width=50).splitlines()

    assert rows[0] == rows[-1] == f"tokens  0{'500':>49}"
    assert rows[1].startswith("t0      █─────────")
    assert rows[-2].startswith("running 123456789+++")
    assert len(rows) == 43
