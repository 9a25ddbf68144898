"""The figures of memory reports as SVG: the conversation as a Gantt chart, scores against distance and span, datasets, a radar.

All text goes through `Markup.format`, which escapes it. Colours are classes that the page's style sheet knows for light and
dark; an agent's colour is its place in the list.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from themis import comparison
from themis.core.files import atomic_write
from themis.exceptions import DependencyError
from themis.memory import report
from themis.memory.results import DatasetScore, ScoredTest, interval_of_mean
from themis.memory.spans import EffectiveSpan, Point, group_by_distance
from themis.memory.timeline import Segment, Timeline, TimelineTest

COLOURS = 8

_WIDTH, _HEIGHT = 480, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 12, 12, 38

# Of the Gantt chart; the margin is room at both sides in percent, so that what lies at the very end is seen.
_ROW = 25
_HEAD = 22
_BAR = 9
# A row is a name above a bar.
_BAR_TOP = 14
_MARGIN = 0.4
_HOURS = (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 720)

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
_FILE_WIDTH = 960
_BROWSER_SECONDS = 60


# --- scores against distance and span ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class DistanceSeries:
    """One agent's questions, and what they say of its span."""

    name: str
    points: Sequence[Point]
    span: EffectiveSpan | None = None


def draw_distances(series: Sequence[DistanceSeries]) -> Markup:
    """Each question as a dot, groups of them as means with intervals, and the fading curve; overlaid for several agents."""
    longest = max((point.distance_tokens for one in series for point in one.points), default=0)
    ticks = round_ticks(longest)
    high = max(longest, ticks[-1], 1)
    parts = list(
        _frame([(tick / high, short_tokens(tick)) for tick in ticks], "tokens between what is needed and the answer")
    )
    alone = len(series) == 1
    for number, one in enumerate(series):
        parts.append(Markup('<g class="{}"><title>{}</title>{}</g>').format(
            colour(number), one.name, Markup("").join(_distance_parts(one, high, number, len(series), alone))
        ))  # fmt: skip
    return figure(_WIDTH, _HEIGHT, "Score against distance", parts)


def _distance_parts(one: DistanceSeries, high: float, number: int, of: int, alone: bool) -> Iterator[Markup]:
    span = one.span
    if alone and span is not None and span.interval:
        start, end = _x(span.low / high), _x(1.0 if span.high is None else span.high / high)
        yield Markup('<rect class="band" x="{}" width="{}" y="{}" height="{}"><title>{}</title></rect>').format(
            at(start), at(end - start), at(_y(1)), at(_y(0) - _y(1)), f"95 % interval of the span: {span.interval}"
        )
    if span is not None and span.near_score is not None:
        line = " ".join(_point(distance / high, span.near_score * left) for distance, left in span.curve)
        yield Markup('<polyline class="curve" points="{}"/>').format(line)
    if alone:
        for point in one.points:
            yield Markup('<circle class="dot faint" cx="{}" cy="{}" r="4"/>').format(
                at(_x(point.distance_tokens / high)), at(_y(point.score))
            )
    aside = _aside(number, of)
    for group in group_by_distance(one.points):
        low, up = interval_of_mean(
            [ScoredTest(point.score, (point.conversation, point.test_id)) for point in group.points]
        )
        mean = group.mean
        x = _x(group.distance_tokens / high) + aside
        yield _whisker(x, low, up)
        title = f"{one.name}: {len(group.points)} questions at {group.low:,} to {group.high:,} tokens, mean {mean:.3f}"
        yield _dot(x, _y(mean), title)
    if alone and span is not None and span.high is not None and span.tokens:
        x = _x(span.tokens / high)
        yield Markup('<line class="mark" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(at(x), at(_y(0)), at(_y(1)))


@dataclass(frozen=True)
class SpanPoint:
    """The mean score of the runs of one span, with its interval."""

    span_tokens: int
    mean: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class SpanSeries:
    name: str
    points: Sequence[SpanPoint]


def draw_spans(series: Sequence[SpanSeries]) -> Markup:
    """Score against the memory span of the runs, with a line for the interval. Spans are evenly spaced."""
    spans = sorted({point.span_tokens for one in series for point in one.points})
    places = {span: (index + 0.5) / len(spans) for index, span in enumerate(spans)}
    parts = list(_frame([(places[span], short_tokens(span)) for span in spans], "memory span of the run in tokens"))
    for number, one in enumerate(series):
        points = sorted(one.points, key=lambda point: point.span_tokens)
        line = " ".join(_point(places[point.span_tokens], point.mean) for point in points)
        inside = [Markup('<polyline class="curve" points="{}"/>').format(line)]
        aside = _aside(number, len(series))
        for point in points:
            x = _x(places[point.span_tokens]) + aside
            inside.append(_whisker(x, point.low, point.high))
            ends = f"{point.mean:.3f} [{point.low:.3f}, {point.high:.3f}]"
            title = f"{one.name} at {point.span_tokens:,} tokens: {ends}, {point.runs} runs"
            inside.append(_dot(x, _y(point.mean), title))
        parts.append(Markup('<g class="{}">{}</g>').format(colour(number), Markup("").join(inside)))
    return figure(_WIDTH, _HEIGHT, "Score against span", parts)


def _frame(ticks: Sequence[tuple[float, str]], x_label: str) -> Iterator[Markup]:
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = at(_y(value))
        yield Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(_LEFT, _WIDTH - _RIGHT, y, y)
        if value in (0.0, 0.5, 1.0):
            yield label(_LEFT - 6, _y(value) + 4, f"{value:g}", anchor="end", kind="soft")
    for share, text in ticks:
        yield label(_x(share), _HEIGHT - _BOTTOM + 16, text, kind="soft")
    yield label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, x_label, kind="soft")


