"""How soon the next call may start: over a clock that the test turns, without waiting for anything."""

from __future__ import annotations

import multiprocessing
import random
import time
from pathlib import Path
from typing import Any

import pytest

from themis.generation.limits import LONGEST_WAIT_SECONDS, Limiter, RateLimit


def send(limiter: Limiter, *, seconds: float, tokens: int = 0, start: float = 1000.0) -> int:
    """How many calls of that size start within so many seconds if each starts as soon as it may."""
    now, sent = start, 0
    while True:
        wait = limiter.wait(now, tokens)
        if now + wait > start + seconds:
            return sent
        if wait > 1e-6:
            now += wait
            continue
        limiter.started(now, tokens)
        sent += 1


@pytest.mark.parametrize("per_minute", [60, 600, 6000])
def test_requests_of_a_minute_are_held_within_two_in_a_hundred(per_minute):
    limiter = Limiter(100, RateLimit(requests_per_minute=per_minute))

    assert per_minute <= send(limiter, seconds=60) <= per_minute * 1.02 + 1


@pytest.mark.parametrize("tokens", [10, 300, 5000])
def test_tokens_of_a_minute_are_held_whatever_the_size_of_a_call(tokens):
    limiter = Limiter(100, RateLimit(tokens_per_minute=30_000))

    used = tokens * send(limiter, seconds=600, tokens=tokens)

    # A call that is larger than a second's worth is let through when the bucket is full, and paid back after it.
    assert 300_000 - tokens <= used <= 300_000 * 1.02 + tokens


def test_calls_that_use_more_than_estimated_slow_the_next_ones_down_and_less_gives_back():
    rate = RateLimit(tokens_per_minute=60_000)
    more, less, exact = Limiter(10, rate), Limiter(10, rate), Limiter(10, rate)
    for limiter, used in ((more, 3_000), (less, 100), (exact, 1_000)):
        limiter.started(1000.0, 1_000)
        limiter.used(1000.0, used, estimated=1_000)

    waits = [limiter.wait(1000.0, 1_000) for limiter in (less, exact, more)]

    assert waits == pytest.approx([0.1, 1.0, 3.0])


def test_requests_and_tokens_are_both_held():
    limiter = Limiter(10, RateLimit(requests_per_minute=60, tokens_per_minute=60_000))

    assert send(limiter, seconds=60, tokens=10) <= 61
    assert send(limiter, seconds=60, tokens=6_000, start=5000.0) <= 11


def test_a_process_that_waits_is_credited_one_second_and_no_more():
    limiter = Limiter(10, RateLimit(requests_per_minute=600))
    send(limiter, seconds=10)

    burst = send(limiter, seconds=0, start=9000.0)

    assert burst == 10


def test_a_provider_is_waited_for_as_long_as_it_asks_up_to_the_longest_wait():
    limiter = Limiter(8)
    limiter.on_rate_limited(1000.0, 40)
    assert limiter.wait(1000.0) == pytest.approx(40)
    assert limiter.reason(1000.0) == "the provider asked for it"

    limiter.on_rate_limited(1000.0, 86_400)
    assert limiter.wait(1000.0) == pytest.approx(LONGEST_WAIT_SECONDS)

    limiter.on_quota_headers(1000.0, {"remaining_tokens": 0, "reset_seconds": 7_200})
    assert limiter.wait(1000.0) == pytest.approx(LONGEST_WAIT_SECONDS)


def test_being_told_to_slow_down_halves_the_calls_at_once_and_success_brings_them_back():
    limiter = Limiter(16)
    for _ in range(10):
        limiter.on_rate_limited(1000.0, None)  # ten answers to calls of one moment
    assert limiter.limit == 8

    for _ in range(200):
        limiter.on_success()
    assert limiter.limit == 16


def test_two_limiters_of_one_account_share_what_it_allows(tmp_path):
    rate = RateLimit(requests_per_minute=600, tokens_per_minute=60_000)
    one, other = (Limiter(10, rate, account="https://example.org#key", folder=tmp_path) for _ in range(2))

    now, sent = 1000.0, {one: 0, other: 0}
    while now < 1060.0:
        for limiter in random.sample((one, other), 2):
            if limiter.wait(now, 10) <= 1e-6:
                limiter.started(now, 10)
                sent[limiter] += 1
        now += 0.05

    assert 590 <= sum(sent.values()) <= 620
    assert min(sent.values()) > 200


def test_other_accounts_and_other_limits_are_not_held_up(tmp_path):
    rate = RateLimit(requests_per_minute=60)
    first = Limiter(10, rate, account="a", folder=tmp_path)
    send(first, seconds=0)
    assert first.wait(1000.0) > 0

    assert Limiter(10, rate, account="b", folder=tmp_path).wait(1000.0) == 0
    assert Limiter(10, rate).wait(1000.0) == 0


def _send_until(end: Any, folder: Path, ready: Any, count: Any) -> None:
    limiter, sent = Limiter(10, RateLimit(requests_per_minute=600), account="a", folder=folder), 0
    ready.wait()
    while (now := time.monotonic()) < end.value:
        if limiter.wait(now) <= 1e-6:
            limiter.started(now)
            sent += 1
        time.sleep(0.01)
    count.put(sent)


def test_processes_of_one_account_share_what_it_allows(tmp_path):
    context = multiprocessing.get_context("spawn")
    end, ready, count = context.Value("d", 0.0), context.Barrier(3), context.Queue()
    processes = [context.Process(target=_send_until, args=(end, tmp_path, ready, count)) for _ in range(2)]
    for process in processes:
        process.start()
    while ready.n_waiting < 2:
        time.sleep(0.01)
    end.value = time.monotonic() + 2
    ready.wait()
    sent = sum(count.get(timeout=300) for _ in processes)
    for process in processes:
        process.join()

    # Ten at once and ten a second; each by itself they would have made sixty.
    assert sent <= 40


def test_an_account_whose_file_was_of_another_start_of_the_machine_begins_full(tmp_path):
    rate = RateLimit(requests_per_minute=600)
    send(Limiter(10, rate, account="a", folder=tmp_path), seconds=0, start=9_000_000.0)

    assert Limiter(10, rate, account="a", folder=tmp_path).wait(5.0) == 0


def test_when_a_provider_asks_one_run_to_wait_all_runs_of_that_account_wait():
    first, second, other = Limiter(4, account="somebody"), Limiter(4, account="somebody"), Limiter(4, account="else")
    alone, own = Limiter(4), Limiter(4)

    first.on_rate_limited(10.0, retry_after_seconds=5.0)
    alone.on_rate_limited(10.0, retry_after_seconds=5.0)

    assert second.wait(11.0) == 4.0
    assert (other.wait(11.0), own.wait(11.0)) == (0.0, 0.0)
    assert Limiter(4, account="somebody").wait(16.0) == 0.0
