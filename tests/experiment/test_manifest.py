"""The manifest says what made a run, has one hash, and holds no secrets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.entities import SamplingConfig
from themis.exceptions import ConfigurationError
from themis.runs.manifest import (
    SCIENTIFIC_KEYS,
    build_reproducibility_manifest,
    diff_manifests,
    manifest_hash,
    validate_reproducibility_manifest,
)


def manifest(**changes):
    given = {
        "model": "gpt",
        "provider": "openai",
        "provider_options": {"api_base": "http://localhost:1234", "api_key": "sk-abcdefghijklmnopqrstuvwx"},
        "sampling": SamplingConfig(temperature=0.5, top_p=1.0, max_tokens=128),
        "num_samples": 2,
        "evaluation_config": {"metrics": ["m:M"], "extractor": "e"},
        "seeds": {"provider_seed": 42},
        "dataset_fingerprint": "d",
        "prompt_fingerprint": "p",
        "benchmark_id": "countdown",
    }
    return build_reproducibility_manifest(**{**given, **changes})


def test_a_manifest_has_every_dimension_of_the_contract():
    made = manifest()

    validate_reproducibility_manifest(made)
    assert made["schema_version"] == "1"
    assert made["sampling"] == {"temperature": 0.5, "top_p": 1.0, "max_tokens": 128}
    assert made["seeds"] == {"provider_seed": 42, "sampling_seed": None}
    assert made["dataset"]["fingerprint"] == "d"
    assert made["prompt"] == {"template_hash": "p"}
    assert made["package_versions"]["themis-eval"] != "not-installed"
    assert made["git_commit_hash"]
    assert made["runtime"].keys() == {"python_version", "platform"}


def test_no_secret_is_in_a_manifest():
    text = json.dumps(manifest())

    assert "sk-abcdef" not in text
    assert "http://localhost:1234" in text


def test_the_same_inputs_give_the_same_hash_in_any_order():
    made = manifest()
    backwards = json.loads(json.dumps(made), object_pairs_hook=lambda pairs: dict(reversed(pairs)))

    assert list(backwards) != list(made)
    assert manifest_hash(backwards) == manifest_hash(made) == manifest_hash(manifest())
    assert len(manifest_hash(made)) == 64


@given(st.sampled_from([key for key in SCIENTIFIC_KEYS if key != "git_commit_hash"]))
def test_every_scientific_dimension_is_in_the_hash_and_in_the_diff(key):
    one, other = manifest(), manifest()
    section, _, name = key.rpartition(".")
    (other.setdefault(section, {}) if section else other)[name] = "something else"

    assert manifest_hash(one) != manifest_hash(other)
    assert list(diff_manifests(one, other)) == [key]
    assert diff_manifests(one, other)[key]["b"] == "something else"


@pytest.mark.parametrize("field", ["schema_version", "model", "sampling", "num_samples", "evaluation", "seeds"])
def test_a_missing_field_is_named(field):
    made = manifest()
    del made[field]

    with pytest.raises(ConfigurationError, match=f"Missing required manifest fields: {field}"):
        validate_reproducibility_manifest(made)


def test_missing_parts_of_a_section_are_named():
    made = manifest()
    del made["model"]["provider"], made["evaluation"]["metrics"]

    with pytest.raises(ConfigurationError, match=r"model\.provider"):
        validate_reproducibility_manifest(made)
    made["model"]["provider"] = "openai"
    with pytest.raises(ConfigurationError, match=r"evaluation\.metrics"):
        validate_reproducibility_manifest(made)
    with pytest.raises(ConfigurationError, match="git_commit_hash is empty"):
        validate_reproducibility_manifest({**manifest(), "git_commit_hash": ""})
