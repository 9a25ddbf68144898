"""What `evaluate` accepts, refuses and returns."""

from __future__ import annotations

import asyncio
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import themis
from themis.api import resume
from themis.core import entities as core
from themis.evaluation.judges import RubricJudge
from themis.exceptions import (
    ConfigurationError,
    DatasetError,
    MetricError,
    ProviderError,
    RunBusyError,
    RunFailedError,
    RunInterrupted,
)
from themis.interfaces import StatelessTaskExecutor
from themis.storage import ExperimentStorage, RunStatus

FOUR_ROWS = [{"id": n, "question": f"{n} + 1?", "answer": str(n + 1)} for n in range(4)]


class Adder(StatelessTaskExecutor):
    """Adds right, counts its calls, and remembers the options it was given."""

    calls = 0
    options: dict[str, Any]

    def __init__(self, **options: Any) -> None:
        type(self).options = options

    def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
        type(self).calls += 1
        number = int(task.prompt.text.split()[-3])
        return core.GenerationRecord(task, core.ModelOutput(str(number + 1)), None)


@pytest.fixture
def adder():
    Adder.calls = 0
    themis.register_provider("adder", Adder)
    return Adder


def ask(tmp_path: Any, rows: Any = FOUR_ROWS, **changes: Any) -> core.ExperimentReport:
    arguments: dict[str, Any] = {"model": "adder:m", "prompt": "{question}", "storage": tmp_path, "run_id": "run"}
    return themis.evaluate(rows, **{**arguments, **changes})


def test_rows_become_a_report_with_counts_and_intervals(adder, tmp_path):
    report = ask(tmp_path)
    exact = report.evaluation_report.metrics["ExactMatch"]
    assert (exact.mean, exact.count, exact.failed, exact.unparsed) == (1.0, 4, 0, 0)
    assert exact.ci_method == "mid-p"
    assert exact.ci[0] < 1.0
    assert [record.sample_id for record in report.evaluation_report.records] == ["0", "1", "2", "3"]
    assert report.metric("exact_match") is report.metric("ExactMatch")
    first = report.generation_results[0]
    assert first.task.metadata["dataset_id"] == "0"  # zero is an id like any other
    assert len(first.attempts) == 1
    assert set(report.metadata) >= {
        *("total_samples", "successful_generations", "failed_generations", "generation_records_retained", "run_id"),
        *("generation_records_dropped", "evaluation_records_retained", "evaluation_records_dropped", "manifest_hash"),
        *("per_sample_metrics_truncated", "evaluation_failures", "reproducibility_manifest", "cost"),
    }


def test_the_second_call_makes_no_calls_and_gives_the_same_numbers(adder, tmp_path):
    first = ask(tmp_path)
    second = ask(tmp_path)
    assert adder.calls == 4
    assert second.metric("exact_match").mean == first.metric("exact_match").mean
    assert list(second.evaluation_report.records) == list(first.evaluation_report.records)


def test_the_default_store_is_where_the_documentation_says(adder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    themis.evaluate(FOUR_ROWS, model="adder:m", prompt="{question}", run_id="x")
    assert ExperimentStorage(tmp_path / ".cache" / "experiments").get_run("x").status is RunStatus.COMPLETED


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"prompt": "Say {question}"}, "prompt: stored '{question}', now 'Say {question}'"),
        ({"temperature": 0.5}, "sampling: stored 'temperature=0"),
        ({"model": "adder:other"}, "model: stored 'm', now 'other'"),
        ({"rows": FOUR_ROWS[:3]}, "dataset: stored '4 rows"),
        ({"provider_options": {"style": "new"}}, "provider_options"),
    ],
)
def test_a_run_id_with_other_inputs_is_refused_before_the_first_call(adder, tmp_path, changes, says):
    ask(tmp_path)
    with pytest.raises(ConfigurationError, match="exists with other inputs") as refused:
        ask(tmp_path, **changes)
    assert says in str(refused.value)
    assert adder.calls == 4


def test_without_resume_a_run_starts_anew_and_the_old_one_is_kept(adder, tmp_path):
    ask(tmp_path)
    ask(tmp_path, resume=False, prompt="Say {question}")
    assert adder.calls == 8
    assert [run.run_id for run in ExperimentStorage(tmp_path).list_runs()] == ["run", "run@1"]


