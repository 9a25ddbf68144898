"""The number that a reply states as its answer, by an order of evidence.

`find_stated_number` reads downwards: the first kind of evidence that a reply has decides, and within a kind the last one.

1. A formal answer: a box, `#### 7`, an answer line or announcing sentence in any language, a JSON field, a tag.
2. An answer that stands alone: on the first or last line, or as the only number in bold.
3. Nothing, where the reply declines to answer or was cut off before it could.
4. A conclusion: the last sentence that draws one ("So 8 are left"), sums up ("in total") or ends an equation.
5. The last sentence with a number.

Never counted: what is rejected ("not 12", "rather than 15"), and checks, conditions and remarks after the answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from themis.evaluation.extractors.answers import find_boxes
from themis.evaluation.extractors.number_words import find_number_words
from themis.evaluation.extractors.numbers import WrittenNumber, find_plain_numbers, to_plain_text
from themis.evaluation.extractors.text import last_of, strip_thinking


def find_stated_number(text: str) -> WrittenNumber | None:
    """The number that a careful reader takes for the answer, or None where the reply gives none."""
    reply = _Reply(_first_turn(_without_programs(to_plain_text(strip_thinking(text)))))
    for evidence in (_formal, _standing_alone, _declined, _cut_off, _answered_first, _concluded, _said_last):
        found = evidence(reply)
        if found is not None:
            return found.number
    return None


@dataclass(frozen=True)
class _Found:
    """What a kind of evidence decides: a number, or that there is none."""

    number: WrittenNumber | None


@dataclass(frozen=True)
class _Span:
    start: int
    end: int


@dataclass(frozen=True)
class _Reply:
    """A text with its numbers and sentences, each found once."""

    text: str

    @cached_property
    def numbers(self) -> list[WrittenNumber]:
        """Without those that the text rejects."""
        return [number for number in find_plain_numbers(self.text) if not self._is_rejected(number)]

    @cached_property
    def _starts(self) -> list[int]:
        return [number.start for number in self.numbers]

    def numbers_in(self, span: _Span) -> list[WrittenNumber]:
        return self.numbers[bisect_left(self._starts, span.start) : bisect_left(self._starts, span.end)]

    def _is_rejected(self, number: WrittenNumber) -> bool:
        before = self.text[max(0, number.start - 40) : number.start]
        return bool(_REJECTS_NEXT.search(before) or _REJECTS_LAST.match(self.text, number.end))

    @cached_property
    def sentences(self) -> list[_Span]:
        ends = [found.end() for found in _SENTENCE_END.finditer(self.text)]
        spans = [_Span(*ends) for ends in zip([0, *ends], [*ends, len(self.text)], strict=True)]
        return [span for span in spans if self.text[span.start : span.end].strip()]

    @cached_property
    def told(self) -> list[_Span]:
        """The sentences that are no check, condition, question or remark."""
        told: list[_Span] = []
        aside = False
        for span in self.sentences:
            sentence = self.text[span.start : span.end]
            if _ASIDE_HEADING.match(sentence):
                aside = True
            elif aside and _MARKER.search(sentence):
                aside = False
            if not aside and not _ASIDE.match(sentence) and not _IS_QUESTION.search(sentence):
                told.append(span)
        return told

    @cached_property
    def bold(self) -> list[_Span]:
        """What is in bold and holds a number, but is no label or heading."""
        spans = (_Span(*found.span("inside")) for found in _BOLD.finditer(self.text))
        return [span for span in spans if self.numbers_in(span)]


def _first_turn(text: str) -> str:
    """The text up to where the model goes on with a question of its own, after it has answered."""
    turn = next((turn for turn in _NEXT_TURN.finditer(text) if text[: turn.start()].strip()), None)
    if turn is None:
        return text
    before = _Reply(text[: turn.start()])
    return before.text if _formal(before) or _standing_alone(before) else text



def _without_programs(text: str) -> str:
    """The text without blocks of code and the marks of others, unless there is nothing else in it."""
    rest = _RULE.sub("", _PROGRAM.sub("", text))
    return rest if rest.strip() else text


_PROGRAM = re.compile(r"^```(?!json|text|txt|latex|tex|markdown|md|math)[A-Za-z+]{1,20}\n(?:(?!```)[^\n]*\n)*(?:```|\Z)", re.MULTILINE)
_RULE = re.compile(r"^[ \t]{0,3}(?:```\w*|-{3,}|\*{3,}|_{3,}|={3,})[ \t]*$", re.MULTILINE)
_NEXT_TURN = re.compile(r"\n[ \t*#]{0,9}(?:Q|Question|User|Human|Problem)\s?\d{0,3}[ *]{0,3}:")
_SENTENCE_END = re.compile(
    r"(?<!\bi\.e\.)(?<!\be\.g\.)(?<!\bd\.h\.)(?<!\bz\.B\.)(?<!\bRs\.)(?<!\bapprox\.)(?<!\bMr\.)(?<!\bMrs\.)(?<!\bDr\.)"
    r"(?<!\bNo\.)(?<!\bvs\.)(?<!\bca\.)(?<=[.!?])[\"'”)*`\]]{0,4}\s+(?![=≈])|[。！？，；]|[\n\r]+"
)
_BOLD = re.compile(
    r"\*\*(?!\s)(?!(?:step|part|method|case|note|day|week|month|year|example|option|approach)\b|\d{1,2}[.)]\s)"
    r"(?P<inside>[^*\n]{1,300})(?<!:)\*\*(?!\s?:)",
    re.IGNORECASE,
)
_REJECTS_NEXT = re.compile(
    r"(?:\b(?:not|rather than|instead of|isn't|wasn't|aren't|never|cannot be|can't be|nicht|statt|pas|não|non|no es|не|а не)|n't|不是|而不是|ではなく)"
    r"\s*(?:just|only|the|be|by|equal to|exactly)?\s*[$€£*_\"'(]*$",
    re.IGNORECASE,
)
_REJECTS_LAST = re.compile(
    r"[*_`]{0,4}(?:,|\.\.\.|…|\s?[—-])\s?(?:I mean\b|I meant\b|sorry\b|no, |wait, |or rather\b|make that\b|scratch that\b)|"
    r"[*_`\"')]{0,4}\s(?:\w+\s)?(?:(?:is|was|would be|seems|looks)\s(?:clearly\s|also\s)?(?:wrong|incorrect|not|too)\b|cannot be\b|can't be\b)",
    re.IGNORECASE,
)

# --- 1. formal answers -----------------------------------------------------------------------------------------------


def _formal(reply: _Reply) -> _Found | None:
    """The last formal answer that states a number, or that there is none."""
    answers = sorted(_formal_answers(reply), key=lambda answer: answer.start, reverse=True)
    for answer in answers:
        if _NO_ANSWER.match(reply.text, answer.start):
            return _Found(None)
        number = _stated(reply, answer)
        if number is not None and not _is_cut(reply, number, answers):
            return _Found(_corrected(reply, number.end) or number)
    return None


def _is_cut(reply: _Reply, number: WrittenNumber, answers: Sequence[_Answer]) -> bool:
    """Whether the text ends within a number that it has stated before, as that of a model that repeats itself."""
    if number.end < len(reply.text.rstrip()):
        return False
    earlier = (_stated(reply, answer) for answer in answers[:3] if answer.end < number.start)
    return any(one is not None and one != number and str(one).startswith(str(number)) for one in earlier)


@dataclass(frozen=True)
class _Answer(_Span):
    """What a formal answer says; whether it may be a whole working that ends in the answer."""

    working: bool = False


def _formal_answers(reply: _Reply) -> Iterator[_Answer]:
    text = reply.text
    for box in find_boxes(text):
        yield _Answer(box.inside.start, box.inside.stop)
    for hashes in _HASHES.finditer(text):
        yield _Answer(hashes.end(), _end_of_line(text, hashes.end()))
    for heading in _HEADING.finditer(text):
        yield _Answer(heading.end(), len(text), working=True)
    for said in _ANNOUNCES.finditer(text):
        if _SUPPOSES.search(text, max(0, said.start() - 40), said.start()):
            continue
        if (said["says"] or "").startswith(("would", "could", "might")) and _CONDITION.search(text, max(0, said.start() - 200), said.start()):
            continue
        end = _end_of_line(text, said.end())
        if said["says"] and (sentence := _SENTENCE_END.search(text, said.end(), end)):
            end = sentence.start()
        yield _Answer(said.end(), end, working=not said["says"])


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _stated(reply: _Reply, answer: _Answer) -> WrittenNumber | None:
    """The number that the answer begins with; else where its sentence or working arrives."""
    text = reply.text
    begins = _LEAD.match(text, answer.start, answer.end)
    start = begins.end() if begins else answer.start
    numbers = reply.numbers_in(answer)
    if numbers and numbers[0].start <= start and not _CALCULATES.match(text, numbers[0].end):
        return numbers[0]
    spelled = next(find_number_words(text[start : min(start + 100, answer.end)]), None)
    if spelled is not None and not spelled.start:
        return replace(spelled, start=start, end=start + spelled.end)
    if answer.working:
        sentences = [span for span in reply.told if answer.start <= span.end - 1 and span.start < answer.end]
        clipped = [_Span(max(span.start, answer.start), min(span.end, answer.end)) for span in sentences]
        return _conclusion(reply, clipped) or _last_read(reply, clipped)
    return _read_sentence(reply, answer)


def _corrected(reply: _Reply, after: int) -> WrittenNumber | None:
    """Where a formal answer is taken back afterwards, what is concluded instead."""
    retracts = _RETRACTS.search(reply.text, after)
    if retracts is None or _AFFIRMS.search(reply.text, retracts.start()):
        return None
    sentences = [span for span in reply.told if span.start >= retracts.start() or span.end > retracts.end()]
    return _conclusion(reply, sentences)


_HASHES = re.compile(r"####[ \t]*(?=[*$€£ ]{0,4}-?[$€£]?\.?\d)(?![*]{0,2}\d{1,2}[.)]\s+\D)")
_NOUNS = (
    r"answer|ans|antwort|réponse|respuesta|resposta|risposta|antwoord|svar|svaret|odpowiedź|odpověď|cevap|yanıt|jawaban"
    r"|jawabannya|vastaus|válasz|răspuns|đáp án|đáp số|ответ|відповідь|απάντηση"
)
_BARE_NOUNS = r"答案|答え|解答|正解|答|정답|답|الجواب|الإجابة(?:\sالنهائية)?|الإجابة|جواب|पاسخ|उत्तर|جواب|คำตอบ|תשובה|উত্তর"
_VERBS = (
    r"(?:would|should|must|will|could|might|has to|have to)\s(?:\w+\s)?be|is|was|equals|comes (?:out )?to|becomes|ist|lautet"
    r"|wäre|beträgt|est(?:\sde)?|es(?:\sde)?|sería|é(?:\sde)?|seria|è|sarebbe|är|er|adalah|là|to(?=\s[\d*])|jest|wynosi|este|είναι|равен|это"
)
_ANNOUNCES = re.compile(
    rf"""
    (?<![A-Za-z/]) (?<!</final_) (?:{_NOUNS}) (?![^\W_])
    (?: [^\n.:=|]{{0,160}}? \b(?P<says>{_VERBS})(?!\w)
      | [^\n.:=|\d]{{0,30}}? (?: [:=|>] | \s[-→—](?=\s) ) )
    [\s:*_]{{0,20}} (?!not\b)
  | (?:{_BARE_NOUNS}) [\s*]{{0,4}} (?:应该是|應該是|就是|是|为|為|は|가|은|는|هو|هي|[:=|])? [\s:*_]{{0,20}}
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HEADING = re.compile(rf"^[ \t#*_>]{{0,9}}(?:the\s|my\s)?(?:final\s)?(?:{_NOUNS})[ \t*_:#]{{0,9}}\n\s*", re.MULTILINE | re.IGNORECASE)
_SUPPOSES = re.compile(r"\b(?:if|whether|suppose|supposing|assuming|unless|wrong|incorrect|long|longer|detailed|first|initial|previous|original|old|earlier)\s(?:the\s|your\s|my\s)?(?:\w+\s)?$|\b(?:to|can|could|cannot|can't|I|we|please)\s$", re.IGNORECASE)
_CONDITION = re.compile(r"(?:^|[.!?:\n]\s?)[\s*_(]*(?:if|had|without|otherwise|with)\b[^.!?\n]*$", re.IGNORECASE)
_LEAD = re.compile(
    r"(?:[\s*_`\"'“<\[({|~≈:>=\\-]|\$(?!\d)|(?:approximately|approx\.?|about|around|exactly|roughly|nearly|probably|likely|maybe|just"
    r"|only|simply|indeed|clearly|equal to|a total of|USD|EUR|GBP|INR|Rs\.?|CHF|US|R(?=\$)|ungefähr|etwa|environ|aproximadamente|circa"
    r"|примерно|около|约|大约|約|[a-zA-Z](?=\s?=)|is|de)(?![^\W\d_]))*",
    re.IGNORECASE,
)
_CALCULATES = re.compile(
    r"[*_`)\s]{0,4}(?:[A-Za-z°%$€]{1,12}\s)?(?:[+×·÷*/^]|-(?=[\s\d])|x(?=\s?\d))\s?[\d(√$]|\s?!\s?=|[a-z]\s?[=+-]", re.IGNORECASE
)
_NO_ANSWER = re.compile(
    r"[\s*_`\"'“<\[({$]*(?:null(?=\s*[,}])|none given|unknown|n/?a\b|undefined|infinit|∞|cannot|can't|not\s(?:enough|possible|determin|given|known"
    r"|defined)|impossible|undetermined|indeterminate|no\s(?:answer|solution)|insufficient|unclear|it depends)",
    re.IGNORECASE,
)
_RETRACTS = re.compile(
    r"(?:^|[.!?:\n(*_\s-])(?:wait|actually|hmm|oops|correction|sorry|apologies|I apologi[sz]e|scratch that|on second thought|no,|no\.|let me re"
    r"|I (?:made|forgot|mis|overlooked)|there(?:'s| is| was) a(?:n| small)? (?:mistake|error))",
    re.IGNORECASE,
)
_AFFIRMS = re.compile(
    r"\b(?:is|was|looks|that's|seems|still|indeed|are)\s(?:\w+\s)?(?:correct|right|fine|holds?)\b|\bchecks out\b|\bconfirm|✓|✔|✅|\bstands\b|\bmatches\b",
    re.IGNORECASE,
)

