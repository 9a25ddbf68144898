"""Every error leaves as `{"detail": sentence, "code": word}` with the status that fits; nothing shows our insides."""

from __future__ import annotations

import logging
import secrets
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from themis.core.redaction import redact_text
from themis.exceptions import (
    ConfigurationError,
    DatasetError,
    DependencyError,
    MetricError,
    RunBusyError,
    StorageError,
    ThemisError,
)
from themis.server.guard import error_body

__all__ = ["NotFound", "handle_errors"]

logger = logging.getLogger(__name__)

_CODES = {400: "bad_request", 404: "not_found", 405: "wrong_method", 422: "invalid", 428: "confirmation_needed"}
_MANY_FIELDS = 5


class NotFound(Exception):
    """There is nothing of that name."""


def handle_errors(app: FastAPI) -> None:
    @app.exception_handler(NotFound)
    async def not_found(request: Request, error: NotFound) -> Response:
        return _answer(request, 404, "not_found", str(error))

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        detail = "there is no such page" if error.status_code == 404 else str(error.detail)
        code = _CODES.get(error.status_code, "refused")
        return _answer(request, error.status_code, code, detail, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return _answer(request, 422, "invalid", _fields(error.errors()))

    @app.exception_handler(ThemisError)
    async def ours(request: Request, error: ThemisError) -> Response:
        status, code = _status_of(error)
        return _answer(request, status, code, redact_text(str(error)))

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=408)  # for the log: whoever asked is no longer there

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        number = secrets.token_hex(4)
        logger.error("error %s in %s %s", number, request.method, request.url.path, exc_info=error)
        return _answer(
            request, 500, "internal", f"something went wrong here; the server's log has it as error {number}"
        )


def _status_of(error: ThemisError) -> tuple[int, str]:
    if isinstance(error, RunBusyError):
        return 409, "busy"
    if isinstance(error, ConfigurationError | MetricError | DatasetError):
        return 400, "bad_request"
    if isinstance(error, StorageError):
        return 503, "storage"
    if isinstance(error, DependencyError):
        return 501, "missing_package"
    return 400, "bad_request"


def _fields(errors: Any) -> str:
    """`body.alpha: Input should be less than 1`, for each field that is wrong."""
    found = [f"{'.'.join(str(part) for part in error['loc'])}: {error['msg']}" for error in errors]
    more = f"; and {len(found) - _MANY_FIELDS} more" if len(found) > _MANY_FIELDS else ""
    return "; ".join(found[:_MANY_FIELDS]) + more


def _answer(request: Request, status: int, code: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api")
    pages = getattr(request.app.state, "pages", None)
    if wants_page and pages is not None:
        return HTMLResponse(pages.render("error.html", status=status, detail=detail), status, headers)
    return Response(error_body(detail, code), status, headers, media_type="application/json")
