"""Metrics that run code: every form of test, what answers look like, and pass@k with and without the reducer."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.core.entities import (
    GenerationRecord,
    GenerationTask,
    ModelOutput,
    ModelSpec,
    PromptRender,
    PromptSpec,
    Reference,
    SamplingConfig,
)
from themis.core.identity import describe_object
from themis.evaluation import strategies
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.metrics.code import ExecutionAccuracy, PassAtK, complete_prompt, find_code, read_suite
from themis.evaluation.pipeline import EvaluationPipeline
from themis.evaluation.sandbox import AssertTest, CallTest, Limits, ProgramTest, sandbox_level
from themis.exceptions import ConfigurationError, MetricError

DOUBLE = "def double(n):\n    return 2 * n"
CALLS = {"inputs": [1, 2, 3], "expected": [2, 4, 7], "function_name": "double"}

PROMPT = '''from typing import List


def scale(n):
    """A helper that the tests use too."""
    return n * 10


def widest(words: List[str]) -> str:
    """The longest word, the first of several.

    >>> widest(["a", "bb"])
    'bb'
    """
'''
BODY = "    best = ''\n    for word in words:\n        if len(word) > len(best):\n            best = word\n    return best\n"
CHECK = """
METADATA = {}


def check(candidate):
    assert candidate(["a", "bb", "cc"]) == "bb"
    assert candidate([]) == ""
    assert scale(len(candidate(["abc"]))) == 30
