"""Tests of code: those that test nothing are refused before anything is paid; the others tell right code from wrong."""

from __future__ import annotations

import json

import pytest

from themis.evaluation.metrics.code import read_suite
from themis.evaluation.sandbox import AssertTest, CallTest, CodeTest, ProgramTest, Sandbox
from themis.exceptions import ConfigurationError, MetricError

VACUOUS = {
    "an empty body": "",
    "comments": "# assert f(3) == 9",
    "imports": "import math\nfrom itertools import chain",
    "a helper that nothing calls": "def helper():\n    assert f(3) == 9",
    "a check without its entry point": "def check(candidate):\n    assert candidate(3) == 9",
    "a comparison that goes nowhere": "f(3) == 9",
    "a printed comparison": "print(f(3) == 9)",
    "a constant": "f(3)\nassert True",
    "a test of itself": "x = 9\nassert x == 9",
    "a hidden exception": "try:\n    f(3)\nexcept Exception:\n    pass",
    "a function with a fixture": "def test_f(fixture):\n    assert f(3) == 9",
    "a coroutine": "async def test_f():\n    assert f(3) == 9",
    "a class that is no test case": "class Checks:\n    def test_f(self):\n        assert f(3) == 9",
    "a returned comparison": "def test_f():\n    return f(3) == 9",
}


class TestTestsOfNothing:
    @pytest.mark.parametrize("name", VACUOUS)
    def test_they_are_refused(self, name):
        with pytest.raises(ConfigurationError, match="a test that tests nothing"):
            AssertTest(VACUOUS[name]).refuse_if_it_tests_nothing()
        with pytest.raises(MetricError, match=r"test 1 is a test that tests nothing|has none"):
            read_suite([VACUOUS[name]], {})

    def test_an_entry_point_makes_a_check_one(self):
        row = {"entry_point": "f"}

        (test,) = read_suite([VACUOUS["a check without its entry point"]], row).tests

        assert test.code.endswith("check(f)\n")

    def test_a_program_that_need_not_print_anything_is_no_test(self):
        with pytest.raises(MetricError, match="any program that ends passes"):
            read_suite([{"inputs": ["1", "2"], "outputs": ["", " \n"]}], {})

    @pytest.mark.fault(
        area="Before the first call",
        wrong="a row's test code checks nothing (only defines, only imports, is empty)",
        does="names the row and what is missing, before anything is paid",
        status="–",
        exit_code=2,
    )
    def test_nothing_is_paid_for_rows_whose_tests_test_nothing(self, themis, endpoint, tmp_path, fault):
        rows = [
            {"id": "a", "prompt": "say def f(x): return 1", "answer": ["assert f(3) == 9"]},
            {"id": "b", "prompt": "say def f(x): return 1", "answer": [VACUOUS["a helper that nothing calls"]]},
        ]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

        ran = themis(
            "eval", "rows.jsonl", "-m", "acme/good", "--metric", "pass_at_k", "--run-id", "vacuous",
            ACME_BASE_URL=endpoint.url, ACME_API_KEY="k",
        )  # fmt: skip

        assert ran.returncode == fault.exit_code, ran.stderr
        assert "row 1 cannot be scored: test 1 is a test that tests nothing" in ran.stderr
        assert "its checks stand in helper, which nothing calls" in ran.stderr
        assert sum(endpoint.calls.values()) == 0
        assert themis("show", "vacuous").returncode != 0


