"""One POST over pooled connections, with everything that can go wrong told as a `ProviderCallError`.

The HTTP providers stand on it. It makes exactly one request a call: trying again, deadlines and rate limits are the
engine's, and a timeout here is only for who wants a shorter one. The pool has no limit of its own, because the engine
bounds the calls in flight and a second bound would only queue where nobody sees it.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import re
import ssl
import urllib.request
import weakref
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, ClassVar, NamedTuple, TypeVar
from urllib.parse import urljoin

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from themis.core.codec import decode_as
from themis.core.redaction import Redactor, redact_text
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.interfaces import StatelessTaskExecutor

T = TypeVar("T")

_LONGEST_MESSAGE = 500
_LONGEST_READ = 16_384
_CONNECT_SECONDS = 30.0
# Shorter than the idle time after which servers hang up: a connection closed under a request costs a retry.
_KEEP_ALIVE_SECONDS = 15.0
# Files of hundreds of megabytes take their time; a line that says nothing for so long is dead.
_FILE_LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=300.0)
# aiohttp warns when it is given more bytes than this in one piece.
_LARGEST_PLAIN_BODY = 2**20
# Events as a server sends them, or an object of JSON a line.
_STREAMED = re.compile(rb"\s*(?:(?:data|event|id|retry)?:|\{[^\n]*\}\s*\n\s*\{)")


class Reply(NamedTuple):
    """The body of a successful answer, and its headers."""

    body: bytes
    headers: Mapping[str, str]


class HttpProvider(StatelessTaskExecutor):
    """A provider behind one endpoint: address, headers and TLS prepared once, one session for each event loop that calls."""

    prompt_only = True

    # What the address is given as, for errors.
    address_option: ClassVar[str] = "base_url"

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        query: Mapping[str, str] | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        proxy: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        verify: bool = True,
        max_response_bytes: int = 64 * 2**20,
        system_prompt: str | None = None,
    ) -> None:
        self._system_prompt = system_prompt
        self._url = _web_address(url).update_query(query or {})
        self._headers = _checked_headers({"Content-Type": "application/json", "User-Agent": "themis-eval", **headers})
        self._tls = _tls(ca_file, verify)
        self._proxy_url = _web_address(proxy) if proxy else _proxy_of_environment(self._url)
        self._time_limits = aiohttp.ClientTimeout(
            total=None if timeout is None else _seconds(timeout), sock_connect=_CONNECT_SECONDS
        )
        self._max_response_bytes = max_response_bytes
        secrets = {"api_key": api_key or "", "headers": dict(headers), "url": url, "proxy": str(self._proxy_url or "")}
        self._redactor = Redactor(secrets)
        self._sessions: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession]
        self._sessions = weakref.WeakKeyDictionary()
        self._whose = _key_digest(api_key)

    @property
    def account(self) -> str:
        """Says whose quota a call uses without saying the key."""
        return f"{self.address}#{self._whose}"

    @property
    def address(self) -> str:
        """The URL as it may be shown: without credentials."""
        return _without_credentials(self._url)

    async def _post(self, body: bytes, url: URL | None = None) -> Reply:
        """Sends a body to the endpoint, or to another address of the same server."""
        # A payload that is ready spares the client the search for one that fits.
        data: Any = aiohttp.BytesPayload(body) if len(body) < _LARGEST_PLAIN_BODY else io.BytesIO(body)
        return await self._send("POST", self._url if url is None else url, data)

    async def _send(
        self,
        method: str,
        url: URL,
        data: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        is_file: bool = False,
    ) -> Reply:
        """One request, with headers beside the session's; a file may take longer than an answer."""
        limits = _FILE_LIMITS if is_file else self._time_limits
        session = self._sessions.get(asyncio.get_running_loop()) or self._open()
        try:
            async with session.request(
                method, url, data=data, proxy=self._proxy_url, allow_redirects=False, headers=headers, timeout=limits
            ) as response:
                payload = await self._read(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._broken(error, url) from error
        if response.status not in _ANSWERED:
            raise self._refused(response.status, response.headers, payload, url)
        if not payload.strip():
            raise self._failure("answered with an empty body", kind="empty_response", retryable=True)
        return Reply(payload, response.headers)

    async def _download(self, url: URL, file: BinaryIO, *, most_bytes: int | None = None) -> None:
        """Writes what is at an address to a file as it comes, or the beginning of it: it may be larger than memory."""
        session = self._sessions.get(asyncio.get_running_loop()) or self._open()
        try:
            async with session.get(url, proxy=self._proxy_url, allow_redirects=False, timeout=_FILE_LIMITS) as response:
                if response.status != 200:
                    raise self._refused(response.status, response.headers, await self._read(response), url)
                async for piece in response.content.iter_any():
                    file.write(piece)
                    if most_bytes is not None and file.tell() >= most_bytes:
                        return
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._broken(error, url) from error

    def set_concurrency(self, calls: int) -> None:
        """Raises the soft limit on open files when so many connections would pass it."""
        try:
            import resource
        except ImportError:  # not on Windows, which has no such limit
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = calls + 512
        if soft < wanted:
            room = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, room), hard))

    async def aclose(self) -> None:
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    def _failure(self, what: str, *, kind: str, url: URL | None = None, **details: Any) -> ProviderCallError:
        """An error that names this endpoint, or another address of the server's, and holds no secret."""
        address = self.address if url is None else _without_credentials(url)
        return ProviderCallError(self._redactor.text(f"{address} {what}"), kind=kind, **details)

    def _decode(self, body: bytes | str, kind: type[T], expected: str) -> T:
        try:
            return decode_as(body, kind)
        except (ValueError, RecursionError) as error:
            raise self._unreadable(body, expected, error) from error

    def _unreadable(self, body: bytes | str, expected: str, error: Exception) -> ProviderCallError:
        """An answer that is there but is not what was expected; gateways send errors that way, with status 200."""
        if refusal := self._refused_in_body(body):
            return refusal
        # Another call would be paid for, and be answered the same way.
        is_stream = _STREAMED.match(body if isinstance(body, bytes) else body.encode()) is not None
        reason = str(error) if isinstance(error, msgspec.ValidationError) else "not JSON"
        if is_stream:
            reason = "a stream; whole answers are needed, which many give for 'stream': false in the request"
        return self._failure(
            f"did not answer with {expected} ({reason}): {self._excerpt(body)}",
            kind="invalid_response",
            retryable=not is_stream,
        )

    def _silent(self, body: bytes, expected: str) -> ProviderCallError:
        """A well-formed answer with nothing in it."""
        if refusal := self._refused_in_body(body):
            return refusal
        return self._failure(
            f"answered without {expected}: {self._excerpt(body)}",
            kind="empty_response",
            retryable=True,
        )

    def _excerpt(self, said: bytes | str) -> str:
        """What was said on one line, cut where it becomes too long for a message; first without secrets, of which the cut
        would leave a half that nobody knows."""
        text = said[:_LONGEST_READ] if isinstance(said, str) else said[:_LONGEST_READ].decode("utf-8", "replace")
        line = " ".join(self._redactor.text(text)[: 4 * _LONGEST_MESSAGE].split())
        return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1] + "…"

    def _refused_in_body(self, body: bytes | str) -> ProviderCallError | None:
        told = _read_error(body)
        return self._refused(told.status or 500, {}, body) if told is not None and told.is_error else None

    def _open(self) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=self._tls, ttl_dns_cache=300, keepalive_timeout=_KEEP_ALIVE_SECONDS
            ),
            headers=self._headers,
            timeout=self._time_limits,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._sessions[asyncio.get_running_loop()] = session
        return session

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        length = response.headers.get("Content-Length", "")
        if length.isdigit() and "Content-Encoding" not in response.headers:
            self._check_size(int(length))
            return await response.read()
        # Of unknown or compressed size: counted as it comes.
        pieces, size = [], 0
        async for piece in response.content.iter_any():
            size += len(piece)
            self._check_size(size)
            pieces.append(piece)
        return b"".join(pieces)

    def _check_size(self, size: int) -> None:
        if size > self._max_response_bytes:
            raise self._failure(
                f"sent more than max_response_bytes={self._max_response_bytes:,}",
                kind="response_too_large",
                retryable=False,
            )

    def _broken(self, error: Exception, url: URL) -> ProviderCallError:
        """No answer arrived: what the transport said, and whether trying again may help."""
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            what = f"could not be connected to within {_CONNECT_SECONDS:g} s"
            return self._failure(what, kind="connection", url=url, retryable=True)
        if isinstance(error, TimeoutError):
            limit = f" (timeout={self._time_limits.total:g} s)" if self._time_limits.total else ""
            return self._failure(f"did not answer in time{limit}", kind="timeout", url=url, retryable=True)
        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
            what = f"has a certificate that cannot be verified; give ca_file= for a private CA. {reason}"
            return self._failure(what, kind="connection", url=url, retryable=False)
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return self._failure(
                f"is behind a proxy that refused: {reason}", kind="proxy", url=url, status=error.status
            )
        if isinstance(error, aiohttp.ClientConnectorError):
            return self._failure(
                f"cannot be reached; is the server running? {reason}", kind="connection", url=url, retryable=True
            )
        if isinstance(error, aiohttp.ClientResponseError):
            return self._failure(f"does not speak HTTP: {reason}", kind="invalid_response", url=url, retryable=True)
        return self._failure(f"cut the connection: {reason}", kind="connection", url=url, retryable=True)

    def _refused(
        self, status: int, headers: Mapping[str, str], body: bytes | str, url: URL | None = None
    ) -> ProviderCallError:
        """An answer that is an error: the server's own words, shortened, and what its status means."""
        if 300 <= status < 400:
            target = self._excerpt(urljoin(self.address, headers.get("Location", "elsewhere")))
            what = f"redirects to {target}: give that as {self.address_option}"
            return self._failure(what, kind="bad_request", url=url, status=status, retryable=False)
        told = _read_error(body)
        message = self._excerpt((told.message if told else "") or body)
        of_range = "server_error" if status >= 500 else "bad_request"
        kind = _KINDS_BY_CODE.get(told.code if told else "") or _KINDS_BY_STATUS.get(status, of_range)
        return self._failure(
            f"answered {status}: {message or 'with an empty body'}",
            kind=kind,
            url=url,
            status=status,
            retry_after_seconds=retry_after_seconds(headers),
            parameter=told.parameter if told else "",
            retryable=kind not in _HOPELESS_KINDS and (status in _PASSING_STATUSES or status >= 500),
        )


