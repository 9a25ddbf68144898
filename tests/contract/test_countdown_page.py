"""The tutorial is followed from top to bottom: every block works, and what the page shows is what happens."""

from __future__ import annotations

import ast
import doctest
import fcntl
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.contract.countdown import EXAMPLES, PAGE, run, working_copy
from tests.contract.following import follow_page
from tests.contract.reader import Step, blocks
from themis.storage import ExperimentStorage, RunStatus

TEXT = PAGE.read_text(encoding="utf-8")

# Lines of the page's shell blocks that are not typed here.
NOT_TYPED = {
    "make install": "the tests run in an environment that is installed",
    "source .venv/bin/activate": "its programs come first in PATH",
    "pip install datasets": "a stand-in takes its place",
    "export HF_TOKEN=...": "nothing is published",
    "export HF_REPO_ID=your-org/themis-countdown-results": "nothing is published",
}


class Followed:
    """The steps in the page's order, and the folder in which they were taken."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.steps = [Step(**step) for step in json.loads((root / "steps.json").read_text(encoding="utf-8"))]

    def step(self, part: str) -> Step:
        (found,) = [step for step in self.steps if part in step.text]
        return found


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Followed:
    """Once for all workers: the page has a few hundred calls and some twenty programs."""
    base = tmp_path_factory.getbasetemp()
    root = (base if worker_id == "master" else base.parent) / "countdown-page"
    with root.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "steps.json").exists():
            follow_page(PAGE, working_copy(root), not_typed=NOT_TYPED)
    return Followed(root)


# --- the page as a whole --------------------------------------------------------------------------------------------


def test_every_block_of_the_page_works(followed: Followed):
    assert {step.line: step.problem for step in followed.steps if step.problem} == {}


def test_what_the_page_shows_is_what_happens(followed: Followed):
    checker = doctest.OutputChecker()

    different = {
        step.line: step.output
        for step in followed.steps
        if step.shown is not None and not checker.check_output(step.shown, step.output, doctest.ELLIPSIS)
    }

    assert different == {}


def test_whatever_a_python_block_prints_is_shown(followed: Followed):
    assert [step.line for step in followed.steps if step.language == "python" and step.output and not step.shown] == []


def test_only_what_is_named_here_is_left_untyped():
    typed = "".join(block.text for block in blocks(TEXT) if block.language == "bash").splitlines()

    assert {line: typed.count(line) for line in NOT_TYPED} == dict.fromkeys(NOT_TYPED, 1)


@pytest.mark.parametrize(
    "name",
    ["BASELINE_PROMPT", "CANDIDATE_PROMPT", "LocalChatProvider", "countdown_puzzles", "load_countdown_for_themis",
     "CountdownValidity"],
)  # fmt: skip
def test_the_code_on_the_page_is_that_of_the_scripts(name):
    page = "\n".join(block.text for block in blocks(TEXT) if block.language == "python")
    scripts = (EXAMPLES / "common.py").read_text(encoding="utf-8")

    assert definition(name, page) == definition(name, scripts)


def definition(name: str, source: str) -> str:
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node]
        if name in [getattr(target, "id", getattr(target, "name", None)) for target in targets]:
            return ast.unparse(node)
    raise AssertionError(f"no {name}")


def test_every_script_that_the_page_names_is_there():
    named = set(re.findall(r"examples/countdown/(\w+\.(?:py|sh))", TEXT))

    assert {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh")} == named | {"common.py"}


def test_every_link_leads_somewhere():
    targets = re.findall(r"\]\(([\w./-]+\.md)\)", TEXT)

    assert [target for target in targets if not (PAGE.parent / target).exists()] == []


# --- its outcomes, part by part -------------------------------------------------------------------------------------


def test_part_1_prints_a_solve_rate_and_five_verdicts(followed: Followed):
    step = followed.step('run_id="countdown-localchat-run",\n    storage')
    rate, *verdicts = step.output.splitlines()

    assert step.calls == 20
    assert re.fullmatch(r"Solve rate: \d+\.\d\d% of 20, 0 failed", rate)
    assert [line.split()[0] for line in verdicts] == ["0", "1", "2", "3", "4"]


def test_part_2_asks_nothing_a_second_time(followed: Followed):
    first = followed.step("baseline = themis.evaluate(")
    second = followed.step("again = themis.evaluate(")

    assert (first.calls, second.calls) == (50, 0)
    assert second.output.splitlines()[0] == first.output.strip()


def test_part_2_refuses_a_run_id_with_other_rows_before_the_first_call(followed: Followed):
    step = followed.step('"allow_drift": False')

    assert step.calls == 0
    assert "exists with other inputs" in step.output


def test_part_3_writes_four_files(followed: Followed):
    folder = followed.root / "outputs" / "countdown"
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))

    assert sorted(path.name for path in folder.iterdir()) == [
        "report.csv",
        "report.html",
        "report.json",
        "summary.json",
    ]
    assert report["summary"]["run_id"] == "countdown-local-benchmark-run"
    assert (report["total_samples"], len((folder / "report.csv").read_text().splitlines())) == (100, 101)


def test_part_3_s_api_lists_shows_and_compares(followed: Followed):
    answers = followed.step("/api/compare").output
    decoder, found = json.JSONDecoder(), []
    while answers := answers.lstrip():
        answer, end = decoder.raw_decode(answers)
        found.append(answer)
        answers = answers[end:]
    runs, shown, comparison = found

    assert {"countdown-baseline", "countdown-variant"} <= {run["run_id"] for run in runs}
    assert (shown["run_id"], shown["num_samples"]) == ("countdown-local-benchmark-run", 100)
    assert comparison["run_ids"] == ["countdown-baseline", "countdown-variant"]


def test_part_4_draws_three_attempts_and_averages_them(followed: Followed):
    step = followed.step("num_samples=3")

    assert step.calls == 60
    assert any(score not in ("0.0", "1.0") for score in re.findall(r"\d\.\d+", step.output.splitlines()[1]))


def test_part_4_judges_stored_answers_again_without_asking(followed: Followed):
    step = followed.step("rejudged = themis.evaluate(")

    assert step.calls == 0
    assert int(re.findall(r"(\d+) of them unparsed", step.output)[0]) > 0


def test_part_5_builds_a_bundle_with_an_index(followed: Followed):
    folder = followed.root / "outputs" / "countdown_bundle_v1"
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))

    assert sorted(index) == [
        *("artifacts", "baseline_mean", "baseline_run_id", "candidate_delta", "candidate_mean", "candidate_run_id"),
        *("manifest_hash", "metric", "p_value", "significant"),
    ]
    assert sorted(index["artifacts"]) == ["csv", "html", "json", "summary"]
    assert all((followed.root / path).exists() for path in index["artifacts"].values())
    assert index["candidate_delta"] == pytest.approx(index["candidate_mean"] - index["baseline_mean"])


def test_part_6_exports_what_trackers_read(followed: Followed):
    folder = followed.root / "outputs" / "countdown_part6"
    published = followed.step("publish_countdown_part6.py").output

    assert sorted(path.name for path in folder.iterdir()) == [
        "report.csv",
        "report.html",
        "report.json",
        "summary.json",
    ]
    assert re.search(r"^wandb (published|skipped)", published, re.MULTILINE)
    assert re.search(r"^mlflow (published|skipped)", published, re.MULTILINE)


def test_part_7_keeps_20_of_40_records_and_writes_40_events(followed: Followed):
    step = followed.step("max_records_in_memory=20")

    assert step.calls == 40
    assert dict(line.rsplit(" ", 1) for line in step.output.splitlines()) == {
        "retained_generation_records": "20",
        "dropped_generation_records": "20",
        "scored": "40",
        "events": "40",
    }


def test_part_7_finds_the_run_whole_and_removes_nothing_recent(followed: Followed):
    assert "integrity_valid True [] []" in followed.step("storage.validate_integrity").output
    assert followed.step("apply_retention_policy(policy)").output.splitlines()[-1] == "removed []"


def test_part_8_gives_six_p_values_with_corrections_and_an_interval_without(followed: Followed):
    tested = followed.step("StatisticalTest.T_TEST").output.splitlines()
    resampled = followed.step("n_bootstrap=2000").output.splitlines()

    assert len(tested) == 6
    for line in tested:
        raw, corrected = map(float, re.findall(r"p_raw (\S+) p_corrected (\S+)", line)[0])
        assert 0 <= raw <= corrected <= 1
        assert line.endswith("not significant") == (corrected > 0.05)
    assert resampled[:2] == ["inference_mode ci_only", "p_value None"]


def test_part_9_passes_the_smoke_runs_and_forbids_other_rows(followed: Followed):
    gate = followed.step("def forbidden_drift").output.splitlines()
    folder = followed.root / "outputs" / "countdown_part9"
    audit = json.loads((folder / "reproducibility_audit.json").read_text(encoding="utf-8"))

    assert gate == ["these two: []", "with Part 6: ['dataset.fingerprint']"]
    assert sorted(path.name for path in folder.iterdir()) == [
        *("manifest_diff.json", "manifest_index.json", "reproducibility_audit.json"),
    ]
    assert (audit["pass"], list(audit["diffs"]), audit["forbidden_drift"]) == (True, ["prompt.template_hash"], {})


def test_the_scripts_take_the_page_s_answers_and_ask_nothing_but_repetitions(followed: Followed):
    scripts = [step for step in followed.steps if step.language == "bash" and "examples/countdown/" in step.text]

    assert len(scripts) > 5
    assert [step.text.splitlines()[0] for step in scripts if step.calls] == [
        "bash examples/countdown/run_part8_pipeline.sh"
    ]


def test_the_page_as_one_file_asks_nothing_again_and_prints_the_same(followed: Followed, tmp_path: Path):
    """With the endpoint gone."""
    shutil.copytree(followed.root / ".cache", tmp_path / ".cache")
    python = [step for step in followed.steps if step.language == "python"]
    (tmp_path / "tutorial.py").write_text("".join(step.text for step in python), encoding="utf-8")

    done = run(tmp_path, sys.executable, "tutorial.py", PYTHONPATH=str(followed.root / "stand-ins"))

    assert done.returncode == 0, done.stderr
    # What was measured on the way, or what has been stored since.
    differs = ("resumed in", "latest_runs", "storage_size_bytes")
    assert lines_without(differs, done.stdout) == lines_without(differs, "".join(step.output for step in python))


def lines_without(words: tuple[str, ...], text: str) -> list[str]:
    return [line for line in text.splitlines() if not any(word in line for word in words)]


def test_the_runs_of_the_page_are_stored_and_complete(followed: Followed):
    stored = {run.run_id: run.status for run in ExperimentStorage(followed.root / ".cache" / "experiments").list_runs()}

    assert {
        *("countdown-localchat-run", "countdown-baseline", "countdown-variant", "countdown-local-benchmark-run"),
        *("countdown-attempt-aware", "countdown-reference-v1", "countdown-candidate-v1", "countdown-part6-backends"),
        *("countdown-part7-ops", "countdown-audit-a", "countdown-audit-b"),
        *(f"countdown-part8-{prompt}-r{repeat}" for prompt in ("baseline", "candidate") for repeat in (1, 2, 3)),
    } <= stored.keys()
    assert set(stored.values()) == {RunStatus.COMPLETED}


def test_page_and_scripts_share_no_run(followed: Followed):
    runs = ExperimentStorage(followed.root / ".cache" / "experiments").list_runs()

    assert [run.run_id for run in runs if run.experiment == "default" and "@" in run.run_id] == []
    assert {run.run_id.partition("@")[0] for run in runs if run.experiment == "countdown-scripts"} == {
        *("countdown-localchat-run-script", "countdown-baseline-v1", "countdown-candidate-v1-script"),
        *("countdown-part6-backends-script", "countdown-part7-ops-script"),
        *("countdown-part6-backends-smoke", "countdown-part7-ops-smoke"),
        *(f"countdown-part8-{prompt}-r{repeat}-script" for prompt in ("baseline", "candidate") for repeat in (1, 2)),
    }
