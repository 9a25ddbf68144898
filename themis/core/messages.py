"""Messages and their parts: what is said to a model and by it, in one form, whoever the provider is.

A message is a dict with `role` (`system`, `user`, `assistant`, `tool`) and `content`, a text or a list of parts:

    {"type": "text", "text": ...}
    {"type": "image", "media_type": ..., and one of "digest" (of a stored attachment), "data" (base64) and "url"}
    {"type": "file", "name": ..., and the same}

What an assistant said may have `reasoning`, `refusal` and `tool_calls` (`{"id", "name", "arguments"}`); what a tool returned
has `tool_call_id` and `name`. What a provider wants back word for word, such as signed thoughts beside tool calls, travels
under `provider_data`. Rows may bring OpenAI's and Anthropic's shapes, which `read_messages` takes for these; a part of
a type that it does not know stays as it is.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from themis.exceptions import ConfigurationError

Message: TypeAlias = dict[str, Any]
Part: TypeAlias = dict[str, Any]

ROLES = ("system", "developer", "user", "assistant", "tool")
# Of a message: what the provider that it came from wants back as it was, in that provider's form.
PROVIDER_DATA = "provider_data"


@dataclass(frozen=True)
class ToolCall:
    """A tool that a model wants to be called.

    Args:
        name: The tool.
        arguments: By the names of its parameters.
        id: What its result is sent back under.
        invalid: What the model wrote in place of arguments, where that is no JSON object.

    >>> ToolCall.read("add", '{"a": 2, "b": 3}', id="call-1")
    ToolCall(name='add', arguments={'a': 2, 'b': 3}, id='call-1', invalid='')
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    invalid: str = ""

    @classmethod
    def read(cls, name: object, arguments: object, *, id: object = "") -> ToolCall:
        """From what a provider sent.

        Args:
            name: The tool.
            arguments: An object, or the JSON text of one.
            id: The call's.
        """
        found = arguments
        try:
            if isinstance(arguments, str):
                found = _DECODER.decode(arguments) if arguments.strip() else {}
            found = _mend_texts(found)
        except (ValueError, RecursionError):
            found = None
        text = "" if found is None and arguments is None else mend_text(str(arguments))
        called = mend_text(str(name or ""))
        if isinstance(found, Mapping):
            return cls(called, dict(found), str(id or ""))
        return cls(called, {}, str(id or ""), invalid=text)

    def to_plain(self) -> dict[str, Any]:
        """As a message carries it."""
        plain: dict[str, Any] = {"id": self.id, "name": self.name, "arguments": self.arguments}
        return {**plain, "invalid": self.invalid} if self.invalid else plain


