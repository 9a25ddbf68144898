"""Tells whether a phrase stands where answers stand, by its place in the reply alone.

A second look beside `claims`, which reads what a reply says of each phrase. Most misreadings are zeros for replies that have
the right words in them; whoever opens a reply with a phrase or ends with it seldom means another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from themis.core.patterns import lazy_pattern
from themis.memory.scoring.words import TAG, find_correction, find_tags, fold, tag_phrases


def is_prominent(reply: str, phrase: str, among: Iterable[str], claimed: Collection[str] | None = None) -> bool:
    """Whether, of several phrases, this one opens the reply or ends it, or is named most often.

    What stands side by side with others (`red or blue`) neither opens nor ends a reply, nor does what is denied, asked or past.

    Args:
        reply: What was answered.
        phrase: The phrase.
        among: All phrases of its kind.
        claimed: Those that the reply may assert, as far as is known; any other one has to stand without a word beside it.

    >>> is_prominent("Red. The walls were blue.", "red", ["red", "blue"])
    True
    >>> is_prominent("Red or blue.", "red", ["red", "blue"])
    False
    """
    parts = _read_parts(reply, (phrase,), among)
    counts = Counter(name for part in parts for name in part.named)
    if phrase not in counts or len(counts) < 2:
        return False
    own = [part for part in parts if phrase in part.named]
    if counts[phrase] > max(count for name, count in counts.items() if name != phrase):
        return not all(_DENIED.search(part.text) for part in own)
    alike = {part.frame for part in own} & {part.frame for part in parts if part not in own}
    first, last = parts[0], parts[-1]
    is_claimed = claimed is None or phrase in claimed
    if first.is_answer and first.only == phrase and not alike:
        return is_claimed or first.is_bare
    if last.is_ending and last.only == phrase and last.frame not in alike:
        # After another opening it may be a remark.
        return last.is_bare or (is_claimed and not (first.is_answer and first.only))
    return False


def stand_apart(reply: str, phrases: Collection[str], among: Iterable[str]) -> bool:
    """Whether all the phrases are named, and none of them side by side with another one.

    Args:
        reply: What was answered.
        phrases: The phrases.
        among: All phrases of their kind.

    >>> stand_apart("Leeds and York. Hull was a holiday.", ["Leeds", "York"], ["Leeds", "York", "Hull"])
    True
    """
    wanted = set(phrases)
    parts = _read_parts(reply, tuple(phrases), among)
    mixed = any(wanted & {*part.named} and {*part.named, *part.beside} - wanted for part in parts)
    return not mixed and wanted <= {name for part in parts for name in part.named}


@dataclass(frozen=True, slots=True)
class _Part:
    """What stands between two marks or conjunctions, if it names something."""

    label: str  # that a colon ends before it
    joint: str  # the marks and the conjunction before it
    text: str
    mark: str  # behind it
    named: tuple[str, ...]
    beside: frozenset[str]  # what its neighbours name that go on with it: `red, blue`, `red or blue`

    @property
    def only(self) -> str | None:
        return self.named[0] if len(set(self.named)) == 1 else None

    @property
    def frame(self) -> tuple[str, bool]:
        """Its words with a gap for what it names, and whether it opens a paragraph: of parts with one frame none is preferred."""
        words = _GAP.findall(TAG.sub("#", f"{self.label} {self.text}"))
        return " ".join(words), self.joint.count("\n") > 1

    @property
    def is_answer(self) -> bool:
        """Whether it may be an answer: neither one of a series nor denied or past."""
        return not self.beside - {*self.named} and _LESS.search(f"{self.label} {self.joint} {self.text}") is None

    @property
    def is_ending(self) -> bool:
        """Whether it may be what a reply comes to: an answer, and no remark beside one."""
        return "?" not in self.mark and self.is_answer and _BESIDE.search(f"{self.joint} {self.text}") is None

    @property
    def is_bare(self) -> bool:
        """Whether it has no word beside what it names."""
        return not _LETTER.search(_SMALL.sub(" ", self.text))


def _read_parts(reply: str, phrases: tuple[str, ...], among: Iterable[str]) -> list[_Part]:
    """The parts of a reply, those after a correction if there are any. A phrase in other letters is no other phrase."""
    candidates = tuple(sorted({*among, *phrases}))
    spelled = {fold(phrase): phrase for phrase in phrases}
    text = fold(reply)
    return _split_parts(find_correction(text), candidates, spelled) or _split_parts(text, candidates, spelled)


def _split_parts(text: str, candidates: tuple[str, ...], spelled: Mapping[str, str]) -> list[_Part]:
    texts, joints = _cut(tag_phrases(text, candidates))
    found = [[name for tag in TAG.findall(piece) for name in find_tags(tag, candidates)] for piece in texts]
    named = [tuple(spelled.get(fold(name), name) for name in names) for names in found]
    parts = []
    for place, names in enumerate(named):
        if not names:
            continue
        label = " ".join(texts[place - 1].split()[-_LABEL_WORDS:]) if place and joints[place].startswith(":") else ""
        neighbours = [
            other
            for other in (place - 1, place + 1)
            if 0 <= other < len(named) and _goes_on(joints[max(place, other)], texts[max(place, other)])
        ]
        beside = frozenset(name for other in neighbours for name in named[other])
        parts.append(_Part(label, joints[place], texts[place], joints[place + 1], names, beside))
    return parts


def _cut(tagged: str) -> tuple[list[str], list[str]]:
    """The pieces of a text that have words, and what stands before each of them and behind the last."""
    texts, joints = [], [""]
    pieces = _JOINTS.split(tagged)
    for text, joint in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        if _GAP.search(text) or TAG.search(text):
            texts.append(text)
            joints.append(joint.strip(" "))
        else:
            joints[-1] = f"{joints[-1]} {joint}".strip(" ")
    return texts, joints


def _goes_on(joint: str, text: str) -> bool:
    """Whether a piece goes on with the one before it: `, blue`, `or perhaps blue`, and not `, and fragile ones go to blue`."""
    lead = TAG.split(text)[0]
    return (_JOINING.fullmatch(joint) or _OR.match(text)) is not None and len(_GAP.findall(lead)) <= _FEW_WORDS


_LABEL_WORDS, _FEW_WORDS = 3, 2
_GAP = lazy_pattern(r"[\w#]+")
_JOINTS = lazy_pattern(
    r"((?:[,;(–—]\s?|\s-+\s)?\b(?:and|or)\b|[.!?;:](?=\s|$|[\"')*_])|[\n()\[\]{}|–—]|\s-+\s|,(?=\s)|→|⇒|=>|->"
    r"|\b(?:but|while|whereas|because|since|so|which|rather than|instead of|over|ahead of|having|out of|among|from)\b)"
)
_JOINING = lazy_pattern(r",|.*\b(?:and|or)\b.{0,2}")
_OR = lazy_pattern(r"\W*(?:also|maybe|perhaps|possibly)\b")
_SMALL = lazy_pattern(r"\b(?:the|an?|so|but|and|it'?s|it is|my|your|now)\b")
_LETTER = lazy_pattern(r"[^\W\d_]")
_NEGATION = (
    r"n't\b|\b(?:not?|never|neither|nor|cannot|without|instead of|rather than|than|except|unlike|perhaps|maybe)\b"
)
_DENIED = lazy_pattern(_NEGATION)
# What is denied, past, supposed, compared with or a reason is no answer.
_LESS = lazy_pattern(
    rf"{_NEGATION}|\b(?:former(?:ly)?|previous(?:ly)?|used to|wrong|incorrect|skip|first|earlier|before|until"
    r"|original(?:ly)?|if|though|although|while|because|possibly|could|might|would|from|over|among|out|ahead|behind|versus"
    r"|vs|followed|liked|loved|was|were|had|once|or)\b"
)
# Of what comes last, also what else a remark can begin with.
_BESIDE = lazy_pattern(
    r"\b(?:but|left|gave|given|false|ruled?|avoid|with|to|by|also|second|guess|which|having|whereas|since"
    r"|withdr[ae]wn?|t[ao]ken? back|took back)\b"
)
