"""The Countdown metric and extractor: the rules, the names of the errors, and texts that must not do harm."""

from __future__ import annotations

import ast
import contextlib
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.evaluation.extractors.countdown import CountdownExpressionExtractor
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.metrics.countdown import CountdownStrict, CountdownValidity, evaluate_expression

PUZZLE = {"numbers": [95, 21, 3], "target": 88}


def judge(prediction, reference=PUZZLE, metric=None):
    return (metric or CountdownValidity()).compute(prediction=prediction, references=[reference])


NATURAL_ANSWERS = [
    "95 - (21 / 3)",
    "95-21/3",
    "Expression: 95 - (21 / 3)",
    "expression : `95 - (21 / 3)`",
    "**95 - (21 / 3)**",
    "**Answer:** 95 - (21 / 3) = 88",
    "```\n95 - (21 / 3)\n```",
    "95 - (21 / 3) = 88",
    "88 = 95 - (21 / 3)",
    "95 - (21 / 3) 88",
    "The answer is 95 − 21 ÷ 3.",
    r"\boxed{95 - \frac{21}{3}}",
    r"So \[ 95 - \left( 21 \div 3 \right) = 88 \]",
    "$95 - (21 / 3)$",
    "[95 - (21 / 3)]",
    "- 95 - (21 / 3)",
    "1. 95 - (21 / 3)",
    "<think>3 + 21 = 24, 95 - 24 = 71, no</think>\n95 - (21 / 3)",
    "Solution: 95 - (21 / 3)\n\nCheck: 21 / 3 = 7 and 95 - 7 = 88.",
    "21 / 3 = 7, so 95 - (21 / 3) = 95 - 7 = 88",
    "First I tried 95 - 21 + 3.\n\nFinal expression:\n\n95 - (21 / 3)\n\nThis uses every number once.",
]


@pytest.mark.parametrize("answer", NATURAL_ANSWERS)
def test_a_right_answer_scores_one_however_it_is_phrased(answer):
    score = judge(answer)

    assert (score.metric_name, score.value) == ("CountdownValidity", 1.0), score.details
    assert score.details["computed_value"] == score.details["target"] == 88
    assert score.details["is_valid_expression"] is True
    assert "error" not in score.details


@pytest.mark.parametrize("answer", NATURAL_ANSWERS)
def test_the_metric_reads_what_the_extractor_found_as_it_reads_the_whole_answer(answer):
    found = CountdownExpressionExtractor().extract(answer)

    assert judge(found).details == judge(answer).details
    assert CountdownExpressionExtractor().extract(found) == found


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("", "empty_expression"),
        ("   \n ", "empty_expression"),
        ("I do not know.", "empty_expression"),
        ("95 - 21", "target_mismatch"),
        ("95", "target_mismatch"),
        ("88", "number_not_available:88"),
        ("95 - 3 - 3 - 1", "number_not_available:3"),
        ("21 / 95", "non_integer_division"),
        ("95 / 21 * 3", "non_integer_division"),
        ("3 - 21 + 95", "non_positive_intermediate"),
        ("21 - 21", "number_not_available:21"),
        ("0 + 95", "non_positive_constant"),
        ("95.5 - 3", "non_integer_constant"),
        ("95 ** 3", "operator_not_allowed"),
        ("95 // 3", "operator_not_allowed"),
        ("95 % 3", "operator_not_allowed"),
        ("-3 + 95", "node_not_allowed:UnaryOp"),
        ("3(95)", "node_not_allowed:Call"),
        ("abs(3 - 95) + 21", "node_not_allowed:Call"),
        ("x + 3", "node_not_allowed:Name"),
        ("95, 3", "node_not_allowed:Tuple"),
        ("95 < 3", "node_not_allowed:Compare"),
        ("'95' + 3", "non_integer_constant"),
        ("2x + 95", "syntax_error:invalid decimal literal"),
        ("9_5 + 3", "syntax_error:invalid decimal literal"),
    ],
)
def test_what_breaks_a_rule_scores_zero_and_says_which(answer, error):
    score = judge(answer)

    assert score.value == 0.0
    assert score.details["error"] == error