def _mend_texts(value: object) -> object:
    """The same value, of whose texts all can be sent on."""
    if isinstance(value, str):
        return mend_text(value)
    if isinstance(value, list):
        return [_mend_texts(item) for item in value]
    if isinstance(value, dict):
        return {mend_text(name) if isinstance(name, str) else name: _mend_texts(item) for name, item in value.items()}
    return value


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def mend_text(text: str) -> str:
    """A text that can be sent on: half of a character, which some models write, becomes a question mark.

    >>> mend_text("tea \\ud83d")
    'tea ?'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class ToolResult:
    """What a tool returns that has more to say than a value.

    Args:
        content: A text, parts of a message, or any JSON value.
        error: Whether it tells what went wrong.

    >>> ToolResult("there is no such order", error=True).error
    True
    """

    content: object
    error: bool = False


# --- as rows bring them -------------------------------------------------------------------------------------------------


def read_messages(given: object) -> list[Message]:
    """Messages of any known shape, in ours.

    Args:
        given: A list of dicts with a role.

    Raises:
        ConfigurationError: It is something else.

    >>> read_messages([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}])
    [{'role': 'user', 'content': [{'type': 'image', 'url': 'https://example.org/a.png'}]}]
    """
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise _no_messages(given)
    found: list[Message] = []
    for message in given:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise _no_messages(given)
        found += _read_message(message)
    return found


def _no_messages(given: object) -> ConfigurationError:
    return ConfigurationError(f"'messages' must be a list of {{'role', 'content'}}, got {str(given)[:200]!r}")


def _read_message(given: Mapping[str, Any]) -> list[Message]:
    """One message; results of tools that a user's message holds become messages of their own."""
    message = dict(given)
    calls = [_read_call(call) for call in message.pop("tool_calls", None) or ()]
    thought = message.pop("reasoning_content", None) or message.get("reasoning")
    content, results, signed = message.get("content"), [], []
    if isinstance(content, list):
        parts: list[Part] = []
        for part in content:
            kind = part.get("type") if isinstance(part, Mapping) else None
            if kind == "tool_use":
                calls.append(ToolCall.read(part.get("name"), part.get("input"), id=part.get("id")).to_plain())
            elif kind == "tool_result":
                results.append(_read_result(part))
            elif kind in _THOUGHTS:
                # Mistral's are lists of parts.
                thought = (
                    f"{thought or ''}{read_text(part.get('thinking') or part.get('reasoning') or part.get('text'))}"
                )
                signed += [dict(part)] if part.get("signature") or part.get("data") else []
            else:
                parts.append(_read_part(part))
        message["content"] = parts
        if results and not parts:
            return results
    if thought:
        message["reasoning"] = thought
    if signed:
        message[PROVIDER_DATA] = {"thinking": signed}
    if calls:
        message["tool_calls"] = calls
    return [*results, message]


# Anthropic's words for a part that is no answer, and those of frameworks.
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")


def _read_result(part: Mapping[str, object]) -> Message:
    """What a tool returned: a text, or parts where there is more than texts."""
    content = part.get("content")
    parts = [_read_part(one) for one in content] if isinstance(content, list) else []
    shows = any(one.get("type") != "text" for one in parts)
    result = {
        "role": "tool",
        "tool_call_id": part.get("tool_use_id", ""),
        "content": parts if shows else read_text(content),
    }
    return {**result, "is_error": True} if part.get("is_error") else result


def _read_call(call: object) -> dict[str, Any]:
    if not isinstance(call, Mapping):
        raise ConfigurationError(f"a tool call is {{'id', 'name', 'arguments'}}, got {str(call)[:200]!r}")
    function = call.get("function")
    named = function if isinstance(function, Mapping) else call
    return ToolCall.read(named.get("name"), call.get("invalid") or named.get("arguments"), id=call.get("id")).to_plain()


_DATA_URL = re.compile(r"data:(?P<media_type>[\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,(?P<data>.*)", re.DOTALL)


def _read_part(part: object) -> Part:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, Mapping):
        raise ConfigurationError(f"a part of a message is a text or a dict with a type, got {str(part)[:200]!r}")
    kind = part.get("type")
    if kind in ("input_text", "output_text"):
        return {"type": "text", "text": part.get("text")}
    if kind == "image_url":
        url = part.get("image_url")
        return _of_address("image", str(url.get("url", "") if isinstance(url, Mapping) else url))
    if kind in ("image", "document") and isinstance(source := part.get("source"), Mapping):
        return _of_source(part, source)
    if kind == "file" and isinstance(file := part.get("file"), Mapping) and "file_data" in file:
        found = _of_address("file", str(file["file_data"]))
        return {**found, "name": str(file.get("filename", "file"))}
    return dict(part)


def _of_source(part: Mapping[str, object], source: Mapping[str, object]) -> Part:
    """An image or a document in Anthropic's shape."""
    kind, data = "image" if part["type"] == "image" else "file", source.get("data")
    named = {"name": part["title"]} if part.get("title") else {}
    if source.get("type") == "url":
        return {"type": kind, "url": source.get("url"), **named}
    if not isinstance(data, str):
        return dict(part)
    if source.get("type") == "text":
        data = base64.b64encode(data.encode("utf-8", "replace")).decode("ascii")
    return {"type": kind, "media_type": source.get("media_type"), "data": data, **named}


