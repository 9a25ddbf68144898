"""Comparisons of JSON values and lists, and validation against a JSON Schema."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from themis.core.entities import MetricScore
from themis.core.json_repair import parse_json
from themis.evaluation.metrics.reading import zero
from themis.evaluation.metrics.text import overlap_f1
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric, Row

if TYPE_CHECKING:
    from jsonschema import ValidationError


@dataclass
class JsonEqual(Metric):
    """1 if the answer's JSON equals a reference's; the order of keys does not count, that of lists only by default.

    A reference is JSON text, an object, or a list inside a list (the outer one lists alternatives).

    Args:
        ignore_order: Whether the order of lists does not count either.
        name: What the scores are reported as.

    >>> JsonEqual().compute(prediction='{"a": 1.0}', references=[{"a": 1}]).value
    1.0
    """

    ignore_order: bool = False
    name: str = "JsonEqual"
    score_range = (0.0, 1.0)
    pass_fail = True

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        expected = [canonical_text(value, self.ignore_order) for value in json_references(self.name, references)]
        try:
            said = canonical_text(json_prediction(prediction), self.ignore_order)
        except ValueError:
            return zero(self.name, prediction, "JSON")
        return MetricScore(self.name, float(said in expected))


@dataclass
class JsonSubset(Metric):
    """1 if everything in a reference's JSON is also in the answer's: all its fields, and all elements of its lists.

    Args:
        name: What the scores are reported as.

    >>> JsonSubset().compute(prediction='{"a": 1, "b": [2, 3]}', references=[{"b": [3]}]).value
    1.0
    """

    name: str = "JsonSubset"
    score_range = (0.0, 1.0)
    pass_fail = True

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        expected = json_references(self.name, references)
        try:
            said = json_prediction(prediction)
            missing = min((list(find_missing(value, said)) for value in expected), key=len)
        except (ValueError, RecursionError):
            return zero(self.name, prediction, "JSON")
        return MetricScore(self.name, float(not missing), {"missing": missing[:20]} if missing else {})


@dataclass
class ListF1(Metric):
    """F1 of the answer's items against the references', in any order; precision and recall are in the details.

    The answer is a list, JSON, or text with one item a line or between commas. The references are the items; a single
    reference may itself be such a list.

    Args:
        case_sensitive: Whether `Red` and `red` differ.
        name: What the scores are reported as.

    >>> ListF1().compute(prediction="red, green", references=["red", "blue"]).value
    0.5
    """

    case_sensitive: bool = False
    name: str = "ListF1"
    score_range = (0.0, 1.0)
    pass_fail = False

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        expected = self._bag(_items(references[0]) if len(references) == 1 else references)
        said_items = _items(prediction)
        if expected is None or said_items is None:
            if expected is None:
                raise MetricError(f"{self.name}: the reference {references[0]!r:.80} is not a list")
            return zero(self.name, prediction, "a list")
        said = self._bag(said_items) or Counter()
        score = overlap_f1(said, expected)
        details = {"precision": score["precision"], "recall": score["recall"]}
        missing, extra = sorted((expected - said).elements())[:20], sorted((said - expected).elements())[:20]
        return MetricScore(self.name, score["f1"], {**details, "missing": missing, "extra": extra})

    def _bag(self, items: Sequence[object] | None) -> Counter[str] | None:
        return None if items is None else Counter(map(self._key, items))

    def _key(self, item: object) -> str:
        text = " ".join(item.split()) if isinstance(item, str) else canonical_text(item)
        return text if self.case_sensitive else text.casefold()


@dataclass
class JsonSchema(Metric):
    """1 if the answer's JSON satisfies a JSON Schema: the parameter, else a reference. Violations are in the details.

    Draft 2020-12, as the package jsonschema checks it. A keyword that it does not know is an error rather than ignored,
    and nothing is fetched: `$ref` points into the schema itself.

    Args:
        schema: The schema; without it the references are such.
        name: What the scores are reported as.

    >>> JsonSchema(schema={"type": "array", "minItems": 2}).compute(prediction="[1]", references=[]).value
    0.0
    """

    schema: dict[str, object] | bool | None = None
    name: str = "JsonSchema"
    score_range = (0.0, 1.0)
    pass_fail = True

    def __post_init__(self) -> None:
        self.requires_reference = self.schema is None
        if self.schema is not None:
            try:
                check_schema(self.schema)
            except ValueError as error:
                raise ConfigurationError(f"json_schema: {error}") from error

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        schemas = [self.schema] if self.schema is not None else self._schemas(references)
        try:
            said = json_prediction(prediction)
            found = min((find_violations(said, schema) for schema in schemas), key=len)
        except (ValueError, RecursionError):
            return zero(self.name, prediction, "JSON")
        return MetricScore(self.name, float(not found), {"violations": found[:20]} if found else {})

    def _schemas(self, references: Sequence[object]) -> list[object]:
        schemas = [json_reference(self.name, reference) for reference in references]
        if not schemas:
            raise MetricError(f"{self.name} needs a schema: the parameter schema=, or a reference")
        try:
            for schema in schemas:
                check_schema(schema)
        except ValueError as error:
            raise MetricError(f"{self.name}: {error}") from error
        return schemas


def json_prediction(prediction: object) -> object:
    """The value itself, or the JSON in a text; ValueError where there is none."""
    if prediction is None:
        raise ValueError("no answer")
    return parse_json(prediction) if isinstance(prediction, str) else prediction


def json_references(name: str, references: Sequence[object]) -> list[object]:
    if not references:
        raise MetricError(f"{name} compares with a reference, and this sample has none")
    return [json_reference(name, reference) for reference in references]


def json_reference(name: str, reference: object) -> object:
    """Strict, unlike the reading of predictions: a reference that needs repair is a mistake in the row."""
    if not isinstance(reference, str):
        return reference
    try:
        return json.loads(reference)
    except ValueError as error:
        raise MetricError(f"{name}: the reference {reference!r:.80} is not JSON: {error}") from error


def canonical_text(value: object, ignore_order: bool = False) -> str:
    """One text for equal JSON values: 1 equals 1.0, but not true. ValueError for what is not JSON."""
    try:
        return json.dumps(_canonical(value, ignore_order), sort_keys=True, ensure_ascii=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not a JSON value: {error}") from error


def _canonical(value: object, ignore_order: bool) -> object:
    if isinstance(value, dict):
        return {str(key): _canonical(item, ignore_order) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_canonical(item, ignore_order) for item in value]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True)) if ignore_order else items
    return int(value) if isinstance(value, float) and value.is_integer() else value


def find_missing(expected: object, said: object, path: str = "$") -> Iterator[str]:
    """Paths of what is expected but was not said."""
    if isinstance(expected, dict) and isinstance(said, dict):
        for key, value in expected.items():
            if key in said:
                yield from find_missing(value, said[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(expected, list) and isinstance(said, list):
        for index, value in enumerate(expected):
            if not any(next(find_missing(value, item, path), None) is None for item in said):
                yield f"{path}[{index}]"
    elif canonical_text(expected) != canonical_text(said):
        yield path


_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")


def _items(given: object) -> Sequence[object] | None:
    """A list as it is, or a text's items; None for what is neither."""
    if isinstance(given, list | tuple):
        return given
    if isinstance(given, set | frozenset):
        return list(given)
    if not isinstance(given, str):
        return [given] if isinstance(given, int | float) else None
    if given.lstrip()[:1] in ("[", "`"):
        try:
            parsed = parse_json(given)
        except ValueError:
            parsed = None
        if isinstance(parsed, list):
            return parsed
    parts = given.splitlines() if "\n" in given.strip() else re.split(r"[,;]", given)
    items = [_BULLET.sub("", part).strip().strip("\"'") for part in parts]
    return [item for item in items if item]


