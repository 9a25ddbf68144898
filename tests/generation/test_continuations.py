"""Rows with `continuations` are scored by log-probability: one call a row, by whichever pool makes it."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, ClassVar

import pytest

import themis
from tests.generation.test_remote import Rooms
from themis.core.continuations import Likelihood, likelihood_output, option_continuations, read_continuations
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.core.tokens import count_prompt_tokens, count_tokens
from themis.exceptions import ConfigurationError, DatasetError
from themis.generation.providers import PROVIDERS
from themis.interfaces import StatelessTaskExecutor
from themis.storage import ExperimentStorage

ROWS = [
    {"id": str(n), "question": f"{n}?", **option_continuations(["red", "blue", "green"]), "answer": n % 3}
    for n in range(12)
]


class Scorer(StatelessTaskExecutor):
    """Likes the option best whose place is the question's number, and counts its calls."""

    calls: ClassVar[Counter[str]] = Counter()
    logprob: ClassVar[float] = -1.0

    def execute(self, task: GenerationTask) -> GenerationRecord:
        return GenerationRecord(task, ModelOutput("said"), None)

    def score_continuations(self, task: GenerationTask) -> GenerationRecord:
        self.calls[task.prompt.text] += 1
        right = int(task.prompt.text[:-1]) % 3
        found = [Likelihood(self.logprob - abs(place - right), place == right, 1) for place in range(3)]
        return GenerationRecord(task, likelihood_output(task, found, evaluated_tokens=9), None)


class Async(Scorer):
    async def execute(self, task: GenerationTask) -> GenerationRecord:  # type: ignore[override]
        return Scorer.execute(self, task)

    async def score_continuations(self, task: GenerationTask) -> GenerationRecord:  # type: ignore[override]
        return Scorer.score_continuations(self, task)


class Instant(Scorer):
    instant = True


class Mapping:
    """A user's own execution backend."""

    def map(self, function: Any, items: Any, *, max_workers: int | None = None) -> Any:
        return map(function, items)


@pytest.mark.parametrize(
    ("provider", "backend"),
    [(Scorer, None), (Async, None), (Instant, None), (Scorer, Rooms()), (Async, Rooms()), (Async, Mapping())],
    ids=["threads", "event loop", "at once", "processes", "processes async", "mapped"],
)
def test_every_pool_scores_continuations_and_asks_the_other_rows(tmp_path, provider, backend):
    PROVIDERS.register("scorer", provider)
    Scorer.calls.clear()
    # In a table every row has the field; an empty one is none.
    rows = [*ROWS, {"id": "plain", "question": "plain", "continuations": None, "answer": "said"}]

    themis.evaluate(
        rows, model="scorer/any", prompt="{question}", metrics=["exact_match"], run_id="r", storage=tmp_path,
        execution_backend=backend, progress=False,
    )  # fmt: skip

    records = {
        record.task.metadata["dataset_id"]: record for _, record in ExperimentStorage(tmp_path).reader("r").records()
    }
    assert [records[str(n)].output.text for n in range(3)] == [" red", " blue", " green"]
    assert records["1"].output.raw["continuations"] == [
        {"logprob": -2.0, "greedy": False, "tokens": 1},
        {"logprob": -1.0, "greedy": True, "tokens": 1},
        {"logprob": -2.0, "greedy": False, "tokens": 1},
    ]
    assert records["plain"].output.text == "said"
    assert Scorer.calls == Counter(row["question"] for row in ROWS)


@pytest.mark.parametrize("value", [math.nan, -math.inf, 1.0])
def test_what_is_no_log_probability_is_a_failure_and_never_stored_as_a_score(tmp_path, value, monkeypatch):
    PROVIDERS.register("scorer", Instant)
    monkeypatch.setattr(Scorer, "logprob", value)

    with pytest.raises(themis.exceptions.ThemisError, match="which is no score"):
        themis.evaluate(ROWS, model="scorer/any", prompt="{question}", run_id="r", storage=tmp_path, progress=False)

    stored = [record for _, record in ExperimentStorage(tmp_path).reader("r").records()]
    assert stored
    assert all(record.output is None for record in stored)


def test_a_provider_that_scores_too_few_of_them_has_failed(tmp_path):
    class Lazy(Instant):
        def score_continuations(self, task: GenerationTask) -> GenerationRecord:
            return GenerationRecord(task, ModelOutput("", raw={"continuations": []}), None)

    PROVIDERS.register("lazy", Lazy)

    with pytest.raises(themis.exceptions.ThemisError, match="scored 0 continuations of 3"):
        themis.evaluate(ROWS, model="lazy/any", prompt="{question}", storage=tmp_path, progress=False)


