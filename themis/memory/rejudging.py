"""Judges the tests of a memory run again from its stored conversation. The agent is not spoken to; earlier scores stay.

A test is played once more: what it says must be what it said, what the agent replied is what it replied then. The judge, if
one is given, is asked what it has not answered yet, or not so that it could be understood.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from themis.core.codec import encode
from themis.exceptions import ConfigurationError
from themis.memory.actions import (
    Action,
    AgentReply,
    Ask,
    Consult,
    Grade,
    Instant,
    JudgeReply,
    Line,
    Listen,
    Message,
    Say,
)
from themis.memory.examples import MEMORY_TESTS, Definition, TestExample
from themis.memory.foreign import is_own, load_foreign_example
from themis.memory.models import NO_JUDGE, Judge
from themis.memory.result_store import add_evaluation, score_rows
from themis.memory.results import RunResults, StoredResult, load_results
from themis.memory.script import Answer, ScriptDriver, parse_reply
from themis.memory.tape import REJUDGE, ConversationLog, EventBody, lines_of, read_body
from themis.storage import ExperimentStorage
from themis.storage.runs import ScoreRow, Turn
from themis.storage.writing import RunWriter

_EPOCH = datetime.fromtimestamp(0, UTC)


def rejudge_memory_run(storage: ExperimentStorage, run_id: str, judge: Judge | None = None) -> RunResults:
    """Every ended test judged anew, as the run's new current evaluation. Returns the results under it."""
    found = load_results(storage, run_id)
    with storage.open_run(run_id) as writer:
        # All of them before the first is stored: the run keeps the scores it has if the judge cannot be asked to the end.
        ended = [result for result in found.results if result.ended]
        grades = list(_grades(storage, writer, found, judge, ended))
        number = 1 + sum(way.name.startswith("rejudged") for way in storage.reader(run_id).list_evaluations())
        name = f"rejudged {number}" + (f" by {judge.name}" if judge is not None else "")
        own = storage.reader(run_id).identity.get("judge") or None
        config = {"extractor": None, "judge": own if judge is None else judge.name, "name": name}
        add_evaluation(storage, writer, [name], config, [rows for rows, _ in grades])
    return load_results(storage, run_id)


def rejudge_ungraded(
    storage: ExperimentStorage,
    writer: RunWriter,
    run_id: str,
    evaluation: int,
    judge: Judge,
    test_ids: Container[str],
    *,
    asked: Callable[[EventBody], None],
) -> None:
    """Judges ended tests that have no verdict once more, in the same evaluation; `asked` is told what the judge used."""
    found = load_results(storage, run_id, str(evaluation))
    ungraded = [result for result in found.results if result.ended and result.test_id in test_ids]
    for rows, grade in _grades(storage, writer, found, judge, ungraded, asked):
        if not grade.failed:
            writer.commit_scores(evaluation, rows)


def _grades(
    storage: ExperimentStorage,
    writer: RunWriter,
    found: RunResults,
    judge: Judge | None,
    results: Sequence[StoredResult],
    asked: Callable[[EventBody], None] = lambda body: None,
) -> Iterator[tuple[list[ScoreRow], Grade]]:
    run_id = found.run_id
    samples = {sample.item_id: sample for sample in storage.reader(run_id).samples()}
    answers = _StoredJudge(storage, writer, run_id, judge, asked)
    # One conversation for all, or one for each test.
    shared = None if found.isolated else list(lines_of(storage.reader(run_id).turns()))
    for result in results:
        sample = samples[result.test_id]
        lines = list(lines_of(storage.reader(run_id).turns(test_id=result.test_id))) if shared is None else shared
        try:
            example = load_stored_example(sample.row)
        except ConfigurationError as error:
            grade = Grade.failure(str(error))
        else:
            heard = list_heard(result.messages, result.heard) or lines
            grade = replay(example, result.messages, Conversation(heard, partial(answers.answer, result.test_id)))
        yield score_rows(sample.position, str(sample.row["dataset"]), grade), grade


def list_heard(messages: Sequence[Message], heard: Iterable[Sequence[str]]) -> list[Line]:
    """What others said after a test's own messages, where its record tells it and no conversation is stored."""
    first = len(messages) + 1
    now = next((message.now for message in reversed(messages) if message.now), _EPOCH)
    return [Line(turn, None, message, reply, now) for turn, (message, reply) in enumerate(heard, start=first)]


def load_stored_example(row: Definition) -> TestExample:
    """A test as it lies in the store, ready to be played."""
    kind = str(row.get("kind", ""))
    if kind not in MEMORY_TESTS:
        raise ConfigurationError(f"there is no scorer for tests of kind {kind or row.get('dataset')!r}")
    dataset_class, arguments = MEMORY_TESTS.get(kind), row.get("arguments") or {}
    if not is_own(arguments):
        return load_foreign_example(dataset_class, row)
    known = dataset_class.arguments()
    given = {name: value for name, value in arguments.items() if name in known}
    return dataset_class(**given).load_example(str(row["example_id"]), dict(row))


# --- playing a test from its record -----------------------------------------------------------------------------------


