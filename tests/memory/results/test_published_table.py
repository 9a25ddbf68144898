"""The table of published results tells which rule explains a difference, and does not explain what is our own mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.published_results import UNEXPLAINED, explain, read_pairs, report
from tests.memory.results.published import Published, write_benchmark
from themis.core.bounded_reading import ReadLimits
from themis.storage import ExperimentStorage

COLOURS = ["The name of my favourite colour is Ochre.", "My favourite colour could be described as Red."]
ITEMS = [["leek", 2], ["soap", 1]]
LIST = '[{"item": "Leek", "quantity": 2}, {"item": "Soap", "quantity": 1}]'
HINTS = ["Three people will write.", "Bring what opens locked doors.", "Come when the sun is high."]
JOKE = "My ladder left me because I kept taking it for granted one step at a time."
KEYWORDS = [["pick"], ["noon"]]


@pytest.mark.parametrize(
    ("test", "rule"),
    [
        (
            Published("Colours", COLOURS, [("Colour?", "You shared nothing.")], ["Red"], 1),
            "letters inside another word",
        ),
        (Published("Colours", COLOURS, [("Colour?", "Ochre or red.")], ["Red"], 1), "one of several colours"),
        (Published("Colours", COLOURS, [("Colour?", "Red.")], ["Red"], 0), "the original's own rule"),
        (Published("Shopping", ["a"], [("List? JSON", "[]")], ITEMS, 1 / 3), "an empty list a third"),
        (Published("Shopping", ["a"], [("List? JSON", LIST.replace('"', "'"))], ITEMS, 0), "cannot read this JSON"),
        (
            Published("Spy Meeting", HINTS, [("When?", "Lockpicks, at noon.")], KEYWORDS, 0.5),
            "only as they are written",
        ),
        (Published("Spy Meeting", HINTS, [("When?", "A pick, at noon.")], KEYWORDS, 0.5), "takes a point off"),
        (Published("Jokes", [JOKE], [("Which?", JOKE)], [JOKE], 0, temporal=True), UNEXPLAINED),
    ],
)
def test_a_difference_is_put_under_its_rule(tmp_path: Path, test: Published, rule: str) -> None:
    folder = write_benchmark(tmp_path / "old", [test])
    (pair,) = read_pairs(folder, ExperimentStorage(tmp_path / "store"), ReadLimits())

    assert pair.settled
    assert not pair.equal
    assert rule in explain(pair)


def test_what_no_rule_explains_counts_against_us(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = [
        Published("Colours", COLOURS, [("Colour?", "Red.")], ["Red"], 1),
        Published("ChapterBreak", ["A tale."], [("Which?", "Option 3")], ["3"], 1),
        Published("Names", ["Call me Gerd."], [("Name?", "Gerd.")], ["Gerd"], 1),
    ]
    folder = write_benchmark(tmp_path / "old", tests)
    pairs = list(read_pairs(folder, ExperimentStorage(tmp_path / "store"), ReadLimits()))

    assert report(pairs, 0) == 0
    assert "| **scored without a model** | 3 | 3 | 3 | 0 | 100.0 % |" in capsys.readouterr().out
