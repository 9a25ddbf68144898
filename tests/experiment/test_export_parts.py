"""Answers that are more than a text, in every format: reasoning, tool calls, steps, images, the verdict on each attempt."""

from __future__ import annotations

import csv
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.spoken_runs import PLOT, PNG, STEPS, SVG, write_spoken_runs
from themis.core.entities import ExperimentReport
from themis.experiment import export
from themis.experiment.export import as_html
from themis.runs.report import build_report
from themis.storage import ExperimentStorage


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("spoken")
    write_spoken_runs(root)
    return root


def report_of(root: Path, run_id: str) -> ExperimentReport:
    return build_report(ExperimentStorage(root), run_id)


def read_lines(path: Path) -> dict[str, dict[str, Any]]:
    return {line["sample_id"]: line for line in map(json.loads, path.read_text().splitlines())}


def test_jsonl_has_the_parts_of_answers_that_have_any(spoken, tmp_path):
    lines = read_lines(export.export_jsonl(report_of(spoken, "said"), tmp_path / "samples.jsonl"))

    assert [message["role"] for message in lines["plain"]["messages"]] == ["system", "user"]
    assert lines["steps"]["transcript"] == list(STEPS)
    assert lines["thought"]["reasoning"] == "7 x 13 = 91"
    assert lines["called"]["tool_calls"][0] == {"id": "1", "name": "search", "arguments": {"query": "Paris"}}
    assert (lines["refused"]["refusal"], lines["cut"]["finish_reason"]) == ("I cannot say.", "length")
    assert not {"reasoning", "tool_calls", "refusal", "finish_reason", "parts", "transcript"} & lines["plain"].keys()


def test_jsonl_has_the_score_of_each_attempt(spoken, tmp_path):
    lines = read_lines(export.export_jsonl(report_of(spoken, "four"), tmp_path / "samples.jsonl"))

    assert [attempt["scores"] for attempt in lines["q"]["attempts"]] == [
        {"ExactMatch": 1.0},
        {},
        {"ExactMatch": 0.0},
        {"ExactMatch": 1.0},
    ]
    assert "messages" not in lines["q"]


def test_the_json_report_has_them_too(spoken, tmp_path):
    written = json.loads(export.export_json(report_of(spoken, "said"), tmp_path / "report.json").read_text())

    found = {sample["sample_id"]: sample for sample in written["samples"]}
    assert found["thought"]["reasoning"] == "7 x 13 = 91"
    assert found["steps"]["transcript"][0]["tool_calls"][0]["name"] == "weather"


def test_tables_have_a_column_for_each_part_that_any_answer_has(spoken, tmp_path):
    with export.export_csv(report_of(spoken, "said"), tmp_path / "report.csv").open(newline="") as file:
        rows = {row["sample_id"]: row for row in csv.DictReader(file)}

    assert rows["thought"]["reasoning"] == "7 x 13 = 91"
    assert json.loads(rows["called"]["tool_calls"])[0]["name"] == "search"
    assert rows["plain"]["finish_reason"] == ""
    told = json.loads(rows["steps"]["transcript"])
    assert told[0] == STEPS[0]
    assert told[2]["content"][1]["data"].endswith(" characters of base64]")


def test_a_row_s_own_field_of_such_a_name_stands_beside_it(tmp_path):
    def answer(prompt: str) -> dict[str, str]:
        return {"text": "4", "reasoning": "the model's"}

    rows = [{"id": "q", "question": "2 + 2?", "answer": "4", "reasoning": "the row's"}]
    report = themis.evaluate(rows, model=answer, prompt="{question}", storage=tmp_path, progress=False)
    with export.export_csv(report, tmp_path / "report.csv").open(newline="") as file:
        [row] = csv.DictReader(file)

    assert (row["reasoning"], row["row:reasoning"]) == ("the model's", "the row's")


