"""Modules say what they are, are small, and list what they offer."""

import ast
import importlib
import re
import subprocess

from tests.shape.tree import PROJECT, module_name, modules, parsed, python_files

SAYING_NOTHING = {"utils", "util", "helpers", "helper", "common", "base", "misc"}
MOST_LINES = 700


def test_no_module_has_a_name_that_says_nothing():
    assert [name for name in modules() if SAYING_NOTHING & set(name.split("."))] == []


def test_a_module_fits_into_a_head():
    long = {module_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}

    assert {name: lines for name, lines in long.items() if lines > MOST_LINES} == {}


def test_a_module_opens_by_saying_what_it_is():
    assert [module_name(path) for path in python_files() if not ast.get_docstring(parsed(path))] == []


def test_every_name_that_a_module_offers_exists():
    found = {name: importlib.import_module(name) for name in modules()}
    missing = [
        f"{name}.{offered}"
        for name, module in found.items()
        for offered in getattr(module, "__all__", ())
        if not hasattr(module, offered)
    ]

    assert missing == []


def test_a_module_offers_every_function_and_class_that_is_not_private():
    hidden = [
        f"{module_name(path)}.{node.name}"
        for path in python_files()
        if (offered := _declared(parsed(path))) is not None
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and node.name not in offered
        and not _is_registered(node)
    ]

    assert hidden == [], "put these into __all__, or an underscore before them"


def _declared(tree: ast.Module) -> set[str] | None:
    """The names in `__all__`, or None where there is none or it is computed."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            try:
                return set(ast.literal_eval(node.value))
            except ValueError:
                return None
    return None


# Decorators by which something else offers the function: a group of commands, a router of pages.
REGISTERING = {
    "command",
    "group",
    "get",
    "post",
    "put",
    "patch",
    "delete",
    "websocket",
    "exception_handler",
    "middleware",
}


def _is_registered(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    calls = [decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list]
    return any(isinstance(call, ast.Attribute) and call.attr in REGISTERING for call in calls)


# --- nothing of one machine -------------------------------------------------------------------------------------------

# Homes and mounts of some machine, and addresses of package registries: they mean nothing elsewhere.
PLACES = re.compile(r"(?<![\w.$}~-])/(?:root|work|opt|home/[a-z])(?:/|\b)")
REGISTRIES = re.compile(
    r"\b(?:pypi\.org|files\.pythonhosted\.org|registry\.npmjs\.org|[\w-]+\.pkg\.dev|artifactory|nexus)\b"
)


def test_nothing_in_the_tree_names_a_place_on_one_machine_or_a_registry():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    found = []
    for name in filter(None, listed.split("\0")):
        path = PROJECT / name
        if not path.is_file() or path == PROJECT / "tests/shape/test_names.py":
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if PLACES.search(line) or REGISTRIES.search(line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")

    assert found == []
