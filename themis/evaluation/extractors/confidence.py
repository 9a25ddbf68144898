"""How sure a model says it is, read from its own words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import last_of, shorten, text_of
from themis.exceptions import ConfigurationError

_WORDS = r"confidence|certainty|probability"
_NUMBER = r"(?P<number>\d+(?:\.\d+)?|\.\d+)"
_UNIT = r"\s*(?:(?P<percent>%|percent)|(?:/|out of)\s*(?P<of>\d+(?:\.\d+)?))?"
# `"confidence": 0.8`, `Confidence (0-100): 85`, `**Confidence level:** 8/10`.
_LABELLED = lazy_pattern(rf"\b(?:{_WORDS})\b[^\n:=]{{0,60}}[:=][^\w\n.]*{_NUMBER}{_UNIT}", re.IGNORECASE)
# `my confidence is about 80%`, `with a probability of .7`.
_TOLD = lazy_pattern(rf"\b(?:{_WORDS})\b[^\n\d.:=]{{0,40}}{_NUMBER}{_UNIT}", re.IGNORECASE)
# `I am 80% sure`.
_SURE = lazy_pattern(rf"{_NUMBER}{_UNIT}\s+(?:confident|certain|sure|confidence|certainty)\b", re.IGNORECASE)


@dataclass(frozen=True)
class ConfidenceExtractor:
    """The confidence that the text states, from 0 to 1: a sentence, a line `Confidence: 80%`, or a field of JSON.

    What is stated last counts. A percentage or a fraction (`8/10`) is taken at its word; of a plain number up to 1 is a share
    and more is percent.

    Args:
        scale: What a plain number for certainty is, such as 10; by default 1 or, above it, 100.
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> ConfidenceExtractor().extract("It is Paris. Confidence: 85%")
    0.85
    """

    scale: float | None = None
    part: str = "text"

    def __post_init__(self) -> None:
        if self.scale is not None and not self.scale > 0:
            raise ConfigurationError(f"scale is what stands for certainty, such as 1, 10 or 100, got {self.scale}")

    def extract(self, raw_output: str) -> float:
        if isinstance(raw_output, int | float) and not isinstance(raw_output, bool):
            return self._share(float(raw_output), None, None)
        text = text_of(raw_output)
        found = [match for pattern in (_LABELLED, _TOLD, _SURE) if (match := last_of(pattern.finditer(text)))]
        bare = re.fullmatch(rf"\s*{_NUMBER}{_UNIT}\s*", text)
        # The number that stands last; of patterns that found the same, the first.
        match = bare or max(found, key=lambda match: match.start("number"), default=None)
        if match is None:
            raise FieldExtractionError(f"no confidence is stated in {shorten(text)}")
        return self._share(float(match["number"]), match["percent"], match["of"])

    def _share(self, number: float, percent: str | None, of: str | None) -> float:
        if percent is not None:
            whole = 100.0
        elif of is not None:
            whole = float(of)
        else:
            whole = self.scale or (1.0 if number <= 1 else 100.0)
        if not whole or not 0 <= number / whole <= 1:
            raise FieldExtractionError(f"a confidence of {number:g} of {whole:g} is none")
        return number / whole