def test_allowed_drift_takes_every_answer_that_still_fits(adder, tmp_path):
    ask(tmp_path)
    longer = [*FOUR_ROWS, {"id": 9, "question": "9 + 1?", "answer": "10"}]
    report = ask(tmp_path, rows=longer, allow_drift=True)
    assert adder.calls == 5
    assert report.metric("exact_match").count == 5


def test_a_changed_metric_judges_again_without_calling_the_model(adder, tmp_path):
    ask(tmp_path)
    report = ask(tmp_path, metrics=["response_length"])
    assert adder.calls == 4
    assert list(report.evaluation_report.metrics) == ["ResponseLength"]


def test_a_changed_metric_parameter_never_meets_an_old_score(adder, tmp_path):
    rows = [{"id": 1, "question": "1 + 1?", "answer": "2.05"}]
    strict = ask(tmp_path, rows=rows, metrics=["numeric(tolerance=0.01)"])
    loose = ask(tmp_path, rows=rows, metrics=["numeric(tolerance=0.1)"])
    assert next(iter(strict.evaluation_report.metrics.values())).mean == 0.0
    assert next(iter(loose.evaluation_report.metrics.values())).mean == 1.0


def test_an_answer_of_another_run_is_shared_when_the_store_is_the_cache(adder, tmp_path):
    ask(tmp_path)
    report = ask(tmp_path, run_id="other", cache="store")
    assert adder.calls == 4
    assert report.metadata["cost"]["api_calls"] == 0
    assert report.metric("exact_match").mean == 1.0


def test_several_attempts_are_asked_for_separately_and_averaged(tmp_path):
    class Alternating(StatelessTaskExecutor):
        def __init__(self, **_: Any) -> None:
            pass

        def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
            right = task.metadata["attempts"] % 2 == 0
            return core.GenerationRecord(task, core.ModelOutput(task.reference.value if right else "no"), None)

    themis.register_provider("alternating", Alternating)
    report = ask(tmp_path, model="alternating:m", num_samples=3)
    record = report.generation_results[0]
    assert [attempt.task.metadata["attempts"] for attempt in record.attempts] == [0, 1, 2]
    assert record.metrics["attempt_count"] == 3
    assert report.metric("exact_match").mean == pytest.approx(2 / 3)
    for reducer, expected in {"best": 1.0, "first": 1.0, "pass@1": 2 / 3, "pass^2": 1 / 3, "majority": 1.0}.items():
        assert ask(tmp_path, model="alternating:m", num_samples=3, reducer=reducer).metric(
            "exact_match"
        ).mean == pytest.approx(expected)


def test_only_the_newest_records_are_kept_but_the_mean_is_over_all(adder, tmp_path):
    report = ask(tmp_path, max_records_in_memory=3)
    assert len(report.generation_results) == 3
    assert report.metadata["generation_records_dropped"] == 1
    assert [record.task.metadata["dataset_id"] for record in report.generation_results] == ["1", "2", "3"]
    assert report.metric("exact_match").count == 4
    assert not report.metric("exact_match").per_sample_complete


def test_on_result_hears_of_every_sample_once_also_of_stored_ones(adder, tmp_path):
    heard: list[str] = []
    ask(tmp_path, on_result=lambda record: heard.append(record.task.metadata["dataset_id"]), workers=1)
    assert heard == ["0", "1", "2", "3"]
    heard.clear()
    ask(tmp_path, on_result=lambda record: heard.append(record.task.metadata["dataset_id"]))
    assert heard == ["0", "1", "2", "3"]


def test_an_exception_of_on_result_fails_the_run_and_what_was_answered_is_kept(adder, tmp_path):
    def refuse(record: core.GenerationRecord) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ask(tmp_path, on_result=refuse, workers=1)
    store = ExperimentStorage(tmp_path)
    assert store.get_run("run").status is RunStatus.FAILED
    assert len(store.load_cached_records("run")) >= 1
    assert ask(tmp_path).metric("exact_match").count == 4
    assert adder.calls == 4


def test_a_run_stopped_at_once_says_how_to_go_on(adder, tmp_path):
    def stop(record: core.GenerationRecord) -> None:
        raise KeyboardInterrupt

    with pytest.raises(RunInterrupted, match="run id 'run': the provider 'adder' is the program's own"):
        ask(tmp_path, on_result=stop)
    stored = ExperimentStorage(tmp_path).get_run("run")
    assert (stored.status, stored.error_message) == (RunStatus.INTERRUPTED, "stopped by the user")


