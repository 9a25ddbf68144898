"""Queries of one run: its row, its samples, records and scores, its turns and files.

What looks like a list of a million records holds one page of them. Pages follow the primary key (`position > last ORDER BY
position LIMIT n`), so no cursor or transaction stays open while the caller works. Lists of runs and filtered pages of samples
are `storage.search`'s.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from themis.core.codec import decode, digest
from themis.core.entities import SAMPLE_LIMITS, UNSCORED_ATTEMPTS, EvaluationRecord, GenerationRecord, Step
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, StorageError
from themis.storage import schema
from themis.storage.database import retry_read
from themis.storage.runs import (
    FAILED,
    Attachment,
    Frame,
    RunMetadata,
    Turn,
    evaluation_record,
    is_storable,
    is_whole_body,
    metadata_columns,
    metadata_of,
    whole_record,
)
from themis.storage.schema import AnyColumn, AnyRow, AnySelect

_PAGE = 500
# Of rows that are a few numbers each.
_LARGE_PAGE = 10_000
_METADATA_COLUMNS = len(metadata_columns())


class StoredSample(msgspec.Struct, frozen=True):
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


@dataclass(frozen=True)
class AttemptCounts:
    """Stored calls of a run: every attempt at every sample, and those of them that have no answer."""

    made: int
    failed: int


class ItemScore(NamedTuple):
    """One row of one metric: a score, or with the outcome `failed` the lack of one."""

    position: int
    metric: str
    value: float | None
    outcome: str


class ScoreValue(NamedTuple):
    """One sample's score of one metric."""

    position: int
    item_id: str
    cluster: str | None
    value: float


class ScoreDetails(NamedTuple):
    """What one sample's score of one metric says of itself."""

    position: int
    item_id: str
    cluster: str | None
    details: Mapping[str, Any]


@dataclass(frozen=True)
class StoredEvaluation:
    """One way in which a run was judged; `name` is what people call it by, and `is_current` marks the one that counts."""

    evaluation: int
    fingerprint: str
    name: str
    config: Mapping[str, object]
    is_current: bool


