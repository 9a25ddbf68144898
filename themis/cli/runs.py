"""`themis list runs`, `show` and `delete`: the runs of a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from themis.cli.completing import EXPERIMENT, RUN_ID
from themis.cli.output import (
    format_interval,
    format_number,
    json_option,
    print_json,
    print_table,
    storage_option,
)
from themis.cli.samples import find_sample, print_sample
from themis.core.redaction import redact
from themis.exceptions import ConfigurationError
from themis.experiment.batching import say_what_goes_on
from themis.experiment.export.measures import distinct_details, tables
from themis.runs.report import (
    Ends,
    Performance,
    build_report,
    describe_protocol,
    find_ends,
    has_several_attempts,
    metric_details,
    parameter_facts,
    performance_facts,
    summarise_run,
)
from themis.storage import ExperimentStorage, RunMetadata, RunStatus
from themis.storage.batches import read_batches


@click.command()
@storage_option
@click.option("--limit", type=int, help="At most so many, the newest.")
@click.option("--experiment", type=EXPERIMENT, metavar="NAME", help="Only runs of this experiment.")
@click.option("--status", help="Only runs of this status.")
@click.option("--verbose", is_flag=True, help="Also experiment, model and scores.")
@json_option
def list_runs(
    storage: str, limit: int | None, experiment: str | None, status: str | None, verbose: bool, as_json: bool
) -> int:
    """Runs in a store, newest first."""
    store = ExperimentStorage(storage)
    if not store.exists():
        click.echo(f"no store at {storage}; a first run makes one: themis demo", err=True)
        return 1
    found = store.list_runs(experiment, status, limit)
    if as_json:
        print_json([describe_run(store, run) for run in found])
        return 0
    if not found:
        click.echo("No runs found.")
        return 0
    click.echo("Runs:")
    for run in found:
        created = run.created_at.isoformat(timespec="seconds")
        line = f"  - {run.run_id} [{run.standing}] samples={run.total_samples} created={created}"
        if verbose:
            scores = " ".join(
                f"{name}={format_number(metric['mean'])} (n={metric['count']})"
                for name, metric in run.summary.get("metrics", {}).items()
            )
            line += f" experiment={run.experiment} model={run.model} {scores}".rstrip()
        brief = [caveat.partition(":")[0] for caveat in run.summary.get("caveats", ())]
        click.echo(line + (f" ({'; '.join(brief)})" if brief else ""))
    return 0


@click.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@click.option("--sample", metavar="ID", help="One sample instead: what was said in it, each attempt with its verdict.")
@click.option("--full", is_flag=True, help="With --sample: long texts and reasoning to their ends.")
@storage_option
@json_option
def show(run_id: str, sample: str | None, full: bool, storage: str, as_json: bool) -> None:
    """Status, scores with intervals, cost and tokens of one run; or one of its samples."""
    store = ExperimentStorage(storage)
    run = store.get_run(run_id)
    if sample is not None:
        found = find_sample(store.reader(run_id), sample)
        title = f"{found['id']}, sample {found['position'] + 1:,} of {run.total_samples:,} in {run_id} ({run.model})"
        print_json(found) if as_json else print_sample(found, title=title, full=full)
        return
    if full:
        raise ConfigurationError("--full is for one sample: give its id with --sample ID")
    described = describe_run(store, run, is_complete=True)
    for name, details in metric_details(store.reader(run_id)).items():
        if name in described["metrics"]:
            described["metrics"][name]["details"] = redact(details)
    if as_json:
        print_json(described)
        return
    click.echo(f"{described['run_id']}  [{run.standing}]  {described['model']}")
    created = run.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    click.echo(f"created {created}, {run.total_samples} samples, kind {run.kind}, experiment {described['experiment']}")
    if described["error"]:
        click.echo(f"note: {described['error']}")
    if described["waiting"] and run.writer is not None:
        click.echo(described["waiting"])
    elif goes_on := say_what_goes_on(store.reader(run_id)):
        click.echo(goes_on.strip())
    if described["protocol"]:
        click.echo(f"protocol: {described['protocol']}")
    for caveat in described["caveats"]:
        click.echo(caveat)
    print_metrics(described["metrics"])
    explained = distinct_details((name, m.get("details", {})) for name, m in described["metrics"].items())
    for table in (table for one in explained.values() for table in tables(one)):
        click.echo()
        print_table(table.columns, table.rows, title=table.title)
    cost, tokens = described["cost"], described["tokens"]
    shown = "unknown price" if cost["total_cost"] is None else f"${cost['total_cost']:.4f}"
    untold = tokens.get("answers_without_tokens", 0)
    without = f" ({untold:,} answers came without a count of tokens)" if untold else ""
    click.echo(f"cost {shown}; {cost['api_calls']} calls, {tokens['total_tokens']} tokens{say_cached(tokens)}{without}")
    print_performance(described["performance"])
    for name, text in parameter_facts(described["parameters"]).items():
        click.echo(f"{name}: {text}")
    if described["cut_off"] and not any("cut off" in caveat for caveat in described["caveats"]):
        click.echo(say_cut_off(store, run))
    click.echo(f"manifest {described['manifest_hash']}")


def say_cached(tokens: Mapping[str, int]) -> str:
    """How many tokens of prompts a provider's cache had, in brackets; nothing where it had none."""
    read, written = tokens.get("cached_tokens", 0), tokens.get("cache_write_tokens", 0)
    told = [f"{read:,} read from the prompt cache"] * bool(read) + [f"{written:,} written to it"] * bool(written)
    return f" ({', '.join(told)})" if told else ""


