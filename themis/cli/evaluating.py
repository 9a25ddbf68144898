"""`themis eval`, `resume` and `estimate`: sample runs from the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from themis.api import load_for_resuming
from themis.backends.execution import EXECUTION_BACKENDS
from themis.cli.completing import BACKEND, DATASET, EXTRACTOR, METRIC, MODEL, REDUCER, RUN_ID
from themis.cli.grouping import ANSWERED, ASKED, JUDGED, KEPT, RUN, SHOWN, GroupedCommand
from themis.cli.output import (
    apply_options,
    interruptible,
    json_option,
    key_values_option,
    print_json,
    print_table,
    storage_option,
)
from themis.cli.running import (
    attempt,
    keep_going_option,
    load_option,
    run_options,
    start_options,
    take_watching,
    weak_sandbox_option,
    workers_option,
)
from themis.cli.terminal import is_person_there
from themis.config.specification import SampleSpecification
from themis.exceptions import ConfigurationError
from themis.experiment.completing import complete_from_rows
from themis.experiment.estimating import estimate_samples
from themis.generation.providers import parse_model
from themis.generation.providers.reasoning import EFFORTS
from themis.generation.templates import SYNTAXES
from themis.presets import list_benchmarks
from themis.presets.pipes import FORMATS, STANDARD_INPUT, PipedRows
from themis.runs.estimate import Estimate
from themis.runs.prices import price_of
from themis.storage import ExperimentStorage

F = TypeVar("F", bound=Callable[..., Any])


_EXAMPLES = (
    (
        "200 rows of a benchmark, for at most two dollars",
        "eval gsm8k -m openai/gpt-4o -n 200 --run-id gsm-4o --budget-usd 2",
    ),
    (
        "a file of your own, asked and judged as you say",
        "eval rows.csv -m ollama/llama3:8b --prompt 'Q: {text}' --metric numeric",
    ),
    ("rows that another program writes", "eval - -m openai/gpt-4o --run-id nightly --json < rows.jsonl"),
)


def _what_to_ask(function: F) -> F:
    """Options that say what is asked: shared by eval and estimate."""
    options = (
        click.argument("dataset", type=DATASET, metavar="DATASET"),
        ANSWERED.option(
            "-m",
            "--model",
            required=True,
            type=MODEL,
            help="Who answers: openai/gpt-4o, fake/perfect, python:app.py:answer, http://..., command:./app, agent:...",
        ),
        ASKED.option("-n", "--limit", type=click.IntRange(min=1), help="Only the first so many rows."),
        ASKED.option("--prompt", help="Template over the row's fields: 'Q: {question}'."),
        ASKED.option(
            "--prompt-syntax",
            type=click.Choice(SYNTAXES),
            help="How its fields are written.  [default: known from the text]",
        ),
        load_option,
        ASKED.option("--prompt-file", type=click.Path(exists=True, dir_okay=False), help="Template from a file."),
        ASKED.option(
            "--num-samples", type=click.IntRange(min=1), help="Answers per row.  [default: the protocol's, or 1]"
        ),
        ASKED.option(
            "--shots", type=click.IntRange(min=0), help="Examples before the question.  [default: the protocol's]"
        ),
        ANSWERED.option(
            "--max-tokens", type=int, help="Longest answer; -1 for no limit.  [default: the protocol's, or 512]"
        ),
        RUN.option(
            "--batch",
            is_flag=True,
            help="Ask in batches, for half the price and answers within a day: OpenAI, Anthropic, servers that speak as they do.",
        ),
        workers_option(4, "Calls at once."),
        ASKED.option(
            "--data", type=click.Path(exists=True), help="Read the benchmark's rows from this file or folder."
        ),
        ASKED.option(
            "--format",
            "rows_format",
            type=click.Choice(FORMATS),
            help="Format of rows on standard input.  [default: known by their first bytes]",
        ),
        ASKED.option(
            "--sample", is_flag=True, help="Use the benchmark's few shipped rows: a smoke test, not a result."
        ),
        ASKED.option(
            "--include",
            multiple=True,
            type=click.Path(exists=True, resolve_path=True),
            help="Folder or file with YAML tasks of your own for lm-eval:TASK, may be repeated.",
        ),
        key_values_option(
            "--task-option",
            "task_options",
            typed=True,
            group=ASKED,
            help="Option of an lm-eval:TASK, may be repeated: chat, multiturn, system, seed, generation, metadata, unsafe_code.",
        ),
    )
    return apply_options(options, function)


def _loop_options(function: F) -> F:
    """Options of samples that take several steps: tools, and somebody who talks to the model."""
    options = (
        ANSWERED.option("--tool", "tools", multiple=True, metavar="TOOL",
                     help="What the model may call: python, shell, FILE.py:NAME, mcp:COMMAND; may be repeated."),
        key_values_option("--user", "user", typed=True, group=ASKED,
                          help="Who talks to the model after the prompt: model=, persona=, goal=, turns=."),
        ASKED.option("--script", metavar="FILE.py:NAME", help="Function of a row that yields what is said, as a memory test."),
        RUN.option("--max-turns", type=click.IntRange(min=1), default=10, show_default=True,
                     help="Most answers of the model in one sample, where it takes several."),
        RUN.option("--max-sample-tokens", type=click.IntRange(min=1), help="Most tokens of one sample, all steps together."),
        RUN.option("--max-sample-seconds", type=float, help="Most seconds of one sample."),
        RUN.option("--max-sample-usd", type=float, help="Most that one sample may cost."),
    )  # fmt: skip
    return apply_options(options, function)


def _listed(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Options that may be repeated, as lists; what was not given is left to the default."""
    named = {name: list(asked[name]) for name in ("attach", "tools", "load")}
    return {**named, "user": asked["user"] or None}


