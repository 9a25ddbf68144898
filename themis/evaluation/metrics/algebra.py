"""Asks a computer algebra system whether two expressions are equal, in child processes that can be stopped.

A computer algebra system can be kept busy for ever by a short text, and a thread cannot be stopped; a process can. There
are as many of them as processors, started when they are needed and kept. A child runs this module: it reads one request a
line, `{"references": [...], "answer": ..., "seconds": ...}`, and answers with `_READY` once loaded, then for each request
with `_REFERENCES_READ` and a result, `{"equal": bool}` or `{"reason": ...}`.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from types import FrameType
from typing import Any, NoReturn

from themis.exceptions import MetricError

_READY = "ready"
_REFERENCES_READ = "references read"


def compare(references: list[str], answer: str, seconds: float) -> dict[str, object]:
    """`{"equal": bool}`, or `{"reason": ...}` where the answer was too much for the given processor time or memory."""
    with _POOL.free:
        worker = _POOL.take()
        try:
            reply = worker.compare(references, answer, seconds)
        except BaseException:
            worker.stop()
            raise
        if worker.is_alive():
            _POOL.idle.append(worker)
        return reply


class _Worker:
    """One child process."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- open as long as the process
        self._process = subprocess.Popen(
            # -P keeps the working directory, in which anything may lie, off the import path.
            [sys.executable, "-P", "-m", "themis.evaluation.metrics.algebra"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=_environment(),
            # The user's Ctrl-C is for us; what is in flight shall finish.
            start_new_session=True,
        )
        if self._read() != _READY:
            self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip().rpartition("\n")[2]
            self.stop()
            raise MetricError(f"the process that compares expressions did not start: {said}")

    def compare(self, references: list[str], answer: str, seconds: float) -> dict[str, object]:
        # Only for a machine that stands still: the worker counts its processor time itself.
        deadline = threading.Timer(60 + 20 * seconds, self._process.kill)
        deadline.daemon = True
        deadline.start()
        try:
            assert self._process.stdin is not None
            request = {"references": references, "answer": answer, "seconds": seconds}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            if self._read() != _REFERENCES_READ:
                raise MetricError(f"no reference of {references!r:.200} can be read within {seconds:g} seconds")
            reply = self._read()
        finally:
            deadline.cancel()
        if reply:
            return dict(json.loads(reply))
        status = self._process.wait()
        if -status in _STOPPED_BY_THE_ANSWER:
            return {"reason": f"the comparison took too much time or memory ({signal.Signals(-status).name})"}
        raise MetricError(f"the process that compares expressions ended with status {status}")

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            stream.close()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")


# Beyond its processor time, out of stack, or out of memory where the library could not say so.
_STOPPED_BY_THE_ANSWER = {getattr(signal, name, None) for name in ("SIGXCPU", "SIGSEGV", "SIGABRT")}
_KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT", "TMPDIR", "TEMP")


def _environment() -> dict[str, str]:
    """What an interpreter needs to start; the rest, keys among it, is none of a worker's business."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    # Without a seed, sympy's sets would be read in another order in each process.
    return {**kept, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}


class _Pool:
    """The workers that wait for work, and how many more may be at it."""

    def __init__(self) -> None:
        self.free = threading.BoundedSemaphore(os.cpu_count() or 1)
        self.idle: list[_Worker] = []

    def take(self) -> _Worker:
        while True:
            try:
                worker = self.idle.pop()
            except IndexError:
                return _Worker()
            if worker.is_alive():
                return worker
            worker.stop()


_POOL = _Pool()


def _stop_all() -> None:
    while _POOL.idle:
        _POOL.idle.pop().stop()


def _forget() -> None:
    """A forked process must not speak through its parent's pipes."""
    global _POOL
    _POOL = _Pool()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# --- in the child process -------------------------------------------------------------------------------------------

_MEMORY_BYTES = 2 << 30
# Long arithmetic does not notice the first limit; the second, which the kernel enforces, ends the process.
_SECONDS_UNTIL_KILLED = 1


def serve() -> None:
    """Answers requests until the parent goes away."""
    import math_verify

    _limit_memory()
    # Its warnings are about time limits that are set here instead.
    logging.disable(logging.CRITICAL)
    _say(_READY)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            _limit_seconds(request["seconds"])
            references = [_parse(math_verify, reference) for reference in request["references"]]
            _say(_REFERENCES_READ)
            answer = _parse(math_verify, request["answer"])
            # An inequality and the interval that it describes are the same answer, whichever of them the reference is.
            equal = any(
                math_verify.verify(reference, answer, allow_set_relation_comp=True, timeout_seconds=None)
                for reference in references
            )
            _limit_seconds(None)
            _say(json.dumps({"equal": equal}))
        except (_OutOfTime, MemoryError, RecursionError) as error:
            _limit_seconds(None)
            _say(json.dumps({"reason": str(error) or f"too large to compare: {type(error).__name__}"}))


class _OutOfTime(BaseException):
    """Not an `Exception`, which the library would take for an expression that it cannot read."""


def _parse(math_verify: Any, latex: str) -> Any:
    """By the LaTeX grammar alone: the library's reader of plain expressions goes through Python's `eval`."""
    return math_verify.parse(f"${latex}$", [math_verify.LatexExtractionConfig()], parsing_timeout=None)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on Windows, where only the parent's deadline holds
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_seconds(seconds: float | None) -> None:
    """Of processor time from now on, so that a busy machine does not change a score; None lifts the limit."""
    try:
        import resource
    except ImportError:
        return
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, seconds or 0)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    until = hard if seconds is None else int(time.process_time() + seconds + _SECONDS_UNTIL_KILLED + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (until, hard))


def _stop(signum: int, frame: FrameType | None) -> NoReturn:
    raise _OutOfTime("the comparison took too long")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve()
