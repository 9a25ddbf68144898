"""What a sample run is known by: everything that decides an answer, and the manifest of what made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from themis.config.specification import STORED_AS, SampleSpecification
from themis.core.entities import ModelSpec, SamplingConfig
from themis.core.fingerprint import fingerprint
from themis.evaluation.pipeline import EvaluationPipeline
from themis.experiment.rows import RowReader
from themis.generation.templates import PromptTemplate
from themis.interfaces import StatelessTaskExecutor
from themis.runs.manifest import (
    build_reproducibility_manifest,
    call_identity,
    evaluation_identity,
    manifest_hash,
    run_identity,
)
from themis.storage.records import Frame
from themis.storage.writing import RunDescription

__all__ = ["describe_run", "identity_of_calls", "identity_of_run"]


class _SampleRun(Protocol):
    """The parts of a sample run that decide its answers and scores."""

    specification: SampleSpecification
    template: PromptTemplate
    spec: ModelSpec
    sampling: SamplingConfig
    executor: StatelessTaskExecutor
    pipeline: EvaluationPipeline
    provider_options: Mapping[str, Any]
    id_field: str
    benchmark: str | None
    dataset_source: Mapping[str, Any]


def identity_of_calls(run: _SampleRun) -> dict[str, str]:
    """Everything but the prompt that could change an answer."""
    # Where the calls go, which the environment may have decided; behind the # is a digest of the key.
    endpoint = str(getattr(run.executor, "account", "")).partition("#")[0]
    return call_identity(
        endpoint=endpoint,
        provider=run.spec.provider,
        model=run.spec.identifier,
        options=run.provider_options,
        sampling=run.sampling,
        seed=run.specification.seed,
    )


def identity_of_run(run: _SampleRun, reader: RowReader) -> dict[str, str]:
    """What a resumed run must have in common with the stored one; the reader has read all rows."""
    return run_identity(
        identity_of_calls(run),
        prompt=run.template.template,
        dataset=f"{reader.count} rows, {reader.fingerprint[:16]}",
        num_samples=run.specification.num_samples,
        reference_field=reader.found_reference,
    )


def describe_run(run: _SampleRun, reader: RowReader) -> RunDescription:
    """What the run is; the reader has read all rows."""
    manifest = _manifest(run, reader)
    stamp = manifest_hash(manifest)
    frame = Frame(
        model=run.spec,
        sampling=run.sampling,
        prompt=run.template.spec,
        id_field=run.id_field,
        reference_field=reader.found_reference,
        manifest_hash=stamp,
        attempts=run.specification.num_samples,
    )
    config = {
        "reproducibility_manifest": manifest,
        "manifest_hash": stamp,
        "task": frame.to_config(),
        STORED_AS: run.specification.to_stored(),
    }
    return RunDescription(identity=identity_of_run(run, reader), config=config, manifest_hash=stamp)


def _manifest(run: _SampleRun, reader: RowReader) -> dict[str, Any]:
    pipeline = run.pipeline
    extractor = getattr(pipeline, "extractor", pipeline)
    metrics = getattr(pipeline, "metrics", ())
    return build_reproducibility_manifest(
        model=run.spec.identifier,
        provider=run.spec.provider,
        provider_options=run.provider_options,
        sampling=run.sampling,
        num_samples=run.specification.num_samples,
        evaluation_config={
            "metrics": sorted(f"{_class_name(metric)}:{metric.name}" for metric in metrics)
            or sorted(pipeline.metric_names),
            "extractor": _class_name(extractor),
            "fingerprint": evaluation_identity(pipeline)[0],
        },
        seeds={"provider_seed": run.provider_options.get("seed"), "sampling_seed": run.specification.seed},
        dataset_fingerprint=reader.fingerprint,
        prompt_fingerprint=fingerprint(run.template.template),
        benchmark_id=run.benchmark,
        dataset_source=run.dataset_source,
    )


def _class_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
