"""The runs of an experiment, together: one budget, several at once, each stored and gone on with by itself."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from batch_server import PROMPT_TOKENS, batch_server

import themis
from themis.core.codec import digest
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.exceptions import ConfigurationError, RunBusyError, RunInterrupted
from themis.experiments import EndedRun, PlannedRun, Watch, plan_experiment, run_experiment
from themis.experiments.conducting import open_experiment
from themis.generation.providers import register_provider
from themis.interfaces import StatelessTaskExecutor
from themis.memory import Agent, register_agent
from themis.runs.lifecycle import CURRENT_HANDLE, RunHandle
from themis.runs.observers import Observer
from themis.runs.prices import price_of
from themis.storage import ExperimentStorage, RunStatus, schema

ANSWER_USD = 0.01


@dataclass
class Subject:
    """Whoever answers in these tests: counts what it is asked, and does as it is told."""

    asked: Counter[str] = field(default_factory=Counter)
    # Called with the model and the prompt before it is answered.
    before: Callable[[str, str], None] = lambda model, prompt: None
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, model: str, prompt: str) -> str:
        with self.lock:
            self.asked[f"{model} {prompt}"] += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self.before(model, prompt)
            return str(2 * int(prompt.split()[-1].rstrip("?")))
        finally:
            with self.lock:
                self.at_once -= 1


@pytest.fixture
def subject() -> Subject:
    found = Subject()

    class Model(StatelessTaskExecutor):
        is_local = False

        def __init__(self, **_: Any) -> None:
            pass

        def execute(self, task: GenerationTask) -> GenerationRecord:
            text = found.answer(task.model.identifier, task.prompt.text)
            # A million answer tokens of gpt-4o-mini cost 0.6 dollars.
            usage = {"prompt_tokens": 0, "completion_tokens": round(ANSWER_USD / 0.6e-6)}
            return GenerationRecord(task, ModelOutput(text, None, usage), None)

    register_provider("counted", Model)
    return found


@pytest.fixture
def counted(sums: dict) -> dict:
    """Two subjects that count, with two prompts: four runs of twelve rows."""
    subjects = {"one": "counted/gpt-4o-mini", "two": {"model": "counted/gpt-4o-mini", "seed": 1}}
    return {**sums, "subjects": subjects, "max_tokens": 16_700, "workers": 2}


def test_an_experiment_ends_with_one_report_of_all_its_runs(sums):
    result = run_experiment({**sums, "baseline": "weak"}, progress=False)

    assert result.exit_code == 0
    assert [(run.run.name, run.standing) for run in result.runs] == [
        ("perfect · plain · rows", "completed"),
        ("perfect · terse · rows", "completed"),
        ("weak · plain · rows", "completed"),
        ("weak · terse · rows", "completed"),
    ]
    compared = [(one.run_a_id, one.run_b_id, one.pairing.n) for one in result.comparison.results]
    assert compared == [(f"sums--perfect--{p}--rows", f"sums--weak--{p}--rows", 12) for p in ("plain", "terse")]
    assert "2 p-values corrected by holm-bonferroni" in result.comparison.method_line()


def test_the_runs_belong_to_the_experiment_and_can_be_looked_at_like_any_other(sums):
    run_experiment(sums, progress=False)

    found = ExperimentStorage().list_runs(experiment="sums")
    assert len(found) == 4
    assert {run.status for run in found} == {RunStatus.COMPLETED}


def test_the_same_call_asks_nothing_again(counted, subject):
    run_experiment(counted, progress=False)
    again = run_experiment(counted, progress=False)

    assert again.exit_code == 0
    assert sum(subject.asked.values()) == 48
    assert {run.stored.calls for run in again.runs} == {12}


def test_another_variant_runs_alone(counted, subject):
    run_experiment(counted, progress=False)
    counted["prompts"]["kind"] = "Please: {question}"
    run_experiment(counted, progress=False)

    assert sum(subject.asked.values()) == 72
    assert set(subject.asked.values()) == {2}  # both subjects are one model


def test_a_changed_variant_is_refused_before_anything_is_called_and_begun_anew_when_asked(counted, subject):
    run_experiment(counted, progress=False)
    counted["prompts"] = {**counted["prompts"], "terse": "Number only: {question}"}

    with pytest.raises(ConfigurationError) as refused:
        run_experiment(counted, progress=False)
    assert sum(subject.asked.values()) == 48
    result = run_experiment(counted, progress=False, only=["terse"], resume=False)

    assert "prompt: stored 'Only the number: {question}', now 'Number only: {question}'" in str(refused.value)
    assert "prompts.terse" in str(refused.value)
    assert (len(result.runs), sum(subject.asked.values())) == (2, 72)
    assert ExperimentStorage().run_exists("sums--one--terse--rows@1")


def test_runs_go_on_beside_each_other(counted, subject):
    together = threading.Barrier(4, timeout=60)
    waited = threading.local()

    def meet(model: str, prompt: str) -> None:
        if not getattr(waited, "once", False):
            waited.once = True
            together.wait()

    subject.before = meet
    counted["workers"] = 1

    result = run_experiment(counted, progress=False, parallel=4)

    assert result.exit_code == 0  # each of the four waited for the other three
    assert subject.most_at_once == 4


def test_with_parallel_one_they_come_one_after_another(counted, subject):
    ended = []

    class Listening(Watch):
        def on_end(self, one: EndedRun) -> None:
            ended.append(one.run.run_id)

    result = run_experiment({**counted, "parallel": 1, "workers": 1}, watch=Listening())

    assert subject.most_at_once == 1
    assert ended == [run.run.run_id for run in result.runs]


def test_one_budget_holds_for_all_runs_and_what_is_left_of_it_is_used(counted, subject):
    result = run_experiment({**counted, "budget_usd": 0.205}, progress=False)

    assert result.exit_code == 130
    assert sum(subject.asked.values()) == 20
    assert result.spent_usd == pytest.approx(20 * ANSWER_USD, abs=1e-3)
    again = run_experiment({**counted, "budget_usd": 0.205}, progress=False)
    assert sum(subject.asked.values()) == 20
    assert again.exit_code == 130
    assert "budget_usd=0.205 allows no further call" in again.problems()[-1]
    assert run_experiment(counted, budget_usd=10.0, progress=False).exit_code == 0
    assert sum(subject.asked.values()) == 48


class StopInBatch(Watch):
    """Stops an experiment as Ctrl-C does, once a batch is worked off."""

    def __init__(self, handle: RunHandle) -> None:
        self.handle = handle

    def observers(self, run: PlannedRun) -> list[Observer]:
        handle = self.handle

        class Stopping(Observer):
            def on_progress(self, progress: Callable[[], Any]) -> None:
                if "in progress" in progress().waiting:
                    handle.stop()

        return [Stopping()]


def test_a_budget_that_ends_in_the_middle_of_an_items_attempts_leaves_the_run_incomplete(counted, subject):
    alone = {**counted, "subjects": ["counted/gpt-4o-mini"], "prompts": {}, "prompt": "{question}", "num_samples": 3}

    result = run_experiment({**alone, "budget_usd": 0.355}, progress=False)  # 35 answers of 36
    plan = plan_experiment(alone)

    assert (result.exit_code, result.runs[0].stored.calls) == (130, 35)
    assert "1 samples are left" in result.problems()[0]
    assert (plan.calls, plan.runs[0].standing) == (1, "11 of 12")
    assert run_experiment(alone, progress=False).exit_code == 0
    assert sum(subject.asked.values()) == 36


def test_two_processes_do_not_spend_one_budget_twice(counted, subject):
    store, refused = ExperimentStorage(), list[str]()

    class Second(Watch):
        """Another that begins the same experiment, once a run of the first has ended and a later one has not begun."""

        def on_end(self, ended: EndedRun) -> None:
            with pytest.raises(RunBusyError) as busy:
                run_experiment(within, progress=False)
            refused.append(str(busy.value))

    within = {**counted, "budget_usd": 10.0, "parallel": 1}
    assert run_experiment(within, watch=Second()).exit_code == 0

    assert len(refused) == 4
    assert "experiment 'sums' is being run by process" in refused[0]
    assert sum(subject.asked.values()) == 48
    # It is let go at the end; and that of a process that died is no obstacle.
    with store.engine.begin() as connection:
        lease = {"holder": f"{socket.gethostname()}:999999999:1:token", "until": time.time() + 60}
        name = f"experiment:{digest('sums')[:32]}"
        connection.execute(sa.insert(schema.meta).values(key=name, value=json.dumps(lease)))
    assert run_experiment(within, progress=False).exit_code == 0


def test_what_another_process_was_making_and_has_completed_is_complete(counted, subject):
    """Two that run the same file at once share its runs; whoever is told that one is busy has no failure of it in the end."""
    is_under_way, was_refused = threading.Event(), threading.Event()

    def wait(model: str, prompt: str) -> None:
        if prompt.startswith("What"):
            is_under_way.set()
            was_refused.wait(20)

    subject.before = wait
    counted["subjects"] = {"one": "counted/gpt-4o-mini"}
    first = threading.Thread(target=run_experiment, args=(counted,), kwargs={"only": ["plain"], "progress": False})
    first.start()
    assert is_under_way.wait(20)

    class Second(Watch):
        def on_end(self, ended: EndedRun) -> None:
            if ended.is_busy:
                was_refused.set()
                first.join()

    second = run_experiment(counted, watch=Second())

    assert (second.exit_code, second.problems()) == (0, [])
    assert sum(subject.asked.values()) == 24


def test_the_budget_holds_what_batches_of_before_cost_that_belong_to_a_later_run(folder):
    each = price_of("gpt-4o").in_batch.of(PROMPT_TOKENS, 20)
    with batch_server() as server:
        experiment = {
            "name": "sums",
            "dataset": "rows.jsonl",
            "model": "openai/gpt-4o",
            "provider_options": {"base_url": f"{server.url}/v1", "api_key": "key"},
            "prompts": {"first": "first {question}", "second": "second {question}"},
            "max_tokens": 20,
            "batch": True,
            "batch_poll_seconds": 0.02,
            "budget_usd": 13.5 * each,
            "parallel": 1,
        }
        server.behaviour.is_open = False
        handle = RunHandle()
        token = CURRENT_HANDLE.set(handle)
        try:
            with open_experiment(experiment, only=["second"]) as opened:
                stopped = opened.run(opened.check(), StopInBatch(handle))
        finally:
            CURRENT_HANDLE.reset(token)
        assert "stopped by the user; batch batch_" in stopped.problems()[0]
        assert "`themis resume sums--second --cancel-batches` cancels it" in stopped.problems()[0]
        server.behaviour.is_open = True
        result = run_experiment(experiment, progress=False)

        assert result.exit_code == 130
        assert [run.is_complete for run in result.runs] == [False, True]
        assert result.spent_usd <= 13.5 * each
        assert max(server.accepted.values()) == 1


def test_a_budget_with_an_unknown_price_is_refused_before_any_run(counted, subject):
    counted["subjects"]["dear"] = "counted/nobody-knows"

    with pytest.raises(ConfigurationError, match="a budget needs the price of the model 'counted:nobody-knows'"):
        run_experiment({**counted, "budget_usd": 5}, progress=False)

    assert not subject.asked
    assert not ExperimentStorage().exists()


def test_a_run_that_breaks_leaves_the_others_alone_and_is_taken_up_again(counted, subject):
    def refuse(model: str, prompt: str) -> None:
        if prompt.startswith("Only"):
            raise themis.ConfigurationError("no such model")

    subject.before = refuse
    broken = run_experiment({**counted, "max_retries": 1}, progress=False)
    subject.before = lambda model, prompt: None
    whole = run_experiment({**counted, "max_retries": 1}, progress=False)

    assert broken.exit_code == 3
    assert [run.is_complete for run in broken.runs] == [True, False, True, False]
    assert sum("terse" in problem for problem in broken.problems()) == 2
    assert whole.exit_code == 0


def test_mistakes_of_all_runs_are_found_before_the_first_call_of_any(counted, subject):
    counted["subjects"]["lost"] = "counterd/x"
    counted["prompts"]["wrong"] = "{qestion}"
    counted["metrics"] = ["exact_mtch"]

    with pytest.raises(ConfigurationError) as caught:
        run_experiment(counted, progress=False)

    told = str(caught.value)
    assert "subjects.lost.model: unknown provider 'counterd'" in told
    assert "metrics[0]: unknown metric 'exact_mtch' (did you mean 'exact_match'?)" in told
    assert not subject.asked
    assert not ExperimentStorage().exists()


def test_mistakes_in_keys_names_rows_and_judges_come_in_one_list_with_their_lines(folder, subject):
    Path("sums.yml").write_text(
        """name: sums
