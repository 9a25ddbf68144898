"""Answers of several steps: tools are called, users talk, scripts are played; every step is stored before the next."""

from __future__ import annotations

import asyncio
import threading

import pytest

import themis
from themis.core.entities import GenerationRecord, ModelOutput, ToolCall
from themis.exceptions import ConfigurationError, RunFailedError
from themis.generation.templates import TemplateRenderingError
from themis.interfaces import StatelessTaskExecutor
from themis.memory import Ask, Grade, Say
from themis.storage import ExperimentStorage

USAGE = {"prompt_tokens": 5, "completion_tokens": 2}


def adder(messages, row):
    """Calls the tool as often as the row says, then repeats what the last call gave."""
    done = [message for message in messages if message["role"] == "tool"]
    if len(done) < row["times"]:
        call = ToolCall("add", {"a": len(done), "b": 1}, id=f"call-{len(done)}")
        return ModelOutput("", usage=USAGE, tool_calls=(call,), finish_reason="tool_calls")
    return ModelOutput(done[-1]["content"] if done else "0", usage=USAGE)


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def rows(*times: int) -> list[dict[str, object]]:
    return [{"id": str(n), "question": "How many?", "times": n, "answer": str(n)} for n in times]


def evaluate(tmp_path, data, model=adder, **arguments):
    given = {"prompt": "{question}", "storage": tmp_path, "progress": False, "run_id": "r"} | arguments
    return themis.evaluate(data, model=model, **given)


def test_the_model_is_asked_until_it_calls_no_more_tools(tmp_path):
    report = evaluate(tmp_path, rows(0, 1, 3), tools=[add])

    assert report.metric("exact_match").mean == 1.0
    output = report.generation_results[2].output
    assert [message["role"] for message in output.transcript] == ["assistant", "tool"] * 3 + ["assistant"]
    assert output.transcript[1]["content"] == "1"
    assert output.transcript[0]["tool_calls"] == [{"id": "call-0", "name": "add", "arguments": {"a": 0, "b": 1}}]


def test_a_tool_that_hangs_is_given_up_and_the_sample_goes_on(tmp_path):
    released = threading.Event()

    class Sums:
        timeout_seconds = 0.2

        def __init__(self):
            self.made = 0

        def add(self, a: int, b: int) -> int:
            if a == 1:
                released.wait(60)
            self.made += 1
            return a + b

    report = evaluate(tmp_path, rows(1, 2), tools=[Sums])
    released.set()

    quick, hung = (record.output.transcript for record in report.generation_results)
    assert [message.get("error") for message in quick if message["role"] == "tool"] == [None]
    first, second = (message for message in hung if message["role"] == "tool")
    assert first["content"] == "1"
    assert second["content"] == "add took more than 0.2 s, and nobody waits for it any longer"
    assert second["error"] is True


def test_every_call_of_every_step_is_counted_once(tmp_path):
    report = evaluate(tmp_path, rows(0, 1, 3), tools=[add])

    calls = 1 + 2 + 4
    assert report.metadata["cost"]["api_calls"] == calls
    assert report.metadata["cost"]["token_counts"]["prompt_tokens"] == 5 * calls
    run = ExperimentStorage(tmp_path).get_run("r")
    assert (run.calls, run.prompt_tokens, run.completion_tokens) == (calls, 5 * calls, 2 * calls)


def test_steps_are_gone_once_the_answer_is_whole(tmp_path):
    evaluate(tmp_path, rows(2, 3), tools=[add])

    assert ExperimentStorage(tmp_path).reader("r").started() == set()


@pytest.mark.parametrize(
    ("limit", "turns"), [({"max_turns": 2}, 2), ({"max_sample_tokens": 15}, 3), ({"max_sample_usd": 0.25}, 3)]
)
def test_a_sample_that_reaches_a_limit_ends_there_and_says_so(tmp_path, limit, turns):
    def paid(messages, row):
        output = adder(messages, row)
        return ModelOutput(output.text, usage=USAGE, tool_calls=output.tool_calls, cost_usd=0.1)

    report = evaluate(tmp_path, rows(9), model=paid, tools=[add], **limit)

    output = report.generation_results[0].output
    assert output.finish_reason == next(iter(limit))
    assert output.is_cut_off
    assert sum(message["role"] == "assistant" for message in output.transcript) == turns


