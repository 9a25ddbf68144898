"""What a run is asked with: its benchmark's protocol, a row's own sampling, and what older runs were started with."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

import themis
from themis import api
from themis.cli import themis as command_line
from themis.core.entities import GenerationRecord, ModelOutput, SamplingConfig
from themis.exceptions import ConfigurationError, ThemisError
from themis.experiment.export import export_report_bundle
from themis.experiment.reproduce import reproduction
from themis.generation.providers import PROVIDERS
from themis.generation.templates import PromptTemplate
from themis.interfaces import StatelessTaskExecutor
from themis.presets import BenchmarkPreset, register_benchmark
from themis.presets.benchmarks import BENCHMARKS
from themis.presets.examples import with_examples
from themis.presets.protocols import FewShot
from themis.storage import ExperimentStorage

ROWS = [{"id": str(n), "question": f"{n}+1", "answer": str(n + 1)} for n in range(4)]


@pytest.fixture
def echo(monkeypatch):
    """A provider that remembers the tasks it was given; its answer is the prompt."""
    tasks = []

    class Echo(StatelessTaskExecutor):
        prompt_only = True

        def execute(self, task):
            tasks.append(task)
            return GenerationRecord(task, ModelOutput(task.prompt.text), error=None)

    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    themis.register_provider("echo", Echo)
    return tasks


def ask(rows, tmp_path, **changes):
    settings = {"model": "echo/it", "prompt": "{question}", "storage": tmp_path, "progress": False, "workers": 1}
    return themis.evaluate(rows, **{**settings, **changes})


# --- a row's own sampling -----------------------------------------------------------------------------------------------


def test_a_row_s_sampling_takes_the_place_of_the_run_s(echo, tmp_path):
    own = {"sampling": {"max_tokens": 64, "stop": ["\n"], "temperature": 0.5}}

    ask([ROWS[0], {**ROWS[1], **own}], tmp_path, max_tokens=32, run_id="run")

    plain, changed = (task.sampling for task in echo)
    assert (plain.temperature, plain.top_p, plain.max_tokens, plain.stop) == (0.0, None, 32, ())
    assert (changed.temperature, changed.top_p, changed.max_tokens, changed.stop) == (0.5, None, 64, ("\n",))
    _, stored = ExperimentStorage(tmp_path).reader("run").record("1")
    assert stored.task.sampling == changed


def test_an_answer_is_shared_only_with_a_row_of_the_same_sampling(echo, tmp_path):
    for run_id, most in (("a", 64), ("b", 64), ("c", 65)):
        ask([{**ROWS[0], "sampling": {"max_tokens": most}}], tmp_path, run_id=run_id, cache="store")

    assert [task.sampling.max_tokens for task in echo] == [64, 65]


@pytest.mark.parametrize(
    "given", ["stratified", {"size": 3}, {"max_tokens": 0}, {"stop": [""]}, {"temperature": "hot"}]
)
def test_a_field_that_is_no_sampling_is_refused_before_the_first_call(echo, tmp_path, given):
    with pytest.raises(ConfigurationError, match=r"row 0: the field 'sampling' .* if it is data, rename the field"):
        ask([{**ROWS[0], "sampling": given}], tmp_path)

    assert echo == []


# --- runs that were started before benchmarks had protocols -----------------------------------------------------------------


@pytest.fixture
def older(tmp_path):
    """Four runs, each with answers to its first two rows only."""
    (tmp_path / "store").mkdir()
    with sqlite3.connect(tmp_path / "store" / "themis.db") as database:
        database.executescript(Path(__file__).with_name("older_store.sql").read_text(encoding="utf-8"))
    return ExperimentStorage(tmp_path / "store")


@pytest.mark.parametrize("run_id", ["own", "warm", "labelled", "benchmark"])
def test_an_older_run_is_resumed_as_it_was_started(older, run_id):
    before = older.reader(run_id).frame

    report = api.resume(run_id, storage=older, progress=False)

    assert (report.metadata["status"], report.evaluation_report.metrics.popitem()[1].mean) == ("completed", 1.0)
    assert {record.task.sampling.top_p for record in report.generation_results} == {0.95}
    assert older.reader(run_id).frame == before


@pytest.mark.parametrize(
    ("run_id", "given"), [("own", {}), ("warm", {"temperature": 0.7, "max_tokens": 64, "num_samples": 2})]
)
def test_the_call_that_started_an_older_run_goes_on_with_it(older, run_id, given):
    report = themis.evaluate(
        ROWS, model="fake/perfect", prompt="{question}", run_id=run_id, storage=older, progress=False, **given
    )

    assert (report.metadata["status"], len(report.generation_results)) == ("completed", 4)
    assert older.archived_versions(run_id) == []


def test_an_older_run_is_made_again_with_what_it_was_sampled_with(older):
    assert " ".join(reproduction(older, "own").command).endswith(
        "--temperature 0 --top-p 0.95 --max-tokens 512 --num-samples 1 --run-id own-again"
    )


# --- a benchmark's protocol, and what is asked otherwise -----------------------------------------------------------------


def preset(**changes) -> BenchmarkPreset:
    settings = {
        "name": "sums",
        "prompt_template": PromptTemplate("sums", "{question}="),
        "metrics": ["exact_match"],
        "extractor": "identity",
        "dataset_loader": lambda limit: ROWS[:limit],
        "sampling": SamplingConfig(temperature=0.6, top_p=0.9, max_tokens=2_000, stop=("\n",)),
        "attempts": 2,
    }
    return BenchmarkPreset(**{**settings, **changes})


def ask_preset(benchmark, tmp_path, **changes):
    settings = {"model": "echo/it", "storage": tmp_path, "progress": False, "workers": 1, "run_id": "run", "limit": 1}
    return themis.evaluate(benchmark, **{**settings, **changes})


def test_a_benchmark_is_asked_by_its_protocol(echo, tmp_path):
    report = ask_preset(preset(), tmp_path)

    assert [vars(task.sampling) for task in echo] == 2 * [vars(preset().sampling)]
    assert report.metadata["caveats"] == []
    assert report.metadata["protocol"] == (
        "sums, version 1 (source: themis): no examples, temperature 0.6, top_p 0.9, 2,000 tokens, 2 attempts"
    )
    manifest = report.metadata["reproducibility_manifest"]
    assert manifest["protocol"] == {**preset().protocol.to_dict(), "deviations": []}
    assert ExperimentStorage(tmp_path).reader("run").identity["protocol"] == "sums version 1"


@pytest.mark.parametrize(
    ("changes", "mark"),
    [
        ({"max_tokens": 512}, "max_tokens 512 instead of 2000"),
        ({"temperature": 0}, "temperature 0 instead of 0.6"),
        ({"top_p": 1.0}, "top_p 1 instead of 0.9"),
        ({"stop": ["END"]}, 'stop ["END"] instead of ["\\n"]'),
        ({"num_samples": 1}, "num_samples 1 instead of 2"),
        ({"reducer": "best"}, "reducer best instead of average"),
        ({"prompt": "Q: {question}"}, "another prompt"),
        ({"extractor": "last_number"}, "extractor last_number instead of identity"),
        ({"metrics": ["includes"]}, "metrics without exact_match"),
    ],
)
def test_what_is_asked_otherwise_marks_the_run(echo, tmp_path, changes, mark):
    report = ask_preset(preset(), tmp_path, **changes)

    assert report.metadata["caveats"] == [f"not the published protocol: {mark}"]
    store = ExperimentStorage(tmp_path)
    assert store.reader("run").identity["protocol"] == f"sums version 1; {mark}"
    shown = CliRunner().invoke(command_line, ["show", "run", "--storage", str(tmp_path)]).output
    assert shown.index(mark) < shown.index("mean")
    assert (
        "(not the published protocol)"
        in CliRunner().invoke(command_line, ["list", "runs", "--storage", str(tmp_path)]).output
    )


def test_what_is_said_as_the_protocol_says_it_marks_nothing(echo, tmp_path):
    same = {
        "max_tokens": 2_000,
        "temperature": 0.6,
        "top_p": 0.9,
        "stop": ["\n"],
        "num_samples": 2,
        "reducer": "average",
    }

    report = ask_preset(preset(), tmp_path, **same, prompt="{question}=", metrics=["exact_match", "includes"])

    assert report.metadata["caveats"] == []


def test_a_system_prompt_of_the_protocol_reaches_the_provider_and_is_gone_on_with(monkeypatch, tmp_path):
    heard = []

    class Listener(StatelessTaskExecutor):
        def __init__(self, *, system_prompt=None):
            heard.append(system_prompt)

        def execute(self, task):
            return GenerationRecord(task, ModelOutput("1"), error=None)

    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    themis.register_provider("listener", Listener)
    told = preset(system_prompt="Be brief.", attempts=1)
    ask_preset(told, tmp_path, model="listener/it")
    again = ask_preset(told, tmp_path, model="listener/it", system_prompt="Be long.", run_id="other")

    assert set(heard) == {"Be brief.", "Be long."}
    assert again.metadata["caveats"] == ["not the published protocol: another system prompt"]
    assert ExperimentStorage(tmp_path).get_run("run").config_snapshot["specification"]["system_prompt"] == "Be brief."


# --- examples ------------------------------------------------------------------------------------------------------------

SHOWN = [{"question": f"{n}+2", "answer": str(n + 2)} for n in range(5, 9)]


def test_examples_stand_before_the_question_with_their_answers(echo, tmp_path):
    report = ask_preset(preset(few_shot=FewShot(count=2, rows=SHOWN, reply=" {answer}")), tmp_path, num_samples=1)

    assert echo[0].prompt.text == "5+2= 7\n\n6+2= 8\n\n0+1="
    assert report.metadata["protocol"].startswith("sums, version 1 (source: themis): 2 examples")


def test_a_row_is_never_its_own_example(echo, tmp_path):
    own = [{"id": "x", "question": "6+2", "answer": "8"}]
    benchmark = preset(
        few_shot=FewShot(count=2, rows=SHOWN, reply="{answer}"), dataset_loader=lambda limit: own, attempts=1
    )

    ask_preset(benchmark, tmp_path)

    assert echo[0].prompt.text == "5+2=7\n\n7+2=9\n\n6+2="


def test_a_draw_is_the_same_each_time_and_another_with_another_seed():
    def shown(seed):
        few_shot = FewShot(count=3, rows=SHOWN, reply="", seed=seed)
        return with_examples(preset(few_shot=few_shot)).fill(ROWS[0])

    assert shown(1) == shown(1)
    assert len({shown(seed) for seed in range(8)}) > 3


def test_rows_are_shown_examples_of_their_own_group(echo, tmp_path):
    rows = [{**row, "kind": "odd" if n % 2 else "even"} for n, row in enumerate(ROWS)]
    shown = [{**row, "kind": "odd" if n % 2 else "even"} for n, row in enumerate(SHOWN)]
    few_shot = FewShot(count=1, rows=shown, reply="{answer}", group="kind", introduction="Sums that are {kind}.")

    ask_preset(preset(few_shot=few_shot, dataset_loader=lambda limit: rows, attempts=1), tmp_path, limit=2)

    assert [task.prompt.text for task in echo] == [
        "Sums that are even.\n\n5+2=7\n\n0+1=",
        "Sums that are odd.\n\n6+2=8\n\n1+1=",
    ]


def test_examples_as_turns_of_a_chat(echo, tmp_path):
    few_shot = FewShot(count=1, rows=SHOWN, reply="{answer}", as_messages=True)
    ask_preset(preset(few_shot=few_shot, attempts=1), tmp_path)

    turns = [("user", "5+2="), ("assistant", "7"), ("user", "0+1=")]
    assert [(turn["role"], turn["content"]) for turn in echo[0].metadata["messages"]] == turns
    _, stored = ExperimentStorage(tmp_path).reader("run").record("0")
    assert stored.task.metadata["messages"] == echo[0].metadata["messages"]


@pytest.mark.parametrize("as_messages", [False, True])
def test_a_run_with_examples_is_resumed_with_the_same_ones(echo, tmp_path, as_messages, monkeypatch):
    monkeypatch.setattr(BENCHMARKS, "_targets", {name: BENCHMARKS.target(name) for name in BENCHMARKS.names()})
    few_shot = FewShot(count=1, rows=SHOWN, reply="{answer}", as_messages=as_messages)
    register_benchmark(preset(few_shot=few_shot, attempts=1))
    stop = ask_preset("sums", tmp_path, limit=4, stop_when=lambda record: "enough", workers=1)
    first = len(stop.generation_results)
    register_benchmark(preset(attempts=1))  # the store alone knows the examples now

    report = api.resume("run", storage=tmp_path, progress=False)

    assert (first < 4, len(report.generation_results), len(echo)) == (True, 4, 4)
    said = [task.metadata.get("messages", [{"content": task.prompt.text}])[0]["content"] for task in echo]
    assert all(text.startswith("5+2=") for text in said)


def test_shots_are_chosen_and_mark_the_run(echo, tmp_path):
    benchmark = preset(few_shot=FewShot(count=2, rows=SHOWN, reply="{answer}"), attempts=1)

    none = ask_preset(benchmark, tmp_path, shots=0)
    three = ask_preset(benchmark, tmp_path, shots=3, run_id="three")

    assert [task.prompt.text.count("=") for task in echo] == [1, 4]
    assert none.metadata["caveats"] == ["not the published protocol: 0 shots instead of 2"]
    assert three.metadata["caveats"] == ["not the published protocol: 3 shots instead of 2"]


@pytest.mark.parametrize(
    ("benchmark", "changes", "says"),
    [
        (preset(), {"shots": 2}, "knows no examples to show"),
        (
            preset(few_shot=FewShot(count=9, rows=SHOWN, reply="{answer}")),
            {},
            "9 examples are to be shown, and there are 4",
        ),
        (ROWS, {"shots": 2, "prompt": "{question}"}, "write them into the prompt"),
        (preset(), {"shots": -1}, "shots is a whole number of at least 0"),
    ],
)
def test_examples_that_are_not_to_be_had_are_refused_before_the_first_call(echo, tmp_path, benchmark, changes, says):
    with pytest.raises(ThemisError, match=says):
        ask_preset(benchmark, tmp_path, **changes)

    assert echo == []


# --- answers that were cut off -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "is_said"), [(0.05, True), (0.2, True), (0.25, False)])
def test_too_many_answers_that_were_cut_off_are_told_before_the_mean(monkeypatch, tmp_path, limit, is_said):
    class Short(StatelessTaskExecutor):
        def execute(self, task):
            ending = "length" if task.metadata["dataset_id"] == "0" else "stop"
            return GenerationRecord(task, ModelOutput("1", finish_reason=ending), error=None)

    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    themis.register_provider("short", Short)

    report = ask(ROWS, tmp_path, model="short/it", run_id="run", truncated_limit=limit, max_tokens=64)

    said = ["25 % of answers were cut off at 64 tokens: the mean is too low; raise --max-tokens"] if is_said else []
    assert report.metadata["caveats"] == said
    listed = CliRunner().invoke(command_line, ["list", "runs", "--storage", str(tmp_path)]).output
    assert ("(25 % of answers were cut off at 64 tokens)" in listed) is is_said
    shown = CliRunner().invoke(command_line, ["show", "run", "--storage", str(tmp_path)]).output
    assert shown.index("cut off") < shown.index("mean") if is_said else "1 answers were cut off" in shown
    bundle = export_report_bundle(report, html_path=tmp_path / "r.html", json_path=tmp_path / "r.json")
    assert bundle
    for text in ((tmp_path / "r.html").read_text(), (tmp_path / "r.json").read_text()):
        assert ("25 % of answers were cut off" in text) is is_said
