"""Prompt templates: a row's fields put into a text.

First step of a sample's path. There are two syntaxes. That of `str.format` is reduced to what is safe and cannot surprise:
named fields, `{field[key]}` items, `!r` conversions and format specs. Jinja, in its sandbox, is for texts that need conditions
and loops, or come from tools that write `{{field}}`. A template is parsed once, when it is made, so that a mistake in it is
found before the first row is read, and rendering a row of plain fields costs about a microsecond.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, NamedTuple

from themis.core.entities import PromptRender, PromptSpec
from themis.core.messages import format_transcript, read_messages
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError

__all__ = ["ChatTemplate", "PromptTemplate", "TemplateRenderingError", "read_template"]


_LONGEST_SHOWN = 80


class TemplateRenderingError(ConfigurationError, RuntimeError):
    """A template that cannot be read, or a row that does not have what it needs."""


@dataclass(frozen=True)
class PromptTemplate:
    """A named text with `{fields}`, whose literal braces are written `{{` and `}}`; or one in Jinja's syntax.

    Args:
        name: What reports call it.
        template: The text. `{field}`, `{field[key]}`, `!r` and format specs are known; attributes and positions are refused.
        metadata: `{"as_written": True}` says that a text which looks like a mistake (it uses no field of the row, or has a
            field's name between literal braces) is meant.
        syntax: `format` or `jinja`. By default known from the text: Jinja's if it has `{% blocks %}`, or names in double braces
            and none in single ones.

    Raises:
        TemplateRenderingError: The text cannot be read.

    >>> template = PromptTemplate("sum", "{a} + {b} = ? Reply as {{number}}.")
    >>> template.render(a=2, b=3)
    '2 + 3 = ? Reply as {number}.'
    >>> template.fields
    ('a', 'b')
    >>> PromptTemplate("sum", "{{ a }} + {{ b }} = ?{% if hint %} Hint: {{ hint }}{% endif %}").render(a=2, b=3, hint="")
    '2 + 3 = ?'
    """

    name: str
    template: str
    metadata: dict[str, object] | None = field(default=None, hash=False)
    syntax: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.template, str):
            raise TemplateRenderingError(
                f"the template of {self.name!r} must be a string, got {type(self.template).__name__}"
            )
        if self.syntax not in (None, *SYNTAXES):
            raise TemplateRenderingError(f"prompt_syntax is {' or '.join(SYNTAXES)}, got {self.syntax!r}")
        # Parsed now, so that a mistake is found before the first row.
        _ = self._jinja if self.is_jinja else self._parts

    @cached_property
    def spec(self) -> PromptSpec:
        """Name, text and metadata, as a task carries them."""
        # Of the two syntaxes the usual one is not said.
        told = {"syntax": "jinja"} if self.is_jinja else {}
        return PromptSpec(self.name, self.template, {**(self.metadata or {}), **told})

    @cached_property
    def is_jinja(self) -> bool:
        """Whether the text is in Jinja's syntax."""
        if self.syntax is not None or (self.metadata or {}).get("as_written"):
            return self.syntax == "jinja"
        return _looks_like_jinja(self.template)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names that a row must have, each once, in the order of the text."""
        if self.is_jinja:
            return self._jinja.fields
        return tuple(dict.fromkeys(part.field.name for part in self._parts if part.field))

    def render(self, /, **row: object) -> str:
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
            if self.is_jinja:
                return self._jinja.fill(row)
            return "".join([part.literal + (part.field.text(row) if part.field else "") for part in self._parts])
        except KeyError as error:
            raise self._missing(row, error) from error
        except (IndexError, TypeError, ValueError, ArithmeticError) as error:
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
        empty = [name for name in self._shown_fields if name in row and _is_empty(row[name])]
        if empty and (not self.is_jinja or self._jinja.shows_empty(row)):
            raise TemplateRenderingError(
                f"the field {empty[0]!r} is empty ({row[empty[0]]}), and the prompt would show that word; "
                "fill it or leave the row out"
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
        meant = names[0] if names else other
        written = f"{{{{ {meant} }}}}" if self.is_jinja else f"{{{meant}}}, with single braces,"
        raise TemplateRenderingError(
            f"the prompt {_excerpt(self.template)!r} {why}. Write {written} "
            'to put the field in. If it is meant: PromptTemplate(name, text, metadata={"as_written": True}), '
            "or rows with `messages`"
        )

    @cached_property
    def _shown_fields(self) -> tuple[str, ...]:
        """Those whose value is put in as it is; in Jinja's syntax any may be, which only filling tells."""
        if self.is_jinja:
            return self.fields
        return tuple(dict.fromkeys(part.field.name for part in self._parts if part.field and part.field.is_plain))

    @cached_property
    def _braced(self) -> tuple[str, ...]:
        """Names that stand between literal braces, as other template languages write fields; not after a LaTeX command."""
        if self.is_jinja:
            return ()
        literal = "".join(part.literal + ("\0" if part.field else "") for part in self._parts)
        return tuple(match["name"] for match in _BRACED.finditer(literal) if not match["command"])

    @cached_property
    def _parts(self) -> tuple[_Part, ...]:
        return tuple(_parse(self.template))

    @cached_property
    def _plain(self) -> _PlainTemplate | None:
        return None if self.is_jinja else _PlainTemplate.of(self._parts)

    @cached_property
    def _jinja(self) -> _Jinja:
        return _Jinja.parse(self.template)

    def _missing(self, row: Mapping[str, object], error: KeyError) -> TemplateRenderingError:
        absent = [name for name in self.fields if name not in row]
        if not absent:
            return TemplateRenderingError(f"template {self.name!r} asks for an item that a field lacks: {error}")
        known = [str(key) for key in row]
        listed = ", ".join(sorted(known)) or "no fields"
        return TemplateRenderingError(
            f"template {self.name!r} needs the field {absent[0]!r}, which the row does not have"
            f"{nearest(absent[0], known)}; it has {listed}. "
            + (
                "A text with braces of its own is given with prompt_syntax='format' (--prompt-syntax format)"
                if self.is_jinja
                else "A brace that is meant literally is written {{ or }}"
            )
        )


@dataclass(frozen=True, kw_only=True)
class ChatTemplate(PromptTemplate):
    """A conversation whose texts have fields: what is asked in turns of a chat.

    Args:
        turns: `{"role", "content"}` each, the content a template's text; the last is the user's.

    Raises:
        TemplateRenderingError: A turn cannot be read.

    >>> chat = ChatTemplate.read([{"role": "system", "content": "Reply in {language}."}, {"role": "user", "content": "{q}"}])
    >>> chat.messages({"language": "Latin", "q": "How are you?"})
    [{'role': 'system', 'content': 'Reply in Latin.'}, {'role': 'user', 'content': 'How are you?'}]
    """

    turns: tuple[tuple[str, PromptTemplate], ...] = field(hash=False)

    @classmethod
    def read(
        cls, given: object, *, name: str = "default", syntax: str | None = None, **metadata: object
    ) -> ChatTemplate:
        """From messages as a program or a file has them.

        Args:
            given: The messages.
            name: What reports call it.
            syntax: Of the texts; known from each by default.
            **metadata: As of any template.
        """
        if not isinstance(given, list | tuple) or not given:
            raise TemplateRenderingError(f"a prompt is a text or a list of messages, got {str(given)[:80]!r}")
        turns = []
        for turn in given:
            if not isinstance(turn, Mapping) or not isinstance(turn.get("content"), str) or not turn.get("role"):
                raise TemplateRenderingError(f"a message of a prompt is {{'role', 'content'}}, got {str(turn)[:80]!r}")
            turns.append((str(turn["role"]), PromptTemplate(name, turn["content"], syntax=syntax)))
        text = "\n\n".join(f"{role}: {template.template}" for role, template in turns)
        return cls(name=name, template=text, metadata={**metadata, "as_written": True}, turns=tuple(turns))

    @cached_property
    def spec(self) -> PromptSpec:
        turns = [{"role": role, "content": template.template} for role, template in self.turns]
        syntaxes = {template.syntax for _, template in self.turns} - {None}
        told = {"syntax": syntaxes.pop()} if len(syntaxes) == 1 else {}
        return PromptSpec(self.name, self.template, {**(self.metadata or {}), **told, "messages": turns})

    @cached_property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, template in self.turns for name in template.fields))

    def fill(self, row: Mapping[str, object]) -> str:
        """The last turn alone, which stands for the prompt in tables."""
        return self.turns[-1][1].fill(row)

    def messages(self, row: Mapping[str, object]) -> list[dict[str, str]] | None:
        return [{"role": role, "content": template.fill(row)} for role, template in self.turns]

    def refuse_unfilled(
        self, row: Mapping[str, object], *, not_asked: Container[str] = ("answer", "reference")
    ) -> None:
        if not self.fields:
            raise TemplateRenderingError(f"the prompt's messages use no field of the row, which has {', '.join(row)}")


