"""What commands share that start or resume a run: their options, and how its report is shown."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click

from themis import api
from themis.cli.completing import EXPERIMENT, RUN_ID, TRACKER
from themis.cli.grouping import ASKED, JUDGED, KEPT, RUN, SHOWN
from themis.cli.output import apply_options, key_values_option, print_json
from themis.cli.runs import describe_run, print_metrics, print_performance, say_cut_off
from themis.cli.terminal import echo_error, escape_terminal
from themis.config.specification import Specification
from themis.core.entities import EvaluationFailure, ExperimentFailure, ExperimentReport
from themis.core.user_code import load_user_code
from themis.evaluation.sandbox import ALLOWED_VARIABLE, GIVEN_UP, read_weaknesses
from themis.exceptions import ConfigurationError, RunFailedError
from themis.experiment.export import export_file, find_writer
from themis.generation.attempts import TRIPS_AFTER
from themis.integrations.trackers import make_trackers
from themis.runs.observers import Observer, RunStart
from themis.runs.report import OVERALL
from themis.storage import ExperimentStorage, RunMetadata, RunStatus
from themis.storage.database import Durability

F = TypeVar("F", bound=Callable[..., Any])

_TOO_MANY_FAILED = 1
_BROKEN = 3
_INTERRUPTED = 130
_LONGEST_REASON = 300
_DURABILITY_VARIABLE = "THEMIS_DURABILITY"


def start_options(function: F) -> F:
    """Options of a run that is started, of either kind."""
    options = (
        KEPT.option("--run-id", type=RUN_ID, metavar="ID", help="Name of the run; the same name goes on where it stopped."),
        KEPT.option("--experiment", type=EXPERIMENT, metavar="NAME",
                    help="Group of runs that this one belongs to.  [default: default]"),
        key_values_option("--tag", "tags", group=KEPT, help="Tag of the run, may be repeated."),
        KEPT.option("--resume/--no-resume", default=True, show_default=True,
                     help="Go on with a run of this id, or archive it and start anew."),
        RUN.option("-y", "--yes", is_flag=True, help="Answer every question with yes."),
    )  # fmt: skip
    return apply_options(options, function)


def run_options(function: F) -> F:
    """Options of a run that is started or resumed, of either kind."""
    options = (
        RUN.option("--budget-usd", type=float, help="Never spend more than this on the run, what it has cost included."),
        SHOWN.option("--fail-on-errors", type=click.FloatRange(0, 1), metavar="SHARE",
                     help="Exit with 1 if more than this share failed, for CI; 0 for any."),
        SHOWN.option("--fail-on-truncated", type=click.FloatRange(0, 1), metavar="SHARE",
                     help="Exit with 1 if more than this share of answers was cut off at max_tokens; 0 for any."),
        durability_option,
        SHOWN.option("-o", "--output", "outputs", multiple=True, metavar="FILE", callback=_check_outputs,
                     help="Also write the report to this .json, .csv, .html, .md, .jsonl, .parquet, .tex or .xml (JUnit); "
                     "may be repeated."),
        SHOWN.option("--track", multiple=True, type=TRACKER,
                     help="Show the run live in wandb, mlflow, hub or otel; may be repeated."),
        key_values_option("--track-option", "track_options", group=SHOWN,
                          help="Option of a tracker, or TRACKER.K=V; may be repeated."),
        SHOWN.option("--progress/--no-progress", default=None,
                     help="Show a bar; by default when stderr is a terminal."),
    )  # fmt: skip
    return apply_options(options, function)


def load_option(function: F) -> F:
    """Runs files of the user's before anything else is looked up by name."""

    def load(context: click.Context, option: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
        # What they print is for people; stdout may be for a program.
        with contextlib.redirect_stdout(sys.stderr):
            for path in paths:
                load_user_code(path)
        return paths

    return ASKED.option(
        "--load",
        multiple=True,
        metavar="FILE.py",
        callback=load,
        is_eager=True,
        help="Python file that registers metrics, providers, tools, agents, tests or fillers, may be repeated.",
    )(function)


def _check_outputs(context: click.Context, option: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    """What cannot be written is told before the first call, not after the last."""
    for path in paths:
        find_writer(path)
        if Path(path).is_dir():
            raise ConfigurationError(
                f"--output {path} is a directory; `themis export RUN --to {path}` writes all formats"
            )
    return paths


def keep_going_option(function: F) -> F:
    return RUN.option(
        "--keep-going",
        is_flag=True,
        help=f"Go on after {TRIPS_AFTER} equal failures in a row that every further call would meet too (a wrong key, model or "
        "address). By default the run ends there as failed.",
    )(function)


def take_watching(options: dict[str, Any]) -> dict[str, Any]:
    """Takes out of a command's options those of `run_options` that say who watches the run and what failures mean."""
    names = ("track", "track_options", "fail_on_errors", "fail_on_truncated", "progress", "outputs")
    return {name: options.pop(name) for name in names}


def workers_option(default: int | None, text: str) -> Callable[[F], F]:
    return RUN.option(
        "-j", "--workers", "--concurrency", "--parallel",
        type=click.IntRange(min=1), default=default, show_default=default is not None, help=text,
    )  # fmt: skip


def weak_sandbox_option(function: F) -> F:
    """What code that a model wrote may get at; metrics read it from the environment when they are made."""

    def allow(context: click.Context, parameter: click.Parameter, words: str | None) -> None:
        if words is not None:
            os.environ[ALLOWED_VARIABLE] = ",".join(read_weaknesses(words))

    return JUDGED.option(
        "--allow-weak-sandbox",
        metavar="|".join(GIVEN_UP),
        expose_value=False,
        callback=allow,
        help="Run model-written code although the sandbox leaves this open: "
        + "; ".join(f"{word}: code {means}" for word, means in GIVEN_UP.items())
        + ". Several with commas.",
    )(function)


def durability_option(function: F) -> F:
    """Sets the variable that decides wherever a run is opened, for as long as the command runs."""

    def set_variable(context: click.Context, option: click.Parameter, value: str | None) -> None:
        if value is None:
            return
        before = os.environ.get(_DURABILITY_VARIABLE)
        os.environ[_DURABILITY_VARIABLE] = value
        context.call_on_close(lambda: _restore(before))

    return KEPT.option(
        "--durability",
        type=click.Choice([one.value for one in Durability]),
        expose_value=False,
        callback=set_variable,
        help="What a stored answer outlives in SQLite: the end of the process, or a power cut too, which is slower.  "
        "[default: process, and power for memory runs]",
    )(function)


def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop(_DURABILITY_VARIABLE, None)
    else:
        os.environ[_DURABILITY_VARIABLE] = before


def attempt(
    asked: Specification,
    store: ExperimentStorage,
    watching: Mapping[str, Any],
    *,
    as_json: bool,
    confirm: Callable[[str], bool] = lambda question: True,
) -> int:
    """Performs a specification with what `take_watching` gives, shows its report, and returns the exit code."""
    track, track_options = watching["track"], watching["track_options"]
    if track_options and not track:
        first = "=".join(next(iter(track_options.items())))
        raise ConfigurationError(f"--track-option {first} needs a --track TRACKER it is for")
    trackers = list(make_trackers(track, track_options).values())
    observers = [*trackers, *([_Announcement()] if asked.kind == "memory" else [])]
    try:
        report = api.perform(asked, store, confirm=confirm, progress=watching["progress"], observers=observers)
    except RunFailedError as failed:
        report = failed.report
    code = present(store, report, as_json, watching["fail_on_errors"], watching["fail_on_truncated"])
    for path in watching["outputs"]:
        click.echo(f"wrote {export_file(report, path)}", err=True)
    return code


class _Announcement(Observer):
    """Says what begins, of runs that take long."""

    def on_start(self, run: RunStart) -> None:
        state = "resuming" if run.is_resumed else "starting"
        click.echo(f"{state} {run.run_id}: {run.total} tests", err=True)


def present(
    store: ExperimentStorage,
    report: ExperimentReport,
    as_json: bool,
    fail_on_errors: float | None = None,
    fail_on_truncated: float | None = None,
) -> int:
    """Shows a report. 3 where nothing worked, 130 where a budget ended the run, 1 where too much failed or was cut off."""
    run = store.get_run(report.run_id)
    if as_json:
        scores = {"scores": report.item_scores(OVERALL)} if run.kind == "memory" else {}
        print_json({**describe_run(store, run), **scores})
    else:
        _print_report(store, report, run)
    if stopped := exit_code(report):
        return stopped
    failed, total = _count_failed(report), report.metadata["total_samples"]
    if fail_on_errors is not None and failed > fail_on_errors * total:
        allowed = f"--fail-on-errors {fail_on_errors:g}"
        echo_error(f"{failed / total:.1%} of the {_items(run)} failed, more than {allowed} allows")
        return _TOO_MANY_FAILED
    share = (report.metadata["performance"] or {}).get("truncated_share") or 0.0
    if fail_on_truncated is not None and share > fail_on_truncated:
        echo_error(
            f"{share:.1%} of the answers were cut off, more than --fail-on-truncated {fail_on_truncated:g} allows"
        )
        return _TOO_MANY_FAILED
    return 0


def exit_code(report: ExperimentReport) -> int:
    """Says why a run was stopped, if it was: 3 where nothing more could work, 130 where a budget or a rule ended it."""
    if not report.metadata.get("stopped"):
        return 0
    echo_error(_why_stopped(report))
    return _BROKEN if report.metadata["status"] == RunStatus.FAILED else _INTERRUPTED


def _print_report(store: ExperimentStorage, report: ExperimentReport, run: RunMetadata) -> None:
    caveats = report.metadata["caveats"]
    for caveat in caveats:
        echo_error(caveat)
    print_metrics({name: metric.to_dict() for name, metric in report.evaluation_report.metrics.items()})
    cost = report.metadata["cost"]
    paid = "unknown price" if cost["total_cost"] is None else f"${cost['total_cost']:.4f}"
    total, failed = report.metadata["total_samples"], report.metadata["failed_generations"]
    not_asked = total - failed - report.metadata["successful_generations"]
    counts = [f"{total:,} {_items(run)}"]
    counts += [f"{count:,} {what}" for count, what in ((failed, "not answered"), (not_asked, "not asked")) if count]
    talked = report.metadata.get("memory")
    if talked:
        counts.append(f"{talked['turns']:,} turns, {talked['conversation_tokens']:,} tokens")
    click.echo(f"run {report.run_id}: {', '.join(counts)}, {cost['api_calls']:,} calls, {paid}")
    print_performance(report.metadata["performance"])
    if report.metadata["cut_off_generations"] and not any("cut off" in caveat for caveat in caveats):
        echo_error(say_cut_off(store, run))
    if report.metadata["status"] != RunStatus.FAILED:  # or else the reason of that says it
        _print_example("answered", report.failures)
        _print_example("judged", report.evaluation_report.failures)


def _items(run: RunMetadata) -> str:
    return "tests" if run.kind == "memory" else "samples"


def _count_failed(report: ExperimentReport) -> int:
    """Samples that were not answered, or that some metric could not judge."""
    metrics = report.evaluation_report.metrics.values()
    return max((metric.failed for metric in metrics), default=int(report.metadata["failed_generations"]))


def _why_stopped(report: ExperimentReport) -> str:
    what = "failed" if report.metadata["status"] == RunStatus.FAILED else "stopped"
    return f"{what}: {escape_terminal(report.metadata['stopped'])}. {report.metadata.get('resume', '')}".rstrip()


def _print_example(what: str, failures: Iterable[ExperimentFailure | EvaluationFailure]) -> None:
    for failure in islice(failures, 1):
        why = " ".join(escape_terminal(failure.message).split())[:_LONGEST_REASON]
        echo_error(f"not {what}, for example {escape_terminal(failure.sample_id)}: {why}")
