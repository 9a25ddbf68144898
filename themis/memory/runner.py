"""Holds the conversations of a memory run: replays the tape as far as it goes, then the world, and keeps everything said.

A conversation is one scheduler, one tape, one agent; a run has one conversation, or, with isolated tests, one for each test.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

from themis.core.tokens import tokenizer
from themis.exceptions import ConfigurationError, EvaluationError, ThemisError
from themis.memory import rejudging
from themis.memory.actions import (
    AgentReply,
    Ask,
    Consult,
    End,
    Exchange,
    Expected,
    Fill,
    Forget,
    Intro,
    JudgeReply,
    Jump,
    Line,
    Outcome,
    Say,
    Step,
)
from themis.memory.agents.agent import Agent, Reply
from themis.memory.agents.calibration import CalibrationAgent
from themis.memory.benchmark import Benchmark
from themis.memory.examples import TestExample
from themis.memory.models import NO_JUDGE, Judge
from themis.memory.planning import plan_test
from themis.memory.result_store import ResultStore
from themis.memory.scheduler import Scheduler
from themis.memory.script import Answer
from themis.memory.tape import REJUDGE, ConversationLog, EventBody, Spent, Tape, read_body
from themis.runs.lifecycle import OpenRun, Stop
from themis.runs.observers import Progress
from themis.runs.prices import Reservation
from themis.storage import ExperimentStorage, RunStatus

logger = logging.getLogger(__name__)

_SNAPSHOT_EVERY_TURNS = 64


class Session:
    """The part of a run that its conversations share."""

    def __init__(self, benchmark: Benchmark, run: OpenRun, start: datetime, agents: AgentPool) -> None:
        self.benchmark = benchmark
        self.run = run
        self.storage = run.storage
        self.writer = run.writer
        self.agents = agents
        self.start = start
        self.spent = Spent()
        self.results = ResultStore(benchmark, run)
        # Conversations that are being held.
        self.in_flight = 0
        self._scheduler: Scheduler | None = None
        self._lock = threading.Lock()
        if run.budget.is_capped:  # what earlier processes paid counts before their part of the tape is played
            most = None if benchmark.agent_is_free else agents.first.most_cost_usd("")
            run.budget.spent_usd = read_spent_usd(self.storage, run.run_id, most)

    def play(self) -> None:
        """Holds the conversations, or what is left of them."""
        tests = self.benchmark.tests
        if not self.benchmark.isolated:
            rows = self.storage.reader(self.benchmark.run_id).turns()
            tape = Tape(rows, self.writer.append_turns, on_extra=self.add)
            _Conversation(self, tests, tape, conversation_id=None).play()
            return
        numbers = itertools.count(
            1 + max((row.seq for row in self.storage.reader(self.benchmark.run_id).turns()), default=-1)
        )
        alone = [test for test in tests if not self._is_done(test)]
        with ThreadPoolExecutor(max_workers=max(1, self.benchmark.parallel)) as pool:
            for _ in pool.map(lambda test: self._play_alone(test, numbers), alone):
                pass

    def _is_done(self, test: TestExample) -> bool:
        """An isolated test that ended and is entered is not played again, only added up."""
        if not self.results.has(test.test_id):
            return False
        for row in self.storage.reader(self.benchmark.run_id).turns(test_id=test.test_id):
            body = read_body(row)
            self.spent.add(row.kind, body)
        return True

    def _play_alone(self, test: TestExample, numbers: Iterator[int]) -> None:
        if self.run.stopping:
            return
        rows = self.storage.reader(self.benchmark.run_id).turns(test_id=test.test_id)
        tape = Tape(rows, self.writer.append_turns, numbers=numbers, conversation_id=test.test_id, on_extra=self.add)
        try:
            _Conversation(self, [test], tape, conversation_id=test.test_id).play()
        except BaseException as error:
            # The others finish their exchange and stop too.
            self.run.end_early(Stop(f"{test.test_id} ended with {type(error).__name__}", RunStatus.FAILED))
            raise

    def judge_rest(self) -> None:
        """Asks the judge again where an earlier process could not have its verdict. The agent is not spoken to."""
        judge, ungraded = self.benchmark.judge, self.results.ungraded
        if judge is not None and ungraded and not self.run.stopping:
            with contextlib.suppress(_Stopped):
                rejudging.rejudge_ungraded(
                    self.storage,
                    self.writer,
                    self.run.run_id,
                    self.results.evaluation,
                    _PaidJudge(judge, self),
                    ungraded,
                    asked=lambda body: self.add(REJUDGE, body),
                )

    def add(self, kind: str, body: EventBody) -> None:
        with self._lock:
            self.spent.add(kind, body)

    @contextlib.contextmanager
    def paying(self, most_usd: float | None) -> Iterator[Reservation]:
        """Sets aside the most that an exchange may cost while it is made; the run stops where too little is left."""
        budget = self.run.budget
        with budget.reserving(most_usd or 0.0) as reserved:
            if reserved is None:
                self.run.end_early(Stop(budget.reached, larger_budget_usd=budget.larger_cap_usd()))
                raise _Stopped
            yield reserved

    def progress(self) -> Progress:
        """How the conversation stands: of isolated tests, the one that spoke last."""
        scheduler = self._scheduler
        if scheduler is None:
            return Progress()
        running, tokens = len(scheduler.running), self.spent.conversation_tokens
        return Progress(summary=f"{running} running · {tokens:,} tokens · {scheduler.now:%d %b %H:%M}")

    def advanced(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.run.notify_progress()

    def test_ended(self, outcome: Outcome, used: Spent, *, in_doubt: bool) -> None:
        with self._lock:
            self.results.store(outcome, used, self.spent, in_doubt=in_doubt)
        if outcome.overran:
            logger.warning(
                "%s took %d tokens, more than its span of %d", outcome.test_id, outcome.tokens, outcome.span_tokens
            )

    def store_totals(self) -> None:
        self.results.store_totals(self.spent)

    def summary(self) -> dict[str, object]:
        spent = self.spent
        return {
            "tests": len(self.benchmark.tests),
            "ended": self.results.count,
            "turns": spent.turns,
            "conversation_tokens": spent.conversation_tokens,
            "agent_seconds": round(spent.agent_seconds, 3),
        }


def read_spent_usd(storage: ExperimentStorage, run_id: str, most_usd: float | None) -> float:
    """What the conversations of a run have cost so far, judges included: the sums beside a run lag behind its tape.

    Args:
        storage: Where the run is.
        run_id: The run.
        most_usd: The most that a reply may have cost that does not tell.
    """
    spent = Spent()
    for row in storage.reader(run_id).turns():
        spent.add(row.kind, read_body(row))
    return spent.cost_usd + spent.judge_cost_usd + spent.unpriced_calls * (most_usd or 0.0)


class AgentPool:
    """Makes the agent of each conversation; the first before there is a run."""

    def __init__(self, setup: Benchmark) -> None:
        self._setup = setup
        self._ready: dict[str, Agent] = {}

    def make_first(self) -> Agent:
        tests = self._setup.tests
        name = self._name(tests[0].test_id if self._setup.isolated and tests else None)
        self._ready[name] = self._setup.make_agent(name)
        return self.first

    @property
    def first(self) -> Agent:
        """The agent that was made first, while it has not been taken."""
        return next(iter(self._ready.values()))

    def take(self, conversation_id: str | None) -> Agent:
        name = self._name(conversation_id)
        return self._ready.pop(name, None) or self._setup.make_agent(name)

    def close(self) -> None:
        for agent in self._ready.values():
            agent.close()

    def _name(self, conversation_id: str | None) -> str:
        return self._setup.run_id if conversation_id is None else f"{self._setup.run_id} {conversation_id}"


class _Stopped(Exception):
    """The run ends before its next exchange."""


class _PaidJudge:
    """The run's judge, who is paid from its budget."""

    def __init__(self, judge: Judge, session: Session) -> None:
        self.name = judge.name
        self._judge = judge
        self._session = session

    def answer(self, prompt: str) -> Reply:
        most = self._judge.most_cost_usd(prompt) if self._session.run.budget.is_capped else None
        with self._session.paying(most) as paid:
            said = self._judge.answer(prompt)
            paid.cost_usd = said.cost_usd
            return said

    def most_cost_usd(self, prompt: str) -> float | None:
        return self._judge.most_cost_usd(prompt)


