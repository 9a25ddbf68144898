"""One registry for every kind: built-ins by the users' door, loaded when used, suggestions for what is unknown."""

import os
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.registry import Registry, add_own_files, nearest, snake_case
from themis.exceptions import ConfigurationError, DependencyError, ProviderError


def animals(**builtin: str) -> Registry:
    return Registry("animal", {"cat": "cats:Cat", **builtin})


def test_a_built_in_is_imported_when_it_is_used_and_not_before(tmp_path, monkeypatch):
    (tmp_path / "lazy_cats.py").write_text("class House:\n    class Cat: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry("animal", {"cat": "lazy_cats:House.Cat"})

    assert registry.names() == ["cat"]
    assert registry.target("cat") == "lazy_cats:House.Cat"
    assert "lazy_cats" not in sys.modules

    found = registry.get("cat")

    assert found is sys.modules["lazy_cats"].House.Cat
    assert registry.get("cat") is found
    monkeypatch.delitem(sys.modules, "lazy_cats")


def test_the_last_registration_wins():
    registry: Registry[object] = animals()
    registry.register("cat", "first")
    registry.register("dog", one := object())
    registry.register("dog", other := object())

    assert registry.get("dog") is other is not one
    assert registry.names() == ["cat", "dog"]
    assert registry.is_of_this_program("dog")


def test_names_are_found_whatever_their_case():
    registry: Registry[object] = Registry("metric", {})
    registry.register("exact_match", exact := object())
    registry.register("rougeL", rouge := object())

    assert registry.get("ExactMatch") is registry.get("EXACT_MATCH") is registry.get("exact-match") is exact
    assert registry.get("ROUGEL") is rouge
    assert "ExactMatch" in registry
    assert 3 not in registry
    assert list(registry) == ["exact_match", "rougeL"]


def test_an_unknown_name_is_refused_with_the_nearest_and_all_that_are_known():
    with pytest.raises(ConfigurationError, match=r"unknown animal 'caat' \(did you mean 'cat'\?\); known: cat$"):
        animals().get("caat")
    with pytest.raises(ConfigurationError, match=r"unknown animal 'zebra'; known: cat$"):
        animals().get("zebra")


def test_a_kind_may_have_an_error_of_its_own():
    with pytest.raises(ProviderError, match="unknown provider 'x'; known: none"):
        Registry("provider", error=ProviderError).get("x")


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_name_is_text(name):
    with pytest.raises(ConfigurationError, match="non-empty string"):
        animals().register(name, object())


@pytest.mark.parametrize("target", ["no_such_module:Cat", "math:NoSuchThing", "math"])
def test_a_target_that_cannot_be_loaded_says_where_it_points(target):
    with pytest.raises(ConfigurationError, match=f"animal 'broken' points to '{target}'"):
        animals(broken=target).get("broken")


def test_a_missing_extra_keeps_its_own_message(tmp_path, monkeypatch):
    (tmp_path / "needs_extra.py").write_text(
        "from themis.exceptions import DependencyError\n"
        "raise DependencyError.for_extra('zoo', 'animals', 'this animal')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(
        DependencyError, match=r"this animal needs the package zoo: pip install 'themis-eval\[animals\]'"
    ):
        animals(lion="needs_extra:Lion").get("lion")


def test_another_package_enters_by_its_entry_points(tmp_path):
    """In a process of its own, because the entry points of an environment are read once."""
    (tmp_path / "zoo.py").write_text("class Lion: pass\nclass Cat: pass\nclass Long: pass\n")
    metadata = tmp_path / "zoo-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: zoo\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[themis]\nanimal.lion = zoo:Lion\nanimal.cat = zoo:Cat\nmemory-test.long = zoo:Long\nbare = zoo:Lion\n"
    )
    program = textwrap.dedent(
        """
        from themis.core.registry import Registry, add_own_files

        animals = Registry("animal", {"cat": "cats:Cat"})
        print(animals.names(), animals.get("Lion").__module__, animals.target("cat"))
        animals.register("lion", "mine")
        print(animals.target("lion"), Registry("memory test").names(), Registry("provider").names())
        """
    )

    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert answer.splitlines() == ["['cat', 'lion'] zoo cats:Cat", "mine ['long'] []"]


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("ExactMatch", "exact_match"),
        ("rougeL", "rouge_l"),
        ("F1Score", "f1_score"),
        ("JSONSchemaValid", "json_schema_valid"),
        ("math-verify", "math_verify"),
        ("already_snake", "already_snake"),
    ],
)
def test_names_in_snake_case(name, snake):
    assert snake_case(name) == snake


@given(st.text())
def test_snake_case_changes_nothing_the_second_time(name):
    once = snake_case(name)

    assert snake_case(once) == once


def test_the_nearest_name_is_a_question_or_nothing():
    assert nearest("exact_mach", ["exact_match", "bleu"]) == " (did you mean 'exact_match'?)"
    assert nearest("BLUE", ["exact_match", "bleu"]) == " (did you mean 'bleu'?)"
    assert nearest("zzz", ["exact_match", "bleu"]) == ""
    assert nearest("x", []) == ""


def test_a_file_called_after_its_class_is_found_without_a_table(tmp_path, monkeypatch):
    package = tmp_path / "some_animals"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "grey_wolf.py").write_text("class Fur:\n    pass\n\n\nclass GreyWolf:\n    pass\n")
    (package / "sounds.py").write_text("class Bark:\n    pass\n")
    (package / "fox.py").write_text("raise SystemExit\n\n\nclass Fox:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    table = {"red_fox": "some_animals.fox:Fox"}
    registry: Registry[type] = Registry("animal", lambda: add_own_files(table, "some_animals"))

    assert registry.names() == ["grey_wolf", "red_fox"]
    assert registry.get("GreyWolf").__name__ == "GreyWolf"
