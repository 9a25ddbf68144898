"""Tools of an MCP server: one that is started as a program, or one that is reached at a URL.

A set of tools keeps one connection to each of its servers, on its event loop; a server that has died is started, or
reached, once more. The package `mcp` is imported when the first server is connected to.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import shlex
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import IO
from urllib.parse import urlsplit

from themis.core.messages import Part, ToolResult
from themis.core.redaction import look_up_secrets, redact_text
from themis.core.registry import import_extra
from themis.exceptions import ConfigurationError, ToolError
from themis.generation.tool_running import ToolRunner
from themis.generation.tool_schemas import Parameters
from themis.generation.tool_sources import Offer, OpenTools
from themis.generation.tool_types import find_schema_problem

__all__ = ["McpServer", "McpTools"]

_SHOWN_LINES = 12
_MOST_PAGES = 100
_STOP_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class McpServer:
    """An MCP server: a program that is started, or a URL.

    Args:
        command: The program and its arguments.
        url: Where a server answers over streamable HTTP, instead of a command.
        env: Variables of the program's environment beside the usual few (`PATH`, `HOME`, ...); `${NAME}` is ours of that
            name.
        headers: Sent with every request to a URL; `${NAME}` is the environment variable of that name.
        connect_seconds: How long it may take to start; long enough for a package runner to fetch what it runs.

    >>> McpServer.parse("TOKEN=${TOKEN} uvx my-server --read-only").command
    ('uvx', 'my-server', '--read-only')
    """

    command: Sequence[str] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    connect_seconds: float = 60.0

    def __post_init__(self) -> None:
        if bool(self.command) is bool(self.url):
            raise ConfigurationError("an MCP server has a command or a url, and not both")
        if self.url and urlsplit(self.url).scheme not in ("http", "https"):
            raise ConfigurationError(
                f"an MCP server's url begins with http:// or https://, got {redact_text(self.url)!r}"
            )
        if self.headers and not self.url:
            raise ConfigurationError("headers are sent to a url; a command takes env")

    @classmethod
    def parse(cls, text: str) -> McpServer:
        """From what stands behind `mcp:` on a command line.

        Args:
            text: `[NAME=VALUE ...] COMMAND ARGUMENTS`, with variables of its environment, or `URL [NAME=VALUE ...]`, with
                headers.

        Raises:
            ConfigurationError: It is neither.
        """
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise ConfigurationError(f"cannot read the MCP server {redact_text(text)!r}: {error}") from None
        if words and re.match(r"https?://", words[0]):
            return cls(url=words[0], headers=dict(_split_pair(word, text) for word in words[1:]))
        pairs = list(itertools.takewhile(re.compile(r"[A-Za-z_]\w*=").match, words))
        command = words[len(pairs) :]
        if not command:
            raise ConfigurationError(
                "an MCP server is written as mcp:COMMAND ARGUMENTS or mcp:http://HOST/PATH, as in mcp:uvx my-server"
            )
        return cls(command=tuple(command), env=dict(_split_pair(word, text) for word in pairs))


def _split_pair(word: str, text: str) -> tuple[str, str]:
    name, mark, value = word.partition("=")
    if not mark:
        raise ConfigurationError(f"behind the url of {redact_text(text)!r} stand headers as NAME=VALUE, got {word!r}")
    return name, value


class McpTools:
    """A server's tools, listed once when it is connected to."""

    has_state = False

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.label = _shown(server)
        self.offers: tuple[Offer, ...] = ()
        self._runner: ToolRunner | None = None
        self._connection: _Connection | None = None
        self._identity: dict[str, object] = {}
        self._connecting = asyncio.Lock()

    def connect(self, runner: ToolRunner) -> None:
        """Starts or reaches the server, and asks it for its tools.

        Args:
            runner: Whose event loop the connection lives on.

        Raises:
            DependencyError: The package `mcp` is missing.
            ConfigurationError: There is no server, or it offers no tools; with what it wrote to stderr.
        """
        import_extra("mcp", "mcp", "a tool of an MCP server")
        self._runner = runner
        try:
            runner.start_coroutine(self._begin()).result()
        except ToolError as error:
            raise ConfigurationError(str(error)) from error
        if not self.offers:
            raise ConfigurationError(f"the MCP server {self.label} offers no tools")

    def describe(self) -> object:
        return self._identity

    def open(self, row: Mapping[str, object], state: object, environments: Sequence[object]) -> OpenTools:
        return _OpenServer(self)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._runner is not None:
            with contextlib.suppress(TimeoutError):
                self._runner.start_coroutine(connection.close()).result(_STOP_SECONDS)

    async def call(self, name: str, arguments: Mapping[str, object]) -> ToolResult:
        """What the server says to a call. One that has died is connected to once more, and asked again.

        Args:
            name: The server's name of the tool.
            arguments: By name.

        Raises:
            ToolError: It cannot be reached any more.
        """
        connection = self._connection
        if connection is None:
            raise ToolError(f"the MCP server {self.label} is not connected")
        try:
            try:
                return await connection.call(name, arguments)
            except _ConnectionLost:
                connection = await self._reconnect(connection)
                return await connection.call(name, arguments)
        except _Refusal as refusal:
            return ToolResult(str(refusal), error=True)
        except _ConnectionLost:
            return ToolResult(f"the server ended while it ran {name}{connection.last_words()}", error=True)

    async def _begin(self) -> None:
        self._connection = await _Connection.open(self.server)
        found = await self._connection.list_tools()
        name, version = self._connection.server_info()
        self._identity = {"mcp_server": name or self.label, "version": version}
        self.label = name or self.label
        self.offers = tuple(found)

    async def _reconnect(self, lost: _Connection) -> _Connection:
        async with self._connecting:
            if self._connection is lost or self._connection is None:  # else another call has done so meanwhile
                await lost.close()
                self._connection = await _Connection.open(self.server)
            return self._connection


