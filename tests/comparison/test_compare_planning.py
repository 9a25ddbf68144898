"""A plan for the next comparison comes from stored runs and says what it assumes."""

import numpy as np
import pytest
from scored_runs import scored_run

from themis.comparison import plan_comparison
from themis.comparison.power import PairedMeans, PairedProportions
from themis.exceptions import ConfigurationError, MetricError

FIRST = [1] * 60 + [0] * 20 + [1] * 12 + [0] * 8
SECOND = [1] * 60 + [1] * 20 + [0] * 12 + [0] * 8


def test_a_pilot_of_right_and_wrong_answers_plans_by_its_discordant_share(tmp_path):
    scored_run(tmp_path, "a", FIRST)
    scored_run(tmp_path, "b", SECOND)

    plan = plan_comparison("a", "number", storage_path=tmp_path, pilot="b", difference=0.1)

    design = PairedProportions(discordant=0.32)
    assert plan.needs == design.required_n(difference=0.1)
    assert plan.shows == design.detectable(n=100)
    assert plan.power_now == design.power(n=100, difference=0.1).power
    assert "32.0% are right in one run only" in plan.basis


def test_a_graded_pilot_plans_by_the_spread_of_its_differences(tmp_path):
    rng = np.random.default_rng(2)
    first, second = rng.random(30).round(3).tolist(), rng.random(30).round(3).tolist()
    scored_run(tmp_path, "a", first)
    scored_run(tmp_path, "b", second)

    plan = plan_comparison("a", "Number", storage_path=tmp_path, pilot="b", difference=0.05, power=0.9)

    assert plan.needs.n == PairedMeans.from_pilot(first, second).required_n(difference=0.05, power=0.9).n


def test_one_run_alone_plans_by_an_assumed_correlation_and_says_so(tmp_path):
    scored_run(tmp_path, "a", FIRST)

    plan = plan_comparison("a", "Number", storage_path=tmp_path, difference=0.05)

    # 72 of 100 are right: 2 * 0.72 * 0.28 * (1 - 0.5) would be right in one run only.
    assert plan.needs == PairedProportions(discordant=0.2016).required_n(difference=0.05)
    assert "an assumed correlation of 0.5" in plan.basis
    closer = plan_comparison("a", "Number", storage_path=tmp_path, difference=0.05, correlation=0.8)
    assert closer.needs.n < plan.needs.n
    assert plan_comparison("a", "Number", storage_path=tmp_path).to_dict()["required_n"] is None


def test_items_in_clusters_count_for_less(tmp_path):
    labels = [str(number // 10) for number in range(100)]
    scored_run(tmp_path, "free", FIRST)
    scored_run(tmp_path, "clustered", FIRST, clusters=labels)

    free = plan_comparison("free", "Number", storage_path=tmp_path, difference=0.05)

    assert plan_comparison("clustered", "Number", storage_path=tmp_path, difference=0.05).needs.n > 2 * free.needs.n


def test_a_large_difference_needs_as_many_discordant_items(tmp_path):
    scored_run(tmp_path, "a", [1] * 95 + [0] * 5)

    plan = plan_comparison("a", "Number", storage_path=tmp_path, difference=0.2)

    assert plan.needs == PairedProportions(discordant=0.2).required_n(difference=0.2)
    assert "a difference of 0.2 needs 20.0%" in plan.basis


def test_too_few_items_show_nothing(tmp_path):
    scored_run(tmp_path, "a", [1, 0, 1, 1])

    assert plan_comparison("a", "Number", storage_path=tmp_path).shows is None


def test_runs_that_do_not_vary_plan_nothing(tmp_path):
    scored_run(tmp_path, "right", [1, 1, 1])
    scored_run(tmp_path, "also-right", [1, 1, 1])
    scored_run(tmp_path, "one", [1])

    with pytest.raises(MetricError, match="do not vary; name a pilot run"):
        plan_comparison("right", "Number", storage_path=tmp_path)
    with pytest.raises(MetricError, match="agree everywhere"):
        plan_comparison("right", "Number", storage_path=tmp_path, pilot="also-right")
    with pytest.raises(MetricError, match="a plan needs two"):
        plan_comparison("one", "Number", storage_path=tmp_path)
    with pytest.raises(ConfigurationError, match="a correlation lies between"):
        plan_comparison("right", "Number", storage_path=tmp_path, correlation=1)


def test_a_run_that_kept_its_attempts_tells_how_much_they_agree(tmp_path):
    scored_run(tmp_path, "once", [1, 0, 1, 1])
    scored_run(tmp_path, "thrice", [1, 0, 1, 1], num_samples=3, reducer="keep")

    once, thrice = (plan_comparison(run_id, "Number", storage_path=tmp_path) for run_id in ("once", "thrice"))

    assert once.agreement is None
    assert thrice.agreement is not None
    # The fake model says the same every time.
    assert (thrice.agreement.items, thrice.agreement.attempts, thrice.agreement.icc) == (4, 12, 1.0)
