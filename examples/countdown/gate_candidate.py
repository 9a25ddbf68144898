"""Part 5: the quality gate. Exits 0 only if the candidate is not worse than the baseline on the same terms."""

from __future__ import annotations

from common import BASELINE_RUN, CANDIDATE_RUN, DEFAULT_STORAGE

from themis.comparison import StatisticalTest, compare_runs
from themis.exceptions import ThemisError
from themis.experiment.manifest import diff_manifests
from themis.storage import ExperimentStorage

MIN_DELTA = 0.0
# What a candidate may change. Another model or other puzzles would make the comparison one of apples with pears.
MAY_DIFFER = {"prompt.template_hash", "seeds.provider_seed", "git_commit_hash"}

storage = ExperimentStorage(DEFAULT_STORAGE)
try:
    manifests = [
        storage.get_run(run_id).config_snapshot["reproducibility_manifest"] for run_id in (BASELINE_RUN, CANDIDATE_RUN)
    ]
    comparison = compare_runs(
        [BASELINE_RUN, CANDIDATE_RUN],
        storage_path=DEFAULT_STORAGE,
        metrics=["CountdownValidity"],
        statistical_test=StatisticalTest.BOOTSTRAP,
    )
except ThemisError as error:
    raise SystemExit(f"gate failed: {error} (examples/countdown/run_part5_pipeline.sh makes the runs)") from error

row = comparison.pairwise_results[0]
delta = row.run_b_mean - row.run_a_mean
print("baseline_mean", row.run_a_mean)
print("candidate_mean", row.run_b_mean)
print("candidate_delta", delta)
if different := sorted(set(diff_manifests(*manifests)) - MAY_DIFFER):
    raise SystemExit(f"gate failed: the runs also differ in {', '.join(different)}")
if not delta >= MIN_DELTA:
    raise SystemExit("gate failed: the candidate is worse than the baseline")
print("gate pass")
