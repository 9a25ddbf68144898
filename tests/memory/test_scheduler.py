"""Who speaks when: laws of the schedule, over random sets of tests, without an agent."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.memory.small_tests import START
from themis.memory.actions import (
    AgentReply,
    Ask,
    Begin,
    Consult,
    End,
    Exchange,
    Fill,
    Grade,
    Instant,
    JudgeReply,
    Jump,
    Listen,
    Say,
    Step,
    Wait,
)
from themis.memory.lookahead import Planned, Stretch
from themis.memory.scheduler import Scheduler
from themis.memory.tape import ConversationLog

TURN = datetime.timedelta(seconds=10)


@dataclass
class Played:
    """A conversation with an agent whose every exchange has so many tokens."""

    steps: list[Step] = field(default_factory=list)
    ended: dict[str, Any] = field(default_factory=dict)
    most_running: list[set[str]] = field(default_factory=list)
    tokens: int = 0
    now: datetime.datetime = START

    def of(self, *kinds: type) -> list[Any]:
        """The actions of these kinds, in order."""
        return [step.action for step in self.steps if isinstance(step.action, kinds)]

    @property
    def exchanges(self) -> list[Step]:
        return [step for step in self.steps if isinstance(step.action, Exchange)]


def play(tests: list[Planned], *, exchange_tokens: int = 20, **settings: Any) -> Played:
    scheduler = Scheduler(tests, start=START, **settings)
    played, log = Played(), ConversationLog()
    steps = scheduler.play()
    answer: Any = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration:
            played.tokens, played.now = scheduler.tokens, scheduler.now
            return played
        assert len(played.steps) < 20_000, "the schedule does not end"
        played.steps.append(step)
        played.most_running.append(set(scheduler.running))
        answer = None
        match step.action:
            case Fill(tokens=tokens):
                answer = step.reply(f"reply {step.turn}", message="filler", tokens=tokens, elapsed=TURN, log=log)
            case Jump(until):
                answer = until
            case Consult():
                answer = JudgeReply("yes")
            case End(outcome):
                played.ended[outcome.test_id] = outcome
            case action if isinstance(action, Exchange):
                answer = step.reply(
                    f"reply {step.turn}", message=action.text, tokens=exchange_tokens, elapsed=TURN, log=log
                )


def planned(test_id: str, *actions: Any, kind: str | None = None, span: int = 1_000, reset: str = "") -> Planned:
    """A test of a fixed script, and of whose length nothing is known."""

    def script() -> Any:
        for action in actions:
            _ = yield action
        yield Grade(1.0)

    return Planned(test_id=test_id, kind=kind or test_id, play=script, span_tokens=span, reset_message=reset)


def estimated(test_id: str, *actions: Any, exchange_tokens: int = 20, **settings: Any) -> Planned:
    """A test of a fixed script whose length is known."""
    stretches: list[tuple[Wait, list[int]]] = [(Wait(), [])]
    for action in actions:
        if isinstance(action, Say | Ask):
            stretches[-1][1].append(exchange_tokens)
        elif action != Wait():
            stretches.append((action, []))
    test = planned(test_id, *actions, **settings)
    reset_tokens = exchange_tokens if test.reset_message else 0
    return replace(test, stretches=[Stretch(*one) for one in stretches], reset_tokens=reset_tokens)


waits = st.builds(
    Wait,
    tokens=st.integers(0, 300),
    time=st.one_of(st.none(), st.timedeltas(min_value=datetime.timedelta(0), max_value=datetime.timedelta(days=20))),
    share_of_span=st.sampled_from([0.0, 0.1, 0.5]),
    until_share=st.sampled_from([0.0, 0.3, 0.9]),
)
actions = st.one_of(
    st.builds(Say, st.just("say")),
    st.builds(Ask, st.just("ask")),
    waits,
    st.builds(Listen, patience=st.integers(0, 3)),
    st.just(Consult("fine?")),
)
KINDS = ["a", "b", "c", "d"]
sets_of_tests = st.lists(
    st.tuples(st.sampled_from(KINDS), st.lists(actions, max_size=6), st.sampled_from(["", "forget"])), max_size=8
)
conflicts = st.dictionaries(st.sampled_from(KINDS), st.lists(st.sampled_from(KINDS), max_size=3), max_size=4)


@given(sets_of_tests, conflicts, st.booleans())
def test_every_test_ends_once_and_interfering_ones_never_overlap(tests, conflicts, isolated):
    conflicts = {kind: {kind, *conflicts.get(kind, [])} for kind in KINDS}
    plan = [
        planned(f"{kind}{number}", *script, kind=kind, reset=reset)
        for number, (kind, script, reset) in enumerate(tests)
    ]

    played = play(plan, conflicts=conflicts, isolated=isolated, max_message_tokens=100)

    assert sorted(played.ended) == sorted(test.test_id for test in plan)
    failures = {reason for outcome in played.ended.values() if outcome.grade.failed for reason in outcome.grade.reasons}
    assert failures <= {"listened on after the conversation was over"}
    forbidden = {frozenset((one, other)) for one, others in conflicts.items() for other in others}
    for running in played.most_running:
        kinds = sorted(test_id[0] for test_id in running)
        pairs = [frozenset(pair) for i, one in enumerate(kinds) for pair in [(one, two) for two in kinds[i + 1 :]]]
        assert not forbidden & set(pairs)


@given(sets_of_tests)
def test_the_same_answers_give_the_same_steps(tests):
    plan = [planned(f"{kind}{number}", *script, kind=kind) for number, (kind, script, _) in enumerate(tests)]

    assert play(plan).steps == play(plan).steps


@given(st.lists(waits, min_size=1, max_size=4), st.lists(waits, max_size=4))
def test_no_wait_ends_before_all_its_conditions_hold(first, second):
    broken = []

    def patient(own: list[Wait]) -> Any:
        start = yield Wait()
        for wait in own:
            before: Instant = yield Wait()
            after: Instant = yield wait
            tokens = before.tokens + max(wait.tokens, int(1_000 * wait.share_of_span))
            if after.tokens < max(tokens, start.tokens + int(1_000 * wait.until_share)):
                broken.append("tokens")
            if after.now < before.now + (wait.time or datetime.timedelta(0)):
                broken.append("time")
        yield Grade(1.0)

    tests = [
        Planned(test_id=name, kind=name, play=lambda own=own: patient(own), span_tokens=1_000)
        for name, own in (("a", first), ("b", second))
    ]
    play(tests)

    assert broken == []


def test_a_due_test_comes_before_a_new_one_and_time_before_filler():
    tests = [
        planned("a", Say("a1"), Wait(tokens=20), Say("a2"), Wait(time=datetime.timedelta(days=9)), Say("a3")),
        planned("b", Say("b1"), Wait(tokens=1_000), Say("b2")),
        planned("c", Say("c1"), Wait(tokens=5_000), Say("c2")),
    ]

    played = play(tests, exchange_tokens=20)

    said = [step.action.text if isinstance(step.action, Say) else step.kind for step in played.steps]
    talk = [word for word in said if word not in ("begin", "wait", "end")]
    # a waits 20 tokens, which b's first message provides, so a2 comes before the new test c.
    assert talk[:4] == ["a1", "b1", "a2", "c1"]
    assert talk[4:6] == ["jump", "a3"]
    assert talk[6] == "fill"


def test_due_tests_go_by_token_target_then_time_then_name():
    tests = [
        planned("z", Wait(tokens=30), Say("z")),
        planned("b", Wait(tokens=40), Say("b")),
        planned("a", Wait(tokens=40), Say("a")),
        planned("q", Say("long"), Wait(tokens=0, time=datetime.timedelta(seconds=1)), Say("q")),
    ]

    played = play(tests, exchange_tokens=100)

    assert [action.text for action in played.of(Say)] == ["long", "z", "a", "b", "q"]


def test_filler_is_exactly_what_the_nearest_test_waits_for_in_even_messages():
    played = play([planned("a", Say("x"), Wait(tokens=1_000), Say("y"))], max_message_tokens=300)

    assert [filler.tokens for filler in played.of(Fill)] == [250, 250, 250, 250]
    assert all(filler.presupplied for filler in played.of(Fill))


def test_filler_is_answered_by_the_agent_itself_while_a_test_listens():
    played = play([planned("l", Say("x"), Listen(patience=2)), planned("w", Wait(tokens=50))])

    assert played.of(Fill)[0].presupplied is False


def test_a_listener_hears_each_reply_to_anyone_once():
    heard: list[tuple[int, str]] = []

    def listening() -> Any:
        yield Say("hello")
        while (reply := (yield Listen(patience=1))) is not None:
            heard.append((reply.turn, reply.message))
        yield Grade(1.0)

    tests = [
        Planned(test_id="l", kind="l", play=listening, span_tokens=100),
        planned("t", Say("one"), Say("two"), Wait(tokens=30), Say("three"), reset="bye"),
    ]
    played = play(tests)

    turns = [step.turn for step in played.exchanges]
    assert [turn for turn, _ in heard] == turns[1:]
    assert [message for _, message in heard] == ["one", "two", "filler", "three", "bye", "filler"]


def test_a_listener_whose_patience_is_over_is_told_so_and_may_not_listen_on():
    stubborn = planned("s", Say("x"), *[Listen(patience=2)] * 10)

    played = play([stubborn])

    assert len(played.of(Fill)) == 2
    assert played.ended["s"].grade.reasons == ("listened on after the conversation was over",)


def test_isolated_tests_wait_for_nothing_but_the_clock():
    played = play(
        [planned("a", Say("x"), Wait(tokens=9_000, time=datetime.timedelta(weeks=3)), Say("y"))], isolated=True
    )

    assert not played.of(Fill, Wait)
    assert played.now == START + datetime.timedelta(weeks=3) + 2 * TURN


def test_the_reset_message_comes_after_the_verdict_and_does_not_count_as_span():
    played = play([planned("a", Say("x"), Ask("y"), reset="forget it")], exchange_tokens=20)

    assert [step.kind for step in played.exchanges] == ["say", "ask", "forget"]
    assert played.ended["a"].tokens == 40


def test_a_script_that_raises_or_yields_nonsense_fails_alone():
    def raising() -> Any:
        heard: AgentReply = yield Say("x")
        raise RuntimeError(f"broken after {heard}")

    tests = [
        Planned(test_id="r", kind="r", play=raising, span_tokens=10),
        planned("n", "not an action"),
        planned("fine", Say("y")),
    ]
    played = play(tests)

    assert played.ended["r"].grade.reasons == ("the script raised RuntimeError: broken after reply 1",)
    assert played.ended["n"].grade.reasons == ("the script yielded str, expected an action",)
    assert played.ended["fine"].grade.score == 1.0


def test_a_test_that_has_no_script_at_all_fails_alone():
    def nothing() -> Any:
        raise NotImplementedError("no play method")

    played = play([Planned(test_id="n", kind="n", play=nothing, span_tokens=10), planned("fine", Say("y"))])

    assert played.ended["n"].grade.reasons == ("the script raised NotImplementedError: no play method",)
    assert played.ended["fine"].grade.score == 1.0


def test_a_script_without_a_grade_is_a_failure_and_not_a_zero():
    def silent() -> Any:
        yield Say("x")

    played = play([Planned(test_id="s", kind="s", play=silent, span_tokens=10)])

    assert played.ended["s"].grade.failed


def test_a_judge_whose_answer_cannot_be_read_is_a_failure_the_script_may_handle():
    rulings: list[Any] = []

    def asking() -> Any:
        rulings.append((yield Consult("how many?", parse=int)))
        yield Grade.failure(rulings[0].failure)

    played = play([Planned(test_id="j", kind="j", play=asking, span_tokens=10)])

    assert rulings[0].failed
    assert "cannot be read" in played.ended["j"].grade.reasons[0]


def test_what_is_expected_says_how_far_back_lies_what_is_needed():
    plan = [planned("a", Say("one"), Say("two"), Wait(tokens=100), Ask("all?", ideal="1 2"), Ask("last?", needs=[1]))]

    expected = [step.expected for step in play(plan, exchange_tokens=20).exchanges if step.kind == "ask"]

    assert [(one.answer, one.distance_tokens) for one in expected] == [("1 2", 140), (None, 140)]


# Scripts that fit into a span of 2,000 tokens with room to spare; waits of all sorts.
spread_waits = st.builds(
    Wait,
    tokens=st.integers(0, 100),
    time=st.sampled_from(
        [None, datetime.timedelta(seconds=5), datetime.timedelta(hours=3), datetime.timedelta(days=9)]
    ),
    until_share=st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
)
spread_scripts = st.lists(st.one_of(st.just(Say("say")), st.just(Ask("ask")), spread_waits), min_size=1, max_size=10)


@given(
    st.lists(st.tuples(spread_scripts, st.sampled_from([2_000, 5_000, 20_000]), st.booleans()), max_size=12),
    st.integers(10, 90),
    st.sampled_from([100, 4_096]),
)
def test_no_test_takes_longer_than_its_span_whatever_else_runs(tests, exchange_tokens, max_message_tokens):
    plan = [
        estimated(f"t{number}", *script, exchange_tokens=exchange_tokens, span=span, reset="bye" if resets else "")
        for number, (script, span, resets) in enumerate(tests)
    ]

    played = play(plan, exchange_tokens=exchange_tokens, max_message_tokens=max_message_tokens)

    assert [outcome.test_id for outcome in played.ended.values() if outcome.overran] == []


def test_a_test_that_waits_only_for_time_is_not_kept_waiting_by_new_ones():
    late = estimated("late", Say("x"), Wait(time=datetime.timedelta(days=1)), Ask("y"), span=300)
    others = [estimated(f"n{number}", *[Say("z")] * 5, span=1_000) for number in range(20)]

    played = play([late, *others])

    begun = [step.test_id for step in played.steps if isinstance(step.action, Begin | End)]
    assert begun.index("late", 1) > 1, "nobody ran beside it"
    assert played.ended["late"].tokens <= 300
    assert len(played.ended) == 21


def test_a_test_that_waits_for_time_goes_before_one_that_came_due_later():
    tests = [
        planned("early", Wait(tokens=10, time=datetime.timedelta(days=1)), Say("early")),
        planned("later", Wait(tokens=30), Say("later")),
        planned("talk", Say("talk"), Say("talk")),
    ]

    played = play(tests)

    assert [action.text for action in played.of(Say)][-2:] == ["early", "later"]


def test_a_wait_for_a_place_in_the_span_gives_way_to_what_has_still_to_be_said():
    long = estimated("a", Say("x"), Wait(until_share=0.9), *[Ask("y")] * 20, span=1_000)

    assert play([long]).ended["a"].tokens == 920
    assert play([long], exchange_tokens=10).ended["a"].tokens < 920


def test_an_agent_that_talks_more_than_estimated_gets_fewer_tests_at_once():
    def most_at_once(tokens: int) -> int:
        tests = [
            estimated(f"t{number}", Say("x"), Wait(until_share=0.4), Say("y"), Wait(until_share=0.8), Ask("z"))
            for number in range(40)
        ]
        return max(len(running) for running in play(tests, exchange_tokens=tokens).most_running)

    assert most_at_once(60) < most_at_once(20)


def test_a_test_larger_than_any_room_begins_when_nothing_else_runs():
    large = estimated("l", *[Say("x")] * 50, span=100)

    played = play([estimated("a", Say("y"), Wait(tokens=50), Ask("y")), large, estimated("z", Say("z"))])

    running = [running for running in played.most_running if "l" in running]
    assert running
    assert all(len(tests) == 1 for tests in running)


def test_the_longest_chain_of_tests_that_exclude_each_other_begins_first():
    def chain(kind: str, length: int) -> list[Planned]:
        actions = (Say("x"), Wait(until_share=0.9), Ask("y"))
        return [estimated(f"{kind}{number}", *actions, kind=kind) for number in range(length)]

    tests = [*chain("short", 1), *chain("a", 2), *chain("b", 2), *chain("long", 3)]
    played = play(tests, conflicts={"a": ["a", "b"], "b": ["b"], "long": ["long"]})

    begun = [step.test_id for step in played.steps if isinstance(step.action, Begin)]
    # a and b together are a chain of four.
    assert begun[:3] == ["a0", "long0", "short0"]
    assert played.tokens < 4 * 1_000


def test_a_thousand_tests_cost_a_step_each_and_begin_in_order():
    plan = [planned(f"t{number:04}", Say("x"), kind=f"k{number % 10}") for number in range(1_000)]

    played = play(plan, conflicts={f"k{n}": [f"k{n}"] for n in range(10)})

    assert [step.test_id for step in played.steps if isinstance(step.action, Begin)] == [test.test_id for test in plan]