def read_template(
    prompt: object, *, name: str = "default", syntax: str | None = None, metadata: dict[str, object] | None = None
) -> PromptTemplate:
    """A prompt as a program, a command or a file gives it: a text, messages, or a template that is made already.

    Args:
        prompt: The prompt.
        name: What reports call it.
        syntax: `format` or `jinja`; known from the text by default.
        metadata: Of a template that is made here.
    """
    if isinstance(prompt, PromptTemplate):
        return prompt
    if isinstance(prompt, str):
        return PromptTemplate(name, prompt, metadata, syntax)
    return ChatTemplate.read(prompt, name=name, syntax=syntax, **(metadata or {}))


SYNTAXES = ("format", "jinja")
_JINJA_BLOCK = re.compile(r"\{%-?\s*(?:if|for|set|macro|raw|filter|with|call)\b")


def _looks_like_jinja(text: str) -> bool:
    """Whether a text has Jinja's blocks, or names in double braces, not behind LaTeX's commands, and none in single ones."""
    if "{%" in text and _JINJA_BLOCK.search(text):
        return True
    if "{{" not in text:
        return False
    try:
        parts = list(_parse(text))
    except TemplateRenderingError:
        return _DOUBLE_BRACED.search(text) is not None
    if any(part.field for part in parts):
        return False
    return any(match["name"] and not match["command"] for match in _DOUBLE_BRACED.finditer(text))


