"""The effective span: what is said of windows, fading and perfect memories, and how often the interval is right."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.memory.spans import EffectiveSpan, Point, SpanStatus, effective_span, group_by_distance

# Distances and kinds of a run of 32,000 tokens: hardly a kind is asked at two distances.
ONE_SPAN = [
    *[("ChapterBreak", 943), ("ChapterBreak", 960), ("ChapterBreak", 962)],
    *[("Colours", 9_600)] * 3,
    *[("Jokes", 21_889), ("Jokes", 22_250), ("Jokes", 29_212)],
    *[(kind, 28_800 + 20 * n) for kind in ("Shopping", "Names", "SallyAnne", "Spies", "Recital") for n in range(3)],
]
SPANS = (900, 3_600, 7_200, 14_400, 28_800)
KINDS = ("Colours", "Shopping", "Names", "Spies")
SEVERAL_SPANS = [(kind, distance + 10 * n) for distance in SPANS for kind in KINDS for n in range(3)]
POINTS = st.lists(
    st.builds(
        Point,
        st.sampled_from("abc"),
        st.integers(0, 50_000),
        st.sampled_from([0.0, 0.25, 0.5, 1.0]),
        st.just(""),
        st.just(1.0),
    ),
    min_size=1,
    max_size=25,
)


def ask(places: Sequence[tuple[str, int]], score: Callable[[str, int], float]) -> EffectiveSpan:
    found = effective_span(Point(kind, distance, score(kind, distance)) for kind, distance in places)
    assert found is not None
    return found


def within(window: int) -> Callable[[str, int], float]:
    return lambda kind, distance: float(distance <= window)


@pytest.mark.parametrize("window", [2_000, 5_000, 8_000, 20_000])
def test_the_window_of_a_window_lies_in_the_interval(window: int) -> None:
    span = ask(SEVERAL_SPANS, within(window))

    assert span.status is SpanStatus.MEASURED
    assert span.high is not None
    assert span.low <= window <= span.high
    assert span.tokens == max(distance for _, distance in SEVERAL_SPANS if distance <= window)
    assert (span.near_score, span.interval in span.sentence) == (1.0, True)


def test_a_kind_that_is_hard_is_not_taken_for_forgetting() -> None:
    easy_near, hard_far = [("Easy", 900)] * 20, [("Hard", 28_800)] * 20
    span = ask(easy_near + hard_far, lambda kind, distance: float(kind == "Easy"))

    assert (span.status, span.tokens, span.high) == (SpanStatus.NOT_MEASURED, None, None)
    assert "themis memory sweep --spans 1800,7200,29000" in span.sentence


def test_hard_and_easy_kinds_together_show_where_memory_ends() -> None:
    span = ask(SEVERAL_SPANS, lambda kind, distance: (0.4 if kind in KINDS[:2] else 1.0) * (distance < 8_000))

    assert span.near_score == pytest.approx(0.7, abs=0.02)
    assert (span.status, span.tokens) == (SpanStatus.MEASURED, 7_220)


def test_a_run_at_one_span_cannot_tell_where_a_window_ends_and_says_so() -> None:
    span = ask(ONE_SPAN, within(20_000))

    assert span.status is SpanStatus.NOT_MEASURED
    assert span.sentence.startswith("not measured: no kind of test was asked both near and far")


@pytest.mark.parametrize("places", [ONE_SPAN, SEVERAL_SPANS])
def test_of_a_perfect_memory_no_end_is_seen(places: list[tuple[str, int]]) -> None:
    span = ask(places, lambda kind, distance: 1.0)

    assert (span.status, span.low, span.high) == (SpanStatus.NO_END_SEEN, 28_800, None)
    assert span.tokens == span.longest_tokens
    assert span.sentence.startswith("at least 28,800 tokens, no end seen (tested 9")


def test_no_end_is_seen_among_tests_a_few_tokens_apart() -> None:
    chance = random.Random(3)
    span = ask(ONE_SPAN, lambda kind, distance: float(chance.random() < 0.6))

    assert (span.status, span.high) == (SpanStatus.NOT_MEASURED, None)


def test_who_remembers_nothing_has_a_span_of_nothing() -> None:
    span = ask(ONE_SPAN, lambda kind, distance: 0.0)

    assert (span.status, span.tokens) == (SpanStatus.NOTHING_REMEMBERED, 0)
    assert span.sentence == "0 tokens: nothing was remembered at any distance tested (943 to 29,212 tokens)"


def test_conversations_that_differ_widen_the_interval() -> None:
    def asked(told_apart: bool) -> EffectiveSpan:
        # One conversation of three forgets at once, and far away one of them knows a kind by heart.
        found = effective_span(
            Point(kind, distance, float(_knows(kind, distance, talk)), talk if told_apart else None)
            for talk in range(3)
            for kind, distance in SEVERAL_SPANS
        )
        assert found is not None
        return found

    together, apart = asked(False), asked(True)

    assert (together.low, together.high) == (3_600, 14_420)
    assert (apart.low, apart.high) == (0, None)


def _knows(kind: str, distance: int, talk: int) -> bool:
    return talk != 0 or distance < 1_000 if distance < 10_000 else (talk, kind) == (2, "Names")


def test_without_points_there_is_no_span() -> None:
    assert effective_span([]) is None


@settings(max_examples=40, deadline=None)
@given(POINTS)
def test_a_span_lies_in_its_interval_and_does_not_depend_on_the_order_of_tests(points: list[Point]) -> None:
    span = effective_span(points)

    assert span is not None
    assert span == effective_span(points[::-1])
    assert span.low <= (span.tokens if span.tokens is not None else math.inf)
    assert span.high is None or (span.tokens or 0) <= span.high
    left = [share for _, share in span.curve]
    assert all(one >= other - 1e-9 for one, other in itertools.pairwise(left))


@settings(max_examples=40, deadline=None)
@given(POINTS)
def test_groups_hold_every_point_once_and_do_not_overlap(points: list[Point]) -> None:
    groups = group_by_distance(points)

    assert sorted(point for group in groups for point in group.points) == sorted(points)
    assert all(one.high < other.low for one, other in itertools.pairwise(groups))


def test_nearly_equal_distances_are_one_group() -> None:
    groups = group_by_distance(Point(kind, distance, 1.0) for kind, distance in ONE_SPAN)

    assert [(group.low, group.high, len(group.points)) for group in groups] == [
        (943, 962, 3),
        (9_600, 9_600, 3),
        (21_889, 22_250, 2),
        (28_800, 29_212, 16),
    ]


MEMORIES: dict[str, tuple[float, Callable[[int], float]]] = {
    "window": (20_000, lambda distance: float(distance <= 20_000)),
    "exponential": (10_000, lambda distance: 2 ** (-distance / 10_000)),
    "logistic": (14_000, lambda distance: 1 / (1 + math.exp((distance - 14_000) / 2_000))),
    "half beyond the longest": (40_000, lambda distance: 2 ** (-distance / 40_000)),
    "flat": (math.inf, lambda distance: 0.7),
}


@pytest.mark.parametrize("places", [ONE_SPAN, SEVERAL_SPANS], ids=["one span", "several spans"])
@pytest.mark.parametrize("memory", MEMORIES)
def test_the_interval_holds_the_true_span(memory: str, places: list[tuple[str, int]]) -> None:
    true_span, left = MEMORIES[memory]
    chance, held = random.Random(memory), 0
    for _ in range(60):
        near = dict(zip(sorted({kind for kind, _ in places}), itertools.cycle((0.95, 0.5))))
        span = ask(places, lambda kind, distance: float(chance.random() < near[kind] * left(distance)))  # noqa: B023
        held += span.low <= true_span and (span.high is None or true_span <= span.high)

    assert held >= 56
