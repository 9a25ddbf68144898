"""What made a run: the reproducibility manifest, its hash, and how two of them differ.

Identity (what decides results: model, options, sampling, data, prompt) is kept apart from provenance (where and when: versions,
commit, platform), so that upgrading a library or moving a folder never invalidates a stored answer.
"""

from __future__ import annotations

import hashlib
import platform
import secrets
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from themis.core.codec import canonical_json, fingerprint
from themis.core.entities import SamplingConfig
from themis.core.identity import find_unknown
from themis.core.redaction import redact, redact_options
from themis.core.secrets import is_secret_name
from themis.core.tokens import DEFAULT_TOKENIZER
from themis.evaluation.pipeline import aggregations, score_ranges
from themis.exceptions import ConfigurationError

__all__ = [
    "BESIDE_JUDGING",
    "SCIENTIFIC_KEYS",
    "build_reproducibility_manifest",
    "call_identity",
    "diff_identity",
    "diff_manifests",
    "evaluation_identity",
    "manifest_hash",
    "run_identity",
    "validate_reproducibility_manifest",
    "value_at",
]

_REQUIRED = (
    *("schema_version", "model", "sampling", "num_samples", "evaluation", "seeds", "package_versions"),
    "git_commit_hash",
)
_PACKAGES = ("themis-eval", "msgspec", "sqlalchemy", "numpy", "scipy", "aiohttp", "litellm", "xllamacpp", "math-verify")

# Options that decide how a call travels, not what comes back.
_TRANSPORT = {
    *("timeout", "max_retries", "n_parallel", "proxy", "ca_file", "verify", "trust_env", "headers", "extra_headers"),
    *("organization", "concurrency", "parallel", "threads", "strict_parameters", "prompt_cache"),
}

SCIENTIFIC_KEYS = (
    "model.identifier",
    "model.provider",
    "sampling.temperature",
    "sampling.top_p",
    "sampling.max_tokens",
    "sampling.stop",
    "num_samples",
    "dataset.fingerprint",
    "dataset.benchmark_id",
    "prompt.template_hash",
    "protocol.version",
    "evaluation.extractor",
    "evaluation.metrics",
    "seeds.provider_seed",
    "seeds.sampling_seed",
    "git_commit_hash",
)


def build_reproducibility_manifest(
    *,
    model: str,
    provider: str,
    provider_options: Mapping[str, Any],
    sampling: SamplingConfig | Mapping[str, Any],
    num_samples: int,
    evaluation_config: Mapping[str, Any],
    seeds: Mapping[str, Any] | None = None,
    dataset_fingerprint: str | None = None,
    prompt_fingerprint: str | None = None,
    benchmark_id: str | None = None,
    cwd: str | Path | None = None,
    dataset_source: Mapping[str, Any] | None = None,
    protocol: Mapping[str, object] | None = None,
    shots: int = 0,
) -> dict[str, Any]:
    """What a run is made from, with the versions, the commit and the machine that made it; secrets are redacted.

    Args:
        model: The model's name at its provider.
        provider: Who serves it.
        provider_options: Its options.
        sampling: `temperature`, `top_p`, `max_tokens` and `stop`.
        num_samples: Attempts at each row.
        evaluation_config: How answers are judged; has `metrics` and `extractor`.
        seeds: `provider_seed` and `sampling_seed`; None by default.
        dataset_fingerprint: Hash of the rows.
        prompt_fingerprint: Hash of the template.
        benchmark_id: The benchmark's name, if it has one.
        cwd: Where the user's code is, for its commit; the working directory by default.
        dataset_source: Where the rows came from.
        shots: Examples before a question.
        protocol: The benchmark's, with `deviations`: in what the run is not it.

    >>> manifest = build_reproducibility_manifest(
    ...     model="gpt-4o",
    ...     provider="openai",
    ...     provider_options={"api_key": "sk-secret"},
    ...     sampling=SamplingConfig(),
    ...     num_samples=1,
    ...     evaluation_config={"metrics": ["ExactMatch"], "extractor": "identity"},
    ... )
    >>> manifest["model"]["provider_options"], manifest["sampling"]["max_tokens"]
    ({'api_key': '[redacted]'}, 512)
    """
    values = sampling if isinstance(sampling, Mapping) else vars(sampling)
    return {
        "schema_version": "1",
        "model": {
            "identifier": model,
            "provider": provider,
            "provider_options": redact_options(provider_options),
        },
        "sampling": {
            "temperature": float(values["temperature"]),
            "top_p": None if values["top_p"] is None else float(values["top_p"]),
            "max_tokens": int(values["max_tokens"]),
            **({"stop": list(values["stop"])} if values.get("stop") else {}),
        },
        "num_samples": int(num_samples),
        "evaluation": dict(evaluation_config),
        "dataset": {
            "fingerprint": dataset_fingerprint,
            "benchmark_id": benchmark_id,
            "source": redact(dict(dataset_source or {})),
        },
        "prompt": {"template_hash": prompt_fingerprint, **({"shots": shots} if shots else {})},
        **({"protocol": dict(protocol)} if protocol else {}),
        "seeds": {"provider_seed": None, "sampling_seed": None, **dict(seeds or {})},
        "tokenizer": DEFAULT_TOKENIZER,
        "package_versions": dict(_versions()),
        "git_commit_hash": _commit(cwd),
        "runtime": {"python_version": platform.python_version(), "platform": platform.platform()},
    }


