"""The report of a run, built from the store: aggregates with intervals, lazy sequences, costs.

Every file, list, page and tracker shows what `metric_aggregates` makes here and computes no mean of its own.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypedDict

from themis.core.entities import (
    EvaluationFailure,
    EvaluationRecord,
    EvaluationReport,
    ExperimentFailure,
    ExperimentReport,
    GenerationRecord,
    MetricAggregate,
    MetricScore,
    mean_scores,
)
from themis.core.intervals import Labels, MeanEstimate, bounded_interval, estimate_mean
from themis.core.registry import snake_case
from themis.evaluation.corpus import Observation, describe_aggregation, put_aggregation
from themis.evaluation.pipeline import slices_of
from themis.evaluation.resolve import is_known_aggregation, resolve_aggregation
from themis.runs.prices import price_table
from themis.storage import ExperimentStorage, RunMetadata, RunStatus
from themis.storage.lazy import LazySequence
from themis.storage.queries import AttemptCounts, RunReader
from themis.storage.runs import FAILED, PARTIAL, SCORED, UNPARSED, Standing, standing_of
from themis.storage.search import running_means

__all__ = [
    "OVERALL",
    "Asked",
    "Ends",
    "Performance",
    "build_report",
    "cost_of",
    "describe_protocol",
    "find_caveats",
    "find_ends",
    "format_duration",
    "has_several_attempts",
    "measure_performance",
    "measure_run",
    "metric_aggregates",
    "metric_details",
    "observations",
    "parameter_facts",
    "performance_facts",
    "report_standing",
    "running_scores",
    "summarise_run",
    "why_not_answered",
    "why_not_judged",
]

# The metric that every test of a memory run is scored under, besides the name of its dataset.
OVERALL = "memory"

_PERCENTILES = (50, 90, 99)
_CACHE_COUNTS = ("cached_tokens", "cache_write_tokens")


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
    evaluation = reader.evaluation if evaluation is None else evaluation
    good, failed = reader.count_records()
    asked = Asked(unanswered=failed, attempts=reader.count_attempts())
    judged = 0 if evaluation is None else reader.count_evaluated(evaluation)
    names = None if pipeline is None or _names_late(reader, evaluation, pipeline) else list(pipeline.metric_names)
    # Sequences show what comes after this position: everything, or the last `keep` records.
    after = -1 if keep is None or keep >= good + failed else reader.position_before_last(keep)
    metrics = {} if evaluation is None else metric_aggregates(reader, evaluation, asked, names=names, after=after)
    kept = good + failed if keep is None else min(keep, good + failed)
    kept_judged = judged if after < 0 or evaluation is None else reader.count_evaluated(evaluation, after=after)
    evaluation_failures = sum(aggregate.failed for aggregate in metrics.values()) - failed * len(metrics)
    truncated = any(aggregate.truncated_count for aggregate in metrics.values())
    return ExperimentReport(
        generation_results=_records(reader, kept, after, evaluation),
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
            **_describe(reader, metrics, asked),
            "generation_records_retained": kept,
            "generation_records_dropped": good + failed - kept,
            "evaluation_records_retained": kept_judged,
            "evaluation_records_dropped": judged - kept_judged,
            "per_sample_metrics_truncated": truncated,
            "evaluation_failures": evaluation_failures,
        },
        read_attachment=lambda digest: None if (found := reader.attachment(digest)) is None else found.content,
    )


def _describe(reader: RunReader, metrics: Mapping[str, MetricAggregate], asked: Asked) -> dict[str, object]:
    """What the run is and how it went."""
    run = reader.metadata
    good, failed = reader.count_records()
    performance = measure_performance(reader, metrics, asked.attempts) if run.kind == "samples" else None
    manifest = run.config_snapshot.get("reproducibility_manifest", {})
    return {
        "run_id": run.run_id,
        "total_samples": reader.count_samples(),
        "successful_generations": good,
        "failed_generations": failed,
        "cut_off_generations": run.cut_off,
        "manifest_hash": run.manifest_hash,
        "reproducibility_manifest": manifest,
        "cost": cost_of(run, reader.count_without_usage()),
        "performance": performance,
        "protocol": describe_protocol(manifest) or None,
        "caveats": find_caveats(reader, performance),
        # Of a session that asks nothing, those of the one before.
        **({"parameters": told} if (told := run.summary.get("parameters")) else {}),
        "model": run.model,
        "prompt_template": reader.frame.prompt.name,
        "status": run.status.value,
    }


# --- what must be said before a mean ------------------------------------------------------------------------------------

# Of answers; a run says its own with `truncated_limit`.
_TRUNCATED_LIMIT = 0.05


def find_caveats(reader: RunReader, performance: Performance | None) -> list[str]:
    """That a run is not its benchmark's protocol, or that too many of its answers were cut off; a sentence each."""
    config = reader.metadata.config_snapshot
    manifest = config.get("reproducibility_manifest") or {}
    found = []
    if deviations := (manifest.get("protocol") or {}).get("deviations"):
        found.append(f"not the published protocol: {'; '.join(deviations)}")
    share = 0.0 if performance is None else performance["truncated_share"] or 0.0
    if share > (config.get("specification") or {}).get("truncated_limit", _TRUNCATED_LIMIT):
        most = (manifest.get("sampling") or {}).get("max_tokens", -1)
        where, way = (
            (f"at {most:,} tokens", "raise --max-tokens") if most > 0 else ("by the provider", "ask it for more")
        )
        ends = find_ends(reader, Ends(where, way))
        found.append(f"{100 * share:.0f} % of answers were cut off {ends.where}: the mean is too low; {ends.way}")
    return found


