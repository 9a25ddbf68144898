"""`themis eval`, `resume`, `estimate` and `rejudge`: running and judging from the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click

from themis import api
from themis.backends.execution import EXECUTION_BACKENDS
from themis.cli.options import durability_option, parse_key_values
from themis.cli.output import (
    echo_error,
    fail_on_errors_option,
    interruptible,
    json_option,
    number,
    print_json,
    print_table,
    printable,
    refuse_failures,
    storage_option,
    words_given,
)
from themis.cli.runs import describe_run, say_cut_off
from themis.core.entities import EvaluationFailure, ExperimentFailure, ExperimentReport
from themis.evaluation.sandbox import ALLOWED_VARIABLE, GIVEN_UP, read_weaknesses
from themis.exceptions import ConfigurationError, DatasetError, RunFailedError, RunInterrupted
from themis.experiment.estimate import Estimate, estimate_run
from themis.experiment.rejudge import rejudge as judge_again
from themis.experiment.report import build_report
from themis.generation.breaker import TRIPS_AFTER
from themis.generation.providers import parse_model, provider_factory
from themis.generation.templates import PromptTemplate
from themis.integrations.trackers import make_trackers
from themis.memory.command import resuming_command
from themis.memory.judging import create_judge
from themis.memory.rejudging import rejudge_memory_run
from themis.presets import get_benchmark_preset
from themis.presets.loading import READABLE_SUFFIXES, read_rows
from themis.runs.prices import price_of
from themis.runs.resuming import how_to_repeat
from themis.storage import ExperimentStorage, RunStatus

__all__ = ["estimate", "evaluate_command", "rejudge", "resume"]

F = TypeVar("F", bound=Callable[..., Any])

# Fields that a file's rows may have, the likeliest first.
_PROMPT_FIELDS = ("prompt", "question", "input", "text", "query", "problem", "messages")
_REFERENCE_FIELDS = ("answer", "reference", "expected", "label", "target", "solution")
_BROKEN = 3
_INTERRUPTED = 130
_LONGEST_REASON = 300
_ID_FIELDS = ("id", "sample_id", "dataset_id", "unique_id", "uid")


def _what_to_ask(function: F) -> F:
    """Options that say what is asked: shared by eval and estimate."""
    workers = click.IntRange(min=1)
    options = (
        click.argument("dataset", metavar="BENCHMARK|FILE"),
        click.option("-m", "--model", required=True, help="provider/model, for example openai/gpt-4o or fake/perfect."),
        click.option("-n", "--limit", type=click.IntRange(min=1), help="Only the first so many rows."),
        click.option("--prompt", help="Template over the row's fields: 'Q: {question}'."),
        click.option("--prompt-file", type=click.Path(exists=True, dir_okay=False), help="Template from a file."),
        click.option(
            "--num-samples", type=click.IntRange(min=1), default=1, show_default=True, help="Answers per row."
        ),
        click.option("--max-tokens", type=int, default=512, show_default=True, help="Longest answer; -1 for no limit."),
        click.option(
            "-j", "--workers", "--concurrency", type=workers, default=4, show_default=True, help="Calls at once."
        ),
        click.option(
            "--data", type=click.Path(exists=True), help="Read the benchmark's rows from this file or folder."
        ),
        click.option(
            "--sample", is_flag=True, help="Use the benchmark's few shipped rows: a smoke test, not a result."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _who_watches(function: F) -> F:
    """Options that show a run elsewhere while it goes on: shared by eval and resume."""
    options = (
        click.option("--track", multiple=True, metavar="TRACKER",
                     help="Show the run live in wandb, mlflow, hub or otel; may be repeated."),
        click.option("--track-option", "track_options", multiple=True, metavar="K=V",
                     help="Option of a tracker, or TRACKER.K=V; may be repeated."),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def _failure_options(function: F) -> F:
    """Options that say what failures mean for the command: shared by eval and resume."""
    options = (
        click.option("--keep-going", is_flag=True,
                     help=f"Go on after {TRIPS_AFTER} equal failures in a row that every further call would meet too "
                     "(a wrong key, model or address). By default the run ends there as failed."),
        fail_on_errors_option,
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def _weak_sandbox_option(function: F) -> F:
    """What code that a model wrote may get at; metrics read it from the environment when they are made."""

    def allow(context: click.Context, parameter: click.Parameter, words: str | None) -> None:
        if words is not None:
            os.environ[ALLOWED_VARIABLE] = ",".join(read_weaknesses(words))

    return click.option(
        "--allow-weak-sandbox",
        metavar="|".join(GIVEN_UP),
        expose_value=False,
        callback=allow,
        help="Run model-written code although the sandbox leaves this open: "
        + "; ".join(f"{word}: code {means}" for word, means in GIVEN_UP.items())
        + ". Several with commas.",
    )(function)


def _execution_option(function: F) -> F:
    return click.option(
        "--execution",
        "execution_backend",
        metavar="|".join(EXECUTION_BACKENDS.names()),
        help="Where calls are made: here, one after another, or in the processes of a Ray cluster.",
    )(function)


@click.command(name="eval")
@_what_to_ask
@click.option("--run-id", help="Name of the run; the same name goes on where it stopped.")
@storage_option
@click.option("--metric", "metrics", multiple=True, help="Metric by name, may be repeated: see `themis list metrics`.")
@click.option("--extractor", help="Extractor by name: see `themis list extractors`.")
@click.option("--reducer", help="How attempts become a score: average, best, majority, pass@3, ...")
@click.option("--reference-field", help="Field with the expected answer.")
@click.option("--id-field", "dataset_id_field", help="Field with the row's id.")
@click.option("--cluster-field", help="Field that groups rows which are not independent (for the interval).")
@click.option("--temperature", type=float, default=0.0, show_default=True)
@click.option("--top-p", type=float, default=0.95, show_default=True)
@click.option("--seed", type=int, help="Sampling seed, for providers that take one.")
@click.option(
    "--max-retries", type=click.IntRange(min=1), default=3, show_default=True, help="Calls per answer, in total."
)
@click.option(
    "--timeout", "timeout_seconds", type=float, default=600.0, show_default=True, help="Seconds for one call."
)
@click.option("--deadline", "deadline_seconds", type=float, default=1800.0, show_default=True,
              help="Seconds for one answer with all retries.")  # fmt: skip
@click.option("--rpm", type=float, help="At most so many requests a minute.")
@click.option("--tpm", type=float, help="At most so many tokens a minute.")
@click.option("--budget-usd", type=float, help="Never spend more than this on the run.")
@click.option("--system", metavar="TEXT", help="System prompt; a row's own `system_prompt` wins.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="K=V",
    help="Option of the provider, may be repeated; ${NAME} in it is a secret of the environment.",
)
@click.option("--tag", "tags", multiple=True, metavar="K=V", help="Tag of the run, may be repeated.")
@click.option(
    "--resume/--no-resume", default=True, show_default=True, help="Go on with a run of this id, or start anew."
)
@click.option("--allow-drift", is_flag=True, help="Start anew if inputs changed, using every stored answer that fits.")
@click.option("--cache", type=click.Choice(["run", "store", "off"]), default="run", show_default=True,
              help="Where stored answers may come from.")  # fmt: skip
@_failure_options
@durability_option
@_who_watches
@_execution_option
@_weak_sandbox_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask before spending.")
@click.option("--progress/--no-progress", default=None, help="Show a bar; by default when stderr is a terminal.")
@json_option
@interruptible
def evaluate_command(
    dataset: str,
    model: str,
    prompt: str | None,
    prompt_file: str | None,
    storage: str,
    metrics: tuple[str, ...],
    system: str | None,
    options: tuple[str, ...],
    tags: tuple[str, ...],
    rpm: float | None,
    tpm: float | None,
    yes: bool,
    as_json: bool,
    data: str | None,
    sample: bool,
    track: tuple[str, ...],
    track_options: tuple[str, ...],
    fail_on_errors: float | None,
    **arguments: Any,
) -> int:
    """Ask a model every row of a BENCHMARK or FILE (.jsonl, .json, .csv, .tsv, .parquet), judge the answers, store everything."""
    store = ExperimentStorage(storage)
    observers = _observers(track, track_options)
    prompt = _prompt(prompt, prompt_file)
    rows, found = _rows(dataset, prompt, arguments, data=data, sample=sample)
    arguments.update(found)
    provider_options = parse_key_values(options, typed=True) | ({} if system is None else {"system_prompt": system})
    if not yes:
        _ask_before_spending(dataset, rows, model, {**arguments, "provider_options": provider_options})
    report = _report_of(
        api.evaluate,
        rows,
        model=model,
        storage=store,
        metrics=list(metrics) or None,
        provider_options=provider_options,
        tags=parse_key_values(tags),
        rate_limit={k: v for k, v in (("requests_per_minute", rpm), ("tokens_per_minute", tpm)) if v is not None}
        or None,
        observers=observers,
        **arguments,
    )
    return _present(store, report, as_json, fail_on_errors)


@click.command()
@click.argument("run_id", metavar="RUN")
@storage_option
@click.option("-j", "--workers", "--concurrency", type=click.IntRange(min=1), help="Calls under way at once.")
@click.option("--budget-usd", type=float, help="Never spend more than this on the run, what it has cost included.")
@durability_option
@_execution_option
@_failure_options
@_weak_sandbox_option
@_who_watches
@click.option("--progress/--no-progress", default=None, help="Show a bar; by default when stderr is a terminal.")
@json_option
@interruptible
def resume(
    run_id: str,
    storage: str,
    as_json: bool,
    track: tuple[str, ...],
    track_options: tuple[str, ...],
    keep_going: bool,
    fail_on_errors: float | None,
    **changes: Any,
) -> int:
    """Go on with a run: missing and failed samples are asked, finished ones never again."""
    store = ExperimentStorage(storage)
    given = {name: value for name, value in changes.items() if value is not None}
    stored = store.get_run(run_id)
    if stored.kind == "memory":
        if track or keep_going or "workers" in given:
            raise ConfigurationError(
                f"run {run_id!r} is a memory run; --track, --workers and --keep-going are for other runs"
            )
        words = resuming_command(stored, budget_usd=given.get("budget_usd"))
        words += [] if given.get("progress") is None else ["--progress" if given["progress"] else "--no-progress"]
        words += [] if fail_on_errors is None else ["--fail-on-errors", str(fail_on_errors)]
        root = click.get_current_context().find_root().command
        result: int | None = root.main(
            args=[*words, "-y", "--storage", storage, *(["--json"] if as_json else [])], standalone_mode=False
        )
        return result or 0
    observers = _observers(track, track_options)
    report = _report_of(api.resume, run_id, storage=store, observers=observers, keep_going=keep_going, **given)
    return _present(store, report, as_json, fail_on_errors)


@click.command()
@_what_to_ask
@click.option("--answer-tokens", type=int, help="Length of a usual answer (200 if not given).")
@click.option("--seconds-per-call", type=float, default=2.0, show_default=True)
@json_option
def estimate(
    dataset: str,
    model: str,
    prompt: str | None,
    prompt_file: str | None,
    as_json: bool,
    answer_tokens: int | None,
    seconds_per_call: float,
    data: str | None,
    sample: bool,
    **arguments: Any,
) -> None:
    """Calls, tokens, dollars and minutes of an evaluation, before anything is spent."""
    prompt = _prompt(prompt, prompt_file)
    rows, found = _rows(dataset, prompt, arguments, data=data, sample=sample)
    result = _estimate(
        rows, model, {**arguments, **found}, answer_tokens=answer_tokens, seconds_per_call=seconds_per_call
    )
    if as_json:
        print_json(vars(result))
        return
    print_table(
        ("what", "estimate"),
        [
            ("rows", f"{result.rows:,}"),
            ("calls", f"{result.calls:,}"),
            ("prompt tokens", f"{result.prompt_tokens:,}"),
            ("answer tokens", f"{result.likely_completion_tokens:,} (at most {result.most_completion_tokens:,})"),
            ("dollars", _dollars(result)),
            ("minutes", f"{result.minutes:.1f}" if result.minutes >= 0.1 else "less than 0.1"),
        ],
    )
    for line in result.assumptions:
        click.echo(f"assumed: {line}")


@click.command()
@click.argument("run_id", metavar="RUN")
@storage_option
@click.option("--metric", "metrics", multiple=True, help="Metric by name, may be repeated.")
@click.option("--extractor", help="Extractor by name.")
@click.option("--reducer", help="How attempts become a score.")
@click.option(
    "--judge", metavar="MODEL", help="For memory runs: the model that decides where words must be understood."
)
@_weak_sandbox_option
@json_option
@interruptible
def rejudge(
    run_id: str,
    storage: str,
    metrics: tuple[str, ...],
    extractor: str | None,
    reducer: str | None,
    judge: str | None,
    as_json: bool,
) -> int:
    """Judge a run's stored answers again. The model is not called; earlier scores are kept under their own evaluation."""
    store = ExperimentStorage(storage)
    is_memory_run = store.get_run(run_id).kind == "memory"
    if judge is not None and not is_memory_run:
        raise ConfigurationError(
            "--judge is for memory runs; name a judge as a metric: --metric \"rubric_judge(model='...')\""
        )
    try:
        if is_memory_run:
            rejudge_memory_run(store, run_id, create_judge(judge))
            return _present(store, build_report(store, run_id), as_json)
        chosen = {"metrics": list(metrics) or None, "extractor": extractor, "reducer": reducer}
        pipeline = api.stored_pipeline(store, run_id, **chosen)
        return _present(store, _report_of(judge_again, store, run_id, pipeline), as_json)
    except KeyboardInterrupt as stopped:
        # What the judge has answered is stored, and not asked again.
        raise RunInterrupted(run_id, how_to_repeat(words_given(), storage)) from stopped


