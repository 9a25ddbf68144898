"""The report of a run, built from the store: aggregates with intervals, lazy sequences, costs."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

from themis.core.entities import (
    EvaluationFailure,
    EvaluationRecord,
    EvaluationReport,
    ExperimentFailure,
    ExperimentReport,
    GenerationRecord,
    MetricAggregate,
    MetricScore,
)
from themis.core.intervals import summarise
from themis.core.registry import snake_case
from themis.evaluation.pipeline import aggregate, score_ranges, slices_of
from themis.runs.prices import price_table
from themis.storage import ExperimentStorage, RunMetadata, RunStatus
from themis.storage.queries import RunReader
from themis.storage.runs import FAILED, UNPARSED, LazySequence, Standing, standing_of

__all__ = [
    "build_report",
    "cost_of",
    "metric_aggregates",
    "report_standing",
    "summarise_run",
    "why_not_answered",
    "why_not_judged",
]


def build_report(
    storage: ExperimentStorage,
    run_id: str,
    evaluation: int | None = None,
    *,
    pipeline: Any = None,
    keep: int | None = None,
) -> ExperimentReport:
    """The report of a stored run. `keep` bounds how many records its sequences show: the last ones of the dataset."""
    reader = storage.reader(run_id)
    run = reader.metadata
    evaluation = reader.evaluation if evaluation is None else evaluation
    good, failed = reader.count_records()
    judged = 0 if evaluation is None else reader.count_evaluated(evaluation)
    names = list(pipeline.metric_names) if pipeline is not None else None
    # Sequences show what comes after this position: everything, or the last `keep` records.
    after = -1 if keep is None or keep >= good + failed else reader.position_before_last(keep)
    metrics = {} if evaluation is None else metric_aggregates(reader, evaluation, failed, names=names, after=after)
    kept = good + failed if keep is None else min(keep, good + failed)
    kept_judged = judged if after < 0 or evaluation is None else reader.count_evaluated(evaluation, after=after)
    evaluation_failures = sum(aggregate.failed for aggregate in metrics.values()) - failed * len(metrics)
    truncated = any(aggregate.truncated_count for aggregate in metrics.values())
    report = ExperimentReport(
        generation_results=_records(reader, kept, after),
        evaluation_report=EvaluationReport(
            metrics=metrics,
            failures=[] if evaluation is None else _evaluation_failures(reader, evaluation),
            records=[] if evaluation is None else _evaluations(reader, evaluation, kept_judged, after),
            slices={} if pipeline is None or evaluation is None else _slices(reader, evaluation, pipeline),
            metadata={
                "max_records_in_memory": keep,
                "records_retained": kept_judged,
                "records_dropped": judged - kept_judged,
                "per_sample_metrics_truncated": truncated,
                "per_metric": {
                    name: {
                        "per_sample_complete": aggregate.per_sample_complete,
                        "truncated_count": aggregate.truncated_count,
                    }
                    for name, aggregate in metrics.items()
                },
                "metric_ids": {name: snake_case(name) for name in metrics},
            },
        ),
        failures=_failures(reader, failed),
        metadata={
            "run_id": run_id,
            "total_samples": reader.count_samples(),
            "successful_generations": good,
            "failed_generations": failed,
            "cut_off_generations": run.cut_off,
            "generation_records_retained": kept,
            "generation_records_dropped": good + failed - kept,
            "evaluation_records_retained": kept_judged,
            "evaluation_records_dropped": judged - kept_judged,
            "per_sample_metrics_truncated": truncated,
            "evaluation_failures": evaluation_failures,
            "manifest_hash": run.manifest_hash,
            "reproducibility_manifest": run.config_snapshot.get("reproducibility_manifest", {}),
            "cost": cost_of(run, reader.count_without_usage()),
            "model": run.model,
            "prompt_template": reader.frame.prompt.name,
            "status": run.status.value,
        },
    )
    return report


def metric_aggregates(
    reader: RunReader, evaluation: int, failed_generations: int, *, names: list[str] | None = None, after: int = -1
) -> dict[str, MetricAggregate]:
    """Every metric of an evaluation, over what has a score."""
    counted = reader.outcomes(evaluation)
    ranges = reader.evaluation_config(evaluation).get("score_range", {})
    aggregates = {}
    for name in names if names is not None else sorted(counted):
        outcomes = counted.get(name, {})
        values, clusters = array("d"), list[str]()
        for _, _, cluster, value in reader.values(evaluation, name):
            values.append(value)
            if cluster is not None:
                clusters.append(cluster)
        clustered = clusters if clusters and len(clusters) == len(values) else None
        summary = summarise(values, clusters=clustered, score_range=ranges.get(name))
        per_sample = _scores(reader, evaluation, name, summary.count if after < 0 else None, after)
        shown = len(per_sample)
        aggregates[name] = MetricAggregate(
            name=name,
            count=summary.count,
            mean=summary.mean,
            per_sample=per_sample,
            per_sample_complete=shown == summary.count,
            truncated_count=summary.count - shown,
            failed=outcomes.get(FAILED, 0) + failed_generations,
            unparsed=outcomes.get(UNPARSED, 0),
            stderr=summary.stderr,
            ci=summary.ci,
            ci_method=summary.method,
        )
    return aggregates


def summarise_run(report: ExperimentReport) -> dict[str, Any]:
    """The few numbers that lists and pages show without reading the run."""
    return {
        "metrics": {
            name: {
                "mean": None if math.isnan(aggregate.mean) else aggregate.mean,
                "count": aggregate.count,
                "failed": aggregate.failed,
                "unparsed": aggregate.unparsed,
                "stderr": aggregate.stderr,
                "ci": list(aggregate.ci) if aggregate.ci else None,
                "ci_method": aggregate.ci_method,
            }
            for name, aggregate in report.evaluation_report.metrics.items()
        },
        "total_samples": report.metadata["total_samples"],
        "failed_generations": report.metadata["failed_generations"],
        "cost": report.metadata["cost"],
    }


def report_standing(report: ExperimentReport) -> Standing | None:
    """How the run stands, for files that show its report; None for a report that is of no stored run."""
    status, metadata = report.metadata.get("status"), report.metadata
    if status is None:
        return None
    return standing_of(
        RunStatus(status),
        total=metadata.get("total_samples", 0),
        failed=metadata.get("failed_generations", 0),
        metrics={
            name: {"count": metric.count, "failed": metric.failed}
            for name, metric in report.evaluation_report.metrics.items()
        },
    )


def why_not_answered(report: ExperimentReport) -> str:
    """Empty unless samples were asked and not one of them was answered."""
    failed = report.metadata["failed_generations"]
    if report.metadata["successful_generations"] or not failed:
        return ""
    return f"none of {failed:,} samples was answered, for example {_first(report.failures)}"


def why_not_judged(report: ExperimentReport) -> str:
    """Empty unless samples were answered and not one of them could be judged."""
    metrics = report.evaluation_report.metrics.values()
    if report.metadata["evaluation_failures"] <= 0 or any(metric.count for metric in metrics):
        return ""
    answered = report.metadata["successful_generations"]
    return f"none of {answered:,} answers could be judged, for example {_first(report.evaluation_report.failures)}"


def _first(failures: Iterable[ExperimentFailure | EvaluationFailure]) -> str:
    return next((f"{failure.sample_id}: {failure.message}" for failure in failures), "")


def cost_of(run: RunMetadata, untold: int) -> dict[str, Any]:
    """What a run has cost so far, over all its processes and every call made. None where a price is not known.

    `untold` are answers of which nobody knows the tokens; the totals are without them.
    """
    table = price_table()
    generation = run.cost_usd
    return {
        "total_cost": run.total_cost_usd,
        "generation_cost": generation,
        "evaluation_cost": run.judge_cost_usd,
        "currency": "USD",
        "token_counts": {
            "prompt_tokens": run.prompt_tokens,
            "completion_tokens": run.completion_tokens,
            "total_tokens": run.prompt_tokens + run.completion_tokens,
            "answers_without_tokens": untold,
        },
        "api_calls": run.calls,
        "judge_calls": run.judge_calls,
        "per_model_costs": {run.model.partition(":")[2] or run.model: generation},
        "pricing_version": table["version"],
        "pricing_updated_at": table["updated_at"],
    }


# --- sequences that read as they are looked at ------------------------------------------------------------------------


def _records(reader: RunReader, count: int, after: int) -> LazySequence[GenerationRecord]:
    return LazySequence(count, lambda: (record for _, record in reader.records(after=after)))


def _evaluations(reader: RunReader, evaluation: int, count: int | None, after: int) -> LazySequence[EvaluationRecord]:
    return LazySequence(count, lambda: (record for _, record in reader.evaluations(evaluation, after=after)))


def _scores(reader: RunReader, evaluation: int, name: str, count: int | None, after: int) -> LazySequence[MetricScore]:
    def stream() -> Iterator[MetricScore]:
        for _, record in reader.evaluations(evaluation, after=after):
            yield from (score for score in record.scores if score.metric_name == name)

    return LazySequence(count, stream)


def _failures(reader: RunReader, count: int) -> LazySequence[ExperimentFailure]:
    return LazySequence(count, lambda: (ExperimentFailure(item_id, text) for item_id, text in reader.failed_records()))


def _evaluation_failures(reader: RunReader, evaluation: int) -> LazySequence[EvaluationFailure]:
    def stream() -> Iterator[EvaluationFailure]:
        for _, record in reader.evaluations(evaluation, only_failed=True):
            yield from (EvaluationFailure(record.sample_id, message) for message in record.failures)

    return LazySequence(None, stream)


def _slices(reader: RunReader, evaluation: int, pipeline: Any) -> dict[str, dict[str, MetricAggregate]]:
    names = list(getattr(pipeline, "slices", {}))
    if not names:
        return {}
    slices = {position: slices_of(pipeline, record) for position, record in reader.records()}
    judged: dict[str, list[EvaluationRecord]] = {name: [] for name in names}
    for position, record in reader.evaluations(evaluation):
        for name in slices.pop(position, ()):
            judged[name].append(record)
    # What has no verdict was never answered, and counts as failed.
    for of_unanswered in slices.values():
        for name in of_unanswered:
            judged[name].append(EvaluationRecord(None, []))
    ranges = score_ranges(pipeline)
    return {name: aggregate(records, pipeline.metric_names, ranges) for name, records in judged.items()}
