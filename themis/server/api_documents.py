"""Examples and error shapes for the OpenAPI document."""

from __future__ import annotations

from typing import Any

__all__ = ["EXAMPLE_COMPARISON", "EXAMPLE_RUN", "EXAMPLE_SAMPLE", "PROBLEMS", "UNDELETABLE", "example"]

EXAMPLE_RUN: dict[str, Any] = {
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
EXAMPLE_SAMPLE: dict[str, Any] = {
    **EXAMPLE_RUN,
    "samples": [
        {"id": "0", "prompt": "Numbers: 1 2 3\nTarget: 6", "response": "1+2+3", "scores": {"CountdownValidity": 1.0}}
    ],
    "next_offset": 50,
    "metadata": {"created_at": "2026-01-31T23:59:59+00:00"},
}
EXAMPLE_COMPARISON: dict[str, Any] = {
    "run_ids": ["countdown-baseline", "countdown-variant"],
    "metrics": ["CountdownValidity"],
    "best_run_per_metric": {"CountdownValidity": "countdown-variant"},
    "overall_best_run": None,
    "pairwise_results": [{"metric": "CountdownValidity", "delta": -0.04, "winner": "tie", "p_value": None}],
}


def example(value: Any, description: str = "Found") -> dict[int | str, dict[str, Any]]:
    """A good answer, as the document shows it."""
    return {200: {"description": description, "content": {"application/json": {"example": value}}}}


def _problem(description: str, detail: str, code: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "required": ["detail", "code"],
        "properties": {"detail": {"type": "string"}, "code": {"type": "string"}},
    }
    content = {"application/json": {"schema": schema, "example": {"detail": detail, "code": code}}}
    return {"description": description, "content": content}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: _problem(
        "What was asked for cannot be done", "unknown outcome 'rigth' (did you mean 'right'?)", "bad_request"
    ),
    401: _problem("The server asks for a token", "this server asks for a token", "token_needed"),
    404: _problem("Not found", "Run not found: countdown-basline (did you mean 'countdown-baseline'?)", "not_found"),
    422: _problem("A value is not of the right kind", "query.limit: Input should be less than 1001", "invalid"),
    503: _problem("The store cannot be read now", "the store stayed locked by another process", "storage"),
}
UNDELETABLE: dict[int | str, dict[str, Any]] = {
    403: _problem("The server is read-only", "this server is read-only", "refused"),
    409: _problem("The run is being written", "run 'a' is being written by process 7 on lab; stop it first", "busy"),
    428: _problem(
        "Not confirmed", "to delete the run, repeat its id in the header X-Confirm-Delete", "confirmation_needed"
    ),
}