class _Jinja(NamedTuple):
    """A template of Jinja's sandbox, which reads no attributes with an underscore and calls nothing that changes things."""

    template: Any
    # The same, which raises where an empty value would be put in.
    render_wary: Callable[..., str]
    fields: tuple[str, ...]
    undefined: type[Exception]

    @classmethod
    def parse(cls, text: str) -> _Jinja:
        # Imported here: most prompts do not need it, and it costs more than all the rest.
        from jinja2 import StrictUndefined, TemplateError, UndefinedError, meta
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, keep_trailing_newline=True, finalize=_refuse_method
        )
        # What a row is asked is the same whenever it is read.
        del environment.filters["random"], environment.globals["lipsum"]
        try:
            used = meta.find_undeclared_variables(environment.parse(text))
            template = environment.from_string(text)
            render_wary = environment.overlay(finalize=_refuse_empty).from_string(text).render
        except (TemplateError, ArithmeticError, RecursionError, ValueError) as error:  # constants are computed here
            why = str(getattr(error, "message", None) or error).rstrip(
                "."
            )  # without the place, which names no file of the user's
            raise TemplateRenderingError(
                f"the template cannot be read as Jinja: {why}. If its braces are text, give prompt_syntax='format' "
                "(--prompt-syntax format)"
            ) from error
        return cls(template, render_wary, tuple(sorted(used, key=text.find)), UndefinedError)

    def fill(self, row: Mapping[str, object]) -> str:
        try:
            return str(self.template.render(row))
        except self.undefined as error:
            raise KeyError(str(error)) from error
        except Exception as error:  # boundary: a template's expressions are the user's code
            raise ValueError(f"{type(error).__name__}: {error}") from error

    def shows_empty(self, row: Mapping[str, object]) -> bool:
        """Whether the text of a row that can be filled in would have the word for an empty value in it."""
        try:
            self.render_wary(row)
        except _EmptyError:
            return True
        except Exception:  # boundary: a template's expressions are the user's code, of which filling tells
            return False
        return False


class _EmptyError(Exception):
    """An empty value is put into a text."""


def _refuse_method(value: object) -> object:
    """A method of a field has an address for a text, which is another in each process: `{{ d.items }}` of a dict."""
    if isinstance(value, MethodType | BuiltinMethodType | FunctionType):
        raise TypeError(f"{value.__name__} is a method: an item of this name is written ['{value.__name__}']")
    return value


def _refuse_empty(value: object) -> object:
    if _is_empty(value):
        raise _EmptyError
    return value


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


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

    @property
    def is_conversation(self) -> bool:
        """Whether it is what a row says itself, which is sent as messages; its text stands for it in tables."""
        return self.is_plain and self.name == "messages"

    def text(self, row: Mapping[str, object]) -> str:
        value: Any = row[self.name]
        if self.is_conversation and isinstance(value, list):
            return _write_conversation(value)
        for item in self.items:
            value = value[item]
        if self.conversion is not None:
            value = _CONVERSIONS[self.conversion](value)
        return format(value, self.spec)


_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}


def _write_conversation(messages: list[Any]) -> str:
    try:
        return format_transcript(read_messages(messages))
    except (ConfigurationError, TypeError):  # a field of that name that holds something else
        return str(messages)


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
            if not part.field.is_plain or part.field.is_conversation:
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
_DOUBLE_BRACED = re.compile(
    r"(?P<command>\\[A-Za-z]+(?:\{[^{}]*\})*)?\{\{-?\s*(?P<name>[A-Za-z_]\w*)\s*(?:[|.\[][^{}]*)?-?\}\}"
)
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
