"""Whoever comes late loses what was said before, and nothing else."""

from __future__ import annotations

import random

import pytest

from tests.memory.tests.test_perfect import READABLE, define
from themis.memory.agents import create_agent
from themis.memory.definitions import conflicts_of
from themis.memory.filler import create_filler
from themis.memory.rehearsal import rehearse


@pytest.mark.parametrize("seed", range(2))
def test_a_question_whose_needles_were_all_heard_is_answered_rightly(seed):
    defined = define(seed, READABLE, examples=1)
    conflicts = conflicts_of(defined, ())
    deaf_until = random.Random(seed).randrange(10, 60)

    outcomes = rehearse(
        create_agent("perfect"), defined, conflicts, create_filler("facts", seed=seed), deaf_until_turn=deaf_until
    )

    wrong, answerable = [], 0
    for outcome in outcomes.values():
        asked = [said for said in outcome.said if said.question]
        for said, grade in zip(asked, outcome.grade.questions or (outcome.grade,) * len(asked), strict=True):
            needed = outcome.said if said.needs is None else [outcome.said[place] for place in said.needs]
            if all(one.turn > deaf_until for one in (said, *needed)):
                answerable += 1
                if grade.score != 1:
                    wrong.append((outcome.test_id, said.text, grade.reasons))
    assert wrong == []
    assert answerable >= 10