def validate_reproducibility_manifest(manifest: Mapping[str, object]) -> None:
    """Raises where a manifest lacks something that a rerun would need.

    Args:
        manifest: As `build_reproducibility_manifest` makes it.

    Raises:
        ConfigurationError: Fields are missing; names them.

    >>> validate_reproducibility_manifest({"model": {}, "sampling": {}, "num_samples": 1, "evaluation": {}, "seeds": {}})
    Traceback (most recent call last):
    ...
    themis.exceptions.ConfigurationError: Missing required manifest fields: schema_version, package_versions, git_commit_hash
    """
    missing = [name for name in _REQUIRED if name not in manifest]
    if missing:
        raise ConfigurationError(f"Missing required manifest fields: {', '.join(missing)}")
    for part, names in (
        ("model", ("identifier", "provider", "provider_options")),
        ("evaluation", ("metrics", "extractor")),
    ):
        section = manifest[part]
        lacking = [name for name in names if not isinstance(section, Mapping) or name not in section]
        if lacking:
            raise ConfigurationError(
                f"Missing required manifest fields: {', '.join(f'{part}.{name}' for name in lacking)}"
            )
    if not manifest["git_commit_hash"]:
        raise ConfigurationError("Missing required manifest fields: git_commit_hash is empty")


def manifest_hash(manifest: Mapping[str, object]) -> str:
    """SHA-256 of a manifest, the same whatever the order of its keys.

    Args:
        manifest: As `build_reproducibility_manifest` makes it.

    >>> manifest_hash({"a": 1, "b": 2}) == manifest_hash({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(canonical_json(manifest).encode("ascii")).hexdigest()


def diff_manifests(
    one: Mapping[str, object], other: Mapping[str, object], keys: tuple[str, ...] = SCIENTIFIC_KEYS
) -> dict[str, dict[str, Any]]:
    """Dotted key -> both values, for the scientific dimensions in which two manifests differ.

    Args:
        one: A manifest.
        other: Another.
        keys: The dimensions to compare; by default all that decide results.

    >>> diff_manifests({"sampling": {"temperature": 0.0}}, {"sampling": {"temperature": 0.7}})
    {'sampling.temperature': {'a': 0.0, 'b': 0.7}}
    """
    differences = {}
    for key in keys:
        first, second = value_at(one, key), value_at(other, key)
        if first != second:
            differences[key] = {"a": first, "b": second}
    return differences


# --- identity -------------------------------------------------------------------------------------------------------


def call_identity(
    *,
    provider: str,
    model: str,
    options: Mapping[str, object],
    sampling: SamplingConfig,
    seed: int | None,
    endpoint: str = "",
) -> dict[str, str]:
    """Everything but the prompt that could change an answer, by dimension, as short texts that can be compared."""
    deciding = {
        name: value for name, value in options.items() if name not in _TRANSPORT and not is_secret_name(str(name))
    }
    return {
        "provider": provider,
        "model": model,
        "provider_options": canonical_json(redact_options(deciding)) if deciding else "",
        "sampling": _identify_sampling(sampling),
        "seed": "" if seed is None else str(seed),
        "endpoint": redact(endpoint),
    }


def _identify_sampling(sampling: SamplingConfig) -> str:
    nucleus = "" if sampling.top_p is None else f" top_p={sampling.top_p:g}"
    stop = f" stop={canonical_json(list(sampling.stop))}" if sampling.stop else ""
    return f"temperature={sampling.temperature:g}{nucleus} max_tokens={sampling.max_tokens}{stop}"


# What is stored with a way of judging without being part of it: scores are made the same whatever these say.
BESIDE_JUDGING = ("metric_names", "higher_is_better", "score_range", "aggregation")


def evaluation_identity(pipeline: Any) -> tuple[str, dict[str, Any]]:
    """The fingerprint of a way of judging, and what it is made of; a judge's key is part of neither.

    Beside it stands what the metrics are called, which of them are not better when higher, what their scores can be, and
    how those become one number where that is no mean, for those who summarise and compare them. Where `unknown` names
    something that decides scores and has no canonical form, no other evaluation has this fingerprint: such scores are made
    anew each time, and equal no other run's.
    """
    described = pipeline.evaluation_fingerprint()
    config = redact(described if isinstance(described, Mapping) else {"fingerprint": described})
    if unknown := find_unknown(config):
        config = {**config, "unknown": unknown, "identity": f"unknown ({secrets.token_hex(8)})"}
    metrics = getattr(pipeline, "metrics", ())
    directions = {metric.name: getattr(metric, "higher_is_better", True) for metric in metrics}
    others = {name: direction for name, direction in directions.items() if direction is not True}
    ranges = {name: list(found) for name, found in score_ranges(pipeline).items()}
    told = [metric.name for metric in metrics], others, ranges, aggregations(pipeline)
    beside = dict(zip(BESIDE_JUDGING, told, strict=True))
    return fingerprint(config), {**config, **{name: value for name, value in beside.items() if value}}


def run_identity(
    call: Mapping[str, str],
    *,
    prompt: str,
    dataset: str,
    num_samples: int,
    reference_field: str | None,
    protocol: str = "",
) -> dict[str, str]:
    """What a resumed run must have in common with the stored one; one without a protocol has no such dimension."""
    return {
        **call,
        "prompt": prompt,
        "dataset": dataset,
        "num_samples": str(num_samples),
        "reference_field": reference_field or "",
        **({"protocol": protocol} if protocol else {}),
    }


def diff_identity(stored: Mapping[str, str], asked: Mapping[str, str]) -> list[str]:
    """One line a dimension that differs."""
    return [
        f"{name}: stored {_format_value(stored.get(name))}, now {_format_value(value)}"
        for name, value in asked.items()
        # Of runs older than protocols everything that one decides is compared by the other dimensions.
        if stored.get(name) != value and (name != "protocol" or name in stored)
    ]


def _format_value(value: str | None) -> str:
    if value is None:
        return "nothing"
    return repr(value) if len(value) <= 60 else f"{value[:40]!r}… ({fingerprint(value)[:8]})"


# --- provenance -----------------------------------------------------------------------------------------------------


@cache
def _versions() -> Mapping[str, str]:
    """Of the packages that a run depends on; what is installed does not change under a process."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not-installed"
    return found


def _commit(cwd: str | Path | None) -> str:
    """The commit of the user's code, with `+changes` when the tree differs from it; `unknown` outside a repository."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+changes"],
            cwd=cwd, capture_output=True, text=True, timeout=5, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip() or "unknown"


def value_at(payload: Mapping[str, object], dotted: str) -> Any:
    current: Any = payload
    for part in dotted.split("."):
        if not isinstance(current, Mapping) or part not in current:
            return None
        current = current[part]
    return current
