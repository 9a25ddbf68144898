"""What pytest loads of Themis in every session: options, a marker, a fixture, and readable failures of limits.

Costs nothing where it is not used: everything else of Themis is imported by `themis.testing.runs`, which pytest loads with
`--themis` alone.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from themis.testing.runs import TestedRuns

_NOT_ASKED_FOR = "asks a model, which may cost money: run pytest with --themis"
# A limit may stand on either side of a comparison.
_TURNED = {">=": "<=", ">": "<", "<=": ">=", "<": ">", "==": "==", "!=": "!="}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("themis", "evaluations of models (Themis)")
    group.addoption("--themis", action="store_true", help="Run the tests that ask models; they are skipped without it.")
    group.addoption(
        "--themis-storage",
        metavar="DIR",
        help="Where their runs are kept: a folder or a database's address. By default THEMIS_STORAGE, or .cache/experiments in "
        "the root directory.",
    )
    group.addoption(
        "--themis-fresh",
        action="store_true",
        help="Ask everything anew; earlier runs of the same tests are archived. By default stored answers are used.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "themis(**arguments): asks a model, so is skipped without --themis; the arguments are defaults of themis.evaluate",
    )
    if config.getoption("--themis"):
        config.pluginmanager.import_plugin("themis.testing.runs")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--themis"):
        return
    for item in items:
        if item.get_closest_marker("themis") is not None:
            item.add_marker(pytest.mark.skip(reason=_NOT_ASKED_FOR))


@pytest.fixture(name="themis")
def themis_fixture(request: pytest.FixtureRequest) -> TestedRuns:
    """Runs of this test: `themis.evaluate(...)` names them after it, so that the same test goes on where it stopped."""
    if not request.config.getoption("--themis"):
        pytest.skip(_NOT_ASKED_FOR)
    runs: TestedRuns = request.getfixturevalue("tested_runs")
    return runs


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Mean, interval, counts, and how the limit lies to them, in place of two reprs."""
    loaded = sys.modules.get("themis.core.thresholds")
    if loaded is None or op not in _TURNED:
        return None
    if isinstance(right, loaded.Measurement) and not isinstance(left, loaded.Measurement):
        op, left, right = _TURNED[op], right, left
    if not isinstance(left, loaded.Measurement) or not isinstance(right, int | float):
        return None
    return [f"{left.name} {loaded.format_measured(left.mean)} {op} {right:g}", left.explain_limit(op, right)]
