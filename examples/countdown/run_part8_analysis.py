"""Part 8: baseline and candidate, each several times over: tests, an interval, and where they disagree."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from statistics import mean, pstdev

from common import BASELINE_PROMPT, CANDIDATE_PROMPT, DEFAULT_STORAGE, count_from_environment, make_spec, run_spec

from themis.comparison import ComparisonEngine, StatisticalTest
from themis.storage import ExperimentStorage

METRIC = "CountdownValidity"

limit = count_from_environment("COUNTDOWN_LIMIT", 4)
repeats = count_from_environment("COUNTDOWN_REPEATS", 1)


def score_by_sample(storage: ExperimentStorage, run_id: str) -> dict[str, float]:
    """Item id -> score; the mean where an item has several."""
    found = defaultdict(list)
    for record in storage.load_cached_evaluations(run_id).values():
        for score in record.scores:
            if score.metric_name == METRIC:
                found[record.sample_id].append(score.value)
    return {sample_id: mean(values) for sample_id, values in found.items()}


spec = make_spec(run_id="", prompt=BASELINE_PROMPT, dataset_limit=limit)
run_ids = []
for repeat in range(1, repeats + 1):
    for variant, prompt in (("baseline", BASELINE_PROMPT), ("candidate", CANDIDATE_PROMPT)):
        run_ids.append(f"countdown-part8-{variant}-r{repeat}-script")
        # A repetition that took another one's answers would repeat nothing.
        run_spec(replace(spec, run_id=run_ids[-1], prompt=prompt), max_retries=2, redraw=True)

tested = ComparisonEngine(storage_path=DEFAULT_STORAGE, statistical_test=StatisticalTest.T_TEST).compare_runs(
    run_ids, metrics=[METRIC]
)
for row in tested.pairwise_results[:2]:
    p_raw = row.test_result.p_value if row.test_result else None
    print("t_test", row.run_a_id, row.run_b_id, row.delta, p_raw, row.corrected_p_value)

resampled = ComparisonEngine(
    storage_path=DEFAULT_STORAGE, statistical_test=StatisticalTest.BOOTSTRAP, n_bootstrap=2000
).compare_runs(run_ids[:2], metrics=[METRIC])
result = resampled.pairwise_results[0].test_result
print("bootstrap_mode", result.inference_mode if result else None)
print("bootstrap_ci", result.confidence_interval if result else None)

store = ExperimentStorage(DEFAULT_STORAGE)
one, other = score_by_sample(store, run_ids[0]), score_by_sample(store, run_ids[1])
common_ids = sorted(one.keys() & other.keys())
deltas = [one[sample_id] - other[sample_id] for sample_id in common_ids]
print("n_common", len(common_ids))
print("mean_delta", mean(deltas) if deltas else 0.0)
print("delta_std", pstdev(deltas) if deltas else 0.0)
print("hard_disagreement_rate", sum(abs(delta) >= 1 for delta in deltas) / len(deltas) if deltas else 0.0)
print("dataset_limit", limit)
print("repeats", repeats)
