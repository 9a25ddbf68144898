"""Asks a computer algebra system whether two expressions are equal, in child processes that can be stopped.

A computer algebra system can be kept busy for ever by a short text, and a thread cannot be stopped; a process can. There
are as many of them as processors, started when they are needed and kept. A child runs this module: it reads one request a
line, `{"references": [...], "answer": ..., "seconds": ...}`, and answers with `_READY` once loaded, then for each request
with `_REFERENCES_READ` and a result, `{"equal": bool}` or `{"reason": ...}`.
"""

from __future__ import annotations

import atexit
import copy
import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, NoReturn

from themis.exceptions import MetricError

if TYPE_CHECKING:
    import sympy

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
            references = [_Expression(math_verify, reference) for reference in request["references"]]
            _say(_REFERENCES_READ)
            answer = _Expression(math_verify, request["answer"])
            equal = any(reference.equals(answer) for reference in references)
            _limit_seconds(None)
            _say(json.dumps({"equal": equal}))
        except (_OutOfTime, MemoryError, RecursionError) as error:
            _limit_seconds(None)
            _say(json.dumps({"reason": str(error) or f"too large to compare: {type(error).__name__}"}))


class _OutOfTime(BaseException):
    """Not an `Exception`, which the library would take for an expression that it cannot read."""


class _Expression:
    """One side of a comparison, as the library reads it, and in pieces where it lists several answers."""

    def __init__(self, math_verify: ModuleType, latex: str) -> None:
        self._library = math_verify
        self._latex = latex
        self._parsed = self._parse(latex)
        if not any(not isinstance(one, str) for one in self._parsed) and "=" in latex:
            # Of a calculation that cannot be read, what it ends with.
            self._parsed = self._parse(latex.rpartition("=")[2]) or self._parsed

    def _parse(self, latex: str) -> list[sympy.Basic]:
        """By the LaTeX grammar alone: the library's reader of plain expressions goes through Python's `eval`."""
        # With blanks around a sign the library takes a product of letters for a unit, and leaves it out.
        latex = _BLANK_SIGNS.sub(r"\1", latex)
        config = [self._library.LatexExtractionConfig()]
        return list(self._library.parse(f"${latex}$", config, parsing_timeout=None))

    def equals(self, answer: _Expression) -> bool:
        if self._verify(answer):
            return True
        if _DECIMAL_COMMA.fullmatch(self._latex) or _DECIMAL_COMMA.fullmatch(answer._latex):
            return self._with_point()._verify(answer._with_point())
        if self._is_complex() or answer._is_complex():
            return self._with_imaginary_unit()._verify(answer._with_imaginary_unit())
        if _COLUMN.search(self._latex + answer._latex):
            return self._with_columns_as_tuples()._verify(answer._with_columns_as_tuples())
        sets = self._as_set(), answer._as_set()
        if sets[0] is not None and sets[1] is not None:
            return bool(sets[0] == sets[1])
        return self._lists_the_same(answer)

    def _verify(self, answer: _Expression) -> bool:
        # An inequality and the interval that it describes are the same answer, whichever of them the reference is.
        return bool(
            self._library.verify(self._parsed, answer._parsed, allow_set_relation_comp=True, timeout_seconds=None)
        )

    def _with_point(self) -> _Expression:
        """As a number, where a comma before its decimals made it look like two."""
        found = _DECIMAL_COMMA.fullmatch(self._latex)
        return _Expression(self._library, f"{found[1]}.{found[2]}") if found else self

    def _with_columns_as_tuples(self) -> _Expression:
        """A vector written as a column is the one with the same coordinates in a row."""
        rows = _COLUMN.sub(lambda found: "(" + ",".join(re.split(r"\\\\(?:\[[^\]]*\])?", found[1])) + ")", self._latex)
        return _Expression(self._library, rows)

    def _is_complex(self) -> bool:
        return (
            any(symbol.name == "i" for symbol in getattr(self._parsed[0], "free_symbols", ()))
            if self._parsed
            else False
        )

    def _with_imaginary_unit(self) -> _Expression:
        """The library takes i for a variable."""
        import sympy

        one = copy.copy(self)
        one._parsed = [
            expression.subs({symbol: sympy.I for symbol in expression.free_symbols if symbol.name == "i"}).doit()
            if hasattr(expression, "free_symbols")
            else expression
            for expression in self._parsed
        ]
        return one

    def _lists_the_same(self, answer: _Expression) -> bool:
        """Each of the answers once, in any order."""
        ours, theirs = self._pieces(), answer._pieces()
        if bool(_INDEX.search(self._latex)) != bool(_INDEX.search(answer._latex)):
            ours, theirs = (
                [_Expression(self._library, _INDEX.sub("", one._latex)) for one in side] for side in (ours, theirs)
            )
        if len(ours) == 1 and len(theirs) > 1 and _OR.search(answer._latex):
            return all(self._verify(one) for one in theirs)  # "3/10 or 30 %"
        if len(ours) != len(theirs) or len(ours) < 2:
            return False
        for piece in ours:
            same = next((other for other in theirs if piece._verify(other)), None)
            if same is None:
                return False
            theirs.remove(same)
        return True

    def _pieces(self) -> list[_Expression]:
        inside = _BRACES.fullmatch(self._latex)
        parts = split_list(inside[1] if inside else self._latex)
        if len(parts) == 1 and parts[0].count(r"\pm") == 1 and r"\mp" not in parts[0]:
            parts = [parts[0].replace(r"\pm", sign) for sign in "+-"]
        return [_Expression(self._library, part) for part in parts] if len(parts) > 1 else [self]

    def _as_set(self) -> sympy.Set | None:
        """The numbers that inequalities joined by "or" or "and" leave; None for what is no set of numbers."""
        if not _RELATION.search(self._latex) and not _INTERVAL.search(self._latex):
            return None
        try:
            pieces = self._pieces()
            sets = [one for piece in pieces if (one := _set_of(piece._parsed[0])) is not None]
        except Exception:  # boundary: the library's own classes raise what they like
            return None
        if len(sets) < len(pieces):
            return None
        together = sets[0]
        for one in sets[1:]:
            together = together.intersect(one) if _AND.search(self._latex) else together.union(one)
        return together


