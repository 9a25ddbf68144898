"""LongMemEval files (`longmemeval_s.json`, `_m`, `_oracle`): one question about a user's chats with an assistant.

An object has question_id, question_type, question, question_date, answer, haystack_sessions with their ids and dates,
answer_session_ids; a turn that holds the answer has `has_answer`. Ids that end in `_abs` cannot be answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from themis.exceptions import DatasetError
from themis.memory.loaders.histories import History, HistoryDataset, Question, Session, read_rows

__all__ = ["LongMemEval"]


@dataclass(kw_only=True)
class LongMemEval(HistoryDataset):
    """Questions about long chat histories: extraction, several sessions, time, updates, abstention.

    Scores: perfect 1, memoryless 0. Right is what recites the answer; what shares no word with it is wrong; the judge
    decides between. A question that cannot be answered wants the agent to say so. `memory_span` must exceed the history.
    """

    name: ClassVar[str] = "LongMemEval"
    description: ClassVar[str] = "The agent is given dated chats of a user and asked a question about them."

    # A type of question, such as multi-session or temporal-reasoning; empty for all.
    question_type: str = ""

    def read_histories(self, path: Path) -> Iterator[History]:
        for number, row in enumerate(read_rows(path)):
            if self.question_type and row.get("question_type") != self.question_type:
                continue
            try:
                yield _history(row)
            except (KeyError, TypeError, ValueError) as error:
                raise DatasetError(
                    f"{path.name}: object {number} is not one of LongMemEval: {type(error).__name__} {error}"
                ) from error


def _history(row: Mapping[str, Any]) -> History:
    ids, dates = list(row["haystack_session_ids"]), list(row.get("haystack_dates") or [])
    sessions, evidence = [], []
    answering = set(row.get("answer_session_ids") or [])
    for number, (session_id, turns) in enumerate(zip(ids, row["haystack_sessions"], strict=True)):
        date = str(dates[number]) if number < len(dates) else ""
        lines = [(f"{session_id}:{turn}", f"{said['role']}: {said['content']}") for turn, said in enumerate(turns)]
        holding = [label for (label, _), said in zip(lines, turns, strict=True) if said.get("has_answer")]
        if session_id in answering:
            evidence += holding or [session_id]
        sessions.append(Session(session_id, lines, _moment(date), date))
    question_id = str(row["question_id"])
    asked = f"[{row['question_date']}] " if row.get("question_date") else ""
    question = Question(
        text=f"{asked}{row['question']}",
        answer=str(row["answer"]),
        kind=str(row.get("question_type", "")),
        evidence=tuple(evidence),
        unanswerable=question_id.endswith("_abs"),
    )
    return History(question_id, sessions, [question])


def _moment(text: str) -> datetime | None:
    """`2023/05/20 (Sat) 02:21`."""
    try:
        return datetime.strptime(re.sub(r"\s*\(\w+\)\s*", " ", text).strip(), "%Y/%m/%d %H:%M")
    except ValueError:
        return None