# --- 2. answers that stand alone -------------------------------------------------------------------------------------


def _standing_alone(reply: _Reply) -> _Found | None:
    lines = [_Span(*found.span()) for found in _LINE.finditer(reply.text)]
    for line in lines[-1:] + lines[:1] if len(lines) > 1 else lines:
        if len(lines) > 1 and _ROW_OR_BULLET.match(reply.text, line.start):
            continue
        if (alone := _alone(reply, line)) is not None:
            return _Found(alone)
    for first in reply.sentences[:1]:
        if (spelled := _alone_in_words(reply.text[first.start : first.end])) is not None:
            return _Found(spelled)
        if (alone := _alone(reply, first) or _begins(reply, first)) is not None:
            return _Found(alone)
    if (explained := _explained(reply)) is not None:
        return _Found(explained)
    in_bold = [_read_sentence(reply, span) for span in reply.bold]
    if in_bold and len({number.value for number in in_bold if number is not None}) == 1:
        return _Found(in_bold[0])
    return None


def _alone(reply: _Reply, span: _Span) -> WrittenNumber | None:
    """The number of a line or sentence that says nothing else."""
    numbers = reply.numbers_in(span)
    if len(numbers) != 1:
        return None
    return numbers[0] if _stands_alone(reply, span, numbers[0], _AFTER_ALONE) else None