# --- reading arguments ----------------------------------------------------------------------------------------------


def _observers(track: tuple[str, ...], options: tuple[str, ...]) -> list[Any]:
    if options and not track:
        raise ConfigurationError(f"--track-option {options[0]} needs a --track TRACKER it is for")
    return list(make_trackers(track, parse_key_values(options)).values())


def _prompt(text: str | None, file: str | None) -> str | None:
    if text is not None and file is not None:
        raise ConfigurationError("give --prompt or --prompt-file, not both")
    return Path(file).read_text(encoding="utf-8") if file is not None else text


def _rows(
    dataset: str, prompt: str | None, arguments: Mapping[str, Any], *, data: str | None, sample: bool
) -> tuple[Any, dict[str, Any]]:
    """The dataset as `evaluate` takes it, with what was found out about it."""
    path = Path(dataset)
    if path.exists() or path.suffix.lower() in READABLE_SUFFIXES:
        if not path.is_file():
            raise DatasetError(
                f"{dataset!r} is a folder; name a file in it" if path.is_dir() else f"no file {dataset!r}"
            )
        if data is not None or sample:
            raise ConfigurationError(f"--data and --sample are for benchmarks; {dataset!r} is a file of its own rows")
        return path, _file_fields(path, prompt, arguments)
    return get_benchmark_preset(dataset, data=data, sample=sample), {"prompt": prompt}


