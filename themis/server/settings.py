"""How a server is set up: what it serves, whom it lets in, how much it takes."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

from themis.exceptions import ConfigurationError

_Network = IPv4Network | IPv6Network
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """`port` None accepts any port in the Host header, for servers behind a proxy and for tests."""

    storage_path: str | Path
    host: str = "127.0.0.1"
    port: int | None = None
    # Asked of everybody, as a bearer header or at the login page; None only on this machine's own address.
    token: str | None = None
    # Opens the login page as the token does, but is this process's own: it may stand in a link that is printed.
    link_token: str | None = None
    read_only: bool = False
    # Further names under which the server is reached, and pages of other addresses that may call it.
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    # Addresses (or networks) of proxies, which are believed when they say who their client is.
    trusted_proxies: tuple[str, ...] = ()
    max_body_bytes: int = 1_000_000
    # For each client that is not this machine.
    requests_per_second: float = 50.0
    poll_seconds: float = 0.5
    names: frozenset[str] = field(init=False)
    proxies: tuple[_Network, ...] = field(init=False)

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
        object.__setattr__(self, "proxies", tuple(_network(proxy) for proxy in self.trusted_proxies))

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

    def client_of(self, peer: str, forwarded_for: str) -> str:
        """Who asks: the peer, or of what trusted proxies have noted (`X-Forwarded-For`) the last that is no such proxy.

        Whatever stands before that was written by the client itself and may be anything.
        """
        client = peer
        for noted in reversed(forwarded_for.split(",")):
            if not self._is_proxy(client):
                break
            if (address := _noted_address(noted.strip())) is None:
                break
            client = address
        return client

    def _is_proxy(self, address: str) -> bool:
        if not self.proxies or not _is_address(address):
            return False
        found = ip_address(address)
        plain = getattr(found, "ipv4_mapped", None) or found
        return any(plain in network for network in self.proxies)

    def _is_anywhere(self) -> bool:
        return self.host in ("0.0.0.0", "::", "")


@lru_cache(maxsize=1_024)
def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _network(proxy: str) -> _Network:
    try:
        return ip_network(proxy, strict=False)
    except ValueError as error:
        raise ConfigurationError(
            f"a trusted proxy is an address such as 10.0.0.7 or a network such as 10.0.0.0/24, got {proxy!r}"
        ) from error


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _is_address(name: str) -> bool:
    """An address cannot be made to point elsewhere, unlike a name."""
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _noted_address(text: str) -> str | None:
    """An address as proxies write it: with or without a port, in brackets or not."""
    for candidate in (text, _split(text)[0].strip("[]")):
        if _is_address(candidate):
            return candidate.strip("[]")
    return None


def _split(authority: str) -> tuple[str, int | None]:
    name, colon, port = authority.lower().rpartition(":")
    if not colon or "]" in port or not (port.isascii() and port.isdigit()):
        return authority.lower(), None
    return name, int(port)
