"""A person's verdict on a test, as a record of its own: who, when, why, and what it replaces.

Overrides are an append-only list beside the run, each linked to the one before by a digest, so that a changed or missing
one is seen. They take effect as a separate evaluation; the verdicts they replace stay under theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from themis.core.codec import canonical_json, decode, digest, encode, fingerprint, to_plain
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, StorageError
from themis.memory.actions import Grade
from themis.memory.result_store import add_evaluation, score_rows
from themis.memory.results import StoredResult, load_results
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.queries import StoredEvaluation

_ARTIFACT = "overrides.json"
_NAME = "overridden"


@dataclass(frozen=True, kw_only=True)
class Override:
    """One signed record. A withdrawn override is a record too, without a score."""

    test_id: str
    score: float | None
    before: float | None
    reason: str
    by: str
    at: str
    # The evaluation whose verdict it replaces, and the answers that the person has judged.
    evaluation: str
    answers: str
    previous: str
    signature: str = ""

    def sign(self) -> Override:
        content = {name: value for name, value in asdict(self).items() if name != "signature"}
        return Override(**{**asdict(self), "signature": digest(canonical_json(to_plain(content)))})


def override_score(
    storage: ExperimentStorage, run_id: str, test_id: str, score: float, *, reason: str, by: str
) -> Override:
    """Sets a test's score. The automatic one stays where it was and is shown beside it."""
    if not (math.isfinite(score) and 0.0 <= score <= 1.0):
        raise ConfigurationError(f"a score lies between 0 and 1, got {score!r}")
    return _record(storage, run_id, test_id, score, reason, by)


def withdraw_override(storage: ExperimentStorage, run_id: str, test_id: str, *, reason: str, by: str) -> Override:
    """Takes an override back; the automatic score counts again, and both records stay."""
    active = _active(read_overrides(storage, run_id))
    if test_id not in active:
        raise ConfigurationError(f"test {test_id!r} of run {run_id!r} has no override{nearest(test_id, active)}")
    return _record(storage, run_id, test_id, None, reason, by)


def read_overrides(storage: ExperimentStorage, run_id: str) -> list[Override]:
    """Every record in order; one that was changed after it was made is an error that names it."""
    content = storage.reader(run_id).artifact(_ARTIFACT)
    records = [Override(**entry) for entry in decode(content)] if content else []
    previous = ""
    for number, record in enumerate(records, start=1):
        if record.previous != previous or record.sign().signature != record.signature:
            raise StorageError(
                f"override {number} of run {run_id!r} ({record.test_id}, by {record.by}) was changed after it was signed"
            )
        previous = record.signature
    return records


def _record(
    storage: ExperimentStorage, run_id: str, test_id: str, score: float | None, reason: str, by: str
) -> Override:
    if not reason.strip() or not by.strip():
        raise ConfigurationError("an override needs a reason (--reason) and the name of who gives it (--by)")
    run = storage.get_run(run_id)
    if run.status is not RunStatus.COMPLETED:
        raise ConfigurationError(f"run {run_id!r} is {run.status.value}; scores are overridden once it is complete")
    base = _base(storage, run_id)
    found = load_results(storage, run_id, str(base.evaluation))
    results = {result.test_id: result for result in found.results}
    if test_id not in results:
        raise ConfigurationError(f"run {run_id!r} has no test {test_id!r}{nearest(test_id, results)}")
    result = results[test_id]
    if not result.ended:
        raise ConfigurationError(f"test {test_id!r} of run {run_id!r} has not been run, so there is nothing to judge")
    records = read_overrides(storage, run_id)
    record = Override(
        test_id=test_id,
        score=score,
        before=result.score,
        reason=reason.strip(),
        by=by.strip(),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        evaluation=base.name,
        answers=fingerprint(result.actual_responses),
        previous=records[-1].signature if records else "",
    ).sign()
    _write(storage, run_id, base, found.results, [*records, record])
    return record


def _base(storage: ExperimentStorage, run_id: str) -> StoredEvaluation:
    """The evaluation that overrides are laid over: the current one, or the one beneath overrides that stand already."""
    ways = storage.reader(run_id).list_evaluations()
    current = next((way for way in ways if way.is_current), None)
    if current is None:
        raise ConfigurationError(f"run {run_id!r} has no scores to override")
    if "over" not in current.config:
        return current
    return next(way for way in ways if way.fingerprint == current.config["over"])


def _active(records: Sequence[Override]) -> dict[str, Override]:
    """The last override of each test, without those withdrawn."""
    last = {record.test_id: record for record in records}
    return {test_id: record for test_id, record in last.items() if record.score is not None}


def _write(
    storage: ExperimentStorage,
    run_id: str,
    base: StoredEvaluation,
    results: Sequence[StoredResult],
    records: Sequence[Override],
) -> None:
    active = _active(records)
    positions = {sample.item_id: sample.position for sample in storage.reader(run_id).samples()}
    with storage.open_run(run_id) as writer:
        content = encode([asdict(record) for record in records]).encode()
        writer.save_artifact(_ARTIFACT, content, "application/json")
        config = {**base.config, "name": f"{_NAME} ({base.name})", "over": base.fingerprint}
        rows = (
            score_rows(positions[result.test_id], result.dataset_name, *_verdict(result, active.get(result.test_id)))
            for result in results
            if result.ended
        )
        add_evaluation(storage, writer, [_NAME, base.fingerprint], config, rows)


def _verdict(result: StoredResult, override: Override | None) -> tuple[Grade, dict[str, object]]:
    details: dict[str, object] = {"published": dict(result.published)} if result.published else {}
    if override is not None and override.score is not None:
        told = {**asdict(override), "reasons_before": result.reasoning}
        return Grade(override.score, (f"{override.by}: {override.reason}",)), {**details, "override": told}
    if result.score is None:
        return Grade.failure(*result.reasoning), details
    # A published score may lie beyond 1, which no verdict of ours does.
    parts = tuple(Grade(part.score, part.reasons) for part in result.question_scores if part.score is not None)
    return Grade(min(1.0, max(0.0, result.score)), tuple(result.reasoning), questions=parts), details
