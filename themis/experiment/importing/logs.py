"""Reads the logs of other evaluation systems: Inspect's, and those of lm-evaluation-harness."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from themis.core.bounded_reading import (
    Broken,
    JsonFile,
    ReadLimits,
    open_archive,
    read_file,
    read_lines,
    read_member,
)
from themis.core.codec import decode_as, format_value
from themis.core.entities import ModelSpec, SamplingConfig
from themis.core.files import file_sha256
from themis.exceptions import DatasetError
from themis.experiment.export.as_logs import LM_EVAL_FIELDS
from themis.storage import RunStatus

T = TypeVar("T")
# An object in another system's file, whose shape is theirs to change.
Json = dict[str, Any]

_HEAD = ("eval", "status", "plan")
_STATUS = {"success": RunStatus.COMPLETED, "error": RunStatus.FAILED, "cancelled": RunStatus.CANCELLED}
# What Inspect's letters and words count as.
_WORDS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "YES": 1.0, "NO": 0.0, "TRUE": 1.0, "FALSE": 0.0}

# Metrics of lm-eval and scorers of Inspect whose score of one sample is a share.
_SHARES = frozenset(
    (
        *("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match", "em", "f1", "contains"),
        *("pass@1", "pass_at_1", "prompt_level_strict_acc", "prompt_level_loose_acc", "quasi_exact_match"),
        *("match", "includes", "pattern", "answer", "choice", "exact", "model_graded_qa", "model_graded_fact"),
    )
)
_SIGNED = frozenset(("mcc",))


# --- what a system published about a run, in the few words that all of them have ----------------------------------------


@dataclass(frozen=True, kw_only=True)
class Header:
    """The run as a whole. `sha256` is of the file, so that it is imported once."""

    source: str
    task: str
    sha256: str
    model: ModelSpec
    status: RunStatus = RunStatus.COMPLETED
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    packages: Mapping[str, str] = field(default_factory=dict)
    commit: str = "unknown"
    # What the reader should know of how numbers were taken over.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """One answer of the model, or why there is none."""

    text: str | None
    error: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class PublishedScore:
    """A score as a number (None where it is not one, or cannot be one of its metric), and as it was written."""

    value: float | None
    published: object
    details: Mapping[str, object] = field(default_factory=dict)
    # What is wrong with a number that is none of its metric.
    problem: str = ""


def check_score(
    name: str, number: float | None, published: object, details: Mapping[str, object] | None = None
) -> PublishedScore:
    """A score of a metric, refused where the metric has a range and the number is outside."""
    lowest, highest = metric_range(name) or (-math.inf, math.inf)
    if number is None or lowest <= number <= highest:
        return PublishedScore(number, published, details or {})
    problem = f"published as {number:g}, outside its range from {lowest:g} to {highest:g}"
    return PublishedScore(None, published, details or {}, problem)


def metric_range(name: str) -> tuple[float, float] | None:
    """The range of a metric that both systems' own documentation gives, whatever filter it went through."""
    plain = name.partition(",")[0].lower()
    return (-1.0, 1.0) if plain in _SIGNED else (0.0, 1.0) if plain in _SHARES else None


@dataclass(frozen=True, kw_only=True)
class PublishedSample:
    """One item with its answers, and one score a metric."""

    item_id: str
    row: Mapping[str, object]
    prompt: str
    answers: tuple[Answer, ...]
    scores: Mapping[str, PublishedScore]


class PublishedLog(Protocol):
    """A file of another system. `samples` can be gone through more than once."""

    @property
    def header(self) -> Header: ...
    def samples(self) -> Iterator[PublishedSample | Broken]: ...


# --- Inspect ----------------------------------------------------------------------------------------------------------


class _Log(msgspec.Struct):
    """The parts that are read besides the samples."""

    eval: Json
    status: str = "success"
    plan: Json = {}


class _Named(msgspec.Struct):
    """What is read of a sample to find it again."""

    id: str | int


class _Sample(msgspec.Struct):
    """The parts that are read; the rest (events, attachments, stores) is skipped without being built."""

    id: str | int
    input: object
    epoch: int = 1
    target: object = ""
    choices: list[str] | None = None
    output: Json = {}
    scores: dict[str, Json] | None = None
    metadata: Json = {}
    error: Json | None = None
    total_time: float | None = None


