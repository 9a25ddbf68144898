"""What a sentence says the answer is: its last formula or number, without the reason or condition that follows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from themis.evaluation.extractors.number_words import find_number_words
from themis.evaluation.extractors.numbers import WrittenNumber, find_numbers
from themis.evaluation.extractors.text import last_of
from themis.evaluation.metrics.notation import FUNCTIONS, set_at_the_end, set_in_words, to_latex

# What a sentence states stands within so many characters of its end, or of its beginning where it is announced.
_MAX_LINE = 1_000
_MAX_VALUE = 400  # of an expression in plain text


def value_of(sentence: str, *, announced: bool) -> str | None:
    """The LaTeX of what a sentence states, or None.

    Args:
        sentence: One sentence, or what follows "the answer is".
        announced: Whether it is known to state the answer. Else what it concludes ("so ...") counts, where it does.

    >>> value_of("The maximum is $9$ when $x = 3$.", announced=False)
    '9'
    """
    sentence = sentence[:_MAX_LINE] if announced else sentence[-_MAX_LINE:]
    if announced and (explained := _EXPLAINED.match(sentence)):
        sentence = explained[1]
    sentence = re.sub(r"\bnot\b[^.]{1,40}?\bbut\b", "", _last_cell(sentence))
    sentence = re.sub(r"(?<=\w)[\W]{0,3}\b(?:and |but )?if\b.*\bwould\b.*", "", sentence)
    if (exact := _EXACTLY.search(_mask(sentence))) and _value_in(sentence[exact.end() :]):
        sentence = sentence[exact.end() :]
    if (hypothetical := _HYPOTHETICAL.search(_mask(sentence))) and _value_in(sentence[: hypothetical.start()]):
        sentence = sentence[: hypothetical.start()]
    if found := set_at_the_end(sentence):
        return found
    sentence = _restated(_without_rejected(sentence))
    if not announced:
        conclusion = last_of(_SO.finditer(_mask(sentence)))
        if conclusion and _value_in(sentence[conclusion.end() :]):
            sentence = sentence[conclusion.end() :]
    if fronted := last_of(_FRONTED.finditer(_mask(sentence))):
        sentence = sentence[fronted.end() :]
    return _value_in(_main_clause(sentence))


# "about 3.14, but the exact value is $\\pi$"
_EXACTLY = re.compile(
    r",? but (?:the|its) (?:exact|correct|actual|true|right|real|precise) (?:value|answer|result|probability|number"
    r"|area|length|sum|solution) (?:is|equals)\b",
    re.IGNORECASE,
)
# "...; without repetition there would be 60"
_HYPOTHETICAL = re.compile(r"(?:;|,?\s+(?:but|while|whereas))\s[^;]*\bwould\b.*", re.DOTALL)
# "7/12: 1/3 is 4/12 and 1/4 is 3/12": an announced value before its explanation.
_EXPLAINED = re.compile(r"\s*(\**[-−]?[$€£]?\d[\d,.]*(?:/\d+)?%?\**|\$[^$\n]{1,80}\$)\s?:\s+(?=\D|\d[^:]*(?:\bis\b|=))")


# "..., and using sin 80 = ..., it is equal to 2": what it follows from stands before the value.
_FRONTED = re.compile(
    r"[,;]?\s+(?:and|then|so|now),?\s+(?:using|since|as|because|with|by|for|when|if)\b[^,;]*,\s+(?=(?:it|this|that|we|the)\b[^,;]*\x01)"
)


def _without_rejected(sentence: str) -> str:
    """Without what is said to be no solution: "...; the candidate x = -1 is extraneous, as ..."."""
    masked = _mask(sentence)
    if only := _ONLY.search(masked):
        return sentence[only.start("value") : only.end("value")]
    for rejected in reversed(list(_REJECTED.finditer(masked))):
        if rejected.start() and find_formulas(sentence[: rejected.start()]):
            return sentence[: rejected.start()]
    return sentence


_REJECTED = re.compile(
    r"\s*(?:[;,.(]|\bwhile|\bbut|\band)(?:\s+(?:while|but|and|the|other|second|candidate|value|root|solution|case))*\s+\x01+\s+"
    r"(?:is|are|was|must be|has to be|does|gives|makes)\s+(?:\w+\s+){0,2}?"
    r"(?:extraneous|rejected|discarded|invalid|spurious|impossible|excluded|not|no|dropped|ruled|negative|undefined)\b.*|"
    r"\s*\(\s*(?:rejecting|discarding|since|as|because)\b[^()]*\)|[,;]\s+(?:rejecting|discarding|dropping|excluding)\b.*",
    re.DOTALL | re.IGNORECASE,
)
_ONLY = re.compile(
    r"\b[Oo]nly\s+(?P<value>\x01+)\s+(?:is|works|lies|remains|satisf\w+|fits|counts|belongs|can be|makes sense"
    r"|survives|qualifies)\b"
)


def _restated(sentence: str) -> str:
    """What follows "that is", where it holds a value: the same again, in the form that was asked for."""
    words = last_of(_RESTATES.finditer(_mask(sentence)))
    return sentence[words.end() :] if words and _value_in(sentence[words.end() :]) else sentence


_RESTATES = re.compile(
    r"(?<!\w)(?:i\.\s?e\.|that is,?|namely|in other words|or equivalently|soit|cioè|es decir|d\.\s?h\.|das heißt"
    r"|ou seja|то есть),?\s",
    re.IGNORECASE,
)


def _last_cell(line: str) -> str:
    """Of a table's row."""
    line = line.strip()
    return line.strip("| ").rpartition("|")[2] if line.startswith("|") and line.endswith("|") else line