def test_calls_under_way_when_on_result_raises_are_stored_too(tmp_path):
    asked: list[str] = []

    class Slow(Adder):
        def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
            asked.append(task.metadata["dataset_id"])
            time.sleep(0.01 if len(asked) == 1 else 0.1)
            return super().execute(task)

    def refuse(record: core.GenerationRecord) -> None:
        raise RuntimeError("enough")

    themis.register_provider("slow", Slow)
    with pytest.raises(RuntimeError, match="enough"):
        ask(tmp_path, model="slow:m", on_result=refuse, workers=4)
    stored = ExperimentStorage(tmp_path).load_cached_records("run").values()
    assert sorted(record.task.metadata["dataset_id"] for record in stored) == sorted(asked)
    assert ask(tmp_path, model="slow:m").metric("exact_match").count == 4
    assert sorted(asked) == ["0", "1", "2", "3"]


def test_a_judge_that_never_answers_is_a_failure_and_not_the_end_of_the_run(adder, tmp_path):
    class Silent(StatelessTaskExecutor):
        async def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
            await asyncio.sleep(60)
            raise AssertionError("not reached")

    themis.register_provider("silent", Silent)
    metrics = ["exact_match", "rubric_judge(model='silent:m', rubric=['correct'])"]
    with pytest.raises(
        RunFailedError, match=r"could judge none of 4 answers, for example 0: RubricJudge: .*TimeoutError"
    ) as raised:
        ask(tmp_path, metrics=metrics, timeout_seconds=1.5, max_retries=1)
    report = raised.value.report
    judged = report.metric("RubricJudge")
    assert (judged.count, judged.failed) == (0, 4)
    assert report.metric("exact_match").count == 4


UNKNOWN_JUDGE = "rubric_judge(model='nobody:m', rubric=['correct'])"


def test_a_judge_that_cannot_be_asked_leaves_a_finished_run_as_it_is(adder, tmp_path):
    ask(tmp_path)
    with pytest.raises(ProviderError, match="unknown provider 'nobody'"):
        ask(tmp_path, metrics=[UNKNOWN_JUDGE])
    store = ExperimentStorage(tmp_path)
    assert store.get_run("run").status is RunStatus.COMPLETED
    assert len(store.load_cached_evaluations("run")) == 4


def test_a_judge_that_cannot_be_asked_is_found_before_anything_is_stored_or_called(adder, tmp_path):
    with pytest.raises(ProviderError, match="unknown provider 'nobody'"):
        ask(tmp_path, metrics=[UNKNOWN_JUDGE])
    with pytest.raises(ConfigurationError, match="a budget needs the price of the model"):
        ask(tmp_path, budget_usd=1)
    assert (adder.calls, ExperimentStorage(tmp_path).list_runs()) == (0, [])


def test_a_run_that_was_killed_before_its_rows_were_stored_is_resumed_with_its_reference(adder, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({**row, "gold": row["answer"], "answer": "?"}) + "\n" for row in FOUR_ROWS))
    ask(tmp_path, rows, reference_field="gold")
    store = ExperimentStorage(tmp_path)
    config = store.get_run("run").config_snapshot
    store.delete_run("run")
    store.start_run("run", model="adder:m", config={"specification": config["specification"]})

    assert resume("run", storage=tmp_path).metric("exact_match").mean == 1.0


def test_a_missing_score_makes_the_mean_nan_and_not_zero(tmp_path):
    class Broken(StatelessTaskExecutor):
        def __init__(self, **_: Any) -> None:
            pass

        def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
            raise ConnectionError("down")

    themis.register_provider("broken", Broken)
    with pytest.raises(RunFailedError, match=r"none of 4 samples was answered, for example \d: .*: down") as caught:
        ask(tmp_path, model="broken:m", max_retries=1)
    exact = caught.value.report.metric("exact_match")
    assert math.isnan(exact.mean)
    assert (exact.count, exact.failed, exact.ci) == (0, 4, None)


def test_options_reach_the_provider_and_a_base_url_is_called_api_base(adder, tmp_path):
    ask(tmp_path, provider_options={"seed": 42}, base_url="http://127.0.0.1:1/v1", timeout=3)
    assert adder.options == {"seed": 42, "api_base": "http://127.0.0.1:1/v1", "timeout": 3}
    manifest = ExperimentStorage(tmp_path).get_run("run").config_snapshot["reproducibility_manifest"]
    assert manifest["seeds"]["provider_seed"] == 42
    assert manifest["dataset"]["fingerprint"]
    assert manifest["prompt"]["template_hash"]


