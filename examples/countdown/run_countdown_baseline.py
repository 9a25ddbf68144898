"""Part 5: the run that a candidate must not fall behind."""

from __future__ import annotations

from common import BASELINE_PROMPT, BASELINE_RUN, make_spec, run_spec

report = run_spec(make_spec(run_id=BASELINE_RUN, prompt=BASELINE_PROMPT, dataset_limit=50))

print(f"run_id={report.metadata['run_id']}")
print(f"countdown_validity_mean={report.metric('CountdownValidity').mean:.4f}")
