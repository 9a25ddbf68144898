"""What the page of a memory run shows: the conversation as a chat, the tests on its length, a card for each test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from themis.memory.tape import EXCHANGES, read_body
from themis.memory.transcript import entries
from themis.server.charts import Dot, GanttRow, TestSpan, gantt
from themis.storage import ExperimentStorage, RunMetadata
from themis.storage.browsing import read_turns
from themis.storage.records import Turn

__all__ = ["MemoryView", "TestCard", "memory_view"]

_ROWS_SHOWN = 200
_MOST_TESTS = 500
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
    questions: list[dict[str, Any]]
    colour: int


@dataclass(frozen=True)
class MemoryView:
    """The conversational part of a run's page."""

    rows: list[GanttRow]
    height: int
    total_tokens: int
    cards: list[TestCard]
    by_distance: list[Dot]
    chat: list[dict[str, Any]]
    colours: dict[str, int]
    after: int
    next_after: int | None


def memory_view(
    store: ExperimentStorage, run: RunMetadata, *, after: int = -1, test_id: str | None = None
) -> MemoryView:
    cards, spans = [], {}
    for record in _ended(store, run.run_id):
        memory = record.metrics.get("memory", {})
        item_id = str(record.task.metadata.get("dataset_id"))
        said = memory.get("said", [])
        card = TestCard(
            test_id=item_id,
            dataset=str(memory.get("dataset", "")),
            score=None,
            reasons=list(memory.get("reasons", [])),
            tokens=int(memory.get("tokens", 0)),
            span_tokens=memory.get("span_tokens"),
            overran=bool(memory.get("overran")),
            in_doubt=bool(memory.get("in_doubt")),
            questions=[one for one in said if one.get("question")],
            colour=0,
        )
        cards.append(card)
        spans[item_id] = TestSpan(
            test_id=item_id,
            dataset=card.dataset,
            began=memory.get("began", {}).get("tokens", 0),
            ended=memory.get("ended", {}).get("tokens", 0),
            says=[one["tokens_before"] for one in said if not one.get("question")],
            asks=[one["tokens_before"] for one in said if one.get("question")],
        )
    scores = _scores(store, run.run_id)
    under_way = _under_way(store, run.run_id, spans)
    spans |= {one.test_id: one for one in under_way}
    scored = [TestSpan(**{**vars(span), "score": scores.get(span.test_id)}) for span in spans.values()]
    names = sorted({span.dataset for span in scored})
    kind_colour = {name: number % _COLOURS for number, name in enumerate(names)}
    colours = {span.test_id: kind_colour[span.dataset] for span in scored}
    cards = [
        TestCard(**{**vars(card), "score": scores.get(card.test_id), "colour": colours[card.test_id]}) for card in cards
    ]
    chat, next_after = _chat(store, run.run_id, after, test_id)
    total = max([_total_tokens(run), *(span.ended or span.began for span in scored)], default=0)
    rows = gantt(scored[:_MOST_TESTS], total)
    return MemoryView(
        rows=rows,
        height=len(rows) * 22 + 8,
        total_tokens=int(total),
        cards=cards,
        by_distance=_by_distance(cards),
        chat=chat,
        colours=colours,
        after=after,
        next_after=next_after,
    )


def _ended(store: ExperimentStorage, run_id: str) -> Iterable[Any]:
    for number, (_, record) in enumerate(store.reader(run_id).records()):
        if number >= _MOST_TESTS:
            return
        yield record


def _scores(store: ExperimentStorage, run_id: str) -> dict[str, float]:
    evaluation = store.current_evaluation(run_id)
    if evaluation is None:
        return {}
    return {item_id: value for item_id, _, value in store.reader(run_id).values(evaluation, "memory")}


def _under_way(store: ExperimentStorage, run_id: str, ended: dict[str, TestSpan]) -> list[TestSpan]:
    begun = {}
    for row in read_turns(store, run_id, kinds=("begin",), limit=2 * _MOST_TESTS):
        if row.test_id and row.test_id not in ended:
            begun[row.test_id] = TestSpan(
                test_id=row.test_id, dataset=row.test_id.rsplit(" ", 1)[0], began=read_body(row).tokens_total
            )
    return list(begun.values())


def _total_tokens(run: RunMetadata) -> int:
    return int(run.summary.get("memory", {}).get("conversation_tokens") or 0)


def _by_distance(cards: list[TestCard]) -> list[Dot]:
    """Score against the length of a test, which is what its memory had to bridge."""
    longest = max((card.tokens for card in cards), default=0) or 1
    found = []
    for card in cards:
        if card.score is None:
            continue
        side = "second" if card.score >= 0.5 else "first"
        x = round(card.tokens / longest * 92 + 4, 2)
        title = f"{card.test_id}: {card.tokens:,} tokens, score {card.score:.2f}"
        found.append(Dot(x, round(92 - card.score * 84, 2), 2.4, title, side))
    return found


def _chat(
    store: ExperimentStorage, run_id: str, after: int, test_id: str | None
) -> tuple[list[dict[str, Any]], int | None]:
    """Rows become entries; a message at the end of the page waits for its reply on the next one."""
    rows = read_turns(store, run_id, after=after, limit=_ROWS_SHOWN + 1, test_id=test_id)
    more = len(rows) > _ROWS_SHOWN
    rows = rows[:_ROWS_SHOWN]
    if more:
        rows = _until_reply(rows)
    shown = list(entries(rows))
    return sorted(shown, key=lambda entry: entry["seq"]), rows[-1].seq if more and rows else None


def _until_reply(rows: list[Turn]) -> list[Turn]:
    while len(rows) > 1 and rows[-1].kind in EXCHANGES:
        rows = rows[:-1]
    return rows
