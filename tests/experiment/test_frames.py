"""Reports and comparisons as data frames of pandas and polars."""

from __future__ import annotations

import math
import sys

import polars
import pytest

import themis
from themis.comparison import compare_runs
from themis.core.entities import GenerationRecord, GenerationTask, ModelError, ModelOutput
from themis.exceptions import ConfigurationError, DependencyError
from themis.generation.providers import register_provider

ROWS = [
    {"id": "a", "question": "1 + 1?", "answer": "2", "level": 1, "tags": ["sum"]},
    {"id": "b", "question": "2 + 2?", "answer": "4", "level": 2, "tags": []},
    {"id": "c", "question": "3 + 3?", "answer": "6", "level": 3.5, "prompt": "own"},
]


class SometimesSilent:
    """Answers 2, and nothing to whoever asks for 3 + 3."""

    def execute(self, task: GenerationTask) -> GenerationRecord:
        if "3" in task.prompt.text:
            return GenerationRecord(task, None, ModelError("out of order", kind="broken"))
        usage = {"prompt_tokens": 5, "completion_tokens": 1}
        return GenerationRecord(task, ModelOutput("2", usage=usage), None)


@pytest.fixture
def report(tmp_path):
    register_provider("sometimes-silent", SometimesSilent)
    return themis.evaluate(
        ROWS,
        model="sometimes-silent/x",
        prompt="Q: {question}",
        run_id="r",
        storage=tmp_path,
        progress=False,
        max_retries=1,
    )


def test_a_sample_is_a_row_with_everything_that_is_known_of_it(report):
    frame = report.to_frame()

    assert list(frame.columns) == [
        *("item_id", "prompt", "answer", "reference", "ExactMatch", "error"),
        *("prompt_tokens", "completion_tokens", "cost_usd", "seconds"),
        *("level", "question", "tags", "row:prompt"),
    ]
    first, second, third = frame.to_dict("records")
    assert (first["item_id"], first["prompt"], first["answer"], first["reference"]) == ("a", "Q: 1 + 1?", "2", "2")
    assert (first["ExactMatch"], second["ExactMatch"], first["level"]) == (1.0, 0.0, 1.0)
    assert (first["prompt_tokens"], first["completion_tokens"], first["tags"]) == (5, 1, '["sum"]')
    assert first["seconds"] > 0
    assert math.isnan(third["ExactMatch"])
    assert "out of order" in third["error"]
    assert third["row:prompt"] == "own"


def test_the_mean_of_a_column_is_the_report_s(report):
    assert report.to_frame()["ExactMatch"].mean() == report.metric("ExactMatch").mean


def test_polars_has_the_same_columns_and_values(report):
    of_pandas, of_polars = report.to_frame(), report.to_frame("polars")

    assert of_polars.columns == list(of_pandas.columns)
    assert of_polars["ExactMatch"].to_list() == [1.0, 0.0, None]
    assert of_polars["prompt"].to_list() == of_pandas["prompt"].tolist()


@pytest.mark.parametrize("reducer", ["keep", "average", "pass@2"])
def test_an_attempt_is_a_row_with_its_own_score_however_attempts_become_one(tmp_path, reducer):
    report = themis.evaluate(
        ROWS,
        model="fake/noisy-0.5",
        prompt="{question}",
        num_samples=3,
        reducer=reducer,
        storage=tmp_path,
        progress=False,
    )
    [metric] = report.evaluation_report.metrics

    frame = report.to_frame(attempts=True)

    assert frame["attempt"].tolist() == [0, 1, 2] * 3
    right = [float(answer == reference) for answer, reference in zip(frame["answer"], frame["reference"], strict=True)]
    assert frame[metric].tolist() == right


def test_tokens_and_cost_of_a_sample_are_those_of_all_its_attempts(tmp_path):
    report = themis.evaluate(
        ROWS, model="fake/perfect", prompt="{question}", num_samples=2, storage=tmp_path, progress=False
    )

    tokens = report.to_frame()["prompt_tokens"]

    assert tokens.sum() == report.metadata["cost"]["token_counts"]["prompt_tokens"]
    assert report.to_frame()["cost_usd"].sum() == report.metadata["cost"]["total_cost"]


def test_frames_of_runs_stand_below_each_other_whatever_is_not_known_of_one(tmp_path):
    def app(question):
        return question

    asked = {"prompt": "{question}", "storage": tmp_path, "progress": False}
    priced = themis.evaluate(ROWS, model="fake/echo", run_id="priced", **asked)
    unpriced = themis.evaluate(ROWS, model=app, run_id="unpriced", **asked)
    other = themis.evaluate(ROWS[:1], model="fake/echo", run_id="other", reference_field="", metrics=["f1"], **asked)

    below = polars.concat([priced.to_frame("polars"), unpriced.to_frame("polars")])
    assert below["cost_usd"].to_list() == [0.0] * 3 + [None] * 3
    assert str(unpriced.to_frame()["cost_usd"].dtype) == str(unpriced.to_frame()["prompt_tokens"].dtype) == "float64"
    assert other.to_frame("polars")["F1"].dtype == polars.Float64
    one = compare_runs(["priced", "unpriced"], storage_path=tmp_path).to_frame("polars")
    two = compare_runs(["priced", "unpriced"], storage_path=tmp_path, statistical_test="none").to_frame("polars")
    assert polars.concat([one, two])["p_value"].null_count() > 0


def test_what_a_comparison_says_of_a_pair_is_a_row(tmp_path):
    rows = [{"id": str(n), "question": f"{n}?", "answer": str(n)} for n in range(30)]
    for run_id, model in (("old", "fake/echo"), ("new", "fake/perfect")):
        themis.evaluate(rows, model=model, prompt="{question}", run_id=run_id, storage=tmp_path, progress=False)
    report = compare_runs(["new", "old"], storage_path=tmp_path)

    for library in ("pandas", "polars"):
        frame = report.to_frame(library)
        row = frame.to_dict("records")[0] if library == "pandas" else frame.to_dicts()[0]
        assert (row["metric"], row["run_a"], row["run_b"], row["delta"], row["winner"]) == (
            "ExactMatch",
            "new",
            "old",
            1.0,
            "new",
        )
        assert row["interval_low"] <= row["delta"] <= row["interval_high"]
        assert row["n"] == 30


def test_there_are_no_frames_of_other_libraries(report):
    with pytest.raises(ConfigurationError, match=r"pandas or polars, got 'panda' \(did you mean 'pandas'\?\)"):
        report.to_frame("panda")


def test_a_library_that_is_not_installed_is_named_with_its_pip_command(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)

    with pytest.raises(DependencyError, match=r"pip install 'themis-eval\[frames\]'"):
        report.to_frame("polars")
