"""The command that made a run can be read from the store, with what it cannot say."""

import itertools
import json
import shlex

import pytest

import themis
from themis.config.specification import MemorySpecification
from themis.core.codec import encode
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.metrics import ExactMatch
from themis.evaluation.pipeline import EvaluationPipeline
from themis.exceptions import ConfigurationError
from themis.experiment.reproduce import reproduction, write_rows
from themis.storage import ExperimentStorage

ROWS = [{"id": str(number), "question": f"{number} + 1?", "answer": str(number + 1)} for number in range(4)]


@pytest.fixture(autouse=True)
def outside_any_repository(tmp_path, monkeypatch):
    """A commit made meanwhile is not this test's business."""
    monkeypatch.chdir(tmp_path)


def made(tmp_path, rows=ROWS, **changes):
    given = {"model": "fake/perfect", "prompt": "Say: {question}", "metrics": ["exact_match"], "progress": False}
    themis.evaluate(rows, run_id="run", storage=tmp_path / "store", **{**given, **changes})
    return ExperimentStorage(tmp_path / "store")


def options(found):
    """The command's options, each with its values."""
    words, collected = list(found.command), {}
    for word, value in itertools.pairwise(words):
        if word.startswith("--"):
            collected.setdefault(word, []).append(value)
    return collected


