"""Reads Inspect's eval logs: JSON, or the zip archives named `.eval`."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from themis.core.entities import ModelSpec, SamplingConfig
from themis.exceptions import DatasetError
from themis.experiment.importing.published import Answer, Broken, Header, PublishedSample, PublishedScore
from themis.storage import RunStatus

__all__ = ["InspectLog"]

T = TypeVar("T")

_STATUS = {"success": RunStatus.COMPLETED, "error": RunStatus.FAILED, "cancelled": RunStatus.CANCELLED}
# What Inspect's letters and words count as.
_WORDS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "YES": 1.0, "NO": 0.0, "TRUE": 1.0, "FALSE": 0.0}


class _Log(msgspec.Struct):
    """The parts that are read; the rest (events, attachments, stores) is skipped without being built."""

    eval: dict[str, Any]
    status: str = "success"
    plan: dict[str, Any] = {}
    samples: list[msgspec.Raw] | None = None


class _Sample(msgspec.Struct):
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

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log, self._raw = _open_archive(path) if path.suffix == ".eval" else _open_json(path)

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
            epochs = sorted((_decoded(self._raw[place]) for place in places), key=lambda sample: sample.epoch)
            yield _published(item_id, epochs)
        yield from self._broken

    @cached_property
    def _by_id(self) -> dict[str, list[str]]:
        """Item id -> where its epochs are; what cannot be read is noted once."""
        found: dict[str, list[str]] = {}
        self._broken: list[Broken] = []
        for place, raw in self._raw.items():
            try:
                found.setdefault(str(_decoded(raw).id), []).append(place)
            except ValueError as error:
                self._broken.append(Broken(place, f"not a sample: {error}"))
        return found


def _open_json(path: Path) -> tuple[_Log, Mapping[str, Any]]:
    data = path.read_bytes()
    log = _as_log(data, path)
    if log.samples is None:
        raise DatasetError(f"{path.name} has no samples in it (it was written with log_samples off)")
    return log, {f"sample {number}": raw for number, raw in enumerate(log.samples)}


def _open_archive(path: Path) -> tuple[_Log, Mapping[str, Any]]:
    try:
        archive = _Archive(path)
        return _as_log(archive["header.json"], path), archive
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise DatasetError(f"{path.name} is not a finished .eval archive: {error}") from error


class _Archive(Mapping[str, Any]):
    """The samples of an archive, each read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._zip = zipfile.ZipFile(path)
        self._members = [
            name for name in self._zip.namelist() if name.startswith("samples/") and name.endswith(".json")
        ]

    def __getitem__(self, name: str) -> bytes:
        try:
            return self._zip.read(name)
        except NotImplementedError as error:
            raise DatasetError(
                f"{self._name} is packed with Zstandard, which this Python cannot unpack; make JSON of it with "
                f"`inspect log convert {self._name} --to json --output-dir DIR` and import that"
            ) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def _as_log(data: bytes, path: Path) -> _Log:
    try:
        return _decode(data, _Log)
    except ValueError as error:
        raise DatasetError(f"{path.name} is not an Inspect log: {error}") from error


def _decoded(raw: Any) -> _Sample:
    return _decode(bytes(raw) if isinstance(raw, msgspec.Raw) else raw, _Sample)


def _decode(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # Inspect writes NaN for a score that is none, and that is JSON only to Python.
        plain = json.loads(data)
        if kind is _Log and isinstance(plain, dict) and isinstance(plain.get("samples"), list):
            plain["samples"] = [msgspec.Raw(json.dumps(sample).encode()) for sample in plain["samples"]]
        return msgspec.convert(plain, type=kind)


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
                by_metric.setdefault(name, []).append(PublishedScore(_number(value), value, details))
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
    return PublishedScore(mean, [score.published for score in scores], scores[0].details)


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
