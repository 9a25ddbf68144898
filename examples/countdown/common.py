"""What the Countdown scripts share: the provider, loader and metric of the tutorial's Part 1, and one way to run them.

The scripts run anywhere. Where the dataset or the model's endpoint cannot be reached, something of the same shape stands
in, and a line on stderr says so. The environment decides:

    COUNTDOWN_MODEL     auto (the endpoint if it answers, else the solver), endpoint, local (a real model in this process)
                        or solver (no model: it works the puzzles out, and errs on purpose)
    COUNTDOWN_DATA      auto (the Hugging Face Hub if it can be reached, else generated puzzles) or generated
    COUNTDOWN_API_BASE  the endpoint, by default http://localhost:1234/api/v1/chat
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import operator
import os
import re
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import themis
from themis.core import entities as core
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.pipeline import EvaluationPipeline
from themis.exceptions import ThemisError
from themis.generation.providers import create_provider
from themis.interfaces import Metric, StatelessTaskExecutor
from themis.presets.countdown import raw_puzzles, solve
from themis.presets.hub import HubDataset, hub_rows

__all__ = [
    "BASELINE_PROMPT",
    "BASELINE_RUN",
    "CANDIDATE_PROMPT",
    "CANDIDATE_RUN",
    "DEFAULT_API_BASE",
    "DEFAULT_MODEL",
    "DEFAULT_STORAGE",
    "EXPERIMENT",
    "SMOKE_RUNS",
    "ChosenModel",
    "CountdownSpec",
    "CountdownValidity",
    "LocalChatProvider",
    "SolverProvider",
    "build_pipeline",
    "chosen_model",
    "count_from_environment",
    "load_countdown_for_themis",
    "make_spec",
    "register_countdown_extensions",
    "run_spec",
    "solver_reply",
]

DEFAULT_API_BASE = os.environ.get("COUNTDOWN_API_BASE", "http://localhost:1234/api/v1/chat")
DEFAULT_MODEL = "localchat:qwen/qwen3-1.7b"
DEFAULT_STORAGE = ".cache/experiments"

# A run that the page's own Python makes has another id here, so that scripts and page can be run in any order, with other
# models and other puzzles. Part 5 compares the first two; Part 9 holds the manifests of the two smoke runs against each other.
BASELINE_RUN, CANDIDATE_RUN = "countdown-baseline-v1", "countdown-candidate-v1-script"
SMOKE_RUNS = ("countdown-part6-backends-smoke", "countdown-part7-ops-smoke")
# Retention counts the runs of each experiment by itself: those of the page are never removed for the scripts'.
EXPERIMENT = "countdown-scripts"

BASELINE_PROMPT = (
    "Solve this Countdown puzzle.\n"
    "Numbers: {numbers_str}\n"
    "Target: {target}\n"
    "Answer with one arithmetic expression that uses +, -, * and /, and nothing else."
)
CANDIDATE_PROMPT = (
    "You are playing Countdown.\n"
    "Numbers: {numbers_str}\n"
    "Target: {target}\n"
    "Rules: use each number at most once; every intermediate value is a positive integer.\n"
    "Answer with one arithmetic expression, and nothing else."
)


# --- one run --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CountdownSpec:
    """Everything that decides a run; `dataclasses.replace` makes a variant of it."""

    run_id: str
    prompt: str
    dataset: Sequence[Mapping[str, Any]]
    model: str
    provider_options: Mapping[str, Any] = field(default_factory=dict)
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 128
    timeout_seconds: float = 60.0
    max_records_in_memory: int | None = None


def make_spec(
    *,
    run_id: str,
    prompt: str,
    dataset_limit: int,
    provider_seed: int | None = None,
    max_records_in_memory: int | None = None,
) -> CountdownSpec:
    """A run over the first rows of the dataset, with the model that is there."""
    model = chosen_model()
    return CountdownSpec(
        run_id=run_id,
        prompt=prompt,
        dataset=load_countdown_for_themis(limit=dataset_limit),
        model=model.name,
        provider_options={**model.options, **({} if provider_seed is None else {"seed": provider_seed})},
        max_records_in_memory=max_records_in_memory,
    )


def run_spec(
    spec: CountdownSpec,
    *,
    workers: int = 1,
    max_retries: int = 3,
    storage_path: str = DEFAULT_STORAGE,
    cache: bool = True,
    redraw: bool = False,
    on_result: Callable[[core.GenerationRecord], Any] | None = None,
    **backends: Any,
) -> core.ExperimentReport:
    """Runs it, or goes on with it; `cache=False` starts it anew. `backends` are those of `themis.evaluate`.

    What any run in the store has been answered is not asked again; with `redraw` only this run's own answers count.
    """
    register_countdown_extensions()
    report: core.ExperimentReport = themis.evaluate(
        spec.dataset,
        model=spec.model,
        prompt=spec.prompt,
        provider_options=spec.provider_options,
        temperature=spec.temperature,
        top_p=spec.top_p,
        max_tokens=spec.max_tokens,
        timeout_seconds=spec.timeout_seconds,
        evaluation_pipeline=build_pipeline(),
        dataset_id_field="id",
        reference_field="reference",
        run_id=spec.run_id,
        experiment=EXPERIMENT,
        workers=workers,
        max_retries=max_retries,
        max_records_in_memory=spec.max_records_in_memory,
        on_result=on_result,
        resume=cache,
        cache="run" if redraw or not cache else "store",
        # The scripts are run again with another number of rows or another model: the run that was made before is then
        # kept as `<run id>@1`, and its answers are used wherever they still fit.
        allow_drift=True,
        **({"storage_path": storage_path} if "storage_backend" not in backends else {}),
        **backends,
    )
    if report.failures:
        first = report.failures[0]
        say(f"{len(report.failures)} of {len(spec.dataset)} calls failed, first for {first.sample_id}: {first.message}")
    return report


def register_countdown_extensions() -> None:
    themis.register_provider("localchat", LocalChatProvider)
    themis.register_provider("countdown-solver", SolverProvider)
    themis.register_metric("countdown_validity", CountdownValidity)


def build_pipeline() -> EvaluationPipeline:
    return EvaluationPipeline(extractor=IdentityExtractor(), metrics=[CountdownValidity()])


def count_from_environment(name: str, default: int) -> int:
    """A whole number of at least 1 from a variable of the environment."""
    text = os.environ.get(name, str(default))
    try:
        return max(1, int(text))
    except ValueError:
        raise SystemExit(f"{name} must be a whole number, got {text!r}") from None


def say(line: str) -> None:
    """To stderr, so that what a script prints can be read by programs."""
    print(f"[countdown] {line}", file=sys.stderr)


# --- which model ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChosenModel:
    """A model for `themis.evaluate`, and the options of its provider."""

    name: str
    options: Mapping[str, Any]


# All that the embedded model may write: an expression of two to six numbers.
EXPRESSION_GRAMMAR = 'root ::= number (" " [-+*/] " " number){1,5}\nnumber ::= [1-9] [0-9]{0,2}'


@functools.cache
def chosen_model() -> ChosenModel:
    """What COUNTDOWN_MODEL asks for; says which model it is."""
    wanted = os.environ.get("COUNTDOWN_MODEL", "auto")
    if wanted not in ("auto", "endpoint", "local", "solver"):
        raise SystemExit(f"COUNTDOWN_MODEL must be auto, endpoint, local or solver, got {wanted!r}")
    if wanted == "local":
        try:
            create_provider("local", model_identifier="smollm2")
        except ThemisError as error:
            raise SystemExit(f"COUNTDOWN_MODEL is local, but {error}") from None
        say("model: local/smollm2, a small real model in this process")
        return ChosenModel("local/smollm2", {"grammar": EXPRESSION_GRAMMAR})
    answers = wanted != "solver" and endpoint_answers(DEFAULT_API_BASE)
    if answers:
        say(f"model: {DEFAULT_MODEL} at {DEFAULT_API_BASE}")
        return ChosenModel(DEFAULT_MODEL, {"api_base": DEFAULT_API_BASE})
    if wanted == "endpoint":
        raise SystemExit(f"COUNTDOWN_MODEL is endpoint, but nothing answers at {DEFAULT_API_BASE}")
    reason = "" if wanted == "solver" else f"nothing answers at {DEFAULT_API_BASE}, so "
    say(
        f"model: {reason}a solver that errs on purpose stands in; COUNTDOWN_MODEL=local asks a small real model instead"
    )
    return ChosenModel("countdown-solver:errs-on-purpose", {})


def endpoint_answers(url: str) -> bool:
    """Whether an HTTP server is there, whatever it thinks of this question."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False
    return True


