"""Runs are compared on items that hold the same and were judged alike; whatever is left out is said wherever a number is."""

import json
import xml.etree.ElementTree as ElementTree

import pytest
from scored_runs import Number, scored_run

import themis
from themis.cli import main
from themis.comparison import ComparisonEngine, Gate, StopWhenDecided, compare_runs, diff_runs, plan_comparison
from themis.comparison.diff import write_diff
from themis.comparison.gate import github_summary, junit_xml
from themis.comparison.judging import compare_judging
from themis.comparison.latex import latex_table
from themis.comparison.pages import comparison_page
from themis.comparison.reports import markdown_table
from themis.core.codec import encode
from themis.evaluation.metrics import Numeric
from themis.exceptions import MetricError
from themis.storage import ExperimentStorage

SUMS = [{"question": f"{n} + {n + 1}", "answer": str(2 * n + 1)} for n in range(20)]
PRODUCTS = [{"question": f"{n} * {n + 1}", "answer": str(n * (n + 1))} for n in range(20)]
# Half of the rows are asked otherwise.
EDITED = [{**row, "question": f"What is {row['question']}?"} if n % 2 else row for n, row in enumerate(SUMS)]
LEFT_OUT = "10 with other content (question; such as item '1') under the same id"


def answered(store, run_id, rows, model="fake/noisy-0.3", **options):
    options = {"metrics": ["exact_match"], **options}
    return themis.evaluate(
        rows, model=model, prompt="{question}", run_id=run_id, storage=store, progress=False, **options
    )


@pytest.fixture
def edited(tmp_path):
    answered(tmp_path, "plain", SUMS)
    answered(tmp_path, "edited", EDITED, model="fake/perfect")
    return tmp_path


# --- the same item ----------------------------------------------------------------------------------------------------


def test_sums_and_products_are_not_compared(tmp_path):
    answered(tmp_path, "sums", SUMS, model="fake/perfect")
    answered(tmp_path, "products", PRODUCTS)
    told = r"share 20 item ids but not one item: .*question, answer.*'0 \+ 1' and '0 \* 1'.*--across"

    for refused in (
        lambda: compare_runs(["sums", "products"], storage_path=tmp_path),
        lambda: diff_runs("sums", "products", storage_path=tmp_path),
        lambda: plan_comparison("sums", "ExactMatch", storage_path=tmp_path, pilot="products"),
    ):
        with pytest.raises(MetricError, match=told):
            refused()
    verdict = Gate(baseline="products", metric="ExactMatch").judge("sums", storage_path=tmp_path)
    assert (verdict.exit_code, "share 20 item ids but not one item" in verdict.reasons[0]) == (3, True)


def test_pairing_across_content_is_asked_for_and_marks_every_output(tmp_path):
    answered(tmp_path, "sums", SUMS, model="fake/perfect")
    answered(tmp_path, "products", PRODUCTS, model="fake/noisy-0.8")
    mark = (
        "paired by id across different content: 20 of the ids hold other content (question, answer; such as item '0')"
    )

    report = compare_runs(["sums", "products"], storage_path=tmp_path, across=True)
    diff = diff_runs("sums", "products", storage_path=tmp_path, across=True)
    gate = Gate(baseline="products", metric="ExactMatch", across=True).judge("sums", storage_path=tmp_path)

    assert report.pairwise_results[0].winner == "sums"
    assert report.to_dict()["pairwise_results"][0]["pairing"]["across"]
    texts = [report.summary(), report.pairwise_results[0].summary(), latex_table(report), gate.checks[1].reason]
    assert [text for text in [*texts, *diff.told(), *gate.told()] if mark in text] == [
        *texts,
        diff.told()[0],
        gate.told()[0],
    ]
    for page in (comparison_page(report), markdown_table(report), github_summary(gate)):
        assert "across different content" in page


def test_rows_without_ids_are_known_by_what_they_hold(tmp_path):
    # Two rows are equal: the first of them is paired with the first, the second with the second.
    rows = [*SUMS, SUMS[3]]
    answered(tmp_path, "forwards", rows)
    answered(tmp_path, "backwards", rows[::-1])

    (row,) = compare_runs(["forwards", "backwards"], storage_path=tmp_path).pairwise_results

    assert (row.pairing.n, row.pairing.is_whole) == (21, True)
    # The same model says the same of the same question, wherever it stands.
    assert row.run_a_samples == row.run_b_samples
    (mirrored,) = compare_runs(["backwards", "forwards"], storage_path=tmp_path).pairwise_results
    assert mirrored.run_a_samples == row.run_b_samples


