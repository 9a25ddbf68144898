"""How a server is set up: what it serves, whom it lets in, how much it takes."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from themis.exceptions import ConfigurationError

__all__ = ["Settings", "is_loopback"]

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """`port` None accepts any port in the Host header, for servers behind a proxy and for tests."""

    storage_path: str | Path
    host: str = "127.0.0.1"
    port: int | None = None
    # Asked of everybody, as a bearer header or at the login page; None only on this machine's own address.
    token: str | None = None
    read_only: bool = False
    # Further names under which the server is reached, and pages of other addresses that may call it.
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body_bytes: int = 1_000_000
    # For each client that is not this machine.
    requests_per_second: float = 50.0
    poll_seconds: float = 0.5
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < 8:
            raise ConfigurationError(f"a token has at least 8 characters, this one has {len(self.token)}")
        if self.token is None and not is_loopback(self.host):
            raise ConfigurationError(
                f"a server on {self.host!r} is reached from other machines and needs a token; give one, or use 127.0.0.1"
            )
        if any("*" in origin for origin in self.allowed_origins):
            raise ConfigurationError("an allowed origin is an exact address such as https://lab.example, not a pattern")
        object.__setattr__(self, "names", frozenset(name.lower() for name in self._names()))

    def _names(self) -> list[str]:
        names = [*_LOOPBACK_NAMES, *self.allowed_hosts, _bracketed(self.host)]
        if not is_loopback(self.host):
            names += [socket.gethostname(), socket.getfqdn()]
        return names

    def is_own_name(self, authority: str) -> bool:
        """Whether a Host header names this server. A foreign name means that somebody's DNS points here."""
        name, port = _split(authority)
        if self.port is not None and port not in (self.port, None) and authority.lower() not in self.names:
            return False
        return name in self.names or authority.lower() in self.names or (self._is_anywhere() and _is_address(name))

    def _is_anywhere(self) -> bool:
        return self.host in ("0.0.0.0", "::", "")


@lru_cache(maxsize=1_024)
def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _is_address(name: str) -> bool:
    """An address cannot be made to point elsewhere, unlike a name."""
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _split(authority: str) -> tuple[str, int | None]:
    name, colon, port = authority.lower().rpartition(":")
    if not colon or "]" in port or not (port.isascii() and port.isdigit()):
        return authority.lower(), None
    return name, int(port)
