"""Before anything is paid for: can what one test tells answer what another one asks?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

from themis.core.registry import Registry
from themis.memory.actions import Grade
from themis.memory.definitions import Defined
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.filler import create_filler
from themis.memory.keys import check_keys, find_clashes
from themis.memory.phrasing import Phrasing
from themis.memory.reader import Reader


@dataclass(kw_only=True)
class Locker(DatasetInterface):
    """Tells where a key is and asks for it; `owners` may be shared by several tests."""

    name: ClassVar[str] = "Locker"
    owners: Sequence[str] = ("I", "I")

    def generate_examples(self, num_examples):
        return [self.make(number, self.owners[number]) for number in range(num_examples)]

    def make(self, number, owner):
        whose = "my" if owner == "I" else f"{owner}'s"
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[f"There is a spare key in {whose} locker {40 + number}.", f"In which locker is {whose} spare key?"],
            expected_responses=[str(40 + number)],
        )

    def evaluate(self, questions, responses, expected):
        return Grade.when(expected[0] in responses[0])


class ForgottenLocker(Locker):
    reset_message = "Please forget about the locker."


class ReplacedLocker(Locker):
    latest_counts = True


KINDS = Registry("memory test", {})


@pytest.fixture(autouse=True)
def known_kinds(monkeypatch):
    """These kinds and no others, for these tests alone."""
    for kind in (Locker, ForgottenLocker, ReplacedLocker, ReadableLocker):
        KINDS.register(kind.__name__, kind)
    monkeypatch.setattr("themis.memory.agents.perfect.MEMORY_TESTS", KINDS)


def define(kind: type[Locker], **arguments) -> list[Defined]:
    return [Defined(kind.__name__, test) for test in kind(**arguments).generate_examples(2)]


def test_two_tests_that_tell_of_the_same_thing_are_named_with_what_they_say():
    first, second = find_clashes(define(Locker), {"Locker": ["Locker"]})

    assert (first.test_id, first.other_id) == ("Locker - 0", "Locker - 1")
    assert (second.test_id, second.other_id) == ("Locker - 1", "Locker - 0")
    assert "There is a spare key in my locker 41." in first.sentence
    assert "In which locker is my spare key?" in first.sentence


def say_and_ask(*pairs: tuple[str, str, str]) -> list[Defined]:
    """A test for each statement, question and answer."""
    tests = [
        TestExample(dataset=Locker(), example_id=str(number), script=[said, asked], expected_responses=[answer])
        for number, (said, asked, answer) in enumerate(pairs)
    ]
    return [Defined("Locker", test) for test in tests]


@pytest.mark.parametrize(
    "pairs",
    [
        (("I was born in Leeds.", "Where was I born?", "Leeds"), ("My birthplace is Cork.", "Where was I born?", "Cork")),
        (("The car is red.", "Which colour is the car?", "red"), ("I drive a blue one.", "What colour is my car?", "blue")),
        (("犬はレックス。", "私の犬の名前は何ですか?", "レックス"), ("犬はベラ。", "私の犬の名前は何ですか?", "ベラ")),
        (("My dog is Rex.", "How do I call my dog?", "Rex"), ("Our dog is Bella.", "What's the dog called?", "Bella")),
    ],
    ids=["by other words", "asked in other words", "without spaces", "of one thing that both ask of"],
)  # fmt: skip
def test_two_tests_that_ask_the_same_and_expect_another_answer_clash(pairs):
    assert [clash.other_id for clash in find_clashes(say_and_ask(*pairs), {})] == ["Locker - 1", "Locker - 0"]


@pytest.mark.parametrize(
    "pairs",
    [
        (("I was born in Leeds.", "Where was I born?", "Leeds"), ("I came to the world in 1980.", "When was I born?", "1980")),
        (("I was born in Leeds.", "Where was I born?", "Leeds"), ("My birthplace is Leeds.", "Where was I born?", "Leeds")),
        (("Ann's dog is Rex.", "How does Ann call her dog?", "Rex"), ("Bob's dog is Ben.", "How does Bob call his dog?", "Ben")),
        (("Ann is a vet.", "What does Ann do all day?", "vet"), ("Bob is a nurse.", "What does Bob do all day?", "nurse")),
    ],
    ids=["something else is asked", "the answer is the same", "things of their own", "people of their own"],
)  # fmt: skip
def test_questions_that_only_look_alike_do_not_clash(pairs):
    assert find_clashes(say_and_ask(*pairs), {}) == []


def test_tests_about_people_of_their_own_do_not_clash():
    assert find_clashes(define(Locker, owners=("Agnes", "Bogdan")), {"Locker": ["Locker"]}) == []


@pytest.mark.parametrize("kind", [ForgottenLocker, ReplacedLocker])
def test_what_is_forgotten_or_replaced_does_no_harm_unless_both_run_at_once(kind):
    name = kind.__name__

    assert find_clashes(define(kind), {name: [name]}) == []
    assert len(find_clashes(define(kind), {})) == 2


def test_a_kind_of_the_users_is_checked_and_told_what_to_do():
    found = check_keys(define(Locker), {"Locker": ["Locker"]}, create_filler("facts"))

    assert not found.holds
    assert (found.rehearsed, found.compared) == (0, 2)
    assert list(found.lines())[-1].startswith("Give such tests people or things of their own (self.world)")


class LockerReader(Reader):
    """Remembers the first locker it heard of: wrong as soon as there is another."""

    told, asked = Phrasing("There is a spare key in my locker {number}."), Phrasing("In which locker is my spare key?")
    number: str | None = None

    def answer(self, message, now):
        if (found := self.told.read(message)) and self.number is None:
            self.number = found["number"]
        return self.number if self.asked.matches(message) else None


class ReadableLocker(Locker):
    name = "Readable Locker"

    @classmethod
    def make_reader(cls):
        return LockerReader()


def test_a_kind_with_a_reader_is_rehearsed_in_the_whole_conversation():
    defined = define(ReadableLocker, memory_span=400)

    found = check_keys(defined, {"ReadableLocker": ["ReadableLocker"]}, create_filler("facts"))

    assert [(one.test_id, one.score) for one in found.misread] == [("Readable Locker - 1", 0.0)]
    assert found.clashes == (), "what is rehearsed is not compared by its words"
    alone = check_keys(defined[:1], {}, create_filler("facts"))
    assert list(alone.lines()) == ["keys checked: an agent that remembers everything scores 1 on 1 tests"]