def _alone_in_words(sentence: str) -> WrittenNumber | None:
    spelled, *more = [*find_number_words(sentence), None]
    if spelled is None or more != [None] or sentence[: spelled.start].strip(" *_#>-"):
        return None
    return spelled if _AFTER_ALONE.fullmatch(sentence, spelled.end) else None


def _begins(reply: _Reply, span: _Span) -> WrittenNumber | None:
    """The number that a sentence begins with before it explains it: `40 hours: 8 a day`, `24 - that is 4!`."""
    first = next(iter(reply.numbers_in(span)), None)
    return first if first is not None and _stands_alone(reply, span, first, _BEFORE_REMARK) else None


def _stands_alone(reply: _Reply, span: _Span, number: WrittenNumber, after: re.Pattern[str]) -> bool:
    before = _BEFORE_ALONE.fullmatch(reply.text, span.start, number.start)
    return before is not None and after.fullmatch(reply.text, number.end, span.end) is not None


def _explained(reply: _Reply) -> WrittenNumber | None:
    """The number of a first sentence whose explanation follows under that name."""
    if len(reply.sentences) < 2 or not _EXPLAINS.match(reply.text, reply.sentences[1].start):
        return None
    return _read_sentence(reply, reply.sentences[0])


_EXPLAINS = re.compile(
    r"[\s*_#>(\-•]*(?:breakdown|explanation|using|here(?:'s|’s| is) (?:why|how|the)|reasoning|reason|because|why|details|working|steps|calculation|how"
    r"|erklärung|begründung|explication|explicación|explicação|spiegazione|объяснение|解释|解析|説明|설명|الشرح|व्याख्या)\b",
    re.IGNORECASE,
)
_LINE = re.compile(r"[^\n]*\S[^\n]*")
_ROW_OR_BULLET = re.compile(r"\s*(?:\||[-*•+]\s)")
_BEFORE_ALONE = re.compile(
    r"(?:[^\w+×·÷/%.,]|\b(?:it's|it is|that's|USD|EUR|GBP|INR|Rs\.?|about|approximately|so|yes|only|just|exactly|sure|TL;DR|short answer|in short)\b)*", re.IGNORECASE
)
_BEFORE_REMARK = re.compile(
    r"[*_$)%°]{0,4}(?:\s[^\W\d_]+){0,3}(?:\^\d)?[*_$)]{0,4}(?::|\s?[—(;]|\s-|,(?=\s[a-z])|\s(?=because\b|since\b|as\b))\s?(?=[^\W\d_]|[\"'(√]|\d+\s[a-z]{3,})(?s:.*)"
)
_AFTER_ALONE = re.compile(r"[^\w=+×÷?.]*(?:(?!(?:is|are|was|were|plus|minus|times|has|have)\b)[^\W\d_]+[^\w=+×÷?.]{1,3}){0,2}(?:[^\W\d_]+)?(?:\^\d)?[^\w=+×÷?.]*(?:\.(?!\.)[^\w=+×÷?.]*)?")

