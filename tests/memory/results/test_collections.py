"""A folder of many benchmarks is imported in one go; what is wrong with one of them does not keep the others out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.memory.results.published import Published, write_benchmark
from themis.cli import themis
from themis.memory.importing import ImportedAgent, import_folder
from themis.memory.results import load_results
from themis.storage import ExperimentStorage

COLOURS = ["The name of my favourite colour is Ochre.", "My favourite colour could be described as Puce."]


@pytest.fixture
def storage(tmp_path: Path) -> ExperimentStorage:
    return ExperimentStorage(tmp_path / "store")


def write_collection(root: Path, names: Sequence[tuple[str, str]]) -> Path:
    """Benchmarks by their folders and the names in their configurations, each with another score."""
    for number, (folder, run_name) in enumerate(names, start=1):
        test = Published("Colours", COLOURS, [("What is my colour?", "Puce.")], ["Puce"], number, 10)
        write_benchmark(root / folder, [test], run_name=run_name)
    return root


def list_ids(imported: Sequence[ImportedAgent]) -> list[str]:
    return [one.run_id for one in imported]


def test_benchmarks_of_one_name_are_told_apart_by_their_folders(storage, tmp_path):
    names = [("Far", "Near"), ("Near", "Near"), ("deep/down/Other", "Other"), ("x/Same", "Same"), ("y/Same", "Same")]
    folder = write_collection(tmp_path / "all", names)
    first, again = import_folder(folder, storage), import_folder(folder, storage)

    assert list_ids(first) == [
        "Near (from Far) - Some Agent",
        "Near - Some Agent",
        "Other - Some Agent",
        "Same (from x-Same) - Some Agent",
        "Same (from y-Same) - Some Agent",
    ]
    assert [load_results(storage, one.run_id).results[0].score for one in first] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert [(one.run_id, one.already) for one in again] == [(one.run_id, True) for one in first]


def test_a_folder_is_imported_once_whether_alone_or_among_others(storage, tmp_path):
    folder = write_collection(tmp_path / "all", [("Far", "Near"), ("Near", "Near")])
    alone = import_folder(folder / "Far", storage)
    then = import_folder(folder / "Near", storage)
    together = import_folder(folder, storage)

    assert list_ids([*alone, *then]) == ["Near - Some Agent", "Near (from Near) - Some Agent"]
    assert [(one.run_id, one.already) for one in together] == [
        ("Near - Some Agent", True),
        ("Near (from Near) - Some Agent", True),
    ]


def test_a_name_for_many_folders_keeps_them_apart(storage, tmp_path):
    folder = write_collection(tmp_path / "all", [("A", "One"), ("B", "Two")])

    assert list_ids(import_folder(folder, storage, name="Mine")) == [
        "Mine (from A) - Some Agent",
        "Mine (from B) - Some Agent",
    ]


def test_one_folder_that_cannot_be_imported_does_not_keep_the_others_out(storage, tmp_path):
    folder = write_collection(tmp_path / "all", [("A", "One"), ("B", "Two"), ("C", "Three")])
    import_folder(folder / "B", storage)
    write_collection(folder, [("A", "One"), ("C", "Three"), ("B", "Two")])  # what was imported from B has changed
    with (folder / "A" / "results" / "Some Agent" / "master_log.jsonl").open("wb") as log:
        log.truncate(600 * 2**20)  # takes no room on the disk
    (folder / "D" / "results" / "Empty").mkdir(parents=True)
    (folder / "E" / "definitions").mkdir(parents=True)
    words = ["memory", "import", str(folder), "--storage", str(storage.root)]
    said = CliRunner().invoke(themis, words, standalone_mode=False)

    assert said.return_value == 3
    assert "Three - Some Agent: 1 tests" in said.stdout
    assert said.stdout.splitlines()[-1].startswith("1 runs imported, 0 imported before, ")
    problems = said.stderr.splitlines()
    assert any("Some Agent: the files in" in line and "--no-limits" in line for line in problems)
    assert any("run 'Two - Some Agent' exists and was not made from these files" in line for line in problems)
    assert any("Empty: holds no result that can be read" in line for line in problems)
    assert any("results: holds no folder of an agent" in line for line in problems)
