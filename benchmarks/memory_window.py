"""What a memory of so many tokens scores: the curve of the window agent over every memory test.

    python benchmarks/memory_window.py [EXAMPLES]

The window agent knows everything said within its last so many tokens and nothing before. A test that fits into the window
must therefore score 1, and the curve must fall as the span of the tests passes the window. Runs a hundred tests of each kind
in one conversation per window, prints Markdown tables, draws docs/reference/memory-window.svg, and exits with 1 if a promise
is broken. Takes about five minutes of CPU.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import yaml

from themis.api import perform
from themis.config.specification import MemorySpecification
from themis.core.entities import EvaluationRecord, Result
from themis.memory.examples import MEMORY_TESTS
from themis.memory.tests.histories import HistoryDataset
from themis.runs.observers import Observer
from themis.storage import ExperimentStorage

SPAN_TOKENS = 4_000
EXAMPLES = 20
SHARES = (0.05, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.9, 0.95, 1.0, 1.25, 4.0)
FIGURE = Path(__file__).parents[1] / "docs" / "reference" / "memory-window.svg"


@dataclass
class Point(Observer):
    """What one window scores in each kind of test, and whether each test that fits into it was remembered."""

    share_of_span: float
    scores: dict[str, list[float]] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    inside: int = 0
    forgotten_inside: list[str] = field(default_factory=list)

    @property
    def window_tokens(self) -> int:
        return round(self.share_of_span * SPAN_TOKENS)

    @property
    def tests(self) -> int:
        return sum(len(scores) for scores in self.scores.values())

    @property
    def mean(self) -> float:
        return sum(sum(scores) for scores in self.scores.values()) / self.tests

    def mean_of(self, kind: str) -> float:
        return sum(self.scores[kind]) / len(self.scores[kind])

    # --- an observer of the run -----------------------------------------------------------------------------------

    def on_answers(self, results: list[Result]) -> None:
        for result in results:
            test = result.record.metrics["memory"]
            self.tokens[str(result.record.task.metadata["dataset_id"])] = test["tokens"]

    def on_scores(self, records: list[EvaluationRecord]) -> None:
        for record in records:
            test_id, score = str(record.sample_id), record.scores[0].value
            self.scores.setdefault(test_id.rpartition(" - ")[0], []).append(score)
            if self.tokens[test_id] <= self.window_tokens:
                self.inside += 1
                if score < 1.0:
                    self.forgotten_inside.append(test_id)


def main() -> int:
    # That a test took a little more than its span is shown in the table.
    logging.disable(logging.WARNING)
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES
    with tempfile.TemporaryDirectory() as folder:
        points = measure(Path(folder), examples)
    print(table(points))
    print()
    print(table_of_kinds(points))
    FIGURE.write_text(figure(points), encoding="utf-8")
    broken = broken_promises(points)
    for promise in broken:
        print(f"\nBROKEN: {promise}")
    return 1 if broken else 0


def measure(folder: Path, examples: int) -> list[Point]:
    # The table of keys and values is kept small enough for the span.
    smaller = {"kv": {"num_kv_pairs": 20}}
    # Published histories need their files, and have no span to set.
    kinds = [name for name in MEMORY_TESTS if not issubclass(MEMORY_TESTS.get(name), HistoryDataset)]
    tests = [{"name": name, "args": smaller.get(name, {})} for name in kinds]
    configuration = {
        "config": {"run_name": "window", "incompatibilities": []},
        "datasets": {"args": {"dataset_examples": examples, "memory_span": SPAN_TOKENS}, "datasets": tests},
    }
    path = folder / "window.yml"
    path.write_text(yaml.safe_dump(configuration), encoding="utf-8")
    points = [Point(share) for share in SHARES]
    for point in points:
        storage = ExperimentStorage(folder / f"runs-{point.window_tokens}")
        asked = MemorySpecification(configuration=str(path), agent=f"window({point.window_tokens})")
        perform(asked, storage, observers=[point], progress=False)
    return points


def table(points: list[Point]) -> str:
    rows = [
        f"| {point.share_of_span:g} | {point.window_tokens:,} | {point.mean:.3f} | {point.inside:,} of {point.tests:,} |"
        for point in points
    ]
    heads = ["| window / span | window, tokens | mean score | tests inside the window |", "|---|---|---|---|"]
    return "\n".join([*heads, *rows])


def table_of_kinds(points: list[Point]) -> str:
    heads = [f"| {' | '.join(['window / span', *(f'{point.share_of_span:g}' for point in points)])} |"]
    heads.append("|---" * (len(points) + 1) + "|")
    rows = [
        f"| {' | '.join([kind, *(f'{point.mean_of(kind):.2f}' for point in points)])} |"
        for kind in sorted(points[0].scores)
    ]
    return "\n".join([*heads, *rows])


def broken_promises(points: list[Point]) -> list[str]:
    broken = [
        f"window {point.window_tokens} forgot tests that fit into it: {', '.join(point.forgotten_inside)}"
        for point in points
        if point.forgotten_inside
    ]
    for kind in points[0].scores:
        if points[-1].mean_of(kind) < 1.0:
            broken.append(
                f"{kind}: a window of {points[-1].share_of_span:g} spans scores {points[-1].mean_of(kind):.3f}"
            )
        if kind != "ChapterBreak" and points[0].mean_of(kind) > 0.05:
            broken.append(f"{kind}: a window of {points[0].share_of_span:g} spans scores {points[0].mean_of(kind):.3f}")
        for smaller, larger in pairwise(points):
            # Each window has a conversation of its own, in which a test may be a little longer or shorter.
            if smaller.mean_of(kind) > larger.mean_of(kind) + 0.05:
                broken.append(f"{kind}: window {smaller.window_tokens} scores more than window {larger.window_tokens}")
    return broken


def figure(points: list[Point]) -> str:
    """The curves as SVG, drawn with nothing but text: each kind thin, their mean thick."""
    left, top, width, height, most = 60, 30, 520, 260, 1.25

    def at(share: float, score: float) -> tuple[float, float]:
        return left + width * share / most, top + height * (1 - score)

    def line(scores: list[float], colour: str, thickness: float) -> str:
        corners = (at(point.share_of_span, score) for point, score in zip(shown, scores, strict=True))
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        return f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="{thickness:g}"/>'

    shown = [point for point in points if point.share_of_span <= most]
    kinds = "".join(line([point.mean_of(kind) for point in shown], "#b9d3dc", 1) for kind in sorted(points[0].scores))
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="#1f6f8b"/>'
        for x, y in (at(point.share_of_span, point.mean) for point in shown)
    )
    ticks = "".join(
        f'<text x="{at(share, 0)[0]:.1f}" y="{top + height + 20}" text-anchor="middle">{share:g}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1, 1.25)
    ) + "".join(
        f'<text x="{left - 10}" y="{at(0, score)[1] + 4:.1f}" text-anchor="end">{score:g}</text>'
        f'<line x1="{left}" y1="{at(0, score)[1]:.1f}" x2="{left + width}" y2="{at(0, score)[1]:.1f}" stroke="#ddd"/>'
        for score in (0, 0.25, 0.5, 0.75, 1)
    )
    span_x = at(1, 0)[0]
    title = f"score of the window agent, {len(points[0].scores)} kinds and their mean, span {SPAN_TOKENS:,} tokens"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 350" font-family="sans-serif" font-size="13">'
        f'<rect width="620" height="350" fill="white"/>{ticks}'
        f'<line x1="{span_x:.1f}" y1="{top}" x2="{span_x:.1f}" y2="{top + height}" stroke="#999" stroke-dasharray="4"/>'
        f"{kinds}{line([point.mean for point in shown], '#1f6f8b', 2.5)}{dots}"
        f'<text x="{left + width / 2}" y="{top + height + 45}" text-anchor="middle">window / span of the tests</text>'
        f'<text x="{left}" y="18">{title}</text>'
        "</svg>\n"
    )


if __name__ == "__main__":
    sys.exit(main())