def _main_clause(sentence: str) -> str:
    """Without the reason, condition or remark that follows the value."""
    masked = _mask(sentence)
    for ends in [*_CLAUSE.finditer(masked), *_SO.finditer(masked)]:
        before = sentence[: ends.start()]
        if _AT_SEVERAL.match(masked, ends.start()) and not _COPULA.search(masked[: ends.start()]):
            continue  # "sin x = 1/2 at x = ... and x = ..." lists solutions
        if ends.start() and _has_value(before, rest=masked[ends.end() :]):
            return _main_clause(before)
    return sentence


def _has_value(before: str, rest: str) -> bool:
    masked = _mask(before)
    copula = last_of(_COPULA.finditer(masked))
    value = before[copula.end() :] if copula else before
    if not re.search(r"\w", value):
        return False
    found = find_formulas(value)
    if copula or (found and not re.search(r"\w", value[: found[0].start])):
        return bool(found) or _value_in(value) is not None
    if not found and re.match(r"[\s*$€£`\"'(]*[-+−]?[$€£]?\d", value):
        return True
    if found and re.search(r"\bof\s*$", value[: found[-1].start]) and _is_number(value[found[-1].inside]):
        return True
    return bool(found) and "=" in value[found[-1].inside] and not _COPULA.search(rest)


def _is_number(formula: str) -> bool:
    return re.search(r"\d", formula) is not None and not re.search(r"[A-Za-z=]", _COMMAND.sub("", formula))


def _value_in(clause: str) -> str | None:
    """The last formula of a clause, or the number that it is said to be."""
    formulas = [
        formula for formula in find_formulas(clause) if _SAYS_SOMETHING.match(_SIGN_OFF.sub("", clause[formula.inside]))
    ]
    if not formulas:
        return _plain_value(clause)
    after = clause[formulas[-1].end :]
    copula = last_of(_COPULA.finditer(_mask(after)))
    if copula and re.search(r"\d", after[copula.end() :]):
        return _plain_value(after[copula.end() :])
    return to_latex(join_neighbours(clause, formulas))


_SAYS_SOMETHING = re.compile(r"(?!\s*\^).*\w", re.DOTALL)  # not the power of a unit: 30 cm$^2$
_SIGN_OFF = re.compile(
    r"\\(?:blacksquare|square|Box|qed|checkmark|text\{\s*(?:QED|Q\.E\.D\.)\s*\}|[a-z]*space|q?quad)\b"
)


