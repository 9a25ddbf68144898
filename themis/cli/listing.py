"""`themis list`: what there is of each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from themis.cli.output import format_number, json_option, print_json, storage_option
from themis.core.registry import Registry

__all__ = ["list_"]


@click.group(name="list")
def list_() -> None:
    """What there is: runs in a store, and everything that can be named on the command line."""


@list_.command()
@storage_option
@click.option("--limit", type=int, help="At most so many, the newest.")
@click.option("--experiment", metavar="NAME", help="Only runs of this experiment.")
@click.option("--status", help="Only runs of this status.")
@click.option("--verbose", is_flag=True, help="Also experiment, model and scores.")
@json_option
def runs(
    storage: str, limit: int | None, experiment: str | None, status: str | None, verbose: bool, as_json: bool
) -> int:
    """Runs in a store, newest first."""
    from themis.storage import ExperimentStorage

    store = ExperimentStorage(storage)
    if not store.exists():
        click.echo(f"no store at {storage}; a first run makes one: themis demo", err=True)
        return 1
    found = store.list_runs(experiment, status, limit)
    if as_json:
        from themis.cli.runs import describe_run

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


def _registered(name: str, help_text: str, registry: Callable[[], Registry[Any]]) -> None:
    @list_.command(name=name, help=help_text)
    @click.option("--verbose", is_flag=True, help="What each one does, with an example.")
    @json_option
    def command(verbose: bool, as_json: bool) -> None:
        known = registry()
        names = known.names()
        if as_json:
            print_json([_described(known, entry) if verbose else entry for entry in names])
            return
        if not verbose:
            click.echo(f"Available {name}:")
            for entry in names:
                click.echo(f"  - {entry}")
            return
        for described in (_described(known, entry) for entry in names):
            click.echo(f"{described['name']}: {described['about']}".removesuffix(": "))
            if described["example"]:
                click.echo(f"    {described['example']}")


def _described(registry: Registry[Any], name: str) -> dict[str, str]:
    from themis.evaluation.resolve import describe
    from themis.exceptions import ThemisError

    try:
        found = describe(registry, name)
    except ThemisError as error:
        return {"name": name, "about": str(error), "example": ""}
    return {"name": name, "about": found.summary, "example": found.example}


def _metrics() -> Registry[Any]:
    from themis.evaluation.metrics import METRICS

    return METRICS


def _extractors() -> Registry[Any]:
    from themis.evaluation.extractors import EXTRACTORS

    return EXTRACTORS


def _providers() -> Registry[Any]:
    from themis.generation.providers import PROVIDERS

    return PROVIDERS


def _benchmarks() -> Registry[Any]:
    from themis.presets.registering import BENCHMARKS

    return BENCHMARKS


def _agents() -> Registry[Any]:
    from themis.memory.agents import AGENTS

    return AGENTS


def _memory_tests() -> Registry[Any]:
    from themis.memory.examples import MEMORY_TESTS

    return MEMORY_TESTS


def _fillers() -> Registry[Any]:
    from themis.memory.filler import FILLERS

    return FILLERS


_registered("metrics", "Metrics that --metric takes.", _metrics)
_registered("extractors", "Extractors that --extractor takes.", _extractors)
_registered("providers", "Providers that --model takes.", _providers)
_registered("benchmarks", "Benchmarks that `themis eval` takes.", _benchmarks)
_registered("agents", "Agents that `themis memory run -a` takes.", _agents)
_registered("memory-tests", "Memory tests that a configuration may name.", _memory_tests)
_registered("fillers", "Fillers that `themis memory run --filler` takes.", _fillers)
