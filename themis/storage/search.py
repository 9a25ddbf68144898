"""Searches for lists and pages: runs and samples filtered, sorted and counted, a run at a glance, what is new since a moment.

Every question is answered by the database within bounds; none of them reads a run as a whole into memory. Questions about one
run take its `RunReader`, whose row is read once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from themis.core.codec import decode, decode_as
from themis.core.entities import ModelError
from themis.core.messages import ToolCall
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.storage import schema
from themis.storage.queries import RunReader
from themis.storage.runs import (
    FAILED,
    UNPARSED,
    RunMetadata,
    RunStatus,
    is_storable,
    metadata_columns,
    metadata_of,
    status_column,
)
from themis.storage.schema import AnyColumn, AnyRow, AnySelect

_RUN_ORDERS: dict[str, AnyColumn] = {
    "created": schema.runs.c.created_at,
    "updated": schema.runs.c.updated_at,
    "run_id": schema.runs.c.run_id,
    "status": status_column(),
    "model": schema.runs.c.model,
    "benchmark": sa.func.coalesce(schema.runs.c.benchmark, ""),
    "samples": schema.runs.c.total,
    "cost": schema.runs.c.cost_usd,
}
RUN_SORTS = tuple(_RUN_ORDERS)
SAMPLE_SORTS = ("dataset", "score", "slowest")
# What became of a sample: `right` and `wrong` by a metric, `unparsed` and `failed` whatever the metric.
OUTCOMES = ("all", "right", "wrong", "unparsed", "failed")

# Bodies above this are read one by one, so that a page of samples with megabytes of text never holds them together.
_LARGE_BODY = 64_000
# So many failures are looked into to tell their kinds.
_FAILURES_READ = 2_000
_SLOWEST = 5
_BINS = 20


# --- runs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """Which runs are wanted. `tag` is `name` or `name=value`, `search` a part of the run id, model or benchmark."""

    experiment: str | None = None
    status: str | None = None
    model: str | None = None
    benchmark: str | None = None
    kind: str | None = None
    tag: str | None = None
    search: str | None = None

    def check(self) -> None:
        """Refuses a status that there is not."""
        if self.status is not None:
            _check_known("unknown run status", self.status, [status.value for status in RunStatus])


@dataclass(frozen=True)
class RunPage:
    """Some runs without their configuration, how many fit the filter in all, and how many are answered of those under way."""

    runs: list[RunMetadata]
    total: int
    answered: dict[str, int] = field(default_factory=dict)


def list_runs(engine: Engine, wanted: RunFilter, *, limit: int | None, offset: int) -> list[RunMetadata]:
    """Runs with their configuration, newest first."""
    runs, conditions = schema.runs.c, _run_conditions(wanted, engine.dialect.name)
    if conditions is None:
        return []
    query = sa.select(*metadata_columns()).where(*conditions).order_by(runs.created_at.desc(), runs.run.desc())
    with engine.connect() as connection:
        return [metadata_of(row) for row in connection.execute(query.limit(limit).offset(offset or None))]


def find_runs(
    engine: Engine,
    wanted: RunFilter | None = None,
    *,
    sort: str = "created",
    descending: bool = True,
    limit: int = 100,
    offset: int = 0,
) -> RunPage:
    """A page of runs; unlike `list_runs` it sorts, searches and counts."""
    runs = schema.runs
    conditions = _run_conditions(wanted or RunFilter(), engine.dialect.name)
    if conditions is None:
        return RunPage([], 0)
    _check_known("runs cannot be sorted by", sort, RUN_SORTS)
    order = _RUN_ORDERS[sort]
    query = sa.select(*metadata_columns(with_config=False), runs.c.run.label("number")).where(*conditions)
    ordered = (order.desc(), runs.c.run.desc()) if descending else (order, runs.c.run)
    with engine.connect() as connection:
        total = int(connection.execute(sa.select(sa.func.count()).select_from(runs).where(*conditions)).scalar_one())
        rows = connection.execute(query.order_by(*ordered).limit(limit).offset(offset)).all()
        under_way = {row.number: row.run_id for row in rows if row.status == RunStatus.IN_PROGRESS}
        answered = {
            run_id: int(connection.execute(_answers_query(number)).scalar_one()) for number, run_id in under_way.items()
        }
    return RunPage([metadata_of(row[:-1]) for row in rows], total, answered)


def store_version(engine: Engine) -> tuple[int, float | None]:
    """Changes whenever a run is added, removed or written to; costs a look into an index."""
    runs = schema.runs
    with engine.connect() as connection:
        row = connection.execute(sa.select(sa.func.count(runs.c.updated_at), sa.func.max(runs.c.updated_at))).one()
    return int(row[0]), row[1]


def changed_runs(engine: Engine, since: float, *, limit: int = 200) -> list[RunMetadata]:
    """Runs written to after a moment, the earliest first."""
    changed = schema.runs.c.updated_at
    query = sa.select(*metadata_columns(with_config=False)).where(changed > since).order_by(changed).limit(limit)
    with engine.connect() as connection:
        return [metadata_of(row) for row in connection.execute(query)]


def why_failed(reader: RunReader) -> str | None:
    """What a failed run says of it, or else the words of its first failure; None for other runs."""
    run = reader.metadata
    if run.status is not RunStatus.FAILED:
        return run.error_message
    first = next(reader.failed_records(), None) if run.error_message is None else None
    return run.error_message if first is None else f"{first[0]}: {first[1]}"


def count_answers(reader: RunReader) -> int:
    """Samples that have a record, good or failed."""
    return int(reader.read_value(_answers_query(reader.run)))


def _answers_query(run: int) -> AnySelect:
    records = schema.records
    return sa.select(sa.func.count()).where(records.c.run == run, records.c.attempt == 0)


def _run_conditions(wanted: RunFilter, dialect: str) -> list[sa.ColumnElement[bool]] | None:
    """The filter in SQL; None if no stored run can fit it."""
    runs = schema.runs
    conditions: list[sa.ColumnElement[bool]] = []
    wanted.check()
    if wanted.status is not None:
        conditions.append(status_column() == wanted.status)
    exact = (
        (runs.c.experiment_id, wanted.experiment),
        (runs.c.model, wanted.model),
        (runs.c.benchmark, wanted.benchmark),
        (runs.c.kind, wanted.kind),
    )
    for column, value in exact:
        if value is not None:
            if not is_storable(value):
                return None
            conditions.append(column == value)
    if wanted.tag is not None:
        name, equals, value = wanted.tag.partition("=")
        text = _escape_json(name) + '":' + (f'"{_escape_json(value)}"' if equals else "")
        conditions.append(runs.c.tags.contains('"' + text, autoescape=True))
    if wanted.search:
        if not is_storable(wanted.search):
            return None
        named = (runs.c.run_id, runs.c.model, runs.c.benchmark)
        conditions.append(sa.or_(*(_contains(column, wanted.search, dialect) for column in named)))
    return conditions


def _check_known(refusal: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise ConfigurationError(f"{refusal} {given!r}{nearest(given, known)}; known: {', '.join(known)}")


# --- samples ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SampleFilter:
    """Which samples are wanted, in which order. `search` looks into ids, prompts, answers and errors, whatever the case."""

    search: str | None = None
    outcome: str = "all"
    metric: str | None = None
    sort: str = "dataset"
    descending: bool = False
    # From which score on an answer is right.
    threshold: float = 0.5


@dataclass(frozen=True, slots=True)
class Score:
    """One metric's verdict on a sample: the mean over attempts, None where it failed."""

    metric: str
    value: float | None
    outcome: str


