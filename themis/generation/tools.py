"""The tools of a run: what models are told of them, and what becomes of a call, whatever the model or the tool does.

`episodes` plays a sample with a `ToolSession`: it calls, and stores the message and the state before the next step.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import logging
import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, wait

from themis.core.codec import to_plain
from themis.core.messages import Message, Part, ToolCall, ToolResult, mend_text
from themis.core.registry import Registry, WrittenCall, nearest, parse_call
from themis.core.user_code import format_error, load_object
from themis.exceptions import ConfigurationError, ToolError
from themis.generation.mcp_tools import McpServer, McpTools
from themis.generation.tool_running import ToolRunner
from themis.generation.tool_schemas import ArgumentError
from themis.generation.tool_sources import (
    Environment,
    FunctionTool,
    ObjectTools,
    Offer,
    OpenEnvironment,
    OpenTools,
    Tool,
    ToolSource,
)
from themis.generation.tool_types import GivenRow, Schema

__all__ = ["TOOLS", "GivenRow", "McpServer", "RunningCall", "Tool", "ToolSession", "Toolset", "register_tool"]

logger = logging.getLogger(__name__)

TOOLS: Registry[object] = Registry(
    "tool",
    {
        "python": "themis.evaluation.sandbox.tools:PythonTool",
        "shell": "themis.evaluation.sandbox.tools:ShellTool",
    },
)
_MCP = "mcp:"
# What OpenAI's and Anthropic's APIs take for a name.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# FILE.py:NAME or module:NAME.
_OBJECT_PATH = re.compile(r"(?:.+\.py|[^\W\d]\w*(?:\.\w+)*):[^\W\d]\w*(?:\.\w+)*")
_LARGEST_DATA = 20_000_000
_POLL_SECONDS = 0.02


def register_tool(name: str, tool: object) -> None:
    """Makes a tool known under a name, for `tools=["name"]` and `--tool name`; the last registration of a name wins.

    Args:
        name: What it is asked for by; a function is also called by it.
        tool: A function, a class (an environment, of which every sample gets an object), an object with methods, or a
            `Tool`.

    Raises:
        ConfigurationError: A model could not call it.

    >>> def add(a: int, b: int) -> int:
    ...     "Adds two numbers."
    ...     return a + b
    >>> register_tool("add", add)
    >>> Toolset(["add"]).schemas[0]["description"]
    'Adds two numbers.'
    """
    if isinstance(tool, str):
        raise ConfigurationError(
            f"a tool is registered itself, and not by a text, got {tool!r}; a server is McpServer(...)"
        )
    made = _make_source(tool)
    if isinstance(made, FunctionTool):
        tool = Tool(
            function=made.tool.function, name=name, description=made.tool.description, parameters=made.tool.parameters
        )
        _refuse_bad_name(name)
    TOOLS.register(name, tool)


class Toolset:
    """The tools of a run.

    Args:
        tools: Functions, classes (environments: every sample gets an object), objects with methods, `Tool`, `McpServer`, and
            texts: `python` and `shell` (in the sandbox), `FILE.py:NAME`, `module:NAME`, `mcp:COMMAND`, `mcp:URL`, or the
            name of a registered tool; names and paths may have options behind them, `python(memory_mb=256)`.
        timeout_seconds: The most that a call may take.
        result_kb: The most that a result may say; what is longer is cut.

    Raises:
        ConfigurationError: Something is no tool, or two have one name.
        DependencyError: An MCP server is named, and the package `mcp` is missing.
        ToolError: An MCP server does not start, or cannot be reached.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> tools = Toolset([add])
    >>> tools.open({}).call(ToolCall("add", {"a": 2, "b": 3}, id="1"))
    {'role': 'tool', 'tool_call_id': '1', 'name': 'add', 'content': '5'}
    """

    def __init__(self, tools: Sequence[object], *, timeout_seconds: float = 60.0, result_kb: int = 64) -> None:
        if isinstance(tools, str) or not isinstance(tools, Sequence):
            raise ConfigurationError(f"tools is a list, as in tools=[search] or tools=['python'], got {tools!r}")
        if timeout_seconds <= 0 or result_kb < 1:
            raise ConfigurationError("timeout_seconds is more than 0, and result_kb at least 1")
        self._given = list(tools)
        self.timeout_seconds, self.result_kb = timeout_seconds, result_kb
        self.runner = ToolRunner()
        self._sources = [_make_source(tool) for tool in tools]
        self._labels = _number_labels(self._sources)
        try:
            self._connect()
            self._offers = _name_offers(self._sources)
        except BaseException:
            self.close()
            raise
        self.schemas: list[Schema] = [
            {"name": name, "description": offer.description, "parameters": offer.parameters.schema}
            for name, (_, offer) in self._offers.items()
        ]

    def _connect(self) -> None:
        for source in self._sources:
            if isinstance(source, McpTools):
                source.connect(self.runner)

    def __reduce__(self) -> tuple[Callable[..., Toolset], tuple[object, ...]]:
        # In another process it is made anew: threads, loops and servers stay where they are.
        return _remake, (self._given, self.timeout_seconds, self.result_kb)

    def describe(self) -> object:
        """Everything that decides what the tools do: their schemas, code, options, servers, and limits."""
        return to_plain(
            {
                "tools": self.schemas,
                "made_of": [source.describe() for source in self._sources],
                "timeout_seconds": self.timeout_seconds,
                "result_kb": self.result_kb,
            }
        )

    def open(self, row: Mapping[str, object], state: object = None) -> ToolSession:
        """The tools for one sample.

        Args:
            row: The sample's, for tools and environments that take it.
            state: What `ToolSession.state` returned after the last step that is stored; None at the beginning.

        Raises:
            ConfigurationError: An environment's state could not be stored.
            ToolError: An environment could not be made for this row.
        """
        stored = self._split_state(state)
        opened: list[OpenTools] = []
        environments: list[object] = []
        try:
            for source, label in zip(self._sources, self._labels, strict=True):
                opened.append(source.open(row, stored.get(label), environments))
                environments += [one.target for one in opened[-1:] if isinstance(one, OpenEnvironment)]
        except BaseException:
            for one in reversed(opened):
                self.close_tools(one)
            raise
        return ToolSession(self, opened)

    def close(self) -> None:
        """Ends connections, the event loop and threads; sessions are over with it."""
        for source in self._sources:
            source.close()
        self.runner.close()

    def __enter__(self) -> Toolset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- for its sessions ------------------------------------------------------------------------------------------------

    def find(self, name: str) -> tuple[int, Offer] | None:
        """Which of the sources a tool is of, and the tool; None where there is no such tool.

        Args:
            name: As the model calls it.
        """
        return self._offers.get(name)

    def close_tools(self, tools: OpenTools) -> None:
        """Closes what a sample used of one source; what goes wrong with that is only logged.

        Args:
            tools: What the source opened.
        """
        try:
            closing = tools.close()
            if inspect.isawaitable(closing):
                self.runner.start_async(lambda: closing).result(self.timeout_seconds)
        except Exception as error:  # boundary: an environment is the user's code
            logger.warning("an environment could not be closed: %s", format_error(error))

    def join_states(self, states: Sequence[object]) -> object:
        """The state of the one environment that there is, or by their names the states of several.

        Args:
            states: One a source, None where it has none.
        """
        owners = [label for label, source in zip(self._labels, self._sources, strict=True) if source.has_state]
        found = dict(zip(self._labels, states, strict=True))
        if len(owners) == 1:
            return found[owners[0]]
        return {label: state for label, state in found.items() if state is not None} or None

    def _split_state(self, state: object) -> dict[str, object]:
        if state is None:
            return {}
        owners = [label for label, source in zip(self._labels, self._sources, strict=True) if source.has_state]
        if len(owners) == 1:
            return {owners[0]: state}
        if not isinstance(state, Mapping) or not owners:
            raise ConfigurationError(f"the stored state is not one of these tools: {str(state)[:80]!r}")
        return dict(state)


def _remake(tools: Sequence[object], timeout_seconds: float, result_kb: int) -> Toolset:
    return Toolset(tools, timeout_seconds=timeout_seconds, result_kb=result_kb)


class ToolSession:
    """The tools for one sample; made by `Toolset.open`.

    Args:
        toolset: The tools of the run.
        opened: Those of each source, for this sample.

    >>> class Counter:
    ...     def __init__(self):
    ...         self.count = 0
    ...     def up(self, by: int) -> int:
    ...         self.count += by
    ...         return self.count
    >>> session = Toolset([Counter]).open({})
    >>> session.call(ToolCall("up", {"by": 2}))["content"], session.state()
    ('2', {'count': 2})
    """

    def __init__(self, toolset: Toolset, opened: Sequence[OpenTools]) -> None:
        self._toolset = toolset
        self._opened = opened

    def call(self, call: ToolCall) -> Message:
        """What a tool returned, or what was wrong, as the message that the model gets; with the state after it, if there is one.

        Args:
            call: The model's.

        Raises:
            ToolError: The tool could not be reached, which the model can do nothing about.
        """
        running = self.begin(call)
        while not running.is_over():
            wait([running.done], timeout=_POLL_SECONDS)
        return running.done.result()

    def begin(self, call: ToolCall, within: float = math.inf) -> RunningCall:
        """The same beside whoever asks, who looks now and then whether it is over.

        Args:
            call: The model's.
            within: The most seconds that it may take, if the tool's own limit is larger.
        """
        running = RunningCall(lambda text: self._add_state(_write_message(call, text, is_error=True)), within)
        running.done = self._toolset.runner.start(lambda: self._answer(call, running))
        return running

    def state(self) -> object | None:
        """The environments' state after the calls so far, in JSON values; None where no tool has one."""
        return self._toolset.join_states([one.state() for one in self._opened])

    def close(self) -> None:
        """Closes the sample's environments."""
        for one in reversed(self._opened):
            self._toolset.close_tools(one)

    def _answer(self, call: ToolCall, running: RunningCall) -> Message:
        result = self._run(call, running)
        content, is_cut = _write_content(result.content, self._toolset.result_kb * 1024)
        return self._add_state(_write_message(call, content, is_error=result.error or is_cut))

    def _add_state(self, message: Message) -> Message:
        state = self.state()
        return message if state is None else {**message, "state": state}

    def _run(self, call: ToolCall, running: RunningCall) -> ToolResult:
        found = self._toolset.find(call.name)
        if found is None:
            names = [str(schema["name"]) for schema in self._toolset.schemas]
            listed = ", ".join(names) or "none"
            return _failure(f"there is no tool {call.name!r}{nearest(call.name, names)}; the tools are {listed}")
        if call.invalid:
            shown = call.invalid if len(call.invalid) <= _SHOWN_CHARACTERS else f"{call.invalid[:_SHOWN_CHARACTERS]}..."
            return _failure(f"the arguments of {call.name} must be one JSON object, got {shown!r}")
        source, offer = found
        try:
            arguments = offer.parameters.read(call.arguments)
        except ArgumentError as error:
            return _failure(f"{call.name}: {error}")
        return self._execute(self._opened[source], offer, arguments, running)

    def _execute(
        self, tools: OpenTools, offer: Offer, arguments: Mapping[str, object], running: RunningCall
    ) -> ToolResult:
        seconds = min(tools.timeout_seconds or self._toolset.timeout_seconds, running.within)
        late = f"{offer.name} took more than {seconds:g} s, and nobody waits for it any longer"
        if tools.lock is not None and not tools.lock.acquire(timeout=seconds):
            return _failure(f"{offer.name} was not called: an earlier call that took too long is still going on")
        waited_for: Future[object] | None = None
        try:
            if offer.is_async:
                waited_for = self._toolset.runner.start_async(lambda: tools.start(offer, arguments))
                value = waited_for.result(seconds)
            else:
                running.limit(seconds, late)
                value = tools.start(offer, arguments)
                if inspect.isawaitable(value):  # a plain function that hands on a coroutine of another
                    value = self._toolset.runner.start_async(lambda: value).result()
        except (KeyboardInterrupt, ToolError):
            raise
        except BaseException as error:  # boundary: a tool is the user's code, and may even exit
            if isinstance(error, TimeoutError) and waited_for is not None and not waited_for.done():
                waited_for.cancel()
                return _failure(late)
            return _failure(format_error(error))
        finally:
            _release(tools.lock, waited_for)
        return value if isinstance(value, ToolResult) else ToolResult(value)


