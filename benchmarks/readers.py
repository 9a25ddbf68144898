"""How many labelled replies are read as a careful person reads them, beside other projects' rules on the same replies.

    python benchmarks/readers.py [family ...] [--misread N]

Prints a Markdown table a family. Ends with status 1 if a family is below its bar, or if another reader is above ours.
`--misread N` shows the first N replies of each family that ours reads otherwise than their labels.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.evaluation.replies import BARS, FAMILIES, Line, Misread, Reader, load, misread

OURS = "themis"
# A reply that gives the answer and explains it afterwards: read apart, because readers of the last mention fail there.
ANSWER_FIRST = "answer-first"


@dataclass(frozen=True)
class Part:
    """Replies that are counted together."""

    name: str
    lines: Sequence[Line]


@dataclass(frozen=True)
class Cell:
    """How one reader did on one part."""

    lines: int
    wrong: Sequence[Misread]

    @property
    def share(self) -> float:
        return 1 - len(self.wrong) / self.lines

    def __str__(self) -> str:
        return f"{100 * self.share:.1f} %"


def main() -> int:
    parser = argparse.ArgumentParser(description="Accuracy of the readers on labelled replies.")
    parser.add_argument("families", nargs="*", default=FAMILIES, metavar="family", help="one of " + ", ".join(FAMILIES))
    parser.add_argument("--misread", type=int, default=0, metavar="N", help="show the first N that ours misreads")
    asked = parser.parse_args()
    unknown = sorted(set(asked.families) - set(FAMILIES))
    if unknown:
        parser.error(f"{', '.join(unknown)} is no family; there are {', '.join(FAMILIES)}")
    complaints = [said for family in asked.families for said in report(family, asked.misread)]
    print("\n".join(complaints) if complaints else "Every bar holds, and no other reader is above ours.")
    return 1 if complaints else 0


def report(family: str, shown: int) -> list[str]:
    """Print the table of one family.

    Returns:
        What does not hold, one sentence each.
    """
    parts = parts_of(family)
    readers = readers_of(family)
    print(f"### {family}\n")
    if readers is None:
        print(f"There is no module benchmarks/reference_readers/{family}.py yet.\n")
        return [f"{family}: has no readers."]
    if not parts:
        print("There are no labelled replies yet.\n")
        return [f"{family}: has no replies."]
    print("| reader | " + " | ".join(f"{part.name} ({len(part.lines):,})" for part in parts) + " |")
    print("|---" * (len(parts) + 1) + "|")
    cells = {}
    for name, reader in readers.items():
        cells[name] = [Cell(len(part.lines), misread(family, part.lines, reader)) for part in parts]
        print(f"| {name} | " + " | ".join(map(str, cells[name])) + " |", flush=True)
    print()
    for one in list({id(one.line): one for cell in cells[OURS] for one in cell.wrong}.values())[:shown]:
        print(one)
    return complain(family, parts, cells)


def complain(family: str, parts: Sequence[Part], cells: dict[str, list[Cell]]) -> list[str]:
    """What does not hold, one sentence each."""
    said = []
    for place, part in enumerate(parts):
        ours = cells[OURS][place]
        if ours.share < BARS[family]:
            said.append(f"{family}, {part.name}: {ours}, the bar is {100 * BARS[family]:.0f} %.")
        said += [
            f"{family}, {part.name}: {name} reads {theirs[place]}, ours {ours}."
            for name, theirs in cells.items()
            if name != OURS and theirs[place].share >= ours.share
        ]
    return said


def parts_of(family: str) -> list[Part]:
    """The parts of a family that are counted apart and have replies."""
    ours, held_out = load(family), load(family, held_out=True)
    parts = [
        Part("in-sample, before", [line for line in ours if line["written"] == "before"]),
        Part("in-sample, after", [line for line in ours if line["written"] == "after"]),
        Part("held-out", held_out),
    ]
    if family == "choice":
        for name, lines in (("in-sample", ours), ("held-out", held_out)):
            first = [line for line in lines if line["style"].startswith(ANSWER_FIRST)]
            parts.append(Part(f"{ANSWER_FIRST}, {name}", first))
    return [part for part in parts if part.lines]


def readers_of(family: str) -> dict[str, Reader] | None:
    """The readers of a family, ours first; none where their module does not exist."""
    name = f"benchmarks.reference_readers.{family}"
    try:
        readers: dict[str, Reader] = importlib.import_module(name).READERS
    except ModuleNotFoundError as missing:
        if missing.name not in (name, "benchmarks.reference_readers"):
            raise
        return None
    return {OURS: readers[OURS], **{name: reader for name, reader in readers.items() if name != OURS}}


if __name__ == "__main__":
    sys.exit(main())