# Frameworks say of what a POST has made that it was created.
_ANSWERED = (200, 201)
_KINDS_BY_CODE = {
    "insufficient_quota": "quota_exceeded",
    "context_length_exceeded": "context_length",
    "exceed_context_size_error": "context_length",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "invalid_prompt": "content_filter",
    "model_not_found": "not_found",
    "overloaded_error": "overloaded",
}
_KINDS_BY_STATUS = {
    401: "authentication",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    429: "rate_limited",
    504: "timeout",
    529: "overloaded",
}
_HOPELESS_KINDS = {"quota_exceeded", "context_length", "content_filter", "not_found"}
_PASSING_STATUSES = {408, 409, 425, 429}


class _ErrorBody(NamedTuple):
    message: str
    code: str = ""
    status: int | None = None
    is_error: bool = False
    parameter: str = ""


def _read_error(body: bytes | str) -> _ErrorBody | None:
    """The message, code and status in an error body of any of the usual shapes; None where there is nothing to find."""
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(content, list) and len(content) == 1:
        content = content[0]  # as Google wraps it
    if not isinstance(content, dict):
        return None
    is_error = bool(content.get("error"))
    error = content["error"] if is_error else content
    if not isinstance(error, dict):
        return _ErrorBody(message=str(error), is_error=is_error)
    message = error.get("message") or error.get("detail") or error.get("msg") or ""
    codes = [code for code in (error.get("code"), error.get("type")) if isinstance(code, str)]
    status = error.get("code")
    return _ErrorBody(
        message=message if isinstance(message, str) else str(message),
        code=next((code for code in codes if code in _KINDS_BY_CODE), ""),
        status=status if isinstance(status, int) and 400 <= status < 600 else None,
        is_error=is_error,
        parameter=_read_parameter(error),
    )


