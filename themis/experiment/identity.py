"""What a sample run is known by: everything that decides an answer, and the manifest of what made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from typing import Protocol as Shape

from themis.config.specification import STORED_AS, SampleSpecification
from themis.core.codec import fingerprint
from themis.core.entities import ModelSpec, SamplingConfig
from themis.core.identity import describe_object
from themis.core.redaction import redact_options
from themis.core.user_code import load_object
from themis.evaluation.pipeline import EvaluationPipeline
from themis.experiment.datasets import RowReader, Source
from themis.generation.episodes import Scene, Toolset
from themis.generation.users import SimulatedUser
from themis.interfaces import StatelessTaskExecutor
from themis.presets.protocols import Protocol
from themis.runs.manifest import (
    build_reproducibility_manifest,
    call_identity,
    manifest_hash,
    run_identity,
)
from themis.storage.runs import SYSTEM_PROMPT, Frame
from themis.storage.writing import RunDescription


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What decides answers beside the rows and the prompt. `deviations` say what is not as the protocol has it."""

    sampling: SamplingConfig
    attempts: int = 1
    reducer: str | None = None
    shots: int = 0
    protocol: Protocol | None = None
    deviations: tuple[str, ...] = ()


class SampleRun(Shape):
    """What a sample run is made of, as far as its identity goes."""

    specification: SampleSpecification
    source: Source
    spec: ModelSpec
    asked_with: Settings
    executor: StatelessTaskExecutor
    pipeline: EvaluationPipeline
    provider_options: Mapping[str, Any]
    toolset: Toolset | None
    scene: Scene | None

    @property
    def evaluation(self) -> tuple[str, dict[str, Any]]: ...


def identify_calls(run: SampleRun) -> dict[str, str]:
    """Everything but the prompt that could change an answer."""
    # Where the calls go, which the environment may have decided; behind the # is a digest of the key.
    endpoint = str(getattr(run.executor, "account", "")).partition("#")[0]
    options = dict(run.provider_options)
    if run.specification.system_prompt:
        options[SYSTEM_PROMPT] = run.specification.system_prompt
    model, code = run.spec.identifier, _describe_code(run.spec.provider, run.executor)
    if code is not None:
        model = f"code {fingerprint(code)[:12]} of {model}"
    calls = call_identity(
        endpoint=endpoint,
        provider=run.spec.provider,
        model=model,
        options=options,
        sampling=run.asked_with.sampling,
        seed=run.specification.seed,
    )
    return calls if run.toolset is None else {**calls, "conversation": _identify_conversation(run, run.toolset)}


def _describe_code(provider: str, executor: object) -> object:
    """Code of the user's that answers, which is known by what it says and not by its name; None where there is none."""
    if (describe := getattr(executor, "__themis_identity__", None)) is not None:
        return describe()
    return describe_object(executor) if provider == "python" else None


def _identify_conversation(run: SampleRun, toolset: Toolset) -> str:
    """What decides the steps of an answer that may take several."""
    asked = run.specification
    deciding: dict[str, object] = {"max_turns": asked.max_turns}
    if asked.tools:
        deciding["tools"] = toolset.describe()
    if asked.user is not None:
        deciding["user"] = redact_options(dict(asked.user))
    if isinstance(run.scene, SimulatedUser) and (code := _describe_code(run.scene.spec.provider, run.scene.executor)):
        deciding["user_code"] = code
    if asked.script is not None:
        script = load_object(asked.script) if isinstance(asked.script, str) else asked.script
        deciding["script"] = describe_object(script)
    for name in ("max_sample_tokens", "max_sample_seconds", "max_sample_usd"):
        if getattr(asked, name) is not None:
            deciding[name] = getattr(asked, name)
    named = [name for name in ("tools", "user", "script") if name in deciding]
    return f"{' and '.join(named)} ({fingerprint(deciding)[:12]}), max_turns={asked.max_turns}"


def identify_run(run: SampleRun, reader: RowReader) -> dict[str, str]:
    """What a resumed run must have in common with the stored one; the reader has read all rows."""
    return run_identity(
        identify_calls(run),
        prompt=_identify_prompt(run, reader),
        dataset=f"{reader.count} rows, {reader.fingerprint[:16]}",
        num_samples=run.asked_with.attempts,
        reference_field=reader.found_reference,
        protocol=_identify_protocol(run.asked_with),
    )


def _identify_protocol(asked_with: Settings) -> str:
    protocol = asked_with.protocol
    if protocol is None:
        return ""
    return "; ".join([f"{protocol.benchmark} version {protocol.version}", *asked_with.deviations])


def _identify_prompt(run: SampleRun, reader: RowReader) -> str:
    """The template's text, and where code fills it what that made of the rows."""
    template = run.source.template
    if not reader.filled_prompts:
        return template.template
    return f"{reader.filled_prompts[:12]} made by {type(template).__qualname__}: {template.template}"


def describe_run(run: SampleRun, reader: RowReader) -> RunDescription:
    """What the run is; the reader has read all rows."""
    manifest = _manifest(run, reader)
    stamp = manifest_hash(manifest)
    frame = Frame(
        model=run.spec,
        sampling=run.asked_with.sampling,
        prompt=run.source.template.spec,
        id_field=run.source.id_field,
        reference_field=reader.found_reference,
        manifest_hash=stamp,
        attempts=run.asked_with.attempts,
    )
    config = {
        "reproducibility_manifest": manifest,
        "manifest_hash": stamp,
        "task": frame.to_config(),
        STORED_AS: run.specification.to_stored(),
    }
    return RunDescription(identity=identify_run(run, reader), config=config, manifest_hash=stamp)


def _manifest(run: SampleRun, reader: RowReader) -> dict[str, Any]:
    pipeline = run.pipeline
    extractor = getattr(pipeline, "extractor", pipeline)
    metrics = getattr(pipeline, "metrics", ())
    return build_reproducibility_manifest(
        model=run.spec.identifier,
        provider=run.spec.provider,
        provider_options=run.provider_options,
        sampling=run.asked_with.sampling,
        num_samples=run.asked_with.attempts,
        evaluation_config={
            "metrics": sorted(f"{_class_name(metric)}:{metric.name}" for metric in metrics)
            or sorted(pipeline.metric_names),
            "extractor": _class_name(extractor),
            "fingerprint": run.evaluation[0],
        },
        seeds={"provider_seed": run.provider_options.get("seed"), "sampling_seed": run.specification.seed},
        dataset_fingerprint=reader.fingerprint,
        prompt_fingerprint=fingerprint(_identify_prompt(run, reader)),
        benchmark_id=run.source.benchmark,
        dataset_source=run.source.description,
        protocol=_describe_protocol(run.asked_with),
        shots=run.asked_with.shots,
    )


def _describe_protocol(asked_with: Settings) -> dict[str, object] | None:
    protocol = asked_with.protocol
    return None if protocol is None else {**protocol.to_dict(), "deviations": list(asked_with.deviations)}


def _class_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