class Ends(NamedTuple):
    """Where a run's answers were cut off, in words, and what to do."""

    where: str
    way: str


def find_ends(reader: RunReader, of_answer: Ends) -> Ends:
    """Where a run's answers were cut off: at the limit of one, by those of a sample that takes several steps, or both.

    Args:
        reader: Of a run of which some were.
        of_answer: What is said of the limit of one answer.
    """
    stopped = reader.count_stopped()
    if not stopped:
        return of_answer
    by_sample = Ends(
        " and ".join(f"by {limit}" for limit in stopped),
        f"raise {' and '.join('--' + limit.replace('_', '-') for limit in stopped)}",
    )
    if reader.metadata.cut_off <= sum(stopped.values()):
        return by_sample
    return Ends(f"{of_answer.where} and {by_sample.where}", f"{of_answer.way}, and {by_sample.way}")


def describe_protocol(manifest: Mapping[str, Any]) -> str:
    """The protocol of a run's benchmark in a line; nothing for rows of one's own.

    Args:
        manifest: The run's.

    >>> described = {"benchmark": "gsm8k", "version": "1", "source": "themis", "few_shot": None, "attempts": 1}
    >>> describe_protocol({"protocol": {**described, "sampling": {"temperature": 0.0, "max_tokens": 512}}})
    'gsm8k, version 1 (source: themis): no examples, temperature 0, 512 tokens, 1 attempt'
    """
    told = manifest.get("protocol")
    if not told:
        return ""
    sampling, few_shot, attempts = told["sampling"], told.get("few_shot"), told["attempts"]
    shots = few_shot["count"] if few_shot else 0
    parts = [
        f"{shots} examples" if shots > 1 else f"{shots or 'no'} example{'' if shots else 's'}",
        f"temperature {sampling['temperature']:g}",
        *([f"top_p {sampling['top_p']:g}"] if sampling.get("top_p") is not None else []),
        f"{sampling['max_tokens']:,} tokens" if sampling["max_tokens"] > 0 else "no limit of tokens",
        f"{attempts} attempt{'' if attempts == 1 else 's'}",
    ]
    return f"{told['benchmark']}, version {told['version']} (source: {told['source']}): {', '.join(parts)}"


