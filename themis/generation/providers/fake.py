"""Answers without a model: fake ones for tests, demonstrations and measurements, and those of a stored run (`Replay`).

    fake/perfect            the reference                       fake/echo               the prompt
    fake/noisy-0.3          wrong in 30 % of the prompts        fake/constant?text=yes  always the same
    fake/slow-50ms          the reference, after a while        fake/refusing           declines
    fake/flaky-0.5          half of the calls fail at first     fake/verbose            the reference after much talk
    fake-math-llm           works out the arithmetic in the prompt
    fake/field-draft        what stands in the row's field `draft`
    fake/likelihood         log-probabilities for rows with `continuations`

`noisy?rate=0.3` and `slow?ms=50` say the same in words, and `ms` slows any of them. Every decision follows from a hash
of seed, prompt and attempt, so a run repeats exactly, in any order and at any concurrency.
"""

from __future__ import annotations

import ast
import asyncio
import hashlib
import math
import operator
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from themis.core.codec import digest
from themis.core.continuations import Likelihood, continuations_of, likelihood_output, move_spaces
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.core.registry import nearest
from themis.exceptions import ProviderCallError, ProviderError
from themis.generation.providers.chat import attempt_index, item_name
from themis.interfaces import StatelessTaskExecutor


def fake_model(*, model_identifier: str = "", seed: int = 0) -> StatelessTaskExecutor:
    """The provider of a fake model; one that is told of no model is prepared for slow ones too."""
    behaviour = behaviour_of(model_identifier) if model_identifier else None
    made = SlowFakeModel(seed=seed) if behaviour is None or behaviour.latency_ms else FakeModel(seed=seed)
    made.chat_only = behaviour is not None and behaviour.kind != _LIKELIHOOD
    return made


@dataclass(frozen=True)
class Behaviour:
    """What a fake model's name says: which kind, how often it goes wrong, how long it takes, what it says."""

    kind: str
    rate: float = 0.0
    latency_ms: float = 0.0
    text: str = ""
    field: str = ""


# What stands behind the dash in `noisy-0.3`, and what is meant when nothing does.
_PARAMETERS = {
    "perfect": None,
    "noisy": ("rate", "0.3"),
    "slow": ("ms", "50ms"),
    "flaky": ("rate", "0.5"),
    "refusing": None,
    "verbose": None,
    "echo": None,
    "constant": ("text", "42"),
    "field": ("name", "answer"),
    "math-llm": None,
    "likelihood": None,
}
# Their names, as `fake/NAME` means them.
FAKE_MODELS = tuple(_PARAMETERS)
_LIKELIHOOD = "likelihood"


@lru_cache(maxsize=256)
def behaviour_of(identifier: str) -> Behaviour:
    name, _, query = identifier.partition("?")
    name = name[5:] if name.lower().startswith("fake-") else name
    kind, _, short = (name, "", "") if name.lower() in _PARAMETERS else name.partition("-")
    kind = kind.lower()
    if kind not in _PARAMETERS:
        raise ProviderError(
            f"unknown fake model {identifier!r}{nearest(kind, _PARAMETERS)}; known: {', '.join(_PARAMETERS)}"
        )
    parameter = _PARAMETERS[kind]
    given = dict(parse_qsl(query, keep_blank_values=True))
    if short and parameter is None:
        raise ProviderError(f"fake model {identifier!r}: {kind!r} takes nothing behind a dash, got {short!r}")
    if parameter is not None:
        given.setdefault(parameter[0], short or parameter[1])
    allowed = {"ms", *([parameter[0]] if parameter else [])}
    for unknown in given.keys() - allowed:
        raise ProviderError(
            f"fake model {identifier!r} has no setting {unknown!r}; {kind!r} takes {', '.join(sorted(allowed))}"
        )
    return Behaviour(
        kind=kind,
        rate=_rate(identifier, given.get("rate", "0")),
        latency_ms=_milliseconds(identifier, given.get("ms", "0")),
        text=given.get("text", ""),
        field=given.get("name", ""),
    )


