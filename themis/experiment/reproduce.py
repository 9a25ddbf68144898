"""The command that made a run, made again from what the store knows, and what has changed around it since.

Computes only; `themis reproduce` prints or performs it.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from themis.core.codec import encode
from themis.core.redaction import REDACTED
from themis.core.words import write_word
from themis.evaluation.extractors import EXTRACTORS
from themis.evaluation.metrics import METRICS
from themis.exceptions import ConfigurationError
from themis.experiment.audit import diff_everything, load_manifest
from themis.experiment.manifest import build_reproducibility_manifest
from themis.generation.providers import PROVIDERS
from themis.storage import ExperimentStorage, RunMetadata
from themis.storage.records import Frame

__all__ = ["Reproduction", "reproduction", "write_rows"]

_HIDDEN = "is a secret and not stored; set it in the environment, or give it again as ${NAME}, the name of a variable"
_ROW_FILES = (".jsonl", ".json", ".csv", ".parquet")
# How rows are judged when nobody says otherwise.
_DEFAULT_METRICS = ["themis.evaluation.metrics.text.ExactMatch:ExactMatch"]
# Under the names that stored runs know it by.
_DEFAULT_EXTRACTORS = (
    "themis.evaluation.extractors.text.IdentityExtractor",
    "themis.evaluation.extractors.identity.IdentityExtractor",
)
# Argument of `evaluate` -> option of `themis eval`, and the value that need not be said because it only steers the calls.
_OPTIONS: dict[str, tuple[str, Any]] = {
    "temperature": ("--temperature", None),
    "top_p": ("--top-p", None),
    "max_tokens": ("--max-tokens", None),
    "num_samples": ("--num-samples", 1),
    "seed": ("--seed", None),
    "reducer": ("--reducer", None),
    "cluster_field": ("--cluster-field", None),
    "workers": ("--workers", 4),
    "max_retries": ("--max-retries", 3),
    "timeout_seconds": ("--timeout", 600.0),
    "deadline_seconds": ("--deadline", 1800.0),
    "budget_usd": ("--budget-usd", None),
}


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """How to make a run again, under an id of its own.

    `command` are the words behind `themis`. With `rows_file` the stored rows must be written there first. `obstacles` say
    what of the run was made in Python, which no command line can repeat; `environment` what differs from then.
    """

    run_id: str
    new_run_id: str
    command: tuple[str, ...]
    rows_file: str | None
    obstacles: tuple[str, ...]
    remarks: tuple[str, ...]
    environment: dict[str, dict[str, Any]]

    @property
    def shell(self) -> str:
        return f"themis {shlex.join(self.command)}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "new_run_id": self.new_run_id,
            "command": ["themis", *self.command],
            "rows_file": self.rows_file,
            "obstacles": list(self.obstacles),
            "remarks": list(self.remarks),
            "environment": self.environment,
        }


def reproduction(
    storage: ExperimentStorage, run_id: str, *, new_run_id: str | None = None, rows_file: str | None = None
) -> Reproduction:
    """What to do to make a stored run again; `rows_file` is where its rows go if the store alone has them."""
    run = storage.get_run(run_id)
    manifest = load_manifest(storage, run_id)
    invocation: Mapping[str, Any] = run.config_snapshot.get("invocation") or {}
    # An earlier generation is called `id@n`, which no new run may be.
    new_run_id = new_run_id or run_id.replace("@", "-") + "-again"
    given = invocation.get("command")
    if given is not None:
        described = _Described(words=[*map(str, given), "--run-id", new_run_id])
        for name in invocation.get("secret_options", ()):
            described.remarks.append(f"the option {name!r} {_HIDDEN}")
    elif run.kind == "samples" and "model" in invocation:
        frame = storage.reader(run_id).frame
        described = _describe(run, frame, invocation, manifest, rows_file or f"{run_id}.rows.jsonl")
        described.words += ["--run-id", new_run_id]
    else:
        raise ConfigurationError(
            f"run {run_id!r} of kind {run.kind!r} does not say how it was made; run the program that made it again"
        )
    return Reproduction(
        run_id=run_id,
        new_run_id=new_run_id,
        command=tuple(described.words),
        rows_file=described.rows_file,
        obstacles=tuple(described.obstacles),
        remarks=tuple(described.remarks),
        environment=_changed_environment(manifest),
    )


def write_rows(storage: ExperimentStorage, run_id: str, path: str | Path) -> int:
    """Writes the rows of a run as JSON lines and returns their number."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    count = 0
    try:
        with partial.open("w", encoding="utf-8") as handle:
            for row in storage.load_dataset(run_id):
                handle.write(encode(row) + "\n")
                count += 1
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return count