@dataclass(frozen=True, slots=True)
class SampleLine:
    """One sample as a list shows it; texts are cut to what was asked for."""

    position: int
    item_id: str
    prompt: str | None
    text: str | None
    error: ModelError | None
    attempts: int
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    scores: list[Score]
    # Whether a text was longer than what is here.
    is_cut: bool
    # What an answer may be that has no text.
    tool_calls: list[ToolCall]
    refusal: str | None


@dataclass(frozen=True)
class SamplePage:
    """Some samples, and whether there are more after them. `total` is known where nothing is filtered."""

    samples: list[SampleLine]
    has_more: bool
    total: int | None


class _Excerpt(msgspec.Struct):
    """The part of a record's body that a list shows."""

    prompt: str | None = None
    text: str | None = None
    error: ModelError | None = None
    tool_calls: list[ToolCall] = []
    refusal: str | None = None


def find_samples(
    reader: RunReader,
    wanted: SampleFilter | None = None,
    *,
    limit: int = 50,
    offset: int = 0,
    characters: int = 100_000,
) -> SamplePage:
    """A page of samples with their scores. `characters` bounds each text."""
    wanted = wanted or SampleFilter()
    run, evaluation = reader.run, reader.evaluation
    _check_known("unknown outcome", wanted.outcome, OUTCOMES)
    _check_known("samples cannot be sorted by", wanted.sort, SAMPLE_SORTS)
    everything = not wanted.search and wanted.outcome == "all" and wanted.sort == "dataset"
    # Places in a run have no gaps, so its end is also its length.
    total = reader.next_position() if everything else None
    if total is not None:
        query = _range_query(run, total, wanted.descending, offset)
    elif (filtered := _sample_query(run, evaluation, wanted, reader.engine.dialect.name)) is None:
        return SamplePage([], False, 0)
    else:
        query = filtered.offset(offset)
    found = reader.read_rows(query.limit(limit + 1))
    return SamplePage(_lines(reader, found[:limit], characters), len(found) > limit, total)


