"""Judges answers as lm-eval does: its filters, its `process_results`, its metrics' names.

A document's answers go through every filter of its task together; what each filter gives is scored by the task's own code, and
each pair of metric and filter is a metric of the run, named as lm-eval names it: `exact_match,strict-match`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, TypeAlias

import numpy as np

from themis.core.codec import digest
from themis.core.entities import EvaluationRecord, GenerationRecord, MetricScore
from themis.core.files import file_sha256
from themis.evaluation.corpus import OF_ATTEMPTS, STATISTICS
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.pipeline import EvaluationPipeline
from themis.exceptions import MetricError
from themis.interfaces import Metric, Row
from themis.presets.lm_eval.aggregation import call_function, name_function, pack
from themis.presets.lm_eval.index import Foreign
from themis.presets.lm_eval.tasks import Group, LoadedTasks, Task, repeats_of

# Values by "metric,filter", as lm-eval's `process_results` gave them.
Values: TypeAlias = dict[str, Foreign]

# Metrics of lm-eval itself whose values are 0 or 1, or a share.
_SHARES = ("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match")


@dataclass
class LmEvalMetric(Metric):
    """What the run says of one of lm-eval's metrics; the pipeline computes them all at once."""

    name: str
    higher_is_better: bool | None = True
    aggregation: str | None = None
    score_range: tuple[float | None, float | None] | None = None
    requires_reference: bool = False

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        raise MetricError(f"{self.name} is computed by the task of lm-eval, not on its own")


class LmEvalPipeline(EvaluationPipeline):
    """Judges the answers to one task's, group's or tag's documents.

    Args:
        loaded: The tasks, with their datasets or made for judging alone.
    """

    # lm-eval's functions may name metrics only when they score.
    names_metrics_late: ClassVar[bool] = True

    def __init__(self, loaded: LoadedTasks) -> None:
        self._loaded = loaded
        self._functions: dict[tuple[str, str], str] = {}
        self._documents: dict[str, list[Foreign]] = {}
        super().__init__(extractor=IdentityExtractor(), metrics=list(self._declare()))

    @property
    def compared_with_rows(self) -> list[str]:
        return []

    def evaluation_fingerprint(self) -> dict[str, object]:
        """The task as its files say it, lm-eval's version, and our code between the two."""
        return {
            "pipeline": {"class": "lm-eval", "parameters": self._loaded.judging_identity, "code": _own_code()},
            "metrics": [
                {"class": metric.name, "parameters": {"aggregation": metric.aggregation}} for metric in self.metrics
            ],
        }

    def check_attempts(self, attempts: int) -> None:
        needed = self._loaded.attempts
        if attempts % needed:
            raise MetricError(
                f"lm-eval's {self._loaded.name!r} judges {needed} answers to a document together; --num-samples is a multiple "
                f"of that, got {attempts}"
            )

    def expected_metrics(self, record: GenerationRecord, judged: EvaluationRecord) -> Iterable[str]:
        """Those of the document's own task: a group's other tasks have others."""
        if judged.scores:
            return [score.metric_name for score in judged.scores]
        task = self._loaded.tasks.get(str(record.task.metadata.get("task")))
        return [] if task is None else _declared_names(task)

    def judge(self, record: GenerationRecord) -> EvaluationRecord:
        row = record.task.metadata
        result = EvaluationRecord(str(row.get("dataset_id")), [])
        attempts = record.attempts or [record]
        failed = next((one.error for one in attempts if one.error is not None), None)
        if failed is not None:
            result.failures.append(f"no answer: {failed.message}")
            return result
        name = str(row["task"])
        try:
            task = self._loaded.tasks[name]
            doc = row["doc"] if "doc" in row else self._document(name, int(row["document"]))
            made = [_values(task, doc, row, block) for block in _blocks(attempts, repeats_of(task))]
            result.scores = [self._make_score(name, metric, [one[metric] for one in made]) for metric in made[0]]
        except Exception as error:  # boundary: the task's own code
            result.failures.append(f"lm-eval's task {name}: {type(error).__name__}: {error}")
        return result

    # --- inside ------------------------------------------------------------------------------------------------------

    def _document(self, name: str, index: int) -> Foreign:
        """A document that no store can hold as it is, from the task's dataset."""
        if name not in self._documents:
            self._documents[name] = list(self._loaded.tasks[name].eval_docs)
        return self._documents[name][index]

    def _make_score(self, task: str, metric: str, items: Sequence[Foreign]) -> MetricScore:
        """A score holds what the run's number is made of; several blocks of attempts count as one document."""
        numbers = [self._number(task, metric, item) for item in items]
        kept: list[object] = [pack(item) if self._loaded.is_single else [task, pack(item)] for item in items]
        value = numbers[0] if len(numbers) == 1 else math.fsum(numbers) / len(numbers)
        declared = next((one for one in self.metrics if one.name == metric), None)
        if declared is None or declared.aggregation is None:
            return MetricScore(metric, value)
        return MetricScore(metric, value, {STATISTICS: kept[0]} if len(kept) == 1 else {OF_ATTEMPTS: kept})

    def _number(self, task: str, metric: str, item: Foreign) -> float:
        """lm-eval's own value where it is a number, else what its aggregation makes of this document alone."""
        if isinstance(item, bool | int | float | np.bool_ | np.number):
            return float(item)
        function = self._functions.get((task, metric.rpartition(",")[0]), "mean")
        try:
            value = call_function(function, [item])
        except Exception:  # boundary: a function of a whole set may have nothing to say of one document
            return 0.0
        return value if math.isfinite(value) else 0.0

    def _declare(self) -> Iterator[LmEvalMetric]:
        """A metric for each pair of metric and filter that a task names; the tasks of a group share theirs."""
        owners: dict[str, list[str]] = {}
        for name, task in self._loaded.tasks.items():
            for metric in _metrics_of(task):
                self._functions[name, metric] = name_function(task.aggregation()[metric], name, metric)
            for full in _declared_names(task):
                owners.setdefault(full, []).append(name)
        for full, names in owners.items():
            metric = full.rpartition(",")[0]
            tasks = [self._loaded.tasks[name] for name in names]
            directions = {task.higher_is_better().get(metric, True) for task in tasks}
            functions = {name: self._functions[name, metric] for name in names}
            yield LmEvalMetric(
                full,
                higher_is_better=directions.pop() if len(directions) == 1 else None,
                aggregation=self._aggregation(full, functions),
                score_range=(0.0, 1.0) if all(_gives_share(task, metric) for task in tasks) else None,
            )

    def _aggregation(self, full: str, functions: Mapping[str, str]) -> str | None:
        """The name of what makes the run's number; None for the plain mean of one task."""
        kinds = set(functions.values())
        function: object = kinds.pop() if len(kinds) == 1 else dict(functions)
        if self._loaded.is_single:
            return None if function == "mean" else f"lm_eval(function={function!r})"
        weighted = _is_weighted(self._loaded.groups.get(self._loaded.name), full)
        within = {
            name: (rule, [one for one in _members(group) if one in functions])
            for name, group in self._loaded.groups.items()
            if name != self._loaded.name and (rule := _is_weighted(group, full)) is not None
        }
        kind = "lm_eval_mean" if weighted and function == "mean" else "lm_eval"
        return f"{kind}(function={function!r}, tasks={list(functions)!r}, weighted={weighted!r}, groups={within!r})"


