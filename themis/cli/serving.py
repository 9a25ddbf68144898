"""`themis serve`: the API and the pages over a store."""

from __future__ import annotations

import contextlib
import logging
import secrets
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from themis.cli.output import storage_option
from themis.core.redaction import redact_text
from themis.exceptions import ConfigurationError, DependencyError

__all__ = ["serve"]

# After so long, connections that are still open are cut.
_GOODBYE_SECONDS = 5
_WAITING_CONNECTIONS = 1_024


@click.command()
@storage_option
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; any but this one needs a token."
)
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option(
    "--token",
    envvar="THEMIS_SERVER_TOKEN",
    show_envvar=True,
    help="What clients must show; made up where one is needed. In the environment, nobody sees it in the list of processes.",
)
@click.option("--read-only", is_flag=True, help="Refuse to delete runs.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Another name of this server.")
@click.option("--allow-origin", "origins", multiple=True, metavar="URL", help="A page elsewhere that may call the API.")
@click.option("--access-log", is_flag=True, help="One line of JSON on stderr for each request.")
@click.option("--bundle", type=click.Path(path_type=Path, file_okay=False), help="Write a static copy there, and end.")
@click.option("--run", "run_ids", multiple=True, metavar="RUN", help="With --bundle: only these runs.")
def serve(
    storage: str,
    host: str,
    port: int,
    token: str | None,
    read_only: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    access_log: bool,
    bundle: Path | None,
    run_ids: tuple[str, ...],
) -> None:
    """Show the runs of a store in the browser and to programs, or write them as static pages.

    For a team: set THEMIS_SERVER_TOKEN, keep --host 127.0.0.1, and put a proxy with HTTPS before it whose name is given
    as --allow-host. The token opens every run of the store; --read-only keeps its bearers from deleting any.
    """
    if bundle is not None:
        _write_bundle(storage, bundle, run_ids)
        return
    if run_ids:
        raise ConfigurationError("--run chooses what --bundle writes; a server shows every run of its store")
    try:
        import uvicorn
    except ImportError as error:
        raise DependencyError.for_extra("uvicorn", "server", "themis serve") from error
    from themis.server import create_app
    from themis.server.settings import is_loopback

    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(24)
    listener = _listen(host, port)
    port = listener.getsockname()[1]
    app = create_app(
        storage, host=host, port=port, token=token, read_only=read_only, allowed_hosts=hosts, allowed_origins=origins
    )
    if access_log:
        _log_to_stderr()
    _show_banner(storage, host, port, token)

    class Server(uvicorn.Server):
        """Ends the live streams when it is told to stop, so that open pages do not keep it."""

        def handle_exit(self, sig: int, frame: Any) -> None:
            app.state.served.hub.close()
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

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        # Who a client is decides its rate limit, so nobody may say it for them.
        proxy_headers=False,
        timeout_graceful_shutdown=_GOODBYE_SECONDS,
    )
    Server(config).run(sockets=[listener])
    click.echo("stopped", err=True)


def _listen(host: str, port: int) -> Any:
    """The socket, open before anything is printed: who comes too early waits instead of being refused."""
    import socket

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


def _show_banner(storage: str, host: str, port: int, token: str | None) -> None:
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}"
    click.echo(f"Themis is at {address}", err=True)
    click.echo(f"  storage  {redact_text(storage)}", err=True)
    click.echo(f"  API      {address}/docs", err=True)
    click.echo(f"  token    {token or 'none; only this machine can connect'}", err=True)
    sys.stderr.flush()


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("themis.server.access")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _write_bundle(storage: str, folder: Path, run_ids: tuple[str, ...]) -> None:
    from themis.server.bundle import write_bundle

    written = write_bundle(storage, folder, run_ids)
    click.echo(f"wrote {written.runs} runs with {written.samples} samples to {folder / 'index.html'}", err=True)