class RunReader:
    """Everything stored of one run. Its row is read once, before this is made: another reader sees what changed since.

    `run` is the run's number in the tables, `evaluation` that of the way of judging it that counts, if it has one.
    """

    def __init__(self, engine: Engine, row: AnyRow) -> None:
        self.engine = engine
        self.run = int(row.run)
        self.kind = str(row.kind)
        self.evaluation: int | None = row.evaluation
        self.lease_holder: str | None = row.lease_holder
        # Whether every row of the dataset is stored.
        self.has_dataset = bool(row.planned)
        self._row = row

    @cached_property
    def metadata(self) -> RunMetadata:
        return metadata_of(self._row[:_METADATA_COLUMNS])

    @cached_property
    def frame(self) -> Frame:
        return Frame.from_config(decode(self._row.config).get("task", {}), self._row.manifest_hash)

    @cached_property
    def identity(self) -> dict[str, str]:
        """What decides the run's results, by dimension."""
        found: dict[str, str] = decode(self._row.identity)
        return found

    def count_lost_rows(self) -> int:
        """Rows of the dataset that were stored once and that a repair could not save."""
        return max(0, self._row.total - self.count_samples()) if self.has_dataset else 0

    # --- samples -----------------------------------------------------------------------------------------------------

    def count_samples(self) -> int:
        samples = schema.samples
        return int(self.read_value(sa.select(sa.func.count()).where(samples.c.run == self.run)) or 0)

    def position(self, item_id: str) -> int | None:
        """Where in the run an item stands."""
        samples = schema.samples
        if not is_storable(item_id):
            return None
        found = self.read_value(
            sa.select(samples.c.position).where(samples.c.run == self.run, samples.c.item_id == item_id)
        )
        return None if found is None else int(found)

    def next_position(self) -> int:
        samples = schema.samples
        last = self.read_value(sa.select(sa.func.max(samples.c.position)).where(samples.c.run == self.run))
        return 0 if last is None else int(last) + 1

    def samples(self) -> Iterator[StoredSample]:
        """The rows of the dataset, in order."""
        for position, item_id, content, *others in self._paged(self._sample_query(), schema.samples.c.position, -1):
            yield StoredSample(position, item_id, decode(content), *others)

    def find_samples(self, item_ids: Collection[str]) -> dict[str, StoredSample]:
        """Samples by their ids; what is not there is left out."""
        query = self._sample_query().where(schema.samples.c.item_id.in_([one for one in item_ids if is_storable(one)]))
        return {row[1]: StoredSample(row[0], row[1], decode(row[2]), *row[3:]) for row in self.read_rows(query)}

    def samples_at(self, positions: Sequence[int]) -> Iterator[StoredSample]:
        """Those of the rows that stand there, in any order."""
        for row in self.read_rows(self._sample_query().where(schema.samples.c.position.in_(positions))):
            yield StoredSample(row[0], row[1], decode(row[2]), *row[3:])

    def _sample_query(self) -> AnySelect:
        samples, items = schema.samples, schema.items
        return (
            sa.select(samples.c.position, samples.c.item_id, items.c.content, samples.c.fingerprint, samples.c.cluster)
            .join(items, items.c.fingerprint == samples.c.fingerprint)
            .where(samples.c.run == self.run)
        )

    def unfinished(self, attempts: int) -> Iterator[tuple[StoredSample, frozenset[int]]]:
        """Samples with fewer than `attempts` good calls, each with the attempts it already has."""
        samples, records = schema.samples, schema.records
        done = (
            sa.select(sa.func.count())
            .where(records.c.run == samples.c.run, records.c.position == samples.c.position)
            .where(records.c.ok == 1, records.c.attempt < attempts)
            .scalar_subquery()
        )
        # With one attempt, what is unfinished has none: counting that a second time is half of the query.
        query = self._sample_query().add_columns(done if attempts > 1 else sa.literal(0)).where(done < attempts)
        for position, item_id, content, fingerprint, cluster, count in self._paged(query, samples.c.position, -1):
            have = self._good_attempts(position) if count else frozenset()
            yield StoredSample(position, item_id, decode(content), fingerprint, cluster), have

    def count_unfinished(self, attempts: int) -> int:
        """Samples with fewer than `attempts` good calls."""
        of = schema.records.c
        good = sa.select(of.position).where(of.run == self.run, of.ok == 1, of.attempt < attempts)
        finished = good.group_by(of.position).having(sa.func.count() >= attempts).subquery()
        return self.count_samples() - int(self.read_value(sa.select(sa.func.count()).select_from(finished)))

    def _good_attempts(self, position: int) -> frozenset[int]:
        records = schema.records
        query = sa.select(records.c.attempt).where(
            records.c.run == self.run, records.c.position == position, records.c.ok == 1
        )
        return frozenset(row.attempt for row in self.read_rows(query))

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
        ((good, total),) = self.read_rows(query)
        return int(good), int(total) - int(good)

    def count_attempts(self) -> AttemptCounts:
        """Every attempt at every sample, the last call of each."""
        records = schema.records
        query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(records.c.ok), 0))
        ((made, good),) = self.read_rows(query.where(records.c.run == self.run))
        return AttemptCounts(int(made), int(made) - int(good))

    def answer_seconds(self) -> array[float]:
        """How long each answer took, its retries included; one that was taken from another run took no call."""
        records = schema.records
        query = sa.select(records.c.seconds).where(records.c.run == self.run, records.c.ok == 1, records.c.seconds > 0)
        return retry_read(self.engine, lambda connection: array("d", connection.execute(query).scalars()))

    def count_without_usage(self) -> int:
        """Answers of calls that reported no tokens; one that was taken from another run made no call."""
        records = schema.records
        tokens = records.c.prompt_tokens + records.c.completion_tokens
        query = sa.select(sa.func.count()).where(
            records.c.run == self.run, records.c.ok == 1, tokens == 0, records.c.seconds > 0
        )
        return int(self.read_value(query))

    def count_stopped(self) -> dict[str, int]:
        """Answers that a limit of their sample ended, by the limit."""
        records = schema.records
        # Inside of texts quotation marks are escaped, so that this is found nowhere else.
        ended = [records.c.body.contains(f'"finish_reason":"{limit}"', autoescape=True) for limit in SAMPLE_LIMITS]
        columns = [sa.func.sum(sa.case((one, 1), else_=0)) for one in ended]
        counts = self.read_rows(sa.select(*columns).where(records.c.run == self.run, records.c.ok == 1))[0]
        return {limit: int(count) for limit, count in zip(SAMPLE_LIMITS, counts, strict=True) if count}

    def records(
        self, *, after: int = -1, positions: Sequence[int] | None = None
    ) -> Iterator[tuple[int, GenerationRecord]]:
        """(position, record) of every sample with at least one stored call, in dataset order."""
        position = schema.records.c.position
        return self._records(after, *([] if positions is None else [position.in_(positions)]))

    def _records(self, after: int, *conditions: sa.ColumnElement[bool]) -> Iterator[tuple[int, GenerationRecord]]:
        """The conditions must say the same of every attempt of a sample."""
        records, samples, items = schema.records, schema.samples, schema.items
        query = (
            sa.select(records.c.position, records.c.attempt, records.c.body, samples.c.item_id, items.c.content)
            .add_columns(records.c.cost_usd)
            .join(samples, (samples.c.run == records.c.run) & (samples.c.position == records.c.position))
            .join(items, items.c.fingerprint == samples.c.fingerprint)
            .where(records.c.run == self.run, *conditions)
        )
        rows = self._paged(query, records.c.position, after, then=records.c.attempt)
        for position, of_sample in itertools.groupby(rows, key=itemgetter(0)):
            yield position, whole_record([self._read_call(*row) for _, *row in of_sample])

    def _read_call(
        self, attempt: int, body: str, item_id: str, content: str, cost_usd: float | None
    ) -> GenerationRecord:
        try:
            read = self.frame.read(body, item_id, decode(content), attempt)
            read.metrics["cost_usd"] = cost_usd
            return read
        except (ValueError, msgspec.MsgspecError) as error:
            raise StorageError(
                f"the record of {item_id!r} is damaged ({error}); `themis store repair` salvages what can be read into a new file"
            ) from error

    def record(self, item_id: str) -> tuple[int, GenerationRecord] | None:
        position = self.position(item_id)
        return None if position is None else next(self.records(positions=[position]), None)

    def key_of(self, item_id: str) -> StoredKey | None:
        """The key of a sample's first attempt."""
        records, samples = schema.records, schema.samples
        query = (
            sa.select(records.c.key, records.c.body, samples.c.fingerprint)
            .join(samples, (samples.c.run == records.c.run) & (samples.c.position == records.c.position))
            .where(records.c.run == self.run, samples.c.item_id == item_id)
            .order_by(records.c.attempt)
        )
        found = [
            StoredKey(row.key, decode(row.body)["prompt"], row.fingerprint) for row in self.read_rows(query.limit(1))
        ]
        return found[0] if found else None

    def call(self, position: int, attempt: int) -> GenerationRecord | None:
        """One stored call."""
        for _, record in self.records(positions=[position]):
            return next((one for one in record.attempts if one.task.metadata.get("attempts", 0) == attempt), None)
        return None

    def find_problems(self) -> tuple[list[str], list[str]]:
        """What of the run does not fit together, and what is worth knowing of it, a sentence each."""
        warnings = []
        samples, (good, failed) = self.count_samples(), self.count_records()
        if not self.has_dataset and self.kind == "samples":
            warnings.append("the dataset was not stored completely; resume the run")
        if good + failed < samples:
            warnings.append(f"{samples - good - failed} samples have no record yet")
        if failed:
            warnings.append(f"{failed} samples failed; resume to try them again")
        if self._row.manifest_hash is None:
            warnings.append("the run has no reproducibility manifest")
        errors = self._broken_rows()
        if self.has_dataset and samples != self._row.total:
            errors.insert(0, f"{self._row.total} samples were planned but {samples} are stored")
        return errors, warnings

    def _broken_rows(self) -> list[str]:
        """What of the run's rows cannot be read."""
        problems: list[str] = []
        samples, items, records = schema.samples, schema.items, schema.records
        lost = sa.select(sa.func.count()).where(
            samples.c.run == self.run, ~sa.exists().where(items.c.fingerprint == samples.c.fingerprint)
        )
        if count := self.read_value(lost):
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
        judged = sa.select(sa.literal(1)).where(
            scores.c.evaluation == evaluation, scores.c.position == records.c.position
        )
        is_unjudged = ~judged.exists() | judged.where(scores.c.outcome == FAILED).exists()
        return (pair for pair in self._records(-1, is_unjudged) if pair[1].error is None)

    def evaluations(
        self, evaluation: int, *, after: int = -1, until: int | None = None, only_failed: bool = False
    ) -> Iterator[tuple[int, EvaluationRecord]]:
        """(position, evaluation record) of judged samples, in dataset order; or just what failed of them."""
        scores, samples = schema.scores, schema.samples
        query = (
            sa.select(scores.c.position, samples.c.item_id)
            .add_columns(scores.c.metric, scores.c.value, scores.c.outcome, scores.c.details)
            .join(samples, (samples.c.run == self.run) & (samples.c.position == scores.c.position))
            .where(scores.c.evaluation == evaluation)
        )
        if until is not None:
            query = query.where(scores.c.position < until)
        if only_failed:
            query = query.where(scores.c.outcome == FAILED)
        rows = self._paged(query, scores.c.position, after, then=(scores.c.metric, scores.c.ordinal))
        for (position, item_id), of_sample in itertools.groupby(rows, key=itemgetter(0, 1)):
            yield position, evaluation_record(item_id, (row[2:] for row in of_sample))

    def evaluation_of(self, evaluation: int, item_id: str) -> EvaluationRecord | None:
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
        return int(self.read_value(query) or 0)

    def metric_names(self, evaluation: int) -> list[str]:
        scores = schema.scores
        query = sa.select(scores.c.metric).where(scores.c.evaluation == evaluation).distinct().order_by(scores.c.metric)
        return [row.metric for row in self.read_rows(query)]

    def evaluation_config(self, evaluation: int) -> dict[str, Any]:
        """What was written down of a way of judging."""
        table = schema.evaluations
        found: dict[str, Any] = decode(
            self.read_value(sa.select(table.c.config).where(table.c.evaluation == evaluation))
        )
        return found

    def item_scores(self, evaluation: int, *, after: int = -1) -> Iterator[ItemScore]:
        """Every row of every metric, in dataset order: a sample's rows of one metric follow each other."""
        scores = schema.scores
        query = sa.select(scores.c.position, scores.c.metric, scores.c.value, scores.c.outcome).where(
            scores.c.evaluation == evaluation
        )
        then = (scores.c.metric, scores.c.ordinal)
        return map(ItemScore._make, self._paged(query, scores.c.position, after, then=then, size=_LARGE_PAGE))

    def clusters(self) -> dict[int, str]:
        """The cluster of each sample that has one, by position."""
        samples = schema.samples
        query = sa.select(samples.c.position, samples.c.cluster).where(
            samples.c.run == self.run, samples.c.cluster.is_not(None)
        )
        return {row.position: row.cluster for row in self.read_rows(query)}

    def unscored_attempts(self, evaluation: int) -> Iterator[tuple[int, str, int]]:
        """(position, metric, how many) of answered attempts that a metric could not score, where it has others."""
        scores = schema.scores
        query = sa.select(scores.c.position, scores.c.metric, scores.c.details).where(
            scores.c.evaluation == evaluation, scores.c.details.contains(f'"{UNSCORED_ATTEMPTS}":')
        )
        for position, metric, details in self._paged(query, scores.c.position, -1):
            yield position, metric, len(decode(details).get("metadata", {}).get(UNSCORED_ATTEMPTS, ()))

    def values(self, evaluation: int, metric: str) -> Iterator[ScoreValue]:
        """Every score of a metric that has a value, in dataset order."""
        scores, samples = schema.scores, schema.samples
        query = (
            sa.select(scores.c.position, samples.c.item_id, samples.c.cluster, scores.c.value)
            .join(samples, (samples.c.run == self.run) & (samples.c.position == scores.c.position))
            .where(scores.c.evaluation == evaluation, scores.c.metric == metric, scores.c.outcome != FAILED)
        )
        return map(ScoreValue._make, self._paged(query, scores.c.position, -1, then=scores.c.ordinal, size=_LARGE_PAGE))

    def scores_by_position(self, evaluation: int, metric: str) -> Iterator[AnyRow]:
        """(position, value) of every score of a metric that did not fail, in dataset order."""
        scores = schema.scores
        query = sa.select(scores.c.position, scores.c.value).where(
            scores.c.evaluation == evaluation, scores.c.metric == metric, scores.c.outcome != FAILED
        )
        return self._paged(query, scores.c.position, -1, then=scores.c.ordinal, size=_LARGE_PAGE)

    def items_with_scores(self, evaluation: int, metric: str) -> Iterator[AnyRow]:
        """(position, item id, fingerprint, cluster, outcome, value) of every sample in order, with each of its scores of a
        metric; outcome and value are None where it has none that did not fail."""
        samples, scores = schema.samples, schema.scores
        of_metric = (scores.c.evaluation == evaluation) & (scores.c.metric == metric) & (scores.c.outcome != FAILED)
        query = (
            sa.select(samples.c.position, samples.c.item_id, samples.c.fingerprint, samples.c.cluster)
            .add_columns(scores.c.outcome, scores.c.value)
            .outerjoin(scores, of_metric & (scores.c.position == samples.c.position))
            .where(samples.c.run == self.run)
        )
        return self._paged(query, samples.c.position, -1, then=scores.c.ordinal, size=_LARGE_PAGE)

    def score_details(self, evaluation: int, metric: str) -> Iterator[ScoreDetails]:
        """What every score of a metric that has a value says of itself, in dataset order."""
        scores, samples = schema.scores, schema.samples
        query = (
            sa.select(scores.c.position, samples.c.item_id, samples.c.cluster, scores.c.details)
            .join(samples, (samples.c.run == self.run) & (samples.c.position == scores.c.position))
            .where(scores.c.evaluation == evaluation, scores.c.metric == metric, scores.c.outcome != FAILED)
        )
        rows = self._paged(query, scores.c.position, -1, then=scores.c.ordinal, size=_LARGE_PAGE)
        return (
            ScoreDetails(position, item_id, cluster, {} if told is None else decode(told).get("details", {}))
            for position, item_id, cluster, told in rows
        )

    def outcomes(self, evaluation: int) -> dict[str, dict[str, int]]:
        """How many scores of each outcome every metric has."""
        scores = schema.scores
        query = (
            sa.select(scores.c.metric, scores.c.outcome, sa.func.count().label("n"))
            .where(scores.c.evaluation == evaluation)
            .group_by(scores.c.metric, scores.c.outcome)
        )
        counted: dict[str, dict[str, int]] = {}
        for row in self.read_rows(query):
            counted.setdefault(row.metric, {})[row.outcome] = int(row.n)
        return counted

    def position_before_last(self, count: int) -> int:
        """The position after which the last so many records come."""
        records = schema.records
        query = (
            sa.select(records.c.position)
            .where(records.c.run == self.run)
            .group_by(records.c.position)
            .order_by(records.c.position.desc())
        )
        found = self.read_value(query.offset(count).limit(1))
        return -1 if found is None else int(found)

    # --- ways of judging ---------------------------------------------------------------------------------------------

    def list_evaluations(self) -> list[StoredEvaluation]:
        """Every way in which the run was judged, the oldest first."""
        table = schema.evaluations
        rows = self.read_rows(sa.select(table).where(table.c.run == self.run).order_by(table.c.evaluation))
        return [
            StoredEvaluation(
                row.evaluation, row.fingerprint, _evaluation_name(config), config, row.evaluation == self.evaluation
            )
            for row in rows
            for config in (decode(row.config),)
        ]

    def find_evaluation(self, name: str) -> StoredEvaluation:
        """The latest evaluation of a name, or with the number that the name is."""
        stored = self.list_evaluations()
        for one in reversed(stored):
            if name in (one.name, str(one.evaluation)):
                return one
        known = [one.name for one in stored]
        raise ConfigurationError(
            f"run {self._row.run_id!r} was not judged as {name!r}{nearest(name, known)}; "
            f"there is {', '.join(known) or 'nothing'}"
        )

    # --- conversations and files -------------------------------------------------------------------------------------

    def turns(self, *, after: int = -1, test_id: str | None = None) -> Iterator[Turn]:
        """The exchanges of a memory run in order, a page at a time."""
        turns = schema.turns
        query = sa.select(turns.c.seq, turns.c.kind, turns.c.test_id, turns.c.body).where(turns.c.run == self.run)
        if test_id is not None:
            query = query.where(turns.c.test_id == test_id)
        return (Turn(*row) for row in self._paged(query, turns.c.seq, after))

    def read_turns(
        self,
        *,
        after: int = -1,
        limit: int = 200,
        kinds: Collection[str] | None = None,
        test_ids: Collection[str] | None = None,
        last: bool = False,
    ) -> list[Turn]:
        """Some of the exchanges, in order: the first ones after a number, or the `last` ones."""
        turns = schema.turns
        query = sa.select(turns.c.seq, turns.c.kind, turns.c.test_id, turns.c.body)
        query = query.where(turns.c.run == self.run, turns.c.seq > after)
        if kinds is not None:
            query = query.where(turns.c.kind.in_(list(kinds)))
        if test_ids is not None:
            query = query.where(turns.c.test_id.in_([test_id for test_id in test_ids if is_storable(test_id)]))
        found = [
            Turn(*row)
            for row in self.read_rows(query.order_by(turns.c.seq.desc() if last else turns.c.seq).limit(limit))
        ]
        return found[::-1] if last else found

    def steps(self, position: int, attempt: int) -> list[Step]:
        """The stored steps of an answer that is not whole yet, in their order."""
        table = schema.steps
        query = sa.select(table.c.step, table.c.kind, table.c.body).where(
            table.c.run == self.run, table.c.position == position, table.c.attempt == attempt
        )
        rows = self.read_rows(query.order_by(table.c.step))
        return [Step(position, attempt, row.step, row.kind, **decode(row.body)) for row in rows]

    def started(self) -> set[tuple[int, int]]:
        """(position, attempt) of answers that have steps and are not whole yet."""
        table = schema.steps
        query = sa.select(table.c.position, table.c.attempt).where(table.c.run == self.run).distinct()
        return {(row.position, row.attempt) for row in self.read_rows(query)}

    def attachment(self, digest: str) -> Attachment | None:
        """An image or a file that a row names."""
        table = schema.attachments
        query = sa.select(table.c.digest, table.c.media_type, table.c.content).where(table.c.digest == digest)
        return next((Attachment(row[0], row[1], bytes(row[2])) for row in self.read_rows(query)), None)

    def artifact(self, name: str) -> bytes | None:
        """A file that belongs to the run."""
        table = schema.artifacts
        found = self.read_value(sa.select(table.c.content).where(table.c.run == self.run, table.c.name == name))
        return None if found is None else bytes(found)

    # --- queries -----------------------------------------------------------------------------------------------------

    def _paged(
        self,
        query: AnySelect,
        position: AnyColumn,
        after: int,
        then: AnyColumn | tuple[AnyColumn, ...] = (),
        size: int = _PAGE,
    ) -> Iterator[AnyRow]:
        """Rows in order of position, their first column. A page ends with a position's last row: no sample is cut in two."""
        order = (position, *(then if isinstance(then, tuple) else (then,)))
        query = query.order_by(*order)
        while True:
            rows, is_last = retry_read(
                self.engine, partial(_page, query=query, position=position, after=after, size=size)
            )
            yield from rows
            if is_last:
                return
            after = rows[-1][0]

    def read_value(self, query: AnySelect) -> Any:
        """The first value that a query of the tables gives; None where it gives nothing."""
        return retry_read(self.engine, lambda connection: connection.execute(query).scalar())

    def read_rows(self, query: AnySelect) -> Sequence[AnyRow]:
        return retry_read(self.engine, lambda connection: connection.execute(query).all())


