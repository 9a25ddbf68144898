"""The text itself: whole, by pattern, without its reasoning, through several extractors, or what is wrong with it."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.resolve import resolve_extractor
from themis.exceptions import ConfigurationError
from themis.interfaces import Extractor

T = TypeVar("T")


def text_of(raw_output: object) -> str:
    """Strings as they are, numbers as text; anything else was not said by a model and cannot be searched."""
    if isinstance(raw_output, str):
        return raw_output
    if isinstance(raw_output, int | float):
        return str(raw_output)
    raise FieldExtractionError(f"expected text, got {type(raw_output).__name__}")


def shorten(text: str, limit: int = 60) -> str:
    """For messages: the end of a long text, where answers stand."""
    text = text.strip()
    return repr(text) if len(text) <= limit else repr("..." + text[3 - limit :])


def last_of(items: Iterable[T]) -> T | None:
    """The last of several finds: a model that corrects itself means what it said last."""
    return next(iter(deque(items, maxlen=1)), None)


@dataclass(frozen=True)
class IdentityExtractor:
    r"""The whole text is the answer.

    Args:
        strip_whitespace: Whether space at both ends is left out.
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> IdentityExtractor().extract(" Paris\n")
    'Paris'
    """

    strip_whitespace: bool = True
    part: str = "text"

    def extract(self, raw_output: str) -> str:
        text = text_of(raw_output)
        return text.strip() if self.strip_whitespace else text


@dataclass
class RegexExtractor:
    r"""What a pattern matches: the group asked for, else its only named or its first group, else the whole match.

    With several named groups and none asked for, the result is a dictionary of them.

    Args:
        pattern: A regular expression, as text or compiled.
        group: Number or name of the group that is the answer.
        flags: Those of the module `re`, for a pattern given as text.
        last: Whether the last match counts instead of the first.
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> RegexExtractor(r"total: (\d+)").extract("total: 42 apples")
    '42'
    """

    pattern: str | re.Pattern[str]
    group: int | str | None = None
    flags: int = 0
    last: bool = False
    part: str = "text"

    def __post_init__(self) -> None:
        try:
            self._compiled = re.compile(self.pattern, self.flags) if isinstance(self.pattern, str) else self.pattern
        except re.error as error:
            raise ConfigurationError(f"the regex extractor's pattern {self.pattern!r} is invalid: {error}") from error
        known = {*range(self._compiled.groups + 1), *self._compiled.groupindex}
        if self.group is not None and self.group not in known:
            raise ConfigurationError(
                f"group {self.group!r} is not in the pattern {self._compiled.pattern!r}, "
                f"which has {', '.join(map(repr, sorted(known, key=str)))}"
            )

    def extract(self, raw_output: str) -> str | dict[str, str | None]:
        text = text_of(raw_output)
        found = last_of(self._compiled.finditer(text)) if self.last else self._compiled.search(text)
        if found is None:
            raise FieldExtractionError(f"no match for {self._compiled.pattern!r} in {shorten(text)}")
        names = list(self._compiled.groupindex)
        if self.group is None and len(names) > 1:
            return found.groupdict()
        group = self.group if self.group is not None else names[0] if names else min(1, self._compiled.groups)
        if found[group] is None:
            raise FieldExtractionError(f"group {group!r} took no part in the match of {self._compiled.pattern!r}")
        return found[group]


@dataclass(frozen=True)
class ThinkTagStripper:
    """The text without its reasoning: <think> and its like, [THINK], ◁think▷, channels, also where one mark is missing.

    Args:
        tags: Names of the tags that reasoning stands in.
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> ThinkTagStripper().extract("<think>2+2...</think> 4")
    '4'
    """

    tags: Sequence[str] = (
        "think", "thinking", "thought", "thoughts", "reasoning", "reason", "rationale", "reflection", "scratchpad", "scratch",
        "analysis", "deliberation", "chain_of_thought", "cot", "monologue", "inner_monologue", "internal_monologue",
        "inner_thoughts", "internal_thoughts", "brainstorm", "planning", "working", "work",
    )  # fmt: skip
    part: str = "text"

    def extract(self, raw_output: str) -> str:
        text = text_of(raw_output)
        answer = strip_thinking(text, self.tags)
        if not answer:
            raise FieldExtractionError(f"nothing follows the reasoning in {shorten(text)}")
        return answer


def strip_thinking(text: str, tags: Sequence[str] = ThinkTagStripper.tags) -> str:
    """What a reply says outside of its reasoning.

    A closing mark without an opening one ends reasoning that began with the text. An opening one that is never closed
    begins reasoning that runs to an <answer> tag or to the end. A mark that prose only names is neither.
    """
    text = _final_channel(text)
    spans: list[tuple[int, int]] = []
    opened: list[re.Match[str]] = []
    closed = 0
    for mark in re.finditer(_THINKING_MARK.format("|".join(map(re.escape, tags))), text):
        if _is_quoted(text, mark):
            continue
        if not re.match(r"[<\[◁]/|<\|end", mark.group(), re.IGNORECASE):
            opened.append(mark)
        elif opened:
            closed = mark.end()
            spans.append((opened.pop().start(), closed))
        elif not re.match(r"[ \t]+[a-z]", text[mark.end() : mark.end() + 9]):
            closed = mark.end()
            spans = [(0, closed)]
    unclosed = [mark.start() for mark in opened if _begins_reasoning(text, mark)]
    spans += [(start, closed) for start in unclosed[:1] if start < closed]
    for start in [start for start in unclosed if start >= closed][:1]:
        answer = text.find("<answer", start)
        spans.append((start, answer if answer >= 0 else len(text)))
    return _cut(text, sorted(spans)).strip()


_THINKING_MARK = (
    r"(?i:</?(?:{0})(?:\s[^<>]{{0,80}})?>|◁/?think▷|<\|(?:begin_of|start|end|end_of)_(?:thought|thinking)\|>)"
    r"|\[/?THINK\]"
)
_CHANNEL = lazy_pattern(r"<\|channel\|>\s{0,9}(\w{1,40})[^<]{0,80}<\|message\|>")
_END_OF_MESSAGE = lazy_pattern(r"<\|(?:end|return|start|channel|call)\|>")


def _final_channel(text: str) -> str:
    """The last message to the user of a model that speaks in channels; its special tokens may have been left out."""
    channels = list(_CHANNEL.finditer(text))
    if channels:
        final = last_of(channel for channel in channels if channel[1] == "final")
        said = text[final.end() :] if final else text[: channels[0].start()]
        return _END_OF_MESSAGE.split(said, maxsplit=1)[0]
    if re.match(r"\s{0,9}analysis[A-Z\"']", text):
        return text.rpartition("assistantfinal")[2] if "assistantfinal" in text else ""
    return text


def _is_quoted(text: str, mark: re.Match[str]) -> bool:
    return text[mark.start() - 1 : mark.start()] in tuple("`'\"“‘«") and text[mark.end() : mark.end() + 1] in tuple(
        "`'\"”’»"
    )


def _begins_reasoning(text: str, mark: re.Match[str]) -> bool:
    """At the start of a line, or with the reasoning right behind it: not as in `the <think> tag`."""
    line = text[max(0, mark.start() - 80) : mark.start()].rpartition("\n")[2]
    following = text[mark.end() : mark.end() + 1]
    return not line.strip() or following.isalnum() or following == "\n"


def _cut(text: str, spans: Sequence[tuple[int, int]]) -> str:
    kept: list[str] = []
    position = 0
    for start, end in spans:
        kept.append(text[position:start])
        position = max(position, end)
    return "".join([*kept, text[position:]])


def find_next_turns(text: str) -> list[int]:
    """Where a reply goes on with a question of its own, or speaks for the user, after it has said something."""
    begins = len(text) - len(text.lstrip())
    later = (turn.start() for turn in _NEXT_TURN.finditer(text) if turn.start() > begins)
    return list(islice(later, _TURNS))


# More turns than this are not tried: a reply whose first ones say nothing is no transcript.
_TURNS = 3
_NEXT_TURN = lazy_pattern(
    r"^[ \t#*>]{0,9}(?:(?:next |new |follow-?up )?(?:question|problem|exercise|frage|pregunta|pergunta|domanda|вопрос|问题|問題"
    r"|질문|سؤال|प्रश्न)[ \t]{0,3}#?\d{0,3}|q\d{0,3}|user|human|instruction|input)[ \t]?\*{0,2}[:：]"
    r"|^#{2,4} (?:instruction|input|question|user)\b|<\|im_start\|>\s{0,3}user|<\|start_header_id\|>\s{0,3}user|<\|user\|>"
    r"|\[INST\]|<start_of_turn>\s{0,3}user|(?:</s>|<\|(?:endoftext|im_end|eot_id|end_of_text)\|>)\s{0,9}(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)


class ChainExtractor:
    """Each extractor reads what the one before it found; names and objects can be mixed.

    The part of the reply that the first one names is read.

    Args:
        extractors: At least one, in the order in which they read.

    >>> ChainExtractor("think_tag_stripper", "last_number").extract("<think>1</think> 2")
    '2'
    """

    def __init__(self, *extractors: str | Extractor) -> None:
        if not extractors:
            raise ConfigurationError("a chain needs at least one extractor, e.g. ChainExtractor('boxed')")
        self.extractors = tuple(resolve_extractor(extractor) for extractor in extractors)
        self.part, *others = (getattr(extractor, "part", "text") for extractor in self.extractors)
        if wrong := [part for part in others if part != "text"]:
            raise ConfigurationError(
                f"only the first extractor of a chain reads the reply, so part={wrong[0]!r} belongs there"
            )

    def extract(self, raw_output: str) -> object:
        # What one extractor found is the text of the next, which refuses what it cannot read.
        found: Any = raw_output
        for extractor in self.extractors:
            found = extractor.extract(found)
        return found

    def __repr__(self) -> str:
        return f"ChainExtractor({', '.join(map(repr, self.extractors))})"


_REFUSAL = lazy_pattern(
    r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|I (?:can(?:'t|not)|won't|will not|do not|don't) "
    r"(?:help|assist|answer|provide|comply|do that|feel comfortable)|as an AI\b|against my (?:guidelines|policy))",
    re.IGNORECASE,
)
_UNCERTAIN = lazy_pattern(
    r"\b(?:I(?:'m| am) not (?:sure|certain)|I (?:don't|do not) know|cannot be determined|not enough information)\b",
    re.IGNORECASE,
)
_ENDS_A_SENTENCE = (".", "!", "?", "。", "！", "？", ")", "]", "}", '"', "'", "”", "`", "*", ">", "$")


@dataclass(frozen=True)
class ErrorTaxonomyExtractor:
    """Which faults a text shows: a dictionary of the flags empty, refusal, uncertain, truncated and repetitive.

    Read them with a metric such as `json_subset`, or in the stored predictions.

    Args:
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> ErrorTaxonomyExtractor().extract("I'm sorry, I can't help.")["refusal"]
    True
    """

    part: str = "text"

    def extract(self, raw_output: str) -> dict[str, bool]:
        text = text_of(raw_output).strip()
        words = text.split()
        return {
            "empty": not text,
            "refusal": bool(_REFUSAL.search(text[:2000])),
            "uncertain": bool(_UNCERTAIN.search(text)),
            # A short answer needs no full stop; a long text that ends without one was most likely cut off.
            "truncated": len(words) > 20 and not text.endswith(_ENDS_A_SENTENCE),
            "repetitive": _is_repetitive(words),
        }


def _is_repetitive(words: list[str]) -> bool:
    """One phrase of five words makes up a quarter of a text of at least forty."""
    phrases = Counter(zip(*(words[offset:] for offset in range(5)), strict=False))
    return len(words) >= 40 and max(phrases.values()) * 5 > len(words) / 4
