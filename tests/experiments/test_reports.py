"""The one report of an experiment: exit codes, gates, and the files it is written to."""

from __future__ import annotations

import json

import pytest

from themis.exceptions import ConfigurationError
from themis.experiments import run_experiment
from themis.experiments.pages import check_output, write_result


@pytest.fixture
def scored(sums: dict) -> dict:
    return {**sums, "prompts": {"plain": "{question}"}, "baseline": "weak"}


@pytest.mark.parametrize(
    ("gate", "code", "outcomes"),
    [
        ({"at_least": 0.1}, 0, ["pass", "pass"]),
        ({"at_least": 0.9}, 1, ["pass", "fail"]),
        ({"at_most": 0.9}, 1, ["fail", "pass"]),
        ({"min_delta": 0.1}, 0, ["pass"]),
        ({"min_delta": 0.9}, 1, ["fail"]),
        ({"non_inferiority": 0.02}, 0, ["pass"]),
        ({"at_least": 0.9, "only": "perfect"}, 0, ["pass"]),
        ({"at_least": 0.9, "min_delta": 0.0, "only": "perfect"}, 0, ["pass"]),
        ({"significant": True, "min_overlap": 1.0}, 0, ["pass"]),
    ],
)
def test_a_gate_decides_the_exit_code(scored, gate, code, outcomes):
    result = run_experiment({**scored, "gates": [{"metric": "exact_match", **gate}]}, progress=False)

    assert result.exit_code == code
    assert [verdict.outcome.value for verdict in result.gates] == outcomes
    assert bool(result.problems()) == bool(code)


def test_a_gate_cannot_tell_of_a_mean_over_the_few_items_that_did_not_fail(scored):
    """A mean over what happened to work is no evidence: as beside a baseline, half of the items must have a score."""
    scored["subjects"] = ["fake/flaky-0.9"]
    scored["baseline"] = None
    gate = {"metric": "exact_match", "at_least": 0.5}
    few = run_experiment({**scored, "max_retries": 1, "gates": [gate]}, progress=False)
    scored["subjects"] = ["fake/flaky-0.2"]
    most = run_experiment({**scored, "name": "most", "max_retries": 1, "gates": [gate]}, progress=False)

    assert (few.exit_code, [verdict.outcome.value for verdict in few.gates]) == (3, ["unknown"])
    assert "items failed, wanted at least 50% scored" in few.problems()[-1]
    assert (most.exit_code, [verdict.outcome.value for verdict in most.gates]) == (0, ["pass"])
    assert "items failed), wanted at least 0.5" in most.gates[0].checks[-1].reason


def test_too_many_failures_are_told_and_make_the_exit_code_1(scored):
    scored["subjects"] = ["fake/flaky-0.9"]
    scored["baseline"] = None
    result = run_experiment({**scored, "max_retries": 1, "fail_on_errors": 0.1}, progress=False)

    assert result.exit_code == 1
    assert "items failed, more than fail_on_errors 0.1 allows" in result.problems()[0]


def test_what_makes_a_runs_means_too_low_is_told_beside_them(scored, folder):
    code = 'def cut(prompt):\n    return {"text": "The answer is", "finish_reason": "length"}\n'
    (folder / "app.py").write_text(code, encoding="utf-8")
    scored["subjects"] = ["fake/perfect", {"name": "weak", "model": "python:app.py:cut"}]
    result = run_experiment(scored, progress=False)
    told = "weak · plain · rows: 100 % of answers were cut off at 512 tokens: the mean is too low; raise --max-tokens"

    assert result.notes()[0] == told
    assert told in result._repr_html_()
    assert not any("perfect" in note and "cut off" in note for note in result.notes())


def test_each_dataset_and_metric_has_a_table_with_the_baseline_in_it(scored):
    scored["datasets"] = ["rows.jsonl", {"dataset": "demo", "prompt": "{question}", "subjects": ["perfect", "weak"]}]
    del scored["prompts"]
    scored["datasets"][0] = {"dataset": "rows.jsonl", "prompt": "{question}"}
    result = run_experiment({**scored, "metrics": ["exact_match", "numeric"]}, progress=False)

    titles = [table.title for table in result.tables()]
    assert titles == ["Runs", "ExactMatch on rows", "Numeric on rows", "ExactMatch on demo", "Numeric on demo"]
    first = result.tables()[1]
    assert first.columns[:2] == ("run", "mean [95 %]")
    assert [row[0] for row in first.rows] == ["perfect", "weak"]
    assert first.rows[0][3].startswith("+0.")
    assert first.rows[1][3] == "baseline"


def test_the_report_is_written_as_a_page_as_markdown_and_as_json(scored, tmp_path):
    scored["name"] = "sums <b>"
    result = run_experiment({**scored, "gates": [{"metric": "ExactMatch", "at_least": 0.9}]}, progress=False)
    for name in ("report.html", "deep/report.md", "report.json"):
        write_result(result, str(tmp_path / name))

    page = (tmp_path / "report.html").read_text()
    assert "sums &lt;b&gt;" in page
    assert "perfect · plain − weak · plain" in page  # the plot
    assert '<strong class="bad">fail</strong>' in page
    assert "http" not in page.replace("http-equiv", "")  # nothing is loaded from elsewhere
    assert "## ExactMatch on rows" in (tmp_path / "deep" / "report.md").read_text()
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["exit_code"] == 1
    assert [gate["verdict"] for gate in told["gates"]] == ["pass", "fail"]
    assert told["comparisons"][0]["n"] == 12


def test_a_notebook_shows_the_report_and_not_how_it_is_kept(scored):
    scored["subjects"] = {"<b>one</b>": "fake/perfect", "weak": "fake/noisy-0.5"}
    result = run_experiment({**scored, "gates": [{"metric": "exact_match", "at_least": 0.9}]}, progress=False)

    shown = result._repr_html_()
    for title in ("Runs", "ExactMatch on rows", "Gates", "gate of exact_match fails", "sums: 2 of 2 runs complete"):
        assert title in shown
    assert "<b>one" not in shown
    assert repr(result) == "ExperimentResult(sums: 2 of 2 runs complete, $0.0000 spent)"


def test_a_report_of_another_form_is_refused(scored):
    with pytest.raises(
        ConfigurationError, match=r"a report is written as .html, .md, .json, got 'x.htm' \(did you mean"
    ):
        check_output("x.htm")
