r"""The mathematical answer that a text states: boxed, announced, or what its reasoning ends with.

A formal answer (a box, an `<answer>`, a line that announces it) outranks whatever stands after it, and a later formal
answer an earlier one. Without any, what the text ends with counts (`endings`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from themis.evaluation.extractors.answers import Evidence, find_boxes, find_statements
from themis.evaluation.extractors.emphasis import find_bold
from themis.evaluation.extractors.numbers import writes_decimal_commas
from themis.evaluation.extractors.plain_sentences import drop_concession
from themis.evaluation.extractors.remarks import drop_remarks
from themis.evaluation.extractors.stated_number import find_stated_number
from themis.evaluation.extractors.text import last_of, strip_thinking
from themis.evaluation.metrics.endings import ending_value, prose_value, without_asides
from themis.evaluation.metrics.notation import to_latex, words_of
from themis.evaluation.metrics.sentences import connects, find_formulas, is_expression, split_sentences, value_of

# Answers stand at the end; what is longer than this is not one.
_MAX_TEXT = 10_000
_MAX_LINE = 1_000


def stated_expression(text: str) -> str | None:
    r"""The LaTeX of the answer that a text states, without typesetting; None where it states none.

    >>> stated_expression("Final Answer: The largest $n$ is 34.")
    '34'
    """
    text = _readable(text)
    for found in _formal_answers(text):
        expression = to_latex(found.text) if found.whole else _of_sentences(found.text)
        if expression:
            return expression
    return ending_value(text)


def stated_number(text: str) -> str | None:
    """The number of a reply in prose that gives nothing formally, as the reader of numbers finds it; else None.

    >>> stated_number("It takes 6 days. With one more worker it would only take 5 days.")
    '6'
    """
    text = _readable(text)
    prose = "".join(_between_formulas(text))
    if _formal_answers(text) or _NO_PROSE.search(prose) or not re.search(r"\d", text):
        return None
    number = find_stated_number(without_asides(drop_remarks(text)))
    if number is None:
        return None
    return f"{number}\\%" if number.percent else str(number)


def _between_formulas(text: str) -> Iterator[str]:
    """A text without its formulas that are a number, or say that a variable is one."""
    end = 0
    for formula in find_formulas(text):
        yield text[end : formula.start]
        yield " " if _PLAIN_FORMULA.fullmatch(text[formula.inside]) else "\\"
        end = formula.end
    yield text[end:]


_PLAIN_FORMULA = re.compile(r"\s*(?:[A-Za-z]\s*=\s*)?-?[\d.,]+(?:\s?\\%|\^\s?\{?\\circ\}?)?\s*[.,]?\s*")
_NO_PROSE = re.compile(
    r"[\\√π∞∪^≤≥<>±|]|\d\s?[a-z]\b|\([^()]*\d\s?,\s?-?\d[^()]*\)|\b(?:gcd|lcm|sqrt|sin|cos|log)\b|\d:\d"
)


def states_words(text: str, expected: str) -> bool:
    r"""Whether a text's answer is the expected words: `\text{Tuesday}`, `no solution`, `6:30 p.m.`.

    >>> states_words("Hence it is a **Tuesday**.", r"\text{Tuesday}")
    True
    """
    text, expected = (_NOT.sub(r"\1 not", one) for one in (_readable(text), expected))
    expected = words_of(expected)
    for found in _formal_answers(text):
        line = (found.text if found.whole else next(split_sentences(found.text), ""))[:_MAX_LINE]
        option = re.match(r"\W*\\?\w*\W*\(([A-Z])\)", line)
        if option and len(expected) == 1:
            return option[1].casefold() == expected
        return words_of(line) == expected or (not found.whole and _mentions(line, expected))
    ending = list(split_sentences(without_asides(text)))
    verdict = re.match(r"\W*(yes|no|true|false)\b", text, re.IGNORECASE)
    if verdict and expected in ("yes", "no", "true", "false"):
        return verdict[1].casefold() == expected
    last = ending[-1][-_MAX_LINE:] if ending else ""
    if bold := find_bold(text) or find_bold(last):
        return words_of(bold) == expected or _mentions(bold, expected)
    return words_of(last) == expected or _mentions(last, expected)


_NOT = re.compile(r"\b(do|does|did|is|are|was|were|has|have)n['’]t\b", re.IGNORECASE)


def formal_text(text: str) -> str:
    """What stands in the last formal answer, else in the text's only formula, else the text; as it was written."""
    text = _readable(text)
    for found in _formal_answers(text):
        return found.text if found.whole else text
    formulas = find_formulas(text)
    if len(formulas) == 1 and formulas[0].end - formulas[0].start == len(text.rstrip(".")):
        return text[formulas[0].inside].strip()
    return text


