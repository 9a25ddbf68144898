"""Virtual time as the agent meets it: jumped over, signalled, or really waited for.

jump    the process clock shows the virtual time while an agent of this process is called, and at no other moment
signal  nothing is patched: messages carry the virtual time, and jumps are announced to the agent
wait    virtual time is real time
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.memory.agents.agent import Agent

CLOCKS = ("jump", "signal", "wait")
_LONGEST_SLEEP_SECONDS = 60.0


@dataclass(frozen=True)
class Clock:
    """How virtual time reaches the agent.

    Args:
        mode: `jump` (the process clock shows it while the agent is called), `signal` (messages and announcements carry it) or
            `wait` (it is real time).
        pace: How much of it an exchange takes, unless time is real.

    Raises:
        ConfigurationError: There is no such mode.

    >>> Clock("signal").pace
    datetime.timedelta(seconds=10)
    """

    mode: str = "jump"
    pace: timedelta = timedelta(seconds=10)

    def __post_init__(self) -> None:
        if self.mode not in CLOCKS:
            raise ConfigurationError(
                f"unknown clock {self.mode!r}{nearest(self.mode, CLOCKS)}; one of {', '.join(CLOCKS)}"
            )

    @contextlib.contextmanager
    def show_to(self, agent: Agent, now: datetime) -> Iterator[None]:
        """While inside, an agent of this process that looks at the clock sees the virtual time, ticking.

        Args:
            agent: Whom to show it to.
            now: The virtual time.
        """
        if not self.moves_for(agent):
            yield
            return
        import time_machine

        with time_machine.travel(now, tick=True):
            yield

    def moves_for(self, agent: Agent) -> bool:
        """Whether the process's clock shows the virtual time while the agent is called.

        Args:
            agent: Who is called.
        """
        return self.mode == "jump" and agent.reads_clock

    def elapsed_since(self, now: datetime) -> timedelta:
        """How much virtual time has passed since the exchange began.

        Args:
            now: When it began, in virtual time.
        """
        return max(timedelta(0), datetime.now(UTC) - now) if self.mode == "wait" else self.pace

    def pass_until(self, moment: datetime, agent: Agent) -> datetime:
        """Lets time pass for the agent until a moment; returns when that is, or a little later in real time.

        Args:
            moment: In virtual time.
            agent: Who is told of it.
        """
        if self.mode == "wait":
            while (left := (moment - datetime.now(UTC)).total_seconds()) > 0:
                time.sleep(min(left, _LONGEST_SLEEP_SECONDS))
            return max(moment, datetime.now(UTC))
        agent.time_passes(moment)
        return moment
