"""What is known of one kind of memory test: the fingerprint of its definitions, and replies as a person would judge them.

`phrasings/NAME.txt` begins with `definitions: HASH`. Each of its questions begins with `== NAME`, unless there is only one,
and says what the test expects (`expected: JSON`), which of several answers the replies give while the others are right
(`place: 0`), and which question was asked, where that matters (`question: TEXT`). Then comes one line a reply, in which
\\n breaks the line: `1 | REPLY` right, `0` wrong, a share, or `?` where words do not decide and the judge is asked. `#`
explains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.memory.tests.conversation import dataset
from themis.memory.actions import Grade

FOLDER = Path(__file__).parent / "phrasings"
_FACT = re.compile(r"(definitions|expected|place|question): (.*)")


@dataclass
class Phrasings:
    """The replies to one question, each with its verdict, and what the file says of the question."""

    name: str
    facts: dict[str, str] = field(default_factory=dict)
    replies: list[tuple[str, str]] = field(default_factory=list)

    def judge(self, reply: str) -> float | None:
        """The score that the test's own `evaluate` gives; None where the judge is asked."""
        expected = json.loads(self.facts["expected"])
        question = self.facts.get("question", "?")
        kind = dataset(self.name.partition("/")[0])
        if "place" not in self.facts:
            return score_of(kind.evaluate([question], [reply], expected))
        place = int(self.facts["place"])
        replies = [*expected[:place], reply, *expected[place + 1 :]]
        score = score_of(kind.evaluate([question] * len(expected), replies, expected))
        return None if score is None else score * len(expected) - (len(expected) - 1)


def read_phrasings(name: str) -> list[Phrasings]:
    """Every question of a kind of test."""
    return [one for one in _read(name) if one.replies]


def read_golden(name: str) -> str:
    """The fingerprint of the definitions of seed zero."""
    return next(_read(name)).facts["definitions"]


def _read(name: str) -> Iterator[Phrasings]:
    current = Phrasings(name)
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            yield current
            current = Phrasings(f"{name}/{line[3:]}")
        elif fact := _FACT.fullmatch(line):
            current.facts[fact[1]] = fact[2]
        elif not line.startswith("#"):
            verdict, _, reply = line.partition(" |")
            current.replies.append((verdict, reply.removeprefix(" ").replace("\\n", "\n")))
    yield current


def score_of(verdict: Grade | Callable) -> float | None:
    """The score, or None where the judge is asked."""
    if isinstance(verdict, Grade):
        return verdict.score
    try:
        next(verdict)
    except StopIteration as end:
        return end.value.score
    return None