def priced(monkeypatch: pytest.MonkeyPatch, folder: Any, **prices: tuple[float, float]) -> None:
    file = folder / "prices.json"
    file.write_text(json.dumps({"version": "mine", "models": prices}))
    monkeypatch.setenv("THEMIS_PRICES", str(file))


def speaker(text: str, *, usage: dict[str, int] | None = None, seconds: float = 0.0) -> type[StatelessTaskExecutor]:
    class Speaker(StatelessTaskExecutor):
        def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
            time.sleep(seconds)
            return core.GenerationRecord(task, core.ModelOutput(text, usage=usage), None)

    return Speaker


def test_a_budget_is_never_passed_not_even_across_resumes(tmp_path, monkeypatch):
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
    themis.register_provider("priced", speaker("x", usage=usage))
    priced(monkeypatch, tmp_path, m=(1.0, 10.0))
    rows = [{"id": n, "question": f"{n}?", "answer": "x"} for n in range(100)]
    spent = 0.0
    for _ in range(2):
        report = ask(tmp_path, rows, model="priced:m", budget_usd=0.05, max_tokens=100)
        spent = report.metadata["cost"]["total_cost"]
        assert spent <= 0.05 + 1e-9
        assert "budget_usd=0.05 allows no further call" in report.metadata["stopped"]
    assert spent > 0.04
    assert ExperimentStorage(tmp_path).get_run("run").status is RunStatus.INTERRUPTED


def test_an_answer_that_does_not_say_its_tokens_is_not_free(tmp_path, monkeypatch):
    themis.register_provider("terse", speaker("one two three"))
    priced(monkeypatch, tmp_path, m=(1e6, 1e6))  # a dollar for each token
    report = ask(tmp_path, [{"id": 1, "question": "what", "answer": "x"}], model="terse:m")
    assert report.metadata["cost"]["total_cost"] == 4.0
    spoken = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    row = {"id": 1, "question": "what", "answer": "x", "messages": spoken, "system_prompt": "three"}
    report = ask(tmp_path, [row], model="terse:m", run_id="conversation")
    assert report.metadata["cost"]["total_cost"] == 6.0

    capped = ask(tmp_path, model="terse:m", run_id="capped", budget_usd=12, max_tokens=3, workers=1)
    assert 0 < capped.metadata["cost"]["total_cost"] <= 12
    assert "allows no further call" in capped.metadata["stopped"]


def test_judges_that_are_asked_at_once_do_not_pass_the_budget_together(tmp_path, monkeypatch):
    usage = {"prompt_tokens": 0, "completion_tokens": 200, "total_tokens": 200}
    themis.register_provider("free", speaker("x"))
    themis.register_provider("dear", speaker('{"verdict": "pass"}', usage=usage, seconds=0.01))
    priced(monkeypatch, tmp_path, m=(0.0, 0.0), j=(0.0, 1e4))  # two dollars a verdict
    judge = RubricJudge(model="dear:j", sampling=core.SamplingConfig(0.0, 1.0, 200))
    rows = [{"id": n, "question": f"{n}?", "answer": "x"} for n in range(24)]
    report = ask(tmp_path, rows, model="free:m", metrics=[judge], workers=12, budget_usd=7)
    assert ExperimentStorage(tmp_path).get_run("run").judge_cost_usd == 6.0
    assert (report.metric("RubricJudge").count, report.metric("RubricJudge").failed) == (3, 21)