def _of_address(kind: str, url: str) -> Part:
    inline = _DATA_URL.fullmatch(url)
    if inline is None:
        return {"type": kind, "url": url}
    return {"type": kind, "media_type": inline["media_type"] or "application/octet-stream", "data": inline["data"]}


# --- reading them -------------------------------------------------------------------------------------------------------


def read_text(content: object) -> str:
    """The text of a message's content, of its parts together.

    >>> read_text([{"type": "text", "text": "Look: "}, {"type": "image", "url": "https://example.org/a.png"}])
    'Look: '
    """
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Iterable) and not isinstance(content, Mapping) else ()
    texts = [
        part if isinstance(part, str) else part.get("text", "") for part in parts if isinstance(part, str | Mapping)
    ]
    return "".join(text for text in texts if isinstance(text, str))


def format_transcript(messages: Iterable[Mapping[str, Any]]) -> str:
    """A conversation as plain text, for judges, tables and terminals.

    >>> print(format_transcript([{"role": "user", "content": "2+3?"}, {"role": "assistant", "content": "5"}]))
    user: 2+3?
    assistant: 5
    """
    lines: list[str] = []
    for message in messages:
        role = str(message.get("role", "?"))
        if thought := message.get("reasoning"):
            lines.append(f"{role} (thinking): {thought}")
        shown = describe_content(message.get("content"))
        name = f" {message['name']}" if message.get("name") else ""
        calls = message.get("tool_calls") or ()
        if shown or not calls:
            lines.append(f"{role}{name}: {shown}")
        for call in calls:
            arguments = call.get("invalid") or json.dumps(call.get("arguments", {}), ensure_ascii=False, default=str)
            lines.append(f"{role} calls {call.get('name')}({arguments})")
    return "\n".join(lines)


