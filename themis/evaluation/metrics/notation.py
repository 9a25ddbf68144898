r"""One way of writing mathematics for the many that people and models use: LaTeX without typesetting, units and prose.

`to_latex` takes what stands in a box, in a formula or in plain text (`2√3`, `sqrt(3)/2`); references and answers both go
through it before they are compared. `words_of` does the same for answers that are words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from fractions import Fraction

from themis.evaluation.extractors.number_words import find_number_words

# What is longer is nobody's answer, and not worth the time.
_MAX_LENGTH = 3_000


def to_latex(expression: str) -> str | None:
    r"""The expression in the LaTeX that the comparer reads; None where nothing is left.

    >>> to_latex(r"**$\dfrac{1}{2}~\mathrm{cm}$**")
    '\\frac{1}{2}'
    """
    if len(expression) > _MAX_LENGTH:
        return expression.strip() or None
    expression = _RAISED.sub(lambda run: "^{" + unicodedata.normalize("NFKC", run[0]) + "}", _unescape(expression))
    expression = _LOWERED.sub(lambda run: "_{" + unicodedata.normalize("NFKC", run[0]) + "}", expression)
    expression = expression.translate(_CHARACTERS)
    for stage in (_MARKUP, _SPACES, _PLAIN_TEXT):
        expression = _rewrite(expression, stage)
    expression = _conclusion(_last_row(_rewrite(expression, _STYLES)))
    expression = _rewrite(_without_units(expression), _NOTATION)
    expression = _REPEATING.sub(_repeating_decimal, expression)
    expression = _balance(expression)
    spelled = _TEXT_ONLY.fullmatch(expression)
    if spelled is None:
        return expression or None
    number = next(find_number_words(spelled[1]), None)
    return str(number) if number else set_in_words(spelled[1]) or expression


def set_in_words(text: str) -> str | None:
    r"""The set of numbers that a phrase describes, or None.

    >>> set_in_words("all real numbers except 2"), set_in_words("no real solutions")
    ('\\mathbb{R} \\setminus \\{2\\}', '\\emptyset')
    """
    text = text.replace("$", "").strip(" .*!")
    found = _EVERY_NUMBER.fullmatch(text)
    if found:
        return rf"\mathbb{{R}} \setminus \{{{found[1].strip()}\}}" if found[1] else r"\mathbb{R}"
    return r"\emptyset" if _NO_NUMBER.fullmatch(text) else None


def set_at_the_end(sentence: str) -> str | None:
    r"""The set of numbers that a sentence ends with, in words, or None.

    >>> set_at_the_end("So the inequality holds for **all real numbers**.")
    '\\mathbb{R}'
    """
    found = _SET_LAST.search(sentence[-200:])
    return set_in_words(found[1]) if found else None


_EVERY_NUMBER = re.compile(
    r"(?:x (?:is|can be) )?(?:all|any|every) (?:of the )?real (?:numbers?|values?)(?: (?:of )?[a-z])?"
    r"(?:,? (?:except|other than|but|apart from)(?: for)?(?: [a-z] ?=)? ?(-?[\d.,/ ]+))?",
    re.IGNORECASE,
)
_NO_NUMBER = re.compile(
    r"(?:there (?:is|are) |the (?:equation|system|inequality) has )?(?:no (?:real )?solutions?"
    r"|no real (?:numbers?|values?)(?: (?:of )?[a-z])?"
    r"|the empty set)",
    re.IGNORECASE,
)
_SET_LAST = re.compile(
    r"\b((?:all|any|every) (?:of the )?real (?:numbers?|values?)[^.;:]{0,40}|no (?:real )?(?:solutions?|numbers?"
    r"|values?)(?: of \S+)?)[\s.*!_]*\Z",
    re.IGNORECASE,
)


def words_of(expression: str) -> str:
    r"""A text answer reduced to what counts in a comparison.

    >>> words_of(r"\textbf{The 6:30 p.m. train}."), words_of(r"\text{(C)}")
    ('6:30 pm train', 'c')
    """
    expression = _TEXT_COMMAND.sub(" ", _rewrite(_unescape(expression), _SPACES).replace("{:}", ":"))
    expression = re.sub(r"\b([AaPp])\.?\s?[Mm](?:\.|\b)", r" \1m ", expression)
    expression = re.sub(r"[^\w:,/+.%-]|_|(?<!\d)\.|\.(?!\d)|\\", " ", expression.casefold())
    expression = re.sub(r"\s?,\s?(?:and\s)?|\sand\s", ", ", " ".join(expression.split()))
    expression = _DAY_FIRST.sub(r"\2 \1", expression)
    return " ".join(re.sub(r"^\s*(?:the|an|a(?=\s+\w{2}))\s+", "", expression).split()).strip(",-: ")


def is_text(expression: str) -> bool:
    r"""Whether an answer is words (`\text{Tuesday}`, `no solution`, `6:30 p.m.`), not mathematics.

    >>> is_text(r"\text{Tuesday}"), is_text(r"2\sin x"), is_text(r"5\text{ cm}"), is_text("x > 2")
    (True, False, False, False)
    """
    plain = _TEXT_COMMAND.sub(" ", _unescape(expression).replace("{:}", ":"))
    if _DATE_OR_TIME.search(plain):
        return True
    if re.search(r"[\d=<>+^\\]", plain):
        return False
    if _TEXT_COMMAND.search(expression) and not re.fullmatch(r"\W*[eixπ]\W*", plain):
        return True
    words = re.findall(r"[^\W\d_]{3,}", plain)
    return bool(words) and not all(word.lower() in FUNCTIONS for word in words)


_TEXT_ONLY = re.compile(r"\\text\s*\{([^{}]*)\}")
_TEXT_COMMAND = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt|sc)?|mathrm|mathbf|mathit|mathsf|mbox|emph|boxed)\b")
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE_OR_TIME = re.compile(
    rf"\b(?:{_MONTH})\s+\d{{1,2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTH})\b|\d[\s{{}}]*(?:[ap]\.\s?m\b|[ap]m\b)",
    re.IGNORECASE,
)
# July 5, the 5th of July and 5 July are one day.
_DAY_FIRST = re.compile(rf"\b(?:the )?(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?({_MONTH.lower()})\b")
FUNCTIONS = frozenset({
    "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "log", "ln", "exp",
    "sqrt", "max", "min", "gcd", "lcm", "det", "lim", "mod",
})  # fmt: skip


_Stage = list[tuple[str, str | Callable[[re.Match[str]], str]]]


def _rewrite(text: str, stage: _Stage) -> str:
    for pattern, replacement in stage:
        text = re.sub(pattern, replacement, text)
    return text


def _unescape(expression: str) -> str:
    """Escaped once too often, as in JSON. In a matrix two backslashes begin a row."""
    if "\\begin" in expression and "\\\\begin" not in expression:
        return expression
    return re.sub(r"\\\\(?=[A-Za-z{}\\,;:!()\[\]$%])", r"\\", expression)


_RAISED = re.compile("[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ]+")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉ₙ]+")
_CHARACTERS = str.maketrans(
    {
        "∞": r"\infty ", "×": r"\cdot ", "⋅": r"\cdot ", "·": r"\cdot ", "∙": r"\cdot ", "÷": "/", "∗": "*",
        "∪": r"\cup ", "∩": r"\cap ", "∅": r"\emptyset ", "∈": r"\in ", "ℝ": r"\mathbb{R} ", "ℤ": r"\mathbb{Z} ",
        "≤": r"\le ", "≥": r"\ge ", "⩽": r"\le ", "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "≡": r"\equiv ",
        "±": r"\pm ", "∓": r"\mp ", "π": r"\pi ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "λ": r"\lambda ",
        "φ": r"\phi ", "ω": r"\omega ", "°": r"^\circ ", "∠": r"\angle ", "△": "", "→": r"\to ", "⇒": r"\implies ",
        "∴": "", "∨": r"\lor ", "∧": r"\land ", "−": "-", "–": "-", "‐": "-", "‑": "-", "∶": ":", "：": ":",
        "，": ",", "；": ";", "（": "(", "）": ")", "【": "[", "】": "]", "。": ".", "⟨": "(", "⟩": ")", "√": r"\surd ",
        "∛": r"\cuberoot ", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u200b": "",
    }
    | {chr(0xFF10 + digit): str(digit) for digit in range(10)}
    | {
        fraction: "\\frac{{{}}}{{{}}}".format(*unicodedata.normalize("NFKC", fraction).split("⁄"))
        for fraction in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
    }
)  # fmt: skip

_MARKUP: _Stage = [
    (r"(?<![\w)\]}*])\*\*(.+?)\*\*(?![\w({])", r"\1"),  # bold, which is not a power
    (r"(?<=[\w)\]}])\s?\*\*\s?(?=[\w({-])", "^"),
    (r"\*\*", ""),
    (r"<sup>([^<>]*)</sup>", r"^{\1}"),
    (r"(?i)</?(?:b|i|em|strong|u|p|span|div|br|sub|answer|final_answer)(?:\s[^<>]{0,60})?/?>", " "),
    (r"<\|[a-z_]{1,20}\|>", " "),
    (r"\\?\$|\\(?:pounds|euro|textsterling)\b|[€£¥¢₹₽₩]", " "),
    (r"\\[()](?=\s*$)|^\s*\\\(|^\s*\\\[(?!\d)|\\\](?=\s*$)", ""),
]
_SPACES: _Stage = [
    (r"(?<=\d)\{,\}(?=\d{3}(?!\d))|(?<=\d),\\!\s*(?=\d)|(?<=\d)\\[,;:]\s*(?=\d{3}(?!\d))", ""),
    (r"(?<=\d)\s?\{,\s?\}\s?(?=\d{3}(?!\d))", ""),
    (r"(?<=\d)\{,\}(?=\d)", "."),
    (r"\{:\}", ":"),
    (r"(?<!\\)\\(?:[,;:!> ]|\s|(?:q?quad|enspace|thinspace|hfill)(?![A-Za-z])|(?:hspace\*?|h?phantom)\{[^{}]*\})", " "),
    (r"~|&nbsp;", " "),
    (r"\\q?quad(?=[A-Za-z])", " "),
    (r"(?<![\d.,])(\d{1,3}) (\d{3}) (\d{3})(?![\d.,])", r"\1\2\3"),
    (r"(?<![\d.,{\\])(\d{1,3}) (\d{3})(?![\d,])", r"\1\2"),
]
_PLAIN_TEXT: _Stage = [
    (r"\\surd\s*\(([^()]*)\)|\\surd\s*\{([^{}]*)\}", r"\\sqrt{\1\2}"),
    (r"\\surd\s*(\d+|\w)", r"\\sqrt{\1}"),
    (r"\\cuberoot\s*(\d+|\w)", r"\\sqrt[3]{\1}"),
    (r"(?<![\w.\\])(\d+(?:\.\d+)?)(?:e|(?<=\.\d)E|E(?=[+-]))([+-]?\d+)(?![\w.])", r"\1 \\cdot 10^{\2}"),
    (r"(?<![\\A-Za-z])(?:sqrt|Sqrt)\s*\(((?:[^()]|\([^()]*\))*)\)", r"\\sqrt{\1}"),
    (r"(?<![\\A-Za-z])(?:cbrt)\s*\(([^()]*)\)", r"\\sqrt[3]{\1}"),
    (r"(?<![\\A-Za-z])(sin|cos|tan|cot|arctan|arcsin|arccos|log|ln|exp)(?=[\s(\d^_])", r"\\\1"),
    (r"(?<![\\A-Za-z])pi(?![A-Za-z])", r"\\pi "),
    (r"(?<![\\A-Za-z])(?:infinity|inf|oo)(?![A-Za-z])", r"\\infty "),
    (r"\^\s*\(((?:[^()]|\([^()]*\))*)\)", r"^{\1}"),
    (r"\^\s?(-\s?\d+)", r"^{\1}"),
    (r"(?<!\\)<=|=<", r"\\le "),
    (r"(?<!\\)>=", r"\\ge "),
    (r"!=|=/=", r"\\ne "),
    (r"(?<=[\w)}])\s?\*\s?(?=[\w(\\])", r" \\cdot "),
    (r"(?<![\w/.\\}])(\d+)\s+(\d+)\s?/\s?(\d+)(?![\w/.])", r"\1\\frac{\2}{\3}"),
    (r"\\(?:text(?:bf|it|rm)?|mathrm|mbox)\s*\{\s*,?\s*(and|or)\s*,?\s*\}", r" \1 "),
    (r"(?<![\\A-Za-z])(and|or)(?![A-Za-z])(?![^{}]*(?<=[a-z ])\})", r"\\text{ \1 }"),
    (r"(?<=\d)\s+to\s+(?=\d)", ":"),
]
_STYLES: _Stage = [
    (r"\\(?:displaystyle|textstyle|scriptstyle|Large|large|LARGE|huge|Huge|normalsize|bf|rm|it|limits|nolimits)\b", " "),
    (r"\\(?:therefore|because|blacksquare|square|Box|qed|checkmark)\b", " "),
    (r"\\(?:d|t|c)frac(?![A-Za-z])", r"\\frac"),
    (r"\\(?:mathbf|boldsymbol|bm|underline|mathit|mathsf|boxed|fbox|textcolor\s*\{\w+\}|color\s*\{\w+\})\s*\{"
     r"((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}", r"\1"),
    (r"\\color\s*\{\w+\}", ""),
    (r"\\(?:mathrm|text)\s*\{\s*([eid])\s*\}", r" \1 "),
    (r"_\s*\{?\s*\\(?:text|mathrm)\s*\{\s*(\w+)\s*\}\s*\}?", r"_{\1}"),
    (r"\\(?:text(?:bf|it|rm|sf)?|mathrm|mbox)\s*\{\s*([-+]?[\d.,]+|[-+]?\\frac\{\d+\}\{\d+\})\s*\}", r"\1"),
    (r"\\(?:mathrm|operatorname)\s*\{\s*(sin|cos|tan|cot|log|ln|exp|arctan|arcsin|arccos)\s*\}", r"\\\1 "),
    (r"\\(?:mathrm|mbox|textbf|textit|textrm|textsf|textnormal|operatorname)\s*\{", r"\\text{"),
]  # fmt: skip

_ROWS = re.compile(
    r"\\begin\{(align|aligned|gather|gathered|split|equation|eqnarray|multline|cases)\*?\}(.*?)\\end\{\1\*?\}", re.S
)


def _last_row(expression: str) -> str:
    """Of a calculation in rows: the row that it ends with."""
    found = _ROWS.search(expression)
    if not found:
        return expression
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", found[2].replace("&", " ")) if row.strip(" .,\n")]
    if found[1] == "cases":  # a system's solution; with conditions it is a function
        return expression if "&" in found[2] else ", ".join(rows)
    return rows[-1] if rows else ""


def _conclusion(expression: str) -> str:
    r"""What the expression ends in: behind \implies; and without the decimals of an exact value (\approx)."""
    expression = re.split(r"\\(?:implies|Rightarrow|Longrightarrow|iff)\b|=>", expression)[-1]
    expression = re.sub(r"=\s*-?\d*\.\d+\s*(?:\\l?dots\b|…|\.\.\.)[\s.]*$", "", expression)
    exact, *rounded = re.split(r"\\(?:approx|simeq|cong|doteq)\b", expression)
    if rounded:
        value = exact.rpartition("=")[2]
        has_value = re.search(r"\d|\\(?:pi|sqrt|frac|ln|log)\b|\be\b", value)
        expression = exact if has_value else exact + "=" + rounded[-1] if exact.strip() else rounded[-1]
    return expression


_UNIT = r"\\text\s*\{[^{}]*\}(?:\s*\^\s*(?:\{\s*-?\d\s*\}|\d))?"
_JOINS = r"\\text\s*\{\s*,?\s*(?:and|or)\s*,?\s*\}"
_PER = r"\\frac\s*\{\s*" + _UNIT + r"\s*\}\s*\{\s*" + _UNIT + r"\s*\}"
_PLAIN_UNIT = re.compile(
    r"(?P<value>.*[\d})])\s*(?:(?<=\s)|(?<=\d))"
    r"(?!(?:sin|cos|tan|cot|log|ln|exp|mod|choose|or|and|if|for|pi)\b)(?<!\\)"
    r"(?:[A-Za-z]{3,}|cm|mm|km|kg|ft|in|hr?s?|mi|lb|oz|ml|mL|[mgsJNWVL](?=[\^/]|$))(?:[\s/]+[A-Za-z]+|\^\{?-?[23]\}?)*\.?\s*",
    re.DOTALL,
)  # fmt: skip


def _without_units(expression: str) -> str:
    """Units, nouns and labels in words are left out where a value remains."""
    if "\\text" in expression:
        expression = re.sub(r"\\text\s*\{\s*(?:percentage|percent|per cent|pct)\.?\s*\}", r"\\%", expression)
        kept = re.sub(rf"{_PER}|(?!{_JOINS}){_UNIT}", " ", expression)
        kept = re.sub(r"(?:/|\\cdot)\s*(?=[.,;]?\s*$)", " ", kept)
        if re.search(r"\w", re.sub(r"\\text\s*\{[^{}]*\}", "", kept)):
            expression = kept
    expression = re.sub(r"(?<=[\d}])\s*(?:percentage|percent|per cent|pct)\b\.?", r"\\%", expression)
    expression = re.sub(r"^\s*\(?[A-E]\)\s*(?=[\d\\(-])", "", expression)  # the letter of an option
    unit = _PLAIN_UNIT.fullmatch(expression)
    return unit["value"] if unit and "\\text" not in unit["value"] else expression


def _rows_to_matrix(found: re.Match[str]) -> str:
    """[[1, 2], [3, 4]], as programs write it."""
    rows = re.split(r"\]\s*,\s*\[", found[1].strip("[] "))
    return r"\begin{pmatrix}" + r"\\".join(row.replace(",", "&") for row in rows) + r"\end{pmatrix}"


_NOTATION: _Stage = [
    (r"\\(?:left|right|bigg?|Bigg?|[bB]igg?[lr])(?![A-Za-z])\s*\.?(?=\s*[(\[{|)\]}\\<>.])", ""),
    (r"\\(?:varnothing|O\b)", r"\\emptyset"),
    (r"\\(?:geqslant|geqq|geq)\b", r"\\ge "),
    (r"\\(?:leqslant|leqq|leq)\b", r"\\le "),
    (r"\\(?:langle|lbrack)\b", "("),
    (r"\\rangle\b", ")"),
    (r"\\(?:lt)\b", "<"),
    (r"\\(?:gt)\b", ">"),
    (r"\\colon\b", ":"),
    (r"(?<!\\)%", r"\\%"),
    (r"\\lor\b|\\vee\b", r"\\text{ or }"),
    (r"\\land\b|\\wedge\b", r"\\text{ and }"),
    (r"^\s*\[\s*(\[.*\]\s*,\s*\[.*\])\s*\]\s*$", _rows_to_matrix),
    (r"(?<=[\w}])\s*\\degree\b", r"^\\circ "),
    (r"^((?:(?!\\(?:sin|cos|tan|cot|sec|csc)).)*?)\s*\^\s*\{?\s*\\circ\s*\}?\s*(?:[CF]\b)?\s*\.?\s*$", r"\1"),
    (r"\\angle\s*", ""),
    (r"(?:\s|^).{0,40}\\equiv\b", " "),
    (r"\\p?mod\s*(?:\{[^{}]*\}|\w+)|\\bmod\s*\d+|\(\s*\\?mod\s*\w+\s*\)", " "),
    (r"^\s*(?:\(?[A-Za-z](?:_\{?\w\}?)?(?:\s*,\s*[A-Za-z](?:_\{?\w\}?)?)*\)?)\s*\\in\s*(?=[(\[\]]|\\(?:\{|mathbb|left|emptyset|text))",
     ""),
    (r"^\s*(?:\\(?:mathcal|mathbb|mathrm)\s*)?\{?\s*[SLDIW]\s*\}?(?:_\s?\{?\w\}?)?\s*=\s*"
     r"(?=[\]\[(][^=]*[,;][^=]*[\]\[)]|\\\{)", ""),
    (r"^\s*\\\{\s*(?:\\?[A-Za-z]+)(?:\s*\\in\s*(?:\\mathbb\s*\{?R\}?|\\R\b))?\s*"
     r"(?:\\(?:mid|vert)|[:|]|\\text\s*\{\s*such that\s*\})\s*(.*?)\s*\\\}\s*$", r"\1"),
    (r"(?:^|(?<=\\cup)|(?<=[=,]))\s*\]\s*([^\[\]()]*?)\s*([\[\])])", r" (\1\2"),
    (r"([(\[])\s*([^\[\]()]*?)\s*\[\s*(?=$|\\cup|[.,])", r"\1\2)"),
    (r"(?<=[\d)}\\a-z])\s*;\s*(?![^;]*=[^;]*,)", ", "),  # but not between the solutions of "p=5, q=2; p=7, q=2"
    (r"(?<=[\d}])\s*i(?![A-Za-z_])", " i"),
    (r"(?<![\d,({\[.])(\d{1,3}),(\d{3}),(\d{3})((?:,\d{3})*)(?![\d,)}\]])", lambda found: found[0].replace(",", "")),
    (r"\\(?:dots|dotsc|cdots|dotsb)\b|\.{3}|…", r"\\ldots "),
    (r"\\lg\b", r"\\log_{10}"),
    (r"^\s*[A-Z]\s*(?=\([^()=]*,[^()=]*\)\W*$)", ""),  # a point by its name: F(4, 0)
    (r"^\s*([A-Za-z])\s*\(\s*[a-z]\s*\)\s*=(?!.*=)", r"\1 ="),
    (r"(?<=[\w})])(?:\s*,\s*|\s+)\(?\s*[A-Za-z]\s*\\in\s*\\mathbb\s*\{?\s*[ZNR]\s*\}?\s*\)?\W*$", ""),  # of a family of solutions
    (r"(?<=[\w})])\s*,\s*(?:\\text\s*\{[^{}]*\}\s*)?[A-Za-z]\s*(?:\\ne|\\neq)(?![A-Za-z])\s*-?[\w.]+\W*$", ""),  # where defined
    (r"(\\end\s*\{\w*matrix\})\s*=\s*I(?:_\s?\{?\w\}?)?\W*$", r"\1"),
    (r"(\d+(?:\.\d+)?)\s*\^\s*(?:\{\s*\\circ\s*\}|\\circ\b)", r"(\\frac{\1 \\pi}{180})"),
    (r"\\arcsin\b|\\sin\s*\^\s*\{\s*-\s*1\s*\}", r"\\arcsin "),
    (r"\\arccos\b|\\cos\s*\^\s*\{\s*-\s*1\s*\}", r"\\arccos "),
    (r"\\arctan\b|\\tan\s*\^\s*\{\s*-\s*1\s*\}", r"\\arctan "),
]  # fmt: skip

_REPEATING = re.compile(r"(\d*)\.(\d*)\s*\\(?:overline|bar|dot)\s*\{?\s*(\d+)\s*\}?")


def _repeating_decimal(found: re.Match[str]) -> str:
    """Exactly: 0.1\\overline{6} is 1/6."""
    before, repeated = found[2], found[3]
    value = Fraction(f"{found[1] or 0}.{before or 0}") + Fraction(
        int(repeated), (10 ** len(repeated) - 1) * 10 ** len(before)
    )
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


def _balance(expression: str) -> str:
    """Without the punctuation around it, and without closing brackets that nothing opens or the reverse at the ends."""
    expression = expression.lstrip(" \t\n,;:=`\"'“”*_").rstrip(" \t\n.,;:?=`\"'“”*_\\")
    expression = re.sub(r"^\.(?!\d)", "", expression)
    for opening, closing in ("()", "{}", "[]"):
        surplus = expression.count(closing) - expression.count(opening)
        # Half-open intervals mix the brackets.
        if opening in "([" and re.search(r"[(\[][^()\[\]]*,[^()\[\]]*[)\]]", expression):
            continue
        if surplus > 0 and expression.endswith(closing * surplus):
            expression = expression[:-surplus].rstrip()
        elif surplus < 0 and expression.startswith(opening * -surplus):
            expression = expression[-surplus:].lstrip()
    return re.sub(r"^\((-?[\d.]+)\)$", r"\1", re.sub(r"\s+", " ", expression)).lstrip(" ,;").rstrip(" .,;")
