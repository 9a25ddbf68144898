"""Files of others that are made to burst, and scores that cannot be: refused or left out, in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as parquet
import pytest

from themis.exceptions import DatasetError
from themis.experiment.importing import NO_LIMITS, ReadLimits, import_log
from themis.memory.importing import import_folder
from themis.memory.results import load_results
from themis.presets import loading
from themis.presets.loading import read_rows
from themis.runs.report import build_report
from themis.storage import ExperimentStorage

MEGABYTE = 10**6
HEADER = {"eval": {"task": "sums", "model": "openai/x"}, "status": "success"}


def sample(number: int, value: Any = "C", scorer: str = "match", **more: Any) -> dict[str, Any]:
    answer = {"choices": [{"message": {"content": "4"}}]}
    scores = {scorer: {"value": value}}
    return {"id": f"q{number}", "epoch": 1, "input": "2 + 2", "target": "4", "output": answer, "scores": scores, **more}


def archive(path: Path, write: Callable[[zipfile.ZipFile], None]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        made.writestr("header.json", json.dumps(HEADER))
        write(made)
    return path


def one_huge_sample(made: zipfile.ZipFile) -> None:
    with made.open("samples/q0_epoch_1.json", "w") as member:
        member.write(b'{"id": "q0", "input": "')
        for _ in range(300):
            member.write(b"x" * MEGABYTE)
        member.write(b'"}')


def many_tight_samples(made: zipfile.ZipFile) -> None:
    text = json.dumps(sample(0, pad="x" * 10 * MEGABYTE))
    for number in range(12):
        made.writestr(f"samples/q{number}_epoch_1.json", text)


@pytest.mark.fault(
    area="Imports",
    wrong="An archive is packed so tightly that a few megabytes become gigabytes",
    does="Refused before it is unpacked, with its size, the limit and how to read it all the same (--no-limits)",
    status="–",
    exit_code=2,
)
@pytest.mark.parametrize("content", [one_huge_sample, many_tight_samples])
def test_an_archive_that_would_burst_is_refused_before_it_is_unpacked(fault, themis, tmp_path, content):
    path = archive(tmp_path / "bomb.eval", content)
    said = themis("import", path.name, "--storage", "store")

    assert said.returncode == fault.exit_code
    assert said.stderr.startswith("Error: bomb.eval has ")
    assert "times as much; at most 200 times is unpacked; if you trust it" in said.stderr
    assert len(said.stderr.splitlines()) == 1
    assert ExperimentStorage(tmp_path / "store").list_runs() == []


def test_archives_of_many_or_large_files_are_refused_unless_they_are_trusted(tmp_path):
    store = ExperimentStorage(tmp_path / "store")
    path = archive(
        tmp_path / "log.eval",
        lambda made: [made.writestr(f"samples/{n}.json", json.dumps(sample(n))) for n in range(5)] and None,
    )

    with pytest.raises(DatasetError, match=r"log\.eval has 6 files in it, and at most 3 are read; .*--no-limits"):
        import_log(path, store, limits=ReadLimits(members=3))
    with pytest.raises(
        DatasetError, match=r"samples/0\.json has 1\d\d bytes, and at most 100 bytes are read into memory"
    ):
        import_log(path, store, limits=ReadLimits(part_bytes=100))
    assert store.list_runs() == []
    assert import_log(path, store, limits=NO_LIMITS).samples == 5


def test_memory_depends_on_the_largest_sample_not_on_the_log(tmp_path):
    """A log of 60 MB, most of it events that are not kept, is read by a process that may take 40 MB beyond its start."""
    events = [{"event": "model", "text": 'said "{[" and more ' * 20}] * 2_000
    with (tmp_path / "log.json").open("w") as file:
        file.write(json.dumps(HEADER)[:-1] + ', "samples": [')
        text = json.dumps(sample(0, events=events))
        for number in range(60 * MEGABYTE // len(text)):
            file.write(("," if number else "") + text.replace('"q0"', f'"q{number}"'))
        file.write("]}")
    script = """
