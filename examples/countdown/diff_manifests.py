"""Part 9: in which scientific dimensions the two manifests of the index differ. Exits 1 without an index."""

from __future__ import annotations

import json
from pathlib import Path

from common import SMOKE_RUNS

from themis.experiment.manifest import diff_manifests

OUTPUTS = Path("outputs/countdown_part9")

index = OUTPUTS / "manifest_index.json"
if not index.exists():
    raise SystemExit(f"no {index}: run examples/countdown/build_manifest_index.py first")
runs = json.loads(index.read_text(encoding="utf-8"))["runs"]
run_a, run_b = SMOKE_RUNS
diffs = diff_manifests(runs[run_a]["manifest"], runs[run_b]["manifest"])

target = OUTPUTS / "manifest_diff.json"
target.write_text(json.dumps({"run_a": run_a, "run_b": run_b, "diffs": diffs}, indent=2), encoding="utf-8")
print("diff_count", len(diffs))
print("manifest_diff", target)
