"""`themis run` and `themis init`: whole experiments from one file, and a file to begin with."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from themis.experiments.schema import experiment_schema
from themis.experiments.starting import STARTERS
from themis.storage import ExperimentStorage

FILE = """name: sums
datasets: [rows.jsonl]
subjects: [fake/perfect, {name: weak, model: fake/noisy-0.5}]
prompt: "{question}"
metrics: [exact_match]
baseline: weak
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": str(n), "question": f"{n} + 1?", "answer": str(n + 1)} for n in range(10)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    path = tmp_path / "sums.yml"
    path.write_text(FILE, encoding="utf-8")
    return path


# --- run ------------------------------------------------------------------------------------------------------------


def test_a_file_is_run_and_ends_with_one_report(call, file):
    said = call("run", "sums.yml")

    assert said.code == 0
    assert "[2/2]" in said.err
    assert "perfect · rows: ExactMatch 1.0000, 10 items, $0.0000" in said.err
    assert "ExactMatch on rows" in said.out
    assert "sums: 2 of 2 runs complete, $0.0000 spent" in said.out
    assert call("run", "sums.yml").code == 0


def test_a_dry_run_counts_what_a_changed_prompt_asks_anew_if_that_is_allowed(call, file):
    call("run", "sums.yml")
    file.write_text(FILE.replace("{question}", "Q: {question}"), encoding="utf-8")

    refused = call("run", "sums.yml", "--dry-run")
    planned = json.loads(call("run", "sums.yml", "--dry-run", "--allow-drift", "--json").out)

    assert refused.code == 2
    assert "another name for what has changed" in refused.err
    assert [run["calls"] for run in planned["runs"]] == [10, 10]
    assert call("run", "sums.yml", "--allow-drift").code == 0
    planned = json.loads(call("run", "sums.yml", "--dry-run", "--allow-drift", "--json").out)
    assert planned["calls"] == 0


def test_a_dry_run_lists_all_mistakes(call, file):
    file.write_text(FILE.replace("exact_match", "exact_mtch").replace("fake/perfect", "fake/perfct"), encoding="utf-8")

    said = call("run", "sums.yml", "--dry-run")

    assert said.code == 2
    assert "sums.yml:3: unknown fake model 'perfct' (did you mean 'perfect'?)" in said.err
    assert "sums.yml:5: unknown metric 'exact_mtch' (did you mean 'exact_match'?)" in said.err


PRICED = """
from themis.core.entities import GenerationRecord, ModelOutput
from themis.generation.providers import register_provider
from themis.interfaces import StatelessTaskExecutor


class Priced(StatelessTaskExecutor):
    is_local = False

    def execute(self, task):
        # A million answer tokens of gpt-4o cost 10 dollars.
        return GenerationRecord(task, ModelOutput("1", None, {"prompt_tokens": 4, "completion_tokens": 1_000}), None)


register_provider("priced", Priced)
"""


def test_who_has_reached_the_budget_is_told_the_command_with_a_larger_one(call, file):
    Path("priced.py").write_text(PRICED, encoding="utf-8")
    told = "subjects: [priced/gpt-4o]\nload: [priced.py]\nmax_tokens: 1000"
    file.write_text(FILE.replace("baseline: weak", "").replace(FILE.splitlines()[2], told), encoding="utf-8")

    said = call("run", "sums.yml", "--budget-usd", "0.05")

    assert said.code == 130
    assert "Go on with: themis run sums.yml --budget-usd 0.11" in said.err
    assert call("run", "sums.yml", "--budget-usd", "0.11").code == 0


def test_json_and_nothing_else_is_on_stdout(call, file):
    told = json.loads(call("run", "sums.yml", "--json").out)

    assert (told["experiment"], told["exit_code"], len(told["runs"])) == ("sums", 0, 2)


