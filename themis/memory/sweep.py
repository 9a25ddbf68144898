"""Runs a configuration with several agents over several spans and seeds, and puts the runs together by agent.

Every span and seed has its own definitions, which all agents share. Each run can be resumed like any other: the same
command goes on where it stopped, and what is complete is not run again.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from themis import comparison
from themis.backends.ray import RayExecutionBackend
from themis.comparison.reports import ComparisonResult
from themis.config.specification import MemorySpecification
from themis.core.redaction import redact_text
from themis.exceptions import ConfigurationError, ThemisError
from themis.memory import definitions
from themis.memory.assembling import assemble_driver, default_run_id, load_config, parse_span
from themis.memory.report import RunView, read_view, ways_of_judging
from themis.memory.report.charts import SpanPoint, SpanSeries
from themis.memory.results import (
    RunResults,
    ScoredTest,
    StoredResult,
    interval_of_mean,
    points_of,
    summarise_results,
)
from themis.memory.spans import Point, effective_span
from themis.memory.timeline import Timeline
from themis.runs.lifecycle import run, start_or_resume
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.database import is_url
from themis.storage.writing import LEASE_SECONDS

logger = logging.getLogger(__name__)

# How often a run is taken up on Ray when its process is lost.
_ATTEMPTS = 3
_LEAVE_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What to run. `load` are Python files of the user's that every process needs."""

    configuration: str
    agents: Sequence[str]
    spans: Sequence[int]
    seeds: int = 1
    max_prompt_tokens: int | None = None
    judge: str | None = None
    is_local: bool = False
    load: Sequence[str] = ()


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep."""

    run_id: str
    run_name: str
    agent: str
    span_tokens: int
    seed: int


@dataclass(frozen=True)
class SweepReport:
    """The runs of a sweep by agent: pooled, along spans, and against each other."""

    agents: list[RunView]
    spans: list[SpanSeries]
    comparisons: list[ComparisonResult]
    missing: list[SweepRun] = field(default_factory=list)


def parse_spans(text: str) -> list[int]:
    """`2k,8k,1M` as tokens."""
    spans = [parse_span(part) for part in text.split(",")]
    if len(set(spans)) < len(spans):
        raise ConfigurationError(f"a span is given twice in {text!r}")
    return sorted(spans)


def plan_sweep(sweep: Sweep) -> list[SweepRun]:
    """Every run of the sweep, those of one span and seed together."""
    if len(set(sweep.agents)) < len(sweep.agents):
        raise ConfigurationError("an agent is given twice; each agent runs once for every span and seed")
    if sweep.seeds < 1:
        raise ConfigurationError(f"--seeds is at least 1, got {sweep.seeds}")
    runs = []
    for span in sweep.spans:
        for seed in range(sweep.seeds):
            for agent in sweep.agents:
                request = _request(sweep, agent, span, seed)
                run_name = load_config(request).run_name
                runs.append(SweepRun(default_run_id(run_name, request), run_name, agent, span, seed))
    return runs


def run_sweep(
    sweep: Sweep,
    storage: ExperimentStorage,
    *,
    parallel: int | None = None,
    backend: RayExecutionBackend | None = None,
    tell: Callable[[SweepRun, str | None], None] = lambda one, error: None,
) -> list[SweepRun]:
    """Runs what is left of the sweep, so many runs at once. A run that fails does not stop the others; returns those.

    Runs are made here one after another, with `parallel` in so many processes, or in those of a Ray cluster: then
    `parallel` is at most, and by default, one for each CPU of the cluster.
    """
    runs = plan_sweep(sweep)
    failed = []
    with closing(_run_each(sweep, runs, storage, parallel, backend)) as ended:
        for one, error in ended:
            if error is not None:
                failed.append(one)
            tell(one, error)
    return failed


def _run_each(
    sweep: Sweep,
    runs: list[SweepRun],
    storage: ExperimentStorage,
    parallel: int | None,
    backend: RayExecutionBackend | None,
) -> Generator[tuple[SweepRun, str | None]]:
    """Every run when it has ended, with what went wrong."""
    location = storage.location if is_url(storage.location) else os.path.abspath(storage.location)
    run_one = partial(_run, sweep, str(location))
    if backend is None and (parallel or 1) == 1:
        yield from ((one, run_one(one)) for one in runs)
        return
    if backend is not None and not is_url(location) and not backend.is_on_one_machine:
        raise ConfigurationError(
            f"the runs of a cluster of several machines cannot share the file {str(location)!r}; "
            "give a PostgreSQL database: --storage postgresql://..."
        )
    # Definitions are made before, in one place: processes would otherwise make the same ones at once.
    for one in {planned.run_name: planned for planned in runs}.values():
        config = load_config(_request(sweep, one.agent, one.span_tokens, one.seed))
        definitions.prepare(config, storage, reuse=lambda question: True, regenerate=False)
    if backend is None:
        yield from _in_processes(run_one, runs, parallel or 1)
    else:
        yield from _on_ray(sweep, str(location), runs, backend, parallel)


def _in_processes(
    run_one: Callable[[SweepRun], str | None], runs: list[SweepRun], processes: int
) -> Iterator[tuple[SweepRun, str | None]]:
    # Processes and not threads: an agent may be shown the virtual time by moving its process's clock.
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    # Between runs an interrupt, which comes to all processes, is for the sweep to hear.
    ignore = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(processes, mp_context=context, initializer=ignore) as pool:
        waiting = {pool.submit(_run_unless_stopped, run_one, one): one for one in runs}
        try:
            for finished in as_completed(waiting):
                try:
                    yield waiting[finished], finished.result()
                except BrokenProcessPool as error:
                    yield waiting[finished], _describe_crash(error)
        except KeyboardInterrupt:
            # A signal may have come to this process alone: the runs are told to save and stop too.
            for child in set(multiprocessing.active_children()) - before:
                if child.pid is not None:
                    os.kill(child.pid, signal.SIGINT)
            raise
        finally:
            pool.shutdown(cancel_futures=True)


# In a process of the sweep: whether a run was stopped here, so that those which wait for it do not begin.
_stopped = threading.Event()


def _run_unless_stopped(run_one: Callable[[SweepRun], str | None], one: SweepRun) -> str | None:
    if _stopped.is_set():
        return "not begun: the sweep was stopped"
    try:
        return run_one(one)
    except KeyboardInterrupt:
        _stopped.set()
        # A pool that broke ends its processes by a signal and waits for them, but tells this one nothing more.
        leave = threading.Timer(_LEAVE_SECONDS, os._exit, (130,))
        leave.daemon = True
        leave.start()
        raise


def _on_ray(
    sweep: Sweep, location: str, runs: list[SweepRun], backend: RayExecutionBackend, at_once: int | None
) -> Iterator[tuple[SweepRun, str | None]]:
    def ended(one: SweepRun) -> Iterator[str | None]:
        if is_url(location) or os.path.exists(location):
            yield _run(sweep, location, one)
        else:  # a machine that has joined the cluster since
            yield f"there is no {location} on the machine of this run; give a PostgreSQL database: --storage postgresql://..."

    for attempt in range(1, _ATTEMPTS + 1):
        lost = []
        for one, result in backend.stream(ended, runs, max_workers=at_once):
            if isinstance(result, BaseException) and attempt < _ATTEMPTS:
                logger.warning("%s %s; it is taken up again", one.run_id, _describe_crash(result))
                lost.append(one)
            else:
                yield one, _describe_crash(result) if isinstance(result, BaseException) else result
        if not lost:
            return
        if not backend.is_on_one_machine:  # where nobody can see that the writer of a run is gone
            time.sleep(LEASE_SECONDS)
        runs = lost


def _describe_crash(error: BaseException) -> str:
    return redact_text(f"broke off: {type(error).__name__}: {' '.join(str(error).split())[:300]}")


def _run(sweep: Sweep, location: str, one: SweepRun) -> str | None:
    """Runs one; returns what went wrong."""
    storage = ExperimentStorage(location)
    try:
        request = _request(sweep, one.agent, one.span_tokens, one.seed)
        driver = assemble_driver(request, storage, reuse=lambda question: True)
        if storage.run_exists(one.run_id):
            start_or_resume(driver, storage)
            if storage.get_run(one.run_id).status is RunStatus.COMPLETED:
                return None
        report = run(driver, storage)
        return None if report.status == RunStatus.COMPLETED else str(report.metadata.get("stopped") or report.status)
    except ThemisError as error:
        return str(error)
    except Exception as error:  # boundary: an agent is the user's code, and the other runs go on
        return _describe_crash(error)
    finally:
        storage.close()


def _request(sweep: Sweep, agent: str, span_tokens: int, seed: int) -> MemorySpecification:
    return MemorySpecification(
        configuration=sweep.configuration,
        agent=agent,
        max_prompt_tokens=sweep.max_prompt_tokens,
        judge=sweep.judge,
        is_local=sweep.is_local,
        span_tokens=span_tokens,
        seed=seed,
        load=sweep.load,
    )


# --- what came of it --------------------------------------------------------------------------------------------------


def read_sweep(sweep: Sweep, storage: ExperimentStorage) -> SweepReport:
    """The runs that are there, by agent."""
    return read_runs(plan_sweep(sweep), storage)


def read_runs(runs: Sequence[SweepRun], storage: ExperimentStorage) -> SweepReport:
    """The same for runs under whatever ids: an experiment's have its name."""
    found: dict[str, list[tuple[SweepRun, RunView]]] = {one.agent: [] for one in runs}
    missing = []
    for one in runs:
        if storage.run_exists(one.run_id) and storage.reader(one.run_id).has_dataset:
            found[one.agent].append((one, read_view(storage, one.run_id)))
        else:
            missing.append(one)
    there = {agent: members for agent, members in found.items() if members}
    if not there:
        raise ConfigurationError("no run of this sweep is in the store")
    return SweepReport(
        agents=[_pool_runs(agent, members) for agent, members in there.items()],
        spans=[SpanSeries(agent, _score_by_span(members)) for agent, members in there.items()],
        comparisons=comparison.compare_scores(
            {agent: _scores(members) for agent, members in there.items()},
            {agent: _contents(members) for agent, members in there.items()},
            ways_of_judging({agent: [view for _, view in members] for agent, members in there.items()}),
        ),
        missing=missing,
    )


