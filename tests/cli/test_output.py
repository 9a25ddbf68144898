"""What a terminal shows of a message."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from themis.cli import themis as command_line
from themis.cli.terminal import wrap_text

TEXTS = st.lists(st.text(alphabet="ab-/ ", max_size=60), max_size=4).map("\n".join)


@given(TEXTS, st.integers(10, 80))
def test_wrapping_breaks_between_words_only(text, width):
    lines = wrap_text(text, width).splitlines()

    assert " ".join(lines).split() == text.split()
    assert all(len(line) <= width or len(line.split()) == 1 for line in lines)


def test_wrapped_lines_keep_their_indentation():
    assert (
        wrap_text("run 'a' differs:\n  prompt: was short, is long", 20)
        == "run 'a' differs:\n  prompt: was short,\n  is long"
    )


def test_an_error_fits_the_terminal_and_stays_whole_in_a_pipe(tmp_path):
    command = [sys.executable, "-m", "themis", "eval", "demo", "-m", "fake/perfect", "--metric", "exact_mach"]
    environment = {**os.environ, "COLUMNS": "50", "THEMIS_STORAGE": str(tmp_path)}

    piped = subprocess.run(command, env=environment, capture_output=True, text=True).stderr
    assert piped.count("\n") == 1

    shown = in_a_terminal(command, environment).splitlines()
    assert len(shown) > 2
    assert max(map(len, shown)) <= 50
    assert " ".join(shown) == piped.strip()


def test_a_narrow_terminal_cuts_no_number_in_two(tmp_path):
    environment = {**os.environ, "COLUMNS": "40", "THEMIS_STORAGE": str(tmp_path), "TERM": "dumb"}
    command = [sys.executable, "-m", "themis", "eval", "demo", "-m", "fake/perfect", "--no-progress"]

    shown = in_a_terminal(command, environment).split()

    assert {"ExactMatch", "1.0000", "[0.7411,", "1.0000]", "unparsed"} <= set(shown)


def test_sentences_on_a_narrow_terminal_end_between_words():
    sentence = "no difference can be claimed from so few puzzles, and nothing before them is remembered at all"
    program = f"from themis.cli.terminal import echo_text; echo_text({sentence!r})"

    shown = in_a_terminal([sys.executable, "-c", program], {**os.environ, "COLUMNS": "40"})

    assert " ".join(shown.split()) == sentence
    assert max(map(len, shown.splitlines())) <= 40


def in_a_terminal(command: list[str], environment: dict[str, str]) -> str:
    ours, theirs = os.openpty()
    subprocess.run(command, env=environment, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    with open(ours, "rb", buffering=0) as file:
        parts = []
        with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
            while part := file.read(4096):
                parts.append(part)
    return b"".join(parts).decode()


def test_what_code_of_the_user_prints_does_not_stand_in_the_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "question": "ab", "answer": "AB"}\n')
    (tmp_path / "app.py").write_text(
        "print('loaded')\n\ndef answer(prompt):\n    print('asked')\n    return prompt.upper()\n"
    )
    words = ["eval", "rows.jsonl", "--load", "app.py", "-m", "python:app.py:answer", "--storage", "store", "--json"]
    result = CliRunner().invoke(command_line, words)

    assert json.loads(result.stdout)["status"] == "completed", result.output
    assert result.stderr.count("asked") == 1
    assert "loaded" in result.stderr
