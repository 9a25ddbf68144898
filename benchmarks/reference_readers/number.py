"""Readers of numbers: ours, and the expressions that other projects take them out with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from themis.evaluation.metrics.numeric import stated_number

Reader = Callable[[Mapping[str, object]], str | None]


def read(line: Mapping[str, object]) -> str | None:
    """What the metric `numeric` reads."""
    number = stated_number(line["reply"])
    return None if number is None else str(number)


def matching(pattern: str, *, select: int, after: str = "") -> Reader:
    """A reader of one match of a pattern.

    Args:
        pattern: Its first group that took part is the answer, as with lm-eval's filter `regex`.
        select: Which match: 0 is the first, -1 the last.
        after: Only what follows the last mention of this is searched; without a mention there is no answer.
    """
    compiled = re.compile(pattern)

    def reader(line: Mapping[str, object]) -> str | None:
        _, mention, reply = str(line["reply"]).rpartition(after) if after else ("", "-", str(line["reply"]))
        found = [next(filter(None, match.groups()), "") for match in compiled.finditer(reply)]
        return _plain(found[select]) if found and mention else None

    return reader


def _plain(answer: str) -> str:
    """Without what lm-eval's `exact_match` leaves out of GSM8K's answers: commas, dollars and a full stop at the end."""
    return re.sub(r"[,$\s]|\.$", "", answer)


def first_that_finds(*readers: Reader) -> Reader:
    """What the first of several readers finds that finds anything."""

    def reader(line: Mapping[str, object]) -> str | None:
        return next((found for one in readers if (found := one(line)) is not None), None)

    return reader


_NUMBER = r"(-?\d[\d,]*(?:\.\d+)?)"
_last_number = matching(_NUMBER, select=-1)

READERS: dict[str, Reader] = {
    "themis": read,
    "lm-eval, gsm8k strict-match": matching(r"#### (\-?[0-9\.\,]+)", select=0),
    "lm-eval, gsm8k flexible-extract": matching(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", select=-1),
    "lm-eval, minerva_math": matching(r"Final Answer: The final answer is(.*?). I hope it is correct.", select=0),
    "simple-evals, mgsm": matching(r"(\d[\d,]*\.?\d*)", select=-1, after="Answer"),
    "MetaMath, The answer is:": matching(r"([\-+]?\d*[.,/]?\d+)", select=0, after="The answer is: "),
    "box, the answer is, last number": first_that_finds(
        matching(r"\\boxed\{([^{}]*)\}", select=-1),
        matching(rf"(?i)(?:answer is|answer:|####)[\s*:$]*{_NUMBER}", select=-1),
        _last_number,
    ),
    "last number": _last_number,
}
