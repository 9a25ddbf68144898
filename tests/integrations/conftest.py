"""Runs for trackers: a stored report, and runs with an observer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import themis
from themis.core.entities import ExperimentReport

ROWS = [{"id": f"q{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(12)]


@pytest.fixture(autouse=True)
def _trackers_stay_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tracker sends anything about itself, or writes into the checkout."""
    for name in [name for name in os.environ if name.startswith(("WANDB_", "MLFLOW_", "HF_", "OTEL_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("DO_NOT_TRACK", "true")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "wandb-config"))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "wandb-cache"))
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "wandb-data"))
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def report(tmp_path: Path) -> ExperimentReport:
    return _evaluate(tmp_path, "tracked")


@pytest.fixture
def watched(tmp_path: Path) -> Callable[..., ExperimentReport]:
    """Runs the same rows with something that watches."""

    def evaluate(*observers: Any, model: str = "fake/noisy-0.3") -> ExperimentReport:
        return _evaluate(tmp_path, "watched", model=model, observers=observers, max_retries=1)

    return evaluate


def _evaluate(folder: Path, run_id: str, *, model: str = "fake/noisy-0.3", **changes: Any) -> ExperimentReport:
    return themis.evaluate(
        ROWS,
        model=model,
        prompt="{question}",
        metrics=["exact_match"],
        storage=folder / "store",
        run_id=run_id,
        progress=False,
        **changes,
    )
