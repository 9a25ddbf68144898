"""Reports and samples as a notebook shows them: HTML that is escaped, free of secrets, and without script.

Notebooks are light or dark by themes of their own, which no media query tells: colours are inherited, and lines are greys that
can be seen on both. Styles stand in the elements, because a notebook that is not trusted loses style sheets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from themis.core.codec import format_value
from themis.core.markup import Raw, escape_control, truncate
from themis.core.redaction import Redactor
from themis.core.thresholds import format_measured
from themis.core.transcripts import (
    ShownCall,
    Turn,
    describe_ending,
    list_answered,
    list_asked,
    list_turns,
    without_retold,
)

if TYPE_CHECKING:
    from themis.core.entities import ExperimentReport, GenerationRecord, MetricAggregate

__all__ = ["render_block", "render_lines", "render_progress", "render_record", "render_report", "render_table"]

_LINE = "1px solid rgba(128,128,128,.4)"
_CELL = f"padding:3px 10px;border-bottom:{_LINE};vertical-align:top;text-align:"
_TEXT = (
    f"white-space:pre-wrap;overflow-wrap:anywhere;max-height:24em;overflow:auto;margin:2px 0 8px;padding:6px 10px;border:{_LINE};"
    "border-radius:4px;background:rgba(128,128,128,.08);color:inherit;font-family:ui-monospace,monospace;font-size:.92em"
)
_SOFT = "opacity:.75"
# Notebooks set what stands between two dollar signs as mathematics, prices too; versions of MathJax heed one class each.
_LITERAL = "tex2jax_ignore mathjax_ignore"
_SHOWN_SAMPLES = 5
_LONGEST_CELL = 160
_LONGEST_TEXT = 20_000
_BAR_WIDTH = 120


# --- a report -----------------------------------------------------------------------------------------------------------


def render_report(report: ExperimentReport) -> str:
    """Facts, caveats, metrics with their intervals, and the first samples folded away.

    Args:
        report: Of a run of either kind.
    """
    metadata, metrics = report.metadata, report.evaluation_report.metrics
    cost = (metadata.get("cost") or {}).get("total_cost")
    total = int(metadata.get("total_samples", len(report.generation_results)))
    failed = int(metadata.get("failed_generations", len(report.failures)))
    facts = [
        str(metadata.get("model") or ""),
        str(metadata.get("status") or ""),
        f"{total:,} samples",
        f"{failed:,} not answered" if failed else "",
        "price unknown" if cost is None else f"${cost:,.4f}",
    ]
    columns = ("metric", "mean", "95 % interval", "", "scored", "failed")
    rows = [
        (
            name,
            "n/a" if math.isnan(metric.mean) else format_measured(metric.mean),
            "n/a" if metric.ci is None else f"{format_measured(metric.ci[0])} – {format_measured(metric.ci[1])}",
            Raw(_draw_interval(metric)),
            f"{metric.count:,}",
            f"{metric.failed:,}",
        )
        for name, metric in metrics.items()
    ]
    table = render_table(columns, rows, right=(1, 2, 4, 5)) if rows else ""
    notes = list(metadata.get("caveats") or ())
    return render_block(str(metadata.get("run_id", "report")), facts, notes, [table, _fold_samples(report, total)])


def _draw_interval(metric: MetricAggregate) -> str:
    """The interval on a line from 0 to 1, for scores that lie there."""
    if metric.ci is None or metric.ci[0] < 0 or metric.ci[1] > 1:
        return ""
    low, mean, high = (round(place * (_BAR_WIDTH - 8) + 4, 1) for place in (metric.ci[0], metric.mean, metric.ci[1]))
    return (
        f'<svg width="{_BAR_WIDTH}" height="12" aria-hidden="true" style="vertical-align:middle">'
        f'<line x1="4" x2="{_BAR_WIDTH - 4}" y1="6" y2="6" stroke="currentColor" stroke-opacity=".25"/>'
        f'<line x1="{low}" x2="{high}" y1="6" y2="6" stroke="currentColor" stroke-width="3" stroke-opacity=".6"/>'
        f'<circle cx="{mean}" cy="6" r="4" fill="currentColor"/></svg>'
    )


def _fold_samples(report: ExperimentReport, total: int) -> str:
    records = list(islice(report.generation_results, _SHOWN_SAMPLES))
    if not records:
        return ""
    columns = ("sample", "prompt", "answer", "expected", "scores")
    rows = [
        (
            str(record.task.metadata.get("dataset_id", "")),
            truncate(" ".join(turn.text for turn in list_turns(list_asked(record.task))[-1:]), _LONGEST_CELL),
            truncate(f"{'' if record.error is None else 'no answer: '}{_answer_of(record)}", _LONGEST_CELL),
            truncate(_reference_of(record), _LONGEST_CELL),
            _format_scores(record),
        )
        for record in records
    ]
    more = "; report.to_frame() has all of them" if total > len(rows) else ""
    summary = f"{len(rows)} of {total:,} samples{more}"
    return (
        f'<details style="margin-top:6px"><summary>{_clean(summary)}</summary>{render_table(columns, rows)}</details>'
    )


# --- a sample -----------------------------------------------------------------------------------------------------------


def render_record(record: GenerationRecord) -> str:
    """What was said, part by part, or the error in its place; what was expected, and scores where the record has them.

    Args:
        record: One sample, with its attempts.
    """
    task, attempts = record.task, record.attempts if len(record.attempts) > 1 else [record]
    tokens = _sum_metrics(attempts, "prompt_tokens", "response_tokens")
    cost, milliseconds = _sum_metrics(attempts, "cost_usd"), _sum_metrics(attempts, "generation_time_ms")
    facts = [
        task.model.model_key,
        f"{tokens:,.0f} tokens" if tokens else "",
        f"{milliseconds / 1000:.3f} s" if milliseconds >= 1 else "< 1 ms" if milliseconds else "",
        f"${cost:.4g}" if cost else "",
        _format_scores(record),
    ]
    answers = [list_answered(attempt.output) for attempt in attempts]
    parts = _render_turns("Prompt", list_turns(without_retold(list_asked(task), answers)), usual="user")
    for number, (attempt, answer) in enumerate(zip(attempts, answers, strict=True), start=1):
        counted = f" {number} of {len(attempts)}" if len(attempts) > 1 else ""
        if attempt.output is None:
            parts.append(_render_text(f"No answer{counted}", _answer_of(attempt)))
        ending = describe_ending(attempt.output, task.sampling.max_tokens)
        name = f"Answer{counted}{f' ({ending})' if ending else ''}"
        parts += _render_turns(name, list_turns(answer), usual="assistant")
    if task.reference is not None:
        parts.append(_render_text("Expected", _reference_of(record)))
    return render_block(str(task.metadata.get("dataset_id", "sample")), facts, [], parts)


def _render_turns(name: str, turns: Sequence[Turn], *, usual: str) -> list[str]:
    """Each turn in its parts; who speaks is said where it is not only the one who usually does."""
    parts = []
    for turn in turns:
        is_expected = len(turns) == 1 and turn.role == usual
        speaker = name if is_expected else f"{name}: {turn.role}{f' {turn.name}' if turn.name else ''}"
        if turn.reasoning:
            thought = _render_text("", turn.reasoning)
            parts.append(f'<details style="{_SOFT}"><summary>{_clean(speaker)}: thinking</summary>{thought}</details>')
        said = [
            *([f"refused: {turn.refusal}"] if turn.refusal else []),
            *_texts_of(turn),
            *map(_format_call, turn.calls),
        ]
        parts.append(_render_text(speaker, "\n".join(said) or "(no text)"))
    return parts


def _texts_of(turn: Turn) -> list[str]:
    return [part.described for part in turn.parts if part.text != turn.refusal or not turn.refusal]


def _format_call(call: ShownCall) -> str:
    if call.result is None:
        return f"calls {call.written}"
    return f"calls {call.written}\n-> {call.outcome}"


def _sum_metrics(attempts: Iterable[GenerationRecord], *names: str) -> float:
    return math.fsum(attempt.metrics.get(name) or 0.0 for attempt in attempts for name in names)


def _answer_of(record: GenerationRecord) -> str:
    if record.output is not None:
        return (
            record.output.text
            or record.output.refusal
            or " ".join(f"calls {call.name}" for call in record.output.tool_calls)
        )
    return "" if record.error is None else f"{record.error.kind}: {record.error.message}"


def _reference_of(record: GenerationRecord) -> str:
    return "" if record.task.reference is None else format_value(record.task.reference.value)


def _format_scores(record: GenerationRecord) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in record.scores.items())


def _render_text(name: str, text: str) -> str:
    shown = truncate(text, _LONGEST_TEXT)
    cut = f" ({len(text):,} characters, the first {_LONGEST_TEXT:,} of them)" if shown != text else ""
    head = f'<div style="{_SOFT}">{_clean(name + cut)}</div>' if name or cut else ""
    return f'{head}<pre style="{_TEXT}">{_clean(shown)}</pre>'


# --- progress -----------------------------------------------------------------------------------------------------------


def render_progress(name: str, done: int, total: int, numbers: Iterable[str]) -> str:
    """A bar with what is known beside it.

    Args:
        name: Of the run.
        done: Items that are done.
        total: All of them.
        numbers: What stands beside the bar, such as the rate and the score so far.
    """
    told = " · ".join([f"{done:,}/{total:,}", *filter(None, numbers)])
    return (
        f'<div class="{_LITERAL}" style="color:inherit;font-size:.95em"><b>{_clean(name)}</b> '
        f'<progress value="{done}" max="{max(total, 1)}" style="width:14em;vertical-align:middle"></progress> '
        f"{_clean(told)}</div>"
    )


# --- parts --------------------------------------------------------------------------------------------------------------


def render_block(title: str, facts: Sequence[str], notes: Sequence[str], parts: Iterable[str]) -> str:
    """A heading with facts behind it, notes that must be read first, and parts that are HTML already.

    Args:
        title: The heading.
        facts: Short texts; empty ones are left out.
        notes: A line each, marked at the side.
        parts: HTML.
    """
    told = f'<span style="{_SOFT}">{_clean(" · ".join(filter(None, facts)))}</span>'
    marked = [
        f'<div style="border-left:3px solid #d08700;padding-left:8px;margin:4px 0">{_clean(note)}</div>'
        for note in notes
    ]
    body = "".join([*marked, *parts])
    head = f'<div style="margin-bottom:4px"><b>{_clean(title)}</b> {told}</div>'
    return f'<div class="{_LITERAL}" style="color:inherit">{head}{body}</div>'


def render_lines(lines: Iterable[str]) -> str:
    """Sentences below a table, a line each.

    Args:
        lines: Their texts.
    """
    return f'<div style="{_SOFT};margin-top:6px">{"<br>".join(map(_clean, lines))}</div>'


def render_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> str:
    """A table; texts are escaped, but for those that are `Raw`.

    Args:
        columns: The heads of the columns.
        rows: One text a column each.
        right: The places of the columns that stand at the right, as numbers do.

    >>> render_table(["metric"], [["<b>"]]).count("&lt;b&gt;")
    1
    """
    # A number is read as one, however little room there is.
    # Of a long word without spaces the next column would be out of sight.
    sides = [
        "right;white-space:nowrap" if place in set(right) else "left;overflow-wrap:anywhere;min-width:6em"
        for place in range(len(columns))
    ]

    def line(cells: Sequence[str], tag: str) -> str:
        shown = [cell if isinstance(cell, Raw) else _clean(cell) for cell in cells]
        row = "".join(f'<{tag} style="{_CELL}{side}">{cell}</{tag}>' for cell, side in zip(shown, sides, strict=True))
        return f'<tr style="background:transparent">{row}</tr>'

    body = "".join(line(row, "td") for row in rows)
    style = "border-collapse:collapse;margin:0;color:inherit"
    table = f'<table style="{style}"><thead>{line(columns, "th")}</thead><tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto">{table}</div>'


def _clean(text: str) -> str:
    """Text that stays text, without the secrets of this process."""
    return escape(escape_control(Redactor().values(text)))
