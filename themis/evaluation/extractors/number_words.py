"""Numbers spelled out in words, in the languages that models are mostly asked in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors.numbers import WrittenNumber


def find_number_words(text: str) -> Iterator[WrittenNumber]:
    """Every number that is spelled out, from left to right.

    >>> [str(number) for number in find_number_words("minus two, or twenty-three and a half")]
    ['-2', '23.5']
    """
    for found in _SPELLED.finditer(text):
        if found["chinese"]:
            below = _chinese(found["below"]) if found["below"] else Fraction(1)
            value = _chinese(found["chinese"]) / below if below else None
        else:
            value = _words(found["words"].lower())
        if value is not None:
            sign = -1 if found["minus"] else 1
            yield WrittenNumber(sign * value, found["percent"] is not None, found.start(), found.end())


# From zero on; what follows the bar counts in tens from 20 on.
_COUNTING = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen | twenty thirty forty fifty sixty seventy eighty ninety",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn | zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf | vingt trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix",
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve | veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "zero um dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete dezoito "
    "dezenove | vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
    "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove | venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать "
    "пятнадцать шестнадцать семнадцать восемнадцать девятнадцать | двадцать тридцать сорок пятьдесят шестьдесят "
    "семьдесят восемьдесят девяносто",
    "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien "
    "achttien negentien | twintig dertig veertig vijftig zestig zeventig tachtig negentig",
)
_SMALL = {
    word: step * (number + first)
    for names in _COUNTING
    for step, first, part in zip((1, 10), (0, 2), names.split("|"), strict=True)
    for number, word in enumerate(part.split())
} | {"eine": 1, "une": 1, "una": 1, "uma": 1, "quatre-vingt": 80, "сто": 100, "двести": 200, "cien": 100, "cento": 100}


def _compounds() -> Iterator[tuple[str, int]]:
    """Tens and ones in one word, as in `einundzwanzig`, `eenentwintig`, `veintiuno`, `ventuno`."""
    _, german, _, spanish, _, italian, _, dutch = (names.replace("|", "").split() for names in _COUNTING)
    for tens in range(2, 10):
        for ones in range(1, 10):
            value, place = 10 * tens + ones, 18 + tens
            yield f"{'ein' if ones == 1 else german[ones]}und{german[place]}", value
            yield f"{dutch[ones]}{'ën' if dutch[ones].endswith('e') else 'en'}{dutch[place]}", value
            yield (
                (italian[place][:-1] if ones in (1, 8) else italian[place]) + italian[ones].replace("tre", "tré"),
                value,
            )
    yield from ((f"veinti{ones}", 20 + value) for value, ones in enumerate(spanish[1:10], 1))
    yield from {"veintidós": 22, "veintitrés": 23, "veintiséis": 26}.items()


_SMALL |= dict(_compounds())
_UP_TO_TEN = (
    "शून्य एक दो तीन चार पाँच छह सात आठ नौ दस",
    "صفر واحد اثنان ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة عشرة",
)
_SMALL |= {word: number for names in _UP_TO_TEN for number, word in enumerate(names.split())}
_TIMES = {
    word: times
    for times, words in {
        12: "dozen dutzend douzaine docena dúzia dozzina",
        10**2: "hundred hundert cent cents ciento cem honderd",
        10**3: "thousand tausend mille mil mila тысяча тысячи тысяч duizend",
        10**5: "lakh",
        10
        ** 6: "million millions millionen millones millón milhões milhão milioni milione миллион миллиона миллионов miljoen",
        10**7: "crore",
        10**9: "billion milliarde milliarden milliard milliards",
        10**12: "trillion",
    }.items()
    for word in words.split()
}
_PARTS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4,
          "fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10}  # fmt: skip
_WORD = "|".join(sorted(map(re.escape, {*_SMALL, *_TIMES, *_PARTS}), key=len, reverse=True))
_JOIN = r"(?:\s+(?:and|y|e|et|und|point)(?:\s+an?)?\s+|\s+(?:an?\s+)?|-)"
# 一共, 一起 and their like are no ones.
_CHINESE = "(?!一[共起些样直定般下旦])[零〇一二三四五六七八九十百千万两]{1,12}"
_SPELLED = lazy_pattern(
    rf"""
    (?P<minus>\b(?:minus|negative|moins|menos|meno|минус)\s+|[负負]|マイナス)?
    (?:
        \b(?P<words>(?:an?\s+)?(?:{_WORD})(?:{_JOIN}(?:{_WORD})\b){{0,12}})\b
        (?P<percent>\s?(?:%|percent\b|per\scent\b|prozent\b))?
      | (?:(?<=[是为為は：:\s负負ス])|^) (?:(?P<below>{_CHINESE})分之)?(?P<chinese>{_CHINESE})
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TOKEN = lazy_pattern(rf"\b(?:{_WORD}|and|y|e|et|und|point)\b", re.IGNORECASE)


def _words(spelled: str) -> Fraction | None:
    """None for words that are numbers one by one but not together, as in a count ("one two three")."""
    tokens = _TOKEN.findall(spelled)
    if "point" in tokens:
        place = tokens.index("point")
        whole, digits = _whole(tokens[:place]), [_SMALL.get(token, 10) for token in tokens[place + 1 :]]
        if whole is None or not digits or max(digits) > 9:
            return None
        return whole + Fraction(int("".join(map(str, digits))), 10 ** len(digits))
    if tokens[0] == "half" and len(tokens) == 2 and tokens[1] in _TIMES:  # half a million
        return Fraction(_TIMES[tokens[1]], 2)
    if tokens[-1] in _PARTS:
        *before, last = tokens
        split = max((place for place, token in enumerate(before) if token == "and"), default=-1)
        whole, share = _whole(before[: max(split, 0)]), _whole(before[split + 1 :] or ["one"])
        return None if whole is None or share is None else whole + share / _PARTS[last]
    return _whole(tokens)


def _whole(tokens: list[str]) -> Fraction | None:
    total = current = 0
    for token in tokens:
        times = _TIMES.get(token)
        if times is not None and times >= 1000:
            total, current = total + (current or 1) * times, 0
        elif times is not None:
            current = (current or 1) * times
        elif token in _SMALL:
            small, rest = _SMALL[token], current % 100
            if rest and ((small > 9 and rest not in (60, 80)) or rest < 20 or rest % 10):
                return None
            current += small
        elif token in _PARTS:
            return None
    return Fraction(total + current)


def _chinese(spelled: str) -> Fraction:
    total = current = digit = 0
    for sign in spelled:
        if sign in _CHINESE_TIMES:
            times = _CHINESE_TIMES[sign]
            if times == 10**4:
                total, current, digit = total + (current + digit or 1) * times, 0, 0
            else:
                current, digit = current + (digit or 1) * times, 0
        else:
            digit = digit * 10 + _CHINESE_DIGITS[sign]
    return Fraction(total + current + digit)


_CHINESE_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_TIMES = {"十": 10, "百": 100, "千": 1000, "万": 10**4}
