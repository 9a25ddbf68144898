"""The JSON schema of experiment files, for editors: made of the specifications' fields, their types and their docstrings."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from themis.comparison.engine import CORRECTIONS, StatisticalTest, TestSettings
from themis.comparison.gate import Gate
from themis.config.specification import MemorySpecification, SampleSpecification, Specification
from themis.experiments.gates import GateRule, gate_fields
from themis.experiments.specification import ExperimentSpecification
from themis.experiments.values import PROMPT_FILE, settable
from themis.experiments.variants import MEMORY_AXES, SAMPLE_AXES, Axis

__all__ = ["experiment_schema"]

# A schema is JSON.
Schema = dict[str, Any]

_SIMPLE = {str: "string", bool: "boolean", int: "integer", float: "number"}


def experiment_schema() -> Schema:
    """The schema of an experiment file, as `themis run --schema` prints it.

    >>> experiment_schema()["$defs"]["samples"]["properties"]["temperature"]
    {'type': 'number', 'description': 'Of sampling; 0 for the likeliest answer.'}
    """
    own = _read_descriptions(ExperimentSpecification)
    properties: Schema = {
        **_references(SampleSpecification),
        "name": {"type": "string"},
        **{axis.key: _axis(axis) for axis in SAMPLE_AXES},
        "memory": _memory(),
        "baseline": _one_or_several({"type": "string"}),
        "gates": _gates(),
        "compare": _compare(),
        "budget_usd": {"type": "number", "exclusiveMinimum": 0},
        "parallel": {"type": "integer", "minimum": 1},
        "fail_on_errors": {"type": "number", "minimum": 0, "maximum": 1},
        "load": {"type": "array", "items": {"type": "string"}},
    }
    for name in ExperimentSpecification.own_keys():
        properties[name] = {**properties[name], "description": own.get(name, "")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Themis experiment",
        "description": (inspect.getdoc(ExperimentSpecification) or "").partition("\n")[0],
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "$defs": {
            **{kind.kind: {"properties": _settings(kind)} for kind in (SampleSpecification, MemorySpecification)},
            **{axis.key: _variant(axis, axes) for axes in (SAMPLE_AXES, MEMORY_AXES) for axis in axes},
        },
    }


def _references(kind: type[Specification]) -> Schema:
    """The settings of a kind of run, each as where it is defined."""
    return {name: {"$ref": f"#/$defs/{kind.kind}/properties/{name}"} for name in _settings(kind)}


def _settings(kind: type[Specification]) -> Schema:
    """Every setting of a kind of run, with its type and what its docstring says."""
    told = _read_descriptions(kind)
    found = {name: _described(_of_type(hint), told.get(name, "")) for name, hint in settable(kind).items()}
    if "metrics" in found:
        call = {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "object"}}
        found["metrics"] = _described(
            {"type": "array", "items": {"anyOf": [{"type": "string"}, call]}, "minItems": 1}, told.get("metrics", "")
        )
        found[PROMPT_FILE] = {"type": "string", "description": "A file that holds the prompt."}
    if "span_tokens" in found:
        found["span_tokens"] = _described({"type": ["integer", "string"]}, told.get("span_tokens", ""))
    return found


def _axis(axis: Axis) -> Schema:
    """What stands on an axis: a list, or a mapping from names, of bare values and of settings."""
    bare = {"type": "string"} if axis.key == "datasets" else _references(axis.kind).get(axis.setting)
    entry = {"anyOf": [*([bare] if bare else []), {"$ref": f"#/$defs/{axis.key}"}]}
    return {"anyOf": [{"type": "array", "items": entry}, {"type": "object", "additionalProperties": entry}]}


def _variant(axis: Axis, axes: Sequence[Axis]) -> Schema:
    """One of an axis with settings of its own."""
    others = {
        other.key: _described(_one_or_several({"type": "string"}), f"The {other.key} that this {axis.one} goes with.")
        for other in axes
        if other.key != axis.key
    }
    name = {"type": "string", "description": "What it is called; in a mapping, that is its key."}
    properties = {"name": name, **_references(axis.kind), **others}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _memory() -> Schema:
    axes = {axis.key: _axis(axis) for axis in MEMORY_AXES}
    axes["seeds"] = {"anyOf": [{"type": "integer", "minimum": 1}, *axes["seeds"]["anyOf"]]}
    others = {"baseline": _one_or_several({"type": "string"}), "gates": _gates()}
    return {
        "type": "object",
        "properties": {**_references(MemorySpecification), **axes, **others},
        "additionalProperties": False,
    }


def _gates() -> Schema:
    told = {**_read_descriptions(Gate), **_read_descriptions(GateRule)}
    properties = {name: _described(_of_type(hint), told.get(name, "")) for name, hint in gate_fields().items()}
    return {
        "type": "array",
        "items": {"type": "object", "properties": properties, "required": ["metric"], "additionalProperties": False},
    }


def _compare() -> Schema:
    hints = get_type_hints(TestSettings)
    properties = {one.name: _of_type(hints[one.name]) for one in fields(TestSettings)}
    properties["test"] = {"enum": [one.value for one in StatisticalTest]}
    properties["correction"] = {"enum": [*CORRECTIONS, "none"]}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description} if description else schema


def _one_or_several(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "array", "items": schema}]}


def _of_type(hint: object) -> Schema:
    """The schema of a type, as far as a file can hold it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        parts = [_of_type(one) for one in arguments if one is not type(None)]
        unlike = [part for index, part in enumerate(parts) if part not in parts[:index]]
        # A part that is only a program's to give is none of a file's.
        written = [part for part in unlike if part] or unlike
        return written[0] if len(written) == 1 else {"anyOf": written}
    if origin is Literal:
        return {"enum": list(arguments)}
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object"}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        items = _of_type(arguments[0])
        return {"type": "array", "items": items} if items else {"type": "array"}
    return {}


_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)


def _read_descriptions(documented: type) -> dict[str, str]:
    """What the docstrings of a class and of those above it say of each field."""
    found: dict[str, str] = {}
    for one in reversed(documented.__mro__):
        _, _, arguments = (inspect.cleandoc(one.__doc__ or "")).partition("\nArgs:\n")
        until_next_part = re.split(r"\n\n", arguments)[0]
        for name, text in _ARGUMENT.findall(until_next_part):
            found[name] = " ".join(text.split())
    return found
