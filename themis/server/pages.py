"""The pages of a server: routes, and the templates that they render.

Templates escape everything. The same ones make the static copy of `--bundle`; only the links differ.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Container, Mapping
from typing import Annotated, Protocol
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from themis import __version__
from themis.comparison.engine import StatisticalTest
from themis.comparison.reports import short_labels
from themis.core.markup import escape_control
from themis.core.messages import format_transcript
from themis.core.redaction import Redactor
from themis.core.transcripts import ShownCall, ShownPart, list_turns, shorten_data
from themis.exceptions import ThemisError
from themis.runs.report import format_duration, parameter_facts, performance_facts
from themis.runs.resuming import how_to_resume_stored
from themis.runs.samples import messages_before, messages_of_attempt
from themis.server.api import LONGEST_SEARCH
from themis.server.memory_views import chat_view, gantt_view
from themis.server.state import Answer, AppState, State, Version
from themis.server.tokens import COOKIE, LIFETIME_SECONDS, is_token, new_session
from themis.server.views import (
    SAMPLES_SHOWN,
    JSONObject,
    NotFound,
    comparison_view,
    histogram_bars,
    list_measures,
    parse_sort,
    pictures,
    run_progress,
    run_view,
    runs_view,
    sample_view,
)
from themis.storage import ExperimentStorage
from themis.storage.queries import RunReader
from themis.storage.search import (
    OUTCOMES,
    RUN_SORTS,
    RunFilter,
    SampleFilter,
    find_runs,
    neighbours,
    newest,
    overview,
    store_version,
)

# Longer texts are shown in part, with a link to the whole.
_LONGEST_LINE = 100
_SHOWN_CHARACTERS = 20_000


class Links(Protocol):
    """Where things are."""

    is_live: bool

    def static(self, name: str) -> str: ...
    def runs(self) -> str: ...
    def run(self, run_id: str, **query: str | int | None) -> str: ...
    def sample(self, run_id: str, item_id: str) -> str: ...
    def attachment(self, run_id: str, item_id: str, part: ShownPart) -> str: ...
    def compare(self, run_ids: list[str]) -> str: ...


class ServerLinks:
    """Addresses of a running server."""

    is_live = True

    def static(self, name: str) -> str:
        return f"/static/{name}?{__version__}"

    def runs(self) -> str:
        return "/runs"

    def run(self, run_id: str, **query: str | int | None) -> str:
        wanted = {name: value for name, value in query.items() if value not in (None, "", 0)}
        return f"/runs/{quote(run_id, safe='')}" + (f"?{urlencode(wanted)}" if wanted else "")

    def sample(self, run_id: str, item_id: str) -> str:
        # As a query, because an item may be called `..` or hold slashes.
        return f"/runs/{quote(run_id, safe='')}/sample?{urlencode({'item': item_id})}"

    def attachment(self, run_id: str, item_id: str, part: ShownPart) -> str:
        # What is stored is known by its digest alone; what stands in a message is found in its sample.
        where = "" if part.content is None else f"?{urlencode({'item': item_id})}"
        return f"/api/runs/{quote(run_id, safe='')}/attachments/{part.digest}{where}"

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
            finalize=self._finalize,
        )
        self._environment.filters.update(
            number=number,
            whole=whole,
            money=money,
            moment=moment,
            duration=format_duration,
            performance_facts=lambda found: performance_facts(found).items(),
            pretty=pretty,
            beginning=beginning,
            tone=tone,
            shorten_data=shorten_data,
            written_call=lambda call: ShownCall(call.name, call.arguments, call.invalid).written,
            is_web_address=lambda text: text.startswith(("https://", "http://")),
            urlencode_all=lambda text: quote(text, safe=""),
        )
        self._environment.globals.update(
            links=links, version=__version__, has_token=has_token, read_only=read_only, bars_of=histogram_bars
        )

    def render(self, template: str, **values: object) -> str:
        return self._environment.get_template(template).render(**values)

    def render_run(
        self,
        reader: RunReader,
        wanted: SampleFilter,
        chosen: Mapping[str, str],
        *,
        store: ExperimentStorage,
        redactor: Redactor,
        offset: int = 0,
        limit: int = SAMPLES_SHOWN,
        after: int | None = None,
        test: str = "",
    ) -> str:
        """The page of one run, whatever its kind.

        Args:
            reader: The run.
            wanted: Which samples are listed, in which order.
            chosen: The same as the page's form says it.
            store: Where it is, for the command that goes on with it.
            redactor: Takes secrets out of the manifest.
            offset: So many samples are passed over.
            limit: So many are listed.
            after: The last row of the conversation that the page before this one showed.
            test: The memory test to whose rows the conversation is narrowed.
        """
        view = run_view(reader, wanted, offset=offset, limit=limit)
        is_memory = view.run.kind == "memory"
        return self.render(
            "run.html",
            view=view,
            measures=list_measures(reader),
            tests=gantt_view(reader) if is_memory else None,
            chat=chat_view(reader, after=after, test_id=test or None) if is_memory else None,
            chosen={**chosen, "metric": view.wanted.metric or ""},
            outcomes=OUTCOMES,
            resume=how_to_resume_stored(store, view.run) if view.run.is_abandoned else None,
            manifest=redactor.deep(view.run.config_snapshot.get("reproducibility_manifest", {})),
            parameters=parameter_facts(redactor.deep(view.run.summary.get("parameters"))),
            test=test,
        )

    def render_sample(self, reader: RunReader, sample: JSONObject, before: str | None, after: str | None) -> str:
        """The page of one sample.

        Args:
            reader: Of the run that it belongs to.
            sample: As `sample_view` tells it.
            before: The sample before it in the dataset, if there is one.
            after: The one after it.
        """
        attempts = [{**one, "turns": list_turns(messages_of_attempt(one))} for one in sample["attempts"]]
        return self.render(
            "sample.html",
            run=reader.metadata,
            measures=list_measures(reader),
            sample={**sample, "attempts": attempts},
            asked=list_turns(messages_before(sample)),
            has_several=len(attempts) > 1,
            before=before,
            after=after,
        )

    def _finalize(self, value: object) -> object:
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


def pretty(value: object) -> str:
    """A value as indented JSON, a short list of plain values on one line; a text as it is."""
    if isinstance(value, str):
        return value
    is_plain = isinstance(value, list) and not any(isinstance(one, list | dict) for one in value)
    line = json.dumps(value, ensure_ascii=False, default=str) if is_plain else ""
    return line if 0 < len(line) <= _LONGEST_LINE else json.dumps(value, indent=2, ensure_ascii=False, default=str)


def beginning(text: str | None, characters: int = _SHOWN_CHARACTERS) -> str:
    if text is None or len(text) <= characters:
        return text or ""
    return f"{text[:characters]}…"


def tone(value: float | None, metric: str, measures: Container[str]) -> str:
    """How a score is coloured; not at all where it is no share of what is good."""
    if value is None:
        return "failed"
    return "" if metric in measures or not 0 <= value <= 1 else "good" if value >= 0.5 else "bad"


# --- routes ------------------------------------------------------------------------------------------------------------


router = APIRouter(include_in_schema=False)

_MOST_SUGGESTED = 200
# Of a run in a table beside others; the whole id is where it links to.
_LONGEST_NAME = 32


async def get_pages(request: Request) -> Pages:
    found: Pages = request.app.state.pages
    return found


Rendering = Annotated[Pages, Depends(get_pages)]
# A page is someone's own: it must not stay in a shared cache.
_PRIVATE = {"cache-control": "no-store"}


def _page(pages: Pages, template: str, status: int = 200, **values: object) -> HTMLResponse:
    return HTMLResponse(pages.render(template, **values), status, _PRIVATE)


@router.get("/dashboard/")
@router.get("/dashboard")
def dashboard() -> Response:
    return RedirectResponse("/runs", 303)


@router.get("/runs")
async def list_page(
    request: Request,
    state: State,
    pages: Rendering,
    q: Annotated[str, Query(max_length=LONGEST_SEARCH)] = "",
    status: str = "",
    model: str = "",
    benchmark: str = "",
    kind: str = "",
    tag: str = "",
    sort: str = "-created",
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """Nothing on it is of one visitor, so all who ask the same are answered with the same."""
    filters = {"status": status, "model": model, "benchmark": benchmark, "kind": kind, "tag": tag}
    chosen = {"q": q, **filters, "sort": sort}

    def make() -> Answer:
        wanted = RunFilter(search=q or None, **{name: value or None for name, value in filters.items()})
        view = runs_view(state.store, wanted, sort=sort, offset=offset)
        if not view.total and not any(value for name, value in chosen.items() if name != "sort"):
            location = state.redactor.text(str(state.settings.storage_path))
            return Answer(pages.render("start.html", storage=location).encode())
        return Answer(pages.render("runs.html", view=view, chosen=chosen, sorts=RUN_SORTS).encode())

    return (await state.cache.get(("page", *chosen.values(), offset), make)).response(request)


@router.get("/runs/{run_id}")
def run_page(
    state: State,
    pages: Rendering,
    run_id: str,
    q: Annotated[str, Query(max_length=LONGEST_SEARCH)] = "",
    outcome: str = "all",
    metric: str = "",
    sort: str = "dataset",
    offset: Annotated[int, Query(ge=0, le=10_000_000_000)] = 0,
    after: Annotated[int | None, Query(ge=-1, le=2**62)] = None,
    test: str = "",
) -> Response:
    wanted = SampleFilter(search=q or None, outcome=outcome, metric=metric or None, **parse_sort(sort))
    chosen = {"q": q, "outcome": outcome, "sort": sort}
    page = pages.render_run(
        state.reader(run_id),
        wanted,
        chosen,
        store=state.store,
        redactor=state.redactor,
        offset=offset,
        after=after,
        test=test,
    )
    return HTMLResponse(page, headers=_PRIVATE)


@router.get("/runs/{run_id}/overview")
def overview_fragment(state: State, pages: Rendering, run_id: str) -> Response:
    """The part of a long run's page that takes a look at every score."""
    reader = state.reader(run_id)
    return _page(pages, "overview.html", run=reader.metadata, overview=overview(reader), pictures=pictures(reader))


