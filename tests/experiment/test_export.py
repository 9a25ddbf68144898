"""The exported files: their shapes, that every score is beside its own sample, and that nothing in them can act."""

from __future__ import annotations

import csv
import json
import math
import os
import random
import weakref
from collections import OrderedDict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import hypothesis
import pytest
from hypothesis import strategies as st

import themis
from themis.core.continuations import option_continuations
from themis.core.entities import (
    EvaluationFailure,
    EvaluationRecord,
    EvaluationReport,
    ExperimentFailure,
    ExperimentReport,
    GenerationRecord,
    GenerationTask,
    MetricAggregate,
    MetricScore,
    ModelError,
    ModelOutput,
    ModelSpec,
    PromptRender,
    PromptSpec,
    Reference,
    SamplingConfig,
)
from themis.exceptions import ConfigurationError, DependencyError
from themis.experiment import export
from themis.experiment.export.as_tables import csv_safe
from themis.experiment.export.charts import histogram
from themis.experiment.export.samples import join_samples
from themis.storage.lazy import LazySequence

ROWS = [
    {"id": f"q{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n), "topic": "sums", "level": n % 3}
    for n in range(30)
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ExperimentReport:
    return themis.evaluate(
        ROWS,
        model="fake/noisy-0.3",
        prompt="{question}",
        metrics=["exact_match", "f1"],
        storage=tmp_path_factory.mktemp("store"),
        run_id="exported",
        progress=False,
    )


def made(
    answers: dict[str, str | None], scores: dict[str, float], *, order: list[str] | None = None
) -> ExperimentReport:
    """A report as a user's own code might build one; None for an answer is a failed generation."""
    records = []
    for item_id, answer in answers.items():
        task = GenerationTask(
            prompt=PromptRender(PromptSpec("p", "{x}"), f"prompt of {item_id}"),
            model=ModelSpec("m", "fake"),
            sampling=SamplingConfig(),
            metadata={"dataset_id": item_id},
            reference=Reference("answer", "right"),
        )
        error = ModelError("timed out") if answer is None else None
        records.append(GenerationRecord(task, None if answer is None else ModelOutput(answer), error))
    verdicts = [EvaluationRecord(i, [MetricScore("M", scores[i])]) for i in (order or scores)]
    return ExperimentReport(
        generation_results=records,
        evaluation_report=EvaluationReport(
            {"M": MetricAggregate.from_scores("M", [s for v in verdicts for s in v.scores])}, [], verdicts
        ),
        failures=[ExperimentFailure(r.task.metadata["dataset_id"], "timed out") for r in records if r.error],
        metadata={"run_id": "made", "total_samples": len(records)},
    )


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- the bundle -------------------------------------------------------------------------------------------------------


def test_the_bundle_returns_its_paths_in_order_and_makes_parents(report, tmp_path):
    folder = tmp_path / "not" / "there"
    written = export.export_report_bundle(
        report,
        summary_path=str(folder / "summary.json"),
        json_path=folder / "report.json",
        html_path=folder / "report.html",
        csv_path=str(folder / "report.csv"),
        run_id="another-name",
    )
    assert isinstance(written, OrderedDict)
    assert list(written) == ["csv", "html", "json", "summary"]
    assert all(isinstance(path, Path) and path.stat().st_size for path in written.values())
    assert sorted(path.name for path in folder.iterdir()) == [
        "report.csv",
        "report.html",
        "report.json",
        "summary.json",
    ]
    assert json.loads(written["summary"].read_text())["run_id"] == "another-name"
    assert json.loads(written["json"].read_text())["summary"]["run_id"] == "another-name"


def test_only_what_a_path_is_given_for_is_written(report, tmp_path):
    assert list(export.export_report_bundle(report, json_path=tmp_path / "a.json")) == ["json"]
    assert export.export_report_bundle(report) == OrderedDict()


def test_the_json_holds_the_whole_report_and_every_sample(report, tmp_path):
    path = tmp_path / "report.json"
    export.export_json(report, path, title="T", sample_limit=5)
    payload = json.loads(path.read_text())

    assert list(payload) == [
        *("title", "summary", "metrics", "samples", "rendered_sample_limit", "total_samples", "charts"),
        *("run_failures", "evaluation_failures", "metrics_rendered"),
    ]
    assert set(payload["summary"]) >= {*report.metadata, "run_failures", "evaluation_failures"}
    assert [metric["name"] for metric in payload["metrics"]] == ["ExactMatch", "F1"] == payload["metrics_rendered"]
    assert payload["metrics"][0]["mean"] == report.metric("exact_match").mean
    assert payload["metrics"][0]["count"] == 30
    assert (len(payload["samples"]), payload["total_samples"], payload["rendered_sample_limit"]) == (30, 30, 5)
    sample = payload["samples"][7]
    assert set(sample) == {"sample_id", "metadata", "scores", "failures"}
    assert set(sample["metadata"]) == {
        *("question", "topic", "level", "dataset_id", "manifest_hash", "model_identifier", "model_provider"),
        *("prompt_template", "sampling_temperature", "sampling_top_p", "sampling_max_tokens"),
    }
    assert set(sample["scores"][0]) == {"metric", "value", "details", "metadata"}


@pytest.mark.parametrize("indent", [None, 0, 2, 4])
def test_any_indentation_is_the_same_json(report, tmp_path, indent):
    export.export_json(report, tmp_path / "a.json", indent=indent)
    export.export_json(report, tmp_path / "b.json")
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads((tmp_path / "b.json").read_text())


def test_the_csv_has_fields_then_metrics_sorted_and_one_row_a_sample(report, tmp_path):
    path = export.export_csv(report, tmp_path / "report.csv")
    header = path.read_text().splitlines()[0].split(",")
    rows = read_csv(path)

    fields = header[1:-3]
    assert header[0] == "sample_id"
    assert fields == sorted(fields)
    assert {"question", "topic", "level", "model_identifier"} <= set(fields)
    assert header[-3:] == ["metric:ExactMatch", "metric:F1", "failures"]
    assert [row["sample_id"] for row in rows] == [row["id"] for row in ROWS]


def test_the_summary_has_the_few_numbers_that_gates_read(report, tmp_path):
    summary = json.loads(export.export_summary(report, tmp_path / "s.json").read_text())
    assert set(summary) == {
        *("run_id", "total_samples", "metrics", "metadata", "cost_usd", "failures", "failure_rate", "performance"),
        "caveats",
    }
    assert summary["metrics"]["ExactMatch"]["mean"] == report.metric("exact_match").mean
    assert summary["metadata"]["sampling"] == {"temperature": 0.0, "top_p": None, "max_tokens": 512}
    assert (summary["cost_usd"], summary["failures"], summary["failure_rate"]) == (0.0, 0, 0.0)


def test_a_sample_that_fails_twice_counts_once_so_the_rate_stays_a_rate(tmp_path):
    report = made({"a": None, "b": "x", "c": "y"}, {"b": 1.0, "c": 0.0})
    report.evaluation_report.failures = [EvaluationFailure("b", "one"), EvaluationFailure("b", "two")]
    summary = json.loads(export.export_summary(report, tmp_path / "s.json").read_text())
    assert (summary["failures"], summary["failure_rate"]) == (2, 0.6667)


def test_a_mean_of_nothing_is_null_and_the_file_is_strict_json(tmp_path):
    report = made({"a": None}, {})
    report.metadata["strange"] = [math.inf, math.nan]
    paths = export.export_report_bundle(report, json_path=tmp_path / "r.json", summary_path=tmp_path / "s.json")
    for path in paths.values():
        json.loads(path.read_text(), parse_constant=lambda word: pytest.fail(f"{word} in the file"))
    assert json.loads(paths["json"].read_text())["metrics"][0]["mean"] is None
    assert read_csv(export.export_csv(report, tmp_path / "r.csv"))[0]["failures"] == "timed out"


def test_charts_are_taken_as_objects_or_dicts_and_drawn(report, tmp_path):
    chart = {"title": "by <level>", "metric": "M", "points": [{"label": "0", "x": 0, "value": 0.5, "count": 10}]}
    paths = export.export_report_bundle(
        report,
        json_path=tmp_path / "r.json",
        html_path=tmp_path / "r.html",
        charts=[chart, export.Chart("second", [export.ChartPoint("1", 1, 0.2), export.ChartPoint("2", 2, 0.4)])],
    )
    charts = json.loads(paths["json"].read_text())["charts"]
    assert charts[0] == {"title": "by <level>", "x_label": "", "y_label": "", "metric": "M", "points": chart["points"]}
    assert charts[1]["points"][1] == {"label": "2", "x": 2, "value": 0.4, "count": 0}
    page = paths["html"].read_text()
    assert "by &lt;level&gt;" in page
    assert "by <level>" not in page


def test_a_chart_with_a_wrong_field_names_the_right_one(report, tmp_path):
    with pytest.raises(ConfigurationError, match=r"no field 'tittle' \(did you mean 'title'"):
        export.export_json(report, tmp_path / "r.json", charts=[{"tittle": "x"}])


# --- joined by id -----------------------------------------------------------------------------------------------------


def test_scores_stand_beside_their_own_sample_whatever_the_order(tmp_path):
    answers = {f"s{n}": None if n % 7 == 0 else f"answer {n}" for n in range(130)}
    scores = {item: int(item[1:]) / 130 for item, answer in answers.items() if answer is not None}
    order = random.Random(1).sample(list(scores), len(scores))
    rows = read_csv(export.export_csv(made(answers, scores, order=order), tmp_path / "r.csv"))

    assert [row["sample_id"] for row in rows] == list(answers)
    for row in rows:
        expected = scores.get(row["sample_id"])
        assert row["metric:M"] == ("" if expected is None else str(expected))
        assert row["failures"] == ("timed out" if expected is None else "")


def test_a_verdict_whose_answer_is_not_in_the_report_is_kept(tmp_path):
    report = made({"a": "x"}, {"a": 1.0, "gone": 0.5})
    rows = read_csv(export.export_csv(report, tmp_path / "r.csv"))
    assert [(row["sample_id"], row["metric:M"]) for row in rows] == [("a", "1.0"), ("gone", "0.5")]


@hypothesis.given(st.lists(st.sampled_from("agf"), max_size=40), st.integers(0, 3))
def test_streams_in_dataset_order_are_joined_without_holding_them(kinds, extra):
    # a: answered and judged, g: answered only, f: failed; extra verdicts came after their page of answers was read.
    answers = {f"s{n}": None if kind == "f" else "x" for n, kind in enumerate(kinds)}
    scores = {f"s{n}": float(n) for n, kind in enumerate(kinds) if kind == "a"}
    report = made(answers, {**{f"late{n}": -1.0 for n in range(extra)}, **scores})
    verdicts = list(report.evaluation_report.records)
    report.evaluation_report.records = LazySequence(len(verdicts), lambda: iter(verdicts))

    found = {sample.sample_id: [score.value for score in sample.scores] for sample in join_samples(report)}
    assert found == {
        **{item: [scores[item]] if item in scores else [] for item in answers},
        **{f"late{n}": [-1.0] for n in range(extra)},
    }


@pytest.mark.parametrize("name", ["csv", "json", "html", "jsonl", "junit", "inspect", "lm-eval"])
def test_no_format_holds_more_than_the_sample_it_writes(tmp_path, name):
    report = made({"a": "x"}, {"a": 1.0})
    pattern = report.generation_results[0]
    alive: weakref.WeakValueDictionary[int, GenerationRecord] = weakref.WeakValueDictionary()
    most = 0

    def records() -> Any:
        nonlocal most
        for n in range(500):
            task = GenerationTask(
                pattern.task.prompt, pattern.task.model, pattern.task.sampling, {"dataset_id": f"s{n}"}
            )
            record = GenerationRecord(task, pattern.output, None)
            alive[n] = record
            most = max(most, len(alive))
            yield record
            del record

    report.generation_results = LazySequence(500, records)
    report.evaluation_report.records = LazySequence(
        500, lambda: (EvaluationRecord(f"s{n}", [MetricScore("M", 1.0)]) for n in range(500))
    )
    export.export_formats(report, tmp_path, [name])

    # The page's plain table has the first hundred.
    assert most <= (105 if name == "html" else 5)


# --- whole or not at all ----------------------------------------------------------------------------------------------


def test_an_export_that_fails_leaves_the_earlier_file_and_no_scraps(report, tmp_path, monkeypatch):
    path = tmp_path / "report.csv"
    path.write_text("the earlier one")

    def broken() -> Any:
        yield from report.generation_results[:3]
        raise OSError("the disk is gone")

    half = ExperimentReport(LazySequence(30, broken), report.evaluation_report, report.failures, report.metadata)
    with pytest.raises(OSError, match="the disk is gone"):
        export.export_csv(half, path)
    assert path.read_text() == "the earlier one"
    assert os.listdir(tmp_path) == ["report.csv"]


def test_a_directory_in_place_of_a_file_is_named(report, tmp_path):
    with pytest.raises(ConfigurationError, match="is a directory, expected the name of a file"):
        export.export_csv(report, tmp_path)


# --- nothing in them can act ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff20"])
def test_a_cell_that_a_spreadsheet_would_run_is_neutralised(tmp_path, start):
    rows = [{"id": f"{start}id", f"{start}field": f"{start}HYPERLINK(1)", "answer": "a"}]
    if start in "\t\r\n":  # an id is one visible word
        rows[0]["id"] = "id"
    report = themis.evaluate(
        rows, model="fake/perfect", prompt="{id}", storage=tmp_path / "s", run_id="formula", progress=False
    )
    cells = next(csv.reader(export.export_csv(report, tmp_path / "r.csv").open(newline="")))
    content = read_csv(export.export_csv(report, tmp_path / "r.csv"))[0]
    for cell in (*cells, *content.values()):
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", start))
    assert f"'{start}HYPERLINK(1)" in content.values()


def test_numbers_stay_numbers_though_they_may_be_negative():
    assert (csv_safe(-0.5), csv_safe(7), csv_safe(None), csv_safe("-0.5")) == (-0.5, 7, "", "'-0.5")


# --- the other formats ------------------------------------------------------------------------------------------------


def test_jsonl_holds_prompt_answer_and_verdict_of_every_sample(report, tmp_path):
    lines = [json.loads(line) for line in export.export_jsonl(report, tmp_path / "s.jsonl").read_text().splitlines()]
    assert len(lines) == 30
    assert lines[4]["prompt"] == "What is 4 + 4?"
    assert lines[4]["reference"] == "8"
    assert {score["metric"] for score in lines[4]["scores"]} == {"ExactMatch", "F1"}
    assert lines[4]["usage"]["total_tokens"] > 0


def test_parquet_has_typed_columns(report, tmp_path):
    import pyarrow.parquet as pq

    table = pq.read_table(export.export_parquet(report, tmp_path / "r.parquet"))
    types = {field.name: str(field.type) for field in table.schema}
    assert table.num_rows == 30
    assert types["level"] == "int64"
    assert types["question"] == "string"
    assert types["metric:ExactMatch"] == types["sampling_top_p"] == "double"
    scores = dict(zip(table["sample_id"].to_pylist(), table["metric:ExactMatch"].to_pylist(), strict=True))
    assert scores == {record.sample_id: record.scores[0].value for record in report.evaluation_report.records}


def test_parquet_takes_rows_whose_fields_differ_in_kind(tmp_path):
    import pyarrow.parquet as pq

    values: list[Any] = [1, 2.5, None, "text", {"a": [1]}, 2**70, True, "half \ud800 a pair"]
    rows = [{"id": str(n), "mixed": value, "whole": n, "answer": "a"} for n, value in enumerate(values)]
    report = themis.evaluate(
        rows, model="fake/perfect", prompt="{id}", storage=tmp_path / "s", run_id="kinds", progress=False
    )
    table = pq.read_table(export.export_parquet(report, tmp_path / "r.parquet"))
    assert table["mixed"].to_pylist()[:6] == ["1", "2.5", None, "text", '{"a": [1]}', str(2**70)]
    assert str(table.schema.field("whole").type) == "int64"


def test_without_pyarrow_one_line_says_what_to_install(report, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(DependencyError, match=r"exporting Parquet needs the package pyarrow: .*themis-eval\[hub\]"):
        export.export_parquet(report, tmp_path / "r.parquet")


def test_junit_tells_failures_of_the_model_from_errors_of_the_world(tmp_path):
    report = made({"good": "x", "bad": "y\x00\x1b[31m<&>", "gone": None}, {"good": 1.0, "bad": 0.25})
    root = ElementTree.parse(export.export_junit(report, tmp_path / "j.xml")).getroot()
    cases = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {"good": [], "bad": ["failure"], "gone": ["error"]}
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "1")
    assert {case.get("classname") for case in root.iter("testcase")} == {"M", "sample"}
    strict = ElementTree.parse(export.export_junit(report, tmp_path / "k.xml", pass_at=0.2)).getroot()
    assert strict.get("failures") == "0"


def test_markdown_and_latex_show_means_with_intervals(report, tmp_path):
    exact = report.metric("exact_match")
    markdown = export.export_markdown(report, tmp_path / "r.md").read_text()
    assert f"| ExactMatch | {exact.mean:.4f} | {exact.ci[0]:.4f} – {exact.ci[1]:.4f} | 30 | 0 |" in markdown
    latex = export.export_latex(report, tmp_path / "r.tex").read_text()
    assert f"ExactMatch & {exact.mean:.4f} & {exact.ci[0]:.4f} -- {exact.ci[1]:.4f} & 30 & 0 \\\\" in latex


def test_log_probabilities_stand_in_tables_pages_and_logs_of_the_harness(tmp_path):
    rows = [{"id": "q", "question": "Which?", **option_continuations(["red", "blue"]), "answer": 0}]
    report = themis.evaluate(
        rows, model="fake/likelihood", prompt="{question}", run_id="r", storage=tmp_path, progress=False
    )
    found = report.generation_results[0].output.raw["continuations"]

    table = export.export_csv(report, tmp_path / "report.csv")
    page = export.export_html(report, tmp_path / "report.html").read_text()
    samples, results = export.export_lm_eval(report, tmp_path / "logs")

    with table.open(newline="") as file:
        (line,) = csv.DictReader(file)
    assert json.loads(line["continuation_logprobs"]) == [one["logprob"] for one in found]
    assert json.loads(line["continuation_greedy"]) == [one["greedy"] for one in found]
    assert f"{found[1]['logprob']:.4f}  blue" in page
    logged = json.loads(samples.read_text())
    assert logged["arguments"]["gen_args_1"] == {"arg_0": "Which?", "arg_1": " blue"}
    assert logged["filtered_resps"] == [[str(one["logprob"]), str(one["greedy"])] for one in found]
    assert json.loads(results.read_text())["configs"]["r"]["output_type"] == "multiple_choice"


def test_an_unknown_format_is_named_before_anything_is_written(report, tmp_path):
    with pytest.raises(ConfigurationError, match=r"unknown export format 'parket' \(did you mean 'parquet'"):
        export.export_formats(report, tmp_path / "out", ["csv", "parket"])
    assert not (tmp_path / "out").exists()


def test_every_format_can_be_written_at_once(report, tmp_path):
    written = export.export_formats(report, tmp_path / "out", export.FORMATS)
    assert list(written) == list(export.FORMATS)
    assert sum(map(len, written.values())) == len(list((tmp_path / "out").iterdir())) == 12


# --- distributions ----------------------------------------------------------------------------------------------------


@hypothesis.given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80))
def test_every_score_is_in_one_bar(values):
    assert sum(bar.count for bar in histogram(values)) == len(values)


