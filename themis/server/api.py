"""`/api`: runs with their samples, turns and files; comparisons; what can be named; and what happens, as it happens."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import tempfile
from collections.abc import AsyncIterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlencode

from fastapi import APIRouter, Header, HTTPException, Query, Request, WebSocket, WebSocketDisconnect
from fastapi import Path as InPath
from fastapi.responses import FileResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.background import BackgroundTask

from themis import __version__
from themis.comparison.diff import diff_runs, item_row
from themis.comparison.engine import CORRECTIONS
from themis.comparison.gate import Gate
from themis.core.codec import decode, encode, json_bytes
from themis.core.files import atomic_write
from themis.core.transcripts import PICTURES
from themis.evaluation.metrics import METRICS
from themis.experiment.export.as_json import export_json, export_summary
from themis.experiment.export.as_tables import export_csv
from themis.experiment.export.samples import answer_parts, join_samples
from themis.presets.benchmarks import BENCHMARKS
from themis.runs.report import build_report, metric_details
from themis.runs.samples import find_attachment
from themis.server.live import ALL_RUNS, Hub, Subscription
from themis.server.state import Answer, AppState, State, json_answer
from themis.server.views import JSONObject, NotFound, format_sample_line, line_of, parse_sort, run_line, sample_view
from themis.storage import RunStatus
from themis.storage.search import (
    OUTCOMES,
    RUN_SORTS,
    SAMPLE_SORTS,
    Overview,
    RunFilter,
    SampleFilter,
    find_runs,
    find_samples,
    overview,
    store_version,
)

EXAMPLE_RUN: JSONObject = {
    "run_id": "countdown-baseline",
    "experiment_id": "default",
    "status": "completed",
    "num_samples": 50,
    "metrics": {"CountdownValidity": 0.18},
    "created_at": "2026-01-31T23:59:59+00:00",
    "kind": "samples",
    "model": "localchat:qwen/qwen3-1.7b",
    "benchmark": None,
    "cost_usd": 0.0,
}
EXAMPLE_SAMPLE: JSONObject = {
    **EXAMPLE_RUN,
    "samples": [
        {"id": "0", "prompt": "Numbers: 1 2 3\nTarget: 6", "response": "1+2+3", "scores": {"CountdownValidity": 1.0}}
    ],
    "next_offset": 50,
    "metadata": {"created_at": "2026-01-31T23:59:59+00:00"},
}
EXAMPLE_COMPARISON: JSONObject = {
    "run_ids": ["countdown-baseline", "countdown-variant"],
    "metrics": ["CountdownValidity"],
    "best_run_per_metric": {"CountdownValidity": "countdown-variant"},
    "overall_best_run": None,
    "pairwise_results": [
        {
            "metric": "CountdownValidity",
            "delta": -0.04,
            "winner": "tie",
            "p_value": 0.6875,
            "n": 50,
            "pairing": {"n": 50, "items_a": 50, "items_b": 50, "left_out_a": 0, "left_out_b": 0, "changed": 0},
            "judged_differently": "",
        }
    ],
}


def example(value: object, description: str = "Found") -> dict[int | str, JSONObject]:
    """A good answer, as the document shows it."""
    return {200: {"description": description, "content": {"application/json": {"example": value}}}}


def _problem(description: str, detail: str, code: str) -> JSONObject:
    schema = {
        "type": "object",
        "required": ["detail", "code"],
        "properties": {"detail": {"type": "string"}, "code": {"type": "string"}},
    }
    content = {"application/json": {"schema": schema, "example": {"detail": detail, "code": code}}}
    return {"description": description, "content": content}


PROBLEMS: dict[int | str, JSONObject] = {
    400: _problem(
        "What was asked for cannot be done", "unknown outcome 'rigth' (did you mean 'right'?)", "bad_request"
    ),
    401: _problem("The server asks for a token", "this server asks for a token", "token_needed"),
    404: _problem("Not found", "Run not found: countdown-basline (did you mean 'countdown-baseline'?)", "not_found"),
    422: _problem("A value is not of the right kind", "query.limit: Input should be less than 1001", "invalid"),
    503: _problem("The store cannot be read now", "the store stayed locked by another process", "storage"),
}
UNDELETABLE: dict[int | str, JSONObject] = {
    403: _problem("The server is read-only", "this server is read-only", "refused"),
    409: _problem("The run is being written", "run 'a' is being written by process 7 on lab; stop it first", "busy"),
    428: _problem(
        "Not confirmed", "to delete the run, repeat its id in the header X-Confirm-Delete", "confirmation_needed"
    ),
}


runs = APIRouter(prefix="/api/runs", tags=["runs"])
comparisons = APIRouter(prefix="/api", tags=["comparing"])
names = APIRouter(prefix="/api", tags=["names and health"])
live = APIRouter(tags=["live"])

RunId = Annotated[str, InPath(description="The run's id", examples=["countdown-baseline"])]
Offset = Annotated[int, Query(ge=0, le=10_000_000_000, description="So many are passed over")]
# Databases take no pattern of any length.
LONGEST_SEARCH = 1_000
# Two kinds of page: of runs, and of samples, which have texts.
_MOST_RUNS = 1_000
_MOST_SAMPLES = 200
_MOST_TURNS = 1_000
_MOST_COMPARED = 20

Kind = Literal["samples", "memory"]
Status = Literal["in_progress", "completed", "interrupted", "failed", "cancelled"]
assert set(Status.__args__) == {status.value for status in RunStatus}  # type: ignore[attr-defined]


@runs.get("", summary="Runs in the store", responses={**example([EXAMPLE_RUN]), **PROBLEMS})
async def list_runs(
    request: Request,
    state: State,
    status: Annotated[Status | None, Query(description="Only runs of this status")] = None,
    model: Annotated[str | None, Query(description="Only runs of this model", examples=["fake:perfect"])] = None,
    benchmark: Annotated[str | None, Query(description="Only runs of this benchmark")] = None,
    kind: Annotated[Kind | None, Query(description="Only runs of this kind")] = None,
    tag: Annotated[str | None, Query(description="`name` or `name=value`")] = None,
    experiment: Annotated[str | None, Query(description="Only runs of this experiment")] = None,
    q: Annotated[
        str | None, Query(max_length=LONGEST_SEARCH, description="A part of the run id, model or benchmark")
    ] = None,
    sort: Annotated[
        str, Query(description=f"One of {', '.join(RUN_SORTS)}; with a `-` before it descending")
    ] = "-created",
    limit: Annotated[int, Query(ge=1, le=_MOST_RUNS)] = 100,
    offset: Offset = 0,
) -> Response:
    """A list of runs. `X-Total-Count` says how many fit, `Link` where the next page is."""
    filters = {
        "status": status,
        "model": model,
        "benchmark": benchmark,
        "kind": kind,
        "tag": tag,
        "experiment": experiment,
    }
    wanted = RunFilter(**filters, search=q)
    question = ("runs", wanted, sort, limit, offset)

    def make() -> Answer:
        if not state.store.exists():
            return Answer(b"[]", "application/json", {"x-total-count": "0"})
        page = find_runs(state.store.engine, wanted, **parse_sort(sort), limit=limit, offset=offset)
        lines = [run_line(run, page.answered.get(run.run_id)) for run in page.runs]
        headers = {"x-total-count": str(page.total)}
        if offset + len(page.runs) < page.total:
            following = {**filters, "q": q, "sort": sort, "limit": limit, "offset": offset + len(page.runs)}
            query = urlencode({name: value for name, value in following.items() if value is not None})
            headers["link"] = f'</api/runs?{query}>; rel="next"'
        return Answer(json_bytes(state.redactor.deep(lines)), "application/json", headers)

    return (await state.cache.get(question, make)).response(request)


@runs.get(
    "/{run_id}",
    summary="One run with a page of its samples",
    responses={**example(EXAMPLE_SAMPLE), **PROBLEMS},
)
def get_run(
    state: State,
    run_id: RunId,
    q: Annotated[
        str | None, Query(max_length=LONGEST_SEARCH, description="Text in ids, prompts, answers or errors")
    ] = None,
    outcome: Annotated[str, Query(description=f"One of {', '.join(OUTCOMES)}")] = "all",
    metric: Annotated[str | None, Query(description="The metric that outcome and sort go by")] = None,
    sort: Annotated[str, Query(description=f"One of {', '.join(SAMPLE_SORTS)}; with a `-` descending")] = "dataset",
    limit: Annotated[int, Query(ge=0, le=_MOST_SAMPLES)] = 50,
    offset: Offset = 0,
) -> Response:
    """Texts of more than 100,000 characters are cut here (`is_cut`); `/samples/{item}` has them whole."""
    reader = state.reader(run_id)
    run = reader.metadata
    wanted = SampleFilter(search=q, outcome=outcome, metric=metric, **parse_sort(sort))
    page = find_samples(reader, wanted, limit=max(limit, 1), offset=offset)
    samples = page.samples if limit else []
    line: JSONObject = state.redactor.deep(line_of(reader))
    return json_answer(
        {
            **line,
            "samples": [format_sample_line(sample, state.redactor) for sample in samples],
            "next_offset": offset + len(samples) if page.has_more and samples else None,
            "metadata": {
                "created_at": line["created_at"],
                "completed_at": line["completed_at"],
                "manifest_hash": run.manifest_hash,
                "manifest": state.redactor.deep(run.config_snapshot.get("reproducibility_manifest", {})),
                "parameters": state.redactor.deep(run.summary.get("parameters")),
            },
        }
    )


@runs.delete(
    "/{run_id}",
    summary="Remove a run",
    responses={**example({"deleted": "countdown-baseline"}, "Removed"), **UNDELETABLE, **PROBLEMS},
)
def delete_run(
    state: State,
    run_id: RunId,
    x_confirm_delete: Annotated[str | None, Header(description="The run's id again, percent-encoded")] = None,
) -> Response:
    """Removes a run with its records, scores and turns. Needs `X-Confirm-Delete` with the run's id."""
    if state.settings.read_only:
        raise HTTPException(403, "this server is read-only")
    state.reader(run_id)
    if unquote(x_confirm_delete or "") != run_id:
        raise HTTPException(428, f"to delete the run, repeat its id in the header X-Confirm-Delete: {run_id}")
    state.store.delete_run(run_id)
    return json_answer({"deleted": run_id})


