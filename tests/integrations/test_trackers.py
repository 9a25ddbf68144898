"""Trackers by name and option, and what becomes of a run whose tracker fails."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from themis.exceptions import ConfigurationError
from themis.experiment.experiment import Observer
from themis.integrations.facts import numbers_of
from themis.integrations.mlflow import MlflowTracker
from themis.integrations.trackers import make_tracker
from themis.integrations.watching import Guarded


class Crashing(Observer):
    """Fails at one kind of news and counts what it hears."""

    def __init__(self, at: str) -> None:
        self.at, self.heard = at, list[str]()

    def _hear(self, news: str) -> None:
        self.heard.append(news)
        if news == self.at:
            raise ConnectionError("https://user:hunter2-secret@tracker.example is down")

    def started(self, *_):
        self._hear("started")

    def advanced(self, *_):
        self._hear("advanced")

    def judged(self, *_):
        self._hear("judged")

    def ended(self, *_):
        self._hear("ended")


@pytest.mark.parametrize("at", ["started", "advanced", "judged", "ended"])
def test_a_tracker_that_fails_is_reported_once_and_the_run_goes_on(watched, caplog, at):
    tracker = Crashing(at)
    with caplog.at_level(logging.WARNING):
        report = watched(Guarded(tracker, "the tracker"))

    assert report.metadata["status"] == "completed"
    assert report.metric("exact_match").count == 12
    assert tracker.heard[-1] == at
    (warning,) = (record.getMessage() for record in caplog.records if record.name.startswith("themis.integrations"))
    assert "the tracker failed and hears no more of this run" in warning
    assert "hunter2" not in warning


def test_a_tracker_that_cannot_be_reached_does_not_fail_the_run(watched, monkeypatch, caplog):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    report = watched(MlflowTracker(tracking_uri="http://127.0.0.1:9").observer())
    assert report.metadata["status"] == "completed"
    assert "MLflow failed" in caplog.text


def test_options_given_as_text_become_what_they_are():
    tracker = make_tracker("otel", {"content": "yes", "service": "lab"})
    assert tracker.content is True


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("wandbb", {}, "did you mean 'wandb'"),
        ("wandb", {"projct": "x"}, "no option 'projct'; did you mean 'project'"),
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
    assert set(numbers_of(report)) >= {"ExactMatch.count", "samples"}
    assert "ExactMatch" not in numbers_of(report)


def test_naming_the_trackers_imports_none_of_their_packages():
    code = (
        "import sys, themis.integrations.trackers, themis.integrations.wandb, themis.integrations.mlflow\n"
        "import themis.integrations.huggingface, themis.integrations.opentelemetry\n"
        "print({'wandb', 'mlflow', 'huggingface_hub', 'opentelemetry'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
