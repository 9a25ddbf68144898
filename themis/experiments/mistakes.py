"""What is wrong with an experiment, all of it at once, each with the line of the file in which it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from themis.exceptions import ConfigurationError

__all__ = ["Mistakes", "Places", "ValuePath"]

# The keys and numbers of entries that lead to a value of the file.
ValuePath = tuple[str | int, ...]


@dataclass(frozen=True)
class Places:
    """Where values stand: in lines of a file, or under their keys where a program gave them."""

    source: str = ""
    lines: Mapping[ValuePath, int] = field(default_factory=dict)

    def find(self, path: ValuePath) -> str:
        """The place of a value, or of the nearest that it stands in."""
        if line := self.line(path):
            return f"{self.source}:{line}"
        named = ".".join(f"[{part}]" if isinstance(part, int) else part for part in path).replace(".[", "[")
        return ": ".join(part for part in (self.source, named) if part)

    def line(self, path: ValuePath) -> int:
        """The line of a value, or of the nearest that it stands in; 0 where there is none."""
        every = (self.lines.get(path[:length], 0) for length in range(len(path), -1, -1))
        return next(filter(None, every), 0)


class Mistakes:
    """Collects mistakes until all are known."""

    def __init__(self, places: Places) -> None:
        self._places = places
        # Where and what, with the line: the same mistake at the same place counts once, for many runs may be made of one line.
        self._found: dict[tuple[str, str], int] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, path: ValuePath, what: str) -> None:
        """Notes what is wrong with a value."""
        self._found[self._places.find(path), what] = self._places.line(path)

    def raise_any(self) -> None:
        """Raises one error that lists them, if there are any."""
        if self._found:
            raise ConfigurationError(self.describe())

    def describe(self) -> str:
        """All of them by line: one as a sentence, several as a list."""
        ordered = sorted(self._found, key=lambda one: self._found[one])
        lines = [f"{place}: {what}" if place else what for place, what in ordered]
        if len(lines) == 1:
            return lines[0]
        listed = "\n  ".join(line.replace("\n", "\n    ") for line in lines)
        return f"{len(lines)} mistakes, and nothing was called:\n  {listed}"