class RunningCall:
    """A tool's call under way; made by `ToolSession.begin`. A function cannot be stopped: one that takes too long is given up.

    Args:
        fail: The message that the model gets for a text that says what was wrong.
        within: The most seconds that whoever began it has for it.
    """

    def __init__(self, fail: Callable[[str], Message], within: float = math.inf) -> None:
        self.done: Future[Message] = Future()
        self.within = within
        self._fail = fail
        self._until = math.inf
        self._late = ""

    def limit(self, seconds: float, late: str) -> None:
        """Gives a call that begins now so much time.

        Args:
            seconds: From now on.
            late: What is said when they are over.
        """
        self._late = late
        self._until = time.monotonic() + seconds

    def is_over(self) -> bool:
        """Whether `done` has its message, now that it is also given up if its time is over."""
        if time.monotonic() > self._until and not self.done.done():
            with contextlib.suppress(InvalidStateError):  # it has just ended
                self.done.set_result(self._fail(self._late))
        return self.done.done()


def _write_message(call: ToolCall, content: str | list[Part], *, is_error: bool) -> Message:
    message: Message = {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": content}
    return {**message, "error": True} if is_error else message


_SHOWN_CHARACTERS = 300


def _failure(text: str) -> ToolResult:
    return ToolResult(text, error=True)


def _release(lock: threading.Lock | None, running: Future[object] | None) -> None:
    """Now, or when a coroutine that nobody waits for has ended: until then what it changes is in doubt."""
    if lock is None:
        return
    if running is None or running.done():
        lock.release()
    else:
        running.add_done_callback(lambda _: lock.release())


# --- what a tool returned, as a message's content ---------------------------------------------------------------------------


def _write_content(value: object, most_bytes: int) -> tuple[str | list[Part], bool]:
    """A text or parts, no longer than allowed, and whether something could not be said."""
    if value is None:
        return "", False
    if isinstance(value, str):
        return _cut(mend_text(value), most_bytes)
    if (parts := _as_parts(value)) is not None:
        return _cut_parts(parts, most_bytes)
    try:
        written = json.dumps(to_plain(value), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        return f"the tool returned something that cannot be written as JSON: {error}", True
    return _cut(mend_text(written), most_bytes)


def _cut(text: str, most_bytes: int) -> tuple[str, bool]:
    if len(text) * 4 <= most_bytes or len(encoded := text.encode()) <= most_bytes:
        return text, False
    shown = encoded[:most_bytes].decode("utf-8", "ignore")
    return f"{shown}\n[cut: the result has {len(encoded):,} bytes, and this is the first {most_bytes:,}]", True


def _as_parts(value: object) -> list[Part] | None:
    """Parts of a message, if the value is one or a list of them; texts may stand between."""
    given = value if isinstance(value, list | tuple) else [value]
    if not any(_is_part(one) for one in given) or not all(_is_part(one) or isinstance(one, str) for one in given):
        return None
    return [{"type": "text", "text": one} if isinstance(one, str) else _fields(one) for one in given]


def _fields(part: object) -> Part:
    return dict(part) if isinstance(part, Mapping) else {}


def _is_part(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    if value.get("type") == "text":
        return value.keys() == {"type", "text"} and isinstance(value["text"], str)
    return value.get("type") in ("image", "file") and any(
        isinstance(value.get(name), str) for name in ("data", "url", "digest")
    )


def _cut_parts(parts: Sequence[Part], most_bytes: int) -> tuple[list[Part], bool]:
    shown: list[Part] = []
    is_cut = False
    for part in parts:
        if part["type"] == "text":
            text, was_cut = _cut(mend_text(str(part["text"])), most_bytes)
            shown.append({"type": "text", "text": text})
            most_bytes = max(1, most_bytes - len(text.encode()))
        elif was_cut := len(str(part.get("data", ""))) > _LARGEST_DATA:
            shown.append(
                {"type": "text", "text": f"[left out: the {part['type']} has more than {_LARGEST_DATA:,} characters]"}
            )
        else:
            shown.append(part)
        is_cut |= was_cut
    return shown, is_cut


# --- which tools ------------------------------------------------------------------------------------------------------------


def _make_source(given: object) -> ToolSource:
    if isinstance(given, str):
        return _look_up(given)
    if isinstance(given, McpServer):
        return McpTools(given)
    if isinstance(given, Tool):
        return FunctionTool(given)
    target = given
    while isinstance(target, functools.partial):
        target = target.func
    if isinstance(target, type) and callable(given):
        return Environment(given)
    if callable(given):
        return FunctionTool(Tool(function=given))
    return ObjectTools(given)


def _look_up(text: str) -> ToolSource:
    if text.startswith(_MCP):
        return McpTools(McpServer.parse(text.removeprefix(_MCP)))
    written = parse_call(text, "tool")
    if written.name in TOOLS:
        source = _make_source(_give_options(TOOLS.get(written.name), written))
        if isinstance(source, Environment):
            source.label = written.name
        return source
    if _OBJECT_PATH.fullmatch(written.name):
        return _make_source(_give_options(load_object(written.name), written))
    raise ConfigurationError(
        f"unknown tool {written.name!r}{nearest(written.name, TOOLS)}; known: {', '.join(TOOLS)}. One of your own is "
        "FILE.py:NAME, module:NAME, or registered by themis.register_tool; a server's are mcp:COMMAND or mcp:http://..."
    )


def _give_options(target: object, written: WrittenCall) -> object:
    if not written.args and not written.kwargs:
        return target
    if not isinstance(target, type):
        raise ConfigurationError(f"tool {written.name!r} takes no options: only environments, which are classes, do")
    try:
        signature = inspect.signature(target)
        signature.bind_partial(*written.args, **written.kwargs)
    except TypeError as error:
        unknown = next((name for name in written.kwargs if name not in signature.parameters), "")
        hint = nearest(unknown, signature.parameters) if unknown else ""
        raise ConfigurationError(
            f"tool {written.name!r}: {error}{hint}; its options are {', '.join(signature.parameters) or 'none'}"
        ) from error
    return functools.partial(target, *written.args, **written.kwargs)


def _number_labels(sources: Sequence[ToolSource]) -> list[str]:
    """What the state of each is stored under: two environments of one class are told apart by their order."""
    labels: list[str] = []
    for source in sources:
        number = sum(label.partition("#")[0] == source.label for label in labels)
        labels.append(f"{source.label}#{number + 1}" if number else source.label)
    return labels


def _name_offers(sources: Sequence[ToolSource]) -> dict[str, tuple[int, Offer]]:
    found: dict[str, tuple[int, Offer]] = {}
    for number, source in enumerate(sources):
        for offer in source.offers:
            _refuse_bad_name(offer.name)
            if offer.name in found:
                other = sources[found[offer.name][0]].label
                raise ConfigurationError(
                    f"two tools are called {offer.name!r}: one of {other} and one of {source.label}; leave one out, or give a "
                    "function another name with Tool(function=..., name=...)"
                )
            found[offer.name] = (number, offer)
    return found


def _refuse_bad_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"a tool's name has 1 to 64 letters, digits, - and _, got {name!r}; give it one with Tool(function=..., name=...)"
        )
