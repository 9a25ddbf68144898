"""What the scheduler asks of the world, and what the world answers: the only words between the two.

Every command becomes a row of the tape. A command that has an answer is carried out once and never again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from themis.memory.actions import Grade, Moment

__all__ = [
    "Attend",
    "Begin",
    "Command",
    "End",
    "Extra",
    "Fill",
    "Hint",
    "Judge",
    "Jump",
    "Moved",
    "Outcome",
    "Pause",
    "Replied",
    "Ruled",
    "Said",
    "Send",
]


@dataclass(frozen=True, slots=True)
class Extra:
    """Something that a listening test hopes to find in the next reply, whoever it is a reply to."""

    text: str
    distance_tokens: int


@dataclass(frozen=True, slots=True)
class Hint:
    """What a perfect agent would reply, for calibration agents; the others never see it.

    `distance_tokens` is how far back in the conversation the oldest thing lies that the reply needs, 0 if it needs none.
    """

    answer: str | None = None
    distance_tokens: int = 0
    extras: tuple[Extra, ...] = ()


@dataclass(frozen=True, slots=True)
class Send:
    """Sends a message to the agent; `kind` is intro, say, ask or forget. Answer: `Replied`."""

    kind: str
    test_id: str | None
    text: str
    turn: int
    hint: Hint = field(default=Hint(), compare=False)

    @property
    def question(self) -> bool:
        return self.kind == "ask"


@dataclass(frozen=True, slots=True)
class Fill:
    """Sends filler number `number`, so many tokens with its expected reply, which is put into the agent's mouth if
    `canned`. Answer: `Replied`."""

    number: int
    tokens: int
    canned: bool
    turn: int
    hint: Hint = field(default=Hint(), compare=False)


@dataclass(frozen=True, slots=True)
class Replied:
    """An exchange took place: its texts, their tokens together, and how much virtual time it took."""

    message: str
    text: str
    tokens: int
    elapsed: timedelta


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks the judge. Answer: `Ruled`."""

    test_id: str
    prompt: str
    purpose: str


@dataclass(frozen=True, slots=True)
class Ruled:
    text: str
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Jump:
    """Lets time pass until a moment. Answer: `Moved`."""

    to: datetime


@dataclass(frozen=True, slots=True)
class Moved:
    now: datetime


@dataclass(frozen=True, slots=True)
class Begin:
    """A test begins, at this length of the conversation. No answer."""

    test_id: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Pause:
    """A test waits until both targets are reached. No answer."""

    test_id: str
    tokens: int
    time: datetime


@dataclass(frozen=True, slots=True)
class Attend:
    """A test starts to listen. No answer."""

    test_id: str


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a test and its reply, with the length of the conversation before the message."""

    text: str
    reply: str
    question: bool
    needle: bool
    turn: int
    now: datetime
    tokens_before: int
    needs: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a test: its verdict, where it lies in the conversation, what was said."""

    test_id: str
    grade: Grade
    began: Moment
    ended: Moment
    characters: int
    said: tuple[Said, ...]
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


@dataclass(frozen=True, slots=True)
class End:
    """A test has ended. No answer."""

    outcome: Outcome


Command = Send | Fill | Judge | Jump | Begin | Pause | Attend | End