# --- 3. no answer ----------------------------------------------------------------------------------------------------


def _declined(reply: _Reply) -> _Found | None:
    """Declining counts unless a conclusion is drawn after it."""
    declines = last_of(_DECLINES.finditer(reply.text))
    if declines is None:
        return None
    later = [span for span in reply.told if span.start >= declines.end()]
    return None if _conclusion(reply, later) else _Found(None)


def _cut_off(reply: _Reply) -> _Found | None:
    """A reply that ends within a sentence has not come to its answer."""
    text = reply.text.rstrip()
    last = reply.sentences[-1] if reply.sentences else None
    if last is None or _ENDS.search(text):
        return None
    sentence = text[last.start : last.end]
    return _Found(None) if _BREAKS_OFF.search(text) or _is_unfinished(reply, last, sentence) else None


def _is_unfinished(reply: _Reply, last: _Span, sentence: str) -> bool:
    """Whether a last sentence without a full stop does not come to anything, in a text that else has them."""
    if _ASIDE.match(sentence) or len(sentence.split()) < 2:
        return False
    numbers = reply.numbers_in(last)
    if not numbers:
        return True
    if _concludes(reply, last) or _ends_equation(reply, last) or not _MORE_WORDS.match(sentence, numbers[-1].end - last.start):
        return False
    repeats = any(number == numbers[-1] for number in reply.numbers if number.end <= last.start)
    return not repeats and (_FULL_STOP.search(reply.text, 0, last.start) or _OPENS.match(reply.text)) is not None


