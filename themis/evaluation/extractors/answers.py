"""Answers as models state them: boxed, or announced in words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import last_of, shorten, text_of


@dataclass(frozen=True)
class BoxedExtractor:
    r"""The inside of the last \boxed{...}, with any depth of braces.

    >>> BoxedExtractor().extract(r"so \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    """

    def extract(self, raw_output: str) -> str:
        text = text_of(raw_output)
        found = find_boxes(text)
        if not found:
            raise FieldExtractionError(rf"no \boxed{{...}} in {shorten(text)}")
        return text[found[-1].inside].strip()


@dataclass(frozen=True)
class Box:
    r"""The place of one \boxed{...} in a text, and of what is inside it."""

    start: int
    end: int
    inside: slice


# Besides the braces themselves: a backslash and what it escapes, so that \{ neither opens nor closes.
_BOX_TOKEN = re.compile(r"\\{1,2}(?:boxed|fbox)\s*+(?:(?P<opens>\{)|(?P<bare>\w+(?:\.\d+)?))|\\.|[{}]", re.DOTALL)


def find_boxes(text: str) -> list[Box]:
    """Every closed box, in the order in which they open; of nested ones each."""
    found: list[Box] = []
    open_braces: list[re.Match[str]] = []
    for token in _BOX_TOKEN.finditer(text):
        if token["opens"] or token.group() == "{":
            open_braces.append(token)
        elif token["bare"]:
            found.append(Box(token.start(), token.end(), slice(*token.span("bare"))))
        elif token.group() == "}" and open_braces:
            opened = open_braces.pop()
            if opened["opens"]:
                found.append(Box(opened.start(), token.end(), slice(opened.end(), token.start())))
    return sorted(found, key=lambda box: box.start)


@dataclass(frozen=True)
class FinalAnswerExtractor:
    r"""What the model announces: the last \boxed{...}, else after the last ####, else after "answer is" or "answer:".

    >>> FinalAnswerExtractor().extract("Hence the final answer is **7**.")
    '7'
    """

    def extract(self, raw_output: str) -> str:
        text = text_of(raw_output)
        answer = find_final_answer(text)
        if answer is None:
            raise FieldExtractionError(f"no announced answer in {shorten(text)}")
        return answer


def find_final_answer(text: str) -> str | None:
    """The announced answer without its typesetting, or None."""
    found = find_boxes(text)
    if found:
        return text[found[-1].inside].strip()
    line = find_announced_line(text)
    return _strip_wrapping(line) or None if line is not None else None


def find_announced_line(text: str) -> str | None:
    """What follows the last #### on its line, else the last "answer is" or "answer:"."""
    for announcement in (_HASHES, _ANSWER_IS):
        last = last_of(announcement.finditer(text))
        if last is not None:
            return text[last.end() :].partition("\n")[0]
    return None


_HASHES = re.compile(r"####[ \t]*(?=\S)")
_ANSWER_IS = re.compile(
    r"\banswer\b[^\n.:=]{0,60}?(?::|=|\bis\b|\bwould be\b|\bmust be\b)[\s:*_]{0,20}(?=\S)(?!not\b)", re.IGNORECASE
)
# The next sentence; the dot of an abbreviation (St. Petersburg) or inside a number does not end one.
_NEXT_SENTENCE = re.compile(r"(?:(?<=[^\W\d]{4})|(?<=\d)|(?<=[)\]}$*\"]))[.!?]\s.*")
_WRAPPING = "*_`$\"' \t"


def _strip_wrapping(answer: str) -> str:
    answer = _NEXT_SENTENCE.sub("", re.sub(r"</\w+>\s*$", "", answer)).strip(_WRAPPING)
    answer = answer.removeprefix("\\(").removesuffix("\\)").strip()
    if answer.endswith((".", ";")) and not answer.endswith("..."):
        answer = answer[:-1].rstrip(_WRAPPING)
    return answer
