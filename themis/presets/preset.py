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
    """A benchmark as `evaluate` runs it: rows, prompt, extractor and metrics under one name.

    Args:
        name: What it is asked for by.
        prompt_template: How a row is asked.
        metrics: Objects, classes or registered names, which are looked up when they are used.
        extractor: Likewise; finds the answer in the reply.
        dataset_loader: Takes a limit (None for all rows) and returns rows.
        metadata_fields: Fields of the rows that reports group by.
        reference_field: The row's field with the expected answer.
        dataset_id_field: The row's field that names it.
        description: One line for lists.

    >>> preset = BenchmarkPreset(
    ...     name="capitals",
    ...     prompt_template=PromptTemplate("capitals", "The capital of {country}?"),
    ...     metrics=["exact_match"],
    ...     extractor="identity",
    ...     dataset_loader=lambda limit: [{"id": "fr", "country": "France", "answer": "Paris"}][:limit],
    ... )
    >>> preset.build_metrics()[0].name
    'ExactMatch'
    """

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
        """Its rows.

        Args:
            limit: Only the first so many; all by default.
        """
        return self.dataset_loader(limit)

    def build_metrics(self) -> list[Metric]:
        """Its metrics as objects."""
        return [resolve_metric(metric) for metric in self.metrics]

    def build_extractor(self) -> Extractor:
        """Its extractor as an object."""
        return resolve_extractor(self.extractor)