@runs.get(
    "/{run_id}/overview",
    summary="Distribution of scores, failures by kind, slowest samples, confusion matrix and reliability",
    responses=PROBLEMS,
)
def get_overview(state: State, run_id: RunId) -> Response:
    reader = state.reader(run_id)
    return json_answer(state.redactor.deep({**_format_overview(overview(reader)), "details": metric_details(reader)}))


@runs.get("/{run_id}/turns", summary="The conversation of a memory run", responses=PROBLEMS)
def get_turns(
    state: State,
    run_id: RunId,
    after: Annotated[int, Query(ge=-1, le=2**62, description="The number of the last row seen")] = -1,
    limit: Annotated[int, Query(ge=1, le=_MOST_TURNS)] = 100,
    test_id: Annotated[str | None, Query(description="Only rows of this test")] = None,
) -> Response:
    """Rows in order: what was sent, what came back, when tests begin, wait and end."""
    test_ids = None if test_id is None else [test_id]
    turns = state.reader(run_id).read_turns(after=after, limit=limit, test_ids=test_ids)
    rows = [
        {"seq": turn.seq, "kind": turn.kind, "test_id": turn.test_id, **state.redactor.deep(decode(turn.body))}
        for turn in turns
    ]
    return json_answer({"run_id": run_id, "turns": rows, "next_after": turns[-1].seq if len(turns) == limit else None})


