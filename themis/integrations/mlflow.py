"""Shows runs in MLflow: parameters, metrics with intervals, and the exported files as artifacts."""

from __future__ import annotations

import math
import os
import re
import tempfile
import time
from typing import Any

from themis.core.entities import EvaluationRecord, ExperimentReport, Result
from themis.core.redaction import redact_text
from themis.exceptions import DependencyError
from themis.experiment.export import export_formats
from themis.experiment.export.as_json import report_run_id
from themis.integrations.facts import key_of, numbers_of, parameters_of, progress_numbers
from themis.runs.observers import Observer, RunStart, Totals
from themis.storage import RunStatus

__all__ = ["MlflowTracker"]

_KEY_TAG = "themis.key"
_LONGEST_VALUE = 500
_SECONDS_BETWEEN_NEWS = 10.0
_STATUS = {RunStatus.COMPLETED: "FINISHED", RunStatus.FAILED: "FAILED"}


class MlflowTracker:
    """One MLflow run a Themis run: publishing again goes on with it. Without `tracking_uri`, MLflow's own setting decides."""

    def __init__(self, tracking_uri: str | None = None, experiment: str = "themis") -> None:
        self._uri = tracking_uri
        self._experiment = experiment

    def publish(self, report: ExperimentReport) -> str:
        client = self._client()
        mlflow_id = self._open(client, report_run_id(report), report.metadata.get("manifest_hash"))
        status = RunStatus(report.metadata.get("status", RunStatus.COMPLETED))
        return self._complete(client, mlflow_id, report, status)

    def observer(self) -> Observer:
        _package()
        return _Watching(self)

    def _client(self) -> Any:
        mlflow = _package()
        uri = self._uri or os.environ.get("MLFLOW_TRACKING_URI", "")
        if uri.startswith("file:") or (uri and "://" not in uri and ":" not in uri):
            # MLflow 3 takes a folder only from those who say that they mean it; naming one says so.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        return mlflow.MlflowClient(tracking_uri=self._uri)

    def _open(self, client: Any, run_id: str, manifest_hash: str | None) -> str:
        found = client.get_experiment_by_name(self._experiment)
        experiment = found.experiment_id if found is not None else client.create_experiment(self._experiment)
        # By a hash, because an id may hold what the filter's own language means something by.
        key = key_of(run_id, manifest_hash)
        earlier = client.search_runs([experiment], filter_string=f"tags.`{_KEY_TAG}` = '{key}'", max_results=1)
        if earlier:
            mlflow_id = str(earlier[0].info.run_id)
            client.update_run(mlflow_id, status="RUNNING")
            return mlflow_id
        tags = {_KEY_TAG: key, "themis.run_id": run_id}
        return str(client.create_run(experiment, run_name=run_id, tags=tags).info.run_id)

    def _complete(self, client: Any, mlflow_id: str, report: ExperimentReport, status: RunStatus) -> str:
        known = client.get_run(mlflow_id).data.params
        for name, value in parameters_of(report).items():
            # A parameter can be set once.
            if _name(name) not in known:
                client.log_param(mlflow_id, _name(name), str(value)[:_LONGEST_VALUE])
        _log(client, mlflow_id, numbers_of(report))
        with tempfile.TemporaryDirectory(prefix="themis-mlflow-") as folder:
            export_formats(report, folder)
            client.log_artifacts(mlflow_id, folder)
        client.set_terminated(mlflow_id, status=_STATUS.get(status, "KILLED"))
        return f"{redact_text(client.tracking_uri)} run {mlflow_id}"


class _Watching(Observer):
    """Opens the MLflow run with the first answers."""

    name = "MLflow"

    def __init__(self, tracker: MlflowTracker) -> None:
        self._tracker = tracker
        self._client: Any = None
        self._mlflow_id = ""
        self._totals = Totals()
        self._told = -math.inf

    def on_start(self, run: RunStart) -> None:
        self._start, self._totals = run, Totals(answered=run.done)

    def on_answers(self, calls: list[Result]) -> None:
        if self._client is None:
            self._client = self._tracker._client()
            self._mlflow_id = self._tracker._open(self._client, self._start.run_id, self._start.manifest_hash)
        self._totals.add_calls(calls)
        # A request each time would make the run wait for the tracker.
        if time.monotonic() - self._told >= _SECONDS_BETWEEN_NEWS:
            self._told = time.monotonic()
            _log(self._client, self._mlflow_id, progress_numbers(self._totals), step=self._totals.answered)

    def on_scores(self, records: list[EvaluationRecord]) -> None:
        self._totals.add_scores(records)

    def on_end(self, status: RunStatus, report: ExperimentReport | None) -> None:
        if report is None:
            if self._client is not None:
                self._client.set_terminated(self._mlflow_id, status=_STATUS.get(status, "KILLED"))
        elif self._client is None:
            self._tracker.publish(report)
        else:
            self._tracker._complete(self._client, self._mlflow_id, report, status)


def _log(client: Any, mlflow_id: str, numbers: dict[str, float], step: int = 0) -> None:
    for name, value in numbers.items():
        client.log_metric(mlflow_id, _name(name), value, step=step)


def _name(text: str) -> str:
    """MLflow's names have letters, digits and few signs."""
    return re.sub(r"[^\w\-. :/]", "_", text, flags=re.ASCII)[:250]


def _package() -> Any:
    try:
        import mlflow
    except ImportError as error:
        raise DependencyError.for_extra("mlflow", "mlflow", "publishing to MLflow") from error
    return mlflow