@dataclass(frozen=True)
class _Found:
    """A formal answer: where it stands, and whether it is the answer and nothing else."""

    start: int
    end: int
    text: str
    whole: bool = False


def _readable(text: str) -> str:
    """Without the reasoning, the marks of a chat, and what the model went on to write for the user."""
    text = strip_thinking(text)[-_MAX_TEXT:]
    text = re.split(r"<\|(?:im_start|start)\|>\s*user\b|<\|eot_id\|>|\n\s*(?:Human|User):\s", text)[0]
    text = re.sub(r"<\|[a-z_]{1,20}\|>|<br\s*/?>", "\n", text).strip()
    text = drop_concession(_WORDS_IN_FORMULA.sub(r"\1 $", text))
    if writes_decimal_commas(text):
        text = _DECIMAL_COMMA.sub(r"\1.\2", text)
    return _before_the_next_problem(text)


# $x = 2,5$, of a reply in a language that writes decimals so.
_DECIMAL_COMMA = re.compile(r"(?<![\d.,(\[{])(\d+),(\d{1,2}|\d{4,})(?![\d,)\]}]|\.\d)")
# $\text{The answer is } 0.25$
_WORDS_IN_FORMULA = re.compile(
    r"\$\s*\\text\s*\{\s*([^{}$]{3,60}(?:[:=]|\b(?:is|are|equals)))\s*\}(?=[^$\n]*\w[^$\n]*\$)"
)


def _before_the_next_problem(text: str) -> str:
    """Without the problems that a base model goes on to set itself once it has answered."""
    for following in itertools.islice(_NEXT_PROBLEM.finditer(text), 3):
        before = text[: following.start()].rstrip()
        if any(one.evidence is not Evidence.SUPPOSED for one in find_statements(before)):
            return before
    return text


_NEXT_PROBLEM = re.compile(
    r"(?<=\n)[ \t*#_]*+(?:(?:next |new )?(?:problem|question|exercise)|Q|Aufgabe|Frage|exercice|problema|pregunta|ejercicio"
    r"|задача|вопрос|题目|问题|問題)[ \t]*\d{0,3}[\s*_]{0,4}[:：]",
    re.IGNORECASE,
)


# --- formal answers -------------------------------------------------------------------------------------------------


def _formal_answers(text: str) -> list[_Found]:
    """Boxes, tags, fields and announcing lines: the firmest first, of equally firm ones the last."""
    boxes = list(_boxed(text))
    boxes = [box for box in boxes if not _is_rejected(text, box)] or boxes
    inside = {box.start for box in find_boxes(text)}
    found = [(Evidence.FORMAL, box) for box in boxes]
    for one in find_statements(text):
        if one.evidence is Evidence.SUPPOSED or one.start in inside or _STATES_NOTHING.match(one.said):
            continue
        if not any(box.start < one.start < box.end for box in boxes):
            final = re.match(r"\W{0,9}(?:\w+\W+){0,2}final answer\b", text[one.start : one.start + 60], re.IGNORECASE)
            evidence = Evidence.FORMAL if final else one.evidence
            found.append((evidence, _Found(one.start, one.start, one.said[:_MAX_LINE])))
    found += [(Evidence.FORMAL, _Found(label.start(), label.end(), label[1])) for label in _IN_A_PAPER.finditer(text)]
    found += [(Evidence.ANNOUNCED, one) for one in _last_line(text)]
    found.sort(key=lambda one: (one[0], one[1].start), reverse=True)
    answers = [answer for _, answer in found]
    opening = _OPENING.match(text)
    value = (opening[1] or opening[2]).replace(".**", "**") if opening else ""
    if opening and (is_expression(value) or (opening[2] and _LINE_OR_CURVE.fullmatch(value))):
        answers.append(_Found(0, opening.end(), value))
    return answers


def _last_line(text: str) -> Iterator[_Found]:
    """A last line that is bold from end to end, or a label in bold and its value: `**Solution:** $x = 4$`."""
    start = text.rfind("\n") + 1
    labelled = _LABELLED_LINE.fullmatch(text[start : start + _MAX_LINE])
    if labelled and start and without_asides(f"1\n{text[start:]}") != "1":
        yield _Found(start, start, labelled["said"] or labelled["whole"])


