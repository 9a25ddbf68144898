"""Messages and tools on the wire: from the one form that Themis keeps them in to OpenAI's and to Anthropic's.

Rows may bring either vendor's shapes; what is in the right one already is sent as it stands.
"""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from themis.core.messages import PROVIDER_DATA, Message, Part, read_messages, read_text
from themis.exceptions import ConfigurationError, ProviderCallError

Attachments = Mapping[str, bytes]

_READABLE = ("application/json", "application/xml", "application/yaml", "application/x-yaml")
_MAGIC = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF", "application/pdf"),
)
_UNKNOWN = "application/octet-stream"


# --- OpenAI's form -----------------------------------------------------------------------------------------------------


def to_openai(
    messages: Sequence[Message], attachments: Attachments | None = None, *, returned: Collection[str] = ()
) -> list[Message]:
    """Messages as OpenAI's chat completions take them.

    Args:
        messages: In our form, or in a vendor's.
        attachments: The contents of parts that name a digest.
        returned: What the endpoint wants back of what a model said beside its answer, by OpenAI's names:
            `reasoning_content`, `reasoning_details`, `extra_content`.

    Raises:
        ProviderCallError: A part that cannot be said in this form; names it.

    >>> to_openai([{"role": "user", "content": [{"type": "image", "media_type": "image/png", "data": "iVBORw0K"}]}])
    [{'role': 'user', 'content': [{'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,iVBORw0K'}}]}]
    """
    written: list[Message] = []
    shown: list[Part] = []  # by tools, which may only return texts
    for message in messages:
        for one in [message] if _is_openai(message) else _read([message]):
            if shown and one.get("role") != "tool":
                written.append({"role": "user", "content": shown})
                shown = []
            if one is message:
                written.append(one)
                continue
            told = _write_openai(one, attachments or {}, returned)
            if told["role"] == "tool" and isinstance(told["content"], list):
                shown += [part for part in told["content"] if part.get("type") != "text"]
                told["content"] = read_text(told["content"]) or "(shown below)"
            written.append(told)
    return [*written, {"role": "user", "content": shown}] if shown else written


def _is_openai(message: Message) -> bool:
    """Whether it can be sent as it stands."""
    if not _NOT_OPENAI.isdisjoint(message):
        return False
    calls, content = message.get("tool_calls"), message.get("content")
    if calls and not all(isinstance(call, Mapping) and "function" in call for call in calls):
        return False
    if not isinstance(content, list):
        return True
    return message.get("role") != "tool" and all(isinstance(part, dict) and _is_openai_part(part) for part in content)


# Of a message, what endpoints refuse that check their requests, and what is said to some of them in another way.
_NOT_OPENAI = frozenset({"reasoning", "reasoning_content", "refusal", "error", "is_error", PROVIDER_DATA})


def _is_openai_part(part: Part) -> bool:
    kind = part.get("type")
    return kind not in _OTHERS if kind != "file" else "file" in part


# Types of parts that OpenAI does not know, or knows otherwise.
_OTHERS = ("image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking")


def _write_openai(message: Message, attachments: Attachments, returned: Collection[str]) -> Message:
    kept = message.pop(PROVIDER_DATA, None) or {}
    thought, refusal = message.pop("reasoning", None), message.pop("refusal", None)
    content, calls = message.get("content") or refusal, message.get("tool_calls") or ()
    if refusal:
        message["content"] = content
    if message.get("role") == "tool":
        # What went wrong stands in the content: there is no field for it.
        message = {name: value for name, value in message.items() if name not in _ERROR_MARKS}
        if "name" in message:
            message["name"] = write_name(message["name"])
    if isinstance(content, list):
        message["content"] = [_write_openai_part(part, attachments) for part in content]
    if calls:
        extras = kept.get("extra_content", {}) if "extra_content" in returned else {}
        message["tool_calls"] = [_write_openai_call(call, extras) for call in calls]
        message["content"] = message.get("content") or None
        if thought and "reasoning_content" in returned:
            message["reasoning_content"] = thought
    if "reasoning_details" in returned and kept.get("reasoning_details"):
        message["reasoning_details"] = kept["reasoning_details"]
    return message


def _write_openai_call(call: Mapping[str, Any], extras: Mapping[str, Any]) -> dict[str, object]:
    arguments = json.dumps(_arguments_of(call), ensure_ascii=False)
    function = {"name": write_name(call["name"]), "arguments": arguments}
    written = {"id": call.get("id", ""), "type": "function", "function": function}
    extra = extras.get(call.get("id", ""))
    return {**written, "extra_content": extra} if extra else written


def _write_openai_part(part: Part, attachments: Attachments) -> Part:
    kind = part.get("type")
    if kind == "image":
        url = part.get("url") or _load(part, attachments).url
        detail = {"detail": part["detail"]} if "detail" in part else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    if kind in _OTHERS:
        raise _refuse(part, "OpenAI's chat completions have no such part")
    if kind != "file" or "file" in part:
        return part
    if "url" in part:
        raise _refuse(part, "OpenAI's chat completions take no files by their address; name a path, or put the text in")
    file = _load(part, attachments)
    if file.is_text:
        return {"type": "text", "text": file.read_named()}
    if file.media_type != "application/pdf":
        raise _refuse(part, f"of {file.media_type}, and OpenAI's chat completions take PDF and texts")
    return {"type": "file", "file": {"filename": file.name, "file_data": file.url}}


