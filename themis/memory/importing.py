"""Puts published results of the GoodAI LTM Benchmark into the store as memory runs.

Published scores are kept as they are and stay the ones that count; scores that a person has changed are marked. Our own
scorers' verdicts lie beside them under another evaluation. An import is made once: the same folder again changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from themis.config import load_memory_config
from themis.core.bounded_reading import Broken, ReadLimits, refuse_large_folder
from themis.core.codec import canonical_json, encode, to_plain
from themis.core.entities import GenerationRecord, ModelOutput, Result, SamplingConfig
from themis.core.fingerprint import digest, fingerprint
from themis.core.tokens import DEFAULT_TOKENIZER
from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.actions import Grade, Message
from themis.memory.examples import MEMORY_TESTS
from themis.memory.master_log import Event, MasterLog, read_events
from themis.memory.rejudging import Conversation, load_stored_example, replay
from themis.memory.result_store import OVERALL, frame_of, score_rows
from themis.runs.manifest import build_reproducibility_manifest, manifest_hash
from themis.runs.report import build_report, summarise_run
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.runs import SCORED, Item, ScoreRow, batched, validate_run_id
from themis.storage.writing import RunWriter

Json = dict[str, Any]
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
    for run_path in find_runs(Path(path)):
        run = read_run(run_path, limits)
        run.name = name or run.name
        imported += [_import_agent(run, read_agent(folder, limits), storage) for folder in run.agents]
    return imported


def _import_agent(run: RunFolder, agent: AgentFolder, storage: ExperimentStorage) -> ImportedAgent:
    clean = re.sub(r'[/\\:*?"<>|@\x00-\x1f]+', "-", f"{run.name} - {agent.name}")
    run_id = validate_run_id(clean.strip(" .")[:200])
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
            example = load_stored_example(self._rows[test.test_id])
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
            example = load_stored_example(row)
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
    for sender, text, moment in read_task_log(test.task_log):
        if sender == "Test":
            pending = (text, moment)
        elif sender == "Agent" and pending is not None:
            question = text in test.responses
            messages.append(Message(len(messages) + 1, pending[0], text, question, not question, 0, pending[1]))
            pending = None
    return messages


# --- a run's folder ---------------------------------------------------------------------------------------------------
#
#    <run>/definitions/config.yml, <run>/definitions/<dataset>/<example>.def.json
#    <run>/results/<agent>/runstats.json, master_log.jsonl, <dataset>/<example>_<repetition>.json
#
# Of every generation of these formats. What cannot be read is reported with its place; the rest is read all the same.

_SPOKEN_LINE = re.compile(r"(Test|Agent|System) \(([^)]+)\): (.*)", re.DOTALL)


@dataclass(kw_only=True)
class PublishedTest:
    """A result file, normalised. `by_hand` holds the automatic values of one that a person has changed."""

    dataset: str
    example_id: str
    score: float
    max_score: float
    reasons: list[str]
    responses: list[str]
    expected: object
    tokens: int
    characters: int
    needles: int | None
    task_log: list[str]
    by_hand: Json = field(default_factory=dict)

    @property
    def test_id(self) -> str:
        return f"{self.dataset} - {self.example_id}"

    @property
    def share(self) -> float:
        """The score from 0 to 1; older files have points out of more than one."""
        return self.score / self.max_score if self.max_score else 0.0


@dataclass
class AgentFolder:
    """What one agent's folder holds. `events` is None without a master log."""

    name: str
    tests: list[PublishedTest] = field(default_factory=list)
    events: list[Event] | None = None
    stats: Json = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)
    sha256: str = ""


@dataclass
class RunFolder:
    """A benchmark: its name, configuration and definitions by test id, and the folders of its agents."""

    path: Path
    name: str
    configuration: Path | None
    definitions: dict[str, Json]
    agents: list[Path]
    broken: list[Broken] = field(default_factory=list)


def find_runs(path: Path) -> list[Path]:
    """The run folders at a path: itself, or those in it."""
    if not path.is_dir():
        raise DatasetError(f"there is no folder {str(path)!r}")
    if (path / "results").is_dir() or (path / "definitions").is_dir():
        return [path]
    found = [entry for entry in sorted(path.iterdir()) if (entry / "results").is_dir()]
    if not found:
        raise DatasetError(f"{str(path)!r} holds no run: expected a folder with definitions and results in it")
    return found


def read_run(path: Path, limits: ReadLimits) -> RunFolder:
    refuse_large_folder(path / "definitions", limits)
    broken: list[Broken] = []
    definitions = {}
    for file in sorted((path / "definitions").glob("*/*.def.json")):
        content = _read_object(file, path, broken)
        if content is not None:
            definitions[f"{file.parent.name} - {file.name.removesuffix('.def.json')}"] = _parse_definition(content)
    configuration = path / "definitions" / "config.yml"
    results = path / "results"
    agents = sorted(entry for entry in results.iterdir() if entry.is_dir()) if results.is_dir() else []
    return RunFolder(
        path=path,
        name=_read_run_name(configuration, broken) or path.name,
        configuration=configuration if configuration.is_file() else None,
        definitions=definitions,
        agents=agents,
        broken=broken,
    )