def test_rows_from_python_are_written_from_the_store(tmp_path):
    store = made(tmp_path, temperature=0.3, num_samples=2, workers=2, metrics=["exact_match", "includes"])

    found = reproduction(store, "run")

    assert found.command[:2] == ("eval", "run.rows.jsonl")
    assert found.rows_file == "run.rows.jsonl"
    assert options(found) == {
        "--model": ["fake/perfect"],
        "--prompt": ["Say: {question}"],
        "--id-field": ["id"],
        "--reference-field": ["answer"],
        "--metric": ["exact_match", "includes"],
        "--temperature": ["0.3"],
        "--max-tokens": ["512"],
        "--num-samples": ["2"],
        "--workers": ["2"],
        "--run-id": ["run-again"],
    }
    assert (found.obstacles, found.environment) == ((), {})
    assert write_rows(store, "run", tmp_path / "rows.jsonl") == 4
    assert [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == ROWS


def test_a_file_is_named_while_it_is_there(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    store = made(tmp_path, rows=file, limit=3)

    assert reproduction(store, "run").command[1:2] == (str(file),)
    assert options(reproduction(store, "run"))["--limit"] == ["3"]
    file.unlink()
    found = reproduction(store, "run", rows_file="saved.jsonl")
    assert (found.command[1], found.rows_file) == ("saved.jsonl", "saved.jsonl")
    # The stored rows are the three already.
    assert "--limit" not in options(found)
    assert "which is gone" in found.remarks[0]


def test_a_benchmark_is_named_and_keeps_its_own_prompt_and_metrics(tmp_path):
    themis.evaluate(
        themis.get_benchmark_preset("gsm8k", sample=True),
        model="fake/perfect",
        limit=2,
        run_id="run",
        storage=tmp_path,
        progress=False,
    )

    found = reproduction(ExperimentStorage(tmp_path), "run")

    assert found.command[:2] == ("eval", "gsm8k")
    assert not {"--prompt", "--metric", "--extractor", "--reference-field"} & options(found).keys()
    assert options(found)["--limit"] == ["2"]


def test_rows_without_references_are_asked_without(tmp_path):
    rows = [{"question": "?"}]
    store = made(tmp_path, rows, reference_field="", metrics=["response_length"], model="fake/constant")

    assert options(reproduction(store, "run"))["--reference-field"] == [""]


def test_provider_options_keep_their_types_and_secrets_are_named_but_not_said(tmp_path):
    store = made(tmp_path, provider_options={"seed": 7})
    config = store.get_run("run").config_snapshot
    config["specification"]["provider_options"] = {
        "n": 3,
        "text": "3",
        "flag": True,
        "list": [1, "a"],
        "api_key": "[redacted]",
    }
    with store.open_run("run") as writer:
        writer.update(config=encode(config))

    found = reproduction(store, "run")

    assert options(found)["--option"] == ["n=3", 'text="3"', "flag=true", 'list=[1, "a"]']
    assert any("'api_key' is a secret" in remark for remark in found.remarks)
    assert "redacted" not in found.shell


def test_the_shell_line_splits_back_into_the_command(tmp_path):
    store = made(tmp_path, prompt="It's {question}\nreally; $HOME `x`")

    found = reproduction(store, "run", new_run_id="other id")

    assert shlex.split(found.shell) == ["themis", *found.command]
    assert found.command[-2:] == ("--run-id", "other id")


class Upper:
    """An extractor of the user's own."""

    def extract(self, raw_output):
        return raw_output.upper()


def test_what_was_made_in_python_stands_in_the_way(tmp_path):
    store = made(tmp_path, metrics=[ExactMatch(), ExactMatch(name="Two")])
    assert [line[:12] for line in reproduction(store, "run").obstacles] == ["its metrics "]
    store.delete_run("run")
    made(tmp_path, extractor=Upper())
    assert "its extractor was made in Python" in reproduction(store, "run").obstacles[0]
    store.delete_run("run")
    pipeline = EvaluationPipeline(extractor=IdentityExtractor(), metrics=[ExactMatch()])
    made(tmp_path, evaluation_pipeline=pipeline, metrics=None)
    assert "its evaluation_pipeline was made in Python" in reproduction(store, "run").obstacles[0]


def test_names_that_only_the_program_knew_stand_in_the_way(tmp_path):
    store = made(tmp_path)
    config = store.get_run("run").config_snapshot
    config["specification"].update(metrics=["their_metric"], extractor="their_extractor")
    config["task"]["model"]["provider"] = "their_provider"
    with store.open_run("run") as writer:
        writer.update(config=encode(config))

    assert reproduction(store, "run").obstacles == (
        "the provider 'their_provider' is registered by your program",
        "the metric 'their_metric' is registered by your program",
        "the extractor 'their_extractor' is registered by your program",
    )


def test_names_that_a_loaded_file_knows_do_not_unless_the_file_is_gone(tmp_path):
    code = tmp_path / "theirs.py"
    code.write_text(
        "import themis\nthemis.register_metric('their_length', lambda prediction, references: len(prediction))\n"
    )
    store = made(tmp_path)
    config = store.get_run("run").config_snapshot
    config["specification"].update(metrics=["their_metric"], load=[str(code)])
    with store.open_run("run") as writer:
        writer.update(config=encode(config))
    found = reproduction(store, "run")

    assert (found.obstacles, "--load" in found.command) == ((), True)
    code.unlink()
    assert reproduction(store, "run").obstacles == (f"the file {str(code)!r} that it was made with is not here",)


def test_a_memory_run_is_asked_for_as_it_was(tmp_path):
    asked = MemorySpecification(
        configuration="small.yaml",
        agent="dummy",
        isolated=True,
        workers=2,
        agent_options={"n": 3, "api_key": "sk-secret"},
    )
    store = made(tmp_path)
    config = {**store.get_run("run").config_snapshot, "specification": asked.to_stored()}
    store.delete_run("run")
    store.start_run("run", kind="memory", config=config)

    found = reproduction(store, "run")

    assert (
        found.shell == "themis memory run -c small.yaml -a dummy --workers 2 --isolated --option n=3 --run-id run-again"
    )
    assert found.specification.isolated
    assert any("'api_key' is a secret" in remark for remark in found.remarks)


def test_a_run_that_does_not_say_how_it_was_made_is_refused(tmp_path):
    store = made(tmp_path)
    config = store.get_run("run").config_snapshot
    del config["specification"]
    with store.open_run("run") as writer:
        writer.update(config=encode(config))

    with pytest.raises(ConfigurationError, match="does not say how it was started"):
        reproduction(store, "run")


def test_what_differs_in_the_environment_is_said(tmp_path):
    store = made(tmp_path)
    config = store.get_run("run").config_snapshot
    config["reproducibility_manifest"]["package_versions"]["numpy"] = "1.0"
    config["reproducibility_manifest"]["runtime"]["python_version"] = "2.7.18"
    del config["manifest_hash"]
    with store.open_run("run") as writer:
        writer.update(config=encode(config))

    environment = reproduction(store, "run").environment

    assert environment.keys() == {"package_versions.numpy", "runtime.python_version"}
    assert environment["runtime.python_version"]["then"] == "2.7.18"