"""
ROW = {"task_id": "X/1", "prompt": PROMPT, "entry_point": "widest", "canonical_solution": BODY}


def accuracy(prediction, *references, metadata=None):
    return ExecutionAccuracy().compute(prediction=prediction, references=references, metadata=metadata)


def passing(prediction, *references, metadata=None):
    return PassAtK().compute(prediction=prediction, references=references, metadata=metadata).value


class TestExecutionAccuracy:
    def test_the_value_is_the_share_of_tests_passed_and_the_details_say_the_rest(self):
        score = accuracy(DOUBLE, CALLS)

        assert (score.metric_name, score.value) == ("execution_accuracy", pytest.approx(2 / 3))
        assert score.details == {
            "reason": "test 3: expected 7, got 6",
            "passed": 2,
            "total": 3,
            "outcomes": {"passed": 2, "failed": 1},
            "failures": [{"test": 3, "outcome": "failed", "reason": "expected 7, got 6"}],
            "sandbox": sandbox_level(),
        }

    @pytest.mark.parametrize(
        ("code", "reference", "value"),
        [
            ("def solution(n): return n", {"inputs": [1], "expected": [1]}, 1.0),
            ("def solution(items): return sum(items)", {"inputs": [[1, 2]], "expected": [3]}, 1.0),
            ("def solution(a, b): return a + b", {"inputs": [[1, 2]], "expected": [3]}, 1.0),
            ("def solution(a, b=5): return len(a) + b", {"inputs": [(["x"], 1), ["x", "y"]], "expected": [2, 7]}, 1.0),
            ("def solution(a, b): return a - b", {"inputs": [{"args": [3], "kwargs": {"b": 1}}], "expected": [2]}, 1.0),
            ("def solution(d): return d['x']", {"inputs": [{"x": 1}], "expected": [1]}, 1.0),
            ("def f(a, b): return a + b", {"inputs": [[1, 2], [3, 4]], "outputs": [3, 7], "fn_name": "f"}, 1.0),
            ("print(sum(map(int, input().split())))", {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "8\n"]}, 0.5),
            ("print(input())\nprint(input())", {"inputs": [["a", "b"]], "outputs": [["a", "b"]]}, 1.0),
            ("print(input() * 2)", {"stdin": "ab", "stdout": "abab"}, 1.0),
            (DOUBLE, json.dumps(CALLS), 2 / 3),
            (DOUBLE, "assert double(2) == 4", 1.0),
            (DOUBLE, {"test_list": ["assert double(2) == 4", "assert double(1) == 3"]}, 0.5),
            (
                "def area(r): return 3.14159 * r ** 2",
                {"test_list": ["assert math.isclose(area(1), math.pi, rel_tol=1e-3)"], "test_imports": ["import math"]},
                1.0,
            ),
            (
                "def total(pair): return pair.a + pair.b",
                {
                    "test_list": ["assert total(Pair(1, 2)) == 3"],
                    "test_setup_code": "class Pair:\n    def __init__(self, a, b):\n        self.a, self.b = a, b",
                },
                1.0,
            ),
            (
                "class Solution:\n    def add(self, a, b): return a + b",
                {"inputs": [[1, 2]], "expected": [3], "function_name": "Solution.add"},
                1.0,
            ),
            ("def solution(x): return x / 3", {"inputs": [1], "expected": [0.333333]}, 1.0),
            ("def solution(s): return s.title()", {"inputs": ["élan ß"], "expected": ["Élan Ss"]}, 1.0),
        ],
    )  # fmt: skip
    def test_every_form_of_test(self, code, reference, value):
        assert accuracy(code, reference).value == pytest.approx(value)

    def test_several_references_are_all_tests(self):
        assert accuracy(DOUBLE, "assert double(1) == 2", "assert double(1) == 3").value == 0.5
        assert accuracy("print(input())", {"stdin": "a", "stdout": "a"}, {"stdin": "a", "stdout": "b"}).value == 0.5

    def test_the_reference_decides_what_is_tested_and_the_row_only_helps(self):
        row = {"test_list": ["assert False"], "function_name": "double"}

        assert accuracy(DOUBLE, {"inputs": [4], "expected": [8]}, metadata=row).value == 1.0

    @pytest.mark.parametrize("prediction", [None, 3, {"code": DOUBLE}, [DOUBLE]])
    def test_an_answer_that_is_not_text_scores_zero(self, prediction):
        score = accuracy(prediction, CALLS)

        assert score.value == 0.0
        assert score.details["reason"].startswith("expected code, got ")

    @pytest.mark.parametrize(
        ("prediction", "reason"),
        [
            ("", "test 1: NameError: the solution defines no 'double'"),
            ("I cannot do that.", "test 1: the code does not load: SyntaxError: invalid syntax (line 1)"),
            ("def double(n): return n / 0", "test 1: ZeroDivisionError: division by zero"),
            ("def double(n): return 'x' * 10**9", "test 1: needed more than 128 MB of memory"),
            ("def double(n):\n    while True: print('x' * 10**6)", "test 1: wrote more than 256 KB"),
            ("import os\ndef double(n): os._exit(0)", "test 1: exited with status 0 before it had answered"),
            ("def double(n): return double(n)", "test 1: RecursionError: maximum recursion depth exceeded"),
        ],
    )  # fmt: skip
    def test_code_that_fails_says_why(self, prediction, reason):
        score = ExecutionAccuracy(Limits(memory_mb=128)).compute(prediction=prediction, references=[CALLS])

        assert (score.value, score.details["reason"]) == (0.0, reason)

    @pytest.mark.parametrize(
        ("references", "message"),
        [
            ([], "needs tests in the reference, and this sample has none"),
            ([{"test_list": []}], "needs tests in the reference, and this sample has none"),
            ([{"inputs": [], "expected": []}], "needs tests in the reference, and this sample has none"),
            ([{"answer": 4}], "describes no tests: .*; it has answer"),
            ([{"test": "assert x"}], "describes no tests: .*; it has test"),
            ([{"inputs": [1, 2], "expected": [1]}], "got 2 inputs and 1 results"),
            ([{"inputs": 1, "expected": [1]}], "got int inputs and 1 results"),
            ([42], "tests are assert statements or one of the known descriptions, got int"),
            (["assert x", {"test_list": []}], "got dict, str"),
            ([{"test_list": ["assert x"], "test_imports": ["import nothing_here"]}], "test 1 of this sample does not run itself"),
        ],
    )  # fmt: skip
    def test_tests_that_cannot_be_run_are_not_the_models_fault(self, references, message):
        with pytest.raises(MetricError, match=message):
            ExecutionAccuracy().compute(prediction=DOUBLE, references=references)

    def test_limits_are_parameters_and_part_of_the_fingerprint(self):
        strict, lax = ExecutionAccuracy(limits={"cpu_seconds": 1}), ExecutionAccuracy()

        assert strict.limits == Limits(cpu_seconds=1)
        assert describe_object(strict) != describe_object(lax)
        with pytest.raises(ConfigurationError, match=r"unknown limit 'cpu_second' \(did you mean 'cpu_seconds'"):
            ExecutionAccuracy(limits={"cpu_second": 1})


class TestCompletions:
    @pytest.mark.parametrize(
        "answer",
        [
            BODY,
            BODY.strip(),
            f"```python\n{BODY}```",
            f"{PROMPT}{BODY}",
            f"Here is the function:\n\n```python\n{PROMPT}{BODY}```\nIt works.",
            "def widest(words):\n    return max(words, key=len, default='')",
            "return max(words, key=len, default='')",
            "best = max(words, key=len, default='')\nreturn best",
            "```\ndef widest(words):\n    return max(words, key=len, default='')\n```",
            "```python\ndef widest(words):\n    return max(words, key=len, default='')",
            "```python\nprint(widest(['a', 'long', 'example', 'of', 'its', 'use', 'comes', 'first', 'here', 'or', 'not']))\n```\n"
            "```python\ndef widest(words):\n    return max(words, key=len, default='')\n```",
        ],
    )  # fmt: skip
    def test_a_right_completion_passes_in_whatever_shape_it_comes(self, answer):
        assert passing(answer, CHECK, metadata=ROW) == 1.0

    @pytest.mark.parametrize(
        "answer",
        [
            "    return words[0]",
            "    return ''",
            "",
            "    import os\n    os._exit(0)",
            "    exit()",
            "    return Everything()\n\nclass Everything(str):\n    def __eq__(self, other): return True\n    __hash__ = None",
            "    return ''\n\ndef scale(n): return 30\n\ndef check(candidate): pass",
        ],
    )
    def test_a_wrong_completion_fails(self, answer):
        assert passing(answer, CHECK, metadata=ROW) == 0.0

    def test_the_whole_row_can_be_the_reference(self):
        assert passing(BODY, {**ROW, "test": CHECK}) == 1.0

    def test_a_prompt_in_prose_is_not_put_before_the_code(self):
        row = {"prompt": "Write a function named widest.", "entry_point": "widest"}

        assert read_suite(["def check(f): assert f(['a']) == 'a'"], row).prompt == ""
        assert passing("def widest(w): return w[0]", "def check(f): assert f(['a']) == 'a'", metadata=row) == 1.0

    def test_an_unfinished_function_gets_its_body(self):
        assert complete_prompt("def f(x):\n", "return x\n", ("f",)) == "def f(x):\n    return x\n\n"
        assert complete_prompt("def f(x):", "if x:\n    return 1", ("f",)) == "def f(x):\n    if x:\n        return 1\n"
        assert (
            complete_prompt("def f(x):", "if x:\n        return 1", ("f",))
            == "def f(x):\n    if x:\n        return 1\n"
        )
        assert complete_prompt("def f(x):", "y = x\n    return y", ("f",)) == "def f(x):\n    y = x\n    return y\n"
        assert complete_prompt("def f(x):", "y = x\nreturn y", ("f",)) == "def f(x):\n    y = x\n    return y\n"
        assert complete_prompt("def f(x):\n    ...\n", "def f(x): return x", ("f",)).endswith("def f(x): return x\n")


class TestReading:
    def test_each_form_becomes_tests(self):
        assert read_suite([CALLS], {}).tests[0] == CallTest("double", 1, 2)
        assert read_suite(["assert f(1)"], {}).tests == [AssertTest("assert f(1)")]
        assert read_suite([{"inputs": ["a"], "outputs": ["b"]}], {}).tests == [ProgramTest("a", "b")]
        (completion,) = read_suite([CHECK], ROW).tests
        assert completion == AssertTest(f"{CHECK}\n\ncheck(widest)\n", setup=PROMPT, names=("widest",))

    @pytest.mark.parametrize(
        ("answer", "code"),
        [
            ("x = 1", "x = 1"),
            ("", ""),
            ("```\nx = 1\n```", "x = 1"),
            ("```py\ndef f(): 1\n```\n```python\nprint('a much longer block')\n```", "def f(): 1"),
            ("```bash\npip install everything-there-is\n```\n```python\ny = 2\n```", "y = 2"),
            ("```js\nlet f = 1\n```", "let f = 1"),
            ("```python\nx = 1\n", "x = 1"),
        ],
    )
    def test_code_is_found_in_an_answer(self, answer, code):
        assert find_code(answer, ("f",)) == code

    def test_an_answer_of_fences_only_does_not_cost_more_than_a_look(self):
        assert find_code("```\nx\n```\n" * 5000, ("f",)) == "x"


class TestPassAtK:
    def test_one_program_passes_or_not(self):
        assert passing(DOUBLE, "assert double(2) == 4", "assert double(3) == 6") == 1.0
        assert passing(DOUBLE, "assert double(2) == 4", "assert double(3) == 7") == 0.0

    def test_a_list_of_programs_gives_the_estimate(self):
        programs = [DOUBLE, "def double(n): return n", None, "```python\ndef double(n): return n + n\n```"]

        score = PassAtK(k=2).compute(prediction=programs, references=["assert double(4) == 8"])

        assert (score.metric_name, score.value) == ("pass_at_2", pytest.approx(1 - 1 / 6))
        assert score.details == {"samples": 4, "correct": 2, "k": 2, "sandbox": sandbox_level()}

    def test_results_that_are_known_already_need_no_run(self):
        known = {"samples": ["...", "..."], "test_results": [True, False]}

        assert PassAtK(k=1).compute(prediction=known, references=[]).value == 0.5

    def test_fewer_samples_than_k_cannot_be_estimated(self):
        with pytest.raises(MetricError, match="pass@3 needs at least 3 samples of the answer, got 1"):
            PassAtK(k=3).compute(prediction=[DOUBLE], references=["assert double(1) == 2"])

    @pytest.mark.parametrize("k", [0, -1, 1.5, True, None])
    def test_k_is_a_positive_whole_number(self, k):
        with pytest.raises(ConfigurationError, match="k is a whole number of at least 1, got"):
            PassAtK(k=k)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
    def test_the_estimate_is_the_share_of_draws_with_a_right_one(self, results, data):
        k = data.draw(st.integers(1, len(results)))
        draws = list(itertools.combinations(results, k))

        score = PassAtK(k=k).compute(prediction={"test_results": results}, references=[])

        assert math.isclose(score.value, sum(map(any, draws)) / len(draws), abs_tol=1e-12)

    def test_the_reducer_makes_the_estimate_from_a_samples_attempts(self):
        def record(answer: str, attempts: tuple[str, ...] = ()) -> GenerationRecord:
            task = GenerationTask(
                PromptRender(PromptSpec("default", ""), "?"),
                ModelSpec("m", "p"),
                SamplingConfig(),
                {"dataset_id": "s"},
                Reference("test_list", ["assert double(1) == 2", "assert double(2) == 4"]),
            )
            whole = GenerationRecord(task, ModelOutput(answer), None)
            whole.attempts = [record(attempt) for attempt in attempts]
            return whole

        pipeline = EvaluationPipeline(
            extractor=IdentityExtractor(),
            metrics=[PassAtK()],
            strategy_resolver=lambda record: strategies.strategy_from_name("pass@2"),
        )
        wrong = "def double(n): return n"
        sample = record(DOUBLE, (DOUBLE, wrong, "def double(n): return 2", "import os; os._exit(0)"))

        (score,) = pipeline.judge(sample).scores

        assert (score.metric_name, score.value) == ("pass_at_1", pytest.approx(1 / 2))
        assert score.details == {"passed": 1, "attempts": 4, "k": 2, "sandbox": sandbox_level()}
