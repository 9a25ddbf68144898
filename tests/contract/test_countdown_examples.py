"""The tutorial's scripts in a fresh folder without internet or endpoint: they run, say what they used, and gates close."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.countdown import EXAMPLES, NOWHERE, offline_environment, run, script, working_copy
from themis.evaluation.metrics.countdown import CountdownValidity
from themis.presets.countdown import generate_puzzles
from themis.storage import ExperimentStorage

GENERATED = {"COUNTDOWN_DATA": "generated"}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return working_copy(tmp_path)


# --- the pipelines --------------------------------------------------------------------------------------------------


def test_part_5_gates_and_bundles(clone: Path):
    done = run(clone, "bash", "examples/countdown/run_part5_pipeline.sh", **GENERATED)

    assert done.returncode == 0, done.stderr
    assert steps_of(done) == ["baseline", "candidate", "reproducibility", "quality gate", "research bundle", "done"]
    said = facts(done)
    assert said["candidate_delta"] > "0"
    assert "gate pass" in done.stdout
    bundle = clone / "outputs" / "countdown_bundle_v1"
    assert said["bundle_index"] == "outputs/countdown_bundle_v1/index.json"
    assert sorted(path.name for path in bundle.iterdir()) == [
        *("index.json", "report.csv", "report.html", "report.json", "summary.json"),
    ]
    assert json.loads((bundle / "index.json").read_text())["manifest_hash"] == said["manifest_hash"]


def test_part_7_watches_six_puzzles_and_says_what_stands_in_for_hub_and_endpoint(clone: Path):
    done = run(clone, "bash", "examples/countdown/run_part7_pipeline.sh")

    assert done.returncode == 0, done.stderr
    assert steps_of(done) == ["a watched run of 6 puzzles", "done"]
    assert f"nothing answers at {NOWHERE}/api/v1/chat, so a solver that errs on purpose stands in" in done.stderr
    assert "6 puzzles made by themis.presets.countdown" in done.stderr
    assert len((clone / "outputs" / "countdown_part7" / "events.jsonl").read_text().splitlines()) == 6
    assert facts(done) == {
        "retained_generation_records": "6",
        "dropped_generation_records": "0",
        "integrity_valid": "True",
        "integrity_warnings": "[]",
        "cached_generation_records": "6",
        "cached_evaluation_records": "6",
        "events_file": "outputs/countdown_part7/events.jsonl",
        "dataset_limit": "6",
        "retention_removed": "[]",
        "retention_applied": "True",
    }


def test_part_7_with_more_puzzles_keeps_the_smaller_run(clone: Path):
    for limit in ("3", "25"):
        done = script(clone, "run_part7_ops.py", COUNTDOWN_LIMIT=limit, **GENERATED)

    assert done.returncode == 0, done.stderr
    assert facts(done)["retained_generation_records"] == "20"
    assert facts(done)["dropped_generation_records"] == "5"
    totals = {run.run_id: run.total_samples for run in ExperimentStorage(clone / ".cache" / "experiments").list_runs()}
    assert totals == {"countdown-part7-ops-script": 25, "countdown-part7-ops-script@1": 3}


def test_part_8_compares_four_puzzles_once(clone: Path):
    done = run(clone, "bash", "examples/countdown/run_part8_pipeline.sh", **GENERATED)

    assert done.returncode == 0, done.stderr
    assert steps_of(done) == ["1 x 2 runs of 4 puzzles, compared", "done"]
    said = facts(done)
    assert said["t_test"].startswith("countdown-part8-baseline-r1-script countdown-part8-candidate-r1-script ")
    assert said["bootstrap_mode"] == "ci_only"
    assert re.fullmatch(r"\(\S+, \S+\)", said["bootstrap_ci"])
    assert (said["n_common"], said["dataset_limit"], said["repeats"]) == ("4", "4", "1")


def test_part_8_repeats_as_often_as_it_is_told(clone: Path):
    done = script(clone, "run_part8_analysis.py", COUNTDOWN_LIMIT="6", COUNTDOWN_REPEATS="2", **GENERATED)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("t_test ") == 2
    runs = ExperimentStorage(clone / ".cache" / "experiments").list_runs()
    assert sorted(run.run_id for run in runs) == [
        f"countdown-part8-{prompt}-r{repeat}-script" for prompt in ("baseline", "candidate") for repeat in (1, 2)
    ]


def test_part_9_makes_its_runs_and_passes_them(clone: Path):
    done = run(clone, "bash", "examples/countdown/run_part9_pipeline.sh", **GENERATED)

    assert done.returncode == 0, done.stderr
    assert steps_of(done) == ["two smoke runs", "manifest index", "manifest diff", "provenance gate", "done"]
    assert "gate pass" in done.stdout
    folder = clone / "outputs" / "countdown_part9"
    index = json.loads((folder / "manifest_index.json").read_text())["runs"]
    audit = json.loads((folder / "reproducibility_audit.json").read_text())
    assert {run_id: sorted(entry) for run_id, entry in index.items()} == {
        "countdown-part6-backends-smoke": ["manifest", "manifest_hash", "status"],
        "countdown-part7-ops-smoke": ["manifest", "manifest_hash", "status"],
    }
    assert sorted(audit) == ["allowed_drift", "diffs", "forbidden_drift", "pass", "runs"]
    assert audit["pass"] is True


def test_a_pipeline_stops_at_the_first_step_that_fails(clone: Path):
    (clone / "outputs").write_text("a file where the folder should be")

    done = run(clone, "bash", "examples/countdown/run_part9_pipeline.sh", **GENERATED)

    assert done.returncode != 0
    assert steps_of(done) == ["two smoke runs", "manifest index"]


def test_part_1_and_part_6_run_and_publish(clone: Path):
    first = script(clone, "countdown_tutorial_run.py", **GENERATED)
    backends = script(clone, "run_countdown_part6_backends.py", **GENERATED)
    published = script(clone, "publish_countdown_part6.py")

    assert re.fullmatch(r"run_id=countdown-localchat-run-script\nsolve_rate=0\.\d{4}\n", first.stdout), first.stderr
    assert re.fullmatch(
        r"run_id=countdown-part6-backends-script\ncountdown_validity_mean=0\.\d{4}\n"
        r"bundle_json outputs/countdown_part6/report.json\n",
        backends.stdout,
    ), backends.stderr
    assert published.returncode == 0, published.stderr
    for tracker in ("wandb", "mlflow"):
        outcome = (
            "published countdown-part6-backends-script"
            if importlib.util.find_spec(tracker)
            else "skipped: not installed"
        )
        assert f"{tracker} {outcome}" in published.stdout


def steps_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    return re.findall(r"^\[part\d\] (.*)$", done.stdout, re.MULTILINE)


def facts(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What a script printed as `name value`."""
    lines = [line for line in done.stdout.splitlines() if not line.startswith("[") and " " in line]
    return {name: value for name, _, value in (line.partition(" ") for line in lines)}


