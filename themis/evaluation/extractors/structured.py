"""Answers that stand in something: a field of JSON, a tag, a fenced block of code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from themis.core.json_repair import parse_json
from themis.core.registry import nearest
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import shorten, text_of
from themis.exceptions import ConfigurationError


@dataclass(frozen=True)
class JsonFieldExtractor:
    """A field of the JSON in the text, by dotted path; numbers in the path index lists.

    The JSON may be fenced, embedded in prose or carelessly written: see `themis.core.json_repair`.

    Args:
        field_path: For example `user.name` or `items.0`; without one the whole value is the answer.

    >>> JsonFieldExtractor("user.age").extract('{"user": {"age": 31}}')
    31
    """

    field_path: str = ""

    def extract(self, raw_output: str) -> object:
        found: object = raw_output
        if not isinstance(raw_output, dict | list):
            try:
                found = parse_json(text_of(raw_output))
            except ValueError as error:
                raise FieldExtractionError(str(error)) from error
        for step in self.field_path.split(".") if self.field_path else ():
            found = self._descend(found, step)
        return found

    def _descend(self, value: object, step: str) -> object:
        if isinstance(value, dict):
            if step in value:
                return value[step]
            has = f"{nearest(step, value)}; it has {', '.join(map(str, value)) or 'no fields'}"
            raise FieldExtractionError(f"no field {step!r} (of {self.field_path!r}) in the JSON{has}")
        if isinstance(value, list) and step.removeprefix("-").isdecimal() and -len(value) <= int(step) < len(value):
            return value[int(step)]
        raise FieldExtractionError(f"no {step!r} (of {self.field_path!r}) in a JSON {type(value).__name__}")


@dataclass(frozen=True)
class XmlTagExtractor:
    """The inside of the last <tag>...</tag>; to the end of the text where the closing tag was cut off.

    Args:
        tag: The tag's name.
        last: Whether the last such tag counts; else the first.

    >>> XmlTagExtractor("answer").extract("hm <answer> 42 </answer>")
    '42'
    """

    tag: str = "answer"
    last: bool = True

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w:.-]+", self.tag):
            raise ConfigurationError(f"tag {self.tag!r} is not the name of a tag: give 'answer' for <answer>")

    def extract(self, raw_output: str) -> str:
        text = text_of(raw_output)
        opening = list(re.finditer(rf"<{re.escape(self.tag)}(?:\s[^<>]*)?>", text, re.IGNORECASE))
        if not opening:
            raise FieldExtractionError(f"no <{self.tag}> in {shorten(text)}")
        start = opening[-1 if self.last else 0].end()
        closing = re.compile(rf"</{re.escape(self.tag)}\s{{0,9}}>", re.IGNORECASE).search(text, start)
        return text[start : closing.start() if closing else len(text)].strip()


# Names under which one language is fenced.
_LANGUAGES = {"py": "python", "python3": "python", "js": "javascript", "ts": "typescript", "sh": "bash", "c++": "cpp"}
_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class CodeBlockExtractor:
    r"""The longest fenced code block, of one language if named; a text without any fence is taken as code itself.

    Args:
        language: Only blocks of this language count, whichever of its names they are fenced with.
        bare: Whether a text without a fence is code; else it is no answer.

    >>> CodeBlockExtractor("python").extract("Here:\n```py\nx = 1\n```")
    'x = 1'
    """

    language: str | None = None
    bare: bool = True

    def extract(self, raw_output: str) -> str:
        text = text_of(raw_output)
        blocks = _find_blocks(text)
        if not blocks and self.bare and text.strip():
            return text.strip("\n").rstrip()
        wanted = [
            code for language, code in blocks if self.language is None or language == _canonical_language(self.language)
        ]
        if not any(code.strip() for code in wanted):
            of_language = f" of {self.language}" if self.language else ""
            raise FieldExtractionError(f"no code block{of_language} in {shorten(text)}")
        return max(reversed(wanted), key=len)


def _find_blocks(text: str) -> list[tuple[str, str]]:
    """(language, code) of each block; a block whose closing fence is missing goes to the end."""
    blocks = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence["fence"].startswith(opened["fence"]) and not fence["language"]:
            blocks.append((_canonical_language(opened["language"]), text[opened.end() + 1 : fence.start()].rstrip()))
            opened = None
    if opened is not None:
        blocks.append((_canonical_language(opened["language"]), text[opened.end() + 1 :].rstrip()))
    return blocks


def _canonical_language(language: str) -> str:
    return _LANGUAGES.get(language.casefold(), language.casefold())
