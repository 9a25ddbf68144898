"""HTTP/1.1 with a deadline: a client that does not finish sending its request is let go.

uvicorn limits how long a connection stays idle, but not how long a request may take to arrive: half requests would hold
their connections for ever. Streams and WebSockets are answers, not requests, and stay as long as they like.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from themis.server.guard import error_body

__all__ = ["TimedProtocol", "protocol_with_deadline"]


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
        answer: tuple[Any, ...] = (
            h11.Response(status_code=408, headers=headers, reason=b"Request Timeout"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        for event in answer:
            self.transport.write(self.conn.send(event) or b"")


def protocol_with_deadline(request_seconds: float) -> type[TimedProtocol]:
    """For uvicorn, which makes one of its own for each connection."""
    return type("Protocol", (TimedProtocol,), {"request_seconds": request_seconds})