class InspectLog:
    """One log. Several epochs of a sample are its attempts; their scores are averaged, as Inspect does by default."""

    def __init__(self, path: Path, limits: ReadLimits) -> None:
        self._path = path
        self._raw: _SampleStore = _Archive(path, limits) if path.suffix == ".eval" else _JsonLog(path, limits)
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
            sha256=file_sha256(self._path),
            model=ModelSpec(identifier=name, provider=provider or "inspect"),
            status=_STATUS.get(self._log.status, RunStatus.INTERRUPTED),
            sampling=_sampling(config, config.get("max_tokens")),
            packages={str(k): str(v) for k, v in (spec.get("packages") or {}).items()},
            commit=str((spec.get("revision") or {}).get("commit") or "unknown"),
            notes=()
            if reducers == ["mean"]
            else (f"the log reduced epochs by {', '.join(map(str, reducers))}; here their scores are averaged",),
        )

    def samples(self) -> Iterator[PublishedSample | Broken]:
        for item_id, places in self._by_id.items():
            read = [_decode_sample(self._raw, place, _Sample) for place in places]
            yield from (part for part in read if isinstance(part, Broken))
            epochs = [part for part in read if not isinstance(part, Broken)]
            if epochs:
                yield _inspect_sample(item_id, sorted(epochs, key=lambda sample: sample.epoch))
        yield from self._without_id

    @cached_property
    def _by_id(self) -> dict[str, list[str]]:
        """Item id -> where its epochs are; what has no id is noted once."""
        found: dict[str, list[str]] = {}
        self._without_id: list[Broken] = []
        for place in self._raw:
            sample = _decode_sample(self._raw, place, _Named)
            if isinstance(sample, Broken):
                self._without_id.append(sample)
            else:
                found.setdefault(str(sample.id), []).append(place)
        return found


class _SampleStore(Protocol):
    """What a file has: the log's head, and its samples, each read when it is asked for by its place."""

    log: _Log

    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, place: str) -> bytes: ...


class _JsonLog:
    def __init__(self, path: Path, limits: ReadLimits) -> None:
        self._file = JsonFile(path, limits, array="samples")
        found = self._file.members
        head = [b'"%s":%s' % (name.encode(), self._file.read(found[name])) for name in _HEAD if name in found]
        self.log = _decode_log(b"{%s}" % b",".join(head), path)
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
            self.log = _decode_log(self["header.json"], path)
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


def _decode_sample(raw: _SampleStore, place: str, kind: type[T]) -> T | Broken:
    data = raw[place]
    try:
        return decode_as(data, kind)
    except (ValueError, RecursionError) as error:
        return Broken(place, f"not a sample: {error}")


def _decode_log(data: bytes, path: Path) -> _Log:
    try:
        return decode_as(data, _Log)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path.name} is not an Inspect log: {error}") from error


def _inspect_sample(item_id: str, epochs: list[_Sample]) -> PublishedSample:
    first = epochs[0]
    row = {**first.metadata, "id": item_id, "input": _message_text(first.input), "target": first.target}
    if first.choices:
        row["choices"] = first.choices
    by_metric: dict[str, list[PublishedScore]] = {}
    for epoch in epochs:
        for scorer, score in (epoch.scores or {}).items():
            for name, value in _split_values(scorer, score.get("value")).items():
                details = {key: score[key] for key in ("answer", "explanation", "metadata") if score.get(key)}
                by_metric.setdefault(name, []).append(check_score(name, _parse_score(value), value, details))
    return PublishedSample(
        item_id=item_id,
        row=row,
        prompt=_message_text(first.input),
        answers=tuple(_inspect_answer(epoch) for epoch in epochs),
        scores={name: _average(scores) for name, scores in by_metric.items()},
    )


def _split_values(scorer: str, value: object) -> dict[str, object]:
    """A scorer with several values is several metrics."""
    if isinstance(value, dict):
        return {f"{scorer}.{key}": part for key, part in value.items()}
    if isinstance(value, list):
        return {f"{scorer}.{place}": part for place, part in enumerate(value)}
    return {scorer: value}


def _parse_score(value: object) -> float | None:
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


def _average(scores: list[PublishedScore]) -> PublishedScore:
    values = [score.value for score in scores if score.value is not None]
    if len(scores) == 1:
        return scores[0]
    mean = sum(values) / len(values) if values else None
    outside = next((score.problem for score in scores if score.problem), "")
    return PublishedScore(None if outside else mean, [score.published for score in scores], scores[0].details, outside)


def _inspect_answer(sample: _Sample) -> Answer:
    usage = sample.output.get("usage") or {}
    choices = sample.output.get("choices") or []
    text = (
        _message_text(choices[0].get("message", {}).get("content", ""))
        if choices
        else sample.output.get("completion", "")
    )
    error = None if sample.error is None else str(sample.error.get("message") or "the log gives no reason")
    return Answer(
        text=None if error is not None else text,
        error=error,
        prompt_tokens=int(usage.get("input_tokens") or 0),
        completion_tokens=int(usage.get("output_tokens") or 0),
        seconds=float(sample.total_time or 0.0),
    )


