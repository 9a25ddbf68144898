"""How a run is stopped: by Ctrl-C or SIGTERM, or by a program that holds a handle. What is under way is finished and saved."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import NoReturn

__all__ = ["CURRENT_HANDLE", "RunHandle", "interrupt_on_termination", "stop_on_signals"]

# A terminal and a program that passes signals on may both send one for a single key press.
_ONE_PRESS_SECONDS = 0.2


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """While the block runs, the first SIGINT or SIGTERM calls `stop`; the next one raises KeyboardInterrupt, at once.

    Outside of the main thread, where Python takes no signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = 0.0

    def receive(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed and time.monotonic() - pressed > _ONE_PRESS_SECONDS:
            raise KeyboardInterrupt
        if not pressed:
            pressed = time.monotonic()
            stop()

    try:
        before = {
            number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM) if _is_free(number)
        }
    except ValueError:  # the main thread of an interpreter inside another one
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupt_on_termination() -> Iterator[None]:
    """For a command: SIGTERM means what Ctrl-C does, also before and after a run."""
    if threading.current_thread() is not threading.main_thread() or not _is_free(signal.SIGTERM):
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _is_free(number: signal.Signals) -> bool:
    """A program that has something of its own to do when it is terminated goes on doing that."""
    return number is signal.SIGINT or signal.getsignal(number) in (signal.SIG_DFL, _interrupt)


class RunHandle:
    """Stops a run from another thread, as Ctrl-C does; asked twice, the run does not wait for what is under way."""

    def __init__(self) -> None:
        self._stop: Callable[[bool], None] | None = None
        self._asked = 0

    def stop(self) -> None:
        self._asked += 1
        if self._stop is not None:
            self._stop(self._asked > 1)

    def attach(self, stop: Callable[[bool], None]) -> None:
        """`stop` is called with whether to stop at once; now, if that was asked for before the run began."""
        self._stop = stop
        if self._asked:
            stop(self._asked > 1)


# The handle of whoever has started a run in this context, so that others can stop it.
CURRENT_HANDLE: ContextVar[RunHandle | None] = ContextVar("themis_run_handle", default=None)