def test_a_dry_run_prints_the_plan_calls_nothing_and_writes_nothing(call, file, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    file.write_text(FILE.replace("fake/perfect", "openai/gpt-4o"), encoding="utf-8")
    before = sorted(path.name for path in file.parent.iterdir())

    said = call("run", "sums.yml", "--dry-run")

    assert "all that is left" in said.out
    assert "new" in said.out
    assert sorted(path.name for path in file.parent.iterdir()) == before
    # The plan needs no key, but the run would.
    assert said.code == 2
    assert "sums.yml:3: " in said.err
    assert "OPENAI_API_KEY" in said.err


def test_a_dry_run_says_what_is_done(call, file):
    call("run", "sums.yml", "--only", "perfect")
    plan = json.loads(call("run", "sums.yml", "--dry-run", "--json").out)

    assert [(run["run_id"], run["complete"], run["calls"]) for run in plan["runs"]] == [
        ("sums--perfect--rows", True, 0),
        ("sums--weak--rows", False, 10),
    ]
    assert (plan["calls"], plan["likely_usd"]) == (10, 0.0)


def test_mistakes_name_the_file_and_the_lines_and_nothing_is_stored(call, file):
    file.write_text(FILE.replace("datasets:", "datsets:").replace("exact_match", "exact_mtch"), encoding="utf-8")

    said = call("run", "sums.yml")

    assert said.code == 2
    assert "sums.yml:2: unknown key 'datsets' (did you mean 'datasets'?)" in said.err
    assert not ExperimentStorage().exists()


def test_a_gate_that_fails_makes_the_exit_code_1_and_is_told(call, file):
    file.write_text(FILE + "gates: [{metric: ExactMatch, at_least: 0.95}]\n", encoding="utf-8")

    said = call("run", "sums.yml")

    assert said.code == 1
    assert "gate of ExactMatch fails, weak · rows: ExactMatch 0." in said.err


def test_the_report_is_written_where_the_command_was_given(call, file, monkeypatch):
    elsewhere = file.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    said = call("run", "../sums.yml", "--output", "report.html", "--output", "report.md", "--storage", "store")

    assert said.code == 0
    assert {path.name for path in elsewhere.iterdir()} == {"report.html", "report.md", "store"}


def test_a_report_that_cannot_be_written_is_refused_before_the_first_call(call, file):
    said = call("run", "sums.yml", "--output", "report.pdf")

    assert (said.code, "a report is written as .html, .md, .json" in said.err) == (2, True)
    assert not ExperimentStorage().exists()


def test_the_hint_to_go_on_does_not_begin_anew(call, file):
    file.write_text(FILE.replace("fake/perfect", '{name: broken, model: "fake/flaky-1.0"}') + "max_retries: 1\n")

    said = call("run", "sums.yml", "--no-resume")

    assert said.code == 3
    assert "Go on with: themis run sums.yml\n" in said.err


# --- the schema -----------------------------------------------------------------------------------------------------


def test_the_schema_is_printed_and_is_one(call):
    printed = json.loads(call("run", "--schema").out)

    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed == json.loads(json.dumps(experiment_schema()))


@pytest.mark.parametrize("task", STARTERS)
def test_the_schema_takes_every_starter(task):
    path = Path(__file__).parents[2] / "themis" / "experiments" / "starters" / task / "experiment.yml"

    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), experiment_schema())


@pytest.mark.parametrize(
    "wrong",
    ["subjcts: []", "temperature: hot", "gates: [{at_least: 1}]", "memory: {agnts: []}", "prompts: {a: {promt: x}}"],
)
def test_the_schema_refuses_what_the_reader_refuses(wrong):
    whole = {"name": "x", "model": "fake/perfect", "dataset": "demo", **yaml.safe_load(wrong)}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(whole, experiment_schema())


def test_every_setting_is_explained_to_editors():
    settings = experiment_schema()["$defs"]["samples"]["properties"]

    assert "Of sampling" in settings["temperature"]["description"]
    assert [name for name, one in settings.items() if "description" not in one] == []


# --- init -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", STARTERS)
def test_what_init_writes_runs_as_it_is(call, task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written = call("init", task)

    assert written.code == 0
    assert "run it with: themis run experiment.yml" in written.out
    said = call("run", "experiment.yml")
    assert said.code == 0, said.err
    first, *_ = Path("experiment.yml").read_text(encoding="utf-8").splitlines()
    assert first == "# yaml-language-server: $schema=experiment.schema.json"
    assert Path("experiment.schema.json").is_file()


def test_init_overwrites_nothing(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text("mine", encoding="utf-8")

    said = call("init", "questions")

    assert (said.code, "rows.jsonl exists already and is not overwritten" in said.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]
    assert call("init", "questions", "--to", "new/folder").code == 0
    assert Path("new/folder/experiment.yml").is_file()


def test_init_lists_its_tasks_and_knows_the_nearest(call):
    assert all(task in call("init", "--list").out for task in STARTERS)
    assert "no starter 'question' (did you mean 'questions'?)" in call("init", "question").err