# --- Part 1 of the tutorial -----------------------------------------------------------------------------------------


class LocalChatProvider(StatelessTaskExecutor):
    """Asks a chat endpoint that takes {model, system_prompt, input}, once for each task."""

    is_local = True  # calls cost nothing, whatever the model is named

    def __init__(self, *, api_base: str = DEFAULT_API_BASE, timeout: float = 60.0, **_: Any) -> None:
        self.api_base = api_base
        self.timeout = timeout
        # The endpoint is on this machine: a proxy of the environment has no part in it.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
        question = {
            "model": task.model.identifier,
            "system_prompt": "You write arithmetic expressions and nothing else.",
            "input": task.prompt.text,
        }
        request = urllib.request.Request(
            self.api_base, data=json.dumps(question).encode(), headers={"Content-Type": "application/json"}
        )
        with self.opener.open(request, timeout=self.timeout) as response:
            reply = json.load(response)
        messages = [item["content"] for item in reply["output"] if item["type"] == "message"]
        if not messages:
            raise ValueError(f"no message in the reply {reply}")
        stats = reply.get("stats") or {}
        asked, answered = int(stats.get("input_tokens") or 0), int(stats.get("total_output_tokens") or 0)
        usage = {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}
        return core.GenerationRecord(
            task=task, output=core.ModelOutput(text=messages[0], raw=reply, usage=usage), error=None
        )


