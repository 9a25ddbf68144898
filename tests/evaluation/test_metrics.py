"""Hand-checked cases for every metric that needs no other package, and what all metrics have in common."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import sys
import types

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.core.identity import describe_object
from themis.core.registry import snake_case
from themis.evaluation.extractors import EXTRACTORS
from themis.evaluation.metrics import (
    METRICS,
    CompositeMetric,
    ConsistencyMetric,
    EditSimilarity,
    ExactMatch,
    Includes,
    JsonEqual,
    JsonSchema,
    JsonSubset,
    Latency,
    LengthDifferenceTolerance,
    ListF1,
    MultipleChoice,
    Numeric,
    RegexMatch,
    ResponseLength,
    TokenF1,
)
from themis.evaluation.metrics.structured import check_schema, find_violations
from themis.evaluation.metrics.text import edit_distance, lcs_length
from themis.evaluation.registries import EXTRACTOR_CLASSES, METRIC_CLASSES
from themis.evaluation.resolve import describe, resolve_metric
from themis.exceptions import ConfigurationError, MetricError

OF_TEXT = [
    "bleu", "chrf", "edit_similarity", "embedding_similarity", "exact_match", "f1", "includes", "length_difference",
    "math_verify", "meteor", "multiple_choice", "numeric", "regex_match", "rouge1", "rouge2", "rougeL",
]  # fmt: skip
OF_JSON = ["json_equal", "json_schema", "json_subset", "list_f1"]


def score(metric, prediction, *references, **metadata):
    return metric.compute(prediction=prediction, references=list(references), metadata=metadata or None)


def value(metric, prediction, *references, **metadata):
    found = score(metric, prediction, *references, **metadata)
    assert type(found.value) is float
    assert math.isfinite(found.value)
    assert found.metric_name == metric.name
    return found.value


@pytest.fixture
def bert_score(monkeypatch):
    """What the metric needs of the package bert-score, which is not installed here: F1 of words instead of vectors."""

    class BERTScorer:
        def __init__(self, *, model_type, num_layers):
            self.known_as = (model_type, num_layers)

        def score(self, candidates, references):
            best = max(value(TokenF1(), candidates[0], reference) for reference in references[0])
            return [best], [best], [best]

    module = types.ModuleType("bert_score")
    module.__spec__ = types.SimpleNamespace(name="bert_score")
    module.BERTScorer = BERTScorer
    monkeypatch.setitem(sys.modules, "bert_score", module)


def test_every_builtin_has_a_line_and_an_example_that_holds(bert_score):
    for name, summary, example in (describe(METRICS, name) for name in METRIC_CLASSES):
        target = METRICS.get(name)
        assert summary, name
        assert "\n" not in example
        # A judge's needs a model, and those that run code are executed with the sandbox's own tests.
        if ".compute(" in example and not target.__module__.endswith(".code"):
            assert eval(example, {target.__name__: target}) is True, example


def test_report_names_are_those_of_the_contract():
    reported = {name: resolve_metric(name).name for name in ("exact_match", "response_length", "math_verify", "bleu")}
    assert reported == {
        "exact_match": "ExactMatch",
        "response_length": "ResponseLength",
        "math_verify": "MathVerifyAccuracy",
        "bleu": "bleu",
    }
    for name in ("includes", "json_equal", "list_f1", "edit_similarity", "multiple_choice", "rouge1", "meteor", "chrf"):
        assert snake_case(resolve_metric(name).name) == name


@pytest.mark.parametrize("name", OF_TEXT)
@pytest.mark.parametrize("prediction", [None, {"a": 1}, ["x"], object()])
def test_an_answer_that_is_not_text_scores_zero_and_says_why(name, prediction):
    reference = {"multiple_choice": "A", "numeric": "1", "math_verify": "1"}.get(name, "x")
    found = score(resolve_metric(name), prediction, reference)
    assert found.value == 0.0
    assert found.details["reason"]


@pytest.mark.parametrize("name", [name for name in OF_TEXT + OF_JSON if name != "list_f1"])
def test_a_sample_without_a_reference_is_a_failure(name):
    assert resolve_metric(name).requires_reference
    with pytest.raises(MetricError):
        score(resolve_metric(name), "x")


@pytest.mark.parametrize("name", OF_TEXT)
def test_a_reference_that_cannot_be_used_is_a_failure(name):
    for reference in (None, {"a": 1}):
        if name == "exact_match" and reference:
            continue  # it compares any two values
        with pytest.raises(MetricError):
            score(resolve_metric(name), "x", reference)


@pytest.mark.parametrize("name", OF_TEXT + OF_JSON)
def test_a_huge_or_empty_answer_is_scored_like_any_other(name):
    metric = resolve_metric(name)
    reference = {"numeric": "1", "math_verify": "1", "multiple_choice": "A", "regex_match": "z{3}"}.get(name, "one two")
    reference = {"a": "b"} if name in OF_JSON and name != "list_f1" else reference
    if name == "json_schema":
        reference = {"type": "object", "required": ["a"]}
    lowest = -1.0 if name == "embedding_similarity" else 0.0
    for prediction in ("", " \n", "word " * 100_000, "\ud83d", "\x00", "𝔘𝔫𝔦 🎉"):
        assert lowest <= value(metric, prediction, reference) < 1.0


# --- text


@pytest.mark.parametrize(
    ("metric", "prediction", "references", "expected"),
    [
        (ExactMatch(), " paris ", ["Paris"], 1),
        (ExactMatch(), "Paris!", ["Paris"], 0),
        (ExactMatch(), "b", ["a", "b"], 1),
        (ExactMatch(), "", [""], 1),
        (ExactMatch(), "", ["x"], 0),
        (ExactMatch(), 42, ["42"], 1),
        (ExactMatch(), "42", [42], 1),
        (ExactMatch(), True, ["true"], 1),
        (ExactMatch(), 4.0, ["4"], 0),
        (ExactMatch(), "STRASSE", ["straße"], 1),
        (ExactMatch(), "e\u0301", ["\u00e9"], 1),
        (ExactMatch(), "東京", ["東京"], 1),
        (ExactMatch(), {"a": 1}, [{"a": 1}], 1),
        (ExactMatch(), "{'a': 1}", [{"a": 1}], 0),
        (ExactMatch(), None, ["None"], 0),
        (ExactMatch(case_sensitive=True), "paris", ["Paris"], 0),
        (ExactMatch(strip_whitespace=False), "Paris ", ["Paris"], 0),
        (ExactMatch(ignore_punctuation=True), "Paris!", ["¡Paris"], 1),
        (ExactMatch(ignore_articles=True), "The  Louvre", ["louvre"], 1),
        (Includes(), "The capital is Paris.", ["paris"], 1),
        (Includes(), "Rome", ["Paris", "rom"], 1),
        (Includes(), "1234", ["12"], 1),
        (Includes(whole_words=True), "1234", ["12"], 0),
        (Includes(whole_words=True), "it is 12.", [12], 1),
        (Includes(every=True), "red and blue", ["red", "blue"], 1),
        (Includes(every=True), "red", ["red", "blue"], 0),
        (Includes(case_sensitive=True), "paris", ["Paris"], 0),
        (Includes(), "東京都", ["東京"], 1),
        (Includes(), "", ["x"], 0),
        (RegexMatch(), "in 1969", [r"\d{4}"], 1),
        (RegexMatch(), "never", [r"\d{4}", "^n"], 1),
        (RegexMatch(full=True), "in 1969", [r"\d{4}"], 0),
        (RegexMatch(full=True), "1969", [r"\d{4}"], 1),
        (RegexMatch(ignore_case=True), "YES", ["yes"], 1),
        (RegexMatch(pattern="a+"), "caat", [], 1),
        (RegexMatch(), "größe", ["^\\w+$"], 1),
        (TokenF1(), "the cat sat", ["A cat"], 2 / 3),
        (TokenF1(), "cat", ["dog", "cat"], 1),
        (TokenF1(), "", [""], 1),
        (TokenF1(), "the", ["a"], 1),
        (TokenF1(), "", ["cat"], 0),
        (TokenF1(), "cat cat cat", ["cat"], 0.5),
        (TokenF1(), "Café!", ["cafe\u0301"], 1),
        (TokenF1(), "東京都", ["東京"], 0.8),
        (TokenF1(), "don't", ["dont"], 1),
        (TokenF1(), 5, ["5"], 1),
        (EditSimilarity(), "kitten", ["sitting"], 4 / 7),
        (EditSimilarity(), "", [""], 1),
        (EditSimilarity(), "", ["abc"], 0),
        (EditSimilarity(), "abc", ["xyz", "abd"], 2 / 3),
        (EditSimilarity(), "ABC", ["abc"], 0),
        (EditSimilarity(case_sensitive=False), "ABC", ["abc"], 1),
        (EditSimilarity(), "東京", ["東北"], 0.5),
    ],
)
def test_comparisons_of_text(metric, prediction, references, expected):
    assert value(metric, prediction, *references) == pytest.approx(expected, abs=1e-12)


def test_exact_match_tells_which_reference_matched():
    assert score(ExactMatch(), "b", "a", "B").details == {"matched_reference": "B"}


def test_a_pattern_that_is_none_is_found_before_the_run_or_fails_the_sample():
    with pytest.raises(ConfigurationError, match="invalid"):
        RegexMatch(pattern="(")
    with pytest.raises(MetricError, match="not a regular expression"):
        score(RegexMatch(), "x", "(")
    assert not RegexMatch(pattern="x").requires_reference


def test_edit_similarity_says_when_it_compared_beginnings_only():
    found = score(EditSimilarity(max_characters=3), "abcd", "abcx")
    assert (found.value, found.details) == (1.0, {"truncated": True})


letters = st.text(alphabet="abc", max_size=12)


@given(letters, letters)
def test_edit_distance_is_that_of_the_table(one, other):
    table = list(range(len(other) + 1))
    for i, left in enumerate(one, start=1):
        diagonal, table[0] = table[0], i
        for j, right in enumerate(other, start=1):
            diagonal, table[j] = table[j], min(diagonal + (left != right), table[j] + 1, table[j - 1] + 1)
    assert edit_distance(one, other) == table[-1]


@given(letters, letters)
def test_the_longest_common_subsequence_is_that_of_the_table(one, other):
    table = [0] * (len(other) + 1)
    for left in one:
        diagonal = 0
        for j, right in enumerate(other, start=1):
            diagonal, table[j] = table[j], diagonal + 1 if left == right else max(table[j], table[j - 1])
    assert lcs_length(one, other) == table[-1]


def test_distances_of_long_sequences_are_exact():
    one, other = "ab" * 5000, "ba" * 5000
    assert edit_distance(one, other) == 2
    assert lcs_length(one, other) == 9999


# --- numbers


@pytest.mark.parametrize(
    ("metric", "prediction", "references", "expected"),
    [
        (Numeric(), "18", ["Janet sells 9 duck eggs.\n#### 18"], 1),
        (Numeric(), "The total is $1,234.", ["... = 1234\n#### 1,234"], 1),
        (Numeric(), r"\boxed{18}", ["#### 18"], 1),
        (Numeric(), "It was 5 at first. The answer is 18 eggs, on 3 days.", ["18"], 1),
        (Numeric(), "The answer is 3 + 4 = 7 apples", ["7"], 1),
        (Numeric(), "first 1, then 2", ["2"], 1),
        (Numeric(), "first 1, then 2", ["1"], 0),
        (Numeric(), "0.5", ["1/2"], 1),
        (Numeric(), r"\frac{1}{2}", [0.5], 1),
        (Numeric(), "50%", ["0.5"], 1),
        (Numeric(), "50%", ["50"], 1),
        (Numeric(), "50", ["50%"], 1),
        (Numeric(), "0.5%", ["50%"], 0),
        (Numeric(), 0.1 + 0.2, [0.3], 1),
        (Numeric(), "12345678901", ["12345678902"], 0),
        (Numeric(), "5 cm", ["5"], 1),
        (Numeric(), "25 m^2", ["25"], 1),
        (Numeric(), "-3", ["3"], 0),
        (Numeric(), "6.02e23", ["6.02×10^23"], 1),
        (Numeric(), 7, [7.0], 1),
        (Numeric(), "x", ["7"], 0),
        (Numeric(), "", ["7"], 0),
        (Numeric(), True, ["1"], 0),
        (Numeric(), float("nan"), ["1"], 0),
        (Numeric(), "1e999999999", ["1"], 0),
        (Numeric(), "9" * 5000, ["1"], 0),
        (Numeric(), "٤٢", ["42"], 1),
        (Numeric(tolerance=0.01), "3.14", ["3.145"], 1),
        (Numeric(tolerance=0.01), "3.13", ["3.145"], 0),
        (Numeric(relative_tolerance=0.05), "104", ["100"], 1),
        (Numeric(relative_tolerance=0.05), "106", ["100"], 0),
    ],
)
def test_comparisons_of_numbers(metric, prediction, references, expected):
    assert value(metric, prediction, *references) == expected


def test_a_reference_without_a_number_fails_the_sample():
    with pytest.raises(MetricError, match="no number in the reference 'none'"):
        score(Numeric(), "5", "none")


# --- choices


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("The answer is (B).", "B", 1),
        ("**B**", "B", 1),
        ("B.", "(B)", 1),
        ("(b)", "b", 1),
        ("I think it's option C because A is wrong", "C", 1),
        ("Let me think about A.\n\nB", "B", 1),
        ("London", "B", 1),
        ("The answer is London.", "London", 1),
        ("Answer: <B>", "B", 1),
        ("Answer: B\n\nOption C (Rome) is incorrect because it lies in Italy.", "B", 1),
        ("The answer cannot be A.", "A", 0),
        ("A", "B", 0),
        ("none of these", "B", 0),
        ("", "B", 0),
        ("E", "B", 0),
    ],
)
@pytest.mark.parametrize(
    "options",
    [["Paris", "London", "Rome"], {"A": "Paris", "B": "London", "C": "Rome"}, "A. Paris\nB. London\nC. Rome"],
)
def test_multiple_choice_by_letter_or_text(prediction, reference, expected, options):
    assert value(MultipleChoice(), prediction, reference, options=options) == expected
    assert value(MultipleChoice(), prediction, reference, choices=options) == expected


def test_multiple_choice_does_not_guess_where_counting_begins():
    with pytest.raises(MetricError, match="for positions give index_base=0 or 1"):
        score(MultipleChoice(), "B", 1)
    assert value(MultipleChoice(index_base=0), "B", 1) == 1.0
    assert value(MultipleChoice(index_base=1), "B", 1) == 0.0
    with pytest.raises(MetricError, match="neither a letter nor one of the options"):
        score(MultipleChoice(index_base=0), "B", 9, options=["x", "y"])
    with pytest.raises(MetricError, match="neither a letter"):
        score(MultipleChoice(), "B", "Madrid", options=["Paris"])
    with pytest.raises(ConfigurationError, match="index_base must be"):
        MultipleChoice(index_base=2)


# --- structure


@pytest.mark.parametrize(
    ("metric", "prediction", "references", "expected"),
    [
        (JsonEqual(), '{"b": [1, 2], "a": 1.0}', [{"a": 1, "b": [1, 2]}], 1),
        (JsonEqual(), "```json\n{'a': True,}\n```", ['{"a": true}'], 1),
        (JsonEqual(), '{"a": 1}', [{"a": True}], 0),
        (JsonEqual(), '{"a": "1"}', [{"a": 1}], 0),
        (JsonEqual(), "[2, 1]", [[1, 2]], 0),
        (JsonEqual(ignore_order=True), "[2, [4, 3]]", [[[3, 4], 2]], 1),
        (JsonEqual(), {"a": "é"}, ['{"a": "\\u00e9"}'], 1),
        (JsonEqual(), "no JSON", [{}], 0),
        (JsonEqual(), None, [{}], 0),
        (JsonEqual(), {1, 2}, [{}], 0),
        (JsonEqual(), "[" * 100_000, [{}], 0),
        (JsonEqual(), "{}", [{}], 1),
        (JsonEqual(), '{"a": 2}', [{"a": 1}, {"a": 2}], 1),
        (JsonSubset(), '{"a": 1, "b": {"c": 2, "d": 3}}', [{"b": {"c": 2}}], 1),
        (JsonSubset(), '{"a": [1, {"x": 1, "y": 2}]}', [{"a": [{"y": 2}]}], 1),
        (JsonSubset(), '{"a": [1, 2]}', [{"a": [3]}], 0),
        (JsonSubset(), '{"a": 1}', [{"a": 1, "b": 2}], 0),
        (JsonSubset(), '{"a": 1}', [{}], 1),
        (JsonSubset(), "[]", [{"a": 1}], 0),
        (JsonSubset(), "nothing", [{"a": 1}], 0),
        (ListF1(), ["red", "green"], ["red", "blue"], 0.5),
        (ListF1(), "red, Blue", ["blue", "red"], 1),
        (ListF1(), "- red\n- blue\n", ["red", "blue"], 1),
        (ListF1(), "1. red\n2. blue", ["red"], 2 / 3),
        (ListF1(), '["red", 1]', [["red", 1.0]], 1),
        (ListF1(), "red", ["red; blue"], 2 / 3),
        (ListF1(), "[]", ["[]"], 1),
        (ListF1(), [], [], 1),
        (ListF1(), "red", [], 0),
        (ListF1(), "", ["red"], 0),
        (ListF1(), ["a", "a"], ["a", "b"], 0.5),
        (ListF1(case_sensitive=True), ["A"], ["a"], 0),
        (ListF1(), None, ["a", "b"], 0),
        (ListF1(), {"a": 1}, ["a", "b"], 0),
        (ListF1(), "東京, 大阪", ["東京", "大阪"], 1),
    ],
)
def test_comparisons_of_structure(metric, prediction, references, expected):
    assert value(metric, prediction, *references) == pytest.approx(expected)


def test_structure_tells_what_is_missing():
    assert score(JsonSubset(), '{"a": {}}', {"a": {"b": 1}, "c": [1]}).details == {"missing": ["$.a.b", "$.c"]}
    details = score(ListF1(), "red, green", "red", "blue").details
    assert details == {"precision": 0.5, "recall": 0.5, "missing": ["blue"], "extra": ["green"]}


def test_a_reference_is_read_strictly():
    for metric in (JsonEqual(), JsonSubset(), JsonSchema()):
        with pytest.raises(MetricError, match="is not JSON"):
            score(metric, "{}", "{'a': 1}")
    with pytest.raises(MetricError, match="is not a list"):
        score(ListF1(), "a", {"a": 1})


SCHEMA = {
    "type": "object",
    "required": ["name", "age"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "pattern": "^[A-Z]"},
        "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "maxItems": 2},
        "child": {"$ref": "#"},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("prediction", "found"),
    [
        ('{"name": "Ada", "age": 36}', []),
        ('{"name": "Ada", "age": 36.0, "tags": ["a"], "child": {"name": "B", "age": 1}}', []),
        ('{"name": "ada", "age": 36}', ["$.name does not match '^[A-Z]'"]),
        ('{"name": "Ada"}', ["$.age is missing"]),
        ('{"name": "Ada", "age": true}', ["$.age is not of type integer"]),
        ('{"name": "Ada", "age": 150}', ["$.age is 150, expected less than 150"]),
        ('{"name": "Ada", "age": 1, "x": 1}', ["$.x is not allowed"]),
        ('{"name": "Ada", "age": 1, "child": {"name": "B"}}', ["$.child.age is missing"]),
        ('{"name": "A", "age": 1, "tags": ["a", "a"]}', ["$.tags has equal items"]),
    ],
)
def test_json_schema_names_each_violation(prediction, found):
    for metric, references in ((JsonSchema(schema=SCHEMA), []), (JsonSchema(), [SCHEMA])):
        result = score(metric, prediction, *references)
        assert result.value == float(not found)
        assert result.details.get("violations", []) == found


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"typ": "object"}, "schema.typ is not a supported keyword"),
        ({"type": "objekt"}, "must name object"),
        ({"properties": {"a": {"minimum": "1"}}}, r"schema.properties.a.minimum cannot be '1'"),
        ({"minItems": True}, "cannot be True"),
        ({"pattern": "("}, "not a regular expression"),
        ({"$ref": "http://x"}, "does not point into this schema"),
        ({"items": [1]}, "cannot be"),
        ({"anyOf": [3]}, r"schema.anyOf\[0\] must be an object"),
        ({"multipleOf": 0}, "schema.multipleOf cannot be 0"),
        ({"$defs": {"x": {"typ": 1}}}, r"schema.\$defs.x.typ is not a supported keyword"),
    ],
)
def test_a_schema_that_is_not_understood_is_an_error(schema, message):
    with pytest.raises(ConfigurationError, match=message):
        JsonSchema(schema=schema)
    with pytest.raises(MetricError, match=message):
        score(JsonSchema(), "{}", schema)


@pytest.mark.parametrize(
    ("schema", "prediction", "found"),
    [
        ({"multipleOf": 0.1}, 0.3, []),
        ({"items": {"type": "integer"}}, (1, 2), []),
        ({"oneOf": [True, True]}, 1, ["$ satisfies more than one of oneOf"]),
        ({"oneOf": [False]}, 1, ["$ satisfies none of oneOf"]),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, ["$.ab (its name) has 2 characters, expected at most 1"]),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, ["$: 'b' is a dependency of 'a'"]),
        ({"required": ["a", "b"]}, {}, ["$.a is missing", "$.b is missing"]),
    ],
)
def test_json_schema_is_checked_whole(schema, prediction, found):
    assert score(JsonSchema(schema=schema), prediction).details.get("violations", []) == found


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from([0.5, 1.0, -2.0])
    | st.sampled_from(["", "a", "ab", "é"])
)
instances = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
leaf_schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["object", "array", "string", "number", "integer", "boolean", "null", ["string", "null"]]
        ),
        "enum": st.lists(scalars, min_size=1, max_size=3),
        "const": scalars,
        "minimum": st.integers(-3, 3),
        "exclusiveMaximum": st.integers(-3, 3),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": st.integers(0, 2),
        "pattern": st.sampled_from(["a", "^a$", "b"]),
        "minItems": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
        "maxProperties": st.integers(0, 2),
    },
)
schemas = st.recursive(
    leaf_schemas | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["a", "[bc]"]), inner, max_size=1),
            "propertyNames": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "contains": inner,
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
        },
    ),
    max_leaves=5,
)


@given(schemas, instances)
@settings(max_examples=300, deadline=None)
def test_json_schema_agrees_with_the_package_jsonschema(schema, instance):
    check_schema(schema)
    assert (not find_violations(instance, schema)) == jsonschema.Draft202012Validator(schema).is_valid(instance)


# --- measures, and metrics of metrics


@pytest.mark.parametrize(
    ("prediction", "length"), [("Paris", 5), ("", 0), (None, 0), ("東京", 2), (1234, 4), ("x" * 10**6, 10**6)]
)
def test_response_length_counts_characters(prediction, length):
    assert value(ResponseLength(), prediction) == length
    assert not ResponseLength.requires_reference


@pytest.mark.parametrize(
    ("allowed", "prediction", "expected"), [(0, "ab", 1), (0, "abc", 0), (1, "abc", 1), (2, "", 1), (1, "", 0)]
)
def test_length_difference_within_what_is_allowed(allowed, prediction, expected):
    assert value(LengthDifferenceTolerance(max_delta=allowed), prediction, "xy") == expected


def test_latency_is_the_generation_time_and_fails_without_one():
    assert value(Latency(), "x", generation_time_ms=12.5) == 12.5
    for metadata in ({}, {"generation_time_ms": None}, {"generation_time_ms": "12"}, {"generation_time_ms": math.nan}):
        with pytest.raises(MetricError, match="no generation_time_ms"):
            score(Latency(), "x", **metadata)


@pytest.mark.parametrize(
    ("attempts", "expected", "pairwise", "flips"),
    [
        (["4", "4 ", "4"], 1, 1, 0),
        (["4", "5", "4", "4"], 0.75, 0.5, 2 / 3),
        (["1", "2"], 0.5, 0, 1),
        (["Ja", "ja", None, None], 0.5, 1 / 6, 2 / 3),
        ([4, 4.0, "4"], 1, 1, 0),
        ([None, None], 0, 0, 1),
        ([{"a": 1}, {"a": 1.0}], 1, 1, 0),
    ],
)
def test_consistency_is_the_share_of_the_commonest_answer(attempts, expected, pairwise, flips):
    found = score(ConsistencyMetric(), attempts)
    assert found.value == pytest.approx(expected)
    assert found.details["pairwise_agreement"] == pytest.approx(pairwise)
    assert found.details["flip_rate"] == pytest.approx(flips)


def test_consistency_reads_the_attempts_of_a_run_and_leaves_failed_calls_out():
    outcomes = [{"output": f"so {n}", "error": None} for n in (4, 4, 5)] + [{"output": None, "error": "timeout"}]
    found = score(ConsistencyMetric(extractor="last_number"), "so 4", attempt_outcomes=outcomes)
    assert (found.value, found.details["attempts"], found.details["majority"]) == (2 / 3, 3, "4")
    with pytest.raises(MetricError, match="needs at least two attempts, got 0"):
        score(ConsistencyMetric(), "so 4")


def test_composite_weighs_its_parts():
    metric = CompositeMetric({"exact_match": 3, "f1": 1})
    found = score(metric, "big cat", "cat")
    assert found.value == pytest.approx(1 / 6)
    assert found.details == {"parts": {"ExactMatch": 0.0, "F1": pytest.approx(2 / 3)}}
    assert value(CompositeMetric([ExactMatch(), "response_length"], weights=[1, 1]), "cat", "cat") == 2.0
    assert value(CompositeMetric(["exact_match", "includes"]), "a cat", "cat") == 0.5
    assert not CompositeMetric(["response_length"]).requires_reference
    assert CompositeMetric(["exact_match", "includes"]).higher_is_better is True
    assert CompositeMetric(["exact_match", "latency"]).higher_is_better is None


@pytest.mark.parametrize(
    "arguments",
    [{}, {"metrics": {}}, {"metrics": ["f1"], "weights": [1, 2]}, {"metrics": {"f1": -1}}, {"metrics": {"f1": 0}},
     {"metrics": {"f1": math.inf}}, {"metrics": {"f1": "much"}}],
)  # fmt: skip
def test_composite_refuses_weights_that_make_no_mean(arguments):
    with pytest.raises(ConfigurationError, match="composite"):
        CompositeMetric(**arguments)


def test_a_failing_part_fails_the_composite():
    with pytest.raises(MetricError):
        score(CompositeMetric({"exact_match": 1, "numeric": 1}), "x", "no number")


def test_parameters_of_a_metric_are_part_of_its_identity():
    pairs = [
        (Numeric(), Numeric(tolerance=0.1)),
        (ExactMatch(), ExactMatch(case_sensitive=True)),
        (ExactMatch(), ExactMatch(name="Strict")),
        (CompositeMetric(["exact_match"]), CompositeMetric([ExactMatch(case_sensitive=True)])),
        (ConsistencyMetric(), ConsistencyMetric(extractor="boxed")),
        (JsonSchema(schema={"type": "array"}), JsonSchema(schema={"type": "object"})),
    ]
    for one, other in pairs:
        assert describe_object(one) == describe_object(dataclasses.replace(one))
        assert describe_object(one) != describe_object(other)


def test_bertscore_takes_the_package_if_it_is_there(bert_score):
    metric = resolve_metric("bertscore(model='/models/small', layers=4)")
    assert value(metric, "a big cat", "dog", "cat") == pytest.approx(2 / 3)


def test_bertscore_says_what_to_install():
    with pytest.raises(ImportError, match="pip install bert-score; embedding_similarity needs neither"):
        resolve_metric("bertscore")


def test_every_builtin_is_documented_with_its_example():
    """One entry a name in the reference, and the example in it is the one that is executed above."""
    for registry, names, page in (
        (METRICS, METRIC_CLASSES, "metrics.md"),
        (EXTRACTORS, EXTRACTOR_CLASSES, "extractors.md"),
    ):
        text = (pathlib.Path(__file__).parents[2] / "docs" / "reference" / page).read_text("utf-8")
        for name, _, example in (describe(registry, name) for name in names):
            assert f"| [{name}](#" in text, name
            assert f"`{example}`" in text, example
