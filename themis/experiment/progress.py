"""Shows a run while it goes on: a bar with rate, cost, failures and ETA on stderr, and what late samples wait for."""

from __future__ import annotations

import sys
import time
from typing import Any

from themis.core.entities import EvaluationRecord, ExperimentReport, Result
from themis.experiment.experiment import Observer
from themis.generation.engine import Engine
from themis.storage import RunStatus

__all__ = ["ProgressBar", "someone_watches"]

_LATE_SECONDS = 30.0
_SHOWN_LATE = 3
_LONGEST_WAIT = 80


class ProgressBar(Observer):
    """An observer that draws with rich. Use only where someone is watching: it writes to stderr."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=self._console,
            refresh_per_second=5,
        )
        self._task: Any = None
        self._engine: Engine | None = None
        self._began = 0.0
        self._seen: set[int] = set()
        self._calls = self._failed = self._scored = 0
        self._cost: float | None = 0.0
        self._sum = 0.0
        self._late_shown = 0.0

    def started(self, run_id: str, total: int, done: int, engine: Engine) -> None:
        self._engine, self._began = engine, time.monotonic()
        self._task = self._bar.add_task(run_id, total=total, completed=done, numbers="")
        self._bar.start()

    def advanced(self, calls: list[Result]) -> None:
        fresh = {call.position for call in calls} - self._seen
        # Only what is in flight can come again (another attempt of one sample), so old positions may be forgotten.
        self._seen = {call.position for call in calls} | set(list(self._seen)[-1000:])
        self._calls += sum(call.calls for call in calls)
        self._failed += sum(call.record.error is not None for call in calls)
        for call in calls:
            if call.cost_usd is None or self._cost is None:
                self._cost = None
            else:
                self._cost += call.cost_usd
        self._bar.update(self._task, advance=len(fresh), numbers=self._numbers())
        self._show_late()

    def judged(self, records: list[EvaluationRecord]) -> None:
        for record in records:
            if record.scores:
                self._sum += record.scores[0].value
                self._scored += 1

    def idle(self) -> None:
        self._bar.update(self._task, numbers=self._numbers())
        self._show_late()

    def stopping(self, under_way: int) -> None:
        self._bar.console.print(
            f"stopping: finishing {under_way} calls under way and saving; Ctrl-C again stops at once"
        )

    def ended(self, status: RunStatus, report: ExperimentReport | None) -> None:
        self._bar.update(self._task, numbers=self._numbers())
        self._bar.stop()

    def _numbers(self) -> str:
        rate = self._calls / max(time.monotonic() - self._began, 1e-3)
        parts = [f"{rate:.1f}/s"]
        if self._engine is not None and self._engine.in_flight:
            parts.append(f"{self._engine.in_flight} under way (limit {self._engine.limiter.limit})")
        if self._engine is not None and self._engine.waiting is not None:
            from rich.markup import escape

            parts.append(f"[yellow]{escape(str(self._engine.waiting)[:_LONGEST_WAIT])}[/yellow]")
        if self._scored:
            parts.append(f"score {self._sum / self._scored:.3f}")
        if self._cost:
            parts.append(f"${self._cost:.4f}")
        if self._failed:
            parts.append(f"[red]{self._failed} failed[/red]")
        return " · ".join(parts)

    def _show_late(self) -> None:
        now = time.monotonic()
        if self._engine is None or now - self._late_shown < _LATE_SECONDS:
            return
        late = self._engine.late(_LATE_SECONDS)
        if late:
            self._late_shown = now
            for entry in late[:_SHOWN_LATE]:
                self._bar.console.print(
                    f"  sample {entry.item_id}: {entry.seconds:.0f} s, waiting for {entry.waiting_for}", markup=False
                )


def someone_watches() -> bool:
    return sys.stderr.isatty()
