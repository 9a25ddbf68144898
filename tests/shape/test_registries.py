"""Everything that can be looked up by name can be loaded, and has its place in docs/."""

import ast
import importlib
import json
import re
import subprocess
import sys
from functools import cache

import pytest

from tests.shape.tree import PROJECT, module_name, parsed, python_files
from themis.cli import COMMANDS
from themis.core.registry import Registry
from themis.exceptions import DependencyError


@cache
def places() -> dict[str, tuple[str, str]]:
    """kind -> (module, name) of every registry that a module of ours makes, found without importing it."""
    found = {}
    for path in python_files():
        # Every worker does this before its first test: only those are parsed that may have one.
        makes_one = "Registry(" in path.read_text(encoding="utf-8")
        for node in parsed(path).body if makes_one else ():
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


# kind -> the pages of docs/ that describe each of its names under a heading or in a row of a table.
PAGES = {
    "aggregation": ["reference/metrics.md"],
    "agent": ["guides/memory-agents.md"],
    "benchmark": ["reference/benchmarks.md"],
    "dataset": ["reference/benchmarks.md"],
    "execution backend": ["guides/evaluate.md"],
    "extractor": ["reference/extractors.md"],
    "family of benchmarks": ["guides/lm-eval.md"],
    "filler": ["guides/memory-benchmark.md"],
    "generator": ["reference/memory-tests.md"],
    "kind of run": ["concepts.md"],
    "memory test": ["reference/memory-tests.md", "guides/memory-results.md"],
    "metric": ["reference/metrics.md"],
    "provider": ["guides/providers.md"],
    "scene": ["guides/subjects.md"],
    "tokenizer": ["guides/memory-benchmark.md"],
    "tool": ["guides/tools.md"],
    "tracker": ["guides/trackers.md"],
    "view": ["guides/where-people-work.md"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_has_a_heading_or_a_row_of_a_table_in_the_documentation(kind):
    described = set().union(*(described_names(read_page(page)) for page in PAGES[kind]))

    assert [name for name in names_by_kind()[kind] if name not in described] == []


def test_every_command_has_a_heading_in_the_reference():
    headings = set(re.findall(r"^#+ themis (.+)$", read_page("reference/cli.md"), re.MULTILINE))

    assert set(COMMANDS) - headings == set()


def test_a_word_in_a_sentence_describes_nothing():
    page = "# alpha, `beta`\n\nAnd gamma.\n\n| [delta](#x) | epsilon |\n|---|---|\n| `zeta(N)`, `eta: theta` | iota |\n"

    assert described_names(page) == {"alpha", "beta", "delta", "zeta", "eta", "theta", "---"}


def read_page(name: str) -> str:
    return (PROJECT / "docs" / name).read_text(encoding="utf-8")


def described_names(page: str) -> set[str]:
    """What headings and the first cells of tables name, without marks and parameters."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE) + re.findall(r"^\| *([^|]*?) *\|", text, re.MULTILINE)
    found = set()
    for title in titles:
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        found |= {re.sub(r"\(.*", "", part).strip() for part in re.split(r", | to | and |: ", plain)}
    return found
