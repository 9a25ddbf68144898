"""Other benchmarks' files as memory tests: histories of dated sessions are told one by one, questions asked after or between.

The user supplies the file, `data_location` names it. Which messages hold the answer to a question is kept with the test, so
that finding them can be scored apart from the answer, and distances are those of the evidence.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, NotRequired, TypedDict

from themis.core.tokens import count_tokens
from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.actions import AgentReply, Ask, Grade, Grading, Say, Script, Wait
from themis.memory.examples import LAST_SHARE, TestExample
from themis.memory.scoring.claims import abstains, find_claims
from themis.memory.scoring.lists import recites
from themis.memory.scoring.words import fold, shorten, split_words
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no, one_of, whole_number

# Of a JSON file: whatever it holds is checked where it is read.
Row = Mapping[str, Any]
# What the format of a message adds to its text.
_HEADROOM_TOKENS = 64


@dataclass(frozen=True)
class Session:
    """A conversation of the history: its lines, each with the label by which evidence names it."""

    label: str
    lines: Sequence[tuple[str, str]]
    when: datetime | None = None
    shown_when: str = ""


@dataclass(frozen=True)
class Question:
    """`evidence` are labels of sessions or lines, `rivals` answers that would be wrong.

    An unanswerable one is right if the agent says that it does not know.
    """

    text: str
    answer: str
    kind: str = ""
    evidence: Sequence[str] = ()
    unanswerable: bool = False
    rivals: Sequence[str] = ()


@dataclass(frozen=True)
class History:
    history_id: str
    sessions: Sequence[Session]
    questions: Sequence[Question] = field(default_factory=list)


class Entry(TypedDict):
    """What is stored of a question beside its text: the right answer, and the lines of the script that hold it."""

    answer: str
    kind: str
    unanswerable: bool
    labels: list[str]
    lines: list[int]
    rivals: NotRequired[list[str]]


@dataclass(kw_only=True)
class HistoryDataset(BuiltinTest):
    """Tests from a file of histories. `ask` is "end", or "interleaved": as soon as a question's evidence has been told.

    A test is one history with its questions, at most `questions` of them; its score is their mean.
    """

    data_location: str = ""
    ask: str = one_of("end", ("end", "interleaved"))
    questions: int = whole_number(10, least=1)

    @abstractmethod
    def read_histories(self, path: Path) -> Iterator[History]:
        """The histories of a file in its public layout."""

    def read_objects(self, path: Path, read_history: Callable[[Row], History | None]) -> Iterator[History]:
        """One history an object; an object that cannot be read is an error that names it, None is left out."""
        for number, row in enumerate(read_rows(path)):
            try:
                history = read_history(row)
            except (KeyError, TypeError, ValueError) as error:
                raise DatasetError(
                    f"{path.name}: object {number} is not one of {self.name}: {type(error).__name__} {error}"
                ) from error
            if history is not None:
                yield history

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        self.check_arguments()
        if not self.data_location:
            raise ConfigurationError(f"memory test {self.name}: data_location must name the benchmark's file")
        path = Path(self.data_location)
        if not path.is_file():
            raise DatasetError(f"memory test {self.name}: there is no file {self.data_location!r}")
        histories = list(self.read_histories(path))
        if len(histories) < num_examples:
            raise DatasetError(f"{path.name} has {len(histories)} histories, {num_examples} wanted")
        return [self._tell_history(history) for history in histories[:num_examples]]

    def _tell_history(self, history: History) -> TestExample:
        messages, places = self._write_messages(history)
        last_of = {label: max(found) for label, found in places.items()}
        asked: dict[int, list[Question]] = {}
        for question in history.questions[: self.questions]:
            told = max((last_of[label] for label in question.evidence if label in last_of), default=len(messages) - 1)
            asked.setdefault(told if self.ask == "interleaved" else len(messages) - 1, []).append(question)
        script: list[str] = []
        is_question: list[bool] = []
        waits: list[Wait] = []
        questions: list[Entry] = []
        lines_of: dict[int, int] = {}
        for number, (text, wait) in enumerate(messages):
            lines_of[number] = len(script)
            script.append(text)
            is_question.append(False)
            share = LAST_SHARE * (number + 1) / len(messages)
            waits.append(Wait(time=wait, until_share=share))
            for question in asked.get(number, ()):
                needed = sorted({lines_of[place] for label in question.evidence for place in places.get(label, ())})
                entry = Entry(
                    answer=question.answer,
                    kind=question.kind,
                    unanswerable=question.unanswerable,
                    labels=list(question.evidence),
                    lines=needed,
                )
                if question.rivals:
                    entry["rivals"] = list(question.rivals)
                questions.append(entry)
                script.append(question.text)
                is_question.append(True)
                waits.append(Wait())
        return TestExample(
            dataset=self,
            example_id=history.history_id,
            script=script,
            is_question=is_question,
            waits=waits,
            expected_responses=[entry["answer"] for entry in questions],
            material={"evidence": {"questions": questions}},
        )

    def _write_messages(self, history: History) -> tuple[list[tuple[str, timedelta | None]], dict[str, list[int]]]:
        """The messages with the time that passes after each, and where each label lies in them."""
        messages: list[tuple[str, timedelta | None]] = []
        places: dict[str, list[int]] = {}
        most = max(_HEADROOM_TOKENS, self.max_message_size - _HEADROOM_TOKENS)
        for number, session in enumerate(history.sessions):
            following = history.sessions[number + 1].when if number + 1 < len(history.sessions) else None
            for piece in _split_session(session, most):
                for label in (session.label, *(label for label, _ in piece)):
                    if label and len(messages) not in places.setdefault(label, []):
                        places[label].append(len(messages))
                head = f"[{session.shown_when}]\n" if session.shown_when else ""
                messages.append((head + "\n".join(text for _, text in piece), None))
            if session.when is not None and following is not None and following > session.when and messages:
                messages[-1] = (messages[-1][0], following - session.when)
        return messages, places

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [
            "You have not told me." if entry["unanswerable"] else entry["answer"]
            for entry in example.material["evidence"]["questions"]
        ]

    def play(self, example: TestExample) -> Script:
        entries = iter(example.material["evidence"]["questions"])
        ideals = iter(self.ideal_answers(example))
        grades: list[Grade] = []
        for line, is_question, wait in zip(example.script, example.is_question, example.waits, strict=True):
            if not is_question:
                yield Say(line)
            else:
                entry = next(entries)
                needs = () if entry["unanswerable"] else tuple(entry["lines"]) or None
                reply = yield Ask(line, ideal=next(ideals), needs=needs)
                verdict = self.grade(line, reply, entry)
                grades.append((yield from verdict) if isinstance(verdict, Generator) else verdict)
            if wait != Wait():
                yield wait
        yield Grade.mean(grades)

    def grade(self, question: str, reply: AgentReply, entry: Entry) -> Grading:
        """The verdict on one answer: by words where they decide, by the judge where they do not."""
        if entry["unanswerable"]:
            return Grade.when(abstains(reply), f"nothing was told about it; the reply: {shorten(reply)}")
        answer = str(entry["answer"])
        if recites(reply, answer):
            return Grade(1.0, (f"says {shorten(answer)!r}",))
        if token_f1(reply, answer) == 0.0:
            return Grade(0.0, (f"expected {shorten(answer)!r}, nothing of it is in: {shorten(reply)}",))
        return ask_yes_or_no(
            f"Question: {question}\nRight answer: {answer}\nGiven answer: {reply}\n\n"
            "Does the given answer contain the right answer, in whatever words, and nothing against it?",
            purpose="is this the answer?",
            undecided=f"only a judge (--judge) can compare it with {shorten(answer)!r}",
            reason=f"the judge compared it with {shorten(answer)!r}",
        )


def token_f1(reply: str, answer: str) -> float:
    """Harmonic mean of precision and recall over words, without articles."""
    said, wanted = (Counter(word for word in split_words(text) if word not in _ARTICLES) for text in (reply, answer))
    common = sum((said & wanted).values())
    return 2 * common / (sum(said.values()) + sum(wanted.values())) if common else 0.0


_ARTICLES = frozenset({"a", "an", "the"})


def _split_session(session: Session, most: int) -> Iterator[list[tuple[str, str]]]:
    """A session's lines in messages of at most so many tokens; a line longer than that is cut between words."""
    piece: list[tuple[str, str]] = []
    used = 0
    for label, text in session.lines:
        for part in _split_line(text, most):
            tokens = count_tokens(part) + 1
            if piece and used + tokens > most:
                yield piece
                piece, used = [], 0
            piece.append((label, part))
            used += tokens
    if piece:
        yield piece


def _split_line(text: str, most: int) -> Iterator[str]:
    while count_tokens(text) > most:
        # A token has at least one character, so this many characters never exceed the limit by much.
        end = text.rfind(" ", 0, most * 3)
        end = end if end > 0 else most * 3
        head, text = text[:end], text[end:].lstrip()
        yield head
    yield text


def read_rows(path: Path) -> list[Row]:
    """The objects of a JSON list or of JSON lines; what is neither is an error that names the line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path.name} cannot be read: {error}") from error
    try:
        content = json.loads(text)
    except ValueError:
        content = []
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                try:
                    content.append(json.loads(line))
                except ValueError as error:
                    raise DatasetError(f"{path.name} line {number} is not JSON: {error}") from error
    rows = content if isinstance(content, list) else [content]
    if not all(isinstance(row, dict) for row in rows):
        raise DatasetError(f"{path.name} must hold a list of JSON objects")
    return rows


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

    def grade(self, question: str, reply: AgentReply, entry: Entry) -> Grading:
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

    def grade(self, question: str, reply: AgentReply, entry: Entry) -> Grading:
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