def countdown_puzzles(limit: int, split: str) -> list[Mapping[str, Any]]:
    """From the Hugging Face Hub; where that cannot be reached, or is not wanted, made here in the same shape."""
    if os.environ.get("COUNTDOWN_DATA", "auto") != "generated":
        source = HubDataset(dataset="predibase/countdown", split=f"{split}[:{limit}]")
        try:
            return list(hub_rows(source, otherwise="Puzzles of the same shape stand in.").rows)
        except ThemisError as error:
            print(f"[countdown] data: {error}", file=sys.stderr)
    print(f"[countdown] data: {limit} puzzles made by themis.presets.countdown", file=sys.stderr)
    return list(raw_puzzles(limit))


def load_countdown_for_themis(limit: int = 20, split: str = "train") -> list[dict[str, Any]]:
    """Each puzzle as a row: an id, what the prompt shows, and the reference that the metric is given."""
    rows = []
    for position, puzzle in enumerate(countdown_puzzles(limit, split)):
        numbers, target = [int(number) for number in puzzle["nums"]], int(puzzle["target"])
        rows.append(
            {
                "id": str(puzzle.get("id", position)),
                "numbers": numbers,
                "numbers_str": ", ".join(map(str, numbers)),
                "target": target,
                "reference": {"numbers": numbers, "target": target},
            }
        )
    return rows


