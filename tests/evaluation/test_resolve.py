"""Metrics and extractors by name, by decorator and by hand."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy
import pytest

import themis
from themis.core.entities import MetricScore
from themis.core.identity import describe_object
from themis.evaluation.extractors import EXTRACTORS, BoxedExtractor, ChainExtractor, FieldExtractionError
from themis.evaluation.metrics import METRICS, ExactMatch, Numeric
from themis.evaluation.resolve import (
    describe,
    extractor,
    get_registered_metrics,
    metric,
    register_extractor,
    register_metric,
    resolve_extractor,
    resolve_metric,
)
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric


@pytest.fixture(autouse=True)
def own_names(monkeypatch):
    """What a test registers is forgotten after it."""
    for registry in (METRICS, EXTRACTORS):
        monkeypatch.setattr(registry, "_targets", {name: registry.target(name) for name in registry.names()})
        monkeypatch.setattr(registry, "_registered", set())


@dataclass
class Shouting(Metric):
    """How much of the answer is in capitals."""

    name: str = "Shouting"
    at_least: float = 0.0

    def compute(self, *, prediction, references, metadata=None):
        return MetricScore(self.name, float(sum(map(str.isupper, prediction)) / len(prediction) >= self.at_least))


def score(resolved: Metric, prediction: Any, *references: Any, **metadata: Any) -> float:
    return resolved.compute(prediction=prediction, references=list(references), metadata=metadata).value


@pytest.mark.parametrize("name", ["exact_match", "EXACT_MATCH", "ExactMatch", "exactMatch", " exact_match "])
def test_a_name_is_found_however_it_is_spelled(name):
    assert isinstance(resolve_metric(name), ExactMatch)


def test_every_registered_name_resolves_to_its_class():
    assert {name for name in METRICS if METRICS.get(name) is None} == set()
    assert resolve_metric("ROUGEL") == resolve_metric("rougeL")


def test_parameters_may_stand_in_the_name():
    assert resolve_metric("numeric(tolerance=0.01)") == Numeric(tolerance=0.01)
    assert resolve_metric("exact_match(True, strip_whitespace=False)") == ExactMatch(True, False)
    assert resolve_metric("composite(metrics={'exact_match': 1, 'f1': 3})").weights == [1, 3]
    assert resolve_extractor(r"regex('(\\d+) €', group=1)").extract("12 €") == "12"
    assert resolve_extractor("chain('boxed', 'last_number')").extract(r"\boxed{x = 3}") == "3"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("exact_mach", "unknown metric 'exact_mach' (did you mean 'exact_match'"),
        ("numeric(tolerence=1)", "unexpected keyword argument 'tolerence' (did you mean 'tolerance'"),
        ("numeric(1, 2, 3, 4)", "too many positional arguments"),
        ("numeric(tolerance=open('x'))", "expected literals"),
        ("numeric(__import__('os').getcwd())", "expected literals"),
        ("numeric(1) + f(2)", "not one list of parameters"),
        ("numeric(1)(2)", "cannot read the parameters"),
        ("numeric(" + "(" * 300 + ")" * 300 + ")", "cannot read the parameters"),
        ("numeric(tolerance=-1)", "tolerance must be a number of at least 0"),
    ],
)
def test_a_name_that_cannot_be_resolved_says_why(written, message):
    with pytest.raises((MetricError, ConfigurationError), match=message.replace("(", r"\(").replace(")", r"\)")):
        resolve_metric(written)


def test_a_missing_parameter_is_named_with_an_example():
    with pytest.raises(ConfigurationError, match=r"missing a required argument: 'pattern'.*e\.g\. RegexExtractor\("):
        resolve_extractor("regex")


def test_objects_classes_and_functions_resolve_as_well():
    built = Numeric(tolerance=1)
    assert resolve_metric(built) is built
    assert isinstance(resolve_metric(Shouting), Shouting)
    assert score(resolve_metric(lambda prediction, reference: prediction == reference), "a", "a") == 1.0
    assert isinstance(resolve_extractor(BoxedExtractor), BoxedExtractor)
    assert resolve_extractor(lambda text: text[::-1]).extract("abc") == "cba"
    with pytest.raises(ConfigurationError, match="metric 3 is a int"):
        resolve_metric(3)
    with pytest.raises(ConfigurationError, match="extractor None is a NoneType"):
        resolve_extractor(None)


def test_a_registered_class_overrides_a_builtin_and_the_last_wins():
    register_metric("exact_match", Shouting)
    assert isinstance(resolve_metric("exact_match"), Shouting)
    register_metric("exact_match", Numeric)
    assert isinstance(resolve_metric("ExactMatch"), Numeric)
    assert get_registered_metrics() == {"exact_match": Numeric}


def test_the_list_of_registered_metrics_is_a_copy():
    register_metric("shouting", Shouting)
    get_registered_metrics().clear()
    assert get_registered_metrics() == {"shouting": Shouting}
    assert resolve_metric("shouting(at_least=0.5)").at_least == 0.5


def test_objects_and_factories_can_be_registered():
    register_metric("close", Numeric(tolerance=1))
    register_metric("closer", lambda: Numeric(tolerance=0.1))
    register_metric("closest", functools.partial(Numeric, tolerance=0.01))
    assert [resolve_metric(name).tolerance for name in ("close", "closer", "closest")] == [1, 0.1, 0.01]
    with pytest.raises(ConfigurationError, match="'close' takes no parameters"):
        resolve_metric("close(tolerance=2)")


class HasNoCompute:
    pass


class Abstract(Metric):
    name = "x"


class Async:
    name = "x"

    async def compute(self, **_):
        return None


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("exact_match", "cannot register 'exact_match' as a metric: expected a class or object with compute"),
        (HasNoCompute, "it has no method compute"),
        (Abstract, "it does not define compute"),
        (Async, "is async"),
        (HasNoCompute(), "expected a class or object"),
    ],
)
def test_what_cannot_score_cannot_be_registered(target, message):
    with pytest.raises(ValueError, match=message):
        register_metric("x", target)
    assert "x" not in METRICS


def test_a_name_must_be_a_name():
    with pytest.raises(ConfigurationError, match="non-empty string"):
        register_metric("", Shouting)


def test_a_metric_without_a_report_name_is_refused():
    class Nameless(Metric):
        def compute(self, *, prediction, references, metadata=None):
            return MetricScore("?", 0.0)

    with pytest.raises(MetricError, match="has no name"):
        resolve_metric(Nameless)


def test_a_metric_of_three_lines():
    @metric
    def same_length(prediction, reference):
        return len(prediction) == len(reference)

    found = resolve_metric("same_length").compute(prediction="abc", references=["x", "xyz"])
    assert found == MetricScore("same_length", 1.0, {})
    assert same_length("ab", "cd") is True
    assert resolve_metric(same_length) is same_length


def test_a_decorated_metric_may_have_another_name_and_ask_for_everything():
    @metric(name="Expected")
    def scored(prediction, references, metadata):
        return len(references) / metadata["of"], {"given": prediction}

    found = resolve_metric("Expected").compute(prediction="p", references=[1, 2], metadata={"of": 4})
    assert found == MetricScore("Expected", 0.5, {"given": "p"})
    assert scored.requires_reference is True


def test_a_function_that_takes_metadata_is_shown_what_the_model_returned_by_itself_too(tmp_path):
    @metric
    def answered_in_one_go(prediction, metadata):
        return metadata["model_output"].text == prediction and metadata["model_output"].tool_calls == ()

    rows = [{"id": "a", "question": "2 + 2?", "answer": "4"}]
    asked = {"model": "fake/perfect", "prompt": "{question}", "storage": tmp_path, "progress": False}
    alone = themis.evaluate(rows, metrics=[answered_in_one_go], run_id="alone", **asked)
    beside = themis.evaluate(rows, metrics=[answered_in_one_go, "steps"], run_id="beside", **asked)

    assert alone.metric("answered_in_one_go") == beside.metric("answered_in_one_go") == 1


def test_parameters_with_other_names_count_by_their_place():
    @metric
    def by_place(answer, expected, row):
        return answer == expected and row["id"] == 7

    assert score(by_place, "a", "b", "a", id=7) == 1.0


def test_where_lower_is_better_the_nearest_reference_counts():
    @metric(higher_is_better=False)
    def distance(prediction, reference):
        return abs(float(prediction) - float(reference))

    assert distance.higher_is_better is False
    assert score(distance, "5", "4", "50") == 1.0


def test_a_metric_of_the_answer_alone_needs_no_reference():
    @metric
    def brevity(prediction):
        return 1 / len(prediction)

    assert brevity.requires_reference is False
    assert score(brevity, "four") == 0.25


def test_a_metric_may_return_a_score_of_its_own():
    @metric
    def own(prediction, threshold=3):
        return MetricScore("ignored", numpy.float32(len(prediction) > threshold), {"why": "long"})

    assert own.compute(prediction="long", references=[]) == MetricScore("own", 1.0, {"why": "long"})


@pytest.mark.parametrize("returned", [None, "1.0", float("nan"), float("inf"), [1], (1, 2), {}, 10**400])
def test_what_is_no_score_is_a_failure(returned):
    @metric
    def odd(prediction):
        return returned

    with pytest.raises(MetricError, match=r"metric 'odd' returned .* expected a finite number"):
        odd.compute(prediction="x", references=[])


def test_a_reference_is_needed_where_the_function_compares():
    @metric
    def compares(prediction, reference):
        return 1.0

    with pytest.raises(MetricError, match="this sample has none"):
        compares.compute(prediction="x", references=[])


def test_functions_that_cannot_be_called_are_refused_when_decorated():
    with pytest.raises(MetricError, match="cannot be called"):

        @metric
        def too_many(a, b, c, d):
            return 0

    with pytest.raises(ConfigurationError, match="is async"):

        @metric
        async def later(prediction):
            return 0


def test_code_and_name_of_a_function_are_part_of_its_identity():
    def build(limit):
        return metric(name="limited")(lambda prediction: len(prediction) < limit)

    assert describe_object(build(3)) == describe_object(build(3))
    assert describe_object(build(3)) != describe_object(build(4))


def test_an_extractor_of_three_lines():
    @extractor
    def after_arrow(text):
        return text.partition("=>")[2].strip() or None

    assert resolve_extractor("after_arrow").extract("so => 7") == "7"
    assert after_arrow("so => 7") == "7"
    with pytest.raises(FieldExtractionError, match="after_arrow found no answer"):
        resolve_extractor("after_arrow").extract("nothing")
    assert EXTRACTORS.is_of_this_program("after_arrow")


def test_extractors_can_be_registered_and_chained_by_name():
    register_extractor("first_word", lambda text: text.split()[0])
    register_extractor("boxed_number", functools.partial(ChainExtractor, "boxed", "last_number"))

    @extractor(name="Reversed")
    def reverse(text):
        return text[::-1]

    assert resolve_extractor("chain('Reversed', 'first_word')").extract("a bc") == "cb"
    assert resolve_extractor("boxed_number").extract(r"\boxed{3 cm}") == "3"
    with pytest.raises(ConfigurationError, match="it has no method extract"):
        register_extractor("x", HasNoCompute)


def test_everything_registered_describes_itself():
    @metric
    def described(prediction):
        """Says something.

        At length.
        """
        return 0

    lines = {name: describe(METRICS, name) for name in METRICS.names()}
    assert lines["described"].summary == "Says something."
    assert lines["exact_match"].summary.startswith("1 if the answer equals")
    assert "ExactMatch()" in lines["exact_match"].example


@pytest.mark.parametrize(
    ("name", "registered"),
    [("MathVerifyAccuracy", "math_verify"), ("TokenF1(name='mine')", "f1"), ("ExactMatch", "exact_match")],
)
def test_a_built_in_metric_is_known_by_its_class_too(name, registered):
    assert type(resolve_metric(name)) is METRICS.get(registered)


def test_a_class_of_an_extractor_is_no_metric():
    assert type(resolve_extractor("BoxedExtractor")).__name__ == "BoxedExtractor"
    with pytest.raises(MetricError, match="unknown metric 'BoxedExtractor'"):
        resolve_metric("BoxedExtractor")
