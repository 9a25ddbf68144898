"""Messages as Inspect's logs have them: reasoning and images as content, tool calls by function, results with their errors."""

from __future__ import annotations

import base64
from collections.abc import Callable

from themis.core.codec import format_value
from themis.core.entities import ModelOutput
from themis.core.messages import Message, describe_content

ReadAttachment = Callable[[str], bytes | None]

# Those that Inspect knows; whoever else speaks is somebody else to the model.
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def write_messages(messages: list[Message], read: ReadAttachment | None, *, source: str) -> list[dict[str, object]]:
    """A conversation.

    Args:
        messages: In our form.
        read: Gives the content of what is named by a digest; what it does not know stands as its name.
        source: Of what the model is told, `input`; of its own words, `generate`.
    """
    return [_write_message(message, read, source) for message in messages]


def write_answer(output: ModelOutput, read: ReadAttachment | None) -> dict[str, object]:
    """The answer alone.

    Args:
        output: What the model said last.
        read: As of `write_messages`.
    """
    return _write_message(output.to_message(), read, "generate")


def _write_message(message: Message, read: ReadAttachment | None, source: str) -> dict[str, object]:
    role = _ROLES.get(str(message.get("role")), "user")
    written: dict[str, object] = {"role": role, "content": _write_content(message, read)}
    if role == "tool":
        written |= {"tool_call_id": message.get("tool_call_id", ""), "function": message.get("name", "")}
        if message.get("error") or message.get("is_error"):
            written["error"] = {"type": "unknown", "message": describe_content(message.get("content"))}
        return written
    written["source"] = "generate" if source == "generate" and role == "assistant" else "input"
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        written["tool_calls"] = [_write_call(call) for call in calls if isinstance(call, dict)]
    return written


def _write_call(call: Message) -> dict[str, object]:
    written = {"id": call.get("id", ""), "function": call.get("name", ""), "arguments": call.get("arguments", {})}
    if call.get("invalid"):
        written["parse_error"] = f"not a JSON object: {call['invalid']}"
    return {**written, "type": "function"}


def _write_content(message: Message, read: ReadAttachment | None) -> str | list[dict[str, object]]:
    content = message.get("content")
    parts: list[dict[str, object]] = []
    if message.get("reasoning"):
        parts.append({"type": "reasoning", "reasoning": message["reasoning"]})
    if isinstance(content, str) or content is None:
        text = content or message.get("refusal") or ""
        return [*parts, {"type": "text", "text": text}] if parts else text
    return [*parts, *(_write_part(part, read) for part in (content if isinstance(content, list) else [content]))]


def _write_part(part: object, read: ReadAttachment | None) -> dict[str, object]:
    if not isinstance(part, dict):
        return {"type": "text", "text": format_value(part)}
    kind = part.get("type")
    if kind == "text":
        return {"type": "text", "text": str(part.get("text", ""))}
    address = _address(part, read) if kind in ("image", "file") else None
    if address is None:
        return {"type": "text", "text": format_value(part)}
    if kind == "image":
        return {"type": "image", "image": address, "detail": "auto"}
    name, media_type = str(part.get("name") or "file"), str(part.get("media_type") or "application/octet-stream")
    return {"type": "document", "document": address, "filename": name, "mime_type": media_type}


def _address(part: Message, read: ReadAttachment | None) -> str | None:
    """Where the content is: in the address itself, unless it is elsewhere."""
    if part.get("url"):
        return str(part["url"])
    data = part.get("data")
    if data is None and read is not None and (content := read(str(part.get("digest")))) is not None:
        data = base64.b64encode(content).decode("ascii")
    return None if data is None else f"data:{part.get('media_type') or 'application/octet-stream'};base64,{data}"