def _names_late(reader: RunReader, evaluation: int | None, pipeline: object) -> bool:
    """Whether the stored scores say better than the pipeline which metrics there are."""
    late = getattr(pipeline, "names_metrics_late", False)
    return bool(late and evaluation is not None and reader.metric_names(evaluation))


# --- means ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """What came of asking some samples, before anything was judged: those without any answer, and all attempts."""

    unanswered: int
    attempts: AttemptCounts


@dataclass
class _Column:
    """One metric: a number a sample, and what is missing."""

    values: array[float] = field(default_factory=lambda: array("d"))
    clusters: list[str] = field(default_factory=list)
    scores: int = 0
    failed: int = 0
    unparsed: int = 0
    partial: int = 0
    unscored_attempts: int = 0


def metric_aggregates(
    reader: RunReader,
    evaluation: int,
    asked: Asked,
    *,
    names: list[str] | None = None,
    after: int = -1,
    within: Collection[int] | None = None,
) -> dict[str, MetricAggregate]:
    """Every metric of an evaluation, over what has a score; `within` takes only the samples at these positions.

    `asked` tells of the same samples. The scores that a report keeps are those after the position `after`.
    """
    columns = _read_columns(reader, evaluation, within)
    config = reader.evaluation_config(evaluation)
    ranges, directions = config.get("score_range", {}), config.get("higher_is_better", {})
    named = config.get("aggregation", {})
    aggregates = {}
    for name in names if names is not None else sorted(columns):
        column = columns.get(name, _Column())
        clusters = column.clusters if column.clusters and len(column.clusters) == len(column.values) else None
        found = MetricAggregate.from_values(name, column.values, clusters=clusters, score_range=ranges.get(name))
        found.per_sample = _scores(reader, evaluation, name, column.scores if after < 0 else None, after, within)
        shown = len(found.per_sample)
        found.per_sample_complete, found.truncated_count = shown == column.scores, column.scores - shown
        found.failed, found.unparsed = column.failed + asked.unanswered, column.unparsed
        found.partial = column.partial
        if reader.kind == "samples":
            found.attempts = asked.attempts.made
            found.failed_attempts = asked.attempts.failed + column.unscored_attempts
        else:
            # A memory test is played once, and a metric judges its own kind of test only.
            found.attempts, found.failed_attempts = found.count + found.failed, found.failed
            found.ci = _interval_of_shares(column.values, clusters)
            found.ci_method = "beta" if found.ci is not None and found.ci_method != "mid-p" else found.ci_method
        found.higher_is_better = directions.get(name, True)
        if found.higher_is_better and column.values and min(column.values) >= 0 and max(column.values) <= 1:
            found.successes = math.fsum(column.values)
        if name in named:
            put_aggregation(found, named[name], observations(reader, evaluation, name, within))
        aggregates[name] = found
    return aggregates


def _interval_of_shares(values: Sequence[float], clusters: Labels | None) -> tuple[float, float] | None:
    """Interval of the mean of scores from 0 to 1, as memory reports show it: a single test has one too.

    Args:
        values: The scores; an imported one may lie beyond, which no interval reaches.
        clusters: One label a score, where whole clusters count as drawn independently.
    """
    shares = [min(1.0, max(0.0, value)) for value in values]
    if not shares:
        return None
    return bounded_interval(estimate_mean(shares, clusters) or MeanEstimate(shares[0], 0.0, 1))