def _execution_option(function: F) -> F:
    return RUN.option(
        "--execution",
        "execution_backend",
        type=BACKEND,
        metavar="|".join(EXECUTION_BACKENDS.names()),
        help="Where calls are made: here, one after another, or in the processes of a Ray cluster.",
    )(function)


@click.command(name="eval", cls=GroupedCommand, examples=_EXAMPLES)
@_what_to_ask
@start_options
@storage_option
@JUDGED.option(
    "--metric",
    "metrics",
    multiple=True,
    type=METRIC,
    help="By name, may be repeated: see `themis list metrics`.",
)
@JUDGED.option("--extractor", type=EXTRACTOR, help="By name: see `themis list extractors`.")
@JUDGED.option("--judge", type=MODEL, help="Who grades answers, for benchmarks that a model grades: simpleqa, hle.")
@JUDGED.option("--reducer", type=REDUCER, help="How attempts become a score: average, best, majority, pass@3, ...")
@JUDGED.option("--reference-field", help="Field with the expected answer.")
@ASKED.option("--id-field", "dataset_id_field", help="Field with the row's id.")
@JUDGED.option("--cluster-field", help="Field that groups rows which are not independent (for the interval).")
@ANSWERED.option("--temperature", type=float, help="0 for the likeliest answer.  [default: the protocol's, or 0]")
@ANSWERED.option("--top-p", type=float, help="Not sent where neither you nor the protocol says one.")
@ANSWERED.option("--stop", multiple=True, metavar="TEXT", help="Text at which an answer ends, may be repeated.")
@SHOWN.option("--truncated-limit", type=click.FloatRange(0, 1), default=0.05, show_default=True, metavar="SHARE",
              help="Say before the mean that it is too low once more answers than this are cut off.")  # fmt: skip
@ANSWERED.option("--seed", type=int, help="Sampling seed, for providers that take one.")
@RUN.option(
    "--max-retries",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Calls per answer, in total.",
)
@RUN.option("--timeout", "timeout_seconds", type=float, default=600.0, show_default=True, help="Seconds for one call.")
@RUN.option("--deadline", "deadline_seconds", type=float, default=1800.0, show_default=True,
              help="Seconds for one answer with all retries.")  # fmt: skip
@RUN.option("--batch-size", type=click.IntRange(min=1), help="Items in a batch.  [default: what the provider takes]")
@RUN.option("--batch-poll", "batch_poll_seconds", type=float, default=1.0, show_default=True,
            help="Seconds before a batch is first looked at; later looks are further apart.")  # fmt: skip
@RUN.option("--batch-deadline", "batch_deadline_seconds", type=float, default=86_400.0, show_default=True,
            help="Seconds after which a batch is cancelled, and the rest of it asked singly.")  # fmt: skip
@ANSWERED.option("--reasoning-effort", type=click.Choice(EFFORTS), help="How hard a model that reasons is to think.")
@ANSWERED.option("--thinking-budget", type=click.IntRange(min=0), metavar="TOKENS",
                 help="Tokens that a model may think, in place of an effort.")  # fmt: skip