@runs.get(
    "/{run_id}/export",
    summary="The run as a file",
    responses={200: {"description": "The file"}, **PROBLEMS},
)
def export_run(
    state: State,
    run_id: RunId,
    format: Annotated[Literal["json", "jsonl", "csv", "summary"], Query(description="What kind of file")] = "json",
) -> Response:
    """The whole run: `json` and `csv` as `themis export` writes them, `jsonl` one sample a line, `summary` the numbers."""
    state.reader(run_id)
    folder = tempfile.TemporaryDirectory(prefix="themis-export-")
    ending = "json" if format == "summary" else format
    path = Path(folder.name) / f"report.{ending}"
    try:
        with state.limit_heavy():
            report = build_report(state.store, run_id)
            if format == "csv":
                export_csv(report, path)
            elif format == "summary":
                export_summary(report, path, run_id=run_id)
            elif format == "json":
                export_json(report, path, run_id=run_id)
            else:
                with atomic_write(path) as file:
                    for sample in join_samples(report):
                        scores = {score.metric_name: score.value for score in sample.scores}
                        line: JSONObject = {"id": sample.sample_id, "prompt": sample.prompt}
                        line |= {"response": sample.output, "reference": sample.reference}
                        line |= answer_parts(None if sample.record is None else sample.record.output)
                        line |= {"scores": scores, "failures": sample.failures}
                        file.write(encode(line).encode("utf-8", "backslashreplace") + b"\n")
    except BaseException:
        folder.cleanup()
        raise
    media_type = {"csv": "text/csv", "jsonl": "application/x-ndjson"}.get(format, "application/json")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", run_id) or "run"
    return FileResponse(
        path,
        media_type=media_type,
        filename=f"{name}.{ending}" if format != "summary" else f"{name}-summary.json",
        background=BackgroundTask(folder.cleanup),
    )