import resource, sys
from themis.experiment.importing import import_log
from themis.storage import ExperimentStorage
store = ExperimentStorage(sys.argv[2])
store.start_run("first")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
imported = import_log(sys.argv[1], store)
print(imported.samples, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    arguments = [sys.executable, "-c", script, str(tmp_path / "log.json"), str(tmp_path / "store")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=True)
    samples, megabytes = map(int, done.stdout.split())

    assert samples > 50
    assert megabytes < 40


@pytest.mark.fault(
    area="Imports",
    wrong="A published score is outside its metric's range, or not a number",
    does="That score is left out, named and counted as failed; the rest is imported",
    status="completed",
    exit_code=3,
)
@pytest.mark.parametrize("kind", ["inspect", "lm-eval"])
def test_scores_that_cannot_be_are_not_taken_over(fault, themis, tmp_path, kind):
    values = [1.0, 37.0, -0.5, 0.0]
    if kind == "inspect":
        path = tmp_path / "log.json"
        samples = [sample(number, value) for number, value in enumerate(values)]
        path.write_text(json.dumps({**HEADER, "samples": samples}))
    else:
        path = tmp_path / "samples_sums_2026.jsonl"
        lines = [
            {"doc_id": n, "doc": {}, "resps": [["4"]], "match": v, "metrics": ["match"]} for n, v in enumerate(values)
        ]
        path.write_text("\n".join(json.dumps(line).replace('"match"', '"exact_match"') for line in lines))
    said = themis("import", path.name, "--storage", "store", "--run-id", "theirs", "--json")

    assert said.returncode == fault.exit_code, said.stderr
    assert "published as 37, outside its range from 0 to 1" in said.stderr
    assert len(json.loads(said.stdout)[0]["broken"]) == 2
    store = ExperimentStorage(tmp_path / "store")
    (metric,) = build_report(store, "theirs").evaluation_report.metrics.values()
    assert (metric.mean, metric.count, metric.failed) == (0.5, 2, 2)
    assert store.get_run("theirs").status == fault.status
    assert str(store.get_run("theirs").standing) == "completed, 2 not judged"


def test_one_epoch_outside_the_range_spoils_the_mean_of_its_sample(tmp_path):
    epochs = [sample(0, value, epoch=number) for number, value in enumerate((1.0, 37.0), start=1)]
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": epochs}))
    store = ExperimentStorage(tmp_path / "store")
    imported = import_log(path, store, run_id="theirs")

    assert [part.where for part in imported.broken] == ["match of sample 'q0'"]
    assert build_report(store, "theirs").evaluation_report.metrics["match"].count == 0


def test_metrics_without_a_known_range_are_taken_as_they_are(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": [sample(0, 37.0, scorer="points")]}))
    store = ExperimentStorage(tmp_path / "store")

    assert import_log(path, store, run_id="theirs").broken == []
    assert build_report(store, "theirs").evaluation_report.metrics["points"].mean == 37.0


def test_impossible_scores_of_a_memory_benchmark_are_named_and_count_for_nothing(tmp_path):
    results = tmp_path / "run" / "results" / "agent" / "Names"
    results.mkdir(parents=True)
    for name, score, most in (("0_0", 1, 1), ("1_0", 3, 1), ("2_0", -1, 1), ("3_0", 2, 3)):
        (results / f"{name}.json").write_text(json.dumps({"score": score, "max_score": most, "task_log": []}))
    store = ExperimentStorage(tmp_path / "store")
    (imported,) = import_folder(tmp_path / "run", store)

    assert imported.tests == 4
    assert [part.reason for part in imported.broken] == [
        "its score is 3 of 1, which cannot be; imported without a score",
        "its score is -1 of 1, which cannot be; imported without a score",
    ]
    scores = [result.score for result in load_results(store, imported.run_id).results]
    assert scores == [1.0, None, None, pytest.approx(2 / 3)]


@pytest.mark.fault(
    area="Imports",
    wrong="A folder of results of a memory benchmark is larger than memory should hold",
    does="Refused before it is read, with its size, the limit and how to read it all the same (--no-limits)",
    status="–",
    exit_code=2,
)
def test_a_folder_that_is_too_large_is_refused(fault, themis, tmp_path):
    agent = tmp_path / "run" / "results" / "agent"
    agent.mkdir(parents=True)
    with (agent / "master_log.jsonl").open("wb") as log:
        log.truncate(600 * 2**20)  # takes no room on the disk
    said = themis("memory", "import", "run", "--storage", "store")

    assert said.returncode == fault.exit_code
    assert "have 629.1 MB, and at most 536.9 MB are read into memory; if you trust it" in said.stderr


def test_a_parquet_file_that_would_burst_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "_ROW_GROUP_BYTES", MEGABYTE)
    rows = pyarrow.table({"id": ["a", "b", "c"], "question": ["x" * MEGABYTE] * 3})
    parquet.write_table(rows, tmp_path / "rows.parquet", compression="zstd", use_dictionary=False)

    with pytest.raises(DatasetError, match=r"would become 3,000,\d+; at most 200 times as much is unpacked"):
        next(read_rows(tmp_path / "rows.parquet"))
