"""`themis list`: what there is of each kind; runs, which need a store, in a module of their own."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any, TypeVar

import click

from themis.cli import LazyGroup
from themis.cli.output import json_option, print_json, print_result
from themis.config import shipped_configurations
from themis.config.specification import LM_EVAL_PREFIX
from themis.core.registry import Registry
from themis.evaluation.registries import EXTRACTORS, METRICS
from themis.evaluation.resolve import describe
from themis.exceptions import DependencyError, ThemisError
from themis.generation.providers import PROVIDERS
from themis.generation.tools import TOOLS
from themis.memory.agents import AGENTS
from themis.memory.examples import MEMORY_TESTS
from themis.memory.filler import FILLERS
from themis.presets.benchmarks import BENCHMARKS
from themis.presets.lm_eval.index import lm_eval_version, load_index

T = TypeVar("T")

# What is listed, where it is looked up, and its line in --help.
LISTED: dict[str, tuple[Registry[Any], str]] = {
    "metrics": (METRICS, "Metrics that --metric takes."),
    "extractors": (EXTRACTORS, "Extractors that --extractor takes."),
    "providers": (PROVIDERS, "Providers that --model takes."),
    "tools": (TOOLS, "Tools that have a name; others are FILE.py:NAME, module:NAME or an MCP server."),
    "benchmarks": (BENCHMARKS, "Benchmarks that `themis eval` takes."),
    "agents": (AGENTS, "Agents that `themis memory run -a` takes."),
    "memory-tests": (MEMORY_TESTS, "Memory tests that a configuration may name."),
    "fillers": (FILLERS, "Fillers that `themis memory run --filler` takes."),
}


@click.group(
    name="list", cls=LazyGroup, table={"runs": ("themis.cli.runs:list_runs", "Runs in a store, newest first.")}
)
def list_() -> None:
    """What there is: runs in a store, and everything that can be named on the command line."""


def _add_listing(name: str, help_text: str, registry: Registry[T]) -> None:
    """Adds the command that lists one kind of thing."""

    @list_.command(name=name, help=help_text)
    @click.argument("pattern", required=False)
    @click.option("--verbose", is_flag=True, help="What each one does, with an example.")
    @json_option
    def command(pattern: str | None, verbose: bool, as_json: bool) -> None:
        if registry is BENCHMARKS and pattern is not None and pattern.startswith(LM_EVAL_PREFIX):
            found = _describe_tasks(pattern.removeprefix(LM_EVAL_PREFIX))
        else:
            names = [entry for entry in registry.names() if pattern is None or fnmatch.fnmatch(entry, pattern)]
            found = [_describe(registry, entry) if verbose else {"name": entry} for entry in names]
        if as_json:
            print_json(found if verbose else [one["name"] for one in found])
            return
        if not verbose:
            click.echo(f"Available {name}:")
            for one in found:
                click.echo(f"  - {one['name']}")
            if registry is BENCHMARKS and pattern is None:
                _mention_tasks()
            return
        for described in found:
            click.echo(f"{described['name']}: {described['about']}".removesuffix(": "))
            if described["example"]:
                click.echo(f"    {described['example']}")


def _describe_tasks(pattern: str) -> list[dict[str, str]]:
    """Tasks, groups and tags of the installed lm-eval whose names fit."""
    found = []
    for entry in load_index().match(pattern or "*"):
        kind = (
            f"{entry.kind} of {len(entry.tasks)} tasks" if entry.kind == "tag" else entry.kind.replace("class", "task")
        )
        about = f"{kind}, {entry.output_type}" if entry.output_type else kind
        found.append({"name": f"{LM_EVAL_PREFIX}{entry.name}", "about": about, "example": ""})
    return found


def _mention_tasks() -> None:
    try:
        count, version = len(load_index().entries), lm_eval_version()
    except DependencyError:
        click.echo("  and every task of lm-eval as lm-eval:TASK, with pip install 'themis-eval[lm-eval]'")
        return
    click.echo(f"  and {count:,} tasks of lm-eval {version}: themis list benchmarks 'lm-eval:*'")


def _describe(registry: Registry[T], name: str) -> dict[str, str]:
    try:
        found = describe(registry, name)
    except ThemisError as error:
        return {"name": name, "about": str(error), "example": ""}
    return {"name": name, "about": found.summary, "example": found.example}


@list_.command()
@click.argument("pattern", required=False)
@json_option
def configurations(pattern: str | None, as_json: bool) -> None:
    """Configurations that `themis memory run -c` takes by name."""
    found = [
        {"name": name, "about": _first_comment(path), "file": str(path)}
        for name, path in shipped_configurations().items()
        if pattern is None or fnmatch.fnmatch(name, pattern)
    ]
    rows = [(one["name"], one["about"]) for one in found]
    print_result(found, ("name", "about"), rows, as_json=as_json)


def _first_comment(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


for _name, (_registry, _help) in LISTED.items():
    _add_listing(_name, _help, _registry)
