"""Runs the application in uvicorn until the process is told to stop."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from fastapi import FastAPI

from themis.server.protocol import protocol_with_deadline

__all__ = ["run_server"]

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

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.config.app.state.served.hub.close()  # type: ignore[union-attr]
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