_CLAUSE = re.compile(
    r"""
    [,;]?\s*
    (?:
        \b(?:because|since|as|where|when|whenever|if|for|with|attained|achieved|occurring|by|after|instead|rather|not|but|given
           |using|at|although|while|who|pour|für|para|weil|da|car|parce|porque|perché|если|так\ как)\b
      | \b(?:and|but)\ not\b
      | \band\ (?:there\ (?:can|is\ no|are\ no)|no\ other\b|it\ is\ the\ only)
      | \band\ (?:its|her|his|their|the\ (?:other|remainder|rest))\b
        # "..., which is 20" goes on to the value.
      | \bwhich\b(?!\s+(?:is|equals|gives|(?:rounds|simplifies|reduces|comes)\ to)\s+[-$€£\d\x01\\])
      | (?<=\s)[(](?=[^()]*(?:[^\W\d_]{2}|\x01)|\s?≈) | （
      | \s+or\ (?:about|approximately|roughly)\b | \bapproximately\b | \babout\b | ≈ | ~\s?\d
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_AT_SEVERAL = re.compile(r",?\s*(?:at|for|when)\s+\x01+,?\s+(?:and|or)\s+\x01")
_SO = re.compile(
    r"[,;]?\s*\b(?:so|therefore|thus|hence|giving|meaning|donc|somit|daher|quindi|portanto|entonces)\b|[,;:]?\s*(?:所以|因此|故)",
    re.IGNORECASE,
)
_COPULA = re.compile(
    r"""
    \b(?:is|are|(?:that|it|there|here)['’]s|was|were|equals?|be|becomes?|remains?|gives?|giving|yields?|gets?|obtain|find
       |needs?|takes?|costs?|requires?|earns?|pays?|makes?|contains?|weighs?|measures?|lasts?|totals?|spends?|spent|saves?
       |has|have|(?:rounds|simplifies|reduces|comes)\ to|est|sont|ist|sind|lautet|beträgt|es|son|è|é|são|sono|equivale)\b
    (?:\s+(?:equal\ to|exactly|simply|just|therefore|thus|then|probably|likely|given\ by|at|an?|the))*
    | (?<!\d)(?<!\d\s)[:：] | [:：](?!\s?\d) | (?<![<>!=])=> | -+> | [→⇒] | равн\w* | равен | 是 | 为 | 為 | は | 等于
    """,
    re.IGNORECASE | re.VERBOSE,
)


# --- formulas and plain text ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Formula:
    """The place of a formula in a text, and of what is inside its signs."""

    start: int
    end: int
    inside: slice


_DELIMITED = re.compile(
    r"\$\$(?P<display>.{1,3000}?)\$\$|\\\[(?P<bracket>.{1,3000}?)\\\]|\\\((?P<inline>.{1,1000}?)\\\)"
    r"|(?<![\\\d])\$(?P<dollar>(?:\\.|[^$\\]){1,1000}?)\$(?!\d)"
    r"|(?P<environment>\\begin\{(?P<name>\w+\*?)\}.{1,3000}?\\end\{(?P=name)\})",
    re.DOTALL,
)


def find_formulas(text: str) -> list[Formula]:
    """In the order in which they stand; a dollar sign before an amount does not begin one."""
    found: list[Formula] = []
    position = 0
    while match := _DELIMITED.search(text, position):
        inside = match["dollar"]
        if inside is not None and (is_prose(inside) or "\n\n" in inside):
            position = match.start() + 1
            continue
        group = next(
            name for name in ("display", "bracket", "inline", "dollar", "environment") if match[name] is not None
        )
        found.append(Formula(match.start(), match.end(), slice(*match.span(group))))
        position = match.end()
    return found


def _mask(text: str) -> str:
    """The text with its formulas blotted out, so that words and full stops in them are not taken for prose."""
    for formula in find_formulas(text):
        text = text[: formula.start] + "\x01" * (formula.end - formula.start) + text[formula.end :]
    return text


def split_sentences(text: str) -> Iterator[str]:
    masked = _mask(text)
    start = 0
    for ends in re.finditer(r"(?<=[.!?])[*_)\"”]*\s+(?=\S)|[。！？]\s*|\n+", masked):
        if _ABBREVIATION.search(masked[start : ends.start()]) and "\n" not in ends[0]:
            continue
        if masked[: ends.start()].endswith("..") and not masked[ends.end()].isupper() and "\n" not in ends[0]:
            continue  # 1 + 2 + ... + n
        if text[start : ends.start()].strip():
            yield text[start : ends.end()].strip()
        start = ends.end()
    if text[start:].strip():
        yield text[start:].strip()


_ABBREVIATION = re.compile(r"\b(?:i\.e|e\.g|approx|resp|cf|vs|Ans|No|[ap]\.m|sq|ft|St)\.$")
_COMMAND = re.compile(r"\\(?:begin|end)\{\w+\*?\}|\\(?:text\w*|mathrm|mbox|operatorname)\s*\{[^{}]*\}|\\[A-Za-z]+")
_WORD = re.compile(
    r"[^\W\d_]{3,}|(?<![^\W\d_])(?:is|of|to|so|we|it|in|on|he|as|at|be|by|if|no|an|my|do|go|us|up|am)(?![^\W\d_])"
)
_MATHS_WORDS = FUNCTIONS | {"inf", "infinity", "and", "percent", "pct"}


def is_prose(text: str) -> bool:
    r"""Whether a text holds words that no formula has, those in \text{...} apart."""
    words = _WORD.findall(_COMMAND.sub(" ", text))
    return any(word.lower() not in _MATHS_WORDS for word in words)


def is_expression(text: str) -> bool:
    text = text.strip("*$ ")
    return not is_prose(text) and re.search(r"\d|\\", text) is not None and "=" not in text


_LETTER = r"[^\W\d_²³½¼¾⅓⅔]"
_SHORT_UNIT = r"(?:mm|cm|dm|km|mg|kg|ml|mL|cl|ft|in|yd|mi|hr|hrs|lb|lbs|oz|m|g|s|h|L|N|J|W|V|K)"
_QUANTITY = re.compile(
    r"(?P<number>[-+−]?(?:[$€£]\s?)?\d[\d,]*(?:\.\d+)?(?:\s?/\s?\d+)?|[-+−]?\d+ \d+/\d+)"
    rf"(?:\s*(?:{_LETTER}{{3,20}}|{_SHORT_UNIT}(?!{_LETTER}))|\s+{_LETTER}{{2}}(?=\s))"
    rf"(?:[./]?\s*{_LETTER}{{1,20}}){{0,5}}(?:\^?\{{?[23]\}}?|[²³])?\.?"
)
_RUN = re.compile(
    r"(?:(?<![^\W\d_])(?:sqrt|sin|cos|tan|log|ln|exp|pi|or|and)(?![^\W\d_])|(?<![^\W\d_])[A-Za-z](?![^\W\d_])|\\[A-Za-z]+"
    r"|\d|[-+*/^=<>≤≥≠±√π∞∪∩²³°%(){}\[\],.:;|!_−×·]|\s)+"
)
_OPERATOR = re.compile(r"[-+*/^=<>≤≥±√π∞∪−×(\[{:\\]")


_WRAPPING = " \t\n*_`\"'“”"
_WRAPPED = re.compile(r"^<([^<>]*)>$|^\[\[([^\[\]]*)\]\]$")
# Units and endings in other scripts after a number: 144です, 144 वर्ग सेमी.
_OTHER_SCRIPT = re.compile(
    r"(?<=[\d}])\s*(?!\d)[\u0400-\u04ff\u0600-\u06ff\u0900-\u097f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af].*$"
)
_BY_DOTS = re.compile(r"-?\d{1,3}(?:\.\d{3})+,\d+\s*[€$£]?")
_NO_UNIT = re.compile(
    r"\b(?:pi|sqrt|sin|cos|tan|log|ln|exp|and|or|percent|pct|percentage|mod|choose|to|hundred|thousand|million|billion|trillion)\b|\d[a-z]$"
)


def _plain_value(text: str) -> str | None:
    """Of a text without formulas: the text itself where it is an expression, else the last expression or number in it."""
    text = re.sub(r"(?<=[\d*])!$", "", text.strip().rstrip("."))  # a cheer, not a factorial
    text = re.sub(r"(?<=[\d)])\s+(?:ou|oder|o|или|u)\s+(?=[A-Za-z]\s?=|[-−]?\d)", " or ", text)
    text = re.sub(r"(?<=[\d)])\s+(?:et|und|y|e|и)\s+(?=[A-Za-z]\s?=|[-−]?\d)", " and ", text)
    text = re.sub(r"<sup>([^<>]*)</sup>", r"^{\1}", text)
    text = re.sub(r"(?<=\d)\s+to\s+(?=\d)", ":", text)
    if time := _TIME_LAST.search(text):
        return time[1]
    if re.search(r"\b(?:probability|chances?)\b", text, re.IGNORECASE):
        text = re.sub(r"(\d)\s+(?:in|out of)\s+(?=\d)", r"\1/", text)
    copula = last_of(_COPULA.finditer(text))
    for part in (text[copula.end() :] if copula else "", text, text.rpartition("=")[2]):
        value = _value_itself(part)
        if value:
            return value
    if copula and (re.search(r"\d", text[copula.end() :]) or not re.search(r"\d", text)):
        text = text[copula.end() :]
    runs = [run.strip(" \t\n,;:.") for run in _RUN.findall(text)]
    runs = [_SOLVED.sub(r"\1", run) for run in runs if re.search(r"[\d∞]", run) and _OPERATOR.search(run[1:])]
    if runs and not re.fullmatch(r"[\d.,/ :-]+", runs[-1]):
        return to_latex(re.sub(r"^(?:a|I|A)\s+(?=[\w(])|\s(?:a|I|or|and)$|^(?:and|or)\s", "", runs[-1]))
    number = last_of(find_numbers(text)) or _spelled_number(text)
    if number is None:
        return None
    return f"{number}\\%" if number.percent else str(number)


# "ends at 4:30 p.m.", "they share it 2:3:5"
_TIME_LAST = re.compile(
    r"(?<![\d:.])(\d{1,3}(?::\d{1,3}){1,3})\**(?:\s?[ap]\.?\s?m\.?|\s?Uhr|\s?h|\s?o['’]clock)?[\s.*!_)]*\Z",
    re.IGNORECASE,
)


# "3x + 4 = 61, x = 19": an equation and its solution.
_SOLVED = re.compile(r"\A[^=,]*[A-Za-z\d)]\s*[-+*/^][^=,]*=[^=,]*,\s*([A-Za-z]\s*=\s*[^=,]+)\Z")


def _spelled_number(text: str) -> WrittenNumber | None:
    """In words, where a short text begins with it: "five apples"."""
    text = text.strip(_WRAPPING)
    number = next(find_number_words(text), None)
    return number if number and number.start == 0 and len(text[number.end :].split()) <= 3 else None


def _value_itself(text: str) -> str | None:
    """The text where it is an expression or a number with its unit, else None."""
    text = re.sub(r"</?[A-Za-z]\w*>", " ", text).strip(_WRAPPING)
    text = _WRAPPED.sub(r"\1\2", text).strip(_WRAPPING).rstrip(".")
    if not re.search(r"[\w∞]", text) or len(text) > _MAX_VALUE or "\n" in text:
        return None
    text = _OTHER_SCRIPT.sub("", text)
    if _BY_DOTS.fullmatch(text):
        return str(next(find_numbers(text)))
    quantity = _QUANTITY.fullmatch(text)
    if quantity and not _NO_UNIT.search(text):
        return to_latex(quantity["number"])
    return set_in_words(text) if is_prose(text) else to_latex(text)


def join_neighbours(text: str, formulas: Sequence[Formula]) -> str:
    r"""The last formula, with those before it that only a comma, "and" or a few words separate: $1$ and $2$."""
    run: list[str] = []
    end: int | None = None
    for formula in formulas:
        inside = text[formula.inside]
        # "... is $\\frac{5}{14}$ and $m+n = 19$" goes on to another answer.
        if end is None or not connects(text[end : formula.start]) or ("=" in inside and not _lists(run[-1], inside)):
            run.clear()
        run.append(inside)
        end = formula.end
    return ", ".join(run)


def _lists(before: str, after: str) -> bool:
    """Whether two formulas are solutions side by side: `x = 2`, `y = 3`; not steps, as `AB^2 = 625`, `AB = 25`."""
    return all(_SOLUTION.match(formula) for formula in (before, after))


_SOLUTION = re.compile(
    r"\s*(?:\\?[A-Za-z](?![A-Za-z])|\\[a-z]+)(?:_\{?\w+\}?|'|\([a-z]\))*\s*(?:=|\\in\b)|\s*\([^=]*\)\s*="
)


def connects(between: str) -> bool:
    """Whether what stands between two formulas or boxes makes them one answer."""
    return not between or (len(between) <= 60 and bool(_CONNECTS.fullmatch(_NOT_WORDS.sub(r" \1 ", between))))


_NOT_WORDS = re.compile(r"\\text\s*\{([^{}]*)\}|\\q?quad|\\[()\[\],;: ]|[$*~]")
_CONNECTS = re.compile(
    r"""
    \s*(?:[^\W\d_]+\s+|\(\w\)\s+){0,3}
    (?:[,;，；]\s*(?:(?:and|or)\b)?|(?:and|or|y|e|et|ou|und|oder|и|или)\b|[和或、及])\s*
    (?:[A-Za-z](?:_\{?\w+\}?)?(?:\([a-z]\))?\s*(?:=|\bis\b|\\in\b))?\s*
    """,
    re.VERBOSE,
)
