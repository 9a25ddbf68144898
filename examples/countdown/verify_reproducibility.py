"""Part 5: whether the candidate's manifest says what made it. Exits 1 if something is missing."""

from __future__ import annotations

from common import CANDIDATE_RUN, DEFAULT_STORAGE

from themis.exceptions import ThemisError
from themis.experiment.manifest import validate_reproducibility_manifest
from themis.storage import ExperimentStorage

try:
    snapshot = ExperimentStorage(DEFAULT_STORAGE).get_run(CANDIDATE_RUN).config_snapshot
    manifest = snapshot.get("reproducibility_manifest", {})
    validate_reproducibility_manifest(manifest)
except ThemisError as error:
    raise SystemExit(
        f"not reproducible: {error} (examples/countdown/run_countdown_candidate.py makes the run)"
    ) from error

facts = {
    "manifest_hash": snapshot.get("manifest_hash"),
    "dataset_fingerprint": manifest.get("dataset", {}).get("fingerprint"),
    "prompt_hash": manifest.get("prompt", {}).get("template_hash"),
}
print("run_id", CANDIDATE_RUN)
for name, value in facts.items():
    print(name, value)
if missing := [name for name, value in facts.items() if not value]:
    raise SystemExit(f"not reproducible: the manifest has no {', '.join(missing)}")