def _rate(identifier: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise ProviderError(f"fake model {identifier!r}: a rate is a number from 0 to 1, got {text!r}")
    return rate


def _milliseconds(identifier: str, text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s)?", text)
    if not found:
        raise ProviderError(f"fake model {identifier!r}: a latency looks like 50ms or 1.5s, got {text!r}")
    return float(found[1]) * (1000 if found[2] == "s" else 1)


class _Fake(StatelessTaskExecutor):
    """What the models say. Only flaky ones remember anything: which calls they have already failed."""

    is_local: ClassVar[bool] = True
    # Of all kinds but one.
    chat_only: bool = False

    def __init__(self, *, seed: int = 0) -> None:
        self._seed = seed
        self._failed: dict[str, int] = {}
        self._lock = threading.Lock()
        self._speak: dict[str, Callable[[GenerationTask, Behaviour], str]] = {
            "perfect": lambda task, _: _reference(task),
            "slow": lambda task, _: _reference(task),
            "noisy": self._noisy,
            "flaky": self._flaky,
            "refusing": lambda *_: _REFUSAL,
            "verbose": lambda task, _: _VERBOSE.format(prompt=task.prompt.text, answer=_reference(task)),
            "echo": lambda task, _: task.prompt.text,
            "constant": lambda _, behaviour: behaviour.text,
            "field": lambda task, behaviour: _field(task, behaviour.field),
            "math-llm": lambda task, _: solve(task.prompt.text),
            _LIKELIHOOD: lambda task, _: _refuse_to_speak(task),
        }

    def _record(self, task: GenerationTask, behaviour: Behaviour) -> GenerationRecord:
        text = self._speak[behaviour.kind](task, behaviour)
        refusal = text if behaviour.kind == "refusing" else None
        prompt, completion = len(task.prompt.text.split()), len(text.split())
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        output = ModelOutput(text, {"model": task.model.identifier}, usage, refusal=refusal, finish_reason="stop")
        return GenerationRecord(task=task, output=output, error=None)

    def _score(self, task: GenerationTask) -> GenerationRecord:
        """Every word has a probability that follows from a hash of all before it: one above a half is the likeliest word."""
        found, evaluated = [], 0
        for pair in map(move_spaces, continuations_of(task)):
            read, logprob, greedy = pair.context, 0.0, True
            words = _WORD.findall(pair.text)
            for word in words:
                # Never 0, whose logarithm is no score.
                probability = (1 + self._hash(_LIKELIHOOD, read, word)) / (2**64 + 1)
                logprob += math.log(probability)
                greedy = greedy and probability > 0.5
                read += word
            found.append(Likelihood(logprob, greedy, len(words)))
            evaluated += len(_WORD.findall(read))
        return GenerationRecord(task, likelihood_output(task, found, evaluated_tokens=evaluated), error=None)

    def _noisy(self, task: GenerationTask, behaviour: Behaviour) -> str:
        draw = self._draw(task, "noise")
        answer = _reference(task)
        return _wrong(answer, self._draw(task, "which")) if draw < behaviour.rate else answer

    def _flaky(self, task: GenerationTask, behaviour: Behaviour) -> str:
        """Fails by a draw for each call, so that trying again helps; the draws start anew in another process."""
        key = digest(str(attempt_index(task)), item_name(task), task.prompt.text)
        with self._lock:
            call = self._failed.get(key, 0)
            if self._draw(task, f"call {call}") < behaviour.rate:
                self._failed[key] = call + 1
                raise ProviderCallError(
                    f"the model is flaky: call {call + 1} for item {item_name(task)} failed",
                    kind="server_error",
                    status=503,
                    retry_after_seconds=0.0,
                    retryable=True,
                )
            self._failed.pop(key, None)
        return _reference(task)

    def _draw(self, task: GenerationTask, purpose: str) -> float:
        """A number from 0 to 1 that depends on nothing but its inputs."""
        return self._hash(task.model.identifier, attempt_index(task), purpose, task.prompt.text) / 2**64

    def _hash(self, *parts: object) -> int:
        text = "\0".join(map(str, (self._seed, *parts)))
        return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


class FakeModel(_Fake):
    """Answers where it is called, at once."""

    instant: ClassVar[bool] = True

    def execute(self, task: GenerationTask) -> GenerationRecord:
        return self._record(task, behaviour_of(task.model.identifier))

    def score_continuations(self, task: GenerationTask) -> GenerationRecord:
        return self._score(task)


class SlowFakeModel(_Fake):
    """Answers after the model's latency, any number of calls at a time."""

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        behaviour = behaviour_of(task.model.identifier)
        if behaviour.latency_ms:
            await asyncio.sleep(behaviour.latency_ms / 1000)
        return self._record(task, behaviour)

    async def score_continuations(self, task: GenerationTask) -> GenerationRecord:
        await asyncio.sleep(behaviour_of(task.model.identifier).latency_ms / 1000)
        return self._score(task)


# A word with the white space before it, as tokens of real models mostly are.
_WORD = re.compile(r"\s*\S+|\s+$")
_REFUSAL = "I'm sorry, but I can't help with that."
_VERBOSE = """\
Let me think about this step by step.

First, the question. It reads: {prompt}

There are several ways to approach it. One could try every possibility in turn, one could work backwards from the end, or
one could look for a pattern that makes the work short. Each has its merits, and each has been described at length
elsewhere. Having weighed them, I have worked through the most careful one, checked the result, and checked it again.

The answer is {answer}"""


def _refuse_to_speak(task: GenerationTask) -> str:
    raise ProviderCallError(
        f"fake/likelihood scores `continuations`, and item {item_name(task)} has none",
        kind="bad_request",
        retryable=False,
    )


def _reference(task: GenerationTask) -> str:
    """The first reference as text; a mapping says its answer under `answer`."""
    if task.reference is None:
        raise ProviderCallError(
            f"a fake model answers with the reference, and item {item_name(task)} has none",
            kind="bad_request",
            retryable=False,
        )
    value: Any = task.reference.value
    if isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, dict) and "answer" in value:
        value = value["answer"]
    return str(value)


