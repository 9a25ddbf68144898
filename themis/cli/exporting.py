"""`themis export`: a stored run as files."""

from __future__ import annotations

from pathlib import Path

import click

from themis.cli.output import json_option, print_json, storage_option
from themis.exceptions import StorageError
from themis.experiment.export import DEFAULT_FORMATS, FORMATS, export_formats
from themis.runs.report import build_report
from themis.storage import ExperimentStorage

__all__ = ["export"]


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--to", "directory", required=True, type=click.Path(path_type=Path), help="Directory for the files.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    default=(",".join(DEFAULT_FORMATS),),
    show_default=True,
    help=f"Formats with commas between them: {', '.join(FORMATS)}.",
)
@click.option(
    "--pass-at", type=float, default=0.5, show_default=True, help="JUnit only: the score from which a sample passes."
)
@storage_option
@json_option
def export(run_id: str, directory: Path, formats: tuple[str, ...], pass_at: float, storage: str, as_json: bool) -> None:
    """Write a run as files for spreadsheets, programs, people, papers, build servers or other systems."""
    store = ExperimentStorage(storage)
    if not store.exists():
        raise StorageError(f"there is no store at {storage}")
    run = store.get_run(run_id)
    wanted = [name.strip() for group in formats for name in group.split(",") if name.strip()]
    written = export_formats(
        build_report(store, run_id), directory, wanted, run_id=run_id, created_at=run.created_at, pass_at=pass_at
    )
    if as_json:
        print_json({name: [str(path) for path in paths] for name, paths in written.items()})
        return
    for paths in written.values():
        for path in paths:
            click.echo(path)
