"""Memory runs as self-contained pages: one run, or several agents beside each other. No scripts, nothing loaded."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from themis import comparison
from themis.comparison.reports import TIE, ComparisonResult
from themis.core.codec import format_value
from themis.core.markup import Raw, escape_control, escape_markdown, format_table
from themis.memory import report
from themis.memory.report import RunView, label_views, ways_of_judging
from themis.memory.report.charts import (
    Axis,
    DistanceSeries,
    SpanSeries,
    colour,
    draw_datasets,
    draw_distances,
    draw_gantt,
    draw_place,
    draw_radar,
    draw_spans,
    grade_class,
    short_duration,
    short_tokens,
)
from themis.memory.results import DatasetScore, RunSummary, StoredResult
from themis.memory.spans import EffectiveSpan, SpanStatus

_LONGEST_TEXT = 8_000
_MOST_DIFFERENCES = 200


# --- one run ----------------------------------------------------------------------------------------------------------


def run_page(view: RunView) -> str:
    """The report of one run."""
    summary, anchors = view.summary, _anchors(view)
    tests = {test.test_id: test for test in view.timeline.tests}
    groups = [
        {
            "score": dataset,
            "description": next((r.description for r in view.results if r.dataset_name == dataset.name), ""),
            "tests": [
                {
                    "result": result,
                    "anchor": anchors[result.test_id],
                    "place": draw_place(view.timeline, tests[result.test_id]) if result.test_id in tests else None,
                }
                for result in view.results
                if result.dataset_name == dataset.name
            ],
        }
        for dataset in summary.datasets
    ]
    figures = run_figures(view)
    return _render(
        "run.html",
        view=view,
        summary=summary,
        entries=_cards(view),
        notes=_notes(summary),
        groups=groups,
        spent=_spending(view),
        datasets=figures["datasets"],
        distances=figures["distances"],
        gantt_tokens=figures["conversation"],
        gantt_time=figures["conversation-time"],
    )


def run_figures(view: RunView) -> dict[str, Markup]:
    """The main figures of a run by name."""
    scores, anchors = {result.test_id: result.score for result in view.results}, _anchors(view)
    return {
        "conversation": draw_gantt(view.timeline, "tokens", scores=scores, links=anchors),
        "conversation-time": draw_gantt(view.timeline, "time", scores=scores, links=anchors),
        "datasets": draw_datasets([(view.name, view.summary.datasets)]),
        "distances": draw_distances([DistanceSeries(view.name, view.points, view.summary.effective_span)]),
    }


def _anchors(view: RunView) -> dict[str, str]:
    return {result.test_id: f"test-{number}" for number, result in enumerate(view.results)}


class Card(NamedTuple):
    """A number at the top of a page."""

    name: str
    value: str
    note: str = ""


def _cards(view: RunView) -> Iterator[Card]:
    summary, line = view.summary, view.timeline
    interval, latency = summary.score_interval, view.latency
    yield Card(
        "score",
        f"{_format_number(summary.score)} of {summary.max_score}",
        "" if interval is None else f"95 % interval {interval[0]:.2f} to {interval[1]:.2f}",
    )
    yield Card("accuracy", f"{_format_number(summary.accuracy, 1)} %", f"{summary.scored} tests scored")
    span = summary.effective_span
    yield Card("effective span", format_span(span), "" if span is None else span.sentence)
    yield Card("LTM score", short_tokens(summary.ltm_score) if summary.scored else "n/a", "tokens")
    filler = f"{line.turns} turns, {short_tokens(line.filler_tokens)} filler"
    yield Card("conversation", f"{short_tokens(line.tokens)} tokens", filler)
    yield Card("cost", _format_dollars(summary.cost_usd), f"judge {_format_dollars(summary.judge_cost_usd)}")
    if summary.verbosity_tokens:
        replies = f"{line.replies} replies" if line.replies else ""
        yield Card("verbosity", f"{short_tokens(summary.verbosity_tokens)} tokens", replies)
    if summary.speed_tokens_per_second is not None and latency is not None:
        typical, slow = map(_format_seconds, latency)
        speed = f"{_format_speed(summary.speed_tokens_per_second)} tokens/s"
        yield Card("speed", speed, f"a reply takes {typical}, one in twenty over {slow}")


def _notes(summary: RunSummary) -> list[str]:
    told = {
        f"{summary.undecided} tests have no verdict: a failure is counted, never scored.": summary.undecided,
        f"{summary.missing} tests have not been run yet.": summary.missing,
        f"{summary.overran} tests took longer than their span.": summary.overran,
        f"{summary.in_doubt} tests are in doubt: a message may have reached the agent twice.": summary.in_doubt,
        f"{summary.overridden} scores were set by a person; the automatic ones are kept.": summary.overridden,
        f"{summary.hand_edited} published scores were edited by hand.": summary.hand_edited,
    }
    return [text for text, count in told.items() if count]


class Spending(NamedTuple):
    """A row of what the agent and the judge took."""

    name: str
    agent: str
    judge: str = ""


def _spending(view: RunView) -> Iterator[Spending]:
    run, line = view.found.run, view.timeline
    judge_seconds = sum(result.judge_seconds for result in view.results)
    yield Spending("dollars", _format_dollars(run.cost_usd), _format_dollars(run.judge_cost_usd))
    yield Spending("calls", f"{run.calls:,}", f"{run.judge_calls:,}")
    yield Spending("prompt tokens", f"{run.prompt_tokens:,}")
    yield Spending("completion tokens", f"{run.completion_tokens:,}")
    yield Spending("seconds", f"{run.seconds:,.2f}", f"{judge_seconds:,.2f}")
    if line.start is not None and line.end is not None:
        yield Spending("virtual time", short_duration(line.end - line.start))


# --- several agents ---------------------------------------------------------------------------------------------------


def agents_page(
    views: Sequence[RunView], spans: Sequence[SpanSeries] = (), comparisons: Sequence[ComparisonResult] | None = None
) -> str:
    """Several runs beside each other. `spans` adds the curve of a sweep, `comparisons` its differences."""
    named = label_views(views)
    names = [view.name for view in named]
    compared_agents = _compare(named) if comparisons is None else list(comparisons)
    differing, compared = _find_differences(named)
    figures = agents_figures(named, spans)
    columns, rows = agents_table(named)
    return _render(
        "agents.html",
        names=names,
        verdict=_verdict(compared_agents),
        columns=columns,
        rows=[{"name": name, "cells": cells} for name, cells in rows],
        comparisons=compared_agents,
        clustered=any(_conversations(pair) > 1 for pair in compared_agents),
        span_sentences=span_sentences(views),
        notes=[note for pair in compared_agents for note in _notes_on(pair)],
        differing=differing,
        compared=compared,
        spans=figures.get("spans"),
        distances=figures["distances"],
        radar=figures["radar"],
        datasets=figures["datasets"],
    )


def agents_figures(views: Sequence[RunView], spans: Sequence[SpanSeries] = ()) -> dict[str, Markup]:
    """The main figures of a comparison by name."""
    named = label_views(views)
    figures = {
        "distances": draw_distances(
            [DistanceSeries(view.name, view.points, view.summary.effective_span) for view in named]
        ),
        "datasets": draw_datasets([(view.name, view.summary.datasets) for view in named]),
        "radar": draw_radar([view.name for view in named], _axes([view.summary for view in named])),
    }
    return {"spans": draw_spans(spans), **figures} if spans else figures


def agents_table(views: Sequence[RunView]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Columns and rows of the numbers, for pages and for text."""
    columns = [
        *("Score", "95 % interval", "Accuracy", "Effective span", "95 % interval of span"),
        *("LTM score", "Tokens/s", "Cost", "Verbosity", "Judge asked"),
    ]
    rows = []
    for view in label_views(views):
        summary = view.summary
        speed, verbosity = summary.speed_tokens_per_second, summary.verbosity_tokens
        cells = [
            f"{_format_number(summary.score)} of {summary.max_score}",
            format_interval(summary.score_interval),
            f"{_format_number(summary.accuracy, 1)} %",
            format_span(summary.effective_span),
            _span_interval(summary.effective_span),
            short_tokens(summary.ltm_score) if summary.scored else "n/a",
            _format_speed(speed),
            _format_dollars(summary.cost_usd),
            "n/a" if verbosity is None else short_tokens(verbosity),
            f"{summary.judged} of {len(view.results)}",
        ]
        rows.append((view.name, cells))
    return columns, rows