def neighbours(reader: RunReader, position: int) -> tuple[str | None, str | None]:
    """Ids of the samples before and after a place in the dataset."""
    samples = schema.samples
    of_run = sa.select(samples.c.item_id).where(samples.c.run == reader.run).limit(1)
    before = of_run.where(samples.c.position < position).order_by(samples.c.position.desc())
    after = of_run.where(samples.c.position > position).order_by(samples.c.position)
    return reader.read_value(before), reader.read_value(after)


def scores_of(reader: RunReader, position: int) -> list[Score]:
    """The current scores of one sample."""
    return _scores(reader, [position]).get(position, [])


def _range_query(run: int, total: int, descending: bool, offset: int) -> AnySelect:
    """Samples from a place on: the database goes there at once instead of counting its way."""
    samples = schema.samples
    query = sa.select(samples.c.position, samples.c.item_id).where(samples.c.run == run)
    if descending:
        return query.where(samples.c.position < total - offset).order_by(samples.c.position.desc())
    return query.where(samples.c.position >= offset).order_by(samples.c.position)


def _sample_query(run: int, evaluation: int | None, wanted: SampleFilter, dialect: str) -> AnySelect | None:
    """Positions and ids in the wanted order; None if no sample can fit."""
    samples, records, scores = schema.samples, schema.records, schema.scores
    judged = -1 if evaluation is None else evaluation
    query = sa.select(samples.c.position, samples.c.item_id).where(samples.c.run == run)
    if wanted.search:
        if not is_storable(wanted.search):
            return None
        named = sa.select(samples.c.position).where(samples.c.run == run)
        named = named.where(_contains(samples.c.item_id, wanted.search, dialect))
        answered = sa.select(records.c.position).where(records.c.run == run)
        answered = answered.where(_contains(records.c.body, _escape_json(wanted.search), dialect))
        # One pass over each table, in its own order; asking sample by sample would cost twice as much.
        query = query.where(samples.c.position.in_(sa.union(named, answered)))
    scored = sa.exists().where(scores.c.evaluation == judged, scores.c.position == samples.c.position)
    if wanted.metric is not None:
        scored = scored.where(scores.c.metric == wanted.metric)
    verdicts = {
        "right": scores.c.value >= wanted.threshold,
        "wrong": scores.c.value < wanted.threshold,
        "unparsed": scores.c.outcome == UNPARSED,
    }
    if wanted.outcome in verdicts:
        query = query.where(scored.where(verdicts[wanted.outcome]))
    elif wanted.outcome == "failed":
        unjudged = sa.select(scores.c.position).where(scores.c.evaluation == judged, scores.c.outcome == FAILED)
        query = query.where(samples.c.position.in_(_unanswered(run)) | samples.c.position.in_(unjudged))
    if wanted.sort == "dataset":
        return query.order_by(samples.c.position.desc() if wanted.descending else samples.c.position)
    if wanted.sort == "slowest":
        calls = records.alias()
        query = query.join(calls, (calls.c.run == run) & (calls.c.position == samples.c.position))
        return query.where(calls.c.attempt == 0).order_by(calls.c.seconds.desc(), samples.c.position)
    value = sa.func.avg(scores.c.value).label("value")
    means = sa.select(scores.c.position, value).where(scores.c.evaluation == judged, scores.c.value.is_not(None))
    if wanted.metric is not None:
        means = means.where(scores.c.metric == wanted.metric)
    by_score = means.group_by(scores.c.position).subquery()
    order = by_score.c.value.desc() if wanted.descending else by_score.c.value
    return query.join(by_score, by_score.c.position == samples.c.position).order_by(order, samples.c.position)


