"""Puts a run of another system into the store, with its scores as they were published.

An import is made once: the same file again changes nothing, and one that was cut off starts anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from themis.core.bounded_reading import Broken, ReadLimits
from themis.core.codec import canonical_json, digest, encode, fingerprint, to_plain
from themis.core.entities import (
    GenerationRecord,
    GenerationTask,
    ModelError,
    ModelOutput,
    ModelSpec,
    PromptSpec,
    Result,
)
from themis.core.files import safe_filename
from themis.exceptions import ConfigurationError, DatasetError
from themis.experiment.importing.logs import (
    Header,
    InspectLog,
    LmEvalLog,
    PublishedLog,
    PublishedSample,
    PublishedScore,
    metric_range,
)
from themis.runs.manifest import build_reproducibility_manifest, manifest_hash
from themis.runs.report import build_report, summarise_run
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.runs import FAILED, SCORED, Frame, Item, ScoreRow, batched, is_storable, validate_run_id
from themis.storage.writing import RunWriter

_BATCH = 500
_LONGEST_ID = 1_000
# A file with more of them is not what it is taken for.
_MOST_BROKEN = 10_000
_REFERENCE = "target"


@dataclass
class Imported:
    """What became of a file. `broken` are the parts that could not be read, `already` says that nothing was to do."""

    run_id: str
    source: str
    samples: int = 0
    failed: int = 0
    already: bool = False
    broken: list[Broken] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def import_log(
    path: str | Path,
    storage: ExperimentStorage,
    *,
    run_id: str | None = None,
    model: str | None = None,
    limits: ReadLimits | None = None,
) -> Imported:
    """Imports an Inspect log (`.json`, `.eval`) or an lm-eval `samples_*.jsonl`.

    Args:
        path: The file. It is read in pieces, so that memory does not depend on its size.
        storage: Where the run goes.
        run_id: Its name; by default made from source, task and content.
        model: Which model it was (`provider:name`), where the file does not say.
        limits: How much is read of it; by default `ReadLimits()`. `NO_LIMITS` is for files that you trust.

    Raises:
        DatasetError: It is no such log, or larger, or packed more tightly, than the limits allow.
    """
    log = open_log(Path(path), limits or ReadLimits())
    header = log.header
    spec = header.model if model is None else _model(model)
    run_id = validate_run_id(run_id or f"{header.source}-{safe_filename(header.task)}-{header.sha256[:8]}")
    imported = Imported(run_id, header.source, notes=header.notes)
    if storage.run_exists(run_id):
        if storage.reader(run_id).identity.get("sha256") != header.sha256:
            raise ConfigurationError(
                f"run {run_id!r} exists and was not made from {Path(path).name}; use another --run-id"
            )
        run = storage.get_run(run_id)
        if run.status is not RunStatus.IN_PROGRESS:
            imported.samples, imported.failed, imported.already = run.total_samples, run.failed_generations, True
            return imported
        storage.delete_run(run_id)
    storage.start_run(
        run_id,
        model=spec.model_key,
        identity={"source": header.source, "sha256": header.sha256},
        tags={"imported_from": header.source, "task": header.task},
    )
    try:
        with storage.open_run(run_id) as writer:
            _write(log, header, spec, storage, writer, imported)
    except DatasetError:
        storage.delete_run(run_id)
        raise
    return imported


def open_log(path: Path, limits: ReadLimits) -> PublishedLog:
    """Which system wrote the file, by its name and first keys."""
    if not path.is_file():
        raise DatasetError(f"there is no file {str(path)!r}")
    if path.suffix == ".jsonl":
        return LmEvalLog(path, limits)
    if path.suffix == ".eval":
        return InspectLog(path, limits)
    if path.suffix == ".json":
        if path.name.startswith("results_"):
            raise DatasetError(f"{path.name} holds only means; import the samples_*.jsonl beside it")
        return InspectLog(path, limits)
    raise DatasetError(
        f"{path.name} is not a log of another system; expected Inspect's .json or .eval, or lm-eval's .jsonl"
    )


# --- writing ----------------------------------------------------------------------------------------------------------


def _write(
    log: PublishedLog,
    header: Header,
    spec: ModelSpec,
    storage: ExperimentStorage,
    writer: RunWriter,
    imported: Imported,
) -> None:
    plan = _Plan(log, imported)
    total = writer.store_dataset(plan)
    if total == 0:
        reasons = f": {imported.broken[0].where}: {imported.broken[0].reason}" if imported.broken else ""
        raise DatasetError(f"no sample of the file can be read{reasons}")
    frame = Frame(
        model=spec,
        sampling=header.sampling,
        prompt=PromptSpec(header.task, ""),
        reference_field=_REFERENCE,
        attempts=plan.most_answers,
    )
    manifest = _manifest(header, spec, plan)
    stamp = manifest_hash(manifest)
    writer.describe(
        identity={"source": header.source, "sha256": header.sha256},
        config={"reproducibility_manifest": manifest, "manifest_hash": stamp, "task": frame.to_config()},
        manifest_hash=stamp,
    )
    evaluation = writer.open_evaluation(header.source, _describe(header, plan))
    good = 0
    seen: set[int] = set()
    for samples in batched(_samples(log), _BATCH):
        calls: list[Result] = []
        verdicts: list[ScoreRow] = []
        for sample in samples:
            position = plan.positions.get(sample.item_id)
            if position is None:
                continue
            answered = any(answer.error is None for answer in sample.answers)
            if position not in seen:
                seen.add(position)
                good += answered
                calls.extend(_calls(position, sample, frame, header))
            if answered:
                verdicts.extend(_verdicts(position, sample, plan.expected(sample)))
        writer.commit_results(calls)
        writer.commit_scores(evaluation, verdicts)
    writer.update(succeeded=good, failed=total - good)
    imported.samples, imported.failed = total, total - good
    writer.finish(header.status, summary=summarise_run(build_report(storage, writer.run_id, evaluation)))


def _describe(header: Header, plan: _Plan) -> dict[str, object]:
    ranges = {name: found for name in sorted(plan.metrics) if (found := metric_range(name)) is not None}
    described: dict[str, object] = {"source": header.source, "metrics": sorted(plan.metrics)}
    return {**described, "score_range": ranges} if ranges else described


class _Plan:
    """The items of a log for `RunWriter.plan`, and what is known once they were gone through."""

    def __init__(self, log: PublishedLog, imported: Imported) -> None:
        self._log = log
        self._imported = imported
        self.positions: dict[str, int] = {}
        self.metrics: set[str] = set()
        self.most_answers = 1
        self.dataset = ""

    def __iter__(self) -> Iterator[Item]:
        fingerprints: list[str] = []
        for sample in self._log.samples():
            if isinstance(sample, Broken):
                self._leave_out(sample)
                continue
            if not sample.item_id or len(sample.item_id) > _LONGEST_ID or not is_storable(sample.item_id):
                self._leave_out(Broken(f"sample {sample.item_id[:40]!r}", "its id cannot be stored"))
                continue
            self.metrics.update(sample.scores)
            self._note_problems(sample)
            self.most_answers = max(self.most_answers, len(sample.answers))
            if sample.item_id in self.positions:
                continue
            position = self.positions[sample.item_id] = len(self.positions)
            content = canonical_json(to_plain(dict(sample.row)))
            fingerprints.append(digest(content))
            yield Item(position, sample.item_id, fingerprints[-1], content)
        self.dataset = fingerprint(fingerprints)

    def _note_problems(self, sample: PublishedSample) -> None:
        for name, score in sample.scores.items():
            if score.problem:
                self._leave_out(Broken(f"{name} of sample {sample.item_id[:40]!r}", score.problem))

    def _leave_out(self, part: Broken) -> None:
        self._imported.broken.append(part)
        if len(self._imported.broken) > _MOST_BROKEN:
            raise DatasetError(
                f"more than {_MOST_BROKEN:,} parts of the file cannot be read, the last of them {part.where}: {part.reason}"
            )

    def expected(self, sample: PublishedSample) -> set[str]:
        """Metrics that should have judged a sample. Those of another filter are in other lines of the file."""
        filters = {name.partition(",")[2] for name in sample.scores} or {""}
        return {name for name in self.metrics if name.partition(",")[2] in filters}


def _samples(log: PublishedLog) -> Iterator[PublishedSample]:
    return (sample for sample in log.samples() if isinstance(sample, PublishedSample))


def _calls(position: int, sample: PublishedSample, frame: Frame, header: Header) -> Iterator[Result]:
    for attempt, answer in enumerate(sample.answers):
        usage = {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "total_tokens": answer.prompt_tokens + answer.completion_tokens,
        }
        task: GenerationTask = frame.task(sample.item_id, sample.row, sample.prompt, attempt)
        record = GenerationRecord(
            task=task,
            output=None
            if answer.text is None
            else ModelOutput(answer.text, usage=usage if any(usage.values()) else None),
            error=None if answer.error is None else ModelError(answer.error, kind="imported"),
            metrics={"generation_time_ms": answer.seconds * 1000} if answer.seconds else {},
        )
        yield Result(
            position,
            attempt,
            digest(header.sha256, sample.item_id, str(attempt)),
            record,
            cost_usd=None,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            seconds=answer.seconds,
        )


def _verdicts(position: int, sample: PublishedSample, expected: set[str]) -> Iterator[ScoreRow]:
    for name in sorted(expected):
        score = sample.scores.get(name)
        if score is None or score.value is None:
            yield ScoreRow(position, name, 0, None, FAILED, encode({"failures": [f"{name}: {_why_none(score)}"]}))
        else:
            details = {"published": score.published, **score.details} if score.details or _is_worded(score) else {}
            text = encode({"details": details, "metadata": {}}) if details else None
            yield ScoreRow(position, name, 0, score.value, SCORED, text)


def _why_none(score: PublishedScore | None) -> str:
    if score is None:
        return "no score in the log, not a number"
    return score.problem or f"published as {encode(score.published)[:200]}, not a number"


def _is_worded(score: PublishedScore) -> bool:
    """Whether a score was published as something else than its number."""
    return isinstance(score.published, str | list)


def _manifest(header: Header, spec: ModelSpec, plan: _Plan) -> dict[str, object]:
    """What the file says of how the run was made; this machine's own versions have no part in it."""
    manifest = build_reproducibility_manifest(
        model=spec.identifier,
        provider=spec.provider,
        provider_options={},
        sampling=header.sampling,
        num_samples=plan.most_answers,
        evaluation_config={"metrics": sorted(plan.metrics), "extractor": header.source},
        dataset_fingerprint=plan.dataset,
        dataset_source={"imported_from": header.source, "task": header.task, "sha256": header.sha256},
    )
    return {**manifest, "package_versions": dict(header.packages), "git_commit_hash": header.commit, "runtime": {}}


def _model(text: str) -> ModelSpec:
    provider, colon, name = text.partition(":")
    if not colon or not provider or not name:
        raise ConfigurationError(f"a model is named as provider:name, got {text!r}")
    return ModelSpec(identifier=name, provider=provider)
