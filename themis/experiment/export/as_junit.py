"""`junit.xml`: a test case for each sample and metric, for the page of a build server."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from themis.core.codec import format_value
from themis.core.entities import ExperimentReport
from themis.core.files import atomic_write
from themis.core.markup import truncate
from themis.experiment.export.samples import Sample, join_samples, report_run_id

# XML has no way to write these characters, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST_TEXT = 2_000


@dataclass(frozen=True)
class _Case:
    """`outcome` is passed, failure (the model's), error (the world's) or skipped (nothing to pass)."""

    metric: str
    sample_id: str
    outcome: str
    message: str = ""
    text: str = ""


def export_junit(
    report: ExperimentReport, path: str | os.PathLike[str], *, run_id: str | None = None, pass_at: float = 0.5
) -> Path:
    """Writes a test case for each sample and metric; one without an answer or a verdict is an error.

    Args:
        report: What `evaluate` returned, or `build_report` made from the store.
        path: The file; its folder is made.
        run_id: The name of the suite; by default the report's own id.
        pass_at: A score below it is a failed test.

    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", limit=2, progress=False)
    >>> print(export_junit(report, "junit.xml").read_text().splitlines()[1])
    <testsuites tests="2" failures="0" errors="0">
    """
    name = _attribute(report_run_id(report, run_id))
    # Readers want the counts first, so the samples are gone through twice.
    counted = Counter(case.outcome for case in _cases(report, pass_at))
    skipped = f' skipped="{counted["skipped"]}"' if counted["skipped"] else ""
    counts = f'tests="{counted.total()}" failures="{counted["failure"]}" errors="{counted["error"]}"{skipped}'
    with atomic_write(path) as file:
        file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n')
        file.write(f"<testsuites {counts}>\n<testsuite name={name} {counts}>\n".encode())
        for case in _cases(report, pass_at):
            file.write(_element(case).encode())
        file.write(b"</testsuite>\n</testsuites>\n")
    return Path(path)


def _cases(report: ExperimentReport, pass_at: float) -> Iterator[_Case]:
    names = list(report.evaluation_report.metrics)
    for sample in join_samples(report):
        scores = sample.mean_scores
        sample_id, reasons = str(sample.sample_id), "; ".join(sample.failures)
        if not scores:
            yield _Case("sample", sample_id, "error", reasons or "not judged")
            continue
        for metric in names:
            if metric not in scores:
                # A metric need not judge every sample: those of memory tests judge their own kind.
                if reasons:
                    yield _Case(metric, sample_id, "error", reasons)
            elif not report.evaluation_report.metrics[metric].higher_is_better:
                why = "of a count, a time or a distance more is not better"
                yield _Case(metric, sample_id, "skipped", f"{scores[metric]:g}: {why}, so no score passes")
            elif scores[metric] < pass_at:
                yield _Case(
                    metric, sample_id, "failure", f"{scores[metric]:g} is below {pass_at:g}", _tell_answer(sample)
                )
            else:
                yield _Case(metric, sample_id, "passed")


def _tell_answer(sample: Sample) -> str:
    """What was said and expected. Each has room: behind a long answer nobody would see what was expected."""
    expected = "" if sample.reference is None else format_value(sample.reference)
    return (
        f"answer: {truncate(sample.shown_output or '', _LONGEST_TEXT)}\nexpected: {truncate(expected, _LONGEST_TEXT)}"
    )


def _element(case: _Case) -> str:
    opening = f"<testcase classname={_attribute(case.metric)} name={_attribute(case.sample_id)}"
    if case.outcome == "passed":
        return f"{opening}/>\n"
    message = _attribute(truncate(case.message, _LONGEST_TEXT))
    reason = f"<{case.outcome} message={message}>{escape(_legal(case.text))}</{case.outcome}>"
    return f"{opening}>{reason}</testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
