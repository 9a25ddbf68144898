"""The letter of the option that a reply chooses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from themis.evaluation.extractors.answers import find_boxes
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import last_of, shorten, strip_thinking, text_of
from themis.exceptions import ConfigurationError


@dataclass(frozen=True)
class MultipleChoiceExtractor:
    """The letter of the chosen option: bare, in brackets, bold, boxed, announced, or at the end of reasoning.

    Args:
        choices: The letters there are, as a range or one by one.
        options: The options' texts, in order or by letter; a spelled-out option then counts as its letter.

    >>> MultipleChoiceExtractor("A-D").extract("So the answer is (b).")
    'B'
    """

    choices: str = "A-Z"
    options: Sequence[str] | Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        parse_letters(self.choices)

    def extract(self, raw_output: str) -> str:
        text = text_of(raw_output)
        letters = parse_letters(self.choices)
        letter = find_choice(text, letters, parse_options(self.options, letters))
        if letter is None:
            raise FieldExtractionError(f"no choice among {self.choices} in {shorten(text)}")
        return letter


def parse_letters(choices: str) -> str:
    """`"A-D"` and `"ABCD"` are both ABCD."""
    span = re.fullmatch(r"(\w)-(\w)", choices)
    letters = "".join(map(chr, range(ord(span[1]), ord(span[2]) + 1))) if span else choices
    if not letters.isalnum() or len(set(letters.upper())) != len(letters):
        raise ConfigurationError(f"choices must be a range such as 'A-D' or the letters themselves, got {choices!r}")
    return letters.upper()


def parse_options(options: object, letters: str) -> dict[str, str]:
    """The texts of the options: from a list, from a mapping by letter, or from a printed block of lettered lines."""
    if isinstance(options, str):
        lines = re.findall(r"^\s*\(?(\w)[).:]\s+(.+?)\s*$", options, re.MULTILINE)
        return {letter.upper(): text for letter, text in lines if letter.upper() in letters}
    if isinstance(options, Mapping):
        return {str(letter).upper(): str(text) for letter, text in options.items()}
    if isinstance(options, Sequence):
        return {letter: str(text) for letter, text in zip(letters, options, strict=False)}
    return {}


def find_choice(text: str, letters: str, options: Mapping[str, str] | None = None) -> str | None:
    """The letter, upper case, by the first of these that finds one; of several by the same sign the last."""
    options = options or {}
    letters = "".join(letter for letter in letters if letter in options) or letters
    text = strip_thinking(text)
    boxed = find_boxes(text)
    bare = _strip_typesetting(text)
    lines = [line for line in bare.splitlines() if line.strip()] or [""]
    by_text = {_fold(option): letter for letter, option in options.items()}
    return (
        (_match_alone(_strip_typesetting(text[boxed[-1].inside]), letters) if boxed else None)
        or _match_alone(bare, letters)
        or by_text.get(_fold(bare))
        or _last(_find_announced(bare, letters))
        or _find_announced_text(bare, by_text)
        or _last(found[1] for found in re.finditer(rf"\*\*\W{{0,3}}([{letters}])\W{{0,3}}\*\*", text))
        or _match_alone(lines[-1], letters)
        or _match_leading(lines[-1], letters)
        or _match_alone(lines[0], letters)
        or _match_leading(lines[0], letters)
        or _last(_find_bracketed(bare, letters))
        or _last(_find_standing(bare, letters))
        or _find_only_mentioned(_fold(bare), by_text)
    )


_TYPESETTING = re.compile(r"\\(?:text|mathrm|mathbf|rm|bf|boxed|fbox)[a-z]*|</?\w+>|[{}$*_`\\]")
_FILLER = (
    r"(?:[\s:=\-\"'(\[]|\b(?:is|was|be|would|should|must|the|letter|option|choice|answer|correct|right|best|most|likely"
    r"|therefore|thus|then|clearly|definitely|simply|just|final|one)\b){0,24}?"
)
_ANNOUNCES = r"\b(?:answer|option|choice|choose|chose|pick|select|go with|going with|correct)\b"
_REJECTED_AFTER = re.compile(
    # B, not A: the comma turns from B to what it is not.
    r"(?!\s*[,;–—-]\s*not\b)\W{0,3}(?:(?:is|are|was|seems?|looks?|can|could|does|do|would)\b\s*)?(?:be\s+)?"
    r"(?:not\b|n't|n’t|isn|wrong|incorrect|false|ruled out|eliminated|impossible|out\b|cannot\b|fails?\b)",
    re.IGNORECASE,
)
_REJECTED_BEFORE = re.compile(
    r"\b(?:not|n't|isn't|exclude|excludes|eliminate|eliminates|reject|rule out|rules out|neither|nor|than|unlike)"
    r"\s*(?:option|choice|answer)?[^\w:]*$",
    re.IGNORECASE,
)


def _strip_typesetting(text: str) -> str:
    return _TYPESETTING.sub("", text)


def _fold(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _last(letters: Iterator[str]) -> str | None:
    last = last_of(letters)
    return last.upper() if last else None


def _match_alone(text: str, letters: str) -> str | None:
    """Nothing but the letter: B, (b), B., [B]."""
    found = re.fullmatch(rf"\W{{0,9}}([{letters}])\W{{0,9}}", text.strip(), re.IGNORECASE)
    return found[1].upper() if found else None


def _match_leading(line: str, letters: str) -> str | None:
    """The letter before its option: B) Paris, (B) Paris, B. Paris."""
    found = re.match(rf"\s*(?:\(([{letters}])\)|([{letters}])[).:])(?=\s|$)", line)
    return (found[1] or found[2]) if found and _is_meant(line, found.start(), found.end()) else None


def _find_announced(text: str, letters: str) -> Iterator[str]:
    """answer is (B) · option B · I choose B · B is correct; but not: option B is wrong."""
    upper = rf"(?P<upper>[{letters}])(?![\w'’])"
    lower = rf"(?P<lower>[{letters.lower()}])(?=\s*(?:[.,;:!?)\]\"']|$))"
    before = re.compile(rf"(?i:{_ANNOUNCES}{_FILLER})\(?(?:{upper}|{lower})", re.MULTILINE)
    after = re.compile(
        rf"(?<![\w'’])(?P<upper>[{letters}])\)?\s+(?i:is|must be|would be)\s+(?i:the\s+)?(?i:correct|right|best|answer)"
    )
    found = [*before.finditer(text), *after.finditer(text)]
    for match in sorted(found, key=lambda match: match.end()):
        group = match.lastgroup or "upper"
        if _is_meant(text, match.start(group), match.end(group)):
            yield match[group]


def _find_announced_text(text: str, by_text: Mapping[str, str]) -> str | None:
    """The answer is Paris."""
    if not by_text:
        return None
    announced = [match.end() for match in re.finditer(rf"(?i:{_ANNOUNCES}{_FILLER})(?=\w)", text)]
    for start in reversed(announced):
        line = _fold(text[start : start + 500].partition("\n")[0])
        said = [option for option in by_text if f"{line} ".startswith(f"{option} ")]
        if said:
            return by_text[max(said, key=len)]
    return None


def _find_bracketed(text: str, letters: str) -> Iterator[str]:
    for match in re.finditer(rf"[(\[]([{letters}])[)\]]", text, re.IGNORECASE):
        if _is_meant(text, match.start(1), match.end(1)):
            yield match[1]


def _find_standing(text: str, letters: str) -> Iterator[str]:
    """A capital on its own. A and I are English words too, unless something other than a word follows."""
    for match in re.finditer(rf"(?<![\w'’])([{letters}])(?![\w'’])", text):
        a_word = match[1] in "AI" and re.match(r"\s+[a-z]", text[match.end() : match.end() + 9])
        if not a_word and _is_meant(text, match.start(1), match.end(1)):
            yield match[1]


def _is_meant(text: str, start: int, end: int) -> bool:
    """Neither `not B` nor `B is wrong`."""
    return not _REJECTED_AFTER.match(text[end : end + 40]) and not _REJECTED_BEFORE.search(
        text[max(0, start - 40) : start]
    )


def _find_only_mentioned(text: str, by_text: Mapping[str, str]) -> str | None:
    mentioned = [option for option in by_text if option and f" {option} " in f" {text} "]
    # Paris inside Paris, Texas is one mention, not two.
    mentioned = [option for option in mentioned if not any(option != other and option in other for other in mentioned)]
    return by_text[mentioned[0]] if len(mentioned) == 1 else None
