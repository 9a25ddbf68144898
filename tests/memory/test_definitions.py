"""Definitions: generated once, shared, exported and loaded, never lost or changed unnoticed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.memory.small_tests import Cities, Order, Orders, store_in
from tests.memory.test_configuration import GOOD, parsed
from tests.memory.test_scheduler import play
from tests.memory.tests.conversation import TESTS
from themis.config import load_memory_config
from themis.config.schema import MemoryConfig
from themis.core.codec import canonical_json, decode, to_plain
from themis.exceptions import ConfigurationError, StorageError
from themis.memory import definitions
from themis.memory.examples import MEMORY_TESTS, TestExample, register_memory_test
from themis.memory.planning import plan_test
from themis.storage import RetentionPolicy, RunStatus
from themis.storage.maintenance import repair_store

ROOT = Path(__file__).parents[2]
CONFIGURATIONS = sorted((ROOT / "configurations").rglob("*.yml"))
pytestmark = pytest.mark.usefixtures("registered")


def steps(defined: list[definitions.Defined], config: MemoryConfig | None = None) -> list[object]:
    """What the scheduler wants, with an agent whose every exchange has the same length."""
    planned = [plan_test(one.example, one.kind, len) for one in defined]
    conflicts = definitions.conflicts_of(defined, config.incompatibilities if config else ())
    return play(planned, conflicts=conflicts, max_message_tokens=100_000).steps


def shapes(defined: list[definitions.Defined]) -> list[object]:
    return [(one.kind, one.example.test_id, one.example.definition(), vars(one.example.dataset)) for one in defined]


def test_a_second_start_uses_the_stored_ones(tmp_path):
    storage, config, asked = store_in(tmp_path), parsed(GOOD), []

    first = definitions.prepare(config, storage, reuse=lambda question: asked.append(question) or True)
    second = definitions.prepare(config, storage, reuse=lambda question: asked.append(question) or True)

    assert len(asked) == 1
    assert shapes(first) == shapes(second)


def test_generating_the_same_anew_says_that_nothing_has_changed(tmp_path, caplog):
    storage, config = store_in(tmp_path), parsed(GOOD)
    first = definitions.prepare(config, storage, reuse=lambda question: True)

    with caplog.at_level("INFO"):
        again = definitions.prepare(config, storage, reuse=lambda question: False)
        also = definitions.prepare(config, storage, reuse=lambda question: True, regenerate=True)

    assert caplog.text.count("identical to the stored ones; runs made with them can go on") == 2
    assert "cannot be resumed" not in caplog.text
    assert shapes(first) == shapes(again) == shapes(also)
    assert [(one.name, one.version) for one in storage.list_definitions()] == [("small", 1)]


def test_generating_others_keeps_the_old_ones_and_says_what_depends_on_them(tmp_path, caplog):
    storage, config = store_in(tmp_path), parsed(GOOD)
    definitions.prepare(config, storage, reuse=lambda question: True)
    storage.start_run("small - oracle", kind="memory", benchmark="small")

    other = parsed(GOOD.replace("seed: 9", "seed: 10"))
    definitions.prepare(other, storage, reuse=lambda question: True, regenerate=True)

    assert "differ from the stored ones" in caplog.text
    assert "cannot be resumed or compared with new ones: small - oracle" in caplog.text
    assert [(one.name, one.version) for one in storage.list_definitions()] == [("small", 2), ("small", 1)]
    assert storage.run_exists("small - oracle")


def test_another_configuration_under_the_same_name_is_refused(tmp_path):
    storage = store_in(tmp_path)
    definitions.prepare(parsed(GOOD), storage, reuse=lambda question: True)
    other = parsed(GOOD.replace("moves: 3", "moves: 4"))

    with pytest.raises(ConfigurationError, match="generated from another configuration"):
        definitions.prepare(other, storage, reuse=lambda question: True)

    made = definitions.prepare(other, storage, reuse=lambda question: True, regenerate=True)
    assert made[0].example.dataset.moves == 4


def test_definitions_edited_in_the_store_are_noticed(tmp_path):
    storage, config = store_in(tmp_path), parsed(GOOD)
    definitions.prepare(config, storage, reuse=lambda question: True)
    storage.close()
    with sqlite3.connect(tmp_path / "store" / "themis.db") as connection:
        connection.execute("UPDATE definitions SET content = replace(content, 'I live', 'I dwell')")
    connection.close()

    with pytest.raises(ConfigurationError, match="changed after they were generated"):
        definitions.prepare(config, store_in(tmp_path), reuse=lambda question: True)


def test_definitions_are_no_runs_and_outlive_every_retention(tmp_path):
    storage, config = store_in(tmp_path), parsed(GOOD)
    made = definitions.prepare(config, storage, reuse=lambda question: True)

    listed = storage.list_runs()
    storage.apply_retention_policy(RetentionPolicy(max_age_days=0, keep_latest_n=0))

    assert listed == []
    assert shapes(definitions.load_stored(storage, "small")) == shapes(made)
    with pytest.raises(StorageError, match=r"no definitions 'smal' in .*did you mean 'small'"):
        definitions.load_stored(storage, "smal")


@pytest.mark.parametrize("is_repaired", [False, True], ids=["opened", "repaired"])
def test_definitions_that_an_older_store_keeps_as_runs_are_moved(tmp_path, is_repaired):
    storage, config = store_in(tmp_path), parsed(GOOD)
    made = definitions.prepare(config, storage, reuse=lambda question: True)
    definitions.store(made, config, storage)
    old, new = sorted(storage.list_definitions(), key=lambda one: one.version)
    unfinished = "definitions other"
    for run_id, stored in (("definitions small@1", old), ("definitions small", new), (unfinished, new)):
        config_then = {"configuration": stored.configuration, "digest": stored.digest, "incompatibilities": []}
        storage.start_run(run_id.replace("@", "-"), kind="definitions", benchmark="small", config=config_then)
        with storage.open_run(run_id.replace("@", "-")) as writer:
            writer.save_artifact("definitions.json", stored.content.encode("ascii"), "application/json")
            writer.finish(RunStatus.IN_PROGRESS if run_id == unfinished else RunStatus.COMPLETED)
    storage.close()
    with closing(sqlite3.connect(tmp_path / "store" / "themis.db")) as connection:
        connection.execute("UPDATE runs SET run_id = 'definitions small@1' WHERE run_id = 'definitions small-1'")
        connection.execute("DROP TABLE definitions")
        connection.execute("PRAGMA user_version = 5")
        connection.commit()
    if is_repaired:
        assert repair_store(tmp_path / "store").is_complete

    storage = store_in(tmp_path)

    assert [(one.version, one.configuration, one.content) for one in storage.list_definitions("small")] == [
        (one.version, one.configuration, one.content) for one in (new, old)
    ]
    assert storage.list_runs() == []
    assert shapes(definitions.prepare(config, storage, reuse=lambda question: True)) == shapes(made)


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_run_that_generates_its_definitions_plays_what_later_ones_load(tmp_path, path):
    storage, config = store_in(tmp_path), load_memory_config(path)

    generated = definitions.prepare(config, storage, reuse=lambda question: True)
    loaded = definitions.prepare(config, storage, reuse=lambda question: True)

    assert [one.example for one in generated] == [one.example for one in loaded]
    assert steps(generated, config) == steps(loaded, config)


@pytest.mark.parametrize("kind", TESTS)
def test_a_test_of_any_kind_seed_and_span_is_the_same_when_it_is_loaded(kind):
    dataset_class = MEMORY_TESTS.get(kind)
    for seed, span in product((0, 1, 7, 1_234), (4_000, 8_191, 32_000, 99_999, 1_000_003)):
        dataset = dataset_class(seed=seed, memory_span=span)
        for made in dataset.generate_examples(2):
            stored = decode(canonical_json(to_plain(made.definition())))
            loaded = dataset.load_example(made.example_id, stored)

            assert loaded == made, f"seed {seed}, span {span}"
            assert steps([definitions.Defined(kind, loaded)]) == steps([definitions.Defined(kind, made)])


@given(st.integers(2, 60), st.integers(500, 2_000_000))
def test_the_waits_of_any_script_over_any_span_come_back_to_the_token(lines, span):
    dataset = Cities(memory_span=span)
    made = TestExample(dataset=dataset, example_id="0", script=["x"] * lines)

    assert dataset.load_example("0", decode(canonical_json(made.definition()))) == made
    assert all(isinstance(wait.until_tokens, int) and not wait.until_share for wait in made.waits)
    assert made.waits[-2].until_tokens == pytest.approx(0.9 * span, abs=0.5)


def test_a_kind_that_forgets_its_definition_is_refused_before_anything_is_stored(tmp_path):
    class Forgetful(Orders):
        name = "Forgetful"

        def load_example(self, example_id, definition):
            return Order(dataset=self, example_id=example_id, material={"dish": "salad"})

    register_memory_test("test_forgetful")(Forgetful)
    forgetful = parsed(GOOD.replace("test_orders", "test_forgetful"))
    storage = store_in(tmp_path)

    with pytest.raises(ConfigurationError, match=r"'Forgetful - 0' is not the same .* Forgetful.load_example must"):
        definitions.prepare(forgetful, storage, reuse=lambda question: True)

    assert storage.list_runs() == []


def test_they_go_out_and_come_back_as_files(tmp_path):
    config = parsed(GOOD)
    made = definitions.generate(config)

    assert definitions.export_definitions(made, tmp_path) == 3
    loaded = definitions.load_folder(tmp_path, config)

    assert shapes(made) == shapes(loaded)
    stored = json.loads((tmp_path / "Cities" / "0.def.json").read_text())
    assert list(stored)[:7] == [
        "script", "is_question", "waits", "expected_responses", "can_be_interleaved", "is_temporal", "uses_callback",
    ]  # fmt: skip
    assert stored["waits"] == [
        {"percentage_finished": 30.0}, {"percentage_finished": 60.0}, {"percentage_finished": 90.0}, {},
    ]  # fmt: skip


def test_files_of_another_hand_are_read_and_broken_ones_named(tmp_path):
    folder = tmp_path / "Cities"
    folder.mkdir()
    script = {"script": ["I live in Bonn.", "Where do I live?"], "is_question": [False, True], "expected_responses": ["Bonn"],
              "waits": [{"tokens": 10, "time": 90, "percentage_finished": 0.0}, {}]}  # fmt: skip
    (folder / "0.def.json").write_text(json.dumps(script))
    one = parsed(GOOD.replace("dataset_examples: 2", "dataset_examples: 1").split("    - name: test_orders")[0])

    (loaded,) = definitions.load_folder(tmp_path, one)

    assert loaded.example.waits[0].tokens == 10
    assert loaded.example.waits[0].time.total_seconds() == 90
    (folder / "0.def.json").write_text("{")
    with pytest.raises(ConfigurationError, match=r"0.def.json cannot be read"):
        definitions.load_folder(tmp_path, one)


def test_two_processes_make_the_same_definitions(tmp_path):
    config = tmp_path / "c.yml"
    config.write_text(GOOD.replace("[[test_cities, test_orders]]", "[]"))
    code = (
        "import sys\n"
        "from tests.memory.small_tests import register_small_tests\n"
        "from themis.config import load_memory_config\n"
        "from themis.memory.definitions import generate, export_definitions\n"
        "from pathlib import Path\n"
        "register_small_tests()\n"
        "export_definitions(generate(load_memory_config(sys.argv[1])), Path(sys.argv[2]))\n"
    )
    for name, hashing in (("one", "1"), ("two", "2")):
        subprocess.run(
            [sys.executable, "-c", code, str(config), str(tmp_path / name)],
            cwd=ROOT,
            env={"PYTHONHASHSEED": hashing, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "PATH": ""},
            check=True,
        )

    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.json"))
    assert len(files) == 3
    assert all((tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes() for path in files)


def test_the_seed_decides_the_tests():
    config = parsed(GOOD)

    assert shapes(definitions.generate(config)) == shapes(definitions.generate(config))
    other = definitions.generate(replace(config, seed=5))
    assert [one.example.script for one in other] != [one.example.script for one in definitions.generate(config)]


def test_a_name_with_path_separators_stays_inside_the_folder(tmp_path):
    made = definitions.generate(parsed(GOOD))
    made[0].example.example_id = "../../escape"

    definitions.export_definitions(made, tmp_path / "out")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
