"""Which items of two runs are the same item, and why the others are not.

Items are one where their content is, whatever they are called: a row without an id is known by what it asks and expects,
not by its number. On purpose (`across`) they are paired by id alone, and everything that is said of them says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from themis.core.markup import truncate
from themis.exceptions import MetricError
from themis.storage.queries import RunReader

# So many items are looked at for the fields in which they differ.
_LOOKED_AT = 20
_LONGEST_VALUE = 40


@dataclass(frozen=True)
class RunItems:
    """What a run was asked, in dataset order.

    `keys` pair an item with another run's: the fingerprint of its content, with a number for its second and later
    occurrence; or its id.
    """

    positions: list[int]
    item_ids: list[str]
    fingerprints: list[str]
    clusters: list[str | None]
    across: bool = False

    @cached_property
    def keys(self) -> list[str]:
        if self.across:
            return self.item_ids
        return (
            self.fingerprints if len(set(self.fingerprints)) == len(self.fingerprints) else _number(self.fingerprints)
        )

    @cached_property
    def by_id(self) -> list[int]:
        """The places of the items in the order of their ids, which does not depend on the order of the dataset."""
        return sorted(range(len(self.item_ids)), key=self.item_ids.__getitem__)


def _number(fingerprints: Sequence[str]) -> list[str]:
    """The k-th of equal rows is paired with the k-th of the other run."""
    seen: Counter[str] = Counter()
    keys = []
    for fingerprint in fingerprints:
        seen[fingerprint] += 1
        keys.append(fingerprint if seen[fingerprint] == 1 else f"{fingerprint} {seen[fingerprint]}")
    return keys


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """How many items of two runs are compared on a metric, and why the others are not.

    Args:
        n: Items that both runs have, with a score in both.
        items_a: Items of the first run.
        items_b: Items of the second run.
        changed: Ids that both runs have with other content. They are not pairs, unless `across`.
        only_a: Items that the second run does not have.
        only_b: Items that the first run does not have.
        unscored_a: Items of both runs without a score in the first: no answer, or judging it failed.
        unscored_b: Likewise in the second.
        across: Paired by id on purpose, whatever the content.
        changed_fields: In which fields the content under one id differs.
        changed_example: One such id.

    >>> Pairing(n=50, items_a=80, items_b=50, changed=0, only_a=30, only_b=0, unscored_a=0, unscored_b=0).describe("new", "old")
    '50 of 80 and 50 items; left out: 30 only in new'
    """

    n: int
    items_a: int
    items_b: int
    changed: int = 0
    only_a: int = 0
    only_b: int = 0
    unscored_a: int = 0
    unscored_b: int = 0
    across: bool = False
    changed_fields: tuple[str, ...] = ()
    changed_example: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether every item of both runs is compared."""
        return self.n == self.items_a == self.items_b

    @property
    def count_text(self) -> str:
        """How many items were paired, and of how many where that is not all."""
        return f"{self.n} items" if self.is_whole else f"{self.n} of {self.items_a} and {self.items_b} items"

    def describe(self, first: str, second: str) -> str:
        """How many items were paired, and what was left out for which reason.

        Args:
            first: What the first run is called.
            second: What the second run is called.
        """
        marks = [self.mark] if self.across else []
        reasons = ", ".join(self.reasons(first, second))
        return "; ".join([self.count_text, *([f"left out: {reasons}"] if reasons else []), *marks])

    @property
    def mark(self) -> str:
        """What every output says of runs that were paired across different content."""
        if not self.changed:
            return "paired by id, and all pairs have the same content"
        return f"paired by id across different content: {self.changed} of the ids hold {self._other_content()}"

    def reasons(self, first: str, second: str) -> list[str]:
        """Why items were left out, each reason with its number.

        Args:
            first: What the first run is called.
            second: What the second run is called.
        """
        counted = [
            (0 if self.across else self.changed, f"with {self._other_content()} under the same id"),
            (self.only_a, f"only in {first}"),
            (self.only_b, f"only in {second}"),
            (self.unscored_a, f"without a score in {first}"),
            (self.unscored_b, f"without a score in {second}"),
        ]
        return [f"{count} {reason}" for count, reason in counted if count]

    def _other_content(self) -> str:
        if not self.changed_fields:
            return "other content"
        return f"other content ({', '.join(self.changed_fields)}; such as item {self.changed_example!r})"

    def to_dict(self) -> dict[str, object]:
        """The numbers as plain values."""
        return {
            **asdict(self),
            "changed_fields": list(self.changed_fields),
            "left_out_a": self.items_a - self.n,
            "left_out_b": self.items_b - self.n,
        }


