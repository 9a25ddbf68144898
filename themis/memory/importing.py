"""Puts published results of the GoodAI LTM Benchmark into the store as memory runs.

Published scores are kept as they are and stay the ones that count; scores that a person has changed are marked. Our own
scorers' verdicts lie beside them under another evaluation. An import is made once: the same folder again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from themis.config import load_memory_config
from themis.core.bounded_reading import Broken, ReadLimits
from themis.core.codec import canonical_json, encode, to_plain
from themis.core.entities import GenerationRecord, ModelOutput, ModelSpec, PromptSpec, SamplingConfig
from themis.core.fingerprint import digest, fingerprint
from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.exceptions import ConfigurationError
from themis.experiment.manifest import build_reproducibility_manifest, manifest_hash
from themis.experiment.report import build_report, summarise_run
from themis.memory import goodai
from themis.memory.actions import Grade, Line
from themis.memory.examples import MEMORY_TESTS
from themis.memory.goodai import AgentFolder, Event, PublishedTest, RunFolder
from themis.memory.ledger import OVERALL
from themis.memory.rejudging import Conversation, graded_verdicts, replay, stored_example
from themis.memory.results import Message
from themis.memory.tape import Body
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.reading import batched
from themis.storage.records import SCORED, Call, Frame, Item, Turn, Verdict
from themis.storage.runs import validate_run_id
from themis.storage.writing import RunWriter

__all__ = ["PUBLISHED", "RESCORED", "ImportedAgent", "import_folder"]

PUBLISHED, RESCORED = "published", "rescored"
_SOURCE = "goodai-ltm-benchmark"
# A longer silence between two events is a jump of the clock, not the slowness of an agent.
_JUMP_SECONDS = 60.0
# A filler that was answered quicker was not answered by a model: its reply was put into the agent's mouth.
_CANNED_SECONDS = 0.2


@dataclass
class ImportedAgent:
    """What became of one agent's folder."""

    run_id: str
    agent: str
    tests: int = 0
    turns: int = 0
    hand_edited: int = 0
    # Tests whose tokens and characters, counted in the log, are those published; and how many could be counted.
    tokens_reproduced: int = 0
    characters_reproduced: int = 0
    counted: int = 0
    # Tests that our scorers could judge, and those of them that they judge as published.
    rescored: int = 0
    rescored_equal: int = 0
    already: bool = False
    broken: list[Broken] = field(default_factory=list)


def import_folder(
    path: str | Path, storage: ExperimentStorage, *, name: str | None = None, limits: ReadLimits | None = None
) -> list[ImportedAgent]:
    """Imports every agent of a run folder, or of all run folders in a folder. `name` replaces the run's name.

    `limits` is how much is read of each agent's folder, by default `ReadLimits()`; more is refused with a DatasetError.
    """
    limits = limits or ReadLimits()
    imported: list[ImportedAgent] = []
    for run_path in goodai.find_runs(Path(path)):
        run = goodai.read_run(run_path, limits)
        run.name = name or run.name
        imported += [_import_agent(run, goodai.read_agent(folder, limits), storage) for folder in run.agents]
    return imported


def _import_agent(run: RunFolder, agent: AgentFolder, storage: ExperimentStorage) -> ImportedAgent:
    run_id = validate_run_id(_word(f"{run.name} - {agent.name}"))
    done = ImportedAgent(run_id, agent.name, broken=[*run.broken, *agent.broken])
    if not agent.tests:
        done.broken.append(Broken(agent.name, "holds no result that can be read; nothing was imported"))
        return done
    if storage.run_exists(run_id):
        if storage.identity(run_id).get("sha256") != agent.sha256:
            raise ConfigurationError(
                f"run {run_id!r} exists and was not made from this folder; import it under another --name"
            )
        if storage.get_run(run_id).status is RunStatus.COMPLETED:
            done.already, done.tests = True, len(agent.tests)
            return done
        storage.delete_run(run_id)
    identity = {"source": _SOURCE, "sha256": agent.sha256, "agent": agent.name}
    storage.start_run(
        run_id,
        kind="memory",
        model=f"agent:{agent.name}",
        benchmark=run.name,
        identity=identity,
        tags={"imported_from": _SOURCE},
    )
    with storage.open_run(run_id) as writer:
        _Import(run, agent, storage, writer, done).write(identity)
    return done


def _word(text: str) -> str:
    """A name as it may stand in a run id."""
    return re.sub(r'[/\\:*?"<>|@\x00-\x1f]+', "-", text).strip(" .")[:200]


