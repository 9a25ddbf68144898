"""Reads runs in pages: what looks like a list of a million records holds one page of them.

Pages follow the primary key (`position > last ORDER BY position LIMIT n`), so no cursor or transaction stays open while
the caller works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar, overload

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from themis.core.codec import decode
from themis.core.entities import EvaluationRecord, GenerationRecord
from themis.core.fingerprint import digest
from themis.exceptions import StorageError
from themis.storage import schema
from themis.storage.outage import outlast
from themis.storage.records import FAILED, Frame, evaluation_record, is_whole_body, whole_record
from themis.storage.runs import is_storable

__all__ = ["LazyMapping", "LazySequence", "RunReader", "StoredKey", "StoredSample", "batched"]

T = TypeVar("T")
_PAGE = 500
# Of rows that are a few numbers each.
_LARGE_PAGE = 10_000


@dataclass(frozen=True, slots=True)
class StoredSample:
    """A row of a run as it was planned."""

    position: int
    item_id: str
    row: dict[str, Any]
    fingerprint: str
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class StoredKey:
    """Under which key an answer lies, and what of the sample went into it."""

    key: str
    prompt: str
    fingerprint: str


class RunReader:
    """Everything stored of one run; `current_evaluation` is how it was judged last when the reader was made."""

    def __init__(self, engine: Engine, run: int, frame: Frame, current_evaluation: int | None = None) -> None:
        self.run = run
        self.frame = frame
        self.current_evaluation = current_evaluation
        self._engine = engine

    # --- samples -----------------------------------------------------------------------------------------------------

    def count_samples(self) -> int:
        samples = schema.samples
        return int(self._scalar(sa.select(sa.func.count()).where(samples.c.run == self.run)) or 0)

    def position(self, item_id: str) -> int | None:
        """Where in the run an item stands."""
        samples = schema.samples
        if not is_storable(item_id):
            return None
        found = self._scalar(
            sa.select(samples.c.position).where(samples.c.run == self.run, samples.c.item_id == item_id)
        )
        return None if found is None else int(found)

    def next_position(self) -> int:
        samples = schema.samples
        last = self._scalar(sa.select(sa.func.max(samples.c.position)).where(samples.c.run == self.run))
        return 0 if last is None else int(last) + 1

    def samples(self, *, after: int = -1, until: int | None = None) -> Iterator[StoredSample]:
        samples, items = schema.samples, schema.items
        query = (
            sa.select(samples.c.position, samples.c.item_id, items.c.content, samples.c.fingerprint, samples.c.cluster)
            .join(items, items.c.fingerprint == samples.c.fingerprint)
            .where(samples.c.run == self.run)
        )
        if until is not None:
            query = query.where(samples.c.position < until)
        for row in self._paged(query, samples.c.position, after):
            yield StoredSample(row.position, row.item_id, decode(row.content), row.fingerprint, row.cluster)

    def unfinished(self, attempts: int) -> Iterator[tuple[StoredSample, frozenset[int]]]:
        """Samples with fewer than `attempts` good calls, each with the attempts it already has."""
        samples, items, records = schema.samples, schema.items, schema.records
        done = (
            sa.select(sa.func.count())
            .where(records.c.run == samples.c.run, records.c.position == samples.c.position)
            .where(records.c.ok == 1, records.c.attempt < attempts)
            .scalar_subquery()
        )
        query = (
            sa.select(samples.c.position, samples.c.item_id, items.c.content, samples.c.fingerprint, samples.c.cluster)
            .add_columns(done.label("done"))
            .join(items, items.c.fingerprint == samples.c.fingerprint)
            .where(samples.c.run == self.run, done < attempts)
        )
        for row in self._paged(query, samples.c.position, -1):
            have = self._good_attempts(row.position) if row.done else frozenset()
            yield StoredSample(row.position, row.item_id, decode(row.content), row.fingerprint, row.cluster), have

    def _good_attempts(self, position: int) -> frozenset[int]:
        records = schema.records
        query = sa.select(records.c.attempt).where(
            records.c.run == self.run, records.c.position == position, records.c.ok == 1
        )
        return outlast(self._engine, lambda connection: frozenset(connection.execute(query).scalars()))

    # --- records -----------------------------------------------------------------------------------------------------

    def count_records(self) -> tuple[int, int]:
        """Samples that have an answer, and samples that have only failures."""
        records = schema.records
        best = (
            sa.select(sa.func.max(records.c.ok).label("ok"))
            .where(records.c.run == self.run)
            .group_by(records.c.position)
            .subquery()
        )
        query = sa.select(sa.func.coalesce(sa.func.sum(best.c.ok), 0), sa.func.count()).select_from(best)
        good, total = outlast(self._engine, lambda connection: connection.execute(query).one())
        return int(good), int(total) - int(good)

    def count_untold(self) -> int:
        """Answers of calls that told no tokens; one that was taken from another run made no call."""
        records = schema.records
        told = records.c.prompt_tokens + records.c.completion_tokens
        query = sa.select(sa.func.count()).where(
            records.c.run == self.run, records.c.ok == 1, told == 0, records.c.seconds > 0
        )
        return int(self._scalar(query))

    def records(
        self, *, after: int = -1, until: int | None = None, positions: Sequence[int] | None = None
    ) -> Iterator[tuple[int, GenerationRecord]]:
        """(position, record) of every sample with at least one stored call, in dataset order."""
        position, conditions = schema.records.c.position, list[sa.ColumnElement[bool]]()
        if until is not None:
            conditions.append(position < until)
        if positions is not None:
            conditions.append(position.in_(positions))
        return self._records(after, *conditions)

    def _records(self, after: int, *conditions: sa.ColumnElement[bool]) -> Iterator[tuple[int, GenerationRecord]]:
        """The conditions must say the same of every attempt of a sample."""
        records, samples, items = schema.records, schema.samples, schema.items
        query = (
            sa.select(records.c.position, records.c.attempt, records.c.body, samples.c.item_id, items.c.content)
            .join(samples, (samples.c.run == records.c.run) & (samples.c.position == records.c.position))
            .join(items, items.c.fingerprint == samples.c.fingerprint)
            .where(records.c.run == self.run, *conditions)
        )
        position, attempts = -1, list[GenerationRecord]()
        rows = self._paged(query, records.c.position, after, then=records.c.attempt)
        for place, attempt, body, item_id, content in rows:
            if place != position and attempts:
                yield position, whole_record(attempts)
                attempts = []
            position = place
            try:
                attempts.append(self.frame.read(body, item_id, decode(content), attempt))
            except (ValueError, msgspec.MsgspecError) as error:
                raise _damaged(f"the record of {item_id!r}", error) from error
        if attempts:
            yield position, whole_record(attempts)

    def record(self, item_id: str) -> tuple[int, GenerationRecord] | None:
        position = self.position(item_id)
        return None if position is None else next(self.records(positions=[position]), None)

    def is_answered(self, position: int) -> bool | None:
        """Whether a sample has an answer; None where it has no record at all."""
        records = schema.records
        best = self._scalar(
            sa.select(sa.func.max(records.c.ok)).where(records.c.run == self.run, records.c.position == position)
        )
        return None if best is None else bool(best)

    def key_of(self, item_id: str) -> StoredKey | None:
        """The key of a sample's first attempt."""
        records, samples = schema.records, schema.samples
        query = (
            sa.select(records.c.key, records.c.body, samples.c.fingerprint)
            .join(samples, (samples.c.run == records.c.run) & (samples.c.position == records.c.position))
            .where(records.c.run == self.run, samples.c.item_id == item_id)
            .order_by(records.c.attempt)
        )
        with self._engine.connect() as connection:
            row = connection.execute(query.limit(1)).first()
        return None if row is None else StoredKey(row.key, decode(row.body)["prompt"], row.fingerprint)

    def call(self, position: int, attempt: int) -> GenerationRecord | None:
        """One stored call."""
        for _, record in self.records(positions=[position]):
            return next((one for one in record.attempts if one.task.metadata.get("attempts", 0) == attempt), None)
        return None

    def broken_rows(self) -> list[str]:
        """What of the run's rows cannot be read, a sentence each."""
        problems: list[str] = []
        samples, items, records = schema.samples, schema.items, schema.records
        lost = sa.select(sa.func.count()).where(
            samples.c.run == self.run, ~sa.exists().where(items.c.fingerprint == samples.c.fingerprint)
        )
        if count := self._scalar(lost):
            problems.append(f"{count} samples have lost their content")
        bodies = sa.select(records.c.position, records.c.body).where(records.c.run == self.run)
        problems += [
            f"the record at position {row.position} cannot be read"
            for row in self._paged(bodies, records.c.position, -1)
            if not is_whole_body(row.body)
        ]
        contents = (
            sa.select(samples.c.position, samples.c.fingerprint, items.c.content)
            .join(items, items.c.fingerprint == samples.c.fingerprint)
            .where(samples.c.run == self.run)
        )
        problems += [
            f"the row at position {row.position} is not what it was"
            for row in self._paged(contents, samples.c.position, -1)
            if digest(row.content) != row.fingerprint
        ]
        return problems

    def failed_records(self) -> Iterator[tuple[str, str]]:
        """(item id, message) of samples without any answer."""
        records, samples = schema.records, schema.samples
        good = sa.select(records.c.position).where(records.c.run == self.run, records.c.ok == 1)
        query = (
            sa.select(records.c.position, samples.c.item_id, records.c.body)
            .join(samples, (samples.c.run == records.c.run) & (samples.c.position == records.c.position))
            .where(records.c.run == self.run, records.c.ok == 0, records.c.attempt == 0)
            .where(records.c.position.not_in(good))
        )
        for row in self._paged(query, records.c.position, -1):
            error = decode(row.body).get("error") or {}
            yield row.item_id, error.get("message", "no answer and no reason")

    # --- scores ------------------------------------------------------------------------------------------------------

    def unjudged(self, evaluation: int) -> Iterator[tuple[int, GenerationRecord]]:
        """Answered samples on which this evaluation has no verdict yet, or one that failed."""
        records, scores = schema.records, schema.scores
        verdicts = sa.select(sa.literal(1)).where(
            scores.c.evaluation == evaluation, scores.c.position == records.c.position
        )
        unsettled = ~verdicts.exists() | verdicts.where(scores.c.outcome == FAILED).exists()
        return (pair for pair in self._records(-1, unsettled) if pair[1].error is None)

    def evaluations(
        self, evaluation: int, *, after: int = -1, until: int | None = None, only_failed: bool = False
    ) -> Iterator[tuple[int, EvaluationRecord]]:
        """(position, evaluation record) of judged samples, in dataset order; or just what failed of them."""
        scores, samples = schema.scores, schema.samples
        query = (
            sa.select(scores.c.position, samples.c.item_id, scores.c.metric, scores.c.ordinal)
            .add_columns(scores.c.value, scores.c.outcome, scores.c.details)
            .join(samples, (samples.c.run == self.run) & (samples.c.position == scores.c.position))
            .where(scores.c.evaluation == evaluation)
        )
        if until is not None:
            query = query.where(scores.c.position < until)
        if only_failed:
            query = query.where(scores.c.outcome == FAILED)
        position, item_id, rows = None, "", list[tuple[str, int, float | None, str, str | None]]()
        for row in self._paged(query, scores.c.position, after, then=(scores.c.metric, scores.c.ordinal)):
            if row.position != position and rows:
                yield position or 0, evaluation_record(item_id, rows)
                rows = []
            position, item_id = row.position, row.item_id
            rows.append((row.metric, row.ordinal, row.value, row.outcome, row.details))
        if rows:
            yield position or 0, evaluation_record(item_id, rows)

    def evaluation(self, evaluation: int, item_id: str) -> EvaluationRecord | None:
        position = self.position(item_id)
        if position is None:
            return None
        found = self.evaluations(evaluation, after=position - 1, until=position + 1)
        return next((record for _, record in found), None)

    def count_evaluated(self, evaluation: int, *, after: int = -1) -> int:
        scores = schema.scores
        query = sa.select(sa.func.count(sa.distinct(scores.c.position))).where(
            scores.c.evaluation == evaluation, scores.c.position > after
        )
        return int(self._scalar(query) or 0)

    def metric_names(self, evaluation: int) -> list[str]:
        scores = schema.scores
        query = sa.select(scores.c.metric).where(scores.c.evaluation == evaluation).distinct().order_by(scores.c.metric)
        return outlast(self._engine, lambda connection: list(connection.execute(query).scalars()))

    def evaluation_config(self, evaluation: int) -> dict[str, Any]:
        """What was written down of a way of judging."""
        table = schema.evaluations
        found: dict[str, Any] = decode(self._scalar(sa.select(table.c.config).where(table.c.evaluation == evaluation)))
        return found

    def values(self, evaluation: int, metric: str) -> Iterator[tuple[str, str | None, float]]:
        """(item id, cluster, value) of every scored verdict of a metric, in dataset order."""
        return (scored[1:] for scored in self.placed_values(evaluation, metric))

    def placed_values(self, evaluation: int, metric: str) -> Iterator[tuple[int, str, str | None, float]]:
        """The same with the position before."""
        scores, samples = schema.scores, schema.samples
        query = (
            sa.select(scores.c.position, samples.c.item_id, samples.c.cluster, scores.c.value)
            .join(samples, (samples.c.run == self.run) & (samples.c.position == scores.c.position))
            .where(scores.c.evaluation == evaluation, scores.c.metric == metric, scores.c.outcome != FAILED)
        )
        return self._paged(query, scores.c.position, -1, then=scores.c.ordinal, size=_LARGE_PAGE)

    def outcomes(self, evaluation: int) -> dict[str, dict[str, int]]:
        """How many verdicts of each outcome every metric has."""
        scores = schema.scores
        query = (
            sa.select(scores.c.metric, scores.c.outcome, sa.func.count().label("n"))
            .where(scores.c.evaluation == evaluation)
            .group_by(scores.c.metric, scores.c.outcome)
        )
        counted: dict[str, dict[str, int]] = {}
        for row in outlast(self._engine, lambda connection: connection.execute(query).all()):
            counted.setdefault(row.metric, {})[row.outcome] = int(row.n)
        return counted

    def last_records_after(self, count: int) -> int:
        """The position after which the last so many records come."""
        records = schema.records
        query = (
            sa.select(records.c.position)
            .where(records.c.run == self.run)
            .group_by(records.c.position)
            .order_by(records.c.position.desc())
        )
        found = self._scalar(query.offset(count).limit(1))
        return -1 if found is None else int(found)

    # --- paging ------------------------------------------------------------------------------------------------------

    def _paged(
        self,
        query: sa.Select[Any],
        position: sa.ColumnElement[Any],
        after: int,
        then: sa.ColumnElement[Any] | tuple[sa.ColumnElement[Any], ...] = (),
        size: int = _PAGE,
    ) -> Iterator[Any]:
        """Rows in order of position, their first column. A page ends with a position's last row: no sample is cut in two."""
        order = (position, *(then if isinstance(then, tuple) else (then,)))
        query = query.order_by(*order)
        while True:
            rows, is_last = outlast(
                self._engine, partial(_page, query=query, position=position, after=after, size=size)
            )
            yield from rows
            if is_last:
                return
            after = rows[-1][0]

    def _scalar(self, query: sa.Select[Any]) -> Any:
        return outlast(self._engine, lambda connection: connection.execute(query).scalar())


