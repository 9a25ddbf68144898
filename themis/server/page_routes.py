"""The pages: start and list, a run, a sample, a comparison, the API's description, the way in."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from themis.comparison.engine import StatisticalTest
from themis.comparison.reports import short_labels
from themis.exceptions import ThemisError
from themis.server.api_judging import ComparisonRequest, compare
from themis.server.api_runs import LONGEST_SEARCH, read_sample
from themis.server.errors import NotFound
from themis.server.memory_views import chat_view, drawn_tests
from themis.server.pages import Pages
from themis.server.sessions import COOKIE, LIFETIME_SECONDS, is_token, new_session
from themis.server.state import Answer, Served, served
from themis.server.views import compared, run_so_far, run_view, runs_view
from themis.storage.search import (
    OUTCOMES,
    RUN_SORTS,
    SAMPLE_SORTS,
    RunFilter,
    SampleFilter,
    find_runs,
    neighbours,
    newest,
    overview,
    store_version,
)

__all__ = ["pages", "router"]

router = APIRouter(include_in_schema=False)

Serving = Annotated[Served, Depends(served)]
_MOST_SUGGESTED = 200
# Of a run in a table beside others; the whole id is where it links to.
_LONGEST_NAME = 32


async def pages(request: Request) -> Pages:
    found: Pages = request.app.state.pages
    return found


Rendering = Annotated[Pages, Depends(pages)]
# A page is someone's own: it must not stay in a shared cache.
_PRIVATE = {"cache-control": "no-store"}


def _page(rendering: Pages, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    return HTMLResponse(rendering.render(template, **values), status, _PRIVATE)


@router.get("/dashboard/")
@router.get("/dashboard")
def dashboard() -> Response:
    return RedirectResponse("/runs", 303)


@router.get("/runs")
async def list_page(
    request: Request,
    serving: Serving,
    rendering: Rendering,
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
    chosen = {"q": q, "status": status, "model": model, "benchmark": benchmark, "kind": kind, "tag": tag, "sort": sort}

    def make() -> Answer:
        wanted = RunFilter(
            search=q or None,
            status=status or None,
            model=model or None,
            benchmark=benchmark or None,
            kind=kind or None,
            tag=tag or None,
        )
        name, is_down = sort.removeprefix("-"), sort.startswith("-")
        view = runs_view(serving.store, wanted, sort=name, descending=is_down, offset=offset)
        if not view.total and not any(value for name, value in chosen.items() if name != "sort"):
            location = serving.redactor.text(str(serving.settings.storage_path))
            return Answer(rendering.render("start.html", storage=location).encode())
        return Answer(rendering.render("runs.html", view=view, chosen=chosen, sorts=RUN_SORTS).encode())

    return (await serving.answers.get(("page", *chosen.values(), offset), make)).response(request)


@router.get("/runs/{run_id}")
def run_page(
    serving: Serving,
    rendering: Rendering,
    run_id: str,
    q: Annotated[str, Query(max_length=LONGEST_SEARCH)] = "",
    outcome: str = "all",
    metric: str = "",
    sort: str = "dataset",
    offset: Annotated[int, Query(ge=0, le=10_000_000_000)] = 0,
    after: Annotated[int | None, Query(ge=-1, le=2**62)] = None,
    test: str = "",
) -> Response:
    reader = serving.reader(run_id)
    run = reader.metadata
    wanted = SampleFilter(
        search=q or None,
        outcome=outcome,
        metric=metric or None,
        sort=sort.removeprefix("-"),
        descending=sort.startswith("-"),
    )
    view = run_view(reader, wanted, offset=offset)
    is_memory = run.kind == "memory"
    chosen = {"q": q, "outcome": outcome, "metric": view.wanted.metric or "", "sort": sort}
    manifest = serving.redactor.deep(run.config_snapshot.get("reproducibility_manifest", {}))
    return _page(
        rendering,
        "run.html",
        view=view,
        tests=drawn_tests(reader) if is_memory else None,
        chat=chat_view(reader, after=after, test_id=test or None) if is_memory else None,
        chosen=chosen,
        outcomes=OUTCOMES,
        sorts=SAMPLE_SORTS,
        manifest=manifest,
        test=test,
    )


@router.get("/runs/{run_id}/overview")
def overview_fragment(serving: Serving, rendering: Rendering, run_id: str) -> Response:
    """The part of a long run's page that takes a look at every score."""
    reader = serving.reader(run_id)
    return _page(rendering, "overview.html", run=reader.metadata, overview=overview(reader))


