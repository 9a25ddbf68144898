"""`themis compare`, `diff`, `power` and `gate`: what separates runs, item by item and beyond chance."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from themis.cli.completing import RUN_ID
from themis.cli.output import json_option, print_json, print_table, storage_option, write_page
from themis.cli.terminal import escape_terminal
from themis.comparison.diff import Change, RunDiff, diff_runs, item_row, write_diff
from themis.comparison.engine import CORRECTIONS, ComparisonEngine, StatisticalTest
from themis.comparison.gate import Gate, GateOutcome, GateVerdict, append_github_summary, write_junit
from themis.comparison.latex import latex_table
from themis.comparison.pages import comparison_page
from themis.comparison.power import ComparisonPlan, plan_comparison
from themis.comparison.reports import ComparisonReport, format_interval, markdown_table
from themis.core.codec import json_bytes
from themis.core.markup import truncate
from themis.exceptions import ConfigurationError

_SHOWN_ITEMS = 20
_LONGEST_TEXT = 200
_CHANGED = (Change.BROKEN, Change.FIXED)

across_option = click.option(
    "--across",
    is_flag=True,
    help="Pair items by id whatever they hold, and weigh runs that were judged differently; the output says so.",
)


@click.command()
@click.argument("run_ids", type=RUN_ID, metavar="RUN RUN...", nargs=-1, required=True)
@storage_option
@click.option(
    "--metric", "metrics", multiple=True, help="Only this metric, may be repeated; all common ones otherwise."
)
@click.option("--test", type=click.Choice([test.value for test in StatisticalTest]), default="auto", show_default=True,
              help="How differences are weighed; auto takes what fits the scores and says why.")  # fmt: skip
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Accepted rate of false alarms.")
@click.option("--correction", type=click.Choice([*CORRECTIONS, "none"]), default="holm-bonferroni", show_default=True,
              help="For the number of comparisons in the report.")  # fmt: skip
@click.option("--lower-is-better", multiple=True, metavar="METRIC",
              help="Metric whose smaller value wins although it does not say so itself, may be repeated.")  # fmt: skip
@click.option("--resamples", type=click.IntRange(min=100), default=10_000, show_default=True, help="Random draws.")
@across_option
@click.option("--details", is_flag=True, help="Also every pair, and who beat whom.")
@click.option("-o", "--output", "outputs", multiple=True, metavar="FILE", type=click.Path(dir_okay=False),
              help="Also write the comparison to this .html, .json, .md or .tex file; may be repeated.")  # fmt: skip
@click.option("--latex", "form", flag_value="latex", help="Print a LaTeX table.")
@click.option("--markdown", "form", flag_value="markdown", help="Print a Markdown table.")
@json_option
def compare(
    run_ids: tuple[str, ...],
    storage: str,
    metrics: tuple[str, ...],
    test: str,
    alpha: float,
    correction: str,
    lower_is_better: tuple[str, ...],
    resamples: int,
    across: bool,
    details: bool,
    outputs: tuple[str, ...],
    form: str | None,
    as_json: bool,
) -> None:
    """Compare runs on the items they share: differences, intervals, p-values corrected for their number."""
    renderers = [_find_renderer(path) for path in outputs]
    engine = ComparisonEngine(
        storage_path=storage,
        statistical_test=test,
        alpha=alpha,
        n_bootstrap=resamples,
        n_permutations=resamples,
        multiple_comparison_correction=None if correction == "none" else correction,
        lower_is_better=lower_is_better,
        across=across,
    )
    report = engine.compare_runs(run_ids, metrics=metrics or None)
    for path, render in zip(outputs, renderers, strict=True):
        write_page(path, f"{render(report).rstrip()}\n")
    if as_json:
        print_json(report.to_dict())
    elif form == "latex":
        click.echo(latex_table(report))
    elif form == "markdown":
        click.echo(markdown_table(report))
    else:
        _print_report(report, details=details)


_RENDERERS: dict[str, Callable[[ComparisonReport], str]] = {
    ".htm": comparison_page,
    ".html": comparison_page,
    ".json": lambda report: json_bytes(report.to_dict(), indent=2).decode(),
    ".md": markdown_table,
    ".tex": latex_table,
}


def _find_renderer(path: str) -> Callable[[ComparisonReport], str]:
    suffix = Path(path).suffix.lower()
    if suffix not in _RENDERERS:
        raise ConfigurationError(
            f"a comparison is written as .html, .json, .md or .tex, got {path!r}; `themis diff A B --to FILE` writes items"
        )
    return _RENDERERS[suffix]


def _print_report(report: ComparisonReport, *, details: bool) -> None:
    click.echo(report.summary(include_details=details))
    if not details:
        for result in report.pairwise_results:
            click.echo(result.summary(report.names()))
    for line in report.reasons():
        click.echo(f"test of {line}")
    for line in report.judge_lines():
        click.echo(escape_terminal(line))


@click.command()
@click.argument("run_a", type=RUN_ID, metavar="A")
@click.argument("run_b", type=RUN_ID, metavar="B")
@storage_option
@click.option(
    "--metric", "metrics", multiple=True, help="Only this metric, may be repeated; all common ones otherwise."
)
@click.option(
    "--only",
    type=click.Choice([change.value for change in Change]),
    help="Only items of this kind; otherwise what changed, and everything in a file.",
)
@click.option("--limit", type=click.IntRange(min=1), help=f"At most so many items; {_SHOWN_ITEMS} on the terminal.")
@click.option(
    "--threshold",
    type=float,
    default=0.5,
    show_default=True,
    help="The least score that counts as right; the most, where lower is better.",
)
@across_option
@click.option(
    "--to", "target", type=click.Path(dir_okay=False), help="Write all items to a .csv, .jsonl or .html file."
)
@json_option
def diff(
    run_a: str,
    run_b: str,
    storage: str,
    metrics: tuple[str, ...],
    only: str | None,
    limit: int | None,
    threshold: float,
    across: bool,
    target: str | None,
    as_json: bool,
) -> None:
    """Which items B fixed and which it broke since A, with inputs and both outputs."""
    found = diff_runs(run_a, run_b, storage_path=storage, metrics=metrics or None, threshold=threshold, across=across)
    if target is not None:
        written = write_diff(found, found.items(only=only, limit=limit), target)
        click.echo(f"wrote {written} items to {target}", err=True)
    wanted = _CHANGED if only is None else (Change(only),)
    if as_json:
        # With a file, the texts are there.
        items = [] if target is not None else [item_row(item) for item in found.items(only=wanted, limit=limit)]
        print_json({**found.to_dict(), "items": items})
        return
    _print_counts(found)
    if target is None:
        _print_items(found, wanted, limit or _SHOWN_ITEMS)


def _print_counts(found: RunDiff) -> None:
    rows = [
        (
            part.metric,
            part.counts[Change.FIXED],
            part.counts[Change.BROKEN],
            part.counts[Change.BOTH_WRONG],
            part.counts[Change.BOTH_RIGHT],
            part.not_compared,
        )
        for part in found.by_metric.values()
    ]
    print_table(("metric", "fixed", "broken", "both wrong", "both right", "not compared"), rows)
    for line in found.told():
        click.echo(escape_terminal(line))


def _print_items(found: RunDiff, wanted: tuple[Change, ...], limit: int) -> None:
    shown = 0
    for item in found.items(only=wanted, limit=limit):
        shown += 1
        click.echo(
            f"\n{item.change.value}  {escape_terminal(item.item_id)}  {item.metric} {item.score_a:.4g} -> {item.score_b:.4g}"
        )
        if item.input_a == item.input_b:
            _print_text("input", item.input_a)
        else:
            _print_text(f"input of {found.run_a}", item.input_a)
            _print_text(f"input of {found.run_b}", item.input_b)
        if item.reference is not None:
            _print_text("expected", str(item.reference))
        for run_id, outputs in ((found.run_a, item.outputs_a), (found.run_b, item.outputs_b)):
            for output in outputs:
                _print_text(run_id, output)
    total = sum(part.counts[change] for part in found.by_metric.values() for change in wanted)
    if shown < total:
        click.echo(f"\n{shown} of {total} items; --limit shows more, --to FILE writes all", err=True)


def _print_text(label: str, text: str) -> None:
    flat = escape_terminal(" ".join(text.split()))
    click.echo(f"  {label}: {truncate(flat, _LONGEST_TEXT)}")


@click.command()
@click.option(
    "--baseline", required=True, type=RUN_ID, metavar="RUN", help="A stored run with the items to compare on."
)
@click.option("--metric", required=True, help="The metric to compare by.")
@click.option("--difference", type=float, help="The smallest difference that matters: how many items show it?")
@click.option(
    "--pilot", type=RUN_ID, metavar="RUN", help="A second run on the same items, to learn how much differences vary."
)
@click.option("--correlation", type=float, default=0.5, show_default=True,
              help="Of the two runs' scores, assumed where there is no pilot.")  # fmt: skip
@click.option("--power", type=float, default=0.8, show_default=True, help="Wanted chance to see it.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Accepted rate of false alarms.")
@across_option
@storage_option
@json_option
def power(storage: str, as_json: bool, **asked: Any) -> None:
    """How many items a difference needs, and which difference the stored number of items can show."""
    plan = plan_comparison(**asked, storage_path=storage)
    if as_json:
        print_json(plan.to_dict())
    else:
        _print_plan(plan)


def _print_plan(plan: ComparisonPlan) -> None:
    click.echo(f"{plan.metric} of {plan.baseline}: mean {plan.mean:.4f} over {plan.n} items")
    if plan.shows is None:
        click.echo(f"{plan.n} items miss even the largest possible difference too often; take more")
    else:
        click.echo(
            f"{plan.n} items show a difference of {plan.shows.difference:.4f} or more with a chance of {plan.power:.0%}"
        )
    if plan.needs is not None:
        click.echo(
            f"a difference of {plan.needs.difference:g} needs {plan.needs.n:,} items; "
            f"{plan.n} show it with a chance of {plan.power_now:.0%}"
        )
    if plan.agreement is not None and plan.agreement.icc is not None:
        between = min(1.0, max(0.0, plan.agreement.icc))
        click.echo(
            f"{between:.0%} of the scores' variance lies between items, {1 - between:.0%} between attempts at one: "
            "more attempts help with the second only"
        )
    click.echo(f"two-sided, alpha {plan.alpha:g}; from {plan.basis}")


_OUTCOME_TEXTS = {
    GateOutcome.PASS: "gate pass",
    GateOutcome.FAIL: "gate fail",
    GateOutcome.UNKNOWN: "gate could not tell",
}


@click.command()
@click.argument("candidate", type=RUN_ID, metavar="CANDIDATE")
@click.option("--baseline", required=True, type=RUN_ID, metavar="RUN", help="The run to be as good as.")
@click.option("--metric", required=True, help="The metric to judge by.")
@click.option("--min-delta", type=float, help="Least observed gain over the baseline; 0 unless a margin is given.")
@click.option("--significant", is_flag=True, help="The interval of the gain must lie above --min-delta, too.")
@click.option("--non-inferiority", type=float, metavar="MARGIN", help="The interval must lie above minus this margin.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="One minus the level of the interval.")
@click.option("--min-overlap", type=float, default=0.5, show_default=True,
              help="Least share of the candidate's items that must be comparable.")  # fmt: skip
@click.option("--budget-usd", type=float, help="Most that the candidate may have cost.")
@click.option("--max-failed", type=click.IntRange(min=0), help="Most items of the candidate without a score.")
@click.option("--require-same", metavar="NAME,...", multiple=True,
              help="Dimensions in which the runs must not differ: dataset, model, prompt, ...")  # fmt: skip
@click.option("--lower-is-better/--higher-is-better", default=None,
              help="Which way the metric is good, if not as it says itself.")  # fmt: skip
@across_option
@storage_option
@json_option
@click.option("--junit", "junit_file", type=click.Path(dir_okay=False), help="Also write JUnit XML.")
@click.option("--github-summary", is_flag=True, help="Also add to the file that GITHUB_STEP_SUMMARY names.")
def gate(
    candidate: str,
    require_same: tuple[str, ...],
    storage: str,
    as_json: bool,
    junit_file: str | None,
    github_summary: bool,
    **rules: Any,
) -> int:
    """Exit 0 if CANDIDATE passes, 1 if it fails, 3 if that cannot be told (a run is missing, too few shared items)."""
    names = tuple(name.strip() for text in require_same for name in text.split(",") if name.strip())
    verdict = Gate(require_same=names, **rules).judge(candidate, storage_path=storage)
    if junit_file is not None:
        write_junit(verdict, junit_file)
    if github_summary:
        _add_github_summary(verdict)
    if as_json:
        print_json(verdict.to_dict())
    else:
        _print_verdict(verdict)
    return verdict.exit_code


def _print_verdict(verdict: GateVerdict) -> None:
    print_table(
        ("check", "outcome", "why"), [(check.name, check.outcome.value, check.reason) for check in verdict.checks]
    )
    if verdict.delta is not None:
        interval = "" if verdict.interval is None else f", interval {format_interval(verdict.interval)}"
        click.echo(f"candidate - baseline = {verdict.delta:+.4f}{interval}, {verdict.n} items")
    for line in verdict.told():
        click.echo(escape_terminal(line))
    click.echo(_OUTCOME_TEXTS[verdict.outcome])


def _add_github_summary(verdict: GateVerdict) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        append_github_summary(verdict, path)
    else:
        click.echo("GITHUB_STEP_SUMMARY is not set, so there is no summary to add to", err=True)
