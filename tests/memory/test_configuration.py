"""Configurations: what they mean, and errors that name the place and the nearest valid name."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import yaml

from themis.config import HuggingFaceHubConfig, load_memory_config, parse_memory_config, shipped_configurations
from themis.exceptions import ConfigurationError
from themis.memory import definitions
from themis.memory.examples import MEMORY_TESTS

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("registered")

GOOD = """
config:
  run_name: small
  incompatibilities: [[test_cities, test_orders]]
datasets:
  args: {memory_span: 600, dataset_examples: 2}
  datasets:
    - name: test_cities
      args: {moves: 3}
    - name: test_orders
      args: {dataset_examples: 1, seed: 9}
"""


def parsed(text: str):
    return parse_memory_config(yaml.safe_load(text), source="x.yml")


def test_shared_arguments_reach_every_test_and_its_own_win():
    config = parsed(GOOD)

    cities, orders = definitions.generate(config)[0], definitions.generate(config)[-1]
    assert [one.example.test_id for one in definitions.generate(config)] == ["Cities - 0", "Cities - 1", "Orders - 0"]
    assert (cities.example.dataset.memory_span, cities.example.dataset.moves, cities.example.dataset.seed) == (
        600,
        3,
        0,
    )
    assert orders.example.dataset.seed == 9
    conflicts = definitions.conflicts_of(definitions.generate(config), config.incompatibilities)
    assert conflicts == {"test_cities": {"test_cities", "test_orders"}, "test_orders": {"test_cities", "test_orders"}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("run_name: small", "run_nam: small"), r"config\.run_nam is not known \(did you mean 'run_name'"),
        (("run_name: small", "debug: yes"), r"config\.run_name is missing"),
        (("run_name: small", "run_name: 3"), r"config\.run_name must be a text, got 3"),
        (("memory_span: 600, ", ""), r"datasets\.args\.memory_span is missing \(datasets\.datasets\[0\] needs it\)"),
        (("run_name: small", "run_name: '  '"), r"config\.run_name must not be empty"),
        (("run_name: small", "run_name: small\n  max_message_tokens: 3"), r"max_message_tokens must be at least 60, got 3"),
        (("memory_span: 600", "memory_span: 0"), r"datasets\.args\.memory_span must be at least 1, got 0"),
        (("memory_span: 600", "memory_spam: 600"), r"datasets\.args\.memory_spam is not known, did you mean 'memory_span'"),
        (("memory_span: 600", "memory_span: true"), r"datasets\.args\.memory_span must be a whole number, got True"),
        (("memory_span: 600", "filler_tokens: 9"), r"filler_tokens belongs to older configurations; give memory_span"),
        (("- name: test_orders", "- nmae: test_orders"), r"datasets\.datasets\[1\]\.nmae is not known \(did you mean 'name'"),
        (("args: {moves: 3}", "args: 3"), r"datasets\.datasets\[0\]\.args must be a mapping, got 3"),
        (("[[test_cities, test_orders]]", "[test_cities]"), r"config\.incompatibilities\[0\] must be a list"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_named_with_its_place(change, message):
    with pytest.raises(ConfigurationError, match=f"x.yml: .*{message}"):
        parsed(GOOD.replace(*change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("name: test_cities", "name: test_citys"), r"unknown memory test 'test_citys' \(did you mean 'test_cities'"),
        (("moves: 3", "move: 3"), r"datasets\.datasets\[0\]\.args\.move is not an argument of Cities \(did you mean 'moves'"),
        (("moves: 3", "moves: many"), r"datasets\.datasets\[0\]\.args\.moves must be like its default 2, got 'many'"),
        (("memory_span: 600", "memory_span: 12"), r"'Cities - 0' has \d+ tokens of its own and does not fit into its span"),
        (("dataset_examples: 2", "dataset_examples: 2, colour: 1"), r"datasets\.args\.colour is not an argument"),
    ],
)  # fmt: skip
def test_a_mistake_about_the_tests_is_named_with_its_place(change, message):
    with pytest.raises(ConfigurationError, match=message):
        definitions.generate(parsed(GOOD.replace(*change)))


def test_incompatibilities_must_name_tests():
    config = parsed(GOOD.replace("[[test_cities, test_orders]]", "[[test_cities, test_order]]"))

    with pytest.raises(ConfigurationError, match="did you mean 'test_orders'"):
        definitions.conflicts_of(definitions.generate(config), config.incompatibilities)


def test_files_that_are_missing_or_broken_are_named(tmp_path):
    (tmp_path / "benchmark-1k.yml").write_text("config: [")
    with pytest.raises(ConfigurationError, match="is not YAML"):
        load_memory_config(tmp_path / "benchmark-1k.yml")
    with pytest.raises(ConfigurationError, match=r"did you mean '.*benchmark-1k.yml'"):
        load_memory_config(tmp_path / "benchmark-2k.yml")

    (tmp_path / "twice.yml").write_text("config: {run_name: a, run_name: b}\ndatasets: {}\n")
    with pytest.raises(ConfigurationError, match="the key 'run_name' stands twice"):
        load_memory_config(tmp_path / "twice.yml")


def test_a_kind_may_stand_twice_with_other_arguments():
    config = parsed(GOOD.replace("name: test_orders\n      args: {dataset_examples: 1, seed: 9}", "name: test_cities"))

    ids = [one.example.test_id for one in definitions.generate(config)]

    assert ids == ["Cities - 0", "Cities - 1", "Cities - 0b", "Cities - 1b"]


@pytest.mark.parametrize("name", shipped_configurations())
def test_every_shipped_configuration_makes_its_tests(name):
    config = load_memory_config(name)

    defined = definitions.generate(config)

    assert len(defined) == sum(test.examples for test in config.tests)
    assert all(name in MEMORY_TESTS for group in config.incompatibilities for name in group)


def test_a_shipped_configuration_is_known_by_its_name_anywhere_and_a_file_of_that_name_wins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_memory_config("benchmark-32k").run_name == "benchmark 32k"
    assert load_memory_config("quick").filler == "mixed"

    (tmp_path / "quick").write_text(GOOD)
    assert load_memory_config("quick").run_name == "small"


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("quik", "quick"), ("benchmark-32", "benchmark-32k"), ("benchmark-8k.yml", "benchmark-8k"), ("nowhere/quick.yml", "quick")],
)  # fmt: skip
def test_a_configuration_that_is_not_there_is_an_error_that_names_the_nearest(tmp_path, monkeypatch, wrong, nearest):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigurationError, match=rf"there is no configuration '{wrong}' \(did you mean '{nearest}'"):
        load_memory_config(wrong)


def test_a_clone_has_the_shipped_configurations_where_the_benchmark_has_them():
    clone = {path.relative_to(ROOT / "configurations").with_suffix("").as_posix() for path in _files("configurations")}

    assert clone == set(shipped_configurations())
    assert "blogpost_tests/benchmark-1k" in clone


def test_the_wheel_holds_the_configurations_and_the_grammars_of_filler(tmp_path):
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))

    wheel = next(builder.build(directory=str(tmp_path), versions=["standard"]))

    held = set(zipfile.ZipFile(wheel).namelist())
    assert {f"themis/config/configurations/{name}.yml" for name in shipped_configurations()} <= held
    assert {path.relative_to(ROOT).as_posix() for path in _files("themis/memory/filler/grammars")} <= held
    assert "themis/runs/prices.json" in held


def _files(folder: str) -> list[Path]:
    found = [path for path in (ROOT / folder).resolve().rglob("*.*") if path.suffix in (".yml", ".txt")]
    return [ROOT / folder / path.relative_to((ROOT / folder).resolve()) for path in found]


def test_the_hub_is_off_unless_enabled():
    assert HuggingFaceHubConfig() == HuggingFaceHubConfig(enable=False, repository=None)
