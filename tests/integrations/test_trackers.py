"""Trackers by name and option, and what becomes of a run whose tracker fails."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

import themis
from themis.exceptions import ConfigurationError, DependencyError
from themis.integrations.mlflow import MlflowTracker
from themis.integrations.trackers import make_tracker, make_trackers, report_numbers
from themis.runs.observers import Observer
from themis.storage import ExperimentStorage


class Crashing(Observer):
    """Fails at one kind of news and counts what it hears."""

    def __init__(self, at: str) -> None:
        self.at, self.heard = at, list[str]()

    def _hear(self, news: str) -> None:
        self.heard.append(news)
        if news == self.at:
            raise ConnectionError("https://user:hunter2-secret@tracker.example is down")

    def on_start(self, *_):
        self._hear("started")

    def on_answers(self, *_):
        self._hear("advanced")

    def on_scores(self, *_):
        self._hear("judged")

    def on_end(self, *_):
        self._hear("ended")


@pytest.mark.parametrize("at", ["started", "advanced", "judged", "ended"])
def test_a_tracker_that_fails_is_reported_once_and_the_run_goes_on(watched, caplog, at):
    tracker = Crashing(at)
    with caplog.at_level(logging.WARNING):
        report = watched(tracker)

    assert report.metadata["status"] == "completed"
    assert report.metric("exact_match").count == 12
    assert tracker.heard[-1] == at
    (warning,) = (record.getMessage() for record in caplog.records if record.name.startswith("themis.runs"))
    assert "Crashing failed and hears no more of this run" in warning
    assert "hunter2" not in warning


def test_a_tracker_that_cannot_be_reached_does_not_fail_the_run(watched, monkeypatch, caplog):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    report = watched(MlflowTracker(tracking_uri="http://127.0.0.1:9"))
    assert report.metadata["status"] == "completed"
    assert "MLflow failed" in caplog.text


def test_a_tracker_is_named_or_handed_over_and_others_are_heard_beside_it(watched, monkeypatch, tmp_path):
    monkeypatch.setenv("WANDB_MODE", "offline")
    own = Crashing("never")
    folder = (tmp_path / "mlruns").as_uri()
    watched("wandb", make_tracker("mlflow", {"tracking_uri": folder}), own)

    assert own.heard[0] == "started"
    assert own.heard[-1] == "ended"
    assert list((tmp_path / "wandb").glob("offline-run-*"))
    assert list((tmp_path / "mlruns").rglob("summary.json"))


def test_a_run_is_not_begun_when_the_trackers_package_is_missing(watched, monkeypatch, tmp_path):
    for package in ("wandb", "mlflow", "huggingface_hub", "opentelemetry.sdk.trace"):
        monkeypatch.setitem(sys.modules, package, None)
    for tracker in ("wandb", "mlflow", make_tracker("hub", {"repository": "a/b"}), "otel"):
        with pytest.raises(DependencyError, match=r"pip install 'themis-eval\["):
            watched(tracker)
    assert not ExperimentStorage(tmp_path / "store").list_runs()


@pytest.mark.parametrize(
    ("observers", "message"),
    [
        ("wandb", "observers is a list, such as \\['wandb'\\], got 'wandb'"),
        (["wandbb"], "did you mean 'wandb'"),
        ([print], "an observer is a tracker's name .* a tracker or an Observer, got <built-in function print>"),
        (["hub"], "hub needs the option repository"),
    ],
)
def test_what_cannot_watch_a_run_is_refused_before_it(tmp_path, observers, message):
    with pytest.raises(ConfigurationError, match=message):
        themis.evaluate(
            [{"q": "?"}], model="fake/perfect", prompt="{q}", storage=tmp_path / "store", observers=observers
        )


def test_trackers_share_options_that_they_have_and_one_can_be_named():
    made = make_trackers(
        ["hub", "otel"], {"repository": "a/b", "content": "yes", "otel.endpoint": "http://localhost:4318"}
    )
    assert list(made) == ["hub", "otel"]
    assert made["otel"].content is True


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("projct", r"wandb has no option 'projct' \(did you mean 'project'"),
        ("otel.content", "option 'otel.content' is for 'otel'; the run goes to wandb, mlflow"),
        ("mlflow.project", "mlflow has no option 'project'"),
    ],
)
def test_an_option_that_no_tracker_takes_is_named(option, message):
    with pytest.raises(ConfigurationError, match=message):
        make_trackers(["wandb", "mlflow"], {option: "x"})


def test_options_given_as_text_become_what_they_are():
    tracker = make_tracker("otel", {"content": "yes", "service": "lab"})
    assert tracker.content is True


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("wandbb", {}, "did you mean 'wandb'"),
        ("wandb", {"projct": "x"}, r"no option 'projct' \(did you mean 'project'"),
        ("wandb", {"samples": "many"}, "a whole number, got 'many'"),
        ("hub", {"private": "perhaps", "repository": "a/b"}, "true or false, got 'perhaps'"),
        ("hub", {}, "needs the option repository"),
    ],
)
def test_a_wrong_option_is_named(name, options, message):
    with pytest.raises(ConfigurationError, match=message):
        make_tracker(name, options)


def test_numbers_have_no_nan_in_them(report):
    metric = report.metric("exact_match")
    metric.mean, metric.ci, metric.stderr = float("nan"), None, None
    assert set(report_numbers(report)) >= {"ExactMatch.count", "samples"}
    assert "ExactMatch" not in report_numbers(report)


def test_naming_the_trackers_imports_none_of_their_packages():
    code = (
        "import sys, themis.integrations.trackers, themis.integrations.wandb, themis.integrations.mlflow\n"
        "import themis.integrations.huggingface, themis.integrations.opentelemetry\n"
        "print({'wandb', 'mlflow', 'huggingface_hub', 'opentelemetry'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
