"""W&B, as the real package writes it to disk in offline mode."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from themis.exceptions import ConfigurationError, DependencyError
from themis.integrations.wandb import WandbTracker


def files_of(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The one offline run in a folder, and its table of samples."""
    (run,) = (folder / "wandb").glob("offline-run-*")
    (table,) = run.glob("files/media/table/samples*.json")
    return run, json.loads(table.read_text())


def eventually_holds(log: Path, words: bytes) -> bool:
    """W&B's own process writes the log, and not at once."""
    for _ in range(200):
        if words in log.read_bytes():
            return True
        time.sleep(0.1)
    return False


def test_a_stored_run_is_written_with_a_table_of_its_samples(report, tmp_path):
    place = WandbTracker(mode="offline", directory=str(tmp_path / "out")).publish(report)

    run, table = files_of(tmp_path / "out")
    assert place.startswith(str(run))
    assert eventually_holds(next(run.glob("run-*.wandb")), b"ExactMatch.ci_low")
    assert table["columns"] == ["sample_id", "output", "reference", "ExactMatch", "failures"]
    by_id = {row[0]: row for row in table["data"]}
    assert len(by_id) == 12
    for record in report.evaluation_report.records:
        assert by_id[record.sample_id][3] == record.scores[0].value


def test_a_run_is_shown_while_it_goes_on(watched, tmp_path):
    report = watched(WandbTracker(mode="offline", directory=str(tmp_path / "out"), samples=5))

    _, table = files_of(tmp_path / "out")
    assert report.metadata["status"] == "completed"
    assert [row[0] for row in table["data"]] == ["q0", "q1", "q2", "q3", "q4"]


def test_an_unknown_mode_is_refused():
    with pytest.raises(ConfigurationError, match="online, offline, disabled, shared, got 'of-line'"):
        WandbTracker(mode="of-line")


def test_without_the_package_one_line_says_what_to_install(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(DependencyError, match=r"pip install 'themis-eval\[wandb\]'"):
        WandbTracker().publish(report)
