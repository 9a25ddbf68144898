"""Reads Inspect's eval logs: JSON, or the zip archives named `.eval`."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from themis.core.entities import ModelSpec, SamplingConfig
from themis.exceptions import DatasetError
from themis.experiment.importing.bounded import JsonFile, ReadLimits, open_archive, read_member
from themis.experiment.importing.published import (
    Answer,
    Broken,
    Header,
    PublishedSample,
    PublishedScore,
    published_score,
)
from themis.storage import RunStatus

__all__ = ["InspectLog"]

T = TypeVar("T")

_HEAD = ("eval", "status", "plan")
_STATUS = {"success": RunStatus.COMPLETED, "error": RunStatus.FAILED, "cancelled": RunStatus.CANCELLED}
# What Inspect's letters and words count as.
_WORDS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "YES": 1.0, "NO": 0.0, "TRUE": 1.0, "FALSE": 0.0}


class _Log(msgspec.Struct):
    """The parts that are read besides the samples."""

    eval: dict[str, Any]
    status: str = "success"
    plan: dict[str, Any] = {}


class _Named(msgspec.Struct):
    """What is read of a sample to find it again."""

    id: str | int


class _Sample(msgspec.Struct):
    """The parts that are read; the rest (events, attachments, stores) is skipped without being built."""

    id: str | int
    input: Any
    epoch: int = 1
    target: Any = ""
    choices: list[str] | None = None
    output: dict[str, Any] = {}
    scores: dict[str, dict[str, Any]] | None = None
    metadata: dict[str, Any] = {}
    error: dict[str, Any] | None = None
    total_time: float | None = None


class InspectLog:
    """One log. Several epochs of a sample are its attempts; their scores are averaged, as Inspect does by default."""

    def __init__(self, path: Path, limits: ReadLimits) -> None:
        self._path = path
        self._raw: _Samples = _Archive(path, limits) if path.suffix == ".eval" else _JsonLog(path, limits)
        self._log = self._raw.log

    @cached_property
    def header(self) -> Header:
        spec = self._log.eval
        provider, _, name = str(spec.get("model") or "unknown").rpartition("/")
        config = {**(self._log.plan.get("config") or {}), **(spec.get("model_generate_config") or {})}
        reducers = (spec.get("config") or {}).get("epochs_reducer") or ["mean"]
        return Header(
            source="inspect",
            task=str(spec.get("task") or self._path.stem),
            sha256=_sha256(self._path),
            model=ModelSpec(identifier=name, provider=provider or "inspect"),
            status=_STATUS.get(self._log.status, RunStatus.INTERRUPTED),
            sampling=_sampling(config),
            packages={str(k): str(v) for k, v in (spec.get("packages") or {}).items()},
            commit=str((spec.get("revision") or {}).get("commit") or "unknown"),
            notes=()
            if reducers == ["mean"]
            else (f"the log reduced epochs by {', '.join(map(str, reducers))}; here their scores are averaged",),
        )

    def samples(self) -> Iterator[PublishedSample | Broken]:
        for item_id, places in self._by_id.items():
            read = [_read(self._raw, place, _Sample) for place in places]
            yield from (part for part in read if isinstance(part, Broken))
            epochs = [part for part in read if not isinstance(part, Broken)]
            if epochs:
                yield _published(item_id, sorted(epochs, key=lambda sample: sample.epoch))
        yield from self._nameless

    @cached_property
    def _by_id(self) -> dict[str, list[str]]:
        """Item id -> where its epochs are; what has no id is noted once."""
        found: dict[str, list[str]] = {}
        self._nameless: list[Broken] = []
        for place in self._raw:
            sample = _read(self._raw, place, _Named)
            if isinstance(sample, Broken):
                self._nameless.append(sample)
            else:
                found.setdefault(str(sample.id), []).append(place)
        return found


class _Samples(Protocol):
    """What a file has: the log's head, and its samples, each read when it is asked for by its place."""

    log: _Log

    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, place: str) -> bytes: ...


