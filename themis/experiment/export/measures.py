"""What explains a measure, for people: a confusion matrix, a reliability diagram, groups of rows, as tables and as pictures.

All are made from the details of an aggregate (`MetricAggregate.details`), by the terminal, the page of a report and the server.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from themis.core.entities import ExperimentReport
from themis.core.files import atomic_write
from themis.core.markup import escape_control, truncate
from themis.experiment.export.as_tables import csv_safe
from themis.experiment.export.charts import svg, svg_place, svg_text

# A picture with more classes cannot be read: the rarer ones are drawn together.
_MOST_DRAWN = 16
_MOST_WITH_NUMBERS = 10
_LONGEST_LABEL = 14
_LONGEST_GROUP = 34
# What details hold that can be shown.
_KINDS = ("confusion", "reliability", "by_group")


@dataclass(frozen=True)
class Table:
    """Heads of columns, and rows of cells."""

    title: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class _Matrix:
    """How often each expected class (a row) was answered with each class (a column)."""

    rows: list[str]
    columns: list[str]
    counts: list[list[float]]


def distinct_details(details: Iterable[tuple[str, Mapping[str, object]]]) -> dict[str, Mapping[str, Any]]:
    """What several metrics have in common once, under the first one's name: of one confusion matrix come many numbers."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, one in details:
        if any(kind in one for kind in _KINDS) and one not in found.values():
            found[name] = one
    return found


def report_details(report: ExperimentReport) -> dict[str, Mapping[str, Any]]:
    """The different details of a report's metrics, by the name of the first that has them."""
    return distinct_details((name, metric.details) for name, metric in report.evaluation_report.metrics.items())


# --- tables ------------------------------------------------------------------------------------------------------------


def tables(details: Mapping[str, Any], most: int = _MOST_WITH_NUMBERS) -> list[Table]:
    """The details as tables for a terminal; of many classes the commonest confusions.

    Args:
        details: Of one aggregate.
        most: How many classes a matrix may have.
    """
    found = []
    if "confusion" in details:
        found.append(_confusion_table(details, most))
    if "reliability" in details:
        bins = [one for one in details["reliability"] if one["count"]]
        rows = [
            [
                f"{one['low']:.2g}–{one['high']:.2g}",
                f"{one['count']:g}",
                f"{one['confidence']:.4f}",
                f"{one['accuracy']:.4f}",
            ]
            for one in bins
        ]
        found.append(Table("Confidence and correctness", ["confidence", "answers", "mean confidence", "right"], rows))
    if "by_group" in details:
        rows = [[one["group"], f"{one['count']:g}", f"{one['mean']:.4f}"] for one in details["by_group"]]
        found.append(Table("By group", ["group", "rows", "mean"], rows))
    return found


def _confusion_table(details: Mapping[str, Any], most: int) -> Table:
    if len(details["classes"]) > most:
        wrong = sorted(
            (one for one in details["confusion"] if one["expected"] != one["predicted"]), key=lambda one: -one["count"]
        )
        rows = [[one["expected"], one["predicted"], f"{one['count']:g}"] for one in wrong[:most]]
        title = f"The commonest confusions of {len(details['classes']):,} classes"
        return Table(title, ["expected", "answered", "times"], rows)
    matrix = _matrix(details, most)
    f1 = {one["class"]: one for one in details["by_class"]}
    rows = [
        [row, *(f"{count:g}" for count in counts), f"{f1[row]['recall']:.4f}", f"{f1[row]['precision']:.4f}"]
        for row, counts in zip(matrix.rows, matrix.counts, strict=True)
    ]
    return Table("Confusion matrix", ["expected", *matrix.columns, "recall", "precision"], rows)


