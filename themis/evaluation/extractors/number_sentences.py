"""A reply as sentences with numbers, and which of its numbers a sentence states.

`stated_number` decides between sentences; here one sentence is read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from themis.evaluation.extractors import number_wording as wording
from themis.evaluation.extractors.number_words import find_number_words
from themis.evaluation.extractors.numbers import WrittenNumber, find_plain_numbers

LONGEST_SENTENCE = 2_000  # characters; of a longer one only the end is read
_BEFORE = 40  # characters before a number that tell what it is


@dataclass(frozen=True)
class Span:
    """A part of a text."""

    start: int
    end: int


@dataclass(frozen=True)
class Reply:
    """A plain text with its numbers and sentences, each found once.

    Args:
        text: What `to_plain_text` made.
    """

    text: str

    @cached_property
    def numbers(self) -> list[WrittenNumber]:
        """Without those that the text rejects; one in words counts in bold, and as the last conclusion."""
        written = [number for number in find_plain_numbers(self.text) if not self._rejects(number)]
        words = [*self._bold_words()]
        if written and not words and self.told and written[-1].end <= self.told[-1].start:
            words = [*self._concluding_word(self.told[-1])]
        return sorted([*written, *words], key=lambda number: number.start)

    def _rejects(self, number: WrittenNumber) -> bool:
        """Whether a number is said not to be it, or is an operand of a formula."""
        before = max(0, number.start - _BEFORE), number.start
        if wording.REJECTS_NEXT.search(self.text, *before) or wording.AFTER_FORMULA.search(self.text, *before):
            return True
        after = wording.REJECTS_LAST.match(self.text, number.end) or wording.BEFORE_FORMULA.match(self.text, number.end)
        return after is not None

    def _bold_words(self) -> Iterator[WrittenNumber]:
        """Such as **twelve** or **twelve ways**; with more words at the head of a line it is a heading."""
        for found in wording.BOLD.finditer(self.text):
            start, inside = found.start("inside"), found["inside"]
            word = next(find_number_words(inside[:100]), None)
            if word is None or word.start or word.value == 1 or not wording.AFTER_ALONE.fullmatch(inside, word.end):
                continue
            if inside[word.end :].strip(" .!") and self.text[max(0, found.start() - 2) : found.start()].endswith(
                ("\n", "- ", "* ")
            ):
                continue
            yield replace(word, start=start, end=start + word.end)

    def _concluding_word(self, span: Span) -> Iterator[WrittenNumber]:
        """The only number in words of a sentence that concludes, unless it is given; "one" is more often no number."""
        sentence = self.text[span.start : min(span.end, span.start + LONGEST_SENTENCE)]
        if not wording.STEP.search(sentence) and not wording.CONCLUDES.search(sentence):
            return
        words = list(find_number_words(sentence))
        if len(words) == 1 and words[0].value != 1:
            word = replace(words[0], start=span.start + words[0].start, end=span.start + words[0].end)
            if not _is_given(self.text, word):
                yield word

    def numbers_in(self, span: Span) -> list[WrittenNumber]:
        return self.numbers[bisect_left(self._starts, span.start) : bisect_left(self._starts, span.end)]

    @cached_property
    def _starts(self) -> list[int]:
        return [number.start for number in self.numbers]

    @cached_property
    def sentences(self) -> list[Span]:
        ends = [found.end() for found in wording.SENTENCE_END.finditer(self.text)]
        spans = [Span(*ends) for ends in zip([0, *ends], [*ends, len(self.text)], strict=True)]
        return [span for span in spans if self.text[span.start : span.end].strip()]

    @cached_property
    def told(self) -> list[Span]:
        """The sentences that are no check, condition, question or remark."""
        told: list[Span] = []
        aside = False
        for span in self.sentences:
            sentence = self.text[span.start : span.end]
            if wording.ASIDE_HEADING.match(sentence):
                aside = True
            elif aside and wording.CONCLUDES.search(sentence):
                aside = False
            if not aside and not wording.ASIDE.match(sentence) and not wording.IS_QUESTION.search(sentence):
                told.append(span)
        return told

    def told_in(self, start: int, end: int) -> list[Span]:
        """The told sentences of a part of the text, cut to it."""
        first = bisect_left(self.told, start + 1, key=lambda span: span.end)
        last = bisect_left(self.told, end, key=lambda span: span.start)
        return [Span(max(span.start, start), min(span.end, end)) for span in self.told[first:last]]

    @cached_property
    def bold(self) -> list[Span]:
        """What is in bold and holds a number, but is no label or heading."""
        spans = (Span(*found.span("inside")) for found in wording.BOLD.finditer(self.text))
        return [span for span in spans if self.numbers_in(span)]

    def bold_in(self, span: Span) -> list[Span]:
        first = bisect_left(self.bold, span.start, key=lambda inside: inside.start)
        last = bisect_left(self.bold, span.end, key=lambda inside: inside.start)
        return self.bold[first:last]


def read_sentence(reply: Reply, span: Span) -> WrittenNumber | None:
    """Of several numbers the one that the sentence is about: after its last verb or equals sign, and not a given."""
    text = reply.text
    span = Span(max(span.start, span.end - LONGEST_SENTENCE), span.end)
    opens = span.start
    numbers = main_numbers(reply, _last_step(reply, span))
    if len(numbers) < 2:
        return numbers[0] if numbers else None
    if wording.IS_SUBJECT.match(text, numbers[0].end) and not text[span.start : numbers[0].start].strip(" *_$-"):
        return numbers[0]
    free = free_numbers(text, numbers)
    for number in reversed(free):
        states = wording.STATES.search(text, max(span.start, number.start - _BEFORE), number.start)
        if states is None:
            continue
        before = [earlier for earlier in numbers if earlier.end <= states.start()]
        if not wording.CALCULATES.match(text, number.end):
            exact = states["sign"] == "≈" and wording.IS_EXACT.search(text, span.start, states.start())
            return before[-1] if exact and before else number
        # "12 = 3 x 4": what stands before the equals sign.
        if states["sign"] and before:
            return before[-1]
    if not free and wording.OPENS_CONCLUSION.match(text, opens):
        return next((number for number in numbers if not _is_year(text, number)), numbers[-1])
    return (free or [number for number in numbers if not _is_year(text, number)] or numbers)[-1]


def read_bold(reply: Reply, spans: Sequence[Span]) -> WrittenNumber | None:
    """The last number in bold, before those that no preposition marks as given."""
    numbers = [number for span in spans if (number := read_sentence(reply, span)) is not None]
    return (free_numbers(reply.text, numbers) or numbers)[-1] if numbers else None


def read_last(reply: Reply, sentences: Sequence[Span]) -> WrittenNumber | None:
    """The number of the last sentence that has one; a year in passing only where there is nothing else."""
    year = None
    for span in reversed(sentences):
        number = read_sentence(reply, span)
        if number is not None and not _is_year(reply.text, number):
            return number
        year = year or number
    return year


def main_numbers(reply: Reply, span: Span) -> list[WrittenNumber]:
    """Those outside of brackets and subordinate clauses, where there are any."""
    text = reply.text
    numbers = reply.numbers_in(span)
    bracketed = {
        number.start
        for found in wording.BRACKETS.finditer(text, span.start, span.end)
        for number in reply.numbers_in(Span(*found.span()))
    }
    outside = [number for number in numbers if number.start not in bracketed] or numbers
    free = free_numbers(text, outside) or outside
    for clause in wording.CLAUSE.finditer(text, free[0].end, span.end) if free else ():
        before = [number for number in outside if number.start < clause.start()]
        if not (clause["result"] and _leads_to_a_result(text, before, Span(span.start, clause.start()), span.end)):
            return before
    return outside


def _leads_to_a_result(text: str, before: Sequence[WrittenNumber], clause: Span, end: int) -> bool:
    """Whether "which is" goes on with a calculation, sums up, or puts several numbers into one."""
    if wording.EXPRESSION.search(text, clause.start, clause.end) or wording.CONCLUDES.search(text, clause.end, end):
        return True
    return sum(not _is_given(text, number) for number in before) > 1


def free_numbers(text: str, numbers: Sequence[WrittenNumber]) -> list[WrittenNumber]:
    """Those that no preposition or article marks as given; what is joined to a given one is given as well."""
    free: list[WrittenNumber] = []
    last: WrittenNumber | None = None
    given = False
    for number in numbers:
        joined = last is not None and wording.JOINS.fullmatch(text, last.end, number.start)
        if not joined or not given:
            given = _is_given(text, number) or (bool(free) and _is_added(text, number))
        if not given:
            free.append(number)
        last = number
    return free


def _is_given(text: str, number: WrittenNumber) -> bool:
    before = max(0, number.start - _BEFORE), number.start
    if wording.SUPPOSED.search(text, *before) or _is_year(text, number):
        return True
    return wording.GIVEN.search(text, *before) is not None and wording.STATES.search(text, *before) is None


def _is_added(text: str, number: WrittenNumber) -> bool:
    added = wording.ADDS.search(text, max(0, number.start - _BEFORE), number.start)
    return added is not None and wording.IS_LEFT.match(text, number.end) is None


def _is_year(text: str, number: WrittenNumber) -> bool:
    before = wording.BEFORE_YEAR.search(text, max(0, number.start - _BEFORE), number.start)
    return before is not None and wording.YEAR.fullmatch(text, number.start, number.end) is not None


def _last_step(reply: Reply, span: Span) -> Span:
    """What follows the last "so" of a sentence, where a number does."""
    for step in reversed(list(wording.STEP.finditer(reply.text, span.start, span.end))):
        rest = Span(step.end(), span.end)
        if reply.numbers_in(rest):
            return rest
    return span
