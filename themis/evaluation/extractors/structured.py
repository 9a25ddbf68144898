"""Answers that stand in something: a field of JSON, a tag, a fenced block of code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from themis.core.json_repair import find_json_values, parse_json
from themis.core.patterns import lazy_pattern
from themis.core.registry import nearest
from themis.evaluation.extractors.code import find_code
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import ThinkTagStripper, shorten, strip_thinking, text_of
from themis.exceptions import ConfigurationError


@dataclass(frozen=True)
class JsonFieldExtractor:
    """A field of the JSON in the text, by dotted path; numbers in the path index lists.

    The JSON may be fenced, embedded in prose or carelessly written: see `themis.core.json_repair`. Where there are several
    objects, the last that is complete and has the field counts. A key of another case or spelling ("Final Answer" for
    `final_answer`) counts where none is spelled exactly so, and a field further down where none stands at its place.

    Args:
        field_path: For example `user.name` or `items.0`; without one the whole value is the answer.
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> JsonFieldExtractor("user.age").extract('{"user": {"age": 31}}')
    31
    >>> JsonFieldExtractor("answer").extract('Sure: [{"Answer": 5}]')
    5
    """

    field_path: str = ""
    part: str = "text"

    def extract(self, raw_output: str) -> object:
        if isinstance(raw_output, dict | list):
            return _look_up([raw_output], self.field_path) if self.field_path else raw_output
        return find_json_field(text_of(raw_output), self.field_path)


def find_json_field(text: str, path: str) -> object:
    """The value of a field of the JSON in a text, by dotted path; raises FieldExtractionError where there is none."""
    text = strip_thinking(text)
    if _ESCAPED_WHOLE.match(text):
        text = text.replace('\\"', '"')
    try:
        whole = parse_json(text)
    except ValueError as error:
        if not _CUT_OPEN.match(text):
            raise FieldExtractionError(str(error)) from error
        whole = None
    if not path:
        return whole
    found = find_json_values(text)
    if _CUT_OPEN.match(text):
        found += find_json_values("{" + _FENCE_OPENS.sub("", text))
    # Complete ones before one that was cut off, meant ones before examples; of each kind the last first.
    found.sort(key=lambda one: (not one.cut, _SHOWS.search(one.before) is None, one.start), reverse=True)
    values = [one.value for one in found]
    return _look_up(values or [whole], path)


# What is only shown: the form of an answer, or what it should not be.
_SHOWS = lazy_pattern(
    r"\b(?:for example|e\.g\.|such as|wrong|incorrect|not|format|schema|template|instead of|something like"
    r"|previously|originally|was|(?:it|that)['’]d be|would (?:be|have been))\b[^.\n{}\[\]]{0,40}$",
    re.IGNORECASE,
)
# JSON that was put into a text, without the text's own quotes.
_ESCAPED_WHOLE = lazy_pattern(r"\A\s*[\[{]\s*(?:\{\s*)?\\\"")
# A reply that goes on where the prompt left off, after an opening brace.
_CUT_OPEN = lazy_pattern(r"\A\s*(?:```\w*\s*)?\"[^\"\n]{1,80}\"\s*:")
_FENCE_OPENS = lazy_pattern(r"\A\s*```\w*\s*")


def _look_up(values: Sequence[object], path: str) -> object:
    """The field of the first value that has it, at its place and as it is spelled; failing that in any spelling, or below."""
    steps = path.split(".")
    for fold in (str, _fold_key):
        for value in values:
            found = _follow(value, steps, fold)
            if found is not _NOWHERE:
                return found
    for value in values:
        found = _follow_below(value, steps)
        if found is not _NOWHERE:
            return found
    return _refuse(values[0] if values else None, steps, path)


_NOWHERE: Final = object()


def _fold_key(key: object) -> str:
    """A key without case, blanks and joints: finalAnswer and "Final Answer" are final_answer."""
    return re.sub(r"[\W_]+", "", str(key)).casefold()


def _follow(value: object, steps: Sequence[str], fold: Callable[[object], str]) -> object:
    for place, step in enumerate(steps):
        value = _decode(value)
        while isinstance(value, list) and len(value) == 1 and not step.removeprefix("-").isdecimal():
            value = value[0]
        if isinstance(value, dict):
            if fold(".".join(steps[place:])) in map(fold, value) and place + 1 < len(steps):
                step = ".".join(steps[place:])
            keys = [key for key in value if key == step] or [key for key in value if fold(key) == fold(step)]
            if not keys:
                return _NOWHERE
            value = value[keys[-1]]
            if "." in step and fold(step) == fold(".".join(steps[place:])):
                return value
        elif isinstance(value, list) and step.removeprefix("-").isdecimal() and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return _NOWHERE
    return value


def _decode(value: object) -> object:
    """The value of a text that is JSON itself, as the arguments of a tool call are."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse_json(value)
        except ValueError:
            return value
    return value