def test_parquet_has_them_as_texts(spoken, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(export.export_parquet(report_of(spoken, "said"), tmp_path / "r.parquet")).to_pylist()

    rows = {row["sample_id"]: row for row in table}
    assert rows["thought"]["reasoning"] == "7 x 13 = 91"
    assert rows["plain"]["reasoning"] is None
    assert json.loads(rows["called"]["tool_calls"])[1]["invalid"] == '{"url'


def test_a_run_of_plain_answers_has_no_further_columns(tmp_path):
    rows = [{"id": "q", "question": "2 + 2?", "answer": "4"}]
    report = themis.evaluate(rows, model="fake/perfect", prompt="{question}", storage=tmp_path, progress=False)
    header = export.export_csv(report, tmp_path / "report.csv").read_text().splitlines()[0].split(",")

    assert not {"reasoning", "tool_calls", "refusal", "finish_reason", "parts", "transcript"} & set(header)


# --- Inspect ------------------------------------------------------------------------------------------------------------


def inspect_samples(root: Path, run_id: str, folder: Path) -> list[dict[str, Any]]:
    return json.loads(export.export_inspect(report_of(root, run_id), folder).read_text())["samples"]


def test_inspect_s_log_has_messages_with_reasoning_calls_and_results(spoken, tmp_path):
    samples = {sample["id"]: sample for sample in inspect_samples(spoken, "said", tmp_path)}

    system, user, first, failed, returned, last = samples["steps"]["messages"]
    assert [one["role"] for one in (system, user)] == ["system", "user"]
    assert first["content"] == [
        {"type": "reasoning", "reasoning": "Both cities."},
        {"type": "text", "text": "Let me look."},
    ]
    assert first["tool_calls"][0] == {
        "id": "1",
        "function": "weather",
        "arguments": {"city": "Paris"},
        "type": "function",
    }
    assert failed["error"] == {"type": "unknown", "message": "LookupError: no such city"}
    assert (returned["tool_call_id"], returned["function"]) == ("1", "weather")
    assert b64decode(returned["content"][1]["image"].partition(",")[2]) == PLOT
    assert last["content"] == samples["steps"]["output"]["choices"][0]["message"]["content"]
    called = samples["called"]["output"]["choices"][0]
    assert (called["stop_reason"], called["message"]["tool_calls"][1]["parse_error"]) == (
        "tool_calls",
        'not a JSON object: {"url',
    )


def test_inspect_s_log_has_images_and_files_in_its_input(spoken, tmp_path):
    [sample] = inspect_samples(spoken, "images", tmp_path)

    system, user = sample["input"]
    text, image, drawing, document = user["content"]
    assert (system["content"], text["text"]) == ("Reply in Latin.", "What is it?")
    assert b64decode(image["image"].removeprefix("data:image/png;base64,")) == PNG
    assert b64decode(drawing["image"].removeprefix("data:image/svg+xml;base64,")) == SVG
    assert (document["type"], document["filename"]) == ("document", "paper.pdf")


def test_attempts_with_scores_of_their_own_are_inspect_s_epochs_also_where_one_failed(spoken, tmp_path):
    samples = inspect_samples(spoken, "kept", tmp_path)

    assert [(one["epoch"], "error" in one, [s["value"] for s in one["scores"].values()]) for one in samples] == [
        (1, False, [1.0]),
        (2, True, []),
        (3, False, [0.0]),
        (4, False, [1.0]),
    ]


# --- the page -----------------------------------------------------------------------------------------------------------


def page_samples(path: Path) -> dict[str, dict[str, Any]]:
    text = path.read_text(encoding="utf-8").partition('id="samples">')[2].partition("</script>")[0]
    return {sample["id"]: sample for sample in json.loads(text)}


def test_an_image_is_in_the_page_once_however_many_samples_show_it(tmp_path):
    (tmp_path / "cat.png").write_bytes(PNG)
    rows = [{"id": f"q{n}", "cat": str(tmp_path / "cat.png"), "question": "What?", "answer": "a"} for n in range(3)]
    report = themis.evaluate(
        rows, model="fake/perfect", prompt="{question}", attach=["cat"], storage=tmp_path / "store", progress=False
    )
    samples = page_samples(export.export_html(report, tmp_path / "page.html"))

    assert [len(samples[f"q{n}"]["pictures"]) for n in range(3)] == [1, 0, 0]
    [address] = samples["q0"]["pictures"].values()
    assert b64decode(address.removeprefix("data:image/png;base64,")) == PNG
    [digest] = samples["q0"]["pictures"]
    assert [samples[f"q{n}"]["asked"][0]["parts"][1]["picture"] for n in range(3)] == [digest] * 3


def test_an_image_that_is_too_large_for_the_page_is_named_with_its_size(spoken, tmp_path, monkeypatch):
    monkeypatch.setattr(as_html, "_LARGEST_PICTURE_BYTES", 10)
    samples = page_samples(export.export_html(report_of(spoken, "images"), tmp_path / "page.html"))

    shown = samples["cat"]["asked"][1]["parts"][1]
    assert (shown["picture"], samples["cat"]["pictures"]) == ("", {})
    assert shown["text"] == f"[image cat.png, image/png] ({len(PNG):,} bytes: too large for this page)"


def test_pictures_that_are_programs_are_not_in_the_page(spoken, tmp_path):
    samples = page_samples(export.export_html(report_of(spoken, "images"), tmp_path / "page.html"))

    assert [part["text"] for part in samples["cat"]["asked"][1]["parts"][2:]] == [
        "[image logo.svg, image/svg+xml]",
        "[file paper.pdf, application/pdf]",
    ]
    assert len(samples["cat"]["pictures"]) == 1