def test_an_id_with_other_content_is_another_item(tmp_path):
    scored_run(tmp_path, "a", [1, 1, 0, 1], fields={"level": [1, 2, 3, 4]})
    scored_run(tmp_path, "b", {"0": 0, "1": 0, "2": 1, "new": 1}, fields={"level": [1, 2, 9, 4]})

    (row,) = compare_runs(["a", "b"], storage_path=tmp_path).pairwise_results

    pairing = row.pairing
    assert (row.run_a_samples, row.run_b_samples) == ([1, 1], [0, 0])
    assert (pairing.n, pairing.changed, pairing.only_a, pairing.only_b) == (2, 1, 1, 1)
    assert (pairing.changed_fields, pairing.changed_example) == (("level",), "2")


def test_three_runs_are_ranked_on_the_items_that_all_share_by_content(tmp_path):
    for run_id, rows in (("a", SUMS), ("b", SUMS[::-1]), ("c", EDITED)):
        answered(tmp_path, run_id, rows)

    report = compare_runs(["a", "b", "c"], storage_path=tmp_path)

    assert report.rankings["ExactMatch"].items == 10
    assert [row.pairing.n for row in report.pairwise_results] == [20, 10, 10]


# --- what every surface says ------------------------------------------------------------------------------------------


def test_a_comparison_says_everywhere_what_it_rests_on(edited):
    report = compare_runs(["plain", "edited"], storage_path=edited)

    told = f"Paired: 10 of 20 and 20 items; left out: {LEFT_OUT}"
    attempts = "Attempts: plain 20 (0 failed), edited 20 (0 failed)"
    for text in (report.summary(), report.summary(include_details=True), latex_table(report)):
        assert told in text
        assert attempts in text
    for page in (comparison_page(report), markdown_table(report)):
        assert "10 of 20 and 20 items; left out: 10 with other content" in page.replace("\\", "")
        assert attempts in page.replace("\\", "")
    assert "10 of 20 and 20 items" in report.pairwise_results[0].summary()
    payload = report.to_dict()
    pairing = payload["pairwise_results"][0]["pairing"]
    assert (pairing["n"], pairing["left_out_a"], pairing["left_out_b"], pairing["changed"]) == (10, 10, 10, 10)
    assert payload["metadata"]["runs"]["plain"] == {
        "items": 20,
        "attempts": 20,
        "failed_attempts": 0,
        "caveats": [],
    }


def test_the_command_line_says_it(edited, capsys):
    def run(*words):
        with pytest.raises(SystemExit) as leaving:
            main([*words, "--storage", str(edited)])
        assert not leaving.value.code
        return capsys.readouterr().out

    for words in (["compare", "plain", "edited"], ["diff", "plain", "edited"]):
        out = run(*words)
        assert f"10 of 20 and 20 items; left out: {LEFT_OUT}" in out
        assert "ttempts: plain 20 (0 failed), edited 20 (0 failed)" in out
    out = run("gate", "edited", "--baseline", "plain", "--metric", "ExactMatch")
    assert f"10 of the candidate's 20 items are scored in both runs; left out: {LEFT_OUT}" in out
    assert "attempts: candidate 20 (0 failed), baseline 20 (0 failed)" in out
    found = json.loads(run("diff", "plain", "edited", "--json"))
    assert found["metrics"]["ExactMatch"]["pairing"]["left_out_b"] == 10
    assert found["attempts"]["plain"] == {"made": 20, "failed": 0}


def test_a_gate_and_a_diff_say_it_in_their_files(edited, tmp_path):
    verdict = Gate(baseline="plain", metric="ExactMatch").judge("edited", storage_path=edited)

    assert LEFT_OUT in verdict.to_dict()["checks"][1]["reason"]
    assert verdict.to_dict()["attempts"]["baseline"] == {"made": 20, "failed": 0}
    assert "left out: 10 with other content" in ElementTree.fromstring(junit_xml(verdict)).findtext("system-out")
    assert "left out: 10 with other content" in github_summary(verdict).replace("\\", "")
    diff = diff_runs("plain", "edited", storage_path=edited)
    write_diff(diff, diff.items(), tmp_path / "diff.html")
    assert "left out: 10 with other content" in (tmp_path / "diff.html").read_text()


