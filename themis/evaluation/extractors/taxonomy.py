"""What went wrong with an answer, by rules of thumb over its text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.evaluation.extractors.text import text_of

__all__ = ["ErrorTaxonomyExtractor"]

_REFUSAL = re.compile(
    r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|I (?:can(?:'t|not)|won't|will not|do not|don't) "
    r"(?:help|assist|answer|provide|comply|do that|feel comfortable)|as an AI\b|against my (?:guidelines|policy))",
    re.IGNORECASE,
)
_UNCERTAIN = re.compile(
    r"\b(?:I(?:'m| am) not (?:sure|certain)|I (?:don't|do not) know|cannot be determined|not enough information)\b",
    re.IGNORECASE,
)
_ENDS_A_SENTENCE = (".", "!", "?", "。", "！", "？", ")", "]", "}", '"', "'", "”", "`", "*", ">", "$")


@dataclass(frozen=True)
class ErrorTaxonomyExtractor:
    """Which faults a text shows: a dictionary of the flags empty, refusal, uncertain, truncated and repetitive.

    Read them with a metric such as `json_subset`, or in the stored predictions.
    """

    example: ClassVar[str] = 'ErrorTaxonomyExtractor().extract("I\'m sorry, I can\'t help.")["refusal"] is True'

    def extract(self, raw_output: str) -> Any:
        text = text_of(raw_output).strip()
        words = text.split()
        return {
            "empty": not text,
            "refusal": bool(_REFUSAL.search(text[:2000])),
            "uncertain": bool(_UNCERTAIN.search(text)),
            # A short answer needs no full stop; a long text that ends without one was most likely cut off.
            "truncated": len(words) > 20 and not text.endswith(_ENDS_A_SENTENCE),
            "repetitive": _repeats(words),
        }


def _repeats(words: list[str]) -> bool:
    """One phrase of five words makes up a quarter of a text of at least forty."""
    phrases = Counter(zip(*(words[offset:] for offset in range(5)), strict=False))
    return len(words) >= 40 and max(phrases.values()) * 5 > len(words) / 4
