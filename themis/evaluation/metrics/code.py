"""Metrics that run the model's code against a row's tests, in the sandbox and never here."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields, replace

from themis.core.entities import MetricScore
from themis.core.intervals import pass_at_k
from themis.core.registry import nearest
from themis.evaluation.extractors.code import find_code_blocks
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.structured import CodeBlockExtractor
from themis.evaluation.metrics.reading import zero
from themis.evaluation.sandbox import (
    GIVEN_UP,
    AssertTest,
    CallTest,
    CodeTest,
    Limits,
    ProgramTest,
    Sandbox,
    Verdict,
    read_weaknesses,
)
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric, Row

_SHOWN_FAILURES = 5
_BLOCKS_LOOKED_AT = 20


@dataclass(kw_only=True)
class _RunsCode(Metric):
    """What metrics that run code have in common: the sandbox, and tests that are looked at before anything is paid for.

    `sandbox` chooses one by name, `packages` says what code may import beside the standard library, and
    `allow_weak_sandbox` what the sandbox may leave open; the last has no part in a score and none in its fingerprint.
    """

    sandbox: str = ""
    packages: Sequence[str] = ()
    allow_weak_sandbox: InitVar[str | Sequence[str]] = ()

    def _prepare(self, limits: Limits, tolerance: float, allow_weak: str | Sequence[str]) -> None:
        self._tolerance = tolerance
        self._sandbox = Sandbox(
            limits, name=self.sandbox, allow_weak=read_weaknesses(allow_weak), packages=tuple(self.packages)
        )

    def check_machine(self) -> None:
        self._sandbox.check()

    def check_row(self, references: Sequence[object], row: Mapping[str, object]) -> None:
        read_suite(references, row, self._tolerance)


@dataclass
class ExecutionAccuracy(_RunsCode):
    """The share of a row's tests that the code passes, run in the sandbox.

    The reference holds the tests: `{"inputs": [...], "expected": [...], "function_name": "f"}` to call a function,
    `{"inputs": [...], "outputs": [...]}` for a program's standard input and output, assert statements as in MBPP, or
    HumanEval's `test` with the row's `entry_point` and `prompt`. A `prelude` of imports is run before the code.

    Args:
        limits: What the code may use of the machine, as `Limits` or a dict such as `{'cpu_seconds': 2}`.
        tolerance: Relative difference within which numbers are equal.
        name: What the scores are reported as.
        sandbox: "bubblewrap", "docker" or "docker:IMAGE"; empty for the strongest of our own that works here.
        packages: Installed packages that the code may import beside the standard library.
        allow_weak_sandbox: What the sandbox may leave open (files, processes, network); no part of a score.

    >>> ExecutionAccuracy().compute(
    ...     prediction="def double(n): return 2 * n",
    ...     references=[{"inputs": [1, 2], "expected": [2, 5], "function_name": "double"}],
    ... ).value
    0.5
    """

    limits: Limits = field(default_factory=Limits)
    tolerance: float = 1e-6
    name: str = "execution_accuracy"
    score_range = (0.0, 1.0)
    pass_fail = False

    def __post_init__(self, allow_weak_sandbox: str | Sequence[str]) -> None:
        self.limits = _limits(self.limits)
        self._prepare(self.limits, self.tolerance, allow_weak_sandbox)

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        suite = read_suite(references, metadata or {}, self.tolerance)
        if not isinstance(prediction, str):
            return zero(self.name, prediction, "code")
        verdicts = suite.judge(prediction, self._sandbox)
        passed = sum(verdict.passed for verdict in verdicts)
        return MetricScore(self.name, passed / len(verdicts), _details(verdicts, self._sandbox))


@dataclass
class PassAtK(_RunsCode):
    """1 if the code passes all of a row's tests, else 0; the reducer `pass@k` makes the estimate over attempts.

    Given a list of programs it makes that estimate itself. The references are those of `execution_accuracy`.

    Args:
        k: How many attempts one of which must pass.
        limits: What the code may use of the machine, as `Limits` or a dict such as `{'cpu_seconds': 2}`.
        tolerance: Relative difference within which numbers are equal.
        name: What the scores are reported as, `pass_at_k` by default.
        sandbox: "bubblewrap", "docker" or "docker:IMAGE"; empty for the strongest of our own that works here.
        packages: Installed packages that the code may import beside the standard library.
        allow_weak_sandbox: What the sandbox may leave open (files, processes, network); no part of a score.

    >>> PassAtK().compute(prediction=["def one(): return 1", "def one(): return 2"], references=["assert one() == 1"]).value
    0.5
    """

    k: int = 1
    limits: Limits = field(default_factory=Limits)
    tolerance: float = 1e-6
    name: str = ""
    score_range = (0.0, 1.0)
    pass_fail = True

    def __post_init__(self, allow_weak_sandbox: str | Sequence[str]) -> None:
        if not isinstance(self.k, int) or isinstance(self.k, bool) or self.k < 1:
            raise ConfigurationError(f"pass_at_k: k is a whole number of at least 1, got {self.k!r}")
        self.limits = _limits(self.limits)
        self._prepare(self.limits, self.tolerance, allow_weak_sandbox)
        self.name = self.name or f"pass_at_{self.k}"

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        if isinstance(prediction, Mapping) and "test_results" in prediction:
            return self._estimate([bool(result) for result in prediction["test_results"]], {})
        suite = read_suite(references, metadata or {}, self.tolerance)
        if isinstance(prediction, list | tuple):
            results = [isinstance(code, str) and _passes(suite.judge(code, self._sandbox)) for code in prediction]
            return self._estimate(results, _protection_details(self._sandbox))
        if not isinstance(prediction, str):
            return zero(self.name, prediction, "code")
        verdicts = suite.judge(prediction, self._sandbox)
        return MetricScore(self.name, float(_passes(verdicts)), _details(verdicts, self._sandbox))

    def _estimate(self, results: Sequence[bool], details: Mapping[str, object]) -> MetricScore:
        samples, correct = len(results), sum(results)
        if samples < self.k:
            raise MetricError(f"pass@{self.k} needs at least {self.k} samples of the answer, got {samples}")
        value = pass_at_k(correct, samples, self.k)
        return MetricScore(self.name, value, {"samples": samples, "correct": correct, "k": self.k, **details})


def _limits(given: Limits | Mapping[str, int]) -> Limits:
    if isinstance(given, Limits):
        return given
    known = [each.name for each in fields(Limits)]
    for name in given:
        if name not in known:
            raise ConfigurationError(f"unknown limit {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    return Limits(**given)


@dataclass(frozen=True)
class Suite:
    """A row's tests, and the unfinished function that the model was asked to complete, if that was the task.

    `prelude` is run before the solution: imports that it need not make itself.
    """

    tests: Sequence[CodeTest]
    wanted: tuple[str, ...] = ()
    prompt: str = ""
    prelude: str = ""

    def judge(self, answer: str, sandbox: Sandbox) -> list[Verdict]:
        code = find_code(answer, self.wanted)
        if self.prompt:
            code = complete_prompt(self.prompt, code, self.wanted)
        code = f"{self.prelude}\n{code}" if self.prelude else code
        verdicts = sandbox.run_tests(code, self.tests)
        for number, verdict in enumerate(verdicts, start=1):
            if verdict.outcome == "broken":
                raise MetricError(f"test {number} of this sample does not run itself: {verdict.reason}")
        return verdicts


def read_suite(references: Sequence[object], row: Mapping[str, object], tolerance: float = 1e-6) -> Suite:
    """The tests that the references describe; the row's other fields say what they leave open."""
    given = [_parse(reference) for reference in references]
    statements = [reference for reference in given if isinstance(reference, str)]
    if len(statements) == len(given):
        described = {"test": "\n".join(statements)} if "entry_point" in row else {"test_list": statements}
        return _suite(described, row, tolerance)
    descriptions = [reference for reference in given if isinstance(reference, Mapping)]
    if len(descriptions) < len(given):
        kinds = ", ".join(sorted({type(reference).__name__ for reference in given}))
        raise MetricError(f"tests are assert statements or one of the known descriptions, got {kinds}")
    suites = [_suite(description, row, tolerance) for description in descriptions]
    tests = [test for suite in suites for test in suite.tests]
    return replace(suites[0], tests=tests)