def _aside(number: int, of: int) -> float:
    """Points of several agents stand side by side, so that equal scores do not hide each other."""
    return (number - (of - 1) / 2) * 4


def _whisker(x: float, low: float, high: float) -> Markup:
    return Markup('<line class="whisker" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(
        at(x), at(_y(low)), at(_y(high))
    )


def _dot(x: float, y: float, title: str) -> Markup:
    return Markup('<circle class="dot" cx="{}" cy="{}" r="4.5"><title>{}</title></circle>').format(at(x), at(y), title)


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(score: float) -> float:
    return _HEIGHT - _BOTTOM - min(1.0, max(0.0, score)) * (_HEIGHT - _TOP - _BOTTOM)


def _point(share: float, score: float) -> str:
    return f"{at(_x(share))},{at(_y(score))}"


# --- datasets ---------------------------------------------------------------------------------------------------------


def draw_datasets(agents: Sequence[tuple[str, Sequence[DatasetScore]]]) -> Markup:
    """A bar with its interval for each dataset; for several agents, a bar each."""
    names = list(dict.fromkeys(dataset.name for _, datasets in agents for dataset in datasets))
    scores = [{dataset.name: dataset for dataset in datasets} for _, datasets in agents]
    parts: list[Markup] = []
    bar, y = (12 if len(agents) == 1 else 9), 0
    for name in names:
        parts.append(label(0, y + 12, name, anchor="start", kind="name"))
        if len(agents) == 1 and name in scores[0]:
            parts.append(label("100%", y + 12, _format_score(scores[0][name]), anchor="end", kind="soft"))
        y += 18
        for number, (agent, _) in enumerate(agents):
            if (dataset := scores[number].get(name)) is not None:
                parts.append(_dataset_bar(agent, dataset, number, y, bar))
            y += bar + 3
        y += 7
    return figure("100%", max(1, y), "Score of each dataset", parts, fluid=True)


def _dataset_bar(agent: str, dataset: DatasetScore, number: int, y: int, tall: int) -> Markup:
    mean = 0.0 if math.isnan(dataset.mean) else min(1.0, max(0.0, dataset.mean))
    parts = [
        Markup('<rect class="ground" x="0" width="100%" y="{}" height="{}"/>').format(y, tall),
        Markup('<rect class="bar" x="0" width="{}%" y="{}" height="{}"/>').format(at(100 * mean), y, tall),
    ]
    if dataset.interval is not None:
        low, high = (at(100 * end) for end in dataset.interval)
        middle = at(y + tall / 2)
        parts.append(
            Markup('<line class="whisker over" x1="{}%" x2="{}%" y1="{}" y2="{}"/>').format(low, high, middle, middle)
        )
    title = f"{agent}, {dataset.name}: {_format_score(dataset)}"
    return Markup('<g class="{}"><title>{}</title>{}</g>').format(colour(number), title, Markup("").join(parts))


