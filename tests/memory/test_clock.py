"""Virtual time: shown to agents of this process while they are called, signalled to others, waited for if asked."""

from __future__ import annotations

import datetime
import time

import pytest

from tests.memory.small_tests import START, Diary, benchmark, rows_of, store_in
from themis.exceptions import ConfigurationError
from themis.memory.clock import Clock
from themis.memory.driver import run


class Watching(Diary):
    """Looks at the clock of its process whenever it is called."""

    name = "watching"

    def __init__(self, seen: list[datetime.datetime], told: list[datetime.datetime]) -> None:
        super().__init__()
        self.seen, self.told = seen, told

    def reply(self, message, *, turn, now, presupplied=None):
        self.seen.append(datetime.datetime.now(datetime.UTC))
        self.told.append(now)
        return super().reply(message, turn=turn, now=now, presupplied=presupplied)


def test_jumping_shows_the_virtual_time_to_the_agent_and_to_nobody_else(tmp_path):
    seen: list[datetime.datetime] = []
    told: list[datetime.datetime] = []
    before = time.time()

    run(benchmark({"appointments": 1}, make_agent=lambda session: Watching(seen, told)), store_in(tmp_path))

    assert all(abs((a - b).total_seconds()) < 5 for a, b in zip(seen, told, strict=True))
    assert seen[-1] - seen[0] > datetime.timedelta(hours=30)
    assert 0 <= time.time() - before < 600
    created = store_in(tmp_path).get_run("r").created_at
    assert abs(created.timestamp() - before) < 600


def test_signalling_leaves_the_clock_alone(tmp_path):
    seen: list[datetime.datetime] = []
    told: list[datetime.datetime] = []

    run(
        benchmark({"appointments": 1}, clock=Clock("signal"), make_agent=lambda session: Watching(seen, told)),
        store_in(tmp_path),
    )

    assert abs((seen[-1] - datetime.datetime.now(datetime.UTC)).total_seconds()) < 600
    assert told[-1] - told[0] > datetime.timedelta(hours=30)


def test_waiting_really_waits_until_the_moment_and_not_longer():
    clock = Clock("wait")
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(milliseconds=30)

    reached = clock.pass_until(moment, Diary())

    assert moment <= reached <= datetime.datetime.now(datetime.UTC)
    assert clock.pass_until(START - datetime.timedelta(days=9_000), Diary()) <= datetime.datetime.now(datetime.UTC)


def test_days_and_weeks_are_exact(tmp_path):
    from dataclasses import replace

    from themis.memory.actions import Wait

    small = benchmark({"appointments": 1}, make_agent=lambda session: Diary())
    weeks = datetime.timedelta(weeks=5, days=3, seconds=1)
    small.tests[0].waits[0] = Wait(time=weeks)
    run(replace(small), store_in(tmp_path))

    rows = rows_of(store_in(tmp_path))
    jump = next(row[3] for row in rows if row[1] == "jump")
    begun = next(row[3]["now"] for row in rows if row[1] == "wait")
    assert datetime.datetime.fromisoformat(jump["now"]) - datetime.datetime.fromisoformat(begun) == weeks


def test_an_unknown_clock_is_an_error_that_names_the_nearest():
    with pytest.raises(ConfigurationError, match="did you mean 'signal'"):
        Clock("signals")
