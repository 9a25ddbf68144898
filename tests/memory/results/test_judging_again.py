"""Verdicts that come later: judged again without the agent, or set by a person, with the earlier ones kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.memory.results.runs import small_run
from tests.memory.small_tests import KINDS, Diary, YesJudge, benchmark
from themis.cli import themis
from themis.exceptions import ConfigurationError, EvaluationError, StorageError
from themis.memory.actions import Grade
from themis.memory.driver import run
from themis.memory.examples import register_memory_test
from themis.memory.exporting import export_run
from themis.memory.overrides import override_score, read_overrides, withdraw_override
from themis.memory.rejudging import rejudge_memory_run
from themis.memory.report import read_view
from themis.memory.report.pages import run_page
from themis.memory.results import load_results, summarise_results
from themis.memory.tape import read_body
from themis.storage import ExperimentStorage


@pytest.fixture
def every_form(tmp_path: Path, registered: None) -> ExperimentStorage:
    """A run with a test of every form, made by an agent that answers some of it right."""
    for name, kind in KINDS.items():
        register_memory_test(name)(kind)
    storage = ExperimentStorage(tmp_path)
    run(benchmark(agent_name="diary", make_agent=lambda session: Diary(), judge=YesJudge()), storage)
    return storage


@pytest.fixture
def small(tmp_path: Path) -> ExperimentStorage:
    storage = ExperimentStorage(tmp_path)
    small_run(storage, "amnesiac", "small")
    return storage


def scores(storage: ExperimentStorage, run_id: str, judged_as: str | None = None) -> dict[str, float | None]:
    return {one.test_id: one.score for one in load_results(storage, run_id, judged_as).results}


def test_judged_again_by_the_same_scorers_every_form_of_test_has_the_same_score(every_form: ExperimentStorage) -> None:
    before = scores(every_form, "r")
    assert len(set(before.values())) > 1, "some right, some wrong"
    rejudge_memory_run(every_form, "r")

    assert scores(every_form, "r") == before
    assert [way.name for way in every_form.reader("r").list_evaluations()] == ["judge yes-judge", "rejudged 1"]


@pytest.mark.parametrize("agent", ["oracle", "amnesiac", "window(300)"])
def test_built_in_tests_are_judged_again_as_they_were(tmp_path: Path, agent: str) -> None:
    storage = ExperimentStorage(tmp_path)
    small_run(storage, agent, "small")
    rejudge_memory_run(storage, "small")

    assert scores(storage, "small") == scores(storage, "small", "as run")


def test_isolated_tests_are_judged_again_as_they_were(tmp_path: Path) -> None:
    storage = ExperimentStorage(tmp_path)
    small_run(storage, "oracle", "small", isolated=True)
    rejudge_memory_run(storage, "small")

    assert scores(storage, "small") == scores(storage, "small", "as run")


def test_a_corrected_scorer_changes_the_score_and_the_old_one_is_kept(
    every_form: ExperimentStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kinder(self: Any, questions: Any, responses: Any, expected: Any) -> Grade:
        return Grade(0.5, "half for trying")

    monkeypatch.setattr(KINDS["cities"], "evaluate", kinder)
    rejudge_memory_run(every_form, "r")

    assert scores(every_form, "r")["Cities - 0"] == 0.5
    assert scores(every_form, "r", "judge yes-judge")["Cities - 0"] == 0.0


def test_another_judge_is_asked_once_for_each_question(every_form: ExperimentStorage) -> None:
    class Stern(YesJudge):
        name = "stern"

        def answer(self, prompt: str) -> Any:
            said = super().answer(prompt)
            return type(said)("no", 0.002, 10, 1, 1)

    first, second = Stern(), Stern()
    rejudge_memory_run(every_form, "r", first)
    rejudge_memory_run(every_form, "r", second)

    assert scores(every_form, "r")["Orders - 0"] == 0.0
    assert scores(every_form, "r", "judge yes-judge")["Orders - 0"] == 1.0
    assert (len(first.asked), len(second.asked)) == (1, 0)
    assert every_form.get_run("r").judge_cost_usd == pytest.approx(0.001 + 0.002)


def test_a_test_that_would_go_on_otherwise_is_a_failure_and_no_score(
    every_form: ExperimentStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.memory.small_tests import Order

    def other(self: Any) -> Any:
        from themis.memory.actions import Ask

        yield Ask("Something that was never asked")
        yield Grade(1.0)

    monkeypatch.setattr(Order, "play", other)
    found = {one.test_id: one for one in rejudge_memory_run(every_form, "r").results}

    assert found["Orders - 0"].score is None
    assert "would now be 'Something that was never asked'" in found["Orders - 0"].reasoning[0]


# --- a judge that could not be had ------------------------------------------------------------------------------------


class Mumbling(YesJudge):
    """Says nothing that could be understood until it has found its words."""

    def __init__(self, *, speaks: bool) -> None:
        super().__init__()
        self.speaks = speaks

    def answer(self, prompt: str) -> Any:
        said = super().answer(prompt)
        return said if self.speaks else type(said)("hm", 0.001, 10, 1, 1)


class Gone(YesJudge):
    def answer(self, prompt: str) -> Any:
        raise ConnectionError("no route to the judge")


class Counting(Diary):
    replies = 0

    def reply(self, *arguments: Any, **named: Any) -> Any:
        if named.get("presupplied") is None:
            type(self).replies += 1
        return super().reply(*arguments, **named)


@pytest.mark.parametrize("isolated", [False, True])
def test_a_judge_that_could_not_be_understood_is_asked_again_on_resume_and_the_agent_is_not(
    tmp_path: Path, registered: None, isolated: bool
) -> None:
    for name, kind in KINDS.items():
        register_memory_test(name)(kind)
    storage = ExperimentStorage(tmp_path)

    def played(judge: YesJudge) -> Any:
        return run(benchmark(make_agent=lambda session: Counting(), judge=judge, isolated=isolated), storage)

    mumbled = played(Mumbling(speaks=False)).item_scores("memory")
    stored = storage.get_run("r")
    replies, cost, calls = Counting.replies, stored.judge_cost_usd, stored.judge_calls
    found = Mumbling(speaks=True)
    settled, again = played(found), played(Mumbling(speaks=True))

    assert mumbled["Orders - 0"] is None
    assert [one.item_scores("memory")["Orders - 0"] for one in (settled, again)] == [1.0, 1.0]
    assert scores(storage, "r")["Orders - 0"] == 1.0
    assert Counting.replies == replies, "the agent was not spoken to"
    assert len(found.asked) == 1
    assert storage.get_run("r").judge_cost_usd == pytest.approx(cost + 0.001)
    assert storage.get_run("r").judge_calls == calls + 1
    assert [way.name for way in storage.reader("r").list_evaluations()] == ["judge yes-judge"]


def test_answers_that_could_not_be_understood_are_not_kept_as_a_judges_last_word(every_form: ExperimentStorage) -> None:
    mumbling, speaking = Mumbling(speaks=False), Mumbling(speaks=True)
    mumbling.name = speaking.name = "other"
    rejudge_memory_run(every_form, "r", mumbling)
    unclear = scores(every_form, "r")["Orders - 0"]
    rejudge_memory_run(every_form, "r", speaking)

    assert unclear is None
    assert scores(every_form, "r")["Orders - 0"] == 1.0


def test_a_judge_that_is_gone_stops_the_run_and_a_later_start_ends_it_as_if_nothing_had_happened(
    tmp_path: Path, registered: None
) -> None:
    stopped, whole = ExperimentStorage(tmp_path / "stopped"), ExperimentStorage(tmp_path / "whole")
    made = {"make_agent": lambda session: Diary()}
    with pytest.raises(EvaluationError, match=r"judge 'yes-judge' did not answer: ConnectionError.*is saved"):
        run(benchmark(**made, judge=Gone()), stopped)
    run(benchmark(**made, judge=YesJudge()), stopped)
    run(benchmark(**made, judge=YesJudge()), whole)

    def rows(storage: ExperimentStorage) -> list[Any]:
        return [(row.seq, row.kind, row.test_id, read_body(row).message) for row in storage.reader("r").turns()]

    assert rows(stopped) == rows(whole)
    assert scores(stopped, "r") == scores(whole, "r")


def test_running_a_complete_run_again_leaves_the_verdicts_that_count_alone(every_form: ExperimentStorage) -> None:
    override_score(every_form, "r", "Orders - 0", 0.25, reason="half of it", by="Ada")
    run(benchmark(agent_name="diary", make_agent=lambda session: Diary(), judge=YesJudge()), every_form)

    assert scores(every_form, "r")["Orders - 0"] == 0.25


# --- overrides --------------------------------------------------------------------------------------------------------


def test_an_override_is_shown_as_such_and_the_automatic_score_is_kept(small: ExperimentStorage) -> None:
    override_score(small, "small", "Colours - 0", 0.5, reason="a synonym", by="Ada")
    found = {one.test_id: one for one in load_results(small, "small").results}

    assert found["Colours - 0"].score == 0.5
    assert (found["Colours - 0"].override["by"], found["Colours - 0"].override["before"]) == ("Ada", 0.0)
    assert found["Colours - 1"].override == {}
    assert scores(small, "small", "as run")["Colours - 0"] == 0.0
    page = run_page(read_view(small, "small"))
    assert "Ada set 0.5 instead of 0.0" in page
    assert "1 scores were set by a person" in page


def test_overrides_add_up_and_can_be_withdrawn(small: ExperimentStorage) -> None:
    override_score(small, "small", "Colours - 0", 1.0, reason="right", by="Ada")
    override_score(small, "small", "Colours - 1", 0.25, reason="nearly", by="Bo")
    withdraw_override(small, "small", "Colours - 0", reason="I misread it", by="Ada")

    assert [(one.test_id, one.score, one.before) for one in read_overrides(small, "small")] == [
        ("Colours - 0", 1.0, 0.0),
        ("Colours - 1", 0.25, 0.0),
        ("Colours - 0", None, 0.0),
    ]
    assert scores(small, "small")["Colours - 0"] == 0.0
    assert scores(small, "small")["Colours - 1"] == 0.25


def test_an_override_that_was_edited_is_refused(small: ExperimentStorage) -> None:
    override_score(small, "small", "Colours - 0", 1.0, reason="right", by="Ada")
    content = json.loads(small.reader("small").artifact("overrides.json") or b"")
    content[0]["score"] = 0.0
    with small.open_run("small") as writer:
        writer.save_artifact("overrides.json", json.dumps(content).encode(), "application/json")

    with pytest.raises(StorageError, match=r"override 1 .* by Ada.* was changed after it was signed"):
        read_overrides(small, "small")


@pytest.mark.parametrize(
    ("test_id", "score", "reason", "by", "complaint"),
    [
        ("Colours - 9", 1.0, "why", "Ada", "has no test 'Colours - 9'"),
        ("Colours - 0", 1.5, "why", "Ada", "between 0 and 1"),
        ("Colours - 0", 1.0, " ", "Ada", "needs a reason"),
        ("Colours - 0", 1.0, "why", "", "needs a reason .* and the name"),
    ],
)
def test_an_override_without_substance_is_refused(
    small: ExperimentStorage, test_id: str, score: float, reason: str, by: str, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        override_score(small, "small", test_id, score, reason=reason, by=by)
    assert read_overrides(small, "small") == []


def test_an_override_is_exported_as_that_layout_marks_it(small: ExperimentStorage, tmp_path: Path) -> None:
    override_score(small, "small", "Colours - 0", 1.0, reason="right", by="Ada")
    export_run(small, "small", tmp_path / "out")
    result = json.loads((tmp_path / "out/results/amnesiac/Colours/0_0.json").read_text())

    assert (result["score"], result["auto_score"], result["reasoning"]) == (1.0, 0.0, ["Ada: right"])


def test_the_command_overrides_lists_and_withdraws(small: ExperimentStorage) -> None:
    def call(*arguments: str) -> str:
        outcome = CliRunner().invoke(
            themis, ["memory", "override", "small", *arguments, "--storage", str(small.root)], catch_exceptions=False
        )
        assert outcome.exit_code == 0, outcome.output
        return outcome.output

    assert "a synonym" in call("Colours - 0", "--score", "1", "--reason", "a synonym", "--by", "Ada")
    assert "withdrawn" in call("Colours - 0", "--withdraw", "--reason", "no", "--by", "Ada")
    with pytest.raises(ConfigurationError, match="either --score or --withdraw"):
        call("Colours - 0", "--reason", "no", "--by", "Ada")


def test_a_report_says_about_how_many_tests_the_judge_was_asked(every_form: ExperimentStorage) -> None:
    found = load_results(every_form, "r")
    asked = [result.test_id for result in found.results if result.judge_calls]
    printed = CliRunner().invoke(themis, ["memory", "report", "r", "--storage", str(every_form.location)])

    assert 0 < len(asked) < len(found.results)
    assert summarise_results(found).judged == len(asked)
    assert f"{len(asked)} of {len(found.results)}" in printed.output


def test_intervals_after_judging_again_are_those_of_the_report_and_possible(
    every_form: ExperimentStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = iter([0.9, 1.0] * 20)
    for kind in KINDS.values():
        monkeypatch.setattr(kind, "evaluate", lambda *given: Grade(next(verdicts), "nearly"))

    result = CliRunner().invoke(themis, ["rejudge", "r", "--storage", str(every_form.root), "--json"])

    assert result.exit_code == 0, result.stderr
    printed = {name: found["ci"] for name, found in json.loads(result.stdout)["metrics"].items()}
    shown = {one.name: one.interval for one in summarise_results(load_results(every_form, "r")).datasets}
    assert {name: tuple(ends) for name, ends in printed.items() if name != "memory"} == shown
    assert all(0 <= low < high <= 1 for low, high in printed.values())
