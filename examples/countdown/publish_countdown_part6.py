"""Part 6: hands the exported bundle to Weights & Biases and MLflow where they are installed. Exits 1 without a bundle.

Nothing leaves the machine unless you say so: W&B runs offline unless WANDB_MODE says otherwise, MLflow writes to ./mlruns
unless MLFLOW_TRACKING_URI says otherwise.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

BUNDLE = Path("outputs/countdown_part6")


def main() -> None:
    report = BUNDLE / "report.json"
    if not report.exists():
        raise SystemExit(f"no {report}: run examples/countdown/run_countdown_part6_backends.py first")
    payload = json.loads(report.read_text(encoding="utf-8"))
    run_name = payload["summary"]["run_id"]
    for tracker, publish in (("wandb", publish_to_wandb), ("mlflow", publish_to_mlflow)):
        if importlib.util.find_spec(tracker):
            publish(payload, run_name)
            print(f"{tracker} published {run_name}")
        else:
            print(f"{tracker} skipped: not installed (pip install {tracker})")


def publish_to_wandb(payload: dict[str, Any], run_name: str) -> None:
    os.environ.setdefault("WANDB_MODE", "offline")
    import wandb

    with wandb.init(project="themis-countdown", name=run_name) as run:
        for metric in payload["metrics"]:
            run.summary[f"{metric['name']}_mean"] = metric["mean"]
        table = wandb.Table(columns=["sample_id", "metric", "value"])
        for sample in payload["samples"]:
            for score in sample["scores"]:
                table.add_data(sample["sample_id"], score["metric"], score["value"])
        run.log({"countdown_samples": table})


def publish_to_mlflow(payload: dict[str, Any], run_name: str) -> None:
    # A folder as the store needs no server; MLflow 3 wants to be told that this is meant.
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    os.environ.setdefault("MLFLOW_TRACKING_URI", "file:./mlruns")
    import mlflow

    mlflow.set_experiment("themis-countdown")
    with mlflow.start_run(run_name=run_name):
        for metric in payload["metrics"]:
            mlflow.log_metric(metric["name"], metric["mean"])
        for name in ("report.json", "report.csv", "report.html"):
            mlflow.log_artifact(str(BUNDLE / name))


if __name__ == "__main__":
    main()