@pytest.mark.parametrize(
    ("limit", "turns"),
    [
        ({"max_turns": 3}, 3),
        ({"max_sample_tokens": 15}, 3),
        ({"max_sample_usd": 0.25}, 3),
        ({"max_sample_seconds": 1e-9}, 1),
    ],
)
def test_what_was_said_on_the_way_to_an_answer_is_never_scored_as_one(tmp_path, limit, turns):
    def restless(messages, row):
        """Says what is right, and goes on and on."""
        call = ToolCall("rest", {}, id=str(len(messages)))
        return ModelOutput("42", usage=USAGE, tool_calls=(call,), finish_reason="tool_calls", cost_usd=0.1)

    def rest() -> str:
        """Does nothing."""
        return "rested"

    data = [{"id": "1", "question": "?", "answer": "42"}]
    metrics = ["exact_match", "tool_called('rest')", "steps"]
    report = evaluate(tmp_path, data, model=restless, tools=[rest], metrics=metrics, **limit)

    (name,) = limit
    assert (report.metric("exact_match").mean, report.metric("exact_match").unparsed) == (0.0, 1)
    (score,) = report.metric("exact_match").per_sample
    assert score.details["error"] == f"not answered: stopped by {name}"
    # The conversation itself is as good as any other.
    assert (report.metric("tool_called").mean, report.metric("steps").mean) == (1.0, turns)
    option = f"--{name.replace('_', '-')}"
    assert report.metadata["caveats"] == [
        f"100 % of answers were cut off by {name}: the mean is too low; raise {option}"
    ]


def test_a_tool_is_given_up_when_the_time_of_its_sample_is_over(tmp_path):
    async def hang() -> str:
        """Never returns."""
        await asyncio.sleep(900)
        return ""

    def model(messages, row):
        return ModelOutput("", tool_calls=(ToolCall("hang", {}, id=str(len(messages))),))

    report = evaluate(tmp_path, rows(1), model=model, tools=[hang], max_sample_seconds=1.2)

    output = report.generation_results[0].output
    assert output.finish_reason == "max_sample_seconds"
    assert output.transcript[-1]["content"].startswith("hang took more than 1.")


def test_answers_that_were_cut_off_in_both_ways_are_told_of_in_both(tmp_path):
    def model(messages, row):
        if row["id"] == "long":
            return ModelOutput("The answer", finish_reason="length")
        return ModelOutput("", tool_calls=(ToolCall("add", {"a": 1, "b": 1}, id=str(len(messages))),))

    data = [
        {"id": name, "question": '"finish_reason":"max_sample_tokens"', "answer": "1"} for name in ("long", "restless")
    ]
    report = evaluate(tmp_path, data, model=model, tools=[add], max_turns=2, max_tokens=64)

    assert report.metadata["caveats"] == [
        "100 % of answers were cut off at 64 tokens and by max_turns: the mean is too low; "
        "raise --max-tokens, and raise --max-turns"
    ]


def test_a_failed_sample_keeps_its_steps_and_the_next_session_takes_them_up(tmp_path, broken_once):
    asked, model = broken_once
    first = evaluate(tmp_path, [*rows(0), *rows(3)], model=model, tools=[add], max_retries=1)
    assert first.metric("exact_match").failed == 1
    assert ExperimentStorage(tmp_path).reader("r").started() == {(1, 0)}

    asked.clear()
    second = evaluate(tmp_path, [*rows(0), *rows(3)], model=model, tools=[add], max_retries=1)

    assert second.metric("exact_match").mean == 1.0
    assert asked == [5, 7]
    run = ExperimentStorage(tmp_path).get_run("r")
    assert run.prompt_tokens == 5 * (1 + 4)


@pytest.fixture
def broken_once():
    """A model that fails once, at the third call of a sample; and how many messages it was sent each time."""
    asked: list[int] = []
    failures = [ConnectionError("down")]
    themis.register_provider("adder-once", lambda: _Adder(asked, failures))
    return asked, "adder-once/any"


class _Adder:
    def __init__(self, asked, failures):
        self.asked, self.failures = asked, failures

    def execute(self, task):
        messages = task.metadata.get("messages") or [{"role": "user", "content": task.prompt.text}]
        self.asked.append(len(messages))
        if len(messages) == 5 and self.failures:
            raise self.failures.pop()
        return GenerationRecord(task, adder(messages, task.prompt.context), None)


# --- users and scripts -------------------------------------------------------------------------------------------------


def test_a_simulated_user_talks_until_it_has_what_it_wants(tmp_path):
    themis.register_provider("customer", lambda: _Customer())

    def shop(messages):
        return f"That is {len(messages)} messages."

    report = evaluate(
        tmp_path,
        [{"id": "1", "question": "I want cake.", "goal": "cake", "answer": "That is 5 messages."}],
        model=shop,
        user={"model": "customer/any", "persona": "in a hurry", "goal": "wants {goal}"},
    )

    output = report.generation_results[0].output
    assert report.metric("exact_match").mean == 1.0
    assert [message["content"] for message in output.transcript if message["role"] == "user"] == ["Where?", "And now?"]
    assert output.raw == {"ended_by": "user"}


