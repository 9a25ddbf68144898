"""`themis share`: a badge of a run, to paste."""

from __future__ import annotations

from pathlib import Path

import click

from themis.cli.output import json_option, print_json, storage_option
from themis.exceptions import StorageError
from themis.experiment.share import share_run
from themis.storage import ExperimentStorage

__all__ = ["share"]


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--metric", help="Which metric the badge shows; by default the first that judged every sample.")
@click.option(
    "--output-dir",
    default=".",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the files go.",
)
@storage_option
@json_option
def share(run_id: str, metric: str | None, output_dir: Path, storage: str, as_json: bool) -> None:
    """Write a badge (SVG) and a summary (Markdown) of a run, and print the line that shows it."""
    store = ExperimentStorage(storage)
    if not store.exists():
        raise StorageError(f"there is no store at {storage}")
    shared = share_run(store, run_id, metric=metric, output_dir=output_dir)
    if as_json:
        print_json({"svg": str(shared.svg_path), "markdown": str(shared.markdown_path), "snippet": shared.snippet})
        return
    click.echo(f"badge    {shared.svg_path}")
    click.echo(f"summary  {shared.markdown_path}")
    click.echo(shared.snippet)
