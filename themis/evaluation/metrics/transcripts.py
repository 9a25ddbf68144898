"""Metrics over what happened on the way to an answer: tools that were called, the state they left, how many steps it took."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from themis.core.entities import MetricScore, ModelOutput, ToolCall
from themis.core.markup import truncate
from themis.core.messages import describe_content
from themis.core.registry import nearest
from themis.evaluation.metrics.structured import canonical_text, find_missing
from themis.evaluation.parts import conversation_of, find_calls
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric, Row

_SHOWN_CALLS = 50
# What cannot be a tool's name is a list that nobody could read, or an empty cell of a table.
_NO_NAME = re.compile(r"^\s*$|[\s,;\[\]{}\"]")
_BESIDE_NAME = ("name", "id", "type")


class _OfTranscript(Metric):
    """What they have in common: they read the whole output, and neither answer nor reference."""

    requires_reference = False
    requires_answer = False
    reads_output = True

    def _output(self, metadata: Row | None) -> ModelOutput:
        output = (metadata or {}).get("model_output")
        if not isinstance(output, ModelOutput):
            raise MetricError(f"{self.name} reads all that the model said, and metadata['model_output'] is not there")
        return output


def _check_choice(metric: Metric, parameter: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise ConfigurationError(
            f"{metric.name}: {parameter} is one of {', '.join(known)}, got {value!r}{nearest(str(value), known)}"
        )


# --- which tools were called ------------------------------------------------------------------------------------------------


class _Expected(NamedTuple):
    """A call that should have been made; without arguments any will do."""

    name: str
    arguments: Mapping[str, object] | None


@dataclass
class _OfExpectedCalls(_OfTranscript):
    """Metrics that compare calls with those that a parameter or a row's field names."""

    tool: str = ""
    arguments: Mapping[str, object] | None = None
    field: str = "expected_tools"

    def __post_init__(self) -> None:
        self.expected_fields = (self.field,)
        if self.arguments is not None and not self.tool:
            raise ConfigurationError(f"{self.name}: arguments are of a tool, and none is named: give tool='...' too")

    def check_row(self, references: Sequence[object], row: Mapping[str, object]) -> None:
        self._expected(row)

    def _expected(self, row: Mapping[str, object]) -> list[_Expected]:
        if self.tool:
            return [_Expected(self.tool, self.arguments)]
        if self.field not in row:
            raise MetricError(
                f"{self.name} needs a tool, as in {self.name}('search'), or the row's field {self.field!r}, which this row "
                f"does not have{nearest(self.field, row)}"
            )
        given = _parse(row[self.field])
        listed = given if isinstance(given, list | tuple) else [given]
        return [self._read_call(one) for one in listed]

    def _read_call(self, given: object) -> _Expected:
        if isinstance(given, str) and not _NO_NAME.search(given):
            return _Expected(given, None)
        if isinstance(given, Mapping) and isinstance(given.get("name"), str):
            arguments = given.get("arguments")
            if other := [] if "arguments" in given else [key for key in given if key not in _BESIDE_NAME]:
                raise MetricError(
                    f"{self.name}: the row's field {self.field!r} has {', '.join(map(repr, other))} beside a name, which "
                    f"nobody reads: what a tool should be called with stands in 'arguments'"
                )
            if arguments is None or isinstance(arguments, Mapping):
                return _Expected(str(given["name"]), arguments)
        raise MetricError(
            f"{self.name}: the row's field {self.field!r} holds names of tools, or {{'name', 'arguments'}}, got {given!r:.80}"
        )


def _parse(given: object) -> object:
    """Tables store lists and objects as text."""
    if isinstance(given, str) and given.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(given)
        except ValueError:
            return given
    return given


