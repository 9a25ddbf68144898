"""The number that a reply states as its answer, by an order of evidence.

`find_stated_number` reads downwards: the first kind of evidence that a reply has decides, and within a kind the last one.

1. A formal answer: a box, `#### 7`, an answer line or announcing sentence in any language, a JSON field, a tag.
2. An answer that stands alone: on the first or last line, before its explanation, or as the only number in bold.
3. None, where the reply declines to answer or was cut off before it could.
4. A first sentence that reads like an answer, where nothing else is concluded after it.
5. A conclusion: the last sentence that draws one ("So 8 are left"), sums up ("in total") or ends a calculation.
6. The last sentence with a number.

Never counted: what is rejected ("not 12", "rather than 15"), and checks, conditions and remarks after the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from themis.evaluation.extractors import number_wording as wording
from themis.evaluation.extractors.answers import find_boxes
from themis.evaluation.extractors.number_sentences import (
    LONGEST_SENTENCE,
    Reply,
    Span,
    free_numbers,
    main_numbers,
    read_bold,
    read_last,
    read_sentence,
)
from themis.evaluation.extractors.number_words import find_number_words
from themis.evaluation.extractors.numbers import WrittenNumber, to_plain_text
from themis.evaluation.extractors.plain_sentences import drop_concession
from themis.evaluation.extractors.text import last_of, strip_thinking

_MOST_ANSWERS = 100  # formal ones that are tried, from the last on


def find_stated_number(text: str) -> WrittenNumber | None:
    """The number that a careful reader takes for the answer, or None where the reply gives none.

    >>> str(find_stated_number("So 8 are left. Check: 8 + 4 = 12."))
    '8'
    """
    reply = Reply(_first_turn(_without_programs(to_plain_text(drop_concession(strip_thinking(text))))))
    for evidence in (_formal, _standing_alone, _declined, _cut_off, _restated, _answered_first, _concluded, _said_last):
        found = evidence(reply)
        if found is not None:
            return found.number
    return None


@dataclass(frozen=True)
class _Found:
    """What a kind of evidence decides: a number, or that there is none."""

    number: WrittenNumber | None


def _found(number: WrittenNumber | None) -> _Found | None:
    return None if number is None else _Found(number)


def _without_programs(text: str) -> str:
    """The text without blocks of code, rulers and the marks of other blocks, unless there is nothing else in it."""
    rest = wording.RULE.sub("", wording.PROGRAM.sub("", text))
    return rest if rest.strip() else text


def _first_turn(text: str) -> str:
    """The text up to where the model goes on with a question of its own, after it has answered."""
    turn = next(
        (turn for turn in wording.NEXT_TURN.finditer(text) if turn.start() and not text[: turn.start()].isspace()), None
    )
    if turn is None:
        return text
    before = Reply(text[: turn.start()])
    return before.text if _formal(before) or _standing_alone(before) else text


# --- 1. formal answers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Answer(Span):
    """What a formal answer says; whether it may be a whole working that ends in the answer."""

    working: bool = False


def _formal(reply: Reply) -> _Found | None:
    """The last formal answer that states a number, or that there is none."""
    answers = sorted(_formal_answers(reply), key=lambda answer: answer.start, reverse=True)[:_MOST_ANSWERS]
    for answer in answers:
        if wording.NO_ANSWER.match(reply.text, answer.start):
            return _Found(None)
        number = _stated(reply, answer)
        if number is not None and not _is_cut(reply, number, answers):
            return _Found(_corrected(reply, number.end) or number)
    return None


def _formal_answers(reply: Reply) -> Iterator[_Answer]:
    text = reply.text
    for box in find_boxes(text):
        yield _Answer(box.inside.start, box.inside.stop)
    for hashes in wording.HASHES.finditer(text):
        yield _Answer(hashes.end(), _end_of_line(text, hashes.end()))
    for heading in wording.HEADING.finditer(text):
        yield _Answer(heading.end(), len(text), working=True)
    for said in wording.ANNOUNCES.finditer(text):
        if not _is_meant(text, said):
            continue
        end = _end_of_line(text, said.end())
        if said["says"] and (sentence := wording.SENTENCE_END.search(text, said.end(), end)):
            end = sentence.start()
        yield _Answer(said.end(), end, working=not said["says"])


def _is_meant(text: str, said: re.Match[str]) -> bool:
    """Whether the announced answer is the reply's own, and not one that is supposed or taken back."""
    if wording.NOT_THE_ANSWER.search(text, max(0, said.start() - 40), said.start()):
        return False
    unreal = (said["says"] or "").lower().startswith(wording.UNREAL)
    if unreal and wording.CONDITION_AFTER.match(text, said.end()):
        return False
    return not (unreal and wording.CONDITION.search(text, max(0, said.start() - 200), said.start()))


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start, start + LONGEST_SENTENCE)
    return min(start + LONGEST_SENTENCE, len(text)) if end < 0 else end


