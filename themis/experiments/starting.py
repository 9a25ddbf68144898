"""Experiment files to begin with, one a task: commented, and running as they are, without a key or the internet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from themis.core.codec import json_bytes
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.experiments.schema import experiment_schema

__all__ = ["STARTERS", "Starter", "write_starter"]

_FILES = Path(__file__).with_name("starters")
_EXPERIMENT, _SCHEMA = "experiment.yml", "experiment.schema.json"
# Code to begin with is no code of this package: it lies here as text.
_AS_TEXT = ".txt"


@dataclass(frozen=True)
class Starter:
    """What a starter shows."""

    about: str


STARTERS = {
    "questions": Starter("questions of your own, asked of several models"),
    "benchmark": Starter("a published benchmark with its whole protocol"),
    "function": Starter("a Python function beside a model"),
    "rag-app": Starter("an application over HTTP that looks things up"),
    "tools": Starter("a model that calls tools"),
    "memory": Starter("the memory of agents over conversations of growing length"),
    "compare-prompts": Starter("two prompts, each model's own against its other"),
}


def write_starter(task: str, folder: str | Path = ".") -> list[Path]:
    """Writes an experiment file, what it needs, and the schema by which editors complete it.

    Args:
        task: What the experiment is about, one of `STARTERS`.
        folder: Where to; it is made if need be.

    Returns:
        The files, the experiment first.

    Raises:
        ConfigurationError: There is no such task, or a file is there already: nothing is overwritten.

    >>> [path.name for path in write_starter("questions", "capitals")]
    ['experiment.yml', 'rows.jsonl', 'experiment.schema.json']
    """
    if task not in STARTERS:
        raise ConfigurationError(f"no starter {task!r}{nearest(task, STARTERS)}; there are {', '.join(STARTERS)}")
    sources = sorted((_FILES / task).iterdir(), key=lambda file: (file.name != _EXPERIMENT, file.name))
    contents = {file.name.removesuffix(_AS_TEXT): file.read_bytes() for file in sources}
    contents[_SCHEMA] = json_bytes(experiment_schema(), indent=1) + b"\n"
    target = Path(folder)
    # The schema is the same for all starters, and ours to renew.
    there = [name for name in contents if name != _SCHEMA and (target / name).exists()]
    if there:
        raise ConfigurationError(
            f"{', '.join(str(target / name) for name in there)} exists already and is not overwritten; "
            "name another folder (--to DIR)"
        )
    target.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (target / name).write_bytes(content)
    return [target / name for name in contents]
