"""`themis rejudge`: stored answers judged again; `themis judge`: what a judge's scores are worth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, nullcontext
from typing import Any

import click

from themis.cli.completing import EXTRACTOR, METRIC, MODEL, REDUCER, RUN_ID
from themis.cli.output import (
    command_words,
    format_interval,
    format_number,
    interruptible,
    json_option,
    key_values_option,
    print_json,
    print_result,
    print_table,
    storage_option,
    write_page,
)
from themis.cli.running import exit_code, load_option, present, weak_sandbox_option, workers_option
from themis.cli.terminal import escape_terminal
from themis.comparison.pages import audit_page
from themis.comparison.scores import common_metrics, open_scores, open_store
from themis.evaluation.agreement import agreement_of, swap_consistency
from themis.evaluation.agreement import calibrate as calibrate_scores
from themis.exceptions import ConfigurationError, DatasetError, RunFailedError, RunInterrupted
from themis.experiment.assemble import stored_pipeline
from themis.experiment.judge_audit import JudgeAudit, audit_judge, audit_judgments
from themis.experiment.judgment_files import read_judgments_file
from themis.memory.models import ChatModel
from themis.memory.rejudging import rejudge_memory_run
from themis.presets.loading import read_rows
from themis.runs.judging import rejudge as judge_again
from themis.runs.progress import make_bar
from themis.runs.report import build_report
from themis.runs.resuming import how_to_repeat
from themis.storage import ExperimentStorage


@click.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@storage_option
@click.option("--metric", "metrics", multiple=True, type=METRIC, help="Metric by name, may be repeated.")
@click.option("--extractor", type=EXTRACTOR, help="Extractor by name.")
@click.option("--reducer", type=REDUCER, help="How attempts become a score.")
@load_option
@click.option("--judge", type=MODEL, help="For memory runs: the model that decides where words must be understood.")
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
    load: tuple[str, ...],
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
            with closing(ChatModel(judge)) if judge is not None else nullcontext() as model:
                rejudge_memory_run(store, run_id, model)
            return present(store, build_report(store, run_id), as_json)
        pipeline = stored_pipeline(store, run_id, metrics=list(metrics) or None, extractor=extractor, reducer=reducer)
        return present(store, judge_again(store, run_id, pipeline), as_json)
    except RunFailedError as failed:
        return present(store, failed.report, as_json)
    except KeyboardInterrupt as stopped:
        # What the judge has answered is stored, and not asked again.
        raise RunInterrupted(run_id, how_to_repeat(command_words(), storage)) from stopped


@click.group()
def judge() -> None:
    """What a judge's scores are worth: on answers whose truth is known, against people's labels and other judges."""


@judge.command()
@click.argument("run_ids", type=RUN_ID, metavar="[RUN]...", nargs=-1)
@click.option("--metric", help="The judge's metric in these runs; the one judge that they have by default.")
@click.option("--judge", "judge_name", metavar="JUDGE",
              help="The judge, if the store cannot make it again: \"rubric_judge(model='...')\", or a model.")  # fmt: skip
@click.option("-n", "--n", "n", type=click.IntRange(min=2), default=200, show_default=True,
              help="Answers to make at most, half of them right.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draws that make them.")
@click.option("--labels", type=click.Path(exists=True, dir_okay=False),
              help="People's labels of the runs' items, to correct by them too: a file with id and label.")  # fmt: skip
@click.option("--from", "file", type=click.Path(exists=True, dir_okay=False),
              help="Judgments made elsewhere: a file with label, verdict and, if you like, kind and item.")  # fmt: skip
@key_values_option("--field", "columns", help="What the file calls a field, as label=gold; may be repeated.")
@click.option("--budget-usd", type=float, help="Never spend more than this on the audit, what it has cost included.")
@workers_option(4, "Calls at once.")
@click.option("--progress/--no-progress", default=None, help="Show a bar; by default when stderr is a terminal.")
@click.option("--html", "html_file", type=click.Path(dir_okay=False), help="Write one self-contained page.")
@click.option("--markdown", is_flag=True, help="Print Markdown tables.")
@storage_option
@json_option
@interruptible
def audit(
    run_ids: tuple[str, ...],
    metric: str | None,
    judge_name: str | None,
    labels: str | None,
    file: str | None,
    columns: dict[str, str],
    progress: bool | None,
    html_file: str | None,
    markdown: bool,
    storage: str,
    as_json: bool,
    **asked: object,
) -> int:
    """What a judge accepts of right and of wrong answers, and the scores of RUNs corrected for it.

    The answers are made from the runs' references: right ones in other words, and wrong ones that stay on the topic. The same
    command again goes on where it stopped; no verdict is paid for twice.
    """
    known = {} if labels is None else _read_labels(labels)
    if file is not None:
        judgments = read_judgments_file(file, columns)
        name = judge_name or metric or "judge"
        found = audit_judgments(judgments, judge=name, run_ids=run_ids, metric=metric, storage=storage, labels=known)
    elif not run_ids:
        raise ConfigurationError("name runs whose rows have references, or a file of judgments by --from")
    else:
        if columns:
            raise ConfigurationError("--field says what a file calls its fields; name the file by --from")
        bar = make_bar(progress)
        observers = [] if bar is None else [bar]
        given = {"metric": metric, "judge": judge_name, "labels": known, "observers": observers, **asked}
        found = _ask_judge(run_ids, storage, given)
    if html_file is not None:
        write_page(html_file, audit_page(found.judge, found.rate_rows(), found.run_rows(), found.lines()))
    if as_json:
        print_json(found.to_dict())
    elif markdown:
        click.echo(found.to_markdown())
    elif html_file is None:
        _print_audit(found)
    return 0 if found.report is None else exit_code(found.report)


def _ask_judge(run_ids: tuple[str, ...], storage: str, given: dict[str, Any]) -> JudgeAudit:
    try:
        return audit_judge(run_ids, storage=storage, **given)
    except RunInterrupted as stopped:
        # The same command shows the audit, too, where resuming its run would not.
        raise RunInterrupted(stopped.run_id, how_to_repeat(command_words(), storage)) from stopped


def _print_audit(found: JudgeAudit) -> None:
    rates = found.rates
    click.echo(
        f"{found.judge}: sensitivity {rates.sensitivity.value:.4f} {format_interval(rates.sensitivity.ci)}, "
        f"specificity {rates.specificity.value:.4f} {format_interval(rates.specificity.ci)}"
    )
    print_table(("answers", "n", "accepted", "95 % interval"), found.rate_rows())
    if rows := found.run_rows():
        click.echo()
        print_table(("run", "n", "judge's score", "corrected", "95 % interval", "how"), rows)
    for line in found.lines():
        click.echo(escape_terminal(line))
    if found.report is not None:
        cost = found.report.metadata["cost"]
        paid = "unknown price" if cost["total_cost"] is None else f"${cost['total_cost']:.4f}"
        click.echo(f"audit {found.run_id}: {cost['judge_calls']:,} calls of the judge, {paid}")


@judge.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@click.option("--metric", required=True, help="The judge's metric, as the report names it.")
@click.option("--labels", required=True, type=click.Path(exists=True, dir_okay=False),
              help="People's labels: a file with the fields id and label (0 to 1, or true and false).")  # fmt: skip
@storage_option
@json_option
def calibrate(run_id: str, metric: str, labels: str, storage: str, as_json: bool) -> None:
    """Accuracy, kappa and bias against people, and the mean corrected for that bias with its interval."""
    found = calibrate_scores(_scores(open_store(storage), run_id, metric), _read_labels(labels))
    rows = [
        ("items with a label", found.labelled),
        ("items judged", found.judged),
        ("accuracy", format_number(found.accuracy)),
        ("Cohen's kappa", format_number(found.kappa)),
        ("bias (judge - people)", f"{found.bias:+.4f}"),
        ("judge's mean", format_number(found.judge_mean)),
        ("corrected mean", f"{found.corrected_mean:.4f} {format_interval(found.corrected_ci)}"),
        ("labels for an interval of +-0.05", f"about {found.labels_wanted:,}"),
    ]
    print_result(vars(found), ("what", "value"), rows, as_json=as_json)


@judge.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@click.option("--metric", "metrics", multiple=True, required=True, help="A panel's metric, or two and more judges'.")
@storage_option
@json_option
def agreement(run_id: str, metrics: tuple[str, ...], storage: str, as_json: bool) -> None:
    """How far judges of one run agree: Krippendorff's alpha, and Cohen's kappa of every two."""
    store = open_store(storage)
    if len(metrics) == 1:
        judged = _votes(store, run_id, metrics[0])
    else:
        judged = {metric: _scores(store, run_id, metric) for metric in metrics}
    found = agreement_of(judged)
    rows: list[tuple[str, object]] = [("items", found.items)]
    rows += [("Krippendorff's alpha (interval)", format_number(found.krippendorff_alpha))]
    rows += [(f"kappa {names}", format_number(kappa)) for names, kappa in found.cohens_kappa.items()]
    print_result(vars(found), ("agreement", "value"), rows, as_json=as_json)


@judge.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@click.option("--metric", default="PairwiseJudge", show_default=True, help="The pairwise judge's metric.")
@storage_option
@json_option
def consistency(run_id: str, metric: str, storage: str, as_json: bool) -> None:
    """How often a pairwise judge changed its verdict when the two answers changed places."""
    said = [details.get("said", ()) for _, details in _details(open_store(storage), run_id, metric)]
    found = swap_consistency(said)
    rows = [
        ("pairs judged in both orders", found.pairs),
        ("inconsistent", found.inconsistent),
        ("inconsistency rate", f"{found.rate:.4f} {format_interval(found.rate_ci)}"),
        ("preferred the first place", found.first_place),
        ("preferred the second place", found.second_place),
    ]
    print_result(vars(found), ("what", "value"), rows, as_json=as_json)


def _votes(store: ExperimentStorage, run_id: str, metric: str) -> dict[str, dict[str, float]]:
    """judge -> item -> value, from what a panel wrote down; judges of one model are told apart by their place."""
    judged: dict[str, dict[str, float]] = {}
    for item_id, details in _details(store, run_id, metric):
        for place, vote in enumerate(details.get("votes", ()), start=1):
            judged.setdefault(f"{place} {vote['judge']}", {})[item_id] = vote["value"]
    if not judged:
        raise ConfigurationError(f"{metric!r} is not a panel: name at least two judges, repeating --metric")
    return judged


def _scores(store: ExperimentStorage, run_id: str, metric: str) -> dict[str, float]:
    runs = open_scores(store, [run_id])
    scores = runs[0].read(common_metrics(runs, [metric])[0])
    return dict(zip(scores.item_ids, map(float, scores.values), strict=True))


def _details(store: ExperimentStorage, run_id: str, metric: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(item id, details) of every score of a metric."""
    runs = open_scores(store, [run_id])
    name = common_metrics(runs, [metric])[0]
    for _, record in runs[0].reader.evaluations(runs[0].evaluation):
        for score in record.scores:
            if score.metric_name == name:
                yield record.sample_id or "", score.details


def _read_labels(path: str) -> dict[str, float]:
    labels = {}
    for line, row in enumerate(read_rows(path), start=1):
        if "id" not in row or "label" not in row:
            raise DatasetError(f"{path}, row {line}: expected the fields id and label, got {', '.join(row)}")
        value = _parse_label(str(row["label"]).strip().lower())
        if value is None:
            raise DatasetError(
                f"{path}, row {line}: label {row['label']!r} is not a number from 0 to 1, nor true or false"
            )
        labels[str(row["id"])] = value
    return labels


def _parse_label(text: str) -> float | None:
    words = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "pass": 1.0, "fail": 0.0}
    try:
        value = words[text] if text in words else float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None