@dataclass
class CountdownValidity(Metric):
    """1.0 for an expression that keeps to the rules and equals the target; else 0.0, with the reason in its details."""

    name: str = "CountdownValidity"

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> core.MetricScore:
        puzzle = references[0] if references else None
        if not isinstance(puzzle, dict):
            return self.verdict(error="invalid_reference")
        if "numbers" not in puzzle or "target" not in puzzle:
            return self.verdict(error="reference_missing_numbers_or_target")
        expression = self.find_expression(str(prediction))
        if expression is None:
            return self.verdict(error="empty_expression")
        try:
            value = self.value_of(expression, puzzle["numbers"])
        except ValueError as broken_rule:
            return self.verdict(error=str(broken_rule), expression=expression)
        found = {"expression": expression, "computed_value": value, "target": puzzle["target"]}
        if value != puzzle["target"]:
            return self.verdict(error="target_mismatch", **found)
        return self.verdict(**found)

    def verdict(self, **details: Any) -> core.MetricScore:
        return core.MetricScore(metric_name=self.name, value=0.0 if "error" in details else 1.0, details=details)

    @staticmethod
    def find_expression(text: str) -> str | None:
        """The longest stretch of arithmetic after `Expression:`, else in the last line that has any."""
        label = re.search(r"expression\s*:\s*(.+)", text, re.IGNORECASE)
        for line in [label[1]] if label else reversed(text.splitlines()):
            stretches: list[str] = re.findall(r"(?<![\w.])(?:[0-9(][0-9\s+\-*/()]{0,200}[0-9)]|[0-9])", line)
            if stretches:
                return max(stretches, key=len)
        return None

    @staticmethod
    def value_of(expression: str, numbers: Sequence[int]) -> int:
        """What it comes to; a ValueError names the rule that it breaks. Model text is parsed, never evaluated."""
        try:
            tree = ast.parse(expression, mode="eval")
        except SyntaxError as error:
            raise ValueError(f"syntax_error:{error.msg}") from error
        unused = Counter(numbers)
        operations = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv}

        def walk(node: ast.AST) -> int:
            if isinstance(node, ast.Constant):
                if type(node.value) is not int:
                    raise ValueError("non_integer_constant")
                if not unused[node.value]:
                    raise ValueError(f"number_not_available:{node.value}")
                unused[node.value] -= 1
                return node.value
            if not isinstance(node, ast.BinOp):
                raise ValueError(f"node_not_allowed:{type(node).__name__}")
            if type(node.op) not in operations:
                raise ValueError("operator_not_allowed")
            left, right = walk(node.left), walk(node.right)
            if isinstance(node.op, ast.Div) and left % right:
                raise ValueError("non_integer_division")
            value: int = operations[type(node.op)](left, right)
            if value <= 0:
                raise ValueError("non_positive_intermediate")
            return value

        return walk(tree.body)


# --- in place of a model --------------------------------------------------------------------------------------------


class SolverProvider(StatelessTaskExecutor):
    """No model: works the puzzle out, and errs on purpose so that there is something to measure."""

    is_local = True
    instant = True

    def __init__(self, **_: Any) -> None:
        pass

    def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
        text = solver_reply(task.prompt.text, draw=int(task.metadata.get("attempts", 0)))
        return core.GenerationRecord(task=task, output=core.ModelOutput(text=text), error=None)


SHARE_WRONG, SHARE_WRONG_WITH_RULES = 0.35, 0.2
# How far one draw of an answer may be luckier or unluckier than another.
LUCK = 0.3


def solver_reply(prompt: str, draw: int = 0) -> str:
    """What the solver says: the same for the same puzzle and draw, and wrong less often when told the rules.

    How hard a puzzle is depends on the puzzle alone, so two prompts are compared on the same hard ones.
    """
    numbers = [int(number) for number in re.findall(r"\d+", re.findall(r"Numbers:(.*)", prompt)[-1])]
    target = int(re.findall(r"Target:\s*(\d+)", prompt)[-1])
    solution = solve(numbers, target)
    puzzle = f"{numbers} {target}"
    ease = _chance("ease", puzzle) + LUCK * (_chance("luck", puzzle, str(draw)) - 0.5)
    is_wrong = ease < (SHARE_WRONG_WITH_RULES if "rules:" in prompt.lower() else SHARE_WRONG)
    if solution is None or is_wrong:
        replies = [
            f"{solution or target} + {numbers[0]}",
            f"{min(numbers)} - {max(numbers)}",
            "There is no such expression.",
        ]
    else:
        replies = [solution, f"Expression: {solution}", f"**{solution}** = {target}"]
    return replies[int(_chance("words", puzzle, str(draw)) * len(replies))]


def _chance(*parts: str) -> float:
    """A number from 0 to 1 that follows from the parts."""
    return int(hashlib.sha256("|".join(parts).encode()).hexdigest()[:8], 16) / 2**32
