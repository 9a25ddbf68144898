"""`themis data`: benchmarks' rows on disk, for machines without the internet."""

from __future__ import annotations

import click

from themis.cli.output import json_option, print_json
from themis.presets import fetch_benchmark

__all__ = ["data"]


@click.group()
def data() -> None:
    """Benchmarks' rows on disk, for machines without the internet."""


@data.command()
@click.argument("benchmark")
@click.option("--to", "folder", required=True, type=click.Path(file_okay=False), help="Folder to write into.")
@click.option("-n", "--limit", type=click.IntRange(min=1), help="Only the first so many rows.")
@json_option
def fetch(benchmark: str, folder: str, limit: int | None, as_json: bool) -> None:
    """Download a benchmark's rows with a manifest of where they came from; use them with `eval --data FOLDER`."""
    fetched = fetch_benchmark(benchmark, folder, limit=limit)
    if as_json:
        print_json({"path": str(fetched.path), "rows": fetched.rows, "sha256": fetched.sha256})
    else:
        click.echo(f"{fetched.rows} rows of {fetched.name} in {fetched.path}")
