"""Shows runs in Weights & Biases: settings, means with intervals, a table of samples, and the exported files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from themis.core.entities import EvaluationRecord, ExperimentReport, Result
from themis.exceptions import ConfigurationError, DependencyError
from themis.experiment.export import export_formats
from themis.experiment.export.as_json import report_run_id
from themis.experiment.export.json_text import as_text
from themis.experiment.export.names import file_word
from themis.experiment.export.samples import joined, score_values
from themis.integrations.facts import key_of, numbers_of, parameters_of, progress_numbers
from themis.runs.observers import Observer, RunStart, Totals
from themis.storage import RunStatus

__all__ = ["WandbTracker"]

_LONGEST_CELL = 5_000
_MODES = ("online", "offline", "disabled", "shared")


class WandbTracker:
    """One W&B run a Themis run: publishing again goes on with it. Without `mode`, WANDB_MODE decides.

    `samples` bounds the table, which W&B keeps in memory.
    """

    def __init__(
        self,
        project: str = "themis",
        entity: str | None = None,
        mode: str | None = None,
        directory: str | None = None,
        samples: int = 1_000,
    ) -> None:
        if mode is not None and mode not in _MODES:
            raise ConfigurationError(f"W&B's mode is one of {', '.join(_MODES)}, got {mode!r}")
        self._project, self._entity, self._mode, self._directory = project, entity, mode, directory
        self._samples = samples

    def publish(self, report: ExperimentReport) -> str:
        run = self._open(report_run_id(report), report.metadata.get("manifest_hash"))
        return self._complete(run, report)

    def observer(self) -> Observer:
        _package()
        return _Watching(self)

    def _open(self, run_id: str, manifest_hash: str | None) -> Any:
        wandb = _package()
        if self._directory is not None:
            Path(self._directory).mkdir(parents=True, exist_ok=True)
        return wandb.init(
            project=self._project,
            entity=self._entity,
            name=run_id,
            id=key_of(run_id, manifest_hash)[:16],
            resume="allow",
            # Read now: W&B reads its variables once in a process, when it is first used.
            mode=self._mode or os.environ.get("WANDB_MODE") or None,
            dir=self._directory or os.environ.get("WANDB_DIR") or os.getcwd(),
            # What the process prints may be anybody's; only what is sent below is published.
            settings=wandb.Settings(console="off", silent=True, save_code=False, x_disable_stats=True),
        )

    def _complete(self, run: Any, report: ExperimentReport) -> str:
        wandb = _package()
        failed = True
        try:
            run.config.update(parameters_of(report), allow_val_change=True)
            run.summary.update(numbers_of(report))
            run.log({"samples": self._table(wandb, report)})
            name = file_word(report_run_id(report))
            with tempfile.TemporaryDirectory(prefix="themis-wandb-") as folder:
                export_formats(report, folder)
                artifact = wandb.Artifact(f"themis-{name}", type="evaluation")
                artifact.add_dir(folder)
                run.log_artifact(artifact)
            failed = False
        finally:
            run.finish(exit_code=1 if failed else 0)
        return str(run.url or run.dir)

    def _table(self, wandb: Any, report: ExperimentReport) -> Any:
        metrics = list(report.evaluation_report.metrics)
        table = wandb.Table(columns=["sample_id", "output", "reference", *metrics, "failures"])
        for _, sample in zip(range(self._samples), joined(report), strict=False):
            scores = score_values(sample.scores)
            reference = "" if sample.reference is None else as_text(sample.reference)
            table.add_data(
                sample.sample_id,
                (sample.output or "")[:_LONGEST_CELL],
                reference[:_LONGEST_CELL],
                *(scores.get(name) for name in metrics),
                "; ".join(sample.failures)[:_LONGEST_CELL],
            )
        return table


class _Watching(Observer):
    """Opens the W&B run with the first answers."""

    name = "W&B"

    def __init__(self, tracker: WandbTracker) -> None:
        self._tracker = tracker
        self._run: Any = None
        self._totals = Totals()

    def on_start(self, run: RunStart) -> None:
        self._start, self._totals = run, Totals(answered=run.done)

    def on_answers(self, calls: list[Result]) -> None:
        if self._run is None:
            self._run = self._tracker._open(self._start.run_id, self._start.manifest_hash)
        self._totals.add_calls(calls)
        self._run.log(progress_numbers(self._totals))

    def on_scores(self, records: list[EvaluationRecord]) -> None:
        self._totals.add_scores(records)

    def on_end(self, status: RunStatus, report: ExperimentReport | None) -> None:
        if report is None:
            if self._run is not None:
                self._run.finish(exit_code=1)
        elif self._run is None:
            self._tracker.publish(report)
        else:
            self._tracker._complete(self._run, report)


def _package() -> Any:
    try:
        import wandb
    except ImportError as error:
        raise DependencyError.for_extra("wandb", "wandb", "publishing to Weights & Biases") from error
    return wandb