def _read_columns(reader: RunReader, evaluation: int, within: Container[int] | None) -> dict[str, _Column]:
    """One pass over the scores. A sample counts once, with the mean of what its attempts have."""
    columns: dict[str, _Column] = {}
    clusters = reader.clusters()
    for (position, name), group in groupby(reader.item_scores(evaluation), key=itemgetter(0, 1)):
        if within is not None and position not in within:
            continue
        column = columns.get(name)
        if column is None:
            column = columns[name] = _Column()
        rows = list(group)
        _, _, value, outcome = rows[0]
        if value is None or outcome == FAILED:
            column.failed += 1
            continue
        if len(rows) > 1:
            value = math.fsum(row.value for row in rows if row.value is not None) / len(rows)
            outcome = UNPARSED if all(row.outcome == UNPARSED for row in rows) else SCORED
        column.values.append(value)
        column.scores += len(rows)
        column.unparsed += outcome == UNPARSED
        column.partial += any(row.outcome == PARTIAL for row in rows)
        if position in clusters:
            column.clusters.append(clusters[position])
    # With one attempt a sample, what a metric cannot score is a sample that failed.
    for position, name, count in reader.unscored_attempts(evaluation) if reader.frame.attempts > 1 else ():
        if within is None or position in within:
            columns[name].unscored_attempts += count
    return columns


def measure_run(reader: RunReader) -> dict[str, Any]:
    """Metrics and performance of a run as its summary has them, read from its records."""
    asked = Asked(unanswered=reader.count_records()[1], attempts=reader.count_attempts())
    metrics = {} if reader.evaluation is None else metric_aggregates(reader, reader.evaluation, asked)
    performance = measure_performance(reader, metrics, asked.attempts) if reader.kind == "samples" else None
    return {
        "metrics": {name: aggregate.to_dict() for name, aggregate in metrics.items()},
        "performance": performance,
        "caveats": find_caveats(reader, performance),
    }


def metric_details(reader: RunReader) -> dict[str, dict[str, object]]:
    """What explains the numbers of a run's current evaluation that are more than means, by metric."""
    if reader.evaluation is None:
        return {}
    named = reader.evaluation_config(reader.evaluation).get("aggregation", {})
    found = {
        name: describe_aggregation(aggregation, name, observations(reader, reader.evaluation, name))
        for name, aggregation in named.items()
        # Of one that another program registered the number is stored; what explains it is not to be had here.
        if is_known_aggregation(aggregation)
    }
    return {name: details for name, details in found.items() if details}


def running_scores(reader: RunReader) -> dict[str, tuple[float, int]]:
    """The mean and number of the scores so far, of metrics whose number will be a mean; others have none before the end."""
    named = {} if reader.evaluation is None else reader.evaluation_config(reader.evaluation).get("aggregation", {})
    return {
        name: found
        for name, found in running_means(reader).items()
        if name not in named or (is_known_aggregation(named[name]) and resolve_aggregation(named[name]).is_mean)
    }


def observations(
    reader: RunReader, evaluation: int, metric: str, within: Container[int] | None = None
) -> Iterator[Observation]:
    """What each stored score of a metric adds to a number over the whole run, or over the samples at some positions."""
    return (
        Observation(one.item_id, one.cluster, one.details)
        for one in reader.score_details(evaluation, metric)
        if within is None or one.position in within
    )


def summarise_run(report: ExperimentReport) -> dict[str, Any]:
    """The few numbers that lists and pages show without reading the run."""
    return {
        "metrics": {name: aggregate.to_dict() for name, aggregate in report.evaluation_report.metrics.items()},
        "total_samples": report.metadata["total_samples"],
        "failed_generations": report.metadata["failed_generations"],
        "cost": report.metadata["cost"],
        "performance": report.metadata["performance"],
        "caveats": report.metadata["caveats"],
        **({"parameters": told} if (told := report.metadata.get("parameters")) else {}),
    }


# --- how the calls went -----------------------------------------------------------------------------------------------


class Performance(TypedDict):
    """Of a sample run, as JSON tells it.

    Latency is of answers, each with its retries: the least time within which half, 90 % and 99 % of them came. What a success
    has cost is all that was paid, for failed samples and judges too, by the sum of a metric's scores: of scores that are 0 or 1,
    by the samples that passed. Metrics whose scores are no shares of a success have no entry, and None is for no success at all
    or an unknown price.
    """

    attempts: int
    failed_attempts: int
    latency_seconds: dict[str, float] | None
    truncated: int
    truncated_share: float | None
    cost_per_success_usd: dict[str, float | None]
    tokens_per_success: dict[str, float | None]


