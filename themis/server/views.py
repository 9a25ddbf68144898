"""What is shown of stored runs: as the JSON of the API, and as the values that templates draw.

Everything is read from the store in bounded pieces. Places in an SVG are in percent of its width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypedDict

from markupsafe import Markup

from themis.comparison.diff import Change, DiffItem, RunDiff, diff_runs
from themis.comparison.pages import forest_plot
from themis.comparison.reports import ComparisonReport, ComparisonResult
from themis.core.redaction import Redactor
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.experiment.export.measures import distinct_details, figures
from themis.runs.report import (
    OVERALL,
    describe_protocol,
    has_several_attempts,
    measure_run,
    metric_details,
    running_scores,
)
from themis.runs.samples import format_error, read_sample, why_missing
from themis.storage import ExperimentStorage, RunMetadata, RunStatus
from themis.storage.queries import RunReader
from themis.storage.search import (
    Histogram,
    NewRecord,
    Overview,
    RunFilter,
    SampleFilter,
    SampleLine,
    SamplePage,
    count_answers,
    find_runs,
    find_samples,
    overview,
    why_failed,
)

# Pages read one character more, so that they can tell what they cut.
_PREVIEW_CHARACTERS = 280
_RUNS_SHOWN = 50
SAMPLES_SHOWN = 50
_CHANGES_SHOWN = 50
# Up to so many samples the page draws its overview at once; beyond, the page asks for it when it is shown.
_DRAWN_AT_ONCE = 20_000
_EARLIER_RUNS = 12
_COLUMN_HEIGHT = 90.0

JSONObject = dict[str, Any]


class Sort(TypedDict):
    """By what, and whether the greatest comes first."""

    sort: str
    descending: bool


def parse_sort(text: str) -> Sort:
    """`created`, or `-created` for descending."""
    return {"sort": text.removeprefix("-"), "descending": text.startswith("-")}


class NotFound(Exception):
    """There is nothing of that name."""


# --- as JSON: the first fields are the contract's, the rest came later ------------------------------------------------


def run_line(
    run: RunMetadata, answered: int | None = None, error: str | None = None, measured: JSONObject | None = None
) -> JSONObject:
    """A run in a list. `error` says why it failed where the run itself does not; `measured` is newer than its summary."""
    shown = run.summary if measured is None else measured
    summary = shown.get("metrics", {})
    return {
        "run_id": run.run_id,
        "experiment_id": run.experiment,
        "status": run.status.value,
        "num_samples": run.total_samples,
        "metrics": {name: metric["mean"] for name, metric in summary.items()},
        "created_at": run.created_at.isoformat(),
        "kind": run.kind,
        "model": run.model,
        "benchmark": run.benchmark,
        "tags": run.tags,
        "updated_at": run.updated_at.isoformat(),
        "completed_at": run.completed_at.isoformat() if run.completed_at else None,
        "metric_details": summary,
        "num_answered": run.successful_generations + run.failed_generations if answered is None else answered,
        "failed": run.failed_generations,
        "num_cut_off": run.cut_off,
        "cost_usd": run.total_cost_usd,
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.completion_tokens,
        "calls": run.calls,
        "performance": shown.get("performance"),
        "protocol": describe_protocol(run.config_snapshot.get("reproducibility_manifest", {})) or None,
        "caveats": shown.get("caveats", []),
        "error": run.error_message if error is None else error,
        "is_abandoned": run.is_abandoned,
        # Only while somebody waits: one that was killed meanwhile does not.
        "waiting": run.waiting if run.status is RunStatus.IN_PROGRESS and run.writer is not None else None,
        # As people are told it: "completed", "16 of 60 failed".
        "standing": run.standing._asdict(),
        **({"memory": run.summary["memory"]} if "memory" in run.summary else {}),
    }


def line_of(reader: RunReader) -> JSONObject:
    """A run by itself, with what takes more than its row to say."""
    run = reader.metadata
    # A summary that was stored earlier may hold less, and of attempts that keep their scores another mean.
    is_old = run.kind == "samples" and run.summary and not {"performance", "caveats"} <= run.summary.keys()
    measured = measure_run(reader) if is_old and run.total_samples <= _DRAWN_AT_ONCE else None
    return run_line(run, count_answered(reader), why_failed(reader), measured)


def count_answered(reader: RunReader) -> int | None:
    """Counted where the run itself cannot say it yet."""
    return count_answers(reader) if reader.metadata.status is RunStatus.IN_PROGRESS else None


def run_event(run: RunMetadata, answered: int | None, means: dict[str, tuple[float, int]]) -> JSONObject:
    """What changes while a run is under way."""
    line = run_line(run, answered)
    if means and run.status is RunStatus.IN_PROGRESS:
        line["metrics"] = {name: mean for name, (mean, _) in means.items()}
        line["metric_details"] = _mean_details(means)
    return {"type": "run", **line}


def _mean_details(means: dict[str, tuple[float, int]]) -> JSONObject:
    return {name: {"mean": mean, "count": count} for name, (mean, count) in means.items()}


def format_sample_line(line: SampleLine, redactor: Redactor) -> JSONObject:
    """A sample in a list."""
    return {
        "id": line.item_id,
        "prompt": _redact_text(line.prompt, redactor),
        "response": _redact_text(line.text, redactor),
        "scores": {score.metric: score.value for score in line.scores if score.value is not None},
        "error": format_error(line.error, redactor),
        "outcomes": {score.metric: score.outcome for score in line.scores},
        "attempts": line.attempts,
        "seconds": line.seconds,
        "prompt_tokens": line.prompt_tokens,
        "completion_tokens": line.completion_tokens,
        "cost_usd": line.cost_usd,
        "position": line.position,
        "is_cut": line.is_cut,
        "tool_calls": redactor.data([call.to_plain() for call in line.tool_calls]),
    }


def sample_view(reader: RunReader, item_id: str, redactor: Redactor) -> JSONObject:
    """A sample with everything that is stored of it; one that is not there, or has no answer yet, is `NotFound`."""
    found = read_sample(reader, item_id, redactor)
    if found is None:
        raise NotFound(f"Sample not found: {item_id} {why_missing(reader, item_id)}")
    return found


def sample_event(run_id: str, record: NewRecord) -> JSONObject:
    return {
        "type": "sample",
        "run_id": run_id,
        "id": record.item_id,
        "position": record.position,
        "attempt": record.attempt,
        "ok": record.ok,
        "seconds": record.seconds,
        "scores": {score.metric: score.value for score in record.scores if score.value is not None},
    }


def _redact_text(text: str | None, redactor: Redactor) -> str | None:
    return None if text is None else redactor.values(text)


# --- as charts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """A column of a histogram."""

    x: float
    width: float
    y: float
    height: float
    title: str


def histogram_bars(histogram: Histogram) -> list[Bar]:
    """Columns of a histogram, the highest filling the height; a small one is still seen."""
    most = max(histogram.counts, default=0) or 1
    width = 100 / len(histogram.counts)
    step = (histogram.high - histogram.low) / len(histogram.counts)
    found = []
    for number, count in enumerate(histogram.counts):
        if not count:
            continue
        height = max(count / most * _COLUMN_HEIGHT, 2.0)
        low = histogram.low + number * step
        title = f"{low:.3g} to {low + step:.3g}: {count:,}"
        found.append(
            Bar(round(number * width + width * 0.1, 2), round(width * 0.8, 2), round(100 - height, 1), height, title)
        )
    return found


@dataclass(frozen=True)
class Interval:
    """A mean with the ends of its interval."""

    point: float
    low: float | None
    high: float | None


def interval_bar(mean: float | None, ci: Sequence[float] | None) -> Interval | None:
    """A mean and its interval between 0 and 1, or further out where they lie there; None where there is no mean."""
    if mean is None or not math.isfinite(mean):
        return None
    low, high = min(0.0, mean, *(ci or [mean])), max(1.0, mean, *(ci or [mean]))
    span = high - low

    def place(value: float) -> float:
        return round((value - low) / span * 100, 2)

    return Interval(place(mean), place(ci[0]) if ci else None, place(ci[1]) if ci else None)


@dataclass(frozen=True)
class Dot:
    """A point of a scatter plot; larger where several lie on each other."""

    x: float
    y: float
    radius: float
    title: str
    side: str


def scatter_dots(pairs: Iterable[tuple[float, float]]) -> tuple[list[Dot], float, float]:
    """Paired scores: the first run to the right, the second upwards; and the ends of both axes."""
    counted: dict[tuple[float, float], int] = {}
    for pair in pairs:
        counted[pair] = counted.get(pair, 0) + 1
    if not counted:
        return [], 0.0, 1.0
    values = [value for pair in counted for value in pair]
    low, high = min(0.0, *values), max(1.0, *values)
    most = max(counted.values())
    found = []
    for (first, second), count in sorted(counted.items(), key=lambda entry: -entry[1])[:2_000]:
        side = "same" if first == second else "first" if first > second else "second"
        radius = 1.3 + 3 * math.sqrt(count / most) if most > 1 else 1.6
        x, y = ((value - low) / (high - low) * 84 + 8 for value in (first, second))
        title = f"{first:.4g} and {second:.4g}: {count:,} item{'s' if count > 1 else ''}"
        found.append(Dot(round(x, 2), round(100 - y, 2), round(radius, 2), title, side))
    return found, low, high


def sparkline(means: Sequence[float]) -> str:
    """The points of a line through earlier runs' means, for a box of 100 by 24."""
    if len(means) < 2:
        return ""
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    step = 100 / (len(means) - 1)
    return " ".join(f"{n * step:.1f},{22 - (mean - low) / span * 20:.1f}" for n, mean in enumerate(means))


