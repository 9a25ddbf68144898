"""The files of LongMemEval, LoCoMo and BABILong as histories with questions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from themis.exceptions import DatasetError
from themis.memory.actions import AgentReply, Grade
from themis.memory.loaders.histories import Entry, History, HistoryDataset, Question, Row, Session, read_rows, token_f1
from themis.memory.scoring.claims import find_claims
from themis.memory.scoring.words import fold, shorten
from themis.memory.tests.kind import ScoreRow, one_of

# --- LongMemEval (`longmemeval_s.json`, `_m`, `_oracle`): one question about a user's chats with an assistant -----------
#
# An object has question_id, question_type, question, question_date, answer, haystack_sessions with their ids and dates,
# answer_session_ids; a turn that holds the answer has `has_answer`. Ids that end in `_abs` cannot be answered.


@dataclass(kw_only=True)
class LongMemEval(HistoryDataset):
    """Questions about long chat histories: extraction, several sessions, time, updates, abstention.

    Scores: perfect 1, memoryless 0. Right is what recites the answer; what shares no word with it is wrong; the judge
    decides between. A question that cannot be answered wants the agent to say so. `memory_span` must exceed the history.
    """

    kind: ClassVar[str] = "longmemeval"
    name: ClassVar[str] = "LongMemEval"
    description: ClassVar[str] = "The agent is given dated chats of a user and asked a question about them."

    # A type of question, such as multi-session or temporal-reasoning; empty for all.
    question_type: str = ""

    def read_histories(self, path: Path) -> Iterator[History]:
        return self.read_objects(path, self._read_history)

    def _read_history(self, row: Row) -> History | None:
        if self.question_type and row.get("question_type") != self.question_type:
            return None
        ids, dates = list(row["haystack_session_ids"]), list(row.get("haystack_dates") or [])
        sessions, evidence = [], []
        answering = set(row.get("answer_session_ids") or [])
        for number, (session_id, turns) in enumerate(zip(ids, row["haystack_sessions"], strict=True)):
            date = str(dates[number]) if number < len(dates) else ""
            lines = [(f"{session_id}:{turn}", f"{said['role']}: {said['content']}") for turn, said in enumerate(turns)]
            holding = [label for (label, _), said in zip(lines, turns, strict=True) if said.get("has_answer")]
            if session_id in answering:
                evidence += holding or [session_id]
            sessions.append(
                Session(session_id, lines, _parse_time(re.sub(r"\s*\(\w+\)\s*", " ", date), "%Y/%m/%d %H:%M"), date)
            )
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


# --- LoCoMo (`locomo10.json`): questions about a long friendship between two people, told session by session -----------
#
# An object has sample_id, conversation (session_1, session_1_date_time, ...; a turn has speaker, dia_id, text) and qa with
# question, answer, category and evidence as dia_ids. Category 5 is adversarial: the right answer is that it was not said.

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


@dataclass(kw_only=True)
class LoCoMo(HistoryDataset):
    """Questions about a conversation of many sessions.

    Scores: `scoring: f1` gives the words that an answer shares with the right one, as its authors do; `scoring: judge`
    right or wrong, where words decide and else by the judge. `category` takes one kind of question. `memory_span` must
    exceed the conversation.
    """

    kind: ClassVar[str] = "locomo"
    name: ClassVar[str] = "LoCoMo"
    description: ClassVar[str] = "The agent is told the conversations of two friends and asked about them."

    scoring: str = one_of("f1", ("f1", "judge"))
    category: str = one_of("", ("", *CATEGORIES.values()))

    def read_histories(self, path: Path) -> Iterator[History]:
        return self.read_objects(path, self._read_history)

    def _read_history(self, row: Row) -> History:
        conversation = row["conversation"]
        numbers = sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key))
        sessions = []
        for number in numbers:
            date = str(conversation.get(f"session_{number}_date_time", ""))
            lines = [(str(turn["dia_id"]), _format_turn(turn)) for turn in conversation[f"session_{number}"]]
            sessions.append(Session(f"D{number}", lines, _parse_time(date, "%I:%M %p on %d %B, %Y"), date))
        questions = [question for entry in row["qa"] if (question := self._read_question(entry)) is not None]
        if not questions:
            raise ValueError(f"it has no question of the category {self.category!r}")
        return History(str(row.get("sample_id", "0")), sessions, questions)

    def _read_question(self, entry: Row) -> Question | None:
        kind = CATEGORIES.get(int(entry["category"]), str(entry["category"]))
        if self.category and kind != self.category:
            return None
        unanswerable = kind == "adversarial"
        # A label may name several turns at once: "D8:6; D9:17".
        evidence = [label for text in entry.get("evidence") or [] for label in re.findall(r"D\d+:\d+", str(text))]
        answer = str(entry.get("answer", entry.get("adversarial_answer", "")) if not unanswerable else "not mentioned")
        return Question(str(entry["question"]), answer, kind, tuple(evidence), unanswerable)

    def grade(self, question: str, reply: AgentReply, entry: Entry) -> ScoreRow:
        if self.scoring == "judge" or entry["unanswerable"]:
            return super().grade(question, reply, entry)
        shared = token_f1(reply, str(entry["answer"]))
        return Grade(shared, (f"F1 {shared:.2f} with {shorten(str(entry['answer']))!r}: {shorten(reply)}",))


def _format_turn(turn: Row) -> str:
    shown = f" [shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn.get('text', '')}{shown}"


# --- BABILong: a few facts of bAbI in the text of books, as rows with input, question and target (JSON or JSONL) -------


@dataclass(kw_only=True)
class BabiLong(HistoryDataset):
    """Facts hidden in a long text, and a question that needs them.

    Scores: perfect 1, memoryless 0; 1 if the target is claimed and no other target of the file is. The files do not say
    where the facts lie, so that the whole text counts as needed. `memory_span` must exceed the text.
    """

    kind: ClassVar[str] = "babilong"
    name: ClassVar[str] = "BABILong"
    description: ClassVar[str] = "The agent reads a long text with a few facts in it and is asked about them."

    def read_histories(self, path: Path) -> Iterator[History]:
        rows = read_rows(path)
        targets = sorted({str(row.get("target", "")).strip() for row in rows})
        for number, row in enumerate(rows):
            missing = [name for name in ("input", "question", "target") if name not in row]
            if missing:
                raise DatasetError(f"{path.name}: row {number} has no {missing[0]!r}, which BABILong's rows have")
            lines = [("", line) for line in str(row["input"]).splitlines() if line.strip()]
            question = Question(str(row["question"]).strip(), str(row["target"]).strip(), rivals=targets)
            yield History(str(row.get("id", number)), [Session("text", lines)], [question])

    def grade(self, question: str, reply: AgentReply, entry: Entry) -> ScoreRow:
        wanted = str(entry["answer"])
        # A target may be a list of words, all of which are wanted.
        parts = {part.strip() for part in wanted.split(",")}
        known = {part.strip() for target in (*entry.get("rivals", ()), wanted) for part in target.split(",")} - {""}
        claimed = {fold(found) for found in find_claims(reply, known)}
        right = claimed == {fold(part) for part in parts}
        return Grade.when(right, f"expected {wanted!r}, got: {shorten(reply)}")


def _parse_time(text: str, layout: str) -> datetime | None:
    try:
        return datetime.strptime(text.strip(), layout)
    except ValueError:
        return None
