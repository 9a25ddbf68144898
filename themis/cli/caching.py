"""`themis cache`: what decides whether a stored answer is used."""

from __future__ import annotations

import click

from themis.cli.output import json_option, print_json, print_table, storage_option
from themis.experiment.explain import explain_cache
from themis.storage import ExperimentStorage

__all__ = ["cache"]


@click.group()
def cache() -> None:
    """What decides whether a stored answer is used."""


@cache.command()
@click.argument("run_id", metavar="RUN")
@click.argument("item_id", metavar="ITEM")
@click.option("--other", metavar="RUN", help="Compare with this run; by default with the most similar one.")
@storage_option
@json_option
def why(run_id: str, item_id: str, other: str | None, storage: str, as_json: bool) -> None:
    """In what a sample's answer differs from the nearest stored one, field by field."""
    found = explain_cache(ExperimentStorage(storage), run_id, item_id, other)
    if as_json:
        print_json(vars(found))
        return
    click.echo(f"answer of item {item_id} in {run_id}: key {found.key}")
    if found.other_run_id is None:
        click.echo("no other run in this store has an answer for this item")
    elif not found.differences:
        click.echo(f"the same inputs as in {found.other_run_id}: cache=store would share the answer")
    else:
        click.echo(f"differs from the answer in {found.other_run_id} in:")
        print_table(("field", run_id, found.other_run_id), [(n, a, b) for n, (a, b) in found.differences.items()])
