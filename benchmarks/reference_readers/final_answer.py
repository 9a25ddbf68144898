"""Readers of final answers: ours, and the expressions that other projects take them out with."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.evaluation.replies import Line, Reader
from themis.evaluation.extractors import FieldExtractionError, FinalAnswerExtractor


def read(line: Line) -> str | None:
    """What our extractor finds."""
    try:
        return FinalAnswerExtractor().extract(line["reply"])
    except FieldExtractionError:
        return None


def first_match(pattern: str) -> Reader:
    """The first group of the first match, as lm-eval's `regex` filter takes it."""
    return _match(pattern, lambda found: found[0])


def last_match(pattern: str) -> Reader:
    """The first group of the last match: the same filter with `group_select: -1`."""
    return _match(pattern, lambda found: found[-1])


def _match(pattern: str, select: Callable[[list[str]], str]) -> Reader:
    compiled = re.compile(pattern)

    def reader(line: Line) -> str | None:
        found = [next(filter(None, match.groups()), "") for match in compiled.finditer(line["reply"])]
        return (select(found).strip() or None) if found else None

    return reader


def read_last_box(line: Line) -> str | None:
    r"""The last \boxed{...} with its braces counted, else \fbox: what MATH's graders take."""
    reply = line["reply"]
    start = max(reply.rfind("\\boxed{"), reply.rfind("\\fbox{"))
    if start < 0:
        return None
    start = reply.index("{", start) + 1
    depth = 1
    for place in range(start, len(reply)):
        depth += {"{": 1, "}": -1}.get(reply[place], 0)
        if not depth:
            return reply[start:place]
    return None


def read_last_line(line: Line) -> str | None:
    """The last line that is not blank."""
    return line["reply"].strip().rpartition("\n")[2] or None


READERS: dict[str, Reader] = {
    "themis": read,
    "simple-evals, Answer:": first_match(r"(?i)Answer\s*:\s*([^\n]+)"),
    "lm-eval, bbh": first_match(r"(?<=the answer is )(.*)(?=.)"),
    "lm-eval, the answer is": first_match(r"(?i)the answer is(?::)? ?([^\n]*?)(?:\.|$|\n)"),
    "lm-eval, minerva_math": first_match(r"Final Answer: The final answer is(.*?). I hope it is correct."),
    "lm-eval, gsm8k strict": first_match(r"#### (\-?[0-9\.\,]+)"),
    "lm-eval, gsm8k flexible": last_match(r"(-?[$0-9.,]{2,})|(-?[0-9]+)"),
    "last box": read_last_box,
    "last line": read_last_line,
}