@runs.get(
    "/{run_id}/samples/{item:path}",
    summary="One sample with everything stored of it",
    responses=PROBLEMS,
)
def get_sample(
    state: State, run_id: RunId, item: Annotated[str, InPath(description="The item's id", examples=["a"])]
) -> Response:
    return json_answer(sample_view(state.reader(run_id), item, state.redactor))


Digest = Annotated[
    str, InPath(pattern="^[0-9a-f]{64}$", description="SHA-256 of the content", examples=[hashlib.sha256().hexdigest()])
]


@runs.get(
    "/{run_id}/attachments/{digest}",
    summary="An image or a file that messages of a run name",
    responses={200: {"description": "The content: an image of a kind that browsers draw, or a file"}, **PROBLEMS},
)
def get_attachment(
    state: State,
    run_id: RunId,
    digest: Digest,
    item: Annotated[str | None, Query(description="The item, where its messages hold the content themselves")] = None,
) -> Response:
    """PNG, JPEG, GIF, WebP and AVIF come as what they are; everything else as a file to keep, which no browser opens."""
    found = find_attachment(state.reader(run_id), digest, item)
    if found is None:
        raise NotFound(f"run {run_id} has no attachment {digest[:12]}…" + (f" in {item}" if item is not None else ""))
    return Response(found.content, headers=attachment_headers(found.media_type))


def attachment_headers(media_type: str) -> dict[str, str]:
    """How content of others' making is sent: nothing in it can act, whatever it calls itself."""
    is_picture = media_type in PICTURES
    return {
        "content-type": media_type if is_picture else "application/octet-stream",
        "content-disposition": "inline" if is_picture else "attachment",
        "content-security-policy": "default-src 'none'; sandbox",
        "cache-control": "no-store",
    }


def _format_overview(found: Overview) -> JSONObject:
    return {
        "answered": found.answered,
        "failed": found.failed,
        "failures": [vars(kind) for kind in found.failures],
        "failures_read": found.failures_read,
        "slowest": [{"id": item_id, "seconds": seconds} for item_id, seconds in found.slowest],
        "histograms": [vars(histogram) for histogram in found.histograms],
    }


# --- what runs differ in, and whether that is enough ------------------------------------------------------------------


_ACROSS = "Pair items by id whatever they hold, and weigh runs that were judged differently; the answer says so."


