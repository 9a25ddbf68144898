"""The axes of an experiment and what stands on them: each variant has a label and settings of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from urllib.parse import urlsplit

from themis.config.specification import MemorySpecification, SampleSpecification, Specification
from themis.core.redaction import redact
from themis.exceptions import ConfigurationError
from themis.experiments.mistakes import Mistakes, ValuePath
from themis.experiments.values import (
    PROMPT_FILE,
    QUOTE_BRACES,
    Settings,
    check_setting,
    explain_unknown,
    reusable,
    settable,
)
from themis.memory.assembling import parse_span
from themis.presets.hub import HUB_PREFIX
from themis.presets.loading import READABLE_SUFFIXES

__all__ = ["MEMORY_AXES", "SAMPLE_AXES", "Axis", "Variant", "read_names", "read_variants", "slug", "slug_pattern"]


@dataclass(frozen=True)
class Axis:
    """One dimension of an experiment: its key, what one of it is called, and the setting that a bare value means."""

    key: str
    one: str
    setting: str
    kind: type[Specification] = SampleSpecification


SAMPLE_AXES = (
    Axis("subjects", "subject", "model"),
    Axis("prompts", "prompt", "prompt"),
    Axis("datasets", "dataset", "dataset"),
    Axis("sampling", "sampling", ""),
)
MEMORY_AXES = (
    Axis("agents", "agent", "agent", MemorySpecification),
    Axis("configurations", "configuration", "configuration", MemorySpecification),
    Axis("spans", "span", "span_tokens", MemorySpecification),
    Axis("seeds", "seed", "seed", MemorySpecification),
)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One of the things that an axis goes through.

    `goes_with` names the variants of other axes that it is combined with, where that is not all of them.
    """

    label: str
    values: Mapping[str, object]
    path: ValuePath
    goes_with: Mapping[str, Sequence[str]] = field(default_factory=dict)


def read_variants(
    axis: Axis, given: object, path: ValuePath, axes: Sequence[Axis], mistakes: Mistakes
) -> list[Variant]:
    """The variants of an axis: a list, or a mapping from labels. What is wrong with them is added to the mistakes."""
    entries: list[tuple[str | int, str | None, object]]
    if isinstance(given, Mapping):
        for named in given:
            if named is None or isinstance(named, bool):
                mistakes.add((*path, str(named)), _explain_no_text(named))
        entries = [(str(label), str(label), value) for label, value in given.items()]
    elif isinstance(given, Sequence) and not isinstance(given, str):
        entries = [(place, None, value) for place, value in enumerate(given)]
    else:
        mistakes.add(path, f"{axis.key} is a list, or a mapping from names, got {redact(given)!r}")
        return []
    found: list[Variant] = []
    for place, label, value in entries:
        variant = _read_variant(axis, (*path, place), label, value, axes, mistakes)
        if variant is None:
            continue
        if any(variant.label == other.label for other in found):
            example = f"{{name: ..., {axis.setting or 'temperature'}: ...}}"
            mistakes.add(
                variant.path, f"two {axis.key} are called {variant.label!r}; give one of them a name: {example}"
            )
        found.append(variant)
    return found


def _read_variant(
    axis: Axis, path: ValuePath, label: str | None, value: object, axes: Sequence[Axis], mistakes: Mistakes
) -> Variant | None:
    others = [one.key for one in axes if one.key != axis.key]
    values: Settings = {}
    goes_with: dict[str, list[str]] = {}
    if isinstance(value, Mapping):
        known = [*settable(axis.kind), PROMPT_FILE, "name", *others]
        for name, given in value.items():
            if name == "name" and label is None:
                label = str(given)
                if given is None or isinstance(given, bool):
                    mistakes.add((*path, name), _explain_no_text(given))
            elif name in others:
                if (named := read_names(given)) is not None:
                    goes_with[name] = named
                else:
                    what = f"{name} names those that it goes with, got {redact(given)!r}"
                    mistakes.add((*path, name), what)
            elif name not in known or name == "name":
                to_quote = QUOTE_BRACES if axis.key == "prompts" and given is None else ""
                mistakes.add((*path, str(name)), explain_unknown(str(name), known) + to_quote)
            else:
                values[name] = reusable(given)
    elif axis.setting:
        values[axis.setting] = reusable(value)
    else:
        mistakes.add(
            path, f"a {axis.one} is a mapping of settings, such as {{temperature: 0.7}}, got {redact(value)!r}"
        )
        return None
    if isinstance(values.get("span_tokens"), str):
        try:
            values["span_tokens"] = parse_span(values["span_tokens"])
        except ConfigurationError as error:
            mistakes.add(path, str(error))
            return None
    misfits = {name: misfit for name, given in values.items() if (misfit := check_setting(axis.kind, name, given))}
    for name, misfit in misfits.items():
        mistakes.add((*path, name), misfit)
        del values[name]
    shown = label if label is not None else _label(axis, value if not isinstance(value, Mapping) else values, path)
    return Variant(label=slug(shown), values=values, path=path, goes_with=goes_with)


