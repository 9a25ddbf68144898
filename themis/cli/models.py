"""`themis models`: installs, lists, serves and removes the embedded models."""

from __future__ import annotations

import json
import signal
import sys
import threading
from typing import Any

import click

from themis.cli.completing import EMBEDDED_MODEL
from themis.exceptions import ThemisError
from themis.generation.models import (
    CATALOGUE,
    EmbeddedModel,
    find_in_catalogue,
    install_model,
    is_installed,
    model_file,
    remove_model,
    resolve_model,
)
from themis.generation.providers.local import ServerSettings, start_server, usable_cores


@click.group()
def models() -> None:
    """Embedded models: real ones that run in this process, without a server or a key."""


@models.command()
@click.argument("name", type=EMBEDDED_MODEL)
def install(name: str) -> None:
    """Fetch the model NAME into the user's cache and check it. Prints the path of its file."""
    model = _known(name)
    if is_installed(model):
        click.echo(f"{model.name} is already installed", err=True)
    else:
        click.echo(f"installing {model.name}: {model.title}, {_megabytes(model)}, {model.licence}", err=True)
    try:
        path = install_model(model.name, progress=_ProgressLine())
    except ThemisError as error:
        raise click.ClickException(str(error)) from error
    click.echo(path)


@models.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable, on stdout.")
def list_models(as_json: bool) -> None:
    """The models of the catalogue, and which of them are installed."""
    if as_json:
        click.echo(json.dumps([_describe(model) for model in CATALOGUE.values()], indent=2))
        return
    width = max(len(name) for name in CATALOGUE)
    for model in CATALOGUE.values():
        state = "installed" if is_installed(model) else "-"
        click.echo(f"{model.name:<{width}}  {state:<9}  {_megabytes(model):>8}  {model.licence:<11}  {model.title}")
        click.echo(f"{'':<{width}}  {model.description}")


@models.command()
@click.argument("name", type=EMBEDDED_MODEL)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes any free one.")
@click.option("--context-tokens", type=click.IntRange(min=1), default=4096, show_default=True, help="For each slot.")
@click.option("--parallel", type=click.IntRange(min=1), default=1, show_default=True, help="Requests at a time.")
@click.option("--threads", type=click.IntRange(min=1), default=None, help="Default: the cores of this process.")
def serve(name: str, threads: int | None, **asked: Any) -> None:
    """Serve the model NAME (or a GGUF file) as an OpenAI-compatible endpoint on 127.0.0.1, until interrupted."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        settings = ServerSettings(path=resolve_model(name), threads=threads or usable_cores(), alias=name, **asked)
        click.echo(f"loading {name}", err=True)
        server = start_server(settings)
    except ThemisError as error:
        raise click.ClickException(str(error)) from error
    base_url = f"{server.listening_address}/v1"
    click.echo(base_url)
    click.echo(f"serving; use it with LLAMACPP_BASE_URL={base_url} and --model llamacpp/{name}", err=True)
    sys.stdout.flush()
    stopped.wait()
    click.echo("stopped", err=True)


@models.command()
@click.argument("name", type=EMBEDDED_MODEL)
def remove(name: str) -> None:
    """Delete the model NAME from the user's cache."""
    model = _known(name)
    if not remove_model(model.name):
        raise click.ClickException(f"{model.name} is not installed")
    click.echo(f"removed {model.name}", err=True)


def _known(name: str) -> EmbeddedModel:
    try:
        return find_in_catalogue(name)
    except ThemisError as error:
        raise click.UsageError(str(error)) from error


def _describe(model: EmbeddedModel) -> dict[str, object]:
    installed = is_installed(model)
    return {
        "name": model.name,
        "title": model.title,
        "description": model.description,
        "licence": model.licence,
        "size_bytes": model.size_bytes,
        "sha256": model.sha256,
        "installed": installed,
        "path": str(model_file(model)) if installed else None,
    }


def _megabytes(model: EmbeddedModel) -> str:
    return f"{model.size_bytes / 1e6:,.0f} MB"


class _ProgressLine:
    """Progress on stderr: a line that is written over on a terminal, else one line for each step."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._step = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._terminal:
            click.echo(f"\r\033[K{what}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB", err=True, nl=done >= total)
        elif what != self._step:
            click.echo(what, err=True)
        self._step = what
