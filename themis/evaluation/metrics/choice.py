"""Comparison of the chosen option with the right one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.core.entities import MetricScore
from themis.evaluation.extractors.choices import find_choice, letters_of, options_by_letter
from themis.evaluation.metrics.reading import text_or_none, zero
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric

__all__ = ["MultipleChoice"]


@dataclass
class MultipleChoice(Metric):
    """1 if the option that the answer chooses is the reference's, whether by letter or spelled out.

    The texts of the options are taken from the row's field `options` or `choices`: a list, a mapping by letter, or a
    printed block. A reference is a letter or the text of an option; a position only with `index_base` 0 or 1.
    """

    example: ClassVar[str] = 'MultipleChoice().compute(prediction="The answer is (B).", references=["B"]).value == 1.0'

    choices: str = "A-Z"
    options_fields: tuple[str, ...] = ("options", "choices")
    index_base: int | None = None
    name: str = "MultipleChoice"
    score_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        letters_of(self.choices)
        if self.index_base not in (None, 0, 1):
            raise ConfigurationError(f"multiple_choice: index_base must be 0, 1 or None, got {self.index_base!r}")

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        letters = letters_of(self.choices)
        fields = (metadata or {}).get
        given = next((fields(name) for name in self.options_fields if fields(name) is not None), None)
        options = options_by_letter(given, letters)
        if not references:
            raise MetricError(f"{self.name} compares with a reference, and this sample has none")
        right = {self._letter(reference, letters, options) for reference in references}
        answer = text_or_none(prediction)
        if answer is None:
            return zero(self.name, prediction, "a choice")
        chosen = find_choice(answer, letters, options)
        if chosen is None:
            return MetricScore(self.name, 0.0, {"reason": "no choice found in the answer"})
        return MetricScore(self.name, float(chosen in right), {"chosen": chosen})

    def _letter(self, reference: Any, letters: str, options: Mapping[str, str]) -> str:
        if isinstance(reference, str):
            written = re.fullmatch(rf"\W*([{letters}])\W*", reference.strip(), re.IGNORECASE)
            by_text = {text.strip().casefold(): letter for letter, text in options.items()}
            letter = written[1].upper() if written else by_text.get(reference.strip().casefold())
            if letter is not None:
                return letter
        elif isinstance(reference, int) and not isinstance(reference, bool) and self.index_base is not None:
            position = reference - self.index_base
            if 0 <= position < (len(options) or len(letters)):
                return letters[position]
        hint = "; for positions give index_base=0 or 1" if isinstance(reference, int) else ""
        raise MetricError(
            f"{self.name}: the reference {reference!r:.80} is neither a letter nor one of the options{hint}"
        )
