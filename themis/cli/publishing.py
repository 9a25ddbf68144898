"""`themis publish`: a stored run to an experiment tracker."""

from __future__ import annotations

import click

from themis.cli.output import json_option, print_json, storage_option
from themis.cli.pairs import pairs
from themis.core.redaction import redact_text
from themis.exceptions import DependencyError, StorageError, ThemisError
from themis.integrations.trackers import make_trackers
from themis.runs.report import build_report
from themis.storage import ExperimentStorage

__all__ = ["publish"]


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--to", "trackers", multiple=True, required=True, help="wandb, mlflow, hub or otel; may be repeated.")
@click.option(
    "--option", "options", multiple=True, metavar="K=V", help="Option of a tracker, or TRACKER.K=V; may be repeated."
)
@storage_option
@json_option
def publish(run_id: str, trackers: tuple[str, ...], options: tuple[str, ...], storage: str, as_json: bool) -> None:
    """Send a stored run to Weights & Biases, MLflow, the Hugging Face Hub or an OpenTelemetry collector.

    Publishing a run again goes on with what is there. Credentials come from the tracker's own environment variables.
    """
    store = ExperimentStorage(storage)
    if not store.exists():
        raise StorageError(f"there is no store at {storage}")
    store.get_run(run_id)
    made = make_trackers(trackers, pairs(options))
    report = build_report(store, run_id)
    places, failures = {}, []
    for name, tracker in made.items():
        try:
            places[name] = tracker.publish(report)
        except DependencyError:
            raise
        except Exception as error:  # boundary: a tracker is another system, and the others can be reached all the same
            failures.append(f"{name}: {type(error).__name__}: {redact_text(str(error))}")
            continue
        click.echo(f"{run_id} is in {name}", err=True)
        if not as_json:
            click.echo(places[name])
    if as_json:
        print_json(places)
    if failures:
        raise ThemisError(f"{run_id} could not be sent to {'; '.join(failures)}")
