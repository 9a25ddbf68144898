"""What the page of a memory run shows: the tests on the length of the conversation, a card for each, and the chat."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from themis.memory.questions import Question
from themis.memory.results import StoredResult, points_of, read_results
from themis.memory.spans import effective_span
from themis.memory.tape import EXCHANGES, EventBody, read_body, read_entries
from themis.server.views import Dot, JSONObject
from themis.storage import RunStatus
from themis.storage.queries import RunReader
from themis.storage.runs import Turn

_ROWS_SHOWN = 200
_MOST_TESTS = 500
_MOST_ROWS = 10_000
_COLOURS = 8


@dataclass(frozen=True)
class TestCard:
    """One ended test: how it was judged and why."""

    __test__ = False

    test_id: str
    dataset: str
    score: float | None
    reasons: list[str]
    tokens: int
    span_tokens: int | None
    overran: bool
    in_doubt: bool
    questions: list[Question]
    colour: int


@dataclass(frozen=True)
class TestsView:
    """What is known of a run's tests so far."""

    __test__ = False

    rows: list[GanttRow]
    height: int
    tokens: int
    turns: int
    seconds_each: float | None
    cards: list[TestCard]
    by_distance: list[Dot]
    longest_tokens: int
    colours: dict[str, int]
    # What the tests say of the agent's effective span; None while the run goes on.
    span: str | None


@dataclass(frozen=True)
class ChatView:
    """A page of the conversation; `after` is None where it begins with the first row, `next_after` at the last one."""

    entries: list[JSONObject]
    after: int | None
    next_after: int | None


def gantt_view(reader: RunReader) -> TestsView:
    results = read_results(reader).results
    ended = [result for result in results if result.ended][:_MOST_TESTS]
    spans = {result.test_id: _ended_span(result) for result in ended}
    last = _last_reply(reader)
    spans |= {span.test_id: span for span in _running_spans(reader, spans)}
    colours = _colours(spans.values())
    cards = [_card(result, colours) for result in ended]
    about = reader.metadata.summary.get("memory", {})
    tokens = max([last.tokens_total, *(int(span.ended or span.began) for span in spans.values())])
    turns = int(about.get("turns") or last.turn)
    rows = gantt(list(spans.values())[:_MOST_TESTS], tokens)
    return TestsView(
        rows=rows,
        height=len(rows) * 22 + 8,
        tokens=tokens,
        turns=turns,
        seconds_each=about["agent_seconds"] / turns if turns and "agent_seconds" in about else None,
        cards=cards,
        by_distance=_by_distance(cards),
        longest_tokens=max((one.distance_tokens for card in cards for one in card.questions), default=0),
        colours=colours,
        span=_span_sentence(reader, results),
    )


def _ended_span(result: StoredResult) -> TestSpan:
    return TestSpan(
        test_id=result.test_id,
        dataset=result.dataset_name,
        began=result.began_tokens,
        ended=result.ended_tokens,
        score=result.score,
        says=[said.tokens_before for said in result.messages if not said.question],
        asks=[said.tokens_before for said in result.messages if said.question],
    )


def _card(result: StoredResult, colours: dict[str, int]) -> TestCard:
    return TestCard(
        test_id=result.test_id,
        dataset=result.dataset_name,
        score=result.score,
        reasons=result.reasoning,
        tokens=result.tokens,
        span_tokens=result.span_tokens or None,
        overran=result.overran,
        in_doubt=result.in_doubt,
        questions=result.questions,
        colour=colours[result.test_id],
    )


def _colours(spans: Iterable[TestSpan]) -> dict[str, int]:
    """A colour for each kind of test, by test id."""
    spans = list(spans)
    by_kind = {name: number % _COLOURS for number, name in enumerate(sorted({span.dataset for span in spans}))}
    return {span.test_id: by_kind[span.dataset] for span in spans}


def _last_reply(reader: RunReader) -> EventBody:
    """Where the conversation stands."""
    found = reader.read_turns(kinds=("reply",), limit=1, last=True)
    return read_body(found[0]) if found else EventBody()


def _running_spans(reader: RunReader, ended: Container[str]) -> list[TestSpan]:
    begun = [row for row in reader.read_turns(kinds=("begin",), limit=2 * _MOST_TESTS) if row.test_id]
    begins = {row.test_id: read_body(row).tokens_total for row in begun if row.test_id and row.test_id not in ended}
    says: dict[str, list[int]] = {}
    asks: dict[str, list[int]] = {}
    sent: dict[str, str] = {}
    rows = reader.read_turns(kinds=("say", "ask", "reply"), test_ids=begins, limit=_MOST_ROWS) if begins else ()
    for row in rows:
        test_id = row.test_id or ""
        if row.kind != "reply":
            sent[test_id] = row.kind
        elif test_id in sent:
            reply = read_body(row)
            (asks if sent.pop(test_id) == "ask" else says).setdefault(test_id, []).append(
                reply.tokens_total - reply.tokens
            )
    return [
        TestSpan(
            test_id=test_id,
            # Tests are called after their kind: `Colours - 0`.
            dataset=test_id.rpartition(" - ")[0] or test_id,
            began=began,
            says=says.get(test_id, ()),
            asks=asks.get(test_id, ()),
        )
        for test_id, began in begins.items()
    ]


