"""Prompt templates: a row's fields put into a text.

First step of a sample's path. The syntax is that of `str.format`, reduced to what is safe and cannot surprise: named
fields, `{field[key]}` items, `!r` conversions and format specs. A template is parsed once, when it is made, so that a
mistake in it is found before the first row is read, and rendering a row costs about a microsecond.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

from themis.core.entities import PromptRender, PromptSpec
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError

__all__ = ["PromptTemplate", "TemplateRenderingError"]


_LONGEST_SHOWN = 80


class TemplateRenderingError(ConfigurationError, RuntimeError):
    """A template that cannot be read, or a row that does not have what it needs."""


@dataclass(frozen=True)
class PromptTemplate:
    """A named text with `{fields}`; literal braces are written `{{` and `}}`.

    Args:
        name: What reports call it.
        template: The text. `{field}`, `{field[key]}`, `!r` and format specs are known; attributes and positions are refused.
        metadata: `{"as_written": True}` says that a text which looks like a mistake (it uses no field of the row, or has a
            field's name between literal braces) is meant.

    Raises:
        TemplateRenderingError: The text cannot be read.

    >>> template = PromptTemplate("sum", "{a} + {b} = ? Reply as {{number}}.")
    >>> template.render(a=2, b=3)
    '2 + 3 = ? Reply as {number}.'
    >>> template.fields
    ('a', 'b')
    """

    name: str
    template: str
    metadata: dict[str, object] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.template, str):
            raise TemplateRenderingError(
                f"the template of {self.name!r} must be a string, got {type(self.template).__name__}"
            )
        _ = self._parts  # parsed now, so that a mistake is found before the first row

    @cached_property
    def spec(self) -> PromptSpec:
        """Name, text and metadata, as a task carries them."""
        return PromptSpec(self.name, self.template, dict(self.metadata or {}))

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names that a row must have, each once, in the order of the text."""
        return tuple(dict.fromkeys(part.field.name for part in self._parts if part.field))

    def render(self, /, **row: Any) -> str:
        """The text with these fields in it.

        Args:
            **row: The fields.

        Raises:
            TemplateRenderingError: A field is missing or cannot be formatted.
        """
        return self.fill(row)

    def render_prompt(self, context: Mapping[str, object]) -> PromptRender:
        """The text with the row it was made from, as a task carries it.

        Args:
            context: The row.
        """
        return PromptRender(
            spec=self.spec, text=self.fill(context), context=dict(context), metadata=dict(self.spec.metadata)
        )

    def fill(self, row: Mapping[str, object]) -> str:
        """The text alone: what `render_prompt` puts into its render, without building one.

        Args:
            row: The fields by name.

        Raises:
            TemplateRenderingError: A field is missing or cannot be formatted.
        """
        try:
            if self._plain is not None:
                return self._plain.text % self._plain.values(row)
            return "".join([part.literal + (part.field.text(row) if part.field else "") for part in self._parts])
        except KeyError as error:
            raise self._missing(row, error) from error
        except (IndexError, TypeError, ValueError) as error:
            raise TemplateRenderingError(f"template {self.name!r} cannot be filled from this row: {error}") from error

    def messages(self, row: Mapping[str, object]) -> list[dict[str, str]] | None:
        """The turns of a chat that a row is asked in; None for one text, which `fill` makes.

        Args:
            row: The fields by name.
        """
        return None

    def refuse_unfilled(
        self, row: Mapping[str, object], *, not_asked: Container[str] = ("answer", "reference")
    ) -> None:
        r"""Raises where the row is not what is asked: the text uses none of its fields, only seems to, or they are empty.

        A row that has its own `messages`, `system_prompt` or `continuations` says something of its own.

        Args:
            row: The fields by name.
            not_asked: Fields that a prompt may name without giving them, such as the expected answer in `\boxed{{answer}}`.

        Raises:
            TemplateRenderingError: The row is not asked.
        """
        if (self.metadata or {}).get("as_written"):
            return
        for name in self._plain_fields:
            value = row[name]
            if value is None or (isinstance(value, float) and math.isnan(value)):
                raise TemplateRenderingError(
                    f"the field {name!r} is empty ({value}), and the prompt would show that word; fill it or leave the row out"
                )
        if self._braced or not self.fields:
            self._refuse_seeming(row, not_asked)

    def _refuse_seeming(self, row: Mapping[str, object], not_asked: Container[str]) -> None:
        seeming = [name for name in self._braced if name in row and name not in self.fields]
        names = [name for name in seeming if name not in not_asked] or ([] if self.fields else seeming)
        speaks_itself = any(row.get(name) for name in ("messages", "system_prompt", "continuations"))
        if not names and (self.fields or speaks_itself):
            return
        other = next((str(name) for name in row if name != "id" and name not in not_asked), "question")
        why = (
            f"has {names[0]!r} between literal braces, and so asks for the text '{{{names[0]}}}'"
            if names
            else f"uses no field of the row, which has {', '.join(map(str, row))}, and so asks every row the same"
        )
        raise TemplateRenderingError(
            f"the prompt {_excerpt(self.template)!r} {why}. Write {{{names[0] if names else other}}}, with single braces, "
            'to put the field in. If it is meant: PromptTemplate(name, text, metadata={"as_written": True}), '
            "or rows with `messages`"
        )

    @cached_property
    def _plain_fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.field.name for part in self._parts if part.field and part.field.is_plain))

    @cached_property
    def _braced(self) -> tuple[str, ...]:
        """Names that stand between literal braces, as other template languages write fields; not after a LaTeX command."""
        literal = "".join(part.literal + ("\0" if part.field else "") for part in self._parts)
        return tuple(match["name"] for match in _BRACED.finditer(literal) if not match["command"])

    @cached_property
    def _parts(self) -> tuple[_Part, ...]:
        return tuple(_parse(self.template))

    @cached_property
    def _plain(self) -> _PlainTemplate | None:
        return _PlainTemplate.of(self._parts)

    def _missing(self, row: Mapping[str, object], error: KeyError) -> TemplateRenderingError:
        absent = [name for name in self.fields if name not in row]
        if not absent:
            return TemplateRenderingError(f"template {self.name!r} asks for an item that a field lacks: {error}")
        known = [str(key) for key in row]
        listed = ", ".join(sorted(known)) or "no fields"
        return TemplateRenderingError(
            f"template {self.name!r} needs the field {absent[0]!r}, which the row does not have"
            f"{nearest(absent[0], known)}; it has {listed}. A brace that is meant literally is written {{{{ or }}}}"
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of literal text, and the field after it if there is one."""

    literal: str
    field: _Field | None


@dataclass(frozen=True, slots=True)
class _Field:
    """One `{name[item]!conversion:spec}`."""

    name: str
    items: tuple[str | int, ...]
    conversion: str | None
    spec: str

    @property
    def is_plain(self) -> bool:
        return not (self.items or self.conversion or self.spec)

    def text(self, row: Mapping[str, object]) -> str:
        value: Any = row[self.name]
        for item in self.items:
            value = value[item]
        if self.conversion is not None:
            value = _CONVERSIONS[self.conversion](value)
        return format(value, self.spec)


_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}


@dataclass(frozen=True, slots=True)
class _PlainTemplate:
    """A template of plain fields only, as one `%` format: several times faster than joining the parts."""

    text: str
    getter: itemgetter[Any] | None
    single: bool

    @classmethod
    def of(cls, parts: Iterable[_Part]) -> _PlainTemplate | None:
        text, names = "", []
        for part in parts:
            text += part.literal.replace("%", "%%")
            if part.field is None:
                continue
            if not part.field.is_plain:
                return None
            text += "%s"
            names.append(part.field.name)
        return cls(text, itemgetter(*names) if names else None, len(names) == 1)

    def values(self, row: Mapping[str, object]) -> tuple[Any, ...]:
        if self.getter is None:
            return ()
        found = self.getter(row)
        return (found,) if self.single else found


def _excerpt(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def _parse(template: str) -> Iterator[_Part]:
    try:
        for literal, name, spec, conversion in string.Formatter().parse(template):
            yield _Part(literal, None if name is None else _field(name, spec or "", conversion))
    except ValueError as error:
        if isinstance(error, TemplateRenderingError):
            raise
        raise TemplateRenderingError(
            f"the template's braces do not match ({error}). A brace that is meant literally is written {{{{ or }}}}"
        ) from error


_NAME = re.compile(r"\w[\w \-]*")
_BRACED = re.compile(r"(?P<command>\\[A-Za-z]+(?:\{[^{}]*\})*)?\{+\s*(?P<name>\w[\w\-]*)\s*(?:[|.\[][^{}]*)?\}")
_ITEMS = re.compile(r"(?:\[[^\[\]]+\])*")


def _field(text: str, spec: str, conversion: str | None) -> _Field:
    shown = "{" + text + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
    name = _NAME.match(text)
    if not text or text.isdigit():
        raise TemplateRenderingError(
            f"{shown!r} in the template is a positional field; fields are filled by name, such as {{question}}. "
            f"For a literal {shown} write {{{shown}}}"
        )
    if name is None:
        raise TemplateRenderingError(f"{shown!r} in the template is not a field. For literal braces write {{{shown}}}")
    rest = text[name.end() :]
    if rest.startswith("."):
        raise TemplateRenderingError(
            f"{shown!r} in the template reads an attribute, which templates may not do; "
            f"an item of a field is written {{{name.group()}[{rest[1:].partition('.')[0] or 'key'}]}}"
        )
    if not _ITEMS.fullmatch(rest):
        raise TemplateRenderingError(f"{shown!r} in the template is not a field. For literal braces write {{{shown}}}")
    if conversion is not None and conversion not in _CONVERSIONS:
        raise TemplateRenderingError(
            f"{shown!r} in the template has the conversion {conversion!r}; there are r, s and a"
        )
    if "{" in spec or "}" in spec:
        raise TemplateRenderingError(
            f"{shown!r} in the template has a field inside its format spec, which is not possible"
        )
    items = tuple(int(item) if item.isdigit() else item for item in re.findall(r"\[([^\[\]]+)\]", rest))
    return _Field(name.group(), items, conversion, spec)
