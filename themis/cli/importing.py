"""`themis import`: logs of other systems as runs of this store."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from themis.cli.output import json_option, print_json, storage_option
from themis.exceptions import ConfigurationError
from themis.experiment.importing import NO_LIMITS, Imported, import_log
from themis.storage import ExperimentStorage

__all__ = ["import_"]

_SHOWN_BROKEN = 5


@click.command(name="import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--run-id", help="Name of the run (one file only); by default made from source, task and content.")
@click.option("--model", help="provider:name, where the file does not say which model it was.")
@click.option("--no-limits", is_flag=True, help="Read files of any size, packed however tightly: only those you trust.")
@storage_option
@json_option
def import_(
    files: tuple[Path, ...], run_id: str | None, model: str | None, no_limits: bool, storage: str, as_json: bool
) -> int:
    """Bring Inspect logs (.json, .eval) and lm-eval samples_*.jsonl into the store, scores as published.

    The same file again changes nothing. Lines that cannot be read, and scores outside their metric's range, are named
    and left out, the others are imported, and the exit code is 3. A file that would take much memory is refused.
    """
    if run_id is not None and len(files) > 1:
        raise ConfigurationError(f"--run-id names one run, but {len(files)} files were given")
    store = ExperimentStorage(storage)
    done = []
    for path in files:
        imported = import_log(path, store, run_id=run_id, model=model, limits=NO_LIMITS if no_limits else None)
        done.append({"file": str(path), **dataclasses.asdict(imported)})
        _tell(path, imported)
        if not as_json:
            click.echo(imported.run_id)
    if as_json:
        print_json(done)
    return 3 if any(one["broken"] for one in done) else 0


def _tell(path: Path, imported: Imported) -> None:
    state = "was imported before" if imported.already else f"{imported.samples} samples, {imported.failed} failed"
    click.echo(f"{path.name}: {state}, as {imported.run_id}", err=True)
    for note in imported.notes:
        click.echo(f"  note: {note}", err=True)
    for broken in imported.broken[:_SHOWN_BROKEN]:
        click.echo(f"  {broken.where} was left out: {broken.reason}", err=True)
    if len(imported.broken) > _SHOWN_BROKEN:
        click.echo(f"  … {len(imported.broken)} places were left out in all", err=True)
