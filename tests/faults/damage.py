"""Kinds of damage to a store's file, each the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

PAGE = 4_096
Damage = Callable[[bytearray, random.Random], None]


def cut_pages(count: int) -> Damage:
    def damage(content: bytearray, chance: random.Random) -> None:
        del content[-count * PAGE :]

    return damage


def cut_anywhere(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(PAGE, len(content)) :]


def flip_bits(count: int) -> Damage:
    def damage(content: bytearray, chance: random.Random) -> None:
        for _ in range(count):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)

    return damage


def zero_page(content: bytearray, chance: random.Random) -> None:
    _overwrite(content, chance.randrange(1, len(content) // PAGE), bytes(PAGE))


def random_pages(count: int) -> Damage:
    def damage(content: bytearray, chance: random.Random) -> None:
        for number in chance.sample(range(1, len(content) // PAGE), count):
            _overwrite(content, number, chance.randbytes(PAGE))

    return damage


def random_header(content: bytearray, chance: random.Random) -> None:
    content[:100] = chance.randbytes(100)


def random_first_page(content: bytearray, chance: random.Random) -> None:
    _overwrite(content, 0, chance.randbytes(PAGE))


def swapped_pages(content: bytearray, chance: random.Random) -> None:
    """Two pages in each other's place, as a misdirected write leaves them."""
    one, two = chance.sample(range(1, len(content) // PAGE), 2)
    first, second = (content[number * PAGE : (number + 1) * PAGE] for number in (one, two))
    _overwrite(content, one, second)
    _overwrite(content, two, first)


def zeroed_tail(content: bytearray, chance: random.Random) -> None:
    """Length without content, as a power cut leaves a file whose size was written before its data."""
    start = chance.randrange(len(content) // 2, len(content))
    content[start:] = bytes(len(content) - start)


def _overwrite(content: bytearray, page: int, data: bytes | bytearray) -> None:
    content[page * PAGE : (page + 1) * PAGE] = data


# As many of each kind as were once tried by hand.
KINDS: dict[str, tuple[Damage, int]] = {
    "cut by 1 page": (cut_pages(1), 1),
    "cut by 2 pages": (cut_pages(2), 1),
    "cut by 3 pages": (cut_pages(3), 1),
    "cut by 4 pages": (cut_pages(4), 1),
    "cut anywhere": (cut_anywhere, 10),
    "1 bit": (flip_bits(1), 8),
    "20 bits": (flip_bits(20), 8),
    "1 page zeroed": (zero_page, 8),
    "1 page random": (random_pages(1), 8),
    "16 pages random": (random_pages(16), 8),
    "random header": (random_header, 2),
    "random first page": (random_first_page, 2),
    "pages swapped": (swapped_pages, 3),
    "zeroed tail": (zeroed_tail, 3),
}


def apply(damage: Damage, path: Path, seed: int) -> None:
    content = bytearray(path.read_bytes())
    damage(content, random.Random(seed))
    path.write_bytes(content)
