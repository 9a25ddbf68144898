"""Labelled replies: what models write, and what a careful person reads in it.

`FAMILY.jsonl` was written with the readers, half of it before them; `held_out/FAMILY.jsonl` by somebody who never saw them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypedDict

FAMILIES = ("choice", "number", "mathematics", "final_answer", "json", "code")

# Share of a family's replies that have to be read as a person reads them.
BARS = {"choice": 0.98, "number": 0.98, "mathematics": 0.98, "final_answer": 0.95, "json": 0.95, "code": 0.95}

_FOLDER = Path(__file__).parent


class _Labelled(TypedDict):
    id: str
    style: str
    written: str
    reply: str
    expected: object


class Line(_Labelled, total=False):
    """One reply with its label; what comes after the first five depends on the family."""

    letters: str
    options: list[str]
    reference: str
    field: str
    language: str


Reader = Callable[[Line], object]


@dataclass(frozen=True)
class Misread:
    """A reply that was read otherwise than its label says."""

    line: Line
    given: object

    def __str__(self) -> str:
        reply = self.line["reply"]
        shown = reply if len(reply) <= 300 else f"{reply[:100]} [...] {reply[-190:]}"
        return (
            f"{self.line['id']} ({self.line['style']}): expected {self.line['expected']!r}, read {self.given!r}\n"
            f"    {shown!r}"
        )


def load(family: str, *, held_out: bool = False) -> list[Line]:
    """The replies of one family, in the order of the file; none where the file does not exist.

    Args:
        family: One of `FAMILIES`.
        held_out: The replies whose author never saw the readers, instead of those that were written with them.
    """
    path = (_FOLDER / "held_out" if held_out else _FOLDER) / f"{family}.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def misread(family: str, lines: Sequence[Line], reader: Reader) -> list[Misread]:
    """The replies that `reader` reads otherwise than their labels; an exception is what it read, and wrong."""
    found = []
    for line in lines:
        given: object
        try:
            given = reader(line)
        except Exception as error:  # boundary: reference readers are other people's rules
            given = error
        if isinstance(given, Exception) or not agrees(family, line["expected"], given):
            found.append(Misread(line, given))
    return found


def agrees(family: str, expected: object, given: object) -> bool:
    """Whether what was read is what the label says, by the rules of the family."""
    if expected is None or given is None:
        return expected is given
    return _SAME[family](expected, given)


def _same_letter(expected: object, given: object) -> bool:
    return str(expected) == str(given)


def _same_number(expected: object, given: object) -> bool:
    try:
        return Fraction(str(expected)) == Fraction(str(given))
    except (ValueError, ZeroDivisionError):
        return False


def _same_verdict(expected: object, given: object) -> bool:
    return isinstance(given, bool) and expected is given


def _same_value(expected: object, given: object) -> bool:
    """Whether two JSON values are equal: 5 and 5.0 are, true and 1 are not."""
    if isinstance(expected, dict) and isinstance(given, dict):
        return expected.keys() == given.keys() and all(_same_value(expected[key], given[key]) for key in expected)
    if isinstance(expected, list) and isinstance(given, list):
        return len(expected) == len(given) and all(map(_same_value, expected, given))
    return isinstance(expected, bool) == isinstance(given, bool) and expected == given


def _same_code(expected: object, given: object) -> bool:
    return _lines_of(str(expected)) == _lines_of(str(given))


def _lines_of(code: str) -> list[str]:
    """The lines of a program: blank ones, such as those between blocks that belong together, do not count."""
    return [line.rstrip() for line in code.splitlines() if line.strip()]


def _same_text(expected: object, given: object) -> bool:
    """Whether two answers differ at most in case, typesetting, blanks and a final full stop."""
    return _plain(str(expected)) == _plain(str(given))


# How an answer is set does not make it another answer: `\(\frac{1}{2}\)` is 1/2, `12\text{ cm}` is 12 cm.
_TYPESETTING: tuple[tuple[str, str], ...] = (
    (r"\\(?:text|textbf|mathrm|mathbf|mathit|operatorname|mbox)\s*\{([^{}]*)\}", r"\1"),
    (r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"\1/\2"),
    (r"\\sqrt\s*\{([^{}]*)\}", r"√\1"),
    (r"\^\s*\{?\s*\\circ\s*\}?", "°"),
    (r"\\(?:left|right|displaystyle|boxed)(?![a-zA-Z])", ""),
    (r"\\(?:times|cdot)(?![a-zA-Z])", "×"),
    (r"\\pi(?![a-zA-Z])", "π"),
    (r"\\(?:leq?)(?![a-zA-Z])", "≤"),
    (r"\\(?:geq?)(?![a-zA-Z])", "≥"),
    (r"\\infty(?![a-zA-Z])", "∞"),
    (r"\\(?:[,;:!( )\[\]]|quad(?![a-zA-Z]))", " "),
    (r"\\([%$#&_{}])", r"\1"),
    (r"\^\s*\{?2\}?(?!\d)", "²"),
    (r"\^\s*\{?3\}?(?!\d)", "³"),
    (r"\{([^{}]*)\}", r"\1"),
    (r"\*\*|__|`|(?<![\w\\])\$(?=\D)|(?<=\S)\$(?!\d)|^\$(?=[^$]*\$$)", ""),
    (r"[“”«»„\"]", ""),
    (r"[’‘]", "'"),
    (r"[−–]", "-"),
)


def _plain(answer: str) -> str:
    for pattern, replacement in _TYPESETTING:
        answer = re.sub(pattern, replacement, answer)
    answer = re.sub(r"\s*,?\s+and\s+", ",", answer)
    answer = re.sub(r"\s+", "", answer).casefold()
    return answer.strip("*_~'").rstrip(".。।,;!").strip("*_~'")


_SAME: dict[str, Callable[[object, object], bool]] = {
    "choice": _same_letter,
    "number": _same_number,
    "mathematics": _same_verdict,
    "final_answer": _same_text,
    "json": _same_value,
    "code": _same_code,
}