class _JsonLog:
    def __init__(self, path: Path, limits: ReadLimits) -> None:
        self._file = JsonFile(path, limits, array="samples")
        found = self._file.members
        head = [b'"%s":%s' % (name.encode(), self._file.read(found[name])) for name in _HEAD if name in found]
        self.log = _as_log(b"{%s}" % b",".join(head), path)
        if self._file.items is None:
            raise DatasetError(f"{path.name} has no samples in it (it was written with log_samples off)")
        self._places = {f"sample {number}": piece for number, piece in enumerate(self._file.items)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __getitem__(self, place: str) -> bytes:
        return self._file.read(self._places[place])


class _Archive:
    def __init__(self, path: Path, limits: ReadLimits) -> None:
        self._name, self._limits = path.name, limits
        try:
            self._zip = open_archive(path, limits)
            self.log = _as_log(self["header.json"], path)
        except (zipfile.BadZipFile, KeyError, OSError) as error:
            raise DatasetError(f"{path.name} is not a finished .eval archive: {error}") from error

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._zip.namelist() if name.startswith("samples/") and name.endswith(".json"))

    def __getitem__(self, place: str) -> bytes:
        try:
            return read_member(self._zip, place, self._limits)
        except NotImplementedError as error:
            raise DatasetError(
                f"{self._name} is packed with Zstandard, which this Python cannot unpack; make JSON of it with "
                f"`inspect log convert {self._name} --to json --output-dir DIR` and import that"
            ) from error
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise DatasetError(f"{self._name} is damaged: {place} cannot be unpacked: {error}") from error


def _read(raw: _Samples, place: str, kind: type[T]) -> T | Broken:
    data = raw[place]
    try:
        return _decode(data, kind)
    except (ValueError, RecursionError) as error:
        return Broken(place, f"not a sample: {error}")


def _as_log(data: bytes, path: Path) -> _Log:
    try:
        return _decode(data, _Log)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path.name} is not an Inspect log: {error}") from error


def _decode(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # Inspect writes NaN for a score that is none, and that is JSON only to Python.
        return msgspec.convert(json.loads(data), type=kind)


def _published(item_id: str, epochs: list[_Sample]) -> PublishedSample:
    first = epochs[0]
    row = {**first.metadata, "id": item_id, "input": _text(first.input), "target": first.target}
    if first.choices:
        row["choices"] = first.choices
    by_metric: dict[str, list[PublishedScore]] = {}
    for epoch in epochs:
        for scorer, score in (epoch.scores or {}).items():
            for name, value in _named(scorer, score.get("value")).items():
                details = {key: score[key] for key in ("answer", "explanation", "metadata") if score.get(key)}
                by_metric.setdefault(name, []).append(published_score(name, _number(value), value, details))
    return PublishedSample(
        item_id=item_id,
        row=row,
        prompt=_text(first.input),
        answers=tuple(_answer(epoch) for epoch in epochs),
        scores={name: _averaged(scores) for name, scores in by_metric.items()},
    )


def _named(scorer: str, value: Any) -> dict[str, Any]:
    """A scorer with several values is several metrics."""
    if isinstance(value, dict):
        return {f"{scorer}.{key}": part for key, part in value.items()}
    if isinstance(value, list):
        return {f"{scorer}.{place}": part for place, part in enumerate(value)}
    return {scorer: value}


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        word = _WORDS.get(value.upper() if len(value) > 1 else value)
        if word is not None:
            return word
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, bool | int | float) or not math.isfinite(value):
        return None
    return float(value)


def _averaged(scores: list[PublishedScore]) -> PublishedScore:
    values = [score.value for score in scores if score.value is not None]
    if len(scores) == 1:
        return scores[0]
    mean = sum(values) / len(values) if values else None
    outside = next((score.problem for score in scores if score.problem), "")
    return PublishedScore(None if outside else mean, [score.published for score in scores], scores[0].details, outside)


def _answer(sample: _Sample) -> Answer:
    usage = sample.output.get("usage") or {}
    choices = sample.output.get("choices") or []
    text = _text(choices[0].get("message", {}).get("content", "")) if choices else sample.output.get("completion", "")
    error = None if sample.error is None else str(sample.error.get("message") or "the log gives no reason")
    return Answer(
        text=None if error is not None else text,
        error=error,
        prompt_tokens=int(usage.get("input_tokens") or 0),
        completion_tokens=int(usage.get("output_tokens") or 0),
        seconds=float(sample.total_time or 0.0),
    )


def _text(content: Any) -> str:
    """Messages and parts of messages as the text in them."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n\n".join(text for text in (_text(part) for part in content) if text)
    if isinstance(content, dict):
        return _text(content.get("content", content.get("text", "")))
    return ""


def _sampling(config: Mapping[str, Any]) -> SamplingConfig:
    """What was not set is the provider's default, which for a limit is none of ours."""
    limit = config.get("max_tokens")
    return SamplingConfig(
        temperature=float(config.get("temperature") or 0.0),
        top_p=float(config.get("top_p") or 1.0),
        max_tokens=-1 if limit is None else int(limit),
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