datasets: [rows.jsonl]
subjects: [counted/one, {model: counterd/two, temprature: 1}]
prompt: "{qestion}"
metrics:
  - exact_mtch
  - numbric
  - {rubric_judge: {model: counterd/judge, rubric: [right]}}
provider_options:
  api_key: ${NOWHERE_KEY}
limt: 3
""",
        encoding="utf-8",
    )

    with pytest.raises(ConfigurationError) as caught:
        run_experiment("sums.yml", progress=False)

    told = [line.strip() for line in str(caught.value).splitlines()]
    for line, what in (
        (3, "unknown provider 'counterd' in model 'counterd/two'"),
        (3, "unknown key 'temprature' (did you mean 'temperature'?)"),
        (4, "row 0: template 'default' needs the field 'qestion'"),
        (6, "unknown metric 'exact_mtch' (did you mean 'exact_match'?)"),
        (7, "unknown metric 'numbric' (did you mean 'numeric'?)"),
        (10, "option 'api_key' refers to the environment variable NOWHERE_KEY"),
        (11, "unknown key 'limt' (did you mean 'limit'?)"),
    ):
        assert any(one.startswith(f"sums.yml:{line}: {what}") for one in told), (line, told)
    assert not subject.asked


def test_a_judge_that_cannot_be_asked_is_found_before_the_first_call(counted, subject):
    judge = {"rubric_judge": {"model": "counterd/judge", "rubric": ["right"]}}

    with pytest.raises(
        ConfigurationError, match=r"metrics\[1\]: unknown provider 'counterd' in model 'counterd/judge'"
    ):
        run_experiment({**counted, "metrics": ["exact_match", judge]}, progress=False)

    assert not subject.asked


def test_a_row_that_does_not_fill_its_prompt_is_found_before_the_first_call(counted, subject):
    counted["prompts"]["wrong"] = "{qestion}"

    with pytest.raises(ConfigurationError, match=r"prompts.wrong.prompt: row 0: template .*did you mean 'question'"):
        run_experiment(counted, progress=False)

    assert not subject.asked


def test_rows_of_one_id_are_found_before_the_first_call_with_the_line_of_their_dataset(folder, subject):
    rows = [{"id": "a", "question": f"What is {n} + {n}?", "answer": "2"} for n in (1, 2)]
    (folder / "twins.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    Path("sums.yml").write_text(
        """subjects: [counted/one]