def _message_text(content: object) -> str:
    """Messages and parts of messages as the text in them."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n\n".join(text for text in (_message_text(part) for part in content) if text)
    if isinstance(content, dict):
        return _message_text(content.get("content", content.get("text", "")))
    return ""


# --- lm-evaluation-harness --------------------------------------------------------------------------------------------


class LmEvalLog:
    """One file of one task. A document judged through several filters has a metric for each."""

    def __init__(self, path: Path, limits: ReadLimits) -> None:
        self._path = path
        self._limits = limits

    @cached_property
    def header(self) -> Header:
        task, _, stamp = self._path.stem.removeprefix("samples_").rpartition("_")
        results = _read_results(self._path.with_name(f"results_{stamp}.json"), self._limits)
        config = results.get("config") or {}
        kwargs = ((results.get("configs") or {}).get(task) or {}).get("generation_kwargs") or {}
        return Header(
            source="lm-eval",
            task=task or self._path.stem,
            sha256=file_sha256(self._path),
            model=ModelSpec(
                identifier=str(results.get("model_name") or "unknown"), provider=str(config.get("model") or "lm-eval")
            ),
            sampling=_sampling(kwargs, kwargs.get("max_gen_toks", kwargs.get("max_tokens"))),
            commit=str(results.get("git_hash") or "unknown"),
            notes=() if results else ("no results_*.json lies beside the file, so the model is not known",),
        )

    def samples(self) -> Iterator[PublishedSample | Broken]:
        has_ids = self._has_ids
        for where, line in self._lines():
            if isinstance(line, Broken):
                yield line
                continue
            try:
                yield _lm_eval_sample(line, has_ids)
            except (TypeError, ValueError, KeyError, AttributeError) as error:
                yield Broken(where, f"not a sample: {type(error).__name__}: {error}")

    @cached_property
    def _has_ids(self) -> bool:
        """Whether the documents have ids of their own, which pair better across runs than their place in the file."""
        seen: set[tuple[str, str]] = set()
        for _, line in self._lines():
            if isinstance(line, Broken) or not isinstance(line.get("doc"), dict):
                continue
            own, filtered = line["doc"].get("id"), str(line.get("filter", "none"))
            if not isinstance(own, str | int) or isinstance(own, bool) or (str(own), filtered) in seen:
                return False
            seen.add((str(own), filtered))
        return bool(seen)

    def _lines(self) -> Iterator[tuple[str, Json | Broken]]:
        for number, data in read_lines(self._path, self._limits):
            where = f"line {number}"
            try:
                line = json.loads(data)
            except (ValueError, RecursionError) as error:
                yield where, Broken(where, f"not JSON: {error}")
                continue
            yield where, line if isinstance(line, dict) else Broken(where, "not a JSON object")


def _lm_eval_sample(line: Json, has_ids: bool) -> PublishedSample:
    doc = line["doc"] if isinstance(line["doc"], dict) else {"doc": line["doc"]}
    return PublishedSample(
        item_id=str(doc["id"] if has_ids else line["doc_id"]),
        row={**doc, "target": line.get("target", "")},
        prompt=_first_text(line.get("arguments")),
        answers=_lm_eval_answers(line),
        scores=_lm_eval_scores(line),
    )


def _read_results(path: Path, limits: ReadLimits) -> Json:
    if not path.is_file():
        return {}
    data = read_file(path, limits)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _first_text(arguments: object) -> str:
    """The first thing the model was given: arguments come as nested dicts, or in older files as nested lists."""
    while isinstance(arguments, dict | list) and arguments:
        arguments = next(iter(arguments.values())) if isinstance(arguments, dict) else arguments[0]
    return arguments if isinstance(arguments, str) else ""


def _lm_eval_answers(line: Json) -> tuple[Answer, ...]:
    responses = line.get("resps") or []
    first = responses[0] if isinstance(responses, list) and responses else []
    if isinstance(first, list) and first and all(isinstance(text, str) for text in first):
        return tuple(Answer(text) for text in first)
    # Likelihoods of given continuations: there is no text, but there is what was compared.
    return (Answer(format_value(line.get("filtered_resps", responses))),)


def _lm_eval_scores(line: Json) -> dict[str, PublishedScore]:
    names = line.get("metrics")
    if not isinstance(names, list):
        names = [name for name in line if name not in LM_EVAL_FIELDS]
    filtered = str(line.get("filter", "none"))
    found = {}
    for name in names:
        if name not in line:
            continue
        value = line[name]
        number = float(value) if isinstance(value, bool | int | float) and math.isfinite(value) else None
        # As its own results spell it, but for the filter that is none.
        found[name if filtered == "none" else f"{name},{filtered}"] = check_score(name, number, value)
    return found


# --- both -------------------------------------------------------------------------------------------------------------


def _sampling(given: Json, max_tokens: float | None) -> SamplingConfig:
    """What was not set is the provider's default, which for a limit is none of ours."""
    return SamplingConfig(
        temperature=float(given.get("temperature") or 0.0),
        top_p=None if given.get("top_p") is None else float(given["top_p"]),
        max_tokens=-1 if max_tokens is None else int(max_tokens),
    )
