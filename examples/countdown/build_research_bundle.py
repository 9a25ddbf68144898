"""Part 5: the candidate's report as files, and an index that a program can read."""

from __future__ import annotations

import json
from pathlib import Path

from common import BASELINE_RUN, CANDIDATE_PROMPT, CANDIDATE_RUN, DEFAULT_STORAGE, make_spec, run_spec

from themis.comparison import StatisticalTest, compare_runs
from themis.exceptions import ThemisError
from themis.experiment import export

BUNDLE = Path("outputs/countdown_bundle_v1")

# Every answer is in the store already: nothing is asked again.
report = run_spec(make_spec(run_id=CANDIDATE_RUN, prompt=CANDIDATE_PROMPT, dataset_limit=50, provider_seed=42))
artifacts = export.export_report_bundle(
    report,
    csv_path=BUNDLE / "report.csv",
    json_path=BUNDLE / "report.json",
    html_path=BUNDLE / "report.html",
    summary_path=BUNDLE / "summary.json",
    run_id=CANDIDATE_RUN,
)
try:
    comparison = compare_runs(
        [BASELINE_RUN, CANDIDATE_RUN],
        storage_path=DEFAULT_STORAGE,
        metrics=["CountdownValidity"],
        statistical_test=StatisticalTest.BOOTSTRAP,
    )
except ThemisError as error:
    raise SystemExit(f"{error} (examples/countdown/run_part5_pipeline.sh makes the runs)") from error
row = comparison.pairwise_results[0]
index = {
    "baseline_run_id": BASELINE_RUN,
    "candidate_run_id": CANDIDATE_RUN,
    "metric": "CountdownValidity",
    "baseline_mean": row.run_a_mean,
    "candidate_mean": row.run_b_mean,
    "candidate_delta": row.run_b_mean - row.run_a_mean,
    "significant": row.is_significant() if row.test_result else None,
    "p_value": row.test_result.p_value if row.test_result else None,
    "manifest_hash": report.metadata["manifest_hash"],
    "artifacts": {name: str(path) for name, path in artifacts.items()},
}
index_file = BUNDLE / "index.json"
index_file.write_text(json.dumps(index, indent=2), encoding="utf-8")
print("bundle_index", index_file)