def describe_content(content: object) -> str:
    """A message's content in words: texts as they are, anything else by what it is.

    >>> describe_content([{"type": "text", "text": "Look: "}, {"type": "image", "url": "https://example.org/a.png"}])
    'Look: [image https://example.org/a.png]'
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False, default=str)
    shown = []
    for part in content:
        if isinstance(part, str) or (isinstance(part, Mapping) and part.get("type") == "text"):
            shown.append(read_text([part]))
        else:
            named = part if isinstance(part, Mapping) else {}
            what = named.get("name") or named.get("url") or named.get("media_type") or ""
            shown.append(f"[{' '.join(filter(None, [str(named.get('type', 'part')), str(what)]))}]")
    return "".join(shown)


# --- reasoning in a text ------------------------------------------------------------------------------------------------


class SplitText(NamedTuple):
    """A text without the reasoning that stood before it."""

    reasoning: str | None
    answer: str


_TAG = r"(?:seed:)?(?:think|thinking|thought|reasoning)"
_OPENING = (
    rf"(?i:<{_TAG}>)|\[THINK\]|◁think▷|<\|channel\|>analysis<\|message\|>|<\|begin_of_thought\|>|<\|START_THINKING\|>"
)
_CLOSING = (
    rf"(?i:</{_TAG}>)|\[/THINK\]|◁/think▷|<\|end\|>(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>"
    r"|<\|end_of_thought\|>|<\|END_THINKING\|>"
)
# What stands in every text that has one of these.
REASONING_MARKS = (
    *("think>", "thinking>", "thought>", "reasoning>", "[/THINK]", "[THINK]", "think▷", "<|message|>"),
    *("_of_thought|>", "_THINKING|>"),
)
_OPENED = re.compile(rf"[\s\ufeff]*(?:{_OPENING})")
# What such models put around the answer.
_ANSWER_BEGINS = re.compile(r"\s*(?:<\|begin_of_solution\|>|<\|START_RESPONSE\|>)?\s*")
_ANSWER_ENDS = re.compile(r"(?:<\|end_of_solution\|>|<\|END_RESPONSE\|>|<\|return\|>)\s*\Z")
_BETWEEN = re.compile(rf"(?:{_CLOSING})\s*(?:{_OPENING})\s*")
_MARKS = re.compile(rf"(?P<opened>{_OPENING})|(?P<closed>{_CLOSING})")


# Most texts have none of these, and are looked at no further.
REASONING_HINT = re.compile(r"<|THINK\]|▷")


def split_reasoning(text: str) -> SplitText:
    """What a model thought, in the tags that open models write it in, apart from its answer.

    Only what stands before the answer is taken for a thought: from an opening tag at the very beginning, or from the
    beginning where a template opened it before the model began, to the tag that closes it and all that follow it at once. Where
    it was never closed there is no answer.

    >>> split_reasoning("<think>9 x 9 = 81</think>\\n81")
    SplitText(reasoning='9 x 9 = 81', answer='81')
    >>> split_reasoning("81 <think> is a tag").answer
    '81 <think> is a tag'
    """
    if REASONING_HINT.search(text) is None:
        return SplitText(None, text)
    opened = _OPENED.match(text)
    closed = _find_end(text, opened)
    if closed is not None:
        start = opened.end() if opened else 0
        thought = _BETWEEN.sub("\n\n", text[start : closed.start()])
        begins = _ANSWER_BEGINS.match(text, closed.end())
        answer = text[begins.end() if begins else closed.end() :]
        ends = _ANSWER_ENDS.search(answer)
        return SplitText(thought.strip(), answer[: ends.start()].rstrip() if ends else answer)
    return SplitText(text[opened.end() :].strip(), "") if opened else SplitText(None, text)


def begins_with_reasoning(text: str) -> bool:
    """Whether a tag opens it that a thought follows.

    >>> begins_with_reasoning("<think>9 x 9 = 81</think>81")
    True
    """
    return _OPENED.match(text) is not None


def _find_end(text: str, opened: re.Match[str] | None) -> re.Match[str] | None:
    """The closing tag that ends the thought; where tags stand in it that nothing closes, the first."""
    if opened is None:
        mark = next((mark for mark in _MARKS.finditer(text) if not _is_literal(text, mark)), None)
        # A tag that was opened somewhere in the text, or stands in code, is something that the answer shows.
        return mark if mark is not None and mark["closed"] and text.count("`", 0, mark.start()) % 2 == 0 else None
    depth, first, place = 1, None, opened.end()
    for mark in _spoken_marks(text, place):
        if mark.start() < place:
            continue
        depth += 1 if mark["opened"] else -1
        first = first or (mark if mark["closed"] else None)
        if depth == 0:
            again = _OPENED.match(text, mark.end())
            if again is None:
                return mark
            depth, place = 1, again.end()
    return first


def _is_literal(text: str, mark: re.Match[str]) -> bool:
    """Whether it is a text in quotation marks, as programs write it."""
    before, behind = text[mark.start() - 1 : mark.start()], text[mark.end() : mark.end() + 1]
    return before == behind and before in ('"', "'")


def _spoken_marks(text: str, place: int) -> Iterator[re.Match[str]]:
    """Those from a place on that do not stand between backticks that enclose them and nothing else, or in a text of a
    program: there the thought speaks of the tag."""
    seen, is_in_code = text.rfind("\n", 0, place) + 1, False
    for mark in _MARKS.finditer(text, place):
        between, seen = text[seen : mark.start()], mark.start()
        _, broken, line = between.rpartition("\n")
        is_in_code = (line.count("`") % 2 == 1) is not (is_in_code and not broken)
        is_named = is_in_code and text[mark.start() - 1] == "`" == text[mark.end() : mark.end() + 1]
        if not is_named and not (_is_literal(text, mark) and _is_set_apart(text, mark)):
            yield mark


def _is_set_apart(text: str, mark: re.Match[str]) -> bool:
    """Whether its quotation marks open before it and close behind it: not as in `is "81"</think>"81"`."""
    before, behind = text[mark.start() - 2 : mark.start() - 1], text[mark.end() + 1 : mark.end() + 2]
    return (before.isspace() or before in tuple("([{=,:+")) and not behind.isalnum()
