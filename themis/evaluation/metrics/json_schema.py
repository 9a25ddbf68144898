"""Validation of an answer's JSON against a JSON Schema: the keywords in common use, and an error for any other."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from themis.core.entities import MetricScore
from themis.evaluation.metrics.reading import zero
from themis.evaluation.metrics.structured import canonical_text, json_prediction, json_reference
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric

__all__ = ["JsonSchema", "check_schema", "violations"]


@dataclass
class JsonSchema(Metric):
    """1 if the answer's JSON satisfies a JSON Schema: the parameter, else a reference. Violations are in the details."""

    example: ClassVar[str] = (
        'JsonSchema(schema={"type": "array", "minItems": 2}).compute(prediction="[1]", references=[]).value == 0.0'
    )

    schema: dict[str, Any] | bool | None = None
    name: str = "JsonSchema"
    score_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        self.requires_reference = self.schema is None
        if self.schema is not None:
            try:
                check_schema(self.schema)
            except ValueError as error:
                raise ConfigurationError(f"json_schema: {error}") from error

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        schemas = [self.schema] if self.schema is not None else [json_reference(self.name, item) for item in references]
        if not schemas:
            raise MetricError(f"{self.name} needs a schema: the parameter schema=, or a reference")
        try:
            for schema in schemas:
                check_schema(schema)
        except ValueError as error:
            raise MetricError(f"{self.name}: {error}") from error
        try:
            said = json_prediction(prediction)
            found = min((list(violations(said, schema)) for schema in schemas), key=len)
        except (ValueError, RecursionError):
            return zero(self.name, prediction, "JSON")
        return MetricScore(self.name, float(not found), {"violations": found[:20]} if found else {})


_NUMBER = (int, float)
_SCHEMA = (dict, bool)
# What each keyword takes. Annotations, `format` among them, say nothing about validity.
_KEYWORDS: dict[str, tuple[type, ...]] = {
    "type": (str, list), "enum": (list,), "const": (object,), "$ref": (str,),
    "properties": (dict,), "required": (list,), "additionalProperties": _SCHEMA, "patternProperties": (dict,),
    "propertyNames": _SCHEMA, "minProperties": (int,), "maxProperties": (int,),
    "items": _SCHEMA, "prefixItems": (list,), "contains": _SCHEMA, "minItems": (int,), "maxItems": (int,),
    "uniqueItems": (bool,), "minLength": (int,), "maxLength": (int,), "pattern": (str,),
    "minimum": _NUMBER, "maximum": _NUMBER, "exclusiveMinimum": _NUMBER, "exclusiveMaximum": _NUMBER,
    "multipleOf": _NUMBER, "allOf": (list,), "anyOf": (list,), "oneOf": (list,), "not": _SCHEMA,
    "if": _SCHEMA, "then": _SCHEMA, "else": _SCHEMA, "$defs": (dict,), "definitions": (dict,),
    **dict.fromkeys(("title", "description", "default", "examples", "$schema", "$id", "$comment", "format"), (object,)),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), (object,)),
}  # fmt: skip
_HOLD_SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions")
_HOLD_SCHEMAS_IN_LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
_HOLD_A_SCHEMA = ("additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else")
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list, tuple), "string": (str,), "null": (type(None),), "boolean": (bool,),
    "number": _NUMBER, "integer": _NUMBER,
}  # fmt: skip


def check_schema(schema: Any, root: Any = None, path: str = "schema") -> None:
    """Raises ValueError for a schema that would not be understood in full: nothing is ignored in silence."""
    root = schema if root is None else root
    if not isinstance(schema, dict | bool):
        raise ValueError(f"{path} must be an object or a boolean, got {schema!r:.80}")
    for keyword, argument in schema.items() if isinstance(schema, dict) else ():
        where = f"{path}.{keyword}"
        if keyword not in _KEYWORDS:
            raise ValueError(f"{where} is not a supported keyword; supported: {', '.join(sorted(_KEYWORDS))}")
        if not _fits(argument, _KEYWORDS[keyword]):
            raise ValueError(f"{where} cannot be {argument!r:.80}")
        if keyword == "type" and not set(argument if isinstance(argument, list) else [argument]) <= set(_TYPES):
            raise ValueError(f"{where} must name {', '.join(_TYPES)}, got {argument!r}")
        for pattern in [argument] if keyword == "pattern" else argument if keyword == "patternProperties" else ():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{where} {pattern!r} is not a regular expression: {error}") from error
        if keyword == "$ref":
            _referred(argument, root)
        if keyword in _HOLD_A_SCHEMA:
            check_schema(argument, root, where)
        elif keyword in _HOLD_SCHEMAS_IN_LIST:
            for index, inner in enumerate(argument):
                check_schema(inner, root, f"{where}[{index}]")
        elif keyword in _HOLD_SCHEMAS_BY_NAME:
            for name, inner in argument.items():
                check_schema(inner, root, f"{where}.{name}")


def _fits(argument: Any, takes: tuple[type, ...]) -> bool:
    # A boolean is an integer to Python, but not to a schema.
    return isinstance(argument, takes) and (not isinstance(argument, bool) or bool in takes or object in takes)