def _format_score(dataset: DatasetScore) -> str:
    if dataset.interval is None:
        return "no verdict"
    low, high = dataset.interval
    extra = f", {dataset.undecided} undecided" if dataset.undecided else ""
    return f"{dataset.mean:.2f} [{low:.2f}, {high:.2f}] of {dataset.scored} tests{extra}"


# --- radar ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """A quality from 0 (worst) to 1 (best) of each agent; None where it is not known."""

    name: str
    values: Sequence[float | None]


def draw_radar(agents: Sequence[str], axes: Sequence[Axis]) -> Markup:
    width, height, radius = 420, 300, 104
    middle_x, middle_y = width / 2, height / 2 + 4

    def place(axis: int, share: float) -> tuple[float, float]:
        angle = 2 * math.pi * axis / len(axes) - math.pi / 2
        return middle_x + radius * share * math.cos(angle), middle_y + radius * share * math.sin(angle)

    def outline(shares: Sequence[float]) -> str:
        return " ".join(f"{at(x)},{at(y)}" for x, y in (place(axis, share) for axis, share in enumerate(shares)))

    parts = [
        Markup('<polygon class="ring" points="{}"/>').format(outline([share] * len(axes)))
        for share in (0.25, 0.5, 0.75, 1)
    ]
    for number, axis in enumerate(axes):
        x, y = place(number, 1.0)
        parts.append(Markup('<line class="grid" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
            at(middle_x), at(middle_y), at(x), at(y)
        ))  # fmt: skip
        text_x, text_y = place(number, 1.14)
        anchor = "middle" if abs(text_x - middle_x) < 8 else "start" if text_x > middle_x else "end"
        parts.append(label(text_x, text_y + 4, axis.name, anchor=anchor))
    for number, agent in enumerate(agents):
        shares = [axis.values[number] or 0.0 for axis in axes]
        parts.append(Markup('<polygon class="shape {}" points="{}"><title>{}</title></polygon>').format(
            colour(number), outline(shares), agent
        ))  # fmt: skip
    return figure(width, height, "Qualities of the agents, each relative to the best", parts)


# --- the conversation -------------------------------------------------------------------------------------------------


