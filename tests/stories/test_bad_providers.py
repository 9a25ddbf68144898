"""Whatever a provider does, the run ends, the counts are right and nothing is lost."""

from __future__ import annotations

import math
import sqlite3
import traceback
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.stories.endpoint import Endpoint, misbehaving_endpoint
from themis.core.entities import ExperimentReport, GenerationRecord, GenerationTask
from themis.exceptions import RunFailedError, ThemisError
from themis.interfaces import StatelessTaskExecutor
from themis.storage import ExperimentStorage

ROWS = [{"id": n, "question": f"say {n}", "answer": str(n)} for n in range(12)]
# Named in the calls below and not written there: a traceback quotes the lines of the program that it goes through.
KEY = "sk-live-0123456789abcdefghij"


@pytest.fixture(scope="module")
def endpoint():
    with misbehaving_endpoint() as running:
        yield running


def ask(endpoint: Endpoint, storage: Path, model: str, **changes: Any) -> ExperimentReport:
    endpoint.calls.clear()
    arguments: dict[str, Any] = {
        "prompt": "{question}",
        "base_url": endpoint.url,
        "api_key": "test-key-of-this-story",
        "storage": storage,
        "run_id": model,
        "progress": False,
        "workers": 6,
        "max_retries": 2,
    }
    return themis.evaluate(ROWS, model=f"openai/{model}", **{**arguments, **changes})


def counts(report: ExperimentReport) -> tuple[float, int, int]:
    metric = report.metric("exact_match")
    return metric.mean, metric.count, metric.failed


def test_a_provider_that_fails_half_the_time_is_asked_again(endpoint, tmp_path):
    report = ask(endpoint, tmp_path, "fails-half-the-time")
    assert counts(report) == (1.0, 12, 0)
    assert sum(endpoint.calls.values()) == 18
    assert report.metadata["cost"]["api_calls"] == 18  # every call counts, also the failed ones


def test_a_final_failure_is_counted_beside_the_mean_and_retried_on_resume(endpoint, tmp_path):
    report = ask(endpoint, tmp_path, "always-fails-on-odd")
    assert counts(report) == (1.0, 6, 6)
    assert len(report.failures) == 6
    assert "after 2 attempt(s)" in report.failures[0].message
    ask(endpoint, tmp_path, "always-fails-on-odd")
    assert set(endpoint.calls) == {f"say {n}" for n in range(1, 12, 2)}  # only what failed


def test_a_provider_that_hangs_costs_its_timeout_and_no_more(endpoint, tmp_path):
    report = ask(endpoint, tmp_path, "hangs-on-three", timeout_seconds=2, deadline_seconds=4)
    assert counts(report) == (1.0, 11, 1)
    assert "no answer within" in report.failures[0].message


def test_malformed_json_is_a_failure_and_not_a_score(endpoint, tmp_path):
    assert counts(ask(endpoint, tmp_path, "malformed", max_retries=1)) == (1.0, 6, 6)


def test_being_told_to_slow_down_is_obeyed_and_not_a_failure(endpoint, tmp_path):
    report = ask(endpoint, tmp_path, "slow-down", max_retries=1)
    assert counts(report) == (1.0, 12, 0)
    assert sum(endpoint.calls.values()) == 15


def test_a_cut_connection_is_tried_again(endpoint, tmp_path):
    assert counts(ask(endpoint, tmp_path, "cuts-the-connection", max_retries=3)) == (1.0, 12, 0)


def test_two_megabytes_are_stored_and_read_back(endpoint, tmp_path):
    report = ask(endpoint, tmp_path, "huge")
    assert counts(report) == (0.0, 12, 0)
    assert report.generation_results[0].output.text == "x" * 2_000_000


def test_an_empty_reply_is_a_failure(endpoint, tmp_path):
    with pytest.raises(RunFailedError, match="none of 12 samples was answered") as caught:
        ask(endpoint, tmp_path, "silent", max_retries=1)
    mean, count, failed = counts(caught.value.report)
    assert math.isnan(mean)
    assert (count, failed) == (0, 12)


def test_a_refused_key_is_not_tried_again_and_never_written_anywhere(endpoint, tmp_path, caplog, capsys, monkeypatch):
    monkeypatch.setenv("SOME_OTHER_API_KEY", "another-secret-value-77")
    rows = [{"id": n, "question": f"say {n}", "answer": "x", "note": "fine"} for n in range(4)]
    caplog.set_level("DEBUG")
    with pytest.raises(RunFailedError) as caught:
        themis.evaluate(
            rows, model="openai/refuses-the-key", prompt="{question}", base_url=endpoint.url, api_key=KEY,
            storage=tmp_path, run_id="refused", provider_options={"extra_headers": {"X-Token": "another-secret-value-77"}},
            progress=False,
        )  # fmt: skip
    report = caught.value.report
    assert report.metadata["cost"]["api_calls"] == 4  # 401 is final
    assert endpoint.keys >= {f"Bearer {KEY}"}
    store = ExperimentStorage(tmp_path)
    store.get_run_path("refused")
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    dump = "\n".join(sqlite3.connect(tmp_path / "themis.db").iterdump())
    shown = (
        caplog.text
        + str(caught.value)
        + repr(report.metadata)
        + repr(list(report.failures))
        + "".join(capsys.readouterr())
    )
    for hidden in (KEY, "another-secret-value-77"):
        assert hidden.encode() not in written
        assert hidden not in dump
        assert hidden not in shown


class Telling(StatelessTaskExecutor):
    """Says in its errors what it was given, in the constructor or when it is asked."""

    def __init__(self, api_key: str = "", when: str = "asked") -> None:
        self._complaint = f"the key {api_key} is not what it should be"
        if when == "made":
            raise ValueError(self._complaint)

    def execute(self, task: GenerationTask) -> GenerationRecord:
        raise RuntimeError(self._complaint)


@pytest.mark.parametrize(
    "given",
    [
        {"model": "telling:m", "provider_options": {"when": "made"}},
        {"model": "telling:m", "provider_options": {"when": "asked"}, "on_result": "not a function"},
        {"model": "openai/gpt-4o", "provider_options": {"api_kye": KEY}},
        {"model": "openai/gpt-4o", "base_url": f"user:{KEY}@nowhere"},
    ],
    ids=["constructor", "argument", "misspelt", "address"],
)
def test_no_traceback_shows_a_key(given, tmp_path):
    themis.register_provider("telling", Telling)
    with pytest.raises(ThemisError) as caught:
        themis.evaluate(
            [{"id": "1", "question": "?", "answer": "!"}], prompt="{question}", api_key=KEY,
            storage=tmp_path, progress=False, **given,
        )  # fmt: skip

    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_what_a_provider_complains_of_is_stored_without_the_key(tmp_path):
    themis.register_provider("telling", Telling)
    with pytest.raises(RunFailedError) as caught:
        themis.evaluate(
            [{"id": "1", "question": "?", "answer": "!"}], model="telling:m", prompt="{question}", storage=tmp_path,
            api_key=KEY, max_retries=1, progress=False,
        )  # fmt: skip

    assert "the key [redacted] is not what it should be" in str(caught.value)
    assert "the key [redacted] is not what it should be" in caught.value.report.failures[0].message