SQUARE = "def f(x):\n    if not isinstance(x, int): raise TypeError('a number')\n    return x * x"
# Each style: its tests of a function that squares whole numbers and raises TypeError for anything else.
STYLES: dict[str, CodeTest] = {
    "MBPP": AssertTest("assert f(3) == 9"),
    "MBPP with a message": AssertTest("assert f(3) == 9, 'square'"),
    "MBPP with set-up": AssertTest("assert same(f(3), 9)", setup="def same(a, b):\n    assert a == b\n    return True"),
    "HumanEval": AssertTest("def check(candidate):\n    assert candidate(3) == 9\n\ncheck(f)", names=("f",)),
    "HumanEval with a loop": AssertTest(
        "def check(candidate):\n    for n in range(4):\n        assert candidate(n) == n * n\ncheck(f)", names=("f",)
    ),
    "call": CallTest("f", 3, 9),
    "LiveCodeBench": CallTest("f", [3], 9, spread=True),
    "pytest function": AssertTest("def test_f():\n    assert f(3) == 9"),
    "pytest class": AssertTest(
        "class TestF:\n    def setup_method(self): self.n = 3\n    def test_f(self): assert f(self.n) == 9"
    ),
    "pytest parametrize": AssertTest(
        "import pytest\n@pytest.mark.parametrize('n, wanted', [(1, 1), pytest.param(3, 9)])\n"
        "def test_f(n, wanted):\n    assert f(n) == wanted"
    ),
    "pytest approx": AssertTest("from pytest import approx\ndef test_f():\n    assert f(3) / 10 == approx(0.9)"),
    "pytest raises": AssertTest(
        "import pytest\ndef test_f():\n    assert f(3) == 9\n    with pytest.raises(TypeError, match='number'):\n        f('x')"
    ),
    "pytest called by itself": AssertTest("def test_f():\n    assert f(3) == 9\n\nif __name__ == '__main__':\n    test_f()"),
    "unittest": AssertTest("import unittest\nclass T(unittest.TestCase):\n    def test_f(self): self.assertEqual(f(3), 9)"),
    "unittest with main": AssertTest(
        "import unittest\nclass T(unittest.TestCase):\n    def test_f(self): self.assertEqual(f(3), 9)\n"
        "if __name__ == '__main__':\n    unittest.main()"
    ),
    "unittest parts": AssertTest(
        "import unittest\nclass T(unittest.TestCase):\n    def test_f(self):\n        for n in (1, 3):\n"
        "            with self.subTest(n=n): self.assertEqual(f(n), n * n)"
    ),
    "unittest raises": AssertTest(
        "from unittest import TestCase\nclass T(TestCase):\n    def test_f(self):\n        self.assertRaises(TypeError, f, 'x')\n"
        "        with self.assertRaisesRegex(TypeError, 'number'): f('x')\n        self.assertTrue(f(3) == 9)"
    ),
    "main block": AssertTest("if __name__ == '__main__':\n    assert f(3) == 9"),
    "raise unless": AssertTest("if f(3) != 9:\n    raise ValueError('wrong')"),
    "must raise": AssertTest("assert f(3) == 9\ntry:\n    f('x')\n    assert False\nexcept TypeError:\n    pass"),
    "must raise anything": AssertTest(
        "assert f(3) == 9\ntry:\n    f('x')\nexcept Exception:\n    pass\nelse:\n    raise SystemError"
    ),
    "a flag for the exception": AssertTest(
        "raised = False\ntry:\n    f('x')\nexcept Exception:\n    raised = True\nassert raised and f(3) == 9"
    ),
    "an exception that may come": AssertTest("try:\n    f('x')\nexcept Exception:\n    pass\nassert f(3) == 9"),
    "a context manager of its own": AssertTest(
        "class Raises:\n    def __enter__(self): return self\n"
        "    def __exit__(self, kind, error, trace): assert kind is TypeError; return True\n"
        "with Raises(): f('x')\nassert f(3) == 9"
    ),
    "suppress by name": AssertTest("from contextlib import suppress\nwith suppress(TypeError):\n    f('x')\nassert f(3) == 9"),
    "map": AssertTest("assert list(map(f, [1, 2, 3])) == [1, 4, 9]"),
    "all": AssertTest("assert all(f(n) == n * n for n in range(5))"),
    "import of the solution": AssertTest("from solution import f\nassert f(3) == 9"),
    "solution as a module": AssertTest("import solution\nassert solution.f(3) == 9"),
    "standard input": ProgramTest("3\n", "9\n"),
}  # fmt: skip
WRONG = {
    "constant": "def f(x): return 1",
    "nothing": "def f(x): pass",
    "identity": "def f(x): return x",
    "stops iterations": "def f(x): raise StopIteration",
    "fails assertions": "def f(x): raise AssertionError",
    "raises what is expected": "def f(x): raise TypeError('a number')",
    "skips": "def f(x):\n    import unittest\n    raise unittest.SkipTest",
    "empty": "def f(x): return []",
    "leaves for good": "import os\ndef f(x): os._exit(0)",
    "leaves": "def f(x):\n    import sys\n    sys.exit(0)",
}