@router.get("/runs/{run_id}/progress")
async def progress_fragment(request: Request, serving: Serving, rendering: Rendering, run_id: str) -> Response:
    """The part of a page that changes while its run is under way, made once for all who follow it."""

    def make() -> Answer:
        reader = serving.reader(run_id)
        run = reader.metadata
        line, scores = run_so_far(reader)
        tests = drawn_tests(reader) if run.kind == "memory" else None
        return Answer(rendering.render("progress.html", run=run, line=line, scores=scores, tests=tests).encode())

    def version() -> tuple[Any, ...]:
        return store_version(serving.store.engine) + newest(serving.reader(run_id))

    return (await serving.answers.get(("progress", run_id), make, version)).response(request)


@router.get("/runs/{run_id}/sample")
def sample_page(serving: Serving, rendering: Rendering, run_id: str, item: str) -> Response:
    reader = serving.reader(run_id)
    sample = read_sample(reader, item, serving.redactor)
    before, after = neighbours(reader, sample["position"])
    return _page(rendering, "sample.html", run=reader.metadata, sample=sample, before=before, after=after)


@router.get("/runs/{run_id}/text")
def sample_text(
    serving: Serving,
    run_id: str,
    item: str,
    part: str = "response",
    attempt: Annotated[int, Query(ge=0, le=10_000)] = 0,
) -> Response:
    """A long prompt or answer as it is: plain text, which no browser acts on."""
    sample = read_sample(serving.reader(run_id), item, serving.redactor)
    if part == "prompt":
        text = sample["prompt"]
    elif attempt < len(sample["attempts"]):
        text = sample["attempts"][attempt]["response"] or ""
    else:
        raise NotFound(f"Sample {item} has {len(sample['attempts'])} attempts")
    return PlainTextResponse(text.encode("utf-8", "backslashreplace"), headers=_PRIVATE)


@router.get("/compare")
def compare_page(
    serving: Serving,
    rendering: Rendering,
    run: Annotated[list[str], Query()] = [],  # noqa: B006
    metric: str = "",
    test: str = StatisticalTest.AUTO.value,
) -> Response:
    run_ids = [run_id for run_id in dict.fromkeys(run) if run_id]
    known = find_runs(serving.store.engine, limit=_MOST_SUGGESTED).runs if serving.store.exists() else []
    suggested = [one.run_id for one in known]
    tests = [one.value for one in StatisticalTest]
    shared: dict[str, Any] = {"chosen": run_ids, "suggested": suggested, "tests": tests, "test": test, "metric": metric}
    if len(run_ids) < 2:
        return _page(rendering, "compare.html", report=None, metrics=[], problem=None, **shared)
    wanted = ComparisonRequest(run_ids=run_ids, metrics=[metric] if metric else None, statistical_test=test)
    try:
        report = compare(serving, wanted)
        metrics = compared(serving.store, report)
    except NotFound as error:
        return _page(rendering, "compare.html", 404, report=None, metrics=[], problem=str(error), **shared)
    except ThemisError as error:
        problem = serving.redactor.text(str(error))
        return _page(rendering, "compare.html", 400, report=None, metrics=[], problem=problem, **shared)
    names = short_labels(report.run_ids, _LONGEST_NAME)
    return _page(rendering, "compare.html", report=report, metrics=metrics, names=names, problem=None, **shared)


@router.get("/docs")
def api_page(request: Request, rendering: Rendering) -> Response:
    return _page(rendering, "docs.html", document=request.app.openapi())


# --- the way in -------------------------------------------------------------------------------------------------------


@router.get("/login")
def login_page(
    request: Request, serving: Serving, rendering: Rendering, next: str = "/runs", token: str = ""
) -> Response:
    """With a token in the address, as in the link that `themis serve` prints, the browser is let in and sent on to an
    address without it, so that none stays in its history."""
    if token:
        return _enter(request, serving, rendering, token, next)
    return _page(rendering, "login.html", target=_own_path(next), problem=None)


@router.post("/login")
async def login(request: Request, serving: Serving, rendering: Rendering) -> Response:
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    return _enter(request, serving, rendering, form.get("token", [""])[0].strip(), form.get("next", ["/runs"])[0])


def _enter(request: Request, serving: Served, rendering: Pages, given: str, next: str) -> Response:
    target, settings = _own_path(next), serving.settings
    if settings.token is None:
        return RedirectResponse(target, 303, _PRIVATE)
    # A link's token is too long to be guessed; whoever has it is not kept out by others who try from the same address.
    if settings.link_token is None or not is_token(settings.link_token, given):
        # Before the token is looked at: trying many must not pay.
        wait = serving.logins.wait_seconds(request.client.host if request.client else "")
        if wait or not is_token(settings.token, given):
            problem = f"Too many tries; wait {int(wait) + 1} s." if wait else "That is not this server's token."
            return _page(rendering, "login.html", 429 if wait else 403, target=target, problem=problem)
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