def measure_performance(
    reader: RunReader, metrics: Mapping[str, MetricAggregate], attempts: AttemptCounts
) -> Performance:
    """One pass over the times of a run's answers; everything else is counted already."""
    run = reader.metadata
    answered = attempts.made - attempts.failed
    tokens, cost = run.prompt_tokens + run.completion_tokens, run.total_cost_usd
    successes = {name: metric.successes for name, metric in metrics.items() if metric.successes is not None}
    return {
        "attempts": attempts.made,
        "failed_attempts": attempts.failed,
        "latency_seconds": _percentiles(reader.answer_seconds()),
        "truncated": run.cut_off,
        "truncated_share": run.cut_off / answered if answered else None,
        "cost_per_success_usd": {
            name: cost / count if count and cost is not None else None for name, count in successes.items()
        },
        "tokens_per_success": {name: tokens / count if count else None for name, count in successes.items()},
    }


def _percentiles(seconds: array[float]) -> dict[str, float] | None:
    """Measured values, the smallest at or below which so many percent lie; None of nothing."""
    if not seconds:
        return None
    import numpy as np

    ordered = np.sort(np.frombuffer(seconds))
    return {f"p{percent}": float(ordered[-(-percent * ordered.size // 100) - 1]) for percent in _PERCENTILES}


# --- in words ---------------------------------------------------------------------------------------------------------


def has_several_attempts(metric: Mapping[str, int]) -> bool:
    """Whether a metric's samples have more than one attempt each, so that attempts are worth a column."""
    return metric.get("attempts", 0) > metric["count"] + metric["failed"]


def performance_facts(found: Performance | None) -> dict[str, str]:
    """What people are shown, by name; nothing of a run that was not measured."""
    if found is None or not found["attempts"]:
        return {}
    facts = {"attempts": f"{found['attempts']:,}, {found['failed_attempts']:,} failed"}
    latency = found["latency_seconds"]
    if latency is not None:
        facts["latency"] = ", ".join(f"{name} {format_duration(seconds)}" for name, seconds in latency.items())
    if (share := found["truncated_share"]) is not None:
        facts["truncated"] = f"{found['truncated']:,} answers ({share:.1%})" if found["truncated"] else "none"
    costs, tokens = found["cost_per_success_usd"], found["tokens_per_success"]
    # What cost nothing costs nothing a success.
    if any(costs.values()):
        facts["cost per success"] = _join({name: _dollars(cost) for name, cost in costs.items()})
    if any(count is None or count for count in tokens.values()):
        facts["tokens per success"] = _join(
            {name: "none passed" if count is None else f"{count:,.0f}" for name, count in tokens.items()}
        )
    return facts


def parameter_facts(told: Mapping[str, Mapping[str, object]] | None) -> dict[str, str]:
    """What people are shown of the parameters that were sent: which, and which not as they were meant.

    Args:
        told: As a run's summary has it; None for a provider that does not tell.

    >>> parameter_facts({"sent": {"max_completion_tokens": 512}, "left_out": {"temperature": "0.0 is not sent: refused"}})
    {'sent': 'max_completion_tokens=512', 'not as asked': 'temperature: 0.0 is not sent: refused'}
    """
    facts = {}
    if told and told.get("sent"):
        facts["sent"] = ", ".join(f"{name}={value}" for name, value in told["sent"].items())
    if told and told.get("left_out"):
        facts["not as asked"] = "; ".join(f"{name}: {why}" for name, why in told["left_out"].items())
    return facts


def _join(by_metric: Mapping[str, str]) -> str:
    if len(by_metric) == 1:
        return next(iter(by_metric.values()))
    return ", ".join(f"{name} {text}" for name, text in by_metric.items())


def _dollars(value: float | None) -> str:
    """Two figures at least, however little it is."""
    if value is None:
        return "none passed"
    return f"${value:,.4f}" if value >= 0.01 else f"${value:.2g}"


def format_duration(seconds: float | None) -> str:
    """A time as people say it, in units that fit it."""
    if seconds is None:
        return "–"
    if 0 < seconds < 0.001:
        return "< 1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


# --- how a run stands -------------------------------------------------------------------------------------------------


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


def why_not_judged(report: ExperimentReport, *, by_each: bool = True) -> str:
    """Empty unless samples were answered and not one of them could be judged.

    Args:
        report: Of a run.
        by_each: Whether every metric has to judge some; else one of them is enough, as where metrics are kinds of tests.
    """
    metrics, answered = report.evaluation_report.metrics, report.metadata["successful_generations"]
    if report.metadata["evaluation_failures"] <= 0:
        return ""
    if not any(metric.count for metric in metrics.values()):
        return f"none of {answered:,} answers could be judged, for example {_first(report.evaluation_report.failures)}"
    silent = tuple(f"{name}:" for name, metric in metrics.items() if by_each and not metric.count)
    told = _first(one for one in report.evaluation_report.failures if silent and one.message.startswith(silent))
    return told and f"a metric could judge none of {answered:,} answers, for example {told}"


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
            # Of the prompts', where there are any.
            **{name: count for name in _CACHE_COUNTS if (count := getattr(run, name))},
        },
        "api_calls": run.calls,
        "judge_calls": run.judge_calls,
        "per_model_costs": {run.model.partition(":")[2] or run.model: generation},
        "pricing_version": table["version"],
        "pricing_updated_at": table["updated_at"],
    }


# --- sequences that read as they are looked at ------------------------------------------------------------------------


def _records(reader: RunReader, count: int, after: int, evaluation: int | None) -> LazySequence[GenerationRecord]:
    def stream() -> Iterator[GenerationRecord]:
        verdicts = iter(()) if evaluation is None else _mean_scores(reader, evaluation, after)
        judged, scores = next(verdicts, _NO_VERDICT)
        for position, record in reader.records(after=after):
            while judged < position:
                judged, scores = next(verdicts, _NO_VERDICT)
            if judged == position:
                record.scores = scores
            yield record

    return LazySequence(count, stream)


# Behind the last position there is.
_NO_VERDICT: tuple[float, dict[str, float]] = (math.inf, {})


def _mean_scores(reader: RunReader, evaluation: int, after: int) -> Iterator[tuple[float, dict[str, float]]]:
    """(position, a number a metric) of judged samples, in dataset order."""
    for position, of_sample in groupby(reader.item_scores(evaluation, after=after), key=itemgetter(0)):
        scored = [row for row in of_sample if row.value is not None and row.outcome != FAILED]
        yield position, mean_scores(MetricScore(row.metric, row.value or 0.0) for row in scored)


def _evaluations(reader: RunReader, evaluation: int, count: int | None, after: int) -> LazySequence[EvaluationRecord]:
    return LazySequence(count, lambda: (record for _, record in reader.evaluations(evaluation, after=after)))


def _scores(
    reader: RunReader, evaluation: int, name: str, count: int | None, after: int, within: Container[int] | None
) -> LazySequence[MetricScore]:
    def stream() -> Iterator[MetricScore]:
        for position, record in reader.evaluations(evaluation, after=after):
            if within is None or position in within:
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
    positions: dict[str, set[int]] = {name: set() for name in names}
    unanswered, made, failed = Counter[str](), Counter[str](), Counter[str]()
    for position, record in reader.records():
        for name in slices_of(pipeline, record):
            positions[name].add(position)
            unanswered[name] += record.error is not None
            made[name] += len(record.attempts)
            failed[name] += sum(attempt.error is not None for attempt in record.attempts)
    return {
        name: metric_aggregates(
            reader,
            evaluation,
            Asked(unanswered[name], AttemptCounts(made[name], failed[name])),
            names=pipeline.metric_names,
            within=positions[name],
        )
        for name in names
    }
