"""For the same replies our scores and aggregates are lm-eval's own: both run on its task files, with one stub model."""

from __future__ import annotations

import hashlib
import math
import numbers
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lm_eval_rows import dataset_rows, mmlu_rows, write_datasets

import themis
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.interfaces import StatelessTaskExecutor
from themis.presets.lm_eval.index import load_index
from themis.presets.lm_eval.tasks import TaskOptions, load_tasks

# Every task file here is one of lm-eval's own; groups bring theirs.
CHOICES = [
    "arc_easy",
    "arc_challenge",
    "hellaswag",
    "winogrande",
    "piqa",
    "boolq",
    "copa",
    "cb",
    "multirc",
    "wic",
    "cola",
    "mrpc",
    "rte",
    "sciq",
    "openbookqa",
    "truthfulqa_mc1",
    "truthfulqa_mc2",
    "swag",
    "logiqa",
    "race",
    "mathqa",
    "pubmedqa",
    "medmcqa",
    "anli_r1",
    "webqs",
    "social_iqa",
    "blimp_adjunct_island",
    "crows_pairs_english",
    "headqa_en",
    "qasper_bool",
    "commonsense_qa",
    "gpqa_main_zeroshot",
]
LIKELIHOODS = ["lambada_openai", "lambada_openai_cloze_yaml", "asdiv", "arithmetic_2da", "wikitext", "pile_arxiv"]
TEXTS = [
    "gsm8k",
    "gsm8k_cot",
    "gsm8k_cot_self_consistency",
    "mgsm_direct_en",
    "mgsm_en_cot_en",
    "bbh_cot_fewshot_boolean_expressions",
    "bbh_zeroshot_snarks",
    "drop",
    "triviaqa",
    "nq_open",
    "squad_completion",
    "hendrycks_math500",
    "mmlu_pro_biology",
    "gpqa_main_generative_n_shot",
    "wmt16-en-ro",
    "wmt16-ro-en",
    "babi",
    "aime24",
    "truthfulqa_gen",
]


def test_at_least_fifty_task_files_are_compared() -> None:
    index = load_index()
    files = {index.find(name).path for name in [*CHOICES, *LIKELIHOODS, *TEXTS]}

    assert len(files) >= 50


@pytest.mark.parametrize("name", [*CHOICES, *LIKELIHOODS, *TEXTS])
def test_every_score_and_aggregate_of_a_task_is_lm_evals_own(name: str, both: Both, tmp_path: Path) -> None:
    report, expected = both.run(name, tmp_path)

    assert_equal(report, expected, name)


def test_a_groups_number_is_made_by_its_own_rule_and_its_tasks_are_shown(both: Both, tmp_path: Path) -> None:
    report, expected = both.run("mmlu", tmp_path)

    assert_equal(report, expected, "mmlu")
    metric = report.evaluation_report.metrics["acc,none"]
    shown = {one["group"]: (one["mean"], one["count"]) for one in metric.details["by_group"]}
    # 57 subjects with tests of different sizes, and the four groups they are in.
    assert len(shown) == 61
    for task, (mean, count) in shown.items():
        results = expected["results"][task]
        assert (mean, count) == (pytest.approx(results["acc,none"], abs=1e-12), results["sample_len"])


