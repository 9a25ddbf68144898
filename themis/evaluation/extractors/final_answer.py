"""The answer after the words with which models announce it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.evaluation.extractors.boxed import boxes
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import last_of, shortened, text_of

__all__ = ["FinalAnswerExtractor", "announced_line", "final_answer"]


@dataclass(frozen=True)
class FinalAnswerExtractor:
    r"""What the model announces: the last \boxed{...}, else after the last ####, else after "answer is" or "answer:"."""

    example: ClassVar[str] = 'FinalAnswerExtractor().extract("Hence the final answer is **7**.") == "7"'

    def extract(self, raw_output: str) -> Any:
        text = text_of(raw_output)
        answer = final_answer(text)
        if answer is None:
            raise FieldExtractionError(f"no announced answer in {shortened(text)}")
        return answer


def final_answer(text: str) -> str | None:
    """The announced answer without its typesetting, or None."""
    found = boxes(text)
    if found:
        return text[found[-1].inside].strip()
    line = announced_line(text)
    return _bare(line) or None if line is not None else None


def announced_line(text: str) -> str | None:
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


def _bare(answer: str) -> str:
    answer = _NEXT_SENTENCE.sub("", re.sub(r"</\w+>\s*$", "", answer)).strip(_WRAPPING)
    answer = answer.removeprefix("\\(").removesuffix("\\)").strip()
    if answer.endswith((".", ";")) and not answer.endswith("..."):
        answer = answer[:-1].rstrip(_WRAPPING)
    return answer