class _StoredJudge:
    """The judge of a run, or another one: what it has said already, and it itself for what it has not been asked."""

    def __init__(
        self,
        storage: ExperimentStorage,
        writer: RunWriter,
        run_id: str,
        judge: Judge | None,
        asked: Callable[[EventBody], None],
    ) -> None:
        self._writer, self._judge, self._asked = writer, judge, asked
        own = storage.reader(run_id).identity.get("judge", "")
        name = own if judge is None else judge.name
        # What was said about each test, by what was asked.
        self._said: dict[str | None, dict[str, list[JudgeReply]]] = {}
        self._next = 0
        for row in storage.reader(run_id).turns():
            self._next = row.seq + 1
            if row.kind not in ("consult", REJUDGE):
                continue
            body = read_body(row)
            if body.prompt and (own if row.kind == "consult" else body.judge) == name:
                reply = JudgeReply(body.answer or "", body.failure)
                self._said.setdefault(row.test_id, {}).setdefault(body.prompt, []).append(reply)

    def answer(self, test_id: str, consult: Consult) -> JudgeReply:
        """What was said if it can be parsed; else the judge is asked, and asked again another time."""
        known = self._said.get(test_id, {}).get(consult.prompt, [])
        for reply in known:
            if not parse_reply(consult, reply).failed:
                return reply
        if self._judge is not None:
            return self._ask(self._judge, test_id, consult)
        return known[-1] if known else JudgeReply(failure=NO_JUDGE)

    def _ask(self, judge: Judge, test_id: str, consult: Consult) -> JudgeReply:
        began = time.perf_counter()
        said = judge.answer(consult.prompt)
        body = EventBody.of(said, time.perf_counter() - began)
        body.prompt, body.purpose, body.answer, body.judge = consult.prompt, consult.purpose, said.text, judge.name
        self._writer.append_turns([Turn(self._next, REJUDGE, test_id, encode(body))])
        self._next += 1
        self._writer.add_judge_cost(said.calls, said.cost_usd)
        self._asked(body)
        return JudgeReply(said.text)


@dataclass(frozen=True)
class Conversation:
    """What a replayed test hears besides its own replies: everyone's exchanges, and the judge."""

    lines: Sequence[Line] = ()
    consult: Callable[[Consult], JudgeReply] = lambda consult: JudgeReply(failure=NO_JUDGE)


class _Diverged(Exception):
    """The test would now go on otherwise than it did."""


class _Replay:
    """Answers a script from what was said when it was played."""

    def __init__(self, example: TestExample, said: Sequence[Message], conversation: Conversation) -> None:
        self._example = example
        self._said = said
        self._next = 0
        self._consult = conversation.consult
        # What is still to be heard, and what was.
        self._lines, self._log = deque(conversation.lines), ConversationLog()
        self._turn = 0
        self._now = next((message.now for message in said if message.now), _EPOCH)
        self._tokens = 0

    def answer(self, action: Action) -> Answer:
        match action:
            case Say() | Ask():
                return self._speak(action.text)
            case Listen():
                return self._listen()
            case Consult():
                return self._consult(action)
            case _:
                return self._wait()

    def _speak(self, text: str) -> AgentReply:
        if self._next >= len(self._said):
            raise _Diverged(f"it would now say {text[:80]!r} where the stored test had ended")
        message = self._said[self._next]
        # The text of a question about time depends on the clock's details; what it asks does not.
        if message.text != text and not (self._example.is_temporal and message.question):
            raise _Diverged(f"message {self._next + 1} was {message.text[:80]!r} and would now be {text[:80]!r}")
        self._next += 1
        self._turn, self._now = message.turn, message.now or self._now
        self._tokens = message.tokens_before
        return self._reply(message.reply, message.text, self._example.test_id)

    def _wait(self) -> Instant:
        """The moment at which the test spoke next is when its wait was over, as nearly as is known."""
        if self._next < len(self._said):
            coming = self._said[self._next]
            return Instant(coming.now or self._now, coming.tokens_before)
        return Instant(self._now, self._tokens)

    def _listen(self) -> AgentReply | None:
        if not self._lines:
            return None
        line = self._lines[0]
        self._turn, self._now = line.turn, line.now
        return self._reply(line.reply, line.message, line.test_id)

    def _reply(self, reply: str, message: str, test_id: str | None) -> AgentReply:
        while self._lines and self._lines[0].turn <= self._turn:
            self._log.append(self._lines.popleft())
        return AgentReply(
            reply, turn=self._turn, now=self._now, tokens=self._tokens, message=message, test_id=test_id, log=self._log
        )


def replay(example: TestExample, said: Sequence[Message], conversation: Conversation) -> Grade:
    """The verdict of a test on what was said then; a failure where the stored conversation cannot give one."""
    try:
        return ScriptDriver(example.play).run(_Replay(example, said, conversation).answer)
    except _Diverged as error:
        return Grade.failure(f"cannot be judged from the stored conversation: {error}")
    except Exception as error:  # boundary: a judge is a model, or the user's code
        return Grade.failure(f"the judge did not answer: {type(error).__name__}: {error}")
