"""Sequences and mappings that read from the store as they are looked at, so that a report holds no records."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from itertools import islice
from typing import Generic, TypeVar, overload

T = TypeVar("T")
# So many records are read ahead.
_PAGE = 500


class LazySequence(Sequence[T], Generic[T]):
    """A list that reads from the store. `stream` gives its elements from the first one on; going forwards is cheap."""

    def __init__(self, length: int | None, stream: Callable[[], Iterator[T]]) -> None:
        self._length = length
        self._stream = stream
        self._ahead: Iterator[T] = iter(())
        self._start = 0
        self._page: list[T] = []

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self._stream())
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step > 0:
                return list(islice(self._stream(), start, stop, step))
            return [self[place] for place in range(start, stop, step)]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"index {index} of a sequence of {len(self)}")
        if place < self._start or not self._page:
            self._ahead, self._start, self._page = self._stream(), 0, []
        while place >= self._start + len(self._page):
            self._start += len(self._page)
            self._page = list(islice(self._ahead, _PAGE))
            if not self._page:
                raise IndexError(f"index {index}: the stored run has fewer entries than when this was made")
        return self._page[place - self._start]

    def __iter__(self) -> Iterator[T]:
        return self._stream()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} stored entries>"


class LazyMapping(Mapping[str, T], Generic[T]):
    """A dict that reads from the store, in dataset order."""

    def __init__(
        self,
        entries: Callable[[], Iterator[tuple[str, T]]],
        length: Callable[[], int],
        find: Callable[[str], T | None],
    ) -> None:
        self._entries = entries
        self._length = length
        self._find = find

    @classmethod
    def empty(cls) -> LazyMapping[T]:
        return cls(lambda: iter(()), lambda: 0, lambda key: None)

    def __len__(self) -> int:
        return self._length()

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._entries())

    def __getitem__(self, key: str) -> T:
        value = self._find(key) if isinstance(key, str) else None
        if value is None:
            raise KeyError(key)
        return value

    def values(self) -> ValuesView[T]:
        return _Values(self)

    def items(self) -> ItemsView[str, T]:
        return _Items(self)

    def entries(self) -> Iterator[tuple[str, T]]:
        """Keys and values in one pass."""
        return self._entries()

    def __repr__(self) -> str:
        return f"<{len(self)} stored entries>"


class _Values(ValuesView[T]):
    _mapping: LazyMapping[T]

    def __iter__(self) -> Iterator[T]:
        return (value for _, value in self._mapping.entries())


class _Items(ItemsView[str, T]):
    _mapping: LazyMapping[T]

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return self._mapping.entries()
