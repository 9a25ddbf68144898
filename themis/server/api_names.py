"""What can be named (`/api/benchmarks`, `/api/metrics`) and how the server is (`/api/health`, `/api/version`)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from themis import __version__
from themis.evaluation.metrics import METRICS
from themis.presets.registering import BENCHMARKS
from themis.server.api_documents import PROBLEMS, example
from themis.server.json_answers import json_answer
from themis.server.state import Served, served
from themis.storage.search import store_version

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["names and health"])


@router.get("/benchmarks", summary="Benchmarks", responses={**example({"benchmarks": ["gsm8k"]}), **PROBLEMS})
def benchmarks() -> Response:
    return json_answer({"benchmarks": BENCHMARKS.names()})


@router.get("/metrics", summary="Metrics", responses={**example({"metrics": ["exact_match"]}), **PROBLEMS})
def metrics() -> Response:
    return json_answer({"metrics": METRICS.names()})


@router.get("/health", summary="Whether the store can be read", responses={**example({"status": "ok"}), **PROBLEMS})
def health(serving: Annotated[Served, Depends(served)]) -> Response:
    """Needs no token."""
    if serving.store.exists():
        store_version(serving.store.engine)
    return json_answer({"status": "ok"})


@router.get("/version", summary="The version", responses={**example({"version": __version__}), **PROBLEMS})
def version() -> Response:
    return json_answer({"version": __version__})