def _file_fields(path: Path, prompt: str | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Prompt, reference and id of a file's rows, from the fields that the first row has."""
    first = next(islice(read_rows(path), 1), None)
    if first is None:
        raise DatasetError(f"{path} has no rows")
    found: dict[str, Any] = {"prompt": prompt}
    if prompt is None:
        field = next((name for name in _PROMPT_FIELDS if name in first), None)
        if field is None:
            raise ConfigurationError(
                f"{path} has the fields {', '.join(map(str, first))} and none of {', '.join(_PROMPT_FIELDS)}; "
                "say by --prompt what to ask"
            )
        found["prompt"] = f"{{{field}}}"
        click.echo(f"prompt: the field {field!r} as it is (--prompt changes it)", err=True)
    if arguments.get("reference_field") is None:
        found["reference_field"] = next((name for name in _REFERENCE_FIELDS if name in first), "")
    if arguments.get("dataset_id_field") is None:
        found["dataset_id_field"] = next((name for name in _ID_FIELDS if name in first), None)
    return found


def _estimate(rows: Any, model: str, arguments: Mapping[str, Any], **assumed: Any) -> Estimate:
    options = arguments.get("provider_options")
    spec = parse_model(model, options)
    provider = provider_factory(spec.provider, options)
    prompt = arguments.get("prompt")
    if isinstance(rows, Path):
        source, template = read_rows(rows), PromptTemplate("default", prompt or "")
    else:
        source = rows.load_dataset(arguments["limit"])
        template = rows.prompt_template if prompt is None else PromptTemplate("default", prompt)
    return estimate_run(
        source,
        template,
        price=price_of(spec.identifier, is_local=bool(getattr(provider, "is_local", False)) or spec.provider == "fake"),
        max_tokens=arguments["max_tokens"],
        num_samples=arguments["num_samples"],
        workers=arguments["workers"],
        limit=arguments["limit"],
        **assumed,
    )


def _ask_before_spending(dataset: str, rows: Any, model: str, arguments: Mapping[str, Any]) -> None:
    """Where a person is there to answer and the price is known, says what it may cost and asks."""
    spec = parse_model(model, arguments["provider_options"])
    price = price_of(spec.identifier)
    if price is None or not sys.stdin.isatty() or spec.provider in ("fake", "local", "replay"):
        return
    result = _estimate(rows, model, arguments)
    click.echo(f"{dataset} with {model}: {result.calls:,} calls, {_dollars(result)}", err=True)
    click.confirm("go on?", default=True, abort=True, err=True)


def _dollars(result: Estimate) -> str:
    if result.likely_usd is None or result.most_usd is None:
        return "unknown price"
    return f"${result.likely_usd:.4f} (at most ${result.most_usd:.4f})"


# --- showing --------------------------------------------------------------------------------------------------------


def _report_of(work: Callable[..., ExperimentReport], *given: Any, **named: Any) -> ExperimentReport:
    """The report of a run, also of one in which nothing worked."""
    try:
        return work(*given, **named)
    except RunFailedError as failed:
        report: ExperimentReport = failed.report
        return report


def _present(
    store: ExperimentStorage, report: ExperimentReport, as_json: bool, fail_on_errors: float | None = None
) -> int:
    """Shows a report. 3 where nothing worked, 130 where a budget ended the run, 1 where too much failed."""
    run_id = report.metadata["run_id"]
    if as_json:
        print_json(describe_run(store, store.get_run(run_id)))
    else:
        _print_report(store, report)
    if report.metadata.get("stopped"):
        echo_error(_why_stopped(report))
        return _BROKEN if report.metadata["status"] == RunStatus.FAILED else _INTERRUPTED
    refuse_failures(_failed(report), report.metadata["total_samples"], "samples", fail_on_errors)
    return 0


def _print_report(store: ExperimentStorage, report: ExperimentReport) -> None:
    run_id = report.metadata["run_id"]
    rows = [
        (
            name,
            number(metric.mean),
            f"[{metric.ci[0]:.4f}, {metric.ci[1]:.4f}]" if metric.ci else "n/a",
            metric.count,
            metric.failed,
            metric.unparsed,
        )
        for name, metric in report.evaluation_report.metrics.items()
    ]
    print_table(("metric", "mean", "95 % interval", "count", "failed", "unparsed"), rows)
    cost = report.metadata["cost"]
    paid = "unknown price" if cost["total_cost"] is None else f"${cost['total_cost']:.4f}"
    total, failed = report.metadata["total_samples"], report.metadata["failed_generations"]
    not_asked = total - failed - report.metadata["successful_generations"]
    counts = [f"{total:,} samples"]
    counts += [f"{count:,} {what}" for count, what in ((failed, "not answered"), (not_asked, "not asked")) if count]
    click.echo(f"run {run_id}: {', '.join(counts)}, {cost['api_calls']:,} calls, {paid}")
    if report.metadata["cut_off_generations"]:
        echo_error(say_cut_off(store, store.get_run(run_id)))
    if report.metadata["status"] != RunStatus.FAILED:  # or else the reason of that says it
        _say_why("answered", report.failures)
        _say_why("judged", report.evaluation_report.failures)


def _failed(report: ExperimentReport) -> int:
    """Samples that were not answered, or that some metric could not judge."""
    metrics = report.evaluation_report.metrics.values()
    return max((metric.failed for metric in metrics), default=int(report.metadata["failed_generations"]))


def _why_stopped(report: ExperimentReport) -> str:
    what = "failed" if report.metadata["status"] == RunStatus.FAILED else "stopped"
    return f"{what}: {printable(report.metadata['stopped'])}. {report.metadata.get('resume', '')}".rstrip()


def _say_why(what: str, failures: Iterable[ExperimentFailure | EvaluationFailure]) -> None:
    for failure in islice(failures, 1):
        why = " ".join(printable(failure.message).split())[:_LONGEST_REASON]
        echo_error(f"not {what}, for example {printable(failure.sample_id)}: {why}")
