"""Shows runs in Weights & Biases: settings, means with intervals, a table of samples, and the exported files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from themis.core.codec import format_value
from themis.core.entities import ExperimentReport
from themis.core.files import safe_filename
from themis.exceptions import ConfigurationError
from themis.experiment.export import export_formats
from themis.experiment.export.samples import join_samples, report_run_id
from themis.integrations.trackers import LiveTracker, report_numbers, report_parameters, tracker_key
from themis.storage import RunStatus

_LONGEST_CELL = 5_000
_MODES = ("online", "offline", "disabled", "shared")


class WandbTracker(LiveTracker[Any]):
    """One W&B run a Themis run: publishing again goes on with it.

    Args:
        project: Of W&B.
        entity: A team or user; by default the one that is logged in.
        mode: online, offline, disabled or shared; by default WANDB_MODE decides.
        directory: Where W&B keeps its files; by default WANDB_DIR, or the working directory.
        samples: Rows of the table, which W&B keeps in memory.
    """

    name = "W&B"
    package = ("wandb", "wandb", "publishing to Weights & Biases")

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

    def open(self, run_id: str, manifest_hash: str | None) -> Any:
        wandb = self.import_package()
        if self._directory is not None:
            Path(self._directory).mkdir(parents=True, exist_ok=True)
        return wandb.init(
            project=self._project,
            entity=self._entity,
            name=run_id,
            id=tracker_key(run_id, manifest_hash)[:16],
            resume="allow",
            # Read now: W&B reads its variables once in a process, when it is first used.
            mode=self._mode or os.environ.get("WANDB_MODE") or None,
            dir=self._directory or os.environ.get("WANDB_DIR") or os.getcwd(),
            # What the process prints may be anybody's; only what is sent below is published.
            settings=wandb.Settings(console="off", silent=True, save_code=False, x_disable_stats=True),
        )

    def complete(self, run: Any, report: ExperimentReport, status: RunStatus) -> str:
        wandb = self.import_package()
        failed = True
        try:
            run.config.update(report_parameters(report), allow_val_change=True)
            run.summary.update(report_numbers(report))
            run.log({"samples": self._table(wandb, report)})
            name = safe_filename(report_run_id(report))
            with tempfile.TemporaryDirectory(prefix="themis-wandb-") as folder:
                export_formats(report, folder)
                artifact = wandb.Artifact(f"themis-{name}", type="evaluation")
                artifact.add_dir(folder)
                run.log_artifact(artifact)
            failed = False
        finally:
            run.finish(exit_code=1 if failed else 0)
        return str(run.url or run.dir)

    def log(self, run: Any, numbers: Mapping[str, float], step: int) -> None:
        run.log(dict(numbers))

    def abort(self, run: Any, status: RunStatus) -> None:
        run.finish(exit_code=1)

    def _table(self, wandb: ModuleType, report: ExperimentReport) -> object:
        metrics = list(report.evaluation_report.metrics)
        table = wandb.Table(columns=["sample_id", "output", "reference", *metrics, "failures"])
        for sample in islice(join_samples(report), self._samples):
            scores = sample.mean_scores
            reference = "" if sample.reference is None else format_value(sample.reference)
            table.add_data(
                sample.sample_id,
                (sample.output or "")[:_LONGEST_CELL],
                reference[:_LONGEST_CELL],
                *(scores.get(name) for name in metrics),
                "; ".join(sample.failures)[:_LONGEST_CELL],
            )
        return table
