"""`themis eval`, `resume`, `estimate` and `rejudge`: running and judging from the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click

from themis.api import load_for_resuming
from themis.backends.execution import EXECUTION_BACKENDS
from themis.cli.output import (
    apply_options,
    command_words,
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
    present,
    run_options,
    start_options,
    take_watching,
    weak_sandbox_option,
    workers_option,
)
from themis.config.specification import SampleSpecification
from themis.core.continuations import CONTINUATIONS
from themis.exceptions import ConfigurationError, DatasetError, RunFailedError, RunInterrupted
from themis.experiment.assemble import settle, stored_pipeline
from themis.experiment.datasets import resolve_dataset
from themis.generation.providers import parse_model, provider_factory
from themis.memory.models import ChatModel
from themis.memory.rejudging import rejudge_memory_run
from themis.presets.loading import READABLE_SUFFIXES, read_rows
from themis.runs.estimate import Estimate, estimate_run
from themis.runs.judging import rejudge as judge_again
from themis.runs.prices import price_of
from themis.runs.report import build_report
from themis.runs.resuming import how_to_repeat
from themis.storage import ExperimentStorage

F = TypeVar("F", bound=Callable[..., Any])

# Fields that a file's rows may have, the likeliest first.
_PROMPT_FIELDS = ("prompt", "question", "input", "text", "query", "problem", "messages")
_REFERENCE_FIELDS = ("answer", "reference", "expected", "label", "target", "solution")
_ID_FIELDS = ("id", "sample_id", "dataset_id", "unique_id", "uid")


def _what_to_ask(function: F) -> F:
    """Options that say what is asked: shared by eval and estimate."""
    options = (
        click.argument("dataset", metavar="BENCHMARK|lm-eval:TASK|FILE"),
        click.option("-m", "--model", required=True, help="provider/model, for example openai/gpt-4o or fake/perfect."),
        click.option("-n", "--limit", type=click.IntRange(min=1), help="Only the first so many rows."),
        click.option("--prompt", help="Template over the row's fields: 'Q: {question}'."),
        click.option("--prompt-file", type=click.Path(exists=True, dir_okay=False), help="Template from a file."),
        click.option(
            "--num-samples", type=click.IntRange(min=1), help="Answers per row.  [default: the protocol's, or 1]"
        ),
        click.option(
            "--shots", type=click.IntRange(min=0), help="Examples before the question.  [default: the protocol's]"
        ),
        click.option(
            "--max-tokens", type=int, help="Longest answer; -1 for no limit.  [default: the protocol's, or 512]"
        ),
        workers_option(4, "Calls at once."),
        click.option(
            "--data", type=click.Path(exists=True), help="Read the benchmark's rows from this file or folder."
        ),
        click.option(
            "--sample", is_flag=True, help="Use the benchmark's few shipped rows: a smoke test, not a result."
        ),
        click.option(
            "--include",
            multiple=True,
            type=click.Path(exists=True, resolve_path=True),
            help="Folder or file with YAML tasks of your own for lm-eval:TASK, may be repeated.",
        ),
        key_values_option(
            "--task-option",
            "task_options",
            typed=True,
            help="Option of an lm-eval:TASK, may be repeated: chat, multiturn, system, seed, generation, metadata, unsafe_code.",
        ),
    )
    return apply_options(options, function)


def _execution_option(function: F) -> F:
    return click.option(
        "--execution",
        "execution_backend",
        metavar="|".join(EXECUTION_BACKENDS.names()),
        help="Where calls are made: here, one after another, or in the processes of a Ray cluster.",
    )(function)


@click.command(name="eval")
@_what_to_ask
@start_options
@storage_option
@click.option("--metric", "metrics", multiple=True, help="Metric by name, may be repeated: see `themis list metrics`.")
@click.option("--extractor", help="Extractor by name: see `themis list extractors`.")
@click.option("--judge", metavar="MODEL", help="Who grades answers, for benchmarks that a model grades: simpleqa, hle.")
@click.option("--reducer", help="How attempts become a score: average, best, majority, pass@3, ...")
@click.option("--reference-field", help="Field with the expected answer.")
@click.option("--id-field", "dataset_id_field", help="Field with the row's id.")
@click.option("--cluster-field", help="Field that groups rows which are not independent (for the interval).")
@click.option("--temperature", type=float, help="0 for the likeliest answer.  [default: the protocol's, or 0]")
@click.option("--top-p", type=float, help="Not sent where neither you nor the protocol says one.")
@click.option("--stop", multiple=True, metavar="TEXT", help="Text at which an answer ends, may be repeated.")
@click.option("--truncated-limit", type=click.FloatRange(0, 1), default=0.05, show_default=True, metavar="SHARE",
              help="Say before the mean that it is too low once more answers than this are cut off.")  # fmt: skip
@click.option("--seed", type=int, help="Sampling seed, for providers that take one.")
@click.option(
    "--max-retries",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Calls per answer, in total.",
)
@click.option(
    "--timeout", "timeout_seconds", type=float, default=600.0, show_default=True, help="Seconds for one call."
)
@click.option("--deadline", "deadline_seconds", type=float, default=1800.0, show_default=True,
              help="Seconds for one answer with all retries.")  # fmt: skip
@click.option("--rpm", "requests_per_minute", type=float, help="At most so many requests a minute.")
@click.option("--tpm", "tokens_per_minute", type=float, help="At most so many tokens a minute.")
@click.option("--system", metavar="TEXT", help="System prompt; a row's own `system_prompt` wins.")
@key_values_option("--option", "options", typed=True,
                   help="Option of the provider, may be repeated; ${NAME} in it is a secret of the environment.")  # fmt: skip
@click.option("--allow-drift", is_flag=True, help="Start anew if inputs changed, using every stored answer that fits.")
@click.option("--cache", type=click.Choice(["run", "store", "off"]), default="run", show_default=True,
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
    system: str | None,
    options: dict[str, Any],
    metrics: tuple[str, ...],
    stop: tuple[str, ...],
    yes: bool,
    as_json: bool,
    **asked: Any,
) -> int:
    """Ask a model every row of a BENCHMARK or FILE (.jsonl, .json, .csv, .tsv, .parquet), judge the answers, store everything."""
    watching = take_watching(asked)
    specification = _complete(
        SampleSpecification.from_values(
            {
                **_join_task_options(asked),
                "prompt": _read_prompt(prompt, prompt_file),
                "metrics": list(metrics) or None,
                "stop": list(stop) or None,
                "provider_options": options | ({} if system is None else {"system_prompt": system}),
            }
        )
    )
    if not yes:
        _ask_before_spending(specification)
    return attempt(specification, ExperimentStorage(storage), watching, as_json=as_json)


@click.command()
@click.argument("run_id", metavar="RUN")
@storage_option
@workers_option(None, "Calls under way at once.")
@_execution_option
@run_options
@keep_going_option
@weak_sandbox_option
@json_option
@interruptible
def resume(run_id: str, storage: str, as_json: bool, **changes: Any) -> int:
    """Go on with a run of either kind: missing and failed items are asked, finished ones never again."""
    store, watching = ExperimentStorage(storage), take_watching(changes)
    asked = load_for_resuming(
        store, run_id, {name: value for name, value in changes.items() if value not in (None, False)}
    )
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
    """Calls, tokens, dollars and minutes of an evaluation, before anything is spent."""
    specification = _complete(
        SampleSpecification.from_values({**_join_task_options(asked), "prompt": _read_prompt(prompt, prompt_file)})
    )
    result = _estimate(specification, answer_tokens=answer_tokens, seconds_per_call=seconds_per_call)
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
@weak_sandbox_option
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
            rejudge_memory_run(store, run_id, ChatModel(judge) if judge is not None else None)
            return present(store, build_report(store, run_id), as_json)
        pipeline = stored_pipeline(store, run_id, metrics=list(metrics) or None, extractor=extractor, reducer=reducer)
        return present(store, judge_again(store, run_id, pipeline), as_json)
    except RunFailedError as failed:
        return present(store, failed.report, as_json)
    except KeyboardInterrupt as stopped:
        # What the judge has answered is stored, and not asked again.
        raise RunInterrupted(run_id, how_to_repeat(command_words(), storage)) from stopped


# --- reading arguments ----------------------------------------------------------------------------------------------


def _read_prompt(text: str | None, file: str | None) -> str | None:
    if text is not None and file is not None:
        raise ConfigurationError("give --prompt or --prompt-file, not both")
    return Path(file).read_text(encoding="utf-8") if file is not None else text


def _join_task_options(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a task, in one place."""
    joined = {name: value for name, value in asked.items() if name != "include"}
    options = {**joined["task_options"], **({"include": list(asked["include"])} if asked["include"] else {})}
    return {**joined, "task_options": options or None}