class _Scale:
    """Places along one axis in percent of the width."""

    def __init__(self, timeline: Timeline, along: str) -> None:
        self.along = along
        self._tokens = max(1, timeline.tokens)
        self._start = timeline.start
        end = timeline.end or timeline.start
        self.seconds = 1.0 if end is None or self._start is None else max(1.0, (end - self._start).total_seconds())

    def place(self, tokens: int, moment: datetime) -> float:
        share = 0.0
        if self.along == "tokens":
            share = tokens / self._tokens
        elif self._start is not None:
            share = (moment - self._start).total_seconds() / self.seconds
        return _MARGIN + share * (100 - 2 * _MARGIN)

    def ends(self, segment: Segment) -> tuple[float, float]:
        return (
            self.place(segment.tokens[0], segment.time[0]),
            self.place(segment.tokens[1], segment.time[1]),
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
    scale, height = _Scale(timeline, along), _HEAD + _ROW * len(timeline.tests)
    parts = list(_time_jumps(timeline, scale, height))
    parts += _fillers(timeline.fillers, scale, 4, _HEAD - 10)
    for row, test in enumerate(timeline.tests):
        if timeline.jumps:
            # Lines of time jumps end behind the bars: none runs through a name.
            parts.append(Markup('<rect class="behind" x="0" width="100%" y="{}" height="{}"/>').format(
                _HEAD + row * _ROW - 1, _BAR_TOP
            ))  # fmt: skip
        score = (scores or {}).get(test.test_id)
        parts.append(_test_row(test, _HEAD + row * _ROW, scale, score, (links or {}).get(test.test_id)))
    axis = height + 4
    parts.append(Markup('<line class="axis" x1="0" x2="100%" y1="{}" y2="{}"/>').format(axis, axis))
    for x, text in scale.ticks():
        parts.append(Markup('<line class="axis" x1="{0}%" x2="{0}%" y1="{1}" y2="{2}"/>').format(at(x), axis, axis + 5))
        anchor = "start" if x < 3 else "end" if x > 95 else "middle"
        parts.append(label(f"{at(x)}%", axis + 18, text, anchor=anchor, kind="soft"))
    axis_name = "tokens of the conversation" if along == "tokens" else "virtual time"
    return figure("100%", axis + 26, f"The conversation along {axis_name}", parts, fluid=True)


def draw_place(timeline: Timeline, test: TimelineTest) -> Markup:
    """Where one test lies in the whole conversation, as a strip."""
    scale = _Scale(timeline, "tokens")
    parts = [Markup('<rect class="ground" x="0" y="0" width="100%" height="12" rx="3"/>'), *_test_bar(test, 2, scale)]
    return figure("100%", 12, f"Place of {test.test_id} in the conversation", parts, fluid=True)


def _time_jumps(timeline: Timeline, scale: _Scale, height: int) -> Iterator[Markup]:
    """Time jumps: along tokens they have no width, along time they are nearly all there is."""
    for jump in timeline.jumps:
        left, right = scale.place(jump.tokens, jump.start), scale.place(jump.tokens, jump.end)
        title = f"time jump of {short_duration(jump.end - jump.start)}"
        if scale.along == "tokens":
            shape = Markup('<line class="jump" x1="{0}%" x2="{0}%" y1="0" y2="{1}">').format(at(left), height)
            yield shape + Markup("<title>{}</title></line>").format(title)
        else:
            shape = Markup('<rect class="jumped" x="{}%" width="{}%" y="0" height="{}">').format(
                at(left), at(right - left), height
            )
            yield shape + Markup("<title>{}</title></rect>").format(title)


def _test_row(test: TimelineTest, y: int, scale: _Scale, score: float | None, link: str | None) -> Markup:
    verdict = "no verdict" if score is None else f"{score:.2f}"
    name = label(0, y + 10, test.test_id, anchor="start", kind="name")
    if link:
        name = Markup('<a href="#{}">{}</a>').format(link, name)
    number = label("100%", y + 10, verdict, anchor="end", kind=grade_class(score))
    return Markup("<g>{}{}{}</g>").format(name, number, Markup("").join(_test_bar(test, y + _BAR_TOP, scale)))


def _test_bar(test: TimelineTest, y: int, scale: _Scale) -> Iterator[Markup]:
    last = (test.segments[-1].tokens[1], test.segments[-1].time[1]) if test.segments else test.began
    start, end = scale.place(*test.began), scale.place(*(test.ended or last))
    yield Markup('<rect class="life" x="{}%" width="{}%" y="{}" height="3"/>').format(at(start), at(end - start), y + 3)
    # Questions last: they are what one looks for, and lie close to what follows them.
    for segment in sorted(test.segments, key=lambda segment: segment.kind == "ask"):
        left, right = scale.ends(segment)
        yield Markup('<rect class="{}" x="{}%" width="{}%" y="{}" height="{}"><title>{} at {} tokens</title></rect>').format(
            segment.kind, at(left), at(max(0.0, right - left)), y, _BAR, _KINDS.get(segment.kind, segment.kind),
            f"{segment.tokens[0]:,}",
        )  # fmt: skip


_KINDS = {"say": "statement", "ask": "question", "forget": "asked to forget", "fill": "filler", "intro": "introduction"}


def _fillers(segments: Sequence[Segment], scale: _Scale, y: int, height: int) -> Iterator[Markup]:
    """Segments that touch are drawn as one, so that a long conversation is a short picture."""

    def draw(left: float, right: float, tokens: int) -> Markup:
        shape = '<rect class="filler" x="{}%" width="{}%" y="{}" height="{}"><title>filler, {} tokens</title></rect>'
        return Markup(shape).format(at(left), at(right - left), y, height, f"{tokens:,}")

    left = right = -1.0
    tokens = 0
    for segment in segments:
        start, end = scale.ends(segment)
        if start > right + 0.05:
            if right >= 0:
                yield draw(left, right, tokens)
            left, tokens = start, 0
        right = end
        tokens += segment.tokens[1] - segment.tokens[0]
    if right >= 0:
        yield draw(left, right, tokens)


def grade_class(score: float | None) -> str:
    return "soft" if score is None else "good" if score >= 0.75 else "bad" if score < 0.25 else "middling"


# --- parts of every figure --------------------------------------------------------------------------------------------


def figure(width: int | str, height: int, title: str, parts: Iterable[Markup], *, fluid: bool = False) -> Markup:
    """An SVG element. A fluid one has places in percent and takes the width of the page, with letters of one size."""
    frame = (
        Markup('<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}" role="img">').format(width, height)
        if fluid
        else Markup('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img">').format(width, height)
    )
    return frame + Markup("<title>{}</title>{}</svg>").format(title, Markup("\n").join(parts))


def label(x: float | str, y: float, text: str, *, anchor: str = "middle", kind: str = "") -> Markup:
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        kind, x if isinstance(x, str) else at(x), at(y), anchor, text
    )


