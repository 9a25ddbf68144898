"""What a judge's scores are worth, from the command line."""

from __future__ import annotations

import json

import pytest

import themis
from themis.cli import _run
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.judges import JudgePanel, PairwiseJudge, RubricJudge
from themis.evaluation.metrics.text import ExactMatch, Includes
from themis.evaluation.pipeline import EvaluationPipeline


@pytest.fixture
def judged(tmp_path):
    rows = [{"id": n, "question": f"say {n}", "answer": str(n)} for n in range(20)]
    pipeline = EvaluationPipeline(extractor=IdentityExtractor(), metrics=[ExactMatch(), Includes()])
    themis.evaluate(
        rows, model="fake/noisy-0.3", prompt="{question}", evaluation_pipeline=pipeline, storage=tmp_path, run_id="run"
    )
    return tmp_path


def test_calibration_reports_bias_and_a_corrected_mean(judged, capsys):
    labels = judged / "people.csv"
    labels.write_text("id,label\n" + "".join(f"{n},{'true' if n % 2 else 0.0}\n" for n in range(12)))
    assert (
        _run(
            [
                "judge",
                "calibrate",
                "run",
                "--metric",
                "ExactMatch",
                "--labels",
                str(labels),
                "--storage",
                str(judged),
                "--json",
            ]
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert (found["labelled"], found["judged"]) == (12, 20)
    low, high = found["corrected_ci"]
    assert 0 <= low < found["corrected_mean"] < high <= 1
    assert found["labels_wanted"] > 200


def test_judges_that_always_agree_have_an_alpha_of_one(judged, capsys):
    arguments = [
        "judge",
        "agreement",
        "run",
        "--metric",
        "ExactMatch",
        "--metric",
        "Includes",
        "--storage",
        str(judged),
    ]
    assert _run([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["krippendorff_alpha"] == pytest.approx(1.0)
    assert found["cohens_kappa"]["ExactMatch / Includes"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["agreement", "run", "--metric", "ExactMatch"], "at least two judges"),
        (["agreement", "run", "--metric", "A", "--metric", "B"], "no metric 'A'"),
        (["agreement", "run", "--metric", "A", "--metric", "B"], "there is ExactMatch, Includes"),
        (["consistency", "run", "--metric", "ExactMatch"], "no pair was judged in both orders"),
    ],
)
def test_mistakes_are_explained(judged, capsys, arguments, says):
    assert _run(["judge", *arguments, "--storage", str(judged)]) == 2
    assert says in capsys.readouterr().err


def test_a_panels_votes_are_compared_and_a_pairwise_judge_is_held_against_the_order(tmp_path, capsys):
    one, other = (RubricJudge(model=f'fake/constant?text={{"verdict": "{verdict}"}}') for verdict in ("pass", "fail"))
    always_first = PairwiseJudge(model='fake/constant?text={"preference": "A"}', other_field="other")
    themis.evaluate(
        [{"id": n, "question": f"say {n}", "answer": str(n), "other": "x"} for n in range(8)],
        model="fake/perfect",
        prompt="{question}",
        metrics=[JudgePanel(judges=[one, other, one]), always_first],
        storage=tmp_path,
        run_id="run",
    )

    assert _run(["judge", "agreement", "run", "--metric", "judge_panel", "--storage", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["items"], len(found["cohens_kappa"])) == (8, 3)
    assert found["krippendorff_alpha"] < 0

    assert _run(["judge", "consistency", "run", "--storage", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "inconsistency rate" in shown
    assert "1.0000 [0.6877, 1.0000]" in shown


def test_what_could_not_be_judged_is_shown_with_a_reason(judged, capsys):
    metric = "rubric_judge(model='fake/constant?text=hello')"
    assert _run(["rejudge", "run", "--metric", metric, "--storage", str(judged)]) == 3
    shown = capsys.readouterr()
    assert "RubricJudge" in shown.out
    assert "none of 20 answers could be judged" in shown.err
    assert "for example 0: RubricJudge: NoVerdictError: the judge's verdict cannot be read" in shown.err


@pytest.mark.parametrize("label", ["7", "nan", "-0.1", "maybe"])
def test_a_label_beyond_zero_and_one_is_refused(judged, capsys, label):
    labels = judged / "people.csv"
    labels.write_text(f"id,label\n1,{label}\n")
    arguments = ["calibrate", "run", "--metric", "ExactMatch", "--labels", str(labels), "--storage", str(judged)]
    assert _run(["judge", *arguments]) == 2
    assert "row 1: label " in (said := capsys.readouterr().err)
    assert "is not a number from 0 to 1, nor true or false" in said


def test_labels_without_an_id_are_refused(judged, capsys):
    labels = judged / "people.csv"
    labels.write_text("item,label\n1,1\n")
    assert (
        _run(["judge", "calibrate", "run", "--metric", "ExactMatch", "--labels", str(labels), "--storage", str(judged)])
        == 2
    )
    assert "expected the fields id and label" in capsys.readouterr().err


def test_a_judge_that_judges_nothing_fails_a_run_whose_other_metrics_work(judged, capsys):
    metrics = ["--metric", "exact_match", "--metric", "rubric_judge(model='fake/constant?text=hello')"]
    assert _run(["rejudge", "run", *metrics, "--storage", str(judged)]) == 3
    shown = capsys.readouterr()
    assert "ExactMatch" in shown.out
    assert "a metric could judge none of 20 answers, for example 0: RubricJudge: NoVerdictError: " in shown.err
