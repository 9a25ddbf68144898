"""Puts published results of the GoodAI LTM Benchmark into the store as memory runs.

Published scores are kept as they are and stay the ones that count; scores that a person has changed are marked. Our own
scorers' verdicts lie beside them under another evaluation. An import is made once: the same folder again changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from themis.core.bounded_reading import Broken, ReadLimits
from themis.core.codec import canonical_json, digest, encode, fingerprint, to_plain
from themis.core.entities import GenerationRecord, ModelOutput, Result, SamplingConfig
from themis.core.tokens import DEFAULT_TOKENIZER
from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.actions import Grade, Message
from themis.memory.examples import MEMORY_TESTS, Definition
from themis.memory.master_log import MasterLog
from themis.memory.published import (
    AgentFolder,
    PublishedTest,
    RunFolder,
    find_runs,
    read_agent,
    read_run,
    read_task_log,
)
from themis.memory.rejudging import Conversation, list_heard, load_stored_example, replay
from themis.memory.result_store import frame_of, score_rows
from themis.runs.manifest import build_reproducibility_manifest, manifest_hash
from themis.runs.report import OVERALL, build_report, summarise_run
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.runs import SCORED, Item, ScoreRow, batched, validate_run_id
from themis.storage.writing import RunWriter

PUBLISHED, RESCORED = "published", "rescored"
_SOURCE = "goodai-ltm-benchmark"


@dataclass
class ImportedAgent:
    """What became of one agent's folder."""

    run_id: str
    agent: str
    tests: int = 0
    # Tests that are defined, but have no result that can be read.
    without_result: list[str] = field(default_factory=list)
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
    """Imports every agent of a run folder, or of all run folders in a folder.

    A folder that cannot be imported does not keep the others out: what is wrong with it is in its `broken`.

    Args:
        path: The folder.
        storage: Where to.
        name: Instead of the name in the configuration. Folders of one name are told apart by their own names.
        limits: How much is read of each agent's folder, by default `ReadLimits()`; more is refused.

    Raises:
        DatasetError: There is no run, or the only folder there is cannot be read.
        ConfigurationError: The only folder there is was imported before, and has changed since.
    """
    root, limits = Path(path), limits or ReadLimits()
    runs: list[RunFolder] = []
    imported: list[ImportedAgent] = []
    refused: list[DatasetError | ConfigurationError] = []

    def refuse(run: str, agent: str, error: OSError | DatasetError | ConfigurationError) -> None:
        refused.append(DatasetError(str(error)) if isinstance(error, OSError) else error)
        imported.append(ImportedAgent(run, agent, broken=[Broken(agent or run, str(error))]))

    for folder in find_runs(root):
        try:
            runs.append(read_run(folder, limits))
        except (OSError, DatasetError) as error:
            refuse(folder.name, "", error)
    names = _name_runs(runs, root, name)
    earlier = {} if name else _find_imported(storage)
    for run in runs:
        run.name = names[run.path]
        if not run.agents:
            imported.append(ImportedAgent(run.name, "", broken=run.broken))
        for folder in run.agents:
            try:
                agent = read_agent(folder, limits, run.definitions)
                imported.append(_import_agent(run, agent, storage, earlier))
            except (OSError, DatasetError, ConfigurationError) as error:
                refuse(run.name, folder.name, error)
    if len(refused) == len(imported) == 1:
        raise refused[0]
    return imported


def _name_runs(runs: Sequence[RunFolder], root: Path, name: str | None) -> dict[Path, str]:
    """A name for each: its own, with the folder it came from where several have the same."""
    wanted = {run.path: name or run.name for run in runs}
    sharing = Counter(wanted.values())
    folders = Counter((wanted[run.path], run.path.name) for run in runs)
    names = {}
    for run in runs:
        own, folder = wanted[run.path], run.path.name
        if folders[own, folder] > 1:
            folder = run.path.relative_to(root).as_posix()
        names[run.path] = own if sharing[own] == 1 or folder == own else _add_folder(own, folder)
    return names


def _add_folder(name: str, folder: str) -> str:
    return f"{name} (from {folder})"


def _find_imported(storage: ExperimentStorage) -> dict[tuple[str, str], str]:
    """The runs that were imported whole, by their folder and the hash of their files."""
    completed = storage.list_runs(kind="memory", status=RunStatus.COMPLETED)
    imported = [run.run_id for run in completed if run.tags.get("imported_from") == _SOURCE]
    identities = {run_id: storage.reader(run_id).identity for run_id in imported}
    return {(found.get("folder", ""), found.get("sha256", "")): run_id for run_id, found in identities.items()}


