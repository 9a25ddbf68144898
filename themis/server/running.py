"""Runs the application in uvicorn until the process is told to stop.

uvicorn limits how long a connection stays idle, but not how long a request may take to arrive: half requests would hold
their connections for ever. Here a request has a deadline. Streams and WebSockets are answers, not requests, and stay as long
as they like.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from types import FrameType
from typing import ClassVar

from fastapi import FastAPI

from themis.exceptions import DependencyError
from themis.server.guard import error_body

try:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise DependencyError.for_extra("uvicorn", "server", "themis serve") from error

# After so long, connections that are still open are cut.
_GOODBYE_SECONDS = 5


def run_server(app: FastAPI, listener: socket.socket, *, request_seconds: float) -> None:
    """Serves what comes in at the socket. `request_seconds` is how long a request's headers, and its body, may take."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        http=protocol_with_deadline(request_seconds),
        server_header=False,
        # Who a client is decides its rate limit: the guard believes only the proxies that were named.
        proxy_headers=False,
        timeout_graceful_shutdown=_GOODBYE_SECONDS,
    )
    _Server(config).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Ends the live streams when it is told to stop, so that open pages do not keep it."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.config.app.state.themis.hub.close()  # type: ignore[union-attr]
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Being told to stop is no failure; uvicorn's own way ends the process by the signal."""
        wanted = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in wanted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class TimedProtocol(H11Protocol):
    """Headers, and then the body, each have `request_seconds` to arrive whole, however many pieces they come in."""

    request_seconds: ClassVar[float]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._deadline: asyncio.TimerHandle | None = None
        self._part: object = None
        super().connection_made(transport)
        self._expect(self._awaited_part())

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.transport.get_protocol() is self:
            self._expect(self._awaited_part())

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._expect(None)
        super().handle_websocket_upgrade(event)

    def _awaited_part(self) -> object:
        """What the client has begun and not ended: its headers, or its body. None while it is our turn."""
        if self.transport.is_closing():
            return None
        state = self.conn.their_state
        # Between two requests a connection may be idle for as long as uvicorn keeps it alive.
        is_idle = state is h11.IDLE and self.scope is not None and not self.conn.trailing_data[0]
        if is_idle or state not in (h11.IDLE, h11.SEND_BODY):
            return None
        return (state, id(self.scope))  # a request is told from the one before it by its scope

    def _expect(self, part: object) -> None:
        """Starts the clock of a part; the next piece of the same part does not start it again."""
        if part == self._part:
            return
        self._part = part
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if part is not None:
            self._deadline = self.loop.call_later(self.request_seconds, self._give_up)

    def _give_up(self) -> None:
        if self.transport.is_closing():
            return
        is_unanswered = self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE)
        has_begun = self.conn.their_state is h11.SEND_BODY or bool(self.conn.trailing_data[0])
        if is_unanswered and has_begun:
            self._refuse()
        if self.cycle is not None and not self.cycle.response_complete:
            # The application waits for the rest, or is answering into a connection that is closed now.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _refuse(self) -> None:
        detail = f"the request had not arrived whole after {self.request_seconds:g} s"
        body = error_body(detail, "too_slow")
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        answer: tuple[h11.Event, ...] = (
            h11.Response(status_code=408, headers=headers, reason=b"Request Timeout"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        for event in answer:
            self.transport.write(self.conn.send(event) or b"")


def protocol_with_deadline(request_seconds: float) -> type[TimedProtocol]:
    """For uvicorn, which makes one of its own for each connection."""
    return type("Protocol", (TimedProtocol,), {"request_seconds": request_seconds})
