"""The child process of `algebra`: compares two LaTeX expressions within limits of time and memory.

A computer algebra system can be kept busy for ever by a short text, and a thread cannot be stopped; a process can. It
reads one request a line, `{"references": [...], "answer": ..., "seconds": ...}`, and answers with `READY` once
loaded, then for each request with `REFERENCES_READ` and a result, `{"equal": bool}` or `{"reason": ...}`.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from types import FrameType
from typing import Any, NoReturn

READY = "ready"
REFERENCES_READ = "references read"
_MEMORY_BYTES = 2 << 30
# Long arithmetic does not notice the first limit; the second, which the kernel enforces, ends the process.
_SECONDS_UNTIL_KILLED = 1


def serve() -> None:
    """Answers requests until the parent goes away."""
    import math_verify

    _limit_memory()
    # Its warnings are about time limits that are set here instead.
    logging.disable(logging.CRITICAL)
    _say(READY)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            _limit_seconds(request["seconds"])
            references = [_parse(math_verify, reference) for reference in request["references"]]
            _say(REFERENCES_READ)
            answer = _parse(math_verify, request["answer"])
            equal = any(_equal(math_verify, reference, answer) for reference in references)
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


def _equal(math_verify: Any, reference: Any, answer: Any) -> bool:
    # An inequality and the interval that it describes are the same answer, whichever of them the reference is.
    return bool(math_verify.verify(reference, answer, allow_set_relation_comp=True, timeout_seconds=None))


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