_BLANK_SIGNS = re.compile(r"(?<=[A-Za-z0-9)}]) *([-+]) *(?=[A-Za-z0-9(\\])")
_DECIMAL_COMMA = re.compile(r"(-?\d+),(\d+)")
_COLUMN = re.compile(r"\\begin\{[pbvB]?matrix\}([^&]*?)\\end\{[pbvB]?matrix\}", re.DOTALL)
_INDEX = re.compile(r"(?<=[A-Za-z])_\s?(?:\{\s?\d\s?\}|\d)(?=\s*=)")
_BRACES = re.compile(r"\s*\\\{(.*)\\\}\s*", re.DOTALL)
_OR = re.compile(r"\\text\s*\{\s*,?\s*or\s*\}")
_AND = re.compile(r"\\text\s*\{\s*,?\s*and\s*\}|\\land\b")
_RELATION = re.compile(r"[<>]|\\(?:le|ge|ne|neq|lt|gt)\b")
_INTERVAL = re.compile(r"\\cup|[(\[].*,.*[)\]]|\\mathbb")
_SEPARATOR = re.compile(r"\\text\s*\{\s*,?\s*(?:and|or)\s*,?\s*\}|\\l(?:or|and)\b|[,;]")


def split_list(latex: str) -> list[str]:
    """At the commas, "and" and "or" that stand in no bracket."""
    parts: list[str] = []
    depth = start = 0
    position = 0
    while position < len(latex):
        separator = _SEPARATOR.match(latex, position) if depth == 0 else None
        if separator:
            parts.append(latex[start : separator.start()])
            start = position = separator.end()
            continue
        depth += (latex[position] in "([{") - (latex[position] in ")]}")
        position += 1
    return [part.strip() for part in [*parts, latex[start:]] if part.strip(" \\")]


def _set_of(parsed: sympy.Basic) -> sympy.Set | None:
    import sympy

    if isinstance(parsed, sympy.Set):
        return parsed
    return parsed.as_set() if hasattr(parsed, "as_set") and len(parsed.free_symbols) == 1 else None


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