def _score_by_span(members: Iterable[tuple[SweepRun, RunView]]) -> list[SpanPoint]:
    by_span: dict[int, list[ScoredTest]] = {}
    for one, view in members:
        for result in view.results:
            if result.score is not None:
                by_span.setdefault(one.span_tokens, []).append(ScoredTest(result.score, one.seed))
    points = []
    for span, tests in sorted(by_span.items()):
        # Tests of one run share a conversation; with one run alone they are all there is to go by.
        low, high = interval_of_mean(tests)
        mean = sum(test.score for test in tests) / len(tests)
        points.append(SpanPoint(span, mean, low, high, len({test.conversation for test in tests})))
    return points


def _scores(members: Iterable[tuple[SweepRun, RunView]]) -> dict[tuple[Hashable, str], float | None]:
    return {
        ((one.span_tokens, one.seed), result.test_id): result.score for one, view in members for result in view.results
    }


def _contents(members: Iterable[tuple[SweepRun, RunView]]) -> dict[tuple[Hashable, str], str]:
    return {
        ((one.span_tokens, one.seed), result.test_id): result.fingerprint
        for one, view in members
        for result in view.results
    }


def _pool_runs(agent: str, members: Sequence[tuple[SweepRun, RunView]]) -> RunView:
    """All runs of an agent as one: every test of every run, and what they took together."""
    results: list[StoredResult] = []
    points: list[Point] = []
    conversations: list[Hashable] = []
    for one, view in members:
        points += points_of(view.results, one.run_id)
        conversations += [one.run_id] * len(view.results)
        results += [
            replace(result, example_id=f"{result.example_id} · {one.span_tokens} · seed {one.seed}")
            for result in view.results
        ]
    every = [view.found.run for _, view in members]
    together = msgspec.structs.replace(
        every[0],
        run_id=agent,
        model=f"agent:{agent}",
        cost_usd=_total(stored.cost_usd for stored in every),
        judge_cost_usd=_total(stored.judge_cost_usd for stored in every),
        judge_calls=sum(stored.judge_calls for stored in every),
        seconds=sum(stored.seconds for stored in every),
    )
    found = RunResults(together, results, members[0][1].found.judged_as)
    said = sum(view.summary.verbosity_tokens or 0 for _, view in members)
    summary = summarise_results(found, verbosity_tokens=said or None, conversations=conversations)
    return RunView(agent, found, replace(summary, effective_span=effective_span(points)), Timeline())


def _total(costs: Iterable[float | None]) -> float | None:
    """A sum that is unknown where a part of it is."""
    known = list(costs)
    return None if None in known else sum(cost or 0.0 for cost in known)