def _parse(reference: object) -> object:
    """Data sets that store everything as text store descriptions as JSON."""
    if isinstance(reference, str) and reference.lstrip().startswith("{"):
        try:
            return json.loads(reference)
        except ValueError:
            return reference
    return reference


def _suite(described: Mapping[str, object], row: Mapping[str, object], tolerance: float) -> Suite:
    known = {**row, **described}
    if "test_list" in described:
        suite = _assertions(described["test_list"], known)
    elif "inputs" in described and "expected" in described:
        function = str(known.get("function_name", "solution"))
        cases = _pairs(described["inputs"], described["expected"])
        calls = [_call(function, given, expected, tolerance) for given, expected in cases]
        suite = Suite(calls, (function.partition(".")[0],))
    elif "inputs" in described and "outputs" in described:
        function_name = None if known.get("fn_name") is None else str(known["fn_name"])
        suite = _programs_or_calls(_pairs(described["inputs"], described["outputs"]), function_name, tolerance)
    elif "stdin" in described and "stdout" in described:
        suite = Suite([ProgramTest(_text(described["stdin"]), _text(described["stdout"]))])
    elif "test" in described and "entry_point" in known:
        suite = _completion(str(described["test"]), str(known["entry_point"]), str(known.get("prompt") or ""))
    else:
        raise MetricError(
            "the reference describes no tests: give inputs and expected (with function_name), inputs and outputs, stdin "
            f"and stdout, test_list, or test and entry_point; it has {', '.join(map(str, described)) or 'nothing'}"
        )
    _refuse_tests_of_nothing(suite.tests)
    return replace(suite, prelude=str(described.get("prelude") or ""))