def write_openai_tools(tools: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    return [{"type": "function", "function": dict(tool)} for tool in tools]


def write_openai_choice(choice: str) -> object:
    return choice if choice in CHOICES else {"type": "function", "function": {"name": choice}}


# --- Anthropic's form --------------------------------------------------------------------------------------------------


class AnthropicConversation(NamedTuple):
    """What the system says, which is a field of its own there, and the messages."""

    system: str | list[Part] | None
    messages: list[Message]


def to_anthropic(messages: Sequence[Message], attachments: Attachments | None = None) -> AnthropicConversation:
    """Messages as Anthropic's messages API takes them.

    Args:
        messages: In our form, or in a vendor's.
        attachments: The contents of parts that name a digest.

    Raises:
        ProviderCallError: A part that cannot be said in this form; names it.

    >>> to_anthropic([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    AnthropicConversation(system='Be brief.', messages=[{'role': 'user', 'content': 'Hi'}])
    """
    if (texts := _split_texts(messages)) is not None:
        return texts
    system: list[Part] = []
    written: list[Message] = []
    for message in _read(messages):
        role = message.get("role")
        if role in ("system", "developer"):
            system += _write_anthropic_content(message.get("content"), attachments or {})
        elif role == "assistant":
            blocks = _write_anthropic_answer(message, attachments or {})
            # An answer without a word is refused.
            written += [{"role": "assistant", "content": _simplify(blocks)}] if blocks else []
        elif role == "tool":
            _add_to_user(written, [_write_result(message, attachments or {})], follows_tool=True)
        else:
            blocks = _write_anthropic_content(message.get("content"), attachments or {})
            _add_to_user(written, blocks, follows_tool=False)
    if all(part.keys() == {"type", "text"} for part in system):
        return AnthropicConversation("\n\n".join(part["text"] for part in system) or None, written)
    return AnthropicConversation(system, written)


def _split_texts(messages: Sequence[Message]) -> AnthropicConversation | None:
    """The same for what most conversations are: texts of the system, of users and assistants."""
    system: list[str] = []
    written: list[Message] = []
    for message in messages:
        content, role = message.get("content"), message.get("role")
        if len(message) != 2 or type(content) is not str or not content:
            return None
        if role == "user" or role == "assistant":
            written.append(message)
        elif role == "system" or role == "developer":
            system.append(content)
        else:
            return None
    return AnthropicConversation("\n\n".join(system) or None, written)


def _add_to_user(written: list[Message], blocks: list[Part], *, follows_tool: bool) -> None:
    """Results of tools are what the user says next, all of them in one message, with what the user adds."""
    last = written[-1] if written else {}
    said = last.get("content")
    if last.get("role") == "user" and isinstance(said, list) and said[0].get("type") == "tool_result":
        said += blocks
    else:
        written.append({"role": "user", "content": blocks if follows_tool else _simplify(blocks)})


def _write_anthropic_answer(message: Message, attachments: Attachments) -> list[Part]:
    """Thoughts with their signatures come first; without one they are refused, and left out."""
    thoughts = [dict(block) for block in (message.get(PROVIDER_DATA) or {}).get("thinking", ())]
    calls = [
        {
            "type": "tool_use",
            "id": call.get("id", ""),
            "name": write_name(call["name"]),
            "input": _arguments_of(call),
        }
        for call in message.get("tool_calls") or ()
    ]
    return [*thoughts, *_write_anthropic_content(message.get("content"), attachments), *calls]


def _write_result(message: Message, attachments: Attachments) -> Part:
    blocks = _write_anthropic_content(message.get("content"), attachments)
    result = {"type": "tool_result", "tool_use_id": message.get("tool_call_id", "")}
    return {
        **result,
        **({"content": _simplify(blocks)} if blocks else {}),
        **({"is_error": True} if any(message.get(mark) for mark in _ERROR_MARKS) else {}),
    }


def _write_anthropic_content(content: object, attachments: Attachments) -> list[Part]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    parts = content if isinstance(content, list) else []
    return [_write_anthropic_part(part, attachments) for part in parts if part != {"type": "text", "text": ""}]


def _write_anthropic_part(part: Part, attachments: Attachments) -> Part:
    kind = part.get("type")
    if kind not in ("image", "file"):
        if kind not in _ANTHROPIC_PARTS:
            raise _refuse(part, "Anthropic's messages API has no such part")
        return part
    block = "image" if kind == "image" else "document"
    title = {"title": part["name"]} if part.get("name") and kind == "file" else {}
    if "url" in part:
        return {"type": block, "source": {"type": "url", "url": part["url"]}, **title}
    file = _load(part, attachments)
    if kind == "file" and file.is_text:
        return {"type": block, "source": {"type": "text", "media_type": "text/plain", "data": file.read()}, **title}
    if kind == "file" and file.media_type != "application/pdf":
        raise _refuse(part, f"of {file.media_type}, and Anthropic's messages API takes PDF and texts")
    source = {"type": "base64", "media_type": file.media_type, "data": file.data}
    return {"type": block, "source": source, **title}


_ANTHROPIC_PARTS = ("text", "search_result", "container_upload", "document")


def _simplify(blocks: list[Part]) -> str | list[Part]:
    """A text alone is sent as one."""
    only = blocks[0] if len(blocks) == 1 else {}
    return only["text"] if only.keys() == {"type", "text"} else blocks


def write_anthropic_tools(tools: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    return [
        {
            "name": tool["name"],
            **({"description": tool["description"]} if tool.get("description") else {}),
            "input_schema": tool["parameters"],
        }
        for tool in tools
    ]


def write_anthropic_choice(choice: str) -> dict[str, object]:
    if choice in CHOICES:
        return {"type": "any" if choice == "required" else choice}
    return {"type": "tool", "name": choice}


# --- what both have in common ------------------------------------------------------------------------------------------

CHOICES = ("auto", "none", "required")
# Under which a result says that something went wrong: in our form, and in rows of Anthropic's.
_ERROR_MARKS = ("error", "is_error")
# What is taken for the name of a tool.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_PARAMETERS = {"type": "object", "properties": {}}


def write_name(name: object) -> str:
    """A tool's name as it can be sent: a model may have called one by a name that none can have.

    >>> write_name("functions.add:0"), write_name("")
    ('functions_add_0', 'unnamed')
    """
    text = str(name)
    return text if _NAME.fullmatch(text) else re.sub(r"[^A-Za-z0-9_-]", "_", text)[:64] or "unnamed"


def _arguments_of(call: Mapping[str, object]) -> object:
    """An object, also where the model wrote none: endpoints read it, and refuse what they cannot read."""
    return {"invalid": call["invalid"]} if call.get("invalid") else call.get("arguments", {})


def read_tools(given: object) -> list[dict[str, Any]]:
    """Tools of a task as `{"name", "description", "parameters"}`, whichever vendor's shape they are in.

    A row's field `tools` that holds something else is data of its own, and gives none.

    >>> read_tools([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}])
    [{'name': 'add', 'description': '', 'parameters': {'type': 'object'}}]
    >>> read_tools(["hammer", "saw"])
    []
    """
    found = []
    for tool in given if isinstance(given, list | tuple) else ():
        described = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if not isinstance(described, Mapping) or not isinstance(described.get("name"), str):
            return []
        parameters = described.get("parameters") or described.get("input_schema") or _NO_PARAMETERS
        found.append(
            {"name": described["name"], "description": described.get("description") or "", "parameters": parameters}
        )
    return found


def refuse_parts(messages: Sequence[Message], who: str) -> None:
    """Raises for whoever takes texts alone, naming the first part that is none."""
    for message in _read(messages):
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if part.get("type") != "text":
                raise _refuse(part, f"{who} takes texts alone")


def _read(messages: Sequence[Message]) -> list[Message]:
    try:
        return read_messages(messages)
    except ConfigurationError as error:
        raise ProviderCallError(str(error), kind="bad_request", retryable=False) from error


class _File(NamedTuple):
    """A content that is sent inside a request."""

    media_type: str
    data: str
    name: str

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{self.data}"

    @property
    def is_text(self) -> bool:
        return self.media_type.startswith("text/") or self.media_type in _READABLE

    def read(self) -> str:
        return base64.b64decode(self.data).decode("utf-8", "replace")

    def read_named(self) -> str:
        return f"{self.name}:\n{self.read()}"


def _load(part: Part, attachments: Attachments) -> _File:
    name = str(part.get("name") or "file")
    if digest := part.get("digest"):
        if (content := attachments.get(digest)) is None:
            raise _refuse(part, "its content is not stored with the run")
        data = base64.b64encode(content).decode("ascii")
    elif isinstance(given := part.get("data"), str):
        data = given
    else:
        raise _refuse(part, "it has none of digest, data and url")
    media_type = part.get("media_type")
    if not media_type or media_type == _UNKNOWN:
        media_type = _guess_type(data, name)
    return _File(str(media_type), data, name)


def _guess_type(data: str, name: str) -> str:
    """From the first bytes, or else from the name."""
    try:
        head = base64.b64decode(data[:24])
    except binascii.Error:
        head = b""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    known = next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)
    return known or mimetypes.guess_type(name)[0] or _UNKNOWN


def _refuse(part: Part, why: str) -> ProviderCallError:
    named = part.get("name") or part.get("url") or (part.get("digest") or "")[:12] or part.get("media_type") or ""
    what = f"a part of type {part.get('type')!r}{f' ({named})' if named else ''}"
    return ProviderCallError(f"{what} cannot be sent: {why}", kind="bad_request", retryable=False)
