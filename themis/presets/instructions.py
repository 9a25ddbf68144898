"""IFEval: whether a response follows instructions such as "at least 300 words" or "no commas", by its own 25 rules.

The kinds of instruction, their parameters and every rule are those that its published numbers rest on, oddities included: a
keyword is a pattern that may stand inside a word, sentences are those of nltk's Punkt, languages those of langdetect.
"""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar, Protocol, cast

from themis.core.codec import canonical_json
from themis.core.entities import MetricScore
from themis.core.registry import import_extra, nearest
from themis.evaluation.corpus import STATISTICS
from themis.exceptions import ConfigurationError, DependencyError, MetricError
from themis.interfaces import Metric, Row

_NAMES = {
    ("prompt", False): "prompt_level_strict_acc",
    ("instruction", False): "inst_level_strict_acc",
    ("prompt", True): "prompt_level_loose_acc",
    ("instruction", True): "inst_level_loose_acc",
}


@dataclass
class InstructionFollowing(Metric):
    """One of IFEval's four numbers; `details["followed"]` says which instructions were followed.

    The reference is `{"instruction_id_list": [...], "kwargs": [...]}`, the parameters in the order of the instructions;
    a parameter that is None is absent.

    Args:
        level: `prompt`: 1 if every instruction of a row is followed. `instruction`: the share of them; over a run that of all
            instructions of all rows, whatever row they are of.
        loose: Whether an instruction also counts as followed if it is without the response's first line, last line, or
            asterisks.
    """

    example: ClassVar[str] = (
        'InstructionFollowing().compute(prediction="no such thing", '
        'references=[{"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}]).value == 1.0'
    )

    level: str = "prompt"
    loose: bool = False
    score_range = (0.0, 1.0)

    def __post_init__(self) -> None:
        if (self.level, self.loose) not in _NAMES:
            raise ConfigurationError(f"level is 'prompt' or 'instruction', got {self.level!r}")
        self.name = _NAMES[self.level, self.loose]
        self.pass_fail = self.level == "prompt"
        self.aggregation = None if self.level == "prompt" else "ratio"

    def check_row(self, references: Sequence[object], row: Mapping[str, object]) -> None:
        for kind, parameters in _read_instructions(references):
            _find_check(kind)
            if kind in _NEEDS:
                _NEEDS[kind]()
            _check(kind, "A first try.", parameters)

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        response = "" if prediction is None else str(prediction)
        followed = _follow(response, canonical_json(_read_instructions(references)), self.loose)
        count, right = len(followed), sum(one["followed"] is True for one in followed)
        details: dict[str, object] = {"followed": list(followed), "share_followed": right / count}
        if self.level == "prompt":
            return MetricScore(self.name, float(right == count), details)
        return MetricScore(self.name, right / count, {**details, STATISTICS: [right, count]})


def _read_instructions(references: Sequence[object]) -> list[tuple[str, dict[str, object]]]:
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


# The four numbers of a row look at the same response one after another.
@functools.lru_cache(maxsize=64)
def _follow(response: str, instructions: str, loose: bool) -> tuple[dict[str, object], ...]:
    """Which instructions a response follows, as it is or in any of its looser forms."""
    forms = _loosen(response) if loose else [response]
    return tuple(
        {"instruction": kind, "followed": any(form.strip() and _check(kind, form, parameters) for form in forms)}
        for kind, parameters in json.loads(instructions)
    )


def _loosen(response: str) -> list[str]:
    """The response without its first line, its last line, both, and each of them without asterisks."""
    lines = response.split("\n")
    parts = [response, *("\n".join(some).strip() for some in (lines[1:], lines[:-1], lines[1:-1]))]
    return [form for part in parts for form in (part, part.replace("*", ""))]


def _find_check(kind: str) -> Callable[..., bool]:
    if kind not in CHECKS:
        raise MetricError(f"no check for the instruction {kind!r}{nearest(kind, CHECKS)}")
    return CHECKS[kind]


