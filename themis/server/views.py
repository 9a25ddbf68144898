"""What each page shows, read from the store in bounded pieces."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from themis.comparison.diff import Change, RunDiff, diff_runs
from themis.comparison.pages import forest_plot
from themis.comparison.reports import TIE, ComparisonReport, ComparisonResult
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.memory.result_store import OVERALL
from themis.server.charts import Dot, Interval, dots, interval_bar, sparkline
from themis.server.shapes import run_line
from themis.storage import ExperimentStorage, RunMetadata, RunStatus
from themis.storage.queries import RunReader
from themis.storage.search import (
    Overview,
    RunFilter,
    SampleFilter,
    SamplePage,
    count_answers,
    find_runs,
    find_samples,
    overview,
    running_means,
    why_failed,
)

__all__ = [
    "ComparedMetric",
    "ComparedPair",
    "RunView",
    "RunsView",
    "ScoreBar",
    "compared",
    "run_so_far",
    "run_view",
    "runs_view",
    "score_bars",
]

_PREVIEW_CHARACTERS = 280
_RUNS_SHOWN = 50
_SAMPLES_SHOWN = 50
_CHANGES_SHOWN = 50
# Up to so many samples the page draws its overview at once; beyond, the page asks for it when it is shown.
_DRAWN_AT_ONCE = 20_000
_EARLIER_RUNS = 12


@dataclass(frozen=True)
class ScoreBar:
    """A metric of a run as it is drawn."""

    name: str
    mean: float | None
    count: int
    failed: int
    unparsed: int
    ci: list[float] | None
    ci_method: str | None
    bar: Interval | None


def score_bars(metrics: dict[str, Any]) -> list[ScoreBar]:
    """As they are drawn: the mean over all tests of a memory run before those of each kind."""
    return [
        ScoreBar(
            name=name,
            mean=metric.get("mean"),
            count=metric.get("count", 0),
            failed=metric.get("failed", 0),
            unparsed=metric.get("unparsed", 0),
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

    lines: list[tuple[RunMetadata, dict[str, Any], list[ScoreBar]]]
    total: int
    offset: int
    limit: int
    # Means of the newest runs of the same model and benchmark, oldest first, by run id.
    lines_before: dict[str, str] = field(default_factory=dict)


def runs_view(
    store: ExperimentStorage, wanted: RunFilter, *, sort: str = "created", descending: bool = True, offset: int = 0
) -> RunsView:
    if not store.exists():
        return RunsView([], 0, offset, _RUNS_SHOWN)
    page = find_runs(store.engine, wanted, sort=sort, descending=descending, limit=_RUNS_SHOWN, offset=offset)
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
    line: dict[str, Any]
    scores: list[ScoreBar]
    samples: SamplePage
    wanted: SampleFilter
    metrics: list[str]
    offset: int
    limit: int
    # None where the page asks for it later.
    overview: Overview | None


def run_view(reader: RunReader, wanted: SampleFilter, *, offset: int = 0, limit: int = _SAMPLES_SHOWN) -> RunView:
    run = reader.metadata
    line, scores = run_so_far(reader)
    metrics = [score.name for score in scores]
    if wanted.metric is None and metrics:
        wanted = SampleFilter(**{**vars(wanted), "metric": metrics[0]})
    elif wanted.metric is not None and metrics and wanted.metric not in metrics:
        raise ConfigurationError(f"run {run.run_id!r} has no metric {wanted.metric!r}{nearest(wanted.metric, metrics)}")
    return RunView(
        run=run,
        line=line,
        scores=scores,
        samples=find_samples(reader, wanted, limit=limit, offset=offset, characters=_PREVIEW_CHARACTERS),
        wanted=wanted,
        metrics=metrics,
        offset=offset,
        limit=limit,
        overview=overview(reader) if run.total_samples <= _DRAWN_AT_ONCE else None,
    )


def run_so_far(reader: RunReader) -> tuple[dict[str, Any], list[ScoreBar]]:
    """A run's line and its scores, added up here where no report has done so yet."""
    run = reader.metadata
    answered = count_answers(reader) if run.status is RunStatus.IN_PROGRESS else None
    line = run_line(run, answered, why_failed(reader))
    details = dict(line["metric_details"])
    if not details and run.total_samples <= _DRAWN_AT_ONCE:
        details = {name: {"mean": mean, "count": n} for name, (mean, n) in running_means(reader).items()}
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
    changes: list[Any]
    hidden: int

    @property
    def is_tie(self) -> bool:
        return self.result.winner == TIE


@dataclass(frozen=True)
class ComparedMetric:
    """A metric with every pair of runs."""

    name: str
    best: str
    plot: Any
    pairs: list[ComparedPair]


def compared(store: ExperimentStorage, report: ComparisonReport) -> list[ComparedMetric]:
    """The report by metric, a memory run's overall one first; fixed and broken items are read for two runs only."""
    # Of a measure that is neither good nor bad, nothing is fixed or broken.
    sortable = [result.metric_name for result in report.pairwise_results if result.higher_is_better is not None]
    diff = (
        diff_runs(*report.run_ids, storage=store, metrics=sortable) if len(report.run_ids) == 2 and sortable else None
    )
    found = []
    for metric in sorted(report.metrics, key=lambda name: name != OVERALL):
        results = report.get_metric_results(metric)
        pairs = [_compared_pair(result, diff if metric in sortable else None) for result in results]
        found.append(ComparedMetric(metric, report.best_line(metric), forest_plot(results), pairs))
    return found


def _compared_pair(result: ComparisonResult, diff: RunDiff | None) -> ComparedPair:
    drawn, low, high = dots(zip(result.run_a_samples, result.run_b_samples, strict=True))
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
