"""An audit finds what differs between two runs, and says which of it was not allowed."""

import dataclasses

import pytest

import themis
from themis.core.codec import encode
from themis.evaluation.metrics import ExactMatch
from themis.exceptions import ConfigurationError, StorageError
from themis.experiment.audit import audit_runs, diff_everything, load_manifest
from themis.runs.manifest import manifest_hash
from themis.storage import ExperimentStorage

ROWS = [{"id": str(number), "question": f"{number} + 1?", "answer": str(number + 1)} for number in range(4)]


@pytest.fixture(autouse=True)
def outside_any_repository(tmp_path, monkeypatch):
    """A commit made meanwhile is not this test's business."""
    monkeypatch.chdir(tmp_path)


def made(tmp_path, run_id, rows=ROWS, **changes):
    given = {"model": "fake/perfect", "prompt": "{question}", "metrics": ["exact_match"], "progress": False}
    themis.evaluate(rows, run_id=run_id, storage=tmp_path, **{**given, **changes})
    return ExperimentStorage(tmp_path)


def test_runs_made_alike_pass(tmp_path):
    made(tmp_path, "a")
    store = made(tmp_path, "b", workers=1, timeout_seconds=5)

    audit = audit_runs(store, ["a", "b"])

    assert (audit.passed, audit.diffs) == (True, {})
    assert audit.manifest_hashes["a"] == store.get_run("a").manifest_hash


def test_the_audits_payload_has_the_documented_keys(tmp_path):
    made(tmp_path, "a")
    store = made(tmp_path, "b", prompt="Please: {question}", temperature=0.7)

    payload = audit_runs(store, ["a", "b"], ["prompt.template_hash", "git_commit_hash"]).to_dict()

    assert list(payload) == ["runs", "manifest_hashes", "diffs", "allowed_drift", "forbidden_drift", "pass"]
    assert (payload["runs"], payload["pass"]) == (["a", "b"], False)
    assert payload["diffs"].keys() == {"prompt.template_hash", "sampling.temperature"}
    assert payload["allowed_drift"] == ["git_commit_hash", "prompt.template_hash"]
    assert payload["forbidden_drift"] == {"sampling.temperature": {"a": 0.0, "b": 0.7}}


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"model": "fake/noisy-0.3"}, "model.identifier"),
        ({"rows": ROWS[:3]}, "dataset.fingerprint"),
        ({"metrics": ["includes"]}, "evaluation.metrics"),
        ({"extractor": "last_number"}, "evaluation.extractor"),
        ({"num_samples": 2}, "num_samples"),
        ({"max_tokens": 64}, "sampling.max_tokens"),
        ({"provider_options": {"seed": 7}}, "seeds.provider_seed"),
    ],
)
def test_every_change_that_can_change_results_is_found(tmp_path, change, key):
    made(tmp_path, "a")
    store = made(tmp_path, "b", **change)

    assert key in audit_runs(store, ["a", "b"]).forbidden_drift


def test_a_changed_parameter_of_a_metric_is_drift(tmp_path):
    parameter = dataclasses.fields(ExactMatch)[0]
    made(tmp_path, "a", metrics=[ExactMatch()])
    changed = ExactMatch(**{parameter.name: not parameter.default})
    store = made(tmp_path, "b", metrics=[changed])

    assert list(audit_runs(store, ["a", "b"]).diffs) == ["evaluation.fingerprint"]


def test_a_section_allows_everything_in_it(tmp_path):
    made(tmp_path, "a")
    store = made(tmp_path, "b", temperature=0.5, max_tokens=9)

    assert audit_runs(store, ["a", "b"], ["sampling"]).passed
    assert not audit_runs(store, ["a", "b"], ["sampling.temperature"]).passed
    with pytest.raises(ConfigurationError, match="did you mean 'sampling'"):
        audit_runs(store, ["a", "b"], ["samplin"])


def test_one_run_is_checked_for_itself(tmp_path):
    store = made(tmp_path, "a")

    assert audit_runs(store, ["a"]).to_dict()["pass"] is True
    with pytest.raises(ConfigurationError, match="given twice"):
        audit_runs(store, ["a", "a"])
    with pytest.raises(ConfigurationError, match="one run or of two, got 3"):
        audit_runs(store, ["a", "b", "c"])
    with pytest.raises(StorageError, match="no run 'b'"):
        audit_runs(store, ["a", "b"])


def test_a_manifest_that_was_changed_afterwards_is_noticed(tmp_path):
    store = made(tmp_path, "a")
    config = store.get_run("a").config_snapshot
    config["reproducibility_manifest"]["sampling"]["temperature"] = 0.9
    with store.open_run("a") as writer:
        writer.update(config=encode(config))

    with pytest.raises(StorageError, match="does not match its stored hash"):
        load_manifest(store, "a")


def test_a_run_without_a_manifest_cannot_be_audited(tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("bare")

    with pytest.raises(StorageError, match="'bare' has no reproducibility manifest"):
        audit_runs(store, ["bare"])


def test_a_diff_of_everything_includes_where_the_runs_were_made(tmp_path):
    manifest = load_manifest(made(tmp_path, "a"), "a")
    elsewhere = {**manifest, "runtime": {**manifest["runtime"], "platform": "another"}}

    assert list(diff_everything(manifest, elsewhere)) == ["runtime.platform"]
    assert manifest_hash(manifest) != manifest_hash(elsewhere)
