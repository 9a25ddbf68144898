"""What was said in a sample, turn by turn, as pages, files and terminals show it.

Messages (`core.messages`) are how a conversation is sent and stored; a `Turn` is how one of them is read: its parts as what
they are, what each tool returned beside the call, and nothing that a page would have to guess. Whatever a row or a model has put
into a message becomes a turn; what has no known form is shown as JSON.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from themis.core.messages import Message, read_messages, read_text
from themis.exceptions import ConfigurationError

if TYPE_CHECKING:
    from themis.core.entities import GenerationTask, MetricScore, ModelOutput

# In a score's metadata, of samples with several attempts: which one the score is of, or what each of them was given where it
# is of all together.
OF_ATTEMPT, ATTEMPT_SCORES = "of_attempt", "attempt_scores"

# What browsers show without running anything: pictures in SVG are programs, and are handed out as files only.
PICTURES = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
}


@dataclass(frozen=True)
class ShownPart:
    """A part of a message as it is shown.

    Args:
        kind: `text`, `image`, `file`, or `other`, of which the text is its JSON.
        text: What it says.
        name: Of a file or an image, where it has one.
        media_type: Likewise.
        digest: SHA-256 of the content, in hexadecimal, where that is stored or stands in the message.
        url: Where it is, if it is elsewhere.
        content: The content itself, where it stands in the message.
    """

    kind: str
    text: str = ""
    name: str = ""
    media_type: str = ""
    digest: str = ""
    url: str = ""
    content: bytes | None = field(default=None, repr=False)

    @property
    def is_picture(self) -> bool:
        """Whether its content is at hand and a browser may draw it."""
        return self.kind == "image" and bool(self.digest) and self.media_type in PICTURES

    @property
    def described(self) -> str:
        """In words: a text as it is, anything else by what it is.

        >>> ShownPart("image", name="cat.png", media_type="image/png").described
        '[image cat.png, image/png]'
        """
        if self.kind in ("text", "other"):
            return self.text
        told = ", ".join(one for one in (self.name or self.url, self.media_type) if one)
        return f"[{self.kind} {told}]" if told else f"[{self.kind}]"


@dataclass(frozen=True)
class ShownCall:
    """A tool that the model wanted to be called.

    Args:
        name: The tool.
        arguments: By the names of its parameters.
        invalid: What the model wrote in place of arguments, where that is no JSON object.
        result: What the tool returned, where it was called.
    """

    name: str
    arguments: Mapping[str, object]
    invalid: str = ""
    result: Turn | None = None

    @property
    def pretty(self) -> str:
        """The arguments as JSON, on a line each where they are long."""
        if self.invalid:
            return self.invalid
        line = json.dumps(self.arguments, ensure_ascii=False, default=str)
        return (
            line
            if len(line) <= _LONGEST_LINE
            else json.dumps(self.arguments, indent=2, ensure_ascii=False, default=str)
        )

    @property
    def written(self) -> str:
        """As a program would write it.

        >>> ShownCall("add", {"a": 2, "b": [3]}).written
        'add(a=2, b=[3])'
        """
        if self.invalid:
            return f"{self.name}({self.invalid})"
        given = (
            f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in self.arguments.items()
        )
        return f"{self.name}({', '.join(given)})"

    @property
    def outcome(self) -> str:
        """What the tool returned, as plain text.

        >>> ShownCall("add", {"a": 2}).outcome
        'no result'
        """
        if self.result is None:
            return "no result"
        return f"{'failed: ' if self.result.is_error else ''}{self.result.text or '(nothing)'}"


@dataclass(frozen=True)
class Turn:
    """One message as it is shown.

    Args:
        role: Who speaks.
        parts: What is said, without empty texts.
        name: Of the tool, or of who speaks.
        reasoning: What the model thought before.
        refusal: Its words, where it refused.
        calls: Tools that it wanted to be called, each with what came back.
        is_error: Whether a tool tells what went wrong.
    """

    role: str
    parts: tuple[ShownPart, ...] = ()
    name: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[ShownCall, ...] = ()
    is_error: bool = False

    @property
    def text(self) -> str:
        """All that it says, in words."""
        return "\n".join(part.described for part in self.parts)

    @property
    def is_plain(self) -> bool:
        """Whether it is one text and nothing else."""
        others = self.reasoning or self.refusal or self.calls or self.is_error or self.name
        return not others and all(part.kind == "text" for part in self.parts) and len(self.parts) <= 1


_LONGEST_LINE = 72


# --- what was said ------------------------------------------------------------------------------------------------------


def list_asked(task: GenerationTask) -> list[Message]:
    """What was asked: the row's conversation or the prompt, with the system prompt first where there is one.

    Args:
        task: Of any attempt at the sample.

    >>> from themis.core.entities import GenerationTask, ModelSpec, PromptRender, PromptSpec, SamplingConfig
    >>> prompt = PromptRender(PromptSpec("sum", "{question}"), "2 + 2?")
    >>> list_asked(GenerationTask(prompt, ModelSpec("m", "fake"), SamplingConfig(), {"system_prompt": "Be brief."}))
    [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': '2 + 2?'}]
    """
    given, system = task.metadata.get("messages"), task.metadata.get("system_prompt")
    asked: list[Message] = [{"role": "user", "content": task.prompt.text}]
    if given is not None:
        try:
            asked = read_messages(given)
        except (ConfigurationError, TypeError):  # a row may hold anything under this name
            asked = [{"role": "user", "content": [{"type": "messages", "messages": given}]}]
    if isinstance(system, str) and system and asked[0].get("role") != "system":
        return [{"role": "system", "content": system}, *asked]
    return asked


def list_answered(output: ModelOutput | None) -> list[Message]:
    """What was said after that: every step of an answer that took several, or the answer alone.

    Args:
        output: The answer; None where there is none.
    """
    if output is None:
        return []
    return list(output.transcript) or [output.to_message()]


def without_retold(asked: Sequence[Message], answers: Sequence[Sequence[Message]]) -> list[Message]:
    """What was asked, without what the answers tell themselves: of whole conversations, only the system prompt is left.

    Args:
        asked: The messages before the answer.
        answers: What was said in each attempt; one that does not begin with the model's words may tell what it was asked. Where
            it tells something else, both are left.

    >>> asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    >>> without_retold(asked, [[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]])
    [{'role': 'system', 'content': 'Be brief.'}]
    """
    said = [answer for answer in answers if answer]
    if not said or any(answer[0].get("role") == "assistant" for answer in said):
        return list(asked)
    retold = [{(one.get("role"), read_text(one.get("content"))) for one in answer} for answer in said]
    left = [
        one for one in asked if any((one.get("role"), read_text(one.get("content"))) not in told for told in retold)
    ]
    return list(asked) if any(one.get("role") != "system" for one in left) else left


_QUIET = ("stop", "end_turn", "stop_sequence", "eos", "completed", "")
_ENDINGS = {
    "content_filter": "stopped by the provider's content filter",
    "refusal": "refused",
    "tool_calls": "ended by calling tools",
}


def describe_ending(output: ModelOutput | None, max_tokens: int) -> str:
    """Why an answer ended, where that is worth saying; the empty text for one that was simply over.

    Args:
        output: The answer.
        max_tokens: The longest that it could be; negative for no limit of ours.

    >>> from themis.core.entities import ModelOutput
    >>> describe_ending(ModelOutput("The answer is", finish_reason="length"), 512)
    'cut off at max_tokens=512'
    >>> describe_ending(ModelOutput("", finish_reason="max_turns"), 512)
    'stopped by max_turns'
    """
    if output is None:
        return ""
    reason = output.finish_reason or ""
    if reason == "length":
        return f"cut off at max_tokens={max_tokens}" if max_tokens >= 0 else "cut off at the model's own limit"
    if output.refusal:
        return "refused"
    if reason.startswith("max_"):
        return f"stopped by {reason}"
    return "" if reason in _QUIET else _ENDINGS.get(reason, f"ended by {reason}")


# --- as it is read ------------------------------------------------------------------------------------------------------


def list_turns(messages: Iterable[Message]) -> list[Turn]:
    """Messages as they are shown; what a tool returned stands with the call that asked for it.

    Args:
        messages: In our form, as far as they have one.

    >>> said = [{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "add", "arguments": {"a": 2}}]},
    ...         {"role": "tool", "tool_call_id": "1", "content": "5"}]
    >>> [turn] = list_turns(said)
    >>> turn.calls[0].written, turn.calls[0].result.text
    ('add(a=2)', '5')
    """
    said = [message for message in messages if isinstance(message, Mapping)]
    taken: set[int] = set()
    turns = []
    for place, message in enumerate(said):
        if place not in taken:
            turns.append(_read_turn(message, _pair_results(said, place, taken)))
    return turns


def _pair_results(said: list[Message], place: int, taken: set[int]) -> list[ShownCall]:
    """The calls of a message, each with the first result behind it that is sent back under its id."""
    calls = said[place].get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list | tuple) else ():
        known = call if isinstance(call, Mapping) else {"invalid": _as_json(call)}
        result = _find_result(said, place, known.get("id"), taken)
        if result is not None:
            taken.add(result)
        arguments = known.get("arguments")
        found.append(
            ShownCall(
                name=_as_text(known.get("name")),
                arguments=arguments if isinstance(arguments, Mapping) else {},
                invalid=_as_text(known.get("invalid"))
                or ("" if isinstance(arguments, Mapping) else _as_json(arguments)),
                result=None if result is None else _read_turn(said[result], []),
            )
        )
    return found


def _find_result(said: list[Message], place: int, call_id: object, taken: set[int]) -> int | None:
    for behind in range(place + 1, len(said)):
        message = said[behind]
        if message.get("role") == "assistant":
            # Ids are unique in one message only, and some models have none.
            return None
        if message.get("role") == "tool" and behind not in taken and message.get("tool_call_id", "") in (call_id, ""):
            return behind
    return None


def _read_turn(message: Message, calls: list[ShownCall]) -> Turn:
    return Turn(
        role=_as_text(message.get("role")) or "?",
        parts=tuple(_read_parts(message.get("content"))),
        name=_as_text(message.get("name")),
        reasoning=_as_text(message.get("reasoning")),
        refusal=_as_text(message.get("refusal")),
        calls=tuple(calls),
        is_error=bool(message.get("error") or message.get("is_error")),
    )


def _read_parts(content: object) -> list[ShownPart]:
    if content is None or content == "":
        return []
    if isinstance(content, list | tuple):
        shown = [_read_part(part) for part in content]
    else:
        shown = [ShownPart("text", content) if isinstance(content, str) else ShownPart("other", _as_json(content))]
    # White space alone is nothing that anybody could see.
    return [part for part in shown if part.kind != "text" or part.text.strip()]


def _read_part(part: object) -> ShownPart:
    if isinstance(part, str):
        return ShownPart("text", part)
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or kind not in ("text", "image", "file"):
        return ShownPart("other", _as_json(part))
    if kind == "text":
        return ShownPart("text", _as_text(part.get("text")))
    content, digest = _decode(part.get("data")), _as_text(part.get("digest"))
    if content is not None:
        digest = hashlib.sha256(content).hexdigest()
    return ShownPart(
        kind=kind,
        name=_as_text(part.get("name")),
        media_type=_as_text(part.get("media_type")),
        digest=digest if _DIGEST.fullmatch(digest) else "",
        url=_as_text(part.get("url")),
        content=content,
    )


_DIGEST = re.compile(r"[0-9a-f]{64}")


def _decode(data: object) -> bytes | None:
    if not isinstance(data, str) or not data:
        return None
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else _as_json(value)


def _as_json(value: object) -> str:
    return json.dumps(shorten_data(value), indent=2, ensure_ascii=False, default=str)


def shorten_data(value: object) -> Any:
    """A copy of a row or a message for people: what is no text to read (images in base64) is told by its length.

    Args:
        value: In JSON's types.

    >>> shorten_data({"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo" * 1000})["data"]
    '[11,000 characters of base64]'
    """
    if isinstance(value, Mapping):
        return {
            name: _shorten(item, name) if isinstance(item, str) else shorten_data(item) for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [shorten_data(item) for item in value]
    return _shorten(value) if isinstance(value, str) else value


_LONGEST_DATA = 400


def _shorten(text: str, name: object = "") -> str:
    if len(text) <= _LONGEST_DATA:
        return text
    if text.startswith("data:") and ";base64," in text[:200]:
        head, _, data = text.partition(",")
        return f"{head},[{len(data):,} characters of base64]"
    if name in ("data", "file_data", "bytes") and not any(character.isspace() for character in text[:_LONGEST_DATA]):
        return f"[{len(text):,} characters of base64]"
    return text


# --- what each attempt was given ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AttemptVerdict:
    """What one metric said of one attempt.

    Args:
        metric: Its name.
        value: The score; None where it could not be told.
        outcome: `scored`, `unparsed`, `partial` or `failed`.
        reason: Why, where that is known.
    """

    metric: str
    value: float | None
    outcome: str = "scored"
    reason: str = ""


def verdicts_by_attempt(scores: Iterable[MetricScore], attempts: Sequence[int]) -> dict[int, list[AttemptVerdict]]:
    """The verdicts on each attempt at a sample, as far as they are known, by the attempts' numbers.

    Args:
        scores: The sample's.
        attempts: The numbers of the attempts that were made.

    >>> from themis.core.entities import MetricScore
    >>> passed = [{"attempt": 0, "value": 1.0}, {"attempt": 1, "value": 0.0, "reason": "test 2: expected 5"}]
    >>> found = verdicts_by_attempt([MetricScore("pass@1", 0.5, metadata={"attempt_scores": passed})], [0, 1])
    >>> [(number, [verdict.value for verdict in verdicts]) for number, verdicts in found.items()]
    [(0, [1.0]), (1, [0.0])]
    """
    found: dict[int, list[AttemptVerdict]] = {number: [] for number in attempts}
    for score in scores:
        for number, verdict in _verdicts_of(score, attempts):
            found.setdefault(number, []).append(verdict)
    return found


def _verdicts_of(score: MetricScore, attempts: Sequence[int]) -> list[tuple[int, AttemptVerdict]]:
    own = attempts[0] if len(attempts) == 1 else score.metadata.get(OF_ATTEMPT)
    if isinstance(own, int):
        outcome = str(score.metadata.get("outcome") or "scored")
        return [(own, AttemptVerdict(score.metric_name, score.value, outcome, reason_of(score)))]
    told = score.metadata.get(ATTEMPT_SCORES)
    return [
        (
            int(one["attempt"]),
            AttemptVerdict(
                score.metric_name,
                one.get("value"),
                str(one.get("outcome") or ("scored" if one.get("value") is not None else "failed")),
                _as_text(one.get("reason")),
            ),
        )
        for one in (told if isinstance(told, list | tuple) else ())
        if isinstance(one, Mapping) and isinstance(one.get("attempt"), int)
    ]


def reason_of(score: MetricScore) -> str:
    """The sentence with which a score explains itself, where it has one."""
    found = score.details.get("reason") or score.details.get("error")
    return found if isinstance(found, str) else ""