def test_failed_attempts_and_items_without_a_score_are_told_apart(tmp_path):
    scored_run(tmp_path, "a", [1, "no number", 1, 0])
    scored_run(tmp_path, "b", [1, 1, "no number", 0], num_samples=2)

    report = compare_runs(["a", "b"], storage_path=tmp_path)

    assert "2 of 4 and 4 items; left out: 1 without a score in a, 1 without a score in b" in report.summary()
    assert "Attempts: a 4 (0 failed), b 8 (0 failed)" in report.summary()


# --- the same judge ---------------------------------------------------------------------------------------------------


@pytest.fixture
def thresholds(tmp_path):
    """The same answers, judged by two tolerances and one metric more."""
    answered(tmp_path, "strict", SUMS, model="fake/noisy-0.5", metrics=[Numeric(tolerance=0.1), "exact_match"])
    lenient = ["response_length", Numeric(tolerance=100), "exact_match"]
    answered(tmp_path, "lenient", SUMS, model="fake/noisy-0.5", metrics=lenient)
    return tmp_path


def test_another_threshold_is_another_judge_and_has_no_winner(thresholds):
    report = compare_runs(["strict", "lenient"], storage_path=thresholds)

    numeric, exact = report.get_metric_results("Numeric")[0], report.get_metric_results("ExactMatch")[0]
    assert (numeric.winner, numeric.is_significant(), numeric.test_result, numeric.interval) == (
        None,
        False,
        None,
        None,
    )
    assert numeric.judged_differently == "metric tolerance: 0.1 and 100"
    assert numeric.delta < 0
    # A metric that both runs have is not touched by what else one of them has.
    assert (exact.judged_differently, exact.winner) == ("", "tie")
    assert report.best_run_per_metric["Numeric"] is None
    assert report.win_loss_matrices["Numeric"].get_result("strict", "lenient") == "?"


def test_a_differing_judge_is_named_everywhere_with_the_way_to_judge_alike(thresholds):
    report = compare_runs(["strict", "lenient"], storage_path=thresholds)
    diff = diff_runs("strict", "lenient", storage_path=thresholds, metrics=["Numeric"])

    for text in (report.summary(), latex_table(report), *diff.told()[1:2]):
        assert "metric tolerance: 0.1 and 100; judge their stored answers alike: themis rejudge strict" in text
    assert "no verdict (judged differently: metric tolerance: 0.1 and 100)" in report.pairwise_results[-1].summary()
    for page in (comparison_page(report), markdown_table(report)):
        assert "no verdict" in page
        assert "metric tolerance: 0.1 and 100" in page.replace("\\", "")
    assert report.to_dict()["pairwise_results"][-1]["winner"] is None


def test_a_gate_fails_runs_that_were_judged_differently(thresholds):
    gate = Gate(baseline="strict", metric="Numeric", min_delta=-1)

    verdict = gate.judge("lenient", storage_path=thresholds)

    assert verdict.exit_code == 1
    assert verdict.reasons[0].startswith("judged differently: metric tolerance: 100 and 0.1; judge their stored")
    on_purpose = Gate(baseline="strict", metric="Numeric", min_delta=-1, across=True)
    passed = on_purpose.judge("lenient", storage_path=thresholds)
    assert passed.passed
    assert "judged differently: metric tolerance: 100 and 0.1" in passed.checks[2].reason


def test_judged_differently_on_purpose_has_a_verdict_and_says_so(thresholds):
    engine = ComparisonEngine(storage_path=thresholds, across=True)

    (row,) = engine.compare_runs(["lenient", "strict"], metrics=["Numeric"]).pairwise_results

    assert (row.winner, row.test_result.test_name) == ("lenient", "mcnemar")
    assert "judged differently: metric tolerance: 100 and 0.1" in row.summary()


