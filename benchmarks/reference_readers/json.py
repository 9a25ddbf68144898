"""Readers of JSON fields: ours, the standard library on the usual places, and json-repair where it is installed."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable

from tests.evaluation.replies import Line, Reader
from themis.evaluation.extractors import FieldExtractionError, JsonFieldExtractor


def read(line: Line) -> object:
    """What our extractor finds."""
    try:
        return _label(JsonFieldExtractor(line["field"]).extract(line["reply"]))
    except FieldExtractionError:
        return None


def _label(value: object) -> object:
    """A value as the corpus writes it: there null is a field that no JSON has."""
    return {"value": None} if value is None else value


def follow(parse: Callable[[str], object]) -> Reader:
    """The field of what `parse` makes of the reply, step by step as it is spelled."""

    def reader(line: Line) -> object:
        try:
            value = parse(line["reply"])
            for step in line["field"].split("."):
                value = value[int(step)] if isinstance(value, list) else value[step]  # type: ignore[index]
        except (ValueError, KeyError, IndexError, TypeError):
            return None
        return _label(value)

    return reader


_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


def parse_fence(reply: str) -> object:
    """The first fenced block, else the whole reply."""
    fenced = _FENCE.search(reply)
    return json.loads(fenced[1] if fenced else reply)


def parse_braces(reply: str) -> object:
    """From the first opening brace to the last closing one."""
    return json.loads(reply[reply.index("{") : reply.rindex("}") + 1])


def _json_repair() -> dict[str, Reader]:
    try:
        repair = importlib.import_module("json_repair")
    except ModuleNotFoundError:
        return {}
    return {"json-repair": follow(repair.loads)}


READERS: dict[str, Reader] = {
    "themis": read,
    "json.loads": follow(json.loads),
    "json.loads of the fence": follow(parse_fence),
    "json.loads of the braces": follow(parse_braces),
    **_json_repair(),
}
