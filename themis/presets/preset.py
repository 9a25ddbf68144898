"""A benchmark as `evaluate` runs it: rows, prompt, extractor and metrics under one name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from themis.evaluation.resolve import resolve_extractor, resolve_metric
from themis.generation.templates import PromptTemplate
from themis.interfaces import Extractor, Metric

__all__ = ["BenchmarkPreset", "DatasetLoader"]

# Takes the limit (None for all rows) as its one positional argument.
DatasetLoader = Callable[[int | None], Iterable[dict[str, Any]]]


@dataclass
class BenchmarkPreset:
    """`metrics` and `extractor` are objects, classes or registered names; names are looked up when they are used."""

    name: str
    prompt_template: PromptTemplate
    metrics: Sequence[Metric | str | type[Metric]]
    extractor: Extractor | str | type[Extractor]
    dataset_loader: DatasetLoader
    metadata_fields: Sequence[str] = ()
    reference_field: str = "answer"
    dataset_id_field: str = "id"
    description: str = ""

    def load_dataset(self, limit: int | None = None) -> Iterable[dict[str, Any]]:
        return self.dataset_loader(limit)

    def build_metrics(self) -> list[Metric]:
        return [resolve_metric(metric) for metric in self.metrics]

    def build_extractor(self) -> Extractor:
        return resolve_extractor(self.extractor)
