"""Numbers as people and models write them, with their exact values.

A comma or dot is a separator of thousands or a decimal mark, and the number itself mostly says which:

- `1,234` and `12,34,567` are grouped by commas; `3,50` and `0,125` cannot be, so the comma is a decimal mark.
- `1.234.567` and `1.234,50` are grouped by dots; `3.5` and `1.2345` cannot be.
- `1.234` alone is a decimal fraction, unless the text shows elsewhere that it writes decimals with a comma.
- Spaces, thin spaces, apostrophes and underscores group by three: `1 000 000`, `1'234.5`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import last_of, shorten, text_of


@dataclass(frozen=True)
class LastNumberExtractor:
    """The last number in the text, as plain digits: separators, currency, percent signs and units are left out.

    Scales and fractions are worked out; dates, times, versions and the numbers of a list are not numbers.

    Args:
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> LastNumberExtractor().extract("So 3 x 400 is $1,200.00 in all.")
    '1200'
    >>> LastNumberExtractor().extract("It grew to $1.2 million by 2024-05-06.")
    '1200000'
    """

    part: str = "text"

    def extract(self, raw_output: str) -> str:
        text = text_of(raw_output)
        last = last_of(find_numbers(text))
        if last is None:
            raise FieldExtractionError(f"no number in {shorten(text)}")
        return str(last)


@dataclass(frozen=True)
class WrittenNumber:
    """A number with its exact value, whether a percent sign followed it, and its place in the plain text."""

    value: Fraction
    percent: bool = False
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    def __str__(self) -> str:
        numerator, denominator = self.value.as_integer_ratio()
        twos_and_fives = denominator
        for prime in (2, 5):
            while twos_and_fives % prime == 0:
                twos_and_fives //= prime
        if twos_and_fives > 1:
            return f"{numerator}/{denominator}"
        places = max(denominator.bit_length(), 1)
        digits = f"{abs(numerator) * 10**places // denominator:0{places + 1}d}"
        sign = "-" if numerator < 0 else ""
        return sign + f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")


def find_numbers(text: str) -> Iterator[WrittenNumber]:
    """Every number, from left to right; digits that are part of a word or an exponent (x2, m^2, H2O) are not numbers."""
    return find_plain_numbers(to_plain_text(text))


def find_plain_numbers(text: str) -> Iterator[WrittenNumber]:
    """The numbers of a text that `to_plain_text` made, at their places in it."""
    groups = _grouping_marks(text)
    markers = list(_LIST_MARKER.finditer(text))
    of_a_list = {marker.start("marker") for marker in markers if len(markers) > 1 or marker["alone"]}
    for found in _NUMBER.finditer(text):
        if found["skipped"] or found.start("number") in of_a_list:
            continue
        number = _read(found, groups)
        if number is not None:
            yield number


def to_plain_text(text: str) -> str:
    """The text with the digits of every script as 0 to 9, and without the typesetting that stands inside numbers."""
    text = text.translate(_PLAIN_CHARACTERS)
    for pattern, replacement in _PLAIN_SPELLINGS:
        text = pattern.sub(replacement, text)
    return text


_ZEROS = "０٠۰०০๐"
_PLAIN_CHARACTERS = {ord(zero) + digit: str(digit) for zero in _ZEROS for digit in range(10)} | str.maketrans(
    dict.fromkeys("−‐‑‒–－﹣", "-")
    | {"．": ".", "％": "%", "٫": ".", "٬": ",", "⁄": "/", "＝": "=", "＋": "+", "：": ":", "（": "(", "）": ")"}
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")


def _spell_fraction(found: re.Match[str]) -> str:
    r"""After a digit it is the rest of a mixed number: `2\frac{1}{3}`, `2⅓`."""
    space = " " if found.start() and found.string[found.start() - 1].isdigit() else ""
    if found.lastindex:
        return f"{space}{found[1] or found[3]}/{found[2] or found[4]}"
    value = Fraction(unicodedata.numeric(found[0])).limit_denominator(10)
    return f"{space}{value.numerator}/{value.denominator}"


def _spell_exponent(found: re.Match[str]) -> str:
    return "^" + found[0].translate(_SUPERSCRIPTS)


_INTEGER = r"\s{0,3}(-?\d{1,9})\s{0,3}"
_PLAIN_SPELLINGS: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (lazy_pattern(r"\{,\}|,\\!|(?<=\d)，(?=\d{3})"), ","),
    (lazy_pattern(r"\\[!,;:]"), ""),
    (lazy_pattern(rf"\\[dtc]?frac\s?(?:\{{{_INTEGER}\}}\s?\{{{_INTEGER}\}}|(\d)\s?(\d))"), _spell_fraction),
    (lazy_pattern("[¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]"), _spell_fraction),
    (lazy_pattern("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+"), _spell_exponent),
    # Indices and bases.
    (lazy_pattern(r"[₀-₉]+|(?<=[A-Za-z)\d])_\{[^{}\n]{0,40}\}|(?<=[A-Za-z)])_\d+(?![\d_])"), ""),
    (lazy_pattern(r"\\(?:times|cdot)(?![a-z])"), "×"),
    (lazy_pattern(r"\\approx(?![a-z])"), "≈"),
    (lazy_pattern(r"\\equiv(?![a-z])"), "="),
    (lazy_pattern(r"\\p?mod\s?(?:\{\s?\d+\s?\}|\d+)|\(mod\s\d+\)"), ""),
    (lazy_pattern(r"\\(?:implies|Rightarrow|to|rightarrow)(?![a-z])"), "⇒"),
    (lazy_pattern(r"\\([$%])"), r"\1"),
    (lazy_pattern(r"\\(boxed|fbox)(?=\d)"), r"\\\1 "),
    (lazy_pattern(r"\^\{?\\circ\}?"), "°"),
    (lazy_pattern(r"\\(?:text|mathrm|mathbf|textbf|mathit|textit|operatorname|mbox)\s?\{([^{}\n]{0,200})\}"), r" \1 "),
    (lazy_pattern(r"(?<! ) {1,9}(?=\^)|(?<=\d)/-(?!\d)|~~[^~\n]{1,200}~~"), ""),
    (lazy_pattern(r"(?<!\w)__(?=\S)([^\n_]{1,200})(?<=\S)__(?!\w)"), r"**\1**"),
    (lazy_pattern(r"(?<!\w)_(?=\S)([^\n_]{1,200})(?<=\S)_(?!\w)"), r"*\1*"),
]

_SCALES = {
    "hundred": 10**2,
    "百": 10**2,
    "dozens?": 12,
    r"thousands?|tausend|mille|mil(?!\smillones)|mila|тысяч[аи]?|тыс|千": 10**3,
    "万|萬": 10**4,
    "lakhs?|lacs?|लाख": 10**5,
    "millions?|mio|mln|mn|millionen|millones|mill[oó]n|milh(?:ões|ão)|milion[ei]|миллион(?:а|ов)?|млн": 10**6,
    "crores?|करोड़": 10**7,
    "億|亿": 10**8,
    r"billions?|bn|milliarden?|milliards?|mil\smillones|mrd\.?|miliard[oi]|bilh(?:ões|ão)|миллиард(?:а|ов)?|млрд": 10
    ** 9,
    "trillions?|tn|兆": 10**12,
}
_SCALE_NAMES = "|".join(f"(?P<scale{power}>{names})" for power, names in enumerate(_SCALES))
_LETTERS = {"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9}
_MONTH = r"(?-i:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_NUMBER = lazy_pattern(
    rf"""
    (?P<skipped>
        (?<![\w.]) (?:
            (?:https?://|www\.)\S+ |
            \d{{4}}-\d\d-\d\d (?:T[\d:.]+Z?)?                             # dates
          | \d{{1,2}} (?P<mark>[./]) \d{{1,2}} (?P=mark) (?:\d{{4}}|\d\d)(?!\d)
          | {_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)? (?:,?\s\d{{4}}(?!\d)|(?=[.;)\n]|$))
          | \d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH}(?!\w) (?:\s\d{{4}}(?!\d))?
          | \d{{1,4}}:\d{{1,4}} (?::\d\d)? (?!\d) (?:\s?[ap]\.?m\b\.?)?     # times and ratios
          | \d{{1,2}}\s?[ap]\.?m\b
          | 24/7\b
          | (?!\d{{1,3}}(?:\.\d{{3}})+(?!\d)) \d+ (?:\.\d+){{2,}}          # versions
          | \d+(?:st|nd|rd|th)(?!\w)                                       # ordinals
          | (?:step|method|case|equation|figure|table|section|chapter|example|exercise|approach)\s\#?\d+(?![\d.,]*\d)
        )
      | (?: (?<=\w)|(?<=\d\s)|(?<=[.!?])|(?<=\n) ) \[\d{{1,2}}\]           # footnotes
    )
  | (?<![A-Za-z0-9_^.]) (?<![A-Za-z]-) (?<!\^-) (?<!\^\{{) (?<!\^\{{-)     # not inside a word, an exponent or a version
    (?P<number>
        (?P<sign> (?<![)\]])[-+] | (?:(?<=\bis[ ])|(?<==[ ])|(?<=:[ ]))-[ ] | (?<=\s)—(?=\d)
            | (?:(?<=\bis[ ])|(?<==[ ])|(?<=:[ ])|(?<=\bof[ ])|^) (?:minus|negative)[ ] )?
        (?:[$€£¥₹]\s?)? (?P<inner_sign>-)?
        (?:
            (?P<whole>\d{{1,4}}) (?:\s(?:and\s)?|-) (?P<top>\d{{1,3}})\s?/\s?(?P<bottom>\d{{1,3}}) (?!\d|/|\.\d|\s?[=+*×])
          | (?P<digits>
                \d{{1,3}}(?:,\d{{3}})+(?!\d|,\d)(?:\.\d+)?
              | \d{{1,2}}(?:,\d\d)+,\d{{3}}(?!\d|,\d)(?:\.\d+)?
              | \d{{1,3}}(?:\.\d{{3}})+(?:,\d+|(?<=\.\d{{3}}\.\d{{3}}))(?!\d|\.\d)
              | \d{{1,3}}(?:[ '’_\u00a0\u2009\u202f]\d{{3}})+(?!\d)(?:[.,]\d+)?
              | (?<![,(\[]) (?:\d+,(?:\d{{1,2}}|\d{{4,}})|0,\d+) (?!\d|,\d|\.\d)
              | \d+(?:\.\d+)? | \.\d+
            )
            (?:e(?P<exponent>[-+]?\d+)(?!\w))?
            (?:(?:\^|\*\*)\{{?(?P<raised>-?\d+)\}}?(?P<tower>(?:\^|\*\*)\S*)?)?
            (?:\s?(?:×|x|\*|·)\s?10\s?(?:\^|\*\*)\s?\{{?(?P<power>-?\d+)\}}?)?
            (?:\s?/\s?(?P<denominator>\d+(?:\.\d+)?)(?![\w/]))?
        )
    )
    (?:\s?(?:{_SCALE_NAMES})(?![A-Za-zа-я]) | (?P<letter>(?-i:[kKMB]))(?![\w(^]|\s?[-+*/=^]))?
    (?P<percent>\s?(?:%|percent|per\scent|pct|prozent|pour\scent|por\sciento|por\scento|per\scento|процент)(?!\w))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LIST_MARKER = lazy_pattern(
    r"^[ \t>*#-]{0,20}\(?(?P<marker>\d{1,2})[.)](?=[ \t*]{1,9}(?P<alone>[$€£-]{0,2}\d[\d.,]*[ \t]*$)?\S?)", re.MULTILINE
)
_MAX_DIGITS = 400  # of a number, whether written out or by an exponent


def _read(found: re.Match[str], groups: str) -> WrittenNumber | None:
    """None for numbers beyond all use, which would only cost time."""
    if found["whole"]:
        part = Fraction(int(found["top"]), int(found["bottom"])) if int(found["bottom"]) else None
        if part is None:
            return None
        mixed = part < 1
        value, start = (int(found["whole"]) + part, found.start("number")) if mixed else (part, found.start("top"))
    else:
        exact = _exact_value(found, groups)
        if exact is None:
            return None
        value, start = exact, found.start("number")
    if (found["sign"] or "+").strip() != "+" or found["inner_sign"]:
        value = -value
    return WrittenNumber(value * _scale(found), found["percent"] is not None, start, found.end())


def _exact_value(found: re.Match[str], groups: str) -> Fraction | None:
    digits = _point_decimals(found["digits"], groups)
    denominator = found["denominator"] or "1"
    if found["tower"] or max(len(found[name] or "") for name in ("exponent", "power", "raised")) > 6:
        return None
    exponent = int(found["exponent"] or 0) + int(found["power"] or 0)
    raised = int(found["raised"] or 1)
    if max(len(digits) * abs(raised), len(denominator), abs(exponent)) > _MAX_DIGITS:
        return None
    base = Fraction(digits)
    if not Fraction(denominator) or (raised < 0 and not base):
        return None
    return base**raised * Fraction(10) ** exponent / Fraction(denominator)


def _point_decimals(digits: str, groups: str) -> str:
    """Only digits and a decimal point are left; see the rule at the head of this module."""
    digits = re.sub(r"[^\d.,]", "", digits)
    decimal = digits[max(digits.rfind(","), digits.rfind("."))] if "," in digits or "." in digits else "."
    other = "," if decimal == "." else "."
    if other not in digits:
        before, _, after = digits.rpartition(decimal)
        could_group = len(after) == 3 and 1 <= len(before) <= 3 and before[0] != "0"
        if decimal in before or (could_group and decimal in groups):
            return digits.replace(decimal, "")
    return digits.replace(other, "").replace(decimal, ".")


def _scale(found: re.Match[str]) -> int:
    if found["letter"]:
        return _LETTERS[found["letter"]]
    return next((by for power, by in enumerate(_SCALES.values()) if found[f"scale{power}"]), 1)


_DECIMAL_COMMA = lazy_pattern(r"(?<![\d,.(\[])\d+,\d{1,2}(?!\d|,\d)|\d\.\d{3},\d|\d\.\d{3}\s?(?:€|Euro\b)|R\$\s?\d")
_DECIMAL_POINT = lazy_pattern(r"(?<![\d,.])\d+\.(?:\d{1,2}|\d{4,})(?!\d|[.,]\d)|\d,\d{3}\.\d|\d,\d{2,3},\d{3}")
_OF_COMMA_LANGUAGES = lazy_pattern(
    r"\b(?:und|ist|sind|betragen|kosten|kostet|werden|wurden|wir|nicht|für|haben|verdient|insgesamt|nous|avons|coûte|sont|cuesta|cuestan|tiene"
    r"|custa|custam|temos|abbiamo|costano|beträgt|antwort|ergebnis|insgesamt|est|réponse|donc|respuesta|resultado"
    r"|tanto|resposta|total é"
    r"|portanto|risposta|quindi|risultato|antwoord|cevap|jawaban|odpowiedź|svaret|ответ|итого)\b",
    re.IGNORECASE,
)


def writes_decimal_commas(text: str) -> bool:
    """Whether a text in a language of decimal commas writes its decimals so, and none with a point.

    >>> writes_decimal_commas("Die Lösung ist also 2,5.")
    True
    """
    if _DECIMAL_POINT.search(text) or not _DECIMAL_COMMA.search(text):
        return False
    return len({word.lower() for word in _OF_COMMA_LANGUAGES.findall(text)}) > 1 or bool(_SURELY_COMMA.search(text))


# Words that no text in English has.
_SURELY_COMMA = lazy_pattern(
    r"\b(?:lösung|lautet|ergibt|beträgt|gleichung|wir|und|réponse|donc|nous|équation|égale|respuesta|ecuación|entonces|resposta|equação"
    r"|então|risposta|equazione|quindi|allora|ответ|уравнение)\b",
    re.IGNORECASE,
)


def _grouping_marks(text: str) -> str:
    """Which of comma and dot separate thousands where the number itself does not say."""
    if _DECIMAL_POINT.search(text):
        return ","
    if _DECIMAL_COMMA.search(text):
        return "."
    return ",." if _OF_COMMA_LANGUAGES.search(text) else ","