@pytest.mark.parametrize(
    "answer", ["(95 - 21", "95 - 21) / 3", "95 + * 3", "I cannot reach 88.", "0x5F - 3", "9e1 - 3"]
)
def test_a_malformed_expression_is_a_syntax_error(answer):
    score = judge(answer)

    assert score.value == 0.0
    assert score.details["error"].startswith("syntax_error:")
    assert score.details["expression"]


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ("88", "invalid_reference"),
        (None, "invalid_reference"),
        ({"numbers": [95]}, "reference_missing_numbers_or_target"),
        ({"target": 95}, "reference_missing_numbers_or_target"),
        ({"numbers": "95", "target": 95}, "reference_missing_numbers_or_target"),
        ({"numbers": [95], "target": "many"}, "invalid_reference"),
        ({"numbers": [95.5], "target": 95}, "invalid_reference"),
        ({"numbers": [95], "target": 95.5}, "invalid_reference"),
    ],
)
def test_a_reference_that_is_no_puzzle_is_named(reference, error):
    score = judge("95", reference)

    assert (score.value, score.details) == (0.0, {"error": error})


def test_a_missing_reference_is_named():
    assert CountdownValidity().compute(prediction="1", references=[]).details == {"error": "invalid_reference"}


def test_numbers_that_came_from_a_text_file_are_read():
    assert judge("95 - (21 / 3)", {"numbers": ("95", 21.0, 3), "target": "88"}).value == 1.0


def test_the_strict_metric_wants_every_number():
    lazy, full = {"numbers": [2, 3, 5], "target": 10}, {"numbers": [2, 5], "target": 10}

    assert judge("2 * 5", lazy).value == 1.0
    score = judge("2 * 5", lazy, CountdownStrict())
    assert (score.metric_name, score.value) == ("CountdownStrict", 0.0)
    assert score.details["error"] == "number_not_used:3"
    assert judge("2 * 5", full, CountdownStrict()).value == 1.0
    assert judge("2 * 5", {"numbers": [2, 5], "target": 11}, CountdownStrict()).details["error"] == "target_mismatch"


HOSTILE = {
    "ten million digits": "9" * 10_000_000,
    "just under the cap": "9" * 999,
    "ten thousand parentheses": "(" * 10_000 + "1" + ")" * 10_000,
    "sixty parentheses": "(" * 60 + "95" + ")" * 60,
    "unclosed parentheses": "(" * 19_999,
    "unclosed sums": "(1+" * 6_000,
    "many unclosed lines": ("(1+1+" * 190 + "\n") * 20,
    "a long sum": "1+" * 50_000 + "1",
    "a long chain of signs": "-" * 900 + "1",
    "a tower of powers": "9**" * 300 + "9",
    "a short tower of powers": "9**9**9**9**9",
    "lambdas": "lambda:" * 120 + "1",
    "fractions": "\\frac{" * 3_000,
    "boxes": "\\boxed{" * 3_000,
    "an import": "__import__('os').system('echo 1')",
    "a class walk": "().__class__.__bases__[0].__subclasses__()[1]",
    "a null byte": "95 - 21\x00 / 3",
    "surrogates": "95 - \ud800 21 / 3",
    "wide digits": "９５ - （２１ / ３）",
    "Arabic digits": "٩٥ - ٢١",
    "superscripts": "95² - 3",
    "a right-to-left override": "95 \u202e- 21 / 3 88",
    "an f-string": "f'{95 - 21}'",
    "a walrus": "(y := 95) - 3",
    "a comprehension": "[95 for _ in range(10**9)]",
    "an escape": "'\\x' + 95",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.filterwarnings("error::SyntaxWarning", "error::DeprecationWarning")
def test_hostile_texts_are_refused_without_harm(text):
    score = judge(text)

    assert score.value == 0.0
    assert score.details["error"]
    assert len(str(score.details)) < 2_000
    with contextlib.suppress(FieldExtractionError):
        assert len(CountdownExpressionExtractor().extract(text)) <= 1_000


def test_lengths_and_depths_have_names():
    assert judge("9" * 10_000_000).details["error"] == "expression_too_long"
    assert judge("(" * 60 + "95" + ")" * 60).details["error"] == "expression_too_deep"
    assert judge("9" * 999).details["error"] == "number_not_available:huge"


@given(st.text())
def test_no_text_whatever_raises(text):
    assert judge(text).value in (0.0, 1.0)
    assert evaluate_expression(text, [95, 21, 3]).value is None or text.isascii()


@given(st.text(alphabet="0123456789+-*/() .\n=", max_size=60))
def test_what_the_extractor_finds_is_always_one_expression(text):
    try:
        found = CountdownExpressionExtractor().extract(text)
    except FieldExtractionError:
        return
    # Numbers such as 007 are well formed here and refused by the metric.
    assert isinstance(ast.parse("".join(c if c != "0" else "1" for c in found), mode="eval"), ast.Expression)


def test_the_extractor_says_when_there_is_nothing():
    extractor = CountdownExpressionExtractor()

    with pytest.raises(FieldExtractionError, match="empty_output"):
        extractor.extract("  ")
    with pytest.raises(FieldExtractionError, match="no_parseable_expression"):
        extractor.extract("I give up, (3 + ")


# ---- an independent judge: exact fractions over trees, compared with the metric over their text ----

NUMBERS = st.lists(st.integers(1, 30), min_size=1, max_size=6)
LEAVES = st.integers(1, 30)
TREES = st.recursive(LEAVES, lambda children: st.tuples(children, st.sampled_from("+-*/"), children), max_leaves=6)


class Broken(Exception):
    pass


def text_of(tree) -> str:
    if isinstance(tree, int):
        return str(tree)
    left, operator, right = tree
    return f"({text_of(left)} {operator} {text_of(right)})"


def value_of(tree, available: Counter) -> Fraction:
    if isinstance(tree, int):
        if available[tree] == 0:
            raise Broken(f"number_not_available:{tree}")
        available[tree] -= 1
        return Fraction(tree)
    left, right = value_of(tree[0], available), value_of(tree[2], available)
    value = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
    }[tree[1]]()
    if value.denominator != 1:
        raise Broken("non_integer_division")
    if value <= 0:
        raise Broken("non_positive_intermediate")
    return value


