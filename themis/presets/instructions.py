"""Checks by rule whether a response follows instructions such as "at least 300 words" or "no commas".

The kinds of instruction and their parameters are those of IFEval's rows; the checks are deterministic and need no
model. A kind without a check here is a failure of the sample, never a score.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.core.entities import MetricScore
from themis.core.registry import nearest
from themis.exceptions import MetricError
from themis.interfaces import Metric


@dataclass
class InstructionFollowing(Metric):
    """1 if every instruction is followed; `details["followed"]` says which.

    The reference is `{"instruction_id_list": [...], "kwargs": [...]}`, the parameters in the order of the instructions;
    a parameter that is None is absent.
    """

    example: ClassVar[str] = (
        'InstructionFollowing().compute(prediction="no such thing", '
        'references=[{"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}]).value == 1.0'
    )

    name: str = "InstructionFollowing"
    score_range = (0.0, 1.0)
    pass_fail = True

    def compute(
        self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None
    ) -> MetricScore:
        instructions = _instructions(references)
        response = prediction if isinstance(prediction, str) else str(prediction)
        followed = [
            {"instruction": kind, "followed": bool(response.strip()) and _check(kind, response, parameters)}
            for kind, parameters in instructions
        ]
        share = sum(bool(each["followed"]) for each in followed) / len(followed)
        return MetricScore(self.name, float(share == 1.0), {"followed": followed, "share_followed": share})


def _instructions(references: Sequence[Any]) -> list[tuple[str, dict[str, Any]]]:
    reference = references[0] if references else None
    if not isinstance(reference, Mapping) or not isinstance(reference.get("instruction_id_list"), list):
        raise MetricError(f"expected a reference with instruction_id_list and kwargs, got {reference!r:.80}")
    kinds = reference["instruction_id_list"]
    parameters = reference.get("kwargs") or [{} for _ in kinds]
    if not kinds or len(kinds) != len(parameters):
        raise MetricError(f"{len(kinds)} instructions with {len(parameters)} sets of parameters")
    return [
        (kind, {name: value for name, value in (given or {}).items() if value is not None})
        for kind, given in zip(kinds, parameters, strict=True)
    ]


def _check(kind: str, response: str, parameters: dict[str, Any]) -> bool:
    check = CHECKS.get(kind)
    if check is None:
        raise MetricError(f"no check for the instruction {kind!r}{nearest(kind, CHECKS)}")
    try:
        return check(response, **parameters)
    except TypeError as error:
        raise MetricError(f"the instruction {kind!r} has unfit parameters {parameters}: {error}") from error


def _compares(count: int, relation: str, wanted: int) -> bool:
    """IFEval knows two relations: `less than` and `at least`."""
    if relation not in ("less than", "at least"):
        raise MetricError(f"a relation is 'less than' or 'at least', got {relation!r}")
    return count < wanted if relation == "less than" else count >= wanted


# ---- keywords ----


def _mentions(response: str, phrase: str) -> int:
    return len(re.findall(rf"(?<!\w){re.escape(phrase)}(?!\w)", response, re.IGNORECASE))


def _has_keywords(response: str, *, keywords: list[str]) -> bool:
    return all(_mentions(response, keyword) for keyword in keywords)


def _keyword_count(response: str, *, keyword: str, frequency: int, relation: str) -> bool:
    return _compares(_mentions(response, keyword), relation, frequency)


def _avoids_words(response: str, *, forbidden_words: list[str]) -> bool:
    return not any(_mentions(response, word) for word in forbidden_words)


def _letter_count(response: str, *, letter: str, let_frequency: int, let_relation: str) -> bool:
    return _compares(response.lower().count(letter.lower()), let_relation, let_frequency)


def _in_language(response: str, *, language: str) -> bool:
    return is_written_in(response, language)


# ---- lengths ----


def _sentence_count(response: str, *, num_sentences: int, relation: str) -> bool:
    # A dot after a title or a single letter ends no sentence, nor does one inside a number.
    text = re.sub(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|[A-Z])\.", " ", response)
    sentences = re.split(r"(?<=[.!?。！？])[\"'”’)\]*_]*(?:\s+|$)|\n+", text)
    return _compares(sum(bool(re.search(r"\w", sentence)) for sentence in sentences), relation, num_sentences)


def _word_count(response: str, *, num_words: int, relation: str) -> bool:
    return _compares(len(re.findall(r"\w+", response)), relation, num_words)


def _paragraph_count(response: str, *, num_paragraphs: int) -> bool:
    """Paragraphs are divided by ***; one at either end divides nothing."""
    parts = [part.strip() for part in re.split(r"\s?\*\*\*\s?", response)]
    return all(parts[1:-1]) and sum(bool(part) for part in parts) == num_paragraphs


def _paragraph_starts(response: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", response) if part.strip()]
    if len(paragraphs) != num_paragraphs or not 1 <= nth_paragraph <= len(paragraphs):
        return False
    first = re.match(r"[\W_]*(\w+(?:['’-]\w+)*)", paragraphs[nth_paragraph - 1])
    return first is not None and first[1].lower() == first_word.lower()


# ---- content and format ----


def _placeholder_count(response: str, *, num_placeholders: int) -> bool:
    return len(re.findall(r"\[[^\[\]\n]+\]", response)) >= num_placeholders


def _has_postscript(response: str, *, postscript_marker: str) -> bool:
    dots_may_be_spaced = re.escape(postscript_marker).replace(r"\.", r"\s?\.\s?")
    return re.search(rf"^\s*{dots_may_be_spaced}", response, re.IGNORECASE | re.MULTILINE) is not None


def _bullet_count(response: str, *, num_bullets: int) -> bool:
    return len(re.findall(r"^[ \t]*(?:\*(?!\*)|[-•])[ \t]*\S", response, re.MULTILINE)) == num_bullets


def _is_one_of_three(response: str) -> bool:
    return any(answer in response for answer in ("My answer is yes.", "My answer is no.", "My answer is maybe."))


def _highlight_count(response: str, *, num_highlights: int) -> bool:
    bold = re.findall(r"\*\*([^\n*]+)\*\*", response)
    plain = re.findall(r"\*([^\n*]+)\*", re.sub(r"\*\*[^\n*]+\*\*", "", response))
    return sum(bool(text.strip()) for text in [*bold, *plain]) >= num_highlights


def _section_count(response: str, *, section_spliter: str, num_sections: int) -> bool:
    return len(re.findall(rf"\s?{re.escape(section_spliter)}\s?\d+\s?", response)) >= num_sections


def _is_json(response: str) -> bool:
    text = re.sub(r"^```(?:json)?|```$", "", response.strip(), flags=re.IGNORECASE).strip()
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _has_title(response: str) -> bool:
    return any(title.strip(" <>") for title in re.findall(r"<<[^\n]+>>", response))


# ---- combinations, beginnings and ends ----


def _two_responses(response: str) -> bool:
    parts = [part.strip() for part in response.split("******")]
    told = [part for part in parts if part]
    return all(parts[1:-1]) and len(told) == 2 and told[0] != told[1]


def _repeats_prompt(response: str, *, prompt_to_repeat: str) -> bool:
    return response.strip().lower().startswith(prompt_to_repeat.strip().lower())


def _ends_with(response: str, *, end_phrase: str) -> bool:
    return response.strip().strip('"').lower().endswith(end_phrase.strip().lower())


def _is_quoted(response: str) -> bool:
    text = response.strip()
    return len(text) > 1 and text[0] == '"' and text[-1] == '"'


# ---- letters' case and punctuation ----


def _capital_word_count(response: str, *, capital_frequency: int, capital_relation: str) -> bool:
    capitals = [word for word in re.findall(r"[^\W\d_](?:[\w'’-]*\w)?", response) if word.isupper()]
    return _compares(len(capitals), capital_relation, capital_frequency)


def _is_capital_english(response: str) -> bool:
    return response.isupper() and is_written_in(response, "en")


def _is_lower_english(response: str) -> bool:
    return response.islower() and is_written_in(response, "en")


def _has_no_comma(response: str) -> bool:
    return "," not in response


CHECKS: dict[str, Callable[..., bool]] = {
    "keywords:existence": _has_keywords,
    "keywords:frequency": _keyword_count,
    "keywords:forbidden_words": _avoids_words,
    "keywords:letter_frequency": _letter_count,
    "language:response_language": _in_language,
    "length_constraints:number_sentences": _sentence_count,
    "length_constraints:number_words": _word_count,
    "length_constraints:number_paragraphs": _paragraph_count,
    "length_constraints:nth_paragraph_first_word": _paragraph_starts,
    "detectable_content:number_placeholders": _placeholder_count,
    "detectable_content:postscript": _has_postscript,
    "detectable_format:number_bullet_lists": _bullet_count,
    "detectable_format:constrained_response": _is_one_of_three,
    "detectable_format:number_highlighted_sections": _highlight_count,
    "detectable_format:multiple_sections": _section_count,
    "detectable_format:json_format": _is_json,
    "detectable_format:title": _has_title,
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": _repeats_prompt,
    "startend:end_checker": _ends_with,
    "startend:quotation": _is_quoted,
    "change_case:capital_word_frequency": _capital_word_count,
    "change_case:english_capital": _is_capital_english,
    "change_case:english_lowercase": _is_lower_english,
    "punctuation:no_comma": _has_no_comma,
}


# --- in which language a text is written -------------------------------------------------------------------------------


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