def _explain_no_text(given: bool | None) -> str:
    words = "null, ~ and an empty place as nothing" if given is None else f"yes, no, on and off as {given}"
    return f"a name is a text, and YAML reads {words}: write it in quotation marks"


def read_names(given: object) -> list[str] | None:
    """The labels that a name, or a list of names, means, written as they were where variants got them; None for anything else.

    >>> read_names(["A b", 7])
    ['A-b', '7']
    """
    names = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in names):
        return None
    return [slug(str(one)) for one in names]


# --- labels -----------------------------------------------------------------------------------------------------------


def slug(text: str) -> str:
    """Text as a part of a run's id.

    >>> slug("constant?text=4")
    'constant-text=4'
    """
    return re.sub(r"[^\w.()=,+-]+", "-", text).strip("-.") or "unnamed"


def slug_pattern(pattern: str) -> str:
    """A pattern that matches the slugs of what it matches.

    >>> slug_pattern("A b*")
    'A-b*'
    """
    return re.sub(r"[^\w.()=,+*?\[\]!-]+", "-", pattern)


def _label(axis: Axis, value: object, path: ValuePath) -> str:
    """What a variant is called that has no name: by its bare value, or by all its settings."""
    bare = value.get(axis.setting) if isinstance(value, Mapping) else value
    if axis.key in ("subjects", "agents") and isinstance(bare, str):
        return _label_of_subject(bare)
    if axis.key in ("datasets", "configurations") and isinstance(bare, str | PurePath):
        return _label_of_rows(str(bare))
    if axis.key == "seeds":
        return f"s{bare}"
    if axis.key == "spans":
        return _label_of_span(bare)
    if callable(bare):
        return str(getattr(bare, "__name__", type(bare).__name__))
    if isinstance(value, Mapping) and axis.setting not in value:
        return ",".join(f"{name}={given}" for name, given in value.items())
    return f"{axis.one}-{int(path[-1]) + 1}"


def _label_of_subject(text: str) -> str:
    """`gpt-4o` of `openai/gpt-4o`, `app.answer` of `python:app.py:answer`, `localhost-8000-ask` of an address."""
    if text.startswith(("http://", "https://")):
        address = urlsplit(text)
        return f"{address.netloc}{address.path}"
    kind, _, rest = text.partition(":")
    if kind == "python" and rest:
        file, _, name = rest.partition(":")
        return f"{PurePath(file).stem}.{name}" if name else PurePath(file).stem
    if kind == "command" and rest.split():
        return PurePath(rest.split()[0]).stem
    if "(" in text:
        return text.removeprefix("agent:")
    # As models are named: the first mark divides the provider from the model, which may have marks of its own.
    return re.split(r"[/:]", text, maxsplit=1)[-1].rpartition("/")[2]


def _label_of_rows(text: str) -> str:
    """`rows` of `data/rows.jsonl`, `gsm8k-main-test` of `hf://openai/gsm8k/main/test`."""
    if text.startswith(HUB_PREFIX):
        return "-".join(text.removeprefix(HUB_PREFIX).split("/")[1:])
    name = PurePath(text.rpartition(":")[2]).name
    suffix = next((one for one in (*READABLE_SUFFIXES, ".yml", ".yaml") if name.lower().endswith(one)), "")
    return name[: len(name) - len(suffix)]


def _label_of_span(tokens: object) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if isinstance(tokens, int) and tokens >= size and tokens % size == 0:
            return f"{tokens // size}{unit}"
    return str(tokens)
