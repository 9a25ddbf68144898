"""The samples of a report as a data frame: what `report.to_frame()` gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from themis.core.entities import ExperimentReport, GenerationRecord
from themis.core.frames import DataFrame, build_frame
from themis.experiment.export.as_tables import as_kind, common_kind, kind_of
from themis.experiment.export.samples import Sample, join_samples

__all__ = ["make_frame"]

_KINDS: dict[str, type] = {
    **dict.fromkeys(("item_id", "prompt", "answer", "reference", "error"), str),
    **dict.fromkeys(("prompt_tokens", "completion_tokens"), int),
    **dict.fromkeys(("cost_usd", "seconds"), float),
}


def make_frame(report: ExperimentReport, library: str = "pandas", *, attempts: bool = False) -> DataFrame:
    """One row a sample, or one an attempt: what was asked, answered and expected, scores, errors, measurements, row fields.

    A column of numbers, or of truth values, has that type; any other is text, lists and dicts as JSON.

    Args:
        report: Of a run of either kind.
        library: `pandas` or `polars`.
        attempts: One row for each attempt.

    Raises:
        DependencyError: The library is not installed.
    """
    samples = join_samples(report)
    entries = [one for sample in samples for one in (_split(sample) if attempts else [_whole(sample)])]
    columns: dict[str, list[object]] = {}
    metrics = list(report.evaluation_report.metrics)
    for name, read in _readers(metrics, attempts=attempts).items():
        columns[name] = [read(entry) for entry in entries]
    for name in dict.fromkeys(name for entry in entries for name in entry.fields):
        # A row may have a field named as one of ours.
        columns[f"row:{name}" if name in columns else name] = [entry.fields.get(name) for entry in entries]
    kinds = {**_KINDS, **dict.fromkeys(metrics, float)}
    return build_frame({name: _unify(values) for name, values in columns.items()}, library, kinds=kinds)


@dataclass(frozen=True)
class _Entry:
    """One row of the frame: a sample, or one attempt at it."""

    sample: Sample
    answer: str | None
    error: str | None
    # Those that its tokens, cost and time are of.
    attempts: list[GenerationRecord]
    scores: Mapping[str, float]
    number: int = 0

    @property
    def fields(self) -> dict[str, object]:
        """The row's, but for its id and its reference, which have columns of their own."""
        if self.sample.record is None:
            return {}
        task = self.sample.record.task
        return {name: value for name, value in task.prompt.context.items() if name in task.metadata}

    def total(self, measured: str, *, scale: float = 1.0) -> float | None:
        """Over its attempts; None where that is not known of one of them."""
        found = [float(value) for attempt in self.attempts if (value := attempt.metrics.get(measured)) is not None]
        return math.fsum(found) * scale if found and len(found) == len(self.attempts) else None

    def count(self, measured: str) -> int | None:
        found = self.total(measured)
        return None if found is None else int(found)


def _whole(sample: Sample) -> _Entry:
    return _Entry(sample, sample.output, "; ".join(sample.failures) or None, sample.attempts, sample.mean_scores)


def _split(sample: Sample) -> Iterator[_Entry]:
    if len(sample.attempts) < 2:
        yield _whole(sample)
        return
    for number, (attempt, verdicts) in enumerate(zip(sample.attempts, sample.verdicts, strict=True)):
        answer = attempt.output.text if attempt.output is not None else None
        error = attempt.error.message if attempt.error is not None else None
        scores = {verdict.metric: verdict.value for verdict in verdicts if verdict.value is not None}
        yield _Entry(sample, answer, error, [attempt], scores, number)


def _readers(metrics: list[str], *, attempts: bool) -> dict[str, Callable[[_Entry], object]]:
    """The columns that every frame has, and how they are read."""
    return {
        "item_id": lambda entry: entry.sample.sample_id,
        **({"attempt": lambda entry: entry.number} if attempts else {}),
        "prompt": lambda entry: entry.sample.prompt,
        "answer": lambda entry: entry.answer,
        "reference": lambda entry: entry.sample.reference,
        **{name: partial(_score, name) for name in metrics},
        "error": lambda entry: entry.error,
        "prompt_tokens": lambda entry: entry.count("prompt_tokens"),
        "completion_tokens": lambda entry: entry.count("response_tokens"),
        "cost_usd": lambda entry: entry.total("cost_usd"),
        "seconds": lambda entry: entry.total("generation_time_ms", scale=0.001),
    }


def _score(name: str, entry: _Entry) -> float | None:
    found = entry.scores.get(name)
    return None if found is None else float(found)


def _unify(values: list[object]) -> list[object]:
    kind = common_kind({kind_of(value) for value in values})
    return [as_kind(value, kind) for value in values]
