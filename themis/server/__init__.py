"""The API and the pages over a store: `create_app` for any ASGI server, `themis serve` for the command line."""

from themis.exceptions import DependencyError

try:
    import fastapi  # noqa: F401
except ImportError as error:
    raise DependencyError.for_extra("fastapi", "server", "the server") from error

from themis.server.app import create_app

__all__ = ["create_app"]
