"""What a comparison says: a verdict a pair of runs and metric, who won against whom, and the whole of it as text, JSON or tables.

Values only; `comparison.engine` fills them in. A difference is always the first run minus the second.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from themis.comparison.pairing import Pairing
from themis.core.frames import DataFrame, build_frame
from themis.core.markup import escape_markdown, format_table
from themis.core.notebook import render_block, render_lines, render_table
from themis.core.registry import nearest
from themis.exceptions import MetricError

if TYPE_CHECKING:
    from themis.comparison.judge_correction import JudgeCorrection
from themis.comparison.ranking import Ranking

TIE = "tie"
_WIDTH = 80
# Two of them and their numbers fit into two lines of a terminal.
_LONGEST_NAME = 36


@dataclass
class StatisticalTestResult:
    """The verdict of one test.

    Args:
        test_name: Which test.
        statistic: Its statistic; None where it has none.
        p_value: None of a bootstrap, which has only an interval.
        significant: Whether the p-value is below alpha, or the interval excludes zero.
        confidence_level: Of the interval.
        effect_size: The difference in standard deviations of the differences (Cohen's d_z).
        confidence_interval: Of the difference, where the test has one of its own.
        inference_mode: "ci_only" of a bootstrap, else "hypothesis_test".
        n: Pairs.
        clusters: Groups of pairs that are not independent, where there are any.
        exact: Whether every permutation was counted.
        resamples: How many were drawn, if any.
        seed: What they were drawn with.
        reason: Why `auto` took this test.
        note: What limits its verdict.
        opposes_mean: Whether its evidence points the other way than the difference of the means: ranks may.

    >>> print(StatisticalTestResult("mcnemar", 2.0, 0.04, True))
    mcnemar, p = 0.0400, significant
    """

    test_name: str
    statistic: float | None
    p_value: float | None
    significant: bool
    confidence_level: float = 0.95
    effect_size: float | None = None
    confidence_interval: tuple[float, float] | None = None
    inference_mode: Literal["hypothesis_test", "ci_only"] = "hypothesis_test"
    n: int | None = None
    clusters: int | None = None
    exact: bool = False
    resamples: int | None = None
    seed: int | None = None
    reason: str = ""
    note: str = ""
    opposes_mean: bool = False

    def __str__(self) -> str:
        parts = [self.test_name]
        if self.inference_mode == "ci_only":
            parts.append("CI-only")
        elif self.p_value is not None:
            parts.append(format_p_value(self.p_value))
        if self.confidence_interval is not None:
            parts.append(f"{format_level(self.confidence_level)} interval {format_interval(self.confidence_interval)}")
        parts.append("significant" if self.significant else "not significant")
        return ", ".join(parts) + (f" ({self.note})" if self.note else "")


@dataclass
class ComparisonResult:
    """Two runs on one metric, over the items that are the same in both and have a score in both.

    Args:
        metric_name: The metric.
        run_a_id: The first run.
        run_b_id: The second run.
        run_a_mean: Over the shared items.
        run_b_mean: Over the shared items.
        delta: The first mean minus the second.
        delta_percent: The same in percent of the second.
        winner: The better run's id, "tie" if nothing separates them or neither value is better, None where they were
            judged differently.
        test_result: The verdict of the test, if there was one.
        run_a_samples: The first run's scores of the shared items.
        run_b_samples: The second's, in the same order.
        corrected_significant: After correction for the number of comparisons.
        corrected_p_value: Likewise.
        interval: Of the difference: the test's own, or the one that fits the scores for tests without one.
        interval_method: What it is called.
        note: What limits the verdict.
        higher_is_better: None for a measure that is neither good nor bad.
        pairing: How many items were paired, and why others were left out.
        judged_differently: In what the judging of the two runs differs; empty where it does not.
        judge_alike: What to do about that.

    >>> result = ComparisonResult("ExactMatch", "new", "old", 0.8, 0.7, 0.1, 14.3, "new")
    >>> result.summary()
    'ExactMatch: new 0.8000 - old 0.7000 = +0.1000 (+14.3%): new is better'
    """

    metric_name: str
    run_a_id: str
    run_b_id: str
    run_a_mean: float
    run_b_mean: float
    delta: float
    delta_percent: float
    winner: str | None
    test_result: StatisticalTestResult | None = None
    run_a_samples: list[float] = field(default_factory=list, repr=False)
    run_b_samples: list[float] = field(default_factory=list, repr=False)
    corrected_significant: bool | None = None
    corrected_p_value: float | None = None
    interval: tuple[float, float] | None = None
    interval_method: str | None = None
    note: str = ""
    higher_is_better: bool | None = True
    pairing: Pairing | None = None
    judged_differently: str = ""
    judge_alike: str = ""

    def is_significant(self) -> bool:
        """After correction for the number of comparisons, where there was one."""
        if self.corrected_significant is not None:
            return self.corrected_significant
        return self.test_result is not None and self.test_result.significant

    def summary(self, names: Mapping[str, str] | None = None) -> str:
        """The result in one line.

        Args:
            names: Shorter names of the runs, by id.
        """
        first, second = (names or {}).get(self.run_a_id, self.run_a_id), (names or {}).get(self.run_b_id, self.run_b_id)
        # Of a mean of zero nothing is a percentage.
        percent = f" ({self.delta_percent:+.1f}%)" if self.run_b_mean else ""
        name = f"{self.metric_name} (lower is better)" if self.higher_is_better is False else self.metric_name
        line = f"{name}: {first} {self.run_a_mean:.4f} - {second} {self.run_b_mean:.4f} = {self.delta:+.4f}{percent}"
        if self.pairing is not None:
            line += f", {self.pairing.count_text}"
        if self.interval is not None:
            line += f", interval {format_interval(self.interval)}"
        if self.test_result is not None:
            line += f", {self._evidence(self.test_result)}"
        line += f": {self.verdict(names)}"
        return line + (f" ({'; '.join(self.remarks)})" if self.remarks else "")

    @property
    def remarks(self) -> list[str]:
        """What must be read with the numbers: how they came to be beside each other, and what limits the verdict."""
        found = [f"judged differently: {self.judged_differently}" if self.judged_differently else ""]
        found += [self.pairing.mark if self.pairing is not None and self.pairing.across else "", self.note]
        return [remark for remark in found if remark]

    def verdict(self, names: Mapping[str, str] | None = None) -> str:
        """Who is better, in words.

        Args:
            names: Shorter names of the runs, by id.
        """
        if self.winner is None:
            return "no verdict"
        if self.higher_is_better is None and self.is_significant():
            return "they differ, and neither is better"
        return "tie" if self.winner == TIE else f"{(names or {}).get(self.winner, self.winner)} is better"

    def to_dict(self) -> dict[str, object]:
        """The result as plain values."""
        test = self.test_result
        return {
            "metric": self.metric_name,
            "run_a": self.run_a_id,
            "run_b": self.run_b_id,
            "run_a_mean": self.run_a_mean,
            "run_b_mean": self.run_b_mean,
            "delta": self.delta,
            "delta_percent": self.delta_percent,
            "winner": self.winner,
            "significant": self.is_significant(),
            "p_value": None if test is None else test.p_value,
            "corrected_significant": self.corrected_significant,
            "corrected_p_value": self.corrected_p_value,
            "n": len(self.run_a_samples),
            "clusters": None if test is None else test.clusters,
            "interval": None if self.interval is None else list(self.interval),
            "interval_method": self.interval_method,
            "test": None if test is None else test.test_name,
            "inference_mode": None if test is None else test.inference_mode,
            "effect_size": None if test is None else test.effect_size,
            "reason": "" if test is None else test.reason,
            "note": self.note,
            "higher_is_better": self.higher_is_better,
            "level": None if test is None else test.confidence_level,
            "pairing": None if self.pairing is None else self.pairing.to_dict(),
            "judged_differently": self.judged_differently,
            "judge_alike": self.judge_alike,
            "opposes_mean": test is not None and test.opposes_mean,
        }

    def _evidence(self, test: StatisticalTestResult) -> str:
        if test.p_value is None:
            return "CI-only"
        p_value = self.corrected_p_value
        corrected = "" if p_value in (None, test.p_value) else f" (corrected {format_p_value(p_value)})"
        return format_p_value(test.p_value) + corrected


@dataclass
class WinLossMatrix:
    """Who beat whom on a metric.

    Args:
        run_ids: The runs, in the order of rows and columns.
        metric_name: The metric.
        matrix: `matrix[i][j]` is "win", "loss" or "tie" of run i against run j, "?" if they were judged differently,
            "-" against itself.
        win_counts: By run.
        loss_counts: By run.
        tie_counts: By run.

    >>> result = ComparisonResult("ExactMatch", "new", "old", 0.8, 0.7, 0.1, 14.3, "new")
    >>> print(WinLossMatrix.from_results(["new", "old"], "ExactMatch", [result]).to_table())
    ExactMatch: row against column
              1     2
    1 new     -   win
    2 old  loss     -
    """

    run_ids: list[str]
    metric_name: str
    matrix: list[list[str]]
    win_counts: dict[str, int] = field(default_factory=dict)
    loss_counts: dict[str, int] = field(default_factory=dict)
    tie_counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_results(
        cls, run_ids: Sequence[str], metric_name: str, results: Sequence[ComparisonResult]
    ) -> WinLossMatrix:
        """The matrix of one metric's results.

        Args:
            run_ids: The runs, in the order of rows and columns.
            metric_name: The metric.
            results: One a pair of runs.
        """
        outcomes = {(run_id, run_id): "-" for run_id in run_ids}
        for result in results:
            pair = (result.run_a_id, result.run_b_id)
            won = {None: "?", TIE: "tie", result.run_a_id: "win"}.get(result.winner, "loss")
            outcomes[pair] = won
            outcomes[pair[::-1]] = {"win": "loss", "loss": "win"}.get(won, won)
        matrix = [[outcomes[one, other] for other in run_ids] for one in run_ids]
        counts = {
            outcome: {run_id: row.count(outcome) for run_id, row in zip(run_ids, matrix, strict=True)}
            for outcome in ("win", "loss", "tie")
        }
        return cls(list(run_ids), metric_name, matrix, counts["win"], counts["loss"], counts["tie"])

    def get_result(self, run_a: str, run_b: str) -> str:
        """How the first run did against the second: "win", "loss", "tie", or "?" if they were judged differently.

        Args:
            run_a: The first run.
            run_b: The second run.

        Raises:
            MetricError: A run is not in the matrix.
        """
        for run_id in (run_a, run_b):
            if run_id not in self.run_ids:
                raise MetricError(f"run {run_id!r} is not in this comparison{nearest(run_id, self.run_ids)}")
        return self.matrix[self.run_ids.index(run_a)][self.run_ids.index(run_b)]

    def rank_runs(self) -> list[tuple[str, int, int, int]]:
        """(run id, wins, losses, ties), the run with the most wins over losses first."""
        rows = [
            (run_id, self.win_counts.get(run_id, 0), self.loss_counts.get(run_id, 0), self.tie_counts.get(run_id, 0))
            for run_id in self.run_ids
        ]
        return sorted(rows, key=lambda row: row[2] - row[1])

    def to_table(self) -> str:
        """Rows against columns, as plain text."""
        names = [f"{number} {run_id}" for number, run_id in enumerate(self.run_ids, 1)]
        width = max(map(len, names))
        head = " " * width + "".join(f"{number:>6}" for number in range(1, len(names) + 1))
        rows = [
            f"{name:<{width}}" + "".join(f"{cell:>6}" for cell in row)
            for name, row in zip(names, self.matrix, strict=True)
        ]
        return "\n".join([f"{self.metric_name}: row against column", head, *rows])


class RunCounts(TypedDict):
    """What a run has: its items, the attempts at them, and how many of those have no answer."""

    items: int
    attempts: int
    failed_attempts: int
    # What must be said before its mean is: not the published protocol, too many answers cut off.
    caveats: NotRequired[list[str]]


class ReportMetadata(TypedDict, total=False):
    """How a report came about; `left_out` says of each metric that could not be compared why."""

    statistical_test: str
    alpha: float
    n_runs: int
    n_metrics: int
    multiple_comparison_correction: str | None
    n_hypotheses_corrected: int
    seed: int
    left_out: dict[str, str]
    runs: dict[str, RunCounts]
    # Items are paired by id, whatever their content.
    across: bool


@dataclass
class ComparisonReport:
    """Every pair of runs on every metric.

    Args:
        run_ids: The runs, in the order in which they were given.
        metrics: What was compared.
        pairwise_results: One a pair and metric.
        win_loss_matrices: By metric.
        best_run_per_metric: Who has the best mean; None if it is shared, or no value is better.
        overall_best_run: The run that won more comparisons than it lost, and more so than any other; None if there is none.
        metadata: How it came about: test, alpha, correction, seed.

    >>> import themis
    >>> from themis.comparison import compare_runs
    >>> for run_id, model in (("baseline", "fake/noisy-0.9"), ("candidate", "fake/perfect")):
    ...     report = themis.evaluate("demo", model=model, run_id=run_id, storage="runs", progress=False)
    >>> report = compare_runs(["baseline", "candidate"], storage_path="runs")
    >>> report.best_run_per_metric, report.method_line()
    ({'ExactMatch': 'candidate'}, 'Test: auto, alpha 0.05')
    """

    run_ids: list[str]
    metrics: list[str]
    pairwise_results: list[ComparisonResult]
    win_loss_matrices: dict[str, WinLossMatrix]
    best_run_per_metric: dict[str, str | None]
    overall_best_run: str | None
    metadata: ReportMetadata = field(default_factory=ReportMetadata)
    # Places that each run may have, by metric; only for three runs or more.
    rankings: dict[str, Ranking] = field(default_factory=dict)
    # What is left of differences that an audited judge saw.
    judge_corrections: list[JudgeCorrection] = field(default_factory=list)

    def get_comparison(self, run_a: str, run_b: str, metric: str) -> ComparisonResult | None:
        """The row of two runs, in either order; its `delta` is that of its own run_a and run_b.

        Args:
            run_a: One run.
            run_b: The other.
            metric: The metric.
        """
        for result in self.pairwise_results:
            if result.metric_name == metric and {result.run_a_id, result.run_b_id} == {run_a, run_b}:
                return result
        return None

    def get_metric_results(self, metric: str) -> list[ComparisonResult]:
        """The results of one metric, one a pair.

        Args:
            metric: The metric.
        """
        return [result for result in self.pairwise_results if result.metric_name == metric]

    def summary(self, include_details: bool = False) -> str:
        """The report as text, at most a screen without details.

        Args:
            include_details: With every pair and matrix.
        """
        lines = [
            "=" * _WIDTH,
            "COMPARISON REPORT",
            "=" * _WIDTH,
            "",
            f"Comparing {len(self.run_ids)} runs across {len(self.metrics)} metrics",
            *self._runs_lines(),
            f"Metrics: {', '.join(self.metrics)}",
            *self.left_out(),
            *self.pairing_lines(),
            "",
            "Best run per metric:",
            *(f"  {metric}: {self.best_line(metric)}" for metric in self.metrics),
            "",
            f"Overall best run: {self.overall_best_run or 'none; no run is ahead of all others beyond chance'}",
            self.method_line(),
        ]
        if include_details:
            names = self.names()
            for metric in self.metrics:
                lines += ["", "-" * _WIDTH, self.win_loss_matrices[metric].to_table(), ""]
                lines += [f"  {result.summary(names)}" for result in self.get_metric_results(metric)]
        return "\n".join([*lines, "=" * _WIDTH])

    def names(self) -> dict[str, str]:
        """What the runs are called in lines of text."""
        return short_labels(self.run_ids, _LONGEST_NAME)

    def _runs_lines(self) -> list[str]:
        """The ids in full, below each other where they are called by a part of them further on."""
        if all(name == run_id for run_id, name in self.names().items()):
            return [f"Runs: {', '.join(self.run_ids)}"]
        return ["Runs:", *(f"  {run_id}" for run_id in self.run_ids)]

    def to_dict(self) -> dict[str, object]:
        """The report as plain values."""
        return {
            "run_ids": list(self.run_ids),
            "metrics": list(self.metrics),
            "best_run_per_metric": dict(self.best_run_per_metric),
            "overall_best_run": self.overall_best_run,
            "pairwise_results": [result.to_dict() for result in self.pairwise_results],
            "win_loss_summary": {
                metric: {
                    "rankings": [
                        {"run_id": run_id, "wins": wins, "losses": losses, "ties": ties}
                        for run_id, wins, losses, ties in matrix.rank_runs()
                    ]
                }
                for metric, matrix in self.win_loss_matrices.items()
            },
            "places": {
                metric: [
                    {
                        "run_id": place.run,
                        "mean": place.mean,
                        "rank": place.rank,
                        "best": place.best,
                        "worst": place.worst,
                    }
                    for place in ranking.runs
                ]
                for metric, ranking in self.rankings.items()
            },
            "judge_corrections": [correction.to_dict() for correction in self.judge_corrections],
            "metadata": dict(self.metadata),
        }

    def to_frame(self, library: str = "pandas") -> DataFrame:
        """One row a pair and metric, as a data frame: means, difference, interval, p-values, verdict.

        Args:
            library: `pandas` or `polars`, which `pip install 'themis-eval[frames]'` installs.

        Raises:
            DependencyError: The library is not installed.
        """
        columns: dict[str, list[object]] = {}
        for result in self.pairwise_results:
            low, high = result.interval or (None, None)
            for name, value in result.to_dict().items():
                cells = {"interval_low": low, "interval_high": high} if name == "interval" else {name: value}
                for column, cell in cells.items() if name != "pairing" else ():
                    columns.setdefault(column, []).append(cell)
        return build_frame(columns, library, kinds=_KINDS)

    def _repr_html_(self) -> str:
        best = [f"{metric}: {self.best_line(metric)}" for metric in self.metrics]
        told = [*best, self.method_line(), *self.pairing_lines(), *self.notes()]
        table = render_table(_COLUMNS, _table_rows(self), right=range(3, 9))
        return render_block("Comparison", self.run_ids, [], [table, render_lines(told)])

    def best_line(self, metric: str) -> str:
        """Who has the best mean on a metric, and how many of the others it beats.

        Args:
            metric: The metric.
        """
        best = self.best_run_per_metric.get(metric)
        if any(result.higher_is_better is None for result in self.get_metric_results(metric)):
            return "none; more of it is neither better nor worse"
        if any(result.winner is None for result in self.get_metric_results(metric)):
            return "none; the runs were judged differently"
        if best is None:
            return "tie; the best mean is shared"
        against = [result for result in self.get_metric_results(metric) if best in (result.run_a_id, result.run_b_id)]
        beaten = sum(result.winner == best for result in against)
        mean = next((r.run_a_mean if r.run_a_id == best else r.run_b_mean for r in against), None)
        shown = "" if mean is None else f" ({mean:.4f})"
        beyond = "" if self.metadata.get("statistical_test") == "none" else " beyond chance"
        told = (
            ("better" if beaten else "but not better")
            if len(against) == 1
            else f"better than {beaten} of {len(against)}"
        )
        return f"{self.names()[best]}{shown}, {told}{beyond}"

    def reasons(self, metric: str | None = None) -> list[str]:
        """Why `auto` took the tests it took, each reason once with its metrics.

        Args:
            metric: Only of this metric.
        """
        metrics: dict[str, dict[str, None]] = {}
        for result in self._rows(metric):
            if result.test_result is not None and result.test_result.reason:
                metrics.setdefault(result.test_result.reason, {})[result.metric_name] = None
        return [f"{', '.join(names)}: {reason}" for reason, names in metrics.items()]

    def notes(self, metric: str | None = None) -> list[str]:
        """Those reasons, what limits the verdicts, and what could not be compared.

        Args:
            metric: Only of this metric.
        """
        limits = [
            f"{r.metric_name}, {r.run_a_id} - {r.run_b_id}: {remark}"
            for r in self._rows(metric)
            for remark in r.remarks
        ]
        told = [*self.reasons(metric), *limits, *self.judge_lines(metric)]
        return [*told, *(self.left_out() if metric is None else ())]

    def judge_lines(self, metric: str | None = None) -> list[str]:
        """Whether differences survive what is known of the judges that saw them.

        Args:
            metric: Only of this metric.
        """
        return [found.summary() for found in self.judge_corrections if metric in (None, found.metric)]

    def pairing_lines(self) -> list[str]:
        """How many items were paired and what was left out, who was judged differently, how many attempts failed, and
        what must be said of a run before its mean."""
        names, texts = self.names(), dict[str, list[ComparisonResult]]()
        for result in self.pairwise_results:
            if result.pairing is not None:
                text = result.pairing.describe(names[result.run_a_id], names[result.run_b_id])
                texts.setdefault(text, []).append(result)
        lines = [f"Paired{self._whose(results)}: {text}" for text, results in texts.items()]
        differing: dict[tuple[str, str], list[ComparisonResult]] = {}
        for result in self.pairwise_results:
            if result.judged_differently:
                differing.setdefault((result.judged_differently, result.judge_alike), []).append(result)
        for (what, way), results in differing.items():
            lines.append(f"Judged differently{self._whose(results)}: {what}; {way}")
        counts = [
            f"{names[run_id]} {run['attempts']} ({run['failed_attempts']} failed)"
            for run_id, run in self.metadata.get("runs", {}).items()
        ]
        caveats = [
            f"{names[run_id]}: {caveat}"
            for run_id, run in self.metadata.get("runs", {}).items()
            for caveat in run.get("caveats", ())
        ]
        return [*lines, *([f"Attempts: {', '.join(counts)}"] if counts else []), *caveats]

    def _whose(self, results: Sequence[ComparisonResult]) -> str:
        """Of which runs, and of which metrics, where that is not all of them."""
        names, every = self.names(), self.pairwise_results
        pairs = dict.fromkeys((result.run_a_id, result.run_b_id) for result in results)
        metrics = dict.fromkeys(result.metric_name for result in results)
        whose = ""
        if len(pairs) < len({(result.run_a_id, result.run_b_id) for result in every}):
            whose += " " + ", ".join(f"{names[one]} - {names[other]}" for one, other in pairs)
        if len(metrics) < len(self.metrics):
            whose += f" on {', '.join(metrics)}"
        return whose

    def left_out(self) -> list[str]:
        """The metrics that not every two of the runs have scores of on the same items."""
        return [f"Left out: {metric}: {reason}" for metric, reason in self.metadata.get("left_out", {}).items()]

    def method_line(self) -> str:
        """How the differences were weighed."""
        test, alpha = self.metadata.get("statistical_test"), self.metadata.get("alpha")
        corrected = self.metadata.get("n_hypotheses_corrected", 0)
        correction = self.metadata.get("multiple_comparison_correction")
        if test == "none":
            return "Test: none; the better mean wins"
        if corrected > 1:
            return f"Test: {test}, alpha {alpha}, {corrected} p-values corrected by {correction}"
        tests = [result.test_result for result in self.pairwise_results if result.test_result is not None]
        if test == "bootstrap" and correction is not None and len(tests) > 1:
            each = format_level(tests[0].confidence_level)
            return f"Test: {test}, alpha {alpha}, {len(tests)} intervals of {each} that hold together"
        many = f"; {len(tests)} comparisons, not corrected for their number" if len(tests) > 1 else ""
        return f"Test: {test}, alpha {alpha}{many}"

    def _rows(self, metric: str | None) -> list[ComparisonResult]:
        return self.pairwise_results if metric is None else self.get_metric_results(metric)


def markdown_table(report: ComparisonReport) -> str:
    """A table a pull request or a README can hold, with how it was computed below."""
    told = [*report.pairing_lines(), *report.notes()]
    notes = [f"{escape_markdown(report.method_line())}.", *(f"- {escape_markdown(note)}" for note in told)]
    return "\n".join([format_table(_COLUMNS, _table_rows(report)), "", *notes])


# What stands in the columns of its frame also where no pair has a value.
_KINDS: dict[str, type] = {
    **dict.fromkeys(("p_value", "corrected_p_value", "interval_low", "interval_high", "effect_size", "level"), float),
    **dict.fromkeys(("winner", "interval_method", "test", "inference_mode"), str),
    "clusters": int,
}

_COLUMNS = (
    *("Metric", "First", "Second", "Means", "Difference"),
    *("Interval", "p", "Corrected p", "Items", "Better"),
)


def _table_rows(report: ComparisonReport) -> list[tuple[str, ...]]:
    return [
        (
            result.metric_name,
            result.run_a_id,
            result.run_b_id,
            f"{result.run_a_mean:.4f} / {result.run_b_mean:.4f}",
            f"{result.delta:+.4f}",
            "–" if result.interval is None else "{:+.4f} to {:+.4f}".format(*result.interval),
            format_p_cell(result.test_result.p_value if result.test_result else None),
            format_p_cell(result.corrected_p_value),
            str(len(result.run_a_samples)),
            result.winner or "no verdict",
        )
        for result in report.pairwise_results
    ]


def format_p_value(p_value: float) -> str:
    return "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.4f}"


def format_p_cell(p_value: float | None) -> str:
    """For a column that is headed p already."""
    return "–" if p_value is None else format_p_value(p_value).removeprefix("p = ").removeprefix("p ")


def format_level(level: float) -> str:
    """A confidence level in percent, with as many digits as tell it from certainty."""
    return f"{100 * level:.4g}%"


def format_interval(interval: tuple[float, float]) -> str:
    return f"[{interval[0]:+.4f}, {interval[1]:+.4f}]"


def short_labels(run_ids: Sequence[str], longest: int) -> dict[str, str]:
    """Run ids short enough for a table or a plot: as they are where they fit, else the part in which they differ.

    All are in full if shortening would make two of them equal.
    """
    long = [run_id for run_id in run_ids if len(run_id) > longest]
    alike = list(takewhile(lambda letters: len(set(letters)) == 1, zip(*long, strict=False))) if len(long) > 1 else []
    # Back to where the differing word begins.
    start = max((gap.end() for gap in re.finditer(r"[^A-Za-z0-9]", long[0][: len(alike)])), default=0) if alike else 0
    labels = {run_id: _shorten(run_id, start, longest) if run_id in long else run_id for run_id in run_ids}
    return labels if len(set(labels.values())) == len(labels) else {run_id: run_id for run_id in run_ids}


def _shorten(run_id: str, start: int, longest: int) -> str:
    """The end of an id if the differing part lies in it, else that part with a little of the end."""
    room = longest - 1
    if len(run_id) - start <= room:
        return f"…{run_id[-room:]}"
    tail = longest // 3
    head = room - tail - (1 if start else 0)
    return f"{'…' if start else ''}{run_id[start : start + head]}…{run_id[-tail:]}"
