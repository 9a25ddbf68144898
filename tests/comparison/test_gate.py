"""A gate passes, fails or cannot tell, and gives a reason for every check."""

import json
import time
import xml.etree.ElementTree as ElementTree

import pytest
from scored_runs import Number, scored_run

import themis
from themis.comparison import Gate
from themis.comparison.gate import GateOutcome, append_github_summary, junit_xml
from themis.comparison.statistics import risk_difference_interval
from themis.core.entities import GenerationRecord, ModelOutput
from themis.exceptions import ConfigurationError
from themis.interfaces import StatelessTaskExecutor
from themis.storage import ExperimentStorage

WEAK = [1, 0, 0, 1, 0, 0, 1, 0, 0, 1] * 4
STRONG = [1, 1, 0, 1, 1, 0, 1, 1, 0, 1] * 4


def judged(tmp_path, candidate, baseline, **rules):
    scored_run(tmp_path, "candidate", candidate)
    scored_run(tmp_path, "baseline", baseline)
    return Gate(baseline="baseline", metric="Number", **rules).judge("candidate", storage_path=tmp_path)


def outcomes(verdict):
    return {check.name: check.outcome.value for check in verdict.checks}


# --- the difference -------------------------------------------------------------------------------------------------


def test_a_better_candidate_passes(tmp_path):
    verdict = judged(tmp_path, STRONG, WEAK)

    assert (verdict.outcome, verdict.exit_code, verdict.reasons) == (GateOutcome.PASS, 0, [])
    assert (verdict.candidate_mean, verdict.baseline_mean, verdict.n) == (0.7, 0.4, 40)
    assert verdict.delta == pytest.approx(0.3)


def test_a_worse_candidate_fails_and_the_reason_has_the_numbers(tmp_path):
    verdict = judged(tmp_path, WEAK, STRONG)

    assert (verdict.outcome, verdict.exit_code) == (GateOutcome.FAIL, 1)
    assert verdict.reasons == ["Number 0.4000 against 0.7000: a gain of -0.3000, wanted at least +0.0000"]


@pytest.mark.parametrize(("least", "passed"), [(0.3, True), (0.31, False), (-0.5, True)])
def test_the_least_gain_is_wanted_exactly(tmp_path, least, passed):
    assert judged(tmp_path, STRONG, WEAK, min_delta=least).passed is passed


def test_an_equal_candidate_passes_by_default_but_is_not_significantly_better(tmp_path):
    verdict = judged(tmp_path, WEAK, WEAK, significant=True)

    assert outcomes(verdict) == {
        "runs": "pass",
        "overlap": "pass",
        "judging": "pass",
        "min-delta": "pass",
        "significant": "fail",
    }


def test_non_inferiority_rests_on_the_interval_of_the_difference(tmp_path):
    low, _ = risk_difference_interval(12, 0, 40, level=0.95)
    candidate, baseline = STRONG, WEAK

    assert judged(tmp_path, candidate, baseline, non_inferiority=0.01).passed
    assert low > -0.01
    swapped = Gate(baseline="candidate", metric="Number", non_inferiority=0.4)
    verdict = swapped.judge("baseline", storage_path=tmp_path)
    assert verdict.interval == pytest.approx(risk_difference_interval(0, 12, 40, level=0.95))
    assert outcomes(verdict)["non-inferiority"] == "fail"
    # A margin replaces the demand that the candidate be at least as good.
    assert "min-delta" not in outcomes(verdict)


def test_few_items_do_not_show_non_inferiority_even_if_they_agree(tmp_path):
    verdict = judged(tmp_path, [1, 0, 1, 1], [1, 0, 1, 1], non_inferiority=0.1)

    assert outcomes(verdict)["non-inferiority"] == "fail"


