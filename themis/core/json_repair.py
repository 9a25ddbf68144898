"""Reads the JSON that a model meant: fenced, embedded in prose, with single quotes, comments, or its tail cut off.

Used wherever a model answers in JSON: the JSON extractor and metrics, judges, memory tests. The time it takes is linear
in the text, and nothing is evaluated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple


def parse_json(text: str) -> Any:
    """The value of a JSON text; failing that of its last fenced block; failing that the longest value inside it.

    Accepted beyond the standard: comments, trailing and forgotten commas, single quotes, bare keys, line breaks in
    strings, Python's True, False and None, and a missing end. A value that the end of the text cuts in two is dropped,
    since half a number is another number. Raises ValueError where there is no value.
    """
    text = _keep_latex(text)
    # Backticks quote a string, but around a whole list or object they only mark it as code.
    if marked := re.fullmatch(r"\s*`+\s*([\[{].*[\]}])\s*`+\s*", text, re.DOTALL):
        text = marked[1]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    fenced = _FENCE.findall(text)[::-1]
    for loose in (False, True):
        for source in [text, *fenced]:
            try:
                return _Reader(source, loose).whole()
            except _Broken:
                pass
    for source in [*fenced, text]:
        found = _longest(source)
        if found is not None:
            return found[1]
    raise ValueError(f"no JSON value in {text if len(text) <= 80 else text[:77] + '...'!r}")


# Commands of LaTeX that begin like an escape of JSON: "\frac" is no form feed, "\times" no tab.
_LATEX_COMMAND = re.compile(
    r"(?<!\\)\\(?=(?:frac|fbox|forall|tfrac|times|theta|triangle|tau|nabla|neq|rho|rangle|rfloor|rceil|beta|binom|boxed|bmod)"
    r"(?![a-zA-Z])|(?:text|textbf|begin|bar|boxed|fbox)\{|right[\])}|.\\])"
)


def _keep_latex(text: str) -> str:
    return _LATEX_COMMAND.sub(r"\\\\", text)


class JsonObjects(NamedTuple):
    """Every object of a text that stands in no other, the text around them, and keys that one of them gives two values."""

    objects: list[dict[str, object]]
    outside: str
    contradicted: list[str]


def find_json_objects(text: str) -> JsonObjects:
    """All the objects that a text holds, read as leniently as `parse_json` reads one.

    For whoever asked for one and must notice that there are two.

    >>> find_json_objects('first {"a": 1}, no: {"a": 2}').objects
    [{'a': 1}, {'a': 2}]
    """
    reader = _Reader(text)
    objects, outside, read_until = list[dict[str, object]](), list[str](), 0
    for found in _scan(reader):
        if isinstance(found.value, dict):
            objects.append(found.value)
            outside.append(text[read_until : found.start])
            read_until = found.end
    return JsonObjects(objects, " ".join([*outside, text[read_until:]]), reader.contradicted)


class JsonValue(NamedTuple):
    """An object or array of a text: where it stands, what it holds, whether the end of the text cuts it off, what is before."""

    start: int
    end: int
    value: object
    cut: bool
    before: str = ""


def find_json_values(text: str) -> list[JsonValue]:
    """All the objects and arrays of a text that stand in no other object, in their order.

    Where quotes inside of texts are not escaped, they are taken for the text's own.

    >>> [found.value for found in find_json_values('first {"a": 1}, no: [{"a": 2}]')]
    [{'a': 1}, [{'a': 2}], {'a': 2}]
    """
    text = _keep_latex(text)
    strict = list(_scan(_Reader(text)))
    loose = list(_scan(_Reader(text, loose=True))) if '"' in text else []
    # What is read without its unescaped quotes holds what is read with them.
    found = loose if _reach(loose) > _reach(strict) else strict
    # The end of a fence ends a value that lacks its last brace.
    for fence in _FENCE.finditer(text):
        cut = (one for one in _scan(_Reader(fence[1])) if one.cut)
        found += [JsonValue(fence.start(1) + one.start, fence.start(1) + one.end, one.value, True) for one in cut]
    return sorted(found, key=lambda one: one.start)


def _reach(found: list[JsonValue]) -> int:
    return sum(one.end - one.start for one in found if isinstance(one.value, dict))


def _scan(reader: _Reader) -> Iterator[JsonValue]:
    """What the reader finds at each bracket; an array or a bracket of prose may hold objects of its own."""
    looks = _SECOND_LOOKS
    bracket = _BRACKET.search(reader.text)
    while bracket and looks > 0:
        start = reader.at = bracket.start()
        reader.cut = False
        try:
            value = reader.value(depth=0)
        except _Broken:
            value = None
        if isinstance(value, dict | list):
            yield JsonValue(start, reader.at, value, reader.cut, reader.text[max(0, start - _LOOKED_BACK) : start])
        looks -= value is None
        bracket = _BRACKET.search(reader.text, reader.at if isinstance(value, dict) else bracket.end())


# A fence says json or nothing; one that says python holds code, in which a list is not the answer.
_FENCE = re.compile(r"^[ \t]*```(?:json\w*)?[ \t]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE | re.IGNORECASE)
_BRACKET = re.compile(r"[\[{]")
# After an attempt that failed the next bracket is tried, even one that the attempt has passed; but only so often, since
# each may cost a pass over the text. Then reading goes on where the attempt ended.
_SECOND_LOOKS = 10
_LOOKED_BACK = 80


def _longest(text: str) -> tuple[int, object] | None:
    """Length and value of the longest object or array in the text."""
    reader = _Reader(text)
    looks = _SECOND_LOOKS
    bracket = _BRACKET.search(text)
    while bracket:
        reader.at, reader.cut = bracket.start(), False
        try:
            reader.value(depth=0)
            failed = reader.cut
        except _Broken:
            failed = True
        looks -= failed
        bracket = _BRACKET.search(text, bracket.end() if failed and looks > 0 else max(reader.at, bracket.end()))
    return reader.longest


_SPACE = re.compile(r"(?:[\s\ufeff]++|//[^\n]*+|#[^\n]*+|/\*.*?(?:\*/|\Z))*+", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_WORD = re.compile(r"[\w$.…-]*")
# Body and closing quote. Between single quotes an apostrophe inside a word does not close.
_STRINGS = {
    '"': re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)("?)', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]|\\.|'(?=\w))*+)('?)", re.DOTALL),
    "“": re.compile(r"“([^”\\]*+(?:\\.[^”\\]*+)*+)(”?)", re.DOTALL),
    "‘": re.compile(r"‘((?:[^’\\]|\\.|’(?=\w))*+)(’?)", re.DOTALL),
    "`": re.compile(r"`([^`\\]*+(?:\\.[^`\\]*+)*+)(`?)", re.DOTALL),
}
# A quote after which the JSON goes on: with its end, or with a comma or nothing before the next key or value.
_CLOSES = re.compile(
    r'(?<!\\)"(?=\s*+(?:[}\]]|\Z|//|#|/\*|,\s*+(?:[}\]\[{\d+.-]|(?:true|false|null|True|False|None)\b|\Z)|,?\s*+"(?:[^"\\\n]|\\.){0,200}"\s*+[:,\]]'
    r"|,?\s*+[\w$]{1,60}\s*+:))"
)
_ESCAPE = re.compile(r"\\(u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\n": ""} | {mark: mark for mark in "\"'\\/“”"}
_LITERALS: dict[str, object] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "NaN": float("nan"),
}
_NAMES = {"true": True, "false": False, "null": None, "none": None, "undefined": None}
# A value without its quotes, as far as nothing else can be meant.
_BARE = re.compile(r"[\w$€£+-][\w%$€£./ :+-]*+(?=\s*[,;}])")
_GOES_ON = re.compile(r"%|/(?![/*])|[ ][^\W\d]")
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+(?=\s*[,;}\]])")
_SEPARATOR = re.compile(r":|=>?")
_CUT: Final = object()  # stands for a value of which the text holds only a part
_MAX_DEPTH = 100
_ELLIPSES = ("...", "…")


class _Broken(Exception):
    """Not JSON at the reader's position, however carelessly written."""


