"""Reads folders of the GoodAI LTM Benchmark, of every generation of its formats.

    <run>/definitions/config.yml, <run>/definitions/<dataset>/<example>.def.json
    <run>/results/<agent>/runstats.json, master_log.jsonl, <dataset>/<example>_<repetition>.json

What cannot be read is reported with its place; the rest is read all the same. `importing` puts it into the store.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeVar

from themis.config.loading import read_yaml
from themis.core.bounded_reading import Broken, ReadLimits, refuse_large_folder
from themis.core.codec import canonical_json, to_plain
from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.examples import Definition
from themis.memory.master_log import Event, read_events
from themis.storage.runs import is_storable

T = TypeVar("T")
# So many folders below the one that is named, benchmarks are looked for.
_DEPTH = 4


class Exchange(NamedTuple):
    """A message to the agent with its reply; whose it was is not known."""

    message: str
    reply: str
    now: datetime | None = None


@dataclass(kw_only=True)
class PublishedTest:
    """A result file, normalised. `by_hand` holds the automatic values of one that a person has changed."""

    dataset: str
    example_id: str
    score: float
    max_score: float
    # Why the score counts for nothing; empty where it does.
    unusable: str = ""
    reasons: list[str]
    responses: list[str]
    expected: object
    tokens: int
    characters: int
    needles: int | None
    task_log: list[str]
    # Everyone's exchanges after the request of a test that listens, where the result tells them.
    heard: list[Exchange] = field(default_factory=list)
    by_hand: Definition = field(default_factory=dict)

    @property
    def test_id(self) -> str:
        return f"{self.dataset} - {self.example_id}"

    @property
    def share(self) -> float | None:
        """The score from 0 to 1, since older files have points out of more than one; None where it is unusable."""
        if self.unusable:
            return None
        return self.score / self.max_score if self.max_score else 0.0


@dataclass
class AgentFolder:
    """What one agent's folder holds. `events` is None without a master log."""

    name: str
    tests: list[PublishedTest] = field(default_factory=list)
    events: list[Event] | None = None
    stats: Definition = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)
    sha256: str = ""


@dataclass
class RunFolder:
    """A benchmark: its name, its kinds' arguments, its definitions by test id, and the folders of its agents."""

    path: Path
    name: str
    arguments: dict[str, Definition]
    definitions: dict[str, Definition]
    agents: list[Path]
    broken: list[Broken] = field(default_factory=list)


def find_runs(path: Path) -> list[Path]:
    """The run folders at a path: itself, or all that lie in it and in folders of it."""
    if not path.is_dir():
        raise DatasetError(f"there is no folder {str(path)!r}")
    found = list(_search_runs(path, _DEPTH))
    if not found:
        raise DatasetError(f"{str(path)!r} holds no run: expected a folder with definitions and results in it")
    return found


def _search_runs(path: Path, depth: int) -> Iterator[Path]:
    if (path / "results").is_dir() or (path / "definitions").is_dir():
        yield path
    elif depth:
        for entry in sorted(entry for entry in path.iterdir() if entry.is_dir()):
            yield from _search_runs(entry, depth - 1)


# --- a benchmark ------------------------------------------------------------------------------------------------------


def read_run(path: Path, limits: ReadLimits) -> RunFolder:
    refuse_large_folder(path / "definitions", limits)
    broken: list[Broken] = []
    definitions = {}
    for file in sorted((path / "definitions").glob("*/*.def.json")):
        content = _read_object(file, path, broken)
        if content is not None:
            try:
                _require_name(file)
                definition = _parse_definition(content)
            except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
                broken.append(Broken(file.relative_to(path).as_posix(), str(error)))
                continue
            definitions[f"{file.parent.name} - {file.name.removesuffix('.def.json')}"] = definition
    name, arguments = _read_configuration(path / "definitions" / "config.yml", broken)
    results = path / "results"
    agents = sorted(entry for entry in results.iterdir() if entry.is_dir()) if results.is_dir() else []
    if not agents:
        broken.append(Broken("results", "holds no folder of an agent; nothing was imported"))
    return RunFolder(path, name or path.resolve().name, arguments, definitions, agents, broken)


def _read_configuration(file: Path, broken: list[Broken]) -> tuple[str | None, dict[str, Definition]]:
    """The run's name and the arguments of its kinds; of older generations too, which today's runs would refuse."""
    if not file.is_file():
        return None, {}
    try:
        content = read_yaml(file)
        name = content["config"]["run_name"]
    except (ConfigurationError, KeyError, TypeError, ValueError, RecursionError) as error:
        broken.append(Broken(f"definitions/{file.name}", f"no run_name: {error}"))
        return None, {}
    datasets = content.get("datasets") if isinstance(content.get("datasets"), Mapping) else {}
    entries = datasets.get("datasets")
    shared = _keep_scalars(datasets.get("args"))
    found: dict[str, Definition] = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            # As there, the first entry of a kind counts.
            found.setdefault(entry["name"], {**shared, **_keep_scalars(entry.get("args"))})
    if not found:
        broken.append(Broken(f"definitions/{file.name}", "lists no datasets"))
    return str(name).strip() or None, found


