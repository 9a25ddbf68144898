"""Whether the keys of a conversation's tests are true: an agent that remembers everything must be able to answer rightly.

Two checks before anything is paid for. Kinds with a reader are rehearsed: whoever hears the whole conversation must score 1 on
each of their tests. Of the other kinds only the words are known: what one test tells must not be able to answer what another
one asks.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from themis.memory.actions import Ask, Say, Wait
from themis.memory.agents.perfect import Perfect
from themis.memory.definitions import Defined
from themis.memory.examples import TestExample
from themis.memory.filler import Filler
from themis.memory.planning import play_alone
from themis.memory.rehearsal import rehearse
from themis.memory.scoring.words import shorten, split_words

# Words that say nothing about what a sentence is about.
_SILENT_WORDS = """
a about after again all am an and answer any are as at be been before but by can could did do does each ever for form from had
has have he her his how i if in into is it its json last line list many may me more much my name now number of on one only or
our please say she should so tell than that the their them then there these they this those to told up us was we were what when
where which who whom whose why will with word would you your
"""
_SILENT = frozenset(_SILENT_WORDS.split())
# Fewer may differ between two questions that ask the same.
_WEIGHTLESS = frozenset(("a", "an", "i", "me", "my", "please", "the"))
_ALIKE = {"which": "what", "whats": "what is", "are": "is", "am": "is", "were": "was", "does": "do", "has": "have"}


@dataclass(frozen=True)
class Clash:
    """What one test tells could answer what another one asks."""

    test_id: str
    question: str
    other_id: str
    statement: str

    @property
    def sentence(self) -> str:
        return (
            f"{self.other_id} says {shorten(self.statement, 80)!r}, which could answer {shorten(self.question, 80)!r} of "
            f"{self.test_id}"
        )


@dataclass(frozen=True)
class Misread:
    """An agent that heard everything does not get the full score."""

    test_id: str
    score: float | None
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        scored = "gets no verdict" if self.score is None else f"scores {self.score:.2f}"
        return f"{self.test_id}: an agent that remembers everything {scored} ({shorten('; '.join(self.reasons), 120)})"


@dataclass(frozen=True)
class KeyCheck:
    """What was found, and how many tests were rehearsed or compared by their words."""

    misread: tuple[Misread, ...]
    clashes: tuple[Clash, ...]
    rehearsed: int
    compared: int

    @classmethod
    def join(cls, checks: Sequence[KeyCheck]) -> KeyCheck:
        """What was found in several conversations.

        Args:
            checks: One each.
        """
        return cls(
            tuple(found for check in checks for found in check.misread),
            tuple(found for check in checks for found in check.clashes),
            sum(check.rehearsed for check in checks),
            sum(check.compared for check in checks),
        )

    @property
    def holds(self) -> bool:
        return not (self.misread or self.clashes)

    def lines(self) -> Iterator[str]:
        """What a person is told of it, a sentence each."""
        yield from (found.sentence for found in self.misread)
        yield from (found.sentence for found in self.clashes)
        if self.misread:
            yield "What these tests ask does not follow from what they say: their keys are wrong, or their reader is"
        if self.clashes:
            yield (
                "Give such tests people or things of their own (self.world), a reset_message, or latest_counts = True "
                "where a later statement replaces an earlier one"
            )
        checked = [f"an agent that remembers everything scores 1 on {self.rehearsed} tests"] if self.rehearsed else []
        if self.compared:
            checked.append(f"{self.compared} tests without a reader tell nothing that answers another one's question")
        if self.holds and checked:
            yield f"keys checked: {'; '.join(checked)}"


def check_keys(
    defined: Sequence[Defined],
    conflicts: Mapping[str, Iterable[str]],
    filler: Filler,
    *,
    max_message_tokens: int = 4_096,
) -> KeyCheck:
    """Rehearses the tests that have a reader, and compares the words of the others.

    Args:
        defined: The tests of one conversation.
        conflicts: For a kind of test, the kinds that may not run beside it.
        filler: What is sent between messages of tests.
        max_message_tokens: Most tokens of one filler.
    """
    rehearsed = [one for one in defined if one.example.dataset.is_readable(one.example)]
    misread = []
    if rehearsed:
        outcomes = rehearse(Perfect(), defined, conflicts, filler, max_message_tokens=max_message_tokens)
        for one in rehearsed:
            grade = outcomes[one.example.test_id].grade
            if grade.failed or grade.score < 1:
                misread.append(
                    Misread(one.example.test_id, None if grade.failed else grade.score, tuple(grade.reasons))
                )
    clashes = find_clashes(defined, conflicts, settled={one.kind for one in rehearsed})
    return KeyCheck(tuple(misread), tuple(clashes), len(rehearsed), len(defined) - len(rehearsed))


def find_clashes(
    defined: Sequence[Defined], conflicts: Mapping[str, Iterable[str]], *, settled: Container[str] = ()
) -> list[Clash]:
    """Pairs of tests of which one tells what could answer the other, by their words; one for each pair and question.

    A statement could answer a question if it has all words of the question that the question's own needles have, or if
    what it was told for is the same question with another answer. It does no harm where both tests never run at the same
    time and either what was told is to be forgotten once its test has ended, or a later statement replaces an earlier one.

    Args:
        defined: The tests of one conversation.
        conflicts: For a kind of test, the kinds that may not run beside it.
        settled: Kinds that are rehearsed: two of them are not compared.

    >>> from themis.memory.examples import TestExample
    >>> from themis.memory.tests.updates import Colours
    >>> lines = (["My shoe size is 46.", "What is my shoe size?"], ["My shoe size is 36.", "What is my shoe size?"])
    >>> tests = [TestExample(dataset=Colours(), example_id=str(n), script=said) for n, said in enumerate(lines)]
    >>> [clash.other_id for clash in find_clashes([Defined("colours", test) for test in tests], {})]
    ['Colours - 1', 'Colours - 0']
    """
    if all(one.kind in settled for one in defined):
        return []
    spoken = {
        one.example.test_id: [said for said, _ in play_alone(one.example, len) if not isinstance(said, Wait)]
        for one in defined
    }
    told: dict[str, list[_Statement]] = {}
    asked: dict[str, list[tuple[Defined, Ask, str]]] = {}
    for one in defined:
        lines = spoken[one.example.test_id]
        told_for: dict[str, set[str]] = {line.text: set() for line in lines}
        for place, line in enumerate(lines):
            if isinstance(line, Ask):
                for needed in _needed(line, lines, place):
                    told_for[needed.text].update(_asked_words(line))
                if (needle := _last_needle(one.example, line, lines, place)) is not None:
                    asked.setdefault(_to_question(line.text), []).append((one, line, needle))
            else:
                words = frozenset(_content_words(line.text))
                for word in sorted(words):
                    told.setdefault(word, []).append(_Statement(one, line.text, words, told_for[line.text]))
    apart = {kind: set(others) for kind, others in conflicts.items()}
    clashes = []
    for one in defined:
        lines = spoken[one.example.test_id]
        for place, line in enumerate(lines):
            if isinstance(line, Say):
                continue
            about = _about(line, _needed(line, lines, place))
            if not about.suffices and _last_needle(one.example, line, lines, place) is None:
                continue
            about_it = min((told.get(word, []) for word in sorted(about.words)), key=len, default=[])
            found = [(said.test, said.text) for said in about_it if said.could_answer(one, about)]
            same = asked.get(_to_question(line.text), ())
            if any(question is line for _, question, _ in same):
                found += [(other, needle) for other, question, needle in same if question.ideal != line.ideal]
            seen = set()
            for other, statement in found:
                other_id = other.example.test_id
                if other is one or other_id in seen or (one.kind in settled and other.kind in settled):
                    continue
                if not _is_harmless(one, other, apart):
                    seen.add(other_id)
                    clashes.append(Clash(one.example.test_id, line.text, other_id, statement))
    return clashes


class _About(NamedTuple):
    words: frozenset[str]
    # One word of several says too little, unless another test of the same kind asks of it, too.
    suffices: bool


class _Statement(NamedTuple):
    test: Defined
    text: str
    words: frozenset[str]
    # Those of the questions that it is told for.
    told_for: Set[str]

    def could_answer(self, asking: Defined, about: _About) -> bool:
        alike = about.suffices or (self.test.kind == asking.kind and about.words <= self.told_for)
        return alike and about.words <= self.words


def _last_needle(example: TestExample, question: Ask, lines: Sequence[Say | Ask], place: int) -> str | None:
    """What was told last for a question; None where the question stands for no answer that is known before it is asked."""
    if question.ideal is None or example.is_temporal or example.uses_callback:
        return None
    return next((line.text for line in reversed(_needed(question, lines, place)) if isinstance(line, Say)), None)


def _needed(question: Ask, lines: Sequence[Say | Ask], place: int) -> list[Say | Ask]:
    if question.needs is None:
        return [line for line in lines[:place] if isinstance(line, Say)]
    return [lines[number] for number in question.needs]


def _to_question(text: str) -> str:
    """What a question asks, however it is written: `Which colour is the car?` as `What colour is my car?`."""
    return " ".join(_ALIKE.get(word, word) for word in split_words(text) if word not in _WEIGHTLESS)


def _about(question: Ask, needed: Sequence[Say | Ask]) -> _About:
    """The words by which a question is tied to its needles."""
    asked = _asked_words(question)
    tied = asked & frozenset(word for line in needed for word in _content_words(line.text))
    return _About(tied, suffices=len(tied) > 1 or tied == asked)


def _asked_words(question: Ask) -> frozenset[str]:
    return frozenset(_content_words(question.text.partition("?")[0]))


def _content_words(text: str) -> Iterator[str]:
    for word in split_words(text):
        if word not in _SILENT:
            yield word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _is_harmless(one: Defined, other: Defined, apart: Mapping[str, set[str]]) -> bool:
    together = other.kind not in apart.get(one.kind, ()) and one.kind not in apart.get(other.kind, ())
    if together:
        return False
    return bool(other.example.dataset.reset_message) or one.example.dataset.latest_counts
