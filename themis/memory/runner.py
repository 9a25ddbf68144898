"""One memory run from start to report: play the tape as far as it goes, then the world, and keep everything that is said.

`run` is what `run_benchmark.py` calls. A conversation is one scheduler, one tape, one agent; a run has one conversation, or,
with isolated tests, one for each test.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from themis.core.redaction import Redactor
from themis.core.tokens import tokenizer
from themis.exceptions import (
    ConfigurationError,
    EvaluationError,
    RunFailedError,
    RunInterrupted,
    StorageError,
    ThemisError,
)
from themis.memory import ledger, rejudging
from themis.memory.actions import Line
from themis.memory.agents.agent import Agent, Reply
from themis.memory.agents.calibration import CalibrationAgent
from themis.memory.benchmark import Benchmark, MemoryReport, Spent
from themis.memory.commands import Command, End, Fill, Hint, Judge, Jump, Moved, Outcome, Replied, Ruled, Send
from themis.memory.examples import TestExample
from themis.memory.judging import NO_JUDGE
from themis.memory.judging import Judge as JudgeOfTests
from themis.memory.models import Completion
from themis.memory.planning import planned_test
from themis.memory.scheduler import Scheduler
from themis.memory.tape import ASKED_LATER, Body, ConversationLog, Numbers, Recalled, Tape, read_body
from themis.runs.budget import Budget, Reservation, refuse_unknown_cost
from themis.runs.resuming import say_how_to_resume
from themis.runs.stopping import stop_on_signals
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.writing import RunWriter

__all__ = ["Observer", "run"]

logger = logging.getLogger(__name__)

_SNAPSHOT_EVERY_TURNS = 64


class Observer(Protocol):
    """Watches a run; called after the commit, and must not raise."""

    def started(self, benchmark: Benchmark) -> None: ...
    def advanced(self, scheduler: Scheduler, spent: Spent, *, replaying: bool) -> None: ...
    def ended_test(self, outcome: Outcome) -> None: ...
    def finished(self, report: MemoryReport) -> None: ...


def run(benchmark: Benchmark, storage: ExperimentStorage, observers: Iterable[Observer] = ()) -> MemoryReport:
    """Runs a benchmark, or what is left of it, and reports on all of it."""
    with contextlib.closing(_Agents(benchmark)) as agents:
        agents.make_first()
        _refuse_unknown_costs(benchmark, agents.first)
        start = ledger.make_room(benchmark, storage)
        with storage.open_run(benchmark.run_id) as writer:
            ledger.plan(benchmark, storage, writer, start)
            session = _Session(benchmark, storage, writer, tuple(observers), start, agents)
            return _play_to_the_end(session)


def _play_to_the_end(session: _Session) -> MemoryReport:
    """Plays until the run is complete or stopped; either way its status says so before anyone is told."""
    run_id, resume = session.benchmark.run_id, session.benchmark.how_to_resume(session.storage)
    try:
        with stop_on_signals(session.stop):
            session.play()
            session.settle()
    except BaseException as error:
        at_once = isinstance(error, KeyboardInterrupt)
        reason = "stopped by the user" if at_once else str(error) or type(error).__name__
        with contextlib.suppress(StorageError):  # a full disk must not hide what happened
            session.end(RunStatus.INTERRUPTED if at_once else RunStatus.FAILED, reason)
        if at_once:
            raise RunInterrupted(run_id, resume) from error
        raise say_how_to_resume(error, resume) from error.__cause__
    if not session.stopping.is_set():
        if not (nothing := session.why_nothing_graded()):
            return session.end(RunStatus.COMPLETED, None)
        raise RunFailedError(run_id, nothing, replace(session.end(RunStatus.FAILED, nothing), resume=resume))
    report = session.end(RunStatus.INTERRUPTED, session.over_budget or "stopped by the user")
    if not session.over_budget:
        raise RunInterrupted(run_id, resume)
    larger = session.budget.larger_cap_usd()
    return replace(report, resume=session.benchmark.how_to_resume(session.storage, budget_usd=larger))


def _refuse_unknown_costs(benchmark: Benchmark, agent: Agent) -> None:
    """A budget over calls of unknown price would bind nothing."""
    if benchmark.budget_usd is None:
        return
    if not benchmark.agent_is_free and agent.most_cost_usd("") is None:
        refuse_unknown_cost(f"the agent {benchmark.agent_name!r}", agent.how_to_bound_cost)
    if benchmark.judge is not None and benchmark.judge.most_cost_usd("") is None:
        refuse_unknown_cost(f"the judge {benchmark.judge.name!r}")


class _Agents:
    """Makes the agent of each conversation; the first before there is a run, so that what is wrong with it is found then."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark
        self._ready: dict[str, Agent] = {}

    @property
    def first(self) -> Agent:
        return next(iter(self._ready.values()))

    def make_first(self) -> None:
        tests = self._benchmark.tests
        session = self._session(tests[0].test_id if self._benchmark.isolated and tests else None)
        self._ready[session] = self._benchmark.make_agent(session)

    def take(self, lane: str | None) -> Agent:
        session = self._session(lane)
        return self._ready.pop(session, None) or self._benchmark.make_agent(session)

    def close(self) -> None:
        for agent in self._ready.values():
            agent.close()

    def _session(self, lane: str | None) -> str:
        return self._benchmark.run_id if lane is None else f"{self._benchmark.run_id} {lane}"