def test_a_group_that_counts_its_tasks_alike_does_so_here(both: Both, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    rule = "aggregate_metric_list:\n  - {metric: acc, aggregation: mean, weight_by_size: false}\n"
    (folder / "pair.yaml").write_text(f"group: my_pair\ntask: [arc_challenge, boolq]\n{rule}")

    report, expected = both.run("my_pair", tmp_path, include=str(folder))

    assert report.metric("acc,none").mean == pytest.approx(expected["results"]["my_pair"]["acc,none"], abs=1e-12)
    # The group says nothing of acc_norm, which only one of its tasks has.
    assert report.metric("acc_norm,none").count == 6
    assert_scores_equal(report, expected)


def test_a_tags_tasks_keep_their_own_numbers(both: Both, tmp_path: Path) -> None:
    report, expected = both.run("ai2_arc", tmp_path)

    shown = {one["group"]: one["mean"] for one in report.evaluation_report.metrics["acc,none"].details["by_group"]}
    assert shown == {name: expected["results"][name]["acc,none"] for name in ("arc_challenge", "arc_easy")}
    assert_scores_equal(report, expected)


def test_other_shots_seeds_and_instructions_give_the_same_prompts(both: Both, tmp_path: Path) -> None:
    report, expected = both.run(
        "arc_easy",
        tmp_path,
        options={"shots": 3, "seed": 7, "system": "Be brief."},
        theirs={"num_fewshot": 3, "fewshot_random_seed": 7, "system_instruction": "Be brief."},
    )

    asked = {record.task.metadata["dataset_id"]: record.task.prompt.text for record in report.generation_results}
    assert asked == {str(one["doc_id"]): one["arguments"][0][0] for one in expected["samples"]["arc_easy"]}
    assert_equal(report, expected, "arc_easy")


# --- both sides --------------------------------------------------------------------------------------------------------


class Both:
    """One model, run by lm-eval's evaluator and by ours over the same local data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = dataset_rows()
        found = [entry for entry in load_index().entries.values() if "/mmlu/default/" in str(entry.path)]
        self.rows["cais/mmlu"] = mmlu_rows(entry.name.removeprefix("mmlu_") for entry in found if entry.kind == "task")
        write_datasets(self.folder, {path: rows for path, rows in self.rows.items() if path != _SAVED})
        for name, splits in self.rows[_SAVED].items():
            _in_memory(splits).save_to_disk(self.folder / _SAVED / str(name))

    def run(
        self,
        name: str,
        storage: Path,
        *,
        include: str | None = None,
        options: Mapping[str, Any] | None = None,
        theirs: Mapping[str, Any] | None = None,
    ) -> tuple[Any, Any]:
        given = {**(options or {}), **({"include": [include]} if include else {})}
        _ANSWERS.clear()
        for row in load_tasks(name, TaskOptions.from_values(given), self.folder).rows():
            _ANSWERS[str(row["prompt"])] = row["target"]
        expected = self._theirs(name, include, theirs or {})
        report = themis.evaluate(
            f"lm-eval:{name}",
            model="equalitystub/model",
            data=self.folder,
            storage=storage,
            task_options=given or None,
            progress=False,
        )
        return report, expected

    def _theirs(self, name: str, include: str | None, options: Mapping[str, Any]) -> Any:
        import datasets
        import lm_eval
        from lm_eval.tasks import TaskManager

        def load_dataset(path: str, name: str | None = None, **given: Any) -> Any:
            if path == "json":
                name = Path(next(iter(given["data_files"].values()))).stem
            saved = self.folder / _SAVED / str(name)
            return datasets.load_from_disk(saved) if path == _SAVED else _in_memory(self.rows[path][name])

        manager = TaskManager(include_defaults=False, include_path=include)
        # lm-eval's own index of all its files takes longer than all tests here; that ours equals it is tested elsewhere.
        manager._index = {**_lm_eval_index(), **manager._index}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(datasets, "load_dataset", load_dataset)
            return lm_eval.simple_evaluate(
                _stub_of_lm_eval(), tasks=[name], task_manager=manager, bootstrap_iters=0, **options
            )


# Its options are shuffled as they are read: only files keep for lm-eval's second reading what it has asked by its first.
_SAVED = "Idavidrein/gpqa"


def _in_memory(splits: Mapping[str, list[dict[str, Any]]]) -> Any:
    import datasets

    return datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split, rows in splits.items()})


def _lm_eval_index() -> dict[str, Any]:
    from lm_eval.tasks._index import Entry, Kind

    kinds = {"task": Kind.TASK, "class": Kind.PY_TASK, "group": Kind.GROUP, "tag": Kind.TAG}
    return {
        name: Entry(name, kinds[one.kind], None if one.path is None else Path(one.path), tags=set(one.tasks))
        for name, one in load_index().entries.items()
        if name.startswith(_USED)
    }


_USED = tuple({name.split("_")[0].split("-")[0] for name in [*CHOICES, *LIKELIHOODS, *TEXTS]} | {"mmlu", "ai2"})


def assert_equal(report: Any, expected: Any, name: str) -> None:
    """Aggregates to the last digit but one: a mean is summed exactly here, and one after the other there."""
    results = {key: value for key, value in expected["results"][name].items() if "," in key and "_stderr" not in key}
    found = {key: metric.mean for key, metric in report.evaluation_report.metrics.items()}
    assert found.keys() == results.keys()
    for key, value in results.items():
        assert math.isclose(found[key], value, rel_tol=1e-12, abs_tol=1e-12), (name, key, found[key], value)
    assert_scores_equal(report, expected)


def assert_scores_equal(report: Any, expected: Any) -> None:
    """Every document's value under every filter, exactly, where it is a number."""
    assert not list(report.evaluation_report.failures)
    ours = {
        (one.sample_id, score.metric_name): score for one in report.evaluation_report.records for score in one.scores
    }
    samples, seen = expected["samples"], 0
    for task, found in samples.items():
        for one in found:
            item = f"{task}/{one['doc_id']}" if f"{task}/0" in {key[0] for key in ours} else str(one["doc_id"])
            for metric in one["metrics"]:
                score = ours[item, f"{metric},{one['filter']}"]
                seen += 1
                if isinstance(one[metric], numbers.Number | bool) or getattr(one[metric], "ndim", 1) == 0:
                    assert score.value == one[metric], (item, metric)
                else:
                    assert "statistics" in score.details, (item, metric)
    assert seen == len(ours) > 0


# --- the model ---------------------------------------------------------------------------------------------------------

# The right answer to each prompt, which the model knows every second time.
_ANSWERS: dict[str, Any] = {}


def _hash(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:8], "big")