# --- JSON Schema ----------------------------------------------------------------------------------------------------

# Keywords that say nothing about validity by themselves; `format` is one of them, as the standard has it.
_ANNOTATIONS = frozenset({
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format", "contentEncoding",
    "contentMediaType", "contentSchema", "$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "$defs", "definitions",
    "then", "else", "minContains", "maxContains",
})  # fmt: skip
_SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SCHEMAS_IN_LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMAS = (
    *("additionalProperties", "propertyNames", "unevaluatedProperties", "items", "contains", "unevaluatedItems"),
    *("not", "if", "then", "else"),
)


def check_schema(schema: object) -> None:
    """Raises ValueError for a schema that would not be understood in full: nothing is ignored in silence."""
    problem = _find_problem(canonical_text(schema))
    if problem:
        raise ValueError(problem)


@lru_cache(maxsize=256)
def _find_problem(schema_text: str) -> str:
    """Why a schema cannot be used, or nothing; most rows of a dataset come with the same one."""
    from jsonschema import FormatChecker

    schema, validator = json.loads(schema_text), _validator_class()
    for error in validator(validator.META_SCHEMA, format_checker=FormatChecker(["regex"])).iter_errors(schema):
        return _explain_schema_error(error)
    resolver = _resolver(schema)
    for path, part in _walk_schemas(schema, "schema"):
        for keyword in part:
            if keyword not in validator.VALIDATORS and keyword not in _ANNOTATIONS:
                known = ", ".join(sorted({*validator.VALIDATORS, *_ANNOTATIONS}))
                return f"{path}.{keyword} is not a supported keyword; supported: {known}"
        if "$ref" in part and not _points_to_schema(resolver, part["$ref"]):
            return f"$ref {part['$ref']!r} does not point into this schema, as in #/$defs/name"
    return ""


