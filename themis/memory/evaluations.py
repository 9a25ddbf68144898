"""The ways in which a memory run has been judged: its own verdicts, published ones, ours beside them, overrides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from themis.core.codec import decode
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.storage import ExperimentStorage, schema

__all__ = ["Judged", "find_evaluation", "judged_ways"]


@dataclass(frozen=True)
class Judged:
    """One way of judging a run; `name` is what people call it by, and `is_current` marks the one that counts."""

    evaluation: int
    fingerprint: str
    name: str
    config: Mapping[str, Any]
    is_current: bool


def judged_ways(storage: ExperimentStorage, run_id: str) -> list[Judged]:
    """Every evaluation of a run, the oldest first."""
    run, current = storage.reader(run_id).run, storage.current_evaluation(run_id)
    table = schema.evaluations
    with storage.engine.connect() as connection:
        rows = connection.execute(sa.select(table).where(table.c.run == run).order_by(table.c.evaluation)).all()
    return [
        Judged(row.evaluation, row.fingerprint, _name(config), config, row.evaluation == current)
        for row in rows
        for config in (decode(row.config),)
    ]


def find_evaluation(storage: ExperimentStorage, run_id: str, name: str) -> Judged:
    """The latest evaluation of a name, or with the number that the name is."""
    ways = judged_ways(storage, run_id)
    for way in reversed(ways):
        if name in (way.name, str(way.evaluation)):
            return way
    known = [way.name for way in ways]
    raise ConfigurationError(
        f"run {run_id!r} was not judged as {name!r}{nearest(name, known)}; there is {', '.join(known) or 'nothing'}"
    )


def _name(config: Mapping[str, Any]) -> str:
    return str(config.get("name") or (f"judge {config['judge']}" if config.get("judge") else "as run"))