datasets:
  - rows.jsonl
  - twins.jsonl
prompt: "{question}"
""",
        encoding="utf-8",
    )

    with pytest.raises(ConfigurationError, match=r"^sums.yml:4: two rows have the id 'a': rows 0 and 1"):
        run_experiment("sums.yml", progress=False)

    assert not subject.asked


def test_a_gate_of_a_metric_that_no_run_has_is_found_before_the_first_call(counted, subject):
    with pytest.raises(ConfigurationError, match=r"gates\[0\].metric: no metric 'Exact' among"):
        run_experiment({**counted, "gates": [{"metric": "Exact", "at_least": 1}]}, progress=False)
    with pytest.raises(ConfigurationError, match="the gate of ExactMatch judges no run: none is called 'three'"):
        run_experiment({**counted, "gates": [{"metric": "ExactMatch", "only": "three"}]}, progress=False)

    assert not subject.asked


def test_only_the_named_runs_are_made(counted, subject):
    result = run_experiment(counted, only=["*--one--*"], progress=False)

    assert [run.run.run_id for run in result.runs] == ["sums--one--plain--rows", "sums--one--terse--rows"]
    assert sum(subject.asked.values()) == 24
    with pytest.raises(ConfigurationError, match=r"no run is called 'tow' \(did you mean 'two'\?\)"):
        run_experiment(counted, only=["tow"], progress=False)


def test_whoever_stops_it_from_another_thread_stops_every_run(counted, subject):
    handle = RunHandle()
    first = threading.Lock()  # taken by one of the threads that ask, and never given back

    def stop_once(model: str, prompt: str) -> None:
        if sum(subject.asked.values()) >= 6 and first.acquire(blocking=False):
            handle.stop()

    subject.before = stop_once
    token = CURRENT_HANDLE.set(handle)
    try:
        with pytest.raises(RunInterrupted, match="sums interrupted; everything finished is saved"):
            run_experiment(counted, progress=False, parallel=2)
    finally:
        CURRENT_HANDLE.reset(token)
    begun = {run.run_id for run in ExperimentStorage().list_runs(experiment="sums")}

    # No run of twelve rows can have ended before the sixth question, so the other two were not begun.
    assert begun <= {"sums--one--plain--rows", "sums--one--terse--rows"}
    assert sum(subject.asked.values()) <= 24
    assert run_experiment(counted, progress=False).exit_code == 0
    assert sum(subject.asked.values()) == 48


def test_paths_are_relative_to_the_file_wherever_it_is_run_from(sums, folder, monkeypatch):
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    path = folder / "sums.yml"
    path.write_text("datasets: [rows.jsonl]\nsubjects: [fake/perfect]\nload: [own.py]\nmetrics: [own_metric]\n")
    (folder / "own.py").write_text("import themis\n\n@themis.metric\ndef own_metric(prediction):\n    return 1.0\n")
    monkeypatch.chdir(elsewhere)

    result = run_experiment("../sums.yml", storage="store", progress=False)

    assert result.exit_code == 0
    assert result.runs[0].metrics["own_metric"]["count"] == 12
    assert (elsewhere / "store").exists()
    assert Path.cwd() == elsewhere


def test_a_plan_says_what_is_left_and_writes_nothing(counted, subject):
    before = plan_experiment(counted)
    run_experiment(counted, only=["one"], progress=False)
    after = plan_experiment(counted)

    assert (before.calls, after.calls) == (48, 24)
    assert [run.standing for run in after.runs] == ["complete", "complete", "new", "new"]
    assert 0 < after.likely_usd < after.most_usd
    assert after.spent_usd == pytest.approx(0.24, abs=1e-3)


def test_a_plan_counts_what_judges_still_have_to_be_asked(counted, subject):
    register_provider("hesitant", Hesitant)
    judged = {**counted, "metrics": ["exact_match", {"rubric_judge": {"model": "hesitant/judge", "rubric": ["right"]}}]}
    Hesitant.verdict = "I would rather not say."
    run_experiment(judged, progress=False)
    plan = plan_experiment(judged)

    assert [run.standing for run in plan.runs] == ["12 of 12 answered"] * 4
    assert (plan.calls, plan.tokens > 0) == (48, True)
    Hesitant.verdict = '{"scores": {"right": 1}, "verdict": "pass", "confidence": 1, "reason": "so it is"}'
    run_experiment(judged, progress=False)
    assert plan_experiment(judged).calls == 0
    # Judged by another rubric, the same answers are to be judged again.
    other = {"rubric_judge": {"model": "hesitant/judge", "rubric": ["polite"]}}
    assert plan_experiment({**judged, "metrics": ["exact_match", other]}).calls == 48


class Hesitant(StatelessTaskExecutor):
    """A judge that says what it is told to."""

    is_local = True
    verdict = ""

    def __init__(self, **_: Any) -> None:
        pass

    def execute(self, task: GenerationTask) -> GenerationRecord:
        return GenerationRecord(task, ModelOutput(self.verdict, None, {}), None)


def test_a_plan_does_not_say_how_much_at_most_tools_may_cost(sums, folder):
    (folder / "own.py").write_text('def look_up(item: str) -> str:\n    "Its colour."\n    return "red"\n')
    plan = plan_experiment({**sums, "subjects": ["openai/gpt-4o"], "tools": ["own.py:look_up"]})

    assert plan.most_usd is None
    assert plan.likely_usd > 0
    assert plan.to_dict()["runs"][0]["takes_steps"]


def test_a_plan_counts_judges(sums):
    plan = plan_experiment({**sums, "metrics": [{"rubric_judge": {"model": "openai/gpt-4o"}}]})

    assert plan.calls == 4 * 12 * 2
    assert plan.tokens > plan_experiment(sums).tokens + 4 * 12 * 250  # what a judge is shown, too
    assert plan.likely_usd > 0


# --- memory ---------------------------------------------------------------------------------------------------------

CONFIGURATION = """
config: {run_name: small}
datasets:
  args: {memory_span: 400, dataset_examples: 1}
  datasets: [{name: names}, {name: colours}]
