"""Part 9: the provenance gate. Exits 1 if the runs differ in anything that was not allowed to, and writes why."""

from __future__ import annotations

import json
from pathlib import Path

OUTPUTS = Path("outputs/countdown_part9")
ALLOWED_DRIFT = {"prompt.template_hash", "git_commit_hash"}

source = OUTPUTS / "manifest_diff.json"
if not source.exists():
    raise SystemExit(f"no {source}: run examples/countdown/diff_manifests.py first")
found = json.loads(source.read_text(encoding="utf-8"))
forbidden = {key: change for key, change in found["diffs"].items() if key not in ALLOWED_DRIFT}

audit = OUTPUTS / "reproducibility_audit.json"
audit.write_text(
    json.dumps(
        {
            "runs": [found["run_a"], found["run_b"]],
            "allowed_drift": sorted(ALLOWED_DRIFT),
            "diffs": found["diffs"],
            "forbidden_drift": forbidden,
            "pass": not forbidden,
        },
        indent=2,
    ),
    encoding="utf-8",
)
print("forbidden_count", len(forbidden))
print("reproducibility_audit", audit)
if forbidden:
    raise SystemExit(f"gate failed: forbidden drift in {', '.join(sorted(forbidden))}")
print("gate pass")
