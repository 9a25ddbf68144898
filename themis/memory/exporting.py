"""Writes a memory run as a folder of the GoodAI LTM Benchmark: definitions, results, run statistics and master log.

A test without a verdict has no result file, for that layout knows only scores. A person's override is written as that
benchmark marks its own: the automatic score beside it under `auto_score`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from pathlib import Path

from themis.core.codec import to_plain
from themis.core.files import atomic_write
from themis.core.tokens import count_tokens
from themis.memory.definitions import safe_name
from themis.memory.examples import Definition
from themis.memory.master_log import REPLIES, SPOKEN, Code, Event, list_events, to_master_log
from themis.memory.report import RunView, read_view
from themis.memory.results import StoredResult
from themis.storage import ExperimentStorage
from themis.storage.runs import Turn

_DEFINITION = (
    "script",
    "is_question",
    "waits",
    "expected_responses",
    "can_be_interleaved",
    "is_temporal",
    "uses_callback",
    "material",
)


@dataclass
class Exported:
    """What was written, and the tests that could not be: they have no verdict."""

    folder: Path
    definitions: int = 0
    results: int = 0
    left_out: list[str] = field(default_factory=list)


def export_run(
    storage: ExperimentStorage, run_id: str, folder: str | Path, *, judged_as: str | None = None
) -> Exported:
    """Writes `definitions` and `results/<agent>` under a folder; other agents' results there are left alone."""
    view = read_view(storage, run_id, judged_as=judged_as)
    done = Exported(Path(folder))
    rows = {sample.item_id: sample.row for sample in storage.reader(run_id).samples()}
    definitions = done.folder / "definitions"
    for row in rows.values():
        path = definitions / safe_name(str(row["dataset"])) / f"{safe_name(str(row['example_id']))}.def.json"
        _write(path, {name: row[name] for name in _DEFINITION if name in row})
        done.definitions += 1
    _write_config(definitions / "config.yml", view, rows.values())
    results = done.folder / "results" / safe_name(view.found.agent)
    conversation = _Conversation(list(storage.reader(run_id).turns()), isolated=view.found.isolated)
    for result in view.results:
        if result.score is None:
            if result.ended:
                done.left_out.append(result.test_id)
            continue
        path = results / safe_name(result.dataset_name) / f"{safe_name(result.example_id)}_{result.repetition}.json"
        _write(path, _result(result, conversation))
        done.results += 1
    _write(results / "runstats.json", _statistics(view))
    if conversation.rows:
        with atomic_write(results / "master_log.jsonl") as file:
            for line in to_master_log(conversation.rows):
                file.write(line.encode("utf-8", "backslashreplace") + b"\n")
    return done


def _write(path: Path, content: object) -> None:
    with atomic_write(path) as file:
        file.write(json.dumps(to_plain(content), indent=2).encode())


def _write_config(path: Path, view: RunView, rows: Iterable[Definition]) -> None:
    import yaml

    datasets: dict[str, Definition] = {}
    for row in rows:
        entry = datasets.setdefault(
            str(row["kind"] or row["dataset"]), {"name": row["kind"] or row["dataset"], "args": {}}
        )
        entry["args"] = {
            **(row.get("arguments") or {}),
            "dataset_examples": entry["args"].get("dataset_examples", 0) + 1,
        }
    config = {
        "config": {"run_name": view.found.run.benchmark or view.found.run_id, "incompatibilities": []},
        "datasets": {"args": {}, "datasets": list(datasets.values())},
    }
    with atomic_write(path) as file:
        file.write(yaml.safe_dump(to_plain(config), allow_unicode=True).encode())


def _statistics(view: RunView) -> dict[str, object]:
    return {
        "total_tokens": view.timeline.tokens,
        "agent_tokens": view.summary.verbosity_tokens or 0,
        "agent_costs_usd": view.summary.cost_usd or 0.0,
        "managing_costs_usd": view.summary.judge_cost_usd,
        "duration": view.summary.agent_seconds,
    }