def _complete(asked: SampleSpecification) -> SampleSpecification:
    """With the prompt and the fields of a file, as far as its first row shows them."""
    dataset = str(asked.dataset)
    path = Path(dataset)
    if not path.exists() and path.suffix.lower() not in READABLE_SUFFIXES:
        return asked
    if not path.is_file():
        raise DatasetError(f"{dataset!r} is a folder; name a file in it" if path.is_dir() else f"no file {dataset!r}")
    if asked.data is not None or asked.sample:
        raise ConfigurationError(f"--data and --sample are for benchmarks; {dataset!r} is a file of its own rows")
    first = next(islice(read_rows(path), 1), None)
    if first is None:
        raise DatasetError(f"{path} has no rows")
    prompt = asked.prompt
    # Pairs of a context and a continuation bring their own prompts.
    scored = first.get(CONTINUATIONS) or [""]
    if prompt is None and any(isinstance(one, str) for one in scored):
        field = next((name for name in _PROMPT_FIELDS if name in first), None)
        if field is None:
            raise ConfigurationError(
                f"{path} has the fields {', '.join(map(str, first))} and none of {', '.join(_PROMPT_FIELDS)}; "
                "say by --prompt what to ask"
            )
        prompt = f"{{{field}}}"
        click.echo(f"prompt: the field {field!r} as it is (--prompt changes it)", err=True)
    reference, id_field = asked.reference_field, asked.dataset_id_field
    if reference is None:
        reference = next((name for name in _REFERENCE_FIELDS if name in first), "")
    if id_field is None:
        id_field = next((name for name in _ID_FIELDS if name in first), None)
    return replace(asked, dataset=path, prompt=prompt, reference_field=reference, dataset_id_field=id_field)