class ComparisonRequest(BaseModel):
    """Which runs, on which metrics, by which test."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "run_ids": ["countdown-baseline", "countdown-variant"],
                    "metrics": ["CountdownValidity"],
                    "statistical_test": "auto",
                    "alpha": 0.05,
                }
            ]
        }
    )

    run_ids: list[str] = Field(max_length=_MOST_COMPARED)
    metrics: list[str] | None = None
    statistical_test: str = "auto"
    alpha: float = Field(default=0.05, gt=0, lt=1)
    correction: str | None = Field(default="holm-bonferroni", description=f"{', '.join(CORRECTIONS)} or null")
    across: bool = Field(default=False, description=_ACROSS)


class DiffRequest(BaseModel):
    """Two runs item by item. `only` is broken, fixed, both-wrong or both-right."""

    run_a: str
    run_b: str
    metric: str | None = None
    only: str | None = None
    threshold: float = Field(default=0.5, allow_inf_nan=False)
    limit: int = Field(default=100, ge=1, le=500)
    offset: int = Field(default=0, ge=0, le=100_000_000)
    across: bool = Field(default=False, description=_ACROSS)


class GateRequest(BaseModel):
    """Whether a candidate may replace a baseline."""

    candidate: str
    baseline: str
    metric: str
    min_delta: float | None = Field(default=None, allow_inf_nan=False)
    significant: bool = False
    non_inferiority: float | None = Field(default=None, allow_inf_nan=False)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    min_overlap: float = Field(default=0.5, ge=0, le=1)
    budget_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_failed: int | None = Field(default=None, ge=0)
    require_same: list[str] = Field(default_factory=list, max_length=50)
    lower_is_better: bool | None = None
    across: bool = Field(default=False, description=_ACROSS)


@comparisons.post("/compare", summary="Compare runs", responses={**example(EXAMPLE_COMPARISON), **PROBLEMS})
def compare_stored(state: State, wanted: ComparisonRequest) -> Response:
    """Every two of the runs on the metrics that all have, or on those named."""
    return json_answer(state.compare(**wanted.model_dump()).to_dict())


@comparisons.post("/diff", summary="Which items a second run fixed and broke", responses=PROBLEMS)
def diff_stored(state: State, wanted: DiffRequest) -> Response:
    """Counts for every metric, and the items with what both runs said, changed ones first."""
    for run_id in (wanted.run_a, wanted.run_b):
        state.reader(run_id)
    metrics = None if wanted.metric is None else [wanted.metric]
    with state.limit_heavy():
        diff = diff_runs(
            wanted.run_a,
            wanted.run_b,
            storage=state.store,
            metrics=metrics,
            threshold=wanted.threshold,
            across=wanted.across,
        )
        last = wanted.offset + wanted.limit
        found = list(islice(diff.items(only=wanted.only, limit=last + 1), wanted.offset, last + 1))
    items = [item_row(item) for item in found[: wanted.limit]]
    return json_answer(
        {
            **diff.to_dict(),
            "items": state.redactor.deep(items),
            "next_offset": last if len(found) > wanted.limit else None,
        }
    )


@comparisons.post("/gate", summary="May a candidate replace a baseline?", responses=PROBLEMS)
def gate_stored(state: State, wanted: GateRequest) -> Response:
    """`verdict` is pass, fail or unknown; `reasons` say why."""
    for run_id in (wanted.candidate, wanted.baseline):
        state.reader(run_id)
    fields = wanted.model_dump(exclude={"candidate"})
    required = tuple(fields.pop("require_same"))
    with state.limit_heavy():
        verdict = Gate(**fields, require_same=required).judge(wanted.candidate, storage=state.store)
    return json_answer(verdict.to_dict())


# --- what can be named, and how the server is -------------------------------------------------------------------------


@names.get("/benchmarks", summary="Benchmarks", responses={**example({"benchmarks": ["gsm8k"]}), **PROBLEMS})
def benchmarks() -> Response:
    return json_answer({"benchmarks": BENCHMARKS.names()})


@names.get("/metrics", summary="Metrics", responses={**example({"metrics": ["exact_match"]}), **PROBLEMS})
def metrics() -> Response:
    return json_answer({"metrics": METRICS.names()})


@names.get("/health", summary="Whether the store can be read", responses={**example({"status": "ok"}), **PROBLEMS})
def health(state: State) -> Response:
    """Needs no token."""
    if state.store.exists():
        store_version(state.store.engine)
    return json_answer({"status": "ok"})


@names.get("/version", summary="The version", responses={**example({"version": __version__}), **PROBLEMS})
def version() -> Response:
    return json_answer({"version": __version__})


# --- live: server-sent events, and a WebSocket -------------------------------------------------------------------------

_HEARTBEAT_SECONDS = 15.0
_MOST_TOPICS = 100
_MOST_CHARACTERS = 10_000
_STREAM: dict[int | str, JSONObject] = {
    200: {"description": "A stream that does not end by itself", "content": {"text/event-stream": {}}}
}


@live.get("/api/events", summary="Changes of runs as they happen", responses={**_STREAM, **PROBLEMS})
async def all_events(state: State) -> StreamingResponse:
    """`run` events whenever a run is written to."""
    return _stream(state.hub, ALL_RUNS)


@live.get("/api/runs/{run_id}/events", summary="One run as it goes on", responses={**_STREAM, **PROBLEMS})
async def run_events(state: State, run_id: str) -> StreamingResponse:
    """First how the run stands, then `run`, `sample` and `turn` events as they are committed."""
    await asyncio.to_thread(state.reader, run_id)
    return _stream(state.hub, run_id)


def _stream(hub: Hub, topic: str) -> StreamingResponse:
    return StreamingResponse(
        _lines(hub, topic),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _lines(hub: Hub, topic: str) -> AsyncIterator[str]:
    with hub.subscribe() as listener:
        listener.topics.add(topic)
        # Tells the browser how long to wait before it comes back, and that the stream is open.
        yield "retry: 2000\n\n"
        if topic != ALL_RUNS and (now := await hub.snapshot(topic)) is not None:
            yield f"event: {now.kind}\ndata: {now.text}\n\n"
        while True:
            try:
                event = await asyncio.wait_for(listener.next(), _HEARTBEAT_SECONDS)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if event is None:
                return
            yield f"event: {event.kind}\ndata: {event.text}\n\n"


@live.get("/ws", include_in_schema=False)
async def no_upgrade(request: Request) -> None:
    """Reached when a WebSocket was wanted but the server program cannot speak it, or none was wanted."""
    if request.headers.get("upgrade", "").lower() == "websocket":
        raise HTTPException(501, "WebSockets need the package websockets on the server; /api/events works without it")
    raise HTTPException(426, "this address speaks WebSocket; /api/events has the same as server-sent events")


@live.websocket("/ws")
async def websocket(socket: WebSocket) -> None:
    """Takes `{"type": "ping" | "subscribe" | "unsubscribe", "run_id": id}`; subscribing to `*` watches all runs."""
    state: AppState = socket.app.state.themis
    hub = state.hub
    await socket.accept()
    with hub.subscribe() as listener:
        sender = asyncio.create_task(_forward(socket, listener))
        try:
            while True:
                answer = _reply_to(listener, await _receive_text(socket))
                await socket.send_text(json.dumps(answer))
                if answer["type"] == "subscribed":
                    await _watch(hub, listener, answer["run_id"])
        except (WebSocketDisconnect, RuntimeError):
            pass  # the other side is gone, or the server stops
        finally:
            sender.cancel()


async def _receive_text(socket: WebSocket) -> str:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    text: str = message.get("text") or (message.get("bytes") or b"").decode("utf-8", "replace")
    return text


def _reply_to(listener: Subscription, text: str) -> dict[str, str]:
    try:
        parsed = json.loads(text) if len(text) <= _MOST_CHARACTERS else None
    except (ValueError, RecursionError):
        return {"type": "error", "message": "Invalid JSON"}
    message: dict[str, object] = parsed if isinstance(parsed, dict) else {}
    kind = message.get("type")
    if kind == "ping":
        return {"type": "pong"}
    if kind not in ("subscribe", "unsubscribe"):
        return {"type": "error", "message": f"Unknown message type: {kind!r}; known: ping, subscribe, unsubscribe"}
    run_id = message.get("run_id")
    if not isinstance(run_id, str) or not run_id:
        return {"type": "error", "message": f"{kind} needs the run_id, a string"}
    if kind == "unsubscribe":
        listener.topics.discard(run_id)
        return {"type": "unsubscribed", "run_id": run_id}
    if len(listener.topics) >= _MOST_TOPICS:
        return {"type": "error", "message": f"one connection watches at most {_MOST_TOPICS} runs"}
    return {"type": "subscribed", "run_id": run_id}


async def _watch(hub: Hub, listener: Subscription, run_id: str) -> None:
    listener.topics.add(run_id)
    if run_id != ALL_RUNS and (now := await hub.snapshot(run_id)) is not None:
        listener.offer(now)


async def _forward(socket: WebSocket, listener: Subscription) -> None:
    while (event := await listener.next()) is not None:
        await socket.send_text(event.text)
    await socket.close(1001)