@dataclass
class _OpenServer:
    """A server's tools for one sample; the server is the same for all of them."""

    tools: McpTools
    timeout_seconds: float | None = None
    lock: threading.Lock | None = None

    def start(self, offer: Offer, arguments: Mapping[str, object]) -> object:
        return self.tools.call(offer.own_name, arguments)

    def state(self) -> object:
        return None

    def close(self) -> None:
        pass


def _shown(server: McpServer) -> str:
    return redact_text(server.url or shlex.join(server.command))


# --- the connection -------------------------------------------------------------------------------------------------------


class _ConnectionLost(Exception):
    """The server is gone."""


class _Refusal(Exception):
    """The server answers, and says why it does not do it."""


class _Connection:
    """One connection, which lives in one task from its beginning to its end: the package wants it so."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._mcp: ModuleType = import_extra("mcp", "mcp", "a tool of an MCP server")
        self._stop = asyncio.Event()
        self._errors: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._ready: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, server: McpServer) -> _Connection:
        """Connects, or raises a ToolError that says why not."""
        connection = cls(server)
        connection._task = asyncio.create_task(connection._live())
        try:
            async with asyncio.timeout(server.connect_seconds):
                await asyncio.shield(connection._ready)
        except TimeoutError:
            words = connection.last_words()
            await connection.close()
            raise ToolError(
                f"the MCP server {_shown(server)} did not answer for {server.connect_seconds:g} s{words}"
            ) from None
        except Exception as error:  # boundary: whatever the package raises of a server that is not there
            words = connection.last_words()
            await connection.close()
            raise ToolError(f"the MCP server {_shown(server)} cannot be used: {_innermost(error)}{words}") from error
        return connection

    async def _live(self) -> None:
        try:
            async with self._connected() as client:
                if not self._ready.done():
                    self._ready.set_result(client)
                await self._stop.wait()
        except BaseException as error:  # boundary: whoever waits is told
            if not self._ready.done():
                self._ready.set_exception(error if isinstance(error, Exception) else _ConnectionLost())

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[object]:
        given = look_up_secrets({"env": dict(self._server.env), "headers": dict(self._server.headers)})
        if not self._server.url:
            program, *arguments = self._server.command
            parameters = self._mcp.StdioServerParameters(command=program, args=arguments, env=given["env"])
            transport = self._mcp.stdio_client(parameters, errlog=self._errors)
            async with self._mcp.Client(transport) as client:
                yield client
            return
        http = import_extra("mcp.client.streamable_http", "mcp", "a tool of an MCP server")
        async with (
            http.create_mcp_http_client(headers=given["headers"]) as requests,
            self._mcp.Client(http.streamable_http_client(self._server.url, http_client=requests)) as client,
        ):
            yield client

    async def close(self) -> None:
        self._stop.set()
        if self._task is not None:
            if not self._ready.done():  # still connecting, and hears of nothing else
                self._task.cancel()
            await asyncio.wait([self._task], timeout=_STOP_SECONDS)
        if self._ready.done() and not self._ready.cancelled():
            self._ready.exception()  # looked at, so that nobody complains that it was not
        self._errors.close()

    def last_words(self) -> str:
        """What a program wrote to stderr last, behind a colon."""
        if self._errors.closed:
            return ""
        self._errors.seek(0)
        lines = [line for line in self._errors.read().splitlines() if line.strip()]
        return redact_text(":\n" + "\n".join(lines[-_SHOWN_LINES:])) if lines else ""

    def server_info(self) -> tuple[str, str]:
        told = getattr(self._ready.result(), "server_info", None)
        return str(getattr(told, "name", "") or ""), str(getattr(told, "version", "") or "")

    async def list_tools(self) -> list[Offer]:
        offers: list[Offer] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._ask("list_tools", cursor=cursor)
            offers += [_offer(tool) for tool in getattr(page, "tools", ())]
            cursor = getattr(page, "next_cursor", None)
            if not cursor:
                break
        return offers

    async def call(self, name: str, arguments: Mapping[str, object]) -> ToolResult:
        return _read_result(await self._ask("call_tool", name, dict(arguments)))

    async def _ask(self, method: str, *arguments: object, **options: object) -> object:
        import anyio

        if self._task is None or self._task.done():
            raise _ConnectionLost
        try:
            return await getattr(self._ready.result(), method)(*arguments, **options)
        except self._mcp.MCPError as error:
            if error.code == self._mcp.types.CONNECTION_CLOSED:
                raise _ConnectionLost from error
            raise _Refusal(error.message) from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError) as error:
            raise _ConnectionLost from error


def _innermost(error: BaseException) -> str:
    """What is inside a group of errors, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# --- in our terms ---------------------------------------------------------------------------------------------------------


