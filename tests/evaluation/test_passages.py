"""DROP, LongBench, RULER and means of groups are scored by their published rules."""

from __future__ import annotations

import pytest

import themis
from themis.core.entities import GenerationRecord, ModelOutput
from themis.evaluation.judges import AnswerJudge
from themis.evaluation.metrics import DropScore, GroupMean, LongBenchScore, PartsFound
from themis.exceptions import ConfigurationError, MetricError


@pytest.mark.parametrize(
    ("said", "expected", "f1", "exact"),
    [
        ("12", ["12.0"], 1.0, 1.0),
        ("12 yards", ["12"], 0.67, 0.0),
        ("the red team", ["Red Team"], 1.0, 1.0),
        ("40-yard field goal", ["40 yard"], 0.67, 0.0),
        # Without the right number nothing counts.
        ("13 yards", ["12 yards"], 0.0, 0.0),
        ("Dutch; Frisian", ["Frisian; Dutch"], 1.0, 1.0),
        ("Dutch\nFrisian\nEnglish", ["Frisian; Dutch"], 0.67, 0.0),
        ("Dutch", ["Frisian; Dutch"], 0.5, 0.0),
        ("", ["Frisian"], 0.0, 0.0),
        # Of several references the best counts.
        ("12", ["13", "12"], 1.0, 1.0),
    ],
)
def test_drop_matches_parts_as_its_authors_do(said, expected, f1, exact):
    assert DropScore().compute(prediction=said, references=expected).value == f1
    assert DropScore(exact=True).compute(prediction=said, references=expected).value == exact


@pytest.mark.parametrize(
    ("task", "said", "expected", "score"),
    [
        ("hotpotqa", "in Denmark", ["Denmark", "Sweden"], 2 / 3),
        ("triviaqa", "Mars\nBecause it is red", ["Mars"], 1.0),
        ("trec", "Other number", ["Other number"], 1.0),
        ("trec", "Date or Other number", ["Other number"], 0.5),
        ("trec", "Date", ["Other number"], 0.0),
        ("passage_retrieval_en", "Paragraph 2", ["Paragraph 2"], 1.0),
        ("passage_retrieval_en", "Paragraph 2 or 12", ["Paragraph 2"], 0.5),
        ("passage_count", "none", ["3"], 0.0),
        ("lcc", "```\n    return a + b", ["    return a + b"], 1.0),
        ("gov_report_e", "steel came late", ["steel came late"], 1.0),
    ],
)
def test_longbench_scores_each_task_by_its_own_rule(task, said, expected, score):
    row = {"task": task, "all_classes": ["Date", "number", "Other number"]}

    assert LongBenchScore().compute(prediction=said, references=expected, metadata=row).value == pytest.approx(score)


def test_a_row_of_an_unknown_longbench_task_is_refused_before_the_first_call():
    with pytest.raises(MetricError, match="'poetry' is none of"):
        LongBenchScore().check_row(["x"], {"task": "poetry"})


def test_every_part_that_is_named_counts():
    assert PartsFound().compute(prediction="ABC and DEF", references=["abc; xyz"]).value == 0.5


def test_a_mean_of_groups_counts_each_group_alike(tmp_path):
    subjects = ["sums", "sums", "sums", "words"]
    rows = [{"id": str(n), "question": "?", "answer": "1" if n else "2", "subject": s} for n, s in enumerate(subjects)]

    themis.register_provider("one", _AlwaysOne)
    report = themis.evaluate(
        rows,
        model="one/any",
        prompt="{question} {subject}",
        metrics=["exact_match", GroupMean("exact_match", field="subject")],
        storage=tmp_path,
        progress=False,
    )

    assert report.metric("exact_match").mean == 0.75
    by_subject = report.metric("ExactMatch_by_subject")
    assert by_subject.mean == pytest.approx((2 / 3 + 1) / 2)
    assert by_subject.details["by_group"] == [
        {"group": "sums", "mean": pytest.approx(2 / 3), "count": 3},
        {"group": "words", "mean": 1.0, "count": 1},
    ]


def test_rows_without_a_group_and_metrics_without_a_mean_are_refused():
    with pytest.raises(MetricError, match="no 'subject'"):
        GroupMean("exact_match", field="subject").check_row(["1"], {"question": "?"})
    with pytest.raises(ConfigurationError, match="number over a whole run"):
        GroupMean("macro_f1", field="subject")


def test_a_judge_of_answers_grades_each_once_for_all_measures(tmp_path):
    _Grader.asked = 0
    themis.register_provider("grader", _Grader)
    rows = [{"id": str(n), "question": f"{n}?", "answer": str(n)} for n in range(4)]
    measures = ["correct", "correct_given_attempted", "f_score"]

    report = themis.evaluate(
        rows,
        model="fake/perfect",
        prompt="{question}",
        metrics=[AnswerJudge(model="grader/any", measure=measure) for measure in measures],
        storage=tmp_path,
        progress=False,
    )

    # Of four answers one is wrong and one is not attempted.
    assert [report.metric(measure).mean for measure in measures] == pytest.approx([0.5, 2 / 3, 2 * 2 / (4 + 3)])
    assert _Grader.asked == 4


class _AlwaysOne:
    def execute(self, task):
        return GenerationRecord(task, ModelOutput("1"), None)


class _Grader:
    asked = 0

    def execute(self, task):
        type(self).asked += 1
        about = task.prompt.text
        grade = "not attempted" if "\n0?\n" in about else "incorrect" if "\n1?\n" in about else "correct"
        return GenerationRecord(task, ModelOutput(f'{{"grade": "{grade}", "reason": "so"}}'), None)
