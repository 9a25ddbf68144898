"""Countdown puzzles: numbers and a target to be reached with + - * /.

The generator builds each puzzle from a solution, so every puzzle has one; the solver finds one by itself, exactly and
in milliseconds. The rules are those that `evaluation.metrics.countdown` judges by: each number at most once, every
intermediate value a positive integer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from themis.exceptions import ConfigurationError
from themis.presets.fields import Draw, Raw, Row

__all__ = [
    "DIFFICULTIES",
    "Puzzle",
    "generate_puzzles",
    "puzzle_fields",
    "puzzle_rows",
    "puzzles",
    "raw_puzzles",
    "solve",
]

# How many numbers a puzzle has; each one more multiplies the number of expressions by about a hundred.
DIFFICULTIES = (3, 4, 5, 6)
LARGEST_NUMBER = 99
TARGETS = range(10, 1000)


@dataclass(frozen=True)
class Puzzle:
    """`solution` uses every number once, so a puzzle can be judged by the strict metric too."""

    numbers: tuple[int, ...]
    target: int
    solution: str

    def raw(self) -> Row:
        """In the layout of the public dataset predibase/countdown."""
        return {"nums": list(self.numbers), "target": self.target}

    def row(self, row_id: str) -> Row:
        """In our own layout."""
        return {"id": row_id, **puzzle_fields(self.numbers, self.target)}


def generate_puzzles(count: int, *, difficulty: int | None = None, seed: int = 0) -> list[Puzzle]:
    """The first `count` puzzles of a seed; without a difficulty they go round from 3 to 6 numbers."""
    if count < 0:
        raise ConfigurationError(f"the number of puzzles must be 0 or more, got {count}")
    stream = puzzles(difficulty=difficulty, seed=seed)
    return [next(stream) for _ in range(count)]


def puzzles(*, difficulty: int | None = None, seed: int = 0) -> Iterator[Puzzle]:
    """Puzzles without end. Each depends on seed, difficulty and position alone, not on how many are asked for."""
    if difficulty is not None and difficulty not in DIFFICULTIES:
        raise ConfigurationError(f"difficulty is how many numbers a puzzle has, 3 to 6, got {difficulty!r}")
    index = 0
    while True:
        size = difficulty or DIFFICULTIES[index % len(DIFFICULTIES)]
        yield _puzzle(size, Draw("countdown", seed, size, index))
        index += 1


def raw_puzzles(limit: int | None, *, difficulty: int | None = None) -> Iterator[Row]:
    """The benchmark's puzzles in the public dataset's layout: a hundred, or as many as asked for."""
    stream = puzzles(difficulty=difficulty)
    return (next(stream).raw() for _ in range(100 if limit is None else limit))


def puzzle_rows(raw: Raw) -> Iterator[Row]:
    """The row that a Countdown run reads, from one of the public dataset's."""
    yield puzzle_fields([int(number) for number in raw["nums"]], int(raw["target"]))


def puzzle_fields(numbers: Sequence[int], target: int) -> Row:
    """All of a row but its id; `reference` is what the metric is given, with an answer where there is one."""
    answer = _answer(numbers, target)
    return {
        "numbers": list(numbers),
        "numbers_str": ", ".join(str(number) for number in numbers),
        "target": target,
        "reference": {"numbers": list(numbers), "target": target, **({"answer": answer} if answer else {})},
    }


def _answer(numbers: Sequence[int], target: int) -> str | None:
    """One that uses every number if there is one, since it is right by the strict rules too."""
    # Puzzles of other sizes are somebody's own, and each number more costs ten times the time.
    if len(numbers) > DIFFICULTIES[-1] or min(numbers, default=0) < 1:
        return None
    return solve(numbers, target, use_every_number=True) or solve(numbers, target)


def _puzzle(size: int, draw: Draw) -> Puzzle:
    while True:
        numbers = tuple(1 + draw.below(LARGEST_NUMBER) for _ in range(size))
        root = _joined(numbers, draw)
        if root is not None and root.value in TARGETS and root.value not in numbers:
            return Puzzle(numbers, root.value, root.text())


@dataclass(frozen=True, slots=True)
class _Node:
    """A number, or an operator on two nodes."""

    value: int
    operator: str = ""
    left: _Node | None = None
    right: _Node | None = None

    def text(self) -> str:
        """With the parentheses that keep every intermediate value where it is, and no others."""
        if self.left is None or self.right is None:
            return str(self.value)
        rank = _RANK[self.operator]
        left = self.left.text() if self.left.rank >= rank else f"({self.left.text()})"
        right = self.right.text() if self.right.rank > rank else f"({self.right.text()})"
        return f"{left} {self.operator} {right}"

    @property
    def rank(self) -> int:
        return _RANK[self.operator]


_RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "": 3}


def _joined(numbers: Sequence[int], draw: Draw) -> _Node | None:
    """Joins two parts at random until one is left; None where it grew out of hand."""
    parts = [_Node(number) for number in numbers]
    while len(parts) > 1:
        first, second = draw.take(parts), draw.take(parts)
        larger, smaller = (first, second) if first.value >= second.value else (second, first)
        choices = _combinations(larger, smaller)
        joined = choices[draw.below(len(choices))]
        if joined.value >= TARGETS.stop * 10:
            return None
        parts.append(joined)
    return parts[0]


def _combinations(larger: _Node, smaller: _Node) -> list[_Node]:
    """What two parts can make; `* 1` and `/ 1` are left out of puzzles, since they are no steps."""
    found = [_Node(larger.value + smaller.value, "+", larger, smaller)]
    if larger.value > smaller.value:
        found.append(_Node(larger.value - smaller.value, "-", larger, smaller))
    if smaller.value > 1:
        found.append(_Node(larger.value * smaller.value, "*", larger, smaller))
        if larger.value % smaller.value == 0:
            found.append(_Node(larger.value // smaller.value, "/", larger, smaller))
    return found


def solve(numbers: Sequence[int], target: int, *, use_every_number: bool = False) -> str | None:
    """An expression for the target with the fewest numbers, or None: then there is none."""
    if any(number < 1 for number in numbers):
        raise ConfigurationError(f"Countdown numbers are positive integers, got {list(numbers)}")
    if target < 1:
        return None
    search = _Search(tuple(numbers))
    everything = (1 << len(numbers)) - 1
    masks = (
        [everything]
        if use_every_number
        else sorted(range(1, everything + 1), key=lambda mask: (mask.bit_count(), mask))
    )
    for mask in masks:
        found = search.reach(mask, target)
        if found is not None:
            return found.text()
    return None


class _Search:
    """Which values a subset of the numbers can make, each with one way of making it.

    Tables of all values are built for small subsets only. A large subset is searched from the target backwards: if
    its smaller half makes `a`, the other half must make `target - a`, `target + a` and so on, which the tables know.
    Six numbers need tables of up to three, and a few thousand lookups.
    """

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._numbers = numbers
        self._tables: dict[int, dict[int, _Node]] = {}
        self._reached: dict[tuple[int, int], _Node | None] = {}

    def reach(self, mask: int, target: int) -> _Node | None:
        if mask.bit_count() <= 3:
            return self._table(mask).get(target)
        key = (mask, target)
        if key not in self._reached:
            self._reached[key] = self._search(mask, target)
        return self._reached[key]

    def _search(self, mask: int, target: int) -> _Node | None:
        for half in _smaller_halves(mask):
            for value, node in self._table(half).items():
                for operator, missing, known_is_left in _inverses(value, target):
                    other = self.reach(mask ^ half, missing)
                    if other is not None:
                        left, right = (node, other) if known_is_left else (other, node)
                        return _Node(target, operator, left, right)
        return None

    def _table(self, mask: int) -> dict[int, _Node]:
        table = self._tables.get(mask)
        if table is None:
            table = self._tables[mask] = self._build(mask)
        return table

    def _build(self, mask: int) -> dict[int, _Node]:
        if mask.bit_count() == 1:
            number = self._numbers[mask.bit_length() - 1]
            return {number: _Node(number)}
        table: dict[int, _Node] = {}
        for half in _smaller_halves(mask):
            for first in self._table(half).values():
                for second in self._table(mask ^ half).values():
                    larger, smaller = (first, second) if first.value >= second.value else (second, first)
                    for node in _combinations(larger, smaller):
                        table.setdefault(node.value, node)
                    if smaller.value == 1:
                        table.setdefault(larger.value, _Node(larger.value, "*", larger, smaller))
        return table


def _smaller_halves(mask: int) -> Iterator[int]:
    """Every split of the set in two, each once, by its smaller part."""
    half = (mask - 1) & mask
    size, lowest = mask.bit_count(), mask & -mask
    while half:
        count = half.bit_count()
        if 2 * count < size or (2 * count == size and half & lowest):
            yield half
        half = (half - 1) & mask


def _inverses(value: int, target: int) -> Iterator[tuple[str, int, bool]]:
    """(operator, what the other part must be, whether `value` stands on the left) for every way to the target."""
    if target > value:
        yield "+", target - value, True
    if value > target:
        yield "-", value - target, True
    yield "-", target + value, False
    if target % value == 0:
        yield "*", target // value, True
    if value % target == 0:
        yield "/", value // target, True
    yield "/", target * value, False
