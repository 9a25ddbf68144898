"""The answer in a field of a JSON reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from themis.core.json_repair import parse_json
from themis.core.registry import nearest
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import text_of

__all__ = ["JsonFieldExtractor"]


@dataclass(frozen=True)
class JsonFieldExtractor:
    """A field of the JSON in the text, by dotted path; numbers in the path index lists; no path gives the whole value.

    The JSON may be fenced, embedded in prose or carelessly written: see `themis.core.json_repair`.
    """

    example: ClassVar[str] = """JsonFieldExtractor("user.age").extract('{"user": {"age": 31}}') == 31"""

    field_path: str = ""

    def extract(self, raw_output: str) -> Any:
        found: Any = raw_output
        if not isinstance(raw_output, dict | list):
            try:
                found = parse_json(text_of(raw_output))
            except ValueError as error:
                raise FieldExtractionError(str(error)) from error
        for step in self.field_path.split(".") if self.field_path else ():
            found = self._descend(found, step)
        return found

    def _descend(self, value: Any, step: str) -> Any:
        if isinstance(value, dict):
            if step in value:
                return value[step]
            has = f"{nearest(step, value)}; it has {', '.join(map(str, value)) or 'no fields'}"
            raise FieldExtractionError(f"no field {step!r} (of {self.field_path!r}) in the JSON{has}")
        if isinstance(value, list) and step.removeprefix("-").isdecimal() and -len(value) <= int(step) < len(value):
            return value[int(step)]
        raise FieldExtractionError(f"no {step!r} (of {self.field_path!r}) in a JSON {type(value).__name__}")