_DECLINES = re.compile(
    r"\b(?:I(?:'m|’m| am) (?:sorry|unable|not able)|I (?:can(?:'t|’t|not)|won't|will not|could not|couldn't) (?:help|assist|answer|provide|determine"
    r"|say|tell|solve|compute|give|do)|as an AI|(?:not|no) enough\b|without (?:more|further)\b|nicht (?:bestimmen|möglich|berechnen)|insufficient|(?:can(?:not|'t| not)|could not) (?:be )?"
    r"(?:determine|answer|say|tell|compute|calculate|solve|found|work)\w*|unable to|impossible to|not possible to|does(?:n't|n’t| not) (?:say|give|specif|provide"
    r"|state|tell|mention|contain|include)|no (?:real |unique |integer )?solutions?|is undefined|depends on|I (?:do not|don't|don’t) (?:know|have)"
    r"|need more information|weiß (?:es |ich )?nicht|nicht genug|je ne (?:sais|peux)|no (?:puedo|sé|hay suficiente)|não (?:sei|posso|há)|non (?:posso|so)\b)"
    r"|n['’]t enough\b|не могу|не знаю|недостаточно|无法|無法|不知道|信息不足|わかりません|できません|لا أستطيع|لا يمكن|알 수 없",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[.!?。！？।)\]}>|`\"'”*✓✔☺-⟿😀-🫿]$")
_FULL_STOP = re.compile(r"[a-z)][.!?]\s")
_OPENS = re.compile(r"[\s*_#>]*(?:we know|let(?:'s| us| me)|first|to (?:find|solve|determine|calculate)|given|step|okay|ok|alright|start)\b", re.IGNORECASE)
_MORE_WORDS = re.compile(r"(?:\W+[^\W\d_]+){3}")
_BREAKS_OFF = re.compile(
    r"(?:[=+×·÷*/({,:;-]|\b(?:the|a|an|of|is|are|and|or|to|so|we|which|that|for|with|by|in|at|on|from|then|than|be|has|have|was|were|if|because"
    r"|since|as|need|will|it|each|per|there|when|where|their|his|her))$",
    re.IGNORECASE,
)

# --- 4. conclusions --------------------------------------------------------------------------------------------------


def _answered_first(reply: _Reply) -> _Found | None:
    """The number of a first sentence that reads like an answer, where nothing else is concluded after it."""
    if not reply.told or reply.told[0] != reply.sentences[0]:
        return None
    first, rest = reply.told[0], [span for span in reply.told[1:] if reply.numbers_in(span)]
    stated = _free_numbers(reply.text, _main_numbers(reply, first))
    sentence = reply.text[first.start : first.end]
    if len(stated) != 1 or not rest or not _ANSWERS.match(sentence) or _TELLS_A_GIVEN.search(sentence):
        return None
    number = stated[0]
    concluded = _conclusion(reply, [span for span in rest if _concludes(reply, span) or _ends_equation(reply, span)])
    confirmed = concluded is None or any(_read_sentence(reply, span) == number for span in rest if _ends_equation(reply, span))
    return _Found(number) if confirmed or concluded == number else None


def _concluded(reply: _Reply) -> _Found | None:
    number = _conclusion(reply, reply.told)
    return _Found(number) if number is not None else None


def _conclusion(reply: _Reply, sentences: Sequence[_Span]) -> WrittenNumber | None:
    """The number of the last sentence that concludes; what is calculated after it makes it a step of the way."""
    told = [span for span in sentences if reply.numbers_in(span)]
    if told and _STATEMENT.match(reply.text, told[-1].start, told[-1].end):
        return _last_read(reply, told)
    for place in reversed(range(len(told))):
        if _concludes(reply, told[place]):
            if any(_ends_equation(reply, span) for span in told[place + 1 :]):
                return _last_read(reply, told)
            bold = [inside for inside in reply.bold if told[place].start <= inside.start < told[place].end]
            return _read_sentence(reply, bold[-1] if bold else told[place])
    return _last_read(reply, told) if any(_ends_equation(reply, span) for span in told) else None


def _concludes(reply: _Reply, span: _Span) -> bool:
    """Whether a sentence has a number in bold, sums up, or draws a conclusion that has a number."""
    if any(span.start <= inside.start < span.end for inside in reply.bold) or _MARKER.search(reply.text, span.start, span.end):
        return True
    return any(reply.numbers_in(_Span(step.end(), span.end)) for step in _STEP.finditer(reply.text, span.start, span.end))


def _ends_equation(reply: _Reply, span: _Span) -> bool:
    return _EQUALS.search(reply.text, span.start, span.end) is not None


_STATEMENT = re.compile(r"[\s*_]*(?:the|this|that)\b[^.!?\n=:]*\s(?:is|equals)\s[*$(\\]*-?[$€£]?\d[\d.,]*[^\s]*(?:\s[^\W\d_]+){0,2}\s*$", re.IGNORECASE)
_ANSWERS = re.compile(
    r"[\s*_#>]*(?:it|that|this|you|they|she|he|we|the|there|an?|its|es|er|sie|das|der|die|man|il|elle|c'est|la|le|el|ela|ele|o)\b[^\n=]*?"
    r"\b(?:is|are|it's|takes?|needs?|costs?|would|will|should|must|can|paid|pays?|equals|ist|sind|dauert|kostet|braucht|est|faut|coûte|es|son|cuesta"
    r"|necesita|é|são|custa|precisa|sono|costa|serve)\b"
    r"|[\s*_#>]*(?:son|es|são|é|sono|è|hay|si|se necesitan?|hacen falta|ci vogliono|ci sono|há|нужно|потребуется|понадобится|надо|需要|要)\b"
    r"|[\s*_#>]*\$?\d[^\n=]*?\b(?:are|is|will be)\s(?:needed|required|necessary|enough|left)\b",
    re.IGNORECASE,
)
_TELLS_A_GIVEN = re.compile(
    r"\b(?:has|have|had|starts?|started|begins?|began|buys?|bought|sells|gets?|got|gives?|gave|first|initially|originally|if|let|given|since"
    r"|each|every|per|know|want|asks?|find|hat|hatte|kauft|avait|tenía|tinha|aveva)\b|\bthere (?:are|is|were|was)\b",
    re.IGNORECASE,
)
_MARKER = re.compile(
    r"\b(?:in total|totaal|in all|altogether|overall|finally|(?<!sub)total|totals|together|result|conclusion"
    r"|this means|that means|which means|we get|(?:leaves|leaving|giving|gives|makes)\s(?:(?:her|him|them|us|you|with|a|total|of|it)\s){0,3}\$?\d|in the end|ends up|remain|remains|remaining|left|insgesamt|ergebnis|bleiben"
    r"|au total|résultat|restent|en total|resultado|quedan|no total|restam|in totale|risultato|итого|всего|осталось|totalt)\b"
    r"|一共|总共|共有|剩|合計|残り|المجموع|कुल",
    re.IGNORECASE,
)
_EQUALS = re.compile(r"(?<![<>!=])[=≈](?![=>])")

# --- 5. the last number ----------------------------------------------------------------------------------------------


def _said_last(reply: _Reply) -> _Found | None:
    aside = [span for span in reply.sentences if not _ASKS.match(reply.text, span.start)]
    number = _last_read(reply, reply.told) or _last_read(reply, aside) or _last_word(reply)
    return _Found(number) if number is not None else None


def _last_read(reply: _Reply, sentences: Sequence[_Span]) -> WrittenNumber | None:
    """The number of the last sentence that has one; a year in passing only where there is nothing else."""
    read = [number for span in reversed(sentences) if (number := _read_sentence(reply, span)) is not None]
    return next((number for number in read if not _is_year(reply.text, number)), read[0] if read else None)


def _is_year(text: str, number: WrittenNumber) -> bool:
    return bool(_YEAR.fullmatch(text, number.start, number.end) and _GIVEN_YEAR.search(text, max(0, number.start - 20), number.start))


def _last_word(reply: _Reply) -> WrittenNumber | None:
    """A number in words, of the last sentence; "one" is more often no number."""
    for span in reversed(reply.told):
        spelled = last_of(find_number_words(reply.text[span.start : span.end]))
        if spelled is not None and (spelled.value != 1 or len(reply.text.split()) < 3):
            return spelled
    return None


# --- within a sentence -----------------------------------------------------------------------------------------------


def _read_sentence(reply: _Reply, span: _Span) -> WrittenNumber | None:
    """Of several numbers the one that the sentence is about: after its last verb or equals sign, and not a given."""
    text = reply.text
    numbers = _main_numbers(reply, _last_step(reply, span))
    if len(numbers) < 2:
        return numbers[0] if numbers else None
    if _IS_SUBJECT.match(text, numbers[0].end) and not text[span.start : numbers[0].start].strip(" *_$-"):
        return numbers[0]
    free = _free_numbers(text, numbers)
    for number in reversed(numbers):
        states = _STATES.search(text, max(span.start, number.start - 40), number.start)
        if states and number in free:
            if not _CALCULATES.match(text, number.end):
                return number
            # "12 = 3 x 4": what stands before the equals sign.
            before = [earlier for earlier in numbers if earlier.end <= states.start()]
            if states["sign"] and before:
                return before[-1]
    return (free or numbers)[-1]


def _free_numbers(text: str, numbers: Sequence[WrittenNumber]) -> list[WrittenNumber]:
    """Those that no preposition or article marks as given; what is joined to a given one is given as well."""
    free: list[WrittenNumber] = []
    last: WrittenNumber | None = None
    given = False
    for number in numbers:
        joined = last is not None and _JOINS.fullmatch(text, last.end, number.start)
        if not joined or not given:
            given = _is_given(text, number)
        if not given:
            free.append(number)
        last = number
    return free


def _is_given(text: str, number: WrittenNumber) -> bool:
    before = max(0, number.start - 40), number.start
    if _SUPPOSED.search(text, *before) or _is_year(text, number):
        return True
    return _GIVEN.search(text, *before) is not None and _STATES.search(text, *before) is None


def _last_step(reply: _Reply, span: _Span) -> _Span:
    """What follows the last "so" of a sentence, where a number does."""
    for step in reversed(list(_STEP.finditer(reply.text, span.start, span.end))):
        rest = _Span(step.end(), span.end)
        if reply.numbers_in(rest):
            return rest
    return span


def _main_numbers(reply: _Reply, span: _Span) -> list[WrittenNumber]:
    """Those outside of brackets and subordinate clauses, where there are any."""
    text = reply.text
    numbers = reply.numbers_in(span)
    brackets = [found.span() for found in _BRACKETS.finditer(text, span.start, span.end)]
    outside = [number for number in numbers if not any(start < number.start < end for start, end in brackets)] or numbers
    free = _free_numbers(text, outside) or outside
    for clause in _CLAUSE.finditer(text, free[0].end, span.end) if free else ():
        if clause["result"] and (_EXPRESSION.search(text, span.start, clause.start()) or _MARKER.search(text, clause.end(), span.end)):
            continue
        return [number for number in outside if number.start < clause.start()]
    return outside


_BRACKETS = re.compile(r"(?<![\w^\\])\([^()\n]{2,300}\)")
_CLAUSE = re.compile(
    r",?\s(?:because|since|where|given|who|whose|when|while|although|assuming|provided|i\.e\.|that is,|as there|cioè|soit|es decir|ou seja|das heißt|d\.h\.|то есть)\b|,\s(?:with|not|if|of which|including|up from|down from|about|roughly|around|approximately|almost|nearly|attained|achieved|reached)\b|;\s(?=[^=]*$)"
    r"|,\s(?=\S{1,9}\s(?:\w+\s)?(?:more|fewer|less|higher|lower)\sthan\b)|(?P<result>,\swhich\b)"
    r"|:\s(?=[^\n:=]*\d[^\n=\d]+\d[^\n=]*$)|\s(?:weil|denn|da|wobei|car|parce que|puisque|porque|ya que|pois|perché|poiché|потому|так как)\s",
    re.IGNORECASE,
)
_EXPRESSION = re.compile(r"[=≈×+*/]|\.\.\.|…|\d\s?-\s?\d|\b(?:multiplied|divided|times|plus|minus|added|subtracted)\b")
_STEP = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|which means|meaning|also|daher|somit|folglich|donc|ainsi|par conséquent|por lo tanto|por tanto|así que"
    r"|entonces|portanto|logo|então|quindi|perciò|dunque|следовательно|таким образом|значит|поэтому|dus|derfor|alltså|jadi|vậy)\b"
    r"|所以|因此|故|したがって|よって|따라서|그러므로|لذلك|إذن|अतः|इसलिए|[⇒→➜]|=>",
    re.IGNORECASE,
)
_IS_SUBJECT = re.compile(r"[*_$)]{0,4}\s(?:is|are|was|were)\s", re.IGNORECASE)
_STATES = re.compile(
    r"(?:(?P<sign>[=≈⇒→:]|=>)|\b(?:is|are|was|were|be|(?:it|that|there|he|she)['’]s|equals?|equal to|gives?|gets?|makes?|leaves?|returns?|prints?|outputs?|has|have|had|becomes?|means|yields?|(?:faster|slower|taller|longer|shorter|older|younger|heavier|cheaper|creased?|rose|fell|dropped|grew|up|down|higher|lower|larger|smaller)\sby"
    r"|(?:comes?|arrives?|evaluates?|corresponds?|works?|adds?|amounts?|sums?|totals?|reduces?|simplifies|rounds?|drops?|rises?|grows?|turns?)"
    r"(?:\s(?:out|up|down))?\s(?:to|at)|ist|sind|beträgt|hat|haben|bleiben|est|sont|reste|restent|es|son|hay|quedan|é|são|tem|restam|è|sono|ha|restano|равно|осталось)"
    r"|是|为|有|は|了)(?:\s|[*_$€£~(\\]|\b(?:about|approximately|only|just|exactly|then|still|now|a total of|also|de|di)\b)*$",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"(?:\b(?:in|for|from|at|after|before|between|per|by|with|over|on|among|than|below|above|under|the|these|those|all|every|each|first|last|next"
    r"|to|reach|until|within|during|out of|day|week|room|group|both|remaining|other|original|entire|initial|same|adding|subtracting|multiplying|dividing|combining|von|für|aus|mit|nach|den|der"
    r"|auf|bei|pro|des|les|en|pour|par|dans|sur|avec|para|por|las|los|con|entre|em|nas|nos|das|dos|com|di|nei|per|dei|из|в|за|на|по|для|от)"
    r"|(?<!\btotal)(?<!\bsum)(?<!crease)(?<!\bprofit)(?<!\bloss)(?<!\baverage)(?<!\bchange)(?<!\bdifference)(?<!\bvalue)(?<!\bspeed)(?<!\bscore)\s+of"
    r"|^of)\s(?:(?:the|about|its|their|his|her|only|de|den|het|die|das|der|les|las|los|le|gli|as|os|la|el|il)\s)?[$€£(*]*$",
    re.IGNORECASE,
)
# "for n = 5", "to get 100 ml": a condition or an aim, whatever the verb says.
_SUPPOSED = re.compile(
    r"\b(?:for|with|when|at|if|where|let|setting|substituting|using|taking|plugging in)\s+[$*]{0,2}[a-z]{1,3}\s?=\s?[$*]{0,2}$"
    r"|\bto\s(?:reach|get|make|fill|have|earn|buy|cover|finish)\s(?:the\s|a\s|at least\s)?[$€£*]{0,2}$",
    re.IGNORECASE,
)
_GIVEN_YEAR = re.compile(r"\b(?:in|since|by|until|of|from|the|year|im Jahr|en|in the)\s$", re.IGNORECASE)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_JOINS = re.compile(r"[%*$]{0,3}\s?(?:,|and|or|&|und|et|y|e|и)?,?\s?(?:and\s|or\s)?[$€£(*]*")

# --- what is said besides --------------------------------------------------------------------------------------------

_ASIDE_WORDS = (
    r"check|checking|verification|verify|verifying|double[- ]check|sanity check|proof|probe|überprüfung|vérification|comprobación|verificación"
    r"|verificação|verifica|проверка|検算|验证|检验|검산|note|notes|n\.b\.|p\.s\.|ps|confidence|anmerkung|remarque|nota|note bien"
)
_ASIDE = re.compile(
    rf"[\s*_#>(\-•]*(?:(?:{_ASIDE_WORDS})\b|(?:let(?:'s| me| us)|to|we can|you can|I'll|quick)\s(?:also\s|now\s|just\s|quickly\s)?(?:double[- ]?)?(?:check|verify|confirm)"
    r"|if\b|had\b|hope\b|I hope|let me know|would you|feel free|for (?:comparison|reference|example)|by the way|alternatively|remember|recall"
    r"|source|as a (?:check|side note)|wenn\b|si\b|se\b|если\b|如果)|[^\n]{0,400}?[✓✔]|\s*\([^()\n]*\)\W*$",
    re.IGNORECASE,
)
_ASIDE_HEADING = re.compile(rf"[\s*_#>(\-•]*(?:{_ASIDE_WORDS})[\s*_:]*$", re.IGNORECASE)
_ASKS = re.compile(r"[\s*_]*(?:do|did|could|can|would|should|shall|what|how|which|who|are|does)\b", re.IGNORECASE)
_IS_QUESTION = re.compile(r"\?[\s*_\"')]*$")
