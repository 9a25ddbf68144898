"""A diff says which items a run fixed and broke, with inputs and outputs, and writes them as they are read."""

import csv
import json

import pytest
from scored_runs import Number, scored_run

import themis
from themis.comparison import diff_runs
from themis.comparison.diff import Change, write_diff
from themis.exceptions import ConfigurationError, MetricError, StorageError

BEFORE = [1, 1, 0, 0, 1, 0]
AFTER = [1, 0, 1, 0, 1, 1]


@pytest.fixture
def diff(tmp_path):
    scored_run(tmp_path, "before", BEFORE)
    scored_run(tmp_path, "after", AFTER)
    return diff_runs("before", "after", storage_path=tmp_path)


def test_items_are_counted_by_what_became_of_them(diff):
    part = diff.by_metric["Number"]

    assert part.counts == {Change.BROKEN: 1, Change.FIXED: 2, Change.BOTH_WRONG: 1, Change.BOTH_RIGHT: 2}
    assert (part.shared, part.not_compared) == (6, 0)


def test_what_broke_comes_first_and_each_group_keeps_the_datasets_order(diff):
    items = list(diff.items())

    assert [(item.change, item.item_id) for item in items] == [
        (Change.BROKEN, "1"),
        (Change.FIXED, "2"),
        (Change.FIXED, "5"),
        (Change.BOTH_WRONG, "3"),
        (Change.BOTH_RIGHT, "0"),
        (Change.BOTH_RIGHT, "4"),
    ]


def test_where_lower_is_better_an_item_is_fixed_by_falling_below_the_threshold(tmp_path):
    metrics = [Number("Cost", higher_is_better=False), Number("Length", higher_is_better=None)]
    scored_run(tmp_path, "before", [30, 10], metrics=metrics)
    scored_run(tmp_path, "after", [20, 40], metrics=metrics)

    diff = diff_runs("before", "after", storage_path=tmp_path, threshold=20)

    assert [(item.metric, item.item_id, item.change) for item in diff.items()] == [
        ("Cost", "1", Change.BROKEN),
        ("Cost", "0", Change.FIXED),
    ]
    with pytest.raises(MetricError, match="neither better nor worse"):
        diff_runs("before", "after", storage_path=tmp_path, metrics=["Length"])


def test_an_item_has_its_inputs_reference_and_both_outputs(tmp_path):
    rows = [{"id": "q", "question": "capital of France?", "answer": "Paris"}]
    for run_id, model in (("wrong", "fake/constant?text=Rome"), ("right", "fake/perfect")):
        themis.evaluate(
            rows, model=model, prompt="{question}", metrics=["exact_match"], run_id=run_id, storage=tmp_path
        )

    (item,) = diff_runs("wrong", "right", storage_path=tmp_path).items(only="fixed")

    assert (item.input_a, item.input_b, item.reference) == ("capital of France?", "capital of France?", "Paris")
    assert (item.outputs_a, item.outputs_b, item.score_a, item.score_b) == (("Rome",), ("Paris",), 0.0, 1.0)


def test_items_can_be_filtered_and_limited(diff):
    assert [item.item_id for item in diff.items(only="both-right")] == ["0", "4"]
    assert [item.item_id for item in diff.items(only=["fixed", "broken"], limit=2)] == ["1", "2"]
    assert [item.item_id for item in diff.items(limit=4)] == ["1", "2", "5", "3"]
    with pytest.raises(ConfigurationError, match="a change is one of broken, fixed"):
        list(diff.items(only="mended"))


def test_the_threshold_says_what_is_right(tmp_path):
    scored_run(tmp_path, "before", [0.2, 0.6, 0.9])
    scored_run(tmp_path, "after", [0.4, 0.7, 0.3])

    lenient = diff_runs("before", "after", storage_path=tmp_path, threshold=0.3)

    assert {i.item_id: i.change.value for i in lenient.items()} == {"0": "fixed", "1": "both-right", "2": "both-right"}
    strict = diff_runs("before", "after", storage_path=tmp_path)
    assert strict.by_metric["Number"].counts[Change.BROKEN] == 1


def test_items_that_only_one_run_has_a_score_of_are_counted_apart(tmp_path):
    scored_run(tmp_path, "before", {"x": 1, "y": 0, "z": "no number"})
    scored_run(tmp_path, "after", {"z": 1, "x": 1, "new": 1, "newer": 1})

    part = diff_runs("before", "after", storage_path=tmp_path).by_metric["Number"]

    pairing = part.pairing
    assert (part.shared, part.not_compared) == (1, 4)
    assert (pairing.only_a, pairing.only_b, pairing.unscored_a, pairing.unscored_b) == (1, 2, 1, 0)


