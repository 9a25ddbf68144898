"""The one vocabulary of a memory run: what is done in a conversation, and what comes back.

A script is a generator: it yields one of these actions and receives its answer. It must be pure: given the same answers
it yields the same actions, so that a stored conversation can be played through it again.

    Say(text)       -> AgentReply   tell the agent something
    Ask(text)       -> AgentReply   ask the agent something
    Wait(...)       -> Instant      let others talk, or time pass, before going on
    Listen()        -> AgentReply   the agent's next reply to anyone; None when the conversation is over
    Consult(prompt) -> JudgeReply   ask the judge; a reply without a value says why there is none
    Grade(score)    -> None         the verdict on this test; the last one counts

The scheduler puts the actions of all tests in one order and adds its own (Intro, Forget, Fill, Jump, Begin, End). Each of
them, with whose it is and when, is a `Step`; the tape stores every step as a row of the same name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, Self

from themis.exceptions import ConfigurationError

# --- what a test does -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Say:
    """Tells the agent something.

    Args:
        text: What is said.
        needle: Whether it must be remembered, as opposed to small talk.

    >>> Say("My shoe size is 43.")
    Say(text='My shoe size is 43.', needle=True)
    """

    text: str
    needle: bool = True


@dataclass(frozen=True, slots=True)
class Ask:
    """Asks the agent something; the answer counts as one of the test's responses.

    `ideal` and `needs` reach only calibration agents and reports, never the conversation.

    Args:
        text: The question.
        ideal: What an agent with perfect memory would reply.
        needs: Which of this test's earlier messages (counted from 0) hold what the reply needs: all of them when None, none
            when empty.

    >>> Ask("What is my shoe size?", ideal="43", needs=[0]).ideal
    '43'
    """

    text: str
    ideal: str | None = None
    needs: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Lets the conversation go on without this test until every given condition holds.

    `Wait()` returns at once and tells the time.

    Args:
        tokens: Of conversation, from now.
        time: Of virtual time, from now.
        share_of_span: The part (0 to 1) of the memory span that must pass from now.
        until_share: The part that must have passed since the test began.
        until_tokens: Tokens that must have passed since the test began.

    Raises:
        ConfigurationError: It would wait for less than nothing, or a share is not between 0 and 1.

    >>> Wait(share_of_span=0.5).in_tokens(2_000).tokens
    1000
    """

    tokens: int = 0
    time: timedelta | None = None
    share_of_span: float = 0.0
    until_share: float = 0.0
    until_tokens: int = 0

    def __post_init__(self) -> None:
        if min(self.tokens, self.until_tokens) < 0 or (self.time is not None and self.time < timedelta(0)):
            raise ConfigurationError(f"a test cannot wait for less than nothing: {self}")
        for share in (self.share_of_span, self.until_share):
            if not 0.0 <= share <= 1.0:
                raise ConfigurationError(f"a share of the span is between 0 and 1, got {share:g}")

    def in_tokens(self, span_tokens: int) -> Wait:
        """The same wait in whole tokens of a span. The one place where shares are rounded: a stored test must wait as long.

        Args:
            span_tokens: The memory span.
        """
        if not (self.share_of_span or self.until_share):
            return self
        return Wait(
            tokens=max(self.tokens, round(span_tokens * self.share_of_span)),
            time=self.time,
            until_tokens=max(self.until_tokens, round(span_tokens * self.until_share)),
        )


@dataclass(frozen=True, slots=True)
class Listen:
    """Receives the agent's next reply to anyone, each reply once.

    After the last of them a listener receives None, once, and should grade and return.

    Args:
        patience: When every other test has ended, so many small fillers are still sent for the sake of listeners.
        ideal: What the awaited reply should contain if the agent does everything right.
        needs: Which of this test's earlier messages it rests on, as of `Ask`.

    >>> Listen(patience=8).patience
    8
    """

    patience: int = 32
    ideal: str | None = None
    needs: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Consult:
    """Asks the judge a question.

    Args:
        prompt: The question.
        parse: Turns its answer into a value; a ValueError from it is a failure, not a zero.
        purpose: What it is for, in logs.

    >>> Consult("Is 'navy' a kind of blue? Reply yes or no.", parse=lambda text: text.lower() == "yes").parse("Yes")
    True
    """

    prompt: str
    parse: Callable[[str], object] = field(default=str, compare=False)
    purpose: str = ""


