"""Running tasks of lm-eval: names, options, local data, resuming from the store, and why a task cannot run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from lm_eval_rows import dataset_rows, write_datasets

import themis
from themis.api import resume
from themis.cli import themis as command_line
from themis.exceptions import ConfigurationError, DatasetError, DependencyError
from themis.presets import fetch_benchmark
from themis.presets.lm_eval import index as indexing
from themis.presets.lm_eval.aggregation import LmEvalAggregation, pack, unpack
from themis.presets.lm_eval.index import load_index, tasks_folder
from themis.presets.lm_eval.tasks import TaskOptions, load_tasks
from themis.storage import ExperimentStorage

OWN_TASK = """
task: my_capitals
dataset_path: own/capitals
output_type: generate_until
test_split: test
fewshot_split: train
num_fewshot: 1
doc_to_text: "Country: {{country}}\\nCapital:"
doc_to_target: capital
process_results: !function scoring.process
generation_kwargs: {until: ["\\n"], do_sample: false, max_gen_toks: 12}
metric_list:
  - {metric: right, aggregation: mean, higher_is_better: true}
  - {metric: letters, aggregation: !function scoring.longest, higher_is_better: false}
metadata: {version: 2.5}
"""
OWN_CODE = """
def process(doc, results):
    return {"right": float(results[0].strip() == doc["capital"]), "letters": (len(results[0]), doc["country"]), "extra": 7}