def _unanswered(run: int) -> AnySelect:
    """Positions that only have failed calls."""
    first, good = schema.records.alias(), schema.records.alias()
    answered = sa.exists().where(good.c.run == run, good.c.position == first.c.position, good.c.ok == 1)
    return sa.select(first.c.position).where(first.c.run == run, first.c.attempt == 0, first.c.ok == 0, ~answered)


def _contains(column: sa.ColumnElement[str], text: str, dialect: str) -> sa.ColumnElement[bool]:
    # SQLite's LIKE knows no case as it is; folding the column first would cost three times the search.
    return column.contains(text, autoescape=True) if dialect == "sqlite" else column.icontains(text, autoescape=True)


def _lines(reader: RunReader, found: Sequence[AnyRow], characters: int) -> list[SampleLine]:
    records = schema.records
    positions = [row.position for row in found]
    size = sa.func.length(records.c.body)
    body = sa.case((size <= _LARGE_BODY, records.c.body), else_=None).label("body")
    numbers = (records.c.seconds, records.c.prompt_tokens, records.c.completion_tokens, records.c.cost_usd)
    query = sa.select(records.c.position, records.c.attempt, records.c.ok, body, *numbers).where(
        records.c.run == reader.run, records.c.position.in_(positions)
    )
    calls: dict[int, list[AnyRow]] = {}
    for row in reader.read_rows(query.order_by(records.c.position, records.c.attempt)):
        calls.setdefault(row.position, []).append(row)
    scores = _scores(reader, positions)
    lines = []
    for row in found:
        mine = calls.get(row.position, [])
        chosen = next((call for call in mine if call.ok), mine[0] if mine else None)
        excerpt = _Excerpt() if chosen is None else _read_excerpt(reader, chosen)
        prompt, text = excerpt.prompt, excerpt.text
        lines.append(
            SampleLine(
                position=row.position,
                item_id=row.item_id,
                prompt=prompt and prompt[:characters],
                text=text and text[:characters],
                error=excerpt.error,
                attempts=len(mine),
                seconds=sum(call.seconds for call in mine),
                prompt_tokens=sum(call.prompt_tokens for call in mine),
                completion_tokens=sum(call.completion_tokens for call in mine),
                cost_usd=None if any(call.cost_usd is None for call in mine) else sum(call.cost_usd for call in mine),
                scores=scores.get(row.position, []),
                is_cut=max(len(prompt or ""), len(text or "")) > characters,
                tool_calls=excerpt.tool_calls,
                refusal=excerpt.refusal,
            )
        )
    return lines


def _read_excerpt(reader: RunReader, call: AnyRow) -> _Excerpt:
    body = call.body
    if body is None:
        records = schema.records
        query = sa.select(records.c.body).where(
            records.c.run == reader.run, records.c.position == call.position, records.c.attempt == call.attempt
        )
        body = reader.read_value(query)
    return decode_as(body, _Excerpt)