def as_program(code: str) -> str:
    return f"{code}\nif __name__ == '__main__':\n    print(f(int(input())))"


class TestStyles:
    def test_right_code_passes_in_every_style(self):
        verdicts = Sandbox().run_tests(as_program(SQUARE), list(STYLES.values()))

        assert {name: v.reason for name, v in zip(STYLES, verdicts, strict=True) if not v.passed} == {}

    @pytest.mark.parametrize("kind", ["constant", "stops iterations", "raises what is expected", "leaves"])
    def test_wrong_code_passes_in_none(self, kind):
        verdicts = Sandbox().run_tests(as_program(WRONG[kind]), list(STYLES.values()))

        assert [name for name, v in zip(STYLES, verdicts, strict=True) if v.passed] == []


# A test that wrong code could pass by what it raises or returns, and a solution that tries to.
EVASIONS = {
    "for over map": ("for y, n in zip(map(f, [1, 2]), [1, 2]):\n    assert y == n * n", "stops iterations"),
    "all over map": ("assert all(map(lambda n: f(n) == n * n, [1, 2]))", "stops iterations"),
    "bare except": ("try:\n    assert f(3) == 9\nexcept:\n    pass\nassert f", "constant"),
    "except that prints": ("try:\n    assert f(3) == 9\nexcept Exception as e:\n    print(e)\nassert f", "constant"),
    "an error on the way": ("try:\n    assert f(3) > 8\nexcept Exception:\n    pass\nassert f", "nothing"),
    "its exception": ("try:\n    assert f(3) == 9\nexcept Exception:\n    pass\nassert f", "stops iterations"),
    "a check elsewhere": ("def run():\n    assert f(3) == 9\ntry:\n    run()\nexcept Exception:\n    pass\nassert f", "identity"),
    "named assertion": ("try:\n    assert f(3) == 9\nexcept AssertionError:\n    pass\nassert f", "fails assertions"),
    "swallowed verdict": ("try:\n    f('x')\n    raise ValueError('no')\nexcept Exception:\n    pass\nassert f", "identity"),
    "suppress": ("from contextlib import suppress\nwith suppress(Exception):\n    assert f(3) == 9\nassert f", "constant"),
    "return in finally": (
        "def run():\n    try:\n        assert f(3) == 9\n    finally:\n        return\nrun()\nassert f",
        "stops iterations",
    ),
    "nothing to look at": ("for y in f(3):\n    assert y > 0", "empty"),
    "leaving": ("try:\n    f(3)\n    assert f(3) == 9\nexcept SystemExit:\n    pass\nassert f", "leaves for good"),
}  # fmt: skip


class TestEvasions:
    @pytest.mark.parametrize("kind", sorted({kind for _, kind in EVASIONS.values()}))
    def test_a_check_that_was_not_made_is_no_pass(self, kind):
        tests = {name: AssertTest(test) for name, (test, tried_by) in EVASIONS.items() if tried_by == kind}

        verdicts = Sandbox().run_tests(WRONG[kind], list(tests.values()))

        judged = {name: verdict.outcome for name, verdict in zip(tests, verdicts, strict=True)}
        assert {name for name, outcome in judged.items() if outcome in ("passed", "broken")} == set()

    def test_an_exception_of_the_tests_own_may_come_back_through_the_solution(self):
        code = (
            "class Breaker:\n    failures = 0\n    def call(self, g):\n        try: return g()\n"
            "        except Exception: self.failures += 1; raise"
        )
        test = (
            "def failing(): raise ValueError('down')\nb = Breaker()\nfor _ in range(3):\n    try:\n        b.call(failing)\n"
            "    except Exception:\n        pass\nassert b.failures == 3"
        )

        (verdict,) = Sandbox().run_tests(code, [AssertTest(test)])

        assert (verdict.outcome, verdict.reason) == ("passed", "")

    def test_a_test_that_makes_no_check_is_not_blamed_on_the_code(self):
        skipped = (
            "import unittest\nclass T(unittest.TestCase):\n    @unittest.skip('later')\n"
            "    def test_f(self): self.assertEqual(f(3), 9)"
        )
        missing = "import no_such_module\nassert f(3) == 9"

        verdicts = Sandbox().run_tests(SQUARE, [AssertTest(skipped), AssertTest(missing)])

        assert [verdict.outcome for verdict in verdicts] == ["broken", "broken"]
