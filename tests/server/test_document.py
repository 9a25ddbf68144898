"""Whatever the OpenAPI document allows never makes the server fail, of runs that are there and of runs that are not."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from themis.server import create_app

HOST = {"host": "127.0.0.1"}
# Streams do not end by themselves.
ENDLESS = ("/api/events", "/api/runs/{run_id}/events")
STORED = {
    "run_ids": ["baseline", "variant"],
    "run_a": "baseline",
    "run_b": "variant",
    "candidate": "variant",
    "baseline": "baseline",
    "metric": "ExactMatch",
}


def operations(app: Any) -> list[Any]:
    document = schemathesis.openapi.from_asgi("/openapi.json", app, headers=HOST)
    found = [one.ok() for one in document.get_all_operations()]
    return [one for one in found if one.path not in ENDLESS]


@pytest.mark.parametrize("is_stored", [False, True], ids=["any run", "a stored run"])
def test_nothing_in_the_document_makes_a_server_error(two_runs, is_stored):
    asked = 0
    for operation in operations(create_app(two_runs, read_only=True)):

        @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            nonlocal asked
            if is_stored:
                _name_stored_runs(case)
            case.headers = {**dict(case.headers or {}), **HOST}
            with contextlib.suppress(UnicodeEncodeError):  # what cannot be sent cannot hurt
                answer = case.call()
                asked += 1
                assert answer.status_code < 500, (case.method, case.path, answer.content[:500])

        ask()

    assert asked > 100


def _name_stored_runs(case: Any) -> None:
    if isinstance(case.path_parameters, dict) and "run_id" in case.path_parameters:
        case.path_parameters["run_id"] = "baseline"
    if isinstance(case.body, dict):
        case.body.update({name: value for name, value in STORED.items() if name in case.body})