def _page(
    connection: Connection, query: AnySelect, position: AnyColumn, after: int, size: int
) -> tuple[Sequence[AnyRow], bool]:
    """The rows of the next page, and whether it is the last."""
    rows = connection.execute(query.where(position > after).limit(size)).all()
    if len(rows) < size:
        return rows, True
    last = rows[-1][0]
    whole = [row for row in rows if row[0] != last]
    # A sample with more rows than a page is read alone.
    return whole or connection.execute(query.where(position == last)).all(), False


def _evaluation_name(config: Mapping[str, object]) -> str:
    return str(config.get("name") or (f"judge {config['judge']}" if config.get("judge") else "as run"))


# --- a run's row ------------------------------------------------------------------------------------------------------


def run_columns() -> list[AnyColumn]:
    """What a `RunReader` is made of."""
    runs = schema.runs.c
    return [*metadata_columns(), runs.run, runs.evaluation, runs.planned, runs.identity]


def find_run(engine: Engine, run_id: str) -> RunReader | None:
    """The run of an id; None where there is none."""
    if not is_storable(run_id):
        return None
    row = retry_read(engine, lambda connection: connection.execute(_select_run(), {"wanted": run_id}).first())
    return None if row is None else RunReader(engine, row)


@cache
def _select_run() -> sa.Select[Any]:
    """Made once: it is long, and asked for several times a run."""
    return sa.select(*run_columns()).where(schema.runs.c.run_id == sa.bindparam("wanted"))


def has_experiment(engine: Engine, name: str) -> bool:
    """Whether any run belongs to an experiment."""
    query = sa.select(schema.runs.c.run).where(schema.runs.c.experiment_id == name).limit(1)
    return retry_read(engine, lambda connection: connection.execute(query).first()) is not None