def _read_parameter(error: Mapping[str, object]) -> str:
    """What was refused: `param`, or the place that a validator names."""
    named, details = error.get("param"), error.get("detail")
    if isinstance(details, list) and details and isinstance(details[0], dict):
        place = details[0].get("loc")
        named = place[-1] if isinstance(place, list) and place else named
    return named if isinstance(named, str) else ""


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """How long the server wants to be left alone: `retry-after-ms`, `Retry-After` in seconds or as a date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    given = headers.get("Retry-After")
    seconds = _number(given)
    if seconds is not None:
        return max(0.0, seconds)
    if given:
        try:
            moment = parsedate_to_datetime(given)
        except ValueError:
            return None
        return _seconds_until(moment)
    return None


def _seconds_until(moment: datetime) -> float:
    """RFC 9110 dates are in GMT, also where the zone is missing."""
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def duration_seconds(text: str | None) -> float | None:
    """`6m0s`, `1.5s`, `120ms`, plain seconds or the moment when they are over, as quota headers write them."""
    number = _number(text)
    if number is not None or not text:
        return number
    if parts := _DURATION_PART.findall(text):
        return sum(float(amount) * _UNIT_SECONDS[unit] for amount, unit in parts)
    try:
        return _seconds_until(datetime.fromisoformat(text))
    except ValueError:
        return None


def quota_headers(spelling: str) -> dict[str, str]:
    """What is told of an account's quota -> the header that tells it, as a vendor spells them."""
    return {
        name: spelling.format(of=of, what=what)
        for name, of, what in (
            ("remaining_requests", "requests", "remaining"),
            ("limit_requests", "requests", "limit"),
            ("reset_seconds", "requests", "reset"),
            ("remaining_tokens", "tokens", "remaining"),
            ("limit_tokens", "tokens", "limit"),
            ("reset_tokens_seconds", "tokens", "reset"),
        )
    }


