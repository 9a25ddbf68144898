"""Part 9: the manifests of the two smoke runs in one file. Exits 1 if a run or its manifest is missing."""

from __future__ import annotations

import json
from pathlib import Path

from common import DEFAULT_STORAGE, SMOKE_RUNS

from themis.exceptions import ThemisError
from themis.experiment.manifest import manifest_hash, validate_reproducibility_manifest
from themis.storage import ExperimentStorage

INDEX = Path("outputs/countdown_part9/manifest_index.json")

storage = ExperimentStorage(DEFAULT_STORAGE)
runs = {}
for run_id in SMOKE_RUNS:
    try:
        run = storage.get_run(run_id)
        manifest = run.config_snapshot.get("reproducibility_manifest", {})
        validate_reproducibility_manifest(manifest)
    except ThemisError as error:
        raise SystemExit(f"{error} (examples/countdown/run_part9_smoke.py makes the runs)") from error
    runs[run_id] = {"manifest": manifest, "manifest_hash": manifest_hash(manifest), "status": run.status.value}

INDEX.parent.mkdir(parents=True, exist_ok=True)
INDEX.write_text(json.dumps({"runs": runs}, indent=2), encoding="utf-8")
print("manifest_index", INDEX)