@router.get("/runs/{run_id}/progress")
async def progress_fragment(request: Request, state: State, pages: Rendering, run_id: str) -> Response:
    """The part of a page that changes while its run is under way, made once for all who follow it."""

    def make() -> Answer:
        reader = state.reader(run_id)
        run = reader.metadata
        line, scores = run_progress(reader)
        tests = gantt_view(reader) if run.kind == "memory" else None
        return Answer(pages.render("progress.html", run=run, line=line, scores=scores, tests=tests).encode())

    def version() -> Version:
        return store_version(state.store.engine) + newest(state.reader(run_id))

    return (await state.cache.get(("progress", run_id), make, version)).response(request)


@router.get("/runs/{run_id}/sample")
def sample_page(state: State, pages: Rendering, run_id: str, item: str) -> Response:
    reader = state.reader(run_id)
    sample = sample_view(reader, item, state.redactor)
    before, after = neighbours(reader, sample["position"])
    return HTMLResponse(pages.render_sample(reader, sample, before, after), headers=_PRIVATE)


@router.get("/runs/{run_id}/text")
def sample_text(
    state: State,
    run_id: str,
    item: str,
    part: str = "response",
    attempt: Annotated[int, Query(ge=0, le=10_000)] = 0,
) -> Response:
    """A long prompt, answer or conversation as it is: plain text, which no browser acts on."""
    sample = sample_view(state.reader(run_id), item, state.redactor)
    found = next((one for one in sample["attempts"] if one["attempt"] == attempt), None)
    if part == "prompt":
        text = sample["prompt"]
    elif found is None:
        raise NotFound(f"Sample {item} has {len(sample['attempts'])} attempts, and none with the number {attempt}")
    elif part == "conversation":
        text = format_transcript([*messages_before(sample), *messages_of_attempt(found)])
    else:
        text = found["reasoning" if part == "reasoning" else "response"] or ""
    return PlainTextResponse(text.encode("utf-8", "backslashreplace"), headers=_PRIVATE)