@ANSWERED.option("--strict-parameters", is_flag=True,
                 help="Fail where a model does not take a parameter that you give, which is else left out and said.")  # fmt: skip
@RUN.option("--rpm", "requests_per_minute", type=float, help="At most so many requests a minute.")
@RUN.option("--tpm", "tokens_per_minute", type=float, help="At most so many tokens a minute.")
@ASKED.option("--system", "system_prompt", metavar="TEXT", help="System prompt; a row's own `system_prompt` wins.")
@ASKED.option("--attach", multiple=True, metavar="FIELD",
              help="Field that names images or files to send with the prompt (paths, addresses), may be repeated.")  # fmt: skip
@_loop_options
@ANSWERED.option("--base-url", metavar="URL", help="Where the model is served, as --option base_url=URL.")
@key_values_option("--option", "options", typed=True, group=ANSWERED,
                   help="Option of the provider, may be repeated; ${NAME} in it is a secret of the environment.")  # fmt: skip
@KEPT.option("--allow-drift", is_flag=True, help="Start anew if inputs changed, using every stored answer that fits.")
@KEPT.option("--cache", type=click.Choice(["run", "store", "off"]), default="run", show_default=True,
              help="Where stored answers may come from.")  # fmt: skip
@run_options
@keep_going_option
@_execution_option
@weak_sandbox_option
@json_option
@interruptible
def evaluate_command(
    storage: str,
    prompt: str | None,
    prompt_file: str | None,
    base_url: str | None,
    reasoning_effort: str | None,
    thinking_budget: int | None,
    strict_parameters: bool,
    options: dict[str, Any],
    metrics: tuple[str, ...],
    stop: tuple[str, ...],
    yes: bool,
    as_json: bool,
    **asked: Any,
) -> int:
    """Ask a model every row of a DATASET, judge the answers, store everything.

    DATASET is a benchmark (`themis list benchmarks`), lm-eval:TASK, a file of rows (.jsonl, .json, .csv, .tsv, .parquet),
    hf://OWNER/NAME/SPLIT, or - for rows on standard input.
    """
    watching, rows_format = take_watching(asked), asked.pop("rows_format")
    short = _name_options(
        base_url=base_url,
        reasoning_effort=reasoning_effort,
        thinking_budget=thinking_budget,
        strict_parameters=strict_parameters or None,
    )
    specification = _complete(
        SampleSpecification.from_values(
            {
                **_join_task_options(asked),
                "prompt": _read_prompt(prompt, prompt_file),
                "metrics": list(metrics) or None,
                "stop": list(stop) or None,
                "provider_options": {**options, **short},
                **_listed(asked),
            }
        ),
        rows_format,
    )
    if not yes:
        _ask_before_spending(specification)
    return attempt(specification, ExperimentStorage(storage), watching, as_json=as_json)


@click.command(
    cls=GroupedCommand,
    examples=(
        ("what is missing or failed, and nothing else", "resume gsm-4o"),
        (
            "with a larger budget, more calls at once, in another store",
            "resume gsm-4o --budget-usd 5 -j 16 --storage runs",
        ),
    ),
)
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@storage_option
@load_option
@workers_option(None, "Calls under way at once.")
@_execution_option
@RUN.option(
    "--batch/--no-batch", default=None, help="Ask the rest in batches, or singly.  [default: as it was started]"
)
@RUN.option("--cancel-batches", is_flag=True, help="Cancel open batches, keep what they answered, ask nothing more.")
@run_options
@keep_going_option
@weak_sandbox_option
@json_option
@interruptible
def resume(run_id: str, storage: str, as_json: bool, batch: bool | None, **changes: Any) -> int:
    """Go on with a run of either kind: missing and failed items are asked, finished ones never again."""
    changes.pop("load")  # run by the option itself; what the run was started with is stored
    store, watching = ExperimentStorage(storage), take_watching(changes)
    given = {name: value for name, value in changes.items() if value not in (None, False)}
    asked = load_for_resuming(store, run_id, given if batch is None else {**given, "batch": batch})
    return attempt(asked, store, watching, as_json=as_json)


