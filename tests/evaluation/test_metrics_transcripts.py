"""Metrics over transcripts: what was called, in which order, with which arguments, and what came of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.entities import (
    GenerationRecord,
    GenerationTask,
    ModelOutput,
    ModelSpec,
    PromptRender,
    PromptSpec,
    SamplingConfig,
    ToolCall,
)
from themis.evaluation.extractors import LastNumberExtractor
from themis.evaluation.metrics import FinalState, NoToolCalled, Steps, ToolArguments, ToolCalled, ToolErrors
from themis.evaluation.metrics.transcripts import _match_most
from themis.evaluation.parts import conversation_of, find_calls
from themis.evaluation.pipeline import EvaluationPipeline
from themis.evaluation.resolve import resolve_metric
from themis.exceptions import ConfigurationError, MetricError


def assistant(text="", **calls):
    """What a model said, with calls by name."""
    listed = [{"id": str(n), "name": name, "arguments": given} for n, (name, given) in enumerate(calls.items())]
    return {"role": "assistant", "content": text, **({"tool_calls": listed} if listed else {})}


def returned(name, content, **rest):
    return {"role": "tool", "tool_call_id": "0", "name": name, "content": content, **rest}


BOOKED = ModelOutput(
    "You have seat 3.",
    raw={"state": {"seats": {"3": "Ada"}, "paid": True}},
    transcript=(
        assistant("Let me look.", search={"city": "Oslo", "limit": 5}),
        returned("search", "seats 3 and 4"),
        assistant(book={"seat": 3, "name": "Ada", "options": {"window": True, "meal": "none"}}),
        returned("book", "KeyError: no such seat", error=True),
        assistant(book={"seat": 3, "name": "Ada", "options": {"window": True}}),
        returned("book", "booked"),
        assistant("You have seat 3."),
    ),
)


def score(metric, output=BOOKED, **row):
    return metric.compute(prediction=None, references=[], metadata={**row, "model_output": output})


# --- tool_called -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (ToolCalled("book"), 1.0),
        (ToolCalled("cancel"), 0.0),
        (ToolCalled("book", {"seat": 3}), 1.0),
        (ToolCalled("book", {"seat": 3.0}), 1.0),
        (ToolCalled("book", {"seat": "3"}), 0.0),
        (ToolCalled("book", {"options": {"meal": "none"}}), 1.0),
        (ToolCalled("book", {"seat": 3}, match="exact"), 0.0),
        (ToolCalled("book", {"seat": 3, "name": "Ada", "options": {"window": True}}, match="exact"), 1.0),
        (ToolCalled("book", {"seat": 99}, match="name"), 1.0),
    ],
)
def test_a_tool_was_called_with_its_arguments(metric, value):
    assert score(metric).value == value


@pytest.mark.parametrize(
    ("expected", "order", "value"),
    [
        (["search", "book"], "any", 1.0),
        (["book", "search"], "any", 1.0),
        (["book", "search"], "same", 0.0),
        (["search", "book"], "same", 1.0),
        (["search", "book"], "exact", 0.0),
        (["search", "book", "book"], "exact", 1.0),
        (["search", "book", "book", "book"], "exact", 0.0),
        (["book", "search", "book"], "exact", 0.0),
        # Two expected calls need two calls.
        (["search", "search"], "any", 0.0),
        (["book", "book", "book"], "any", 0.0),
        ([], "any", 1.0),
        ([], "exact", 0.0),
        ([{"name": "search", "arguments": {"city": "Oslo"}}, "book"], "same", 1.0),
        ("book", "any", 1.0),
        ('[{"name": "book", "arguments": {"seat": 3}}]', "any", 1.0),
    ],
)
def test_the_calls_that_a_row_expects_in_any_or_its_own_order(expected, order, value):
    assert score(ToolCalled(order=order), expected_tools=expected).value == value


def test_a_general_expectation_leaves_the_particular_call_to_the_particular_one():
    """The first would take the only call that fits the second."""
    expected = ["book", {"name": "book", "arguments": {"options": {"meal": "none"}}}]

    assert score(ToolCalled(), expected_tools=expected).value == 1.0


def test_what_was_called_and_what_is_missing_is_told():
    details = score(ToolCalled(), expected_tools=[{"name": "book", "arguments": {"seat": 4}}, "search"]).details

    assert [call["name"] for call in details["called"]] == ["search", "book", "book"]
    assert details["missing"] == [{"name": "book", "arguments": {"seat": 4}}]


def test_a_call_whose_arguments_are_no_json_has_none():
    output = ModelOutput("", tool_calls=(ToolCall("book", invalid="{seat: 3"),))

    assert score(ToolCalled("book", match="name"), output).value == 1.0
    assert score(ToolCalled("book", {}, match="subset"), output).value == 0.0
    assert score(ToolCalled("book"), output).details["called"] == [{"name": "book", "arguments": "{seat: 3"}]


def test_another_field_may_hold_what_is_expected():
    assert score(ToolCalled(field="tools"), tools=["book"]).value == 1.0


@given(st.lists(st.sets(st.integers(0, 5)), max_size=6))
def test_as_many_expectations_as_possible_are_fulfilled(fitting):
    """Against trying every order of them."""
    found = _match_most(len(fitting), 6, lambda one, other: other in fitting[one])

    assert all(other is None or other in fitting[one] for one, other in enumerate(found))
    used = [other for other in found if other is not None]
    assert len(set(used)) == len(used)
    assert len(used) == most_pairs(fitting, frozenset())


def most_pairs(fitting, used):
    if not fitting:
        return 0
    first, *rest = fitting
    with_one = [1 + most_pairs(rest, used | {other}) for other in first - used]
    return max([most_pairs(rest, used), *with_one])


# --- tool_arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        ([{"name": "search", "arguments": {"city": "Oslo", "limit": 5}}], 1.0),
        ([{"name": "search", "arguments": {"city": "Oslo", "limit": 9}}], 0.5),
        ([{"name": "search", "arguments": {"town": "Oslo"}}], 0.0),
        (["search"], 1.0),
        (["cancel"], 0.0),
        (["search", {"name": "book", "arguments": {"seat": 3, "name": "Bob"}}], 0.75),
        # The best call of the name counts, and each call once.
        ([{"name": "book", "arguments": {"options": {"window": True}}}], 1.0),
        (["book", "book", "book"], pytest.approx(2 / 3)),
    ],
)
def test_the_share_of_arguments_that_are_right(expected, value):
    assert score(ToolArguments(), expected_tools=expected).value == value


CALLS = st.lists(
    st.tuples(st.sampled_from("st"), st.dictionaries(st.sampled_from("ab"), st.sampled_from([1, {"c": 1, "d": 2}]))),
    max_size=4,
)


@given(called=CALLS, chosen=st.data())
def test_calls_that_were_all_made_as_expected_have_all_their_arguments_in_whichever_order(called, chosen):
    output = ModelOutput("", tool_calls=tuple(ToolCall(name, given) for name, given in called))
    kept = chosen.draw(st.permutations(called))
    expected = [{"name": name, "arguments": {key: given[key] for key in list(given)[:1]}} for name, given in kept]

    if expected:
        assert score(ToolCalled(), output, expected_tools=expected).value == 1.0
        assert score(ToolArguments(), output, expected_tools=expected).value == 1.0


def test_a_general_expectation_does_not_take_the_arguments_of_a_particular_one():
    output = ModelOutput("", tool_calls=(ToolCall("s", {"a": 1, "b": 2}), ToolCall("s", {"a": 1, "b": 3})))
    general, particular = {"name": "s", "arguments": {"a": 1}}, {"name": "s", "arguments": {"a": 1, "b": 2}}

    assert score(ToolArguments(), output, expected_tools=[general, particular]).value == 1.0
    assert score(ToolArguments(), ModelOutput(""), expected_tools=[general, particular]).value == 0.0


def test_an_argument_is_right_at_any_depth_as_for_the_calls():
    assert score(ToolArguments("book", {"options": {"window": True}})).value == 1.0
    assert score(ToolArguments("book", {"options": {"window": True, "meal": "fish"}})).value == 0.0


def test_a_row_that_expects_no_calls_has_no_share():
    with pytest.raises(MetricError, match="this row names none"):
        score(ToolArguments(), expected_tools=[])


# --- the others ------------------------------------------------------------------------------------------------------------


def test_tools_that_must_not_be_called():
    assert score(NoToolCalled()).value == 0.0
    assert score(NoToolCalled("cancel")).value == 1.0
    assert score(NoToolCalled(["cancel", "book"])).value == 0.0
    assert score(NoToolCalled(), ModelOutput("5")).value == 1.0


@pytest.mark.parametrize(
    ("expected", "match", "value"),
    [
        ({"paid": True}, "subset", 1.0),
        ({"seats": {"3": "Ada"}}, "subset", 1.0),
        ({"seats": {"4": "Ada"}}, "subset", 0.0),
        ({"paid": True}, "exact", 0.0),
        ({"paid": True, "seats": {"3": "Ada"}}, "exact", 1.0),
    ],
)
def test_the_state_that_was_left(expected, match, value):
    assert score(FinalState(expected, match=match)).value == value
    assert score(FinalState(match=match), expected_state=expected).value == value
    assert score(FinalState(match=match), expected_state=json.dumps(expected)).value == value


def test_what_is_missing_in_the_state_is_told_with_the_state():
    assert score(FinalState({"seats": {"4": "Ada"}})).details == {
        "missing": ["$.seats.4"],
        "state": {"seats": {"3": "Ada"}, "paid": True},
    }


def test_a_run_without_an_environment_has_no_state_to_score():
    with pytest.raises(MetricError, match="there is no state"):
        score(FinalState({}), ModelOutput("5"))


def test_steps_and_errors_are_counted():
    assert (score(Steps()).value, score(ToolErrors()).value) == (4.0, 1.0)
    assert (score(Steps(), ModelOutput("5")).value, score(ToolErrors(), ModelOutput("5")).value) == (1.0, 0.0)
    assert score(ToolErrors()).details == {
        "results": 3,
        "errors": [{"tool": "book", "said": "KeyError: no such seat"}],
    }


def test_an_error_in_parts_is_told_in_words_and_a_long_one_says_that_it_is_cut():
    parts = [{"type": "text", "text": "no seat: "}, {"type": "image", "media_type": "image/png"}]
    said = [{"role": "tool", "name": "book", "content": content, "error": True} for content in (parts, "m" * 900)]
    [in_parts, cut] = score(ToolErrors(), ModelOutput("5", transcript=tuple(said))).details["errors"]

    assert in_parts == {"tool": "book", "said": "no seat: [image image/png]"}
    assert cut["said"] == f"{'m' * 199}…"


@pytest.mark.parametrize(
    "name", ["final_state", "no_tool_called", "steps", "tool_arguments", "tool_called", "tool_errors"]
)
def test_they_are_known_by_name_and_say_what_they_read(name):
    metric = resolve_metric(name)

    assert (metric.name, metric.reads_output, metric.requires_reference, metric.requires_answer) == (
        name,
        True,
        False,
        False,
    )
    assert metric.higher_is_better is (name not in ("steps", "tool_errors"))
    with pytest.raises(MetricError, match=r"metadata\['model_output'\] is not there"):
        metric.compute(prediction="", references=[], metadata={"expected_tools": ["a"], "expected_state": 1})


def test_parameters_can_be_written_behind_the_name():
    metric = resolve_metric("tool_called('book', {'seat': 3}, order='same', match='exact')")

    assert (metric.tool, metric.arguments, metric.order, metric.match) == ("book", {"seat": 3}, "same", "exact")


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("tool_called(order='strict')", "order is one of any, same, exact, got 'strict'"),
        (
            "tool_called(match='subsets')",
            r"match is one of subset, exact, name, got 'subsets' \(did you mean 'subset'\?\)",
        ),
        ("tool_called(arguments={'a': 1})", r"none is named: give tool='\.\.\.' too"),
        ("final_state(match='name')", "match is one of subset, exact"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(metric, said):
    with pytest.raises(ConfigurationError, match=said):
        resolve_metric(metric)


@pytest.mark.parametrize(
    ("metric", "row", "said"),
    [
        (ToolCalled(), {"expected_tool": []}, r"which this row does not have \(did you mean 'expected_tool'\?\)"),
        (ToolCalled(), {"expected_tools": [3]}, "holds names of tools, or {'name', 'arguments'}, got 3"),
        (ToolArguments(), {"expected_tools": [{"name": "a", "arguments": [1]}]}, "holds names of tools"),
        (
            ToolCalled(),
            {"expected_tools": [{"name": "a", "args": {"q": 1}}]},
            "has 'args' beside a name, which nobody reads",
        ),
        (ToolCalled(), {"expected_tools": ""}, "holds names of tools, or {'name', 'arguments'}, got ''"),
        (ToolCalled(), {"expected_tools": "search, book"}, "got 'search, book'"),
        (ToolCalled(), {"expected_tools": '["search", "book'}, "holds names of tools"),
        (FinalState(), {}, "needs the state that is expected"),
    ],
)
def test_a_row_that_cannot_be_scored_is_refused_before_the_first_call(metric, row, said):
    with pytest.raises(MetricError, match=said):
        metric.check_row([], row)


# --- in the pipeline -------------------------------------------------------------------------------------------------------


def record(output, **row):
    prompt = PromptRender(PromptSpec("p", "{q}"), "Book a seat.", row)
    task = GenerationTask(prompt, ModelSpec("m", "fake"), SamplingConfig(), {"dataset_id": "1", **row})
    return GenerationRecord(task, output, None)


def test_they_score_answers_that_no_extractor_can_read():
    pipeline = EvaluationPipeline(extractor=LastNumberExtractor(), metrics=[ToolCalled("book"), Steps()])
    unreadable = ModelOutput("No seat.", transcript=(assistant(book={"seat": 3}), returned("book", "full")))

    judged = pipeline.judge(record(unreadable))

    assert {one.metric_name: one.value for one in judged.scores} == {"tool_called": 1.0, "steps": 2.0}
    assert judged.failures == []


def test_the_answer_is_counted_once_whether_or_not_it_stands_in_the_transcript():
    without = ModelOutput("done", transcript=(assistant(add={"a": 1}), returned("add", "1")))
    inside = ModelOutput("done", transcript=(*without.transcript, assistant("done")))

    assert conversation_of(without) == conversation_of(inside)
    assert score(Steps(), without).value == score(Steps(), inside).value == 2.0


def test_an_answer_that_was_cut_off_after_its_last_call_is_not_counted_again():
    call = ToolCall("add", {"a": 1}, id="0")
    stopped = ModelOutput("", tool_calls=(call,), transcript=(assistant(add={"a": 1}), returned("add", "1")))

    assert [one.name for one in find_calls(stopped)] == ["add"]
    assert score(Steps(), stopped).value == 1.0