@pytest.mark.parametrize("model", ["fake/perfect", "openai/gpt-4o", "anthropic/claude-3", "ollama/llama3"])
def test_who_cannot_score_is_refused_before_the_first_call(tmp_path, model, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")

    with pytest.raises(ConfigurationError, match="gives no log-probabilities of `continuations`; local models"):
        themis.evaluate(ROWS, model=model, prompt="{question}", storage=tmp_path, progress=False)


def test_a_benchmark_whose_protocol_scores_options_is_asked_so_and_refused_by_others(tmp_path):
    asked = {"sample": True, "storage": tmp_path, "progress": False}

    report = themis.evaluate("hellaswag-likelihood", model="fake/likelihood", run_id="r", **asked)

    assert {"acc", "acc_norm"} <= set(report.evaluation_report.metrics)
    assert report.metric("acc").failed == 0
    with pytest.raises(ConfigurationError, match="row 0 is scored by log-probability, and fake/perfect gives no"):
        themis.evaluate("hellaswag-likelihood", model="fake/perfect", **asked)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"continuations": [["a", ""]]}, "continuation 0 is empty"),
        ({"continuations": []}, "is a list of"),
        ({"continuations": "text"}, "is a list of"),
        ({"continuations": ["a", ["b"]]}, "continuation 1 is a text or"),
        ({"continuations": [["a", 1]]}, "continuation 0 is a text or"),
        ({"continuations": ["a"], "messages": [{"role": "user", "content": "a"}]}, "leave one of them out"),
        ({"continuations": ["a", "b", "c"], "baselines": [2]}, "names for each option"),
        ({"continuations": ["a", "b"], "baselines": [0, 7]}, "names for each option"),
        ({"continuations": ["a", "b"], "baselines": [0, 1]}, "names for each option"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_the_first_call(tmp_path, row, why):
    PROVIDERS.register("scorer", Instant)
    Scorer.calls.clear()

    with pytest.raises(DatasetError, match=why):
        themis.evaluate(
            [{**row, "answer": 0}], model="scorer/any", prompt="{continuations}", storage=tmp_path, progress=False
        )
    assert not Scorer.calls


def test_the_continuations_are_part_of_the_key_under_which_an_answer_is_found_again(tmp_path):
    def ask(continuations: list[str], run_id: str) -> list[Any]:
        report = themis.evaluate(
            [{"id": "a", "continuations": continuations, "answer": 0}], model="prompted/any", prompt="Say:",
            run_id=run_id, storage=tmp_path, cache="store", progress=False,
        )  # fmt: skip
        return [report.generation_results[0].output.text, report.generation_results[0].metrics.get("reused", False)]

    class Prompted(Instant):
        prompt_only = True

        def score_continuations(self, task: GenerationTask) -> GenerationRecord:
            found = [Likelihood(-float(len(text)), False, 1) for text in task.metadata["continuations"]]
            return GenerationRecord(task, likelihood_output(task, found, evaluated_tokens=1), None)

    PROVIDERS.register("prompted", Prompted)

    assert ask([" aa", " b"], "one") == [" b", False]
    assert ask([" aa", " b"], "two") == [" b", True]
    assert ask([" a", " bb"], "three") == [" a", False]


def test_a_budget_counts_every_context_and_text():
    row = {"continuations": [" yes", ["Another context:", " no"]]}

    expected = sum(map(count_tokens, ["The prompt", " yes", "Another context:", " no"]))
    assert count_prompt_tokens("The prompt", row) == expected


def test_options_become_continuations_of_the_prompt_with_their_baselines():
    fields = option_continuations(["Paris", "Rome"], baseline="Answer:")

    assert read_continuations(fields, "Capital of France?") == [
        ("Capital of France?", " Paris"),
        ("Capital of France?", " Rome"),
        ("Answer:", " Paris"),
        ("Answer:", " Rome"),
    ]
    assert fields["baselines"] == [2, 3]


def test_the_fake_model_is_deterministic_and_follows_the_chain_rule(tmp_path):
    def score(*pairs: list[str], model: str = "fake/likelihood") -> list[dict[str, Any]]:
        rows = [{"continuations": list(pairs), "answer": 0}]
        report = themis.evaluate(rows, model=model, prompt="", storage=tmp_path, progress=False)
        found: list[dict[str, Any]] = report.generation_results[0].output.raw["continuations"]
        return found

    whole, first, second = score(["", "one two three"], ["", "one"], ["one ", "two three"])

    assert whole["logprob"] == pytest.approx(first["logprob"] + second["logprob"])
    assert (whole["tokens"], first["tokens"], second["tokens"]) == (3, 1, 2)
    assert score(["", "one two three"], model="fake/likelihood?ms=1")[0] == whole