def _scores(reader: RunReader, positions: Iterable[int]) -> dict[int, list[Score]]:
    """The current scores of some samples; none of a run that is not judged."""
    scores = schema.scores
    worst = sa.func.min(scores.c.outcome)  # "failed" comes before "scored" and "unparsed"
    query = (
        sa.select(
            scores.c.position, scores.c.metric, sa.func.avg(scores.c.value).label("value"), worst.label("outcome")
        )
        .where(scores.c.evaluation == reader.evaluation, scores.c.position.in_(list(positions)))
        .group_by(scores.c.position, scores.c.metric)
        .order_by(scores.c.position, scores.c.metric)
    )
    found: dict[int, list[Score]] = {}
    for row in reader.read_rows(query):
        value = None if row.value is None else float(row.value)
        found.setdefault(row.position, []).append(Score(row.metric, value, row.outcome))
    return found


def _escape_json(text: str) -> str:
    """The text as it stands between the quotes of stored JSON."""
    return msgspec.json.encode(text).decode()[1:-1]


# --- a run at a glance ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FailureKind:
    """Failures of one kind: how many, and the first one's item and message."""

    kind: str
    count: int
    item_id: str
    message: str


@dataclass(frozen=True)
class Histogram:
    """How many scores lie in each of the equal parts between two ends."""

    metric: str
    low: float
    high: float
    counts: list[int]


@dataclass(frozen=True)
class Overview:
    """What the page of a run draws beside its scores. `failures_read` is how many failures were looked into."""

    answered: int
    failed: int
    failures: list[FailureKind]
    failures_read: int
    slowest: list[tuple[str, float]]
    histograms: list[Histogram]


def overview(reader: RunReader) -> Overview:
    """Failures by kind, slowest samples, distribution of scores: one pass over an index each."""
    failures = _failure_kinds(reader)
    return Overview(
        answered=count_answers(reader),
        failed=int(reader.read_value(sa.select(sa.func.count()).select_from(_unanswered(reader.run).subquery()))),
        failures=failures,
        failures_read=sum(one.count for one in failures),
        slowest=_slowest(reader),
        histograms=_histograms(reader),
    )


def _histograms(reader: RunReader) -> list[Histogram]:
    """The current scores of every metric; scores within 0 and 1 are drawn between these."""
    items = _item_values(reader).c
    ends = sa.select(items.metric, sa.func.min(items.value).label("low"), sa.func.max(items.value).label("high"))
    found = []
    for metric, low, high in reader.read_rows(ends.group_by(items.metric)):
        if low >= 0 and high <= 1:
            low, high = 0.0, 1.0
        width = (high - low) / _BINS or 1.0
        place = (items.value - low) / width
        # SQLite cuts where PostgreSQL rounds, and may have been built without `floor`.
        whole = place if reader.engine.dialect.name == "sqlite" else sa.func.floor(place)
        # As a subquery: PostgreSQL takes an expression that is selected and grouped by for two different ones.
        parts = sa.select(sa.cast(whole, sa.Integer).label("part")).where(items.metric == metric).subquery()
        counted = sa.select(parts.c.part, sa.func.count().label("n")).group_by(parts.c.part)
        counts = [0] * _BINS
        for row in reader.read_rows(counted):
            counts[min(max(int(row.part), 0), _BINS - 1)] += int(row.n)
        found.append(Histogram(metric, float(low), float(high), counts))
    return found


def running_means(reader: RunReader) -> dict[str, tuple[float, int]]:
    """Mean over the samples that a run under way has scores of so far, and how many they are, by metric."""
    items = _item_values(reader).c
    query = sa.select(items.metric, sa.func.avg(items.value).label("mean"), sa.func.count().label("n"))
    return {row.metric: (float(row.mean), int(row.n)) for row in reader.read_rows(query.group_by(items.metric))}


def _item_values(reader: RunReader) -> sa.Subquery:
    """One value a sample and metric: where attempts keep their scores, their mean, as in the report."""
    scores = schema.scores
    is_scored = (scores.c.evaluation == reader.evaluation, scores.c.value.is_not(None))
    if reader.frame.attempts == 1:
        return sa.select(scores.c.metric, scores.c.value).where(*is_scored).subquery()
    means = sa.select(scores.c.metric, sa.func.avg(scores.c.value).label("value")).where(*is_scored)
    return means.group_by(scores.c.position, scores.c.metric).subquery()


