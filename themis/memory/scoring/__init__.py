"""Judges what an agent said: pure functions from what was expected and what was answered to a grade with reasons.

None of them raises on any reply, and none gives more than 1 or less than 0.
"""

from __future__ import annotations

from themis.memory.scoring.claims import (
    abstains,
    claims,
    everything_claimed,
    first_claimed,
    grade_answers,
    grade_claim,
    grade_claim_about,
    grade_recital_of,
    said_of,
)
from themis.memory.scoring.clauses import after_correction
from themis.memory.scoring.lists import grade_members, grade_order, grade_quantities, json_field, json_list
from themis.memory.scoring.numbers import answering, grade_number, in_figures, settled_number
from themis.memory.scoring.passages import grade_passage, recited_share, recites, similarity
from themis.memory.scoring.ways import directions_named, read_ways
from themis.memory.scoring.words import folded, mentioned, mentions, plain_words, shortened

__all__ = [
    "abstains",
    "after_correction",
    "answering",
    "claims",
    "directions_named",
    "everything_claimed",
    "first_claimed",
    "folded",
    "grade_answers",
    "grade_claim",
    "grade_claim_about",
    "grade_members",
    "grade_number",
    "grade_order",
    "grade_passage",
    "grade_quantities",
    "grade_recital_of",
    "in_figures",
    "json_field",
    "json_list",
    "mentioned",
    "mentions",
    "plain_words",
    "read_ways",
    "recited_share",
    "recites",
    "said_of",
    "settled_number",
    "shortened",
    "similarity",
]
