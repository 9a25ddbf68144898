"""Says in what runs differ: in the dimensions of their manifests, and in what made one stored answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from themis.core.codec import decode
from themis.core.entities import SamplingConfig
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, StorageError
from themis.runs.manifest import (
    SCIENTIFIC_KEYS,
    call_identity,
    diff_manifests,
    manifest_hash,
    validate_reproducibility_manifest,
)
from themis.storage import ExperimentStorage

# Dotted key -> the values of both.
Diffs = dict[str, dict[str, object]]


@dataclass(frozen=True)
class Audit:
    """One run checked for itself, or two against each other; it passes if nothing differs that is not allowed to."""

    runs: tuple[str, ...]
    manifest_hashes: dict[str, str]
    diffs: Diffs
    allowed_drift: tuple[str, ...]

    @property
    def forbidden_drift(self) -> Diffs:
        return {
            key: values
            for key, values in self.diffs.items()
            if not any(key == name or key.startswith(f"{name}.") for name in self.allowed_drift)
        }

    @property
    def passed(self) -> bool:
        return not self.forbidden_drift

    def to_dict(self) -> dict[str, object]:
        return {
            "runs": list(self.runs),
            "manifest_hashes": dict(self.manifest_hashes),
            "diffs": self.diffs,
            "allowed_drift": list(self.allowed_drift),
            "forbidden_drift": self.forbidden_drift,
            "pass": self.passed,
        }


def audit_runs(storage: ExperimentStorage, run_ids: Sequence[str], allow: Iterable[str] = ()) -> Audit:
    """Audits one run for itself, or two against each other.

    Args:
        storage: The store that has them.
        run_ids: One id or two.
        allow: Keys that may differ; a section's name allows all keys in it.

    Raises:
        ConfigurationError: Not one or two different runs, or a key that no manifest has.
        StorageError: A run has no manifest, or one that was changed after it.
    """
    if not 1 <= len(run_ids) <= 2:
        raise ConfigurationError(f"an audit is of one run or of two, got {len(run_ids)}")
    if len(set(run_ids)) < len(run_ids):
        raise ConfigurationError(f"run {run_ids[0]!r} is given twice; a run does not differ from itself")
    manifests = {run_id: load_manifest(storage, run_id) for run_id in run_ids}
    diffs = diff_science(*manifests.values()) if len(run_ids) == 2 else {}
    allowed = tuple(sorted(set(allow)))
    for key in allowed:
        _check_known(key, manifests.values())
    hashes = {run_id: manifest_hash(manifest) for run_id, manifest in manifests.items()}
    return Audit(tuple(run_ids), hashes, diffs, allowed)


def load_manifest(storage: ExperimentStorage, run_id: str) -> dict[str, Any]:
    """The manifest of a run: complete, and the one that its hash was made of."""
    snapshot = storage.get_run(run_id).config_snapshot
    manifest = snapshot.get("reproducibility_manifest")
    if not isinstance(manifest, dict):
        raise StorageError(f"run {run_id!r} has no reproducibility manifest: its dataset was never stored completely")
    validate_reproducibility_manifest(manifest)
    stamp = snapshot.get("manifest_hash")
    if stamp is not None and stamp != manifest_hash(manifest):
        raise StorageError(
            f"the manifest of run {run_id!r} does not match its stored hash {stamp[:12]}…: it was changed after the run"
        )
    return manifest


def diff_science(one: Mapping[str, object], other: Mapping[str, object]) -> Diffs:
    """Dotted key -> both values, for what can change results: the scientific keys, provider options, metric parameters."""
    diffs = diff_manifests(one, other, (*SCIENTIFIC_KEYS, "evaluation.fingerprint"))
    mine, theirs = _deciding_options(one), _deciding_options(other)
    for name in sorted({*mine, *theirs}):
        if mine.get(name) != theirs.get(name):
            diffs[f"model.provider_options.{name}"] = {"a": mine.get(name), "b": theirs.get(name)}
    # The seed is an option of the provider too, and is named once.
    diffs.pop("model.provider_options.seed", None)
    return diffs


def diff_everything(one: Mapping[str, object], other: Mapping[str, object]) -> Diffs:
    """The same for every value of the manifests: also versions, platform and transport."""
    return diff_manifests(one, other, tuple(flatten_manifest(one) | flatten_manifest(other)))


def _deciding_options(manifest: Mapping[str, Any]) -> dict[str, object]:
    """The provider options that decide what comes back, without those that only say how a call travels."""
    model = manifest["model"]
    identity = call_identity(
        provider=model["provider"],
        model=model["identifier"],
        options=model["provider_options"],
        sampling=SamplingConfig(),
        seed=None,
    )
    options: dict[str, object] = decode(identity["provider_options"]) if identity["provider_options"] else {}
    return options


def flatten_manifest(value: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Dotted key -> value."""
    found: dict[str, object] = {}
    for key, item in value.items():
        found |= (
            flatten_manifest(item, f"{prefix}{key}.") if isinstance(item, Mapping) and item else {prefix + key: item}
        )
    return found


def _check_known(key: str, manifests: Iterable[Mapping[str, object]]) -> None:
    """A misspelt key would allow nothing and say nothing."""
    leaves = {*SCIENTIFIC_KEYS, *(leaf for manifest in manifests for leaf in flatten_manifest(manifest))}
    known = {".".join(leaf.split(".")[:depth]) for leaf in leaves for depth in range(1, leaf.count(".") + 2)}
    if key not in known:
        sections = sorted(name for name in known if "." not in name)
        raise ConfigurationError(
            f"unknown manifest key {key!r}{nearest(key, known)}; its sections are {', '.join(sections)}"
        )


# --- why a stored answer is, or is not, used for a sample ---------------------------------------------------------------

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
    candidates = [other] if other is not None else [run.run_id for run in storage.list_runs(limit=_LOOKED_AT)]
    found: list[tuple[str | None, dict[str, tuple[str, str]]]] = []
    for candidate in candidates:
        theirs = None if candidate == run_id else _inputs(storage, candidate, item_id)
        if theirs is not None:
            differing = (name for name in mine if name != "key" and mine[name] != theirs[name])
            found.append((candidate, {name: (mine[name], theirs[name]) for name in differing}))
    nearest_run, differences = min(found, key=lambda one: len(one[1]), default=(None, {}))
    return CacheExplanation(run_id, item_id, mine["key"], nearest_run, differences)


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