class _Described:
    """A command line in the making, with what cannot be put into it."""

    def __init__(self, words: list[str] | None = None) -> None:
        self.words = words or []
        self.rows_file: str | None = None
        self.obstacles: list[str] = []
        self.remarks: list[str] = []


def _describe(
    run: RunMetadata, frame: Frame, invocation: Mapping[str, Any], manifest: Mapping[str, Any], rows_file: str
) -> _Described:
    found = _Described(["eval"])
    is_benchmark = run.benchmark is not None
    _say_dataset(found, run, invocation, rows_file)
    found.words += ["--model", str(invocation["model"])]
    if frame.model.provider not in PROVIDERS:
        found.obstacles.append(f"the provider {frame.model.provider!r} is registered by your program")
    if not is_benchmark:
        found.words += ["--prompt", frame.prompt.template, "--id-field", frame.id_field]
        found.words += ["--reference-field", frame.reference_field or ""]
    elif "prompt" in invocation:
        found.words += ["--prompt", str(invocation["prompt"])]
    _say_judging(found, invocation, manifest["evaluation"], is_benchmark=is_benchmark)
    for name, (option, silent) in _OPTIONS.items():
        value = invocation.get(name)
        if value is not None and value != silent:
            found.words += [option, str(value)]
    _say_provider_options(found, invocation)
    for name, value in run.tags.items():
        found.words += ["--tag", f"{name}={value}"]
    return found


def _say_dataset(found: _Described, run: RunMetadata, invocation: Mapping[str, Any], rows_file: str) -> None:
    """A benchmark by its name, a file by its path, and rows from Python by a file of what the store has."""
    dataset = invocation.get("dataset")
    if run.benchmark is not None:
        found.words.append(run.benchmark)
        found.remarks.append("the benchmark's rows are loaded again; an audit of both runs tells whether they changed")
    elif isinstance(dataset, str) and dataset.lower().endswith(_ROW_FILES) and Path(dataset).is_file():
        found.words.append(dataset)
    else:
        found.rows_file = rows_file
        found.words.append(rows_file)
        where = f"the file {dataset!r}, which is gone" if isinstance(dataset, str) else "Python"
        found.remarks.append(f"the rows came from {where}; the store has them")
        return
    if invocation.get("limit") is not None:
        found.words += ["--limit", str(invocation["limit"])]


def _say_judging(
    found: _Described, invocation: Mapping[str, Any], evaluation: Mapping[str, Any], *, is_benchmark: bool
) -> None:
    if invocation.get("custom_pipeline"):
        found.obstacles.append("it was judged by an evaluation pipeline made in Python")
        return
    metrics, extractor = invocation.get("metrics"), invocation.get("extractor")
    for name in metrics or ():
        found.words += ["--metric", name]
        if name not in METRICS:
            found.obstacles.append(f"the metric {name!r} is registered by your program")
    if metrics is None and not is_benchmark and evaluation["metrics"] != _DEFAULT_METRICS:
        found.obstacles.append(f"its metrics were made in Python: {', '.join(evaluation['metrics'])}")
    if extractor is not None:
        found.words += ["--extractor", extractor]
        if extractor not in EXTRACTORS:
            found.obstacles.append(f"the extractor {extractor!r} is registered by your program")
    elif not is_benchmark and evaluation["extractor"] not in _DEFAULT_EXTRACTORS:
        found.obstacles.append(f"its extractor was made in Python: {evaluation['extractor']}")


def _say_provider_options(found: _Described, invocation: Mapping[str, Any]) -> None:
    for name, value in (invocation.get("provider_options") or {}).items():
        if REDACTED in json.dumps(value):
            found.remarks.append(f"the provider option {name!r} {_HIDDEN}")
        elif name != "seed" or value != invocation.get("seed"):
            found.words += ["--option", f"{name}={write_word(value)}"]


def _changed_environment(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Versions, commit and platform that are not as they were: key -> then and now."""
    now = build_reproducibility_manifest(
        model="", provider="", provider_options={}, sampling=manifest["sampling"], num_samples=1, evaluation_config={}
    )
    parts = ("package_versions", "git_commit_hash", "runtime")
    then = {part: manifest[part] for part in parts if part in manifest}
    changed = diff_everything(then, {part: now[part] for part in parts})
    return {key: {"then": values["a"], "now": values["b"]} for key, values in changed.items()}
