"""Writes themis/cli/completions.json, from the commands and registries themselves: `make docs`."""

from __future__ import annotations

import json

import click

from themis.backends.execution import EXECUTION_BACKENDS
from themis.cli import themis
from themis.cli.completing import TABLE, describe_command
from themis.config import shipped_configurations
from themis.evaluation.registries import EXTRACTORS, METRICS
from themis.evaluation.strategies import REDUCERS
from themis.generation.models import CATALOGUE
from themis.generation.providers import PROVIDERS
from themis.generation.providers.fake import FAKE_MODELS
from themis.integrations.trackers import TRACKERS
from themis.memory.agents import AGENTS
from themis.memory.filler import FILLERS
from themis.memory.short_names import expand_model
from themis.presets.benchmarks import BENCHMARKS
from themis.runs.prices import price_table

PAGE = TABLE


def render() -> str:
    """The whole table."""
    context = click.Context(themis, info_name="themis")
    registries = (METRICS, EXTRACTORS, PROVIDERS, BENCHMARKS, AGENTS, FILLERS, TRACKERS, EXECUTION_BACKENDS)
    names = {
        **{one.kind: one.names() for one in registries},
        "configuration": sorted(shipped_configurations()),
        "embedded model": sorted(CATALOGUE),
        "model": list_models(),
        "reducer": [name.replace("@k", "@3").replace("^k", "^3") for name in REDUCERS],
    }
    return (
        json.dumps({"names": names, "commands": describe_command(themis, context)}, indent=1, ensure_ascii=False) + "\n"
    )


def list_models() -> list[str]:
    """Models that need no endpoint of their own to be named: priced ones, embedded ones and fakes."""
    priced = [expand_model(name) for name in price_table()["models"]]
    known = [*priced, *(f"local/{name}" for name in CATALOGUE), *(f"fake/{name}" for name in FAKE_MODELS)]
    return sorted({name for name in known if "/" in name})


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