class _Import:
    """One agent on its way into the store."""

    def __init__(
        self,
        run: RunFolder,
        agent: AgentFolder,
        storage: ExperimentStorage,
        writer: RunWriter,
        done: ImportedAgent,
    ) -> None:
        self._run, self._agent, self._storage, self._writer, self._done = run, agent, storage, writer, done
        self._count = tokenizer(DEFAULT_TOKENIZER)
        self._kinds = {MEMORY_TESTS.get(name).name: name for name in MEMORY_TESTS.names()}
        self._arguments = self._configured()
        self._frame = Frame(
            model=ModelSpec(agent.name, "agent"),
            sampling=SamplingConfig(),
            prompt=PromptSpec("conversation", ""),
            id_field="id",
            reference_field="expected_responses",
        )
        self._rows = self._contents()
        self._log = _Logged(agent.events, self._rows, self._count) if agent.events is not None else None

    def write(self, identity: Mapping[str, str]) -> None:
        writer, agent, done = self._writer, self._agent, self._done
        items = [self._item(position, row) for position, row in enumerate(self._rows.values())]
        writer.plan(items)
        stamp, config = self._described(items)
        writer.describe(identity=identity, config=config, manifest_hash=stamp)
        positions = {item.item_id: item.position for item in items}
        ours = writer.open_evaluation(*_way(RESCORED))
        theirs = writer.open_evaluation(*_way(PUBLISHED))
        calls = []
        for test in agent.tests:
            memory = self._memory(test)
            position = positions[test.test_id]
            calls.append(self._call(position, test, memory))
            writer.commit_verdicts(theirs, _published_verdicts(position, test))
            self._rescore(ours, position, test, memory)
            done.tests += 1
            done.hand_edited += bool(test.by_hand)
        writer.commit_calls(calls)
        if self._log is not None:
            turns = self._log.turns({test.test_id: test for test in agent.tests})
            done.turns = len(turns)
            for batch in batched(turns, 500):
                writer.append_turns(batch)
        writer.update(succeeded=done.tests, **self._spent())
        writer.finish(RunStatus.COMPLETED, summary=summarise_run(build_report(self._storage, writer.run_id, theirs)))

    # --- what there is ------------------------------------------------------------------------------------------------

    def _configured(self) -> dict[str, dict[str, Any]]:
        """Arguments of each dataset by its displayed name."""
        if self._run.configuration is None:
            return {}
        try:
            config = load_memory_config(self._run.configuration)
        except ConfigurationError as error:
            self._done.broken.append(Broken("definitions/config.yml", str(error)))
            return {}
        return {
            MEMORY_TESTS.get(test.name).name: dict(test.arguments) for test in config.tests if test.name in MEMORY_TESTS
        }

    def _contents(self) -> dict[str, dict[str, Any]]:
        """Every test that was defined or has a result, as it lies in the store."""
        expected = {test.test_id: test.expected for test in self._agent.tests}
        names = [*self._run.definitions, *(name for name in expected if name not in self._run.definitions)]
        rows = {}
        for test_id in names:
            dataset, _, example_id = test_id.rpartition(" - ")
            rows[test_id] = {
                "expected_responses": expected.get(test_id),
                "id": test_id,
                "dataset": dataset,
                "kind": self._kinds.get(dataset, ""),
                "example_id": example_id,
                "arguments": self._arguments.get(dataset, {}),
                **self._run.definitions.get(test_id, {}),
            }
        return rows

    def _item(self, position: int, row: Mapping[str, Any]) -> Item:
        content = canonical_json(to_plain(row))
        return Item(position, row["id"], digest(content), content)

    def _described(self, items: Sequence[Item]) -> tuple[str, dict[str, Any]]:
        agent, stats = self._agent, self._agent.stats
        manifest = build_reproducibility_manifest(
            model=agent.name,
            provider="agent",
            provider_options={},
            sampling=SamplingConfig(),
            num_samples=1,
            evaluation_config={"metrics": [OVERALL], "extractor": _SOURCE},
            dataset_fingerprint=fingerprint([item.fingerprint for item in items]),
            benchmark_id=self._run.name,
            dataset_source={"imported_from": _SOURCE, "sha256": agent.sha256},
        )
        # This machine's own versions had no part in these results.
        manifest = {**manifest, "package_versions": {}, "git_commit_hash": "unknown", "runtime": {}}
        stamp = manifest_hash(manifest)
        spans = {span for row in self._rows.values() if (span := (row["arguments"] or {}).get("memory_span"))}
        config = {
            "reproducibility_manifest": manifest,
            "manifest_hash": stamp,
            "task": self._frame.to_config(),
            "memory": {
                # One log after the other is one conversation to read, whether or not the agent was reset in between.
                "isolated": False,
                "tokenizer": DEFAULT_TOKENIZER,
                "spans": sorted(spans),
                "published_agent_tokens": _agent_tokens(stats),
                "published_stats": {name: value for name, value in stats.items() if name != "rnd_state"},
            },
        }
        return stamp, config

    def _spent(self) -> dict[str, Any]:
        stats = self._agent.stats
        return {
            "calls": self._log.replies if self._log is not None else 0,
            "completion_tokens": _agent_tokens(stats) or 0,
            "cost_usd": float(stats.get("agent_costs_usd") or 0.0),
            "unpriced_calls": 0 if "agent_costs_usd" in stats else 1,
            "judge_cost_usd": float(stats.get("managing_costs_usd") or 0.0),
            "judge_calls": sum(self._log.judged.values()) if self._log is not None else 0,
            "seconds": float(stats.get("duration") or 0.0),
        }

    # --- one test -----------------------------------------------------------------------------------------------------

    def _memory(self, test: PublishedTest) -> dict[str, Any]:
        """What the record of a test says, as that of a run of our own does."""
        span = int((self._arguments.get(test.dataset) or {}).get("memory_span") or 0)
        log, part = self._log, None if self._log is None else self._log.part(test.test_id)
        if log is None or part is None:
            if log is not None:
                self._done.broken.append(Broken("master_log.jsonl", f"has no conversation of {test.test_id!r}"))
            messages, place = _from_task_log(test), {}
        else:
            messages, place = part.messages, part.place()
            tokens, characters = log.measured(test.test_id)
            self._done.counted += 1
            self._done.tokens_reproduced += tokens == test.tokens
            self._done.characters_reproduced += characters == test.characters
            if (tokens, characters) != (test.tokens, test.characters):
                said = f"{test.tokens} tokens, {test.characters} characters; the log has {tokens} and {characters}"
                self._done.broken.append(Broken(test.test_id, f"published as {said}"))
        memory: dict[str, Any] = to_plain(
            {
                "dataset": test.dataset,
                "tokens": test.tokens,
                "characters": test.characters,
                "span_tokens": span,
                "overran": bool(span) and test.tokens > span,
                "needles": test.needles if test.needles is not None else sum(m.needle for m in messages),
                "reasons": test.reasons,
                "responses": test.responses,
                "expected_responses": test.expected,
                "said": [
                    {
                        "turn": message.turn,
                        "now": message.now,
                        "tokens_before": message.tokens_before,
                        "question": message.question,
                        "needle": message.needle,
                        "needs": needs,
                        "message": message.text,
                        "reply": message.reply,
                    }
                    for message, needs in zip(messages, self._needs(test, messages), strict=True)
                ],
                "cost_usd": None,
                "judge_calls": 0 if log is None else log.judged.get(test.test_id, 0),
                **({} if part is not None else {"task_log": test.task_log}),
                **place,
            }
        )
        return memory

    def _needs(self, test: PublishedTest, messages: Sequence[Message]) -> list[Sequence[int] | None]:
        """For each question the earlier messages that its answer rests on; None, for all, where the kind is not ours."""
        try:
            example = stored_example(self._rows[test.test_id])
            needed = iter(example.dataset.needed_lines(example))
        except ConfigurationError:
            needed = iter(())
        return [next(needed, None) if message.question else None for message in messages]

    def _call(self, position: int, test: PublishedTest, memory: dict[str, Any]) -> Call:
        questions = [said["message"] for said in memory["said"] if said["question"]]
        task = self._frame.task(test.test_id, self._rows[test.test_id], "\n".join(questions))
        record = GenerationRecord(
            task=task, output=ModelOutput(text="\n\n".join(test.responses)), error=None, metrics={"memory": memory}
        )
        key = digest(self._agent.sha256, test.test_id)
        seconds = float(memory.get("agent_seconds") or 0.0)
        return Call(position, 0, key, record, cost_usd=None, seconds=seconds, reused=True)

    def _rescore(self, evaluation: int, position: int, test: PublishedTest, memory: dict[str, Any]) -> None:
        """Our own verdict on the published answers, where we have a scorer for them."""
        row = self._rows[test.test_id]
        try:
            if not row.get("script"):
                raise ConfigurationError("what a dynamic test of another program would say next is not known")
            example = stored_example(row)
        except ConfigurationError as error:
            grade = Grade.failure(str(error))
        else:
            messages = [_message(said) for said in memory["said"]]
            lines = self._log.lines if self._log is not None else []
            grade = replay(example, messages, Conversation(lines=lines))
        self._writer.commit_verdicts(evaluation, graded_verdicts(position, test.dataset, grade))
        if not grade.failed:
            self._done.rescored += 1
            self._done.rescored_equal += abs(grade.score - test.share) < 1e-9


