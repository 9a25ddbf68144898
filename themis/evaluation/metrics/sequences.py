"""Edit distance and longest common subsequence of two sequences, one bit of a long integer per element.

Python's integers do in one step what a table does in as many steps as the first sequence has elements: two texts of
20,000 characters take well under a second.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set

__all__ = ["edit_distance", "lcs_length"]


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Levenshtein distance: the fewest insertions, deletions and replacements (Myers 1999, in Hyyrö's form)."""
    start, end_one, end_other = 0, len(one), len(other)
    while start < min(end_one, end_other) and one[start] == other[start]:
        start += 1
    while start < min(end_one, end_other) and one[end_one - 1] == other[end_other - 1]:
        end_one, end_other = end_one - 1, end_other - 1
    one, other = one[start:end_one], other[start:end_other]
    if not one or not other:
        return len(one) + len(other)
    places = _places(one, set(other))
    everything = (1 << len(one)) - 1
    last = 1 << (len(one) - 1)
    distance = len(one)
    # Bit i of `up` (`down`): the column of the table grows (shrinks) by one from row i to row i + 1.
    up, down = everything, 0
    for element in other:
        matches = places.get(element, 0)
        diagonal = (((matches & up) + up) ^ up) | matches | down
        right = down | (everything & ~(diagonal | up))
        left = up & diagonal
        distance += bool(right & last) - bool(left & last)
        right = (right << 1) | 1
        up = (left << 1) & everything | (everything & ~(diagonal | right))
        down = right & diagonal & everything
    return distance


def lcs_length(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Length of the longest common subsequence (Hyyrö 2004)."""
    places = _places(one, set(other))
    everything = (1 << len(one)) - 1
    row = everything
    for element in other:
        matched = row & places.get(element, 0)
        row = ((row + matched) | (row - matched)) & everything
    return len(one) - row.bit_count()


def _places(sequence: Sequence[Hashable], wanted: Set[Hashable]) -> dict[Hashable, int]:
    """For each wanted element the bits of the places where it stands."""
    positions: dict[Hashable, bytearray] = {}
    size = len(sequence) // 8 + 1
    for index, element in enumerate(sequence):
        if element in wanted:
            positions.setdefault(element, bytearray(size))[index >> 3] |= 1 << (index & 7)
    return {element: int.from_bytes(bits, "little") for element, bits in positions.items()}