# --- the scores of a run ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoreBar:
    """A metric of a run as it is drawn."""

    name: str
    mean: float | None
    count: int
    failed: int
    unparsed: int
    attempts: int
    failed_attempts: int
    ci: list[float] | None
    ci_method: str | None
    bar: Interval | None

    @property
    def has_several_attempts(self) -> bool:
        return has_several_attempts(vars(self))


def score_bars(metrics: JSONObject) -> list[ScoreBar]:
    """As they are drawn: the mean over all tests of a memory run before those of each kind."""
    return [
        ScoreBar(
            name=name,
            mean=metric.get("mean"),
            count=metric.get("count", 0),
            failed=metric.get("failed", 0),
            unparsed=metric.get("unparsed", 0),
            attempts=metric.get("attempts", 0),
            failed_attempts=metric.get("failed_attempts", 0),
            ci=metric.get("ci"),
            ci_method=metric.get("ci_method"),
            bar=interval_bar(metric.get("mean"), metric.get("ci")),
        )
        for name, metric in sorted(metrics.items(), key=lambda metric: metric[0] != OVERALL)
    ]


# --- the list ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunsView:
    """A page of the list of runs."""

    lines: list[tuple[RunMetadata, JSONObject, list[ScoreBar]]]
    total: int
    offset: int
    limit: int
    # Means of the newest runs of the same model and benchmark, oldest first, by run id.
    lines_before: dict[str, str] = field(default_factory=dict)


