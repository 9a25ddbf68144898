"""Python functions and classes that answer; and the form of question and answer that they share with applications.

What is asked is a dict (`describe_question`), what is answered may be a text, a dict with usage and cost, or messages
(`read_answer`). A function is given the parts of the question that it has parameters for.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import inspect
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import msgspec

from themis.core.codec import json_default
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput, ToolCall
from themis.core.identity import describe_object
from themis.core.messages import Message, read_messages, read_text
from themis.core.user_code import load_object
from themis.exceptions import ConfigurationError, ProviderCallError, ProviderError
from themis.generation.providers import provider_maker
from themis.generation.providers.chat import (
    Completion,
    attachments_of,
    attempt_index,
    conversation_of,
    make_usage,
    read_completion,
    token_count,
)
from themis.interfaces import StatelessTaskExecutor

# --- the question -------------------------------------------------------------------------------------------------------


def describe_question(
    task: GenerationTask, system_prompt: str | None = None, *, with_contents: bool = True
) -> dict[str, object]:
    """Everything that is asked, in JSON's types. An agent that was written for memory runs finds its fields too.

    Args:
        task: What is asked.
        system_prompt: What the system says, where the row does not say it.
        with_contents: Whether images and files are in the row as they are in the messages, and not only their digests: for
            whoever picks fields.
    """
    contents = attachments_of(task)
    messages = conversation_of(task, system_prompt)
    item_id = str(task.metadata.get("dataset_id", ""))
    attempt = attempt_index(task)
    question: dict[str, object] = {
        "type": "message",
        "session": f"{task.metadata.get('manifest_hash', '')[:12]}:{item_id}:{attempt}",
        "turn": sum(message.get("role") == "user" for message in messages),
        "message": task.prompt.text,
        "now": None,
        "presupplied": None,
        "prompt": task.prompt.text,
        "messages": _inline(messages, contents),
        "row": {
            name: _inline_parts(value, contents) if with_contents and contents else value
            for name, value in task.prompt.context.items()
        },
        "item_id": item_id,
        "attempt": attempt,
        "sampling": {name: value for name, value in vars(task.sampling).items() if value not in (None, ())},
    }
    if tools := task.metadata.get("tools"):
        question["tools"] = tools
    return question


def _inline(messages: list[Message], contents: Mapping[str, bytes]) -> list[Message]:
    """The messages with their images and files in them, for whoever has no store to find them in."""
    if not contents:
        return messages
    return [{**message, "content": _inline_parts(message.get("content"), contents)} for message in messages]


def _inline_parts(value: object, contents: Mapping[str, bytes]) -> object:
    if isinstance(value, list):
        return [_inline_parts(one, contents) for one in value]
    if isinstance(value, dict) and (content := contents.get(str(value.get("digest")))) is not None:
        return {**value, "data": base64.b64encode(content).decode()}
    return value


def hide_expected(task: GenerationTask, fields: Collection[str] = ()) -> GenerationTask:
    """The task as whoever answers is shown it: without the expected answer, and the row's fields that metrics compare with.

    Args:
        task: As it is judged.
        fields: Of the row.
    """
    hidden = {*fields} if task.reference is None else {*fields, task.reference.kind}
    if hidden.isdisjoint(task.prompt.context) and task.reference is None:
        return task
    row = {name: value for name, value in task.prompt.context.items() if name not in hidden}
    return replace(task, prompt=replace(task.prompt, context=row), reference=None)


# --- the answer ---------------------------------------------------------------------------------------------------------

_TEXT_FIELDS = ("text", "reply", "answer", "output", "content", "response", "completion", "result")
_REASONING_FIELDS = ("reasoning", "reasoning_content", "thinking")
_KNOWN = "a text, or a dict with `text`, or messages of which the assistant's last is the answer"


def read_answer(value: object) -> ModelOutput:
    """What a function returned, or an endpoint or a program sent, as an answer.

    Args:
        value: A text or a number; a dict with one of `text`, `reply`, `answer`, `output`, `content`, `response` and what there is
            of `reasoning`, `tool_calls`, `refusal`, `finish_reason`, `logprobs`, `messages`, `usage` and `cost_usd`; a chat
            completion in OpenAI's form; messages; or a `ModelOutput`.

    Raises:
        ProviderCallError: It is something else.

    >>> read_answer({"reply": "12", "cost_usd": 0.002, "usage": {"prompt_tokens": 9, "completion_tokens": 1}}).cost_usd
    0.002
    """
    if isinstance(value, ModelOutput):
        return value
    if isinstance(value, str):
        return ModelOutput(value)
    if isinstance(value, bool | int | float):
        return ModelOutput(_write_text(value))
    try:
        if (
            isinstance(value, list | tuple)
            and value
            and all(isinstance(one, Mapping) and "role" in one for one in value)
        ):
            return _read_messages_answer(value)
        return _read_mapping(_to_fields(value))
    except (ConfigurationError, msgspec.ValidationError) as error:
        raise _no_answer(f"cannot be read ({error})") from error


def _read_mapping(answer: Mapping[str, object]) -> ModelOutput:
    try:
        if answer.get("choices"):
            return read_completion(msgspec.convert(answer, Completion, strict=False), _fail)
        return _read_fields(answer)
    except ProviderCallError as error:
        # No answer may have cost something, too.
        error.usage = error.usage or _read_usage(answer)
        with contextlib.suppress(ProviderCallError):
            error.cost_usd = _read_cost(answer.get("cost_usd"))
        raise


def _to_fields(value: object) -> Mapping[str, object]:
    """A dict as it is, a data class by its fields."""
    plain = value
    if not isinstance(value, Mapping | bytes):
        with contextlib.suppress(TypeError):
            plain = json_default(value)
    if not isinstance(plain, Mapping):
        raise _no_answer(f"is of the type {type(value).__name__}")
    return plain


def _read_fields(answer: Mapping[str, object]) -> ModelOutput:
    refuse_error(answer.get("error"))
    said = next((name for name in _TEXT_FIELDS if isinstance(answer.get(name), str | int | float)), None)
    base = ModelOutput("")
    if isinstance(messages := answer.get("messages"), list) and messages:
        base = _read_messages_answer(messages)
    elif said is None and isinstance(content := answer.get("content"), list):
        base = _read_message_answer({"role": "assistant", "content": content})
    elif said is None and not answer.get("tool_calls") and not answer.get("refusal"):
        raise _no_answer(f"has the fields {', '.join(map(_describe_field, answer.items())) or 'none'}")
    given: dict[str, Any] = {
        "text": None if said is None else _write_text(answer[said]),
        "reasoning": _as_text(next(filter(None, (answer.get(name) for name in _REASONING_FIELDS)), None)),
        **{name: _as_text(answer.get(name)) for name in ("refusal", "finish_reason")},
        "logprobs": answer.get("logprobs"),
        "usage": _read_usage(answer),
        "tool_calls": _read_calls(answer.get("tool_calls")),
        "cost_usd": _read_cost(answer.get("cost_usd")),
    }
    answered = replace(base, **{name: value for name, value in given.items() if value is not None})
    # As of models: the words of a refusal are what was said.
    return answered if answered.text else replace(answered, text=answered.refusal or "")


def _describe_field(field: tuple[object, object]) -> str:
    name, value = field
    return f"{name} (of the type {type(value).__name__})" if name in _TEXT_FIELDS else str(name)


def refuse_error(told: object) -> None:
    """An answer that says what went wrong is none, whatever words of regret stand beside that; a number is a measure."""
    if told and (told is True or isinstance(told, str | Mapping | list)):
        said = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False, default=str)
        raise _fail(f"is an error: {said[:500]}", kind="server_error", retryable=True)


def _read_cost(told: object) -> float | None:
    """Dollars, which may be written as a text or be a decimal; an amount that nobody can add up is no answer."""
    if told is None:
        return None
    try:
        cost = float(str(told))
    except ValueError:
        cost = math.nan
    if not 0 <= cost < math.inf:
        raise _fail(
            f"says cost_usd={str(told)[:50]!r}; expected a number of dollars, or nothing",
            kind="invalid_response",
            retryable=False,
        )
    return cost


def _write_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _as_text(value: object) -> str | None:
    """What is kept as a text: parts of a message by their texts, anything else as JSON; None where nothing is said."""
    if not value:
        return None
    if isinstance(value, str):
        return value
    return (read_text(value) if isinstance(value, list) else "") or json.dumps(value, default=str)


def _read_calls(given: object) -> tuple[ToolCall, ...] | None:
    if not given:
        return None
    message = read_messages([{"role": "assistant", "tool_calls": given}])[0]
    return tuple(ToolCall(**call) for call in message["tool_calls"])


def _read_messages_answer(given: Sequence[object]) -> ModelOutput:
    """The assistant's last message is the answer; what was said before it is how it came to that."""
    messages = read_messages(given)
    last = next((n for n in reversed(range(len(messages))) if messages[n]["role"] == "assistant"), None)
    if last is None:
        raise _no_answer("returned messages of which none is the assistant's")
    return replace(_of_message(messages[last]), transcript=tuple(messages[: last + 1]) if last else ())


