"""Page and scripts of the tutorial in one folder, in any order and as often as one likes: neither meets the other's runs."""

from __future__ import annotations

from pathlib import Path

from tests.contract.countdown import PAGE, working_copy
from tests.contract.following import follow_page, free_ports
from themis.storage import ExperimentStorage, RetentionPolicy

ENDPOINT = "python examples/countdown/solver_endpoint.py --port 1234"
SCRIPTS = [
    "python examples/countdown/countdown_tutorial_run.py",
    "bash examples/countdown/run_part5_pipeline.sh",
    "python examples/countdown/run_countdown_part6_backends.py",
    "bash examples/countdown/run_part7_pipeline.sh",
    "bash examples/countdown/run_part8_pipeline.sh",
    "bash examples/countdown/run_part9_pipeline.sh",
]


def test_scripts_then_page_then_other_scripts_then_the_page_again(tmp_path: Path):
    root, ports = working_copy(tmp_path), free_ports(2)
    # Nothing is forgiven: a run that is met with other inputs is an error.
    strict = root / "page.md"
    strict.write_text(PAGE.read_text(encoding="utf-8").replace("allow_drift=True,", "allow_drift=False,"))
    with_solver = [f"COUNTDOWN_MODEL=solver {command}" for command in SCRIPTS]
    with_more = [f"COUNTDOWN_LIMIT=9 COUNTDOWN_REPEATS=2 {command}" for command in SCRIPTS]

    first = follow_page(strict, root, beside=ENDPOINT, first=with_solver, ports=ports)
    again = follow_page(strict, root, beside=ENDPOINT, first=with_more, ports=ports)

    for steps in (first, again):
        assert {step.text[:80]: step.problem for step in steps if step.problem} == {}
    assert sum(step.calls for step in first if step.language == "python") > 600
    assert sum(step.calls for step in again if step.language == "python") == 0
    assert retention_removes_no_run_of_the_page(root)


def retention_removes_no_run_of_the_page(root: Path) -> bool:
    storage = ExperimentStorage(root / ".cache" / "experiments")
    policy = RetentionPolicy(max_runs_per_experiment=20, max_age_days=14, keep_completed_only=True, keep_latest_n=5)
    return storage.apply_retention_policy(policy, experiment="default", dry_run=True) == []
