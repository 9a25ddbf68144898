"""Reads the `samples_*.jsonl` of lm-evaluation-harness, and of the `results_*.json` beside it the model's name."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from themis.core.entities import ModelSpec, SamplingConfig
from themis.experiment.export.json_text import as_text
from themis.experiment.importing.bounded import ReadLimits, read_file, read_lines
from themis.experiment.importing.published import (
    Answer,
    Broken,
    Header,
    PublishedSample,
    PublishedScore,
    published_score,
)

__all__ = ["LmEvalLog"]

_FIELDS = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "schema_hash"),
    )
)


class LmEvalLog:
    """One file of one task. A document judged through several filters has a metric for each."""

    def __init__(self, path: Path, limits: ReadLimits) -> None:
        self._path = path
        self._limits = limits

    @cached_property
    def header(self) -> Header:
        task, _, stamp = self._path.stem.removeprefix("samples_").rpartition("_")
        results = _results(self._path.with_name(f"results_{stamp}.json"), self._limits)
        config = results.get("config") or {}
        kwargs = ((results.get("configs") or {}).get(task) or {}).get("generation_kwargs") or {}
        with self._path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return Header(
            source="lm-eval",
            task=task or self._path.stem,
            sha256=sha256,
            model=ModelSpec(
                identifier=str(results.get("model_name") or "unknown"), provider=str(config.get("model") or "lm-eval")
            ),
            sampling=_sampling(kwargs),
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
                yield _published(line, has_ids)
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

    def _lines(self) -> Iterator[tuple[str, Any]]:
        for number, data in read_lines(self._path, self._limits):
            where = f"line {number}"
            try:
                line = json.loads(data)
            except (ValueError, RecursionError) as error:
                yield where, Broken(where, f"not JSON: {error}")
                continue
            yield where, line if isinstance(line, dict) else Broken(where, "not a JSON object")


def _published(line: dict[str, Any], has_ids: bool) -> PublishedSample:
    doc = line["doc"] if isinstance(line["doc"], dict) else {"doc": line["doc"]}
    return PublishedSample(
        item_id=str(doc["id"] if has_ids else line["doc_id"]),
        row={**doc, "target": line.get("target", "")},
        prompt=_prompt(line.get("arguments")),
        answers=_answers(line),
        scores=_scores(line),
    )


def _results(path: Path, limits: ReadLimits) -> dict[str, Any]:
    if not path.is_file():
        return {}
    data = read_file(path, limits)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _prompt(arguments: Any) -> str:
    """The first thing the model was given: arguments come as nested dicts, or in older files as nested lists."""
    while isinstance(arguments, dict | list) and arguments:
        arguments = next(iter(arguments.values())) if isinstance(arguments, dict) else arguments[0]
    return arguments if isinstance(arguments, str) else ""


def _answers(line: dict[str, Any]) -> tuple[Answer, ...]:
    responses = line.get("resps") or []
    first = responses[0] if isinstance(responses, list) and responses else []
    if isinstance(first, list) and first and all(isinstance(text, str) for text in first):
        return tuple(Answer(text) for text in first)
    # Likelihoods of given continuations: there is no text, but there is what was compared.
    return (Answer(as_text(line.get("filtered_resps", responses))),)


def _scores(line: dict[str, Any]) -> dict[str, PublishedScore]:
    names = line.get("metrics")
    if not isinstance(names, list):
        names = [name for name in line if name not in _FIELDS]
    filtered = str(line.get("filter", "none"))
    found = {}
    for name in names:
        if name not in line:
            continue
        value = line[name]
        number = float(value) if isinstance(value, bool | int | float) and math.isfinite(value) else None
        # As its own results spell it, but for the filter that is none.
        found[name if filtered == "none" else f"{name},{filtered}"] = published_score(name, number, value)
    return found


def _sampling(kwargs: Mapping[str, Any]) -> SamplingConfig:
    limit = kwargs.get("max_gen_toks", kwargs.get("max_tokens"))
    return SamplingConfig(
        temperature=float(kwargs.get("temperature") or 0.0),
        top_p=float(kwargs.get("top_p") or 1.0),
        max_tokens=-1 if limit is None else int(limit),
    )
