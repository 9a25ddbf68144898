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
from abc import abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar
from urllib.parse import urlsplit

from themis.core.redaction import Redactor, redact_options, redact_text
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.memory.agents.agent import Agent, AgentSettings, Reply, is_cost, is_count

# Of an answer that is shown: so much is searched for secrets, of which half a one would be known to nobody.
LONGEST_READ = 16_384
Answer = dict[str, object]
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)


class JsonAgent(Agent):
    """An agent behind the protocol above, however its objects travel."""

    reads_clock: ClassVar[bool] = False
    how_to_bound_cost: ClassVar[str] = (
        "give the most that a reply may cost with --option most_cost_usd=0.05 (what it says in `cost_usd` is counted), "
        "or -l if it costs nothing"
    )

    def __init__(self, settings: AgentSettings, most_cost_usd: float | None) -> None:
        if most_cost_usd is not None and not most_cost_usd >= 0:
            raise ConfigurationError(f"most_cost_usd is a sum of US dollars, got {most_cost_usd!r}")
        self._session = settings.session
        self._is_local = settings.is_local
        self._most_cost_usd = 0.0 if settings.is_local else most_cost_usd
        self._now: datetime | None = None

    @abstractmethod
    def _request(self, content: Mapping[str, object]) -> Answer:
        """Sends an object and returns the one that comes back."""

    @abstractmethod
    def _excerpt(self, text: str) -> str:
        """Its beginning, without secrets."""

    def _show_time(self, now: datetime) -> None:
        self._now = now

    def _ask(self, kind: str, **fields: object) -> Answer:
        now = None if self._now is None else self._now.isoformat()
        return self._request({"type": kind, "session": self._session, "now": now, **fields})

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> Reply:
        self._show_time(now)
        answer = self._ask("message", turn=turn, message=message, presupplied=presupplied)
        text = answer.get("reply")
        if not isinstance(text, str):
            raise ProviderCallError(f"its answer has no text in `reply`: {self._excerpt(str(answer))}", retryable=False)
        return Reply(
            text,
            cost_usd=_read_cost(answer, is_free=self._is_local or presupplied is not None),
            prompt_tokens=_read_count(answer, "prompt_tokens"),
            completion_tokens=_read_count(answer, "completion_tokens"),
            calls=1,
        )

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        self._show_time(now)
        self._ask("observe", turn=turn, message=message, reply=reply)

    def reset(self) -> None:
        self._ask("reset")

    def time_passes(self, now: datetime) -> None:
        self._show_time(now)
        self._ask("time")

    def most_cost_usd(self, message: str) -> float | None:
        return self._most_cost_usd


class HttpAgent(JsonAgent):
    """A service that answers POST requests in JSON: `http://HOST:PORT/PATH`.

    Requests that fail on the way are sent again under their turn number.
    """

    remembers_elsewhere: ClassVar[bool] = True
    idempotent: ClassVar[bool] = True
    first_delay_seconds = 0.2

    def __init__(
        self,
        argument: str,
        settings: AgentSettings,
        *,
        timeout_seconds: float = 120.0,
        attempts: int = 5,
        headers: dict[str, str] | None = None,
        most_cost_usd: float | None = None,
    ) -> None:
        super().__init__(settings, most_cost_usd)
        parts = urlsplit(argument)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"an agent's address is http://host:port/path, got {redact_text(argument)!r}")
        self.name = str(redact_options({"url": argument})["url"])
        self._parts = parts
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._timeout_seconds = timeout_seconds
        self._attempts = attempts
        self._headers = dict(headers or {})
        self._redactor = Redactor({"headers": self._headers})
        self._connection: http.client.HTTPConnection | None = None

    def last_turn(self) -> int:
        return _read_count(self._ask("session"), "last_turn")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _request(self, content: Mapping[str, object]) -> Answer:
        # Escapes keep lone surrogates apart from the bytes that are sent.
        body, kind = json.dumps(content).encode("ascii"), content["type"]
        headers = {"Content-Type": "application/json", **self._headers}
        if content["now"] is not None:
            headers["Themis-Virtual-Time"] = str(content["now"])
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
                time.sleep(self.first_delay_seconds * 2 ** (attempt - 1))
        raise ProviderCallError(f"{self.name} did not answer a {kind} request after {self._attempts} tries: {problem}")

    def _parse(self, text: str) -> Answer:
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
        return self._redactor.text(text[:LONGEST_READ])[:200]

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


def _read_count(answer: Answer, name: str) -> int:
    value = answer.get(name, 0)
    return value if is_count(value) else 0


def _read_cost(answer: Answer, *, is_free: bool) -> float | None:
    """The `cost_usd` of an answer; None where it says nothing that can be a sum of money."""
    cost = answer.get("cost_usd", 0.0 if is_free else None)
    return float(cost) if is_cost(cost) else None
