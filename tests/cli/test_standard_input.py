"""`themis eval -`: rows from another program, in any format, stored and resumable like a file's."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until
from themis.storage import ExperimentStorage

PROJECT = Path(__file__).parents[2]
ROWS = [{"id": str(n), "question": f"{n} + 1?", "answer": str(n + 1)} for n in range(3)]


def as_table(separator: str) -> str:
    return "".join(separator.join(cells) + "\n" for cells in (ROWS[0].keys(), *(row.values() for row in ROWS)))


FORMS = {
    "jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
    # A first row that is longer than what is looked at first.
    "long jsonl": "".join(json.dumps({**row, "context": "x" * 9_000}) + "\n" for row in ROWS),
    "json": json.dumps(ROWS, indent=2),
    "csv": as_table(","),
    "tsv": as_table("\t"),
    "csv with a mark": "\ufeff" + as_table(","),
}


@pytest.fixture
def ask(call, monkeypatch, tmp_path):
    """`themis eval - ...` with this text on standard input."""
    monkeypatch.chdir(tmp_path)

    def run(text: str | bytes, *options: str):
        content = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return call("eval", "-", "-m", "fake/perfect", *options)

    return run


@pytest.mark.parametrize("form", FORMS)
def test_the_format_is_known_by_the_first_bytes(ask, form):
    said = ask(FORMS[form], "--json")

    assert said.code == 0, said.err
    assert json.loads(said.out)["metrics"]["ExactMatch"]["count"] == 3
    assert json.loads(said.out)["metrics"]["ExactMatch"]["mean"] == 1.0


def test_the_format_can_be_said(ask):
    # With a tab in a column's name.
    said = ask("question,a\tnote,answer\n1 + 1?,x,2\n", "--format", "csv")
    wrong = ask(FORMS["tsv"], "--format", "csv")

    assert said.code == 0, said.err
    assert wrong.code == 2
    assert "standard input: its columns seem to be separated by '\\t'" in wrong.err


def test_the_same_command_goes_on_and_other_rows_are_another_run(ask, tmp_path):
    # The same rows are the same, whatever they are written in.
    for form in ("jsonl", "csv"):
        assert ask(FORMS[form], "--run-id", "piped").code == 0
        assert ExperimentStorage(tmp_path / ".cache/experiments").get_run("piped").calls == 3

    other = ask(FORMS["jsonl"].replace("2 + 1", "2 + 2"), "--run-id", "piped")

    assert other.code == 2
    assert "run 'piped' exists with other inputs" in other.err


def test_a_piped_run_is_resumed_without_the_pipe(ask, call, tmp_path):
    stopped = ask(
        "".join(json.dumps(row) + "\n" for row in ROWS), "--run-id", "piped", "-m", "fake/flaky-1", "--max-retries", "1"
    )
    assert stopped.code != 0
    assert (
        ExperimentStorage(tmp_path / ".cache/experiments").get_run("piped").config_snapshot["specification"]["dataset"]
        == "-"
    )

    again = call("resume", "piped")

    # Its rows were stored before the first call; that the model goes on failing is another matter.
    assert "no file" not in again.err
    assert "standard input" not in again.err
    assert "none of 3 samples was answered" in again.err


def test_a_piped_run_that_was_killed_is_finished_without_the_pipe(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(json.dumps({"id": str(n), "question": f"{n}?", "answer": str(n)}) + "\n" for n in range(20))
    words = ["eval", "-", "-m", "fake/perfect?ms=200", "-j", "1", "--run-id", "piped"]
    process = subprocess.Popen(
        [sys.executable, "-m", "themis", *words],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    process.stdin.write(rows.encode())
    process.stdin.close()
    storage = ExperimentStorage(tmp_path / ".cache/experiments")
    wait_until(lambda: storage.exists() and storage.run_exists("piped") and storage.get_run("piped").calls >= 2)
    process.kill()
    process.wait()

    said = call("resume", "piped", "--json")

    assert said.code == 0, said.err
    assert json.loads(said.out)["metrics"]["ExactMatch"]["count"] == 20
    # The one that was under way is asked again, and no other.
    assert storage.get_run("piped").calls <= 21


def test_a_run_that_was_killed_before_its_rows_were_stored_says_what_to_do(ask, call, tmp_path):
    ask(FORMS["jsonl"], "--run-id", "piped")
    storage = ExperimentStorage(tmp_path / ".cache/experiments")
    run = storage.get_run("piped")
    storage.start_run("cut-off", config=run.config_snapshot)

    said = call("resume", "cut-off")

    assert said.code == 2
    assert "which came by standard input; run that command again with the same rows" in said.err


def test_how_to_repeat_it_is_told_with_the_rows_that_the_store_has(ask, call):
    ask(FORMS["jsonl"], "--run-id", "piped")

    said = call("reproduce", "piped")

    assert "eval piped.rows.jsonl" in said.out
    assert "the rows came from standard input; the store has them" in said.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "standard input has no rows"),
        (" \n\n", "standard input has no rows"),
        (
            "".join(json.dumps(row, indent=2) + "\n" for row in ROWS),
            "standard input, line 6: not valid JSON: Extra data (column 1); several rows are one array, or a line each (jq -c)",
        ),
        ('{"question": "1?", "answer": "1"}\n{broken\n', "standard input, line 2: not valid JSON"),
        ("question,answer\n1,2,3\n", "standard input, line 2: 3 cells, but the first line names 2 columns"),
        (b"\xff\xfe\x00", "standard input: not UTF-8"),
        ("What is 2 + 2?\n", "standard input has no rows"),
        (
            "What is 2 + 2?\nWhat is 3 + 3?\n",
            "standard input has the fields What is 2 + 2? and none of prompt, question",
        ),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(ask, text, says):
    said = ask(text)

    assert said.code == 2
    assert says in said.err


def test_a_terminal_is_no_source_of_rows(tmp_path):
    primary, secondary = os.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "themis", "eval", "-", "-m", "fake/perfect"],
        stdin=secondary,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    os.close(primary)
    os.close(secondary)

    assert done.returncode == 2
    assert "rows are read from standard input, which is this terminal: name a file, or pipe rows in" in done.stderr


def test_nobody_is_asked_anything_where_standard_input_is_data(ask):
    # A model of known price, whose cost a person at a terminal would be asked about.
    said = ask(FORMS["jsonl"], "-m", "openai/gpt-4o", "--option", "api_base=http://127.0.0.1:9/v1", "--option", "api_key=none",
               "--max-retries", "1")  # fmt: skip

    assert "go on?" not in said.err
    assert said.code == 3


def test_a_file_says_its_own_format(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(FORMS["csv"])

    said = call("eval", "rows.csv", "-m", "fake/perfect", "--format", "csv")

    assert said.code == 2
    assert "--format is for rows on standard input (-); 'rows.csv' says by its name what it is" in said.err


def test_an_estimate_reads_standard_input_too(call, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FORMS["tsv"].encode())))

    said = call("estimate", "-", "-m", "openai/gpt-4o", "--json")

    assert json.loads(said.out)["rows"] == 3


def test_a_closed_standard_input_is_said_to_be_closed(tmp_path):
    command = shlex.join([sys.executable, "-m", "themis", "eval", "-", "-m", "fake/perfect"])
    done = subprocess.run(["sh", "-c", f"{command} <&-"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert "rows are read from standard input, which is closed: name a file, or pipe rows in" in done.stderr