def _import_agent(
    run: RunFolder, agent: AgentFolder, storage: ExperimentStorage, earlier: Mapping[tuple[str, str], str]
) -> ImportedAgent:
    broken, folder = [*run.broken, *agent.broken], run.path.resolve().name
    if not agent.tests:
        nothing = Broken(agent.name, "holds no result that can be read; nothing was imported")
        return ImportedAgent(_make_run_id(run.name, agent.name), agent.name, broken=[*broken, nothing])
    have_results = {test.test_id for test in agent.tests}
    lacking = [test_id for test_id in run.definitions if test_id not in have_results]
    if (same := earlier.get((folder, agent.sha256))) is not None:
        return ImportedAgent(same, agent.name, len(agent.tests), lacking, already=True, broken=broken)
    run_id, benchmark = _choose_run_id(run, agent, storage)
    done = ImportedAgent(run_id, agent.name, without_result=lacking, broken=broken)
    if storage.run_exists(run_id):
        if storage.get_run(run_id).status is RunStatus.COMPLETED:
            done.already, done.tests = True, len(agent.tests)
            return done
        storage.delete_run(run_id)
    identity = {"source": _SOURCE, "sha256": agent.sha256, "agent": agent.name, "folder": folder}
    storage.start_run(
        run_id,
        kind="memory",
        model=f"agent:{agent.name}",
        benchmark=benchmark,
        identity=identity,
        tags={"imported_from": _SOURCE},
    )
    with storage.open_run(run_id) as writer:
        _Import(replace(run, name=benchmark), agent, storage, writer, done).write(identity)
    return done


def _choose_run_id(run: RunFolder, agent: AgentFolder, storage: ExperimentStorage) -> tuple[str, str]:
    """A run id and the benchmark's name in it: one that is free, or was begun from these files."""
    folder = run.path.resolve().name
    taken = ""
    for benchmark in (run.name, _add_folder(run.name, folder)):
        run_id = _make_run_id(benchmark, agent.name)
        if not storage.run_exists(run_id):
            return run_id, benchmark
        identity = storage.reader(run_id).identity
        if identity.get("sha256") == agent.sha256:
            return run_id, benchmark
        taken = run_id
        if identity.get("folder") == folder:
            break
    raise ConfigurationError(
        f"run {taken!r} exists and was not made from these files; import them under another --name, or delete that run "
        "first"
    )


def _make_run_id(benchmark: str, agent: str) -> str:
    clean = re.sub(r'[/\\:*?"<>|@\x00-\x1f]+', "-", f"{benchmark} - {agent}").strip(" .")
    if len(clean) > _LONGEST_ID:
        # Names that differ only behind the cut stay different.
        clean = f"{clean[: _LONGEST_ID - 9]}~{digest(clean)[:8]}"
    return validate_run_id(clean)