class _Reader:
    """Recursive descent over one text from position `at`; remembers the longest object or array it has read.

    A loose one takes a quote after which the JSON would not go on for a part of the string.
    """

    def __init__(self, text: str, loose: bool = False) -> None:
        self.text = text
        self.loose = loose
        self.at = 0
        self.cut = False
        self.longest: tuple[int, object] | None = None
        self.contradicted: list[str] = []

    def whole(self) -> object:
        """The one value that the text consists of."""
        self.next()
        value = self.value(depth=0)
        if value is _CUT or self.next():
            raise _Broken
        return value

    def value(self, depth: int) -> object:
        first = self.next()
        if first in ("{", "["):
            return self.container(depth)
        if first in _STRINGS:
            return self.string()
        if self.loose and depth and (thousands := _THOUSANDS.match(self.text, self.at)):
            self.at = thousands.end()
            return int(thousands[0].replace(",", ""))
        number = _NUMBER.match(self.text, self.at)
        if number and not (self.loose and _GOES_ON.match(self.text, number.end())):
            return self.number(number, depth)
        if (
            self.loose
            and depth
            and (bare := _BARE.match(self.text, self.at))
            and bare[0].rstrip().casefold() not in _NAMES
        ):
            self.at = bare.end()
            return bare[0].rstrip()
        word = self.word()
        if word in _LITERALS:
            return _LITERALS[word]
        if word.casefold() in _NAMES:
            return _NAMES[word.casefold()]
        if self.at < len(self.text):
            raise _Broken
        return self.cut_off()

    def container(self, depth: int) -> object:
        if depth >= _MAX_DEPTH:
            raise _Broken
        start = self.at
        self.at += 1
        built = self.members(depth) if self.text[start] == "{" else self.elements(depth)
        if self.next() == "}" and self.text[start] == "[" and depth:
            pass  # the brace of the object closes the list in it, too
        elif self.next():
            self.at += 1
        elif not built:
            return self.cut_off()
        else:
            self.cut = True
        if self.longest is None or self.at - start >= self.longest[0]:
            self.longest = (self.at - start, built)
        return built

    def members(self, depth: int) -> dict[str, object]:
        built: dict[str, object] = {}
        while self.next() not in ("}", ""):
            quoted = self.next() in _STRINGS
            key = self.string(is_key=True) if quoted else self.word()
            if not quoted and key in _ELLIPSES and self.next() in ("}", ""):
                break
            if not self.next():
                break
            if not (separator := _SEPARATOR.match(self.text, self.at)) or not (quoted or key):
                raise _Broken
            self.at = separator.end()
            value = self.value(depth + 1)
            if value is not _CUT:
                if built.get(key, value) != value:
                    self.contradicted.append(key)
                built[key] = value
            if self.next() in (",", ";"):
                self.at += 1
            elif self.next() not in ("}", "", *_STRINGS):
                raise _Broken
        return built

    def elements(self, depth: int) -> list[object]:
        built: list[object] = []
        while self.next() not in ("]", "") and not (depth and self.next() == "}"):
            value = self.value(depth + 1)
            if value is not _CUT:
                built.append(value)
            if self.next() == ",":
                self.at += 1
            elif self.next() not in ("]", "") and not (depth and self.next() == "}"):
                raise _Broken
        return built

    def string(self, is_key: bool = False) -> Any:
        start = self.at
        match = _STRINGS[self.text[start]].match(self.text, start)
        assert match is not None  # the pattern matches any text that begins with its quote
        if self.loose and not is_key and self.text[start] == '"' and match[2]:
            end = next((found.start() for found in _CLOSES.finditer(self.text, match.end() - 1)), match.end() - 1)
            self.at = end + 1
            return _ESCAPE.sub(_unescape, self.text[start + 1 : end])
        self.at = match.end()
        return _ESCAPE.sub(_unescape, match[1]) if match[2] else self.cut_off()

    def number(self, match: re.Match[str], depth: int) -> object:
        self.at = match.end()
        if depth and self.at == len(self.text):
            return self.cut_off()
        digits = match.group()
        try:
            return float(digits) if set(digits) & set(".eE") else int(digits)
        except ValueError:  # an integer of more digits than Python converts
            raise _Broken from None

    def word(self) -> str:
        match = _WORD.match(self.text, self.at)
        assert match is not None  # the pattern matches the empty text
        self.at = match.end()
        return match.group()

    def next(self) -> str:
        """The character after space and comments, or nothing at the end."""
        space = _SPACE.match(self.text, self.at)
        assert space is not None  # the pattern matches the empty text
        self.at = space.end()
        return self.text[self.at : self.at + 1]

    def cut_off(self) -> object:
        self.at, self.cut = len(self.text), True
        return _CUT


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 6:  # a pair of surrogates is one character
        return json.loads(f'"{match.group()}"')  # type: ignore[no-any-return]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    # A backslash that means nothing in JSON is the model's own, as in LaTeX.
    return _ESCAPED.get(code, match.group())