def _stated(reply: Reply, answer: _Answer) -> WrittenNumber | None:
    """The number that the answer begins with; else where its sentence or working arrives."""
    text = reply.text
    lead = wording.LEAD.match(text, answer.start, answer.end)
    start = lead.end() if lead else answer.start
    numbers = reply.numbers_in(answer)
    if numbers and numbers[0].start <= start and not wording.CALCULATES.match(text, numbers[0].end):
        return numbers[0]
    spelled = next(find_number_words(text[start : min(start + 100, answer.end)]), None)
    if spelled is not None and not spelled.start:
        return replace(spelled, start=start, end=start + spelled.end)
    if answer.working:
        sentences = reply.told_in(answer.start, answer.end)
        return _conclusion(reply, sentences) or read_last(reply, sentences)
    return read_sentence(reply, answer)


def _is_cut(reply: Reply, number: WrittenNumber, answers: Sequence[_Answer]) -> bool:
    """Whether the text ends within a number that it has stated before, as that of a model that repeats itself."""
    if number.end < len(reply.text.rstrip()):
        return False
    earlier = (_stated(reply, answer) for answer in answers[:3] if answer.end < number.start)
    return any(one is not None and one != number and str(one).startswith(str(number)) for one in earlier)


def _corrected(reply: Reply, after: int) -> WrittenNumber | None:
    """Where a formal answer is taken back afterwards, what is concluded instead."""
    retracts = wording.RETRACTS.search(reply.text, after)
    if retracts is None or wording.AFFIRMS.search(reply.text, retracts.start()):
        return None
    return _conclusion(reply, reply.told_in(retracts.end(), len(reply.text)))


# --- 2. answers that stand alone -------------------------------------------------------------------------------------


def _standing_alone(reply: Reply) -> _Found | None:
    return _found(_rated(reply) or _alone_on_a_line(reply) or _explained(reply) or _alone_in_bold(reply))


def _rated(reply: Reply) -> WrittenNumber | None:
    """The number of a first line that is a score, before its reasons: `Score: 3`, `Rating: 4/5`."""
    rated = wording.RATED.match(reply.text)
    numbers = reply.numbers_in(Span(rated.end(), _end_of_line(reply.text, rated.end()))) if rated else []
    return replace(numbers[0], value=Fraction(rated["score"])) if rated and len(numbers) == 1 else None


def _alone_on_a_line(reply: Reply) -> WrittenNumber | None:
    """On the last line, else on the first, else as the first sentence."""
    lines = [Span(*found.span()) for found in wording.LINE.finditer(reply.text)]
    several = len(lines) > 1
    for line in (lines[-1], lines[0]) if several else lines:
        if several and wording.ROW_OR_BULLET.match(reply.text, line.start):
            continue
        if (alone := _alone(reply, line)) is not None:
            return _corrected(reply, alone.end) or alone
    for first in reply.sentences[:1]:
        return (
            _alone_in_words(reply.text[first.start : min(first.end, first.start + 200)])
            or _alone(reply, first)
            or _begins(reply, first)
        )
    return None


def _alone(reply: Reply, span: Span) -> WrittenNumber | None:
    """The number of a line or sentence that says nothing else."""
    numbers = reply.numbers_in(span)
    return numbers[0] if len(numbers) == 1 and _stands(reply, span, numbers[0], wording.AFTER_ALONE) else None


def _alone_in_words(sentence: str) -> WrittenNumber | None:
    spelled = list(find_number_words(sentence))
    if len(spelled) != 1 or sentence[: spelled[0].start].strip(" *_#>-"):
        return None
    return spelled[0] if wording.AFTER_ALONE.fullmatch(sentence, spelled[0].end) else None


def _begins(reply: Reply, span: Span) -> WrittenNumber | None:
    """The number that a sentence begins with before it explains it: `40 hours: 8 a day`, `24 - that is 4!`."""
    numbers = reply.numbers_in(span)
    return numbers[0] if numbers and _stands(reply, span, numbers[0], wording.BEFORE_REMARK) else None


def _stands(reply: Reply, span: Span, number: WrittenNumber, after: re.Pattern[str]) -> bool:
    before = wording.BEFORE_ALONE.fullmatch(reply.text, span.start, number.start)
    return before is not None and after.fullmatch(reply.text, number.end, span.end) is not None


