"""`report.html`: one page that needs nothing else, to read, search and hand on.

The page's head is a template; the samples follow as JSON in a block that no browser runs, written as they are read. A
policy in the page lets exactly our own script and style work and no request leave it, whatever a model has said.
"""

from __future__ import annotations

import base64
import hashlib
import math
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from themis.core.codec import format_value, json_bytes, to_plain
from themis.core.continuations import list_scored
from themis.core.entities import ExperimentReport, GenerationRecord, MetricAggregate, mean_scores
from themis.core.files import atomic_write
from themis.core.markup import escape_control, truncate
from themis.core.redaction import redact
from themis.core.transcripts import (
    ShownPart,
    Turn,
    describe_ending,
    list_answered,
    list_turns,
    shorten_data,
    without_retold,
)
from themis.experiment.export.charts import Chart, as_charts, draw_bars, draw_chart, draw_interval, histogram
from themis.experiment.export.measures import figures, report_details
from themis.experiment.export.samples import (
    Sample,
    all_failures,
    count_failed,
    format_interval,
    format_mean,
    join_samples,
    report_run_id,
)
from themis.runs.report import has_several_attempts, parameter_facts, performance_facts, report_standing

# What a browser opens without trouble; the other formats hold everything.
_LONGEST_TEXT = 20_000
_MOST_BYTES = 64 * 2**20
_LARGEST_PICTURE_BYTES = 2**20
_MOST_PICTURE_BYTES = 24 * 2**20
_MOST_REASONS = 20
_DISTINCT_REASONS = 1_000
_LONGEST_REASON = 400
_MOST_PLOTS = 12
# Text of the run is escaped, so neither can be in it.
_SAMPLES_GO_HERE, _LEFT_OUT_GOES_HERE = b"<!--samples-->", b"<!--left-out-->"

# In a script block nothing may look like a tag, whatever the block's type.
_SCRIPT_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def export_html(
    report: ExperimentReport,
    path: str | os.PathLike[str],
    *,
    run_id: str | None = None,
    charts: Iterable[Chart | Mapping[str, object]] | None = None,
    title: str = "Experiment report",
    sample_limit: int = 100,
) -> Path:
    """Writes a page that needs nothing else: scores with intervals, their distribution, and a browser for the samples.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        path: The file; its folder is made.
        run_id: What the run is called on the page; by default the report's own id.
        charts: Charts of your own, as `Chart` or as dicts of the same fields.
        title: The heading.
        sample_limit: How many samples the plain table has, which is what is printed and shown without scripts.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, progress=False)
    >>> export_html(report, "report.html").read_text().startswith("<!doctype html>")
    True
    """
    head, tail = _page(report, run_id, as_charts(charts), title, sample_limit)
    with atomic_write(path) as file:
        file.write(head)
        file.write(b"[")
        written, left_out, pictures = 0, 0, _Pictures(report.read_attachment)
        for sample in join_samples(report):
            if file.tell() - len(head) > _MOST_BYTES:
                left_out += 1
                continue
            file.write((b"," if written else b"") + b"\n" + _escape_script(json_bytes(_row(sample, pictures))))
            written += 1
        file.write(b"]" + tail.replace(_LEFT_OUT_GOES_HERE, str(left_out).encode()))
    return Path(path)


# --- the head ---------------------------------------------------------------------------------------------------------