@pytest.mark.parametrize(("items", "passed"), [(20, False), (80, True)])
def test_equal_graded_scores_show_non_inferiority_by_their_number(tmp_path, items, passed):
    scores = [0.25, 0.5, 0.75, 0.5] * (items // 4)

    assert judged(tmp_path, scores, scores, non_inferiority=0.1).passed is passed


def test_equal_scores_without_bounds_cannot_tell(tmp_path):
    verdict = judged(tmp_path, [10, 20, 30] * 5, [10, 20, 30] * 5, non_inferiority=1)

    assert outcomes(verdict)["non-inferiority"] == "unknown"
    assert verdict.exit_code == 3


def test_clusters_widen_the_interval(tmp_path):
    passages = [str(number // 10) for number in range(40)]
    scored_run(tmp_path, "candidate", STRONG, clusters=passages)
    scored_run(tmp_path, "baseline", [1, 0, 0, 1, 0, 0, 1, 0, 0, 1] * 2 + STRONG[:20], clusters=passages)
    gate = Gate(baseline="baseline", metric="Number", significant=True)

    verdict = gate.judge("candidate", storage_path=tmp_path)

    assert verdict.test.clusters == 4
    assert outcomes(verdict) == {
        "runs": "pass",
        "overlap": "pass",
        "judging": "pass",
        "min-delta": "pass",
        "significant": "fail",
    }


def test_a_smaller_value_can_be_the_gain(tmp_path):
    scored_run(tmp_path, "candidate", [30, 40, 50], metrics=[Number("Latency", higher_is_better=False)])
    scored_run(tmp_path, "baseline", [60, 70, 90], metrics=[Number("Latency", higher_is_better=False)])

    verdict = Gate(baseline="baseline", metric="latency", min_delta=20).judge("candidate", storage_path=tmp_path)
    assert verdict.passed
    assert verdict.delta < 0
    forced = Gate(baseline="baseline", metric="latency", lower_is_better=False)
    assert not forced.judge("candidate", storage_path=tmp_path).passed


def test_slower_is_never_the_gain_of_a_real_latency(tmp_path):
    rows = [{"id": n, "question": "?"} for n in range(5)]
    for run_id, wait in (("slow", 0.02), ("quick", 0.0)):
        themis.register_provider("sleeper", lambda wait=wait, **_: Sleeper(wait))
        themis.evaluate(
            rows, model="sleeper:x", prompt="{question}", metrics=["latency"], run_id=run_id, storage=tmp_path
        )

    assert Gate(baseline="slow", metric="latency", min_delta=5).judge("quick", storage_path=tmp_path).passed
    assert not Gate(baseline="quick", metric="latency").judge("slow", storage_path=tmp_path).passed


class Sleeper(StatelessTaskExecutor):
    def __init__(self, wait_seconds):
        self.wait_seconds = wait_seconds

    def execute(self, task):
        time.sleep(self.wait_seconds)
        return GenerationRecord(task, ModelOutput("."), None)


def test_a_measure_that_is_neither_good_nor_bad_needs_a_direction(tmp_path):
    for run_id in ("candidate", "baseline"):
        scored_run(tmp_path, run_id, [30, 40, 50], metrics=[Number("Length", higher_is_better=None)])

    with pytest.raises(ConfigurationError, match="say which way it is good"):
        Gate(baseline="baseline", metric="length").judge("candidate", storage_path=tmp_path)
    assert Gate(baseline="baseline", metric="length", lower_is_better=True).judge("candidate", storage_path=tmp_path)


# --- what cannot be told --------------------------------------------------------------------------------------------


def test_a_missing_run_or_store_cannot_be_told(tmp_path):
    gate = Gate(baseline="baselin", metric="Number")
    assert gate.judge("candidate", storage_path=tmp_path / "nowhere").exit_code == 3
    scored_run(tmp_path, "baseline", WEAK)

    verdict = gate.judge("baseline", storage_path=tmp_path)

    assert (verdict.outcome, verdict.exit_code) == (GateOutcome.UNKNOWN, 3)
    assert "did you mean 'baseline'" in verdict.reasons[0]


def test_too_little_overlap_cannot_be_told(tmp_path):
    scored_run(tmp_path, "candidate", {str(number): 1 for number in range(10)})
    scored_run(tmp_path, "baseline", {str(number): 0 for number in range(4)})

    verdict = Gate(baseline="baseline", metric="Number").judge("candidate", storage_path=tmp_path)
    assert outcomes(verdict) == {"runs": "pass", "overlap": "unknown", "judging": "pass"}
    assert verdict.reasons == [
        "4 of the candidate's 10 items are scored in both runs; left out: 6 only in the candidate; wanted at least 50%"
    ]
    lenient = Gate(baseline="baseline", metric="Number", min_overlap=0.4)
    assert lenient.judge("candidate", storage_path=tmp_path).passed


@pytest.mark.parametrize(
    ("baseline", "metric", "reason"),
    [
        ({"other": 1, "another": 1}, "Number", "have no item in common"),
        ({"0": 1}, "Number", "only one item is shared"),
        ({"0": 1, "1": 1}, "Nmber", "did you mean 'Number'"),
    ],
)
def test_runs_that_share_nothing_to_compare_cannot_be_told(tmp_path, baseline, metric, reason):
    scored_run(tmp_path, "candidate", [1, 1])
    scored_run(tmp_path, "baseline", baseline)

    verdict = Gate(baseline="baseline", metric=metric).judge("candidate", storage_path=tmp_path)

    assert verdict.exit_code == 3
    assert reason in verdict.reasons[0]


def test_an_unfinished_run_cannot_be_told(tmp_path):
    scored_run(tmp_path, "baseline", WEAK)
    scored_run(tmp_path, "candidate", STRONG)
    ExperimentStorage(tmp_path).fail_run("candidate", "the power went out")

    verdict = Gate(baseline="baseline", metric="Number").judge("candidate", storage_path=tmp_path)

    assert outcomes(verdict) == {"runs": "unknown"}
    assert "run 'candidate' is failed" in verdict.reasons[0]


# --- cost, failures, sameness ---------------------------------------------------------------------------------------


def test_failed_items_are_counted_against_the_candidate(tmp_path):
    candidate = [1, 1, 1, "no number", "no number"]

    assert outcomes(judged(tmp_path, candidate, [1, 1, 1, 1, 1], max_failed=1))["max-failed"] == "fail"
    lenient = Gate(baseline="baseline", metric="Number", max_failed=2)
    assert lenient.judge("candidate", storage_path=tmp_path).passed


def test_a_failed_check_outweighs_what_cannot_be_told(tmp_path):
    verdict = judged(tmp_path, ["no number"] * 3 + [1], [1, 1, 1, 1], max_failed=0)

    assert outcomes(verdict) == {"runs": "pass", "max-failed": "fail", "overlap": "unknown", "judging": "pass"}
    assert verdict.exit_code == 1


class Unpriced(StatelessTaskExecutor):
    """A model of which nobody knows the price."""

    def execute(self, task):
        return GenerationRecord(task, ModelOutput("1", usage={"prompt_tokens": 5, "completion_tokens": 1}), None)


def test_a_budget_needs_a_known_price(tmp_path):
    themis.register_provider("unpriced-in-a-gate", Unpriced)
    rows = [{"id": str(number), "said": "1"} for number in range(3)]
    for run_id in ("candidate", "baseline"):
        model = "unpriced-in-a-gate:nobody-knows" if run_id == "candidate" else "fake/echo"
        themis.evaluate(
            rows, model=model, prompt="{said}", metrics=[Number()], run_id=run_id, storage=tmp_path, progress=False
        )

    verdict = Gate(baseline="baseline", metric="Number", budget_usd=0.25).judge("candidate", storage_path=tmp_path)
    assert outcomes(verdict)["budget"] == "unknown"
    free = Gate(baseline="candidate", metric="Number", budget_usd=0)
    assert outcomes(free.judge("baseline", storage_path=tmp_path))["budget"] == "pass"


def test_an_expensive_candidate_fails(tmp_path):
    scored_run(tmp_path, "baseline", [1, 1])
    scored_run(tmp_path, "candidate", [1, 1])
    with ExperimentStorage(tmp_path).open_run("candidate") as writer:
        writer.update(cost_usd=0.2, judge_cost_usd=0.1)

    verdict = Gate(baseline="baseline", metric="Number", budget_usd=0.25).judge("candidate", storage_path=tmp_path)

    assert verdict.reasons == ["the candidate cost $0.3000, allowed are $0.2500"]


def test_a_budget_cannot_be_told_where_a_judge_has_no_price(tmp_path):
    scored_run(tmp_path, "baseline", [1, 1])
    scored_run(tmp_path, "candidate", [1, 1])
    with ExperimentStorage(tmp_path).open_run("candidate") as writer:
        writer.add_judge_cost(3, None)

    verdict = Gate(baseline="baseline", metric="Number", budget_usd=0.25).judge("candidate", storage_path=tmp_path)

    assert outcomes(verdict)["budget"] == "unknown"
    assert "the price of a judge is not known; name a price file in THEMIS_PRICES" in verdict.reasons


def test_what_must_be_the_same_is_compared(tmp_path):
    verdict = judged(tmp_path, STRONG, WEAK, require_same=("model", "prompt", "provider_options", "evaluation.metrics"))

    # The helper puts the scores into the provider's options.
    assert outcomes(verdict) == {
        "runs": "pass",
        "same-model": "pass",
        "same-prompt": "pass",
        "same-provider_options": "fail",
        "same-evaluation.metrics": "pass",
        "overlap": "pass",
        "judging": "pass",
        "min-delta": "pass",
    }
    assert verdict.reasons[0].startswith("provider_options differs: candidate '{")


def test_wrong_rules_are_refused(tmp_path):
    scored_run(tmp_path, "candidate", [1, 1])
    scored_run(tmp_path, "baseline", [1, 1])

    with pytest.raises(ConfigurationError, match="did you mean 'dataset'"):
        Gate(baseline="baseline", metric="Number", require_same=("datset",)).judge("candidate", storage_path=tmp_path)
    with pytest.raises(ConfigurationError, match="the same run"):
        Gate(baseline="candidate", metric="Number").judge("candidate", storage_path=tmp_path)
    for wrong in ({"alpha": 1.5}, {"non_inferiority": 0}, {"min_overlap": 2}, {"budget_usd": -1}, {"max_failed": -1}):
        with pytest.raises(ConfigurationError):
            Gate(baseline="baseline", metric="Number", **wrong)


# --- files ----------------------------------------------------------------------------------------------------------


def test_a_verdict_is_json(tmp_path):
    payload = json.loads(json.dumps(judged(tmp_path, WEAK, STRONG).to_dict(), allow_nan=False))

    assert (payload["verdict"], payload["exit_code"], payload["n"]) == ("fail", 1, 40)
    assert payload["checks"][-1] == {"name": "min-delta", "outcome": "fail", "reason": payload["reasons"][0]}
    assert payload["p_value"] < 0.05


def test_junit_has_a_case_a_check(tmp_path):
    verdict = judged(tmp_path, ["no number"] * 3 + [1], [1, 1, 1, 1], max_failed=0)

    suite = ElementTree.fromstring(junit_xml(verdict))

    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "1")
    cases = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    told = ["system-out"]
    assert cases == {"runs": told, "max-failed": ["failure"], "overlap": ["error"], "judging": told}
    assert "attempts: candidate 4 (0 failed), baseline 4 (0 failed)" in suite.findtext("system-out")


def test_control_characters_do_not_break_junit(tmp_path):
    verdict = Gate(baseline="baseline", metric="Number").judge("candi\x01date", storage_path=tmp_path)

    (case,) = ElementTree.fromstring(junit_xml(verdict))
    assert case.get("classname") == "themis.gate.candi\ufffddate"


def test_a_job_summary_is_added_to_what_is_there(tmp_path):
    verdict = judged(tmp_path / "store", STRONG, WEAK)
    page = tmp_path / "summary.md"
    page.write_text("earlier step\n")

    append_github_summary(verdict, page)

    text = page.read_text(encoding="utf-8")
    assert text.startswith("earlier step\n### Gate: ✅ pass")
    assert "0.7000 − 0.4000 = +0.3000" in text
    assert "| min-delta | ✅ pass |" in text