def _refuse_tests_of_nothing(tests: Sequence[CodeTest]) -> None:
    if not tests:
        raise MetricError("running code needs tests in the reference, and this sample has none")
    for number, test in enumerate(tests, start=1):
        if isinstance(test, AssertTest):
            try:
                test.refuse_if_it_tests_nothing()
            except ConfigurationError as error:
                raise MetricError(f"test {number} is {error}") from None
    if all(isinstance(test, ProgramTest) and not test.stdout.strip() for test in tests):
        raise MetricError(
            "every test of this sample expects a program that prints nothing: any program that ends passes"
        )


def _assertions(statements: object, known: Mapping[str, object]) -> Suite:
    """MBPP: assert statements, with what must be run before them in fields of their own."""
    setup = "\n".join([*_lines(known.get("test_imports")), *_lines(known.get("test_setup_code"))])
    tests = [AssertTest(statement, setup=setup) for statement in _lines(statements)]
    return Suite(tests, tuple(sorted({name for test in tests for name in test.names_of_solution()})))


def _programs_or_calls(cases: Iterable[tuple[object, object]], function: str | None, tolerance: float) -> Suite:
    """APPS: standard input and output, or with a function's name, its list of arguments and what it returns."""
    if function is None:
        return Suite([ProgramTest(_text(given), _text(printed)) for given, printed in cases])
    calls = [CallTest(function, given, expected, spread=True, tolerance=tolerance) for given, expected in cases]
    return Suite(calls, (function.partition(".")[0],))


def _completion(test: str, entry_point: str, prompt: str) -> Suite:
    """HumanEval: the prompt is the head of the function, and `check(candidate)` tests it.

    The test gets the prompt's own helper functions, not what the solution made of them.
    """
    has_function = re.search(rf"^\s*(?:async\s+)?def\s+{re.escape(entry_point)}\b", prompt, re.MULTILINE) is not None
    prompt = prompt if has_function else ""
    if re.search(r"^def check\b", test, re.MULTILINE) and not re.search(r"^check\(", test, re.MULTILINE):
        test = f"{test}\n\ncheck({entry_point})\n"
    return Suite([AssertTest(test, setup=prompt, names=(entry_point,))], (entry_point,), prompt)