_LABELLED_LINE = re.compile(
    r"[\s>]*\*\*(?:(?P<whole>[^*:\n]{2,150}\d[^*:\n]{0,60})\*\*[.!]?|[^*:\n]{2,40}(?::\*\*|\*\*\s?:)\s*(?P<said>[^\s:][^:\n]{0,120}))\s*"
)
# $y = 3x - 2$, as the whole of a first sentence.
_LINE_OR_CURVE = re.compile(r"\$\s*(?:y|[a-z]\s?\(\s?[a-z]\s?\)|a_\{?n\}?)\s*=[^=$]*[a-z][^=$]*\$")


def _is_rejected(text: str, box: _Found) -> bool:
    return bool(_REJECTS_NEXT.search(text[max(0, box.start - 20) : box.start]) or _REJECTS_LAST.match(text, box.end))


_REJECTS_NEXT = re.compile(r"\bnot\W{0,6}$", re.IGNORECASE)
_REJECTS_LAST = re.compile(r"\W{0,4}(?:is|was|would be)\s+(?:wrong|incorrect|not)\b", re.IGNORECASE)
_STATES_NOTHING = re.compile(
    r"\W*(?:correct|right|consistent|reasonable|valid|verified|confirmed|plausible|unique|indeed|obtained|expected|clear"
    r"|obvious|independent|wrong|incorrect|not|in (?:the|simplest)|therefore correct|already)\b",
    re.IGNORECASE,
)
# As papers head it: "*Answer.* All powers of two. *Proof.* ..."
_IN_A_PAPER = re.compile(r"^\W{1,4}Answer\.\W{1,4}\s(.{1,1000})", re.MULTILINE)
# A value alone on the first line, the explanation after it.
_OPENING = re.compile(
    r"(?:(\*\*[^*\n]{1,80}\*\*|\$[^$\n]{1,80}\$|-?\d[\d,./]{0,20})\.?[ \t]*\n\s*\S"
    r"|(?!1\. )(?:it['’]s |it is )?(\*\*[^*\n]{1,80}\*\*|\$[^$\n]{1,80}\$"
    r"|-?\d[\d,/]{0,20}(?:\.\d+)?)(?: [a-z]{3,15})?[.!] +(?=[A-Z]))",
    re.IGNORECASE,
)


def _boxed(text: str) -> Iterator[_Found]:
    r"""The boxes, those that only "and", a comma or a few words separate taken together: \boxed{1} and \boxed{2}."""
    run: list[str] = []
    end = None
    for box in find_boxes(text):
        inside = text[box.inside]
        sign = _SIGN_BEFORE.search(text[max(0, box.start - 30) : box.start])
        inside = f"{sign[1]}{inside}" if sign else inside
        between = text[end : box.start] if end is not None else ""
        if end is not None and box.start >= end and (connects(between) or _NEXT_PART.fullmatch(between)):
            run.append(inside)
        elif end is None or box.start >= end:
            run = [inside]
        else:
            continue  # inside the one before
        end = box.end
        yield _Found(box.start, box.end, ", ".join(run), whole=True)


# (a) ... (b) ...: parts of one question.
_NEXT_PART = re.compile(r"[\s.$]*\n[\s*_]*\(?[b-e][.)][\s*_]+[^\n]{0,80}")
_SIGN_BEFORE = re.compile(r"(?:[=$]|\bis)\s*(\\pm|±|-|−)\s*$")


def _of_sentences(text: str) -> str | None:
    """Of what is announced: the first sentence that holds a value."""
    for sentence in split_sentences(text):
        found = prose_value(sentence) or value_of(sentence, announced=True)
        if found:
            return found
    return None


def _mentions(sentence: str, expected: str) -> bool:
    """As whole words, and not only to be rejected."""
    words = re.split(r"\b(?:namely|that is|i\.e)\b", words_of(sentence))[-1]
    found = last_of(re.finditer(rf"(?<!\w){re.escape(expected)}(?!\w)", words))
    if found is None or re.search(r"\b(?:not|isn t|never)\s+(?:\w+\s+){0,2}$", words[: found.start()]):
        return False
    return not (_WEEKDAY.search(expected) and _WEEKDAY.search(words, found.end()))


_WEEKDAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b")
