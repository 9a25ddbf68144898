"""The Countdown generator and solver: solvable, repeatable, exact."""

from __future__ import annotations

import hashlib
import itertools
import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.evaluation.metrics.countdown import CountdownStrict, CountdownValidity, evaluate_expression
from themis.exceptions import ConfigurationError
from themis.presets.countdown import DIFFICULTIES, generate_puzzles, puzzle_rows, puzzles, raw_puzzles, solve

SEEDS = st.integers(0, 10_000)


@given(seed=SEEDS, difficulty=st.sampled_from(DIFFICULTIES))
@settings(max_examples=40)
def test_every_generated_puzzle_has_the_solution_it_was_built_from_and_the_solver_finds_one(seed, difficulty):
    (puzzle,) = generate_puzzles(1, difficulty=difficulty, seed=seed)
    row = puzzle.row("0")

    assert len(puzzle.numbers) == difficulty
    assert puzzle.target not in puzzle.numbers
    assert 10 <= puzzle.target < 1000
    strict = CountdownStrict().compute(prediction=puzzle.solution, references=[row["reference"]])
    assert strict.value == 1.0, (puzzle, strict.details)
    found = solve(puzzle.numbers, puzzle.target)
    score = CountdownValidity().compute(prediction=found, references=[row["reference"]])
    assert score.value == 1.0, (puzzle, found, score.details)
    every = solve(puzzle.numbers, puzzle.target, use_every_number=True)
    assert CountdownStrict().compute(prediction=every, references=[row["reference"]]).value == 1.0


def test_the_same_seed_gives_the_same_bytes_on_every_python():
    drawn = [[puzzle.numbers, puzzle.target, puzzle.solution] for puzzle in generate_puzzles(200, seed=7)]

    assert hashlib.sha256(json.dumps(drawn).encode()).hexdigest() == (
        "13fa6d85b5457a18ecb60324d007f23aec1d9f18229693a45e5cf821ef7b83aa"
    )


def test_a_puzzle_does_not_depend_on_how_many_are_asked_for():
    assert generate_puzzles(3, seed=1) == generate_puzzles(9, seed=1)[:3]
    assert generate_puzzles(4, seed=1) != generate_puzzles(4, seed=2)
    assert generate_puzzles(0) == []


def test_without_a_difficulty_puzzles_go_round_all_of_them():
    assert [len(puzzle.numbers) for puzzle in generate_puzzles(6)] == [3, 4, 5, 6, 3, 4]


def test_puzzles_differ_from_one_another():
    drawn = generate_puzzles(300)

    assert len({(puzzle.numbers, puzzle.target) for puzzle in drawn}) == 300


@pytest.mark.parametrize("difficulty", [0, 2, 7, "3"])
def test_an_unknown_difficulty_is_refused(difficulty):
    with pytest.raises(ConfigurationError, match="3 to 6"):
        next(puzzles(difficulty=difficulty))


def test_a_negative_count_is_refused():
    with pytest.raises(ConfigurationError, match="0 or more"):
        generate_puzzles(-1)


def test_rows_have_the_tutorial_s_fields_and_raw_ones_the_public_dataset_s():
    (puzzle,) = generate_puzzles(1)

    row = puzzle.row("7")

    assert list(row) == ["id", "numbers", "numbers_str", "target", "reference"]
    assert row["numbers_str"] == ", ".join(map(str, puzzle.numbers))
    assert row["reference"].items() >= {"numbers": list(puzzle.numbers), "target": puzzle.target}.items()
    assert puzzle.raw() == {"nums": list(puzzle.numbers), "target": puzzle.target}
    assert [{"id": "7", **fields} for fields in puzzle_rows(puzzle.raw())] == [row]


def test_a_reference_has_an_answer_by_the_strict_rules_where_there_is_one():
    (row,) = puzzle_rows({"nums": [95, 21, 3], "target": 88})
    assert CountdownStrict().compute(prediction=row["reference"]["answer"], references=[row["reference"]]).value == 1.0
    (lenient,) = puzzle_rows({"nums": [7, 8, 50], "target": 15})
    assert lenient["reference"]["answer"] == "8 + 7"
    (unsolvable,) = puzzle_rows({"nums": [1, 1, 1], "target": 999})
    assert unsolvable["reference"] == {"numbers": [1, 1, 1], "target": 999}
    for numbers in ([], [0, 4, 5], list(range(1, 40))):
        (unusual,) = puzzle_rows({"nums": numbers, "target": 9})
        assert unusual["reference"] == {"numbers": numbers, "target": 9}


def test_the_benchmark_has_a_hundred_puzzles_or_as_many_as_are_asked_for():
    assert [len(list(raw_puzzles(limit))) for limit in (None, 0, 3, 150)] == [100, 0, 3, 150]
    assert next(raw_puzzles(1, difficulty=5)) == generate_puzzles(1, difficulty=5)[0].raw()


def every_value(numbers: tuple[int, ...]) -> set[int]:
    """All targets by brute force, in another way: any two values are joined, in any order, until none is left."""
    found = set(numbers)
    for left, right in itertools.permutations(range(len(numbers)), 2):
        rest = [number for index, number in enumerate(numbers) if index not in (left, right)]
        a, b = Fraction(numbers[left]), Fraction(numbers[right])
        for value in (a + b, a - b, a * b, a / b):
            if value > 0 and value.denominator == 1:
                found |= every_value((*rest, int(value)))
        found |= every_value(tuple(rest)) if rest else set()
    return found


@given(st.lists(st.integers(1, 12), min_size=1, max_size=3))
@settings(max_examples=25)
def test_the_solver_finds_a_target_exactly_when_brute_force_does(numbers):
    reachable = every_value(tuple(numbers))

    for target in range(1, 100):
        found = solve(numbers, target)
        assert (found is not None) == (target in reachable), (numbers, target, found)
        if found is not None:
            assert evaluate_expression(found, numbers).value == target


@given(st.lists(st.integers(1, 9), min_size=4, max_size=4), st.integers(1, 300))
@settings(max_examples=15)
def test_four_numbers_agree_with_brute_force_too(numbers, target):
    assert (solve(numbers, target) is not None) == (target in every_value(tuple(numbers)))


def test_the_solver_prefers_few_numbers_and_keeps_to_the_rules():
    assert solve([5, 7, 100], 7) == "7"
    assert solve([5, 7, 100], 12) in {"5 + 7", "7 + 5"}
    assert solve([2, 2], 3) is None
    assert solve([1, 2, 3], 0) is None
    assert solve([], 5) is None
    assert solve([25, 50, 75, 100, 3, 6], 952) is not None
    assert solve([1, 1, 1, 1, 1, 1], 10) is None


def test_numbers_that_no_puzzle_has_are_refused():
    with pytest.raises(ConfigurationError, match="positive integers"):
        solve([3, 0], 3)