def test_a_budget_without_a_known_price_is_refused(adder, tmp_path):
    with pytest.raises(ConfigurationError, match="a budget needs the price of the model"):
        ask(tmp_path, budget_usd=1.0)
    assert adder.calls == 0


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"temprature": 1}, ConfigurationError, "Unsupported option(s): temprature (did you mean 'temperature'?)"),
        ({"prompt": None}, ConfigurationError, "need a prompt"),
        ({"prompt": "{qestion}"}, ConfigurationError, "question"),
        ({"prompt": 'Reply {"a": 1}: {question}'}, ConfigurationError, "{{"),
        ({"reference_field": "solution"}, ConfigurationError, "reference_field 'solution' is missing in row(s) 0"),
        ({"rows": []}, DatasetError, "no rows"),
        ({"rows": [1, 2]}, DatasetError, "row 0 is a int"),
        ({"rows": {"a": 1}}, DatasetError, "iterable of dicts"),
        ({"rows": {"train": FOUR_ROWS, "test": []}}, DatasetError, "give one of its parts: 'train', 'test'"),
        ({"rows": [*FOUR_ROWS, FOUR_ROWS[0]]}, ConfigurationError, "two rows have the id '0': rows 0 and 4"),
        ({"rows": [*FOUR_ROWS, {"question": "1 + 1?", "answer": "2"}]}, ConfigurationError, "row 4 has no 'id'"),
        ({"rows": [*FOUR_ROWS, {"id": 7, "question": "1 + 1?"}]}, ConfigurationError, "missing in row(s) 4"),
        ({"rows": [{"id": "a\x00b", "question": "1 + 1?", "answer": "2"}]}, ConfigurationError, "control characters"),
        ({"dataset_id_field": "uid"}, ConfigurationError, "dataset_id_field 'uid' is not in row 0"),
        ({"cluster_field": "topic"}, ConfigurationError, "cluster_field 'topic'"),
        ({"metrics": ["exact_mach"]}, MetricError, "did you mean 'exact_match'?"),
        ({"metrics": "exact_match"}, ConfigurationError, "metrics is a list of names"),
        ({"model": "addr:m"}, ProviderError, "did you mean 'adder'?"),
        ({"num_samples": 0}, ConfigurationError, "num_samples is a whole number of at least 1"),
        ({"max_records_in_memory": 0}, ConfigurationError, "max_records_in_memory"),
        ({"workers": "4"}, ConfigurationError, "workers is a whole number of at least 1, got '4'"),
        ({"temperature": "hot"}, ConfigurationError, "temperature is a number of at least 0, got 'hot'"),
        ({"top_p": 95}, ConfigurationError, "top_p is a number from 0 to 1, got 95"),
        ({"max_tokens": "many"}, ConfigurationError, "max_tokens is a whole number, got 'many'"),
        ({"max_retries": "3"}, ConfigurationError, "max_retries is a whole number of at least 0, got '3'"),
        ({"timeout_seconds": "soon"}, ConfigurationError, "timeout_seconds is a number greater than 0, got 'soon'"),
        ({"budget_usd": 0}, ConfigurationError, "budget_usd is a number greater than 0, got 0"),
        ({"tags": ["nightly"]}, ConfigurationError, "tags is a dict, got ['nightly']"),
        ({"on_result": 3}, ConfigurationError, "on_result is a function of one record, got 3"),
        (
            {"rows": [*FOUR_ROWS, {"id": 9, "answer": "2"}]},
            ConfigurationError,
            "row 4: template 'default' needs the field",
        ),
        (
            {"rows": [{"id": 1, "question": "1+1", "solution": "2"}]},
            ConfigurationError,
            "ExactMatch can compare answers only with a reference, and the rows have neither 'answer' nor 'reference' but "
            "id, question, solution; name the field with reference_field",
        ),
        ({"execution_backend": "rya"}, ConfigurationError, "did you mean 'ray'?"),
        ({"cache": "always"}, ConfigurationError, "cache is 'run', 'store' or 'off'"),
        ({"run_id": "a/x"}, ConfigurationError, "path separators"),
        ({"rows": "gsm9k"}, ConfigurationError, "did you mean 'gsm8k'?"),
        ({"rows": "missing.jsonl"}, DatasetError, "no file 'missing.jsonl'"),
        ({"reducer": "mean"}, ConfigurationError, "unknown reducer 'mean'"),
        ({"storage_backend": object()}, ConfigurationError, "storage is a folder, a database's address or"),
        ({"rate_limit": {"rpm": 1}}, ConfigurationError, "unknown rate limit 'rpm'"),
    ],
)
def test_mistakes_are_found_before_the_first_call_and_leave_no_run_behind(adder, tmp_path, changes, error, says):
    with pytest.raises(error) as refused:
        ask(tmp_path, **changes)
    assert says in str(refused.value)
    assert adder.calls == 0
    store = ExperimentStorage(tmp_path)
    assert not store.exists() or store.list_runs() == []