class _Conversation:
    """One scheduler between a tape and an agent."""

    def __init__(
        self, session: Session, tests: Sequence[TestExample], tape: Tape, *, conversation_id: str | None
    ) -> None:
        benchmark = session.benchmark
        self._session = session
        self._benchmark = benchmark
        self._tape = tape
        self._conversation_id = conversation_id
        self._count = tokenizer(benchmark.tokenizer)
        self._log = ConversationLog(lambda: session.storage.reader(benchmark.run_id).turns(test_id=conversation_id))
        self._scheduler = Scheduler(
            [plan_test(test, benchmark.kinds[test.test_id], self._count) for test in tests],
            start=session.start,
            conflicts=benchmark.conflicts,
            introduction=None if benchmark.isolated else benchmark.introduction,
            isolated=benchmark.isolated,
            max_message_tokens=benchmark.max_message_tokens,
        )
        self._agent = session.agents.take(conversation_id)
        # Even a reply that is put into its mouth costs something: a memory that is written to by a model.
        self._charges_presupplied = False
        self._known_turn = 0
        self._doubtful: set[str] = set()
        self._used: dict[str, Spent] = {}
        self._expected = Expected()

    def play(self) -> None:
        """The one loop: a step is answered by the tape while it lasts, then by the world."""
        self._session.in_flight += 1
        try:
            self._prepare_agent()
            steps = self._scheduler.play()
            step = next(steps)
            while True:
                replayed = self._tape.replay_next(step)
                step = steps.send(self._replay(step, replayed) if replayed is not None else self._execute(step))
        except StopIteration:
            self._tape.flush()
            if self._conversation_id is not None:
                self._agent.reset()
        except _Stopped:
            self._tape.flush()
        finally:
            self._session.in_flight -= 1
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
        elif (saved := self._session.results.snapshot(self._conversation_id)) is not None:
            self._known_turn, memory = saved
            agent.restore(memory)

    def _replay(self, step: Step, body: EventBody) -> Answer | datetime:
        if isinstance(step.action, Exchange):
            reply = self._reply(step, body.message, body)
            if isinstance(step.action, Fill) and step.action.presupplied:
                self._charges_presupplied |= body.cost_usd != 0
            if step.turn > self._known_turn:
                with self._benchmark.clock.show_to(self._agent, reply.now):
                    self._agent.observe(reply.message, str(reply), turn=step.turn, now=reply.now)
            self._on_reply(step, reply, body, replaying=True)
            return reply
        match step.action:
            case Consult():
                self._add("consult", step.test_id, body)
                return JudgeReply(body.answer or "", body.failure)
            case Jump():
                return body.now
            case End(outcome):
                self._end(outcome)
        return None

    # --- what is ------------------------------------------------------------------------------------------------------

    def _execute(self, step: Step) -> Answer | datetime:
        if isinstance(step.action, Exchange):
            return self._exchange(step)
        match step.action:
            case Consult(prompt):
                return self._consult(step, prompt)
            case Jump(until):
                now = self._benchmark.clock.pass_until(until, self._agent)
                self._tape.commit_reply(step, EventBody(now=now))
                return now
            case End(outcome):
                self._tape.append(step)
                self._tape.flush()
                self._end(outcome)
            case _:
                self._tape.append(step)
        return None

    def _exchange(self, step: Step) -> AgentReply:
        """Writes what is about to be sent, sends it, writes the reply; only then does anyone see it."""
        message, presupplied = self._message(step)
        if self._session.run.stopping:
            raise _Stopped
        if self._known_turn > step.turn:
            raise ConfigurationError(
                f"agent {self._benchmark.agent_name!r} knows {self._known_turn} turns of this conversation, but only "
                f"{step.turn - 1} are stored; it has been talked to elsewhere. Reset it and use another run id"
            )
        in_doubt = self._tape.in_doubt and self._agent.remembers_elsewhere and not self._agent.idempotent
        now = step.at.now
        began = time.perf_counter()
        with self._session.paying(self._most_cost_usd(message, presupplied)) as paid:
            # An agent whose memory is in this process dies with it and is rebuilt from replies: only others can be in doubt.
            self._tape.write_ahead(step, message, presupplied, durable=self._agent.remembers_elsewhere)
            said = self._ask_agent(step, message, presupplied, now)
            paid.cost_usd = said.cost_usd
        self._charges_presupplied |= presupplied is not None and said.cost_usd != 0
        seconds = time.perf_counter() - began
        elapsed = self._benchmark.clock.elapsed_since(now)
        tokens = self._count(message) + self._count(said.text)
        body = EventBody.of(said, seconds)
        body.turn, body.reply, body.in_doubt = step.turn, said.text, in_doubt
        body.tokens, body.tokens_total = tokens, step.at.tokens + tokens
        body.elapsed_seconds, body.now = elapsed.total_seconds(), now + elapsed
        self._tape.commit_reply(step, body)
        reply = self._reply(step, message, body)
        self._on_reply(step, reply, body, replaying=False)
        self._save_snapshot(step.turn)
        return reply

    def _most_cost_usd(self, message: str, presupplied: str | None) -> float | None:
        benchmark = self._benchmark
        if not self._session.run.budget.is_capped or benchmark.agent_is_free:
            return 0.0
        if presupplied is not None and not self._charges_presupplied:
            return 0.0
        return self._agent.most_cost_usd(message)

    def _message(self, step: Step) -> tuple[str, str | None]:
        """What is sent, and the reply that is put into the agent's mouth, if any."""
        match step.action:
            case Fill(number, tokens, is_presupplied):
                filler = self._benchmark.filler.make(number, tokens)
                # A perfect agent answers filler as it is asked to.
                self._expected = Expected(filler.reply, 0, step.expected.extras)
                return filler.text, filler.reply if is_presupplied else None
            case Say(text) | Ask(text) | Intro(text) | Forget(text):
                self._expected = step.expected
                return text, None
        raise AssertionError(f"nothing is sent by {step.kind}")

    def _ask_agent(self, step: Step, message: str, presupplied: str | None, now: datetime) -> Reply:
        agent = self._agent
        if isinstance(agent, CalibrationAgent):
            agent.prepare(self._expected)
        try:
            with self._benchmark.clock.show_to(agent, now):
                said = agent.reply(message, turn=step.turn, now=now, presupplied=presupplied)
        except ThemisError as error:
            raise EvaluationError(self._agent_failed(step.turn, str(error))) from error
        except Exception as error:  # boundary: an agent is the user's code
            raise EvaluationError(self._agent_failed(step.turn, f"{type(error).__name__}: {error}")) from error
        reply = Reply(said) if isinstance(said, str) else said
        if not isinstance(reply, Reply) or not isinstance(reply.text, str):
            raise EvaluationError(
                self._agent_failed(step.turn, f"it replied with {type(said).__name__}, expected text or a Reply")
            )
        text = self._session.run.redactor.values(reply.text)
        return reply if text is reply.text else replace(reply, text=text)

    def _agent_failed(self, turn: int, what: str) -> str:
        return self._failed(f"agent {self._benchmark.agent_name!r} failed at turn {turn}: {what}")

    def _failed(self, what: str) -> str:
        told = self._session.run.redactor.text(what)
        return f"{told}. Everything before is saved. {self._session.run.resume_hint()}"

    def _consult(self, step: Step, prompt: str) -> JudgeReply:
        judge = self._benchmark.judge
        if judge is None:
            body = EventBody(failure=NO_JUDGE, now=self._scheduler.now)
        else:
            began = time.perf_counter()
            try:
                ruling = _PaidJudge(judge, self._session).answer(prompt)
            except _Stopped:
                raise
            except Exception as error:  # boundary: a judge is a model, or the user's code
                what = str(error) if isinstance(error, ThemisError) else f"{type(error).__name__}: {error}"
                raise EvaluationError(self._failed(f"judge {judge.name!r} did not answer: {what}")) from error
            body = EventBody.of(ruling, time.perf_counter() - began)
            body.answer, body.now = ruling.text, self._scheduler.now
        self._tape.commit_reply(step, body)
        self._add("consult", step.test_id, body)
        return JudgeReply(body.answer or "", body.failure)

    # --- either way ---------------------------------------------------------------------------------------------------

    def _reply(self, step: Step, message: str, body: EventBody) -> AgentReply:
        elapsed = timedelta(seconds=body.elapsed_seconds)
        return step.reply(body.reply or "", message=message, tokens=body.tokens, elapsed=elapsed, log=self._log)

    def _on_reply(self, step: Step, reply: AgentReply, body: EventBody, *, replaying: bool) -> None:
        self._add("reply", step.test_id, body)
        line = Line(step.turn, step.test_id, reply.message, str(reply), reply.now, isinstance(step.action, Ask))
        self._log.append(line)
        if body.in_doubt and step.test_id is not None:
            self._doubtful.add(step.test_id)
        if not replaying:
            logger.debug("turn %d, %s: %s -> %s", step.turn, step.test_id or "filler", reply.message, reply)
        self._session.advanced(self._scheduler)

    def _add(self, kind: str, test_id: str | None, body: EventBody) -> None:
        self._session.add(kind, body)
        if test_id is not None:
            self._used.setdefault(test_id, Spent()).add(kind, body)

    def _end(self, outcome: Outcome) -> None:
        used = self._used.pop(outcome.test_id, Spent())
        self._session.test_ended(outcome, used, in_doubt=outcome.test_id in self._doubtful)

    def _save_snapshot(self, turn: int) -> None:
        if turn % _SNAPSHOT_EVERY_TURNS == 0 and (memory := self._agent.snapshot()) is not None:
            self._session.results.save_snapshot(self._conversation_id, turn, memory)