def test_every_attempts_output_is_shown_and_their_mean_decides(tmp_path):
    scored_run(tmp_path, "before", [1, 1])
    scored_run(tmp_path, "after", [0, 1], num_samples=2, reducer="keep")

    (item,) = diff_runs("before", "after", storage_path=tmp_path).items(only="broken")

    assert (item.outputs_a, item.outputs_b) == (("1",), ("0", "0"))


def test_every_metric_is_sorted_out_for_itself(tmp_path):
    metrics = [Number("One"), Number("Two")]
    scored_run(tmp_path, "before", BEFORE, metrics=metrics)
    scored_run(tmp_path, "after", AFTER, metrics=metrics)

    diff = diff_runs("before", "after", storage_path=tmp_path)

    assert list(diff.by_metric) == ["One", "Two"]
    assert [(i.metric, i.item_id) for i in diff.items(only="broken")] == [("One", "1"), ("Two", "1")]
    assert [i.metric for i in diff.items(only="broken", metric="two")] == ["Two"]


def test_many_items_are_read_in_pages(tmp_path):
    scored_run(tmp_path, "before", [0] * 450)
    scored_run(tmp_path, "after", [1] * 450)

    items = list(diff_runs("before", "after", storage_path=tmp_path).items())

    assert [item.item_id for item in items] == [str(number) for number in range(450)]
    assert all((item.outputs_a, item.outputs_b) == (("0",), ("1",)) for item in items)


def test_what_cannot_be_compared_is_refused(tmp_path):
    scored_run(tmp_path, "a", {"x": 1})
    scored_run(tmp_path, "b", {"y": 1})

    with pytest.raises(MetricError, match="have no item in common"):
        diff_runs("a", "b", storage_path=tmp_path)
    with pytest.raises(StorageError, match="no run 'c'"):
        diff_runs("a", "c", storage_path=tmp_path)
    with pytest.raises(ConfigurationError, match="given twice"):
        diff_runs("a", "a", storage_path=tmp_path)


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def hostile(tmp_path):
    """Outputs and questions that a spreadsheet or a browser would run."""
    rows = [{"id": "=1+1", "question": "<b>bold</b>, \ud800 odd", "answer": "yes"}]
    for run_id, text in (("before", '=HYPERLINK("x")'), ("after", "yes")):
        themis.evaluate(
            rows,
            model=f"fake/constant?text={text.replace('=', '%3D')}",
            prompt="{question}",
            metrics=["exact_match"],
            run_id=run_id,
            storage=tmp_path / "store",
        )
    return diff_runs("before", "after", storage_path=tmp_path / "store")


def test_a_csv_file_holds_no_formulas(hostile, tmp_path):
    assert write_diff(hostile, hostile.items(), tmp_path / "out" / "diff.csv") == 1

    with (tmp_path / "out" / "diff.csv").open(newline="", encoding="utf-8") as handle:
        (row,) = csv.DictReader(handle)
    assert row["item_id"] == "'=1+1"
    assert row["output_a"] == '\'=HYPERLINK("x")'
    assert (row["change"], row["score_a"], row["output_b"]) == ("fixed", "0.0", "yes")


def test_json_lines_hold_the_texts_as_they_were(hostile, tmp_path):
    write_diff(hostile, hostile.items(), tmp_path / "diff.jsonl")

    (row,) = map(json.loads, (tmp_path / "diff.jsonl").read_text(encoding="utf-8").splitlines())
    assert (row["item_id"], row["output_a"], row["reference"]) == ("=1+1", '=HYPERLINK("x")', "yes")
    assert row["input_a"] == "<b>bold</b>, \ud800 odd"


def test_a_page_shows_texts_as_texts(hostile, tmp_path):
    write_diff(hostile, hostile.items(), tmp_path / "diff.html")

    page = (tmp_path / "diff.html").read_text(encoding="utf-8")
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "<script" not in page
    assert "=HYPERLINK(&#34;x&#34;)" in page


def test_a_file_is_replaced_only_when_all_is_written(diff, tmp_path):
    target = tmp_path / "diff.csv"
    target.write_text("earlier")

    def breaking_off():
        yield next(diff.items())
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        write_diff(diff, breaking_off(), target)

    assert target.read_text() == "earlier"
    assert [path.name for path in tmp_path.glob("*diff*")] == ["diff.csv"]


def test_an_unknown_ending_is_refused(diff, tmp_path):
    with pytest.raises(ConfigurationError, match=r"ending in \.csv, \.jsonl, \.html"):
        write_diff(diff, diff.items(), tmp_path / "diff.xlsx")