def _offer(tool: object) -> Offer:
    own_name, schema = str(getattr(tool, "name", "")), dict(getattr(tool, "input_schema", None) or {"type": "object"})
    return Offer(
        name=re.sub(r"[^A-Za-z0-9_-]", "_", own_name)[:64],
        description=str(getattr(tool, "description", None) or getattr(tool, "title", None) or ""),
        parameters=Parameters(schema, is_checked=not find_schema_problem(schema)),
        own_name=own_name,
        is_async=True,
    )


def _read_result(result: object) -> ToolResult:
    parts = [part for block in getattr(result, "content", ()) for part in _read_block(block)]
    is_error = bool(getattr(result, "is_error", False))
    if not parts:
        return ToolResult(getattr(result, "structured_content", None), error=is_error)
    if all(part["type"] == "text" for part in parts):
        return ToolResult("\n".join(str(part["text"]) for part in parts), error=is_error)
    return ToolResult(parts, error=is_error)


def _read_block(block: object) -> list[Part]:
    kind = getattr(block, "type", "")
    if kind == "text":
        return [{"type": "text", "text": str(getattr(block, "text", ""))}]
    if kind in ("image", "audio"):
        part = {"media_type": getattr(block, "mime_type", None), "data": getattr(block, "data", "")}
        return [{"type": "image", **part} if kind == "image" else {"type": "file", "name": "audio", **part}]
    resource = getattr(block, "resource", block)
    uri, text = str(getattr(resource, "uri", "")), getattr(resource, "text", None)
    if isinstance(text, str):
        return [{"type": "text", "text": text}]
    if blob := getattr(resource, "blob", None):
        return [{"type": "file", "name": uri, "media_type": getattr(resource, "mime_type", None), "data": str(blob)}]
    return [{"type": "text", "text": f"{getattr(resource, 'name', '') or 'resource'}: {uri}"}]
