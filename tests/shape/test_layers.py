"""The direction of the house: each package imports only packages above it here; those on one line do not know each other."""

import ast
from collections.abc import Iterator

import pytest

from tests.shape.tree import PACKAGE, PROJECT, imports, module_name, parsed, python_files

LAYERS = [
    ["exceptions"],
    ["core"],
    ["interfaces"],
    ["generation", "evaluation", "storage"],
    ["config"],
    ["backends"],
    ["runs"],
    ["comparison", "presets"],
    ["experiment", "memory"],
    ["integrations"],
    ["api", "datasets", "providers"],
    ["experiments"],
    ["server"],
    ["cli", "testing"],
]
HEIGHT = {package: height for height, layer in enumerate(LAYERS) for package in layer}
# The version is the root's own; everything else there is a lazy name of a package.
OF_THE_ROOT = {"__version__"}
# Modules that know a neighbour on purpose, and which.
EXCEPTIONS = {
    "themis.experiment.comparison": "themis.comparison",  # only another name for it, which existing programs import
}


def layer_of(module: str) -> str:
    return [*module.split("."), ""][1]


def test_every_package_has_a_place():
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}

    assert found - {"__init__", "__main__", "py"} == set(HEIGHT)


def test_a_module_imports_only_what_stands_above_it():
    wrong = [
        f"{module_name(path)}, line {found.line}: {found.module}"
        for path in python_files()
        for found in imports(path)
        if found.module.split(".")[0] == "themis" and not may_import(module_name(path), found.module)
    ]

    assert wrong == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_the_pages_show_the_layers_as_they_are(page):
    line = " · ".join(layer[0] if len(layer) == 1 else f"[{' '.join(layer)}]" for layer in LAYERS)

    assert line in " ".join((PROJECT / page).read_text(encoding="utf-8").split())


def may_import(module: str, imported: str) -> bool:
    here, there = layer_of(module), layer_of(imported)
    if here in ("", "__main__"):
        return True  # the root names everything, lazily
    if there == "":
        return here == "cli"
    if EXCEPTIONS.get(module) == imported:
        return True
    return there in OF_THE_ROOT or there == here or HEIGHT.get(there, 99) < HEIGHT[here]


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("themis.core.codec", "themis.storage"),
        ("themis.storage.store", "themis.evaluation.pipeline"),
        ("themis.experiment.run", "themis"),
        ("themis.memory.driver", "themis.experiment.run"),
    ],
)
def test_an_import_of_a_neighbour_or_from_below_is_seen(module, imported):
    assert not may_import(module, imported)


def own_imports(body: list[ast.stmt]) -> Iterator[str]:
    """Modules of ours that statements import when they run; what is only for types does not run."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "themis":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [getattr(node, name, []) for name in ("body", "orelse", "finalbody", "handlers")]
            yield from own_imports([child for part in parts for child in part if isinstance(child, ast.AST)])


MODULES = {module_name(path): path for path in python_files()}


def test_no_function_imports_a_module_of_ours():
    late = [
        f"{name}, line {function.lineno}"
        for name, path in MODULES.items()
        for function in ast.walk(parsed(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and list(own_imports(function.body))
    ]

    assert late == []


def test_no_modules_import_each_other_in_a_circle():
    edges = {name: set(own_imports(parsed(path).body)) for name, path in MODULES.items()}
    left = dict(edges)
    while leaves := [name for name, wanted in left.items() if not wanted & left.keys() - {name}]:
        for name in leaves:
            del left[name]

    assert sorted(left) == []
