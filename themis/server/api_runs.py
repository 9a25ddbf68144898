"""`/api/runs`: runs, their samples, their turns, their files."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlencode

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request
from fastapi import Path as InPath
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from themis.core.codec import decode, encode, json_bytes
from themis.core.files import atomic_write
from themis.core.redaction import Redactor
from themis.experiment.export.as_json import export_json, export_summary
from themis.experiment.export.as_tables import export_csv
from themis.experiment.export.samples import join_samples
from themis.runs.report import build_report
from themis.server.api_documents import EXAMPLE_RUN, EXAMPLE_SAMPLE, PROBLEMS, UNDELETABLE, example
from themis.server.errors import NotFound
from themis.server.json_answers import json_answer
from themis.server.shapes import run_line, sample_line, whole_sample
from themis.server.state import Answer, Served, served
from themis.storage import RunStatus
from themis.storage.queries import RunReader
from themis.storage.search import (
    OUTCOMES,
    RUN_SORTS,
    SAMPLE_SORTS,
    RunFilter,
    SampleFilter,
    count_answers,
    find_runs,
    find_samples,
    overview,
    scores_of,
    why_failed,
)

__all__ = ["LONGEST_SEARCH", "read_sample", "router"]

router = APIRouter(prefix="/api/runs", tags=["runs"])

Serving = Annotated[Served, Depends(served)]
RunId = Annotated[str, InPath(description="The run's id", examples=["countdown-baseline"])]
Offset = Annotated[int, Query(ge=0, le=10_000_000_000, description="So many are passed over")]
# Databases take no pattern of any length.
LONGEST_SEARCH = 1_000
# Two kinds of page: of runs, and of samples, which have texts.
_MOST_RUNS = 1_000
_MOST_SAMPLES = 200
_MOST_TURNS = 1_000

Kind = Literal["samples", "memory"]
Status = Literal["in_progress", "completed", "interrupted", "failed", "cancelled"]
assert set(Status.__args__) == {status.value for status in RunStatus}  # type: ignore[attr-defined]


@router.get("", summary="Runs in the store", responses={**example([EXAMPLE_RUN]), **PROBLEMS})
async def list_runs(
    request: Request,
    serving: Serving,
    status: Annotated[Status | None, Query(description="Only runs of this status")] = None,
    model: Annotated[str | None, Query(description="Only runs of this model", examples=["fake:perfect"])] = None,
    benchmark: Annotated[str | None, Query(description="Only runs of this benchmark")] = None,
    kind: Annotated[Kind | None, Query(description="Only runs of this kind")] = None,
    tag: Annotated[str | None, Query(description="`name` or `name=value`")] = None,
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
    filters = {"status": status, "model": model, "benchmark": benchmark, "kind": kind, "tag": tag}
    wanted = RunFilter(**filters, search=q)
    question = ("runs", wanted, sort, limit, offset)

    def make() -> Answer:
        if not serving.store.exists():
            return Answer(b"[]", "application/json", {"x-total-count": "0"})
        name, is_down = sort.removeprefix("-"), sort.startswith("-")
        page = find_runs(serving.store.engine, wanted, sort=name, descending=is_down, limit=limit, offset=offset)
        lines = [run_line(run, page.answered.get(run.run_id)) for run in page.runs]
        headers = {"x-total-count": str(page.total)}
        if offset + len(page.runs) < page.total:
            following = {**filters, "q": q, "sort": sort, "limit": limit, "offset": offset + len(page.runs)}
            query = urlencode({name: value for name, value in following.items() if value is not None})
            headers["link"] = f'</api/runs?{query}>; rel="next"'
        return Answer(json_bytes(serving.redactor.deep(lines)), "application/json", headers)

    return (await serving.answers.get(question, make)).response(request)


@router.get(
    "/{run_id}", summary="One run with a page of its samples", responses={**example(EXAMPLE_SAMPLE), **PROBLEMS}
)
def get_run(
    serving: Serving,
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
    reader = serving.reader(run_id)
    run = reader.metadata
    answered = count_answers(reader) if run.status is RunStatus.IN_PROGRESS else None
    wanted = SampleFilter(
        search=q, outcome=outcome, metric=metric, sort=sort.removeprefix("-"), descending=sort.startswith("-")
    )
    page = find_samples(reader, wanted, limit=max(limit, 1), offset=offset)
    samples = page.samples if limit else []
    line: dict[str, Any] = serving.redactor.deep(run_line(run, answered, why_failed(reader)))
    return json_answer(
        {
            **line,
            "samples": [sample_line(sample, serving.redactor) for sample in samples],
            "next_offset": offset + len(samples) if page.has_more and samples else None,
            "metadata": {
                "created_at": line["created_at"],
                "completed_at": line["completed_at"],
                "manifest_hash": run.manifest_hash,
                "manifest": serving.redactor.deep(run.config_snapshot.get("reproducibility_manifest", {})),
            },
        }
    )


@router.delete(
    "/{run_id}",
    summary="Remove a run",
    responses={**example({"deleted": "countdown-baseline"}, "Removed"), **UNDELETABLE, **PROBLEMS},
)
def delete_run(
    serving: Serving,
    run_id: RunId,
    x_confirm_delete: Annotated[str | None, Header(description="The run's id again, percent-encoded")] = None,
) -> Response:
    """Removes a run with its records, scores and turns. Needs `X-Confirm-Delete` with the run's id."""
    if serving.settings.read_only:
        raise HTTPException(403, "this server is read-only")
    serving.reader(run_id)
    if unquote(x_confirm_delete or "") != run_id:
        raise HTTPException(428, f"to delete the run, repeat its id in the header X-Confirm-Delete: {run_id}")
    serving.store.delete_run(run_id)
    return json_answer({"deleted": run_id})