# A field is looked for this far below the place where it should stand.
_LEVELS = 4


def _follow_below(value: object, steps: Sequence[str]) -> object:
    """The field in what a value holds, level by level; of several on one level the last."""
    level = [value]
    for _ in range(_LEVELS):
        held = [_decode(one) for one in level]
        level = [
            below
            for one in held
            for below in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
        ]
        for fold in (str, _fold_key):
            for below in reversed(level):
                found = _follow(below, steps, fold)
                if found is not _NOWHERE:
                    return found
    return _NOWHERE


def _refuse(value: object, steps: Sequence[str], path: str) -> NoReturn:
    """Say at which step a path leaves the value, and what is there instead."""
    for step in steps:
        below = _follow(value, [step], str)
        if below is not _NOWHERE:
            value = below
        elif isinstance(value, dict):
            has = f"{nearest(step, value)}; it has {', '.join(map(str, value)) or 'no fields'}"
            raise FieldExtractionError(f"no field {step!r} (of {path!r}) in the JSON{has}")
        else:
            break
    raise FieldExtractionError(f"no {step!r} (of {path!r}) in a JSON {type(value).__name__}")


@dataclass(frozen=True)
class XmlTagExtractor:
    """The inside of the last <tag>...</tag>; to the end of the text where the only one was cut off.

    A tag inside the model's reasoning does not count, unless it is the tag of the reasoning that is asked for.

    Args:
        tag: The tag's name.
        last: Whether the last such tag counts; else the first.
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> XmlTagExtractor("answer").extract("hm <answer> 42 </answer>")
    '42'
    """

    tag: str = "answer"
    last: bool = True
    part: str = "text"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w:.-]+", self.tag):
            raise ConfigurationError(f"tag {self.tag!r} is not the name of a tag: give 'answer' for <answer>")

    def extract(self, raw_output: str) -> str:
        said = text_of(raw_output)
        text = said if self.tag.casefold() in ThinkTagStripper.tags else strip_thinking(said)
        closed, opened = self._find(text)
        if closed:
            found = closed[-1 if self.last else 0]
        elif opened:
            found = slice(opened[-1 if self.last else 0], len(text))
            text = _CLOSES_ANOTHER.sub("", text)
        else:
            raise FieldExtractionError(f"no <{self.tag}> in {shorten(said)}")
        inside = text[found].strip()
        return inside[len("<![CDATA[") : -len("]]>")].strip() if _CDATA.fullmatch(inside) else inside

    def _find(self, text: str) -> tuple[list[slice], list[int]]:
        """The insides of the closed tags by where they open, and where those that nothing closes end."""
        token = re.compile(rf"<(/?)\s?{re.escape(self.tag)}(?:\s[^<>]*(?<!/))?>", re.IGNORECASE)
        closed: list[slice] = []
        opened: list[int] = []
        for tag in token.finditer(text):
            if not tag[1]:
                opened.append(tag.end())
            elif opened:
                closed.append(slice(opened.pop(), tag.start()))
        return sorted(closed, key=lambda inside: inside.start), opened


_CLOSES_ANOTHER = lazy_pattern(r"(?:</[\w:.-]{1,40}\s?>\s*)+\Z")
_CDATA = lazy_pattern(r"<!\[CDATA\[.*\]\]>", re.DOTALL)


@dataclass(frozen=True)
class CodeBlockExtractor:
    r"""The code that a reply gives to be run, fenced or not.

    A corrected version takes the place of the one before it; blocks that build on each other are taken together; examples
    of use, tests, outputs and what is called wrong are left out, as is everything inside the model's reasoning.

    Args:
        language: Only blocks of this language count, whichever of its names they are fenced with, and blocks fenced without one.
        bare: Whether code without a fence counts; else it is no answer.
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> CodeBlockExtractor("python").extract("Here:\n```py\nx = 1\n```")
    'x = 1'
    """

    language: str | None = None
    bare: bool = True
    part: str = "text"

    def extract(self, raw_output: str) -> str:
        said = text_of(raw_output)
        answer = strip_thinking(said)
        # The blanks before the first line belong to the code.
        code = find_code(said if answer == said.strip() else answer, self.language, bare=self.bare)
        if code is None:
            of_language = f" of {self.language}" if self.language else ""
            raise FieldExtractionError(f"no code block{of_language} in {shorten(said)}")
        return code