def longest(items):
    return max(length for length, country in items)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The datasets of a few tasks, in their layouts."""
    folder = tmp_path_factory.mktemp("data")
    wanted = ("allenai/ai2_arc", "openai/gsm8k", "EleutherAI/wikitext_document_level")
    rows: dict[str, Any] = {name: configurations for name, configurations in dataset_rows().items() if name in wanted}
    capitals = [
        {"country": country, "capital": capital} for country, capital in (("Peru", "Lima"), ("Kenya", "Nairobi"))
    ]
    rows["own/capitals"] = {None: {"train": [{"country": "Chile", "capital": "Santiago"}], "test": capitals}}
    answers = {"text": ["Lima"], "answer_start": [0]}
    question = {
        "id": "1",
        "title": "Peru",
        "context": "Lima is large.",
        "question": "What is large?",
        "answers": answers,
    }
    rows["lighteval/squad_v2"] = {None: {"train": [question], "validation": [question]}}
    write_datasets(folder, rows)
    return folder


@pytest.fixture(scope="module")
def own_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "capitals.yaml").write_text(OWN_TASK)
    (folder / "scoring.py").write_text(OWN_CODE)
    return folder


def run(*words: str) -> Result:
    return CliRunner().invoke(command_line, list(words), catch_exceptions=False)


def evaluate(task: str, storage: Path, model: str = "fake/perfect", **options: Any) -> Any:
    return themis.evaluate(f"lm-eval:{task}", model=model, storage=storage, progress=False, **options)


# --- running -----------------------------------------------------------------------------------------------------------


def test_a_task_runs_from_the_command_line_under_its_own_names(data: Path, tmp_path: Path) -> None:
    done = run(
        *("eval", "lm-eval:gsm8k", "-m", "fake/perfect", "--data", str(data), "--storage", str(tmp_path)),
        *("--run-id", "sums", "--json"),
    )

    metrics = json.loads(done.output)["metrics"]
    assert {name: one["mean"] for name, one in metrics.items()} == {
        "exact_match,flexible-extract": 1.0,
        "exact_match,strict-match": 1.0,
    }
    manifest = ExperimentStorage(tmp_path).get_run("sums").config_snapshot["reproducibility_manifest"]
    told = manifest["dataset"]["source"]["lm_eval"]
    assert (told["task"], told["version"], told["shots"]) == ("gsm8k", "3.0", 5)
    assert told["datasets"]["openai/gsm8k (main)"].startswith("local copy ")


def test_a_rows_budget_and_stops_are_the_tasks_unless_others_are_asked_for(data: Path, tmp_path: Path) -> None:
    usual = evaluate("gsm8k", tmp_path, data=data, limit=1).generation_results[0].task.sampling
    asked = (
        evaluate("gsm8k", tmp_path, data=data, limit=1, max_tokens=700, temperature=0.5)
        .generation_results[0]
        .task.sampling
    )

    assert (usual.temperature, usual.max_tokens, usual.stop[0]) == (0.0, 256, "Question:")
    assert (asked.temperature, asked.max_tokens, asked.stop) == (0.5, 700, usual.stop)


def test_what_is_said_otherwise_of_a_task_marks_the_run(data: Path, tmp_path: Path) -> None:
    usual = evaluate("gsm8k", tmp_path, data=data, limit=1)
    other = evaluate("gsm8k", tmp_path, data=data, limit=1, shots=2, max_tokens=700)

    assert usual.metadata["caveats"] == []
    assert usual.metadata["protocol"].endswith("5 examples, temperature 0, 256 tokens, 1 attempt")
    assert other.metadata["caveats"] == [
        "not the published protocol: shots 2 instead of the task's own; "
        'generation {"max_gen_toks": 700} instead of the task\'s own'
    ]
    assert [len(report.generation_results[0].task.prompt.text.split("Question:")) for report in (usual, other)] == [
        7,
        4,
    ]


def test_a_limit_is_of_each_task_of_a_tag(data: Path, tmp_path: Path) -> None:
    report = evaluate("ai2_arc", tmp_path, "fake/likelihood", data=data, limit=2)

    assert [record.task.metadata["dataset_id"] for record in report.generation_results] == [
        *("arc_challenge/0", "arc_challenge/1", "arc_easy/0", "arc_easy/1")
    ]
    assert (
        report.evaluation_report.metrics["acc,none"]
        .details["tasks_count"]
        .endswith("lm-eval itself makes no number of them")
    )


def test_chat_asks_by_messages_with_examples_as_turns(data: Path) -> None:
    options = TaskOptions(chat=True, shots=2, system="Count well.")
    row = next(load_tasks("gsm8k", options, data).rows())
    one_turn = next(load_tasks("gsm8k", TaskOptions(chat=True, shots=2, multiturn=False), data).rows())

    roles = [message["role"] for message in row["messages"]]  # type: ignore[attr-defined]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert row["messages"][0]["content"] == "Count well."  # type: ignore[index]
    assert row["prompt"] == row["messages"][-1]["content"]  # type: ignore[index]
    assert [message["role"] for message in one_turn["messages"]] == ["user"]  # type: ignore[attr-defined]


def test_a_task_of_ones_own_brings_its_code_metrics_and_aggregation(
    data: Path, own_tasks: Path, tmp_path: Path
) -> None:
    report = evaluate("my_capitals", tmp_path, data=data, task_options={"include": [str(own_tasks)]}, run_id="own")

    # `extra` is named only when answers are scored, and `letters` is the longest answer's.
    assert {name: one.mean for name, one in report.evaluation_report.metrics.items()} == {
        "extra,none": 7.0,
        "letters,none": 7.0,
        "right,none": 1.0,
    }
    asked = report.generation_results[0].task
    assert asked.prompt.text == "Country: Chile\nCapital: Santiago\n\nCountry: Peru\nCapital:"
    again = run("rejudge", "own", "--storage", str(tmp_path), "--json")
    assert json.loads(again.output)["metrics"]["letters,none"]["mean"] == 7.0


def test_another_score_of_a_changed_task_is_never_taken_for_the_old_one(
    data: Path, own_tasks: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(own_tasks, folder)
    options = {"include": [str(folder)]}
    first = evaluate("my_capitals", tmp_path, data=data, task_options=options, run_id="own")
    (folder / "scoring.py").write_text(OWN_CODE.replace('"extra": 7', '"extra": 8'))

    second = evaluate("my_capitals", tmp_path, data=data, task_options=options, run_id="own")

    assert (first.metric("extra,none").mean, second.metric("extra,none").mean) == (7.0, 8.0)
    assert second.metadata["cost"]["api_calls"] == 2


# --- from the store ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "model"),
    [("gsm8k", "fake/noisy-0.5?ms=30"), ("arc_easy", "fake/likelihood?ms=30"), ("wikitext", "fake/likelihood?ms=30")],
)
def test_a_stopped_run_goes_on_from_the_store_without_its_dataset(
    task: str, model: str, data: Path, tmp_path: Path
) -> None:
    whole = evaluate(task, tmp_path, model, data=data, run_id="whole")
    copy = tmp_path / "copy"
    shutil.copytree(data, copy)
    stopped = evaluate(task, tmp_path, model, data=copy, run_id="parts", stop_when=lambda verdict: "enough", workers=1)
    shutil.rmtree(copy)
    assert stopped.metadata["successful_generations"] < whole.metadata["successful_generations"]

    report = resume("parts", storage=tmp_path, progress=False)
    judged = json.loads(run("rejudge", "parts", "--storage", str(tmp_path), "--json").output)["metrics"]

    expected = {name: one.mean for name, one in whole.evaluation_report.metrics.items()}
    assert {name: one.mean for name, one in report.evaluation_report.metrics.items()} == expected
    assert {name: one["mean"] for name, one in judged.items()} == expected


# --- local data --------------------------------------------------------------------------------------------------------


def _rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    return dataset_rows()["openai/gsm8k"]["main"]["train"][start : start + count]


def _shards(folder: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    place = folder / "openai" / "gsm8k" / "main"
    place.mkdir(parents=True)
    for split, number, start in (("train", 0, 0), ("test", 0, 5), ("test", 1, 7)):
        table = pyarrow.Table.from_pylist(_rows(5 if split == "train" else 2, start))
        pyarrow.parquet.write_table(table, place / f"{split}-{number:05d}-of-00002.parquet")


def _saved(folder: Path) -> None:
    import datasets

    splits = {"train": _rows(5), "test": _rows(4, 5)}
    made = datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split, rows in splits.items()})
    made.save_to_disk(folder / "gsm8k" / "main")


def _one_dataset(folder: Path) -> None:
    for split, rows in (("train", _rows(5)), ("test", _rows(4, 5))):
        (folder / split).mkdir(parents=True)
        (folder / split / "part-0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("write", [_shards, _saved, _one_dataset])
def test_a_dataset_is_read_in_the_layouts_it_comes_in(write: Any, tmp_path: Path) -> None:
    write(tmp_path)

    rows = list(load_tasks("gsm8k", TaskOptions(), tmp_path).rows())

    assert [row["doc"] for row in rows] == _rows(4, 5)


def test_fetched_datasets_are_read_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import datasets

    arc, sums = dataset_rows()["allenai/ai2_arc"], dataset_rows()["json"]["two_digit_addition"]

    def load_dataset(path: str, name: str | None = None, **options: Any) -> Any:
        splits = sums if path == "json" else arc[name]
        return datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split, rows in splits.items()})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    fetched = [fetch_benchmark(f"lm-eval:{name}", tmp_path / "copy") for name in ("ai2_arc", "arithmetic_2da")]
    monkeypatch.undo()

    assert [one.rows for one in fetched] == [11, 5]
    rows = list(load_tasks("ai2_arc", TaskOptions(), tmp_path / "copy").rows())
    assert [row["doc"] for row in rows] == [*arc["ARC-Challenge"]["test"], *arc["ARC-Easy"]["test"]]
    assert len(list(load_tasks("arithmetic_2da", TaskOptions(), tmp_path / "copy").rows())) == 5


# --- what cannot run ---------------------------------------------------------------------------------------------------


def _why(task: str, storage: Path, model: str = "fake/perfect", **options: Any) -> str:
    with pytest.raises((ConfigurationError, DatasetError)) as refused:
        evaluate(task, storage, model, **options)
    assert not ExperimentStorage(storage).list_runs() or options.get("run_id")
    return str(refused.value)


def test_what_cannot_run_says_why_before_the_first_call(data: Path, tmp_path: Path) -> None:
    assert "did you mean 'arc_easy'?" in _why("arc_eazy", tmp_path)
    assert "--task-option unsafe_code=true" in _why("humaneval", tmp_path)
    assert "images or sounds" in _why("mmmu_val_art", tmp_path)
    assert "needs the package 'transformers'" in _why("coqa", tmp_path, data=data)
    assert "Rowan/hellaswag/SPLIT.jsonl" in _why("hellaswag", tmp_path, data=data)
    assert "asks 2 things of one document" in _why("squadv2", tmp_path, data=data)
    assert "gives no log-probabilities" in _why("arc_easy", tmp_path, data=data)
    assert "which a chat cannot" in _why("arc_easy", tmp_path, data=data, task_options={"chat": True})
    assert "did you mean 'multiturn'?" in _why("gsm8k", tmp_path, data=data, task_options={"multi_turn": True})
    assert "the option shots of an lm-eval task is a whole number" in _why(
        "gsm8k", tmp_path, task_options={"shots": "5"}
    )
    assert "has its own prompts" in _why("gsm8k", tmp_path, data=data, prompt="{question}")
    assert "no such file or folder" in _why("gsm8k", tmp_path, task_options={"include": ["nowhere"]})
    with pytest.raises(ConfigurationError, match="task options are of tasks of lm-eval"):
        themis.get_benchmark_preset("demo", options={"chat": True})


def test_a_task_that_runs_the_models_code_runs_once_that_is_agreed_to(
    data: Path, own_tasks: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "unsafe"
    shutil.copytree(own_tasks, folder)
    (folder / "capitals.yaml").write_text(OWN_TASK + "unsafe_code: true\n")
    options = {"include": [str(folder)]}

    assert "runs the code that the model writes" in _why("my_capitals", tmp_path, data=data, task_options=options)
    report = evaluate("my_capitals", tmp_path, data=data, task_options={**options, "unsafe_code": True})
    assert report.metric("right,none").mean == 1.0


def test_more_attempts_than_a_task_needs_are_judged_each_and_averaged(
    data: Path, own_tasks: Path, tmp_path: Path
) -> None:
    options = {"include": [str(own_tasks)]}
    report = evaluate("my_capitals", tmp_path, "fake/noisy-0.5", data=data, task_options=options, num_samples=8)

    right, letters = report.metric("right,none"), report.metric("letters,none")
    assert (right.count, right.attempts) == (2, 16)
    assert 0 < right.mean < 1
    assert letters.mean == max(
        item[0] for score in letters.per_sample for item in score.details["statistics_of_attempts"]
    )
    assert all(len(score.details["statistics_of_attempts"]) == 8 for score in letters.per_sample)


def test_without_lm_eval_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> str:
        raise indexing.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(indexing.importlib.metadata, "version", missing)
    indexing._package_entries.cache_clear()

    with pytest.raises(DependencyError, match=r"themis-eval\[lm-eval\]"):
        evaluate("gsm8k", tmp_path)


def test_an_answer_that_a_task_cannot_judge_is_a_failure_and_no_score(
    data: Path, own_tasks: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(own_tasks, folder)
    (folder / "scoring.py").write_text(
        OWN_CODE.replace("    return {", '    assert doc["country"] != "Peru"\n    return {', 1)
    )

    report = evaluate("my_capitals", tmp_path, data=data, task_options={"include": [str(folder)]})

    right = report.metric("right,none")
    assert (right.count, right.failed, right.mean) == (1, 1, 1.0)


# --- the index ---------------------------------------------------------------------------------------------------------


def test_the_index_names_what_lm_evals_own_does() -> None:
    from lm_eval.tasks._index import TaskIndex

    kinds = {"task": "TASK", "class": "PY_TASK", "group": "GROUP", "tag": "TAG"}
    names = (
        "arc",
        "glue",
        "gsm8k",
        "mmlu_pro",
        "bbh",
        "squadv2",
        "super_glue",
        "scrolls",
        "unitxt",
        "ruler",
        "leaderboard",
    )
    for folder in (tasks_folder() / name for name in names):
        theirs = TaskIndex.build([folder])
        ours = indexing._index_files(indexing._yaml_files(folder))

        assert {name: (kinds[one.kind], one.path) for name, one in ours.items()} == {
            name: (one.kind.name, None if one.yaml_path is None else str(one.yaml_path)) for name, one in theirs.items()
        }
        assert {name: set(one.tasks) for name, one in ours.items() if one.kind == "tag"} == {
            name: one.tags for name, one in theirs.items() if one.kind.name == "TAG"
        }


def test_the_index_is_built_once_and_then_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    indexing._package_entries.cache_clear()
    first = load_index()
    indexing._package_entries.cache_clear()
    monkeypatch.setattr(indexing, "_index_files", pytest.fail)

    second = load_index()

    assert len(second.entries) == len(first.entries) > 10_000
    assert second.find("mmlu") == first.find("mmlu")
    indexing._package_entries.cache_clear()


def test_tasks_are_listed_by_pattern() -> None:
    found = json.loads(run("list", "benchmarks", "lm-eval:arc_*", "--json", "--verbose").output)

    about = {one["name"]: one["about"] for one in found}
    assert about["lm-eval:arc_easy"] == "task, multiple_choice"
    assert all(name.startswith("lm-eval:arc_") for name in about)
    assert "tasks of lm-eval" in run("list", "benchmarks").output
    assert run("list", "metrics", "corpus_*").output.split("\n")[1:3] == ["  - corpus_bleu", "  - corpus_chrf"]


# --- aggregation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", [0.5, True, (1, 2), ("a", ["b", "c"]), ["x"], ({"a", "b"}, 1), {"key": [1]}])
def test_a_documents_value_comes_back_from_the_store_as_it_was(item: Any) -> None:
    assert unpack(json.loads(json.dumps(pack(item)))) == item


def test_tasks_with_different_functions_are_aggregated_each_by_its_own() -> None:
    both = LmEvalAggregation({"a": "perplexity", "b": "mean"}, tasks=["a", "b"])
    statistics: list[object] = [["a", 0.0], ["a", 0.0], ["b", 3.0]]
    rows = both.tabulate(statistics)

    assert both.costly
    assert both.compute(rows.sum(axis=0).reshape(1, -1)).tolist() == [2.0]
    told: Mapping[str, Any] = both.describe(statistics, rows.sum(axis=0))
    assert [(one["group"], one["mean"], one["count"]) for one in told["by_group"]] == [("a", 1.0, 2), ("b", 3.0, 1)]


def test_runs_of_a_task_are_compared_by_lm_evals_own_number(data: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        evaluate(
            "wikitext", tmp_path, "fake/likelihood", data=data, run_id=f"run-{seed}", provider_options={"seed": seed}
        )

    done = run("compare", "run-1", "run-2", "--storage", str(tmp_path), "--metric", "word_perplexity,none", "--json")

    means = {
        name: ExperimentStorage(tmp_path).get_run(name).summary["metrics"]["word_perplexity,none"]["mean"]
        for name in ("run-1", "run-2")
    }
    (pair,) = json.loads(done.output)["pairwise_results"]
    assert (pair["run_a_mean"], pair["run_b_mean"]) == pytest.approx((means["run-1"], means["run-2"]))
