"""`/api/compare`, `/api/diff`, `/api/gate`: what two runs differ in, and whether that is enough."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from themis.comparison.diff import diff_runs, item_row
from themis.comparison.engine import CORRECTIONS, ComparisonEngine
from themis.comparison.gate import Gate
from themis.comparison.reports import ComparisonReport
from themis.server.api_documents import EXAMPLE_COMPARISON, PROBLEMS, example
from themis.server.json_answers import json_answer
from themis.server.state import Served, served

__all__ = ["ComparisonRequest", "DiffRequest", "GateRequest", "compare", "router"]

router = APIRouter(prefix="/api", tags=["comparing"])

Serving = Annotated[Served, Depends(served)]
_MOST_RUNS = 20


class ComparisonRequest(BaseModel):
    """Which runs, on which metrics, by which test."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "run_ids": ["countdown-baseline", "countdown-variant"],
                    "metrics": ["CountdownValidity"],
                    "statistical_test": "bootstrap",
                    "alpha": 0.05,
                }
            ]
        }
    )

    run_ids: list[str] = Field(max_length=_MOST_RUNS)
    metrics: list[str] | None = None
    statistical_test: str = "bootstrap"
    alpha: float = Field(default=0.05, gt=0, lt=1)
    correction: str | None = Field(default="holm-bonferroni", description=f"{', '.join(CORRECTIONS)} or null")


class DiffRequest(BaseModel):
    """Two runs item by item. `only` is broken, fixed, both-wrong or both-right."""

    run_a: str
    run_b: str
    metric: str | None = None
    only: str | None = None
    threshold: float = Field(default=0.5, allow_inf_nan=False)
    limit: int = Field(default=100, ge=1, le=500)
    offset: int = Field(default=0, ge=0, le=100_000_000)


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


@router.post("/compare", summary="Compare runs", responses={**example(EXAMPLE_COMPARISON), **PROBLEMS})
def compare_stored(serving: Serving, wanted: ComparisonRequest) -> Response:
    """Every two of the runs on the metrics that all have, or on those named."""
    return json_answer(compare(serving, wanted).to_dict())


def compare(serving: Served, wanted: ComparisonRequest) -> ComparisonReport:
    for run_id in wanted.run_ids:
        serving.reader(run_id)
    engine = ComparisonEngine(
        storage=serving.store,
        statistical_test=wanted.statistical_test,
        alpha=wanted.alpha,
        multiple_comparison_correction=wanted.correction,
    )
    with serving.heavy():
        return engine.compare_runs(wanted.run_ids, metrics=wanted.metrics)


@router.post("/diff", summary="Which items a second run fixed and broke", responses=PROBLEMS)
def diff_stored(serving: Serving, wanted: DiffRequest) -> Response:
    """Counts for every metric, and the items with what both runs said, changed ones first."""
    for run_id in (wanted.run_a, wanted.run_b):
        serving.reader(run_id)
    metrics = None if wanted.metric is None else [wanted.metric]
    with serving.heavy():
        diff = diff_runs(wanted.run_a, wanted.run_b, storage=serving.store, metrics=metrics, threshold=wanted.threshold)
        last = wanted.offset + wanted.limit
        found = list(islice(diff.items(only=wanted.only, limit=last + 1), wanted.offset, last + 1))
    items = [item_row(item) for item in found[: wanted.limit]]
    return json_answer(
        {
            "run_a": wanted.run_a,
            "run_b": wanted.run_b,
            "threshold": wanted.threshold,
            "metrics": {
                name: {
                    "counts": {change.value: count for change, count in metric.counts.items()},
                    "shared": metric.shared,
                    "unscored_a": metric.unscored_a,
                    "unscored_b": metric.unscored_b,
                }
                for name, metric in diff.by_metric.items()
            },
            "items": serving.redactor.deep(items),
            "next_offset": last if len(found) > wanted.limit else None,
        }
    )


@router.post("/gate", summary="May a candidate replace a baseline?", responses=PROBLEMS)
def gate_stored(serving: Serving, wanted: GateRequest) -> Response:
    """`verdict` is pass, fail or unknown; `reasons` say why."""
    for run_id in (wanted.candidate, wanted.baseline):
        serving.reader(run_id)
    fields: dict[str, Any] = wanted.model_dump()
    candidate, required = fields.pop("candidate"), tuple(fields.pop("require_same"))
    with serving.heavy():
        verdict = Gate(**fields, require_same=required).judge(candidate, storage=serving.store)
    return json_answer(verdict.to_dict())
