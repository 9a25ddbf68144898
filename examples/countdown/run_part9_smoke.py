"""Part 9: two short runs over the same puzzles whose manifests are then compared; only their prompts differ."""

from __future__ import annotations

from dataclasses import replace

from common import BASELINE_PROMPT, CANDIDATE_PROMPT, SMOKE_RUNS, make_spec, run_spec

first, second = SMOKE_RUNS
baseline = make_spec(run_id=first, prompt=BASELINE_PROMPT, dataset_limit=6)
for spec in (baseline, replace(baseline, run_id=second, prompt=CANDIDATE_PROMPT)):
    report = run_spec(spec)
    print(f"run_id={report.metadata['run_id']}")