def test_judging_again_makes_runs_comparable(tmp_path, capsys):
    answered(tmp_path, "a", SUMS, metrics=["numeric(tolerance=0.1)"])
    answered(tmp_path, "b", SUMS, metrics=["numeric(tolerance=100)"])
    assert compare_runs(["a", "b"], storage_path=tmp_path).pairwise_results[0].winner is None

    with pytest.raises(SystemExit):
        main(["rejudge", "b", "--metric", "numeric(tolerance=0.1)", "--storage", str(tmp_path)])

    (row,) = compare_runs(["a", "b"], storage_path=tmp_path).pairwise_results
    assert (row.judged_differently, row.winner, row.delta) == ("", "tie", 0.0)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"extractor": "last_number"}, "extractor: IdentityExtractor and LastNumberExtractor"),
        ({"num_samples": 2, "reducer": "any"}, "reducer: none and AnyAttempt"),
        # One attempt, and the mean of several, are estimates of the same.
        ({"num_samples": 2}, ""),
        ({"num_samples": 2, "reducer": "keep"}, ""),
        ({"reference_field": "also"}, "reference_field: 'answer' and 'also'"),
    ],
)
def test_extractor_reducer_and_reference_are_part_of_the_judging(tmp_path, options, what):
    rows = [{**row, "also": row["answer"]} for row in SUMS]
    answered(tmp_path, "a", rows, reference_field="answer")
    answered(tmp_path, "b", rows, **{"reference_field": "answer", **options})

    assert compare_runs(["a", "b"], storage_path=tmp_path).pairwise_results[0].judged_differently == what


def test_a_store_that_does_not_say_which_description_is_whose_is_read_all_the_same():
    one, other = {"class": "x.One", "parameters": {"t": 1}}, {"class": "x.Other", "parameters": {}}
    new = {"extractor": None, "metrics": [one], "metric_names": ["One"]}

    assert compare_judging(new, {"extractor": None, "metrics": [other, one]}, "One") == []
    changed = {"class": "x.One", "parameters": {"t": 2}}
    assert compare_judging(new, {"extractor": None, "metrics": [other, changed]}, "One")
    assert [str(found) for found in compare_judging(new, {"extractor": None, "metrics": [changed]}, "One")] == [
        "metric t: 1 and 2"
    ]
    published = {"source": "lm-eval", "metrics": ["acc"]}
    assert compare_judging(published, {"source": "lm-eval", "metrics": ["acc", "f1"]}, "acc") == []
    assert compare_judging(published, {"source": "inspect", "metrics": ["acc"]}, "acc")


def test_judging_again_tells_an_old_store_what_its_metrics_are_called(tmp_path):
    scored_run(tmp_path, "a", [1, 0], metrics=[Number("One"), Number("Two")])
    store = ExperimentStorage(tmp_path)
    stored = store.reader("a").list_evaluations()[0]
    old = {name: value for name, value in stored.config.items() if name != "metric_names"}
    with store.open_run("a") as writer:
        assert writer.open_evaluation(stored.fingerprint, old) == stored.evaluation
        assert "metric_names" not in encode(store.reader("a").evaluation_config(stored.evaluation))

    scored_run(tmp_path, "a", [1, 0], metrics=[Number("One"), Number("Two")])

    assert store.reader("a").evaluation_config(stored.evaluation)["metric_names"] == ["One", "Two"]


# --- stopping early ---------------------------------------------------------------------------------------------------


def test_a_run_that_stops_when_decided_is_paired_by_content(tmp_path):
    rows = [{"question": f"say {n}", "answer": str(n)} for n in range(300)]
    answered(tmp_path, "baseline", rows, model="fake/noisy-0.5")
    rule = StopWhenDecided("baseline", "ExactMatch", storage_path=tmp_path)

    report = answered(tmp_path, "same", rows[::-1], model="fake/noisy-0.5", stop_when=rule)

    # The same model on the same questions in another order: every difference is zero.
    assert (report.metadata.get("stopped"), rule.sequence.mean, rule.sequence.count) == (None, 0.0, 300)
    other = StopWhenDecided("baseline", "ExactMatch", storage_path=tmp_path)
    with pytest.raises(MetricError, match="share 20 item ids but not one item"):
        answered(tmp_path, "sums", SUMS, stop_when=other)
    judged = StopWhenDecided("baseline", "ExactMatch", storage_path=tmp_path)
    with pytest.raises(MetricError, match="are judged differently on ExactMatch: extractor"):
        answered(tmp_path, "numbers", rows, extractor="last_number", stop_when=judged)
