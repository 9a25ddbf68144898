"""Judges an answer to a Countdown puzzle: is the expression legal, and does it reach the target?

The rules: + - * /, each number at most once, every intermediate value a positive integer. The text is parsed into a
tree, which is walked; it is never compiled or evaluated, and its length and depth are checked before it is parsed.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsInt

from themis.core.entities import MetricScore
from themis.evaluation.extractors.countdown import (
    MAX_DEPTH,
    MAX_EXPRESSION_CHARS,
    find_expression,
    last_line_with_digits,
)
from themis.interfaces import Metric, Row


@dataclass
class CountdownValidity(Metric):
    """1.0 for a legal expression that equals the target; else 0.0 with the reason in `details["error"]`.

    Args:
        name: What the scores are reported as.
        use_every_number: Whether a number that is left over is an error.

    >>> CountdownValidity().compute(prediction="95 - (21 / 3)", references=[{"numbers": [95, 21, 3], "target": 88}]).value
    1.0
    """

    name: str = "CountdownValidity"
    score_range = (0.0, 1.0)
    pass_fail = True
    use_every_number: bool = False

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        if not references or not isinstance(references[0], dict):
            return self._refuse("invalid_reference")
        numbers, target = references[0].get("numbers"), references[0].get("target")
        if not isinstance(numbers, list | tuple) or target is None:
            return self._refuse("reference_missing_numbers_or_target")
        try:
            available, wanted = [_whole(number) for number in numbers], _whole(target)
        except (TypeError, ValueError):
            return self._refuse("invalid_reference")

        expression = find_expression(prediction) or last_line_with_digits(prediction)
        if not expression:
            return self._refuse("empty_expression")
        result = evaluate_expression(expression, available)
        if result.value is None:
            return self._refuse(str(result.error), expression=expression[:MAX_EXPRESSION_CHARS])
        details: dict[str, object] = {
            "expression": expression,
            "computed_value": result.value,
            "target": wanted,
            "is_valid_expression": True,
        }
        if result.value != wanted:
            details["error"] = "target_mismatch"
        elif self.use_every_number and result.unused:
            details["error"] = f"number_not_used:{result.unused[0]}"
        return MetricScore(metric_name=self.name, value=0.0 if "error" in details else 1.0, details=details)

    def _refuse(self, error: str, **details: object) -> MetricScore:
        return MetricScore(metric_name=self.name, value=0.0, details={"error": error, **details})


@dataclass
class CountdownStrict(CountdownValidity):
    """As `CountdownValidity`, and every number must be used exactly once.

    Args:
        name: What the scores are reported as.
        use_every_number: Whether a number that is left over is an error.

    >>> CountdownStrict().compute(prediction="95 - 3", references=[{"numbers": [95, 21, 3], "target": 92}]).value
    0.0
    """

    name: str = "CountdownStrict"
    use_every_number: bool = True


@dataclass(frozen=True)
class Evaluation:
    """The value and the numbers left over, or why there is none."""

    value: int | None = None
    error: str | None = None
    unused: tuple[int, ...] = ()


def evaluate_expression(expression: str, numbers: Sequence[int]) -> Evaluation:
    """Walks the expression's tree under the rules; never raises, whatever the text."""
    try:
        tree = _parse(expression)
        remaining = Counter(numbers)
        value = _walk(tree, remaining)
    except _RuleBroken as broken:
        return Evaluation(error=str(broken))
    return Evaluation(value=value, unused=tuple(remaining.elements()))


class _RuleBroken(Exception):
    """Carries the error's name."""


def _parse(expression: str) -> ast.expr:
    if len(expression) > MAX_EXPRESSION_CHARS:
        raise _RuleBroken("expression_too_long")
    depth = 0
    for character in expression:
        depth += (character in "([{") - (character in ")]}")
        if depth > MAX_DEPTH:
            raise _RuleBroken("expression_too_deep")
    if not expression.isascii() or "\\" in expression:
        raise _RuleBroken("syntax_error:not plain arithmetic")
    # Refused here because Python would warn about it on the user's terminal before refusing or accepting it.
    if re.search(r"[0-9][A-Za-z_]", expression):
        raise _RuleBroken("syntax_error:invalid decimal literal")
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        raise _RuleBroken(f"syntax_error:{error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _RuleBroken(f"syntax_error:{type(error).__name__}") from error


def _walk(tree: ast.expr, remaining: Counter[int]) -> int:
    """Operands left to right, then their operator; with a stack of its own, since a sum can be hundreds deep."""
    todo: list[ast.AST] = [tree]
    values: list[int] = []
    while todo:
        node = todo.pop()
        if isinstance(node, ast.BinOp):
            todo += [node.op, node.right, node.left]
        elif isinstance(node, ast.operator):
            right = values.pop()
            values.append(_apply(node, values.pop(), right))
        elif isinstance(node, ast.Constant):
            values.append(_take(node.value, remaining))
        else:
            raise _RuleBroken(f"node_not_allowed:{type(node).__name__}")
    return values.pop()


def _take(constant: object, remaining: Counter[int]) -> int:
    if not isinstance(constant, int) or isinstance(constant, bool):
        raise _RuleBroken("non_integer_constant")
    if constant <= 0:
        raise _RuleBroken("non_positive_constant")
    if not remaining[constant]:
        # A number of hundreds of digits would fill the report, and Python may refuse to print it.
        raise _RuleBroken(f"number_not_available:{constant if constant < 10**30 else 'huge'}")
    remaining[constant] -= 1
    return constant


def _apply(operator: ast.operator, left: int, right: int) -> int:
    """Both operands are positive, so a sum and a product are too, and no divisor is zero."""
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.Sub):
        if left <= right:
            raise _RuleBroken("non_positive_intermediate")
        return left - right
    if isinstance(operator, ast.Div):
        if left % right:
            raise _RuleBroken("non_integer_division")
        return left // right
    raise _RuleBroken("operator_not_allowed")


def _whole(value: object) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(f"not a whole number: {value!r}")
    if not isinstance(value, str | SupportsInt):
        raise TypeError(f"not a number: {value!r}")
    return int(value)
