"""The runs of a session of tests: one store, ids from the tests' names, and a line for each at the end.

Loaded by `themis.testing.plugin` with `pytest --themis`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from themis.api import evaluate
from themis.core.entities import ExperimentReport
from themis.core.secrets import read_dotenv
from themis.exceptions import RunBusyError, ThemisError
from themis.runs.observers import Observer, RunStart
from themis.runs.report import report_standing
from themis.runs.resuming import STORAGE_VARIABLE
from themis.storage import DEFAULT_STORAGE, RunStatus

# Under this name a test's report carries its runs, also from another process, and JUnit files show them.
_PROPERTY = "themis"
_LONGEST_RUN_ID = 120
_OTHER_STORAGE = ("storage_path", "storage_backend")
_SHARED = "Tests that share a run belong in one file, and that in one process: pytest -n N --dist loadfile"
# Runs, each with its store, that this session has begun anew.
_BEGUN: pytest.StashKey[set[tuple[str, ...]]] = pytest.StashKey()


class TestedRuns:
    """What the fixture `themis` gives: the evaluations of one test.

    Args:
        node: The test.
        storage: Where its runs are kept.
        defaults: Arguments of `evaluate` that calls need not give.
    """

    # It is no class of tests, whatever it is called.
    __test__ = False

    def __init__(self, node: pytest.Item, storage: str | Path, defaults: Mapping[str, object]) -> None:
        self.storage = storage
        self._node = node
        self._defaults = defaults
        self._count = 0

    def __repr__(self) -> str:
        return f"<runs of {self._node.nodeid} in {self.storage}>"

    def evaluate(self, benchmark_or_dataset: object, **arguments: object) -> ExperimentReport:
        """`themis.evaluate`, in the session's store and under the test's name.

        The same test goes on where it stopped and asks nothing twice. Where prompt, model or rows have changed it starts
        anew, with every stored answer that still fits; the run before is archived.

        Args:
            benchmark_or_dataset: As for `themis.evaluate`.
            **arguments: The others of `themis.evaluate`; a `run_id` of your own lets several tests share a run.
        """
        __tracebackhide__ = True
        asked = {**self._defaults, **arguments}
        self._count += 1
        asked.setdefault("run_id", _make_run_id(self._node.nodeid, self._count))
        if not any(name in asked for name in _OTHER_STORAGE):
            asked.setdefault("storage", self.storage)
        goes_on = not self._must_be_fresh(asked)
        for name in ("resume", "allow_drift"):
            asked.setdefault(name, goes_on)
        observers = asked.pop("observers", ())
        watching = [*(observers if isinstance(observers, list | tuple) else [observers]), _Note(self._node)]
        try:
            report = evaluate(benchmark_or_dataset, observers=watching, **asked)  # type: ignore[arg-type]
        except RunBusyError as busy:
            raise RunBusyError(f"{busy}. {_SHARED}" if self._is_one_of_many else str(busy)) from None
        except ThemisError as error:
            # Who reads a test's failure is told by its message; where in here it was raised says nothing to them.
            raise error.with_traceback(None) from error.__cause__
        if (larger := report.metadata.get("larger_budget_usd")) is not None:
            # A limit that a part of the samples keeps is none that the run keeps.
            pytest.fail(
                f"run {report.run_id} is not complete: {report.metadata['stopped']}; budget_usd={larger:g} goes on"
            )
        return report

    @property
    def _is_one_of_many(self) -> bool:
        """Whether other processes run tests of the same session."""
        return hasattr(self._node.config, "workerinput")

    def _must_be_fresh(self, asked: Mapping[str, object]) -> bool:
        """With `--themis-fresh`, once: tests that share a run do not ask everything again one after the other."""
        if not self._node.config.getoption("--themis-fresh"):
            return False
        begun = self._node.config.stash.setdefault(_BEGUN, set())
        run = tuple(str(asked.get(name)) for name in ("run_id", "storage", *_OTHER_STORAGE))
        is_first = run not in begun
        begun.add(run)
        return is_first


@pytest.fixture
def tested_runs(request: pytest.FixtureRequest) -> TestedRuns:
    """What the fixture `themis` hands out."""
    defaults: dict[str, object] = {}
    # From the module's marker to the function's own, which wins.
    for marker in reversed(list(request.node.iter_markers("themis"))):
        if marker.args:
            pytest.fail(
                f"@pytest.mark.themis takes arguments of themis.evaluate by name, such as model=..., got {marker.args[0]!r}",
                pytrace=False,
            )
        defaults |= marker.kwargs
    return TestedRuns(request.node, _find_storage(request.config), defaults)


def _find_storage(config: pytest.Config) -> str | Path:
    if given := config.getoption("--themis-storage"):
        return str(given)
    read_dotenv()
    return os.environ.get(STORAGE_VARIABLE) or config.rootpath / DEFAULT_STORAGE


def _make_run_id(test: str, number: int) -> str:
    """A test's name as a run id, with a part of its hash where another test's name could become the same."""
    plain = re.sub(r"[^\w.]+", "-", test).strip("-.")
    is_unique = re.fullmatch(r"[\w./:]+", test) is not None and len(plain) <= _LONGEST_RUN_ID
    name = plain if is_unique else f"{plain[:_LONGEST_RUN_ID]}-{hashlib.sha256(test.encode()).hexdigest()[:6]}"
    return name if number == 1 else f"{name}-{number}"


# --- a line a run -----------------------------------------------------------------------------------------------------


class _Note(Observer):
    """Notes with a test what came of its run."""

    def __init__(self, node: pytest.Item) -> None:
        self._node = node
        self._run_id = ""

    def on_start(self, run: RunStart) -> None:
        self._run_id = run.run_id

    def on_end(self, status: RunStatus, report: ExperimentReport | None) -> None:
        told = f"{self._run_id}: {status}" if report is None else _describe(report)
        self._node.user_properties.append((_PROPERTY, told))


def _describe(report: ExperimentReport) -> str:
    metrics = [f"{name} {metric.describe()}" for name, metric in report.evaluation_report.metrics.items()]
    cost = report.metadata["cost"]["total_cost"]
    paid = "price unknown" if cost is None else f"${cost:.4f}"
    return f"{report.run_id}: {' · '.join([*metrics, paid, str(report_standing(report))])}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    # A test has a report for each of its phases, every one of them carries what the test has noted until then, and tests
    # that share a run note the same of it.
    told = dict.fromkeys(
        text
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, text in getattr(report, "user_properties", ())
        if name == _PROPERTY
    )
    if not told:
        return
    terminalreporter.section(f"themis: runs in {_shorten(_find_storage(config))}")
    for text in told:
        terminalreporter.line(text)


def _shorten(storage: str | Path) -> str:
    path = Path(storage)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else storage)