def _explained(reply: Reply) -> WrittenNumber | None:
    """The number of a first sentence whose explanation follows under that name."""
    if len(reply.sentences) < 2 or not wording.EXPLAINS.match(reply.text, reply.sentences[1].start):
        return None
    return read_sentence(reply, reply.sentences[0])


def _alone_in_bold(reply: Reply) -> WrittenNumber | None:
    in_bold = [number for span in reply.bold if (number := read_sentence(reply, span)) is not None]
    return in_bold[0] if len({number.value for number in in_bold}) == 1 else None


# --- 3. no answer ----------------------------------------------------------------------------------------------------


def _declined(reply: Reply) -> _Found | None:
    """Declining counts unless a conclusion is drawn after it."""
    declines = last_of(wording.DECLINES.finditer(reply.text))
    if declines is None:
        return None
    later = [
        span
        for span in reply.told
        if span.start >= declines.end() and not wording.WOULD_NEED.search(reply.text, span.start, span.end)
    ]
    return None if _conclusion(reply, later) else _Found(None)


def _cut_off(reply: Reply) -> _Found | None:
    """A reply that ends within a sentence has not come to its answer."""
    text = reply.text.rstrip()
    if not reply.sentences or wording.ENDS.search(text, max(0, len(text) - 1)):
        return None
    last = reply.sentences[-1]
    breaks_off = wording.BREAKS_OFF.search(text, max(last.start, len(text) - 20))
    return _Found(None) if breaks_off or _is_unfinished(reply, last, text[last.start : last.end]) else None


def _is_unfinished(reply: Reply, last: Span, sentence: str) -> bool:
    """Whether a last sentence without a full stop does not come to anything, in a text that else has them."""
    if wording.ASIDE.match(sentence) or len(sentence.split()) < 2:
        return False
    numbers = reply.numbers_in(last)
    if not numbers:
        return True
    finished = _concludes(reply, last) or _calculates(reply, last)
    if finished or not wording.MORE_WORDS.match(sentence, numbers[-1].end - last.start):
        return False
    repeats = any(number == numbers[-1] for number in reply.numbers if number.end <= last.start)
    return (
        not repeats
        and (wording.FULL_STOP.search(reply.text, 0, last.start) or wording.OPENS.match(reply.text)) is not None
    )


def _restated(reply: Reply) -> _Found | None:
    """The only number of a last paragraph of one sentence, where the working before it came to that number."""
    if len(reply.told) < 3 or reply.told[-1] != reply.sentences[-1]:
        return None
    last, before = reply.told[-1], reply.told[-2]
    numbers = reply.numbers_in(last)
    if len(numbers) != 1 or not wording.PARAGRAPH.search(reply.text, before.start, last.start):
        return None
    if wording.HYPOTHETICAL.search(reply.text, last.start, last.end):
        return None
    results = (one for one in reply.numbers if one.end <= before.end and one == numbers[0])
    came = any(wording.STATES.search(reply.text, max(0, one.start - 40), one.start) for one in results)
    return _Found(numbers[0]) if came else None


# --- 4. answers that come first --------------------------------------------------------------------------------------


def _answered_first(reply: Reply) -> _Found | None:
    if not reply.told or reply.told[0] != reply.sentences[0]:
        return None
    if wording.RETRACTS.search(reply.text, reply.told[0].end - 1) and not wording.AFFIRMS.search(
        reply.text, reply.told[0].end
    ):
        return None
    first, rest = reply.told[0], [span for span in reply.told[1:] if reply.numbers_in(span)]
    concluded = _conclusion(reply, [span for span in rest if _calculates(reply, span) or _concludes(reply, span)])
    goes_on = any(wording.OPENS_CONCLUSION.match(reply.text, span.start) for span in rest)
    if rest and not goes_on and (number := _first_paragraph(reply, first, rest[-1])) is not None:
        return _Found(number)
    main = main_numbers(reply, first)
    stated = free_numbers(reply.text, main) or main
    if len(stated) != 1 or not rest or not _reads_like_an_answer(reply, first):
        return None
    results = (read_sentence(reply, span) for span in rest if _calculates(reply, span))
    return _Found(stated[0]) if concluded is None or stated[0] in (concluded, *results) else None


def _reads_like_an_answer(reply: Reply, span: Span) -> bool:
    sentence = reply.text[span.start : span.end]
    return wording.ANSWERS.match(sentence) is not None and not wording.TELLS_A_GIVEN.search(sentence)


