"""Everything that can be looked up by name can be loaded, and is described in docs/."""

import ast
import importlib
import json
import re
import subprocess
import sys
from functools import cache

import pytest

from tests.shape.tree import PROJECT, module_name, parsed, python_files
from themis.core.registry import Registry
from themis.exceptions import DependencyError


@cache
def places() -> dict[str, tuple[str, str]]:
    """kind -> (module, name) of every registry that a module of ours makes, found without importing it."""
    found = {}
    for path in python_files():
        for node in parsed(path).body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            value = getattr(node, "value", None)
            if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "Registry":
                found[value.args[0].value] = (module_name(path), target.id)
    return found


KINDS = sorted(places())


def registry_of(kind: str) -> Registry:
    module, name = places()[kind]
    return getattr(importlib.import_module(module), name)


_PRINT_NAMES = """
import importlib, json, sys
print(json.dumps([getattr(importlib.import_module(module), name).names() for module, name in json.loads(sys.argv[1])]))
"""


@cache
def names_by_kind() -> dict[str, list[str]]:
    """The names that the package itself brings: asked of a new process, since other tests of this one register their own."""
    asked = json.dumps([places()[kind] for kind in KINDS])
    printed = subprocess.run([sys.executable, "-c", _PRINT_NAMES, asked], stdout=subprocess.PIPE, text=True, check=True)
    return dict(zip(KINDS, json.loads(printed.stdout), strict=True))


def test_there_are_registries():
    assert {"metric", "extractor", "provider", "benchmark", "tokenizer", "execution backend"} <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_target_resolves(kind):
    registry = registry_of(kind)
    assert kind == "dataset" or names_by_kind()[kind]

    assert {name: why for name in names_by_kind()[kind] if (why := _problem(registry, name))} == {}


def _problem(registry: Registry, name: str) -> str | None:
    """Why a name cannot be had; a missing extra that is named with its pip command is none."""
    try:
        registry.get(name)
    except DependencyError as missing:
        return None if "pip install 'themis-eval[" in str(missing) else str(missing)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_is_in_the_documentation(kind):
    words = {word.replace("-", "_") for word in re.findall(r"[\w.@+-]+", _documentation())}

    assert [name for name in names_by_kind()[kind] if name.replace("-", "_") not in words] == []


@cache
def _documentation() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((PROJECT / "docs").rglob("*.md")))
