"""The short answer in a reply to an open question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from themis.evaluation.extractors.answers import find_final_answer
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import strip_thinking

__all__ = ["ShortAnswerExtractor"]


@dataclass(frozen=True)
class ShortAnswerExtractor:
    """What the reply announces as its answer, else its last paragraph, without reasoning tags and outer marks."""

    example: ClassVar[str] = 'ShortAnswerExtractor().extract("The answer is **white**.") == "white"'

    def extract(self, raw_output: str) -> Any:
        text = strip_thinking(str(raw_output))
        answer = (
            (find_final_answer(text) or text.rpartition("\n\n")[2]).strip().strip("*_`\"' ").removesuffix(".").strip()
        )
        if not answer:
            raise FieldExtractionError("empty_output")
        return answer
