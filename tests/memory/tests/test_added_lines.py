"""A test that wants a line more in somebody else's reply runs beside all others: none of them minds the line."""

from __future__ import annotations

import datetime

import pytest

from tests.memory.tests.conversation import TESTS, example, play
from themis.config import parse_memory_config
from themis.core.tokens import DEFAULT_TOKENIZER
from themis.memory.agents.calibration import Oracle
from themis.memory.definitions import conflicts_of, generate
from themis.memory.examples import MEMORY_TESTS
from themis.memory.filler import create_filler
from themis.memory.rehearsal import rehearse

BESIDE = [name for name in TESTS if name != "prospective_memory"]
SEEDS = range(15)


class Adding(Oracle):
    """Knows everything, and adds a line to every reply."""

    def __init__(self, line: str) -> None:
        super().__init__()
        self._line = line

    def reply(self, message: str, *, turn: int, now: datetime.datetime, presupplied: str | None = None) -> str:
        return f"{super().reply(message, turn=turn, now=now, presupplied=presupplied)}\n{self._line}"


@pytest.mark.parametrize("name", BESIDE)
def test_a_right_answer_stays_right_with_a_quotation_below_it(name):
    if "prospective_memory" in MEMORY_TESTS.get(name).interferes_with:
        pytest.skip("never runs beside prospective_memory")
    for seed in SEEDS:
        quotation, author, *_ = example("prospective_memory", seed).expected_responses[0]
        for line in (quotation, f"“{quotation}” – {author}"):
            played = play(example(name, seed), Adding(line))

            assert played.grade.score == 1.0, (seed, line, played.grade.reasons)


def test_quotations_phrases_and_rules_are_told_apart_in_one_conversation():
    kinds = ["prospective_memory", "trigger_response", "instruction_exceptions", "verbatim"]
    for seed in range(4):
        config = parse_memory_config(
            {
                "config": {"run_name": "beside", "seed": seed},
                "datasets": {
                    "args": {"memory_span": 3_000, "dataset_examples": 3},
                    "datasets": [{"name": name} for name in kinds],
                },
            },
            source="beside.yml",
        )
        tests = generate(config)
        outcomes = rehearse(
            Oracle(), tests, conflicts_of(tests, []), create_filler("facts", tokenizer_name=DEFAULT_TOKENIZER)
        )

        assert {outcome.grade.score for outcome in outcomes.values()} == {1.0}
        ends = [outcome.ended.tokens for outcome in outcomes.values()]
        assert max(ends) < 4 * 3_000  # three chains beside each other, not four after one another
