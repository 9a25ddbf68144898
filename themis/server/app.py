"""`create_app`: the API and the pages over one store, guarded."""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from themis import __version__
from themis.core.redaction import redact_text
from themis.exceptions import DependencyError, RunBusyError, StorageError, ThemisError
from themis.server import api, pages
from themis.server.guard import Guard, error_body
from themis.server.pages import Pages, ServerLinks
from themis.server.settings import Settings
from themis.server.state import AppState, json_answer
from themis.server.views import NotFound

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

    Args:
        storage_path: The store to serve: a directory, or a `postgresql://` URL.
        host: Where it will be reached: the Host header must name it, or one of `allowed_hosts`.
        port: The port in the Host header; None accepts any, for servers behind a proxy and for tests.
        token: What clients must show. None is possible on this machine's own address only: every user of the machine can
            then read and delete runs.
        link_token: Opens `/login?token=...` as the token does, so that it may stand in a link that is printed.
        read_only: Refuses to delete runs.
        allowed_hosts: Further names under which the server is reached.
        allowed_origins: Addresses of pages elsewhere that may call the API.
        trusted_proxies: Addresses or networks of proxies whose header X-Forwarded-For is believed.
        requests_per_second: For each client that is not this machine.
        poll_seconds: Time between two looks into the store for whoever watches live.

    Raises:
        ConfigurationError: The settings do not fit together, such as an address of the network without a token.

    Example:
        >>> create_app("runs", read_only=True).title
        'Themis API'
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
    # The pages that FastAPI would serve at /docs load their scripts from elsewhere; ours is in `pages`.
    app = FastAPI(
        title="Themis API", version=__version__, description=_ABOUT, docs_url=None, redoc_url=None, lifespan=_lifespan
    )
    app.state.themis = state = AppState(settings)
    app.state.pages = Pages(ServerLinks(), has_token=token is not None, read_only=read_only)
    for router in (api.runs, api.comparisons, api.names, api.live, pages.router):
        app.include_router(router)
    app.add_api_route("/", _root, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    handle_errors(app)
    app.add_middleware(Guard, settings=settings, token_tries=state.token_tries)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: AppState = app.state.themis
    state.hub.start()
    try:
        yield
    finally:
        state.hub.close()
        state.store.close()


async def _root(request: Request) -> Response:
    """Programs are told that the API is here, people are shown the runs."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/runs", 303)
    return json_answer({"status": "ok", "service": "themis-api", "version": __version__})


# --- errors -----------------------------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

_CODES = {400: "bad_request", 404: "not_found", 405: "wrong_method", 422: "invalid", 428: "confirmation_needed"}
_MANY_FIELDS = 5


def handle_errors(app: FastAPI) -> None:
    """Every error leaves as `{"detail": sentence, "code": word}` with the status that fits; nothing shows our insides."""

    @app.exception_handler(NotFound)
    async def not_found(request: Request, error: NotFound) -> Response:
        return _error_response(request, 404, "not_found", str(error))

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        detail = "there is no such page" if error.status_code == 404 else str(error.detail)
        code = _CODES.get(error.status_code, "refused")
        return _error_response(request, error.status_code, code, detail, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return _error_response(request, 422, "invalid", _format_fields(error.errors()))

    @app.exception_handler(ThemisError)
    async def ours(request: Request, error: ThemisError) -> Response:
        status, code = _status_of(error)
        return _error_response(request, status, code, redact_text(str(error)))

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=408)  # for the log: whoever asked is no longer there

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        number = secrets.token_hex(4)
        logger.error("error %s in %s %s", number, request.method, request.url.path, exc_info=error)
        return _error_response(
            request, 500, "internal", f"something went wrong here; the server's log has it as error {number}"
        )


def _status_of(error: ThemisError) -> tuple[int, str]:
    if isinstance(error, RunBusyError):
        return 409, "busy"
    if isinstance(error, StorageError):
        return 503, "storage"
    if isinstance(error, DependencyError):
        return 501, "missing_package"
    return 400, "bad_request"


def _format_fields(errors: Sequence[Mapping[str, Any]]) -> str:
    """`body.alpha: Input should be less than 1`, for each field that is wrong."""
    found = [f"{'.'.join(str(part) for part in error['loc'])}: {error['msg']}" for error in errors]
    more = f"; and {len(found) - _MANY_FIELDS} more" if len(found) > _MANY_FIELDS else ""
    return "; ".join(found[:_MANY_FIELDS]) + more


def _error_response(
    request: Request, status: int, code: str, detail: str, headers: dict[str, str] | None = None
) -> Response:
    wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api")
    if wants_page:
        page = request.app.state.pages.render("error.html", status=status, detail=detail)
        return HTMLResponse(page, status, headers)
    return Response(error_body(detail, code), status, headers, media_type="application/json")