def _page(
    connection: Connection, query: sa.Select[Any], position: sa.ColumnElement[Any], after: int, size: int
) -> tuple[Sequence[Any], bool]:
    """The rows of the next page, and whether it is the last."""
    rows = connection.execute(query.where(position > after).limit(size)).all()
    if len(rows) < size:
        return rows, True
    last = rows[-1][0]
    whole = [row for row in rows if row[0] != last]
    # A sample with more rows than a page is read alone.
    return whole or connection.execute(query.where(position == last)).all(), False


def _damaged(what: str, error: Exception) -> StorageError:
    return StorageError(f"{what} is damaged ({error}); `themis store repair` salvages what can be read into a new file")


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


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

    def __len__(self) -> int:
        return self._length()

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._entries())

    def __getitem__(self, key: str) -> T:
        value = self._find(key) if isinstance(key, str) else None
        if value is None:
            raise KeyError(key)
        return value

    def values(self) -> Any:
        return _Values(self)

    def items(self) -> Any:
        return _Items(self)

    def __repr__(self) -> str:
        return f"<{len(self)} stored entries>"


class _Values(Generic[T]):
    def __init__(self, mapping: LazyMapping[T]) -> None:
        self._mapping = mapping

    def __iter__(self) -> Iterator[T]:
        return (value for _, value in self._mapping._entries())

    def __len__(self) -> int:
        return len(self._mapping)


class _Items(Generic[T]):
    def __init__(self, mapping: LazyMapping[T]) -> None:
        self._mapping = mapping

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return self._mapping._entries()

    def __len__(self) -> int:
        return len(self._mapping)
