"""The guides' programs and commands run as they stand, one after the other, in an empty directory."""

import re
import shlex
from pathlib import Path

import pytest

from themis.cli import main

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def blocks(guide):
    return re.findall(
        r"^```(python|bash)\n(.*?)^```", guide.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


def run_command(line):
    with pytest.raises(SystemExit) as leaving:
        main(shlex.split(line)[1:])
    assert (leaving.value.code or 0) == 0, line


@pytest.mark.parametrize("name", ["comparison.md", "gates-and-provenance.md"])
def test_a_guide_runs_as_it_stands(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    namespace = {"__name__": "guide"}
    ran = 0
    # Programs first: commands in between look at runs that an earlier or the next program makes.
    for language, text in sorted(blocks(GUIDES / name), key=lambda block: block[0] == "bash"):
        if language == "python":
            exec(compile(text, name, "exec"), namespace)
        else:
            for line in text.splitlines():
                run_command(line)
                ran += 1

    assert ran >= 8
    assert {path.name for path in (tmp_path / "outputs").iterdir()} == {
        "comparison.md": {"comparison.html", "diff.html", "fixed.csv"},
        "gates-and-provenance.md": {"gate.xml", "reproducibility_audit.json"},
    }[name]
