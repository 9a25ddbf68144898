r"""The answer in LaTeX's \boxed{...}, as mathematicians mark it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import shortened, text_of

__all__ = ["Box", "BoxedExtractor", "boxes"]


@dataclass(frozen=True)
class BoxedExtractor:
    r"""The inside of the last \boxed{...}, with any depth of braces."""

    example: ClassVar[str] = r'BoxedExtractor().extract(r"so \boxed{\frac{1}{2}}.") == r"\frac{1}{2}"'

    def extract(self, raw_output: str) -> Any:
        text = text_of(raw_output)
        found = boxes(text)
        if not found:
            raise FieldExtractionError(rf"no \boxed{{...}} in {shortened(text)}")
        return text[found[-1].inside].strip()


@dataclass(frozen=True)
class Box:
    r"""The place of one \boxed{...} in a text, and of what is inside it."""

    start: int
    end: int
    inside: slice


# Besides the braces themselves: a backslash and what it escapes, so that \{ neither opens nor closes.
_TOKEN = re.compile(r"\\{1,2}(?:boxed|fbox)\s*+(?:(?P<opens>\{)|(?P<bare>\w+(?:\.\d+)?))|\\.|[{}]", re.DOTALL)


def boxes(text: str) -> list[Box]:
    """Every closed box, in the order in which they open; of nested ones each."""
    found: list[Box] = []
    open_braces: list[re.Match[str]] = []
    for token in _TOKEN.finditer(text):
        if token["opens"] or token.group() == "{":
            open_braces.append(token)
        elif token["bare"]:
            found.append(Box(token.start(), token.end(), slice(*token.span("bare"))))
        elif token.group() == "}" and open_braces:
            opened = open_braces.pop()
            if opened["opens"]:
                found.append(Box(opened.start(), token.end(), slice(opened.end(), token.start())))
    return sorted(found, key=lambda box: box.start)