@dataclass
class ToolCalled(_OfExpectedCalls):
    """1 if every tool that should be called was, with the arguments that it should have; a share of them is `tool_arguments`.

    What is expected stands in the metric's parameters, or in a row's field: a list of names, or of `{"name", "arguments"}`.

    Args:
        tool: The tool that should be called; by default those that the row's field names.
        arguments: What it should be called with; any arguments by default.
        field: The row's field with the calls that are expected.
        match: How arguments are compared: `subset` (those that are expected are there), `exact` (no others are), or `name`
            (not at all).
        order: `any`; `same` (in the order of the list, others may stand between); or `exact` (these calls and no others).
        name: What the scores are reported as.

    >>> metric = ToolCalled("search", {"query": "tea"})
    >>> output = ModelOutput("", tool_calls=(ToolCall("search", {"query": "tea", "limit": 5}),))
    >>> metric.compute(prediction="", references=[], metadata={"model_output": output}).value
    1.0
    """

    match: str = "subset"
    order: str = "any"
    name: str = "tool_called"
    score_range = (0.0, 1.0)
    pass_fail = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice(self, "match", self.match, ("subset", "exact", "name"))
        _check_choice(self, "order", self.order, ("any", "same", "exact"))

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        expected, called = self._expected(metadata or {}), list(find_calls(self._output(metadata)))
        found = self._assign(expected, called)
        missing = [one for one, call in zip(expected, found, strict=True) if call is None]
        passed = not missing and (self.order != "exact" or len(expected) == len(called))
        details: dict[str, object] = {"called": [_shown(call) for call in called[:_SHOWN_CALLS]]}
        if missing:
            details["missing"] = [_shown(one) for one in missing]
        elif not passed:
            details["reason"] = f"{len(called)} calls where {len(expected)} were expected"
        return MetricScore(self.name, float(passed), details)

    def _assign(self, expected: Sequence[_Expected], called: Sequence[ToolCall]) -> list[int | None]:
        """The call that fulfils each expectation, no call more than one."""
        if self.order == "any":
            return _match_most(len(expected), len(called), lambda one, call: self._fits(expected[one], called[call]))
        found: list[int | None] = []
        place = 0
        for number, one in enumerate(expected):
            places = range(place, len(called)) if self.order == "same" else range(number, min(number + 1, len(called)))
            at = next((index for index in places if self._fits(one, called[index])), None)
            found.append(at)
            place = place if at is None else at + 1
        return found

    def _fits(self, expected: _Expected, call: ToolCall) -> bool:
        if expected.name != call.name:
            return False
        if self.match == "name" or expected.arguments is None:
            return True
        if self.match == "exact":
            return not call.invalid and canonical_text(dict(expected.arguments)) == canonical_text(call.arguments)
        return not call.invalid and next(find_missing(dict(expected.arguments), call.arguments), None) is None


def _match_most(left: int, right: int, fits: Callable[[int, int], bool]) -> list[int | None]:
    """For each on the left one on the right that fits, each once, so that as many as possible have one.

    By augmenting paths: a general expectation gives up its call for a particular one that has no other.
    """
    owner: dict[int, int] = {}

    def find(one: int, tried: set[int]) -> bool:
        for other in range(right):
            if other not in tried and fits(one, other):
                tried.add(other)
                if other not in owner or find(owner[other], tried):
                    owner[other] = one
                    return True
        return False

    for one in range(left):
        find(one, set())
    chosen = {one: other for other, one in owner.items()}
    return [chosen.get(one) for one in range(left)]


def _shown(call: _Expected | ToolCall) -> dict[str, object]:
    arguments = getattr(call, "invalid", "") or call.arguments
    return {"name": call.name, **({} if arguments is None else {"arguments": arguments})}


@dataclass
class ToolArguments(_OfExpectedCalls):
    """The share of the expected arguments that tools were called with; a call that was not made has none of its own.

    Each expected call counts the same. Calls of its name are given out so that most is right, each once; one without expected
    arguments is right where it was made.

    Args:
        tool: The tool that should be called; by default those that the row's field names.
        arguments: What it should be called with.
        field: The row's field with the calls that are expected: names, or `{"name", "arguments"}`.
        name: What the scores are reported as.

    >>> metric = ToolArguments("search", {"query": "tea", "limit": 10})
    >>> output = ModelOutput("", tool_calls=(ToolCall("search", {"query": "tea", "limit": 5}),))
    >>> metric.compute(prediction="", references=[], metadata={"model_output": output}).value
    0.5
    """

    name: str = "tool_arguments"
    score_range = (0.0, 1.0)
    pass_fail = False

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        expected, called = self._expected(metadata or {}), list(find_calls(self._output(metadata)))
        if not expected:
            raise MetricError(f"{self.name} compares with expected calls, and this row names none")
        best = _best_shares([[_share_right(one, call) for call in called] for one in expected])
        wrong = [_shown(one) for one, share in zip(expected, best, strict=True) if share < 1.0]
        return MetricScore(self.name, sum(best) / len(expected), {"wrong": wrong} if wrong else {})


def _best_shares(shares: Sequence[Sequence[float]]) -> list[float]:
    """What each expectation (a row) has of its call, where calls are given out, each once, so that the sum is the largest."""
    if len(shares) == 1:
        return [max(shares[0], default=0.0)]
    from scipy.optimize import linear_sum_assignment

    best = [0.0] * len(shares)
    for here, at in zip(*linear_sum_assignment([list(row) for row in shares], maximize=True), strict=True):
        best[here] = shares[here][at]
    return best