def _result(result: StoredResult, conversation: _Conversation) -> dict[str, object]:
    published = result.published
    task_log, full_log = conversation.logs_of(result)
    # That benchmark measures a test with its farewell, and all texts as one; what it has published stays as it is.
    tokens, characters = (result.tokens, result.characters) if published else conversation.measure(result)
    content: dict[str, object] = {
        "task_log": task_log or result.task_log,
        "actual_responses": result.actual_responses,
        "score": published.get("score", result.score),
        "max_score": published.get("max_score", 1),
        "reasoning": result.reasoning,
        "tokens": tokens,
        "characters": characters,
        "full_log": full_log,
        "expected_responses": result.expected_responses,
        "needles": result.needles,
        **(published.get("by_hand") or {}),
    }
    if result.override:
        content |= {"score": result.score, "max_score": 1, "auto_score": result.override.get("before")}
        content["auto_reasoning"] = result.override.get("reasons_before") or []
    return content


class _Conversation:
    """The conversation as lines, `Sender (time): text`, to cut tests' logs from."""

    def __init__(self, rows: list[Turn], *, isolated: bool) -> None:
        self.rows = rows
        self._lines: list[_Line] = []
        self._first: dict[str, int] = {}
        self._end: dict[str, int] = {}
        for event in list_events(rows):
            test_id, moment = event.test_id or None, event.now.astimezone(UTC).replace(tzinfo=None)
            if event.code not in SPOKEN:
                text = f"SYSTEM ({moment}): Test '{event.test_id}' {_format_event(event)}"
                self._lines.append(_Line(None, text))
                if event.code is Code.END:
                    # A test's log was written before its end was.
                    self._end[event.test_id] = len(self._lines) - 1
                continue
            if test_id is not None:
                self._first.setdefault(test_id, len(self._lines))
            sender = "Agent" if event.code in REPLIES else "System" if test_id is None else "Test"
            self._lines.append(_Line(test_id, f"{sender} ({moment}): {event.text}", event.turn, event.text))
        # Alone in its conversation a test's log is its own, wherever its lines lie among those of others.
        self._isolated = isolated

    def logs_of(self, result: StoredResult) -> tuple[list[str], list[str]]:
        """The lines of a test alone, and all lines while it ran."""
        lines = self._part(result)
        heard = (
            min((message.turn for message in result.messages if message.question), default=0)
            if result.listened
            else None
        )
        mine = [
            line.text
            for line in lines
            if line.turn and (line.test_id == result.test_id or (heard is not None and line.turn >= heard))
        ]
        return mine, [line.text for line in lines]

    def measure(self, result: StoredResult) -> tuple[int, int]:
        """Tokens and characters of everything said from the test's first message to its end."""
        lines = self._part(result)
        text = "".join(line.said for line in lines)
        return count_tokens(text), len(text)

    def _part(self, result: StoredResult) -> list[_Line]:
        first, end = self._first.get(result.test_id), self._end.get(result.test_id, len(self._lines))
        if first is None:
            return []
        lines = self._lines[first:end]
        if self._isolated:
            lines = [line for line in lines if line.test_id in (None, result.test_id)]
        return lines


@dataclass(frozen=True, slots=True)
class _Line:
    test_id: str | None
    text: str
    turn: int = 0
    said: str = ""


_EVENTS = {
    Code.BEGIN: "BEGINS",
    Code.REGISTER: "REGISTERS a callback.",
    Code.DEREGISTER: "DEREGISTERS a callback.",
    Code.END: "ENDS",
}


def _format_event(event: Event) -> str:
    if event.code is Code.LLM:
        return f"CALLS an LLM. Response:\n{event.data['response']}"
    if event.code is not Code.WAIT:
        return _EVENTS[event.code]
    tokens, seconds = event.data["tokens"], event.data["time"]
    parts = [f"{tokens} TOKENS"] if tokens > 0 else []
    parts += [f"{timedelta(seconds=seconds)} TIME"] if seconds > 0 else []
    return f"WAITING for {', '.join(parts) or '0 TOKENS'}."