def _page(
    report: ExperimentReport, run_id: str | None, charts: list[Chart], title: str, sample_limit: int
) -> tuple[bytes, bytes]:
    """What comes before the samples, and what comes after them."""
    script, style = _asset("page.js"), _asset("page.css")
    metadata = redact(to_plain(report.metadata, portable=True))
    metrics = report.evaluation_report.metrics
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["escape_control"] = lambda value: escape_control(str(value))
    environment.filters["in_words"] = format_value
    text = environment.from_string(_asset("page.html")).render(
        title=title,
        run_id=report_run_id(report, run_id),
        script=Markup(script),
        style=Markup(style),
        script_hash=_hash(script),
        style_hash=_hash(style),
        metadata=metadata,
        standing=report_standing(report),
        manifest=json_bytes(metadata.get("reproducibility_manifest") or {}, 2).decode(),
        cards=_cards(report, metadata),
        protocol=report.metadata.get("protocol"),
        caveats=report.metadata.get("caveats", []),
        performance=performance_facts(report.metadata.get("performance")).items(),
        parameters=parameter_facts(metadata.get("parameters")).items(),
        metrics=[_metric(name, metric) for name, metric in metrics.items()],
        has_attempts=any(has_several_attempts(metric.to_dict()) for metric in metrics.values()),
        explained=[pair for details in report_details(report).values() for pair in figures(details)],
        plots=_plots(report),
        charts=[(chart.title, draw_chart(chart)) for chart in charts],
        cost=_cost(metadata.get("cost") or {}),
        reasons=_reasons(report),
        failed=count_failed(report),
        first=list(islice(join_samples(report), sample_limit)),
        metric_names=list(metrics),
        coloured=[name for name, metric in metrics.items() if metric.higher_is_better and 0 <= metric.mean <= 1],
        columns=[(name, f"m{n}") for n, name in enumerate(metrics)],
        cut=_truncate,
        kept=len(report.generation_results),
    )
    head, _, tail = text.encode("utf-8", "backslashreplace").partition(_SAMPLES_GO_HERE)
    return head, tail


