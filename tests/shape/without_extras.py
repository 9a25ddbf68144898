"""A process in which only the base dependencies are installed, as far as anybody can tell.

Reads {"hidden": packages, "modules": names, "commands": argument lists} from stdin; prints what came of it as JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
from typing import Any


class Hiding:
    """A finder that does not find what is hidden."""

    def __init__(self, finder: Any, hidden: set[str]) -> None:
        self.finder = finder
        self.hidden = hidden

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return None if name.partition(".")[0] in self.hidden else self.finder.find_spec(name, path, target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finder, name)


def main() -> None:
    asked = json.load(sys.stdin)
    hidden = set(asked["hidden"])
    for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
        del sys.modules[name]
    sys.meta_path[:] = [Hiding(finder, hidden) for finder in sys.meta_path]
    answer = {
        "commands": [run_command(arguments) for arguments in asked["commands"]],
        "modules": {name: problem for name in asked["modules"] if (problem := problem_of(name))},
    }
    answer["registries"] = unresolved()
    json.dump(answer, sys.stdout)


def run_command(arguments: list[str]) -> dict[str, Any]:
    from themis.cli import main as themis

    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            themis(arguments)
        except SystemExit as leaving:
            code = leaving.code
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def problem_of(module: str) -> str | None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        return f"{type(error).__name__}: {error}"
    return None


def unresolved() -> dict[str, str]:
    """`kind name` -> why it cannot be had."""
    from themis.core.registry import Registry

    found = {}
    for module in [module for name, module in list(sys.modules.items()) if name.startswith("themis")]:
        for registry in [value for value in vars(module).values() if isinstance(value, Registry)]:
            for name in registry.names():
                try:
                    registry.get(name)
                except Exception as error:
                    found[f"{registry.kind} {name}"] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    main()
