"""The confusion matrix and the reliability diagram, wherever a run is shown."""

from __future__ import annotations

import csv
import json

import pytest
from fastapi.testclient import TestClient

import themis
from themis.cli import _run
from themis.core.entities import GenerationRecord, ModelOutput
from themis.experiment.export import export_formats
from themis.experiment.export.measures import figures, tables
from themis.interfaces import StatelessTaskExecutor
from themis.server import create_app

EVIL = "a<b>dog</b>z"


class Say(StatelessTaskExecutor):
    instant = True

    def execute(self, task):
        return GenerationRecord(task, ModelOutput(task.prompt.context["said"]), None)


@pytest.fixture(scope="module")
def classified(tmp_path_factory):
    """A run with classes and confidences, one class with a name that would be markup."""
    themis.register_provider("say", Say)
    store = tmp_path_factory.mktemp("classified")
    pairs = [("cat", "cat")] * 4 + [(EVIL, EVIL)] * 3 + [("cat", EVIL), ("cat", "fish")]
    rows = [
        {"id": str(n), "said": f"{said}\nConfidence: {50 + 5 * n}%", "answer": expected}
        for n, (expected, said) in enumerate(pairs)
    ]
    report = themis.evaluate(rows, model="say/it", prompt="{said}", extractor="regex('(.*)\\\\n')", run_id="classes",
                             metrics=["macro_f1", "mcc", "ece"], storage=store, progress=False)  # fmt: skip
    return store, report


def test_show_prints_the_matrix_once_and_the_bins(classified, capsys):
    _run(["show", "classes", "--storage", str(classified[0])])
    shown = capsys.readouterr().out

    assert shown.count("Confusion matrix") == 1
    assert [line.split() for line in shown.splitlines() if line.startswith("cat")] == [
        ["cat", "1", "4", "1", "0.6667", "1.0000"]]  # fmt: skip
    assert "0.8–0.9" in shown


def test_json_holds_the_details(classified, capsys):
    _run(["show", "classes", "--json", "--storage", str(classified[0])])

    details = json.loads(capsys.readouterr().out)["metrics"]["macro_f1"]["details"]
    assert details == classified[1].metric("macro_f1").details
    assert {"expected": "cat", "predicted": "(other)", "count": 1} in details["confusion"]


def test_files_hold_matrix_and_pictures(classified, tmp_path):
    written = export_formats(classified[1], tmp_path, ["csv", "json", "html"])

    assert [path.name for path in written["csv"]] == ["report.csv", "confusion.csv"]
    with written["csv"][1].open(newline="") as file:
        assert {(row["expected"], row["predicted"]): row["count"] for row in csv.DictReader(file)}["cat", "cat"] == "4"
    metrics = {one["name"]: one for one in json.loads(written["json"][0].read_text())["metrics"]}
    assert len([one for one in metrics["ece"]["details"]["reliability"] if one["count"]]) == 5
    page = written["html"][0].read_text()
    assert page.count("<title>confusion matrix</title>") == page.count("<title>reliability diagram</title>") == 1
    assert "cat answered as a&lt;b&gt;dog&lt;/b&gt;z: 1 of 6" in page
    assert EVIL not in page


def test_the_runs_page_and_the_api_show_them(classified, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    client = TestClient(create_app(str(classified[0]), token=None), base_url="http://127.0.0.1")

    page = client.get("/runs/classes").text
    assert page.count("<title>confusion matrix</title>") == page.count("<title>reliability diagram</title>") == 1
    assert EVIL not in page
    assert client.get("/api/runs/classes/overview").json()["details"]["mcc"] == classified[1].metric("mcc").details


def test_of_many_classes_the_commonest_confusions_are_told_and_the_rarer_drawn_together():
    by_class = [
        {"class": str(n), "expected": 40 - n, "predicted": 1, "precision": 1, "recall": 1, "f1": 1} for n in range(40)
    ]
    cells = [{"expected": str(n), "predicted": str((n + 1) % 40), "count": 40 - n} for n in range(40)]
    details = {"classes": [str(n) for n in range(40)], "confusion": cells, "by_class": by_class}

    (table,) = tables(details)
    assert table.rows[0] == ["0", "1", "40"]
    assert len(table.rows) == 10
    ((_, picture),) = figures(details)
    assert "25 more" in picture
    assert picture.count("<rect") == 16 * 16