# --- the gates ------------------------------------------------------------------------------------------------------

WORSE_CANDIDATE = """
from common import *
run_spec(make_spec(run_id=BASELINE_RUN, prompt=CANDIDATE_PROMPT, dataset_limit=50))
run_spec(make_spec(run_id=CANDIDATE_RUN, prompt=BASELINE_PROMPT, dataset_limit=50))
"""

CANDIDATE_ON_OTHER_PUZZLES = """
from common import *
run_spec(make_spec(run_id=BASELINE_RUN, prompt=BASELINE_PROMPT, dataset_limit=20))
run_spec(make_spec(run_id=CANDIDATE_RUN, prompt=CANDIDATE_PROMPT, dataset_limit=21))
"""

SMOKE_RUNS_ON_DIFFERENT_PUZZLES = """
from common import *
for run_id, limit in zip(SMOKE_RUNS, (3, 4)):
    run_spec(make_spec(run_id=run_id, prompt=BASELINE_PROMPT, dataset_limit=limit))
"""


def write_and_run(clone: Path, text: str) -> None:
    (clone / "examples" / "countdown" / "prepare.py").write_text(text, encoding="utf-8")
    done = script(clone, "prepare.py", **GENERATED)
    assert done.returncode == 0, done.stderr


def test_the_quality_gate_fails_a_worse_candidate(clone: Path):
    write_and_run(clone, WORSE_CANDIDATE)

    done = script(clone, "gate_candidate.py")

    assert done.returncode == 1
    assert "gate failed: the candidate is worse than the baseline" in done.stderr
    assert "gate pass" not in done.stdout


def test_the_quality_gate_fails_a_candidate_that_was_asked_other_puzzles(clone: Path):
    write_and_run(clone, CANDIDATE_ON_OTHER_PUZZLES)

    done = script(clone, "gate_candidate.py")

    assert done.returncode == 1
    assert "gate failed: the runs also differ in dataset.fingerprint" in done.stderr


def test_the_provenance_gate_fails_on_forbidden_drift_and_writes_why(clone: Path):
    write_and_run(clone, SMOKE_RUNS_ON_DIFFERENT_PUZZLES)
    for name in ("build_manifest_index.py", "diff_manifests.py"):
        assert script(clone, name).returncode == 0

    done = script(clone, "gate_reproducibility.py")

    assert done.returncode == 1
    assert "gate failed: forbidden drift in dataset.fingerprint" in done.stderr
    audit = json.loads((clone / "outputs" / "countdown_part9" / "reproducibility_audit.json").read_text())
    assert (audit["pass"], list(audit["forbidden_drift"])) == (False, ["dataset.fingerprint"])