def runs_view(store: ExperimentStorage, wanted: RunFilter, *, sort: str, offset: int = 0) -> RunsView:
    if not store.exists():
        return RunsView([], 0, offset, _RUNS_SHOWN)
    page = find_runs(store.engine, wanted, **parse_sort(sort), limit=_RUNS_SHOWN, offset=offset)
    lines = [
        (run, run_line(run, page.answered.get(run.run_id)), score_bars(run.summary.get("metrics", {})))
        for run in page.runs
    ]
    first_scores = [(run, scores[0]) for run, _, scores in lines if scores]
    return RunsView(lines, page.total, offset, _RUNS_SHOWN, _lines_before(first_scores))


def _lines_before(found_scores: list[tuple[RunMetadata, ScoreBar]]) -> dict[str, str]:
    """How the first metric went over the runs of one model and benchmark that are on the page."""
    groups: dict[tuple[str, str | None, str], list[tuple[str, float]]] = {}
    for run, score in sorted(found_scores, key=lambda one: one[0].created_at):
        if score.mean is not None:
            groups.setdefault((run.model, run.benchmark, score.name), []).append((run.run_id, score.mean))
    found = {}
    for group in groups.values():
        for number, (run_id, _) in enumerate(group):
            found[run_id] = sparkline([mean for _, mean in group[max(0, number + 1 - _EARLIER_RUNS) : number + 1]])
    return found


# --- one run ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunView:
    """The page of a run."""

    run: RunMetadata
    line: JSONObject
    scores: list[ScoreBar]
    samples: SamplePage
    wanted: SampleFilter
    metrics: list[str]
    offset: int
    limit: int
    # None where the page asks for it later.
    overview: Overview | None
    pictures: list[tuple[str, Markup]]


