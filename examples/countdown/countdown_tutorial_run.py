"""Part 1: twenty puzzles, one prompt, one number."""

from __future__ import annotations

from common import BASELINE_PROMPT, make_spec, run_spec

report = run_spec(make_spec(run_id="countdown-localchat-run-script", prompt=BASELINE_PROMPT, dataset_limit=20))

print(f"run_id={report.metadata['run_id']}")
print(f"solve_rate={report.metric('CountdownValidity').mean:.4f}")
