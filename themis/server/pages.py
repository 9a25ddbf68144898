"""Renders pages: templates that escape everything, and the addresses that they link to.

The same templates make the server's pages and the static copy of `--bundle`; only the links differ.
"""

from __future__ import annotations

import datetime
import json
import math
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from themis import __version__
from themis.core.escaping import escape_control
from themis.core.redaction import Redactor
from themis.server.charts import bars

__all__ = ["Links", "Pages", "ServerLinks", "beginning", "duration", "moment", "money", "number", "pretty", "whole"]

# Longer texts are shown in part, with a link to the whole.
_SHOWN_CHARACTERS = 20_000


class Links(Protocol):
    """Where things are."""

    is_live: bool

    def static(self, name: str) -> str: ...
    def runs(self) -> str: ...
    def run(self, run_id: str, **query: Any) -> str: ...
    def sample(self, run_id: str, item_id: str) -> str: ...
    def compare(self, run_ids: list[str]) -> str: ...


class ServerLinks:
    """Addresses of a running server."""

    is_live = True

    def static(self, name: str) -> str:
        return f"/static/{name}?{__version__}"

    def runs(self) -> str:
        return "/runs"

    def run(self, run_id: str, **query: Any) -> str:
        wanted = {name: value for name, value in query.items() if value not in (None, "", 0)}
        return f"/runs/{quote(run_id, safe='')}" + (f"?{urlencode(wanted)}" if wanted else "")

    def sample(self, run_id: str, item_id: str) -> str:
        # As a query, because an item may be called `..` or hold slashes.
        return f"/runs/{quote(run_id, safe='')}/sample?{urlencode({'item': item_id})}"

    def compare(self, run_ids: list[str]) -> str:
        return f"/compare?{urlencode([('run', run_id) for run_id in run_ids])}"


class Pages:
    """The templates with what they all need."""

    def __init__(self, links: Links, *, has_token: bool = False, read_only: bool = False) -> None:
        self._redactor = Redactor()
        self._environment = Environment(
            loader=PackageLoader("themis.server"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            # Whatever a template puts out passes here, so no place can be forgotten.
            finalize=self._shown,
        )
        self._environment.filters.update(
            number=number,
            whole=whole,
            money=money,
            moment=moment,
            duration=duration,
            pretty=pretty,
            beginning=beginning,
            urlencode_all=lambda text: quote(text, safe=""),
        )
        self._environment.globals.update(
            links=links, version=__version__, has_token=has_token, read_only=read_only, bars_of=bars
        )

    def render(self, template: str, **values: Any) -> str:
        return self._environment.get_template(template).render(**values)

    def _shown(self, value: Any) -> Any:
        if isinstance(value, Markup):
            return value
        if isinstance(value, str):
            return escape_control(self._redactor.values(value))
        return "" if value is None else value


def number(value: float | None, digits: int = 3) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return f"{value:.{digits}f}"


def whole(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def money(value: float | None) -> str:
    if value is None:
        return "unknown"
    return "$0" if value == 0 else f"${value:.4f}" if value < 1 else f"${value:,.2f}"


def moment(value: datetime.datetime | None) -> str:
    """In UTC: the server does not know where its reader is; the page's script shows their own time."""
    return "" if value is None else value.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if 0 < seconds < 0.001:
        return "< 1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def pretty(value: Any) -> str:
    """A value as indented JSON; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)


def beginning(text: str | None, characters: int = _SHOWN_CHARACTERS) -> str:
    if text is None or len(text) <= characters:
        return text or ""
    return f"{text[:characters]}…"
