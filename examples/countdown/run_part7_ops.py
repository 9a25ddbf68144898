"""Part 7: a run that is watched while it goes on and keeps little in memory; then a look at the store, and some tidying."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from common import BASELINE_PROMPT, DEFAULT_STORAGE, count_from_environment, make_spec, run_spec

from themis.core.entities import GenerationRecord
from themis.storage import ExperimentStorage, RetentionPolicy

RUN_ID = "countdown-part7-ops-script"
EVENTS = Path("outputs/countdown_part7/events.jsonl")

limit = count_from_environment("COUNTDOWN_LIMIT", 6)
spec = make_spec(run_id=RUN_ID, prompt=BASELINE_PROMPT, dataset_limit=limit, max_records_in_memory=20)
EVENTS.parent.mkdir(parents=True, exist_ok=True)
with EVENTS.open("w", encoding="utf-8") as events:

    def on_result(record: GenerationRecord) -> None:
        event = {
            "sample_id": record.task.metadata.get("dataset_id"),
            "has_error": record.error is not None,
            "error_kind": record.error.kind if record.error else None,
            "attempt_count": len(record.attempts),
            "output_preview": record.output.text[:120] if record.output else None,
        }
        events.write(json.dumps(event) + "\n")
        events.flush()  # whoever follows the file sees each sample as it is done

    report = run_spec(replace(spec, timeout_seconds=20.0), max_retries=1, on_result=on_result)

storage = ExperimentStorage(DEFAULT_STORAGE)
policy = RetentionPolicy(max_runs_per_experiment=20, max_age_days=14, keep_completed_only=True, keep_latest_n=5)
integrity = storage.validate_integrity(RUN_ID)

print("retained_generation_records", len(report.generation_results))
print("dropped_generation_records", report.metadata["generation_records_dropped"])
print("integrity_valid", integrity["valid"])
print("integrity_warnings", integrity["warnings"])
print("cached_generation_records", len(storage.load_cached_records(RUN_ID)))
print("cached_evaluation_records", len(storage.load_cached_evaluations(RUN_ID)))
print("events_file", EVENTS)
print("dataset_limit", limit)
print("retention_removed", storage.apply_retention_policy(policy))
print("retention_applied", True)
