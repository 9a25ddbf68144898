"""One question, whether two runs differ on a metric, put to the test that was asked for or to the one that fits.

Calls the pure functions of `comparison.statistics`; refuses a test whose assumptions the scores do not meet.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from themis.comparison.effects import paired_effects
from themis.comparison.reports import StatisticalTestResult
from themis.comparison.scores import SharedScores
from themis.comparison.statistics import (
    PairedTest,
    bootstrap_test,
    mcnemar_test,
    paired_permutation_test,
    paired_t_test,
    wilcoxon_test,
)
from themis.core.intervals import clip
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, MetricError

__all__ = ["StatisticalTest", "TestSettings", "beyond_testing", "difference_interval", "examine", "parse_test"]


class StatisticalTest(enum.StrEnum):
    """How a difference is weighed; `AUTO` takes the test that fits the scores and says why, `NONE` weighs nothing."""

    T_TEST = "t_test"
    BOOTSTRAP = "bootstrap"
    PERMUTATION = "permutation"
    MCNEMAR = "mcnemar"
    WILCOXON = "wilcoxon"
    AUTO = "auto"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class TestSettings:
    """What every test of a comparison has in common."""

    __test__ = False

    alpha: float = 0.05
    n_bootstrap: int = 10_000
    n_permutations: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ConfigurationError(f"alpha lies between 0 and 1 (0.05 is usual), got {self.alpha}")


def parse_test(test: StatisticalTest | str) -> StatisticalTest:
    try:
        return StatisticalTest(test)
    except ValueError:
        known = [member.value for member in StatisticalTest]
        raise ConfigurationError(
            f"unknown statistical test {test!r}{nearest(str(test), known)}; known: {', '.join(known)}"
        ) from None


def beyond_testing(shared: SharedScores) -> str:
    """Why no test can say anything about these scores; empty if one can."""
    if shared.n < 2:
        return "only one item is shared, and a test needs at least two"
    if shared.units < 2:
        return f"all {shared.n} shared items are in one cluster, and a test needs at least two clusters"
    return ""


def examine(shared: SharedScores, test: StatisticalTest, settings: TestSettings) -> StatisticalTestResult:
    """The verdict of a test on scores that can be tested."""
    chosen, reason = _fitting(shared) if test is StatisticalTest.AUTO else (test, "")
    if shared.clusters is not None and chosen in (StatisticalTest.MCNEMAR, StatisticalTest.WILCOXON):
        raise MetricError(
            f"the test {chosen.value!r} takes items as independent, but these come in {shared.units} clusters; "
            "use permutation, t_test or bootstrap, which keep clusters whole"
        )
    result = _TESTS[chosen](shared, settings)
    return StatisticalTestResult(
        test_name=result.name,
        statistic=result.statistic,
        p_value=result.p_value,
        significant=result.significant,
        confidence_level=1 - settings.alpha,
        effect_size=paired_effects(shared.a, shared.b, clusters=shared.clusters).cohens_dz,
        confidence_interval=None if result.ci is None else clip(result.ci, shared.difference_range),
        inference_mode="ci_only" if result.p_value is None else "hypothesis_test",
        n=result.n,
        clusters=result.clusters,
        exact=result.exact,
        resamples=result.resamples,
        seed=None if result.resamples is None else result.seed,
        reason=reason,
        note=result.note,
    )


def difference_interval(shared: SharedScores, alpha: float) -> tuple[float, float] | None:
    """Student's interval of the mean difference, for tests that have none of their own."""
    interval = paired_t_test(shared.a, shared.b, alpha=alpha, clusters=shared.clusters).ci
    return None if interval is None else clip(interval, shared.difference_range)


def _fitting(shared: SharedScores) -> tuple[StatisticalTest, str]:
    if shared.clusters is not None:
        return (
            StatisticalTest.PERMUTATION,
            f"permutation, because the items come in {shared.units} clusters and it swaps whole clusters",
        )
    if shared.is_binary:
        return StatisticalTest.MCNEMAR, "McNemar's test, because every score is 0 or 1 and it is exact for those"
    return StatisticalTest.PERMUTATION, "permutation, because the scores are graded and it assumes no distribution"


_TESTS: dict[StatisticalTest, Callable[[SharedScores, TestSettings], PairedTest]] = {
    StatisticalTest.T_TEST: lambda shared, settings: paired_t_test(
        shared.a, shared.b, alpha=settings.alpha, clusters=shared.clusters
    ),
    StatisticalTest.BOOTSTRAP: lambda shared, settings: bootstrap_test(
        shared.a,
        shared.b,
        alpha=settings.alpha,
        clusters=shared.clusters,
        resamples=settings.n_bootstrap,
        seed=settings.seed,
    ),
    StatisticalTest.PERMUTATION: lambda shared, settings: paired_permutation_test(
        shared.a,
        shared.b,
        alpha=settings.alpha,
        clusters=shared.clusters,
        resamples=settings.n_permutations,
        seed=settings.seed,
    ),
    StatisticalTest.MCNEMAR: lambda shared, settings: mcnemar_test(shared.a, shared.b, alpha=settings.alpha),
    StatisticalTest.WILCOXON: lambda shared, settings: wilcoxon_test(shared.a, shared.b, alpha=settings.alpha),
}