@click.command()
@_what_to_ask
@click.option("--answer-tokens", type=int, help="Length of a usual answer (200 if not given).")
@click.option("--seconds-per-call", type=float, default=2.0, show_default=True)
@json_option
def estimate(
    prompt: str | None,
    prompt_file: str | None,
    as_json: bool,
    answer_tokens: int | None,
    seconds_per_call: float,
    **asked: Any,
) -> None:
    """Calls, tokens, dollars and minutes of an evaluation, before anything is spent. DATASET is as for `themis eval`."""
    rows_format = asked.pop("rows_format")
    specification = _complete(
        SampleSpecification.from_values(
            {**_join_task_options(asked), "prompt": _read_prompt(prompt, prompt_file), "load": list(asked["load"])}
        ),
        rows_format,
    )
    result = estimate_samples(specification, answer_tokens=answer_tokens, seconds_per_call=seconds_per_call)
    if as_json:
        print_json(vars(result))
        return
    print_table(
        ("what", "estimate"),
        [
            ("rows", f"{result.rows:,}"),
            ("calls", f"{result.calls:,}"),
            *([("calls of judges", f"{result.judge_calls:,}")] if result.judge_calls else []),
            ("prompt tokens", f"{result.prompt_tokens:,}"),
            ("answer tokens", f"{result.likely_completion_tokens:,} (at most {result.most_completion_tokens:,})"),
            ("dollars", _dollars(result)),
            ("minutes", f"{result.minutes:.1f}" if result.minutes >= 0.1 else "less than 0.1"),
        ],
    )
    for line in result.assumptions:
        click.echo(f"assumed: {line}")


# --- reading arguments ----------------------------------------------------------------------------------------------


def _read_prompt(text: str | None, file: str | None) -> str | None:
    if text is not None and file is not None:
        raise ConfigurationError("give --prompt or --prompt-file, not both")
    return Path(file).read_text(encoding="utf-8") if file is not None else text


def _name_options(**given: object) -> dict[str, object]:
    """Options of the provider that have options of the command for themselves, as far as they are used."""
    return {name: value for name, value in given.items() if value is not None}


def _join_task_options(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a task, in one place."""
    joined = {name: value for name, value in asked.items() if name != "include"}
    options = {**joined["task_options"], **({"include": list(asked["include"])} if asked["include"] else {})}
    return {**joined, "task_options": options or None}


def _complete(asked: SampleSpecification, rows_format: str | None) -> SampleSpecification:
    """With the rows of standard input, and the prompt and the fields of rows of the user's own, as their first row shows."""
    dataset = str(asked.dataset)
    rows: object = asked.dataset
    if dataset == STANDARD_INPUT:
        rows = _read_standard_input(rows_format)
    elif rows_format is not None:
        raise ConfigurationError(f"--format is for rows on standard input (-); {dataset!r} says by its name what it is")
    elif Path(dataset).exists() and dataset.lower() not in list_benchmarks():
        rows = Path(dataset)
    found = complete_from_rows(replace(asked, dataset=rows))
    if found.prompt_field is not None:
        click.echo(f"prompt: the field {found.prompt_field!r} as it is (--prompt changes it)", err=True)
    return found.specification


def _read_standard_input(rows_format: str | None) -> PipedRows:
    # A program may be started with its standard input closed, which Python tells by None.
    if sys.stdin is None:
        raise ConfigurationError("rows are read from standard input, which is closed: name a file, or pipe rows in")
    if is_person_there():
        raise ConfigurationError(
            "rows are read from standard input, which is this terminal: name a file, or pipe rows in, as in "
            "cat rows.jsonl | themis eval - -m MODEL"
        )
    return PipedRows(sys.stdin.buffer, rows_format)


def _ask_before_spending(asked: SampleSpecification) -> None:
    """Where a person is there to answer and the price is known, says what it may cost and asks."""
    spec = parse_model(str(asked.model), asked.provider_options)
    price = price_of(spec.identifier, spec.provider)
    if price is None or not is_person_there() or spec.provider in ("fake", "local", "replay"):
        return
    result = estimate_samples(asked)
    click.echo(
        f"{asked.dataset} with {asked.model}: {result.calls:,} calls, {_dollars(result)}, {price.source}", err=True
    )
    click.confirm("go on?", default=True, abort=True, err=True)


def _dollars(result: Estimate) -> str:
    if result.likely_usd is None:
        return "unknown price"
    most = "how much at most is not known" if result.most_usd is None else f"at most ${result.most_usd:.4f}"
    return f"${result.likely_usd:.4f} ({most})"