def read_quota(headers: Mapping[str, str], names: Mapping[str, str]) -> dict[str, object]:
    """What is left of the account's quota, where the server says so."""
    if names["remaining_requests"] not in headers and names["remaining_tokens"] not in headers:
        return {}
    told = {name: duration_seconds(headers.get(header)) for name, header in names.items()}
    return {"rate_limit": {name: value for name, value in told.items() if value is not None}}


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text else None
    except ValueError:
        return None
    return number if number is not None and abs(number) < 1e12 else None


def _without_credentials(url: URL) -> str:
    return str(url.with_user(None).with_query(None))


def _web_address(url: str) -> URL:
    try:
        parsed = URL(url)
    except (ValueError, TypeError):
        parsed = URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ConfigurationError(
            f"an address starts with http:// or https:// and names a host, got {redact_text(str(url))!r}"
        )
    return parsed


def _checked_headers(headers: Mapping[str, str]) -> CIMultiDict[str]:
    for name, value in headers.items():
        if not isinstance(value, str) or any(character in "\r\n\0" for character in f"{name}{value}"):
            raise ConfigurationError(f"header {name!r} must be text on one line")  # its value may be a secret
    return CIMultiDict(headers)


def _tls(ca_file: str | os.PathLike[str] | None, verify: bool) -> ssl.SSLContext | bool:
    if not verify:
        return False
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=os.fspath(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"ca_file {os.fspath(ca_file)!r} cannot be read as certificates: {error}") from error


def _proxy_of_environment(url: URL) -> URL | None:
    """What HTTP_PROXY, HTTPS_PROXY and NO_PROXY say; read once, because reading them at every request costs."""
    host = url.host or ""
    proxy = urllib.request.getproxies().get(url.scheme)
    if not proxy or _bypassed(f"{host}:{url.port}") or _bypassed(host):
        return None
    return _web_address(proxy if "://" in proxy else f"http://{proxy}")


_bypassed: Callable[[str], Any] = urllib.request.proxy_bypass


def _seconds(timeout: float) -> float:
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ConfigurationError(f"timeout is a number of seconds above 0, got {timeout!r}")
    return seconds


def _key_digest(api_key: str | None) -> str:
    return hashlib.sha256(api_key.encode("utf-8", "surrogatepass")).hexdigest()[:12] if api_key else "no-key"