def _message(said: Mapping[str, Any]) -> Message:
    now = datetime.fromisoformat(said["now"]) if said["now"] else None
    return Message(
        said["turn"], said["message"], said["reply"], said["question"], said["needle"], said["tokens_before"], now
    )


def _agent_tokens(stats: Mapping[str, Any]) -> int | None:
    """How many tokens the agent said; an older generation gives only its speed."""
    if stats.get("agent_tokens") is not None:
        return int(stats["agent_tokens"])
    if stats.get("tokens_per_second") and stats.get("duration"):
        return round(float(stats["tokens_per_second"]) * float(stats["duration"]))
    return None


def _way(name: str) -> tuple[str, dict[str, Any]]:
    return fingerprint(["memory", _SOURCE, name]), {"metrics": [OVERALL], "extractor": _SOURCE, "name": name}


def _published_verdicts(position: int, test: PublishedTest) -> list[Verdict]:
    published: dict[str, Any] = {"score": test.score, "max_score": test.max_score}
    if test.by_hand:
        published["by_hand"] = test.by_hand
    text = encode({"details": {"reasons": test.reasons, "published": to_plain(published)}, "metadata": {}})
    return [Verdict(position, name, 0, test.share, SCORED, text) for name in (OVERALL, test.dataset)]


def _from_task_log(test: PublishedTest) -> list[Message]:
    """Messages of a result without a master log; where they lie in the conversation is not known."""
    messages: list[Message] = []
    pending: tuple[str, datetime | None] | None = None
    for sender, text, moment in goodai.said_in(test.task_log):
        if sender == "Test":
            pending = (text, moment)
        elif sender == "Agent" and pending is not None:
            question = text in test.responses
            messages.append(Message(len(messages) + 1, pending[0], text, question, not question, 0, pending[1]))
            pending = None
    return messages


