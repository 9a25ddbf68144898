"""Answers that models wrap in tags or fences, and reasoning that they wrap to be left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import shortened, text_of
from themis.exceptions import ConfigurationError

__all__ = ["CodeBlockExtractor", "ThinkTagStripper", "XmlTagExtractor", "without_thinking"]


@dataclass(frozen=True)
class XmlTagExtractor:
    """The inside of the last <tag>...</tag>; to the end of the text where the closing tag was cut off."""

    example: ClassVar[str] = 'XmlTagExtractor("answer").extract("hm <answer> 42 </answer>") == "42"'

    tag: str = "answer"
    last: bool = True

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w:.-]+", self.tag):
            raise ConfigurationError(f"tag {self.tag!r} is not the name of a tag: give 'answer' for <answer>")

    def extract(self, raw_output: str) -> Any:
        text = text_of(raw_output)
        opening = list(re.finditer(rf"<{re.escape(self.tag)}(?:\s[^<>]*)?>", text, re.IGNORECASE))
        if not opening:
            raise FieldExtractionError(f"no <{self.tag}> in {shortened(text)}")
        start = opening[-1 if self.last else 0].end()
        closing = re.compile(rf"</{re.escape(self.tag)}\s{{0,9}}>", re.IGNORECASE).search(text, start)
        return text[start : closing.start() if closing else len(text)].strip()


# Names under which one language is fenced.
_LANGUAGES = {"py": "python", "python3": "python", "js": "javascript", "ts": "typescript", "sh": "bash", "c++": "cpp"}
_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class CodeBlockExtractor:
    """The longest fenced code block, of one language if named; a text without any fence is taken as code itself."""

    example: ClassVar[str] = 'CodeBlockExtractor("python").extract("Here:\\n```py\\nx = 1\\n```") == "x = 1"'

    language: str | None = None
    bare: bool = True

    def extract(self, raw_output: str) -> Any:
        text = text_of(raw_output)
        blocks = _fenced(text)
        if not blocks and self.bare and text.strip():
            return text.strip("\n").rstrip()
        wanted = [code for language, code in blocks if self.language is None or language == _canonical(self.language)]
        if not any(code.strip() for code in wanted):
            of_language = f" of {self.language}" if self.language else ""
            raise FieldExtractionError(f"no code block{of_language} in {shortened(text)}")
        return max(reversed(wanted), key=len)


def _fenced(text: str) -> list[tuple[str, str]]:
    """(language, code) of each block; a block whose closing fence is missing goes to the end."""
    blocks = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence["fence"].startswith(opened["fence"]) and not fence["language"]:
            blocks.append((_canonical(opened["language"]), text[opened.end() + 1 : fence.start()].rstrip()))
            opened = None
    if opened is not None:
        blocks.append((_canonical(opened["language"]), text[opened.end() + 1 :].rstrip()))
    return blocks


def _canonical(language: str) -> str:
    return _LANGUAGES.get(language.casefold(), language.casefold())


@dataclass(frozen=True)
class ThinkTagStripper:
    """The text without its <think>...</think> blocks, also where one of the two tags is missing."""

    example: ClassVar[str] = 'ThinkTagStripper().extract("<think>2+2...</think> 4") == "4"'

    tags: Sequence[str] = ("think", "thinking", "thought", "reasoning")

    def extract(self, raw_output: str) -> Any:
        text = text_of(raw_output)
        answer = without_thinking(text, self.tags)
        if not answer:
            raise FieldExtractionError(f"nothing follows the reasoning in {shortened(text)}")
        return answer


def without_thinking(text: str, tags: Sequence[str] = ThinkTagStripper.tags) -> str:
    """A closing tag without an opening one ends reasoning that began with the text; one never closed runs to the end."""
    kept: list[str] = []
    depth = position = 0
    for tag in re.finditer(rf"<(/?)(?:{'|'.join(map(re.escape, tags))})\s{{0,9}}>", text, re.IGNORECASE):
        if not depth:
            kept.append(text[position : tag.start()])
        if not tag[1]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
        position = tag.end()
    if not depth:
        kept.append(text[position:])
    return "".join(kept).strip()