@dataclass(frozen=True, slots=True)
class Grade:
    """The verdict: a score from 0 to 1 with reasons a person can check, or a failure that is no score at all.

    Args:
        score: From 0 to 1; NaN of a failure.
        reasons: A sentence each.
        failed: There is no verdict, through no fault of the agent.
        questions: The verdict on each question, in the order in which they were asked, where the score is built from them.

    Raises:
        ConfigurationError: The score is not between 0 and 1.

    >>> Grade.when("43" in "It is 43.", "expected 43")
    Grade(score=1.0, reasons=('expected 43',), failed=False)
    >>> Grade.mean([Grade(1.0), Grade(0.5)]).score
    0.75
    """

    score: float
    reasons: tuple[str, ...] = ()
    failed: bool = False
    questions: tuple[Grade, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        reasons = (self.reasons,) if isinstance(self.reasons, str) else tuple(self.reasons)
        object.__setattr__(self, "reasons", reasons)
        if not self.failed and not (math.isfinite(self.score) and 0.0 <= self.score <= 1.0):
            raise ConfigurationError(f"a score lies between 0 and 1, got {self.score!r}")

    def __eq__(self, other: object) -> bool:
        """Two failures for the same reasons are the same, though no NaN equals another."""
        if not isinstance(other, Grade):
            return NotImplemented
        same_score = self.score == other.score or (math.isnan(self.score) and math.isnan(other.score))
        mine, others = (self.reasons, self.failed, self.questions), (other.reasons, other.failed, other.questions)
        return same_score and mine == others

    def __hash__(self) -> int:
        return hash((self.reasons, self.failed))

    @classmethod
    def when(cls, condition: bool, *reasons: str) -> Grade:
        """1 if the condition holds, 0 if not.

        Args:
            condition: What must hold.
            *reasons: A sentence each.
        """
        return cls(1.0 if condition else 0.0, reasons)

    @classmethod
    def share(cls, points: float, possible: float, *reasons: str) -> Grade:
        """Points out of those possible, kept within 0 and 1; 0 if none were possible.

        Args:
            points: Reached.
            possible: The most that could be reached.
            *reasons: A sentence each.
        """
        return cls(min(1.0, max(0.0, points / possible)) if possible > 0 else 0.0, reasons)

    @classmethod
    def mean(cls, grades: Iterable[Grade]) -> Grade:
        """The mean over the questions of a test, with all their reasons; a failure if any of them is one.

        Args:
            grades: The verdict on each question, in the order in which they were asked.
        """
        every = tuple(grades)
        failed = any(grade.failed for grade in every)
        mean = math.fsum(grade.score for grade in every) / len(every) if every else 0.0
        return cls.combine(math.nan if failed else mean, every)

    @classmethod
    def combine(cls, score: float, grades: Iterable[Grade]) -> Grade:
        """A score that is built from those of the questions in a way of its own; a failure if any of them is one.

        Args:
            score: Of the whole test, kept within 0 and 1.
            grades: The verdict on each question, in the order in which they were asked.
        """
        every = tuple(grades)
        reasons = tuple(reason for grade in every for reason in grade.reasons)
        if any(grade.failed for grade in every):
            return cls(math.nan, reasons, failed=True, questions=every)
        return cls(min(1.0, max(0.0, score)), reasons, questions=every)

    @classmethod
    def failure(cls, *reasons: str) -> Grade:
        """No verdict, through no fault of the agent: the judge was silent, the material broken.

        Args:
            *reasons: A sentence each.
        """
        return cls(math.nan, reasons, failed=True)


# What a test may yield.
Action = Say | Ask | Wait | Listen | Consult | Grade
# A test as a generator: it yields actions and receives what comes back.
Script = Generator[Action, Any, None]
# The part of a script that comes to a verdict by asking the judge, and any verdict.
Judgement = Generator[Action, Any, Grade]
Grading = Grade | Judgement


# --- what the scheduler adds ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Intro:
    """Opens the conversation."""

    text: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Tells the agent to forget a test that has ended."""

    text: str


@dataclass(frozen=True, slots=True)
class Fill:
    """Sends filler number `number`, so many tokens with its expected reply, which the agent does not make itself if
    `presupplied`."""

    number: int
    tokens: int
    presupplied: bool


@dataclass(frozen=True, slots=True)
class Jump:
    """Lets virtual time pass until a moment; the answer is the time that it is then."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Begin:
    """A test begins."""


@dataclass(frozen=True, slots=True)
class End:
    """A test has ended."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class ExpectedContent:
    """Something that a listening test expects to find in the next reply, whoever it is a reply to."""

    text: str
    distance_tokens: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What a perfect agent would reply, for calibration agents; the others never see it.

    `distance_tokens` is how far back in the conversation the oldest thing lies that the reply needs, 0 if it needs none.
    """

    answer: str | None = None
    distance_tokens: int = 0
    extras: tuple[ExpectedContent, ...] = ()


# What the agent replies to.
Exchange = Say | Ask | Intro | Forget | Fill


@dataclass(frozen=True, slots=True)
class Step:
    """One action in the conversation's order.

    Args:
        action: What is done.
        test_id: Whose it is; None for filler, introduction and jumps.
        at: Where the conversation stands.
        turn: Of an exchange, its number, counted from 1.
        until: Of a wait, where it ends.
        expected: Of an exchange, what a perfect agent would reply.
    """

    action: Exchange | Wait | Listen | Consult | Jump | Begin | End
    test_id: str | None
    at: Instant
    turn: int = 0
    until: Instant | None = None
    expected: Expected = field(default=Expected(), compare=False)

    @property
    def kind(self) -> str:
        """The name of its row on the tape."""
        return type(self.action).__name__.lower()

    def reply(self, text: str, *, message: str, tokens: int, elapsed: timedelta, log: Log) -> AgentReply:
        """The agent's reply to this exchange, of so many tokens with its message, after so much virtual time."""
        return AgentReply(
            text,
            turn=self.turn,
            now=self.at.now + elapsed,
            tokens=self.at.tokens + tokens,
            message=message,
            test_id=self.test_id,
            log=log,
        )


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a test with its reply. `needs` are the test's earlier messages that the reply needs; None: all."""

    turn: int
    text: str
    reply: str
    question: bool
    needle: bool
    # Length of the conversation before the message.
    tokens_before: int
    now: datetime | None = None
    needs: tuple[int, ...] | None = None

    def to_stored(self) -> dict[str, object]:
        """As it lies in the record of its test."""
        return {
            "turn": self.turn,
            "now": self.now,
            "tokens_before": self.tokens_before,
            "question": self.question,
            "needle": self.needle,
            "needs": self.needs,
            "message": self.text,
            "reply": self.reply,
        }

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> Message:
        """The opposite of `to_stored`, from JSON."""
        return cls(
            turn=int(stored.get("turn") or 0),
            text=stored["message"],
            reply=stored["reply"],
            question=stored["question"],
            needle=stored["needle"],
            tokens_before=int(stored["tokens_before"]),
            now=datetime.fromisoformat(stored["now"]) if stored.get("now") else None,
            needs=None if stored.get("needs") is None else tuple(stored["needs"]),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a test: its verdict, where it lies in the conversation, what was said."""

    test_id: str
    grade: Grade
    began: Instant
    ended: Instant
    characters: int
    said: tuple[Message, ...]
    span_tokens: int
    # For a test whose verdict rests on replies to others: the turn after which it heard everything.
    listened_from_turn: int | None = None

    @property
    def tokens(self) -> int:
        return self.ended.tokens - self.began.tokens

    @property
    def overran(self) -> bool:
        """Took longer than its span; a test that listens ends when others let it."""
        return self.listened_from_turn is None and self.tokens > self.span_tokens


# --- what comes back --------------------------------------------------------------------------------------------------


class AgentReply(str):
    """A reply of the agent: a text that also knows when it was said.

    Args:
        text: What it said.
        turn: Number of the exchange, counted from 1.
        now: Virtual time of the reply.
        tokens: Length of the conversation after it.
        message: What it is a reply to.
        test_id: Whose message that was; None for filler.
        log: The conversation so far.

    >>> reply = AgentReply("It is 43.", turn=2, now=None, tokens=31, message="My size?", test_id="Shoe Size - 0", log=[])
    >>> reply.upper(), reply.turn
    ('IT IS 43.', 2)
    """

    __slots__ = ("log", "message", "now", "test_id", "tokens", "turn")
    turn: int
    now: datetime
    tokens: int
    message: str
    test_id: str | None
    log: Log

    def __new__(
        cls, text: str, *, turn: int, now: datetime, tokens: int, message: str, test_id: str | None, log: Log
    ) -> Self:
        reply = super().__new__(cls, text)
        reply.turn, reply.now, reply.tokens = turn, now, tokens
        reply.message, reply.test_id, reply.log = message, test_id, log
        return reply


@dataclass(frozen=True, slots=True)
class Instant:
    """A place in the conversation.

    Args:
        now: Virtual time, in UTC.
        tokens: Length of the conversation so far.
    """

    now: datetime
    tokens: int


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """What the judge said, and what `Consult.parse` made of it.

    Args:
        text: What it said.
        failure: Why there is no value, where there is none.
        value: What `parse` returned.

    >>> JudgeReply(failure="the judge did not answer").failed
    True
    """

    text: str = ""
    failure: str | None = None
    value: Any = None

    @property
    def failed(self) -> bool:
        """Whether there is no value."""
        return self.failure is not None


@dataclass(frozen=True, slots=True)
class Line:
    """One exchange as callbacks see it.

    Args:
        turn: Its number, counted from 1.
        test_id: Whose message it was; None for filler.
        message: What was said to the agent.
        reply: What it said.
        now: Virtual time of the reply.
        question: Whether the message was a question.
    """

    turn: int
    test_id: str | None
    message: str
    reply: str
    now: datetime
    question: bool = False


class Log(Protocol):
    """The conversation so far, oldest exchange first: a view that reads as it is gone through, never a copy."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Line]: ...

    def after(self, turn: int) -> Iterator[Line]:
        """The exchanges that followed a turn.

        Args:
            turn: The number of an exchange.
        """


@dataclass(frozen=True, slots=True)
class FillerMessage:
    """A filler and the reply that is expected to it."""

    text: str
    reply: str


class Filler(Protocol):
    """Makes filler messages. `fingerprint` changes when any message would."""

    fingerprint: str

    def make(self, number: int, tokens: int) -> FillerMessage:
        """Message `number`, of so many tokens together with its expected reply."""