@pytest.mark.parametrize(
    ("name", "missing", "made_by"),
    [
        ("verify_reproducibility.py", "countdown-candidate-v1-script", "run_countdown_candidate.py"),
        ("gate_candidate.py", "countdown-baseline-v1", "run_part5_pipeline.sh"),
        ("build_research_bundle.py", "countdown-baseline-v1", "run_part5_pipeline.sh"),
        ("publish_countdown_part6.py", "outputs/countdown_part6/report.json", "run_countdown_part6_backends.py"),
        ("build_manifest_index.py", "countdown-part6-backends-smoke", "run_part9_smoke.py"),
        ("diff_manifests.py", "outputs/countdown_part9/manifest_index.json", "build_manifest_index.py"),
        ("gate_reproducibility.py", "outputs/countdown_part9/manifest_diff.json", "diff_manifests.py"),
    ],
)
def test_a_script_without_what_it_needs_exits_with_1_and_names_it_and_what_makes_it(clone, name, missing, made_by):
    done = script(clone, name, **GENERATED)

    assert done.returncode == 1
    assert missing in done.stderr
    assert f"examples/countdown/{made_by}" in done.stderr
    assert "Traceback" not in done.stderr


# --- which model ----------------------------------------------------------------------------------------------------


@contextmanager
def solver_endpoint(clone: Path) -> Iterator[str]:
    server = subprocess.Popen(
        [sys.executable, "examples/countdown/solver_endpoint.py", "--port", "0"],
        cwd=clone, env=offline_environment(clone), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        yield re.findall(r"http://\S+", server.stdout.readline())[0]
    finally:
        server.terminate()
        server.wait()


def test_an_endpoint_that_answers_is_used(clone: Path):
    with solver_endpoint(clone) as url:
        done = script(clone, "run_part7_ops.py", COUNTDOWN_API_BASE=url, **GENERATED)

    assert done.returncode == 0, done.stderr
    assert f"model: localchat:qwen/qwen3-1.7b at {url}" in done.stderr
    (run,) = ExperimentStorage(clone / ".cache" / "experiments").list_runs()
    assert run.config_snapshot["reproducibility_manifest"]["model"]["provider"] == "localchat"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("endpoint", f"COUNTDOWN_MODEL is endpoint, but nothing answers at {NOWHERE}/api/v1/chat"),
        ("local", "COUNTDOWN_MODEL is local, but "),
        ("gpt", "COUNTDOWN_MODEL must be auto, endpoint, local or solver, got 'gpt'"),
    ],
)
def test_a_model_that_cannot_be_had_ends_the_script(clone: Path, wanted, message):
    nothing_installed = str(clone / "models")
    done = script(clone, "run_part7_ops.py", COUNTDOWN_MODEL=wanted, THEMIS_MODELS_DIR=nothing_installed, **GENERATED)

    assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (1, True, False)


@pytest.mark.model
def test_the_embedded_model_plays_when_asked_to(clone: Path):
    done = script(clone, "run_part7_ops.py", COUNTDOWN_MODEL="local", COUNTDOWN_LIMIT="2", **GENERATED)

    assert done.returncode == 0, done.stderr
    assert "model: local/smollm2" in done.stderr
    events = (clone / "outputs" / "countdown_part7" / "events.jsonl").read_text().splitlines()
    previews = [json.loads(event)["output_preview"] for event in events]
    assert len(previews) == 2
    assert all(re.fullmatch(r"\d+( [-+*/] \d+)+", preview) for preview in previews)


# --- the shared parts -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared() -> ModuleType:
    spec = importlib.util.spec_from_file_location("countdown_examples", EXAMPLES / "common.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_solver_errs_on_its_share_of_puzzles_and_less_when_told_the_rules(shared: ModuleType):
    rows = [puzzle.row(str(place)) for place, puzzle in enumerate(generate_puzzles(300, difficulty=3))]
    metric = CountdownValidity()

    def right(prompt: str) -> list[bool]:
        return [
            metric.compute(prediction=shared.solver_reply(prompt.format(**row)), references=[row["reference"]]).value
            == 1
            for row in rows
        ]

    plain, with_rules = right(shared.BASELINE_PROMPT), right(shared.CANDIDATE_PROMPT)

    assert sum(plain) / 300 == pytest.approx(1 - shared.SHARE_WRONG, abs=0.08)
    assert sum(with_rules) / 300 == pytest.approx(1 - shared.SHARE_WRONG_WITH_RULES, abs=0.08)
    assert all(told or not untold for untold, told in zip(plain, with_rules, strict=True))


EXPRESSIONS = st.recursive(
    st.integers(0, 9).map(str),
    lambda inner: st.tuples(inner, st.sampled_from([" + ", " - ", "*", "/", " ** "]), inner).map(
        lambda parts: f"({parts[0]}{parts[1]}{parts[2]})"
    ),
    max_leaves=4,
)


@given(EXPRESSIONS, st.lists(st.integers(1, 9), min_size=3, max_size=4), st.integers(1, 50))
def test_the_tutorial_s_metric_judges_as_the_built_in_one_does(shared, expression, numbers, target):
    references = [{"numbers": numbers, "target": target}]

    ours = shared.CountdownValidity().compute(prediction=expression, references=references)
    built_in = CountdownValidity().compute(prediction=expression, references=references)

    assert ours.value == built_in.value


@given(st.text(max_size=80))
def test_the_tutorial_s_metric_judges_any_text(shared, text):
    score = shared.CountdownValidity().compute(prediction=text, references=[{"numbers": [95, 21, 3], "target": 88}])

    assert (score.value == 1.0) == ("error" not in score.details)
