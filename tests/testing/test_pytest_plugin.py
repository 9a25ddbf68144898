"""`pytest --themis`, as somebody sees it who has installed Themis beside pytest and writes tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree

import pytest

PROJECT = Path(__file__).parents[2]
ROWS = 'ROWS = [{"id": str(n), "question": f"{n} + 1?", "answer": str(n + 1)} for n in range(40)]\n'

Pytest = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder of installed packages in which Themis has the entry points that its project file says."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site" / f"themis_eval-{project['version']}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: themis-eval\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in found.items()) for group, found in groups
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines))
    return folder.parent


@pytest.fixture
def run_pytest(tmp_path: Path, installed: Path) -> Pytest:
    """Runs pytest in a project of its own, on tests that are given as text."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:cacheprovider\n")

    def run(tests: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        (project / "test_app.py").write_text(ROWS + tests)
        paths = os.pathsep.join([str(installed), str(PROJECT)])
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "themis", *options],
            cwd=project,
            # Without the plugins of everybody else that is installed, which take their time; ours is found by its entry point.
            env={
                **os.environ,
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTHONPATH": paths,
                "COLUMNS": "160",
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


SUMS = """
def test_sums(themis):
    report = themis.evaluate(ROWS, model="fake/noisy-0.2", prompt="{question}")
    assert report.metric("exact_match") >= 0.5
"""


def test_tests_that_ask_models_are_skipped_unless_they_are_asked_for(run_pytest):
    marked = "import pytest\n\n@pytest.mark.themis\ndef test_marked():\n    raise AssertionError\n"

    done = run_pytest(f"{SUMS}\n{marked}", "-rs")

    assert done.returncode == 0, done.stdout
    assert "2 skipped" in done.stdout
    assert done.stdout.count("test_app.py:") == 2
    assert "asks a model, which may cost money: run pytest with --themis" in done.stdout


def test_a_session_that_does_not_use_the_plugin_loads_nothing_of_themis_but_it(run_pytest):
    tests = """
    import sys

    def test_nothing_is_loaded():
        loaded = sorted(name for name in sys.modules if name.partition(".")[0] == "themis")
        assert loaded == ["themis", "themis.testing", "themis.testing.plugin"]
    """
    done = run_pytest(dedent(tests), PYTEST_DISABLE_PLUGIN_AUTOLOAD="")

    assert done.returncode == 0, done.stdout


def test_every_run_has_a_line_at_the_end(run_pytest):
    done = run_pytest(SUMS, "--themis")

    assert done.returncode == 0, done.stdout
    assert f"themis: runs in {Path('.cache/experiments')}" in done.stdout
    assert re.search(
        r"^test_app\.py-test_sums: ExactMatch 0\.\d{4} \[0\.\d{4}, 0\.\d{4}\] of 40 · \$0\.0000 · completed$",
        done.stdout,
        re.MULTILINE,
    )


def test_a_limit_that_is_not_kept_is_shown_with_mean_interval_and_counts(run_pytest):
    tests = """
    def test_all_right(themis):
        report = themis.evaluate(ROWS, model="fake/noisy-0.2", prompt="{question}")
        assert report.metric("exact_match") >= 0.999

    def test_turned(themis):
        report = themis.evaluate(ROWS, model="fake/noisy-0.2", prompt="{question}")
        assert 0.999 <= report.metric("exact_match")

    def test_few(themis):
        report = themis.evaluate(ROWS, model="fake/perfect", prompt="{question}", limit=4)
        assert report.metric("exact_match").surely_at_least(0.9)
    """
    done = run_pytest(dedent(tests), "--themis")

    assert done.returncode == 1
    shown = re.findall(r"^E +(.*)$", done.stdout, re.MULTILINE)
    assert [line for line in shown if re.fullmatch(r"assert ExactMatch 0\.\d{4} >= 0\.999", line)] == shown[0:3:2]
    assert re.fullmatch(
        r"0\.\d{4} \[0\.\d{4}, 0\.\d{4}\] of 40 is below 0\.999, and so is the whole interval", shown[1]
    )
    assert any(
        "ExactMatch is not surely at least 0.9: 1.0000 [0.4729, 1.0000] of 4 is above 0.9, but 0.9 lies within" in line
        for line in shown
    )


def test_the_same_tests_again_ask_nothing_twice_and_go_on_after_a_change(run_pytest, tmp_path):
    counting = """
    from pathlib import Path
    import themis as package
    from themis.core.entities import GenerationRecord, ModelOutput

    class Counting:
        def execute(self, task):
            with Path("calls").open("a") as file:
                file.write(f"{task.prompt.text}\\n")
            return GenerationRecord(task, ModelOutput("1"), None)

    package.register_provider("counting", Counting)

    def test_sums(themis):
        themis.evaluate(ROWS[:3], model="counting/one", prompt="PROMPT")
        themis.evaluate(ROWS[:2], model="counting/one", prompt="PROMPT")
    """
    tests = dedent(counting)
    calls = tmp_path / "project" / "calls"

    def run(prompt: str, *options: str) -> int:
        calls.unlink(missing_ok=True)
        done = run_pytest(tests.replace("PROMPT", prompt), "--themis", *options)
        assert done.returncode == 0, done.stdout
        assert "test_app.py-test_sums-2: " in done.stdout
        return len(calls.read_text().splitlines()) if calls.exists() else 0

    assert run("{question}") == 5
    assert run("{question}") == 0
    assert run("Say {question}") == 5
    assert run("Say {question}", "--themis-fresh") == 5


def test_tests_that_share_a_run_ask_once_also_when_everything_is_asked_anew(run_pytest, tmp_path):
    tests = """
    import pytest
    from pathlib import Path

    def app(question):
        with Path("calls").open("a") as file:
            file.write("x")
        return "1"

    @pytest.fixture
    def answered(themis):
        return themis.evaluate(ROWS[:3], model=app, prompt="{question}", run_id="app")

    def test_score(answered):
        assert answered.metric("exact_match") > 0

    def test_failures(answered):
        assert answered.metric("exact_match").failed == 0
    """
    calls = tmp_path / "project" / "calls"

    first = run_pytest(dedent(tests), "--themis")
    assert (first.returncode, calls.read_text()) == (0, "xxx"), first.stdout
    again = run_pytest(dedent(tests), "--themis", "--themis-fresh")

    assert (again.returncode, calls.read_text()) == (0, "xxx" * 2), again.stdout
    assert again.stdout.count("\napp: ExactMatch 0.3333") == 1


def test_a_marker_with_a_bare_value_says_how_it_is_written(run_pytest):
    tests = """
    import pytest

    @pytest.mark.themis("fake/perfect")
    def test_bare(themis):
        pass
    """
    done = run_pytest(dedent(tests), "--themis")

    assert done.returncode == 1
    assert "takes arguments of themis.evaluate by name, such as model=..., got 'fake/perfect'" in done.stdout
    assert "runs.py" not in done.stdout


def test_the_store_is_where_it_is_said_to_be(run_pytest, tmp_path):
    by_option, by_variable = tmp_path / "option", tmp_path / "variable"

    run_pytest(SUMS, "--themis", THEMIS_STORAGE=str(by_variable))
    done = run_pytest(SUMS, "--themis", "--themis-storage", str(by_option), THEMIS_STORAGE="unused")

    assert f"themis: runs in {by_option}" in done.stdout
    assert by_option.is_dir()
    assert by_variable.is_dir()


def test_a_marker_gives_what_every_call_of_its_tests_has_in_common(run_pytest):
    tests = """
    import pytest

    pytestmark = pytest.mark.themis(model="fake/echo", prompt="{question}")

    @pytest.mark.themis(model="fake/perfect")
    @pytest.mark.parametrize("limit", [2, 3])
    def test_marked(themis, limit):
        report = themis.evaluate(ROWS, limit=limit)
        assert report.metric("exact_match") == 1
        assert report.metadata["model"] == "fake:perfect"
    """
    done = run_pytest(dedent(tests), "--themis")

    assert done.returncode == 0, done.stdout
    assert len(set(re.findall(r"^test_app\.py-test_marked-\d-[0-9a-f]{6}: ", done.stdout, re.MULTILINE))) == 2


def test_a_run_that_fails_is_told_by_its_message_alone(run_pytest):
    tests = """
    def test_unreachable(themis):
        themis.evaluate(ROWS, model="openai/x", prompt="{question}", base_url="http://127.0.0.1:9/v1", max_retries=1)
    """
    done = run_pytest(dedent(tests), "--themis", OPENAI_API_KEY="none")

    assert done.returncode == 1
    assert "RunFailedError: run test_app.py-test_unreachable failed: 5 calls in a row failed alike" in done.stdout
    assert "lifecycle.py" not in done.stdout
    assert re.search(r"^test_app.py-test_unreachable: .* · price unknown · failed", done.stdout, re.MULTILINE)


def test_a_run_that_its_budget_stopped_fails_its_test_whatever_the_first_samples_say(run_pytest):
    tests = """
    import themis as package
    from themis.core.entities import GenerationRecord, ModelOutput
    from themis.interfaces import StatelessTaskExecutor

    class Dear(StatelessTaskExecutor):
        def execute(self, task):
            return GenerationRecord(task, ModelOutput("4", None, {"prompt_tokens": 0, "completion_tokens": 10_000}), None)

    def test_budget(themis):
        package.register_provider("dear", Dear)
        report = themis.evaluate(
            ROWS, model="dear/gpt-4o", prompt="{question}", max_tokens=10_000, budget_usd=0.15, workers=1
        )
        assert report.metric("exact_match") >= 0.8
    """
    done = run_pytest(dedent(tests), "--themis")

    assert done.returncode == 1, done.stdout
    assert "Failed: run test_app.py-test_budget is not complete: budget_usd=0.15 allows no further call" in done.stdout
    assert "goes on" in done.stdout
    assert "runs.py" not in done.stdout


def test_lines_come_from_other_processes_and_stand_in_junit_files(run_pytest, tmp_path):
    junit = tmp_path / "junit.xml"

    done = run_pytest(SUMS, "-p", "xdist", "--themis", "-n", "1", f"--junitxml={junit}")

    assert re.search(r"^test_app\.py-test_sums: ExactMatch ", done.stdout, re.MULTILINE)
    [told] = ElementTree.parse(junit).iter("property")
    assert told.get("name") == "themis"
    assert (told.get("value") or "").startswith("test_app.py-test_sums: ExactMatch ")


def test_somebody_s_own_fixture_of_the_name_is_left_alone(run_pytest):
    tests = """
    import pytest

    @pytest.fixture
    def themis():
        return "goddess"

    def test_mythology(themis):
        assert themis == "goddess"
    """
    assert run_pytest(dedent(tests)).returncode == 0


def test_the_example_of_the_guide_is_a_test_that_passes(run_pytest):
    guide = (PROJECT / "docs" / "guides" / "where-people-work.md").read_text()
    [example] = re.findall(r"```python\n(ROWS = .*?)```", guide, re.DOTALL)

    assert "1 skipped" in run_pytest(example).stdout
    done = run_pytest(example, "--themis")

    assert done.returncode == 0, done.stdout
    assert "test_app.py-test_sums: ExactMatch 1.0000 [0.2236, 1.0000] of 2 · $0.0000 · completed" in done.stdout