def _field(task: GenerationTask, name: str) -> str:
    if name not in task.prompt.context:
        fields = ", ".join(map(str, task.prompt.context)) or "no fields"
        raise ProviderCallError(
            f"item {item_name(task)} has no field {name!r} to answer with; it has {fields}",
            kind="bad_request",
            retryable=False,
        )
    return str(task.prompt.context[name])


_WHOLE_NUMBER = re.compile(r"(?<![\d.])\d{1,15}", re.ASCII)  # decimals are left: they may be within a tolerance
_OPPOSITES = {"true": "false", "false": "true", "yes": "no", "no": "yes"}


def _wrong(answer: str, draw: float) -> str:
    """An answer of the same kind that is not the right one."""
    text = answer.strip()
    # A number, a formula, an expression: with another number in it. A program may not depend on its last number.
    if "\n" not in text and (whole_numbers := list(_WHOLE_NUMBER.finditer(text))):
        last = whole_numbers[-1]
        changed = int(last[0]) + 1 + int(draw * 9)
        return f"{text[: last.start()]}{changed:0{len(last[0])}d}{text[last.end() :]}"
    if re.fullmatch(r"[A-J]", text):
        others = [letter for letter in "ABCDE" if letter != text]
        return others[int(draw * len(others))]
    if text.lower() in _OPPOSITES:
        return _OPPOSITES[text.lower()]
    return f"not {answer}"


_WORDS = {
    r"\bplus\b": "+",
    r"\bminus\b": "-",
    r"\b(?:times|multiplied by)\b": "*",
    r"\bdivided by\b": "/",
    r"\bsquared\b": "**2",
    r"(?<=\d)\s*[x×·]\s*(?=\d)": "*",
    "÷": "/",
    "−": "-",
    r"\^": "**",
}
_EXPRESSION = re.compile(r"[\d(][\d\s.()+\-*/]*[\d)]|\d")
_OPERATIONS: dict[type, Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_LARGEST_EXPONENT = 64


def solve(prompt: str) -> str:
    """The value of the last arithmetic expression in the prompt, as plain text."""
    text = prompt
    for word, sign in _WORDS.items():
        text = re.sub(word, sign, text, flags=re.IGNORECASE)
    for candidate in reversed(_EXPRESSION.findall(text)):
        if not re.search(r"[+\-*/]", candidate):
            continue
        try:
            return _format_number(_value(ast.parse(candidate.strip(), mode="eval").body))
        except (SyntaxError, ValueError, ZeroDivisionError):
            continue
    return "I can only do arithmetic."


def _value(node: ast.expr) -> Fraction:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow) and right.denominator == 1 and abs(right) <= _LARGEST_EXPONENT:
            return left ** int(right)
        if type(node.op) in _OPERATIONS:
            return _OPERATIONS[type(node.op)](left, right)
    raise ValueError(f"not arithmetic: {ast.dump(node)}")


def _format_number(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return format(float(value), ".10g")


# --- what a run has stored --------------------------------------------------------------------------------------------

# The record that a run stored for a task, or None. Handed in by whoever can read the store.
StoredAnswers = Callable[[GenerationTask], GenerationRecord | None]


class Replay(StatelessTaskExecutor):
    """Looks every answer up, and calls nobody; an item that the run did not answer is a failure that names it."""

    is_local: ClassVar[bool] = True

    def __init__(self, *, answers: StoredAnswers, model_identifier: str = "") -> None:
        self._answers = answers
        self._run = model_identifier

    def execute(self, task: GenerationTask) -> GenerationRecord:
        stored = self._answers(task)
        run = self._run or task.model.identifier
        if stored is None:
            raise _no_answer(f"run {run!r} has no stored answer for item {item_name(task)}")
        if stored.output is None:
            reason = stored.error.message if stored.error else "without a reason"
            raise _no_answer(f"run {run!r} failed on item {item_name(task)}: {reason}")
        return GenerationRecord(
            task=task, output=stored.output, error=None, metrics={**stored.metrics, "replayed": run}
        )

    def score_continuations(self, task: GenerationTask) -> GenerationRecord:
        return self.execute(task)


def _no_answer(message: str) -> ProviderCallError:
    return ProviderCallError(message, kind="not_recorded", retryable=False)
