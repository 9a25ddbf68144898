"""`create_app`: the API and the pages over one store, guarded."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from themis import __version__
from themis.server import api_judging, api_live, api_names, api_runs, page_routes
from themis.server.errors import handle_errors
from themis.server.guard import Guard
from themis.server.json_answers import json_answer
from themis.server.pages import Pages, ServerLinks
from themis.server.settings import Settings
from themis.server.state import Served

__all__ = ["STATIC", "create_app"]

STATIC = Path(__file__).parent / "static"

_ABOUT = """\
Runs, their samples and what they differ in. Errors are always `{"detail": sentence, "code": word}`. On a server with a token
every request carries `Authorization: Bearer TOKEN`.
"""


def create_app(
    storage_path: str | Path = ".cache/experiments",
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
    link_token: str | None = None,
    read_only: bool = False,
    allowed_hosts: tuple[str, ...] = (),
    allowed_origins: tuple[str, ...] = (),
    trusted_proxies: tuple[str, ...] = (),
    requests_per_second: float = 50.0,
    poll_seconds: float = 0.5,
) -> FastAPI:
    """The application for any ASGI server; `themis serve` runs it with uvicorn.

    `host` and `port` are where it will be reached: the Host header must name them, or one of `allowed_hosts`. Without a
    `token`, which is possible on this machine's own address only, every user of the machine can read and delete runs.
    `link_token` opens `/login?token=...` as the token does. Of `trusted_proxies` the header X-Forwarded-For is believed.
    """
    settings = Settings(
        storage_path=storage_path,
        host=host,
        port=port,
        token=token,
        link_token=link_token,
        read_only=read_only,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        trusted_proxies=trusted_proxies,
        requests_per_second=requests_per_second,
        poll_seconds=poll_seconds,
    )
    # The pages that FastAPI would serve at /docs load their scripts from elsewhere; ours is in `page_routes`.
    app = FastAPI(
        title="Themis API", version=__version__, description=_ABOUT, docs_url=None, redoc_url=None, lifespan=_lifespan
    )
    app.state.served = Served(settings)
    app.state.pages = Pages(ServerLinks(), has_token=token is not None, read_only=read_only)
    for routes in (api_runs, api_judging, api_names, api_live, page_routes):
        app.include_router(routes.router)
    app.add_api_route("/", _root, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    handle_errors(app)
    app.add_middleware(Guard, settings=settings)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    serving: Served = app.state.served
    serving.hub.start()
    try:
        yield
    finally:
        serving.hub.close()
        serving.store.close()


async def _root(request: Request) -> Response:
    """Programs are told that the API is here, people are shown the runs."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/runs", 303)
    body: dict[str, Any] = {"status": "ok", "service": "themis-api", "version": __version__}
    return json_answer(body)