@router.get("/compare")
def compare_page(
    state: State,
    pages: Rendering,
    run: Annotated[list[str], Query()] = [],  # noqa: B006
    metric: str = "",
    test: str = StatisticalTest.AUTO.value,
    across: bool = False,
) -> Response:
    run_ids = [run_id for run_id in dict.fromkeys(run) if run_id]
    known = find_runs(state.store.engine, limit=_MOST_SUGGESTED).runs if state.store.exists() else []
    suggested = [one.run_id for one in known]
    tests = [one.value for one in StatisticalTest]
    shared: JSONObject = {"chosen": run_ids, "suggested": suggested, "tests": tests, "test": test, "metric": metric}
    shared["across"] = across
    if len(run_ids) < 2:
        return _page(pages, "compare.html", report=None, metrics=[], problem=None, **shared)
    try:
        report = state.compare(run_ids, metrics=[metric] if metric else None, statistical_test=test, across=across)
        metrics = comparison_view(state.store, report)
    except NotFound as error:
        return _page(pages, "compare.html", 404, report=None, metrics=[], problem=str(error), **shared)
    except ThemisError as error:
        problem = state.redactor.text(str(error))
        return _page(pages, "compare.html", 400, report=None, metrics=[], problem=problem, **shared)
    names = short_labels(report.run_ids, _LONGEST_NAME)
    return _page(pages, "compare.html", report=report, metrics=metrics, names=names, problem=None, **shared)


