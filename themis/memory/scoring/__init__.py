"""Judges what an agent said: pure functions from what was expected and what was answered to a grade with reasons.

None of them raises on any reply, and none gives more than 1 or less than 0.
"""

from __future__ import annotations

from themis.memory.scoring.claims import abstains, claims, grade_answers, grade_claim
from themis.memory.scoring.lists import grade_members, grade_order, grade_quantities, json_field, json_list
from themis.memory.scoring.numbers import grade_number, in_figures, numbers
from themis.memory.scoring.passages import grade_passage, recited_share, recites, similarity
from themis.memory.scoring.ways import read_ways
from themis.memory.scoring.words import first_mentioned, folded, mentioned, mentions, plain_words, shortened

__all__ = [
    "abstains",
    "claims",
    "first_mentioned",
    "folded",
    "grade_answers",
    "grade_claim",
    "grade_members",
    "grade_number",
    "grade_order",
    "grade_passage",
    "grade_quantities",
    "in_figures",
    "json_field",
    "json_list",
    "mentioned",
    "mentions",
    "numbers",
    "plain_words",
    "read_ways",
    "recited_share",
    "recites",
    "shortened",
    "similarity",
]
