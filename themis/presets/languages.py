"""Tells in which language a text is written, by its script and its commonest words.

Good enough to see whether a response is in the language that was asked for; it knows the languages that instructions
of IFEval name, and says so of others.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from themis.core.registry import nearest
from themis.exceptions import MetricError

__all__ = ["LANGUAGES", "is_written_in"]


@dataclass(frozen=True)
class _Language:
    """`script` are the letters that most of a text consists of; `words` tell apart languages that share them."""

    script: str
    words: frozenset[str] = frozenset()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LATIN = "a-zà-öø-ÿāăąćčđęěğıłńňőœřśşšťůűźżžơưạ-ỹ"
_CYRILLIC = "а-яёђ-џґ"
# Without the commas and full stops that lie among the letters.
_ARABIC = "\u0620-\u06d3"
_DEVANAGARI = "\u0900-\u0963\u0966-\u097f"

LANGUAGES: dict[str, _Language] = {
    "ar": _Language(_ARABIC, _words("في من على إلى هذا هذه التي الذي أن كان ما مع عن لا هو هي كل بعد")),
    "bg": _Language(_CYRILLIC, _words("и на за от се да е са ще със като това което при до към или беше")),
    "bn": _Language("\u0980-\u09ff"),
    "de": _Language(
        _LATIN, _words("der die das und ist nicht ein eine zu von mit für auf den dem sich auch ich es im wird")
    ),
    "en": _Language(
        _LATIN, _words("the of and to in is that for it on with as are was this be by you or at from not have")
    ),
    "es": _Language(_LATIN, _words("el la los las de que y en un una es por con para su se del al no como más lo")),
    "fa": _Language(_ARABIC, _words("و در به از که این را با است برای آن یک خود تا می هم شد ها بود")),
    "fi": _Language(
        _LATIN, _words("ja on ei se että hän oli ovat mutta kun myös tai jos kuin sen niin olen minä joka")
    ),
    "fr": _Language(
        _LATIN, _words("le la les de et des en un une est que pour dans qui du au pas sur il ce avec je vous")
    ),
    "gu": _Language("\u0a80-\u0aff"),
    "he": _Language("\u0590-\u05ff"),
    "hi": _Language(_DEVANAGARI, _words("है के में की और का को से यह हैं पर एक ने भी नहीं कि था हो")),
    "it": _Language(_LATIN, _words("il lo la gli di che e è un una per non con del della sono in si come nel da i")),
    "ja": _Language("\u3040-\u30ff\u4e00-\u9fff"),
    "kn": _Language("\u0c80-\u0cff"),
    "ko": _Language("\uac00-\ud7af\u1100-\u11ff"),
    "ml": _Language("\u0d00-\u0d7f"),
    "mr": _Language(_DEVANAGARI, _words("आहे आणि आहेत मध्ये हे या तो ते होते आपण करून साठी असे झाले नाही एक")),
    "ne": _Language(_DEVANAGARI, _words("छ र छन् हो मा को गर्न पनि यो भने लागि तपाईं हुन्छ थियो एक गर्छ")),
    "pa": _Language("\u0a00-\u0a7f"),
    "pl": _Language(_LATIN, _words("i w na z się nie do to jest że jak o po ale co dla od przez są być czy jego")),
    "pt": _Language(_LATIN, _words("o a os as de que e do da em um uma para com não é por mais dos no na se você")),
    "ru": _Language(_CYRILLIC, _words("и в не на я что он с как это по но она к из у за от так же для мы вы был")),
    "sw": _Language(_LATIN, _words("na ya wa kwa ni za katika la cha kuwa hii yake kama au pia sana lakini watu")),
    "ta": _Language("\u0b80-\u0bff"),
    "te": _Language("\u0c00-\u0c7f"),
    "th": _Language("\u0e00-\u0e7f"),
    "uk": _Language(_CYRILLIC, _words("і в на не що у з як це до та є за від для він але про ми ви бути його")),
    "ur": _Language(_ARABIC, _words("کے میں کی ہے اور کا سے کو یہ پر ہیں نے ایک بھی نہیں کہ تھا")),
    "vi": _Language(_LATIN, _words("và của là có không được cho một các trong người với những này đã để khi từ")),
    "zh": _Language("\u4e00-\u9fff"),
}

# The share of a text's letters that must be of the script; names and quotations may be of another.
_ENOUGH = 0.6


def is_written_in(text: str, language: str) -> bool:
    wanted = LANGUAGES.get(language.lower())
    if wanted is None:
        raise MetricError(
            f"no way to tell the language {language!r}{nearest(language, LANGUAGES)}; known: {', '.join(LANGUAGES)}"
        )
    letters = re.findall(r"[^\W\d_]", text.lower())
    in_script = re.findall(f"[{wanted.script}]", text.lower())
    if not letters or len(in_script) / len(letters) < _ENOUGH:
        return False
    if language.lower() in ("ja", "zh"):
        # Japanese is never without kana for long, Chinese always.
        return bool(re.search("[\u3040-\u30ff]", text)) == (language.lower() == "ja")
    rivals = {name: other for name, other in LANGUAGES.items() if other.script == wanted.script}
    if len(rivals) == 1:
        return True
    counts = Counter(re.findall(f"[{wanted.script}]+", text.lower()))
    hits = {name: sum(counts[word] for word in other.words) for name, other in rivals.items()}
    return hits[language.lower()] == max(hits.values())