"""


@pytest.fixture
def memory(folder: Path) -> dict:
    (folder / "small.yml").write_text(CONFIGURATION, encoding="utf-8")
    return {"name": "m", "memory": {"configuration": "small.yml", "agents": ["oracle", "amnesiac"], "seeds": 2}}


def test_memory_runs_share_tests_and_agents_are_compared_over_all_of_them(memory):
    result = run_experiment(memory, progress=False)

    assert result.exit_code == 0
    sweep = result.sweeps["small.yml"]
    assert {one.name: [round(point.mean, 3) for point in one.points] for one in sweep.spans} == {
        "oracle": [1.0],
        "amnesiac": [0.0],
    }
    assert [(pair.run_a_id, pair.run_b_id) for pair in sweep.comparisons] == [("oracle", "amnesiac")]
    assert run_experiment(memory, progress=False).exit_code == 0


def test_a_memory_run_may_have_gates_of_its_own(memory):
    memory["memory"]["gates"] = [{"metric": "memory", "at_least": 0.5}]

    result = run_experiment(memory, progress=False)

    assert result.exit_code == 1
    assert [verdict.outcome.value for verdict in result.gates] == ["pass", "pass", "fail", "fail"]


def test_planning_and_checking_a_memory_run_writes_no_definitions(memory):
    plan = plan_experiment(memory)

    assert [run.estimate.rows for run in plan.runs] == [2] * 4
    assert plan.likely_usd == 0.0
    memory["memory"]["agents"] = ["oracl"]
    with pytest.raises(ConfigurationError, match=r"memory.agents\[0\].agent: unknown agent 'oracl'"):
        run_experiment(memory, progress=False)
    assert not ExperimentStorage().exists()


def test_an_agent_that_may_look_at_the_clock_has_the_process_for_itself(memory, sums):
    running: set[str] = set()
    beside: list[set[str]] = []

    class Looking(Agent):
        """Its class says nothing of clocks, so it may look at one."""

        def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> str:
            beside.append(set(running))
            return presupplied or "Noted."

        def reset(self) -> None:
            pass

    class Listening(Watch):
        def observers(self, run: Any) -> list:
            running.add(run.run_id)
            return []

        def on_end(self, one: EndedRun) -> None:
            running.discard(one.run.run_id)

    register_agent("looking", Looking)
    memory["memory"]["agents"] = ["looking", "oracle"]

    run_experiment({**sums, **memory}, watch=Listening())

    assert {frozenset(one) for one in beside} == {frozenset({f"m--looking--s{seed}"}) for seed in (0, 1)}