def span_sentences(views: Sequence[RunView]) -> list[str]:
    """What the tests say of each agent's effective span, a sentence an agent."""
    named = [(view.name, view.summary.effective_span) for view in label_views(views)]
    return [f"effective span of {name}: {span.sentence}" for name, span in named if span is not None]


def _compare(views: Sequence[RunView]) -> list[ComparisonResult]:
    """Every two runs on the tests that are the same in both."""
    scores: dict[str, dict[tuple[Hashable, str], float | None]] = {
        view.name: {("", result.test_id): result.score for result in view.results} for view in views
    }
    contents: dict[str, dict[tuple[Hashable, str], str]] = {
        view.name: {("", result.test_id): result.fingerprint for result in view.results} for view in views
    }
    return comparison.compare_scores(scores, contents, ways_of_judging({view.name: [view] for view in views}))


def _notes_on(pair: ComparisonResult) -> list[str]:
    """What must be read with a difference: what was left out of it, and what limits its verdict."""
    whose = f"{pair.run_a_id} − {pair.run_b_id}"
    notes = [f"{whose}: {remark}" for remark in pair.remarks]
    if pair.pairing is not None and not pair.pairing.is_whole:
        notes.insert(0, f"{whose}: {pair.pairing.describe(pair.run_a_id, pair.run_b_id)}")
    return notes


