"""CONTRIBUTING is true: in a copy of the project everything that it adds is added as it says, and works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.shape.tree import PROJECT

SECTIONS = {"metric", "provider", "memory test", "page of the server", "command", "tracker", "export format"}
MOST_FILES = 3
# Where a block goes, as the line before it says: a new file, the end of one, or behind a line.
BLOCK = re.compile(
    r"^(?P<how>At the end of |In )?`(?P<file>[\w./-]+)`(?:, behind the line `(?P<anchor>.+?)`(?P<below> and the one below it)?)?"
    r":\n\n```\w+\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A part of a file that a section shows."""

    section: str
    file: str
    text: str
    at_end: bool
    anchor: str | None
    lines_below: int

    def apply(self, root: Path) -> None:
        path = root / self.file
        if self.anchor is not None:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            place = next(number for number, line in enumerate(lines) if self.anchor in line)
            lines.insert(place + 1 + self.lines_below, self.text)
            path.write_text("".join(lines), encoding="utf-8")
        elif self.at_end:
            path.write_text(path.read_text(encoding="utf-8") + self.text, encoding="utf-8")
        else:
            assert not path.exists()
            path.write_text(self.text, encoding="utf-8")


def read_blocks() -> list[Block]:
    text = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    sections = (section.partition("\n") for section in re.split(r"^### An? ", text, flags=re.MULTILINE)[1:])
    return [
        Block(
            section=name,
            file=match["file"],
            text=match["text"],
            at_end=match["how"] == "At the end of ",
            anchor=match["anchor"] and match["anchor"].replace("\\`", "`"),
            lines_below=1 if match["below"] else 0,
        )
        for name, _, body in sections
        for match in BLOCK.finditer(re.split(r"^## ", body, flags=re.MULTILINE)[0])
    ]


BLOCKS = read_blocks()


def test_each_thing_takes_three_files_and_one_of_them_is_its_test():
    files = {section: {block.file for block in BLOCKS if block.section == section} for section in SECTIONS}
    # Fifty replies to it are too many to show; `tests/memory/tests` has its tests.
    files["memory test"].add("tests/memory/tests/phrasings/favourite_tea.txt")

    assert {section for section, named in files.items() if not 2 <= len(named) <= MOST_FILES} == set()
    assert all(sum(name.startswith("tests/") for name in named) == 1 for named in files.values())


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The project with everything added."""
    root = tmp_path_factory.mktemp("project")
    for folder in ("themis", "docs", "scripts", "tests"):
        shutil.copytree(PROJECT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "*.png"))
    shutil.copyfile(PROJECT / "pyproject.toml", root / "pyproject.toml")
    for block in BLOCKS:
        block.apply(root)
    run(root, "scripts/cli_reference.py")
    return root


def run(root: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, *words], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return done.stdout


# Without following imports, which would take a minute, what they bring is of any type.
_LENIENT = ("--follow-imports=skip", "--allow-subclassing-any", "--allow-untyped-decorators")


def test_what_is_added_passes_the_checks(copy):
    files = sorted({block.file for block in BLOCKS if block.file.endswith(".py")})
    new = [name for name in files if name.startswith("themis/") and not (PROJECT / name).exists()]

    run(copy, "-m", "ruff", "check", "--no-cache", *files)
    run(copy, "-m", "ruff", "format", "--no-cache", "--check", *files)
    run(copy, "-m", "mypy", "--cache-dir=/dev/null", *_LENIENT, *new)


DOCUMENTED = (
    "tests/shape/test_registries.py::test_every_name_has_a_heading_or_a_row_of_a_table_in_the_documentation",
    "tests/shape/test_registries.py::test_every_command_has_a_heading_in_the_reference",
    "tests/memory/tests/test_memory_tests_page.py::test_the_page_lists_exactly_the_tests_there_are",
)


def test_what_is_added_works_and_is_documented(copy):
    tests = sorted({block.file for block in BLOCKS if block.file.startswith("tests/")})

    run(copy, "-m", "pytest", "-n0", *tests, *DOCUMENTED)
