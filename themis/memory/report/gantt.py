"""The Gantt chart of a conversation: a row a test, its messages and waits; filler and time jumps behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from markupsafe import Markup

from themis.memory.report.drawing import at, figure, label, round_ticks, short_duration, short_tokens
from themis.memory.timeline import Lane, Stretch, Timeline

__all__ = ["draw_gantt", "draw_place"]

_ROW = 25
_HEAD = 22
_BAR = 9
# Room at both sides in percent, so that what lies at the very end is seen.
_MARGIN = 0.4
_HOURS = (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 720)


class _Scale:
    """Places along one axis in percent of the width."""

    def __init__(self, timeline: Timeline, along: str) -> None:
        self.along = along
        self._tokens = max(1, timeline.tokens)
        self._start = timeline.start
        end = timeline.end or timeline.start
        self.seconds = 1.0 if end is None or self._start is None else max(1.0, (end - self._start).total_seconds())

    def share(self, tokens: int, moment: datetime) -> float:
        if self.along == "tokens":
            return tokens / self._tokens
        return 0.0 if self._start is None else (moment - self._start).total_seconds() / self.seconds

    def place(self, tokens: int, moment: datetime) -> float:
        return _MARGIN + self.share(tokens, moment) * (100 - 2 * _MARGIN)

    def ends(self, stretch: Stretch) -> tuple[float, float]:
        return (
            self.place(stretch.tokens[0], stretch.time[0]),
            self.place(stretch.tokens[1], stretch.time[1]),
        )

    def ticks(self) -> Iterator[tuple[float, str]]:
        if self.along == "tokens":
            for tick in round_ticks(self._tokens):
                yield _MARGIN + tick / self._tokens * (100 - 2 * _MARGIN), short_tokens(tick)
            return
        hours = self.seconds / 3_600
        step = next((step for step in _HOURS if hours / step <= 6), _HOURS[-1])
        for number in range(int(hours / step) + 1):
            text = "start" if number == 0 else "+" + short_duration(timedelta(hours=number * step))
            yield _MARGIN + number * step / hours * (100 - 2 * _MARGIN), text


def draw_gantt(
    timeline: Timeline,
    along: str = "tokens",
    *,
    scores: Mapping[str, float | None] | None = None,
    links: Mapping[str, str] | None = None,
) -> Markup:
    """The chart along `tokens` or along virtual `time`. `links` leads from a test's name to its place on the page."""
    scale, height = _Scale(timeline, along), _HEAD + _ROW * len(timeline.lanes)
    parts = list(_behind(timeline, scale, height))
    parts += _runs("filler", timeline.fillers, scale, 4, _HEAD - 10)
    for row, lane in enumerate(timeline.lanes):
        score = (scores or {}).get(lane.test_id, lane.score)
        parts.append(_row(lane, _HEAD + row * _ROW, scale, score, (links or {}).get(lane.test_id)))
    axis = height + 4
    parts.append(Markup('<line class="axis" x1="0" x2="100%" y1="{}" y2="{}"/>').format(axis, axis))
    for x, text in scale.ticks():
        parts.append(Markup('<line class="axis" x1="{0}%" x2="{0}%" y1="{1}" y2="{2}"/>').format(at(x), axis, axis + 5))
        anchor = "start" if x < 3 else "end" if x > 95 else "middle"
        parts.append(label(f"{at(x)}%", axis + 18, text, anchor=anchor, kind="soft"))
    shown = "tokens of the conversation" if along == "tokens" else "virtual time"
    return figure("100%", axis + 26, f"The conversation along {shown}", parts, fluid=True)


def draw_place(timeline: Timeline, lane: Lane) -> Markup:
    """Where one test lies in the whole conversation, as a strip."""
    scale = _Scale(timeline, "tokens")
    parts = [Markup('<rect class="ground" x="0" y="0" width="100%" height="12" rx="3"/>'), *_bar(lane, 2, scale)]
    return figure("100%", 12, f"Place of {lane.test_id} in the conversation", parts, fluid=True)


def _behind(timeline: Timeline, scale: _Scale, height: int) -> Iterator[Markup]:
    """Time jumps: along tokens they have no width, along time they are nearly all there is."""
    for jump in timeline.jumps:
        left, right = scale.place(jump.tokens, jump.start), scale.place(jump.tokens, jump.end)
        told = f"time jump of {short_duration(jump.end - jump.start)}"
        if scale.along == "tokens":
            shape = Markup('<line class="jump" x1="{0}%" x2="{0}%" y1="0" y2="{1}">').format(at(left), height)
            yield shape + Markup("<title>{}</title></line>").format(told)
        else:
            shape = Markup('<rect class="jumped" x="{}%" width="{}%" y="0" height="{}">').format(
                at(left), at(right - left), height
            )
            yield shape + Markup("<title>{}</title></rect>").format(told)


def _row(lane: Lane, y: int, scale: _Scale, score: float | None, link: str | None) -> Markup:
    shown = "no verdict" if score is None else f"{score:.2f}"
    name = label(0, y + 10, lane.test_id, anchor="start", kind="name")
    if link:
        name = Markup('<a href="#{}">{}</a>').format(link, name)
    number = label("100%", y + 10, shown, anchor="end", kind=_grade(score))
    return Markup("<g>{}{}{}</g>").format(name, number, Markup("").join(_bar(lane, y + 14, scale)))


def _bar(lane: Lane, y: int, scale: _Scale) -> Iterator[Markup]:
    last = (lane.stretches[-1].tokens[1], lane.stretches[-1].time[1]) if lane.stretches else lane.began
    start, end = scale.place(*lane.began), scale.place(*(lane.ended or last))
    yield Markup('<rect class="life" x="{}%" width="{}%" y="{}" height="3"/>').format(at(start), at(end - start), y + 3)
    # Questions last: they are what one looks for, and lie close to what follows them.
    for stretch in sorted(lane.stretches, key=lambda stretch: stretch.kind == "ask"):
        if stretch.kind == "wait":
            continue
        left, right = scale.ends(stretch)
        yield Markup('<rect class="{}" x="{}%" width="{}%" y="{}" height="{}"><title>{} at {} tokens</title></rect>').format(
            stretch.kind, at(left), at(max(0.0, right - left)), y, _BAR, _KINDS.get(stretch.kind, stretch.kind),
            f"{stretch.tokens[0]:,}",
        )  # fmt: skip


_KINDS = {"say": "statement", "ask": "question", "forget": "asked to forget", "fill": "filler", "intro": "introduction"}


def _runs(kind: str, stretches: Sequence[Stretch], scale: _Scale, y: int, height: int) -> Iterator[Markup]:
    """Stretches that touch are drawn as one, so that a long conversation is a short picture."""

    def draw(left: float, right: float, tokens: int) -> Markup:
        return Markup('<rect class="{}" x="{}%" width="{}%" y="{}" height="{}"><title>filler, {} tokens</title></rect>').format(
            kind, at(left), at(right - left), y, height, f"{tokens:,}"
        )  # fmt: skip

    left = right = -1.0
    tokens = 0
    for stretch in stretches:
        start, end = scale.ends(stretch)
        if start > right + 0.05:
            if right >= 0:
                yield draw(left, right, tokens)
            left, tokens = start, 0
        right = end
        tokens += stretch.tokens[1] - stretch.tokens[0]
    if right >= 0:
        yield draw(left, right, tokens)


def _grade(score: float | None) -> str:
    return "soft" if score is None else "good" if score >= 0.75 else "bad" if score < 0.25 else "middling"
