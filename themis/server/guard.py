"""Stands before every request: names, origins, tokens, sizes, rates; and puts the headers on every answer.

Plain ASGI, so that it sees WebSockets too and never holds a response back.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from themis.server.settings import Settings, is_loopback
from themis.server.tokens import ClientThrottle, TokenTries, is_session, is_token, read_session

logger = logging.getLogger("themis.server.access")

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]
# What needs no token: the way in, how it looks, and whether the server lives.
_OPEN_PATHS = ("/login", "/api/health", "/favicon.ico")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class _Refusal:
    status: int
    code: str
    detail: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


def _wait(seconds: float, reason: str) -> _Refusal:
    whole = int(seconds) + 1
    return _Refusal(
        429, "too_many_requests", f"{reason}; try again in {whole} s", ((b"retry-after", str(whole).encode()),)
    )


class _TooLarge(Exception):
    """The body of a request grew beyond the limit while it was read."""


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, settings: Settings, token_tries: TokenTries) -> None:
        self._app = app
        self._settings = settings
        self._token_tries = token_tries
        self._rate = ClientThrottle(settings.requests_per_second, burst=4 * settings.requests_per_second)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        self._name_client(scope)
        exchange = _Exchange(scope, send, self._own_headers(headers))
        refusal = self._refusal(scope, headers)
        try:
            if refusal is not None:
                await exchange.refuse(refusal)
            elif scope["type"] == "websocket":
                await self._app(scope, receive, send)
            else:
                await self._app(scope, self._bounded(receive, exchange), exchange.send)
        except _TooLarge:
            pass  # where the application has not made another error of it
        finally:
            if exchange.is_overrun:
                await exchange.refuse(self._too_large())
            exchange.log()

    def _name_client(self, scope: Scope) -> None:
        """From here on `client` is who asks, for limits, logs and routes alike, also where a proxy brings it."""
        host, port = scope.get("client") or ("", 0)
        noted = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"x-forwarded-for"]
        client = self._settings.client_of(host, ",".join(noted))
        scope["client"] = (client, port if client == host else 0)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> _Refusal | None:
        host = headers.get("host", "")
        if not self._settings.is_own_name(host):
            return _Refusal(
                400, "unknown_host", f"this server is not {host!r}; start it with --allow-host to add a name"
            )
        is_socket = scope["type"] == "websocket"
        if (is_socket or scope["method"] not in _SAFE_METHODS) and not self._is_own_page(headers, host):
            return _Refusal(403, "foreign_origin", "this request comes from a page of another address")
        if refusal := self._too_often(scope):
            return refusal
        if scope.get("method") == "OPTIONS" and headers.get("origin") in self._settings.allowed_origins:
            return _Refusal(204, "", "")  # a browser asks beforehand, without a token, whether it may ask
        if refusal := self._check_token(scope, headers):
            return refusal
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._settings.max_body_bytes:
            return self._too_large()
        return None

    def _is_own_page(self, headers: dict[str, str], host: str) -> bool:
        """Browsers say where a request comes from; other programs send no such header, and no cookie either."""
        origin = headers.get("origin")
        if origin is not None:
            if origin in self._settings.allowed_origins:
                return True
            parts = urlsplit(origin)
            return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
        site = headers.get("sec-fetch-site")
        if site is not None:
            return site in ("same-origin", "none")
        return "cookie" not in headers

    def _too_often(self, scope: Scope) -> _Refusal | None:
        client = scope["client"][0]
        if not client or is_loopback(client):
            return None
        wait = self._rate.wait_seconds(client)
        return _wait(wait, "too many requests") if wait > 0 else None

    def _check_token(self, scope: Scope, headers: dict[str, str]) -> _Refusal | None:
        token, path = self._settings.token, scope["path"]
        if token is None or path in _OPEN_PATHS or path.startswith("/static/"):
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            client = scope["client"][0]
            is_right = is_token(token, given.strip())
            wait = self._token_tries.locked_seconds(client) if is_right else self._token_tries.count(client)
            if wait > 0:
                return _wait(wait, "too many tries with a wrong token")
            if is_right:
                return None
        session = read_session(headers.get("cookie", ""))
        if session is not None and is_session(token, session):
            return None
        return self._ask_for_token(scope, headers)

    def _ask_for_token(self, scope: Scope, headers: dict[str, str]) -> _Refusal:
        wants_page = "text/html" in headers.get("accept", "") and not scope["path"].startswith("/api")
        if wants_page and scope.get("method") == "GET":
            query = scope.get("query_string", b"").decode("latin-1")
            target = quote(scope["path"] + (f"?{query}" if query else ""), safe="")
            return _Refusal(303, "token_needed", "", ((b"location", f"/login?next={target}".encode()),))
        challenge = ((b"www-authenticate", b'Bearer realm="themis"'),)
        return _Refusal(401, "token_needed", "this server asks for a token: Authorization: Bearer …", challenge)

    def _too_large(self) -> _Refusal:
        return _Refusal(413, "too_large", f"a request has at most {self._settings.max_body_bytes} bytes")

    def _bounded(self, receive: Receive, exchange: _Exchange) -> Receive:
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._settings.max_body_bytes:
                exchange.is_overrun = True
                raise _TooLarge
            return message

        return bounded

    def _own_headers(self, headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
        origin = headers.get("origin")
        if origin is None or origin not in self._settings.allowed_origins:
            return _HEADERS
        shared = [header for header in _HEADERS if header[0] != b"cross-origin-resource-policy"]
        return [
            *shared,
            (b"cross-origin-resource-policy", b"cross-origin"),
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-allow-headers", b"authorization, content-type, x-confirm-delete"),
            (b"access-control-allow-methods", b"GET, POST, DELETE"),
            (b"vary", b"origin"),
        ]


class _Exchange:
    """One request on its way: what was answered, for the log."""

    def __init__(self, scope: Scope, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self._scope = scope
        self._send = send
        self._headers = headers
        self._began = time.monotonic()
        self._status = 0
        self._bytes = 0
        # The body was too large: whatever the application says to that is not sent.
        self.is_overrun = False

    async def send(self, message: Message) -> None:
        if self.is_overrun:
            return
        if message["type"] == "http.response.start":
            self._status = message["status"]
            given = {name for name, _ in message.get("headers", ())}
            message["headers"] = [
                *message.get("headers", ()),
                *((name, value) for name, value in self._headers if name not in given),
            ]
        elif message["type"] == "http.response.body":
            self._bytes += len(message.get("body", b""))
        await self._send(message)

    async def refuse(self, refusal: _Refusal) -> None:
        if self._scope["type"] == "websocket":
            self._status = refusal.status
            await self._send({"type": "websocket.close", "code": 1008, "reason": refusal.detail[:120]})
            return
        if self._status:
            return  # the answer has begun; all that is left is to end it
        body = error_body(refusal.detail, refusal.code) if refusal.detail else b""
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        start = {"type": "http.response.start", "status": refusal.status, "headers": [*headers, *refusal.headers]}
        self.is_overrun = False
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body})

    def log(self) -> None:
        if not logger.isEnabledFor(logging.INFO):
            return
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "client": self._scope["client"][0],
            "method": self._scope.get("method", "WS"),
            # Without the query: what people search for is theirs.
            "path": self._scope["path"],
            "status": self._status,
            "bytes": self._bytes,
            "ms": round((time.monotonic() - self._began) * 1000, 1),
        }
        logger.info("%s", json.dumps(entry))


def error_body(detail: str, code: str) -> bytes:
    """The one shape of errors."""
    return json.dumps({"detail": detail, "code": code}).encode()


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
