"""Shows a memory run while it goes on, on stderr: tests, tokens, virtual time, score so far, cost and what is left."""

from __future__ import annotations

import math
import time
from typing import Any

from themis.memory.actions import Outcome
from themis.memory.benchmark import Benchmark, MemoryReport, Spent
from themis.memory.scheduler import Scheduler

__all__ = ["ProgressBar"]


class ProgressBar:
    """An observer that draws with rich. Use only where someone is watching: it writes to stderr."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            refresh_per_second=4,
        )
        self._task: Any = None
        self._scores: list[float] = []
        self._failed = 0
        self._shown = 0.0

    def started(self, benchmark: Benchmark) -> None:
        self._task = self._bar.add_task(benchmark.run_id, total=len(benchmark.tests), numbers="")
        self._bar.start()

    def advanced(self, scheduler: Scheduler, spent: Spent, *, replaying: bool) -> None:
        now = time.monotonic()
        if now - self._shown < 0.2:
            return
        self._shown = now
        parts = ["replaying"] if replaying else []
        parts += [
            f"{len(scheduler.running)} running",
            f"{spent.conversation_tokens:,} tokens",
            f"{scheduler.now:%d %b %H:%M}",
        ]
        if self._scores:
            parts.append(f"score {math.fsum(self._scores) / len(self._scores):.3f}")
        if self._failed:
            parts.append(f"{self._failed} undecided")
        if spent.cost_usd or spent.judge_cost_usd:
            parts.append(f"${spent.cost_usd + spent.judge_cost_usd:.4f}")
        self._bar.update(self._task, numbers=" · ".join(parts))

    def ended_test(self, outcome: Outcome) -> None:
        if outcome.grade.failed:
            self._failed += 1
        else:
            self._scores.append(outcome.grade.score)
        self._bar.update(self._task, advance=1)

    def finished(self, report: MemoryReport) -> None:
        self._bar.stop()