def _read_message_answer(given: Message) -> ModelOutput:
    return _of_message(read_messages([given])[-1])


def _of_message(answer: Message) -> ModelOutput:
    content = answer.get("content")
    others = content if isinstance(content, list) else ()
    refusal = answer.get("refusal") or None
    return ModelOutput(
        read_text(content) or (refusal if isinstance(refusal, str) else ""),
        reasoning=answer.get("reasoning"),
        refusal=refusal,
        tool_calls=tuple(ToolCall(**call) for call in answer.get("tool_calls", ())),
        parts=tuple(part for part in others if part.get("type") != "text"),
    )


def _read_usage(answer: Mapping[str, object]) -> dict[str, object] | None:
    """Under OpenAI's names of the counts or Anthropic's, in `usage` or beside the text."""
    told = answer.get("usage")
    usage = told if isinstance(told, Mapping) else answer
    prompt, completion = (
        next((count for name in names if (count := token_count(usage.get(name))) is not None), None)
        for names in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
    )
    return None if prompt is None and completion is None else make_usage(prompt, completion)


def _no_answer(what: str) -> ProviderCallError:
    return _fail(f"{what}; expected {_KNOWN}", kind="invalid_response", retryable=False)


def _fail(what: str, *, kind: str, retryable: bool) -> ProviderCallError:
    return ProviderCallError(f"the answer {what}", kind=kind, retryable=retryable)