def violations(value: Any, schema: Any, root: Any = None, path: str = "$") -> Iterator[str]:
    """What is wrong with a value, each with its path; the schema has been checked."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        if not schema:
            yield f"{path} is not allowed"
        return
    if "$ref" in schema:
        yield from violations(value, _referred(schema["$ref"], root), root, path)
    yield from _of_any_type(value, schema, path)
    yield from _of_combinations(value, schema, root, path)
    if isinstance(value, dict):
        yield from _of_object(value, schema, root, path)
    elif isinstance(value, list | tuple):
        yield from _of_array(value, schema, root, path)
    elif isinstance(value, str):
        yield from _of_string(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _of_number(value, schema, path)


def _referred(reference: str, root: Any) -> Any:
    """A schema inside this one, by JSON pointer; nothing is fetched."""
    found = root
    steps = reference.removeprefix("#").strip("/")
    for step in steps.split("/") if steps else ():
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    if not reference.startswith("#") or not isinstance(found, dict | bool):
        raise ValueError(f"$ref {reference!r} does not point into this schema, as in #/$defs/name")
    return found


def _of_any_type(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is_type(value, name) for name in names):
            yield f"{path} is not of type {' or '.join(names)}"
    if "enum" in schema and canonical_text(value) not in map(canonical_text, schema["enum"]):
        yield f"{path} is not one of {schema['enum']!r:.80}"
    if "const" in schema and canonical_text(value) != canonical_text(schema["const"]):
        yield f"{path} is not {schema['const']!r:.80}"


def _is_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if not isinstance(value, _TYPES[name]):
        return False
    return name != "integer" or not isinstance(value, float) or value.is_integer()


def _of_combinations(value: Any, schema: dict[str, Any], root: Any, path: str) -> Iterator[str]:
    def satisfies(inner: Any) -> bool:
        return next(violations(value, inner, root, path), None) is None

    for inner in schema.get("allOf", ()):
        yield from violations(value, inner, root, path)
    if "anyOf" in schema and not any(map(satisfies, schema["anyOf"])):
        yield f"{path} satisfies none of anyOf"
    if "oneOf" in schema and (satisfied := sum(map(satisfies, schema["oneOf"]))) != 1:
        yield f"{path} satisfies {satisfied} of oneOf"
    if "not" in schema and satisfies(schema["not"]):
        yield f"{path} satisfies what it must not"
    if "if" in schema:
        yield from violations(value, schema.get("then" if satisfies(schema["if"]) else "else", True), root, path)


def _of_object(value: dict[str, Any], schema: dict[str, Any], root: Any, path: str) -> Iterator[str]:
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name} is missing"
    for name, item in value.items():
        inner = [schema_of for pattern, schema_of in patterns.items() if re.search(pattern, name)]
        inner += [properties[name]] if name in properties else []
        for schema_of in inner or [schema.get("additionalProperties", True)]:
            yield from violations(item, schema_of, root, f"{path}.{name}")
        yield from violations(name, schema.get("propertyNames", True), root, f"{path}.{name} (its name)")
    yield from _outside(len(value), schema, "minProperties", "maxProperties", f"{path} has", "properties")


def _of_array(value: Sequence[Any], schema: dict[str, Any], root: Any, path: str) -> Iterator[str]:
    prefix = schema.get("prefixItems", ())
    for index, item in enumerate(value):
        inner = prefix[index] if index < len(prefix) else schema.get("items", True)
        yield from violations(item, inner, root, f"{path}[{index}]")
    if "contains" in schema and not any(
        next(violations(item, schema["contains"], root, path), None) is None for item in value
    ):
        yield f"{path} contains no item that it must"
    if schema.get("uniqueItems") and len(set(map(canonical_text, value))) < len(value):
        yield f"{path} has equal items"
    yield from _outside(len(value), schema, "minItems", "maxItems", f"{path} has", "items")


def _of_string(value: str, schema: dict[str, Any], path: str) -> Iterator[str]:
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path} does not match {schema['pattern']!r}"
    yield from _outside(len(value), schema, "minLength", "maxLength", f"{path} has", "characters")


def _of_number(value: float, schema: dict[str, Any], path: str) -> Iterator[str]:
    yield from _outside(value, schema, "minimum", "maximum", f"{path} is", "")
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"{path} is {value}, expected more than {schema['exclusiveMinimum']}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        yield f"{path} is {value}, expected less than {schema['exclusiveMaximum']}"
    if "multipleOf" in schema and not _is_multiple(value, schema["multipleOf"]):
        yield f"{path} is {value}, expected a multiple of {schema['multipleOf']}"


def _is_multiple(value: float, step: float) -> bool:
    # By their decimal texts: 0.3 is a multiple of 0.1, though their binary forms are not.
    return math.isfinite(value) and (Fraction(str(value)) / Fraction(str(step))).denominator == 1


def _outside(size: float, schema: dict[str, Any], least: str, most: str, has: str, what: str) -> Iterator[str]:
    if least in schema and size < schema[least]:
        yield f"{has} {size} {what}".rstrip() + f", expected at least {schema[least]}"
    if most in schema and size > schema[most]:
        yield f"{has} {size} {what}".rstrip() + f", expected at most {schema[most]}"
