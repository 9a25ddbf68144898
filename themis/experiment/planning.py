"""Before the first call: may this run be resumed, what is its dataset, what is it made of?

First part of `experiment.run`. Whatever is wrong with the inputs is found here, and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from themis.core.fingerprint import fingerprint
from themis.exceptions import ConfigurationError, StorageError
from themis.experiment.experiment import Experiment
from themis.experiment.manifest import (
    build_reproducibility_manifest,
    call_identity,
    diff_identity,
    evaluation_identity,
    manifest_hash,
    run_identity,
)
from themis.experiment.rows import RowReader
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.records import Frame
from themis.storage.writing import RunDescription, RunWriter

__all__ = ["identity_of_calls", "make_room", "opened", "store_plan"]

logger = logging.getLogger(__name__)


def make_room(experiment: Experiment, storage: ExperimentStorage) -> list[int]:
    """Starts the run, or sees that the stored one may be resumed. Returns earlier generations whose answers may be used."""
    if hasattr(experiment.pipeline, "check_machine"):
        experiment.pipeline.check_machine()
    run_id = experiment.run_id
    exists = storage.run_exists(run_id)
    if exists and not experiment.resume:
        archived = storage.archive_run(run_id)
        logger.info("run %s starts anew; the earlier one is kept as %s", run_id, archived)
        exists = False
    elif exists and storage.reader(run_id).has_dataset:
        differences = _drift(experiment, storage)
        if differences and not experiment.allow_drift:
            raise ConfigurationError(
                f"run {run_id!r} exists with other inputs:\n  " + "\n  ".join(differences) + "\nThree ways on:\n"
                "  another run_id\n"
                f"  resume=False (--no-resume): starts anew, the old one is kept as {run_id}@n\n"
                "  allow_drift=True (--allow-drift): the same, with every stored answer that still fits"
            )
        if differences:
            storage.archive_run(run_id)
            exists = False
    if not exists:
        storage.start_run(
            run_id,
            model=experiment.model.model_key,
            benchmark=experiment.benchmark,
            tags=experiment.tags,
            config={"invocation": dict(experiment.invocation)},
        )
    return storage.archived_versions(run_id) if experiment.allow_drift and experiment.cache != "off" else []


def _drift(experiment: Experiment, storage: ExperimentStorage) -> list[str]:
    """In which dimensions the stored run differs from what is asked for."""
    stored = storage.reader(experiment.run_id).identity
    reader = _row_reader(experiment)
    if iter(experiment.rows) is experiment.rows and experiment.allow_drift:
        # A generator can be read only once, and its rows are needed for the plan.
        return ["dataset: given as a generator, so it cannot be compared and used too"]
    for _ in reader:
        pass
    return diff_identity(stored, _identity(experiment, reader))


@contextlib.contextmanager
def opened(experiment: Experiment, storage: ExperimentStorage) -> Iterator[RunWriter]:
    """The run, open for writing. Nothing is left of one that is refused before its plan is stored."""
    with storage.open_run(experiment.run_id) as writer:
        try:
            yield writer
        except BaseException:
            with contextlib.suppress(StorageError):  # a store that is lost must not hide what happened
                if not storage.reader(experiment.run_id).has_dataset:
                    writer.close()
                    storage.delete_run(experiment.run_id)
            raise


def store_plan(experiment: Experiment, storage: ExperimentStorage, writer: RunWriter) -> None:
    """Stores the dataset and, with its fingerprint known, the manifest."""
    if storage.reader(experiment.run_id).has_dataset:
        if lost := storage.reader(experiment.run_id).count_lost_rows():
            _restore_rows(experiment, writer, lost)
        writer.update(status=RunStatus.IN_PROGRESS.value, error=None)
        return
    writer.clear_dataset()
    reader = _row_reader(experiment)
    total = writer.store_dataset(reader, lambda: _description(experiment, reader))
    logger.info("run %s planned: %d samples", experiment.run_id, total)


def _restore_rows(experiment: Experiment, writer: RunWriter, lost: int) -> None:
    """Stores rows again that a damaged store has lost; that they are the same rows was seen when the run was taken up."""
    if iter(experiment.rows) is experiment.rows:
        raise ConfigurationError(
            f"run {experiment.run_id!r} has lost {lost} rows of its dataset, which was given as a generator and can be read only "
            "once; give it as a list"
        )
    writer.restore_rows(_row_reader(experiment))
    logger.info("run %s: %d rows that were lost are stored again", experiment.run_id, lost)


def _description(experiment: Experiment, reader: RowReader) -> RunDescription:
    """What the run is; the reader has read all rows."""
    manifest = _manifest(experiment, reader)
    stamp = manifest_hash(manifest)
    frame = Frame(
        model=experiment.model,
        sampling=experiment.sampling,
        prompt=experiment.template.spec,
        id_field=experiment.id_field,
        reference_field=reader.found_reference,
        manifest_hash=stamp,
        attempts=experiment.num_samples,
    )
    config = {
        "reproducibility_manifest": manifest,
        "manifest_hash": stamp,
        "task": frame.to_config(),
        "invocation": dict(experiment.invocation),
    }
    return RunDescription(identity=_identity(experiment, reader), config=config, manifest_hash=stamp)


def _row_reader(experiment: Experiment) -> RowReader:
    return RowReader(
        rows=experiment.rows,
        template=experiment.template,
        id_field=experiment.id_field,
        reference_field=experiment.reference_field,
        cluster_field=experiment.cluster_field,
        limit=experiment.limit,
        compared=getattr(experiment.pipeline, "compared_with_rows", ()),
        check=getattr(experiment.pipeline, "row_check", None),
    )


def _identity(experiment: Experiment, reader: RowReader) -> dict[str, str]:
    return run_identity(
        identity_of_calls(experiment),
        prompt=experiment.template.template,
        dataset=f"{reader.count} rows, {reader.fingerprint[:16]}",
        num_samples=experiment.num_samples,
        reference_field=reader.found_reference,
    )


def identity_of_calls(experiment: Experiment) -> dict[str, str]:
    # Where the calls go, which the environment may have decided; behind the # is a digest of the key.
    endpoint = str(getattr(experiment.executor, "account", "")).partition("#")[0]
    return call_identity(
        endpoint=endpoint,
        provider=experiment.model.provider,
        model=experiment.model.identifier,
        options=experiment.provider_options,
        sampling=experiment.sampling,
        seed=experiment.seed,
    )


def _manifest(experiment: Experiment, reader: RowReader) -> dict[str, Any]:
    pipeline = experiment.pipeline
    extractor = getattr(pipeline, "extractor", pipeline)
    metrics = getattr(pipeline, "metrics", ())
    return build_reproducibility_manifest(
        model=experiment.model.identifier,
        provider=experiment.model.provider,
        provider_options=experiment.provider_options,
        sampling=experiment.sampling,
        num_samples=experiment.num_samples,
        evaluation_config={
            "metrics": sorted(f"{_class_name(metric)}:{metric.name}" for metric in metrics)
            or sorted(pipeline.metric_names),
            "extractor": _class_name(extractor),
            "fingerprint": evaluation_identity(pipeline)[0],
        },
        seeds={"provider_seed": experiment.provider_options.get("seed"), "sampling_seed": experiment.seed},
        dataset_fingerprint=reader.fingerprint,
        prompt_fingerprint=fingerprint(experiment.template.template),
        benchmark_id=experiment.benchmark,
        dataset_source=experiment.dataset_source,
    )


def _class_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
