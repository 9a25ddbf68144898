"""Why a stored answer is, or is not, used for a sample: the field that differs."""

from __future__ import annotations

from dataclasses import dataclass

from themis.exceptions import StorageError
from themis.storage import ExperimentStorage, RunMetadata

_LOOKED_AT = 100
_CALL_DIMENSIONS = ("provider", "model", "provider_options", "sampling", "seed", "endpoint")


@dataclass(frozen=True)
class CacheExplanation:
    """What a sample's answer in `run_id` and the nearest other stored answer differ in; empty when they could be shared."""

    run_id: str
    item_id: str
    key: str
    other_run_id: str | None
    differences: dict[str, tuple[str, str]]


def explain_cache(storage: ExperimentStorage, run_id: str, item_id: str, other: str | None = None) -> CacheExplanation:
    """Finds what keeps a sample's answer from being shared with another run.

    Args:
        storage: The store that has the run.
        run_id: The run.
        item_id: The sample.
        other: The run to look at; by default the nearest of the newest hundred.

    Raises:
        StorageError: The run has no record of the sample.
    """
    mine = _inputs(storage, run_id, item_id)
    if mine is None:
        raise StorageError(f"run {run_id!r} has no record of item {item_id!r}")
    candidates = [storage.get_run(other)] if other is not None else storage.list_runs(limit=_LOOKED_AT)
    best: tuple[RunMetadata, dict[str, tuple[str, str]]] | None = None
    for run in candidates:
        if run.run_id == run_id:
            continue
        theirs = _inputs(storage, run.run_id, item_id)
        if theirs is None:
            continue
        differences = {
            name: (mine[name], theirs.get(name, ""))
            for name in mine
            if name != "key" and mine[name] != theirs.get(name)
        }
        if best is None or len(differences) < len(best[1]):
            best = (run, differences)
    return CacheExplanation(
        run_id=run_id,
        item_id=item_id,
        key=mine["key"],
        other_run_id=best[0].run_id if best else None,
        differences=best[1] if best else {},
    )


def _inputs(storage: ExperimentStorage, run_id: str, item_id: str) -> dict[str, str] | None:
    """Everything that is hashed into the key of a sample's answer."""
    reader = storage.reader(run_id)
    stored = reader.key_of(item_id)
    if stored is None:
        return None
    identity = reader.identity
    return {
        **{name: identity.get(name, "") for name in _CALL_DIMENSIONS},
        "prompt": stored.prompt,
        "row": stored.fingerprint,
        "key": stored.key,
    }
