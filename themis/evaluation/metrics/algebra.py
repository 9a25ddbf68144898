"""Asks a computer algebra system whether two expressions are equal, in child processes that can be stopped.

There are as many of them as processors, started when they are needed and kept; see `algebra_worker` for their side.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

from themis.evaluation.metrics.algebra_worker import READY, REFERENCES_READ
from themis.exceptions import MetricError


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
            [sys.executable, "-P", "-m", "themis.evaluation.metrics.algebra_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=_environment(),
            # The user's Ctrl-C is for us; what is in flight shall finish.
            start_new_session=True,
        )
        if self._read() != READY:
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
            if self._read() != REFERENCES_READ:
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