class _Session:
    """The part of a run that its conversations share."""

    def __init__(
        self,
        benchmark: Benchmark,
        storage: ExperimentStorage,
        writer: RunWriter,
        observers: tuple[Observer, ...],
        start: datetime,
        agents: _Agents,
    ) -> None:
        self.benchmark = benchmark
        self.storage = storage
        self.agents = agents
        self.writer = writer
        self.start = start
        self.spent = Spent()
        self.scores: dict[str, float | None] = {}
        self.stopping = threading.Event()
        self.over_budget = ""
        self.budget = Budget(benchmark.budget_usd, self._spent_before())
        self.ledger = ledger.Ledger(benchmark, storage, writer)
        self.redactor = Redactor()
        self._observers = observers
        self._ungraded = ""
        self._lock = threading.Lock()

    def play(self) -> None:
        for observer in self._observers:
            observer.started(self.benchmark)
        tests = self.benchmark.tests
        if not self.benchmark.isolated:
            rows = self.storage.reader(self.benchmark.run_id).turns()
            tape = Tape(rows, self.writer.append_turns, aside=self.add)
            _Conversation(self, tests, tape, lane=None).play()
            return
        numbers = Numbers(1 + max((row.seq for row in self.storage.reader(self.benchmark.run_id).turns()), default=-1))
        alone = [test for test in tests if not self._is_done(test)]
        with ThreadPoolExecutor(max_workers=max(1, self.benchmark.parallel)) as pool:
            for _ in pool.map(lambda test: self._play_alone(test, numbers), alone):
                pass

    def _is_done(self, test: TestExample) -> bool:
        """An isolated test that ended and is entered is not played again, only added up."""
        if not self.ledger.has(test.test_id):
            return False
        for row in self.storage.reader(self.benchmark.run_id).turns(test_id=test.test_id):
            body = read_body(row)
            self.spent.add(row.kind, body)
            if row.kind == "end":
                self.scores[test.test_id] = body.score
        return True

    def _play_alone(self, test: TestExample, numbers: Numbers) -> None:
        if self.stopping.is_set():
            return
        rows = self.storage.reader(self.benchmark.run_id).turns(test_id=test.test_id)
        tape = Tape(rows, self.writer.append_turns, numbers=numbers, lane=test.test_id, aside=self.add)
        try:
            _Conversation(self, [test], tape, lane=test.test_id).play()
        except BaseException:
            self.stopping.set()  # the others finish their exchange and stop too
            raise

    def settle(self) -> None:
        """Asks the judge again where an earlier process could not have its verdict. The agent is not spoken to."""
        judge, undecided = self.benchmark.judge, self.ledger.undecided
        if judge is not None and undecided and not self.stopping.is_set():
            with contextlib.suppress(_Stopped):
                rejudging.settle(
                    self.storage,
                    self.writer,
                    self.benchmark.run_id,
                    self.ledger.evaluation,
                    _PaidJudge(judge, self),
                    undecided,
                    asked=lambda body: self.add(ASKED_LATER, body),
                )
        self.scores.update(self.ledger.scores())

    def add(self, kind: str, body: Body) -> None:
        with self._lock:
            self.spent.add(kind, body)

    def stop(self) -> None:
        logger.warning("stopping after this exchange; Ctrl-C again stops at once")
        self.stopping.set()

    def _spent_before(self) -> float:
        """What earlier processes paid, which counts before their part of the tape is played."""
        if self.benchmark.budget_usd is None:
            return 0.0
        spent = Spent()
        for row in self.storage.reader(self.benchmark.run_id).turns():
            spent.add(row.kind, read_body(row))
        return spent.cost_usd + spent.judge_cost_usd

    @contextlib.contextmanager
    def paying(self, most_usd: float | None) -> Iterator[Reservation]:
        """Sets aside the most that an exchange may cost while it is made; the run stops where too little is left."""
        with self.budget.reserving(most_usd or 0.0) as reserved:
            if reserved is None:
                self.over_budget = self.budget.reached
                self.stopping.set()
                raise _Stopped
            yield reserved

    def why_nothing_graded(self) -> str:
        """Empty unless tests ended and not one of them could be graded."""
        if not self.scores or any(score is not None for score in self.scores.values()):
            return ""
        return (
            f"none of {len(self.scores)} tests could be graded, for example {self._ungraded or next(iter(self.scores))}"
        )

    def advanced(self, scheduler: Scheduler, *, replaying: bool) -> None:
        for observer in self._observers:
            observer.advanced(scheduler, self.spent, replaying=replaying)

    def test_ended(self, outcome: Outcome, used: Spent, *, in_doubt: bool) -> None:
        with self._lock:
            self.scores[outcome.test_id] = None if outcome.grade.failed else outcome.grade.score
            if outcome.grade.failed and outcome.grade.reasons:
                self._ungraded = f"{outcome.test_id}: {outcome.grade.reasons[-1]}"
            self.ledger.store(outcome, used, self.spent, in_doubt=in_doubt)
        if outcome.overran:
            logger.warning(
                "%s took %d tokens, more than its span of %d", outcome.test_id, outcome.tokens, outcome.span_tokens
            )
        for observer in self._observers:
            observer.ended_test(outcome)

    def end(self, status: RunStatus, reason: str | None) -> MemoryReport:
        self.ledger.close(status, self.spent, reason)
        report = MemoryReport(
            run_id=self.benchmark.run_id, status=status, scores=dict(self.scores), spent=self.spent, reason=reason
        )
        for observer in self._observers:
            observer.finished(report)
        return report