def _share_right(expected: _Expected, call: ToolCall) -> float:
    """Of the expected arguments, each there at any depth as for `tool_called`; nothing of a call of another tool."""
    if expected.name != call.name:
        return 0.0
    wanted = expected.arguments or {}
    if not wanted:
        return 1.0
    right = [name for name in wanted if next(find_missing({name: wanted[name]}, call.arguments), None) is None]
    return len(right) / len(wanted)


def _equal(one: object, other: object) -> bool:
    return canonical_text(one) == canonical_text(other)


@dataclass
class NoToolCalled(_OfTranscript):
    """1 if no tool was called, or none of those that are named.

    Args:
        tools: Those that must not be called; any by default.
        name: What the scores are reported as.

    >>> metric = NoToolCalled("delete_account")
    >>> output = ModelOutput("", tool_calls=(ToolCall("search"),))
    >>> metric.compute(prediction="", references=[], metadata={"model_output": output}).value
    1.0
    """

    tools: str | Sequence[str] = ()
    name: str = "no_tool_called"
    score_range = (0.0, 1.0)
    pass_fail = True

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        named = [self.tools] if isinstance(self.tools, str) else list(self.tools)
        called = [call for call in find_calls(self._output(metadata)) if not named or call.name in named]
        details = {"called": [_shown(call) for call in called[:_SHOWN_CALLS]]} if called else {}
        return MetricScore(self.name, float(not called), details)


# --- what was left, and what it took ----------------------------------------------------------------------------------------


@dataclass
class FinalState(_OfTranscript):
    """1 if the environment was left in the state that is expected.

    Args:
        expected: The state; by default that of the row's field.
        match: `subset` (what is expected is there) or `exact` (and nothing else).
        field: The row's field with the state that is expected.
        name: What the scores are reported as.

    >>> metric = FinalState({"paid": True})
    >>> output = ModelOutput("done", raw={"state": {"paid": True, "till": 3}})
    >>> metric.compute(prediction="", references=[], metadata={"model_output": output}).value
    1.0
    """

    expected: object = None
    match: str = "subset"
    field: str = "expected_state"
    name: str = "final_state"
    score_range = (0.0, 1.0)
    pass_fail = True

    def __post_init__(self) -> None:
        self.expected_fields = (self.field,)
        _check_choice(self, "match", self.match, ("subset", "exact"))

    def check_row(self, references: Sequence[object], row: Mapping[str, object]) -> None:
        self._expected(row)

    def _expected(self, row: Mapping[str, object]) -> object:
        if self.expected is not None:
            return self.expected
        if self.field not in row:
            raise MetricError(
                f"{self.name} needs the state that is expected, as in {self.name}({{'paid': True}}), or the row's field "
                f"{self.field!r}, which this row does not have{nearest(self.field, row)}"
            )
        return _parse(row[self.field])

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        expected, raw = self._expected(metadata or {}), self._output(metadata).raw
        if not isinstance(raw, Mapping) or "state" not in raw:
            raise MetricError(
                f"{self.name} needs an environment among the tools (docs/guides/tools.md): there is no state"
            )
        if self.match == "exact":
            return MetricScore(self.name, float(_equal(expected, raw["state"])), {"state": raw["state"]})
        missing = list(find_missing(expected, raw["state"]))
        details = {"missing": missing[:20], "state": raw["state"]} if missing else {}
        return MetricScore(self.name, float(not missing), details)


@dataclass
class Steps(_OfTranscript):
    """How often the model spoke until it was done; less is better.

    Args:
        name: What the scores are reported as.

    >>> metric = Steps()
    >>> metric.compute(prediction="5", references=[], metadata={"model_output": ModelOutput("5")}).value
    1.0
    """

    name: str = "steps"
    higher_is_better = False
    score_range = (0.0, None)

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        said = [message for message in conversation_of(self._output(metadata)) if message.get("role") == "assistant"]
        return MetricScore(self.name, float(len(said)))


@dataclass
class ToolErrors(_OfTranscript):
    """How many calls came to nothing: unknown tools, wrong arguments, tools that failed; less is better.

    Args:
        name: What the scores are reported as.

    >>> metric = ToolErrors()
    >>> metric.compute(prediction="5", references=[], metadata={"model_output": ModelOutput("5")}).value
    0.0
    """

    name: str = "tool_errors"
    higher_is_better = False
    score_range = (0.0, None)

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        results = [message for message in conversation_of(self._output(metadata)) if message.get("role") == "tool"]
        failed = [message for message in results if message.get("error")]
        said = [
            {"tool": message.get("name"), "said": truncate(describe_content(message.get("content")), 200)}
            for message in failed
        ]
        details = {"results": len(results), **({"errors": said[:_SHOWN_CALLS]} if said else {})}
        return MetricScore(self.name, float(len(failed)), details)
