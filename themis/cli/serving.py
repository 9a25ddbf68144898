"""`themis serve`: the API and the pages over a store."""

from __future__ import annotations

import logging
import secrets
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from themis.cli.completing import RUN_ID
from themis.cli.output import storage_option
from themis.core.redaction import redact_text
from themis.exceptions import ConfigurationError, DependencyError

try:
    from themis.server import create_app
    from themis.server.bundle import write_bundle
    from themis.server.running import run_server
    from themis.server.tokens import read_or_make_token, token_path
except DependencyError as error:
    # `themis serve --help` is there without the extra too.
    _MISSING_EXTRA: DependencyError | None = error
else:
    _MISSING_EXTRA = None

_WAITING_CONNECTIONS = 1_024


@click.command()
@storage_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option(
    "--token",
    envvar="THEMIS_SERVER_TOKEN",
    show_envvar=True,
    help="What clients must show, instead of your own one, which is kept in a file that only you can read. Given as an "
    "option, others see it in the list of processes.",
)
@click.option("--no-token", is_flag=True, help="Let every user of this machine read and delete runs; loopback only.")
@click.option("--read-only", is_flag=True, help="Refuse to delete runs.")
@click.option("--allow-host", "allowed_hosts", multiple=True, metavar="NAME", help="Another name of this server.")
@click.option(
    "--allow-origin", "allowed_origins", multiple=True, metavar="URL", help="A page elsewhere that may call the API."
)
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A proxy (or network of them) that is believed when it says, in X-Forwarded-For, who its client is.",
)
@click.option(
    "--request-timeout",
    default=10.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="How long the headers of a request, and then its body, may take to arrive.",
)
@click.option("--access-log", is_flag=True, help="One line of JSON on stderr for each request.")
@click.option("--bundle", type=click.Path(path_type=Path, file_okay=False), help="Write a static copy there, and end.")
@click.option("--run", "run_ids", multiple=True, type=RUN_ID, metavar="RUN", help="With --bundle: only these runs.")
def serve(
    storage: str,
    host: str,
    port: int,
    token: str | None,
    no_token: bool,
    read_only: bool,
    request_timeout: float,
    access_log: bool,
    bundle: Path | None,
    run_ids: tuple[str, ...],
    **names: Any,
) -> None:
    """Show the runs of a store in the browser and to programs, or write them as static pages.

    Open the link that it prints: it logs the browser in. Programs send the token, which is in a file that only you can
    read: curl -H "Authorization: Bearer $(cat ~/.local/state/themis/server-token)".

    For a team: set THEMIS_SERVER_TOKEN, keep --host 127.0.0.1, and put a proxy with HTTPS before it whose name is given
    as --allow-host and whose address as --trusted-proxy. The token opens every run of the store; --read-only keeps its
    bearers from deleting any.
    """
    if _MISSING_EXTRA is not None:
        raise _MISSING_EXTRA
    if bundle is not None:
        written = write_bundle(storage, bundle, run_ids)
        click.echo(f"wrote {written.runs} runs with {written.samples} samples to {bundle / 'index.html'}", err=True)
        return
    if run_ids:
        raise ConfigurationError("--run chooses what --bundle writes; a server shows every run of its store")
    key = _choose_key(token, no_token, read_only)
    listener = _listen(host, port)
    port = listener.getsockname()[1]
    app = create_app(
        storage,
        host=host,
        port=port,
        token=key.token,
        link_token=key.link_token,
        read_only=read_only,
        **names,
    )
    if access_log:
        _log_to_stderr()
    _show_banner(storage, host, port, key)
    run_server(app, listener, request_seconds=request_timeout)
    click.echo("stopped", err=True)


@dataclass(frozen=True)
class _Key:
    """What clients must show, where it comes from, and what the printed link shows instead of it."""

    token: str | None
    source: str
    link_token: str | None = None


def _choose_key(token: str | None, no_token: bool, read_only: bool) -> _Key:
    if token is not None and no_token:
        raise ConfigurationError("--no-token and a token (--token, THEMIS_SERVER_TOKEN) were given; leave one out")
    if no_token:
        return _Key(None, f"none; every user of this machine can {'read' if read_only else 'read and delete'} runs")
    if token is not None:
        source = click.get_current_context().get_parameter_source("token")
        return _Key(
            token, "from THEMIS_SERVER_TOKEN" if source is ParameterSource.ENVIRONMENT else "as given by --token"
        )
    path = token_path()
    return _Key(read_or_make_token(path), f"in {path}", secrets.token_urlsafe(24))


def _listen(host: str, port: int) -> socket.socket:
    """The socket, open before anything is printed: who comes too early waits instead of being refused."""
    try:
        address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(address[0])
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address[4])
        listener.listen(_WAITING_CONNECTIONS)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(f"cannot listen on {host}:{port}: {reason}; give another --port or --host") from error
    return listener


def _show_banner(storage: str, host: str, port: int, key: _Key) -> None:
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}"
    click.echo(f"Themis is at {address}", err=True)
    if key.link_token is not None:
        click.echo(f"  open     {address}/login?token={key.link_token}", err=True)
    click.echo(f"  storage  {redact_text(storage)}", err=True)
    click.echo(f"  API      {address}/docs", err=True)
    click.echo(f"  token    {key.source}", err=True)
    sys.stderr.flush()


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("themis.server.access")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
