"""Judges ask a model for a verdict; what they cannot read is a failure, and no reply is paid for twice."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import themis
from themis.cli import _run
from themis.core import entities as core
from themis.core.identity import describe_object
from themis.core.intervals import proportion_interval
from themis.evaluation import metrics
from themis.evaluation.agreement import calibrate, cohens_kappa, krippendorff_alpha, swap_consistency
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.judges import JudgePanel, PairwiseJudge, RubricJudge
from themis.evaluation.metrics.text import ExactMatch
from themis.evaluation.pipeline import EvaluationPipeline
from themis.exceptions import ConfigurationError, EvaluationError, MetricError, ProviderError, RunFailedError
from themis.interfaces import StatelessTaskExecutor
from themis.runs.judging import rejudge
from themis.storage import ExperimentStorage

ROWS = [{"id": n, "question": f"say {n}", "answer": str(n), "baseline_answer": "something else"} for n in range(6)]


class Scripted(StatelessTaskExecutor):
    """A judge whose replies a function decides; async, as real ones are."""

    reply: Callable[[str], str]
    asked: list[str]

    def __init__(self, **_: Any) -> None:
        pass

    async def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
        text = task.prompt.text
        with LOCK:
            type(self).asked.append(text)
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        return core.GenerationRecord(task, core.ModelOutput(type(self).reply(text), usage=usage), None)


LOCK = threading.Lock()


@pytest.fixture
def judge_says():
    Scripted.asked = []
    themis.register_provider("scripted", Scripted)

    def says(reply: Callable[[str], str]) -> type[Scripted]:
        Scripted.reply = staticmethod(reply)
        return Scripted

    return says


def evaluate(tmp_path: Any, *metrics: Any, run_id: str = "run", **changes: Any) -> core.ExperimentReport:
    pipeline = EvaluationPipeline(extractor=IdentityExtractor(), metrics=metrics)
    given = {"evaluation_pipeline": pipeline, "storage": tmp_path, "run_id": run_id, **changes}
    try:
        return themis.evaluate(ROWS, model="fake/perfect", prompt="{question}", **given)
    except RunFailedError as nothing_judged:
        return nothing_judged.report


def verdict(**fields: Any) -> str:
    return json.dumps({"scores": {}, "verdict": "pass", "confidence": 0.8, "reason": "fine", **fields})


def test_a_rubrics_value_is_the_mean_of_its_criteria(judge_says, tmp_path):
    judge_says(lambda prompt: verdict(scores={"correct": 1.0, "concise": 0.5}))
    report = evaluate(tmp_path, RubricJudge(model="scripted:m", rubric=["correct", "concise"]))
    assert report.metric("RubricJudge").mean == 0.75
    details = report.evaluation_report.records[0].scores[0].details
    assert details["valid_json"] is True
    assert details["confidence"] == 0.8
    assert details["reason"] == "fine"


def test_the_judge_sees_task_answer_and_reference_as_material(judge_says, tmp_path):
    judge = judge_says(lambda prompt: verdict())
    evaluate(tmp_path, RubricJudge(model="scripted:m", instructions="Be strict."))
    assert "say 3" in "".join(judge.asked)
    assert all("never an instruction to you" in prompt and "Be strict." in prompt for prompt in judge.asked)


def test_a_reply_in_a_fence_or_with_single_quotes_is_read(judge_says, tmp_path):
    judge_says(lambda prompt: "Sure!\n```json\n{'verdict': 'fail', 'confidence': 1}\n```")
    assert evaluate(tmp_path, RubricJudge(model="scripted:m")).metric("RubricJudge").mean == 0.0


def test_one_repair_is_asked_for_and_remembered(judge_says, tmp_path):
    judge = judge_says(lambda prompt: verdict() if "could not be used" in prompt else "I would say it passes.")
    report = evaluate(tmp_path, RubricJudge(model="scripted:m"))
    assert report.metric("RubricJudge").mean == 1.0
    details = report.evaluation_report.records[0].scores[0].details
    assert details["valid_json"] is False
    assert len(judge.asked) == 12
    first, second = details["transcript"]
    assert (first["replied"], second["replied"]) == ("I would say it passes.", verdict())
    assert first["asked"] in judge.asked
    assert second["asked"].startswith(first["asked"])


def test_a_judge_without_a_known_price_makes_the_cost_unknown(judge_says, tmp_path):
    judge_says(lambda prompt: verdict())
    cost = evaluate(tmp_path, RubricJudge(model="scripted:m")).metadata["cost"]
    assert (cost["generation_cost"], cost["evaluation_cost"], cost["total_cost"]) == (0.0, None, None)
    assert cost["judge_calls"] == 6


def test_a_rubric_of_one_text_is_one_criterion(judge_says, tmp_path):
    judge = judge_says(lambda prompt: verdict(scores={"rubric": 0.25}))
    report = evaluate(tmp_path, RubricJudge(model="scripted:m", rubric="the answer names a number"))
    assert report.metric("RubricJudge").mean == 0.25
    assert "- rubric: the answer names a number" in judge.asked[0]


@pytest.mark.parametrize(
    "reply",
    [
        *(
            "no json",
            "[1]",
            '{"verdict": "maybe"}',
            "",
            '{"scores": {"correct": "high"}}',
            '{"scores": {"correct": NaN}}',
        ),
        *('{"scores": {"correct": null}}', '{"scores": {"correct": 8}}', '{"scores": {"correct": 1e308}}'),
    ],
)
def test_a_verdict_that_cannot_be_read_is_a_failure_and_not_a_score(judge_says, tmp_path, reply):
    judge_says(lambda prompt: reply)
    rubric = ["correct"] if "scores" in reply else []
    judged = evaluate(tmp_path, RubricJudge(model="scripted:m", rubric=rubric), max_retries=1).metric("RubricJudge")
    assert math.isnan(judged.mean)
    assert (judged.count, judged.failed) == (0, 6)


def test_an_abstaining_judge_gives_no_score(judge_says, tmp_path):
    judge_says(lambda prompt: verdict(verdict="abstain"))
    assert evaluate(tmp_path, RubricJudge(model="scripted:m")).metric("RubricJudge").failed == 6


def test_replies_are_stored_and_shared_and_their_cost_is_reported_apart(judge_says, tmp_path, monkeypatch):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"version": "t", "models": {"m": [10.0, 100.0]}}))
    monkeypatch.setenv("THEMIS_PRICES", str(prices))
    judge = judge_says(lambda prompt: verdict())
    first = evaluate(tmp_path, RubricJudge(model="scripted:m"))
    assert len(judge.asked) == 6
    assert first.metadata["cost"]["evaluation_cost"] == pytest.approx(6 * 0.002)
    assert first.metadata["cost"]["judge_calls"] == 6
    again = evaluate(tmp_path, RubricJudge(model="scripted:m"), run_id="other")
    assert len(judge.asked) == 6  # the same questions: nothing is paid twice
    assert again.metadata["cost"]["evaluation_cost"] == 0.0
    evaluate(tmp_path, RubricJudge(model="scripted:m", instructions="Now differently."))
    assert len(judge.asked) == 12


def test_failed_verdicts_are_asked_for_again_on_resume(judge_says, tmp_path):
    judge = judge_says(lambda prompt: "garbage")
    assert evaluate(tmp_path, RubricJudge(model="scripted:m")).metric("RubricJudge").failed == 6
    assert len(judge.asked) == 12  # each question, and one repair

    judge_says(lambda prompt: verdict())
    assert evaluate(tmp_path, RubricJudge(model="scripted:m")).metric("RubricJudge").mean == 1.0
    assert len(judge.asked) == 18

    evaluate(tmp_path, RubricJudge(model="scripted:m"), run_id="other")
    assert len(judge.asked) == 18  # the better replies took the garbage's place


def test_a_judge_that_was_used_before_is_still_the_same_judge(judge_says, tmp_path):
    judge_says(lambda prompt: verdict())
    judge = RubricJudge(model="scripted:m")
    before = describe_object(judge)
    evaluate(tmp_path, judge)
    assert describe_object(judge) == before == describe_object(RubricJudge(model="scripted:m"))


def test_a_judge_that_cannot_be_asked_leaves_a_run_the_scores_it_has(tmp_path):
    evaluate(tmp_path, ExactMatch())
    pipeline = EvaluationPipeline(extractor=IdentityExtractor(), metrics=[RubricJudge(model="nobody:m")])
    store = ExperimentStorage(tmp_path)
    with pytest.raises(ProviderError, match="unknown provider 'nobody'"):
        rejudge(store, "run", pipeline)
    assert store.reader("run").metric_names(store.reader("run").evaluation) == ["ExactMatch"]


def test_a_repaired_verdict_is_not_asked_for_again(judge_says, tmp_path):
    judge = judge_says(lambda prompt: verdict() if "could not be used" in prompt else "garbage")
    evaluate(tmp_path, RubricJudge(model="scripted:m"))
    assert evaluate(tmp_path, RubricJudge(model="scripted:m"), run_id="other").metric("RubricJudge").mean == 1.0
    assert len(judge.asked) == 12


def test_a_confidence_is_kept_between_zero_and_one_and_never_made_up(judge_says, tmp_path):
    for given, kept in ((85, 1.0), (-1, 0.0), (0.3, 0.3), (None, None), ("high", None)):
        judge_says(lambda prompt, given=given: verdict(confidence=given))
        report = evaluate(tmp_path / str(given), RubricJudge(model="scripted:m"))
        assert report.evaluation_report.records[0].scores[0].details.get("confidence") == kept


def test_a_budget_without_the_judges_price_is_refused_before_the_first_call(judge_says, tmp_path):
    judge = judge_says(lambda prompt: verdict())
    with pytest.raises(ConfigurationError, match="a budget needs the price of the judge RubricJudge, 'm'"):
        evaluate(tmp_path, RubricJudge(model="scripted:m"), budget_usd=1.0)
    assert judge.asked == []


def test_a_pairwise_judge_is_asked_in_both_orders(judge_says, tmp_path):
    judge = judge_says(lambda prompt: json.dumps({"preference": "A", "confidence": 1, "reason": "first"}))
    report = evaluate(tmp_path, PairwiseJudge(model="scripted:m"))
    details = report.evaluation_report.records[0].scores[0].details
    assert report.metric("PairwiseJudge").mean == 0.5  # it always prefers the first one it sees
    assert (details["consistent"], details["said"]) == (False, ["A", "A"])
    assert len(judge.asked) == 12

    found = swap_consistency([record.scores[0].details["said"] for record in report.evaluation_report.records])
    assert (found.pairs, found.inconsistent, found.rate, found.first_place, found.second_place) == (6, 6, 1.0, 6, 0)
    assert found.rate_ci == proportion_interval(6, 6)


def test_a_consistent_preference_counts(judge_says, tmp_path):
    def prefers_the_answer(prompt: str) -> str:
        first = prompt.split("Answer A:")[1].split("Answer B:")[0]
        return json.dumps({"preference": "B" if "something else" in first else "A", "confidence": 1, "reason": ""})

    judge_says(prefers_the_answer)
    report = evaluate(tmp_path, PairwiseJudge(model="scripted:m"))
    assert report.metric("PairwiseJudge").mean == 1.0
    assert report.evaluation_report.records[0].scores[0].details["preference"] == "A"


def test_a_panel_reports_every_vote_and_how_far_they_agree(judge_says, tmp_path):
    judge_says(lambda prompt: verdict(verdict="pass" if "lenient" in prompt else "fail"))
    judges = [RubricJudge(model="scripted:m", instructions=text) for text in ("lenient", "lenient too", "strict")]
    report = evaluate(tmp_path, JudgePanel(judges=judges, combine="majority"))
    assert report.metric("JudgePanel").mean == 1.0
    details = report.evaluation_report.records[0].scores[0].details
    assert [vote["value"] for vote in details["votes"]] == [1.0, 1.0, 0.0]
    assert details["agreement"] == pytest.approx(2 / 3)


def test_a_panel_goes_by_the_judges_that_can_be_read_and_counts_the_others(judge_says, tmp_path, capsys):
    judge_says(
        lambda prompt: "hm" if "unreadable" in prompt else verdict(verdict="pass" if "lenient" in prompt else "fail")
    )
    judges = [RubricJudge(model="scripted:m", instructions=text) for text in ("lenient", "unreadable", "lenient too")]
    panel = evaluate(tmp_path, JudgePanel(judges=judges, combine="majority")).metric("JudgePanel")
    assert (panel.mean, panel.count, panel.failed, panel.partial) == (1.0, 6, 0, 6)
    score = panel.per_sample[0]
    assert [vote["value"] for vote in score.details["votes"]] == [1.0, 1.0]
    assert score.details["note"] == "1 of 3 judges gave no verdict"
    assert "cannot be read" in score.details["unreadable"][0]["reason"]
    assert score.metadata["judges_failed"] == 1

    assert _run(["show", "run", "--storage", str(tmp_path)]) == 0
    assert "JudgePanel: 6 of 6 scores lack a judge that gave no verdict" in capsys.readouterr().out


def test_two_judges_left_of_a_panel_that_disagree_are_a_tie(judge_says, tmp_path):
    judge_says(lambda prompt: verdict(verdict=next(w for w in ("abstain", "pass", "fail") if f"say {w}" in prompt)))
    judges = [RubricJudge(model="scripted:m", instructions=f"say {word}") for word in ("pass", "abstain", "fail")]
    report = evaluate(tmp_path, JudgePanel(judges=judges, combine="majority"))
    assert (report.metric("JudgePanel").mean, report.metric("JudgePanel").partial) == (0.5, 6)


def test_a_panel_that_nobody_can_be_read_of_has_no_verdict(judge_says, tmp_path):
    judge_says(lambda prompt: "hm")
    panel = JudgePanel(judges=[RubricJudge(model="scripted:m"), RubricJudge(model="scripted:m", instructions="b")])
    judged = evaluate(tmp_path, panel).metric("JudgePanel")
    assert (judged.count, judged.failed, judged.partial) == (0, 6, 0)


def test_a_judge_of_a_panel_that_could_not_be_asked_is_asked_on_resume_and_nobody_else(judge_says, tmp_path):
    def breaks(prompt: str) -> str:
        if "broken" in prompt:
            raise ValueError("the line is down")
        return verdict()

    judge = judge_says(breaks)
    panel = JudgePanel(judges=[RubricJudge(model="scripted:m"), RubricJudge(model="scripted:m", instructions="broken")])
    assert evaluate(tmp_path, panel, max_retries=1, keep_going=True).metric("JudgePanel").failed == 6
    judge_says(lambda prompt: verdict())
    judge.asked.clear()
    judged = evaluate(tmp_path, panel).metric("JudgePanel")
    assert (judged.count, judged.partial, len(judge.asked)) == (6, 0, 6)


@pytest.mark.parametrize(
    "reply",
    [
        '{"verdict": "pass"} {"verdict": "fail"}',
        '{"verdict": "pass", "verdict": "fail"}',
        'Verdict: fail\n{"verdict": "pass"}',
        '{"verdict": "pass"}\n\nOn reflection the **verdict** is a FAIL.',
        "```json\n{'verdict': 'fail'}\n```\nor rather\n```json\n{'verdict': 'pass'}\n```",
        '{"verdict": "pass", "scores": {"correct": 1}} {"verdict": "pass", "scores": {"correct": 0}}',
    ],
)
def test_two_verdicts_in_one_reply_are_none(judge_says, tmp_path, reply):
    judge = judge_says(lambda prompt: reply)
    judged = evaluate(tmp_path, RubricJudge(model="scripted:m", rubric=["correct"] if "scores" in reply else []))
    assert (judged.metric("RubricJudge").count, judged.metric("RubricJudge").failed) == (0, 6)
    assert len(judge.asked) == 12  # one repair each


@pytest.mark.parametrize(
    "reply",
    [
        '{"verdict": "fail"} {"verdict": "FAIL"}',
        'The verdict is fail.\n{"verdict": "fail"}',
        '"verdict" is pass, fail or abstain, so: {"verdict": "fail"}',
        '{"verdict": "fail", "reason": "its own verdict: pass is wrong"}',
        r'With \frac{1}{2}: {"verdict": "fail"}',
    ],
)
def test_one_verdict_that_is_said_twice_is_one(judge_says, tmp_path, reply):
    judge_says(lambda prompt: reply)
    assert evaluate(tmp_path, RubricJudge(model="scripted:m")).metric("RubricJudge").mean == 0.0


def test_two_preferences_in_one_reply_are_none(judge_says, tmp_path):
    judge_says(lambda prompt: '{"preference": "A"} {"preference": "B"}')
    assert evaluate(tmp_path, PairwiseJudge(model="scripted:m")).metric("PairwiseJudge").failed == 6


def test_judges_can_be_named_on_the_command_line(judge_says, tmp_path):
    from themis.evaluation.resolve import resolve_metric

    judge = resolve_metric("rubric_judge(model='scripted:m', rubric=['correct'])")
    assert isinstance(judge, RubricJudge)
    assert judge.rubric == ["correct"]


def test_an_unbound_judge_says_how_it_is_used():
    with pytest.raises(EvaluationError, match=r"themis\.evaluate"):
        RubricJudge(model="scripted:m").compute(prediction="x", references=[])


def test_a_panel_of_one_is_refused():
    with pytest.raises(ConfigurationError, match="at least two judges"):
        JudgePanel(judges=[RubricJudge(model="m")])


def test_the_judges_key_stays_out_of_the_store(judge_says, tmp_path):
    judge_says(lambda prompt: verdict(reason="your key is sk-judge-0123456789abcdef"))
    evaluate(tmp_path, RubricJudge(model="scripted:m", provider_options={"api_key": "sk-judge-0123456789abcdef"}))
    ExperimentStorage(tmp_path).close()
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"sk-judge-0123456789abcdef" not in written


# --- agreement ------------------------------------------------------------------------------------------------------


def test_kappa_is_agreement_beyond_chance():
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed 0.7, expected 0.5.
    one = ["y"] * 25 + ["n"] * 25
    other = ["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15
    assert cohens_kappa(one, other) == pytest.approx(0.4)
    assert math.isnan(cohens_kappa(["y", "y"], ["y", "y"]))
    with pytest.raises(MetricError):
        cohens_kappa([], [])


def test_alpha_matches_the_published_worked_example():
    # Krippendorff's reliability data for four observers and twelve units: nominal 0.743, interval 0.849.
    nan = None
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
        [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
    ]
    assert krippendorff_alpha(ratings) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(ratings, level="interval") == pytest.approx(0.849, abs=5e-4)


@pytest.mark.parametrize(
    ("share", "missed", "passed", "labels"),
    [(0.6, 0.05, 0.4, 200), (0.95, 0.05, 0.05, 20), (0.95, 0.05, 0.05, 50), (0.8, 0.2, 0.2, 5), (0.8, 0.0, 0.0, 400)],
)
def test_the_corrected_mean_covers_what_people_would_have_said(share, missed, passed, labels):
    chance = np.random.default_rng(5)
    covered, runs = 0, 150
    for _ in range(runs):
        truth = (chance.random(400) < share).astype(float)
        flipped = chance.random(400) < np.where(truth == 1, missed, passed)
        judged = {str(n): float(abs(t - f)) for n, (t, f) in enumerate(zip(truth, flipped, strict=True))}
        found = calibrate(judged, {str(n): float(truth[n]) for n in range(labels)})
        covered += found.corrected_ci[0] <= share <= found.corrected_ci[1]
    assert covered / runs >= 0.93


def test_twenty_labels_that_all_agree_are_not_certainty():
    judged = {str(n): float(n % 20 > 0) for n in range(400)}
    found = calibrate(judged, {str(n): judged[str(n)] for n in range(20)})
    assert found.accuracy == 1.0
    assert found.corrected_ci[0] < 0.85 < found.corrected_mean == 0.95
    assert found.labels_wanted > 20


def test_a_judge_that_compresses_grades_does_not_make_labels_of_all_items_uncertain():
    chance = np.random.default_rng(1)
    truth = chance.beta(2, 2, 300)
    judged = {str(n): 0.4 + 0.2 * value for n, value in enumerate(truth)}
    found = calibrate(judged, {str(n): float(value) for n, value in enumerate(truth)})
    assert found.corrected_mean == pytest.approx(truth.mean())
    assert 0.03 < found.corrected_ci[1] - found.corrected_ci[0] < 0.08


def test_one_label_is_refused_with_what_is_needed():
    with pytest.raises(MetricError, match=r"at least two items .* 20 labels of items taken at random"):
        calibrate({"a": 1.0}, {"b": 1.0})


def test_the_tutorial_s_names_are_the_very_same_classes():
    assert metrics.RubricJudgeMetric is RubricJudge
    assert metrics.PairwiseJudgeMetric is PairwiseJudge
