"""Judges the tests of a memory run again from its stored conversation. The agent is not spoken to; earlier scores stay.

A test is played once more: what it says must be what it said, what the agent replied is what it replied then. Only the
judge, if one is given, is really asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from themis.core.codec import decode, encode
from themis.core.fingerprint import digest, fingerprint
from themis.exceptions import ConfigurationError
from themis.experiment.report import build_report, summarise_run
from themis.memory.actions import Ask, Consult, Grade, Heard, Line, Listen, Moment, Ruling, Say, Script, Wait
from themis.memory.evaluations import judged_ways
from themis.memory.examples import MEMORY_TESTS, TestExample
from themis.memory.judging import NO_JUDGE, Judge
from themis.memory.ledger import OVERALL
from themis.memory.results import Message, RunResults, StoredResult, load_results
from themis.memory.tape import lines_of, read_body
from themis.storage import ExperimentStorage
from themis.storage.reading import StoredSample
from themis.storage.records import FAILED, SCORED, Verdict
from themis.storage.writing import RunWriter

__all__ = ["Conversation", "graded_verdicts", "rejudge_memory_run", "replay", "stored_example"]

_EPOCH = datetime.fromtimestamp(0, UTC)


def rejudge_memory_run(storage: ExperimentStorage, run_id: str, judge: Judge | None = None) -> RunResults:
    """Every ended test judged anew, as the run's new current evaluation. Returns the results under it."""
    found = load_results(storage, run_id)
    samples = {sample.item_id: sample for sample in storage.reader(run_id).samples()}
    with storage.open_run(run_id) as writer:
        ask = _Asking(storage, writer, judge) if judge is not None else None
        # One conversation for all, or one for each test.
        shared = None if found.isolated else list(lines_of(storage.turns(run_id)))
        grades = {
            result.test_id: _graded(storage, run_id, samples[result.test_id], result, shared, ask)
            for result in found.results
            if result.ended and result.test_id in samples
        }
        number = 1 + sum(way.name.startswith("rejudged") for way in judged_ways(storage, run_id))
        name = f"rejudged {number}" + (f" by {judge.name}" if judge is not None else "")
        config = {"metrics": [OVERALL], "extractor": None, "judge": None if judge is None else judge.name, "name": name}
        evaluation = writer.open_evaluation(fingerprint(["memory", name]), config)
        for test_id, grade in grades.items():
            sample = samples[test_id]
            writer.commit_verdicts(evaluation, graded_verdicts(sample.position, str(sample.row["dataset"]), grade))
        summary = summarise_run(build_report(storage, run_id, evaluation))
        writer.update(summary=encode({**found.run.summary, **summary}))
    return load_results(storage, run_id)


def _graded(
    storage: ExperimentStorage,
    run_id: str,
    sample: StoredSample,
    result: StoredResult,
    shared: list[Line] | None,
    ask: _Asking | None,
) -> Grade:
    try:
        example = stored_example(sample.row)
    except ConfigurationError as error:
        return Grade.failure(str(error))
    lines = list(lines_of(storage.turns(run_id, test_id=result.test_id))) if shared is None else shared
    return replay(example, result.messages, Conversation(lines, _rulings(storage, run_id, result.test_id), ask))


def _rulings(storage: ExperimentStorage, run_id: str, test_id: str) -> dict[str, Ruling]:
    """What the judge said during the run, by what it was asked."""
    found = {}
    for row in storage.turns(run_id, test_id=test_id):
        if row.kind == "consult":
            body = read_body(row)
            if body.prompt:
                found[body.prompt] = Ruling(text=body.answer or "", failure=body.failure)
    return found


def stored_example(row: Mapping[str, Any]) -> TestExample:
    """A test as it lies in the store, ready to be played."""
    kind = str(row.get("kind", ""))
    if kind not in MEMORY_TESTS:
        raise ConfigurationError(f"there is no scorer for tests of kind {kind or row.get('dataset')!r}")
    dataset_class = MEMORY_TESTS.get(kind)
    known = dataset_class.arguments()
    given = {name: value for name, value in (row.get("arguments") or {}).items() if name in known}
    return dataset_class(**given).load_example(str(row["example_id"]), dict(row))


# --- playing a test from its record -----------------------------------------------------------------------------------


class _Asking:
    """The judge, asked each question once and never again."""

    def __init__(self, storage: ExperimentStorage, writer: RunWriter, judge: Judge) -> None:
        self._storage, self._writer, self._judge = storage, writer, judge

    def __call__(self, prompt: str) -> Ruling:
        key = digest("memory judge", self._judge.name, prompt)[:32]
        stored = self._storage.find_judgement(key)
        if stored is not None:
            return Ruling(text=str(decode(stored)["text"]))
        completion = self._judge.answer(prompt)
        body = encode({"text": completion.text})
        self._writer.save_judgement(key, body, calls=completion.calls, cost_usd=completion.cost_usd or 0.0)
        return Ruling(text=completion.text)


