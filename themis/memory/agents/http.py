"""An agent in another process, in any language, behind one URL that takes and gives JSON.

Every request is a POST of an object with `type`, `session` and `now` (the virtual time; also in the header
`Themis-Virtual-Time`):

    message  turn, message, presupplied (text or null)  ->  reply, and optionally cost_usd, prompt_tokens, completion_tokens
    session                                             ->  last_turn: the last turn it has answered or observed, 0 if none
    observe  turn, message, reply                       ->  {}; an exchange that its memory lacks
    reset                                               ->  {}; forget this session
    time                                                ->  {}; virtual time has jumped to `now`

A `message` that comes again under its turn number must be answered as the first time and remembered once.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlsplit

from themis.core.redaction import Redactor, redact_options, redact_text
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.memory.agents.agent import BOUND_BY_OPTION, Agent, Reply, told_cost

__all__ = ["HttpAgent"]

_LONGEST_READ = 16_384
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)


class HttpAgent(Agent):
    """Speaks to one URL. Requests that fail on the way are sent again under their turn number."""

    remembers_elsewhere: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True
    reads_clock: ClassVar[bool] = False
    how_to_bound_cost: ClassVar[str] = BOUND_BY_OPTION

    def __init__(
        self,
        url: str,
        session: str,
        *,
        timeout_seconds: float = 120.0,
        attempts: int = 5,
        first_delay_seconds: float = 0.2,
        headers: dict[str, str] | None = None,
        is_local: bool = False,
        most_cost_usd: float | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"an agent's address is http://host:port/path, got {redact_text(url)!r}")
        self.name = str(redact_options({"url": url})["url"])
        self._parts = parts
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._session = session
        self._timeout_seconds = timeout_seconds
        self._attempts = attempts
        self._first_delay_seconds = first_delay_seconds
        self._headers = dict(headers or {})
        self._redactor = Redactor({"headers": self._headers})
        self._is_local = is_local
        if most_cost_usd is not None and not most_cost_usd >= 0:
            raise ConfigurationError(f"most_cost_usd is a sum of US dollars, got {most_cost_usd!r}")
        self._most_cost_usd = 0.0 if is_local else most_cost_usd
        self._connection: http.client.HTTPConnection | None = None
        self._now: datetime | None = None

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> Reply:
        self._now = now
        answer = self._post("message", turn=turn, message=message, presupplied=presupplied)
        text = answer.get("reply")
        if not isinstance(text, str):
            raise ProviderCallError(f"its answer has no text in `reply`: {self._excerpt(str(answer))}", retryable=False)
        cost = told_cost(answer, is_free=self._is_local or presupplied is not None)
        return Reply(
            text,
            cost_usd=cost,
            prompt_tokens=_count(answer, "prompt_tokens"),
            completion_tokens=_count(answer, "completion_tokens"),
            calls=1,
        )

    def last_turn(self) -> int:
        return _count(self._post("session"), "last_turn")

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        self._now = now
        self._post("observe", turn=turn, message=message, reply=reply)

    def most_cost_usd(self, message: str) -> float | None:
        return self._most_cost_usd

    def reset(self) -> None:
        self._post("reset")

    def time_passes(self, now: datetime) -> None:
        self._now = now
        self._post("time")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post(self, kind: str, **fields: Any) -> dict[str, Any]:
        now = None if self._now is None else self._now.isoformat()
        # Escapes keep lone surrogates apart from the bytes that are sent.
        body = json.dumps({"type": kind, "session": self._session, "now": now, **fields}).encode("ascii")
        headers = {"Content-Type": "application/json", **self._headers}
        if now is not None:
            headers["Themis-Virtual-Time"] = now
        for attempt in range(1, self._attempts + 1):
            try:
                status, answer = self._send(body, headers)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                problem = self._redactor.text(f"{type(error).__name__}: {error}")
            else:
                # Bytes that are not UTF-8 are the agent's words too: what can be read is kept.
                text = answer.decode("utf-8", "replace")
                if status == 200:
                    return self._parse(text)
                problem = f"HTTP {status}: {self._excerpt(text)}"
                if status not in _TRANSIENT:
                    raise ProviderCallError(f"{self.name} refused a {kind} request: {problem}", status=status)
            if attempt < self._attempts:
                time.sleep(self._first_delay_seconds * 2 ** (attempt - 1))
        raise ProviderCallError(f"{self.name} did not answer a {kind} request after {self._attempts} tries: {problem}")

    def _parse(self, text: str) -> dict[str, Any]:
        try:
            parsed = json.loads(text) if text.strip() else {}
        except ValueError as error:
            raise ProviderCallError(
                f"its answer is not JSON ({error}): {self._excerpt(text)!r}", retryable=False
            ) from error
        if not isinstance(parsed, dict):
            raise ProviderCallError(f"its answer is not a JSON object: {self._excerpt(text)!r}", retryable=False)
        return parsed

    def _excerpt(self, text: str) -> str:
        """Its beginning, cut after secrets are taken out: half a key is known to nobody."""
        return self._redactor.text(text[:_LONGEST_READ])[:200]

    def _send(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request("POST", self._path, body=body, headers=headers)
        response = self._connection.getresponse()
        return response.status, response.read()

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._timeout_seconds, context=context)
        return http.client.HTTPConnection(host, port, timeout=self._timeout_seconds)


def _count(answer: dict[str, Any], name: str) -> int:
    value = answer.get(name, 0)
    return value if isinstance(value, int) and value >= 0 else 0