def _check(kind: str, response: str, parameters: Mapping[str, object]) -> bool:
    try:
        return bool(_find_check(kind)(response, **parameters))
    except (TypeError, re.error) as error:
        raise MetricError(f"the instruction {kind!r} has unfit parameters {parameters}: {error}") from error


def _compares(count: int, relation: str, wanted: int) -> bool:
    """IFEval knows two relations: `less than` and `at least`."""
    if relation not in ("less than", "at least"):
        raise MetricError(f"a relation is 'less than' or 'at least', got {relation!r}")
    return count < wanted if relation == "less than" else count >= wanted


# --- keywords: patterns, which may stand inside a word ------------------------------------------------------------------


def _has_keywords(response: str, *, keywords: list[str]) -> bool:
    return all(re.search(keyword, response, re.IGNORECASE) for keyword in keywords)


def _keyword_count(response: str, *, keyword: str, frequency: int, relation: str) -> bool:
    return _compares(len(re.findall(keyword.strip(), response, re.IGNORECASE)), relation, frequency)


def _avoids_words(response: str, *, forbidden_words: list[str]) -> bool:
    return not any(re.search(rf"\b{word}\b", response, re.IGNORECASE) for word in forbidden_words)


def _letter_count(response: str, *, letter: str, let_frequency: int, let_relation: str) -> bool:
    return _compares(response.lower().count(letter.strip().lower()), let_relation, let_frequency)


# --- lengths ------------------------------------------------------------------------------------------------------------


def _sentence_count(response: str, *, num_sentences: int, relation: str) -> bool:
    return _compares(len(_load_punkt().tokenize(response)), relation, num_sentences)


def _word_count(response: str, *, num_words: int, relation: str) -> bool:
    return _compares(len(_find_words(response)), relation, num_words)


def _find_words(text: str) -> list[str]:
    """Runs of word characters as nltk's tokenizer finds them: with combining marks, and without fractions and exponents."""
    if not text.isascii():
        return "".join(character if _is_of_word(character) else " " for character in text).split()
    return re.findall(r"\w+", text)


