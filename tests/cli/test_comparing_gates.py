"""`themis gate` answers with its exit code: 0 passed, 1 failed, 3 could not tell."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from scored_runs import scored_run

from themis.cli import main

WEAK = [1, 0, 0, 1, 0, 0, 1, 0, 0, 1] * 4
STRONG = [1, 1, 0, 1, 1, 0, 1, 1, 0, 1] * 4


@pytest.fixture
def store(tmp_path):
    scored_run(tmp_path / "store", "weak", WEAK)
    scored_run(tmp_path / "store", "strong", STRONG)
    return str(tmp_path / "store")


def gate(*words):
    with pytest.raises(SystemExit) as leaving:
        main(["gate", *words])
    return leaving.value.code or 0


@pytest.mark.parametrize(
    ("candidate", "baseline", "extra", "code"),
    [
        ("strong", "weak", [], 0),
        ("strong", "weak", ["--min-delta", "0.25"], 0),
        ("strong", "weak", ["--min-delta", "0.35"], 1),
        ("strong", "weak", ["--significant"], 0),
        ("weak", "strong", [], 1),
        ("weak", "strong", ["--min-delta", "-0.5"], 0),
        ("weak", "strong", ["--non-inferiority", "0.05"], 1),
        ("strong", "weak", ["--non-inferiority", "0.05", "--budget-usd", "0", "--max-failed", "0"], 0),
        ("strong", "weak", ["--require-same", "model,prompt"], 0),
        ("strong", "weak", ["--require-same", "dataset"], 0),
        ("strong", "weak", ["--require-same", "provider_options"], 1),
        ("strong", "nobody", [], 3),
        ("strong", "weak", ["--metric", "Nothing"], 3),
        ("strong", "weak", ["--alpha", "7"], 2),
    ],
)
def test_the_exit_code_is_the_verdict(store, candidate, baseline, extra, code):
    assert gate(candidate, "--baseline", baseline, "--metric", "Number", *extra, "--storage", store) == code


def test_the_command_itself_ends_with_the_code(store):
    words = ["gate", "weak", "--baseline", "strong", "--metric", "number", "--storage", store]

    done = subprocess.run([sys.executable, "-m", "themis", *words], capture_output=True, text=True)

    assert done.returncode == 1, done.stderr
    assert "gate fail" in done.stdout


def test_the_verdict_is_for_machines_too(store, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    junit = tmp_path / "reports" / "gate.xml"

    code = gate(
        *("weak", "--baseline", "strong", "--metric", "Number", "--storage", store, "--json"),
        *("--junit", str(junit), "--github-summary"),
    )

    payload = json.loads(capsys.readouterr().out)
    assert (code, payload["verdict"], payload["exit_code"]) == (1, "fail", 1)
    assert ElementTree.parse(junit).getroot().get("failures") == "1"
    assert "### Gate: ❌ fail" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_a_missing_run_is_told_in_the_same_forms(store, tmp_path, capsys):
    code = gate(
        *("strong", "--baseline", "wek", "--metric", "Number", "--storage", store, "--json"),
        *("--junit", str(tmp_path / "gate.xml")),
    )

    assert code == 3
    assert "did you mean 'weak'" in json.loads(capsys.readouterr().out)["reasons"][0]
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("errors") == "1"


def test_outside_a_github_job_the_summary_is_skipped_with_a_word(store, monkeypatch, capsys):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    assert gate("strong", "--baseline", "weak", "--metric", "Number", "--storage", store, "--github-summary") == 0
    assert "GITHUB_STEP_SUMMARY is not set" in capsys.readouterr().err