def test_few_values_have_a_bar_each_and_many_have_bins():
    assert [(bar.label, bar.count) for bar in histogram([0.0, 1.0, 1.0])] == [("0", 1), ("1", 2)]
    many = histogram([n / 100 for n in range(101)])
    assert len(many) == 20
    assert (many[0].label, many[-1].label) == ("0–0.05", "0.95–1")


def test_a_reason_that_is_cut_says_so_in_every_file(tmp_path):
    report = made({"q": None}, {})
    report.failures[0] = ExperimentFailure("q", "m" * 2_000)

    markdown = export.export_markdown(report, tmp_path / "r.md").read_text()
    page = export.export_html(report, tmp_path / "r.html").read_text()
    assert "mm…" in markdown
    assert "mm…</bdi></td>" in page


def test_junit_tells_what_was_expected_behind_a_long_answer_and_as_json(tmp_path):
    report = made({"q": "z" * 10_000}, {"q": 0.0})
    report.generation_results[0].task.reference = Reference("answer", {"a": [1, None]})
    text = ElementTree.parse(export.export_junit(report, tmp_path / "j.xml")).getroot().findtext(".//failure")

    assert text.endswith('z…\nexpected: {"a": [1, null]}')


def test_junit_passes_and_fails_nothing_by_a_count_of_which_more_is_not_better(tmp_path):
    rows = [{"id": "q", "question": "4", "answer": "4"}]
    report = themis.evaluate(
        rows,
        model="fake/perfect",
        prompt="{question}",
        metrics=["exact_match", "tool_errors"],
        storage=tmp_path,
        progress=False,
    )
    root = ElementTree.parse(export.export_junit(report, tmp_path / "j.xml")).getroot()
    cases = {case.get("classname"): [child.tag for child in case] for case in root.iter("testcase")}

    assert cases == {"ExactMatch": [], "tool_errors": ["skipped"]}
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "0", "1")
