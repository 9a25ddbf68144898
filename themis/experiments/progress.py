"""Shows an experiment while it goes on, on stderr: a line for each run that ended, and below them, in a terminal, one for all."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence

from themis.core.entities import Result
from themis.core.markup import escape_control, truncate
from themis.core.redaction import redact_text
from themis.experiments.checking import CheckedRun
from themis.experiments.expanding import PlannedRun
from themis.experiments.running import EndedRun, Watch
from themis.runs.observers import Observer, Progress, RunStart, Totals
from themis.runs.report import OVERALL
from themis.storage import ExperimentStorage, RunStatus

__all__ = ["ExperimentProgress"]

_REDRAW_SECONDS = 0.2
_LONGEST_REASON = 300


class ExperimentProgress(Watch):
    """Lines on stderr; with `is_live` also one that moves, drawn with rich. Runs tell it from their threads."""

    def __init__(self, name: str, runs: Sequence[CheckedRun], store: ExperimentStorage, *, is_live: bool) -> None:
        self._store = store
        self._total = len(runs)
        self._ended: set[str] = set()
        self._lock = threading.RLock()
        self._live = _LiveLine(name, len(runs), sum(run.items for run in runs)) if is_live else None

    def observers(self, run: PlannedRun) -> Sequence[Observer]:
        return [] if self._live is None else [_Counting(self._live)]

    def on_stop(self) -> None:
        self._print("stopping: finishing the calls under way and saving; Ctrl-C again stops at once")

    def on_end(self, ended: EndedRun) -> None:
        described = self._describe(ended)
        with self._lock:
            self._ended.add(ended.run.run_id)
            self._print(f"[{len(self._ended)}/{self._total}] {ended.run.name}: {described}")
            if self._live is not None:
                self._live.on_run(len(self._ended))

    def close(self) -> None:
        """Takes the moving line away."""
        if self._live is not None:
            self._live.close()

    def _describe(self, ended: EndedRun) -> str:
        if ended.status is not RunStatus.COMPLETED:
            status = "not begun" if ended.status is None else ended.status.value
            return truncate(f"{status}: {' '.join(ended.reason.split())}", _LONGEST_REASON)
        run = self._store.get_run(ended.run.run_id)
        metrics = run.summary.get("metrics", {})
        shown = {OVERALL: metrics[OVERALL]} if OVERALL in metrics and run.kind == "memory" else metrics
        scores = [f"{name} {metric['mean']:.4f}" for name, metric in shown.items() if metric.get("mean") is not None]
        failed = [f"{run.failed_generations:,} failed"] if run.failed_generations else []
        cost = "unknown price" if run.total_cost_usd is None else f"${run.total_cost_usd:.4f}"
        return ", ".join([*scores[:3], f"{run.total_samples:,} items", *failed, cost])

    def _print(self, line: str) -> None:
        shown = redact_text(escape_control(line))
        if self._live is not None:
            self._live.print(shown)
        else:
            print(shown, file=sys.stderr, flush=True)


class _LiveLine:
    """One bar for all runs: how many ended, items, rate, cost, failures."""

    def __init__(self, name: str, runs: int, items: int) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._lock = threading.RLock()
        self._totals = Totals()
        self._runs = runs
        self._began = time.monotonic()
        self._drawn = 0.0
        self._ended = 0
        self._waiting = ""
        self._bar = Bar(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            refresh_per_second=5,
            transient=True,
        )
        self._task = self._bar.add_task(escape(name), total=items, numbers="")
        self._bar.start()

    def print(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False)

    def on_start(self, done: int) -> None:
        self._bar.advance(self._task, done)

    def on_answers(self, results: Sequence[Result], fresh: int) -> None:
        with self._lock:
            self._totals.add_results(results)
        self._bar.advance(self._task, fresh)
        self._draw()

    def on_run(self, ended: int) -> None:
        self._ended = ended
        self._draw(now=True)

    def on_waiting(self, waiting: str) -> None:
        self._waiting = waiting
        self._draw()

    def close(self) -> None:
        self._bar.stop()

    def _draw(self, *, now: bool = False) -> None:
        moment = time.monotonic()
        if now or moment - self._drawn > _REDRAW_SECONDS:
            self._drawn = moment
            self._bar.update(self._task, numbers=self._numbers(moment))

    def _numbers(self, now: float) -> str:
        totals = self._totals
        parts = [f"{self._ended}/{self._runs} runs"]
        parts += [f"{totals.calls / max(now - self._began, 1e-3):.1f}/s"] if totals.calls else []
        parts += [f"${totals.cost_usd:.4f}"] if totals.cost_usd else []
        parts += [f"[red]{totals.failed} failed[/red]"] if totals.failed else []
        parts += ["[yellow]waiting[/yellow]"] if self._waiting else []
        return " · ".join(parts)


class _Counting(Observer):
    """Hears one run and adds to the line of all."""

    def __init__(self, line: _LiveLine) -> None:
        self._line = line
        # Another attempt at an item that was counted already.
        self._counted: set[int] = set()

    def on_start(self, run: RunStart) -> None:
        self._line.on_start(run.done)

    def on_answers(self, results: list[Result]) -> None:
        fresh = {result.position for result in results} - self._counted
        self._counted |= fresh
        self._line.on_answers(results, len(fresh))

    def on_progress(self, progress: Callable[[], Progress]) -> None:
        self._line.on_waiting(progress().waiting)