@router.get(
    "/{run_id}/overview", summary="Distribution of scores, failures by kind, slowest samples", responses=PROBLEMS
)
def get_overview(serving: Serving, run_id: RunId) -> Response:
    return json_answer(serving.redactor.deep(_plain(overview(serving.reader(run_id)))))


@router.get("/{run_id}/turns", summary="The conversation of a memory run", responses=PROBLEMS)
def get_turns(
    serving: Serving,
    run_id: RunId,
    after: Annotated[int, Query(ge=-1, le=2**62, description="The number of the last row seen")] = -1,
    limit: Annotated[int, Query(ge=1, le=_MOST_TURNS)] = 100,
    test_id: Annotated[str | None, Query(description="Only rows of this test")] = None,
) -> Response:
    """Rows in order: what was sent, what came back, when tests begin, wait and end."""
    test_ids = None if test_id is None else [test_id]
    turns = serving.reader(run_id).read_turns(after=after, limit=limit, test_ids=test_ids)
    rows = [
        {"seq": turn.seq, "kind": turn.kind, "test_id": turn.test_id, **serving.redactor.deep(decode(turn.body))}
        for turn in turns
    ]
    return json_answer({"run_id": run_id, "turns": rows, "next_after": turns[-1].seq if len(turns) == limit else None})


@router.get("/{run_id}/export", summary="The run as a file", responses={200: {"description": "The file"}, **PROBLEMS})
def export_run(
    serving: Serving,
    run_id: RunId,
    format: Annotated[Literal["json", "jsonl", "csv", "summary"], Query(description="What kind of file")] = "json",
) -> Response:
    """The whole run: `json` and `csv` as `themis export` writes them, `jsonl` one sample a line, `summary` the numbers."""
    serving.reader(run_id)
    folder = tempfile.TemporaryDirectory(prefix="themis-export-")
    ending = "json" if format == "summary" else format
    path = Path(folder.name) / f"report.{ending}"
    try:
        with serving.heavy():
            report = build_report(serving.store, run_id)
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
                        line: dict[str, Any] = {"id": sample.sample_id, "prompt": sample.prompt}
                        line |= {"response": sample.output, "reference": sample.reference}
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


@router.get("/{run_id}/samples/{item:path}", summary="One sample with everything stored of it", responses=PROBLEMS)
def get_sample(
    serving: Serving, run_id: RunId, item: Annotated[str, InPath(description="The item's id", examples=["a"])]
) -> Response:
    return json_answer(read_sample(serving.reader(run_id), item, serving.redactor))


def read_sample(reader: RunReader, item_id: str, redactor: Redactor) -> dict[str, Any]:
    """A sample of a run; an unknown one is a 404."""
    found = reader.record(item_id)
    if found is None:
        has_dataset = reader.position(item_id) is not None
        where = "has no answer yet" if has_dataset else f"is not in run {reader.metadata.run_id}"
        raise NotFound(f"Sample not found: {item_id} {where}")
    position, record = found
    judged = None if reader.evaluation is None else reader.evaluation_of(reader.evaluation, item_id)
    return whole_sample(position, record, judged, scores_of(reader, position), redactor)


def _plain(found: Any) -> dict[str, Any]:
    return {
        "answered": found.answered,
        "failed": found.failed,
        "failures": [vars(kind) for kind in found.failures],
        "failures_read": found.failures_read,
        "slowest": [{"id": item_id, "seconds": seconds} for item_id, seconds in found.slowest],
        "histograms": [vars(histogram) for histogram in found.histograms],
    }
