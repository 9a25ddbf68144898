"""The parts of an answer, as texts: what extractors and judges read where that is not the answer alone.

`pipeline` asks for the part that an extractor names, judges for theirs; metrics over transcripts start from the same
conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from themis.core.entities import ModelOutput
from themis.core.messages import Message, ToolCall, format_transcript, read_text
from themis.core.registry import nearest
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.exceptions import ConfigurationError

__all__ = ["PARTS", "check_part", "conversation_of", "find_calls", "read_part"]

# What each is.
PARTS = {
    "text": "the answer, without reasoning",
    "reasoning": "what the model thought",
    "transcript": "all that was said, with tool calls and what tools returned",
    "tool_calls": "the tool calls, as a JSON list",
    "everything": "the transcript with the reasoning",
}


def check_part(part: object, label: str) -> None:
    """Raises where there is no such part.

    Args:
        part: What was asked for.
        label: By whom.
    """
    if part not in PARTS:
        known = ", ".join(PARTS)
        raise ConfigurationError(f"{label}: part is one of {known}, got {part!r}{nearest(str(part), PARTS)}")


def read_part(output: ModelOutput, part: str) -> str:
    """A part of an answer as text.

    Args:
        output: The answer.
        part: One of `PARTS`.

    Raises:
        FieldExtractionError: The answer has no such part.

    >>> read_part(ModelOutput("5", reasoning="2 + 3"), "everything")
    'assistant (thinking): 2 + 3\\nassistant: 5'
    """
    if part == "text":
        return output.text
    if part == "tool_calls":
        calls = [{"name": call.name, "arguments": call.arguments} for call in find_calls(output)]
        return json.dumps(calls, ensure_ascii=False, default=str)
    messages = conversation_of(output)
    if part == "reasoning":
        thoughts = [str(message["reasoning"]) for message in messages if message.get("reasoning")]
        if not thoughts:
            raise FieldExtractionError("the answer came without reasoning")
        return "\n\n".join(thoughts)
    if part == "transcript":
        messages = [{name: value for name, value in one.items() if name != "reasoning"} for one in messages]
    return format_transcript(messages)


def conversation_of(output: ModelOutput) -> list[Message]:
    """All that was said after the prompt, the answer last.

    >>> [message["content"] for message in conversation_of(ModelOutput("5"))]
    ['5']
    """
    messages = list(output.transcript)
    answer = output.to_message()
    said = next((message for message in reversed(messages) if message.get("role") == "assistant"), None)
    # Who ran the steps may have put the answer among them.
    if said is None or _words(said) != _words(answer):
        messages.append(answer)
    return messages


def _words(message: Message) -> tuple[str, object]:
    return read_text(message.get("content")), message.get("tool_calls") or []


def find_calls(output: ModelOutput) -> Iterator[ToolCall]:
    """Every tool that the model called, in order.

    >>> [call.name for call in find_calls(ModelOutput("", tool_calls=(ToolCall("add"),)))]
    ['add']
    """
    for message in conversation_of(output):
        for call in message.get("tool_calls") or ():
            arguments = call.get("invalid") or call.get("arguments")
            yield ToolCall.read(call.get("name"), arguments, id=call.get("id"))
