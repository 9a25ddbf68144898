"""MLflow, with the real client on a folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from themis.exceptions import DependencyError
from themis.integrations.mlflow import MlflowTracker
from themis.runs.observers import Observer


def runs_in(folder: Path, experiment: str = "themis") -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=folder.as_uri())
    return list(client.search_runs([client.get_experiment_by_name(experiment).experiment_id]))


def test_a_stored_run_has_parameters_metrics_and_files(report, tmp_path):
    folder = tmp_path / "mlruns"
    place = MlflowTracker(tracking_uri=folder.as_uri(), experiment="sums").publish(report)

    (run,) = runs_in(folder, "sums")
    exact = report.metric("exact_match")
    assert run.info.run_id in place
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "tracked"
    assert run.data.metrics["ExactMatch"] == pytest.approx(exact.mean)
    assert run.data.metrics["ExactMatch.ci_low"] == pytest.approx(exact.ci[0])
    assert run.data.metrics["ExactMatch.count"] == 12
    assert run.data.params["model.identifier"] == "noisy-0.3"
    assert run.data.params["manifest_hash"] == report.metadata["manifest_hash"]
    stored = Path(run.info.artifact_uri.removeprefix("file://")) / "report.json"
    assert len(json.loads(stored.read_text())["samples"]) == 12


def test_publishing_again_goes_on_with_the_same_run(report, tmp_path):
    tracker = MlflowTracker(tracking_uri=(tmp_path / "mlruns").as_uri())
    assert tracker.publish(report) == tracker.publish(report)
    assert len(runs_in(tmp_path / "mlruns")) == 1


def test_runs_of_one_name_that_were_made_otherwise_stay_apart(report, tmp_path):
    tracker = MlflowTracker(tracking_uri=(tmp_path / "mlruns").as_uri())
    tracker.publish(report)
    report.metadata["manifest_hash"] = "another"
    tracker.publish(report)
    assert [run.info.run_name for run in runs_in(tmp_path / "mlruns")] == ["tracked", "tracked"]


def test_what_was_watched_is_the_run_that_is_published_later(watched, tmp_path):
    tracker = MlflowTracker(tracking_uri=(tmp_path / "mlruns").as_uri())
    tracker.publish(watched(tracker))
    assert len(runs_in(tmp_path / "mlruns")) == 1


def test_a_run_that_had_nothing_left_to_do_is_published_at_its_end(watched, tmp_path):
    watched(Observer())
    watched(MlflowTracker(tracking_uri=(tmp_path / "mlruns").as_uri()))

    (run,) = runs_in(tmp_path / "mlruns")
    assert run.data.metrics["ExactMatch.count"] == 12


def test_a_run_is_shown_while_it_goes_on(watched, tmp_path):
    watched(MlflowTracker(tracking_uri=(tmp_path / "mlruns").as_uri()))

    (run,) = runs_in(tmp_path / "mlruns")
    assert run.info.status == "FINISHED"
    assert run.data.metrics["progress/answered"] > 0


def test_metric_names_that_mlflow_refuses_are_spelled_otherwise(report, tmp_path):
    report.evaluation_report.metrics["exact, «strict»"] = report.metric("exact_match")
    MlflowTracker(tracking_uri=(tmp_path / "mlruns").as_uri()).publish(report)

    (run,) = runs_in(tmp_path / "mlruns")
    assert "exact_ _strict_" in run.data.metrics


def test_without_the_package_one_line_says_what_to_install(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(DependencyError, match=r"pip install 'themis-eval\[mlflow\]'"):
        MlflowTracker().publish(report)
