"""Grammars in text files: a symbol a section, an alternative a line, from which texts are drawn.

In an alternative, `<thing>` stands for another symbol, `<^thing>` for the same with a capital, `<2..40>` for a number. A line
may keep what it drew: after `<who:person>`, `<who>` is that person. `\\n` is a line's end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from pathlib import Path

from themis.exceptions import ConfigurationError

# From 0 to below 1, as `Random.random`.
Draw = Callable[[], float]
Put = Callable[[str], object]

_FOLDER = Path(__file__).with_name("grammars")
_SLOT = re.compile(r"<(?P<capital>\^?)(?:(?P<kept>\w+):)?(?P<what>\d+\.\.\d+|\w+)>")
# A symbol with no more texts than this is written out when it is read: drawing one is then a single step.
_WRITTEN_OUT = 1_000


class Symbol:
    """One section: alternatives of equal chance, each a text, parts one after another, or parts that keep something."""

    __slots__ = ("alternatives",)

    def __init__(self) -> None:
        self.alternatives: list[str | tuple[Part, ...] | Line] = []

    def draw(self, draw: Draw) -> str:
        pieces: list[str] = []
        self.write(draw, pieces.append)
        return "".join(pieces)

    def write(self, draw: Draw, put: Put) -> None:
        alternatives = self.alternatives
        chosen = alternatives[int(draw() * len(alternatives))]
        if isinstance(chosen, str):
            put(chosen)
        elif isinstance(chosen, Line):
            chosen.write(draw, put, {})
        else:
            for part in chosen:
                if isinstance(part, str):
                    put(part)
                else:
                    part.write(draw, put)


class Number:
    """A whole number between two others, each as likely."""

    __slots__ = ("count", "first")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.count = last - first + 1

    def write(self, draw: Draw, put: Put) -> None:
        put(str(self.first + int(draw() * self.count)))


class Capitalised:
    """A symbol whose text begins with a capital."""

    __slots__ = ("symbol",)

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol

    def write(self, draw: Draw, put: Put) -> None:
        put(_capitalise(self.symbol.draw(draw)))


Part = str | Symbol | Number | Capitalised


class Line:
    """Parts of which some are kept under a name, and others are what was kept."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[tuple[str, Part | None, bool]]) -> None:
        # The name under which it is kept, what is drawn (None where it was kept before), and whether with a capital.
        self._parts = parts

    def write(self, draw: Draw, put: Put, kept: dict[str, str]) -> None:
        for name, part, capital in self._parts:
            if isinstance(part, str):
                put(part)
            elif part is None:
                put(_capitalise(kept[name]) if capital else kept[name])
            elif not name:
                part.write(draw, put)
            else:
                pieces: list[str] = []
                part.write(draw, pieces.append)
                kept[name] = "".join(pieces)
                put(kept[name])


class Grammar:
    """The symbols of one file, and of the one that it builds upon.

    Args:
        name: The file's name without its ending.
        upon: Another grammar, whose symbols are known too.
        given: Names in frames whose texts are given when a frame is drawn.
    """

    def __init__(self, name: str, upon: Grammar | None = None, given: tuple[str, ...] = ()) -> None:
        self.source = (_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
        self.settings: dict[str, str] = {}
        self._name = name
        self._symbols: dict[str, Symbol] = dict(upon._symbols) if upon is not None else {}
        sections = dict(self._read())
        frames = sections.pop("frame", [])
        self._symbols.update((symbol, Symbol()) for symbol in sections)
        for symbol, lines in sections.items():
            self._symbols[symbol].alternatives = [self._parse(line) for line in lines]
        for symbol in sections:
            _write_out(self._symbols[symbol])
        self._frames = [self._parse_frame(line, given) for line in frames]

    def __getitem__(self, symbol: str) -> Symbol:
        try:
            return self._symbols[symbol]
        except KeyError:
            raise ConfigurationError(f"grammar {self._name!r} has no section [{symbol}]") from None

    def draw_frame(self, draw: Draw, given: Mapping[str, str] | None = None) -> tuple[str, str, str, str]:
        """Opening, line to find, question and reply of one message."""
        kept = dict(given or {})
        fields = []
        for line in self._frames[int(draw() * len(self._frames))]:
            pieces: list[str] = []
            line.write(draw, pieces.append, kept)
            fields.append("".join(pieces))
        opening, key, question, reply = fields
        return opening, key, question, reply

    def _read(self) -> Iterator[tuple[str, list[str]]]:
        """Each section with its lines; what stands before the first one are settings."""
        section: list[str] | None = None
        for line in self.source.split("\n"):
            if line.startswith("[") and line.endswith("]"):
                section = []
                yield line[1:-1], section
            elif line and section is not None:
                section.append(line.replace("\\n", "\n"))
            elif line and not line.startswith("# "):
                name, _, value = line.partition(":")
                self.settings[name] = value.strip()

    def _parse_frame(self, line: str, given: tuple[str, ...]) -> list[Line]:
        fields = line.split("||")
        if len(fields) != 4:
            raise ConfigurationError(
                f"grammar {self._name!r}: a frame is 'opening || line to find || question || reply', got {line!r}"
            )
        known = set(given)
        return [Line(list(self._parts(field.strip(" "), known))) for field in fields]

    def _parse(self, line: str) -> str | tuple[Part, ...] | Line:
        parts = list(self._parts(line, set()))
        if any(name for name, _, _ in parts):
            return Line(parts)
        if all(isinstance(part, str) for _, part, _ in parts):
            return line
        return tuple(part for _, part, _ in parts if part is not None)

    def _parts(self, line: str, known: set[str]) -> Iterator[tuple[str, Part | None, bool]]:
        end = 0
        for slot in _SLOT.finditer(line):
            if slot.start() > end:
                yield "", line[end : slot.start()], False
            end = slot.end()
            if slot["what"] in known:
                yield slot["what"], None, bool(slot["capital"])
                continue
            if slot["kept"]:
                known.add(slot["kept"])
            yield slot["kept"] or "", self._find(slot["what"], bool(slot["capital"])), False
        if end < len(line):
            yield "", line[end:], False

    def _find(self, what: str, capital: bool) -> Part:
        first, dots, last = what.partition("..")
        if dots:
            return Number(int(first), int(last))
        return Capitalised(self[what]) if capital else self[what]


def _capitalise(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _write_out(symbol: Symbol) -> list[str] | None:
    """Replaces a symbol's alternatives by all of its texts where these are few; None where they are not."""
    texts: list[str] = []
    if len(symbol.alternatives) > _WRITTEN_OUT:
        return None
    for alternative in symbol.alternatives:
        if isinstance(alternative, str):
            texts.append(alternative)
            continue
        if isinstance(alternative, Line):
            return None
        choices = [[part] if isinstance(part, str) else _texts_of(part) for part in alternative]
        if len(texts) + prod(len(choice) if choice else _WRITTEN_OUT + 1 for choice in choices) > _WRITTEN_OUT:
            return None
        texts.extend("".join(pieces) for pieces in product(*(choice or () for choice in choices)))
    symbol.alternatives = list(texts)
    return texts


def _texts_of(part: Part) -> list[str] | None:
    return _write_out(part) if isinstance(part, Symbol) else None