@dataclass(frozen=True)
class Conversation:
    """What a replayed test hears besides its own replies: everyone's exchanges, and the judge."""

    lines: Sequence[Line] = ()
    rulings: Mapping[str, Ruling] | None = None
    ask: Any = None

    def ruling(self, consult: Consult) -> Ruling:
        if self.ask is not None:
            raw = self.ask(consult.prompt)
        else:
            raw = (self.rulings or {}).get(consult.prompt) or Ruling(failure=NO_JUDGE)
        if raw.failure is not None:
            return Ruling(text=raw.text, failure=raw.failure)
        try:
            return Ruling(value=consult.parse(raw.text), text=raw.text)
        except ValueError as error:
            return Ruling(text=raw.text, failure=str(error))


class _Heard:
    """The conversation up to a turn, as callbacks see it."""

    def __init__(self, lines: Sequence[Line], until: int) -> None:
        self._lines, self._until = lines, until

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Line]:
        return self.after(0)

    def after(self, turn: int) -> Iterator[Line]:
        return (line for line in self._lines if turn < line.turn <= self._until)


class _Diverged(Exception):
    """The test would now go on otherwise than it did."""


class _Replay:
    def __init__(self, example: TestExample, said: Sequence[Message], conversation: Conversation) -> None:
        self._example = example
        self._said = said
        self._next = 0
        self._conversation = conversation
        self._turn = 0
        self._now = next((message.now for message in said if message.now), _EPOCH)
        self._tokens = 0
        self._told_over = False

    def run(self, script: Script) -> Grade:
        grade: Grade | None = None
        answer: Any = None
        while True:
            try:
                action = script.send(answer)
            except StopIteration:
                return grade or Grade.failure("the script ended without a grade")
            answer = None
            match action:
                case Say() | Ask():
                    answer = self._speak(action.text)
                case Wait():
                    answer = self._wait()
                case Listen():
                    answer = self._listen()
                case Consult():
                    answer = self._conversation.ruling(action)
                case Grade():
                    grade = action

    def _speak(self, text: str) -> Heard:
        if self._next >= len(self._said):
            raise _Diverged(f"it would now say {text[:80]!r} where the stored test had ended")
        message = self._said[self._next]
        # The text of a question about time depends on the clock's details; what it asks does not.
        if message.text != text and not (self._example.is_temporal and message.question):
            raise _Diverged(f"message {self._next + 1} was {message.text[:80]!r} and would now be {text[:80]!r}")
        self._next += 1
        self._turn, self._now = message.turn, message.now or self._now
        self._tokens = message.tokens_before
        return self._heard(message.reply, message.text, self._example.test_id)

    def _wait(self) -> Moment:
        """The moment at which the test spoke next is when its wait was over, as nearly as is known."""
        if self._next < len(self._said):
            coming = self._said[self._next]
            return Moment(coming.now or self._now, coming.tokens_before)
        return Moment(self._now, self._tokens)

    def _listen(self) -> Heard | None:
        line = next((line for line in self._conversation.lines if line.turn > self._turn), None)
        if line is None:
            if self._told_over:
                raise _Diverged("it would now listen on after the conversation was over")
            self._told_over = True
            return None
        self._turn, self._now = line.turn, line.now
        return self._heard(line.reply, line.message, line.test_id)

    def _heard(self, reply: str, message: str, test_id: str | None) -> Heard:
        log = _Heard(self._conversation.lines, self._turn)
        return Heard.at(
            reply, turn=self._turn, now=self._now, tokens=self._tokens, message=message, test_id=test_id, log=log
        )


def replay(example: TestExample, said: Sequence[Message], conversation: Conversation) -> Grade:
    """The verdict of a test on what was said then; a failure where the stored conversation cannot give one."""
    try:
        return _Replay(example, said, conversation).run(example.play())
    except _Diverged as error:
        return Grade.failure(f"cannot be judged from the stored conversation: {error}")
    except Exception as error:  # boundary: a test is the user's code
        return Grade.failure(f"the test raised {type(error).__name__}: {error}")


def graded_verdicts(
    position: int, dataset: str, grade: Grade, details: Mapping[str, Any] | None = None
) -> list[Verdict]:
    """The rows of one verdict: under the overall metric, and under the dataset's name."""
    names: Iterable[str] = (OVERALL, dataset)
    if grade.failed:
        text = encode({"failures": list(grade.reasons) or ["no verdict and no reason given"]})
        return [Verdict(position, name, 0, None, FAILED, text) for name in names]
    text = encode({"details": {"reasons": list(grade.reasons), **(details or {})}, "metadata": {}})
    return [Verdict(position, name, 0, grade.score, SCORED, text) for name in names]
