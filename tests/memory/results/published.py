"""Tiny folders in the layouts of the GoodAI LTM Benchmark, written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from themis.core.tokens import count_tokens

CONFIG = """
config: {run_name: Tiny, debug: true, incompatibilities: []}
datasets:
  args: {memory_span: 500, dataset_examples: 1}
  datasets:
    - {name: colours, args: {colour_changes: 2}}
    - {name: prospective_memory}
"""
COLOURS = {
    "script": ["My favourite colour is Red.", "My favourite colour is Cream.", "What is my favourite colour?"],
    "is_question": [False, False, True],
    "waits": [{"percentage_finished": 45.0}, {"percentage_finished": 90.0}, {}],
    "expected_responses": ["Cream"],
    "can_be_interleaved": True,
    "is_temporal": False,
    "uses_callback": False,
}
REQUEST = "Append the quote from Ann to your 3rd response. Count your response to this message as the first."
RECITAL = {
    "script": ["'All is well.' - Ann", REQUEST],
    "is_question": [False, True],
    "waits": [{"percentage_finished": 90.0}, {}],
    "expected_responses": [["All is well.", "Ann", 3]],
    "can_be_interleaved": True,
    "is_temporal": False,
    "uses_callback": True,
}
# (type, seconds since the start, test, text or data)
LOG: list[tuple[int, float, str, Any]] = [
    (3, 0.0, "", "Welcome."),
    (5, 1.0, "", "Hello."),
    (7, 1.1, "", {}),
    (1, 1.2, "Colours - 0", {"tokens": 6}),
    (0, 2.0, "Colours - 0", COLOURS["script"][0]),
    (4, 3.5, "Colours - 0", "Noted."),
    (6, 3.6, "Colours - 0", {"tokens": 20, "time": 0}),
    (1, 3.7, "Prospective Memory - 0", {"tokens": 18}),
    (0, 4.0, "Prospective Memory - 0", RECITAL["script"][0]),
    (4, 5.0, "Prospective Memory - 0", "A fine quote."),
    (6, 5.1, "Prospective Memory - 0", {"tokens": 30, "time": 3600}),
    (3, 6.0, "", "Q: What is one and one?, A: two"),
    (5, 6.01, "", "['two']"),
    (0, 3700.0, "Colours - 0", COLOURS["script"][1]),
    (4, 3701.0, "Colours - 0", "Noted again."),
    (0, 3702.0, "Prospective Memory - 0", REQUEST),
    (4, 3703.0, "Prospective Memory - 0", "I will."),
    (9, 3703.1, "Prospective Memory - 0", {}),
    (0, 3704.0, "Colours - 0", COLOURS["script"][2]),
    (4, 3705.0, "Colours - 0", "It is cream."),
    (2, 3705.1, "Colours - 0", {}),
    (3, 3706.0, "", "Q: What is two and two?, A: four"),
    (5, 3707.0, "", "four. All is well."),
    (10, 3707.1, "Prospective Memory - 0", {}),
    (0, 3708.0, "Prospective Memory - 0", "Forget the quote."),
    (4, 3709.0, "Prospective Memory - 0", "Done."),
    (2, 3709.1, "Prospective Memory - 0", {}),
]
START = 1_700_000_000.0


def write_folder(root: Path, agent: str = "Some Agent", **changes: Any) -> Path:
    """The folder; `changes` are fields of the result of `Colours - 0`."""
    for dataset, definition in (("Colours", COLOURS), ("Prospective Memory", RECITAL)):
        _write(root / "definitions" / dataset / "0.def.json", definition)
    (root / "definitions" / "config.yml").write_text(CONFIG)
    folder = root / "results" / agent
    colours = {
        **_result("Colours - 0", "It is cream.", ["Cream"], 1, "is in the response", 2),
        **changes,
    }
    _write(folder / "Colours" / "0_0.json", colours)
    recital = _result("Prospective Memory - 0", "I will.", RECITAL["expected_responses"], 1, "recited", 1)
    _write(folder / "Prospective Memory" / "0_0.json", recital)
    stats = {
        "total_tokens": 150,
        "agent_tokens": 40,
        "agent_costs_usd": 0.5,
        "managing_costs_usd": 0.1,
        "duration": 8.0,
    }
    _write(folder / "runstats.json", stats)
    (folder / "master_log.jsonl").write_text("".join(f"{line}\n" for line in log_lines()))
    return root


def log_lines() -> list[str]:
    lines, asked = [], False
    for code, seconds, test_id, said in LOG:
        data = said
        if isinstance(said, str):
            asked = said in (REQUEST, COLOURS["script"][2]) if code in (0, 3) else asked
            data = {"message": said, "is_question": asked}
        lines.append(json.dumps({"type": code, "timestamp": START + seconds, "test_id": test_id, "data": data}))
    return lines


def _result(test_id: str, reply: str, expected: Any, score: float, reason: str, needles: int) -> dict[str, Any]:
    first = next(n for n, (code, _, owner, _) in enumerate(LOG) if code == 0 and owner == test_id)
    end = next(n for n, (code, _, owner, _) in enumerate(LOG) if code == 2 and owner == test_id)
    text = "".join(said for code, _, _, said in LOG[first:end] if code in (0, 3, 4, 5))
    return {
        "task_log": [],
        "actual_responses": [reply],
        "score": score,
        "max_score": 1,
        "reasoning": [reason],
        "tokens": count_tokens(text),
        "characters": len(text),
        "full_log": [],
        "expected_responses": expected,
        "needles": needles,
    }


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2))


# --- other generations ------------------------------------------------------------------------------------------------


def write_benchmark(
    root: Path, tests: Sequence[Published], *, run_name: str = "Old", agent: str = "Some Agent", arguments: str = "{}"
) -> Path:
    """A folder without a master log, of tests that were written by hand."""
    kinds = sorted({KINDS[test.dataset] for test in tests if test.dataset in KINDS})
    listed = "".join(f"    - name: {kind}\n" for kind in kinds)
    config = f"config: {{run_name: {run_name}}}\ndatasets:\n  args: {arguments}\n  datasets:\n{listed}"
    (root / "definitions").mkdir(parents=True, exist_ok=True)
    (root / "definitions" / "config.yml").write_text(config)
    for test in tests:
        _write(root / "definitions" / test.dataset / f"{test.example_id}.def.json", test.definition())
        _write(root / "results" / agent / test.dataset / f"{test.example_id}_0.json", test.result())
    return root


KINDS = {
    "ChapterBreak": "chapterbreak",
    "Colours": "colours",
    "Delayed Recall": "delayed_recall",
    "Instruction Recall": "instruction_recall",
    "Jokes": "jokes",
    "NameList": "name_list",
    "Names": "names",
    "Prospective Memory": "prospective_memory",
    "SallyAnne": "sallyanne",
    "Shopping": "shopping",
    "Spy Meeting": "spy_meeting",
    "Trigger Response": "trigger_response",
}


@dataclass
class Published:
    """A test with its result: what was told, what was asked and replied, and what others said after that."""

    dataset: str
    told: Sequence[str]
    asked: Sequence[tuple[str, str]]
    expected: object
    score: float = 1
    max_score: float = 1
    example_id: str = "0"
    # Exchanges of others after the last question, and where the result tells them.
    heard: Sequence[tuple[str, str]] = ()
    heard_in: str = "task_log"
    temporal: bool = False

    def definition(self) -> dict[str, Any]:
        questions = [message for message, _ in self.asked]
        return {
            "script": [*self.told, *([] if self.temporal else questions)],
            "is_question": [False] * len(self.told) + [True] * len(questions),
            "time_jumps": [0.0] * (len(self.told) + len(questions)),
            "token_spacings": [1000] * (len(self.told) + len(questions)),
            "expected_responses": self.expected,
            "evaluation_fn": "evaluate_correct",
            "is_temporal": self.temporal,
            "uses_callback": self.dataset == "Prospective Memory",
        }

    def result(self) -> dict[str, Any]:
        own = [*((line, "Noted.") for line in self.told), *self.asked]
        after = list(self.heard)
        task_log = [*own, *after] if self.heard_in == "task_log" else own
        return {
            "task_log": list(label(task_log)),
            "actual_responses": [reply for _, reply in self.asked],
            "score": self.score,
            "max_score": self.max_score,
            "reasoning": [],
            "tokens": 2000,
            "characters": 9000,
            # The first generation's logs do not say who spoke.
            "full_log": [text for exchange in (*own, *after) for text in exchange],
            "expected_responses": self.expected,
        }


def label(exchanges: Iterable[tuple[str, str]]) -> Iterator[str]:
    for place, (message, reply) in enumerate(exchanges):
        yield f"Test (2024-02-05 16:06:{place:02d}.5): {message}"
        yield f"Agent (2024-02-05 16:06:{place:02d}.9): {reply}"
