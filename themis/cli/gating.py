"""`themis gate`: may the candidate replace the baseline? The answer is the exit code."""

from __future__ import annotations

import os

import click

from themis.cli.output import json_option, print_json, print_table, storage_option
from themis.comparison.gate import Gate, GateOutcome, GateVerdict, append_github_summary, write_junit
from themis.comparison.reports import format_interval

__all__ = ["gate"]

_OUTCOME_TEXTS = {
    GateOutcome.PASS: "gate pass",
    GateOutcome.FAIL: "gate fail",
    GateOutcome.UNKNOWN: "gate could not tell",
}


@click.command()
@click.argument("candidate", metavar="CANDIDATE")
@click.option("--baseline", required=True, metavar="RUN", help="The run to be as good as.")
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
@storage_option
@json_option
@click.option("--junit", "junit_file", type=click.Path(dir_okay=False), help="Also write JUnit XML.")
@click.option("--github-summary", is_flag=True, help="Also add to the file that GITHUB_STEP_SUMMARY names.")
def gate(
    candidate: str,
    baseline: str,
    metric: str,
    min_delta: float | None,
    significant: bool,
    non_inferiority: float | None,
    alpha: float,
    min_overlap: float,
    budget_usd: float | None,
    max_failed: int | None,
    require_same: tuple[str, ...],
    lower_is_better: bool | None,
    storage: str,
    as_json: bool,
    junit_file: str | None,
    github_summary: bool,
) -> int:
    """Exit 0 if CANDIDATE passes, 1 if it fails, 3 if that cannot be told (a run is missing, too few shared items)."""
    names = tuple(name.strip() for text in require_same for name in text.split(",") if name.strip())
    rules = Gate(
        baseline=baseline,
        metric=metric,
        min_delta=min_delta,
        significant=significant,
        non_inferiority=non_inferiority,
        alpha=alpha,
        min_overlap=min_overlap,
        budget_usd=budget_usd,
        max_failed=max_failed,
        require_same=names,
        lower_is_better=lower_is_better,
    )
    verdict = rules.judge(candidate, storage_path=storage)
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
    click.echo(_OUTCOME_TEXTS[verdict.outcome])


def _add_github_summary(verdict: GateVerdict) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        append_github_summary(verdict, path)
    else:
        click.echo("GITHUB_STEP_SUMMARY is not set, so there is no summary to add to", err=True)