def _is_of_word(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or character in "\u200c\u200d"


def _paragraph_count(response: str, *, num_paragraphs: int) -> bool:
    """Paragraphs are divided by ***; an empty one counts for nothing at either end, and fails between others."""
    parts = [part.strip() for part in re.split(r"\s?\*\*\*\s?", response)]
    return all(parts[1:-1]) and sum(map(bool, parts)) == num_paragraphs


def _paragraph_starts(response: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Empty paragraphs do not count, and yet have a place."""
    paragraphs = response.split("\n\n")
    count = sum(bool(paragraph.strip()) for paragraph in paragraphs)
    if count != num_paragraphs or nth_paragraph > count or not (chosen := paragraphs[nth_paragraph - 1].split()):
        return False
    word = chosen[0].lstrip("'").lstrip('"')
    return re.split(r"[.,?!'\"]", word)[0].lower() == first_word.lower()


# --- content and format -------------------------------------------------------------------------------------------------


def _placeholder_count(response: str, *, num_placeholders: int) -> bool:
    return len(re.findall(r"\[.*?\]", response)) >= num_placeholders


_POSTSCRIPTS = {"P.P.S": r"\s*p\.\s?p\.\s?s.*$", "P.S.": r"\s*p\.\s?s\..*$"}


def _has_postscript(response: str, *, postscript_marker: str) -> bool:
    marker = postscript_marker.strip()
    pattern = _POSTSCRIPTS.get(marker, rf"\s*{marker.lower()}.*$")
    return re.search(pattern, response.lower(), re.MULTILINE) is not None


def _bullet_count(response: str, *, num_bullets: int) -> bool:
    patterns = (r"^\s*\*[^\*].*$", r"^\s*-.*$")
    return sum(len(re.findall(pattern, response, re.MULTILINE)) for pattern in patterns) == num_bullets


def _is_one_of_three(response: str) -> bool:
    return any(answer in response for answer in ("My answer is yes.", "My answer is no.", "My answer is maybe."))


def _highlight_count(response: str, *, num_highlights: int) -> bool:
    """What stands in two asterisks is found by the first pattern too, with an asterisk left, if anything stands in it."""
    single = [found.strip("*") for found in re.findall(r"\*[^\n\*]*\*", response)]
    double = [found.removeprefix("**").removesuffix("**") for found in re.findall(r"\*\*[^\n\*]*\*\*", response)]
    return sum(bool(text.strip()) for text in (*single, *double)) >= num_highlights


def _section_count(response: str, *, section_spliter: str, num_sections: int) -> bool:
    return len(re.split(rf"\s?{section_spliter.strip()}\s?\d+\s?", response)) - 1 >= num_sections


def _is_json(response: str) -> bool:
    text = response.strip()
    for opening in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(opening)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def _has_title(response: str) -> bool:
    return any(title.lstrip("<").rstrip(">").strip() for title in re.findall(r"<<[^\n]+>>", response))


# --- combinations, beginnings and ends ----------------------------------------------------------------------------------


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


# --- letters' case, punctuation and language ----------------------------------------------------------------------------


def _capital_word_count(response: str, *, capital_frequency: int, capital_relation: str) -> bool:
    """Words as nltk's word_tokenize cuts them, sentence by sentence: `CAN'T` is two."""
    words = _load_word_tokenizer()
    capitals = sum(word.isupper() for sentence in _load_punkt().tokenize(response) for word in words.tokenize(sentence))
    return _compares(capitals, capital_relation, capital_frequency)


def _is_capital_english(response: str) -> bool:
    return response.isupper() and _in_language(response, language="en")


def _is_lower_english(response: str) -> bool:
    return response.islower() and _in_language(response, language="en")


def _has_no_comma(response: str) -> bool:
    return "," not in response


def _in_language(response: str, *, language: str) -> bool:
    """A response whose language cannot be told, such as one of digits alone, counts as following."""
    detector = _load_langdetect()
    try:
        return bool(detector.detect(response) == language)
    except detector.LangDetectException:
        return True


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


# --- packages that some of the rules are ---------------------------------------------------------------------------------


class _Tokenizer(Protocol):
    def tokenize(self, text: str, /) -> Sequence[str]: ...


@functools.cache
def _load_punkt() -> _Tokenizer:
    """nltk's sentences of English. Its data is not part of the package."""
    import_extra("nltk", "ifeval", "counting sentences as IFEval does")
    from nltk.tokenize.punkt import PunktTokenizer

    try:
        return cast(_Tokenizer, PunktTokenizer("english"))
    except LookupError as error:
        raise DependencyError(
            "counting sentences and capital words as IFEval does needs nltk's data punkt_tab: "
            "python -m nltk.downloader punkt_tab; without internet, copy the folder nltk_data of a machine that has it and set "
            "NLTK_DATA to its path"
        ) from error


@functools.cache
def _load_word_tokenizer() -> _Tokenizer:
    import_extra("nltk", "ifeval", "counting capital words as IFEval does")
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return cast(_Tokenizer, NLTKWordTokenizer())


@functools.cache
def _load_langdetect() -> ModuleType:
    """It draws at random which parts of a text it looks at; here always the same ones."""
    found = import_extra("langdetect", "ifeval", "telling languages as IFEval does")
    found.DetectorFactory.seed = 0
    return found


_NEEDS: dict[str, Callable[[], object]] = {
    "language:response_language": _load_langdetect,
    "change_case:english_capital": _load_langdetect,
    "change_case:english_lowercase": _load_langdetect,
    "length_constraints:number_sentences": _load_punkt,
    "change_case:capital_word_frequency": _load_punkt,
}