def read_agent(folder: Path, limits: ReadLimits) -> AgentFolder:
    refuse_large_folder(folder, limits)
    agent = AgentFolder(folder.name)
    hashed = hashlib.sha256()
    for file in sorted(folder.glob("*/*.json")):
        hashed.update(file.relative_to(folder).as_posix().encode("utf-8", "backslashreplace") + file.read_bytes())
        content = _read_object(file, folder, agent.broken)
        if content is None:
            continue
        try:
            agent.tests.append(_parse_result(file, content))
        except (KeyError, TypeError, ValueError) as error:
            agent.broken.append(Broken(file.relative_to(folder).as_posix(), f"{type(error).__name__}: {error}"))
    log = folder / "master_log.jsonl"
    if log.is_file():
        hashed.update(log.read_bytes())
        with log.open(encoding="utf-8", errors="replace") as lines:
            agent.events = list(
                read_events(lines, lambda line, what: agent.broken.append(Broken(f"{log.name} line {line}", what)))
            )
    stats = folder / "runstats.json"
    if stats.is_file():
        hashed.update(stats.read_bytes())
        agent.stats = _read_object(stats, folder, agent.broken) or {}
    agent.sha256 = hashed.hexdigest()
    return agent


# --- files ------------------------------------------------------------------------------------------------------------


def _read_object(file: Path, root: Path, broken: list[Broken]) -> Json | None:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return content
        reason = f"expected a JSON object, got {type(content).__name__}"
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error)
    broken.append(Broken(file.relative_to(root).as_posix(), reason))
    return None


def _read_run_name(file: Path, broken: list[Broken]) -> str | None:
    import yaml

    if not file.is_file():
        return None
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        return str(content["config"]["run_name"])
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        broken.append(Broken(f"definitions/{file.name}", f"no run_name: {error}"))
        return None


def _parse_definition(content: Json) -> Json:
    """In today's fields. The first generation has spacings and jumps in lists of their own instead of waits."""
    definition = {name: value for name, value in content.items() if name != "evaluation_fn"}
    spacings, jumps = definition.pop("token_spacings", None), definition.pop("time_jumps", None)
    if "waits" not in definition:
        lines = len(definition.get("is_question") or [])
        waits = [{"tokens": _item_at(spacings, n), "time": _parse_seconds(_item_at(jumps, n))} for n in range(lines)]
        definition["waits"] = [{name: value for name, value in wait.items() if value} for wait in waits]
    return definition


def _item_at(values: object, place: int) -> object:
    return values[place] if isinstance(values, Sequence) and place < len(values) else None


def _parse_seconds(value: object) -> object:
    """Jumps were once written as `H:MM:SS`."""
    if isinstance(value, str) and ":" in value:
        total = 0.0
        for part in value.split(":"):
            total = total * 60 + float(part)
        return total
    return value


def _parse_result(file: Path, content: Json) -> PublishedTest:
    example_id = file.stem.rpartition("_")[0]
    by_hand = {name: value for name, value in content.items() if name.startswith("auto")}
    score, max_score = float(content["score"]), float(content.get("max_score", 1))
    if not (0 <= score <= max_score and math.isfinite(max_score)):
        raise ValueError(f"its score is {content['score']!r}, expected 0 to {max_score:g}")
    needles = content.get("needles")
    return PublishedTest(
        dataset=file.parent.name,
        example_id=example_id or file.stem,
        score=score,
        max_score=max_score,
        reasons=_parse_texts(content.get("reasoning")),
        responses=_parse_texts(content.get("actual_responses")),
        expected=content.get("expected_responses"),
        tokens=int(content.get("tokens") or 0),
        characters=int(content.get("characters") or 0),
        needles=None if needles is None else int(needles),
        task_log=_parse_texts(content.get("task_log")),
        by_hand=by_hand,
    )


def _parse_texts(value: object) -> list[str]:
    if value is None:
        return []
    return [str(entry) for entry in value] if isinstance(value, list) else [str(value)]


def read_task_log(task_log: Sequence[str]) -> Iterator[tuple[str, str, datetime | None]]:
    """(sender, text, when) of the lines of a task log."""
    for line in task_log:
        match = _SPOKEN_LINE.match(line)
        if match is None:
            continue
        try:
            moment = datetime.fromisoformat(match[2]).replace(tzinfo=UTC)
        except ValueError:
            moment = None
        yield match[1], match[3], moment
