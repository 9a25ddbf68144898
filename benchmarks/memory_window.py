"""What a memory of so many tokens scores: the curve of the window agent over every memory test.

    python benchmarks/memory_window.py [--figure FILE.svg]

The window agent knows everything said within its last so many tokens and nothing before. A test that fits into the window
must therefore score 1, and the curve must fall as the span of the tests passes the window. Prints a Markdown table and exits
with 1 if a promise is broken. Takes about a minute of CPU.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import yaml

from themis.memory.benchmark import Benchmark, MemoryReport, Spent
from themis.memory.command import Request, assemble
from themis.memory.commands import Outcome
from themis.memory.examples import MEMORY_TESTS
from themis.memory.runner import run
from themis.memory.scheduler import Scheduler
from themis.storage import ExperimentStorage

SPAN_TOKENS = 4_000
EXAMPLES = 2
SHARES = (0.05, 0.125, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0, 1.25, 1.5, 2.0, 4.0)


@dataclass
class Point:
    """What one window scores, and whether each test that fits into it was remembered."""

    share_of_span: float
    scores: list[float] = field(default_factory=list)
    inside: int = 0
    forgotten_inside: list[str] = field(default_factory=list)

    @property
    def window_tokens(self) -> int:
        return round(self.share_of_span * SPAN_TOKENS)

    @property
    def mean(self) -> float:
        return sum(self.scores) / len(self.scores)

    # --- an observer of the run -----------------------------------------------------------------------------------

    def started(self, benchmark: Benchmark) -> None: ...

    def advanced(self, scheduler: Scheduler, spent: Spent, *, replaying: bool) -> None: ...

    def ended_test(self, outcome: Outcome) -> None:
        self.scores.append(outcome.grade.score)
        if outcome.tokens <= self.window_tokens:
            self.inside += 1
            if outcome.grade.score < 1.0:
                self.forgotten_inside.append(outcome.test_id)

    def finished(self, report: MemoryReport) -> None: ...


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        points = measure(Path(folder))
    print(table(points))
    if "--figure" in sys.argv:
        Path(sys.argv[sys.argv.index("--figure") + 1]).write_text(figure(points), encoding="utf-8")
    broken = broken_promises(points)
    for promise in broken:
        print(f"\nBROKEN: {promise}")
    return 1 if broken else 0


def measure(folder: Path) -> list[Point]:
    # The table of keys and values is kept small enough for the span.
    smaller = {"kv": {"num_kv_pairs": 20}}
    tests = [{"name": name, "args": smaller.get(name, {})} for name in MEMORY_TESTS.names()]
    configuration = {
        "config": {"run_name": "window", "incompatibilities": []},
        "datasets": {"args": {"dataset_examples": EXAMPLES, "memory_span": SPAN_TOKENS}, "datasets": tests},
    }
    path = folder / "window.yml"
    path.write_text(yaml.safe_dump(configuration), encoding="utf-8")
    points = [Point(share) for share in SHARES]
    for point in points:
        storage = ExperimentStorage(folder / f"runs-{point.window_tokens}")
        request = Request(configuration=str(path), agent=f"window({point.window_tokens})")
        run(assemble(request, storage, reuse=lambda _: True), storage, observers=[point])
    return points


def table(points: list[Point]) -> str:
    rows = [
        f"| {point.share_of_span:g} | {point.window_tokens:,} | {point.mean:.3f} | {point.inside} of {len(point.scores)} |"
        for point in points
    ]
    heads = ["| window / span | window, tokens | mean score | tests inside the window |", "|---|---|---|---|"]
    return "\n".join([*heads, *rows])


def broken_promises(points: list[Point]) -> list[str]:
    broken = [
        f"window {point.window_tokens} forgot tests that fit into it: {', '.join(point.forgotten_inside)}"
        for point in points
        if point.forgotten_inside
    ]
    if points[-1].mean < 1.0:
        broken.append(f"a window of {points[-1].share_of_span:g} spans scores {points[-1].mean:.3f}, expected 1")
    if points[0].mean > 0.2:
        broken.append(
            f"a window of {points[0].share_of_span:g} spans scores {points[0].mean:.3f}, expected next to nothing"
        )
    for smaller, larger in pairwise(points):
        if smaller.mean > larger.mean + 0.02:
            broken.append(f"window {smaller.window_tokens} scores more than window {larger.window_tokens}")
    return broken


def figure(points: list[Point]) -> str:
    """The curve as SVG, drawn with nothing but text."""
    left, top, width, height, most = 60, 30, 520, 260, 2.0

    def at(share: float, score: float) -> tuple[float, float]:
        return left + width * min(share, most) / most, top + height * (1 - score)

    shown = [point for point in points if point.share_of_span <= most]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(point.share_of_span, point.mean) for point in shown))
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="#1f6f8b"/>'
        for x, y in (at(point.share_of_span, point.mean) for point in shown)
    )
    ticks = "".join(
        f'<text x="{at(share, 0)[0]:.1f}" y="{top + height + 20}" text-anchor="middle">{share:g}</text>'
        for share in (0, 0.5, 1, 1.5, 2)
    ) + "".join(
        f'<text x="{left - 10}" y="{at(0, score)[1] + 4:.1f}" text-anchor="end">{score:g}</text>'
        f'<line x1="{left}" y1="{at(0, score)[1]:.1f}" x2="{left + width}" y2="{at(0, score)[1]:.1f}" stroke="#ddd"/>'
        for score in (0, 0.25, 0.5, 0.75, 1)
    )
    span_x = at(1, 0)[0]
    title = f"mean score of the window agent, {len(shown[0].scores)} tests, span {SPAN_TOKENS:,} tokens"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 350" font-family="sans-serif" font-size="13">'
        f'<rect width="620" height="350" fill="white"/>{ticks}'
        f'<line x1="{span_x:.1f}" y1="{top}" x2="{span_x:.1f}" y2="{top + height}" stroke="#999" stroke-dasharray="4"/>'
        f'<polyline points="{line}" fill="none" stroke="#1f6f8b" stroke-width="2"/>{dots}'
        f'<text x="{left + width / 2}" y="{top + height + 45}" text-anchor="middle">window / span of the tests</text>'
        f'<text x="{left}" y="18">{title}</text>'
        "</svg>\n"
    )


if __name__ == "__main__":
    sys.exit(main())
