"""Readers of code: ours, and the rules by which other projects take code out of a reply."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.evaluation.replies import Line, Reader
from themis.evaluation.extractors import CodeBlockExtractor, FieldExtractionError


def read(line: Line) -> str | None:
    """What our extractor finds."""
    try:
        return CodeBlockExtractor(line.get("language")).extract(line["reply"])
    except FieldExtractionError:
        return None


def read_python_fence(line: Line) -> str | None:
    """The first block fenced as python, else the whole reply: simple-evals on HumanEval."""
    found = re.search(r"```python\n(.*?)```", line["reply"], re.DOTALL)
    return (found[1] if found else line["reply"]) or None


def read_until_fence(line: Line) -> str | None:
    """Everything before the first fence: lm-eval's humaneval_instruct, whose prompt has opened one."""
    reply = re.sub(r"\A\s*```\w*\n", "", line["reply"])
    return reply.partition("```")[0] or None


def read_first_fence(line: Line) -> str | None:
    """The first block, whatever its language: lm-eval's mbpp_instruct."""
    found = re.search(r"```(?:\w+)?\n?(.*?)\n?```", line["reply"], re.DOTALL)
    return (found[1] or None) if found else None


def among_fences(select: Callable[[list[str]], str]) -> Reader:
    """One of the fenced blocks, as many projects take the last or the longest."""

    def reader(line: Line) -> str | None:
        found = re.findall(r"```[^\n]*\n(.*?)```", line["reply"], re.DOTALL)
        return (select(found) or None) if found else None

    return reader


READERS: dict[str, Reader] = {
    "themis": read,
    "simple-evals, humaneval": read_python_fence,
    "lm-eval, humaneval_instruct": read_until_fence,
    "lm-eval, mbpp_instruct": read_first_fence,
    "last fence": among_fences(lambda found: found[-1]),
    "longest fence": among_fences(lambda found: max(found, key=len)),
}
