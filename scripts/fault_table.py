"""Writes the tables of docs/guides/when-things-fail.md from the tests that are marked `fault`: `make docs`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guides" / "when-things-fail.md"
BEGIN, END = "<!-- from the tests: make docs -->", "<!-- end -->"
HEAD = "| What goes wrong | What Themis does | Status | Exit code |\n|---|---|---|---|\n"


def render() -> str:
    """The whole page, with its tables made anew."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    rows: dict[str, list[str]] = {}
    for row in read_faults():
        code = "–" if row["exit_code"] is None else str(row["exit_code"])
        line = f"| {row['wrong']} | {row['does']} | {row['status']} | {code} |"
        rows.setdefault(str(row["area"]), []).append(line)
    tables = [f"### {area}\n\n{HEAD}" + "\n".join(lines) + "\n" for area, lines in sorted(rows.items())]
    return f"{before}{BEGIN}\n\n" + "\n".join(tables) + f"\n{END}{after}"


def read_faults() -> Iterator[dict[str, object]]:
    """What the markers say, in the order of files and lines, without importing a test."""
    for path in sorted((ROOT / "tests" / "faults").glob("test_*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for decorator in function.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.fault":
                    row = {keyword.arg: ast.literal_eval(keyword.value) for keyword in decorator.keywords}
                    yield {**row, "test": function.name, "uses": _fields_asserted(function)}


def _fields_asserted(function: ast.FunctionDef) -> set[str]:
    """Which fields of the fixture `fault` the test's assertions mention."""
    return {
        node.attr
        for statement in ast.walk(function)
        if isinstance(statement, ast.Assert)
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "fault"
    }


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