_LONGEST_ID = 200


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
        contents = {test_id: canonical_json(to_plain(row)) for test_id, row in self._rows.items()}
        items = [Item(n, test_id, digest(content), content) for n, (test_id, content) in enumerate(contents.items())]
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
            scores = {test.test_id: (test.share, test.reasons) for test in agent.tests if test.share is not None}
            turns = self._log.turns(scores)
            done.turns = len(turns)
            for batch in batched(turns, 500):
                writer.append_turns(batch)
        writer.update(succeeded=done.tests, **self._read_totals())
        writer.finish(RunStatus.COMPLETED, summary=summarise_run(build_report(self._storage, writer.run_id, theirs)))

    # --- what there is ------------------------------------------------------------------------------------------------

    def _read_arguments(self) -> dict[str, Definition]:
        """Arguments of each dataset by its displayed name."""
        found = self._run.arguments
        return {MEMORY_TESTS.get(name).name: found[name] for name in found if name in MEMORY_TESTS}

    def _read_tests(self) -> dict[str, Definition]:
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

    def _describe(self, items: Sequence[Item]) -> tuple[str, Definition]:
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
        spans = {span for row in self._rows.values() if (span := _read_span(row["arguments"]))}
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
                "published_stats": stats,
            },
        }
        return stamp, config

    def _read_totals(self) -> Definition:
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

    def _describe_result(self, test: PublishedTest) -> Definition:
        """What the record of a test says, as that of a run of our own does."""
        span = _read_span(self._arguments.get(test.dataset, {}))
        log, part = self._log, None if self._log is None else self._log.part(test.test_id)
        if log is None or part is None:
            if log is not None:
                self._done.broken.append(Broken("master_log.jsonl", f"has no conversation of {test.test_id!r}"))
            messages, place = _read_messages(test, self._rows[test.test_id]), {}
        else:
            messages, place = part.messages, part.place()
            tokens, characters = log.measure(test.test_id)
            self._done.counted += 1
            self._done.tokens_reproduced += tokens == test.tokens
            self._done.characters_reproduced += characters == test.characters
            if (tokens, characters) != (test.tokens, test.characters):
                said = f"{test.tokens} tokens, {test.characters} characters; the log has {tokens} and {characters}"
                self._done.broken.append(Broken(test.test_id, f"published as {said}"))
        memory: Definition = to_plain(
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
                    for message, needs in zip(messages, self._needs(test, messages, part is not None), strict=True)
                ],
                "cost_usd": None,
                "judge_calls": 0 if log is None else log.judge_calls.get(test.test_id, 0),
                **({} if part is not None else {"task_log": test.task_log, "heard": [one[:2] for one in test.heard]}),
                **place,
            }
        )
        return memory

    def _needs(self, test: PublishedTest, messages: Sequence[Message], placed: bool) -> list[Sequence[int] | None]:
        """For each question the earlier messages that its answer rests on; None, for all, where the kind is not ours.

        None at all where nobody knows their places in the conversation: a distance would be made up.
        """
        if not placed:
            return [() for _ in messages]
        try:
            example = load_stored_example(self._rows[test.test_id])
            needed = iter(example.dataset.needed_lines(example))
        except (ConfigurationError, LookupError, TypeError, ValueError):
            # Of material that our kind cannot read, no less than all is needed.
            needed = iter(())
        needs: list[Sequence[int] | None] = []
        for place, message in enumerate(messages):
            lines = next(needed, None) if message.question else None
            # A log may lack some of the lines.
            needs.append(lines if lines is not None and all(line < place for line in lines) else None)
        return needs

    def _call(self, position: int, test: PublishedTest, memory: Definition) -> Result:
        questions = [said["message"] for said in memory["said"] if said["question"]]
        task = self._frame.task(test.test_id, self._rows[test.test_id], "\n".join(questions))
        record = GenerationRecord(
            task=task, output=ModelOutput(text="\n\n".join(test.responses)), error=None, metrics={"memory": memory}
        )
        key = digest(self._agent.sha256, test.test_id)
        seconds = float(memory.get("agent_seconds") or 0.0)
        return Result(position, 0, key, record, cost_usd=None, seconds=seconds, reused=True)

    def _rescore(self, evaluation: int, position: int, test: PublishedTest, memory: Definition) -> None:
        """Our own verdict on the published answers, where we have a scorer for them."""
        row = self._rows[test.test_id]
        try:
            if not row.get("script"):
                raise ConfigurationError("what a dynamic test of another program would say next is not known")
            example = load_stored_example(row)
        except ConfigurationError as error:
            grade = Grade.failure(str(error))
        else:
            messages = [Message.from_stored(said) for said in memory["said"]]
            lines = list_heard(messages, memory.get("heard") or ()) or (
                self._log.lines if self._log is not None else []
            )
            grade = replay(example, messages, Conversation(lines=lines))
        self._writer.commit_scores(evaluation, score_rows(position, test.dataset, grade))
        if not grade.failed and test.share is not None:
            self._done.rescored += 1
            self._done.rescored_equal += abs(grade.score - test.share) < 1e-9


def _agent_tokens(stats: Definition) -> int | None:
    """How many tokens the agent said; an older generation gives only its speed."""
    if stats.get("agent_tokens") is not None:
        return int(stats["agent_tokens"])
    if stats.get("tokens_per_second") and stats.get("duration"):
        return round(float(stats["tokens_per_second"]) * float(stats["duration"]))
    return None


def _describe_evaluation(name: str) -> tuple[str, Definition]:
    return fingerprint(["memory", _SOURCE, name]), {"metrics": [OVERALL], "extractor": _SOURCE, "name": name}


def _published_rows(position: int, test: PublishedTest) -> list[ScoreRow]:
    published: Definition = {"score": test.score, "max_score": test.max_score}
    if test.by_hand:
        published["by_hand"] = test.by_hand
    if test.share is None:
        return score_rows(
            position, test.dataset, Grade.failure(f"published without a score that counts: {test.unusable}")
        )
    text = encode({"details": {"reasons": test.reasons, "published": to_plain(published)}, "metadata": {}})
    return [ScoreRow(position, name, 0, test.share, SCORED, text) for name in (OVERALL, test.dataset)]


def _read_span(arguments: Definition) -> int:
    span = arguments.get("memory_span")
    return span if isinstance(span, int) and not isinstance(span, bool) and 0 < span < 2**53 else 0


def _read_messages(test: PublishedTest, definition: Definition) -> list[Message]:
    """Messages of a result without a master log; where they lie in the conversation is not known."""
    script, flags = definition.get("script") or [], definition.get("is_question") or []
    messages: list[Message] = []
    line = 0
    for one in read_task_log(test.task_log):
        question = one.reply in test.responses
        if one.message in script[line:]:
            line = script.index(one.message, line) + 1
            question = flags[line - 1] if flags else line == len(script)
        elif script and not (definition.get("is_temporal") and question):
            # The request to forget, or what others said to a test that listens.
            continue
        messages.append(Message(len(messages) + 1, one.message, one.reply, question, not question, 0, one.now))
    return messages
