"""`themis store`: care of a whole store."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from themis.cli.completing import EXPERIMENT
from themis.cli.output import json_option, print_json, storage_option
from themis.cli.terminal import escape_terminal
from themis.storage import ExperimentStorage, RetentionPolicy
from themis.storage.maintenance import Repair, check_store, copy_store, repair_store, vacuum_store


@click.group()
def store() -> None:
    """Check, repair, prune, copy or vacuum a store."""


@store.command()
@storage_option
@json_option
def check(storage: str, as_json: bool) -> int:
    """Read everything once and say what does not fit together. Exit 1 on a problem."""
    result = check_store(ExperimentStorage(storage))
    if as_json:
        print_json({"runs": result.runs, "problems": result.problems, "warnings": result.warnings})
    else:
        for line in result.problems:
            click.echo(f"problem: {line}")
        for line in result.warnings:
            click.echo(f"note: {line}")
        click.echo(f"{result.runs} runs, {len(result.problems)} problems")
    return 1 if result.problems else 0


@store.command()
@storage_option
@json_option
def repair(storage: str, as_json: bool) -> int:
    """Salvage a damaged SQLite store into a new file; the damaged one is kept beside it.

    Says of every run what was lost and how to get it back. Exit 1 if anything was lost, 3 if nothing could be read.
    """
    result = repair_store(storage)
    if as_json:
        print_json({**asdict(result), "complete": result.is_complete})
    else:
        _print_repair(result)
    return 0 if result.is_complete else 1


def _print_repair(result: Repair) -> None:
    for table, rows in result.rows.items():
        broken = result.broken[table]
        click.echo(f"{table}: {rows:,} rows saved" + (f", {broken:,} places could not be read" if broken else ""))
    for line in result.altered:
        click.echo(escape_terminal(f"kept with unreadable characters: {line}"))
    for loss in result.runs:
        click.echo(escape_terminal(f"run {loss.run_id!r}: {loss}"))
    click.echo("everything was saved" if result.is_complete else "not everything could be saved")
    click.echo(f"the damaged file is kept as {result.kept}")


@store.command()
@storage_option
@click.option("--experiment", type=EXPERIMENT, metavar="NAME", help="Only runs of this experiment.")
@click.option("--max-age-days", type=float, help="Remove runs older than this.")
@click.option("--max-runs", "max_runs_per_experiment", type=int, help="Keep at most so many runs of each experiment.")
@click.option("--max-gb", "max_storage_gb", type=float, help="Remove the oldest until the records fit.")
@click.option(
    "--keep-latest",
    "keep_latest_n",
    type=int,
    default=5,
    show_default=True,
    help="Never remove the newest so many of each experiment.",
)
@click.option(
    "--unfinished/--keep-unfinished",
    "keep_completed_only",
    default=False,
    help="Also remove runs that are not completed.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def prune(storage: str, experiment: str | None, dry_run: bool, **limits: Any) -> None:
    """Remove old runs by a retention policy. What is kept is counted for every experiment by itself."""
    policy = RetentionPolicy(**limits)
    gone = ExperimentStorage(storage).apply_retention_policy(policy, experiment=experiment, dry_run=dry_run)
    for run_id in gone:
        click.echo(f"{'would remove' if dry_run else 'removed'} {run_id}")
    click.echo(f"{len(gone)} runs {'would be ' if dry_run else ''}removed", err=True)


@store.command()
@click.argument("source")
@click.argument("target")
def copy(source: str, target: str) -> None:
    """Copy every run of SOURCE that TARGET does not have (directories or postgresql:// URLs)."""
    copied = copy_store(
        ExperimentStorage(source), ExperimentStorage(target), report=lambda line: click.echo(line, err=True)
    )
    click.echo(f"{len(copied)} runs copied")


@store.command()
@storage_option
def vacuum(storage: str) -> None:
    """Give back the space of deleted runs."""
    before, after = vacuum_store(ExperimentStorage(storage))
    click.echo(f"{before:,} bytes before, {after:,} after")
