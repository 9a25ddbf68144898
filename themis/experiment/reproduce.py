"""The command that made a run, made again from what the store knows, and what has changed around it since.

Computes only; `themis reproduce` prints or performs it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from themis.config.specification import SampleSpecification, Specification, load_specification
from themis.core.codec import encode
from themis.core.files import atomic_write
from themis.evaluation.extractors import EXTRACTORS
from themis.evaluation.metrics import METRICS
from themis.experiment.audit import diff_everything, load_manifest
from themis.experiment.datasets import is_row_file
from themis.generation.providers import PROVIDERS
from themis.presets.pipes import STANDARD_INPUT
from themis.runs.manifest import build_reproducibility_manifest
from themis.storage import ExperimentStorage, RunMetadata

_HIDDEN = "is a secret and not stored; set it in the environment, or give it again as ${NAME}, the name of a variable"


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """How to make a run again, under an id of its own.

    `specification` asks for it, `command` are the words behind `themis` that do. With `rows_file` the stored rows must be written
    there first. `obstacles` say
    what of the run was made in Python, which no command line can repeat; `environment` what differs from then.
    """

    run_id: str
    new_run_id: str
    specification: Specification
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
    # An archived version is called `id@n`, which no new run may be.
    new_run_id = new_run_id or run_id.replace("@", "-") + "-again"
    asked = replace(load_specification(run), run_id=new_run_id)
    obstacles: list[str] = []
    remarks = [f"the option {name!r} {_HIDDEN}" for name in asked.secret_options]
    stored_rows: str | None = None
    if isinstance(asked, SampleSpecification):
        obstacles = _find_obstacles(asked, storage.reader(run_id).frame.model.provider)
        asked, remark, stored_rows = _name_dataset(asked, storage, run, rows_file or f"{run_id}.rows.jsonl")
        remarks += remark
    return Reproduction(
        run_id=run_id,
        new_run_id=new_run_id,
        specification=asked,
        command=(*asked.command(), "--run-id", new_run_id),
        rows_file=stored_rows,
        obstacles=tuple(obstacles),
        remarks=tuple(remarks),
        environment=_changed_environment(manifest),
    )


def write_rows(storage: ExperimentStorage, run_id: str, path: str | Path) -> int:
    """Writes the rows of a run as JSON lines and returns their number."""
    count = 0
    with atomic_write(path) as file:
        for row in storage.load_dataset(run_id):
            file.write(encode(row).encode() + b"\n")
            count += 1
    return count


def _find_obstacles(asked: SampleSpecification, provider: str) -> list[str]:
    """What of a run was made by a program, which no command can repeat."""
    found = [f"its {name} was made in Python" for name in asked.made_in_python]
    found += [f"the file {path!r} that it was made with is not here" for path in asked.load if not Path(path).is_file()]
    if asked.load:
        return found  # whatever is not known here is registered by these files, which the command names
    if provider not in PROVIDERS:
        found.append(f"the provider {provider!r} is registered by your program")
    for kind, names, registry in (
        ("metric", asked.metrics or (), METRICS),
        ("extractor", [asked.extractor] if asked.extractor is not None else (), EXTRACTORS),
    ):
        found += [
            f"the {kind} {name!r} is registered by your program"
            for name in names
            if str(name).partition("(")[0] not in registry
        ]
    return found


def _name_dataset(
    asked: SampleSpecification, storage: ExperimentStorage, run: RunMetadata, rows_file: str
) -> tuple[SampleSpecification, list[str], str | None]:
    """A benchmark by its name, a file by its path, and rows from Python by a file of what the store has."""
    if run.benchmark is not None:
        remark = "the benchmark's rows are loaded again; an audit of both runs tells whether they changed"
        return replace(asked, dataset=run.benchmark), [remark], None
    frame = storage.reader(run.run_id).frame
    asked = replace(
        asked,
        prompt=frame.prompt.template,
        dataset_id_field=frame.id_field,
        reference_field=frame.reference_field or "",
    )
    given = asked.dataset
    if isinstance(given, str) and is_row_file(given) and Path(given).is_file():
        return asked, [], None
    where = f"the file {given!r}, which is gone" if isinstance(given, str) else "Python"
    if given == STANDARD_INPUT:
        where = "standard input"
    # The stored rows are those within the limit already.
    stored = replace(asked, dataset=rows_file, limit=None)
    return stored, [f"the rows came from {where}; the store has them"], rows_file


def _changed_environment(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Versions, commit and platform that are not as they were: key -> then and now."""
    now = build_reproducibility_manifest(
        model="", provider="", provider_options={}, sampling=manifest["sampling"], num_samples=1, evaluation_config={}
    )
    parts = ("package_versions", "git_commit_hash", "runtime")
    then = {part: manifest[part] for part in parts if part in manifest}
    changed = diff_everything(then, {part: now[part] for part in parts})
    return {key: {"then": values["a"], "now": values["b"]} for key, values in changed.items()}
