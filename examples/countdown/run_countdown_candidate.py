"""Part 5: the run that wants to take the baseline's place; the prompt is another, and a seed is set."""

from __future__ import annotations

from common import CANDIDATE_PROMPT, CANDIDATE_RUN, make_spec, run_spec

report = run_spec(make_spec(run_id=CANDIDATE_RUN, prompt=CANDIDATE_PROMPT, dataset_limit=50, provider_seed=42))

print(f"run_id={report.metadata['run_id']}")
print(f"countdown_validity_mean={report.metric('CountdownValidity').mean:.4f}")
