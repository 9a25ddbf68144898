"""Stored audits of judges: an audit is a run whose answers were made to be right or wrong, found by the judge it is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from themis.core.codec import canonical_json, digest
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.judge_rates import JudgeRates, Judgment, judge_rates
from themis.evaluation.pipeline import EvaluationPipeline
from themis.exceptions import MetricError
from themis.interfaces import Metric
from themis.runs.manifest import evaluation_identity
from themis.storage import ExperimentStorage
from themis.storage.queries import RunReader

__all__ = [
    "ACCEPTED_FROM",
    "AUDITS",
    "TAG",
    "StoredAudit",
    "find_audit",
    "identify_judge",
    "read_judgments",
    "stored_judge",
]

# The experiment that audits are kept in, and the tag with the identity of the judge that each is of.
AUDITS = "judge-audits"
TAG = "judge_audit"
# From which score on a judge has accepted an answer.
ACCEPTED_FROM = 0.5
# Fields of an audit's rows: the made answer, of which kind it is, whether it is right, and whose question it answers.
ANSWER, KIND, TRUTH, ITEM = "audit_answer", "audit_kind", "audit_is_right", "audit_item"


@dataclass(frozen=True)
class StoredAudit:
    """An audit in the store, and how its judge did."""

    run_id: str
    rates: JudgeRates


def identify_judge(judge: Metric) -> str:
    """What a judge is known by: its class, parameters and code, as runs that it scored have it written down."""
    config = evaluation_identity(EvaluationPipeline(extractor=IdentityExtractor(), metrics=[judge]))[1]
    return _digest(config["metrics"][0])


def stored_judge(reader: RunReader, evaluation: int, metric: str) -> str | None:
    """The same of the metric that gave a stored run its scores; None where the run does not say what it was."""
    described = reader.evaluation_config(evaluation).get("metrics", [])
    named = [one for one in described if isinstance(one, Mapping) and _name(one) == metric]
    if not named and len(described) == 1 and reader.metric_names(evaluation) == [metric]:
        named = described  # its name is none of its parameters, but there is no other
    return _digest(named[0]) if len(named) == 1 else None


def find_audit(store: ExperimentStorage, identity: str) -> StoredAudit | None:
    """The newest audit of a judge that has verdicts on right and on wrong answers."""
    for run in store.list_runs(AUDITS):
        if run.tags.get(TAG) != identity:
            continue
        try:
            return StoredAudit(run.run_id, judge_rates(read_judgments(store, run.run_id)))
        except MetricError:
            continue  # it was stopped before it came so far
    return None


def read_judgments(store: ExperimentStorage, run_id: str) -> list[Judgment]:
    """The verdicts of a stored audit; answers that are not judged yet have none."""
    reader = store.reader(run_id)
    values: dict[int, float] = {}
    if reader.evaluation is not None:
        for metric in reader.metric_names(reader.evaluation)[:1]:
            values = {score.position: score.value for score in reader.values(reader.evaluation, metric)}
    judged = (
        {} if reader.evaluation is None else {position: True for position, _ in reader.evaluations(reader.evaluation)}
    )
    return [
        Judgment(
            is_right=bool(sample.row[TRUTH]),
            accepted=values[sample.position] >= ACCEPTED_FROM if sample.position in values else None,
            kind=str(sample.row[KIND]),
            item_id=str(sample.row[ITEM]),
        )
        for sample in reader.samples()
        if sample.position in judged
    ]


def _name(described: Mapping[str, Any]) -> str | None:
    name: str | None = described.get("parameters", {}).get("name")
    return name


def _digest(described: object) -> str:
    return digest(canonical_json(described))
