"""Finds the arithmetic expression in what a model said about a Countdown puzzle.

Models wrap their answer in prose, Markdown, LaTeX or a worked check. Nothing is evaluated or compiled here: a line is
cut into tokens and read by a state machine, in time linear in the text, of which only the end is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors.exceptions import FieldExtractionError

# A puzzle of six numbers fits in 60 characters; what is longer or deeper than this is an attack or a loop.
MAX_EXPRESSION_CHARS = 1_000
MAX_DEPTH = 50
# The answer stands at the end of a text; this bounds the work on an endless one.
MAX_TEXT_CHARS = 20_000


@dataclass(frozen=True)
class CountdownExpressionExtractor:
    """The expression as ASCII arithmetic, such as `95 - (21 / 3)`; whether it is right is the metric's question.

    Args:
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> CountdownExpressionExtractor().extract("So **95 − 21 ÷ 3** = 88.")
    '95 - 21 / 3'
    """

    part: str = "text"

    def extract(self, raw_output: str) -> str:
        text = str(raw_output).strip()
        if not text:
            raise FieldExtractionError("empty_output")
        expression = find_expression(text)
        if expression is None:
            raise FieldExtractionError("no_parseable_expression")
        return expression


def find_expression(text: object) -> str | None:
    """The best candidate: in a box, after a label such as `Expression:`, else in the last line that has one."""
    passages = list(_passages(_tail(text)))
    for passage in passages:
        spans = _expressions(passage)
        if spans:
            # A worked line repeats parts of the answer ("(1 + 2) * 3 = 3 * 3 = 9"): the fullest expression is it.
            return max(reversed(spans), key=lambda span: span.numbers).text
    return next((passage for passage in map(_strip_line, passages) if _BARE_NUMBER.fullmatch(passage)), None)


def last_line_with_digits(text: object) -> str:
    """What to show and blame where there is no expression; empty if the text has no digits at all."""
    lines = [line for line in _to_ascii_arithmetic(_tail(text)).splitlines() if re.search("[0-9]", line)]
    return _strip_line(lines[-1]) if lines else ""


def _tail(text: object) -> str:
    tail = str(text)[-MAX_TEXT_CHARS:].strip()
    return tail.rpartition("</think>")[2].strip() or tail


def _passages(text: str) -> Iterator[str]:
    """Stretches of text in the order in which an answer is looked for."""
    box = _last_box(text)
    if box:
        yield _to_ascii_arithmetic(box)
    plain = _to_ascii_arithmetic(text)
    labels = list(_LABEL.finditer(plain))
    for label in sorted(labels, key=lambda label: (label["word"].lower() == "expression", label.start()), reverse=True):
        first_line = plain[label.end() :].lstrip().partition("\n")[0]
        if first_line:
            yield first_line
    yield from reversed(plain.splitlines())


_LABEL = lazy_pattern(r"\b(?P<word>expression|answer|solution|equation)\s*(?:is\s*)?:", re.IGNORECASE)


def _last_box(text: str) -> str | None:
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth = 0
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0 and text[position] == "}":
            return text[start + len("\\boxed{") : position]
    return None


_SYMBOLS = str.maketrans(
    {
        **dict.fromkeys("×⋅∙·✕✖", "*"),
        **dict.fromkeys("÷∕⁄", "/"),
        **dict.fromkeys("−–", "-"),
        **dict.fromkeys("\u00a0\u2009\u202f", " "),
        "[": "(",
        "]": ")",
    }
)


_POWER = "\ue000"  # stands for ** while bold is removed; a private character that no text has


def _to_ascii_arithmetic(text: str) -> str:
    """Mathematical typography, LaTeX and Markdown as the ASCII they stand for."""
    text = text.translate(_SYMBOLS)
    text = re.sub(r"\\(?:times|cdot)(?![a-zA-Z])", "*", text)
    text = re.sub(r"\\div(?![a-zA-Z])", "/", text)
    text = re.sub(r"\\(?:left|right|displaystyle)(?![a-zA-Z])|\\[,;!() ]|\$", " ", text)
    for _ in range(MAX_DEPTH):
        text, replaced = re.subn(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", text)
        if not replaced:
            break
    # Two asterisks are a power only between operands with the same space on both sides; else they make text bold.
    text = re.sub(r"(?<=[0-9)])(\s?)\*\*\1(?=[0-9(])", rf"\1{_POWER}\1", text).replace("**", "").replace(_POWER, "**")
    text = re.sub(r"(?<=[0-9)])(\s*)[xX](\s*)(?=[0-9(])", r"\1*\2", text)
    return text.replace("`", "")


def _strip_line(line: str) -> str:
    return line.strip().rstrip(".").strip()


_BARE_NUMBER = lazy_pattern(rf"[0-9]{{1,{MAX_EXPRESSION_CHARS}}}")
_TOKEN = lazy_pattern(
    r"(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<operator>\*\*|//|[-+*/])|(?P<open>\()|(?P<close>\))"
    r"|(?P<word>[^\W\d]\w*)|(?P<other>\S)"
)


@dataclass(frozen=True)
class _Span:
    text: str
    numbers: int


def _expressions(line: str) -> list[_Span]:
    """Every maximal well-formed expression of at least two numbers that is not a piece of something else."""
    tokens = list(_TOKEN.finditer(line))
    found: list[_Span] = []
    index = 0
    while index < len(tokens):
        end, numbers = _longest_from(tokens, index)
        text = line[tokens[index].start() : tokens[end - 1].end()] if end > index else ""
        whole = bool(text) and _stands_alone(tokens, index, end)
        if numbers > 1 and whole and len(text) <= MAX_EXPRESSION_CHARS:
            found.append(_Span(text, numbers))
        # A refused start is passed over whole where it was well formed, so that none of its pieces is taken for it.
        index = max(end, index + 1)
    return found


def _longest_from(tokens: list[re.Match[str]], start: int) -> tuple[int, int]:
    """(end, numbers) of the longest expression that starts here; (start, 0) where there is none."""
    depth, expects_operand, seen = 0, True, 0
    end, numbers = start, 0
    for index in range(start, len(tokens)):
        kind = tokens[index].lastgroup
        if kind == "number" and expects_operand and not _glued_to_word(tokens, index):
            expects_operand, seen = False, seen + 1
        elif kind == "open" and expects_operand and depth < MAX_DEPTH:
            depth += 1
        elif kind == "close" and not expects_operand and depth > 0:
            depth -= 1
        elif kind == "operator" and not expects_operand:
            expects_operand = True
        else:
            break
        if depth == 0 and not expects_operand:
            end, numbers = index + 1, seen
    return end, numbers


def _glued_to_word(tokens: list[re.Match[str]], index: int) -> bool:
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    return after is not None and after.lastgroup == "word" and after.start() == tokens[index].end()


def _stands_alone(tokens: list[re.Match[str]], start: int, end: int) -> bool:
    """Not an operand of something unreadable: `sqrt(3 + 1)`, `x * 3 + 1`, `2^3 + 1`, `(3 + 1`, `3 + 1)`, `-3 + 1`."""
    if start > 0:
        before = tokens[start - 1]
        glued = before.end() == tokens[start].start()
        if before.lastgroup == "open" or before.group() in "^%√":
            return False
        if before.lastgroup == "operator" and (start > 1 or glued):  # a lone one with a space after it is a bullet
            return False
        if before.lastgroup in {"number", "close", "word"} and glued:
            return False
    if end < len(tokens):
        after = tokens[end]
        if after.group() in "^%" or (after.lastgroup == "open" and after.start() == tokens[end - 1].end()):
            return False
        if after.lastgroup == "close":
            opened = sum({"open": 1, "close": -1}.get(str(token.lastgroup), 0) for token in tokens[:start])
            return opened > 0
    return True
