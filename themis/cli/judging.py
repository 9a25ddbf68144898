"""`themis judge`: what a judge's scores are worth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from themis.cli.output import format_interval, format_number, json_option, print_result, storage_option
from themis.comparison.scores import common_metrics, open_scores, open_store
from themis.evaluation.agreement import agreement_of, swap_consistency
from themis.evaluation.agreement import calibrate as calibrate_scores
from themis.exceptions import ConfigurationError, DatasetError
from themis.presets.loading import read_rows
from themis.storage import ExperimentStorage


@click.group()
def judge() -> None:
    """What a judge's scores are worth: against people's labels, and against other judges."""


@judge.command()
@click.argument("run_id", metavar="RUN")
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
    ]
    print_result(vars(found), ("what", "value"), rows, as_json=as_json)


@judge.command()
@click.argument("run_id", metavar="RUN")
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
@click.argument("run_id", metavar="RUN")
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