@lru_cache(maxsize=1)
def _own_code() -> str:
    return digest(" ".join(file_sha256(Path(__file__).with_name(name)) for name in ("scoring.py", "aggregation.py")))


# --- one document --------------------------------------------------------------------------------------------------------


def _blocks(attempts: Sequence[GenerationRecord], size: int) -> list[Sequence[GenerationRecord]]:
    """Attempts that are judged together; more than a task needs are judged as often as they suffice."""
    return [attempts[start : start + size] for start in range(0, len(attempts) - size + 1, size)]


def _values(task: Task, doc: Foreign, row: Mapping[str, Foreign], attempts: Sequence[GenerationRecord]) -> Values:
    """lm-eval's way from replies to a document's values."""
    from lm_eval.api.instance import Instance

    replies = [_replies(task, row, attempt) for attempt in attempts]
    kind = task.OUTPUT_TYPE if task.OUTPUT_TYPE != "multiple_choice" else "loglikelihood"
    instances = [
        Instance(kind, doc, (row.get("prompt"),), place, metadata=(row["task"], 0, len(attempts)), resps=list(said))
        for place, said in enumerate(zip(*replies, strict=True))
    ]
    task._instances = instances
    task.apply_filters()
    found: Values = {}
    for filter_name in instances[0].filtered_resps:
        values = task.process_results(doc, [one.filtered_resps[filter_name] for one in instances])
        found |= {f"{metric},{filter_name}": value for metric, value in values.items()}
    return found


def _replies(task: Task, row: Mapping[str, Foreign], attempt: GenerationRecord) -> list[Foreign]:
    """What a model of lm-eval's would have returned to each request of the document."""
    output = attempt.output
    if "continuations" not in row:
        return ["" if output is None else output.text]
    raw = {} if output is None or not isinstance(output.raw, Mapping) else output.raw
    scored = raw["continuations"]
    if task.OUTPUT_TYPE == "loglikelihood_rolling":
        return [float(one["logprob"]) for one in scored]
    return [(float(one["logprob"]), bool(one["greedy"])) for one in scored]


# --- what a task declares ------------------------------------------------------------------------------------------------


def _metrics_of(task: Task) -> list[str]:
    return [str(metric) for metric in task.aggregation()]


def _declared_names(task: Task) -> list[str]:
    filters = [one.name for one in getattr(task, "_filters", ())] or ["none"]
    return [f"{metric},{name}" for name in filters for metric in _metrics_of(task)]


def _gives_share(task: Task, metric: str) -> bool:
    """Whether lm-eval itself computes the metric, so that its range is known."""
    config = task.config
    return metric in _SHARES and getattr(config, "process_results", None) is None and hasattr(task, "_metric_fn_list")


def _members(group: Group) -> list[str]:
    return [str(task.task_name) for task in group.get_all_tasks()]


def _is_weighted(group: Group | None, full: str) -> bool | None:
    """Whether the group counts its tasks by their documents; None where lm-eval makes no number of the tasks' numbers."""
    metric, _, filter_name = full.rpartition(",")
    for rule in getattr(group, "aggregate_metric_list", None) or ():
        if rule.metric == metric and (rule.filter_list is None or filter_name in rule.filter_list):
            return bool(rule.weight_by_size)
    return None