def export_confusion(details: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Writes a confusion matrix as CSV: expected, predicted, count, a line a cell that is not empty.

    Args:
        details: Of an aggregate that has one.
        path: The file; its folder is made.
    """
    with atomic_write(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        table = csv.writer(text, lineterminator="\r\n")
        table.writerow(["expected", "predicted", "count"])
        for one in details["confusion"]:
            table.writerow([csv_safe(one["expected"]), csv_safe(one["predicted"]), one["count"]])
        text.flush()
        text.detach()
    return Path(path)


def _matrix(details: Mapping[str, Any], most: int) -> _Matrix:
    """The cells as a matrix; beyond so many classes the rarer ones are one row and one column."""
    classes: list[str] = details["classes"]
    shown, rest = classes, ""
    if len(classes) > most:
        often = {one["class"]: -one["expected"] for one in details["by_class"]}
        kept = set(sorted(classes, key=lambda label: often[label])[: most - 1])
        shown = [label for label in classes if label in kept]
        rest = f"{len(classes) - len(shown)} more"
    known = set(classes)
    counts: dict[tuple[str, str], float] = {}
    for one in details["confusion"]:
        row = one["expected"] if not rest or one["expected"] in shown else rest
        column = rest if rest and one["predicted"] in known and one["predicted"] not in shown else one["predicted"]
        counts[row, column] = counts.get((row, column), 0.0) + one["count"]
    rows = [*shown, *([rest] if rest else [])]
    others = [column for column in dict.fromkeys(column for _, column in counts) if column not in rows]
    columns = [*rows, *others]
    return _Matrix(rows, columns, [[counts.get((row, column), 0.0) for column in columns] for row in rows])


# --- pictures ----------------------------------------------------------------------------------------------------------


def figures(details: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """The details as pictures with their titles.

    Args:
        details: Of one aggregate.
    """
    found = []
    if "confusion" in details and details["classes"]:
        found.append(("Confusion matrix: expected (rows) and answered", draw_confusion(details)))
    if "reliability" in details:
        found.append(("Reliability: how often right at each confidence", draw_reliability(details["reliability"])))
    if details.get("by_group"):
        found.append(("Each group's mean", draw_groups(details["by_group"])))
    return found


def draw_confusion(details: Mapping[str, object]) -> Markup:
    """A matrix whose cells are the darker the larger their share of the row."""
    matrix = _matrix(details, _MOST_DRAWN)
    left, top = 104, 86
    size = min(360 / len(matrix.columns), 42.0)
    # Room for the last column's label, which leans to the right.
    width = max(300, round(left + len(matrix.columns) * size + 70))
    with_numbers = len(matrix.columns) <= _MOST_WITH_NUMBERS + 1
    parts = []
    for column, label in enumerate(matrix.columns):
        x, y = left + (column + 0.5) * size, top - 8
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="start" transform="rotate(-45 {} {})">{}</text>').format(
                svg_place(x), y, svg_place(x), y, _label(label)
            )
        )
    for row, (label, counts) in enumerate(zip(matrix.rows, matrix.counts, strict=True)):
        height, total = top + row * size, math.fsum(counts)
        parts.append(svg_text(left - 8, height + size / 2 + 4, _label(label), anchor="end"))
        for column, count in enumerate(counts):
            share = count / total if total else 0.0
            told = f"{label} answered as {matrix.columns[column]}: {count:g} of {total:g} ({share:.0%})"
            is_right = label == matrix.columns[column]
            parts.append(
                Markup(
                    '<rect class="cell {}" x="{}" y="{}" width="{}" height="{}" fill-opacity="{}"><title>{}</title></rect>'
                ).format("right" if is_right else "wrong", svg_place(left + column * size), svg_place(height),
                         svg_place(size - 1), svg_place(size - 1), f"{0.06 + 0.64 * share:.2f}", escape_control(told))
            )  # fmt: skip
            if with_numbers and count:
                parts.append(
                    Markup('<text class="number" x="{}" y="{}" text-anchor="middle">{}</text>').format(
                        svg_place(left + (column + 0.5) * size), svg_place(height + size / 2 + 4), f"{count:g}"
                    )
                )
    return svg(width, round(top + len(matrix.rows) * size + 6), "confusion matrix", parts)


def draw_reliability(bins: Sequence[Mapping[str, Any]]) -> Markup:
    """A point a bin at its mean confidence and share of right answers; a calibrated model's lie on the diagonal."""
    width, height, left, top, side = 460, 300, 52, 12, 240

    def at(x: float, y: float) -> tuple[str, str]:
        return svg_place(left + x * (width - left - 14)), svg_place(top + (1 - y) * side)

    most = max((one["count"] for one in bins), default=1) or 1
    (x0, y0), (x1, y1) = at(0, 0), at(1, 1)
    parts = [
        Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(x0, x1, y0, y0),
        Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(x0, x0, y0, y1),
        Markup('<line class="axis ideal" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(x0, x1, y0, y1),
    ]
    for value in (0.0, 0.5, 1.0):
        parts.append(svg_text(float(at(value, 0)[0]), float(y0) + 16, f"{value:g}"))
        parts.append(svg_text(left - 6, float(at(0, value)[1]) + 4, f"{value:g}", anchor="end"))
    parts.append(svg_text((float(x0) + float(x1)) / 2, height - 8, "mean confidence of the answers"))
    parts.append(svg_text(left + 8, top + 10, "share that is right", anchor="start"))
    for one in bins:
        if not one["count"]:
            continue
        x, y = at(one["confidence"], one["accuracy"])
        _, ideal = at(one["confidence"], one["confidence"])
        told = f"{one['count']:g} answers, confidence {one['confidence']:.2f}, right {one['accuracy']:.2f}"
        parts.append(Markup('<line class="whisker" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(x, x, ideal, y))
        radius = 3 + 7 * math.sqrt(one["count"] / most)
        parts.append(
            Markup('<circle class="dot" cx="{}" cy="{}" r="{}"><title>{}</title></circle>').format(
                x, y, svg_place(radius), told
            )
        )
    return svg(width, height, "reliability diagram", parts)


def draw_groups(groups: Sequence[Mapping[str, Any]]) -> Markup:
    """A bar a group, as long as its mean is of the largest."""
    left, width, line = 220, 460, 20
    most = max(1.0, *(one["mean"] for one in groups))
    parts = []
    for place, one in enumerate(groups):
        y, length = place * line + 4, max(0.0, one["mean"]) / most * (width - left - 60)
        label = truncate(escape_control(one["group"]), _LONGEST_GROUP)
        parts.append(svg_text(left - 8, y + 12, label, anchor="end"))
        parts.append(
            Markup('<rect class="group" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
                left, y, svg_place(length), line - 6, f"{one['count']:g} rows, mean {one['mean']:.4f}"
            )
        )
        parts.append(svg_text(left + length + 6, y + 12, f"{one['mean']:.3f}", anchor="start"))
    return svg(width, len(groups) * line + 8, "means of groups", parts)


def _label(text: str) -> str:
    return truncate(escape_control(text), _LONGEST_LABEL)
