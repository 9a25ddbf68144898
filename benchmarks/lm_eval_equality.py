"""How much of lm-eval's catalogue runs here without the internet, and whether its scores and aggregates are lm-eval's own.

    python benchmarks/lm_eval_equality.py [tasks of each folder that both evaluators run] [that are loaded]

Rows are invented in the layout that a task's templates ask for: two for each split. Every task is loaded and asked; some of
each folder of lm-eval's (2) are also answered by one deterministic model and judged by lm-eval's evaluator and by ours. Prints
Markdown tables. All tasks take some forty minutes of CPU, 30 of each folder ten.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import datasets
import jinja2
import lm_eval
from jinja2 import nodes
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager
from lm_eval.tasks._index import TaskIndex as TheirIndex
from lm_eval.tasks._yaml_loader import load_yaml

import themis
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.exceptions import ThemisError
from themis.interfaces import StatelessTaskExecutor
from themis.presets.lm_eval import tasks as loading
from themis.presets.lm_eval.index import Entry, load_index, tasks_folder
from themis.presets.lm_eval.tasks import LoadedTasks, TaskOptions

Row = dict[str, Any]
ROWS = 2
TRIES = 8
TEMPLATES = (
    "doc_to_text",
    "doc_to_target",
    "doc_to_choice",
    "description",
    "gen_prefix",
    "doc_to_decontamination_query",
)


def main() -> None:
    each, most = (int(sys.argv[place]) if len(sys.argv) > place else usual for place, usual in ((1, 2), (2, 30)))
    logging.disable(logging.ERROR)
    prepare()
    _compare_indexes()
    entries = [entry for entry in load_index().entries.values() if entry.kind in ("task", "class")]
    began, reasons, compared, chosen, seen = (
        time.process_time(),
        Counter[str](),
        Counter[str](),
        Counter[str](),
        Counter[str](),
    )
    differing: list[str] = []
    for entry in entries:
        folder = Path(str(entry.path)).relative_to(tasks_folder()).parts[0]
        if seen[folder] >= most:
            continue
        seen[folder] += 1
        layout, reason = invent(entry)
        reasons[reason or "loaded and asked"] += 1
        if reason or chosen[folder] >= each:
            continue
        chosen[folder] += 1
        outcome = compare(entry.name, layout)
        compared[outcome.partition(":")[0]] += 1
        if outcome.startswith("differs"):
            differing.append(f"{entry.name}: {outcome}")
    tried = f"{sum(seen.values()):,} of {len(entries):,} tasks, of {len(seen)} folders"
    print(f"### {tried}: {time.process_time() - began:.0f} s of CPU\n\n| tasks | |\n|---|---|")
    for reason, count in reasons.most_common():
        print(f"| {count:,} | {reason} |")
    print(f"\n### {sum(compared.values()):,} of them run by both, of {len(chosen)} folders\n\n| tasks | |\n|---|---|")
    for outcome, count in compared.most_common():
        print(f"| {count:,} | {outcome} |")
    for line in differing:
        print(f"\n{line}")


def prepare() -> None:
    """One model for both, and filters that keep all rows where they would keep none: which subject they look for is not known."""
    datasets.disable_progress_bars()
    themis.register_provider("stub", Stub)
    keep = datasets.Dataset.filter

    def keep_some(self: Any, *arguments: Any, **options: Any) -> Any:
        found = keep(self, *arguments, **options)
        return found if len(found) else self

    datasets.Dataset.filter = keep_some


def _compare_indexes() -> None:
    """Ours, read from heads of files, and lm-eval's own."""
    began = time.process_time()
    theirs = TheirIndex.build([tasks_folder()])
    between = time.process_time()
    ours = load_index().entries
    after = time.process_time()
    kinds = {"TASK": "task", "PY_TASK": "class", "GROUP": "group", "TAG": "tag"}
    same = sum(name in ours and ours[name].kind == kinds[one.kind.name] for name, one in theirs.items())
    print(f"Index: {len(ours):,} names, {same:,} of lm-eval's {len(theirs):,} equal; ", end="")
    print(f"{after - between:.2f} s of CPU, lm-eval's own {between - began:.1f} s\n")


# --- rows that a task can read ------------------------------------------------------------------------------------------


