"""Cut the tape anywhere, and the resumed run equals the whole one: turn by turn, score by score, dollar by dollar."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.memory.small_tests import KINDS, Cities, Diary, YesJudge, benchmark, rows_of, store_in
from themis.exceptions import ConfigurationError, EvaluationError, StorageError
from themis.memory.agents.agent import Agent, Reply
from themis.memory.benchmark import Benchmark
from themis.memory.driver import run
from themis.memory.examples import TestExample
from themis.memory.models import ChatModel
from themis.storage import ExperimentStorage, RunStatus


def diary_run(**changed: Any) -> tuple[Benchmark, list[Diary]]:
    """A benchmark whose replies show every gap in the agent's memory, and the agents it has made."""
    agents: list[Diary] = []

    def make(session: str) -> Diary:
        agents.append(Diary())
        return agents[-1]

    return benchmark(agent_name="diary", make_agent=make, **changed), agents


def result_of(storage: ExperimentStorage) -> dict[str, Any]:
    """Everything a resumed run must have in common with an uninterrupted one."""
    metadata = storage.get_run("r")
    records = {}
    for item_id, record in storage.load_cached_records("r").items():
        memory = dict(record.metrics["memory"])
        memory.pop("agent_seconds")
        memory.pop("judge_seconds")
        records[item_id] = (record.output.text, memory)
    evaluations = {
        item_id: [(score.metric_name, score.value, score.details) for score in evaluation.scores] + evaluation.failures
        for item_id, evaluation in storage.load_cached_evaluations("r").items()
    }
    costs = (metadata.calls, metadata.completion_tokens, metadata.judge_calls, metadata.judge_cost_usd)
    return {
        "rows": rows_of(storage),
        "records": records,
        "scores": evaluations,
        "costs": costs,
        "dollars": round(metadata.cost_usd or 0.0, 9),
        "status": metadata.status,
        "metrics": metadata.summary["metrics"],
    }


def cut(whole: Path, target: Path, rows: int, *, keep_records: bool) -> ExperimentStorage:
    """The store as a process that died after so many rows leaves it; records may or may not have been entered."""
    shutil.copytree(whole, target)
    with sqlite3.connect(target / "store" / "themis.db") as connection:
        ended = connection.execute("SELECT test_id FROM turns WHERE kind = 'end' AND seq < ?", (rows,)).fetchall()
        connection.execute("DELETE FROM turns WHERE seq >= ?", (rows,))
        kept = [test_id for (test_id,) in ended] if keep_records else []
        marks = ",".join("?" * len(kept))
        gone = f"SELECT position FROM samples WHERE item_id NOT IN ({marks})"
        connection.execute(f"DELETE FROM records WHERE position IN ({gone})", kept)
        connection.execute(f"DELETE FROM scores WHERE position IN ({gone})", kept)
        connection.execute(
            "UPDATE runs SET status = 'in_progress', lease_holder = NULL, summary = NULL WHERE kind = 'memory'"
        )
    connection.close()
    return store_in(target)


@pytest.mark.parametrize("isolated", [False, True], ids=["interleaved", "isolated"])
def test_cut_after_any_row_the_resumed_run_equals_the_whole_one(tmp_path, isolated, source):
    storage = store_in(tmp_path / "whole")
    # Errands are there for their waits in the store; with so many more rows every third cut will do.
    kinds, step, span = (KINDS, 3, 1_200) if source(storage) else (KINDS.keys() - {"errands"}, 1, 300)
    settings = {"counts": dict.fromkeys(sorted(kinds), 1), "span": span, "isolated": isolated}
    whole, agents = diary_run(**settings, **source(storage))
    run(whole, storage)
    expected = result_of(storage)
    memories = [agent.entries for agent in agents]
    storage.close()
    total = len(expected["rows"])
    assert {row[1] for row in expected["rows"]} >= {"say", "ask", "reply", "forget", "jump", "consult", "listen", "end"}

    for rows in range(0, total + 1, step):
        folder = tmp_path / "cut"
        cut_storage = cut(tmp_path / "whole", folder, rows, keep_records=rows % 2 == 0)
        resumed, agents = diary_run(**settings, **source(cut_storage))

        run(resumed, cut_storage)

        assert result_of(cut_storage) == expected, f"cut after {rows} rows"
        if not isolated:
            assert [agent.entries for agent in agents] == memories
        answered = {row[3]["turn"] for row in expected["rows"][:rows] if row[1] == "reply"}
        assert isolated or not answered & set(agents[0].calls), "an answered message was sent again"
        cut_storage.close()
        shutil.rmtree(folder)


