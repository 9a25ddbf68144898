"""A comparison or a diff as one self-contained page: no scripts, nothing loaded, every text escaped.

The templates draw; what is drawn where is computed here, in percent of the width, so that a plot fits a phone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from themis.comparison.reports import (
    TIE,
    ComparisonReport,
    ComparisonResult,
    format_interval,
    format_p_cell,
    short_labels,
)

if TYPE_CHECKING:
    from jinja2 import Environment

    from themis.comparison.diff import DiffItem, RunDiff

_ROW_HEIGHT = 46
# Two of them fit beside each other on a phone.
_LONGEST_NAME = 21
# Room at both sides, in percent, so that the outermost points are drawn whole.
_MARGIN = 2.0
_TICKS = 4


def comparison_page(report: ComparisonReport) -> str:
    """The report with a forest plot of differences for each metric."""
    sections = [
        {
            "metric": metric,
            "best": report.best_line(metric),
            "plot": forest_plot(report.get_metric_results(metric)),
            "rows": [_row(result) for result in report.get_metric_results(metric)],
            "notes": report.notes(metric),
            "places": report.rankings[metric].runs if metric in report.rankings else (),
        }
        for metric in report.metrics
    ]
    page = _environment().get_template("comparison.html")
    return page.render(
        report=report,
        sections=sections,
        method=report.method_line(),
        tested=report.metadata.get("statistical_test") != "none",
        corrected=any(result.corrected_p_value is not None for result in report.pairwise_results),
    )


def audit_page(judge: str, rates: Sequence[Sequence[str]], runs: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """What a judge accepts of each kind of answer, and what that makes of runs' scores."""
    page = _environment().get_template("judge_audit.html")
    drawn = [(*row, _accepted_bar(row[3])) for row in rates]
    return page.render(judge=judge, rates=drawn, runs=runs, notes=notes)


def _accepted_bar(interval: str) -> tuple[float, float]:
    """Where a printed interval begins and how long it is, in percent of the width."""
    low, high = map(float, interval.strip("[]").split(","))
    return 100 * low, max(1.0, 100 * (high - low))


def diff_page(diff: RunDiff, items: Iterable[DiffItem]) -> Iterator[str]:
    """The page in pieces, as the items are read."""
    yield from _environment().get_template("diff.html").generate(diff=diff, items=items)


@dataclass(frozen=True)
class PlotRow:
    """One difference: its place and the ends of its interval in percent of the width, `y` in pixels from the top."""

    label: str
    title: str
    numbers: str
    y: int
    point: float
    low: float | None
    high: float | None
    clear: bool


@dataclass(frozen=True)
class Tick:
    x: float
    text: str
    anchor: str


@dataclass(frozen=True)
class ForestPlot:
    """Differences on one common scale that always includes zero."""

    rows: list[PlotRow]
    ticks: list[Tick]
    zero: float
    axis_y: int
    height: int


def forest_plot(results: Iterable[ComparisonResult]) -> ForestPlot:
    results = list(results)
    ends = [0.0, *(result.delta for result in results)]
    ends += [end for result in results if result.interval is not None for end in result.interval]
    low, high = min(ends), max(ends)
    if low == high:
        low, high = -1.0, 1.0
    span = (100 - 2 * _MARGIN) / (high - low)

    def place(value: float) -> float:
        return round(_MARGIN + (value - low) * span, 3)

    run_ids = dict.fromkeys(run_id for result in results for run_id in (result.run_a_id, result.run_b_id))
    labels = short_labels(list(run_ids), _LONGEST_NAME)
    rows = []
    for number, result in enumerate(results):
        interval = result.interval
        rows.append(
            PlotRow(
                label=f"{labels[result.run_a_id]} − {labels[result.run_b_id]}",
                title=result.summary(),
                numbers=f"{result.delta:+.4f}" + (f" {format_interval(interval)}" if interval else ""),
                y=number * _ROW_HEIGHT,
                point=place(result.delta),
                low=None if interval is None else place(interval[0]),
                high=None if interval is None else place(interval[1]),
                clear=result.winner not in (TIE, None),
            )
        )
    axis_y = len(results) * _ROW_HEIGHT + 2
    ticks = [Tick(place(value), _tick_text(value), _anchor(place(value))) for value in _round_values(low, high)]
    return ForestPlot(rows=rows, ticks=ticks, zero=place(0.0), axis_y=axis_y, height=axis_y + 26)


def _round_values(low: float, high: float) -> list[float]:
    """A few multiples of 1, 2 or 5 times a power of ten between two ends; zero is one of them."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [multiple * step for multiple in range(first, last + 1)]


def _tick_text(value: float) -> str:
    return "0" if value == 0 else f"{value:+.4g}"


def _anchor(x: float) -> str:
    return "start" if x < 8 else "end" if x > 92 else "middle"


def _row(result: ComparisonResult) -> dict[str, object]:
    test = result.test_result
    p_value = None if test is None else test.p_value
    return {
        "first": result.run_a_id,
        "second": result.run_b_id,
        "means": f"{result.run_a_mean:.4f} / {result.run_b_mean:.4f}",
        "delta": f"{result.delta:+.4f}",
        "interval": "–" if result.interval is None else format_interval(result.interval),
        "p": format_p_cell(p_value),
        "corrected": format_p_cell(result.corrected_p_value),
        "n": len(result.run_a_samples),
        "tie": result.winner == TIE,
        "winner": result.winner,
    }


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("themis.comparison"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