def _axes(summaries: Sequence[RunSummary]) -> list[Axis]:
    spans = [None if summary.effective_span is None else summary.effective_span.tokens for summary in summaries]
    axes = [
        Axis("accuracy", [summary.accuracy / 100 if summary.scored else None for summary in summaries]),
        Axis("effective span", _relative(spans)),
        Axis("LTM score", _relative([summary.ltm_score for summary in summaries])),
        Axis("speed", _relative([summary.speed_tokens_per_second for summary in summaries])),
        Axis("economy", _relative([summary.cost_usd for summary in summaries], least=True)),
        Axis("conciseness", _relative([summary.verbosity_tokens for summary in summaries], least=True)),
    ]
    # A quality that is not known of every agent would draw the unknown as the worst.
    return [axis for axis in axes if all(value is not None for value in axis.values)]


def _relative(values: Sequence[float | None], *, least: bool = False) -> list[float | None]:
    known = [value for value in values if value is not None and not math.isnan(value)]
    if len(known) != len(values):
        return [None] * len(values)
    best = min(known) if least else max(known)
    if least:
        return [1.0 if value == best else best / value for value in known]
    return [value / best if best > 0 else 0.0 for value in known]


def _verdict(comparisons: Sequence[ComparisonResult]) -> str:
    clear = [pair for pair in comparisons if pair.winner not in (TIE, None)]
    if not clear and comparisons and all("too few" in pair.note for pair in comparisons):
        held = max(_conversations(pair) for pair in comparisons)
        return f"{held} conversations are too few to tell any two agents apart, whatever they scored: use more seeds."
    if not clear:
        return "No agent is better than another beyond chance."
    return "Beyond chance: " + "; ".join(
        f"{pair.winner} is better than {pair.run_b_id if pair.winner == pair.run_a_id else pair.run_a_id}"
        for pair in clear
    )


def _conversations(pair: ComparisonResult) -> int:
    return 1 if pair.test_result is None else pair.test_result.clusters or 1


def _find_differences(views: Sequence[RunView]) -> tuple[list[dict[str, object]], int]:
    """Tests on which agents do not agree, and how many were compared."""
    by_test: dict[tuple[str, str], list[StoredResult | None]] = {}
    for number, view in enumerate(views):
        for result in view.results:
            by_test.setdefault((result.test_id, result.fingerprint), [None] * len(views))[number] = result
    found: list[tuple[float, dict[str, object]]] = []
    for (test_id, _), results in by_test.items():
        scores = [None if result is None else result.score for result in results]
        known = [score for score in scores if score is not None]
        if len(set(known)) < 2:
            continue
        answers = [
            {
                "name": view.name,
                "score": "no verdict" if result.score is None else f"{result.score:.2f}",
                "texts": result.actual_responses,
                "reasons": result.reasoning,
            }
            for view, result in zip(views, results, strict=True)
            if result is not None
        ]
        expected = next(result.expected_responses for result in results if result is not None)
        entry = {"test_id": test_id, "scores": scores, "expected": expected, "answers": answers}
        found.append((max(known) - min(known), entry))
    found.sort(key=lambda pair: -pair[0])
    return [entry for _, entry in found[:_MOST_DIFFERENCES]], len(by_test)


# --- tables -----------------------------------------------------------------------------------------------------------