def _first_paragraph(reply: Reply, first: Span, last: Span) -> WrittenNumber | None:
    """The number of a first sentence that is a paragraph, where the text ends in what it follows from and no result.

    A number that is used again was given.
    """
    if not wording.PARAGRAPH.search(reply.text, first.start, first.end) or _calculates(reply, first):
        return None
    number = read_sentence(reply, first)
    if number is None or number in reply.numbers_in(Span(first.end, len(reply.text))):
        return None
    if wording.RETRACTS.search(reply.text, first.end):
        return None
    return number if _gives_reasons(reply, last) else None


def _gives_reasons(reply: Reply, span: Span) -> bool:
    """Whether a sentence ends in a calculation without its result or in a reason, or only tells what there is."""
    unresolved = wording.OPERATOR.search(reply.text, span.start, reply.numbers_in(span)[-1].start)
    if unresolved or wording.REASON.search(reply.text, span.start, span.end):
        return True
    results = _concludes(reply, span) or _calculates(reply, span)
    return not results and wording.TELLS_A_GIVEN.search(reply.text, span.start, span.end) is not None


# --- 5. conclusions --------------------------------------------------------------------------------------------------


def _concluded(reply: Reply) -> _Found | None:
    return _found(_conclusion(reply, reply.told))


def _conclusion(reply: Reply, sentences: Sequence[Span]) -> WrittenNumber | None:
    """The number of the last sentence that concludes; what is calculated after it makes it a step of the way."""
    told = _real(reply, [span for span in sentences if reply.numbers_in(span)])
    if not told:
        return None
    if wording.STATEMENT.match(reply.text, told[-1].start, told[-1].end):
        return read_last(reply, told)
    calculated: list[Span] = []
    for span in reversed(told):
        if _concludes(reply, span):
            number = read_bold(reply, reply.bold_in(span)) or read_sentence(reply, span)
            return number if _are_checks(reply, calculated, number) else read_last(reply, told)
        if _calculates(reply, span):
            calculated.append(span)
    return read_last(reply, told) if calculated else None


def _are_checks(reply: Reply, calculations: Sequence[Span], number: WrittenNumber | None) -> bool:
    """Whether each calculation leads from the number back to another one that was known before it."""
    if number is None or not calculations:
        return not calculations
    known = set(wording.DIGITS.findall(reply.text, 0, number.start))
    for span in calculations:
        result = read_sentence(reply, span)
        if result is None or result == number or wording.CONTINUES.search(reply.text, span.start, span.end):
            return False
        if number not in reply.numbers_in(Span(span.start, result.start)) or not known.issuperset(
            wording.DIGITS.findall(reply.text, result.start, result.end)
        ):
            return False
    return True


def _real(reply: Reply, told: Sequence[Span]) -> Sequence[Span]:
    """Without what would be in another case, where something is calculated or concluded for this one."""
    real = [span for span in told if not wording.HYPOTHETICAL.search(reply.text, span.start, span.end)]
    return real if any(_calculates(reply, span) or _concludes(reply, span) for span in real) else told


def _concludes(reply: Reply, span: Span) -> bool:
    """Whether a sentence has a number in bold, sums up, or draws a conclusion that has a number."""
    if reply.bold_in(span) or wording.CONCLUDES.search(reply.text, span.start, span.end):
        return True
    step = wording.STEP.search(reply.text, span.start, span.end)
    return step is not None and bool(reply.numbers_in(Span(step.end(), span.end)))


def _calculates(reply: Reply, span: Span) -> bool:
    return wording.EQUALS.search(reply.text, span.start, span.end) is not None


# --- 6. the last number ----------------------------------------------------------------------------------------------


def _said_last(reply: Reply) -> _Found | None:
    unasked = [span for span in reply.sentences if not wording.ASKS.match(reply.text, span.start)]
    number = read_last(reply, reply.told) or read_last(reply, unasked)
    return _found(number or _last_in_words(reply) or _last_ordinal(reply))


def _last_ordinal(reply: Reply) -> WrittenNumber | None:
    """A place in an order, where a reply has no other number: "She came 5th"."""
    ordinal = last_of(wording.ORDINAL.finditer(reply.text))
    return None if ordinal is None else WrittenNumber(Fraction(ordinal["number"]), False, *ordinal.span())


def _last_in_words(reply: Reply) -> WrittenNumber | None:
    """A number in words, of the last sentence that has one; "one" is more often no number."""
    for span in reversed(reply.told):
        sentence = reply.text[max(span.start, span.end - LONGEST_SENTENCE) : span.end]
        if place := last_of(wording.PLACE.finditer(sentence)):
            return WrittenNumber(Fraction(wording.PLACES.index(place[1].lower()) + 1), False, *place.span())
        spelled = last_of(find_number_words(sentence))
        if spelled is not None and (spelled.value != 1 or len(reply.text.split()) < 3):
            return spelled
    return None
