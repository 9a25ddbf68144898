"""Logs of Inspect and lm-eval become runs: scores as published, once, and what is broken is said."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import pytest

import themis
from themis.exceptions import ConfigurationError, DatasetError
from themis.experiment.export import export_inspect, export_lm_eval
from themis.experiment.importing import import_log
from themis.runs.report import build_report
from themis.storage import ExperimentStorage, RunStatus


@pytest.fixture
def store(tmp_path: Path) -> ExperimentStorage:
    return ExperimentStorage(tmp_path / "store")


def scores_of(store: ExperimentStorage, run_id: str, metric: str) -> dict[str | None, float]:
    report = build_report(store, run_id)
    return {
        record.sample_id: score.value
        for record in report.evaluation_report.records
        for score in record.scores
        if score.metric_name == metric
    }


# --- Inspect ----------------------------------------------------------------------------------------------------------


def inspect_sample(item: str, value: Any, *, epoch: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "id": item,
        "epoch": epoch,
        "input": f"question of {item}",
        "target": "right",
        "messages": [],
        "output": {
            "model": "openai/gpt-x",
            "choices": [
                {"message": {"role": "assistant", "content": f"answer {epoch} of {item}"}, "stop_reason": "stop"}
            ],
            "usage": {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13},
        },
        "scores": {"match": {"value": value, "answer": "x", "explanation": "because"}},
        "metadata": {"topic": "sums"},
        "events": [{"event": "state", "anything": [1, 2, 3]}],
        **changes,
    }


def inspect_log(path: Path, samples: list[Any], **changes: Any) -> Path:
    log = {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "sums",
            "model": "openai/gpt-x",
            "created": "2026-01-01T00:00:00+00:00",
            "dataset": {},
            "config": {"epochs": 1},
            "packages": {"inspect_ai": "0.3"},
            "revision": {"type": "git", "origin": "x", "commit": "abc123"},
        },
        "plan": {"config": {"temperature": 0.5, "max_tokens": 64}},
        "samples": samples,
        **changes,
    }
    path.write_text(json.dumps(log))
    return path


def test_an_inspect_log_becomes_a_run_with_its_scores(store, tmp_path):
    values = {"a": "C", "b": "I", "c": "P", "d": 0.25, "e": True, "f": "yes"}
    path = inspect_log(tmp_path / "log.json", [inspect_sample(item, value) for item, value in values.items()])
    imported = import_log(path, store)

    assert (imported.source, imported.samples, imported.failed, imported.broken) == ("inspect", 6, 0, [])
    assert scores_of(store, imported.run_id, "match") == {"a": 1, "b": 0, "c": 0.5, "d": 0.25, "e": 1, "f": 1}
    run = store.get_run(imported.run_id)
    assert (run.status, run.model, run.prompt_tokens) == (RunStatus.COMPLETED, "openai:gpt-x", 60)
    assert run.tags == {"imported_from": "inspect", "task": "sums"}
    manifest = run.config_snapshot["reproducibility_manifest"]
    assert manifest["package_versions"] == {"inspect_ai": "0.3"}
    assert manifest["git_commit_hash"] == "abc123"
    assert manifest["sampling"] == {"temperature": 0.5, "top_p": None, "max_tokens": 64}
    record = build_report(store, imported.run_id).generation_results[0]
    assert (record.task.prompt.text, record.output.text) == ("question of a", "answer 1 of a")
    assert record.task.reference.value == "right"
    assert build_report(store, imported.run_id).evaluation_report.records[0].scores[0].details["published"] == "C"
    assert store.validate_integrity(imported.run_id)["valid"]


def test_epochs_are_attempts_and_their_scores_are_averaged(store, tmp_path):
    samples = [inspect_sample(i, v, epoch=e) for e, v in ((2, "I"), (1, "C")) for i in ("a", "b")]
    imported = import_log(inspect_log(tmp_path / "log.json", samples), store)

    report = build_report(store, imported.run_id)
    assert report.metric("match").count == 2
    assert report.metric("match").mean == 0.5
    assert [attempt.output.text for attempt in report.generation_results[0].attempts] == [
        "answer 1 of a",
        "answer 2 of a",
    ]


def test_a_score_of_several_values_is_several_metrics(store, tmp_path):
    value = {"speed": 0.5, "taste": "C"}
    imported = import_log(inspect_log(tmp_path / "log.json", [inspect_sample("a", value)]), store)
    assert scores_of(store, imported.run_id, "match.speed") == {"a": 0.5}
    assert scores_of(store, imported.run_id, "match.taste") == {"a": 1.0}


def test_errors_and_scores_that_are_no_numbers_are_failures_not_zeros(store, tmp_path):
    samples = [
        inspect_sample("good", "C"),
        inspect_sample("crashed", "C", error={"message": "sandbox died"}, scores={}),
        inspect_sample("odd", "perhaps"),
        inspect_sample("unscored", math.nan),
        inspect_sample("missing", 1, scores=None),
    ]
    imported = import_log(inspect_log(tmp_path / "log.json", samples), store)

    metric = build_report(store, imported.run_id).metric("match")
    assert (metric.mean, metric.count, metric.failed) == (1.0, 1, 4)
    assert imported.failed == 1
    reasons = [failure.message for failure in build_report(store, imported.run_id).evaluation_report.failures]
    assert any("'perhaps'" in reason or '"perhaps"' in reason for reason in reasons)


def test_a_broken_sample_is_reported_and_the_rest_imported(store, tmp_path):
    samples = [
        inspect_sample("a", "C"),
        {"no": "id"},
        "not a sample",
        inspect_sample("b\x00", "C"),
        inspect_sample("b", "I"),
    ]
    imported = import_log(inspect_log(tmp_path / "log.json", samples), store)

    assert imported.samples == 2
    assert sorted(broken.where for broken in imported.broken) == ["sample 'b\\x00'", "sample 1", "sample 2"]


def test_an_archive_is_read_like_the_json_of_it(store, tmp_path):
    log = json.loads(inspect_log(tmp_path / "log.json", []).read_text())
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        del log["samples"]
        archive.writestr("header.json", json.dumps(log))
        for item, value in (("a", "C"), ("b", "I")):
            archive.writestr(f"samples/{item}_epoch_1.json", json.dumps(inspect_sample(item, value)))
    imported = import_log(tmp_path / "log.eval", store)
    assert scores_of(store, imported.run_id, "match") == {"a": 1.0, "b": 0.0}


def test_an_archive_that_cannot_be_unpacked_says_how_to_convert_it(store, tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
    # The method's number stands in both of the member's headers: 93 is Zstandard.
    data = path.read_bytes()
    path.write_bytes(data.replace(b"\x14\x00\x00\x00\x00\x00", b"\x14\x00\x00\x00\x5d\x00"))
    with pytest.raises(DatasetError, match=r"inspect log convert log\.eval --to json"):
        import_log(path, store)
    assert not store.run_exists("log")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.json", "{", "is not JSON: expected .* at byte 1, got its end"),
        ("log.json", "[1]", "is not JSON: expected .* at byte 0"),
        ("log.json", '{"eval": {}, "samples": [{"id": "a"', "is not whole: it ends inside a value"),
        ("log.json", '{"some": "json"}', "is not an Inspect log.*eval"),
        ("log.json", '{"eval": {}}', "has no samples in it"),
        ("log.json", '{"eval": {}, "samples": []}', "no sample of the file can be read"),
        ("log.eval", "not a zip", "not a finished .eval archive"),
        ("results_2026.json", "{}", "holds only means; import the samples_"),
        ("samples_x_1.jsonl", "", "no sample of the file can be read"),
        ("samples_x_1.jsonl", "{broken", "no sample of the file can be read: line 1: not JSON"),
        ("log.txt", "", "not a log of another system"),
    ],
)
def test_what_is_no_log_is_refused_and_leaves_no_run(store, tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match=message):
        import_log(tmp_path / name, store)
    assert store.list_runs() == []


def test_a_missing_file_is_named(store, tmp_path):
    with pytest.raises(DatasetError, match=r"there is no file .*gone\.json"):
        import_log(tmp_path / "gone.json", store)


# --- lm-eval ----------------------------------------------------------------------------------------------------------


def lm_eval_line(doc_id: int, **changes: Any) -> dict[str, Any]:
    return {
        "doc_id": doc_id,
        "doc": {"question": f"q{doc_id}", "choices": ["a", "b"]},
        "target": "1",
        "arguments": {"gen_args_0": {"arg_0": f"prompt {doc_id}", "arg_1": {"until": []}}},
        "resps": [[f"answer {doc_id}"]],
        "filtered_resps": [f"answer {doc_id}"],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": "x",
        "prompt_hash": "x",
        "target_hash": "x",
        "acc": doc_id % 2,
        **changes,
    }


def lm_eval_file(folder: Path, lines: list[Any], *, results: bool = True) -> Path:
    path = folder / "samples_arc_easy_2026-01-01T00-00-00.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    if results:
        payload = {
            "results": {"arc_easy": {"acc,none": 0.5}},
            "configs": {"arc_easy": {"generation_kwargs": {"temperature": 0.7, "max_gen_toks": 32}}},
            "config": {"model": "hf", "model_args": "pretrained=org/m"},
            "model_name": "org/m",
            "git_hash": "fed",
        }
        (folder / "results_2026-01-01T00-00-00.json").write_text(json.dumps(payload))
    return path


def test_an_lm_eval_file_becomes_a_run_named_after_its_task_and_model(store, tmp_path):
    imported = import_log(lm_eval_file(tmp_path, [lm_eval_line(n) for n in range(4)]), store)

    run = store.get_run(imported.run_id)
    assert imported.run_id.startswith("lm-eval-arc_easy-")
    assert run.model == "hf:org/m"
    assert run.tags["task"] == "arc_easy"
    assert scores_of(store, imported.run_id, "acc") == {"0": 0, "1": 1, "2": 0, "3": 1}
    record = build_report(store, imported.run_id).generation_results[2]
    assert (record.task.prompt.text, record.output.text, record.task.reference.value) == ("prompt 2", "answer 2", "1")
    assert record.task.sampling.temperature == 0.7


def test_each_filter_is_a_metric_of_its_own_and_a_document_is_one_sample(store, tmp_path):
    lines = [lm_eval_line(n, filter=f, acc=v) for f, v in (("strict", 0.0), ("flexible", 1.0)) for n in range(3)]
    imported = import_log(lm_eval_file(tmp_path, lines), store)

    report = build_report(store, imported.run_id)
    assert len(report.generation_results) == 3
    assert {name: (m.mean, m.count, m.failed) for name, m in report.evaluation_report.metrics.items()} == {
        "acc,flexible": (1.0, 3, 0),
        "acc,strict": (0.0, 3, 0),
    }


def test_likelihoods_and_older_files_without_a_list_of_metrics_are_read(store, tmp_path):
    line = lm_eval_line(
        1, resps=[[[-1.5, False]], [[-0.5, True]]], filtered_resps=[[-1.5, False], [-0.5, True]], acc_norm=0.5
    )
    line["arguments"] = [["context", " yes"], ["context", " no"]]
    del line["metrics"], line["filter"]
    imported = import_log(lm_eval_file(tmp_path, [line], results=False), store)

    report = build_report(store, imported.run_id)
    assert set(report.evaluation_report.metrics) == {"acc", "acc_norm"}
    assert report.generation_results[0].task.prompt.text == "context"
    assert report.generation_results[0].output.text == "[[-1.5, false], [-0.5, true]]"
    assert imported.notes
    assert store.get_run(imported.run_id).model == "lm-eval:unknown"


def test_broken_lines_are_reported_with_their_number(store, tmp_path):
    lines = [lm_eval_line(0), '{"doc_id": 1, "doc":', "[]", json.dumps({"doc_id": 7}), lm_eval_line(2)]
    imported = import_log(lm_eval_file(tmp_path, lines), store)
    assert imported.samples == 2
    assert [broken.where for broken in imported.broken] == ["line 2", "line 3", "line 4"]


def test_the_model_can_be_named_where_the_file_does_not(store, tmp_path):
    path = lm_eval_file(tmp_path, [lm_eval_line(0)], results=False)
    imported = import_log(path, store, model="vllm:org/other", run_id="mine")
    assert (imported.run_id, store.get_run("mine").model) == ("mine", "vllm:org/other")
    with pytest.raises(ConfigurationError, match="named as provider:name, got 'nonsense'"):
        import_log(path, store, model="nonsense")


# --- once -------------------------------------------------------------------------------------------------------------


def test_the_same_file_again_changes_nothing(store, tmp_path):
    path = inspect_log(tmp_path / "log.json", [inspect_sample("a", "C")])
    first = import_log(path, store)
    before = store.get_run(first.run_id)
    again = import_log(path, store)

    assert (again.run_id, again.already, again.samples) == (first.run_id, True, 1)
    assert store.get_run(first.run_id) == before
    assert len(store.list_runs()) == 1


def test_an_import_that_was_cut_off_is_made_anew(store, tmp_path, monkeypatch):
    path = lm_eval_file(tmp_path, [lm_eval_line(n) for n in range(1_200)])
    from themis.storage.writing import RunWriter

    real, calls = RunWriter.commit_scores, []

    def cut_off(self: Any, *arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(self, *arguments)

    monkeypatch.setattr(RunWriter, "commit_scores", cut_off)
    with pytest.raises(KeyboardInterrupt):
        import_log(path, store)
    monkeypatch.undo()
    imported = import_log(path, store)

    run = store.get_run(imported.run_id)
    assert (imported.already, run.status, run.total_samples, run.calls) == (False, RunStatus.COMPLETED, 1_200, 1_200)
    assert build_report(store, imported.run_id).metric("acc").count == 1_200


def test_a_run_of_another_origin_is_not_written_over(store, tmp_path):
    import_log(inspect_log(tmp_path / "one.json", [inspect_sample("a", "C")]), store, run_id="mine")
    with pytest.raises(ConfigurationError, match=r"run 'mine' exists and was not made from two\.json"):
        import_log(inspect_log(tmp_path / "two.json", [inspect_sample("a", "I")]), store, run_id="mine")


# --- there and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["inspect", "lm-eval"])
def test_what_was_exported_comes_back_with_the_same_scores(store, tmp_path, system):
    rows = [{"id": f"q{n}", "question": f"{n}?", "answer": str(n), "topic": "t"} for n in range(25)]
    report = themis.evaluate(
        rows,
        model="fake/noisy-0.4",
        prompt="{question}",
        metrics=["exact_match", "f1"],
        storage=store,
        run_id="original",
        progress=False,
    )
    path = export_inspect(report, tmp_path) if system == "inspect" else export_lm_eval(report, tmp_path)[0]
    imported = import_log(path, store)

    for metric in ("ExactMatch", "F1"):
        assert scores_of(store, imported.run_id, metric) == scores_of(store, "original", metric)
    back = build_report(store, imported.run_id)
    assert [record.output.text for record in back.generation_results] == [
        r.output.text for r in report.generation_results
    ]
    assert store.get_run(imported.run_id).model == "fake:noisy-0.4"