class _Stopped(Exception):
    """The run ends before its next exchange."""


class _PaidJudge:
    """The run's judge, who is paid from its budget."""

    def __init__(self, judge: JudgeOfTests, session: _Session) -> None:
        self.name = judge.name
        self._judge = judge
        self._session = session

    def answer(self, prompt: str) -> Completion:
        most = None if self._session.benchmark.budget_usd is None else self._judge.most_cost_usd(prompt)
        with self._session.paying(most) as paid:
            said = self._judge.answer(prompt)
            paid.cost_usd = said.cost_usd
            return said

    def most_cost_usd(self, prompt: str) -> float | None:
        return self._judge.most_cost_usd(prompt)

    def close(self) -> None:
        self._judge.close()


class _Conversation:
    """One scheduler between a tape and an agent."""

    def __init__(self, session: _Session, tests: Sequence[TestExample], tape: Tape, *, lane: str | None) -> None:
        benchmark = session.benchmark
        self._session = session
        self._benchmark = benchmark
        self._tape = tape
        self._lane = lane
        self._count = tokenizer(benchmark.tokenizer)
        self._log = ConversationLog(lambda: session.storage.reader(benchmark.run_id).turns(test_id=lane))
        self._scheduler = Scheduler(
            [planned_test(test, benchmark.kinds[test.test_id], self._count) for test in tests],
            start=session.start,
            conflicts=benchmark.conflicts,
            introduction=None if benchmark.isolated else benchmark.introduction,
            isolated=benchmark.isolated,
            max_message_tokens=benchmark.max_message_tokens,
            log=self._log,
        )
        self._agent = session.agents.take(lane)
        self._known_turn = 0
        self._doubtful: set[str] = set()
        self._used: dict[str, Spent] = {}
        self._hint = Hint()

    def play(self) -> None:
        """The one loop: a command is answered by the tape while it lasts, then by the world."""
        try:
            self._prepare_agent()
            steps = self._scheduler.play()
            command: Command = next(steps)
            while True:
                recalled = self._tape.recall(command)
                answer = self._relive(command, recalled) if recalled is not None else self._live(command)
                command = steps.send(answer)
        except StopIteration:
            self._tape.flush()
            if self._lane is not None:
                self._agent.reset()
        except _Stopped:
            self._tape.flush()
        finally:
            self._agent.close()

    # --- what was, from the tape --------------------------------------------------------------------------------------

    def _prepare_agent(self) -> None:
        """Brings an agent that kept or saved its memory back; whatever it lacks it is told while the tape plays."""
        agent = self._agent
        if not self._tape.is_replaying:
            if agent.remembers_elsewhere and (known := agent.last_turn()):
                raise ConfigurationError(
                    f"agent {self._benchmark.agent_name!r} already knows {known} turns of a conversation that has none "
                    "yet; reset it, or use another run id"
                )
            return
        if agent.remembers_elsewhere:
            self._known_turn = agent.last_turn()
        elif (saved := self._session.ledger.snapshot(self._lane)) is not None:
            self._known_turn, memory = saved
            agent.restore(memory)

    def _relive(self, command: Command, recalled: Recalled) -> Any:
        body, answer = recalled.body, recalled.answer
        if isinstance(command, Send | Fill):
            self._add("reply", command.test_id if isinstance(command, Send) else None, body)
            if command.turn > self._known_turn and isinstance(answer, Replied):
                assert body.now is not None
                with self._benchmark.clock.shown_to(self._agent, body.now):
                    self._agent.observe(answer.message, answer.text, turn=command.turn, now=body.now)
            self._heard(command, answer, body, replaying=True)
        elif isinstance(command, Judge):
            self._add("consult", command.test_id, body)
        elif isinstance(command, End):
            self._end(command)
        return answer

    # --- what is ------------------------------------------------------------------------------------------------------

    def _live(self, command: Command) -> Any:
        match command:
            case Send() | Fill():
                return self._exchange(command)
            case Judge():
                return self._consult(command)
            case Jump():
                now = self._benchmark.clock.pass_until(command.to, self._agent)
                self._tape.record(command, Body(now=now))
                return Moved(now)
            case End():
                self._tape.note(command, self._scheduler.now)
                self._tape.flush()
                self._end(command)
            case _:
                self._tape.note(command, self._scheduler.now)
        return None

    def _exchange(self, command: Send | Fill) -> Replied:
        """Writes what is about to be sent, sends it, writes the reply; only then does anyone see it."""
        message, presupplied = self._message(command)
        if self._session.stopping.is_set():
            raise _Stopped
        if self._known_turn > command.turn:
            raise ConfigurationError(
                f"agent {self._benchmark.agent_name!r} knows {self._known_turn} turns of this conversation, but only "
                f"{command.turn - 1} are stored; it has been talked to elsewhere. Reset it and use another run id"
            )
        in_doubt = self._tape.in_doubt and self._agent.remembers_elsewhere and not self._agent.idempotent
        now = self._scheduler.now
        began = time.perf_counter()
        with self._session.paying(self._most_cost_usd(message, presupplied)) as paid:
            # An agent whose memory is in this process dies with it and is rebuilt from replies: only others can be in doubt.
            self._tape.intend(command, message, presupplied, durable=self._agent.remembers_elsewhere)
            reply = self._ask_agent(command, message, presupplied, now)
            paid.cost_usd = reply.cost_usd
        seconds = time.perf_counter() - began
        elapsed = self._benchmark.clock.exchange_took(now)
        tokens = self._count(message) + self._count(reply.text)
        body = Body(
            turn=command.turn,
            reply=reply.text,
            tokens=tokens,
            tokens_total=self._scheduler.tokens + tokens,
            elapsed_seconds=elapsed.total_seconds(),
            now=now + elapsed,
            cost_usd=reply.cost_usd,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            calls=reply.calls,
            seconds=seconds,
            in_doubt=in_doubt,
        )
        self._tape.settle(command, body)
        self._add("reply", command.test_id if isinstance(command, Send) else None, body)
        replied = Replied(message, reply.text, tokens, elapsed)
        self._heard(command, replied, body, replaying=False)
        self._save_snapshot(command.turn)
        return replied

    def _most_cost_usd(self, message: str, presupplied: str | None) -> float | None:
        benchmark = self._benchmark
        if benchmark.budget_usd is None or benchmark.agent_is_free or presupplied is not None:
            return 0.0
        return self._agent.most_cost_usd(message)

    def _message(self, command: Send | Fill) -> tuple[str, str | None]:
        """What is sent, and the reply that is put into the agent's mouth, if any."""
        if isinstance(command, Send):
            self._hint = command.hint
            return command.text, None
        filler = self._benchmark.filler.make(command.number, command.tokens)
        # A perfect agent answers filler as it is asked to.
        self._hint = Hint(filler.reply, 0, command.hint.extras)
        return filler.text, filler.reply if command.canned else None

    def _ask_agent(self, command: Send | Fill, message: str, presupplied: str | None, now: datetime) -> Reply:
        agent = self._agent
        if isinstance(agent, CalibrationAgent):
            agent.prepare(self._hint)
        try:
            with self._benchmark.clock.shown_to(agent, now):
                said = agent.reply(message, turn=command.turn, now=now, presupplied=presupplied)
        except ThemisError as error:
            raise EvaluationError(self._agent_failed(command.turn, str(error))) from error
        except Exception as error:  # boundary: an agent is the user's code
            raise EvaluationError(self._agent_failed(command.turn, f"{type(error).__name__}: {error}")) from error
        reply = Reply(said) if isinstance(said, str) else said
        if not isinstance(reply, Reply) or not isinstance(reply.text, str):
            raise EvaluationError(
                self._agent_failed(command.turn, f"it replied with {type(said).__name__}, expected text or a Reply")
            )
        text = self._session.redactor.values(reply.text)
        return reply if text is reply.text else replace(reply, text=text)

    def _agent_failed(self, turn: int, what: str) -> str:
        return self._failed(f"agent {self._benchmark.agent_name!r} failed at turn {turn}: {what}")

    def _failed(self, what: str) -> str:
        told = self._session.redactor.text(what)
        return f"{told}. Everything before is saved. {self._benchmark.how_to_resume(self._session.storage)}"

    def _consult(self, command: Judge) -> Ruled:
        judge = self._benchmark.judge
        if judge is None:
            body = Body(failure=NO_JUDGE, now=self._scheduler.now)
        else:
            began = time.perf_counter()
            try:
                ruling = _PaidJudge(judge, self._session).answer(command.prompt)
            except _Stopped:
                raise
            except Exception as error:  # boundary: a judge is a model, or the user's code
                what = str(error) if isinstance(error, ThemisError) else f"{type(error).__name__}: {error}"
                raise EvaluationError(self._failed(f"judge {judge.name!r} did not answer: {what}")) from error
            body = Body(
                answer=ruling.text,
                now=self._scheduler.now,
                cost_usd=ruling.cost_usd,
                prompt_tokens=ruling.prompt_tokens,
                completion_tokens=ruling.completion_tokens,
                calls=ruling.calls,
                seconds=time.perf_counter() - began,
            )
        self._tape.record(command, body)
        self._add("consult", command.test_id, body)
        return Ruled(body.answer or "", body.failure)

    # --- either way ---------------------------------------------------------------------------------------------------

    def _heard(self, command: Send | Fill, replied: Replied, body: Body, *, replaying: bool) -> None:
        assert body.now is not None
        test_id = command.test_id if isinstance(command, Send) else None
        question = isinstance(command, Send) and command.question
        self._log.append(Line(command.turn, test_id, replied.message, replied.text, body.now, question))
        if body.in_doubt and test_id is not None:
            self._doubtful.add(test_id)
        if not replaying:
            logger.debug("turn %d, %s: %s -> %s", command.turn, test_id or "filler", replied.message, replied.text)
        self._session.advanced(self._scheduler, replaying=replaying)

    def _add(self, kind: str, test_id: str | None, body: Body) -> None:
        self._session.add(kind, body)
        if test_id is not None:
            self._used.setdefault(test_id, Spent()).add(kind, body)

    def _end(self, command: End) -> None:
        test_id = command.outcome.test_id
        used = self._used.pop(test_id, Spent())
        self._session.test_ended(command.outcome, used, in_doubt=test_id in self._doubtful)

    def _save_snapshot(self, turn: int) -> None:
        if turn % _SNAPSHOT_EVERY_TURNS == 0 and (memory := self._agent.snapshot()) is not None:
            self._session.ledger.save_snapshot(self._lane, turn, memory)
