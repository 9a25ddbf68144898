"""Answers as models state them, in an order of evidence: given formally, announced in words, concluded, or bare."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors.announcements import (
    ANNOUNCED_AFTER,
    CHOOSES,
    DECLINED,
    FIRM_LABEL,
    MADE_THE_ANSWER,
    NEGATED,
    NO_CONTENT,
    NOT_MEANT,
    PLACEHOLDER,
    SUPPOSED,
    WEAK_NOUN,
    Language,
    languages_of,
    trim_answer,
)
from themis.evaluation.extractors.conclusions import (
    ends_open,
    find_bare,
    find_conclusion,
    find_stated,
)
from themis.evaluation.extractors.emphasis import find_emphasised
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.predicates import cut_after_quantity, find_predicate, take_result
from themis.evaluation.extractors.remarks import split_sentences
from themis.evaluation.extractors.structured import find_json_field
from themis.evaluation.extractors.text import find_next_turns, last_of, shorten, strip_thinking, text_of


@dataclass(frozen=True)
class BoxedExtractor:
    r"""The inside of the last \boxed{...}, with any depth of braces; of boxes that stand together, all of them.

    A box inside the model's reasoning is no answer.

    Args:
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> BoxedExtractor().extract(r"so \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    >>> BoxedExtractor().extract(r"hence \boxed{2} and \boxed{3}")
    '2, 3'
    """

    part: str = "text"

    def extract(self, raw_output: str) -> str:
        text = strip_thinking(text_of(raw_output))
        found = find_boxed_answers(text)
        if not found:
            raise FieldExtractionError(rf"no \boxed{{...}} in {shorten(text_of(raw_output))}")
        return found[-1].said


@dataclass(frozen=True)
class Box:
    r"""The place of one \boxed{...} in a text, and of what is inside it."""

    start: int
    end: int
    inside: slice


# Besides the braces themselves: a backslash and what it escapes, so that \{ neither opens nor closes.
_BOX_TOKEN = lazy_pattern(r"\\{1,2}(?:boxed|fbox)\s*+(?:(?P<opens>\{)|(?P<bare>\w+(?:\.\d+)?))|\\.|[{}]", re.DOTALL)


def find_boxes(text: str) -> list[Box]:
    """Every closed box, in the order in which they open; of nested ones each."""
    found: list[Box] = []
    open_braces: list[re.Match[str]] = []
    for token in _BOX_TOKEN.finditer(text):
        if token["opens"] or token.group() == "{":
            open_braces.append(token)
        elif token["bare"]:
            found.append(Box(token.start(), token.end(), slice(*token.span("bare"))))
        elif token.group() == "}" and open_braces:
            opened = open_braces.pop()
            if opened["opens"]:
                found.append(Box(opened.start(), token.end(), slice(opened.end(), token.start())))
    if not found:
        found = [box for opened in open_braces if opened["opens"] and (box := _closed_by_dollar(text, opened))]
    return sorted(found, key=lambda box: box.start)


def _closed_by_dollar(text: str, opened: re.Match[str]) -> Box | None:
    r"""A box whose last brace was forgotten: $\boxed{\frac{2}{9}$."""
    end = text.find("$", opened.end(), opened.end() + 200)
    return (
        Box(opened.start(), end, slice(opened.end(), end))
        if end >= 0 and "\n" not in text[opened.end() : end]
        else None
    )


@dataclass(frozen=True)
class FinalAnswerExtractor:
    r"""The answer that a reply gives, by the firmest evidence there is, and of equally firm evidence the last.

    In this order: given formally (a box, `####`, a line `Answer: ...`, a tag <answer>, a JSON field "answer"); announced
    ("the answer is ..."); concluded ("so the total is ..."); or bare, where the reply is nothing else or begins with it.
    Reasons, hedges, next sentences and typesetting are left out, and what is rejected or only supposed does not count.

    Args:
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> FinalAnswerExtractor().extract("Hence the final answer is **7**.")
    '7'
    >>> FinalAnswerExtractor().extract("Answer: probably 12, because 3 * 4 = 12.\n\nThe answer is not 34.")
    '12'
    """

    part: str = "text"

    def extract(self, raw_output: str) -> str:
        said = text_of(raw_output)
        text = _first_turn(strip_thinking(said))
        answer = find_final_answer(text) or (None if ends_open(text) else find_stated(text))
        if not answer:
            raise FieldExtractionError(f"no announced answer in {shorten(said)}")
        return answer


def _first_turn(text: str) -> str:
    """The text up to where the model goes on with a question of its own, after it has answered the one that was asked."""
    for end in find_next_turns(text):
        head = text[:end].strip()
        is_bare = not head.startswith("#") and len(head.split()) <= _LONG_WORDS and find_bare(head)
        if is_bare or find_final_answer(head):
            return head
    return text


class Evidence(IntEnum):
    """How firmly a text gives an answer."""

    SUPPOSED = 1  # "one might think that the answer is 5"
    ANNOUNCED = 2
    FORMAL = 3


@dataclass(frozen=True)
class Statement:
    """Something that a text gives as its answer: where, how firmly, and what it says there."""

    evidence: Evidence
    start: int
    said: str
    # What a box, a tag or a field holds is the answer as it stands; a line goes on with reasons.
    whole: bool = False

    def answer(self) -> str:
        if self.whole:
            return trim_whole(self.said)
        if quoted := _QUOTED.fullmatch(self.said.strip()):
            return trim_answer(quoted[1]) if find_final_answer(quoted[1]) else quoted[1].strip()
        trimmed = trim_answer(self.said)
        predicate = None if _is_title(trimmed) else find_predicate(trimmed)
        if predicate and trimmed[0].islower() and predicate[0].islower() and _HAPPENED.search(trimmed):
            predicate = None
        emphasised = find_emphasised(self.said)
        if emphasised and (predicate or _SENTENCE.match(trimmed) or len(trimmed.split()) > len(emphasised.split()) + 2):
            return emphasised
        return take_result(cut_after_quantity(trim_answer(predicate)) if predicate else trimmed)


# "the harbour was closed for three days": what happened, and no name or figure.
_HAPPENED = lazy_pattern(r"\b(?:is|was|were|are|had|has) (?!the |an? )[a-z]+(?:ed|en|ing|wn|ost|eft|one)\b(?! by )")
_SENTENCE = lazy_pattern(r"(?:The|It|He|She|They|We|This|That|There)(?: \S+){3}")


def _is_title(said: str) -> bool:
    """Whether all words of some length have a capital: You've Got Mail."""
    words = [word for word in said.split() if len(word) > 2]
    return len(words) > 1 and len(words[-1]) < 20 and all(word[0].isupper() for word in words)


# Words that are quoted are the answer as they stand, also where they are a sentence.
_QUOTED = lazy_pattern(r"[*_]{0,3}[\"“«]([^\"“”«»\n]{1,300}?)\.?[\"”»]\.?[*_]{0,3}")


def find_final_answer(text: str) -> str | None:
    r"""The answer that a text gives formally or announces, without its typesetting, or None.

    >>> find_final_answer(r"The answer is \(\frac{1}{2}\).")
    '\\frac{1}{2}'
    """
    statements = _by_weight(find_statements(text))
    answers = [answer for statement in statements if (answer := statement.answer())]
    if len(answers) > 1 and text.rstrip().endswith(answers[0]) and answers[1].startswith(answers[0]):
        return answers[1]  # said again, and cut off: "The answer is Mars. The answer is Ma"
    return answers[0] if answers else None


def find_announced_line(text: str) -> str | None:
    """What follows the firmest and last announcement on its line: after ####, "Answer:" or "the answer is"; or None."""
    lines = (one for one in _by_weight(find_statements(text)) if not one.whole and one.said.strip())
    return next((statement.said for statement in lines), None)


def find_statements(text: str) -> list[Statement]:
    """Everything that a text gives as its answer, except what it rejects."""
    return [
        *find_boxed_answers(text),
        *_find_hashes(text),
        *_find_tagged(text),
        *_find_fields(text),
        *_find_in_json(text),
        *(one for language in languages_of(text) for one in _find_labelled(text, language)),
        *(one for language in languages_of(text) for one in _find_announced(text, language)),
        *_find_announced_after(text),
        *_find_chosen(text),
        *_find_sought(text),
    ]


def _by_weight(statements: Sequence[Statement]) -> list[Statement]:
    """Firmest first, and of equally firm ones the last first."""
    return sorted(statements, key=lambda one: (one.evidence, one.start), reverse=True)


# --- formal answers -----------------------------------------------------------------------------------------------------

_CONNECTS = lazy_pattern(
    r"(?:[\s$,;.]|\\quad|\\qquad|\\[,;:()\[\]]|\\text\s*\{)*(?P<word>and|or|und|et|y|e|и|oder|ou|o)?[\s$,}\\()quad]*"
)


def find_boxed_answers(text: str) -> list[Statement]:
    r"""The boxes of a text as answers; those that only a comma or "and" separates are one: \boxed{1} and \boxed{2}."""
    found: list[Statement] = []
    end = None
    for box in find_boxes(text):
        said = text[box.inside].strip()
        if not said or PLACEHOLDER.fullmatch(said):
            continue
        joins = _CONNECTS.fullmatch(text, end, box.start) if end is not None and end <= box.start <= end + 30 else None
        if joins and (joins["word"] or "," in joins.group() or ";" in joins.group()):
            last = found.pop()
            word = f" {joins['word']} " if joins["word"] in ("or", "oder", "ou", "o") else ", "
            found.append(Statement(Evidence.FORMAL, last.start, last.said + word + said, whole=True))
        else:
            found.append(Statement(Evidence.FORMAL, box.start, said, whole=True))
        end = box.end
    return found


_HASHES = lazy_pattern(r"(?:^|(?<=[\s.]))####(?!#)[ \t]*(?=\S)(?P<said>[^\n]*)", re.MULTILINE)
_HEADING = lazy_pattern(
    r"(?:\d+[.)]\s|\*{0,2}(?:step|part|case|method|approach|solution|explanation|answer|final answer|conclusion"
    r"|reasoning|check"
    r"|verification|given|result|summary|note|why|calculation)s?\b)|[^\n]*[:：]\W*$",
    re.IGNORECASE,
)


def _find_hashes(text: str) -> Iterator[Statement]:
    for found in _HASHES.finditer(text):
        if not _HEADING.match(found["said"]) and not PLACEHOLDER.match(found["said"]):
            yield Statement(Evidence.FORMAL, found.start(), found["said"])


_TAG = lazy_pattern(
    r"<(?P<close>/?)(?:(?:final|short|my|direct)[_ -]?(?:answer|response)|answer|final_result|ans|final|result|output"
    r"|response|reply"
    r"|solution|prediction)(?:\s[^<>\n]{0,80})?>",
    re.IGNORECASE,
)


def _find_tagged(text: str) -> Iterator[Statement]:
    opened: re.Match[str] | None = None
    for tag in _TAG.finditer(text):
        if not tag["close"]:
            opened = tag
        elif opened is not None:
            yield from _as_whole(text[opened.end() : tag.start()], opened.start())
            opened = None
    # Cut off, or never closed: only where nothing but the answer follows.
    if opened is not None and len(text) - opened.end() <= 200:
        yield from _as_whole(text[opened.end() :], opened.start())


# Fields of programs around a model, and lines that say no more than that they are the last.
_FIELD = lazy_pattern(
    r"^\[\[ ## (?:final_)?(?:answer|response|output) ## \]\][ \t]*\n*(?P<marked>[^\n]+)"
    r"|(?:\bfinish|^action:[ \t]{0,3}(?:answer|submit|final_answer))\[(?P<finished>[^\[\]\n]{1,300})\]"
    r"|^[ \t>*_#-]{0,6}(?:final|prediction|(?:final )?(?:response|output|value|decision|choice))[ *_]{0,4}[:：][ *_]{0,4}"
    r"(?P<line>[^\s*_][^\n]*)"
    r"|^[ \t>*_-]{0,6}Q(?:uestion)?[ \d]{0,3}[ *_]{0,4}[:：][^\n]*\n+[ \t>*_-]{0,6}A[ \d]{0,3}[ *_]{0,4}[:：][ *_]{0,4}"
    r"(?P<replied>\S[^\n]*)(?!\s+B[:.)])",
    re.MULTILINE | re.IGNORECASE,
)


def _find_fields(text: str) -> Iterator[Statement]:
    for found in deque(_FIELD.finditer(text), maxlen=_LOOKED_AT):
        if said := found["marked"] or found["finished"]:
            yield Statement(Evidence.FORMAL, found.start(), said, whole=True)
        elif replied := found["replied"]:
            if len(split_sentences(replied)) == 1:
                yield Statement(Evidence.FORMAL, found.start(), replied)
        elif len(trim_answer(found["line"]).split()) <= _LONG_WORDS and not PLACEHOLDER.match(found["line"]):
            yield Statement(Evidence.SUPPOSED, found.start(), found["line"])


_KEY = lazy_pattern(r"[{,\s][\"'“]?(?:final[_ ]?answer|answer)[\"'”]?\s{0,9}:", re.IGNORECASE)


# An object with one field is its answer, whatever it is called; what tells of a failure or of reasons is none.
_ONLY_FIELD = lazy_pattern(
    r"(?:```(?:json)?\s*)?\{\s*\"(?!(?:error|reason\w*|explanation|thoughts?|query|name|tool|function|action|message|status|refusal|comment)\")"
    r"\w{1,40}\"\s*:\s*(?:\"(?P<text>[^\"\\\n]{1,200})\"|(?P<bare>-?\d[\d.]*|true|false))\s*\}(?:\s*```)?",
    re.IGNORECASE,
)


def _find_in_json(text: str) -> Iterator[Statement]:
    last = last_of(_KEY.finditer(text))
    if last is None and (only := _ONLY_FIELD.fullmatch(text.strip())):
        yield from _as_whole(only["text"] or only["bare"], 0)
    if last is None or "{" not in text:
        return
    for field in ("final_answer", "answer"):
        try:
            value = find_json_field(text, field)
        except FieldExtractionError:
            continue
        if isinstance(value, dict):
            value = next((value[key] for key in ("value", "answer", "text", "result", "final") if key in value), value)
        if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
            value = ", ".join(map(_spell, value))
        if not isinstance(value, dict | list) and value is not None:
            yield from _as_whole(_spell(value), last.start())
            return


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_whole(said: str, start: int) -> Iterator[Statement]:
    """What a tag or a field holds: the answer, or a sentence that announces it."""
    said = re.sub(r"\A<!\[CDATA\[(.*)\]\]>\Z", r"\1", said.strip(), flags=re.DOTALL).strip()
    if said and not PLACEHOLDER.fullmatch(said):
        inside = find_final_answer(said) or find_bare(said) or find_conclusion(said) or said
        yield Statement(Evidence.FORMAL, start, inside, whole=True)


def trim_whole(said: str) -> str:
    """An answer that stands alone, without its typesetting; reasons are cut only where it is a sentence."""
    said = said.strip()
    plain = trim_answer(said) if len(said.split()) > 4 or "\n" in said or not re.search(r"[\s,;(]", said) else ""
    return plain or said.strip('`"* ').removesuffix(".").strip()


# Answers stand at the end: of more announcements than this the first are not looked at.
_LOOKED_AT = 50
# Longer than this, what follows "Answer:" is a working; it counts where nothing shorter is given.
_LONG_WORDS = 20
_SIGNS_A_WORD = 2  # where no blanks part words


def _find_labelled(text: str, language: Language) -> Iterator[Statement]:
    for label in deque(language.label.finditer(text), maxlen=_LOOKED_AT):
        around = f"{label['before']} {label['after']}"
        if NOT_MEANT.search(around) or NEGATED.search(around):
            continue
        if "=" in label["mark"] and _IN_A_PROGRAM.search(text[: label.start()]):
            continue
        content = _content_at(text, label.end())
        if "|" in label["mark"]:
            content = content.partition("|")[0]
            if re.match(r"[^\n]*\n[ \t]*\|[-: |]+\|", text[label.end() : label.end() + 500]):
                continue  # the head of a table
        if _says_nothing(text, content, PLACEHOLDER):
            continue
        weak = WEAK_NOUN.fullmatch(label["noun"]) and not FIRM_LABEL.search(around)
        if _IN_SHORT.fullmatch(label["noun"]) and len(content.split()) <= _SHORT_WORDS:
            weak = None
        words = len(trim_answer(content).split()) if language.spaced else len(content) / _SIGNS_A_WORD
        long = words > _LONG_WORDS or language.announcement.search(content) is not None
        if weak and long:
            continue
        others = re.search(r"\b(?:people|students?|many|others|some)\b", label["before"], re.IGNORECASE)
        yield Statement(Evidence.SUPPOSED if weak or long or others else Evidence.FORMAL, label.start(), content)


# After an opening fence with the name of a language, and before its end.
_IN_A_PROGRAM = lazy_pattern(r"^```[a-z+]+\n(?:(?!```)[^\n]*\n)*[^\n]*\Z", re.MULTILINE | re.IGNORECASE)
# What a reply comes to, before it goes on at length.
_IN_SHORT = lazy_pattern(r"tl;dr|tldr|bottom line|short version", re.IGNORECASE)
_SHORT_WORDS = 6


def _says_nothing(text: str, content: str, empty: re.Pattern[str]) -> bool:
    """Whether what follows an announcement is no answer: nothing, only where to find one, or one that is cut off."""
    said = content.strip("*_`\"' ")
    is_cut = text.rstrip().endswith(content.rstrip()) and content.count("{") > content.count("}")
    return not said or is_cut or empty.match(said) is not None or DECLINED.match(said) is not None


_DISPLAY = (("$$", "$$"), ("\\[", "\\]"), ("```", "```"), ("~~~", "~~~"))
_BULLET = lazy_pattern(r"[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+(?=\S)")


def _content_at(text: str, at: int) -> str:
    """What stands after an announcement: a formula on lines of its own, items of a list, or the rest of the line."""
    for opens, closes in _DISPLAY:
        if text.startswith(opens, at):
            end = text.find(closes, at + len(opens), at + 2_000)
            inside = text[at + len(opens) : end if end >= 0 else at + 2_000].strip()
            return re.sub(r"\A[a-z]+\n", "", inside) if opens in ("```", "~~~") else inside
    line = text[at : at + 2_000].partition("\n")[0]
    if "\n" in text[max(0, at - 20) : at]:
        items = []
        for one in text[max(0, text.rfind("\n", 0, at) + 1) : at + 2_000].split("\n"):
            bullet = _BULLET.match(one)
            if not bullet:
                break
            items.append(trim_answer(one[bullet.end() :]))
        if len(items) > 1 and all(0 < len(item.split()) <= 6 for item in items):
            return ", ".join(items)
        if items and (bullet := _BULLET.match(line)):
            return line[bullet.end() :]
    return line


# --- announced in words -------------------------------------------------------------------------------------------------

_SENTENCE_LOOKED_BACK = 160
# "not iron; it is copper": what is denied makes room for what is meant.
_NOT_BUT = lazy_pattern(
    r"(?:not|nicht|pas|no|non|не)\s[^;,.:\n]{1,60}[;,.:–—-]\s*(?:but(?: rather)?|it(?:'s| is)|rather|instead"
    r"|sondern|mais|sino|ma|bensì|а)"
    r"\b[\s,:]*(?P<said>\S[^\n]*)",
    re.IGNORECASE,
)
# "To answer this, let's look at ..."
_AS_VERB = lazy_pattern(r"\b(?:to|can|could|cannot|we|please)\s\Z", re.IGNORECASE)
# "The answer would be 10 if order mattered"
_WOULD = lazy_pattern(r"\b(?:would|could|might) be\W*\Z", re.IGNORECASE)
_IF = lazy_pattern(r"[^.;\n]{1,40}\bif\b", re.IGNORECASE)
# "the second player answers so that"
_ANSWERS = lazy_pattern(r"answers\b", re.IGNORECASE)
_THE = lazy_pattern(
    r"(?:\A|\b(?:the|both|all|our|my|your|final|correct|possible|right|these|those|two|three|four|its|their|valid|following|short|only|other)"
    r"|[,:])\W*\Z",
    re.IGNORECASE,
)
# "To check the result, let's plug in x = 1"
_SETS_OUT = lazy_pattern(r"\blet(?:['’]s| us| me)\b", re.IGNORECASE)
_DENIED = lazy_pattern(r"\b(?:no|non|não)\s*$", re.IGNORECASE)
_SENTENCE_START = lazy_pattern(
    r"(?<!\bSt)(?<!\bMt)(?<!\bDr)(?<!\b[A-Z])[.!?;:]\s|\n|[。！？；]|,\s*(?:but|so)\b|\bhowever\b", re.IGNORECASE
)


def _find_announced(text: str, language: Language) -> Iterator[Statement]:
    for found in deque(language.announcement.finditer(text), maxlen=_LOOKED_AT):
        before = _sentence_before(text, found.start())
        if found.group().endswith(("=", "= ")) and _IN_A_PROGRAM.search(text[: found.start()]):
            continue
        if (
            NEGATED.search(found["between"])
            or _DENIED.search(found["between"])
            or _SETS_OUT.search(found["between"])
            or (_ANSWERS.match(found.group()) and not _THE.search(before))
            or _AS_VERB.search(before)
            # "No, the answer is" corrects; only what stands in the noun's own clause says which answer it is.
            or NOT_MEANT.search(" ".join(re.split(r"[,;:–—]", before)[-1].split()[-3:]))
        ):
            continue
        content = _content_at(text, found.end())
        if re.search(r"n['’]t\W*\Z", found.group()):
            content = f"not {content}"
        if corrected := _NOT_BUT.match(content.strip("*_`\"' ")):
            content = corrected["said"]
        if _says_nothing(text, content, NO_CONTENT):
            continue
        supposed = SUPPOSED.search(before) or SUPPOSED.search(found.group()) or WEAK_NOUN.match(found.group())
        supposed = supposed or (_WOULD.search(found.group()) and _IF.match(content))
        yield Statement(Evidence.SUPPOSED if supposed else Evidence.ANNOUNCED, found.start(), content)


_LEADS_TO = lazy_pattern(
    r"^.*?\b(?:we get|we have|we obtain|get|obtain|with|choose|that|so|therefore|thus|hence)\b[\s,:]*",
    re.IGNORECASE | re.DOTALL,
)


def _find_announced_after(text: str) -> Iterator[Statement]:
    """What stands before "is the answer" in its sentence."""
    for found in deque(ANNOUNCED_AFTER.finditer(text), maxlen=_LOOKED_AT):
        before = _sentence_before(text, found.start())
        if NEGATED.search(found.group()) or NEGATED.search(before) or not before.strip():
            continue
        said = _LEADS_TO.sub("", before)
        if 0 < len(said.split()) <= 10:
            supposed = SUPPOSED.search(before) or SUPPOSED.search(found.group())
            yield Statement(Evidence.SUPPOSED if supposed else Evidence.ANNOUNCED, found.start(), said)
    for made in deque(MADE_THE_ANSWER.finditer(text), maxlen=_LOOKED_AT):
        yield Statement(Evidence.ANNOUNCED, made.start(), made["said"])


def _find_chosen(text: str) -> Iterator[Statement]:
    """What follows "I'd go with"."""
    for found in deque(CHOOSES.finditer(text), maxlen=_LOOKED_AT):
        if _GUESSES_THE_WISH.search(_sentence_before(text, found.start())):
            continue
        yield Statement(Evidence.SUPPOSED, found.start(), _content_at(text, found.end()))


# 'The word you're looking for is "ephemeral"'
_SOUGHT = lazy_pattern(
    r"\b(?:word|term|name|person|one|phrase|book|film|movie|song|city|country|author|concept|thing|expression"
    r"|what)(?: that| which| whom?)? "
    r"you(?:['’]re| are|['’]ve been| were| might be| may be)? (?:\w+ )?(?:looking for|thinking of|after"
    r"|asking (?:about|for)|describing|describe"
    r"|searching for|seeking|want|mean) (?:is|would be|must be|might be|could be|may be)[\s:*_]{1,9}(?=\S)",
    re.IGNORECASE,
)


def _find_sought(text: str) -> Iterator[Statement]:
    """What follows "the word you're looking for is"."""
    for found in deque(_SOUGHT.finditer(text), maxlen=_LOOKED_AT):
        content = _content_at(text, found.end())
        if not _says_nothing(text, content, NO_CONTENT):
            yield Statement(Evidence.SUPPOSED, found.start(), content)


# "I understand that you're looking for ..."
_GUESSES_THE_WISH = lazy_pattern(r"\b(?:understand|see|know|if|realize|realise)\b[^,]*\Z", re.IGNORECASE)


def _sentence_before(text: str, at: int) -> str:
    """The part of the sentence that stands before a place in it."""
    before = text[max(0, at - _SENTENCE_LOOKED_BACK) : at]
    return _SENTENCE_START.split(before)[-1]
