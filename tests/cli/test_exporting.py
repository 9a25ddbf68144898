"""`themis export`, `share`, `publish` and `import`: streams, exit codes, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import themis
from themis.storage import ExperimentStorage

ROWS = [{"id": f"q{n}", "question": f"{n}?", "answer": str(n)} for n in range(6)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THEMIS_STORAGE", raising=False)
    themis.evaluate(
        ROWS, model="fake/noisy-0.3", prompt="{question}", metrics=["exact_match"], run_id="first", progress=False
    )
    return tmp_path


@pytest.fixture
def cli(here: Path, call: Any) -> Any:
    return call


def test_export_writes_the_bundle_and_prints_one_path_a_line(cli, here):
    done = cli("export", "first", "--to", "out")
    assert done.code == 0
    assert done.out.splitlines() == ["out/report.csv", "out/report.json", "out/report.html", "out/summary.json"]
    assert len(json.loads((here / "out/report.json").read_text())["samples"]) == 6


def test_export_takes_several_formats_at_once(cli, here):
    done = cli("export", "first", "--to", "out", "--format", "jsonl, junit", "--format", "latex", "--json")
    assert json.loads(done.out) == {
        "jsonl": ["out/samples.jsonl"],
        "junit": ["out/junit.xml"],
        "latex": ["out/report.tex"],
    }


def test_export_twice_of_the_same_run_writes_the_same_files(cli, here):
    every = "csv,json,html,summary,parquet,jsonl,markdown,latex,junit,inspect,lm-eval"
    for folder in ("a", "b"):
        assert cli("export", "first", "--to", folder, "--format", every).code == 0
    one = {path.name: path.read_bytes() for path in (here / "a").iterdir()}
    assert one == {path.name: path.read_bytes() for path in (here / "b").iterdir()}


@pytest.mark.parametrize("verb", [("export", "--to", "out"), ("share",), ("publish", "--to", "otel")])
def test_an_unknown_run_is_named_with_its_nearest_and_exits_3(cli, here, verb):
    name, *options = verb
    said = cli(name, "frist", *options)
    assert (said.code, said.out) == (3, "")
    assert "no run 'frist'" in said.err
    assert "did you mean 'first'" in said.err
    missing = cli(name, "first", *options, "--storage", "nowhere")
    assert (missing.code, "nowhere" in missing.err) == (3, True)
    assert not (here / "nowhere").exists()


def test_an_unknown_format_exits_2(cli):
    said = cli("export", "first", "--to", "out", "--format", "cvs")
    assert said.code == 2
    assert "unknown export format 'cvs' (did you mean 'csv'" in said.err


def test_share_prints_paths_and_the_line_to_paste(cli, here):
    said = cli("share", "first")
    assert said.code == 0
    lines = said.out.splitlines()
    assert "themis-share-first.svg" in lines[0]
    assert "themis-share-first.md" in lines[1]
    assert lines[2].startswith("![first: ExactMatch 0.")
    assert (here / "themis-share-first.svg").exists()
    assert (here / ".cache/experiments/share_events.jsonl").exists()
    assert cli("share", "first", "--metric", "nothing").code == 2


def test_publish_names_a_wrong_tracker_or_option_before_sending(cli):
    assert "did you mean 'mlflow'" in cli("publish", "first", "--to", "mlfow").err
    said = cli("publish", "first", "--to", "mlflow", "--option", "tracking=x")
    assert said.code == 2
    assert "no option 'tracking' (did you mean 'tracking_uri'" in said.err
    assert cli("publish", "first", "--to", "hub", "--option", "repository").code == 2


def test_publish_to_mlflow_prints_where_the_run_is(cli, here, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    said = cli("publish", "first", "--to", "mlflow", "--option", f"tracking_uri={(here / 'mlruns').as_uri()}")
    assert said.code == 0, said.err
    assert "mlruns run " in said.out
    assert list((here / "mlruns").rglob("report.json"))


def test_publish_tells_in_a_line_what_could_not_be_reached_and_goes_on_with_the_rest(cli, here, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    to = ("--to", "hub", "--to", "mlflow", "--option", "repository=a/b", "--option", "hub.endpoint=http://127.0.0.1:9")
    said = cli("publish", "first", *to, "--option", f"tracking_uri={(here / 'mlruns').as_uri()}", "--json")
    assert said.code == 3
    assert said.err.strip().splitlines()[-1].startswith("Error: first could not be sent to hub: ConnectError")
    assert list(json.loads(said.out)) == ["mlflow"]


def test_eval_and_resume_show_a_run_where_they_are_told_to(cli, here, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    (here / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in ROWS))
    tracked = ("--track", "mlflow", "--track-option", f"tracking_uri={(here / 'mlruns').as_uri()}")
    said = cli("eval", "rows.jsonl", "-m", "fake/perfect", "--run-id", "shown", *tracked)
    assert said.code == 0, said.err
    first = set((here / "mlruns").rglob("report.json"))
    assert cli("resume", "first", *tracked).code == 0
    assert len(set((here / "mlruns").rglob("report.json")) - first) == 1


def test_eval_refuses_a_tracker_that_is_not_there_before_the_first_call(cli):
    asked = ("eval", "demo", "-m", "fake/perfect", "--run-id", "never")
    said = cli(*asked, "--track", "mlfow")
    assert (said.code, "did you mean 'mlflow'" in said.err) == (2, True)
    said = cli(*asked, "--track-option", "project=x")
    assert (said.code, "needs a --track TRACKER" in said.err) == (2, True)
    assert "never" not in cli("list", "runs").out


def test_a_missing_package_exits_3_with_one_line(cli, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "wandb", None)
    said = cli("publish", "first", "--to", "wandb")
    assert said.code == 3
    assert said.err.strip().splitlines()[-1] == (
        "Error: publishing to Weights & Biases needs the package wandb: pip install 'themis-eval[wandb]'"
    )


def test_import_brings_an_export_back_and_says_when_it_was_there(cli, here):
    cli("export", "first", "--to", "out", "--format", "inspect,lm-eval")
    logs = [str(next((here / "out").glob(pattern))) for pattern in ("*_first.json", "samples_*.jsonl")]
    done = cli("import", *logs)
    assert done.code == 0
    runs = done.out.split()
    assert len(runs) == 2
    store = ExperimentStorage(".cache/experiments")
    for run_id in runs:
        assert store.get_run(run_id).total_samples == 6
    again = cli("import", logs[0])
    assert again.out.split() == runs[:1]
    assert "was imported before" in again.err


def test_import_reports_broken_lines_and_keeps_the_rest(cli, here):
    cli("export", "first", "--to", "out", "--format", "lm-eval")
    path = next((here / "out").glob("samples_*.jsonl"))
    lines = path.read_text().splitlines()
    lines[1] = lines[1][:50]
    path.write_text("\n".join(lines))
    said = cli("import", str(path), "--json")
    assert said.code == 3
    assert "line 2 was left out: not JSON" in said.err
    (imported,) = json.loads(said.out)
    assert (imported["samples"], len(imported["broken"])) == (5, 1)


def test_import_of_several_files_takes_no_run_id(cli):
    said = cli("import", "a.json", "b.json", "--run-id", "x")
    assert said.code == 2
    assert "--run-id names one run, but 2 files were given" in said.err