def test_a_judge_is_not_asked_again_what_it_has_answered(tmp_path, source):
    storage = store_in(tmp_path / "whole")
    run(diary_run(**source(storage))[0], storage)
    rows = next(row[0] for row in rows_of(storage) if row[1] == "consult") + 1
    storage.close()
    judge = YesJudge()
    cut_storage = cut(tmp_path / "whole", tmp_path / "cut", rows, keep_records=True)

    run(diary_run(judge=judge, **source(cut_storage))[0], cut_storage)

    assert judge.asked == []


def test_an_agent_with_snapshots_is_restored_and_told_only_the_rest(tmp_path, monkeypatch, source):
    monkeypatch.setattr("themis.memory.runner._SNAPSHOT_EVERY_TURNS", 5)
    told: list[int] = []

    class Saving(Diary):
        def observe(self, message, reply, *, turn, now):
            told.append(turn)
            super().observe(message, reply, turn=turn, now=now)

        def snapshot(self):
            return repr(self.entries).encode()

        def restore(self, snapshot):
            import ast

            self.entries = ast.literal_eval(snapshot.decode())

    storage = store_in(tmp_path / "whole")
    run(benchmark(agent_name="diary", make_agent=lambda session: Saving(), **source(storage)), storage)
    expected = result_of(storage)["rows"]
    last = max(row[3]["turn"] for row in expected if row[1] == "reply")
    storage.close()
    cut_storage = cut(tmp_path / "whole", tmp_path / "cut", len(expected) - 2, keep_records=True)

    run(benchmark(agent_name="diary", make_agent=lambda session: Saving(), **source(cut_storage)), cut_storage)

    assert result_of(cut_storage)["rows"] == expected
    assert told == list(range(last // 5 * 5 + 1, last + 1))


class Elsewhere(Agent):
    """Keeps its memory outside of this process and cannot tell a repeated message from a new one."""

    remembers_elsewhere = True
    reads_clock = False
    name = "elsewhere"

    def __init__(self, memory: list[str]) -> None:
        self.memory = memory

    def reply(self, message, *, turn, now, presupplied=None):
        self.memory.append(message)
        return f"{len(self.memory)} messages"

    def reset(self):
        self.memory.clear()

    def last_turn(self):
        return len(self.memory)


def test_a_message_that_may_have_been_heard_twice_marks_the_result(tmp_path, source):
    storage = store_in(tmp_path / "whole")
    memory: list[str] = []
    settings = {"counts": {"cities": 1}, "agent_name": "elsewhere"}
    run(benchmark(**settings, make_agent=lambda session: Elsewhere(memory), **source(storage)), storage)
    asked = next(row[0] for row in rows_of(storage) if row[1] == "ask")
    storage.close()
    cut_storage = cut(tmp_path / "whole", tmp_path / "cut", asked + 1, keep_records=True)
    turn = sum(row[1] == "reply" for row in rows_of(cut_storage))
    heard = memory[: turn + 1]

    run(benchmark(**settings, make_agent=lambda session: Elsewhere(heard), **source(cut_storage)), cut_storage)

    record = cut_storage.load_cached_records("r")["Cities - 0"]
    assert record.metrics["memory"]["in_doubt"] is True
    assert [row[3].get("in_doubt") for row in rows_of(cut_storage) if row[1] == "reply"].count(True) == 1


def test_an_agent_that_knows_more_than_is_stored_is_refused(tmp_path):
    storage = store_in(tmp_path)

    with pytest.raises(ConfigurationError, match="already knows 2 turns"):
        run(benchmark(make_agent=lambda session: Elsewhere(["a", "b"])), storage)


def test_an_edited_test_is_noticed_before_anything_is_sent(tmp_path):
    storage = store_in(tmp_path)
    run(benchmark({"cities": 1}), storage)
    edited = benchmark({"cities": 1})
    edited.tests[0].script[0] = "I live in Bern now."

    with pytest.raises(ConfigurationError, match=r"(?s)definitions: stored '1 tests, .*not as they were: Cities - 0"):
        run(edited, storage)


def test_a_judge_named_later_is_sent_to_rejudge(tmp_path):
    storage = store_in(tmp_path)
    run(benchmark({"cities": 1}, judge=None), storage)

    with pytest.raises(ConfigurationError, match="themis rejudge r --judge yes-judge"):
        run(benchmark({"cities": 1}, judge=YesJudge()), storage)


def test_another_tokenizer_agent_or_filler_is_refused_by_name(tmp_path):
    storage = store_in(tmp_path)
    run(benchmark({"cities": 1}), storage)

    with pytest.raises(ConfigurationError) as refused:
        run(benchmark({"cities": 1}, tokenizer="o200k_base", agent_name="other", max_message_tokens=300), storage)

    for dimension in ("tokenizer", "agent", "max_message_tokens"):
        assert f"  {dimension}: stored" in str(refused.value)


def test_tests_whose_code_has_changed_are_stopped_at_the_turn_where_they_part(tmp_path, monkeypatch):
    storage = store_in(tmp_path / "whole")
    run(benchmark({"cities": 1}), storage)
    storage.close()
    cut_storage = cut(tmp_path / "whole", tmp_path / "cut", 8, keep_records=True)

    def other_words(self: TestExample) -> Any:
        from themis.memory.actions import Grade, Say

        yield Say("Something quite different.")
        yield Grade(1.0)

    monkeypatch.setattr(Cities, "play", lambda self, example: other_words(example))
    with pytest.raises(ConfigurationError) as parted:
        run(benchmark({"cities": 1}), cut_storage)

    message = str(parted.value)
    assert "part at row 3 (turn 2)" in message
    assert "I live in" in message
    assert "Something quite different." in message


def test_a_torn_row_is_an_error_that_names_it(tmp_path):
    storage = store_in(tmp_path / "whole")
    run(benchmark({"cities": 1}), storage)
    storage.close()
    cut_storage = cut(tmp_path / "whole", tmp_path / "cut", 8, keep_records=True)
    with sqlite3.connect(tmp_path / "cut" / "store" / "themis.db") as connection:
        connection.execute("UPDATE turns SET body = substr(body, 1, 20) WHERE seq = 3")
    connection.close()

    with pytest.raises(StorageError, match="row 3 of the stored conversation cannot be read"):
        run(benchmark({"cities": 1}), cut_storage)


class Failing(Diary):
    """Breaks down at a certain turn, once."""

    def __init__(self, turn: int, error: Exception) -> None:
        super().__init__()
        self._turn, self._error = turn, error

    def reply(self, message, *, turn, now, presupplied=None):
        if turn == self._turn:
            raise self._error
        return super().reply(message, turn=turn, now=now, presupplied=presupplied)


@pytest.mark.parametrize("error", [TimeoutError("no answer in 60 s"), RuntimeError("out of memory")])
def test_an_agent_that_dies_stops_the_run_and_the_next_one_takes_it_up(tmp_path, error, source):
    whole = store_in(tmp_path / "whole")
    run(diary_run(**source(whole))[0], whole)
    storage = store_in(tmp_path / "broken")

    with pytest.raises(EvaluationError, match=f"agent 'diary' failed at turn 7: {type(error).__name__}: {error}"):
        run(benchmark(agent_name="diary", make_agent=lambda session: Failing(7, error), **source(storage)), storage)

    assert storage.get_run("r").status is RunStatus.FAILED
    assert "turn 7" in storage.get_run("r").error_message
    run(diary_run(**source(storage))[0], storage)
    assert result_of(storage) == result_of(whole)


class Saying(Diary):
    """Replies whatever it was made with."""

    def __init__(self, said: Any) -> None:
        super().__init__()
        self.said = said

    def reply(self, message, *, turn, now, presupplied=None):
        return self.said if presupplied is None else presupplied


@pytest.mark.parametrize(
    "said", ["", "x" * 1_000_000, "\ud800 lone", "\x00\x1b[2J", "ünï çödé 🙂"], ids=["empty", "1MB", "sur", "nul", "u"]
)
def test_replies_of_any_kind_are_kept_as_they_are_and_scored(tmp_path, said):
    storage = store_in(tmp_path)
    settings = {"counts": {"cities": 1}, "agent_name": "saying", "make_agent": lambda session: Saying(said)}

    report = run(benchmark(**settings), storage)

    assert report.item_scores("memory") == {"Cities - 0": 0.0}
    assert storage.load_cached_records("r")["Cities - 0"].output.text == said
    # The whole tape can be played again.
    assert run(benchmark(**settings), storage).item_scores("memory") == report.item_scores("memory")


def test_a_judge_that_is_a_model_is_closed_with_its_run_so_that_no_connection_is_left(tmp_path):
    class Connected(ChatModel):
        name, closed = "connected", 0

        def __init__(self):
            pass

        def answer(self, prompt):
            return Reply("yes")

        def close(self):
            self.closed += 1

    judge = Connected()
    run(benchmark({"cities": 1}, judge=judge), store_in(tmp_path))

    assert judge.closed == 1


def test_a_reply_that_is_no_text_is_the_agents_failure(tmp_path):
    with pytest.raises(EvaluationError, match="it replied with NoneType"):
        run(benchmark({"cities": 1}, make_agent=lambda session: Saying(None)), store_in(tmp_path))


@pytest.mark.parametrize(
    "took",
    [{"cost_usd": "0.1"}, {"cost_usd": -1.0}, {"cost_usd": float("nan")}, {"cost_usd": 10**400}, {"calls": -3},
     {"prompt_tokens": None}, {"prompt_tokens": 10**20}, {"completion_tokens": 1.5}],
)  # fmt: skip
def test_a_reply_whose_cost_or_tokens_cannot_be_added_up_is_the_agents_failure(tmp_path, took):
    class Odd(Saying):
        def reply(self, message, *, turn, now, presupplied=None):
            return Reply("I see.", **took)

    storage = store_in(tmp_path)
    with pytest.raises(EvaluationError, match=f"failed at turn 1: {next(iter(took))} of a Reply is a .* is saved"):
        run(benchmark({"cities": 1}, make_agent=lambda session: Odd("")), storage)
    assert storage.get_run("r").cost_usd == 0.0


def test_a_budget_stops_before_it_is_passed_and_a_larger_one_goes_on(tmp_path, source):
    storage = store_in(tmp_path)
    settings = {"agent_name": "diary", "make_agent": lambda session: Diary()}

    first = run(benchmark(**settings, budget_usd=0.055, **source(storage)), storage)
    spent = storage.get_run("r").cost_usd
    second = run(benchmark(**settings, **source(storage)), storage)

    assert first.status == RunStatus.INTERRUPTED
    assert "budget_usd=0.055 allows no further call" in first.metadata["stopped"]
    assert spent == pytest.approx(0.05)
    assert second.status == RunStatus.COMPLETED
    assert [row[3].get("turn") for row in rows_of(storage) if row[1] == "reply"] == list(
        range(1, second.metadata["memory"]["turns"] + 1)
    )


def test_isolated_tests_run_side_by_side_with_the_same_result(tmp_path):
    settings = {"counts": {"cities": 4, "appointments": 2, "promises": 2, "orders": 2}, "isolated": True}
    one, many = store_in(tmp_path / "one"), store_in(tmp_path / "many")

    alone = run(diary_run(**settings)[0], one)
    together = run(diary_run(**settings, parallel=4)[0], many)

    assert alone.item_scores("memory") == together.item_scores("memory")
    assert alone.metadata["memory"]["turns"] == together.metadata["memory"]["turns"]

    def by_test(storage: ExperimentStorage) -> dict[str, Any]:
        return {test: [row[1:] for row in rows_of(storage) if row[2] == test] for test in alone.item_scores("memory")}

    assert by_test(one) == by_test(many)


def test_without_a_judge_undecided_tests_are_failures_that_say_so_and_the_rest_is_scored(tmp_path):
    report = run(benchmark({"cities": 1, "orders": 1}, judge=None), store_in(tmp_path))

    assert report.item_scores("memory") == {"Cities - 0": 1.0, "Orders - 0": None}
    assert "--judge" in store_in(tmp_path).load_cached_evaluations("r")["Orders - 0"].failures[0]


def test_reply_may_be_given_with_its_cost(tmp_path):
    class Costly(Diary):
        def reply(self, message, *, turn, now, presupplied=None):
            return Reply("Lima", cost_usd=None, prompt_tokens=100, completion_tokens=2, calls=1)

    storage = store_in(tmp_path)
    run(benchmark({"cities": 1}, agent_name="costly", make_agent=lambda session: Costly()), storage)

    assert storage.get_run("r").cost_usd is None
    assert storage.get_run("r").prompt_tokens == 100 * storage.get_run("r").calls
