"""The contract of an agent: it is sent messages one by one and replies; everything else is optional.

A run that is taken up again tells the agent what it had already said and heard (`observe`), so that an agent that keeps its
memory in this process needs no files of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, TypeGuard

from themis.core.tokens import DEFAULT_TOKENIZER
from themis.exceptions import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """What every agent may need to know; a factory takes what it has parameters for."""

    max_prompt_tokens: int | None = None
    session: str = "session"
    tokenizer: str = DEFAULT_TOKENIZER
    # Its calls cost nothing, whatever the price list says.
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent said, and what it took.

    Args:
        text: What it said.
        cost_usd: None where the price is not known.
        prompt_tokens: Sent to models for it.
        completion_tokens: Received from them.
        calls: Of models.

    Raises:
        ConfigurationError: The cost is no sum of money, or something else no count: the run adds them up.
    """

    text: str
    cost_usd: float | None = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0

    def __post_init__(self) -> None:
        if self.cost_usd is not None and not is_cost(self.cost_usd):
            raise ConfigurationError(
                f"cost_usd of a Reply is a number of at least 0, or None where it is not known, not {self.cost_usd!r:.40}"
            )
        for name in ("prompt_tokens", "completion_tokens", "calls"):
            if not is_count(value := getattr(self, name)):
                raise ConfigurationError(f"{name} of a Reply is a whole number of at least 0, not {value!r:.40}")


def is_cost(value: object) -> TypeGuard[float]:
    """Whether it can be a sum of dollars that others are added to."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_USD


def is_count(value: object) -> TypeGuard[int]:
    """Whether it can be a number of tokens or calls that others are added to."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


_MOST_USD = 1e15


class Agent(ABC):
    """Something with a memory. `turn` numbers the exchanges from 1, `now` is the virtual time in UTC.

    >>> class Notebook(Agent):
    ...     def __init__(self):
    ...         self.notes = []
    ...     def reply(self, message, *, turn, now, presupplied=None):
    ...         self.notes.append(message)
    ...         return presupplied or f"noted, {len(self.notes)} so far"
    ...     def reset(self):
    ...         self.notes.clear()
    >>> Notebook().reply("My shoe size is 43.", turn=1, now=None)
    'noted, 1 so far'
    """

    # Its memory outlives this process, so a resumed run does not tell it again what it knows (see `last_turn`).
    remembers_elsewhere: ClassVar[bool] = False
    # Asked twice under one turn number it takes the second for the first; only matters if it remembers elsewhere.
    idempotent: ClassVar[bool] = False
    # What to do where a run has a budget and `most_cost_usd` does not know.
    how_to_bound_cost: ClassVar[str] = (
        "let its method most_cost_usd say the most that a reply may cost, or give -l if it costs nothing"
    )
    # Runs in this process and may look at its clock, which then shows the virtual time while it is called.
    reads_clock: ClassVar[bool] = True

    name: str = "agent"

    @abstractmethod
    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> Reply | str:
        """The reply to a message.

        Args:
            message: What is said to it.
            turn: Number of the exchange, counted from 1.
            now: The virtual time in UTC.
            presupplied: A reply to be taken as said, without generating anything.
        """

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        """An exchange of an earlier process, as if it had just taken place.

        Args:
            message: What was said to it.
            reply: What it said.
            turn: Number of the exchange.
            now: When that was, in virtual time.
        """
        self.reply(message, turn=turn, now=now, presupplied=reply)

    @abstractmethod
    def reset(self) -> None:
        """Forgets everything: another, unrelated conversation begins."""

    def last_turn(self) -> int:
        """For an agent that remembers elsewhere: the last turn it knows of, 0 if none."""
        return 0

    def time_passes(self, now: datetime) -> None:  # noqa: B027 - optional
        """Virtual time has jumped; for agents that cannot be shown it otherwise.

        Args:
            now: The virtual time it is now.
        """

    def snapshot(self) -> bytes | None:
        """Its whole memory, or None if it would rather be told again."""
        return None

    def restore(self, snapshot: bytes) -> None:
        """The opposite of `snapshot`.

        Args:
            snapshot: What it returned.
        """
        raise NotImplementedError(f"{type(self).__name__} makes snapshots but cannot restore them")

    def most_cost_usd(self, message: str) -> float | None:
        """The most that the reply to a message may cost, which a budget sets aside; None, not known, refuses a budget.

        Args:
            message: What is to be said to it.
        """
        return None

    def close(self) -> None:  # noqa: B027 - optional
        """Lets go of connections and processes."""