class _Customer:
    """Says two things, then that it is over; it sees the assistant's messages as those of whom it talks to."""

    def execute(self, task):
        messages = task.metadata["messages"]
        assert "wants cake" in messages[0]["content"]
        assert messages[-1]["role"] == "user"
        said = sum(message["role"] == "assistant" for message in messages)
        return GenerationRecord(task, ModelOutput(["", "Where?", "And now?", "[END]"][said]), None)


@pytest.mark.parametrize(
    ("ending", "said"), [("length", "said nothing within max_tokens=400"), ("stop", "said nothing")]
)
def test_a_user_that_says_nothing_has_failed_and_does_not_end_the_conversation(tmp_path, ending, said):
    class Speechless:
        """Thinks until there is no room for words, as a reasoning model does."""

        def execute(self, task):
            return GenerationRecord(task, ModelOutput("", reasoning="Well", finish_reason=ending), None)

    themis.register_provider("speechless", Speechless)

    with pytest.raises(RunFailedError, match=f"whoever plays the user {said}"):
        evaluate(tmp_path, rows(0), user={"model": "speechless/any", "goal": "wants cake"})


def test_a_user_that_says_nothing_is_paid_all_the_same(tmp_path):
    class Thinker:
        """Says nothing, and what that cost."""

        most_cost_usd = 0.5

        def execute(self, task):
            return GenerationRecord(task, ModelOutput("", reasoning="Well", cost_usd=0.5), None)

    themis.register_provider("paid-thinker", Thinker)

    user = {"model": "paid-thinker/any", "goal": "wants cake"}
    report = evaluate(
        tmp_path, rows(0, 1, 2, 3), user=user, budget_usd=1.0, provider_options={"is_local": True}, workers=1
    )

    assert report.metadata["cost"]["total_cost"] == 1.0
    assert "budget" in report.metadata["stopped"]


def test_a_script_that_was_not_played_to_its_end_says_what_ended_it(tmp_path):
    def script(row):
        for _ in range(5):
            yield Say("And now?")
        yield Grade(1.0, ("patient",))

    with pytest.raises(RunFailedError, match="not played to its end: stopped by max_turns"):
        evaluate(tmp_path, rows(0), script=script, max_turns=2, metrics=["script_grade"])


def test_a_script_plays_its_actions_and_grades_itself(tmp_path):
    def script(row):
        yield Say(f"My name is {row['name']}.")
        reply = yield Ask("What is my name?")
        yield Grade.when(row["name"] in reply, f"expected {row['name']}")

    def forgetful(messages):
        return messages[0]["content"] if "Bo" in messages[0]["content"] else "I forgot."

    report = evaluate(
        tmp_path,
        [{"id": "1", "name": "Bo"}, {"id": "2", "name": "Al"}],
        model=forgetful,
        script=script,
        prompt="{name}",
    )

    assert report.metric("script_grade").mean == 0.5
    assert [message["role"] for message in report.generation_results[0].output.transcript] == ["user", "assistant"] * 2


def test_what_a_script_changes_of_its_row_the_next_attempt_is_not_played_with(tmp_path):
    def script(row):
        row["names"].append("Al")
        yield Ask("Who are they?")
        yield Grade.when(row["names"] == ["Bo", "Al"], "expected two names")

    report = evaluate(tmp_path, [{"id": "1", "names": ["Bo"]}], model=lambda prompt: prompt, script=script,
                      prompt="{names}", num_samples=2, workers=1)  # fmt: skip

    assert report.metric("script_grade").mean == 1.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"user": {"model": "fake/echo"}}, "persona or a goal"),
        ({"user": {"goal": "x"}}, "played by a model"),
        ({"user": {"model": "fake/echo", "gaol": "x"}}, "did you mean 'goal'"),
        ({"script": "absent.py:play"}, "there is none"),
        ({"user": {"model": "fake/echo", "goal": "x"}, "script": "a.py:b"}, "give one of them"),
        ({"max_turns": 0, "tools": [add]}, "max_turns"),
    ],
)
def test_mistakes_are_found_before_the_first_call(tmp_path, arguments, said):
    with pytest.raises(ConfigurationError, match=said):
        evaluate(tmp_path, rows(1), **arguments)


