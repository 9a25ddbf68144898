"""The tree as data: where it is, which modules it has, what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "themis"


@dataclass(frozen=True)
class Import:
    module: str
    line: int


def python_files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def module_name(path: Path) -> str:
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> list[str]:
    """Every module that can be imported; `__main__` would run."""
    return [module_name(path) for path in python_files() if path.stem != "__main__"]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> Iterator[Import]:
    """All of them: at the top, inside functions, under TYPE_CHECKING, and `import_module` of a text."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            # `from themis import core` is an import of themis.core.
            names = [f"themis.{alias.name}" for alias in node.names] if origin == "themis" else [origin]
            yield from (Import(name, node.lineno) for name in names)
        elif isinstance(node, ast.Call) and _name(node.func) == "import_module":
            yield from (
                Import(str(text.value), node.lineno) for text in node.args[:1] if isinstance(text, ast.Constant)
            )


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))
