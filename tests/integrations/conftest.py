"""Runs for trackers: a stored report, and runs with an observer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import themis
from themis.core.entities import ExperimentReport, ModelSpec
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.metrics.text import ExactMatch
from themis.evaluation.pipeline import EvaluationPipeline
from themis.experiment.experiment import Experiment, Observer
from themis.experiment.run import run
from themis.generation.attempts import Retry
from themis.generation.engine import EngineSettings
from themis.generation.providers import create_provider
from themis.generation.templates import PromptTemplate
from themis.storage import ExperimentStorage

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
    return themis.evaluate(
        ROWS,
        model="fake/noisy-0.3",
        prompt="{question}",
        metrics=["exact_match"],
        storage=tmp_path / "store",
        run_id="tracked",
        progress=False,
    )


@pytest.fixture
def watched(tmp_path: Path) -> Callable[..., ExperimentReport]:
    """Runs the same rows with an observer."""

    def evaluate(observer: Observer, **changes: Any) -> ExperimentReport:
        model = changes.pop("model", "noisy-0.3")
        experiment = Experiment(
            run_id="watched",
            rows=changes.pop("rows", ROWS),
            template=PromptTemplate(name="default", template="{question}"),
            model=ModelSpec(identifier=model, provider="fake"),
            executor=create_provider("fake", {}, model_identifier=model),
            pipeline=EvaluationPipeline(extractor=IdentityExtractor(), metrics=[ExactMatch()]),
            engine=EngineSettings(retry=Retry(attempts=1)),
            **changes,
        )
        return run(experiment, ExperimentStorage(tmp_path / "store"), [observer])

    return evaluate
