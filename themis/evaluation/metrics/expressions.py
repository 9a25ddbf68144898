r"""The mathematical answer that a text states: boxed, announced, or what its reasoning ends with.

A formal answer (a box, an `<answer>`, a line that announces it) outranks whatever stands after it, and a later formal
answer an earlier one. Without any, the last sentence with a formula or a number counts, checks and remarks left out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from themis.evaluation.extractors.answers import Evidence, find_boxes, find_statements
from themis.evaluation.extractors.text import last_of, strip_thinking
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
    return _of_ending(text)


def states_words(text: str, expected: str) -> bool:
    r"""Whether a text's answer is the expected words: `\text{Tuesday}`, `no solution`, `6:30 p.m.`.

    >>> states_words("Hence it is a **Tuesday**.", r"\text{Tuesday}")
    True
    """
    text, expected = _readable(text), words_of(expected)
    for found in _formal_answers(text):
        line = (found.text if found.whole else next(split_sentences(found.text), ""))[:_MAX_LINE]
        option = re.match(r"\W*\\?\w*\W*\(([A-Z])\)", line)
        if option and len(expected) == 1:
            return option[1].casefold() == expected
        return words_of(line) == expected or (not found.whole and _mentions(line, expected))
    ending = list(split_sentences(_without_asides(text)))
    verdict = re.match(r"\W*(yes|no|true|false)\b", text, re.IGNORECASE)
    if verdict and expected in ("yes", "no", "true", "false"):
        return verdict[1].casefold() == expected
    last = ending[-1][-_MAX_LINE:] if ending else ""
    return words_of(last) == expected or _mentions(last, expected)


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
    return re.sub(r"<\|[a-z_]{1,20}\|>|<br\s*/?>", "\n", text).strip()


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
    found.sort(key=lambda one: (one[0], one[1].start), reverse=True)
    answers = [answer for _, answer in found]
    opening = _OPENING.match(text)
    if opening and is_expression(opening[1]):
        answers.append(_Found(0, opening.end(), opening[1]))
    return answers


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
_OPENING = re.compile(r"(\*\*[^*\n]{1,80}\*\*|\$[^$\n]{1,80}\$|-?\d[\d,./]{0,20})\.?[ \t]*\n\s*\S")


def _boxed(text: str) -> Iterator[_Found]:
    r"""The boxes, those that only "and", a comma or a few words separate taken together: \boxed{1} and \boxed{2}."""
    run: list[str] = []
    end = None
    for box in find_boxes(text):
        inside = text[box.inside]
        sign = _SIGN_BEFORE.search(text[max(0, box.start - 30) : box.start])
        inside = f"{sign[1]}{inside}" if sign else inside
        if end is not None and box.start >= end and connects(text[end : box.start]):
            run.append(inside)
        elif end is None or box.start >= end:
            run = [inside]
        else:
            continue  # inside the one before
        end = box.end
        yield _Found(box.start, box.end, ", ".join(run), whole=True)


_SIGN_BEFORE = re.compile(r"(?:[=$]|\bis)\s*(\\pm|±|-|−)\s*$")


# --- endings --------------------------------------------------------------------------------------------------------


def _of_sentences(text: str) -> str | None:
    """Of what is announced: the first sentence that holds a value."""
    for sentence in split_sentences(text):
        found = value_of(sentence, announced=True)
        if found:
            return found
    return None


def _of_ending(text: str) -> str | None:
    """Of a text that announces nothing: its last sentence with a value, checks and remarks left out."""
    sentences = list(split_sentences(_without_asides(text)))
    listed = _of_bullets(sentences)
    if listed:
        return listed
    # A sentence in brackets is a remark.
    told = [one for one in sentences if not re.fullmatch(r"[(（].*[)）]\W?", one, re.DOTALL)]
    told = [one for one in told if not _ASIDE.match(one) and (_CONCLUDES.search(one) or not _REFUSES.search(one))]
    sentences = told or [one for one in sentences if not _REFUSES.search(one)]
    for place, sentence in enumerate(reversed(sentences)):
        if not place and _ENDS_IN_A_FORMULA.search(sentence):
            return None
        found = value_of(sentence, announced=False)
        if found:
            cut_off = place and not _CONCLUDES.search(sentence) and _is_cut_off(sentences[-1])
            return None if cut_off else found
    return None


_REFUSES = re.compile(r"\b(?:cannot|can't|can’t|unable to|not able to)\b", re.IGNORECASE)


def _of_bullets(sentences: list[str]) -> str | None:
    """All of them where the text ends with a list of several solutions."""
    sentences = re.sub(r"^(\d{1,2}\.)\n", r"\1 ", "\n".join(sentences), flags=re.MULTILINE).split("\n")
    if len(sentences) > 1 and len({found[1] for found in map(_ASSIGNS.match, sentences) if found}) == len(sentences):
        return to_latex(", ".join(one.strip("$., ") for one in sentences))
    items = list(itertools.takewhile(_BULLET.match, reversed(sentences)))
    if len(items) < 2 or len(items) == len(sentences) or not _SEVERAL.search(sentences[-len(items) - 1]):
        return None
    values = [value_of(_BULLET.sub("", item), announced=True) for item in reversed(items)]
    return ", ".join(value for value in values if value) if all(values) else None


_ASSIGNS = re.compile(r"\$?\s*([A-Za-z])\s*=[^=]+$")
_BULLET = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+")
_SEVERAL = re.compile(
    r"\b(?:solutions|values|roots|answers|pairs|triples|points|numbers|functions|possibilities)\b.*:\W*$", re.IGNORECASE
)


_ENDS_IN_A_FORMULA = re.compile(r"(?:[-+/=^{(\\]|(?<!\*)\*)\s*$")


def _is_cut_off(sentence: str) -> bool:
    return len(sentence.split()) > 3 and not sentence.rstrip().endswith((*".!?。！？)]}$*:>`\"'✓✅", "\\]", "\\)"))


_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|donc|also|somit|por lo tanto|portanto|quindi)\b|所以|因此|故|したがって|よって|∴",
    re.IGNORECASE,
)


_ASIDE = re.compile(
    r"""
    ^[\s*_#>(\[-]*
    (?:check\w*|verif\w*|let(?:'s|\ me|\ us)\ (?:verify|check|double|know)|to\ (?:verify|check|double)|note\b|remark|source
      |confidence|difficulty|alternative|another\ (?:way|approach|method)|i\ hope|hope\ this|feel\ free|would\ you
      |if\ you\ (?:have|would|need|want)|this\ completes|explanation|probe|vérif\w*|comprob\w*|kontroll\w*
      |проверка|验证|検算)
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_RETRACTS = re.compile(
    r"\b(?:wait|actually|mistake|wrong|fails?|incorrect|correct(?:ed)? (?:answer|value)|should be|does(?:n't| not)|however)\b",
    re.IGNORECASE,
)


def _without_asides(text: str) -> str:
    """Up to the first check or remark after the answer, unless it takes something back."""
    for aside in _ASIDE.finditer(text):
        before, after = text[: aside.start()], text[aside.start() :]
        if re.search(r"[\d$\\]", before) and not _RETRACTS.search(after):
            return before.rstrip()
    return text


def _mentions(sentence: str, expected: str) -> bool:
    """As whole words, and not only to be rejected."""
    words = re.split(r"\b(?:namely|that is|i\.e)\b", words_of(sentence))[-1]
    found = last_of(re.finditer(rf"(?<!\w){re.escape(expected)}(?!\w)", words))
    if found is None or re.search(r"\b(?:not|isn t|never)\s+(?:\w+\s+){0,2}$", words[: found.start()]):
        return False
    return not (_WEEKDAY.search(expected) and _WEEKDAY.search(words, found.end()))


_WEEKDAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b")
