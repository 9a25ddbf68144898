"""Reads a folder of the GoodAI LTM Benchmark: definitions, results and master logs, of every generation of its formats.

    <run>/definitions/config.yml, <run>/definitions/<dataset>/<example>.def.json
    <run>/results/<agent>/runstats.json, master_log.jsonl, <dataset>/<example>_<repetition>.json

What cannot be read is reported with its place; the rest is read all the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from themis.core.bounded_reading import Broken, ReadLimits, refuse_large_folder
from themis.exceptions import DatasetError
from themis.memory.master_log import Event, read_events

Json = dict[str, Any]
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
