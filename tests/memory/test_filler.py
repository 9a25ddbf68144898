"""Filler: exact sizes, expected replies, many kinds, nothing that a test asks, the same for the same seed."""

from __future__ import annotations

import hashlib
import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.tokens import tokenizer
from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.examples import MEMORY_TESTS
from themis.memory.filler import create_filler
from themis.memory.filler.facts import facts, trivia_pairs
from themis.memory.filler.grammar import Grammar
from themis.memory.filler.mixed import KINDS, Mixed
from themis.memory.filler.trivia import Trivia, read_pairs
from themis.memory.tests import word_lists

MIXED = {name: Mixed(seed=3, tokenizer_name=name) for name in ("cl100k_base", "o200k_base", "words")}
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


@given(st.integers(0, 10_000), st.integers(60, 4_096), st.sampled_from(sorted(MIXED)))
def test_mixed_filler_has_exactly_the_tokens_wanted_whatever_its_kind(number, tokens, name):
    count = tokenizer(name)

    made = MIXED[name].make(number, tokens)

    assert count(made.text) + count(made.reply) == tokens
    assert made.reply.strip()


def test_a_mixed_filler_too_small_for_anything_still_says_something():
    made = MIXED["cl100k_base"].make(0, 1)

    assert made.text.strip()
    assert made.reply


@pytest.mark.parametrize("make", [facts, Mixed])
def test_messages_follow_from_seed_and_number_alone(make):
    assert make(seed=1).make(5, 300) == make(seed=1).make(5, 300)
    assert make(seed=1).make(5, 300) != make(seed=2).make(5, 300)
    assert make(seed=1).make(5, 300) != make(seed=1).make(6, 300)
    assert make(seed=1).fingerprint == make(seed=1).fingerprint != make(seed=2).fingerprint


def test_mixed_filler_is_the_same_under_every_python():
    filler = Mixed(seed=0)

    made = [filler.make(number, 400) for number in range(120)]

    assert digest_of("".join(one.text + one.reply for one in made)) == "3dab78ed9b5f8ad4"


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_fifty_thousand_items_follow_each_other_before_one_comes_again():
    items: list[str] = []
    for number in range(2_000):
        items += MIXED["cl100k_base"].compose(number, 1_000).items

    assert len(items) >= 50_000
    assert len(set(items)) == len(items)


def test_every_kind_is_heard_and_most_of_all_plain_talk():
    made = [MIXED["cl100k_base"].compose(number, 300) for number in range(400)]
    texts = ["".join(one.pieces) for one in made]

    marks = {
        "mails": "Subject: ", "tables": "|---|", "quiz": "Q: ", "documents": "\n# ", "python": "def ", "sql": "SELECT ",
        "javascript": "const ", "de": " und ", "fr": " et ", "es": " y ", "it": " e ", "pt": " em ",
    }  # fmt: skip
    assert all(any(mark in text for text in texts) for mark in marks.values())
    assert any(re.search("[а-я]", text) for text in texts)
    assert any(re.search("[ぁ-ん]", text) for text in texts)
    talk = [text for text in texts if not any(mark in text for mark in (*marks.values(), "//", "--", "# "))]
    assert 0.2 < len(talk) / len(texts) < 0.45
    assert sum(KINDS.values()) == 28


def test_what_a_message_asks_can_be_read_in_it():
    made = [MIXED["cl100k_base"].make(number, 500) for number in range(1_500)]
    asking = [
        one
        for one in made
        if re.search(r"\b(?:Who|Where|When|How many|How much|In which|On which) [^?.\n]*\?$", one.text)
    ]

    assert len(asking) > 150
    for one in asking:
        answer = re.sub(r"^(?:In|At|On|It cost|It has|For) |(?: did| crowns)?\.$", "", one.reply)
        assert answer in one.text, one.reply


FIRST_PERSON = {
    "en": r"\b(?:I|I'm|my|mine|we|our|us|myself)\b",
    "de": r"\b(?:ich|mein\w*|wir|uns\w*)\b",
    "fr": r"\b(?:je|mon|ma|mes|nous)\b",
    "es": r"\b(?:yo|mi|mis|nosotros)\b",
    "it": r"\b(?:io|mio|mia|noi)\b",
    "pt": r"\b(?:eu|meu|minha|nós)\b",
    "ru": r"\b(?:я|мой|моя|мы)\b",
    "ja": "私|僕|俺",
}


def test_filler_tells_nothing_about_whoever_speaks_and_asks_for_nothing_to_be_remembered():
    asked = r"\b(?:remember|forget|whenever|from now on|call me|favourite|password|joke|shopping)\b"

    for number in range(600):
        made = MIXED["cl100k_base"].compose(number, 1_000)
        # An “I” of a Roman numeral is none.
        text = re.sub(r"What is [IVXLCDM]+ plus|[a-z]/\$\{", "", "".join(made.pieces))
        assert not re.search(asked, text, re.IGNORECASE), text
        for language, pattern in FIRST_PERSON.items():
            foreign = language != "en" and re.search(r"[a-z] the ", text)
            assert foreign or not re.search(pattern, text), (language, re.search(pattern, text), text)


def test_no_test_knows_the_people_and_places_of_filler():
    shared = Grammar("shared")
    invented = {str(name).casefold() for kind in ("first", "last", "town") for name in shared[kind].alternatives}
    told: set[str] = set()
    kinds = [kind for kind in map(MEMORY_TESTS.get, MEMORY_TESTS.names()) if not hasattr(kind, "data_location")]
    for kind in kinds:
        for seed in range(3):
            examples = kind(memory_span=32_000, seed=seed).generate_examples(2)
            told |= {word for one in examples for line in one.script for word in re.findall(r"\w+", line.casefold())}

    told |= {word.casefold() for pool in vars(word_lists).values() if isinstance(pool, tuple) for word in pool}

    assert len(kinds) > 20
    assert len(invented) > 1_200
    assert not invented & told


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