def _call(function: str, given: object, expected: object, tolerance: float) -> CallTest:
    """`{"args": [...], "kwargs": {...}}` and tuples say what the arguments are; a list is judged by the function."""
    if isinstance(given, Mapping) and given and set(given) <= {"args", "kwargs"}:
        arguments, keywords = list(given.get("args") or ()), dict(given.get("kwargs") or {})
        return CallTest(function, arguments, expected, keywords, spread=True, tolerance=tolerance)
    if isinstance(given, tuple):
        return CallTest(function, list(given), expected, spread=True, tolerance=tolerance)
    return CallTest(function, given, expected, tolerance=tolerance)


def _pairs(given: object, expected: object) -> Iterable[tuple[object, object]]:
    if not isinstance(given, Sequence) or not isinstance(expected, Sequence) or len(given) != len(expected):
        sizes = [len(each) if isinstance(each, Sequence) else type(each).__name__ for each in (given, expected)]
        raise MetricError(f"each input needs one expected result: got {sizes[0]} inputs and {sizes[1]} results")
    return zip(given, expected, strict=True)


def _lines(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(line) for line in value] if isinstance(value, Iterable) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def find_code(answer: str, wanted: tuple[str, ...]) -> str:
    """The code in an answer: its solution if that defines what is wanted, else the longest block that does, else the text."""
    for language in ("python", None):
        try:
            chosen = CodeBlockExtractor(language).extract(answer)
        except FieldExtractionError:
            continue
        blocks = sorted((block.code for block in find_code_blocks(answer)[:_BLOCKS_LOOKED_AT]), key=len, reverse=True)
        return next((code for code in [chosen, *blocks] if any(_defines(code, name) for name in wanted)), chosen)
    return answer


def _defines(code: str, name: str) -> bool:
    pattern = rf"^(?:(?:async\s+)?def|class)\s+{re.escape(name)}\b|^{re.escape(name)}\s*="
    return re.search(pattern, code, re.MULTILINE) is not None


def complete_prompt(prompt: str, code: str, wanted: tuple[str, ...]) -> str:
    """The prompt followed by its completion: the whole function again, or only the rest of its body."""
    if any(_defines(code, name) for name in wanted):
        return f"{prompt}\n\n{code}\n"
    newline = "" if prompt.endswith("\n") else "\n"
    return f"{prompt}{newline}{_indent(code)}\n"


def _indent(body: str) -> str:
    """Answers are often stripped: the first line has lost its indentation, or the whole body never had any."""
    lines = body.split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    if not filled or lines[filled[0]][0].isspace():
        return body
    first, following = lines[filled[0]], "".join(lines[number] for number in filled[1:2])
    depth = len(following) - len(following.lstrip())
    # In a stripped body the second line is as deep as the first was, or deeper where the first opens a block.
    only_the_first = depth > 4 if first.rstrip().endswith(":") else depth > 0
    for number in filled[:1] if only_the_first else filled:
        lines[number] = f"    {lines[number]}"
    return "\n".join(lines)


def _passes(verdicts: Sequence[Verdict]) -> bool:
    return all(verdict.passed for verdict in verdicts)


def _details(verdicts: Sequence[Verdict], sandbox: Sandbox) -> dict[str, object]:
    failures = [
        {"test": number, "outcome": verdict.outcome, "reason": verdict.reason}
        for number, verdict in enumerate(verdicts, start=1)
        if not verdict.passed
    ]
    reason = {"reason": f"test {failures[0]['test']}: {failures[0]['reason']}"} if failures else {}
    return {
        **reason,
        "passed": len(verdicts) - len(failures),
        "total": len(verdicts),
        "outcomes": dict(Counter(verdict.outcome for verdict in verdicts)),
        "failures": failures[:_SHOWN_FAILURES],
        **_protection_details(sandbox),
    }


def _protection_details(sandbox: Sandbox) -> dict[str, object]:
    """How far the code was confined, and what that left open to it, in every score."""
    protection = sandbox.chosen
    left_open = [f"{word}: the code {GIVEN_UP[word]}" for word in protection.weaknesses]
    return {"sandbox": protection.level, **({"not_protected": left_open} if left_open else {})}