def _keep_scalars(arguments: object) -> Definition:
    if not isinstance(arguments, Mapping):
        return {}
    return {
        str(name): value
        for name, value in arguments.items()
        if name != "dataset_examples" and (value is None or isinstance(value, str | int | float))
    }


def _parse_definition(content: Definition) -> Definition:
    """In today's fields. The first generation has spacings and jumps in lists of their own instead of waits."""
    definition = {name: value for name, value in content.items() if name != "evaluation_fn"}
    spacings, jumps = definition.pop("token_spacings", None), definition.pop("time_jumps", None)
    script = _require_list(definition.get("script", []), str, "script")
    flags = _require_list(definition.get("is_question", []), bool, "is_question")
    if flags and len(flags) != len(script) + bool(definition.get("is_temporal")):
        raise ValueError(f"{len(script)} lines in its script but {len(flags)} is_question flags")
    if "waits" not in definition:
        waits = [
            {"tokens": _item_at(spacings, n), "time": _parse_seconds(_item_at(jumps, n))} for n in range(len(flags))
        ]
        definition["waits"] = [{name: value for name, value in wait.items() if value} for wait in waits]
    for wait in _require_list(definition["waits"], dict, "waits"):
        for name in ("tokens", "time", "percentage_finished", "share_of_span"):
            if not 0 <= _to_number(wait.get(name) or 0) < 2**53:
                raise ValueError(f"a wait has {name} {wait[name]!r:.80}, expected a number")
        timedelta(seconds=wait.get("time") or 0)  # or it ends at no moment there is
    if not isinstance(definition.get("material", {}), dict):
        raise ValueError("its material is no JSON object")
    return definition


def _require_name(file: Path) -> None:
    """Tests are called as their files are, which may have been unpacked from another system's letters."""
    if not is_storable(f"{file.parent.name}/{file.name}"):
        raise ValueError("its name is not UTF-8, and no database can store it; rename the file, or its folder")


def _require_list(value: object, kind: type[T], name: str) -> list[T]:
    if not isinstance(value, list) or not all(isinstance(entry, kind) for entry in value):
        raise ValueError(f"its {name} is no list of {kind.__name__}")
    return value


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


# --- an agent ---------------------------------------------------------------------------------------------------------


def read_agent(folder: Path, limits: ReadLimits, definitions: Mapping[str, Definition]) -> AgentFolder:
    """Reads one agent's results, log and statistics; `definitions` tell which of its tests listen."""
    refuse_large_folder(folder, limits)
    agent = AgentFolder(folder.name)
    hashed = hashlib.sha256()
    seen = set[str]()
    for file in sorted(folder.glob("*/*.json")):
        hashed.update(file.relative_to(folder).as_posix().encode("utf-8", "backslashreplace"))
        content = _read_object(file, folder, agent.broken, hashed)
        if content is None:
            continue
        where = file.relative_to(folder).as_posix()
        try:
            test = _parse_result(file, content, definitions)
        except (TypeError, ValueError) as error:
            agent.broken.append(Broken(where, str(error)))
            continue
        if test.test_id in seen:
            agent.broken.append(Broken(where, f"is another result of {test.test_id!r}; the first one is imported"))
            continue
        seen.add(test.test_id)
        if test.unusable:
            agent.broken.append(Broken(where, f"{test.unusable}; imported without a score"))
        agent.tests.append(test)
    agent.events = _read_log(folder / "master_log.jsonl", agent.broken, hashed)
    stats = folder / "runstats.json"
    if stats.is_file():
        agent.stats = _keep_numbers(_read_object(stats, folder, agent.broken, hashed) or {}, agent.broken)
    agent.sha256 = hashed.hexdigest()
    return agent


def _read_log(file: Path, broken: list[Broken], hashed: hashlib._Hash) -> list[Event] | None:
    if not file.is_file():
        return None
    try:
        content = file.read_bytes()
    except OSError as error:
        broken.append(Broken(file.name, str(error)))
        return None
    hashed.update(content)
    # Not splitlines: a text may hold other separators of lines.
    lines = content.decode("utf-8", "replace").split("\n")
    return list(read_events(lines, lambda line, what: broken.append(Broken(f"{file.name} line {line}", what))))