def _slowest(reader: RunReader) -> list[tuple[str, float]]:
    run, records, samples = reader.run, schema.records, schema.samples
    longest = (
        sa.select(records.c.position, records.c.seconds)
        .where(records.c.run == run, records.c.seconds > 0)
        .order_by(records.c.seconds.desc())
        .limit(_SLOWEST)
        .subquery()
    )
    query = (
        sa.select(samples.c.item_id, longest.c.seconds)
        .join(longest, (samples.c.run == run) & (samples.c.position == longest.c.position))
        .order_by(longest.c.seconds.desc())
    )
    return [(row.item_id, float(row.seconds)) for row in reader.read_rows(query)]


def _failure_kinds(reader: RunReader) -> list[FailureKind]:
    """The most frequent kind first."""
    run, records, samples, scores = reader.run, schema.records, schema.samples, schema.scores
    unanswered = (
        sa.select(samples.c.item_id, records.c.body)
        .join(samples, (samples.c.run == run) & (samples.c.position == records.c.position))
        .where(records.c.run == run, records.c.attempt == 0, records.c.position.in_(_unanswered(run)))
        .limit(_FAILURES_READ)
    )
    kinds: dict[str, list[tuple[str, str]]] = {}
    for row in reader.read_rows(unanswered):
        error = decode_as(row.body, _Excerpt).error
        kind = "no answer" if error is None else f"no answer: {error.kind}"
        kinds.setdefault(kind, []).append((row.item_id, "" if error is None else error.message))
    unjudged = (
        sa.select(samples.c.item_id, scores.c.metric, scores.c.details)
        .join(samples, (samples.c.run == run) & (samples.c.position == scores.c.position))
        .where(scores.c.evaluation == reader.evaluation, scores.c.outcome == FAILED)
        .limit(_FAILURES_READ)
    )
    for score in reader.read_rows(unjudged):
        reasons = decode(score.details).get("failures", []) if score.details else []
        entry = (score.item_id, "; ".join(map(str, reasons)))
        kinds.setdefault(f"no verdict: {score.metric}", []).append(entry)
    found = [FailureKind(kind, len(entries), *entries[0]) for kind, entries in kinds.items()]
    return sorted(found, key=lambda one: -one.count)


# --- what is new ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A finished call that was committed since somebody last looked."""

    position: int
    item_id: str
    attempt: int
    ok: bool
    seconds: float
    created_at: float
    scores: list[Score]


def new_records(reader: RunReader, since: float, *, limit: int = 200) -> list[NewRecord]:
    """Calls of a run committed after a moment, the earliest first. A batch is committed under one moment, as a whole."""
    records, samples = schema.records, schema.samples
    run = reader.run
    newest = (
        sa.select(records.c.position, records.c.attempt, records.c.ok, records.c.seconds, records.c.created_at)
        .where(records.c.run == run, records.c.created_at > since)
        .order_by(records.c.created_at.desc(), records.c.position)
        .limit(limit)
        .subquery()
    )
    query = sa.select(newest, samples.c.item_id).join(
        samples, (samples.c.run == run) & (samples.c.position == newest.c.position)
    )
    rows = reader.read_rows(query.order_by(newest.c.created_at, newest.c.position))
    scores = _scores(reader, {row.position for row in rows})
    return [
        NewRecord(
            position=row.position,
            item_id=row.item_id,
            attempt=row.attempt,
            ok=bool(row.ok),
            seconds=float(row.seconds),
            created_at=float(row.created_at),
            scores=scores.get(row.position, []),
        )
        for row in rows
    ]


def newest(reader: RunReader) -> tuple[float, int]:
    """When a run's last call was committed, and the number of its last turn: where watching begins."""
    records, turns = schema.records, schema.turns
    moment = reader.read_value(sa.select(sa.func.max(records.c.created_at)).where(records.c.run == reader.run))
    seq = reader.read_value(sa.select(sa.func.max(turns.c.seq)).where(turns.c.run == reader.run))
    return float(moment or 0.0), -1 if seq is None else int(seq)
