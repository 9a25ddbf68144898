"""A run in one picture and a few lines: a badge for a README, and the Markdown that shows it."""

from __future__ import annotations

import datetime
import math
import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from themis.core.codec import json_bytes
from themis.core.entities import ExperimentReport, MetricAggregate
from themis.core.files import atomic_write, safe_filename
from themis.core.markup import escape_control, escape_markdown
from themis.core.redaction import redact_text
from themis.exceptions import MetricError
from themis.experiment.export.as_tables import export_markdown
from themis.experiment.export.samples import format_mean
from themis.runs.report import build_report, has_several_attempts, report_standing
from themis.storage import DEFAULT_STORAGE, ExperimentStorage

EVENTS_FILE = "share_events.jsonl"

_LONGEST_NAME_BYTES = 200

_WIDTH, _MARGIN = 520, 20
# Shares of the font size that letters take in the widest of the common sans-serif fonts; a bold one takes more.
_NARROW, _CAPITAL, _WIDE = 0.64, 0.80, 1.04
_BOLD = 1.12
# Of the mean, where it is not that of a run without failures.
_COLOURS = {"partial": "#9a6700", "failed": "#b42318"}


@dataclass(frozen=True)
class SharePack:
    """The files of a shared run, and the line to paste.

    Args:
        run_id: The run.
        metric: Whose mean the badge shows.
        svg_path: The badge.
        markdown_path: The summary.
        markdown_snippet: The line that shows the badge.
        event_log_path: Where the store notes what was shared.
    """

    run_id: str
    metric: str
    svg_path: Path
    markdown_path: Path
    markdown_snippet: str
    event_log_path: Path


def create_share_pack(
    run_id: str,
    *,
    storage_root: str | Path | ExperimentStorage = DEFAULT_STORAGE,
    output_dir: str | os.PathLike[str] = ".",
    metric: str | None = None,
) -> SharePack:
    """Writes `themis-share-<id>.svg` and `.md`, and notes it in the store.

    Args:
        run_id: The run.
        storage_root: The store that has it: a folder, a database's address, or one that is open already.
        output_dir: Where the files go; it is made.
        metric: Whose mean the badge shows; by default the one with most samples, the first of them.

    Raises:
        StorageError: There is no such run.
        MetricError: The run has no such metric, or no scores at all.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", run_id="first", progress=False)
    >>> create_share_pack("first", output_dir="docs").markdown_snippet
    '![first: ExactMatch 1.000](<themis-share-first.svg>)'
    """
    storage = storage_root if isinstance(storage_root, ExperimentStorage) else ExperimentStorage(storage_root)
    storage.get_run(run_id)
    report = build_report(storage, run_id)
    chosen = _choose_metric(report, metric)
    folder = Path(output_dir)
    # A run id has no separators in it, so the name stays in the folder; but it may be longer than a file's name can be.
    word = run_id if len(run_id.encode()) <= _LONGEST_NAME_BYTES else safe_filename(run_id)
    svg, markdown = folder / f"themis-share-{word}.svg", folder / f"themis-share-{word}.md"
    with atomic_write(svg) as file:
        file.write(draw_badge(report, chosen).encode("utf-8", "backslashreplace"))
    snippet = f"![{escape_markdown(_title(report, chosen))}](<{svg.name}>)"
    export_markdown(report, markdown, run_id=run_id, picture=snippet)
    events = _log_event(storage, run_id, chosen, folder, svg)
    return SharePack(run_id, chosen.name, svg, markdown, snippet, events)