def _by_distance(cards: list[TestCard]) -> list[Dot]:
    """Each question's score against how far back the oldest thing lies that its answer needs; in percent of both axes."""
    asked = [(card, one) for card in cards for one in card.questions if one.needles and one.score is not None]
    longest = max((question.distance_tokens for _, question in asked), default=0) or 1
    return [
        Dot(
            x=round(question.distance_tokens / longest * 100, 2),
            y=round(100 - question.score * 100, 2),
            radius=5,
            title=f"{card.test_id}: {question.distance_tokens:,} tokens back, score {question.score:.2f}",
            side="second" if question.score >= 0.5 else "first",
        )
        for card, question in asked
        if question.score is not None
    ]


def _span_sentence(reader: RunReader, results: Sequence[StoredResult]) -> str | None:
    """What the tests of an ended run say of the agent's effective span."""
    if reader.metadata.status is RunStatus.IN_PROGRESS:
        return None
    span = effective_span(points_of(results))
    return None if span is None else span.sentence


def chat_view(reader: RunReader, *, after: int | None = None, test_id: str | None = None) -> ChatView:
    """The rows after a number; from the start where none is given, but the last ones of a run that is under way."""
    test_ids = None if test_id is None else [test_id]
    is_followed = after is None and reader.metadata.status is RunStatus.IN_PROGRESS
    limit = _ROWS_SHOWN + 1
    rows = reader.read_turns(after=-1 if after is None else after, limit=limit, test_ids=test_ids, last=is_followed)
    is_cut = len(rows) > _ROWS_SHOWN
    if is_followed:
        rows = rows[-_ROWS_SHOWN:]
        first = next((number for number, row in enumerate(rows) if row.kind != "reply"), 0) if is_cut else 0
        rows, after = rows[first:], rows[first].seq - 1 if is_cut else None
    elif is_cut:
        rows = _until_reply(rows[:_ROWS_SHOWN])
    shown = sorted(read_entries(rows), key=lambda entry: entry["seq"])
    begins_with_first = after is None or after < 0
    return ChatView(shown, None if begins_with_first else after, rows[-1].seq if is_cut and not is_followed else None)


def _until_reply(rows: list[Turn]) -> list[Turn]:
    """A message at the end of a page waits for its reply on the next one."""
    while len(rows) > 1 and rows[-1].kind in EXCHANGES:
        rows = rows[:-1]
    return rows


# --- the chart of a conversation ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TestSpan:
    """What a test took of a conversation, in tokens; `ended` is None while it is under way, `score` if it has none."""

    __test__ = False

    test_id: str
    dataset: str
    began: float
    ended: float | None = None
    score: float | None = None
    says: Sequence[float] = ()
    asks: Sequence[float] = ()

    @property
    def state(self) -> str:
        if self.ended is None:
            return "open"
        return "failed" if self.score is None else "good" if self.score >= 0.5 else "bad"


@dataclass(frozen=True)
class GanttRow:
    """A test's stretch of the conversation, in percent of its tokens, with the places where it spoke."""

    span: TestSpan
    x: float
    width: float
    y: int
    says: list[float]
    asks: list[float]
    title: str


def gantt(spans: Iterable[TestSpan], total_tokens: float) -> list[GanttRow]:
    """One row a test, in the order in which they began."""
    total = max(total_tokens, 1.0)

    def places(tokens: Sequence[float]) -> list[float]:
        return [round(min(one / total * 100, 100.0), 2) for one in tokens]

    rows = []
    for number, span in enumerate(sorted(spans, key=lambda one: (one.began, one.test_id))):
        end = total if span.ended is None else span.ended
        shown = "under way" if span.ended is None else "no verdict" if span.score is None else f"score {span.score:.2f}"
        rows.append(
            GanttRow(
                span=span,
                x=round(span.began / total * 100, 2),
                width=round(max((end - span.began) / total * 100, 0.4), 2),
                y=number * 22,
                says=places(span.says),
                asks=places(span.asks),
                title=f"{span.test_id}: tokens {span.began:,.0f} to {end:,.0f}, {shown}",
            )
        )
    return rows