def outcome_of(tree, numbers) -> Fraction | str:
    try:
        return value_of(tree, Counter(numbers))
    except Broken as broken:
        return str(broken)


def leaves_of(tree) -> list[int]:
    return [tree] if isinstance(tree, int) else leaves_of(tree[0]) + leaves_of(tree[2])


@given(tree=TREES, extra=NUMBERS, own=st.booleans())
def test_the_metric_agrees_with_exact_fractions(tree, extra, own):
    numbers = leaves_of(tree) + extra if own else extra
    result = evaluate_expression(text_of(tree), numbers)

    expected = outcome_of(tree, numbers)
    if isinstance(expected, str):
        assert (result.value, result.error) == (None, expected)
        return
    assert (result.value, result.error) == (expected, None)
    assert Counter(result.unused) == Counter(numbers) - Counter(leaves_of(tree))
    assert judge(text_of(tree), {"numbers": numbers, "target": int(expected)}).value == 1.0
    assert judge(text_of(tree), {"numbers": numbers, "target": int(expected) + 1}).details["error"] == "target_mismatch"


@given(tree=TREES)
def test_a_mutated_expression_is_refused_by_name(tree):
    numbers = leaves_of(tree)
    text = text_of(tree)
    if isinstance(outcome_of(tree, numbers), str):
        return

    assert evaluate_expression(f"{text} + 31", numbers).error == "number_not_available:31"
    assert evaluate_expression(f"{text} + {numbers[0]}", numbers).error == f"number_not_available:{numbers[0]}"
    assert evaluate_expression(f"1 - {text}", [*numbers, 1]).error == "non_positive_intermediate"
    assert evaluate_expression(f"1 / ({text} + 1)", [*numbers, 1, 1]).error == "non_integer_division"
    assert evaluate_expression(f"{text} ** 1", [*numbers, 1]).error == "operator_not_allowed"
    assert evaluate_expression(f"+{text}", numbers).error == "node_not_allowed:UnaryOp"
    assert str(evaluate_expression(f"({text}", numbers).error).startswith("syntax_error:")