def _asset(name: str) -> str:
    return (files("themis.experiment.export") / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _cards(report: ExperimentReport, metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    cost = metadata.get("cost") or {}
    total = cost.get("total_cost")
    tokens = (cost.get("token_counts") or {}).get("total_tokens")
    shown = [
        ("samples", metadata.get("total_samples", len(report.generation_results))),
        ("answered", metadata.get("successful_generations")),
        ("without a verdict", count_failed(report)),
        ("calls", cost.get("api_calls")),
        ("tokens", tokens),
    ]
    cards = [(label, f"{value:,}") for label, value in shown if isinstance(value, int)]
    if cost:
        cards.append(("cost", "price unknown" if total is None else f"${total:,.4f}"))
    return cards


def _metric(name: str, metric: MetricAggregate) -> dict[str, object]:
    return {
        "name": name,
        "mean": format_mean(metric),
        "interval": format_interval(metric),
        "method": metric.ci_method or "",
        "count": metric.count,
        "failed": metric.failed,
        "unparsed": metric.unparsed,
        "attempts": metric.attempts,
        "failed_attempts": metric.failed_attempts,
        "strip": draw_interval(name, metric.mean, metric.ci),
    }


def _plots(report: ExperimentReport) -> list[tuple[str, Markup]]:
    values: dict[str, array[float]] = {
        name: array("d") for name in islice(report.evaluation_report.metrics, _MOST_PLOTS)
    }
    for record in report.evaluation_report.records:
        for name, value in mean_scores(record.scores).items():
            if name in values and math.isfinite(value):
                values[name].append(value)
    return [(name, draw_bars(f"scores of {name}", histogram(found))) for name, found in values.items() if found]


def _cost(cost: Mapping[str, object]) -> Mapping[str, object] | None:
    """The costs, where there are any or where they are not known."""
    return None if not cost or cost.get("total_cost") == 0 else cost


def _reasons(report: ExperimentReport) -> list[tuple[str, int]]:
    """The commonest reasons for failures. Messages that differ in every sample are counted together beyond a limit."""
    counted: Counter[str] = Counter()
    for failure in all_failures(report):
        # Messages often name the sample; without its name they are the same reason.
        message = failure.message.replace(repr(failure.sample_id), "'…'")
        reason = escape_control(truncate(message, _LONGEST_REASON))
        counted[reason if reason in counted or len(counted) < _DISTINCT_REASONS else "other reasons"] += 1
    return counted.most_common(_MOST_REASONS)


# --- the samples ------------------------------------------------------------------------------------------------------


def _row(sample: Sample, pictures: _Pictures) -> dict[str, object]:
    """What the page's script shows of a sample. Texts are cut, numbers are not."""
    known = ("dataset_id", "manifest_hash")
    task = sample.record.task.metadata if sample.record is not None else {}
    asked, attempts = _conversation(sample, pictures)
    return {
        "id": sample.sample_id or "",
        "prompt": _truncate(sample.prompt),
        # Nothing where the prompt, or the answer, is all that was said.
        "asked": asked,
        "output": None if sample.shown_output is None else _truncate(sample.shown_output),
        "reference": None if sample.reference is None else _truncate(format_value(sample.reference)),
        "scores": sample.mean_scores,
        "details": [
            {"metric": score.metric_name, "value": score.value, "details": _truncate(format_value(score.details))}
            for score in sample.scores
            if score.details
        ],
        "failures": [_truncate(failure) for failure in sample.failures],
        "row": {
            name: _truncate(format_value(shorten_data(value))) for name, value in task.items() if name not in known
        },
        "attempts": attempts,
        "pictures": pictures.take_new(),
    }


def _conversation(sample: Sample, pictures: _Pictures) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """The turns before the answer and those of each attempt, where they are more than a prompt and a text."""
    if sample.record is None or list_scored(sample.record):
        return [], []
    answers = [list_answered(attempt.output) for attempt in sample.attempts]
    asked = list_turns(without_retold(sample.messages, answers)) if sample.messages else []
    turns = [list_turns(answer) for answer in answers]
    has_more = len(turns) != 1 or len(turns[0]) != 1 or not turns[0][0].is_plain or bool(_ending(sample.attempts[0]))
    attempts = zip(sample.attempts, turns, sample.verdicts, strict=True) if has_more else ()
    return [_turn(turn, pictures) for turn in asked], [
        {
            "turns": [_turn(turn, pictures) for turn in said],
            "ending": _ending(attempt),
            "failed": None if attempt.error is None else _truncate(attempt.error.message),
            "verdicts": [vars(verdict) for verdict in verdicts],
        }
        for attempt, said, verdicts in attempts
    ]


def _ending(attempt: GenerationRecord) -> str:
    return describe_ending(attempt.output, attempt.task.sampling.max_tokens)


def _turn(turn: Turn, pictures: _Pictures) -> dict[str, object]:
    return {
        "role": turn.role,
        "name": turn.name,
        "parts": [_part(part, pictures) for part in turn.parts],
        "reasoning": _truncate(turn.reasoning),
        "refusal": _truncate(turn.refusal),
        "calls": [
            {
                "name": call.name,
                "arguments": _truncate(call.pretty) if call.arguments or call.invalid else "",
                "invalid": bool(call.invalid),
                "result": None if call.result is None else _turn(call.result, pictures),
            }
            for call in turn.calls
        ],
        "error": turn.is_error,
    }


def _part(part: ShownPart, pictures: _Pictures) -> dict[str, str]:
    """A text, or a picture by its digest with what stands for it where it is not in the page."""
    digest, note = pictures.find(part) if part.is_picture else ("", "")
    return {"text": _truncate(part.described) + note, "picture": digest}


class _Pictures:
    """The images that the page holds, each once, with the first sample that shows it."""

    def __init__(self, read: Callable[[str], bytes | None] | None) -> None:
        self._read = read
        self._known: dict[str, str] = {}
        self._new: dict[str, str] = {}
        self._left_bytes = _MOST_PICTURE_BYTES

    def find(self, part: ShownPart) -> tuple[str, str]:
        """The digest of a picture that is in the page; or nothing, and why it is not."""
        if part.digest not in self._known:
            self._known[part.digest] = self._take(part)
        note = self._known[part.digest]
        return ("", note) if note else (part.digest, "")

    def _take(self, part: ShownPart) -> str:
        content = part.content
        if content is None and self._read is not None:
            content = self._read(part.digest)
        if content is None:
            return " (not in the store)"
        if len(content) > min(_LARGEST_PICTURE_BYTES, self._left_bytes):
            return f" ({len(content):,} bytes: too large for this page)"
        self._left_bytes -= len(content)
        self._new[part.digest] = f"data:{part.media_type};base64,{base64.b64encode(content).decode('ascii')}"
        return ""

    def take_new(self) -> dict[str, str]:
        """Those that no sample before has brought."""
        found, self._new = self._new, {}
        return found


def _truncate(text: str, longest: int = _LONGEST_TEXT) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… [{len(text):,} characters in all]"


def _escape_script(data: bytes) -> bytes:
    text = data.decode()
    for character, escaped in _SCRIPT_ESCAPES.items():
        text = text.replace(character, escaped)
    return text.encode()