# --- a Python function or class -----------------------------------------------------------------------------------------

# Which part of the question a parameter is for, by its name.
_PARTS: dict[str, str] = {
    **dict.fromkeys(("prompt", "message", "text", "input"), "prompt"),
    **dict.fromkeys(("messages", "conversation", "history"), "messages"),
    **dict.fromkeys(("row", "sample", "item", "example"), "row"),
    **{name: name for name in ("item_id", "attempt", "sampling", "tools", "session")},
}
_METHODS = ("answer", "reply", "respond", "generate", "invoke", "run", "predict")


class PythonFunction(StatelessTaskExecutor):
    """A function, or an object that is called, as whoever answers.

    Args:
        function: Plain (called in threads) or `async def`. Parameters named `prompt`, `messages`, `row`, `item_id`, `attempt`,
            `sampling` and `tools` get those, `task` the whole task, and others the row's field of their name; a single parameter
            of any other name gets the prompt.
        name: What errors call it.

    >>> PythonFunction(lambda question: question.upper(), "shout").name
    'shout'
    """

    def __init__(self, function: Callable[..., object], name: str) -> None:
        self.name = name
        self.is_local = bool(getattr(function, "is_local", False))  # type: ignore[misc]
        self.most_cost_usd: float | None = getattr(function, "most_cost_usd", None)
        self._function = function
        self._parameters = _find_parameters(function, name)
        # The row's fields that metrics compare with.
        self.withheld: Collection[str] = ()
        if _is_async(function):
            self.execute = self._execute_async  # type: ignore[assignment, method-assign]

    def __themis_identity__(self) -> object:
        return describe_object(self._function)

    def execute(self, task: GenerationTask) -> GenerationRecord:
        return self._record(task, self._function(**self._arguments(task)))

    async def _execute_async(self, task: GenerationTask) -> GenerationRecord:
        answered: Any = self._function(**self._arguments(task))
        while inspect.isawaitable(answered):  # one may hand on the coroutine of another
            answered = await answered
        return self._record(task, answered)

    def _record(self, task: GenerationTask, answered: object) -> GenerationRecord:
        if inspect.isawaitable(answered):  # a plain function that returns a coroutine
            answered = asyncio.run(_wait(answered))
        if isinstance(answered, GenerationRecord):
            return answered
        if answered is None:
            raise _fail(f"of {self.name} is None; expected {_KNOWN}", kind="invalid_response", retryable=False)
        return GenerationRecord(task, read_answer(answered), None)

    def _arguments(self, task: GenerationTask) -> dict[str, object]:
        """What is asked, in lists and dicts of this call's own: a function may append to its messages, and an attempt is not
        to be asked what the one before it has changed."""
        question, task = None, hide_expected(task, self.withheld)
        given: dict[str, object] = {}
        for parameter, part, otherwise, is_required in self._parameters:
            if part == "prompt":
                given[parameter] = task.prompt.text
            elif part == "task":
                prompt = replace(task.prompt, context=_copy_fields(task.prompt.context))
                given[parameter] = replace(task, prompt=prompt, metadata=_copy_fields(task.metadata))
            elif part:
                question = question or describe_question(task)
                given[parameter] = _copy_containers(question.get(part, []))
            elif parameter in task.prompt.context:
                value = _inline_parts(task.prompt.context[parameter], attachments_of(task))
                given[parameter] = _copy_containers(value)
            elif otherwise:
                question = question or describe_question(task)
                given[parameter] = _copy_containers(question[otherwise])
            elif is_required:
                raise ProviderCallError(
                    f"{self.name} has a parameter {parameter!r}, which is neither a field of the row nor a part of the "
                    f"question ({', '.join(dict.fromkeys(_PARTS.values()))}, task)",
                    kind="bad_request",
                    retryable=False,
                )
        return given