def run_view(reader: RunReader, wanted: SampleFilter, *, offset: int = 0, limit: int = SAMPLES_SHOWN) -> RunView:
    run = reader.metadata
    line, scores = run_progress(reader)
    metrics = [score.name for score in scores]
    if wanted.metric is None and metrics:
        wanted = SampleFilter(**{**vars(wanted), "metric": metrics[0]})
    elif wanted.metric is not None and metrics and wanted.metric not in metrics:
        raise ConfigurationError(f"run {run.run_id!r} has no metric {wanted.metric!r}{nearest(wanted.metric, metrics)}")
    return RunView(
        run=run,
        line=line,
        scores=scores,
        samples=find_samples(reader, wanted, limit=limit, offset=offset, characters=_PREVIEW_CHARACTERS + 1),
        wanted=wanted,
        metrics=metrics,
        offset=offset,
        limit=limit,
        overview=overview(reader) if run.total_samples <= _DRAWN_AT_ONCE else None,
        pictures=pictures(reader) if run.total_samples <= _DRAWN_AT_ONCE else [],
    )


def pictures(reader: RunReader) -> list[tuple[str, Markup]]:
    """The run's confusion matrix and reliability diagram, with their titles, where a metric has such."""
    details = metric_details(reader)
    found = distinct_details(details.items()) if details else {}
    return [picture for details in found.values() for picture in figures(details)]


def list_measures(reader: RunReader) -> frozenset[str]:
    """The metrics of a run of which more is not better: counts, times and distances."""
    if reader.evaluation is None:
        return frozenset()
    return frozenset(reader.evaluation_config(reader.evaluation).get("higher_is_better", {}))


def run_progress(reader: RunReader) -> tuple[JSONObject, list[ScoreBar]]:
    """A run's line and its scores, added up here where no report has done so yet."""
    run, line = reader.metadata, line_of(reader)
    details = line["metric_details"]
    if not details and run.total_samples <= _DRAWN_AT_ONCE:
        details = _mean_details(running_scores(reader))
    return line, score_bars(details)


# --- runs beside each other -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparedPair:
    """Two runs on one metric, as the page draws them."""

    result: ComparisonResult
    dots: list[Dot]
    low: float
    high: float
    counts: dict[str, int]
    changes: list[DiffItem]
    hidden: int


@dataclass(frozen=True)
class ComparedMetric:
    """A metric with every pair of runs."""

    name: str
    best: str
    plot: object
    pairs: list[ComparedPair]


def comparison_view(store: ExperimentStorage, report: ComparisonReport) -> list[ComparedMetric]:
    """The report by metric, a memory run's overall one first; fixed and broken items are read for two runs only."""
    # Of a measure that is neither good nor bad, nothing is fixed or broken.
    sortable = [result.metric_name for result in report.pairwise_results if result.higher_is_better is not None]
    diff = None
    if len(report.run_ids) == 2 and sortable:
        diff = diff_runs(*report.run_ids, storage=store, metrics=sortable, across=report.metadata.get("across", False))
    found = []
    for metric in sorted(report.metrics, key=lambda name: name != OVERALL):
        results = report.get_metric_results(metric)
        pairs = [_pair_view(result, diff if metric in sortable else None) for result in results]
        found.append(ComparedMetric(metric, report.best_line(metric), forest_plot(results), pairs))
    return found


def _pair_view(result: ComparisonResult, diff: RunDiff | None) -> ComparedPair:
    drawn, low, high = scatter_dots(zip(result.run_a_samples, result.run_b_samples, strict=True))
    if diff is None:
        return ComparedPair(result, drawn, low, high, {}, [], 0)
    counts = {change.value: count for change, count in diff.by_metric[result.metric_name].counts.items()}
    changed = [
        item
        for change in (Change.BROKEN, Change.FIXED)
        for item in islice(diff.items(only=change, metric=result.metric_name, limit=_CHANGES_SHOWN), _CHANGES_SHOWN)
    ]
    hidden = counts[Change.BROKEN.value] + counts[Change.FIXED.value] - len(changed)
    return ComparedPair(result, drawn, low, high, counts, changed, hidden)