def draw_badge(report: ExperimentReport, metric: MetricAggregate) -> str:
    """One card. Every line has a place of its own, and text that is too long for it is cut."""
    standing = report_standing(report)
    facts = [
        ("status", str(standing or "unknown")),
        ("model", str(report.metadata.get("model") or "unknown")),
        ("samples", _samples(report, metric)),
        ("manifest", str(report.metadata.get("manifest_hash") or "none")[:16]),
    ]
    colour = _COLOURS.get(standing.kind if standing else "", "#0b62c4")
    right = f"95 % interval {metric.ci[0]:.3f} – {metric.ci[1]:.3f}" if metric.ci else "no interval"
    lines = [
        _line(_MARGIN, 32, str(report.metadata.get("run_id") or "run"), 17, "#1b1f24", weight="bold"),
        _line(_MARGIN, 58, metric.name, 14, "#57606a", room=_WIDTH // 2),
        _line(_MARGIN, 98, format_mean(metric, digits=3), 34, colour, weight="bold", room=_WIDTH // 2 - _MARGIN),
        _line(_WIDTH - _MARGIN, 96, right, 13, "#57606a", anchor="end", room=_WIDTH // 2),
    ]
    for n, (name, value) in enumerate(facts):
        y = 132 + 21 * n
        lines.append(_line(_MARGIN, y, name, 13, "#57606a", room=90))
        lines.append(_line(_MARGIN + 90, y, value, 13, "#1b1f24", room=_WIDTH - 2 * _MARGIN - 90 - 60))
    height = 132 + 21 * len(facts)
    lines.append(_line(_WIDTH - _MARGIN, height - 21, "themis", 12, "#8a94a0", anchor="end", room=60))
    title = escape(escape_control(_title(report, metric)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'role="img" font-family="system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif">'
        f"<title>{title}</title>"
        f'<rect x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="10" fill="#ffffff" stroke="#d0d7de"/>'
        f'<line x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="112" y2="112" stroke="#d0d7de"/>'
        f"{''.join(lines)}</svg>\n"
    )


def _title(report: ExperimentReport, metric: MetricAggregate) -> str:
    """What is read where the picture is not seen: the number, and whatever is wrong with the run."""
    standing = report_standing(report)
    wrong = f", {standing}" if standing is not None and standing.kind != "completed" else ""
    return f"{report.metadata.get('run_id')}: {metric.name} {format_mean(metric, digits=3)}{wrong}"


def _line(
    x: int, y: int, text: str, size: int, colour: str, *, anchor: str = "start", weight: str = "normal", room: int = 0
) -> str:
    shown = _truncate_to(
        escape_control(redact_text(text)), (room or _WIDTH - 2 * _MARGIN) / size / (_BOLD if weight == "bold" else 1)
    )
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{colour}" text-anchor="{anchor}">'
        f"{escape(shown)}</text>"
    )


def _truncate_to(text: str, room: float) -> str:
    """As much of a text as surely fits into so many font sizes."""
    used = 0.0
    for place, letter in enumerate(text):
        used += _letter_width(letter)
        if used > room - _WIDE:
            return text if place == len(text) - 1 and used <= room else f"{text[:place]}…"
    return text


def _letter_width(letter: str) -> float:
    if letter in "WM@%—…" or unicodedata.east_asian_width(letter) in "WF":
        return _WIDE
    return _CAPITAL if letter.isupper() else _NARROW


def _choose_metric(report: ExperimentReport, metric: str | None) -> MetricAggregate:
    if metric is not None:
        return report.metric(metric)
    metrics = report.evaluation_report.metrics.values()
    if not metrics:
        raise MetricError(f"run {report.metadata.get('run_id')!r} has no scores to share: {report_standing(report)}")
    # The first that judged most: in a memory run each kind of test has a metric of its own, beside the one of all.
    return max(metrics, key=lambda aggregate: aggregate.count + aggregate.failed)


def _samples(report: ExperimentReport, metric: MetricAggregate) -> str:
    failed = f", {metric.failed:,} failed" if metric.failed else ""
    lost = f", {metric.failed_attempts:,} of {metric.attempts:,} attempts failed" if metric.failed_attempts else ""
    several = lost if has_several_attempts(metric.to_dict()) else ""
    return f"{report.metadata.get('total_samples', metric.count):,}, {metric.count:,} scored{failed}{several}"


def _log_event(storage: ExperimentStorage, run_id: str, metric: MetricAggregate, folder: Path, svg: Path) -> Path:
    event = {
        "event": "share_created",
        "timestamp": datetime.datetime.now(datetime.UTC).isoformat(),
        "run_id": run_id,
        "metric": metric.name,
        "metric_value": None if math.isnan(metric.mean) else metric.mean,
        "output_dir": str(folder),
        "svg_path": str(svg),
    }
    storage.root.mkdir(parents=True, exist_ok=True)
    events = storage.root / EVENTS_FILE
    # One write of one line: two processes that share at once do not mix their events.
    with events.open("ab", buffering=0) as file:
        file.write(json_bytes(event) + b"\n")
    return events