def _copy_containers(value: object) -> object:
    """The same value in lists and dicts of its own; what else stands in them is shared."""
    if isinstance(value, list):
        return [_copy_containers(one) for one in value]
    return _copy_fields(value) if isinstance(value, dict) else value


def _copy_fields(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: _copy_containers(one) for name, one in fields.items()}


_YIELDS = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)


class _Parameter(NamedTuple):
    """A parameter, and the part of the question it is for; a field of the row where that is empty, or else another part."""

    name: str
    part: str
    otherwise: str
    is_required: bool


def _find_parameters(function: Callable[..., object], name: str) -> list[_Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ProviderError(f"{name} cannot be asked: its parameters are not known; wrap it in a function") from error
    if any(one.kind is one.POSITIONAL_ONLY for one in parameters):
        raise ProviderError(f"{name} takes parameters without names; wrap it in a function with named ones")
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    if not named:
        raise ProviderError(f"{name} takes no parameter; give it one for the prompt, such as def answer(prompt)")
    if any(yields(one) for yields in _YIELDS for one in (function, getattr(function, "__call__", None))):  # noqa: B004
        raise ProviderError(
            f"{name} yields, and an answer is returned whole: wrap it in a function that joins the pieces"
        )
    required = [one for one in named if one.default is one.empty]
    single = required[0].name if len(required) == 1 else named[0].name if not required else None
    return [
        _Parameter(
            one.name,
            "task" if one.name == "task" else _PARTS.get(one.name, ""),
            _part_by_type(one) if one.name == single else "",
            one.default is one.empty,
        )
        for one in named
    ]


def _part_by_type(parameter: inspect.Parameter) -> str:
    """What the only parameter is for, where its name does not say."""
    # What stands outermost comes first: a `list[dict]` is a conversation, a `dict[str, list]` a row.
    said = _CONTAINER.search(str(parameter.annotation))
    return "prompt" if said is None else "messages" if said["several"] else "row"


_CONTAINER = re.compile(r"\b(?:(?:mutable)?mapping|dict|(?P<several>list|(?:mutable)?sequence))\b", re.IGNORECASE)


def _is_async(function: Callable[..., object]) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004 -- of an object, its method
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


async def _wait(answered: Any) -> object:
    return await answered


def make_function_subject(target: object, options: Mapping[str, object]) -> StatelessTaskExecutor:
    """Whatever answers in Python: a function, a class, an object with a method that does, or an agent of memory runs.

    Args:
        target: The function; a class, which is made with the options; an object; or an agent or its class.
        options: Of the class.

    Raises:
        ProviderError: Nothing about it can be asked.
    """
    if is_agent(target):
        # One for every sample: what one has heard is not for another.
        agent = target if inspect.isclass(target) else partial(copy.deepcopy, target)
        return provider_maker("agent", {**options, "agent": agent})()
    own = {option: options[option] for option in _OF_EVERY_SUBJECT if option in options}
    made = _make_subject(target, {option: value for option, value in options.items() if option not in own})
    for option, value in own.items():
        setattr(made, option, value)
    return made


def is_agent(target: object) -> bool:
    """Whether it is an agent that was written for memory runs, or its class."""
    return all(callable(getattr(target, name, None)) for name in ("reply", "observe", "reset"))


# What may be said of any subject that says itself what it costs.
_OF_EVERY_SUBJECT = ("most_cost_usd", "is_local")


def _make_subject(target: object, options: Mapping[str, object]) -> StatelessTaskExecutor:
    named = target.func if isinstance(target, partial) else target
    name = getattr(named, "__qualname__", None) or type(named).__qualname__
    if inspect.isclass(target):
        try:
            target = target(**options)
        except Exception as error:  # boundary: a subject is the user's code
            raise ConfigurationError(f"{name} could not be made: {type(error).__name__}: {error}") from error
    elif options:
        raise ConfigurationError(
            f"{name} is no class, so it takes no options; got {', '.join(map(repr, options))}. Bind them: "
            f"functools.partial({name}, ...)"
        )
    if isinstance(target, StatelessTaskExecutor):
        return target
    if callable(target):
        return PythonFunction(target, name)
    method = next((one for one in _METHODS if callable(getattr(target, one, None))), None)
    if method is None:
        raise ProviderError(
            f"{name} can not be asked: expected a function, or an object that is callable or has one of the methods "
            f"{', '.join(_METHODS)}"
        )
    return PythonFunction(getattr(target, method), f"{name}.{method}")


def load_function_subject(model_identifier: str = "", **options: object) -> StatelessTaskExecutor:
    """`python:FILE.py:NAME` and `python:package.module:NAME`; options are those of a class."""
    return make_function_subject(load_object(model_identifier), options)