def find_violations(value: object, schema: object) -> list[str]:
    """What is wrong with a value, each with its path; the schema has been checked."""
    from referencing import Registry

    # An empty registry: whatever a schema refers to outside itself, nothing is fetched.
    validator = _validator_class()(schema, registry=Registry())
    errors = validator.iter_errors(_canonical(value, ignore_order=False))
    return list(dict.fromkeys(text for error in errors for text in _explain(error)))


@cache
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def multiple_of(validator: Any, step: float, value: object, schema: object) -> Iterator[ValidationError]:
        # By their decimal texts: 0.3 is a multiple of 0.1, though their binary forms are not.
        if validator.is_type(value, "number") and (Fraction(str(value)) / Fraction(str(step))).denominator != 1:
            yield ValidationError("")

    return extend(Draft202012Validator, {"multipleOf": multiple_of})


def _explain_schema_error(error: ValidationError) -> str:
    where, given = _format_path("schema", error.absolute_path), error.instance
    if error.validator == "format":
        return f"{where} {given!r} is not a regular expression: {error.cause}"
    if error.absolute_path and error.absolute_path[-1] == "type":
        return f"{where} must name object, array, string, null, boolean, number, integer, got {given!r:.80}"
    if error.validator == "type" and not (error.absolute_path and isinstance(error.absolute_path[-1], str)):
        return f"{where} must be an object or a boolean, got {given!r:.80}"
    return f"{where} cannot be {given!r:.80}"


def _walk_schemas(schema: object, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schema and every schema inside it, with its place."""
    if not isinstance(schema, Mapping):
        return
    yield path, schema
    for keyword, inner in schema.items():
        if keyword in _SCHEMAS:
            yield from _walk_schemas(inner, f"{path}.{keyword}")
        elif keyword in _SCHEMAS_IN_LIST:
            for index, item in enumerate(inner):
                yield from _walk_schemas(item, f"{path}.{keyword}[{index}]")
        elif keyword in _SCHEMAS_BY_NAME:
            for name, item in inner.items():
                yield from _walk_schemas(item, f"{path}.{keyword}.{name}")


def _resolver(schema: object) -> Any:
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    uri = resource.id() or ""
    return Registry().with_resource(uri, resource).resolver(uri)


def _points_to_schema(resolver: Any, reference: str) -> bool:
    from referencing.exceptions import Unresolvable

    try:
        return isinstance(resolver.lookup(reference).contents, dict | bool)
    except (Unresolvable, ValueError):
        return False


def _explain(error: ValidationError) -> Iterable[str]:
    """One violation in our words, with the path of the value."""
    value, wanted, keyword = error.instance, error.validator_value, str(error.validator)
    path = _format_path("$", error.absolute_path)
    if "propertyNames" in error.absolute_schema_path and isinstance(value, str):
        path = f"{path}.{value} (its name)"
    if keyword == "required":
        return [f"{path}.{name} is missing" for name in wanted if name not in value]
    if error.validator is None:
        return [f"{path} is not allowed"]
    if keyword == "additionalProperties" and wanted is False:
        known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
        unknown = [name for name in value if name not in known and not any(re.search(each, name) for each in patterns)]
        return [f"{path}.{name} is not allowed" for name in unknown]
    if keyword in _VIOLATIONS:
        shown = " or ".join(wanted) if isinstance(wanted, list) and keyword == "type" else wanted
        size = value if isinstance(value, int | float) else len(value) if isinstance(value, Sequence | Mapping) else ""
        count = "none" if error.context else "more than one"
        return [path + _VIOLATIONS[keyword].format(wanted=shown, shown=f"{wanted!r:.80}", size=size, count=count)]
    return [f"{path}: {error.message:.200}"]


_VIOLATIONS = {
    "type": " is not of type {wanted}",
    "enum": " is not one of {shown}",
    "const": " is not {shown}",
    "anyOf": " satisfies none of anyOf",
    "oneOf": " satisfies {count} of oneOf",
    "not": " satisfies what it must not",
    "contains": " contains no item that it must",
    "uniqueItems": " has equal items",
    "pattern": " does not match {shown}",
    "minProperties": " has {size} properties, expected at least {wanted}",
    "maxProperties": " has {size} properties, expected at most {wanted}",
    "minItems": " has {size} items, expected at least {wanted}",
    "maxItems": " has {size} items, expected at most {wanted}",
    "minLength": " has {size} characters, expected at least {wanted}",
    "maxLength": " has {size} characters, expected at most {wanted}",
    "minimum": " is {size}, expected at least {wanted}",
    "maximum": " is {size}, expected at most {wanted}",
    "exclusiveMinimum": " is {size}, expected more than {wanted}",
    "exclusiveMaximum": " is {size}, expected less than {wanted}",
    "multipleOf": " is {size}, expected a multiple of {wanted}",
}


def _format_path(start: str, steps: Iterable[str | int]) -> str:
    return start + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