def _estimate(
    asked: SampleSpecification, *, answer_tokens: int | None = None, seconds_per_call: float = 2.0
) -> Estimate:
    spec = parse_model(asked.model, asked.provider_options)
    provider = provider_factory(spec.provider, asked.provider_options)
    source = resolve_dataset(asked)
    settings = settle(asked, source)
    return estimate_run(
        source.rows,
        source.template,
        price=price_of(
            spec.identifier,
            spec.provider,
            is_local=bool(getattr(provider, "is_local", False)) or spec.provider == "fake",
        ),
        max_tokens=settings.sampling.max_tokens,
        num_samples=settings.attempts,
        workers=asked.workers,
        limit=None if source.is_limited else asked.limit,
        answer_tokens=answer_tokens,
        seconds_per_call=seconds_per_call,
    )


def _ask_before_spending(asked: SampleSpecification) -> None:
    """Where a person is there to answer and the price is known, says what it may cost and asks."""
    spec = parse_model(asked.model, asked.provider_options)
    price = price_of(spec.identifier, spec.provider)
    if price is None or not sys.stdin.isatty() or spec.provider in ("fake", "local", "replay"):
        return
    result = _estimate(asked)
    click.echo(
        f"{asked.dataset} with {asked.model}: {result.calls:,} calls, {_dollars(result)}, {price.source}", err=True
    )
    click.confirm("go on?", default=True, abort=True, err=True)


def _dollars(result: Estimate) -> str:
    if result.likely_usd is None or result.most_usd is None:
        return "unknown price"
    return f"${result.likely_usd:.4f} (at most ${result.most_usd:.4f})"
