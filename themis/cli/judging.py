"""`themis judge`: what a judge's scores are worth."""

from __future__ import annotations

import click

from themis.cli.output import json_option, number, print_json, print_table, storage_option
from themis.evaluation.agreement import calibrate as calibrate_scores
from themis.evaluation.agreement import cohens_kappa, krippendorff_alpha
from themis.exceptions import ConfigurationError, DatasetError
from themis.presets.loading import read_rows
from themis.storage import ExperimentStorage

__all__ = ["judge"]


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
    found = calibrate_scores(_scores(ExperimentStorage(storage), run_id, metric), _labels(labels))
    if as_json:
        print_json(vars(found))
        return
    low, high = found.corrected_ci
    rows = [
        ("items with a label", found.labelled),
        ("items judged", found.judged),
        ("accuracy", number(found.accuracy)),
        ("Cohen's kappa", number(found.kappa)),
        ("bias (judge - people)", f"{found.bias:+.4f}"),
        ("judge's mean", number(found.judge_mean)),
        ("corrected mean", f"{found.corrected_mean:.4f} [{low:.4f}, {high:.4f}]"),
    ]
    print_table(("what", "value"), rows)


@judge.command()
@click.argument("run_id", metavar="RUN")
@click.option("--metric", "metrics", multiple=True, required=True, help="A judge's metric; give at least two.")
@storage_option
@json_option
def agreement(run_id: str, metrics: tuple[str, ...], storage: str, as_json: bool) -> None:
    """How far judges of one run agree: Krippendorff's alpha, and Cohen's kappa of every two."""
    if len(metrics) < 2:
        raise ConfigurationError("agreement is between at least two judges; repeat --metric")
    store = ExperimentStorage(storage)
    scores = {metric: _scores(store, run_id, metric) for metric in metrics}
    items = sorted(set().union(*scores.values()))
    ratings = [[scores[metric].get(item) for item in items] for metric in metrics]
    kappas = {}
    for index, one in enumerate(metrics):
        for other in metrics[index + 1 :]:
            shared = [item for item in items if item in scores[one] and item in scores[other]]
            votes = [(scores[one][item] >= 0.5, scores[other][item] >= 0.5) for item in shared]
            kappas[f"{one} / {other}"] = cohens_kappa([a for a, _ in votes], [b for _, b in votes])
    alpha = krippendorff_alpha(ratings, level="interval")
    if as_json:
        print_json({"items": len(items), "krippendorff_alpha": alpha, "cohens_kappa": kappas})
        return
    rows = [("Krippendorff's alpha (interval)", number(alpha)), *((f"kappa {n}", number(k)) for n, k in kappas.items())]
    print_table(("agreement", "value"), rows)


def _scores(store: ExperimentStorage, run_id: str, metric: str) -> dict[str, float]:
    evaluation = store.current_evaluation(run_id)
    if evaluation is None:
        raise ConfigurationError(f"run {run_id!r} has not been judged")
    reader = store.reader(run_id)
    known = reader.metric_names(evaluation)
    if metric not in known:
        raise ConfigurationError(f"run {run_id!r} has no metric {metric!r}; it has {', '.join(known)}")
    return {item_id: value for item_id, _, value in reader.values(evaluation, metric)}


def _labels(path: str) -> dict[str, float]:
    labels = {}
    for line, row in enumerate(read_rows(path), start=1):
        if "id" not in row or "label" not in row:
            raise DatasetError(f"{path}, row {line}: expected the fields id and label, got {', '.join(row)}")
        text = str(row["label"]).strip().lower()
        value = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "pass": 1.0, "fail": 0.0}.get(text)
        try:
            labels[str(row["id"])] = float(text) if value is None else value
        except ValueError:
            raise DatasetError(f"{path}, row {line}: label {row['label']!r} is not a number from 0 to 1") from None
    return labels
