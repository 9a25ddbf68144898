"""Shows a run while it goes on, on stderr or in a notebook: a bar with rate, score, cost, failures and what is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from themis.core.entities import EvaluationRecord, ExperimentReport, Result
from themis.core.notebook import render_progress
from themis.runs.observers import Observer, Progress, RunStart, Totals
from themis.storage import RunStatus

__all__ = ["NotebookBar", "ProgressBar", "is_interactive", "is_notebook", "make_bar"]

_REDRAW_SECONDS = 0.2
_LATE_SECONDS = 30.0
_SHOWN_LATE = 3
_LONGEST_WAIT = 80


def make_bar(wanted: bool | None = None) -> Observer | None:
    """What draws a run for whoever is watching: in the notebook that it runs in, or else on stderr.

    Args:
        wanted: Whether there is to be one; by default if someone is watching.
    """
    if is_notebook():
        return NotebookBar() if wanted in (None, True) else None
    is_watched = is_interactive() if wanted is None else wanted
    return ProgressBar() if is_watched else None


def is_interactive() -> bool:
    """Whether someone is watching: stderr is a terminal."""
    return sys.stderr.isatty()


def is_notebook() -> bool:
    """Whether this is the kernel of a notebook, which has IPython loaded: nobody else is made to load it."""
    find_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return find_shell is not None and getattr(find_shell(), "kernel", None) is not None


class _Part(NamedTuple):
    """One thing that stands beside a bar."""

    text: str
    colour: Literal["", "yellow", "red"] = ""


class _Bar(Observer):
    """Counts what a bar shows; how it is drawn is for those below."""

    def __init__(self) -> None:
        self._totals = Totals()
        self._began = self._drawn = self._late_shown = 0.0
        # Another attempt at an item that was counted already; only what is in flight can come again.
        self._recent: set[int] = set()

    def on_start(self, run: RunStart) -> None:
        self._began = time.monotonic()
        self.start(run)

    def on_answers(self, results: list[Result]) -> None:
        positions = {result.position for result in results}
        fresh = positions - self._recent
        self._recent = positions | set(list(self._recent)[-1000:])
        self._totals.add_results(results)
        self.draw(self._parts(), advance=len(fresh))

    def on_scores(self, records: list[EvaluationRecord]) -> None:
        self._totals.add_scores(records)

    def on_progress(self, progress: Callable[[], Progress]) -> None:
        now = time.monotonic()
        if now - self._drawn < _REDRAW_SECONDS:
            return
        self._drawn = now
        current = progress()
        self.draw(self._parts(current))
        if current.late and now - self._late_shown >= _LATE_SECONDS:
            self._late_shown = now
            for line in current.late[:_SHOWN_LATE]:
                self.say(f"  {line}")

    def on_stop(self, in_flight: int) -> None:
        self.say(f"stopping: finishing {in_flight} calls under way and saving; Ctrl-C again stops at once")

    def on_end(self, status: RunStatus, report: ExperimentReport | None) -> None:
        self.finish(self._parts(), status)

    def _parts(self, progress: Progress | None = None) -> list[_Part]:
        totals = self._totals
        seconds = max(time.monotonic() - self._began, 1e-3)
        parts = [_Part(f"{totals.calls / seconds:.1f}/s")] if totals.calls else []
        if progress is not None and progress.summary:
            parts.append(_Part(progress.summary))
        if progress is not None and progress.waiting:
            parts.append(_Part(progress.waiting[:_LONGEST_WAIT], "yellow"))
        parts += [_Part(f"score {mean:.3f} of {count:,}") for mean, count in list(totals.means().values())[:1]]
        if totals.cost_usd:
            parts.append(_Part(f"${totals.cost_usd:.4f}"))
        if totals.failed:
            parts.append(_Part(f"{totals.failed} failed", "red"))
        return parts

    def start(self, run: RunStart) -> None:
        raise NotImplementedError

    def draw(self, parts: list[_Part], *, advance: int = 0) -> None:
        raise NotImplementedError

    def say(self, line: str) -> None:
        raise NotImplementedError

    def finish(self, parts: list[_Part], status: RunStatus) -> None:
        raise NotImplementedError


class ProgressBar(_Bar):
    """Draws with rich. Use only where someone is watching: it writes to stderr."""

    def __init__(self) -> None:
        super().__init__()
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

    def start(self, run: RunStart) -> None:
        self._task = self._bar.add_task(self._escape(run.run_id), total=run.total, completed=run.done, numbers="")
        self._bar.start()

    def draw(self, parts: list[_Part], *, advance: int = 0) -> None:
        self._bar.update(self._task, advance=advance, numbers=self._mark_up(parts))

    def say(self, line: str) -> None:
        self._bar.console.print(line, markup=False)

    def finish(self, parts: list[_Part], status: RunStatus) -> None:
        self.draw(parts)
        self._bar.stop()

    def _mark_up(self, parts: list[_Part]) -> str:
        shown = [(self._escape(part.text), part.colour) for part in parts]
        return " · ".join(f"[{colour}]{text}[/{colour}]" if colour else text for text, colour in shown)


class _Handle(Protocol):
    """An output of a cell that can be replaced."""

    def update(self, shown: object) -> None: ...


class NotebookBar(_Bar):
    """Draws into the cell that runs, and replaces what it has drawn. Use only in a notebook's kernel: it needs IPython."""

    def __init__(self) -> None:
        super().__init__()
        from IPython.display import HTML, display

        self._html: Callable[[str], object] = HTML
        self._display: Callable[..., _Handle] = display
        self._handle: _Handle | None = None
        self._name, self._done, self._total = "", 0, 0
        self._shown_at = 0.0
        self._line = ""

    def start(self, run: RunStart) -> None:
        self._name, self._done, self._total = run.run_id, run.done, run.total
        self._handle = self._display(self._render([]), display_id=True)

    def draw(self, parts: list[_Part], *, advance: int = 0) -> None:
        self._done += advance
        now = time.monotonic()
        # Every update is a message that the notebook stores and the browser draws.
        if self._handle is not None and now - self._shown_at >= _REDRAW_SECONDS:
            self._shown_at = now
            self._handle.update(self._render(parts))

    def say(self, line: str) -> None:
        self._line, self._shown_at = line.strip(), 0.0

    def finish(self, parts: list[_Part], status: RunStatus) -> None:
        if self._handle is not None:
            self._line = ""
            self._handle.update(self._render([*parts, _Part(status.value)]))

    def _render(self, parts: list[_Part]) -> object:
        numbers = [*(part.text for part in parts), self._time_left(), self._line]
        return self._html(render_progress(self._name, self._done, self._total, numbers))

    def _time_left(self) -> str:
        """As the rate of this process has it."""
        answered = self._totals.answered + self._totals.failed
        left = self._total - self._done
        if not answered or left <= 0:
            return ""
        seconds = (time.monotonic() - self._began) / answered * left
        return f"{int(seconds // 60)}:{int(seconds % 60):02} left"