def print_metrics(metrics: Mapping[str, Mapping[str, Any]]) -> None:
    """A line a metric; with attempts where samples have several of them."""
    columns = ["metric", "mean", "95 % interval", "count", "failed", "unparsed"]
    rows: list[list[object]] = [
        [name, format_number(m["mean"]), format_interval(m["ci"]), m["count"], m["failed"], m.get("unparsed", 0)]
        for name, m in metrics.items()
    ]
    if any(has_several_attempts(metric) for metric in metrics.values()):
        columns += ["attempts", "failed attempts"]
        for row, metric in zip(rows, metrics.values(), strict=True):
            row += [metric["attempts"], metric["failed_attempts"]]
    print_table(columns, rows)
    for name, metric in metrics.items():
        if metric.get("partial"):
            click.echo(f"{name}: {metric['partial']:,} of {metric['count']:,} scores lack a judge that gave no verdict")


def print_performance(performance: Performance | None) -> None:
    for name, text in performance_facts(performance).items():
        click.echo(f"{name}: {text}")


def say_cut_off(store: ExperimentStorage, run: RunMetadata) -> str:
    """The line that saves people from taking a short limit for a bad model."""
    reader = store.reader(run.run_id)
    of_answer = Ends(f"at max_tokens={reader.frame.sampling.max_tokens}", "raise --max-tokens")
    ends = find_ends(reader, of_answer)
    return f"{run.cut_off:,} answers were cut off {ends.where}; more may be right with more room: {ends.way}"


def describe_run(store: ExperimentStorage, run: RunMetadata, *, is_complete: bool = False) -> dict[str, Any]:
    """A run as JSON: what `show --json`, lists and scripts read.

    With `is_complete`, what an older summary does not hold yet is read from the records.
    """
    summary = run.summary
    if (
        not summary
        or run.status is RunStatus.IN_PROGRESS
        or (is_complete and not {"performance", "caveats"} <= summary.keys())
    ):
        summary = {**summary, **summarise_run(build_report(store, run.run_id))}
    cost = summary["cost"]
    described: dict[str, Any] = redact(
        {
            "run_id": run.run_id,
            "experiment": run.experiment,
            "kind": run.kind,
            "status": run.status.value,
            "model": run.model,
            "benchmark": run.benchmark,
            "created_at": run.created_at.isoformat(),
            "completed_at": run.completed_at.isoformat() if run.completed_at else None,
            "samples": run.total_samples,
            "failed": run.failed_generations,
            "cut_off": run.cut_off,
            "waiting": run.waiting,
            "manifest_hash": run.manifest_hash,
            "metrics": summary["metrics"],
            "cost": cost,
            "tokens": cost["token_counts"],
            "performance": summary.get("performance"),
            "protocol": describe_protocol(run.config_snapshot.get("reproducibility_manifest", {})) or None,
            "caveats": summary.get("caveats", []),
            "parameters": summary.get("parameters"),
            "tags": run.tags,
            "error": run.error_message,
            **({"batches": _describe_batches(store, run)} if is_complete else {}),
            **({"memory": summary["memory"]} if "memory" in summary else {}),
        }
    )
    return described


def _describe_batches(store: ExperimentStorage, run: RunMetadata) -> list[dict[str, object]]:
    return [
        {"id": batch.id, "provider": batch.provider, "state": batch.state.value, "items": len(batch.items)}
        for batch in read_batches(store.reader(run.run_id))
    ]


@click.command()
@click.argument("run_ids", type=RUN_ID, metavar="RUN...", nargs=-1, required=True)
@storage_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete(run_ids: tuple[str, ...], storage: str, yes: bool) -> None:
    """Remove runs with their records, scores and turns. This cannot be undone."""
    store = ExperimentStorage(storage)
    for run_id in run_ids:
        run = store.get_run(run_id)
        if not yes:
            paid = "unknown cost" if run.cost_usd is None else f"${run.cost_usd:.4f}"
            going_on = say_what_goes_on(store.reader(run_id))
            click.confirm(f"{going_on}delete {run_id} ({run.total_samples} samples, {paid})?", abort=True, err=True)
        store.delete_run(run_id)
        click.echo(f"deleted {run_id}", err=True)