class Invented:
    """A dataset with all splits, whose rows have the fields that have been asked for so far."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.fields: dict[str, object] = {}
        for key in TEMPLATES:
            if isinstance(template := config.get(key), str) and not template.startswith("/"):
                self._read(template, key)
        splits = (config.get(f"{kind}_split") for kind in ("training", "validation", "test", "fewshot"))
        self.splits = {str(split) for split in splits if split} | {"train", "validation", "test", "dev"}

    def load(self, path: str, name: str | None = None, **options: Any) -> Any:
        made = {split: datasets.Dataset.from_list([self.row(n) for n in range(ROWS)]) for split in self.splits}
        return made[options["split"]] if options.get("split") in made else datasets.DatasetDict(made)

    def __call__(self, call: Any, load: Callable[[], Any]) -> tuple[Any, str]:
        return self.load(call.path, call.name, **call.options), "invented"

    def row(self, number: int) -> Row:
        return {name: _value(kind, name, number) for name, kind in self.fields.items()} or {"text": f"row {number}"}

    def _read(self, template: str, key: str) -> None:
        """The fields of a template, and what each is used as."""
        if re.fullmatch(r"\w+", template):
            self.fields.setdefault(template, {"doc_to_choice": "texts", "doc_to_target": "index"}.get(key, "text"))
            return
        try:
            tree = jinja2.Environment().parse(template)
        except jinja2.TemplateError:
            return
        bound = {node.name for node in tree.find_all(nodes.Name) if node.ctx == "store"}
        for node in tree.find_all(nodes.Name):
            if node.ctx == "load" and node.name not in bound:
                self.fields.setdefault(
                    node.name, "texts" if key == "doc_to_choice" and template.strip("{} ") == node.name else "text"
                )
        for item in tree.find_all((nodes.Getitem, nodes.Getattr)):
            self._read_part(item, bound)
        for used in tree.find_all(nodes.Filter):
            if used.name in ("join", "list") and isinstance(used.node, nodes.Name) and used.node.name not in bound:
                self.fields[used.node.name] = "texts"

    def _read_part(self, item: Any, bound: set[str]) -> None:
        if not isinstance(item.node, nodes.Name) or item.node.name in bound:
            return
        name = item.node.name
        part = item.attr if isinstance(item, nodes.Getattr) else getattr(item.arg, "value", None)
        if isinstance(part, int) or part == "index":
            self.fields[name] = "texts"
        elif isinstance(part, str) and not hasattr("", part):
            known = self.fields.get(name)
            inner = dict(known) if isinstance(known, dict) else {}
            inner[part] = "texts" if part in ("text", "label", "choices", "texts") else "text"
            self.fields[name] = inner


def _value(kind: object, name: str, number: int) -> Any:
    if isinstance(kind, dict):
        return {key: _value(one, key, number) for key, one in kind.items()}
    if kind == "texts":
        return ["A", "B", "C", "D"] if name == "label" else [f"{name} {number} {k}" for k in "uvwx"]
    if kind == "index":
        return number % 2
    if name.lower() in ("answer", "answerkey", "label", "target", "correct", "answer_key"):
        return "AB"[number % 2]
    return f"some {name} {number}"


def invent(entry: Entry) -> tuple[Invented | None, str]:
    """Rows with which a task can be asked, or why there are none."""
    try:
        layout = Invented(load_yaml(str(entry.path), resolve_func=False))
    except Exception as error:
        return None, f"its file cannot be read ({type(error).__name__})"
    kinds = ("texts", "index", "text")
    for attempt in range(TRIES):
        try:
            found = loading._load(entry.name, TaskOptions(unsafe_code=True), lambda task: layout, judging=False)
            _ask(found)
        except Exception as error:
            cause = error.__cause__ or error
            if isinstance(cause, ModuleNotFoundError) or "requires" in str(cause) or "Please install" in str(cause):
                return None, "needs a package that is not installed"
            if "images or sounds" in str(error):
                return None, "shows images or sounds"
            if re.search(
                r"evaluate|Couldn't reach|offline|ConnectionError|LocalEntryNotFound", f"{type(cause).__name__} {cause}"
            ):
                return None, "needs a metric or file of the Hub"
            missing = cause.args[0] if isinstance(cause, KeyError) and cause.args else None
            if isinstance(missing, str) and missing not in layout.fields:
                layout.fields[missing] = "text"
            elif isinstance(missing, str) and layout.fields[missing] == "text" and attempt < TRIES - 1:
                layout.fields[missing] = "index"
            elif attempt < TRIES - 1 and layout.fields:
                # Some field is of another kind: the next one is tried.
                name = list(layout.fields)[attempt % len(layout.fields)]
                if not isinstance(layout.fields[name], dict):
                    layout.fields[name] = kinds[(kinds.index(str(layout.fields[name])) + 1) % 3]
            continue
        return layout, ""
    return None, "no rows could be invented for its code"


def _ask(found: LoadedTasks) -> None:
    rows = list(found.rows())
    if not rows:
        raise ThemisError("no rows")
    for row in rows:
        for one in row.get("continuations", ()):  # type: ignore[attr-defined]
            if not (one if isinstance(one, str) else one[1]):
                raise ThemisError("an empty continuation")


# --- both evaluators ----------------------------------------------------------------------------------------------------


def compare(name: str, layout: Invented | None) -> str:
    """`equal`, or in what the two evaluators differ."""
    assert layout is not None
    manager = TaskManager(include_defaults=False)
    manager._index = loading._Registry(__import__("lm_eval.tasks._index", fromlist=["Entry"]), load_index())
    original = datasets.load_dataset
    datasets.load_dataset = layout.load
    try:
        theirs = lm_eval.simple_evaluate(
            StubLM(), tasks=[name], task_manager=manager, bootstrap_iters=0, confirm_run_unsafe_code=True
        )
    except Exception as error:
        return f"lm-eval itself fails: {type(error).__name__}"
    finally:
        datasets.load_dataset = original
    before, loading.from_hub = loading.from_hub, layout  # type: ignore[assignment]
    try:
        with tempfile.TemporaryDirectory() as storage:
            report = themis.evaluate(
                f"lm-eval:{name}",
                model="stub/model",
                storage=storage,
                progress=False,
                task_options={"unsafe_code": True},
            )
            return _difference(report, theirs, name)
    except Exception as error:
        return f"differs: {type(error).__name__}: {str(error)[:200]}"
    finally:
        loading.from_hub = before


def _difference(report: Any, theirs: Any, name: str) -> str:
    ours = {key: metric.mean for key, metric in report.evaluation_report.metrics.items()}
    results = {key: value for key, value in theirs["results"][name].items() if "," in key and "_stderr" not in key}
    for key, value in results.items():
        if not isinstance(value, int | float) or math.isnan(value):
            continue
        if key not in ours or not math.isclose(ours[key], value, rel_tol=1e-12, abs_tol=1e-12):
            return f"differs: {key} {ours.get(key)} {value}"
    scores = {
        (one.sample_id, score.metric_name): score.value
        for one in report.evaluation_report.records
        for score in one.scores
    }
    for one in theirs["samples"][name]:
        for metric in one["metrics"]:
            value, ours_value = one[metric], scores.get((str(one["doc_id"]), f"{metric},{one['filter']}"))
            if isinstance(value, int | float) and not math.isnan(value) and ours_value != value:
                return f"differs: document {one['doc_id']}, {metric} {ours_value} {value}"
    return "every score and aggregate equal"


def _hash(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).digest()[:8], "big")


def _speak(prompt: str, attempt: int) -> str:
    drawn = _hash("text", prompt, attempt)
    return ("A", "The answer is (B).", " some answer 1", f"#### {drawn % 9}", "\\boxed{2}", "Yes", "")[drawn % 7]


def _score(context: str, text: str) -> tuple[float, bool]:
    drawn = _hash("score", context, text)
    return -(drawn % 10_000_019) / 371_234.5, drawn % 3 == 0


class Stub(StatelessTaskExecutor):
    """One model, as a provider of ours."""

    instant = True

    def execute(self, task: GenerationTask) -> GenerationRecord:
        return GenerationRecord(
            task, ModelOutput(_speak(task.prompt.text, int(task.metadata.get("attempts", 0)))), None
        )

    def score_continuations(self, task: GenerationTask) -> GenerationRecord:
        pairs = [(task.prompt.text, one) if isinstance(one, str) else one for one in task.metadata["continuations"]]
        scored = [dict(zip(("logprob", "greedy"), _score(*pair), strict=True), tokens=1) for pair in pairs]
        return GenerationRecord(task, ModelOutput("", raw={"continuations": scored}), None)


class StubLM(LM):
    """The same model, as one of lm-eval's."""

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        return [_score(*request.args) for request in requests]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        return [_score("", request.args[0])[0] for request in requests]

    def generate_until(self, requests: list[Any]) -> list[str]:
        seen: dict[int, int] = defaultdict(int)
        said = []
        for request in requests:
            said.append(_speak(request.args[0], seen[id(request)]))
            seen[id(request)] += 1
        return said


if __name__ == "__main__":
    main()
