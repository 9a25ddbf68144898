"""The badge of a run: where it goes, what it says, and that no line of it covers another."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import themis
from themis.exceptions import MetricError, StorageError
from themis.experiment.share import create_share_pack
from themis.storage import ExperimentStorage
from themis.storage.runs import SCORED, ScoreRow

ROWS = [{"id": str(n), "question": f"{n}?", "answer": str(n)} for n in range(20)]


def store_with(tmp_path: Path, run_id: str = "shared", **arguments: Any) -> ExperimentStorage:
    given = {"model": "fake/noisy-0.3", "prompt": "{question}", "metrics": ["exact_match", "f1"], **arguments}
    themis.evaluate(ROWS, storage=tmp_path / "store", run_id=run_id, progress=False, **given)
    return ExperimentStorage(tmp_path / "store")


def test_a_badge_and_a_summary_are_written_and_noted(tmp_path):
    store = store_with(tmp_path)
    shared = create_share_pack("shared", storage_root=store, output_dir=tmp_path / "out")

    assert shared.svg_path == tmp_path / "out" / "themis-share-shared.svg"
    assert shared.markdown_path == tmp_path / "out" / "themis-share-shared.md"
    assert shared.markdown_snippet in shared.markdown_path.read_text()
    assert shared.event_log_path == tmp_path / "store" / "share_events.jsonl"
    (event,) = (json.loads(line) for line in shared.event_log_path.read_text().splitlines())
    assert set(event) == {"event", "timestamp", "run_id", "metric", "metric_value", "output_dir", "svg_path"}
    assert (event["run_id"], event["metric"], event["svg_path"]) == ("shared", "ExactMatch", str(shared.svg_path))


def test_every_sharing_adds_an_event(tmp_path):
    store = store_with(tmp_path)
    for metric in (None, "f1"):
        create_share_pack("shared", storage_root=store, metric=metric, output_dir=tmp_path)
    events = (tmp_path / "store" / "share_events.jsonl").read_text().splitlines()
    assert [json.loads(event)["metric"] for event in events] == ["ExactMatch", "F1"]


def test_the_badge_shows_the_metric_that_judged_most(tmp_path):
    store = store_with(tmp_path)
    with store.open_run("shared") as writer:
        evaluation = writer.open_evaluation("uneven", {})
        verdicts = [ScoreRow(0, "A of one kind", 0, 1.0, SCORED, None)]
        writer.commit_scores(
            evaluation, [*verdicts, *(ScoreRow(n, "Z of all", 0, 0.5, SCORED, None) for n in range(20))]
        )
    assert create_share_pack("shared", storage_root=store, output_dir=tmp_path).metric == "Z of all"


def test_an_unknown_run_or_metric_is_named_with_its_nearest(tmp_path):
    store = store_with(tmp_path)
    with pytest.raises(StorageError, match=r"no run 'sharde' .*did you mean 'shared'"):
        create_share_pack("sharde", storage_root=store, output_dir=tmp_path)
    with pytest.raises(MetricError, match=r"no metric 'exact_macth'.*did you mean 'ExactMatch'"):
        create_share_pack("shared", storage_root=store, metric="exact_macth", output_dir=tmp_path)
    assert not list(tmp_path.glob("themis-share-*"))
    assert not (tmp_path / "store" / "share_events.jsonl").exists()


def test_names_in_a_badge_stay_text(tmp_path):
    store = store_with(tmp_path, run_id="a & b 'c' [x](y)", model="fake/constant?text=<script>alert(1)</script>")
    shared = create_share_pack("a & b 'c' [x](y)", storage_root=store, output_dir=tmp_path)
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(shared.svg_path).iter()}
    assert tags == {"svg", "title", "rect", "line", "text"}
    assert shared.markdown_snippet.startswith("![a & b 'c' \\[x\\]\\(y\\): ExactMatch".replace("&", "&amp;"))


@pytest.mark.browser
@pytest.mark.parametrize(
    ("run_id", "model"),
    [
        ("short", "fake/noisy-0.3"),
        ("W" * 150, f"fake/constant?text={'M' * 120}"),
        ("a long run id with many small words in it " * 3 + "end", "fake/constant?text=" + "i" * 200),
        ("漢字" * 60, "fake/constant?text=" + "漢" * 90),
    ],
)
def test_no_line_of_a_badge_covers_another_or_leaves_it(tmp_path, run_id, model):
    from playwright.sync_api import sync_playwright

    store = store_with(tmp_path, run_id=run_id, model=model)
    shared = create_share_pack(run_id, storage_root=store, output_dir=tmp_path)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_content(shared.svg_path.read_text())
        boxes = page.evaluate(
            "[...document.querySelectorAll('svg text')].map(t => {const b = t.getBBox();"
            "return [b.x, b.y, b.x + b.width, b.y + b.height, t.textContent]})"
        )
        width, height = page.evaluate("(v => [v.width, v.height])(document.querySelector('svg').viewBox.baseVal)")
        browser.close()

    for n, (left, top, right, bottom, text) in enumerate(boxes):
        assert 0 <= left < right <= width, text
        assert 0 <= top < bottom <= height + 1, text
        for other_left, other_top, other_right, other_bottom, other in boxes[n + 1 :]:
            apart = right <= other_left or other_right <= left or bottom <= other_top + 4 or other_bottom <= top + 4
            assert apart, f"{text!r} covers {other!r}"