def _keep_numbers(stats: Definition, broken: list[Broken]) -> Definition:
    """The statistics without those that cannot be: sums are made of them."""
    kept = {}
    for name, value in stats.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if name == "rnd_state":
            continue
        if is_number and not 0 <= value < 1e15:
            broken.append(Broken("runstats.json", f"{name} is {value!r}"))
        elif is_number:
            kept[name] = value
        elif name in _SUMMED:
            broken.append(Broken("runstats.json", f"{name} is no number, but {value!r:.80}"))
    return kept


_SUMMED = ("agent_tokens", "agent_costs_usd", "managing_costs_usd", "duration", "tokens_per_second", "total_tokens")


def _read_object(
    file: Path, root: Path, broken: list[Broken], hashed: hashlib._Hash | None = None
) -> Definition | None:
    try:
        data = file.read_bytes()
        if hashed is not None:
            hashed.update(data)
        content = json.loads(data)
        if isinstance(content, dict):
            # What is nested too deeply to be written again is found here; logs are long, and lists of texts.
            canonical_json(to_plain({name: value for name, value in content.items() if name != "full_log"}))
            return content
        reason = f"expected a JSON object, got {type(content).__name__}"
    except RecursionError:
        reason = "is nested too deeply"
    except (OSError, ValueError) as error:
        reason = str(error)
    broken.append(Broken(file.relative_to(root).as_posix(), reason))
    return None


# --- a result ---------------------------------------------------------------------------------------------------------


def _parse_result(file: Path, content: Definition, definitions: Mapping[str, Definition]) -> PublishedTest:
    _require_name(file)
    dataset, example_id = file.parent.name, file.stem.rpartition("_")[0] or file.stem
    if "score" not in content:
        raise ValueError("is no result: it has no score")
    score, max_score = _to_number(content["score"]), _to_number(content.get("max_score", 1))
    unusable = ""
    if not (0 <= score <= max_score < math.inf):
        unusable = f"its score is {content['score']!r:.40} of {content.get('max_score', 1)!r:.40}, which cannot be"
    definition = definitions.get(f"{dataset} - {example_id}", {})
    task_log = _parse_texts(content.get("task_log"))
    heard: list[Exchange] = []
    if definition.get("uses_callback") and definition.get("script"):
        request = definition["script"][-1]
        heard = max(
            (read_exchanges_after(log, request) for log in (task_log, _parse_texts(content.get("full_log")))), key=len
        )
    needles = content.get("needles")
    return PublishedTest(
        dataset=dataset,
        example_id=example_id,
        score=score,
        max_score=max_score,
        unusable=unusable,
        reasons=_parse_texts(content.get("reasoning")),
        responses=_parse_texts(content.get("actual_responses")),
        expected=content.get("expected_responses"),
        tokens=_to_count(content.get("tokens")),
        characters=_to_count(content.get("characters")),
        needles=None if needles is None else _to_count(needles),
        task_log=task_log,
        heard=heard,
        by_hand={name: value for name, value in content.items() if name.startswith("auto")},
    )


def _to_number(value: object) -> float:
    """The number; NaN for what is none, also for a whole number that is larger than any float."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _to_count(value: object) -> int:
    if value is None:
        return 0
    number = _to_number(value)
    if not 0 <= number < 2**53:
        raise ValueError(f"expected a count, got {value!r:.80}")
    return int(number)


def _parse_texts(value: object) -> list[str]:
    if value is None:
        return []
    return [str(entry) for entry in value] if isinstance(value, list) else [str(value)]


_SPOKEN_LINE = re.compile(r"(Test|Agent|System) \(([^)]+)\): (.*)", re.DOTALL)


def read_task_log(task_log: Sequence[str]) -> Iterator[Exchange]:
    """The exchanges among the lines of a task log, `Sender (time): text`."""
    pending: Exchange | None = None
    for line in task_log:
        match = _SPOKEN_LINE.match(line)
        if match is None:
            continue
        if match[1] != "Agent":
            try:
                moment = datetime.fromisoformat(match[2]).replace(tzinfo=UTC)
            except ValueError:
                moment = None
            pending = Exchange(match[3], "", moment)
        elif pending is not None:
            yield pending._replace(reply=match[3])
            pending = None


def read_exchanges_after(log: Sequence[str], request: str) -> list[Exchange]:
    """Everyone's exchanges after the one with the request; none where the log does not have it.

    The first generation's logs are texts without senders: messages and replies in turn.
    """
    exchanges = list(read_task_log(log))
    if not exchanges:
        start = next((place for place, line in enumerate(log) if line == request), len(log))
        exchanges = [
            Exchange(message, reply) for message, reply in zip(log[start::2], log[start + 1 :: 2], strict=False)
        ]
    asked = next((place for place, one in enumerate(exchanges) if one.message == request), len(exchanges))
    return exchanges[asked + 1 :]
