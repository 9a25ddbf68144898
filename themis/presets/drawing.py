"""Random choices that are the same on every machine and every Python."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import Any, TypeVar

__all__ = ["Draw"]

T = TypeVar("T")


class Draw:
    """Draws from a key; only `random()` is used, the one method whose sequence Python promises never to change."""

    def __init__(self, *key: Any) -> None:
        text = "\x1f".join(str(part) for part in key)
        self._random = random.Random(
            int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
        )

    def below(self, bound: int) -> int:
        return int(self._random.random() * bound)

    def take(self, items: list[T]) -> T:
        """Removes one item."""
        return items.pop(self.below(len(items)))

    def shuffled(self, items: Sequence[T]) -> list[T]:
        left = list(items)
        return [self.take(left) for _ in items]