def test_a_row_without_what_the_person_is_described_by_is_found_before_the_first_call(tmp_path):
    asked = []
    rows = [{"id": 1, "question": "Hello", "name": "Ann"}, {"id": 2, "question": "Hello"}]

    with pytest.raises(TemplateRenderingError, match=r"row 1: template 'persona' needs the field 'name'"):
        themis.evaluate(
            rows,
            model=lambda prompt: asked.append(prompt) or "Hello",
            prompt="{question}",
            user={"model": "fake/constant?text=[END]", "persona": "{name}, who is in a hurry"},
            metrics=["steps"],
            reference_field="",
            storage=tmp_path,
            progress=False,
        )

    assert asked == []


GOAL = [{"id": "1", "question": "I want cake.", "goal": "cake", "answer": "x"}]


def test_an_answer_whose_last_words_were_stored_before_a_failure_is_the_same_as_without_it(tmp_path):
    is_down = [False]

    class Customer(_Customer):
        def execute(self, task):
            if len(task.metadata["messages"]) == 7 and is_down[0]:
                raise ConnectionError("down")
            return super().execute(task)

    def shop(messages):
        image = {"type": "image", "url": "https://example.org/cake.png"}
        return ModelOutput(
            "Cake is", {"id": len(messages)}, USAGE, finish_reason="length", parts=(image,), logprobs=[-1.5]
        )

    themis.register_provider("customer", Customer)
    play = {"model": shop, "user": {"model": "customer/any", "goal": "wants {goal}"}, "max_retries": 1}
    whole = evaluate(tmp_path, GOAL, run_id="whole", **play).generation_results[0].output
    is_down[0] = True
    with pytest.raises(RunFailedError, match="did not answer"):
        evaluate(tmp_path, GOAL, **play)
    is_down[0] = False
    resumed = evaluate(tmp_path, GOAL, **play).generation_results[0].output

    assert resumed == whole
    assert resumed.is_cut_off


@pytest.mark.parametrize("how", ["script", "user"])
def test_what_was_said_last_is_the_prompt_of_whoever_takes_one(tmp_path, how):
    def hello(row):
        yield Say("Where?")
        reply = yield Ask("And now?")
        yield Grade.when("And now?" in reply, "the last question")

    themis.register_provider("customer", _Customer)
    played = {"script": hello, "user": {"model": "customer/any", "goal": "wants {goal}"}}
    report = evaluate(tmp_path, GOAL, model=lambda prompt: f"You said: {prompt}", **{how: played[how]})

    assert report.generation_results[0].output.text == "You said: And now?"


@pytest.mark.parametrize("how", ["script", "user"])
def test_who_calls_tools_where_there_are_none_is_told_so_and_goes_on(tmp_path, how):
    def hello(row):
        yield Say("Hello.")
        yield Grade(1.0)

    played = {"script": hello, "user": {"model": "fake/constant?text=[END]", "goal": "x"}}
    report = evaluate(tmp_path, rows(1), **{how: played[how]})

    output = report.generation_results[0].output
    assert output.text == "there is no tool 'add'; the tools are none"


def test_a_row_whose_environment_cannot_be_made_fails_alone(tmp_path):
    class Sums:
        def __init__(self, row):
            if row["times"] == 2:
                raise LookupError("no table for two")

        def add(self, a: int, b: int) -> int:
            return a + b

    report = evaluate(tmp_path, rows(1, 2, 3), tools=[Sums])

    assert (report.metric("exact_match").count, report.metric("exact_match").failed) == (2, 1)
    assert "no table for two" in report.generation_results[1].error.message


def test_a_script_that_yields_nothing_is_a_failed_grade(tmp_path):
    with pytest.raises(RunFailedError, match="a script yields its actions, and this one returned str"):
        evaluate(tmp_path, rows(1), script=lambda row: "Hello.")


def test_a_limit_in_dollars_is_not_kept_in_silence_where_nobody_knows_what_a_step_costs(tmp_path):
    with pytest.raises(ConfigurationError, match="max_sample_usd needs to know what every step costs"):
        evaluate(tmp_path, rows(3), tools=[add], max_sample_usd=1.0)


def test_who_plays_the_user_is_paid_from_the_budget_before_speaking(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "customers.py").write_text("def play(messages):\n    return {'text': 'Where?', 'cost_usd': 0.4}\n")
    asked = {"budget_usd": 1.0, "provider_options": {"is_local": True}}
    user = {"model": "python:customers.py:play", "goal": "x"}
    with pytest.raises(ConfigurationError, match="the model that plays the user"):
        evaluate(tmp_path, rows(0), user=user, **asked)

    report = evaluate(tmp_path, rows(0), user={**user, "options": {"most_cost_usd": 0.4}}, **asked, run_id="paid")

    assert "nothing left for whoever plays the user" in report.generation_results[0].error.message
    assert report.metadata["cost"]["total_cost"] == pytest.approx(0.8)
    assert "1 samples are left" in report.metadata["stopped"]


