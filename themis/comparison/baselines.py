"""Compares runs each with a baseline of its own, and corrects for the number of comparisons of all of them together.

`engine.ComparisonEngine` compares every two of a few runs; an experiment has many, on several datasets, and asks only how
each does beside the one it is meant to replace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from themis.comparison.engine import Hypothesis, TestSettings, pair_up, run_tests
from themis.comparison.judge_correction import JudgeCorrection, correct_for_judges
from themis.comparison.reports import ComparisonResult
from themis.comparison.scores import ScoredRun, common_metrics, is_higher_better, open_scores, overlap_of_runs
from themis.exceptions import MetricError, StorageError
from themis.runs.judge_audits import AUDITS
from themis.storage import ExperimentStorage

__all__ = ["BaselineComparison", "compare_to_baselines"]


@dataclass(frozen=True, kw_only=True)
class BaselineComparison:
    """Runs beside their baselines, a result a pair and metric; a difference is the run's mean minus its baseline's.

    Args:
        results: In the order of the pairs.
        settings: How the differences were tested.
        left_out: What could not be compared, and why, a line each.
        judge_corrections: What is left of differences that an audited judge saw.
    """

    results: Sequence[ComparisonResult] = ()
    settings: TestSettings = field(default_factory=TestSettings)
    left_out: Sequence[str] = ()
    judge_corrections: Sequence[JudgeCorrection] = ()

    def method_line(self) -> str:
        """How the differences were weighed."""
        corrected = sum(result.corrected_p_value is not None for result in self.results)
        line = f"Test: {self.settings.test.value}, alpha {self.settings.alpha:g}"
        return f"{line}, {corrected} p-values corrected by {self.settings.correction}" if corrected > 1 else line

    def notes(self, names: Mapping[str, str] | None = None) -> list[str]:
        """What limits the verdicts, what is left of them when judges err, and what could not be compared.

        Args:
            names: What the runs are called, by id; their ids by default.
        """
        called = names or {}
        limits = [
            f"{result.metric_name}, {called.get(result.run_a_id, result.run_a_id)} - "
            f"{called.get(result.run_b_id, result.run_b_id)}: {remark}"
            for result in self.results
            for remark in result.remarks
        ]
        return [*limits, *(found.summary() for found in self.judge_corrections), *self.left_out]


def compare_to_baselines(
    storage: ExperimentStorage, pairs: Iterable[tuple[str, str]], *, settings: TestSettings | None = None
) -> BaselineComparison:
    """Compares every run with its baseline on all metrics that both have.

    Args:
        storage: Where the runs are.
        pairs: A run and its baseline, by their ids.
        settings: How differences are tested; p-values of all pairs are corrected together.

    Returns:
        The results; a pair or metric that cannot be compared is named with its reason.

    >>> import themis
    >>> for run_id, model in (("baseline", "fake/noisy-0.9"), ("candidate", "fake/perfect")):
    ...     report = themis.evaluate("demo", model=model, run_id=run_id, storage="runs", progress=False)
    >>> found = compare_to_baselines(ExperimentStorage("runs"), [("candidate", "baseline")])
    >>> round(found.results[0].delta, 2), found.results[0].verdict()
    (0.8, 'candidate is better')
    """
    settings = settings or TestSettings()
    opened: dict[str, ScoredRun] = {}
    hypotheses: list[Hypothesis] = []
    left_out: list[str] = []
    for pair in pairs:
        try:
            for run_id in pair:
                if run_id not in opened:
                    opened[run_id] = open_scores(storage, [run_id])[0]
            hypotheses += _compare(opened[pair[0]], opened[pair[1]], left_out)
        except (MetricError, StorageError) as error:
            left_out.append(f"{pair[0]} - {pair[1]}: {error}")
    results = run_tests(hypotheses, settings)
    corrections = correct_for_judges(storage, list(opened.values()), results) if storage.has_experiment(AUDITS) else []
    return BaselineComparison(results=results, settings=settings, left_out=left_out, judge_corrections=corrections)


def _compare(run: ScoredRun, baseline: ScoredRun, left_out: list[str]) -> Iterable[Hypothesis]:
    overlap = overlap_of_runs(run, baseline)
    for metric in common_metrics([run, baseline]):
        scores = run.read(metric), baseline.read(metric)
        if set(scores[0].keys) & set(scores[1].keys):
            yield pair_up(metric, (run, baseline), scores, overlap, is_higher_better([run, baseline], metric))
        else:
            left_out.append(f"{run.run_id} - {baseline.run_id}, {metric}: no item has a score of it in both")
