"""LoCoMo files (`locomo10.json`): questions about a long friendship between two people, told session by session.

An object has sample_id, conversation (session_1, session_1_date_time, ...; a turn has speaker, dia_id, text) and qa with
question, answer, category and evidence as dia_ids. Category 5 is adversarial: the right answer is that it was not said.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from themis.exceptions import DatasetError
from themis.memory.actions import Action, AgentReply, Grade
from themis.memory.loaders.histories import History, HistoryDataset, Question, Session, read_rows, token_f1
from themis.memory.scoring import shortened
from themis.memory.tests.arguments import require_choice

__all__ = ["LoCoMo"]

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
SCORINGS = ("f1", "judge")


@dataclass(kw_only=True)
class LoCoMo(HistoryDataset):
    """Questions about a conversation of many sessions.

    Scores: `scoring: f1` gives the words that an answer shares with the right one, as its authors do; `scoring: judge`
    right or wrong, where words decide and else by the judge. `category` takes one kind of question. `memory_span` must
    exceed the conversation.
    """

    name: ClassVar[str] = "LoCoMo"
    description: ClassVar[str] = "The agent is told the conversations of two friends and asked about them."

    scoring: str = "f1"
    category: str = ""

    def read_histories(self, path: Path) -> Iterator[History]:
        require_choice("locomo", "scoring", self.scoring, SCORINGS)
        require_choice("locomo", "category", self.category, ("", *CATEGORIES.values()))
        for number, row in enumerate(read_rows(path)):
            try:
                yield _history(row, self.category)
            except (KeyError, TypeError, ValueError) as error:
                raise DatasetError(
                    f"{path.name}: object {number} is not one of LoCoMo: {type(error).__name__} {error}"
                ) from error

    def grade(
        self, question: str, reply: AgentReply, entry: Mapping[str, Any]
    ) -> Grade | Generator[Action, Any, Grade]:
        if self.scoring == "judge" or entry["unanswerable"]:
            return super().grade(question, reply, entry)
        shared = token_f1(reply, str(entry["answer"]))
        return Grade(shared, (f"F1 {shared:.2f} with {shortened(str(entry['answer']))!r}: {shortened(reply)}",))


def _history(row: Mapping[str, Any], category: str) -> History:
    conversation = row["conversation"]
    numbers = sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key))
    sessions = []
    for number in numbers:
        date = str(conversation.get(f"session_{number}_date_time", ""))
        lines = [(str(turn["dia_id"]), _line(turn)) for turn in conversation[f"session_{number}"]]
        sessions.append(Session(f"D{number}", lines, _moment(date), date))
    questions = []
    for entry in row["qa"]:
        kind = CATEGORIES.get(int(entry["category"]), str(entry["category"]))
        if category and kind != category:
            continue
        unanswerable = kind == "adversarial"
        # A label may name several turns at once: "D8:6; D9:17".
        evidence = [label for text in entry.get("evidence") or [] for label in re.findall(r"D\d+:\d+", str(text))]
        answer = str(entry.get("answer", entry.get("adversarial_answer", "")) if not unanswerable else "not mentioned")
        questions.append(Question(str(entry["question"]), answer, kind, tuple(evidence), unanswerable))
    if not questions:
        raise ValueError(f"it has no question of the category {category!r}")
    return History(str(row.get("sample_id", "0")), sessions, questions)


def _line(turn: Mapping[str, Any]) -> str:
    shown = f" [shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn.get('text', '')}{shown}"


def _moment(text: str) -> datetime | None:
    """`1:56 pm on 8 May, 2023`."""
    try:
        return datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y")
    except ValueError:
        return None