def test_answers_alone_are_had_without_a_reference_when_that_is_said(adder, tmp_path):
    rows = [{"id": n, "question": f"{n} + 1"} for n in range(3)]
    report = ask(tmp_path, rows, reference_field="")
    assert len(report.generation_results) == 3
    assert (report.metric("exact_match").count, report.metric("exact_match").failed) == (0, 3)
    assert ask(tmp_path, rows, run_id="measured", metrics=["response_length"]).metric("response_length").count == 3


def test_a_model_is_required():
    with pytest.raises(TypeError):
        themis.evaluate(FOUR_ROWS, prompt="{question}")


def test_of_two_that_start_one_run_at_once_one_is_told_that_the_other_writes_it(tmp_path):
    ask_run = partial(ask, tmp_path, model="fake/perfect?ms=5")
    ask_run(run_id="first")
    for number in range(8):
        with ThreadPoolExecutor(2) as pool:
            started = [pool.submit(ask_run, run_id=f"run-{number}") for _ in range(2)]
        assert {type(one.exception()) for one in started} <= {type(None), RunBusyError}
        assert any(one.exception() is None for one in started)


def test_rows_that_are_conversations_need_no_prompt(tmp_path):
    turns = [{"role": "user", "content": "I am Ada."}, {"role": "user", "content": "Who am I?"}]
    rows = [{"id": "name", "messages": turns, "answer": "Ada"}]
    report = themis.evaluate(rows, model="fake/perfect", storage=tmp_path, progress=False)
    assert report.metric("exact_match") == 1


def test_files_and_generators_are_datasets_too(adder, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in FOUR_ROWS))
    assert ask(tmp_path / "s", str(path), run_id="file").metric("exact_match").count == 4
    assert ask(tmp_path / "s", path, run_id="path", limit=2).metric("exact_match").count == 2
    assert ask(tmp_path / "s", (row for row in FOUR_ROWS), run_id="generator").metric("exact_match").count == 4


def test_rows_without_ids_are_numbered_and_without_references_need_metrics_that_do_without(adder, tmp_path):
    rows = [{"question": f"{n} + 1?"} for n in range(3)]
    report = ask(tmp_path, rows, metrics=["response_length"])
    assert [record.sample_id for record in report.evaluation_report.records] == ["0", "1", "2"]


async def test_the_async_twin_gives_the_same_report(adder, tmp_path):
    report = await themis.evaluate_async(FOUR_ROWS, model="adder:m", prompt="{question}", storage=tmp_path, run_id="a")
    assert report.metric("exact_match").mean == 1.0


def test_a_stored_run_answers_for_the_model(adder, tmp_path):
    ask(tmp_path)
    report = ask(tmp_path, model="replay:run", run_id="again", metrics=["response_length"])
    assert adder.calls == 4
    assert report.metric("response_length").count == 4


def test_hostile_rows_come_back_as_they_went_in(adder, tmp_path):
    text = "\ud800 \x00 '; DROP TABLE runs;-- 😀 \u202e" + "y" * 100_000
    rows = [{"id": "😀 one", "question": "0 + 1?", "answer": "1", "note": text, "number": math.nan}]
    ask(tmp_path, rows)
    (stored,) = ExperimentStorage(tmp_path).load_dataset("run")
    assert stored["note"] == text
    assert math.isnan(stored["number"])


def test_tags_and_clusters_are_kept(adder, tmp_path):
    rows = [{**row, "topic": f"t{row['id'] // 2}"} for row in FOUR_ROWS]
    rows[0]["answer"] = "no"
    report = ask(tmp_path, rows, tags={"team": "a"}, cluster_field="topic")
    assert ExperimentStorage(tmp_path).get_run("run").tags == {"team": "a"}
    assert report.metric("exact_match").ci_method == "clustered"


def test_a_rule_can_stop_a_run_early_and_the_next_call_goes_on(adder, tmp_path):
    rows = [{"id": n, "question": f"{n} + 1?", "answer": str(n + 1)} for n in range(2_000)]
    seen: list[float] = []

    def enough(record: core.EvaluationRecord) -> str | None:
        seen.append(record.scores[0].value)
        return "ten are enough" if len(seen) >= 10 else None

    report = ask(tmp_path, rows, stop_when=enough, workers=1)
    assert report.metadata["stopped"] == "ten are enough"
    assert 10 <= report.metric("exact_match").count < 2_000
    assert ExperimentStorage(tmp_path).get_run("run").status is RunStatus.INTERRUPTED
    assert ask(tmp_path, rows).metric("exact_match").count == 2_000
    assert adder.calls == 2_000
