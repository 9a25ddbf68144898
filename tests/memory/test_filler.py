"""Filler: exact sizes, valid JSON, right answers, the same for the same seed."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.tokens import tokenizer
from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.filler import Trivia, create_filler, facts, read_pairs, trivia_pairs

FILLERS = {name: facts(seed=3, tokenizer_name=name) for name in ("cl100k_base", "o200k_base")}


@given(st.integers(0, 10_000), st.integers(100, 4_096), st.sampled_from(sorted(FILLERS)))
def test_a_filler_has_exactly_the_tokens_wanted_and_its_reply_is_json(number, tokens, name):
    count = tokenizer(name)

    made = FILLERS[name].make(number, tokens)

    assert count(made.text) + count(made.reply) == tokens
    answers = json.loads(made.reply)
    assert len(answers) == made.text.count("\nQ: ")
    assert all(f", A: {answer}\n" in made.text for answer in answers)


def test_a_filler_too_small_for_a_question_still_has_one():
    assert json.loads(FILLERS["cl100k_base"].make(0, 1).reply)


def test_messages_follow_from_seed_and_number_alone():
    assert facts(seed=1).make(5, 300) == facts(seed=1).make(5, 300)
    assert facts(seed=1).make(5, 300) != facts(seed=2).make(5, 300)
    assert facts(seed=1).make(5, 300) != facts(seed=1).make(6, 300)


def test_there_are_two_thousand_built_in_facts_each_with_one_answer():
    pairs = trivia_pairs()

    assert len({question for question, _ in pairs}) == len(pairs) >= 2_000


def test_computed_facts_are_right():
    answers = dict(trivia_pairs())

    assert answers["What is 17 times 23?"] == "391"
    assert answers["How is the number 94 written in Roman numerals?"] == "XCIV"
    assert answers["Is 91 a prime number?"] == "no"
    assert answers["Is 97 a prime number?"] == "yes"
    assert answers["What is the smallest prime factor of 77?"] == "7"
    assert answers["Which element has the atomic number 79?"] == "Gold"
    assert answers["What is the chemical symbol of tungsten?"] == "W"
    assert answers["How many feet are there in 20 yards?"] == "60"
    assert answers["Was or is 2000 a leap year in the Gregorian calendar?"] == "yes"
    assert answers["How is 37 written in binary?"] == "100101"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("trivia.json", {"Data": [{"Question": "Who?", "Answer": {"Value": "Ada"}}]}),
        ("short.json", {"Data": [{"Question": "Who?", "AnswerValue": "Ada"}]}),
        ("list.json", [{"question": "Who?", "answer": "Ada"}]),
    ],
)
def test_pairs_are_read_from_every_public_layout(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(json.dumps(content))

    assert read_pairs(path) == [("Who?", "Ada")]


def test_pairs_are_read_from_jsonl_and_broken_lines_are_named(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text('{"question": "1 + 1?", "answer": 2}\n\n{"question": "Two\\nlines?", "answer": "yes"}\n')
    assert read_pairs(path) == [("1 + 1?", "2"), ("Two lines?", "yes")]

    path.write_text('{"question": "1 + 1?", "answer": 2}\n{"question": \n')
    with pytest.raises(DatasetError, match=r"own.jsonl:2 is not JSON"):
        read_pairs(path)


def test_a_file_of_few_pairs_is_used_as_well_as_it_can_be(tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text('{"question": "Who wrote the first program?", "answer": "Ada Lovelace"}\n')
    count = tokenizer("cl100k_base")

    made = create_filler(str(path)).make(0, 500)

    assert 460 < count(made.text) + count(made.reply) <= 500


def test_an_unknown_filler_is_an_error_that_names_the_nearest():
    with pytest.raises(ConfigurationError, match="did you mean 'facts'"):
        create_filler("fact")
    with pytest.raises(DatasetError, match="cannot be read"):
        create_filler("no/such/file.json")


def test_answers_of_any_kind_stay_valid_json():
    chance = random.Random(0)
    odd = ['He said "no"', "back\\slash", "日本", "it's", "…", "5 % of 10", "a, A: b"]
    filler = Trivia([(f"Question {n}?", chance.choice(odd)) for n in range(50)])

    for number in range(50):
        assert set(json.loads(filler.make(number, 200).reply)) <= set(odd)
