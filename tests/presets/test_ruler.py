"""RULER's tasks are made here: of the wanted length, with answers that follow from the text alone, the same everywhere."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest

from themis.core.tokens import count_tokens
from themis.presets.ruler import KINDS, raw_rows

ROWS = list(raw_rows(4 * len(KINDS), length_tokens=2048))


def of(kind: str) -> list:
    return [row for row in ROWS if row["task"] == kind]


def test_rows_are_of_all_kinds_in_turn_and_the_same_every_time():
    assert [row["task"] for row in ROWS[: len(KINDS)]] == list(KINDS)
    assert list(raw_rows(7, length_tokens=2048)) == ROWS[:7]
    assert list(raw_rows(7, length_tokens=2048, seed=1)) != ROWS[:7]


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_is_nearly_as_long_as_it_may_be(kind):
    for row in of(kind):
        assert 0.6 * 2048 < count_tokens(row["input"]) <= 2048


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("niah")])
def test_what_is_asked_for_is_said_of_the_asked_keys_alone(kind):
    for row in of(kind):
        text, question = row["input"].rsplit("\n\n", 1)
        keys = re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z]+(?:-[a-z]+)+", question)
        said = [value for key in keys for value in re.findall(rf"for {key} is: ([\w-]+)\.", text)]
        assert Counter(said) == Counter(row["outputs"])


def test_variables_follow_from_one_another():
    for row in of("vt"):
        names, value = row["outputs"], re.search(r"the value (\d+)", row["input"])[1]
        assert f"VAR {names[0]} = {value}." in row["input"]
        assert all(f"VAR {name} = VAR {before}." in row["input"] for before, name in pairwise(names))


@pytest.mark.parametrize("kind", ["cwe", "fwe"])
def test_the_commonest_words_are_the_answer(kind):
    for row in of(kind):
        counts = Counter(re.findall(r"[a-z]+", row["input"].split("\n\n")[1]))
        wanted = len(row["outputs"])
        ranked = counts.most_common(wanted + 1)
        assert {word for word, _ in ranked[:wanted]} == set(row["outputs"])
        assert ranked[wanted - 1][1] > ranked[wanted][1]
