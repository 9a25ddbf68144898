"""Comparisons of JSON values and lists."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.core.entities import MetricScore
from themis.core.json_repair import parse_json
from themis.evaluation.metrics.reading import zero
from themis.evaluation.metrics.text import overlap_f1
from themis.exceptions import MetricError
from themis.interfaces import Metric

__all__ = [
    "JsonEqual",
    "JsonSubset",
    "ListF1",
    "canonical_text",
    "json_prediction",
    "json_reference",
    "json_references",
]


@dataclass
class JsonEqual(Metric):
    """1 if the answer's JSON equals a reference's; the order of keys does not count, that of lists only by default.

    A reference is JSON text, an object, or a list inside a list (the outer one lists alternatives).
    """

    example: ClassVar[str] = """JsonEqual().compute(prediction='{"a": 1.0}', references=[{"a": 1}]).value == 1.0"""

    ignore_order: bool = False
    name: str = "JsonEqual"
    score_range = (0.0, 1.0)

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        expected = [canonical_text(value, self.ignore_order) for value in json_references(self.name, references)]
        try:
            said = canonical_text(json_prediction(prediction), self.ignore_order)
        except ValueError:
            return zero(self.name, prediction, "JSON")
        return MetricScore(self.name, float(said in expected))


@dataclass
class JsonSubset(Metric):
    """1 if everything in a reference's JSON is also in the answer's: all its fields, and all elements of its lists."""

    example: ClassVar[str] = (
        """JsonSubset().compute(prediction='{"a": 1, "b": [2, 3]}', references=[{"b": [3]}]).value == 1.0"""
    )

    name: str = "JsonSubset"
    score_range = (0.0, 1.0)

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        expected = json_references(self.name, references)
        try:
            said = json_prediction(prediction)
            missing = min((list(_missing(value, said, "$")) for value in expected), key=len)
        except (ValueError, RecursionError):
            return zero(self.name, prediction, "JSON")
        return MetricScore(self.name, float(not missing), {"missing": missing[:20]} if missing else {})


@dataclass
class ListF1(Metric):
    """F1 of the answer's items against the references', in any order; precision and recall are in the details.

    The answer is a list, JSON, or text with one item a line or between commas. The references are the items; a single
    reference may itself be such a list.
    """

    example: ClassVar[str] = 'ListF1().compute(prediction="red, green", references=["red", "blue"]).value == 0.5'

    case_sensitive: bool = False
    name: str = "ListF1"
    score_range = (0.0, 1.0)

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        expected = self._bag(_items(references[0]) if len(references) == 1 else references)
        said_items = _items(prediction)
        if expected is None or said_items is None:
            if expected is None:
                raise MetricError(f"{self.name}: the reference {references[0]!r:.80} is not a list")
            return zero(self.name, prediction, "a list")
        said = self._bag(said_items) or Counter()
        score = overlap_f1(said, expected)
        details = {"precision": score["precision"], "recall": score["recall"]}
        missing, extra = sorted((expected - said).elements())[:20], sorted((said - expected).elements())[:20]
        return MetricScore(self.name, score["f1"], {**details, "missing": missing, "extra": extra})

    def _bag(self, items: Sequence[Any] | None) -> Counter[str] | None:
        return None if items is None else Counter(map(self._key, items))

    def _key(self, item: Any) -> str:
        text = " ".join(item.split()) if isinstance(item, str) else canonical_text(item)
        return text if self.case_sensitive else text.casefold()


def json_prediction(prediction: Any) -> Any:
    """The value itself, or the JSON in a text; ValueError where there is none."""
    if prediction is None:
        raise ValueError("no answer")
    return parse_json(prediction) if isinstance(prediction, str) else prediction


def json_references(name: str, references: Sequence[Any]) -> list[Any]:
    if not references:
        raise MetricError(f"{name} compares with a reference, and this sample has none")
    return [json_reference(name, reference) for reference in references]


def json_reference(name: str, reference: Any) -> Any:
    """Strict, unlike the reading of predictions: a reference that needs repair is a mistake in the row."""
    if not isinstance(reference, str):
        return reference
    try:
        return json.loads(reference)
    except ValueError as error:
        raise MetricError(f"{name}: the reference {reference!r:.80} is not JSON: {error}") from error


def canonical_text(value: Any, ignore_order: bool = False) -> str:
    """One text for equal JSON values: 1 equals 1.0, but not true. ValueError for what is not JSON."""
    try:
        return json.dumps(_canonical(value, ignore_order), sort_keys=True, ensure_ascii=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not a JSON value: {error}") from error


def _canonical(value: Any, ignore_order: bool) -> Any:
    if isinstance(value, dict):
        return {str(key): _canonical(item, ignore_order) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_canonical(item, ignore_order) for item in value]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True)) if ignore_order else items
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _missing(expected: Any, said: Any, path: str) -> Iterator[str]:
    """Paths of what is expected but was not said."""
    if isinstance(expected, dict) and isinstance(said, dict):
        for key, value in expected.items():
            if key in said:
                yield from _missing(value, said[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(expected, list) and isinstance(said, list):
        for index, value in enumerate(expected):
            if not any(next(_missing(value, item, path), None) is None for item in said):
                yield f"{path}[{index}]"
    elif canonical_text(expected) != canonical_text(said):
        yield path


_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")


def _items(given: Any) -> Sequence[Any] | None:
    """A list as it is, or a text's items; None for what is neither."""
    if isinstance(given, list | tuple):
        return given
    if isinstance(given, set | frozenset):
        return list(given)
    if not isinstance(given, str):
        return [given] if isinstance(given, int | float) else None
    if given.lstrip()[:1] in ("[", "`"):
        try:
            parsed = parse_json(given)
        except ValueError:
            parsed = None
        if isinstance(parsed, list):
            return parsed
    parts = given.splitlines() if "\n" in given.strip() else re.split(r"[,;]", given)
    items = [_BULLET.sub("", part).strip().strip("\"'") for part in parts]
    return [item for item in items if item]
