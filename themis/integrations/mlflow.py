"""Shows runs in MLflow: parameters, metrics with intervals, and the exported files as artifacts."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from themis.core.entities import ExperimentReport
from themis.core.redaction import redact_text
from themis.experiment.export import export_formats
from themis.integrations.trackers import LiveTracker, report_numbers, report_parameters, tracker_key
from themis.storage import RunStatus

_KEY_TAG = "themis.key"
_LONGEST_VALUE = 500
_STATUS = {RunStatus.COMPLETED: "FINISHED", RunStatus.FAILED: "FAILED"}


class _MlflowRun(NamedTuple):
    client: Any
    mlflow_id: str


class MlflowTracker(LiveTracker[_MlflowRun]):
    """One MLflow run a Themis run: publishing again goes on with it.

    Args:
        tracking_uri: A server, a database or a folder; by default MLflow's own setting decides.
        experiment: Of MLflow; it is made if it is not there.
    """

    name = "MLflow"
    package = ("mlflow", "mlflow", "publishing to MLflow")
    seconds_between_logs = 10.0

    def __init__(self, tracking_uri: str | None = None, experiment: str = "themis") -> None:
        self._uri = tracking_uri
        self._experiment = experiment

    def open(self, run_id: str, manifest_hash: str | None) -> _MlflowRun:
        mlflow = self.import_package()
        uri = self._uri or os.environ.get("MLFLOW_TRACKING_URI", "")
        if uri.startswith("file:") or (uri and "://" not in uri and ":" not in uri):
            # MLflow 3 takes a folder only from those who say that they mean it; naming one says so.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        client = mlflow.MlflowClient(tracking_uri=self._uri)
        found = client.get_experiment_by_name(self._experiment)
        experiment = found.experiment_id if found is not None else client.create_experiment(self._experiment)
        # By a hash, because an id may hold what the filter's own language means something by.
        key = tracker_key(run_id, manifest_hash)
        earlier = client.search_runs([experiment], filter_string=f"tags.`{_KEY_TAG}` = '{key}'", max_results=1)
        if earlier:
            mlflow_id = str(earlier[0].info.run_id)
            client.update_run(mlflow_id, status="RUNNING")
            return _MlflowRun(client, mlflow_id)
        tags = {_KEY_TAG: key, "themis.run_id": run_id}
        return _MlflowRun(client, str(client.create_run(experiment, run_name=run_id, tags=tags).info.run_id))

    def log(self, run: _MlflowRun, numbers: Mapping[str, float], step: int) -> None:
        for name, value in numbers.items():
            run.client.log_metric(run.mlflow_id, _legal_name(name), value, step=step)

    def complete(self, run: _MlflowRun, report: ExperimentReport, status: RunStatus) -> str:
        client, mlflow_id = run
        known = client.get_run(mlflow_id).data.params
        for name, value in report_parameters(report).items():
            # A parameter can be set once.
            if _legal_name(name) not in known:
                client.log_param(mlflow_id, _legal_name(name), str(value)[:_LONGEST_VALUE])
        self.log(run, report_numbers(report), step=0)
        with tempfile.TemporaryDirectory(prefix="themis-mlflow-") as folder:
            export_formats(report, folder)
            client.log_artifacts(mlflow_id, folder)
        self.abort(run, status)
        return f"{redact_text(client.tracking_uri)} run {mlflow_id}"

    def abort(self, run: _MlflowRun, status: RunStatus) -> None:
        run.client.set_terminated(run.mlflow_id, status=_STATUS.get(status, "KILLED"))


def _legal_name(text: str) -> str:
    """MLflow's names have letters, digits and few signs."""
    return re.sub(r"[^\w\-. :/]", "_", text, flags=re.ASCII)[:250]
