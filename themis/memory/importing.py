"""Puts published results of the GoodAI LTM Benchmark into the store as memory runs.

Published scores are kept as they are and stay the ones that count; scores that a person has changed are marked. Our own
scorers' verdicts lie beside them under another evaluation. An import is made once: the same folder again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from themis.config import load_memory_config
from themis.core.bounded_reading import Broken, ReadLimits
from themis.core.codec import canonical_json, encode, to_plain
from themis.core.entities import GenerationRecord, ModelOutput, Result, SamplingConfig
from themis.core.fingerprint import digest, fingerprint
from themis.core.tokens import DEFAULT_TOKENIZER
from themis.exceptions import ConfigurationError
from themis.memory import goodai
from themis.memory.actions import Grade, Message
from themis.memory.examples import MEMORY_TESTS
from themis.memory.goodai import AgentFolder, Json, PublishedTest, RunFolder
from themis.memory.master_log import MasterLog
from themis.memory.rejudging import Conversation, replay, stored_example
from themis.memory.result_store import OVERALL, frame_of, score_rows
from themis.runs.manifest import build_reproducibility_manifest, manifest_hash
from themis.runs.report import build_report, summarise_run
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.records import SCORED, Item, ScoreRow, batched
from themis.storage.runs import validate_run_id
from themis.storage.writing import RunWriter

__all__ = ["PUBLISHED", "RESCORED", "ImportedAgent", "import_folder"]

PUBLISHED, RESCORED = "published", "rescored"
_SOURCE = "goodai-ltm-benchmark"


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
    run_id = validate_run_id(_clean_run_id(f"{run.name} - {agent.name}"))
    done = ImportedAgent(run_id, agent.name, broken=[*run.broken, *agent.broken])
    if not agent.tests:
        done.broken.append(Broken(agent.name, "holds no result that can be read; nothing was imported"))
        return done
    if storage.run_exists(run_id):
        if storage.reader(run_id).identity.get("sha256") != agent.sha256:
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


def _clean_run_id(text: str) -> str:
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
        self._kinds = {MEMORY_TESTS.get(name).name: name for name in MEMORY_TESTS.names()}
        self._arguments = self._read_arguments()
        self._frame = frame_of(agent.name)
        self._rows = self._read_tests()
        self._log = MasterLog(agent.events, self._rows) if agent.events is not None else None

    def write(self, identity: Mapping[str, str]) -> None:
        writer, agent, done = self._writer, self._agent, self._done
        items = [self._item(position, row) for position, row in enumerate(self._rows.values())]
        writer.store_dataset(items)
        stamp, config = self._describe(items)
        writer.describe(identity=identity, config=config, manifest_hash=stamp)
        positions = {item.item_id: item.position for item in items}
        ours = writer.open_evaluation(*_describe_evaluation(RESCORED))
        theirs = writer.open_evaluation(*_describe_evaluation(PUBLISHED))
        calls = []
        for test in agent.tests:
            memory = self._describe_result(test)
            position = positions[test.test_id]
            calls.append(self._call(position, test, memory))
            writer.commit_scores(theirs, _published_rows(position, test))
            self._rescore(ours, position, test, memory)
            done.tests += 1
            done.hand_edited += bool(test.by_hand)
        writer.commit_results(calls)
        if self._log is not None:
            turns = self._log.turns({test.test_id: (test.share, test.reasons) for test in agent.tests})
            done.turns = len(turns)
            for batch in batched(turns, 500):
                writer.append_turns(batch)
        writer.update(succeeded=done.tests, **self._read_totals())
        writer.finish(RunStatus.COMPLETED, summary=summarise_run(build_report(self._storage, writer.run_id, theirs)))

    # --- what there is ------------------------------------------------------------------------------------------------

    def _read_arguments(self) -> dict[str, Json]:
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

    def _read_tests(self) -> dict[str, Json]:
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

    def _item(self, position: int, row: Json) -> Item:
        content = canonical_json(to_plain(row))
        return Item(position, row["id"], digest(content), content)

    def _describe(self, items: Sequence[Item]) -> tuple[str, Json]:
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

    def _read_totals(self) -> Json:
        stats = self._agent.stats
        return {
            "calls": self._log.replies if self._log is not None else 0,
            "completion_tokens": _agent_tokens(stats) or 0,
            "cost_usd": float(stats.get("agent_costs_usd") or 0.0),
            "unpriced_calls": 0 if "agent_costs_usd" in stats else 1,
            "judge_cost_usd": float(stats.get("managing_costs_usd") or 0.0),
            "judge_calls": sum(self._log.judge_calls.values()) if self._log is not None else 0,
            "seconds": float(stats.get("duration") or 0.0),
        }

    # --- one test -----------------------------------------------------------------------------------------------------

    def _describe_result(self, test: PublishedTest) -> Json:
        """What the record of a test says, as that of a run of our own does."""
        span = int((self._arguments.get(test.dataset) or {}).get("memory_span") or 0)
        log, part = self._log, None if self._log is None else self._log.part(test.test_id)
        if log is None or part is None:
            if log is not None:
                self._done.broken.append(Broken("master_log.jsonl", f"has no conversation of {test.test_id!r}"))
            messages, place = _from_task_log(test), {}
        else:
            messages, place = part.messages, part.place()
            tokens, characters = log.measure(test.test_id)
            self._done.counted += 1
            self._done.tokens_reproduced += tokens == test.tokens
            self._done.characters_reproduced += characters == test.characters
            if (tokens, characters) != (test.tokens, test.characters):
                said = f"{test.tokens} tokens, {test.characters} characters; the log has {tokens} and {characters}"
                self._done.broken.append(Broken(test.test_id, f"published as {said}"))
        memory: Json = to_plain(
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
                    {**message.to_stored(), "needs": needs}
                    for message, needs in zip(messages, self._needs(test, messages), strict=True)
                ],
                "cost_usd": None,
                "judge_calls": 0 if log is None else log.judge_calls.get(test.test_id, 0),
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

    def _call(self, position: int, test: PublishedTest, memory: Json) -> Result:
        questions = [said["message"] for said in memory["said"] if said["question"]]
        task = self._frame.task(test.test_id, self._rows[test.test_id], "\n".join(questions))
        record = GenerationRecord(
            task=task, output=ModelOutput(text="\n\n".join(test.responses)), error=None, metrics={"memory": memory}
        )
        key = digest(self._agent.sha256, test.test_id)
        seconds = float(memory.get("agent_seconds") or 0.0)
        return Result(position, 0, key, record, cost_usd=None, seconds=seconds, reused=True)

    def _rescore(self, evaluation: int, position: int, test: PublishedTest, memory: Json) -> None:
        """Our own verdict on the published answers, where we have a scorer for them."""
        row = self._rows[test.test_id]
        try:
            if not row.get("script"):
                raise ConfigurationError("what a dynamic test of another program would say next is not known")
            example = stored_example(row)
        except ConfigurationError as error:
            grade = Grade.failure(str(error))
        else:
            messages = [Message.from_stored(said) for said in memory["said"]]
            lines = self._log.lines if self._log is not None else []
            grade = replay(example, messages, Conversation(lines=lines))
        self._writer.commit_scores(evaluation, score_rows(position, test.dataset, grade))
        if not grade.failed:
            self._done.rescored += 1
            self._done.rescored_equal += abs(grade.score - test.share) < 1e-9


def _agent_tokens(stats: Json) -> int | None:
    """How many tokens the agent said; an older generation gives only its speed."""
    if stats.get("agent_tokens") is not None:
        return int(stats["agent_tokens"])
    if stats.get("tokens_per_second") and stats.get("duration"):
        return round(float(stats["tokens_per_second"]) * float(stats["duration"]))
    return None


def _describe_evaluation(name: str) -> tuple[str, Json]:
    return fingerprint(["memory", _SOURCE, name]), {"metrics": [OVERALL], "extractor": _SOURCE, "name": name}


def _published_rows(position: int, test: PublishedTest) -> list[ScoreRow]:
    published: Json = {"score": test.score, "max_score": test.max_score}
    if test.by_hand:
        published["by_hand"] = test.by_hand
    text = encode({"details": {"reasons": test.reasons, "published": to_plain(published)}, "metadata": {}})
    return [ScoreRow(position, name, 0, test.share, SCORED, text) for name in (OVERALL, test.dataset)]


def _from_task_log(test: PublishedTest) -> list[Message]:
    """Messages of a result without a master log; where they lie in the conversation is not known."""
    messages: list[Message] = []
    pending: tuple[str, datetime | None] | None = None
    for sender, text, moment in goodai.read_task_log(test.task_log):
        if sender == "Test":
            pending = (text, moment)
        elif sender == "Agent" and pending is not None:
            question = text in test.responses
            messages.append(Message(len(messages) + 1, pending[0], text, question, not question, 0, pending[1]))
            pending = None
    return messages