def markdown_table(views: Sequence[RunView]) -> str:
    """The summary of each run, then the score of each dataset."""
    columns, rows = agents_table(views)
    agents = format_table(
        ["agent", *map(str.lower, columns)],
        [[name, *cells] for name, cells in rows],
        right=range(1, len(columns) + 1),
    )
    spans = "\n".join(f"- {escape_markdown(line)}" for line in span_sentences(views))
    names, by_dataset = _datasets(views)
    # The cells are ours, and brackets alone make no link.
    datasets = format_table(
        ["dataset", *names],
        [[dataset, *map(Raw, cells)] for dataset, cells in by_dataset],
        right=range(1, len(names) + 1),
    )
    return f"{agents}\n\n{spans}\n\n{datasets}\n"


def latex_table(views: Sequence[RunView]) -> str:
    """A `tabular` to \\input, datasets by agents; it uses the rules of the package booktabs."""
    names, by_dataset = _datasets(views)
    totals = [f"{view.summary.score:.2f} of {view.summary.max_score}" for view in views]
    table = format_table(
        ["Dataset", *names],
        [[dataset, *cells] for dataset, cells in by_dataset],
        "latex",
        right=range(1, len(names) + 1),
        footer=["Score", *totals],
    )
    return f"% needs \\usepackage{{booktabs}}\n{table}\n"


def _datasets(views: Sequence[RunView]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    labelled = label_views(views)
    scores = [{dataset.name: dataset for dataset in view.summary.datasets} for view in labelled]
    datasets = dict.fromkeys(name for found in scores for name in found)
    rows = [(name, [_format_dataset(found.get(name)) for found in scores]) for name in datasets]
    return [view.name for view in labelled], rows


def _format_dataset(dataset: DatasetScore | None) -> str:
    if dataset is None or dataset.interval is None:
        return "n/a"
    return f"{dataset.mean:.2f} [{dataset.interval[0]:.2f}, {dataset.interval[1]:.2f}]"


# --- how things are shown ---------------------------------------------------------------------------------------------


def format_span(span: EffectiveSpan | None) -> str:
    if span is None:
        return "n/a"
    match span.status:
        case SpanStatus.NOT_MEASURED:
            return "not measured"
        case SpanStatus.NO_END_SEEN:
            return f"≥ {short_tokens(span.low)}" if span.low else "no end seen"
    return short_tokens(span.tokens or 0)


def _span_interval(span: EffectiveSpan | None) -> str:
    if span is None or not span.interval:
        return "n/a"
    return f"{short_tokens(span.low)} – {'no end seen' if span.high is None else short_tokens(span.high)}"


def format_interval(interval: tuple[float, float] | None) -> str:
    return "n/a" if interval is None else f"{interval[0]:.2f} – {interval[1]:.2f}"


def _format_number(value: float, digits: int = 2) -> str:
    return "n/a" if math.isnan(value) else f"{value:.{digits}f}"


def _format_speed(value: float | None) -> str:
    return "n/a" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _format_seconds(value: float) -> str:
    return f"{value:.2g} s" if value >= 0.1 else f"{value * 1_000:.2g} ms"


def _format_dollars(value: float | None) -> str:
    return "price unknown" if value is None else f"${value:,.4f}" if 0 < value < 1 else f"${value:,.2f}"


def _format_p_value(value: float | None) -> str:
    return "–" if value is None else "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _marks(result: StoredResult) -> list[str]:
    marks = {
        "overran its span": result.overran,
        "in doubt": result.in_doubt,
        "overridden": result.override,
        "edited by hand": result.published.get("by_hand"),
    }
    return [text for text, holds in marks.items() if holds]


def _truncate(text: object) -> str:
    shown = escape_control(str(text))
    if len(shown) <= _LONGEST_TEXT:
        return shown
    return f"{shown[:_LONGEST_TEXT]}… [{len(shown):,} characters in all]"


def _format_lines(value: object) -> str:
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return "\n".join(value)
    if isinstance(value, Mapping | list):
        return format_value(value)
    return "" if value is None else str(value)


def _render(template: str, **values: object) -> str:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(report.__name__), PackageLoader(comparison.__name__)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        escape_control=lambda value: escape_control(str(value)),
        cut=_truncate,
        as_text=_format_lines,
        duration=short_duration,
    )
    environment.globals.update(
        grade=grade_class, marks=_marks, dollars=_format_dollars, p_value=_format_p_value, colour=colour
    )
    return environment.get_template(template).render(**values)
