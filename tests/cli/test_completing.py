"""Words that a shell completes: from click's machinery, quickly, and once in a real bash."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

import themis
from themis.cli import completing
from themis.cli import themis as commands

PROJECT = Path(__file__).parents[2]
LIGHT = completing.build_command("themis", json.loads(completing.TABLE.read_text())["commands"])
ROWS = [{"id": "a", "question": "2 + 2?", "answer": "4"}]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty directory with a store of two runs in the usual place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THEMIS_STORAGE", raising=False)
    for run_id, experiment in (("sums-old", "sums"), ("sums-new", "sums"), ("other", "others")):
        themis.evaluate(
            ROWS, model="fake/perfect?ms=1", prompt="{question}", run_id=run_id, experiment=experiment, progress=False
        )
    return tmp_path


def words(line: str, tree: click.Command = LIGHT) -> list[str]:
    """What the last word of a line may become."""
    *before, last = line.split(" ")
    found = ShellComplete(tree, {}, "themis", completing.VARIABLE).get_completions(before, last)
    return [item.value for item in found]


def test_run_ids_are_those_of_the_store_in_use_the_newest_first(store):
    assert words("show ") == ["other", "sums-new", "sums-old"]
    assert words("compare sums-old sums-n") == ["sums-new"]
    assert words("memory turns o") == ["other"]
    assert words("gate sums-new --baseline su") == ["sums-new", "sums-old"]
    assert words("eval demo --run-id su") == ["sums-new", "sums-old"]


def test_the_store_is_named_by_an_option_or_by_the_environment(store, monkeypatch):
    there = store / "there"
    themis.evaluate(ROWS, model="fake/perfect", prompt="{question}", run_id="there", storage=there, progress=False)

    assert words("show --storage there ") == ["there"]
    monkeypatch.setenv("THEMIS_STORAGE", str(there))
    assert words("show ") == ["there"]
    monkeypatch.setenv("THEMIS_STORAGE", "")
    assert words("show --storage nowhere ") == []
    assert not (store / "nowhere").exists()


@pytest.mark.postgres
def test_run_ids_of_a_database_are_completed(empty_postgres):
    themis.evaluate(
        ROWS, model="fake/perfect", prompt="{question}", run_id="far", storage=empty_postgres, progress=False
    )

    assert words(f"show --storage {empty_postgres} ") == ["far"]


def test_archived_versions_are_named_only_where_one_is_meant(store):
    again = [{"id": "a", "question": "3 + 3?", "answer": "6"}]
    themis.evaluate(again, model="fake/perfect", prompt="{question}", run_id="other", resume=False, progress=False)

    assert words("show oth") == ["other"]
    assert words("show other@") == ["other@1"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ev", ["eval"]),
        ("list met", ["metrics"]),
        ("eval gsm8", ["gsm8k"]),
        ("eval gsm8k --metric exact_m", ["exact_match"]),
        ("eval gsm8k --extractor last_n", ["last_number"]),
        ("eval gsm8k --reducer pass@", ["pass@3"]),
        ("eval gsm8k -m openai/gpt-4o-m", ["openai/gpt-4o-mini"]),
        ("eval gsm8k -m ollam", ["ollama/"]),
        ("eval gsm8k -m fake/perf", ["fake/perfect?ms=1", "fake/perfect"]),
        ("eval gsm8k --experiment ", ["others", "sums"]),
        ("eval gsm8k --cache s", ["store"]),
        ("eval gsm8k --execution r", ["ray"]),
        ("eval gsm8k --track wa", ["wandb"]),
        ("eval gsm8k --no-res", ["--no-resume"]),
        ("memory run -a windo", ["window"]),
        ("memory run -a openai/gpt-4o-m", ["openai/gpt-4o-mini"]),
        ("memory run -c qui", ["quick"]),
        ("data fetch gsm8", ["gsm8k"]),
        ("completion z", ["zsh"]),
    ],
)
def test_names_are_completed_where_they_are_taken(store, line, expected):
    assert words(line) == expected
    assert words(line, commands) == expected


def test_an_option_is_offered_once_unless_it_may_be_repeated(store):
    offered = words("eval gsm8k --limit 3 --metric exact_match --")

    assert "--metric" in offered
    assert "--limit" not in offered


def test_files_of_rows_are_offered_beside_benchmarks(store):
    for name in ("gsm-rows.csv", "gsm-notes.txt"):
        (store / name).touch()
    (store / "data").mkdir()
    (store / "data" / "rows.jsonl").touch()

    assert words("eval gsm") == ["gsm-symbolic", "gsm8k", "gsm-rows.csv"]
    assert words("eval data/r") == ["data/rows.jsonl"]
    # Whatever else there is, the shell itself completes.
    [item] = ShellComplete(LIGHT, {}, "themis", completing.VARIABLE).get_completions(["eval"], "dat")
    assert (item.type, item.value) == ("file", "dat")


def test_what_another_package_brings_is_completed_too(store, monkeypatch):
    found = [EntryPoint(name="metric.their_metric", value="theirs:Metric", group="themis")]
    monkeypatch.setattr("themis.core.registry._ENTRIES", [("metric", "their_metric", found[0].value)])

    assert words("eval gsm8k --metric their") == ["their_metric"]


def test_a_shell_is_answered_without_loading_what_commands_need(store):
    heavy = {
        "numpy",
        "scipy",
        "sqlalchemy",
        "aiohttp",
        "rich",
        "jinja2",
        "msgspec",
        "yaml",
        "rs_bpe",
        "themis.storage",
        "themis.api",
    }
    program = (
        "import json, sys\n"
        "from themis.cli import main\n"
        "try: main([])\n"
        "finally: json.dump(sorted(sys.modules), sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(PROJECT), completing.VARIABLE: "bash_complete"}
        | {"COMP_WORDS": "themis show su"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert done.stdout.split() == ["plain,sums-new", "plain,sums-old"]
    assert set(json.loads(done.stderr)) & heavy == set()


def test_an_old_run_is_completed_in_a_store_of_thousands(store):
    with closing(sqlite3.connect(store / ".cache" / "experiments" / "themis.db")) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(runs)") if row[1] != "run"]
        copied = ", ".join(
            {"run_id": "'many-' || n", "created_at": "created_at + n"}.get(name, name) for name in columns
        )
        connection.execute(
            f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000) "
            f"INSERT INTO runs ({', '.join(columns)}) SELECT {copied} FROM runs, numbers WHERE run_id = 'other'"
        )
        connection.commit()

    assert words("show sums-") == ["sums-new", "sums-old"]
    assert words("show many-17")[:2] == ["many-1799", "many-1798"]
    assert len(words("show ")) == 500


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("typed", "run_id"),
    [
        ("with", "with space"),
        ("with\\ ", "with space"),
        ("'with ", "with space"),
        ("\\$", "$(touch ran)`touch ran`"),
        ('"comma', "comma,ü"),
        ("quot", "quot'd;touch ran"),
    ],
)
def test_bash_puts_in_a_name_as_a_word_that_means_itself(store, typed, run_id):
    themis.evaluate(ROWS, model="fake/perfect", prompt="{question}", run_id=run_id, progress=False)
    asked = {"COMP_WORDS": f"themis show {typed}", completing.VARIABLE: "bash_complete", "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [sys.executable, "-m", "themis"], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    [word] = done.stdout.splitlines()
    kind, _, value = word.partition(",")
    # Bash leaves an open quote where it stands, and closes it.
    quote = typed[0] if typed[0] in "'\"" else ""

    said = subprocess.run(
        ["bash", "-c", f"printf %s {quote}{value}{quote}"], cwd=store, capture_output=True, text=True, check=True
    )
    assert (kind, said.stdout) == ("plain", run_id)
    assert not (store / "ran").exists()


def test_fish_is_told_words_with_commas_whole(call):
    assert 'string split --max 1 "," $completion' in call("completion", "fish").out


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_a_real_bash_completes(store):
    again = {"model": "fake/constant?text=a:b", "prompt": "{question}", "run_id": "other", "progress": False}
    themis.evaluate(ROWS, resume=False, **again)
    program = store / "bin" / "themis"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m themis "$@"\n')
    program.chmod(0o755)
    lines = {
        "themis show su": ["sums-new", "sums-old"],
        "themis show ": ["other", "sums-new", "sums-old"],
        "themis eval gsm8k --metric exact_m": ["exact_match"],
        "themis eval gsm8k --metric=exact_m": ["exact_match"],
        # Bash breaks words behind : and =, and before @, and puts in what comes after.
        "themis show other@": ["@1"],
        "themis eval gsm8k -m fake/constant?text=a:": ["b"],
        "themis eval gsm8k -m ollama/llama3:8b --metric exact_m": ["exact_match"],
        "themis eval 'two words' --metric exact_m": ["exact_match"],
    }
    script = """
        eval "$(themis completion bash)"
        complete -p themis
        while IFS= read -r COMP_LINE; do
            COMP_POINT=${#COMP_LINE} COMPREPLY=()
            _themis_completion themis
            echo "${COMPREPLY[*]}"
        done
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        input="".join(f"{line}\n" for line in lines),
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=120,
    )

    said, *replies = done.stdout.splitlines()
    assert said == "complete -o nosort -F _themis_completion themis", done.stderr
    assert dict(zip(lines, map(str.split, replies), strict=True)) == lines, done.stderr


@pytest.mark.parametrize(
    ("shell", "says"), [("bash", "complete -o"), ("zsh", "#compdef themis"), ("fish", "complete --no-files")]
)
def test_each_shell_has_its_script(call, shell, says):
    said = call("completion", shell)

    assert said.code == 0
    assert says in said.out


def test_the_shell_is_the_user_s_own_unless_one_is_named(call, monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert "#compdef themis" in call("completion").out

    monkeypatch.setenv("SHELL", "/usr/bin/nu")
    said = call("completion")
    assert said.code == 2
    assert "name a shell, one of bash, zsh, fish; yours is nu" in said.err