@router.get("/docs")
def api_page(request: Request, pages: Rendering) -> Response:
    return _page(pages, "docs.html", document=request.app.openapi())


# --- the way in -------------------------------------------------------------------------------------------------------


@router.get("/login")
def login_page(request: Request, state: State, pages: Rendering, next: str = "/runs", token: str = "") -> Response:
    """With a token in the address, as in the link that `themis serve` prints, the browser is let in and sent on to an
    address without it, so that none stays in its history."""
    if token:
        return _enter(request, state, pages, token, next)
    return _page(pages, "login.html", target=_own_path(next), problem=None)


@router.post("/login")
async def login(request: Request, state: State, pages: Rendering) -> Response:
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    return _enter(request, state, pages, form.get("token", [""])[0].strip(), form.get("next", ["/runs"])[0])


def _enter(request: Request, state: AppState, pages: Pages, given: str, next: str) -> Response:
    target, settings = _own_path(next), state.settings
    if settings.token is None:
        return RedirectResponse(target, 303, _PRIVATE)
    # A link's token is too long to be guessed; whoever has it is not kept out by others who try from the same address.
    if settings.link_token is None or not is_token(settings.link_token, given):
        # Before the token is looked at: trying many must not pay.
        wait = state.token_tries.count(request.client.host if request.client else "")
        if wait or not is_token(settings.token, given):
            problem = f"Too many tries; wait {int(wait) + 1} s." if wait else "That is not this server's token."
            return _page(pages, "login.html", 429 if wait else 403, target=target, problem=problem)
    # A proxy that speaks HTTPS asks us by HTTP; the browser says what it speaks itself.
    is_encrypted = "https" in (request.url.scheme, urlsplit(request.headers.get("origin", "")).scheme)
    answer = RedirectResponse(target, 303, _PRIVATE)
    answer.set_cookie(
        COOKIE,
        new_session(settings.token),
        max_age=LIFETIME_SECONDS,
        httponly=True,
        samesite="strict",
        secure=is_encrypted,
    )
    return answer


@router.post("/logout")
def logout() -> Response:
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


@router.get("/favicon.ico")
def favicon() -> Response:
    return RedirectResponse("/static/scales.svg", 301)


def _own_path(target: str) -> str:
    """A path on this server, whatever a link to the login page says."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return "/runs"
    is_own = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_own and not parts.scheme and not parts.netloc else "/runs"
