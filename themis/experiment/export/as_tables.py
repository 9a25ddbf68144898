"""Tables: one row a sample for spreadsheets and notebooks (CSV, Parquet), one row a metric for people (Markdown, LaTeX)."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

from themis.core.codec import format_value
from themis.core.entities import ExperimentReport
from themis.core.files import atomic_write
from themis.core.markup import Raw, escape_latex, escape_markdown, format_table, truncate
from themis.core.registry import import_extra
from themis.core.transcripts import shorten_data
from themis.experiment.export.samples import (
    Sample,
    all_failures,
    answer_parts,
    count_failed,
    format_interval,
    format_mean,
    join_samples,
    report_run_id,
)
from themis.runs.report import has_several_attempts, parameter_facts, performance_facts, report_standing
from themis.storage.runs import batched

# A spreadsheet takes a cell that starts so for a formula, and runs it.
# The wide forms too: some spreadsheets read them as the narrow ones.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_SHOWN_FAILURES = 10
_LONGEST_FAILURE = 300
_ROWS_A_GROUP = 2_000
_LARGEST_INTEGER = 2**63


_COUNTS: dict[str, Callable[[Sample], object]] = {
    "attempts": lambda sample: len(sample.attempts),
    "failed_attempts": lambda sample: sum(attempt.error is not None for attempt in sample.attempts),
}


# --- CSV --------------------------------------------------------------------------------------------------------------


def export_csv(report: ExperimentReport, path: str | os.PathLike[str]) -> Path:
    """Writes a row a sample: sample_id, the rows' fields, attempts and how many failed, one column a metric, failures.

    A missing score is an empty cell. The mean of a metric's column is the report's mean. What answers are beside their texts
    (`reasoning`, `tool_calls`, `refusal`, `finish_reason`, `parts`, `transcript`) has a column where any sample has it.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        path: The file; its folder is made.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, progress=False)
    >>> [row] = csv.DictReader(export_csv(report, "report.csv").open())
    >>> row["question"], row["metric:ExactMatch"]
    ('What is 2 + 2?', '1.0')
    """
    kinds, metrics, parts = _fields(report)
    own: dict[str, Callable[[Sample], object]] = {**_COUNTS, **{name: partial(_part, name) for name in parts}}
    # A row may have a field named as one of ours.
    fields = {f"row:{name}" if name in own else name: partial(_field, name) for name in kinds}
    columns = dict(sorted((fields | own).items()))
    with atomic_write(path) as file:
        # Half a surrogate pair cannot be written in UTF-8; it is spelled out.
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        # Lines end as RFC 4180 says; with another ending the writer would leave a bare return in a cell unquoted.
        table = csv.writer(text, lineterminator="\r\n")
        header = ["sample_id", *columns, *(f"metric:{name}" for name in metrics), "failures"]
        table.writerow([csv_safe(name) for name in header])
        for sample in join_samples(report):
            table.writerow(_row(sample, columns, metrics))
        text.flush()
        text.detach()
    return Path(path)


def _fields(report: ExperimentReport) -> tuple[dict[str, set[type]], list[str], list[str]]:
    """The fields that any sample has, with the kinds of their values, the metrics, and the parts of answers beside texts; rows
    need not all have the same."""
    fields: dict[str, set[type]] = {}
    metrics, parts = set(report.evaluation_report.metrics), set[str]()
    for sample in join_samples(report):
        metrics.update(score.metric_name for score in sample.scores)
        parts.update(answer_parts(None if sample.record is None else sample.record.output))
        for name, value in sample.metadata.items():
            fields.setdefault(name, set()).add(kind_of(value))
    return fields, sorted(metrics), sorted(parts)


def _row(sample: Sample, columns: Mapping[str, Callable[[Sample], object]], metrics: list[str]) -> list[object]:
    scores = sample.mean_scores
    return [
        csv_safe(sample.sample_id),
        *(csv_safe(read(sample)) for read in columns.values()),
        *(scores.get(name, "") for name in metrics),
        csv_safe("; ".join(sample.failures)),
    ]


def csv_safe(value: object) -> object:
    """A cell that no spreadsheet runs: text that starts like a formula gets an apostrophe before it."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return value
    text = format_value(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


# --- Parquet ----------------------------------------------------------------------------------------------------------


def export_parquet(report: ExperimentReport, path: str | os.PathLike[str]) -> Path:
    """Writes a row a sample: sample_id, prompt, output, reference, error, failures, attempts, a column a metric and a field.

    A field of numbers, or of truth values, has that type; any other is text, lists and dicts as JSON. What answers are beside
    their texts has a column where any sample has it, as in a CSV file.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        path: The file; its folder is made.

    Raises:
        DependencyError: The package pyarrow is not installed.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, progress=False)
    >>> export_parquet(report, "report.parquet").name
    'report.parquet'
    """
    pa, pq = (import_extra(module, "hub", "exporting Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    columns = _columns(report)
    types = {float: pa.float64(), int: pa.int64(), bool: pa.bool_(), str: pa.string()}
    schema = pa.schema([(name, types[kind]) for name, (kind, _) in columns.items()])
    with atomic_write(path) as file, pq.ParquetWriter(file, schema) as writer:
        for samples in batched(join_samples(report), _ROWS_A_GROUP):
            arrays = [
                pa.array([as_kind(read(sample), kind) for sample in samples], type=types[kind])
                for kind, read in columns.values()
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return Path(path)


Column = tuple[type, Callable[[Sample], object]]


def _columns(report: ExperimentReport) -> dict[str, Column]:
    fields, metrics, parts = _fields(report)
    columns: dict[str, Column] = {
        "sample_id": (str, lambda sample: sample.sample_id),
        "prompt": (str, lambda sample: sample.prompt),
        "output": (str, lambda sample: sample.output),
        "reference": (str, lambda sample: sample.reference),
        "error": (str, lambda sample: sample.record.error.message if sample.record and sample.record.error else None),
        "failures": (str, lambda sample: "; ".join(sample.failures)),
        **{name: (int, count) for name, count in _COUNTS.items()},
        **{name: (str, partial(_part, name)) for name in parts},
    }
    for name in metrics:
        columns[f"metric:{name}"] = (float, partial(_score, name))
    for name in sorted(fields):
        # A row may have a field named as one of ours.
        column = name if name not in columns else f"row:{name}"
        # Of most runs it is never set, and is a number all the same.
        kinds = fields[name] | ({float} if name == "sampling_top_p" else set())
        columns[column] = (common_kind(kinds), partial(_field, name))
    return columns


def _score(name: str, sample: Sample) -> float | None:
    return sample.mean_scores.get(name)


def _part(name: str, sample: Sample) -> object:
    """What an answer is beside its text; images in base64 are no table's business."""
    found = answer_parts(None if sample.record is None else sample.record.output)
    return shorten_data(found.get(name))


def _field(name: str, sample: Sample) -> object:
    return sample.metadata.get(name)


def kind_of(value: object) -> type:
    """Of what kind a column is that holds this value: truth values, whole numbers, numbers or text."""
    if value is None:
        return type(None)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LARGEST_INTEGER:
        return str
    return type(value) if type(value) in (bool, int, float) else str


def common_kind(kinds: set[type]) -> type:
    """The kind of a column that holds values of all these."""
    kinds = kinds - {type(None)}
    if len(kinds) == 1:
        return next(iter(kinds))
    return float if kinds == {int, float} else str


def as_kind(value: object, kind: type) -> object:
    """A value as a column of this kind has it; what is missing stays None."""
    if value is None:
        return None
    if kind is str:
        # Arrow strings are UTF-8, which cannot hold half a surrogate pair.
        return format_value(value).encode("utf-8", "backslashreplace").decode()
    return kind(value)


# --- Markdown and LaTeX -----------------------------------------------------------------------------------------------


def export_markdown(
    report: ExperimentReport, path: str | os.PathLike[str], *, run_id: str | None = None, picture: str | None = None
) -> Path:
    """Writes facts, metrics and first failures.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        path: The file; its folder is made.
        run_id: The heading; by default the report's own id.
        picture: A line of Markdown to put under the heading.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, progress=False)
    >>> print(export_markdown(report, "report.md", run_id="First").read_text().splitlines()[0])
    # First
    """
    cost = (report.metadata.get("cost") or {}).get("total_cost")
    failed = count_failed(report)
    facts = {
        "model": report.metadata.get("model"),
        "samples": report.metadata.get("total_samples", len(report.generation_results)),
        "failed": failed,
        "cost": "price unknown" if cost is None else f"${cost:.4f}",
        **performance_facts(report.metadata.get("performance")),
        **parameter_facts(report.metadata.get("parameters")),
        "status": report_standing(report),
        "protocol": report.metadata.get("protocol"),
        "manifest": report.metadata.get("manifest_hash"),
    }
    lines = [f"# {escape_markdown(report_run_id(report, run_id))}", "", *((picture, "") if picture else ())]
    lines += [f"- {name}: {escape_markdown(str(value))}" for name, value in facts.items() if value is not None]
    lines += [
        line for caveat in report.metadata.get("caveats", ()) for line in ("", f"> **{escape_markdown(caveat)}**")
    ]
    columns = _metric_columns(report)
    lines += ["", format_table(columns, _metric_rows(report, "–"), right=(1, *range(3, len(columns))))]
    if failed:
        lines += ["", "## Failures", ""]
        for failure in islice(all_failures(report), _SHOWN_FAILURES):
            message = escape_markdown(truncate(failure.message, _LONGEST_FAILURE))
            lines.append(f"- {escape_markdown(str(failure.sample_id))}: {message}")
        if failed > _SHOWN_FAILURES:
            lines.append(f"- … {failed} samples in all")
    return _write(path, lines)


def export_latex(report: ExperimentReport, path: str | os.PathLike[str], *, run_id: str | None = None) -> Path:
    """Writes a `tabular` to input, with the rules of the package booktabs.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        path: The file; its folder is made.
        run_id: What the run is called in a comment; by default the report's own id.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=1, progress=False)
    >>> "ExactMatch & 1.0000" in export_latex(report, "report.tex").read_text()
    True
    """
    columns = [Raw(name.capitalize().replace(" %", r"\,\%")) for name in _metric_columns(report)]
    table = format_table(columns, _metric_rows(report, "--"), "latex", right=range(1, len(columns)))
    name, model = report_run_id(report, run_id), str(report.metadata.get("model") or "")
    run = f"% run {escape_latex(name)}, model {escape_latex(model)}"
    facts = performance_facts(report.metadata.get("performance")) | parameter_facts(report.metadata.get("parameters"))
    told = [f"% {escape_latex(name)}: {escape_latex(text)}" for name, text in facts.items()]
    caveats = [f"% {escape_latex(caveat)}" for caveat in report.metadata.get("caveats", ())]
    return _write(path, ["% needs \\usepackage{booktabs}", *caveats, table, run, *told])


def _has_attempts(report: ExperimentReport) -> bool:
    return any(has_several_attempts(metric.to_dict()) for metric in report.evaluation_report.metrics.values())


def _metric_columns(report: ExperimentReport) -> list[str]:
    """With attempts where samples have several of them."""
    attempts = ["attempts", "failed attempts"] if _has_attempts(report) else []
    return ["metric", "mean", "95 % interval", "scored", "failed", *attempts]


def _metric_rows(report: ExperimentReport, dash: str) -> list[list[str]]:
    has_attempts = _has_attempts(report)
    return [
        [
            *(name, format_mean(metric), format_interval(metric, dash), str(metric.count), str(metric.failed)),
            *((str(metric.attempts), str(metric.failed_attempts)) if has_attempts else ()),
        ]
        for name, metric in report.evaluation_report.metrics.items()
    ]


def _write(path: str | os.PathLike[str], lines: list[str]) -> Path:
    with atomic_write(path) as file:
        file.write("\n".join([*lines, ""]).encode("utf-8", "backslashreplace"))
    return Path(path)
