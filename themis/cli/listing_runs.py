"""`themis list runs`: what a store has."""

from __future__ import annotations

import click

from themis.cli.output import format_number, json_option, print_json, storage_option
from themis.cli.runs import describe_run
from themis.storage import ExperimentStorage


@click.command()
@storage_option
@click.option("--limit", type=int, help="At most so many, the newest.")
@click.option("--experiment", metavar="NAME", help="Only runs of this experiment.")
@click.option("--status", help="Only runs of this status.")
@click.option("--verbose", is_flag=True, help="Also experiment, model and scores.")
@json_option
def list_runs(
    storage: str, limit: int | None, experiment: str | None, status: str | None, verbose: bool, as_json: bool
) -> int:
    """Runs in a store, newest first."""
    store = ExperimentStorage(storage)
    if not store.exists():
        click.echo(f"no store at {storage}; a first run makes one: themis demo", err=True)
        return 1
    found = store.list_runs(experiment, status, limit)
    if as_json:
        print_json([describe_run(store, run) for run in found])
        return 0
    if not found:
        click.echo("No runs found.")
        return 0
    click.echo("Runs:")
    for run in found:
        created = run.created_at.isoformat(timespec="seconds")
        line = f"  - {run.run_id} [{run.standing}] samples={run.total_samples} created={created}"
        if verbose:
            scores = " ".join(
                f"{name}={format_number(metric['mean'])}" for name, metric in run.summary.get("metrics", {}).items()
            )
            line += f" experiment={run.experiment} model={run.model} {scores}".rstrip()
        click.echo(line)
    return 0
