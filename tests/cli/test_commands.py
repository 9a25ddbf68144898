"""The command line: what each verb prints, on which stream, and with which exit code."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from themis.cli import COMMANDS
from themis.cli.doctor import EXTRAS
from themis.cli.listing import LISTED
from themis.storage import ExperimentStorage

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THEMIS_STORAGE", raising=False)
    return tmp_path


@pytest.fixture
def themis(here: Path, call: Any) -> Any:
    return call


def test_eval_stores_a_run_that_list_and_show_find(themis):
    done = themis("eval", "demo", "-m", "fake-math-llm", "--run-id", "first", "--tag", "team=a")
    assert done.code == 0
    assert "ExactMatch" in done.out
    assert "run first: 10 samples, 10 calls, $0.0000" in done.out
    assert "  - first [completed] samples=10 created=" in themis("list", "runs", "--verbose").out
    shown = json.loads(themis("show", "first", "--json").out)
    assert set(shown) >= {
        "run_id",
        "kind",
        "status",
        "model",
        "created_at",
        "manifest_hash",
        "metrics",
        "cost",
        "tokens",
    }
    assert set(shown["metrics"]["ExactMatch"]) >= {"mean", "count", "failed", "stderr", "ci"}
    assert shown["tags"] == {"team": "a"}


def test_show_says_how_a_run_stands_in_the_words_of_the_list(themis, here):
    (here / "app.py").write_text("def answer(row):\n    return 'x' if row['n'] else 1 / 0\n")
    (here / "rows.jsonl").write_text('{"n": 0, "answer": "x"}\n{"n": 1, "answer": "x"}\n')
    themis(
        "eval", "rows.jsonl", "-m", "python:app.py:answer", "--prompt", "{n}", "--max-retries", "1", "--run-id", "half"
    )

    assert "half [completed, 1 of 2 failed]" in themis("list", "runs").out
    assert "half  [completed, 1 of 2 failed]" in themis("show", "half").out


def test_json_keeps_stdout_clean(themis):
    out = themis("eval", "demo", "-m", "fake-math-llm", "--json").out
    assert json.loads(out)["metrics"]["ExactMatch"]["mean"] == 1.0


def test_a_file_is_asked_by_the_fields_it_has(themis, here):
    rows = [{"uid": f"r{n}", "question": f"say {n}", "expected": str(n)} for n in range(3)]
    (here / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = themis("eval", "rows.jsonl", "-m", "fake/perfect", "--run-id", "file")
    assert "prompt: the field 'question'" in done.err
    assert done.code == 0
    assert list(ExperimentStorage(here / ".cache/experiments").load_cached_records("file")) == ["r0", "r1", "r2"]


def test_resume_asks_only_what_failed(themis, here):
    themis("eval", "demo", "-m", "fake/flaky-0.5", "--max-retries", "1", "--run-id", "shaky")
    before = ExperimentStorage(here / ".cache/experiments").get_run("shaky")
    assert before.failed_generations > 0
    done = themis("resume", "shaky", "--json")
    assert done.code == 0
    after = ExperimentStorage(here / ".cache/experiments").get_run("shaky")
    assert after.calls == before.calls + before.failed_generations


def test_rejudge_keeps_the_answers_and_changes_the_scores(themis, here):
    themis("eval", "demo", "-m", "fake-math-llm", "--run-id", "first")
    done = themis("rejudge", "first", "--metric", "response_length", "--json")
    shown = json.loads(done.out)
    assert list(shown["metrics"]) == ["ResponseLength"]
    assert shown["cost"]["api_calls"] == 10


def test_rejudge_of_a_run_in_which_nothing_was_answered_fails(themis, here):
    themis("eval", "demo", "-m", "fake/flaky-1.0", "--run-id", "dead", "--max-retries", "1")
    done = themis("rejudge", "dead", "--metric", "f1")

    assert done.code == 3
    assert "nothing of run 'dead' was answered" in done.err


def test_estimate_says_what_it_would_cost_before_anything_is_spent(themis, here):
    estimated = json.loads(themis("estimate", "demo", "-m", "openai/gpt-4o", "--json").out)
    assert estimated["calls"] == 10
    assert 0 < estimated["likely_usd"] < estimated["most_usd"]
    assert not (here / ".cache").exists()
    unknown = themis("estimate", "demo", "-m", "openai/some-model")
    assert "unknown price" in unknown.out


def test_the_cache_explains_a_miss_by_the_field_that_differs(themis):
    themis("eval", "demo", "-m", "fake-math-llm", "--run-id", "one")
    themis("eval", "demo", "-m", "fake-math-llm", "--run-id", "two", "--temperature", "0.7")
    item = next(iter(ExperimentStorage(".cache/experiments").load_cached_records("one")))
    found = json.loads(themis("cache", "why", "two", item, "--json").out)
    assert found["other_run_id"] == "one"
    assert list(found["differences"]) == ["sampling"]


def test_delete_asks_and_then_forgets(themis, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    themis("eval", "demo", "-m", "fake-math-llm", "--run-id", "gone")
    assert themis("delete", "gone").code == 130  # nobody there to confirm
    assert themis("delete", "gone", "--yes").code == 0
    assert "No runs found." in themis("list", "runs").out


@pytest.mark.parametrize("what", LISTED)
def test_list_names_and_describes_what_there_is(themis, what):
    assert f"Available {what}:" in themis("list", what).out
    entries = json.loads(themis("list", what, "--verbose", "--json").out)
    # Other tests of this process may have registered things of their own.
    registry = LISTED[what][0]
    silent = [one["name"] for one in entries if not one["about"] and not registry.is_of_this_program(one["name"])]
    assert silent == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("evl", "demo"), 2, "did you mean 'eval'?"),
        (("eval", "demo"), 2, "--model"),
        (("eval", "demmo", "-m", "fake/perfect"), 2, "did you mean 'demo'?"),
        (("eval", "demo", "-m", "fak:perfect"), 3, "did you mean 'fake'?"),
        (("eval", "demo", "-m", "fake/perfect", "--option", "k"), 2, "expected K=V"),
        (("eval", "nothing.jsonl", "-m", "fake/perfect"), 2, "no file"),
        (("show", "nothing"), 3, "no run 'nothing'"),
        (("store", "repair"), 3, "there is no store"),
        (("list", "runs"), 1, "no store at"),
    ],
)
def test_mistakes_exit_with_a_line_that_helps(themis, arguments, code, says):
    said = themis(*arguments)
    assert said.code == code
    assert says in said.err
    assert "Traceback" not in said.err


def test_changed_inputs_are_explained_with_the_three_ways_on(themis):
    themis("eval", "demo", "-m", "fake-math-llm", "--run-id", "same")
    refused = themis("eval", "demo", "-m", "fake-math-llm", "--run-id", "same", "--temperature", "0.9")
    assert refused.code == 2
    for way in ("another run_id", "--no-resume", "--allow-drift"):
        assert way in refused.err
    assert (
        themis("eval", "demo", "-m", "fake-math-llm", "--run-id", "same", "--temperature", "0.9", "--no-resume").code
        == 0
    )


def test_a_store_is_checked_copied_pruned_and_vacuumed(themis, here):
    for number in range(3):
        themis("eval", "demo", "-m", "fake-math-llm", "--run-id", f"r{number}")
    assert "3 runs, 0 problems" in themis("store", "check").out
    assert "3 runs copied" in themis("store", "copy", ".cache/experiments", "copy").out
    assert "0 runs copied" in themis("store", "copy", ".cache/experiments", "copy").out
    copied = ExperimentStorage(here / "copy")
    original = ExperimentStorage(here / ".cache/experiments")
    assert list(copied.load_cached_evaluations("r1").values()) == list(original.load_cached_evaluations("r1").values())
    assert copied.get_run("r1").summary == original.get_run("r1").summary
    dry = themis("store", "prune", "--max-runs", "1", "--keep-latest", "1", "--dry-run")
    assert dry.out.splitlines() == ["would remove r0", "would remove r1"]
    themis("store", "prune", "--max-runs", "1", "--keep-latest", "1")
    assert [run.run_id for run in original.list_runs()] == ["r2"]
    assert "bytes before" in themis("store", "vacuum").out


def test_a_damaged_store_is_salvaged_and_the_damaged_file_kept(themis, here):
    rows = [{"id": n, "question": "q" * 500 + str(n), "answer": "a" * 200} for n in range(2000)]
    (here / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    themis("eval", "rows.jsonl", "-m", "fake/perfect", "--run-id", "big")
    themis("store", "vacuum")
    path = here / ".cache/experiments/themis.db"
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 20_000] = os.urandom(20_000)
    path.write_bytes(bytes(data))
    assert themis("store", "check").code in (1, 3)
    done = themis("store", "repair")
    assert done.code == 1
    assert "run 'big': " in done.out
    assert "records:" in done.out
    (kept,) = (p for p in path.parent.glob("*.damaged-*") if not p.name.endswith(("-wal", "-shm")))
    assert kept.read_bytes() == bytes(data)
    survivors = len(ExperimentStorage(path.parent).load_cached_records("big"))
    assert 1000 < survivors <= 2000


def test_doctor_and_the_readme_know_every_extra():
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    told = (PROJECT / "README.md").read_text().partition("Extras: ")[2]

    assert set(EXTRAS) == {name for name, packages in extras.items() if packages} - {"all", "dev"}
    assert [name for name in extras if f"`{name}`" not in told] == ["dev"]


def test_doctor_has_one_line_for_everything_and_fails_on_a_problem(themis, here):
    fine = themis("doctor")
    assert fine.code == 0
    assert "tokenizer: cl100k_base" in fine.out
    (here / "broken").mkdir()
    (here / "broken" / "themis.db").write_bytes(b"not a database at all")
    assert themis("doctor", "--storage", "broken").code == 1
    assert themis("doctor", "--endpoint", "http://127.0.0.1:9/").code == 1


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("demo", "memory")])
def test_every_command_answers_help(themis, command):
    said = themis(command, "--help")
    assert said.code == 0
    assert said.out.startswith("Usage: themis ")


def test_ctrl_c_prints_the_command_that_goes_on(here):
    rows = [{"id": n, "question": f"say {n}", "answer": str(n)} for n in range(500)]
    (here / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = [
        sys.executable,
        "-m",
        "themis",
        "eval",
        "rows.jsonl",
        "-m",
        "fake/slow-20ms",
        "--run-id",
        "long",
        "-j",
        "2",
    ]
    process = subprocess.Popen(run, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    store = ExperimentStorage(here / ".cache/experiments")
    while not (store.exists() and store.run_exists("long") and sum(store.reader("long").count_records()) > 5):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "themis resume long" in said
    assert "Traceback" not in said
    assert store.get_run("long").status.value == "interrupted"
