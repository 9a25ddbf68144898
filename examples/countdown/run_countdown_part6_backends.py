"""Part 6: the same evaluation with its execution and its storage given as objects, then a bundle of files."""

from __future__ import annotations

from pathlib import Path

from common import BASELINE_PROMPT, DEFAULT_STORAGE, make_spec, run_spec

from themis.backends.execution import LocalExecutionBackend
from themis.backends.storage import LocalFileStorageBackend
from themis.experiment import export

BUNDLE = Path("outputs/countdown_part6")

spec = make_spec(run_id="countdown-part6-backends-script", prompt=BASELINE_PROMPT, dataset_limit=30)
with LocalExecutionBackend(max_workers=2) as execution:
    report = run_spec(
        spec, workers=2, execution_backend=execution, storage_backend=LocalFileStorageBackend(DEFAULT_STORAGE)
    )
artifacts = export.export_report_bundle(
    report,
    csv_path=BUNDLE / "report.csv",
    json_path=BUNDLE / "report.json",
    html_path=BUNDLE / "report.html",
    summary_path=BUNDLE / "summary.json",
    run_id=spec.run_id,
)

print(f"run_id={report.metadata['run_id']}")
print(f"countdown_validity_mean={report.metric('CountdownValidity').mean:.4f}")
print("bundle_json", artifacts["json"])
