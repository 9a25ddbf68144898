"""Shows a run while it goes on, on stderr: a bar with rate, score, cost, failures and what is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from themis.core.entities import EvaluationRecord, ExperimentReport, Result
from themis.runs.observers import Observer, Progress, RunStart, Totals
from themis.storage import RunStatus

__all__ = ["ProgressBar", "is_interactive"]

_REDRAW_SECONDS = 0.2
_LATE_SECONDS = 30.0
_SHOWN_LATE = 3
_LONGEST_WAIT = 80


def is_interactive() -> bool:
    """Whether someone is watching stderr."""
    return sys.stderr.isatty()


class ProgressBar(Observer):
    """Draws with rich. Use only where someone is watching: it writes to stderr."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._escape = escape
        self._bar = Bar(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            refresh_per_second=5,
        )
        self._task = TaskID(0)
        self._totals = Totals()
        self._began = self._drawn = self._late_shown = 0.0
        # Another attempt at an item that was counted already; only what is in flight can come again.
        self._recent: set[int] = set()

    def on_start(self, run: RunStart) -> None:
        self._began = time.monotonic()
        self._task = self._bar.add_task(self._escape(run.run_id), total=run.total, completed=run.done, numbers="")
        self._bar.start()

    def on_answers(self, results: list[Result]) -> None:
        positions = {result.position for result in results}
        fresh = positions - self._recent
        self._recent = positions | set(list(self._recent)[-1000:])
        self._totals.add_results(results)
        self._bar.update(self._task, advance=len(fresh), numbers=self._numbers())

    def on_scores(self, records: list[EvaluationRecord]) -> None:
        self._totals.add_scores(records)

    def on_progress(self, progress: Callable[[], Progress]) -> None:
        now = time.monotonic()
        if now - self._drawn < _REDRAW_SECONDS:
            return
        self._drawn = now
        current = progress()
        self._bar.update(self._task, numbers=self._numbers(current))
        if current.late and now - self._late_shown >= _LATE_SECONDS:
            self._late_shown = now
            for line in current.late[:_SHOWN_LATE]:
                self._bar.console.print(f"  {line}", markup=False)

    def on_stop(self, in_flight: int) -> None:
        self._bar.console.print(
            f"stopping: finishing {in_flight} calls under way and saving; Ctrl-C again stops at once"
        )

    def on_end(self, status: RunStatus, report: ExperimentReport | None) -> None:
        self._bar.update(self._task, numbers=self._numbers())
        self._bar.stop()

    def _numbers(self, progress: Progress | None = None) -> str:
        totals = self._totals
        parts = [f"{totals.calls / max(time.monotonic() - self._began, 1e-3):.1f}/s"] if totals.calls else []
        if progress is not None and progress.summary:
            parts.append(self._escape(progress.summary))
        if progress is not None and progress.waiting:
            parts.append(f"[yellow]{self._escape(progress.waiting[:_LONGEST_WAIT])}[/yellow]")
        parts += [f"score {mean:.3f} of {count:,}" for mean, count in list(totals.means().values())[:1]]
        if totals.cost_usd:
            parts.append(f"${totals.cost_usd:.4f}")
        if totals.failed:
            parts.append(f"[red]{totals.failed} failed[/red]")
        return " · ".join(parts)