# --- the master log ---------------------------------------------------------------------------------------------------


@dataclass
class _Part:
    """One test's part of the log."""

    test_id: str
    began: tuple[int, datetime]
    ended: tuple[int, datetime] | None = None
    messages: list[Message] = field(default_factory=list)
    first_send: int | None = None
    end: int | None = None
    listened_from_turn: int | None = None
    seconds: float = 0.0

    def place(self) -> dict[str, Any]:
        ended = self.ended or self.began
        return {
            "began": {"tokens": self.began[0], "now": self.began[1]},
            "ended": {"tokens": ended[0], "now": ended[1]},
            "listened_from_turn": self.listened_from_turn,
            "agent_seconds": self.seconds,
        }


class _Logged:
    """A master log gone through once: the exchanges with their tokens, and each test's part."""

    def __init__(self, events: Sequence[Event], rows: Mapping[str, Mapping[str, Any]], count: Any) -> None:
        self._events = events
        self._count = count
        self._parts: dict[str, _Part] = {}
        self.lines: list[Line] = []
        self.judged: dict[str, int] = {}
        self.replies = 0
        self._turns: list[tuple[str, str | None, Body]] = []
        # The last message that each test sends.
        self._last = {event.test_id: event for event in events if event.code == goodai.SEND}
        self._read(rows)

    def part(self, test_id: str) -> _Part | None:
        return self._parts.get(test_id)

    def measured(self, test_id: str) -> tuple[int, int]:
        """Tokens and characters of everything said from a test's first message until its end."""
        part = self._parts[test_id]
        end = len(self._events) if part.end is None else part.end
        said = (goodai.SEND, goodai.SEND_FILL, goodai.REPLY, goodai.REPLY_FILL)
        text = "".join(event.text for event in self._events[part.first_send or 0 : end] if event.code in said)
        return self._count(text), len(text)

    def turns(self, results: Mapping[str, PublishedTest]) -> list[Turn]:
        """The rows of the conversation; a test's end carries its published score."""
        turns = []
        for seq, (kind, test_id, body) in enumerate(self._turns):
            if kind == "end" and test_id is not None and test_id in results:
                body.score, body.reasons = results[test_id].share, list(results[test_id].reasons)
            turns.append(Turn(seq, kind, test_id, encode(body)))
        return turns

    def _read(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        tokens = turn = listening = 0
        sent: Event | None = None
        sent_place = 0
        before: datetime | None = None
        for place, event in enumerate(self._events):
            if before is not None and (event.now - before).total_seconds() > _JUMP_SECONDS and sent is None:
                self._add("jump", None, Body(now=event.now, until=event.now))
            before = event.now
            part = self._parts.get(event.test_id)
            match event.code:
                case goodai.BEGIN:
                    if part is None:
                        self._parts[event.test_id] = _Part(event.test_id, (tokens, event.now))
                        self._add("begin", event.test_id, Body(tokens_total=tokens, now=event.now))
                case goodai.SEND | goodai.SEND_FILL:
                    sent, sent_place = event, place
                case goodai.REPLY | goodai.REPLY_FILL if sent is not None:
                    turn += 1
                    used = self._count(sent.text) + self._count(event.text)
                    self._exchange(sent, event, turn, tokens, used, rows, canned_allowed=not listening)
                    part = self._parts.get(sent.test_id)
                    if part is not None and part.first_send is None:
                        part.first_send = sent_place
                    tokens += used
                    sent = None
                case goodai.WAIT if part is not None:
                    wanted = int(event.data.get("tokens") or 0)
                    until = event.now + timedelta(seconds=float(event.data.get("time") or 0))
                    self._add("wait", event.test_id, Body(until_tokens=tokens + wanted, until=until, now=event.now))
                case goodai.LLM:
                    self.judged[event.test_id] = self.judged.get(event.test_id, 0) + 1
                    answer = str(event.data.get("response", ""))
                    self._add("consult", event.test_id, Body(answer=answer, prompt="", now=event.now))
                case goodai.REGISTER if part is not None:
                    listening += 1
                    part.listened_from_turn = turn
                    self._add("listen", event.test_id, Body(now=event.now))
                case goodai.DEREGISTER:
                    listening = max(0, listening - 1)
                case goodai.END if part is not None:
                    part.end, part.ended = place, part.ended or (tokens, event.now)
                    self._add("end", event.test_id, Body(tokens_total=tokens, now=event.now))

    def _exchange(
        self,
        sent: Event,
        reply: Event,
        turn: int,
        tokens: int,
        used: int,
        rows: Mapping[str, Mapping[str, Any]],
        *,
        canned_allowed: bool,
    ) -> None:
        seconds = max(0.0, (reply.now - sent.now).total_seconds())
        is_fill = sent.code == goodai.SEND_FILL
        question = bool(sent.data.get("is_question"))
        part = None if is_fill else self._parts.get(sent.test_id)
        kind = "intro" if is_fill and turn == 1 else "fill" if is_fill else "ask" if question else "say"
        if part is not None:
            part.seconds += seconds
            if _is_farewell(rows.get(sent.test_id, {}), part, question, self._last.get(sent.test_id) is sent):
                kind = "forget"
                # What follows the last answer is no part of the distance.
                part.ended = (tokens, sent.now)
            else:
                part.messages.append(
                    Message(turn, sent.text, reply.text, question, not question, tokens, reply.now, None)
                )
        canned = is_fill and canned_allowed and seconds < _CANNED_SECONDS
        self.replies += not canned
        owner = None if is_fill else sent.test_id
        self._add(kind, owner, Body(turn=turn, message=sent.text, presupplied=reply.text if canned else None))
        self._add(
            "reply",
            owner,
            Body(
                turn=turn,
                reply=reply.text,
                tokens=used,
                tokens_total=tokens + used,
                elapsed_seconds=seconds,
                now=reply.now,
                cost_usd=None,
                seconds=0.0 if canned else seconds,
            ),
        )
        self.lines.append(Line(turn, owner, sent.text, reply.text, reply.now, question))

    def _add(self, kind: str, test_id: str | None, body: Body) -> None:
        self._turns.append((kind, test_id, body))


def _is_farewell(row: Mapping[str, Any], part: _Part, question: bool, last: bool) -> bool:
    """Whether a message asks to forget the test: it comes after the script, or ends a test that has none written down."""
    lines = len(row.get("is_question") or [])
    return not question and last and len(part.messages) >= lines and bool(part.messages)
