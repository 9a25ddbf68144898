"""BABILong files: a few facts of bAbI in the text of books, as rows with input, question and target (JSON or JSONL)."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from themis.exceptions import DatasetError
from themis.memory.actions import Action, AgentReply, Grade
from themis.memory.loaders.histories import History, HistoryDataset, Question, Session, read_rows
from themis.memory.scoring import claims, folded, shortened

__all__ = ["BabiLong"]


@dataclass(kw_only=True)
class BabiLong(HistoryDataset):
    """Facts hidden in a long text, and a question that needs them.

    Scores: perfect 1, memoryless 0; 1 if the target is claimed and no other target of the file is. The files do not say
    where the facts lie, so that the whole text counts as needed. `memory_span` must exceed the text.
    """

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

    def grade(
        self, question: str, reply: AgentReply, entry: Mapping[str, Any]
    ) -> Grade | Generator[Action, Any, Grade]:
        wanted = str(entry["answer"])
        # A target may be a list of words, all of which are wanted.
        parts = {part.strip() for part in wanted.split(",")}
        known = {part.strip() for target in (*entry.get("rivals", ()), wanted) for part in target.split(",")} - {""}
        claimed = {folded(found) for found in claims(reply, known)}
        right = claimed == {folded(part) for part in parts}
        return Grade.when(right, f"expected {wanted!r}, got: {shortened(reply)}")