def at(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def colour(index: int) -> str:
    return f"c{index % COLOURS}"


def round_ticks(high: float, most: int = 5) -> list[float]:
    """Zero and a few multiples of 1, 2 or 5 times a power of ten, up to `high`."""
    if high <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(high / most))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * most >= high * (1 - 1e-9))
    return [step * number for number in range(math.floor(high / step + 1e-9) + 1)]


def short_tokens(tokens: float) -> str:
    if tokens < 1_000:
        return f"{tokens:.0f}"
    if tokens < 1_000_000:
        return f"{tokens / 1_000:.3g}k"
    return f"{tokens / 1_000_000:.3g}M"


def short_duration(duration: timedelta) -> str:
    seconds = duration.total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


# --- files ------------------------------------------------------------------------------------------------------------


def write_figures(figures: Mapping[str, Markup], folder: Path, *, as_png: bool = False) -> list[Path]:
    """`NAME.svg`, and `NAME.png` beside it if wanted."""
    written = []
    for name, svg in figures.items():
        path = folder / f"{name}.svg"
        with atomic_write(path) as file:
            file.write(_standalone(svg).encode("utf-8", "backslashreplace"))
        written.append(path)
        if as_png:
            written.append(_draw_png(path, _height(svg)))
    return written


def _standalone(svg: Markup) -> str:
    """The figure with the page's style inside, on a ground of its own, at a fixed width."""
    sheets = ((comparison, "page.css"), (report, "memory.css"))
    style = "".join((files(package) / "templates" / name).read_text(encoding="utf-8") for package, name in sheets)
    head, _, rest = str(svg).partition(">")
    if "viewBox" in head:
        head += f' width="{_FILE_WIDTH}"'
    else:
        head = head.replace('width="100%"', f'width="{_FILE_WIDTH}"')
    # A style sheet in an XML file is text: its own angle brackets must not end it.
    quoted = style.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    extra = "svg { background: var(--ground); font-family: system-ui, sans-serif; margin: 0; }"
    return f"{head}><style>{quoted}{extra}</style>{rest}\n"


def _height(svg: Markup) -> int:
    head = str(svg).partition(">")[0]
    if "viewBox" in head:
        width, height = head.partition('viewBox="0 0 ')[2].partition('"')[0].split()
        return round(_FILE_WIDTH * int(height) / int(width))
    return int(head.partition('height="')[2].partition('"')[0])


def _draw_png(svg: Path, height: int) -> Path:
    browser = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise DependencyError(
            f"PNG files are drawn by a browser; install one of {', '.join(_BROWSERS)}, or use the SVG files"
        )
    target = svg.with_suffix(".png")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
                f"--user-data-dir={profile}",
                f"--window-size={_FILE_WIDTH},{height}",
                f"--screenshot={target.resolve()}",
                svg.resolve().as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=_BROWSER_SECONDS,
        )
    return target