@pytest.mark.parametrize(
    "played", [{"tools": [add], "max_turns": 2}, {"user": {"model": "fake/constant?text=[END]", "goal": "x"}}]
)
def test_what_the_last_answer_cost_is_counted_once_where_something_else_ends_the_sample(tmp_path, played):
    def paid(messages, row):
        output = adder(messages, row)
        return ModelOutput(
            output.text, usage=USAGE, tool_calls=output.tool_calls if "tools" in played else (), cost_usd=0.1
        )

    report = evaluate(tmp_path, rows(9), model=paid, **played)

    answers = sum(message["role"] == "assistant" for message in report.generation_results[0].output.transcript)
    assert report.metadata["cost"]["total_cost"] == pytest.approx(0.1 * answers)


class _Repeats(StatelessTaskExecutor):
    """Like most models: only what is said to it decides its answer."""

    prompt_only = True

    def execute(self, task):
        return GenerationRecord(task, ModelOutput(task.metadata["messages"][-1]["content"]), None)


def test_an_answer_that_a_script_made_of_another_row_is_not_reused(tmp_path):
    def introduce(row):
        reply = yield Ask(f"I am {row['name']}.")
        yield Grade.when(row["name"] in reply, f"expected {row['name']}")

    themis.register_provider("repeats", _Repeats)
    for name in ("Bo", "Al"):
        data = [{"id": name, "name": name, "x": "there"}]
        report = evaluate(
            tmp_path, data, model="repeats/any", prompt="Hello {x}", script=introduce, cache="store", run_id=name
        )
        assert report.generation_results[0].output.text == f"I am {name}."


def test_a_sample_whose_environment_cannot_tell_how_it_was_left_fails_alone_and_no_answer_is_paid_twice(tmp_path):
    asked, is_down = [], tmp_path / "down"
    is_down.touch()

    class Till:
        """Counts; the database behind it is lost once everything is sold."""

        def __init__(self, row):
            self._row, self._told, self.sold = row["id"], 0, 0

        def sell(self) -> int:
            """Sells one."""
            self.sold += 1
            return self.sold

        def snapshot(self):
            self._told += 1
            if self._row == "1" and self._told == 3 and is_down.exists():
                raise ConnectionError("the database is gone")
            return {"sold": self.sold}

        def restore(self, state):
            self.sold = state["sold"]

    def model(messages, row):
        asked.append((row["id"], len(messages)))
        if messages[-1]["role"] == "user":
            return ModelOutput("", usage=USAGE, tool_calls=(ToolCall("sell", id="1"),))
        return ModelOutput("sold", usage=USAGE)

    data = [{"id": str(n), "question": "Sell.", "answer": "sold"} for n in range(3)]
    first = evaluate(tmp_path, data, model=model, tools=[Till])
    assert [failure.message for failure in first.failures] == [
        "Till.snapshot failed: ConnectionError: the database is gone"
    ]

    is_down.unlink()
    second = evaluate(tmp_path, data, model=model, tools=[Till])

    assert (second.metric("exact_match").mean, second.metric("exact_match").count) == (1.0, 3)
    assert len(asked) == len(set(asked)) == 6
    assert second.metadata["cost"]["token_counts"]["prompt_tokens"] == 6 * 5


def test_ids_that_were_mended_are_the_same_after_a_failure(tmp_path):
    failures, seen = [ConnectionError("down")], []

    class Forgetful:
        """Gives every call the same id; fails once in the middle."""

        def execute(self, task):
            messages = task.metadata.get("messages", [])
            seen.append([message["tool_call_id"] for message in messages if message["role"] == "tool"])
            if len(messages) == 5 and failures:
                raise failures.pop()
            done = len(messages) // 2
            calls = (ToolCall("add", {"a": done, "b": 1}, id="same"),) if done < 3 else ()
            return GenerationRecord(task, ModelOutput("" if calls else "3", usage=USAGE, tool_calls=calls), None)

    themis.register_provider("forgetful", Forgetful)
    data = [{"id": "1", "question": "?", "answer": "3"}]
    with pytest.raises(RunFailedError, match="down"):
        evaluate(tmp_path, data, model="forgetful/any", tools=[add], max_retries=1)
    report = evaluate(tmp_path, data, model="forgetful/any", tools=[add], max_retries=1)

    assert report.metric("exact_match").mean == 1.0
    assert seen[-1] == ["same", "call00002", "call00003"]
