"""A gate's verdict for machines that read files: JUnit XML, and the summary page of a GitHub job."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from themis.comparison.gate import GateOutcome, GateVerdict
from themis.comparison.reports import show_interval
from themis.core.tables import escape_markdown, format_table

__all__ = ["append_github_summary", "github_summary", "junit_xml", "write_junit"]

_SIGNS = {GateOutcome.PASS: "✅ pass", GateOutcome.FAIL: "❌ fail", GateOutcome.UNKNOWN: "❔ could not tell"}
# XML 1.0 has no way to write these.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(verdict: GateVerdict) -> str:
    """One test case a check; what could not be told is an error rather than a failure."""
    failed = [check for check in verdict.checks if check.outcome is GateOutcome.FAIL]
    unknown = [check for check in verdict.checks if check.outcome is GateOutcome.UNKNOWN]
    suite = ElementTree.Element(
        "testsuite",
        name="themis gate",
        tests=str(len(verdict.checks)),
        failures=str(len(failed)),
        errors=str(len(unknown)),
        skipped="0",
    )
    suite_name = f"themis.gate.{verdict.candidate}"
    for check in verdict.checks:
        case = ElementTree.SubElement(suite, "testcase", classname=_xml_text(suite_name), name=_xml_text(check.name))
        if check.outcome is GateOutcome.PASS:
            ElementTree.SubElement(case, "system-out").text = _xml_text(check.reason)
        else:
            kind = "failure" if check.outcome is GateOutcome.FAIL else "error"
            ElementTree.SubElement(case, kind, message=_xml_text(check.reason), type=check.name)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def write_junit(verdict: GateVerdict, path: str | Path) -> None:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(junit_xml(verdict), encoding="utf-8")


def github_summary(verdict: GateVerdict) -> str:
    """The verdict as Markdown."""
    lines = [
        f"### Gate: {_SIGNS[verdict.outcome]}",
        "",
        f"{escape_markdown(verdict.candidate)} against {escape_markdown(verdict.baseline)} on {escape_markdown(verdict.metric)}",
        "",
    ]
    if verdict.candidate_mean is not None and verdict.baseline_mean is not None and verdict.delta is not None:
        interval = "" if verdict.interval is None else f", interval {escape_markdown(show_interval(verdict.interval))}"
        lines += [
            f"{verdict.candidate_mean:.4f} − {verdict.baseline_mean:.4f} = {verdict.delta:+.4f}{interval}, "
            f"{verdict.n} items",
            "",
        ]
    rows = [(check.name, _SIGNS[check.outcome], check.reason) for check in verdict.checks]
    lines.append(format_table(("Check", "Outcome", "Why"), rows))
    return "\n".join([*lines, ""])


def append_github_summary(verdict: GateVerdict, path: str | Path) -> None:
    """Adds to the file that GITHUB_STEP_SUMMARY names; earlier steps have written there too."""
    with Path(path).open("a", encoding="utf-8") as handle:
        handle.write(github_summary(verdict) + "\n")


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