@dataclass(frozen=True)
class Overlap:
    """The items of two runs beside each other: what both have, what only shares an id, and what one of them has alone."""

    shared: frozenset[str]
    changed: tuple[str, ...]
    only_a: int
    only_b: int
    across: bool = False
    fields: tuple[str, ...] = ()
    # How one of the changed items differs, in words.
    example: str = ""

    def count(self, a: RunItems, b: RunItems, scored_a: Sequence[str], scored_b: Sequence[str]) -> Pairing:
        """The numbers for one metric, of which these keys have a score in each run."""
        if len(scored_a) == len(scored_b) == len(self.shared) == len(a.keys) == len(b.keys):
            n = unscored_a = unscored_b = len(self.shared)
        else:
            in_a, in_b = self.shared.intersection(scored_a), self.shared.intersection(scored_b)
            n, unscored_a, unscored_b = len(in_a & in_b), len(in_a), len(in_b)
        return Pairing(
            n=n,
            items_a=len(a.keys),
            items_b=len(b.keys),
            changed=len(self.changed),
            only_a=self.only_a,
            only_b=self.only_b,
            unscored_a=len(self.shared) - unscored_a,
            unscored_b=len(self.shared) - unscored_b,
            across=self.across,
            changed_fields=self.fields,
            changed_example=self.changed[0] if self.changed else "",
        )


def overlap_of(a: RunItems, b: RunItems, readers: tuple[RunReader, RunReader]) -> Overlap:
    """Pairs the items of two runs; for the fields in which contents differ, some of those are read."""
    if a.across:
        return _overlap_by_id(a, b, readers)
    if a.fingerprints == b.fingerprints:
        return Overlap(frozenset(a.keys), (), 0, 0)
    shared = frozenset(a.keys).intersection(b.keys)
    alone_a = {item_id for key, item_id in zip(a.keys, a.item_ids, strict=True) if key not in shared}
    alone_b = {item_id for key, item_id in zip(b.keys, b.item_ids, strict=True) if key not in shared}
    changed = [item_id for item_id in a.item_ids if item_id in alone_a and item_id in alone_b]
    fields, example = _differing_fields(changed, readers)
    only_a, only_b = len(alone_a) - len(changed), len(alone_b) - len(changed)
    return Overlap(shared, tuple(changed), only_a, only_b, False, fields, example)


def _overlap_by_id(a: RunItems, b: RunItems, readers: tuple[RunReader, RunReader]) -> Overlap:
    shared = frozenset(a.item_ids).intersection(b.item_ids)
    theirs = dict(zip(b.item_ids, b.fingerprints, strict=True))
    mine = zip(a.item_ids, a.fingerprints, strict=True)
    changed = [item_id for item_id, fingerprint in mine if item_id in shared and theirs[item_id] != fingerprint]
    fields, example = _differing_fields(changed, readers)
    alone = len(a.keys) - len(shared), len(b.keys) - len(shared)
    return Overlap(shared, tuple(changed), *alone, True, fields, example)


def _differing_fields(changed: Sequence[str], readers: tuple[RunReader, RunReader]) -> tuple[tuple[str, ...], str]:
    """The fields in which the first of these items differ, and the first of them with both values."""
    looked_at = changed[:_LOOKED_AT]
    if not looked_at:
        return (), ""
    rows = [reader.find_samples(looked_at) for reader in readers]
    references = {reader.frame.reference_field for reader in readers}
    fields: dict[str, None] = {}
    example = ""
    for item_id in looked_at:
        one, other = (found[item_id].row if item_id in found else {} for found in rows)
        differing = [
            name for name in {**one, **other} if name not in one or name not in other or one[name] != other[name]
        ]
        differing.sort(key=lambda name: name in references)
        fields.update(dict.fromkeys(differing))
        if differing and not example:
            name = differing[0]
            values = " and ".join(_format_value(row[name]) if name in row else "none" for row in (one, other))
            example = f"{name!r} of item {item_id!r} is {values}"
    return tuple(fields), example


def _format_value(value: object) -> str:
    return truncate(repr(value), _LONGEST_VALUE)


def refuse_without_pairs(first: str, second: str, a: RunItems, b: RunItems, overlap: Overlap) -> None:
    """Raises where no item of one run is in the other."""
    if overlap.shared:
        return
    if overlap.changed:
        raise MetricError(
            f"runs {first!r} and {second!r} share {len(overlap.changed)} item ids but not one item: "
            f"their contents differ in {', '.join(overlap.fields) or 'what is lost'}"
            f"{f' ({overlap.example})' if overlap.example else ''}; "
            "compare runs over the same rows, or pair by id on purpose: --across (across=True in Python)"
        )
    examples = f", with ids such as {a.item_ids[0]!r} and {b.item_ids[0]!r}" if a.item_ids and b.item_ids else ""
    raise MetricError(
        f"runs {first!r} and {second!r} have no item in common: "
        f"they have {len(a.item_ids)} and {len(b.item_ids)} items{examples}"
    )