def _speak(prompt: str, attempt: int) -> str:
    drawn = _hash("text", prompt, attempt)
    answer = _ANSWERS.get(prompt)
    answer = answer[0] if isinstance(answer, list) and answer else answer
    known = str(answer).rpartition("####")[2].strip() if drawn % 2 and answer is not None else str(drawn % 40)
    forms = (
        " {}",
        "The answer is {}.",
        "Let us see.\n#### {}",
        "So the answer is ({}).",
        "\\boxed{{{}}}",
        "the answer is {}. Yes",
        "{}",
        "A: ({})\n\nQ: another",
        "I have no comment about the old {} yesterday",
    )
    return forms[drawn // 2 % len(forms)].format(known)


def _score(context: str, text: str) -> tuple[float, bool]:
    drawn = _hash("score", context, text)
    return -(drawn % 10_000_019) / 371_234.5, drawn % 3 == 0


class Stub(StatelessTaskExecutor):
    """The model as a provider of ours."""

    instant = True

    def execute(self, task: GenerationTask) -> GenerationRecord:
        text = _speak(task.prompt.text, int(task.metadata.get("attempts", 0)))
        return GenerationRecord(task, ModelOutput(text), None)

    def score_continuations(self, task: GenerationTask) -> GenerationRecord:
        scored = []
        for one in task.metadata["continuations"]:
            logprob, greedy = _score(task.prompt.text, one) if isinstance(one, str) else _score(*one)
            scored.append({"logprob": logprob, "greedy": greedy, "tokens": 1})
        return GenerationRecord(task, ModelOutput("", raw={"continuations": scored}), None)


def _stub_of_lm_eval() -> Any:
    """The same model as one of lm-eval's."""
    from lm_eval.api.model import LM

    class StubLM(LM):
        def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
            return [_score(*request.args) for request in requests]

        def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
            return [_score("", request.args[0])[0] for request in requests]

        def generate_until(self, requests: list[Any]) -> list[str]:
            seen: dict[int, int] = {}
            said = []
            for request in requests:
                attempt = seen.get(id(request), 0)
                seen[id(request)] = attempt + 1
                said.append(_speak(request.args[0], attempt))
            return said

    return StubLM()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    themis.register_provider("equalitystub", Stub)
    return Both(tmp_path_factory.mktemp("lm-eval-data"))
