"""Which items a second run fixed and which it broke, with what was asked and what both answered.

Scores are read first, as numbers; texts are read from the store only for the items that are looked at, a page at a time.
"""

from __future__ import annotations

import csv
import enum
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TextIO

from themis.comparison.judging import describe_differences, how_to_judge_alike, judging_differences
from themis.comparison.pages import diff_page
from themis.comparison.pairing import Overlap, Pairing
from themis.comparison.scores import (
    ScoredRun,
    StoreLocation,
    common_metrics,
    find_metric,
    is_higher_better,
    open_scores,
    open_store,
    overlap_of_runs,
)
from themis.core.codec import encode
from themis.core.entities import GenerationRecord
from themis.core.files import atomic_write
from themis.exceptions import ConfigurationError, MetricError
from themis.storage import ExperimentStorage
from themis.storage.runs import batched

_PAGE = 200


class Change(enum.StrEnum):
    """What became of an item between the first run and the second."""

    BROKEN = "broken"
    FIXED = "fixed"
    BOTH_WRONG = "both-wrong"
    BOTH_RIGHT = "both-right"


@dataclass(frozen=True, kw_only=True)
class DiffItem:
    """One item in both runs. The outputs are those of all attempts; in place of a failed one stands why it failed."""

    metric: str
    item_id: str
    change: Change
    score_a: float
    score_b: float
    input_a: str
    input_b: str
    reference: object
    outputs_a: tuple[str, ...]
    outputs_b: tuple[str, ...]


@dataclass(frozen=True)
class MetricDiff:
    """How many items changed on one metric, how many were paired, and why others were left out."""

    metric: str
    counts: dict[Change, int]
    pairing: Pairing
    # In what the judging of the two runs differs, and what to do about it; empty where it does not.
    judged_differently: str = ""
    judge_alike: str = ""

    @property
    def shared(self) -> int:
        return self.pairing.n

    def to_dict(self) -> dict[str, object]:
        """The counts and what they rest on, as plain values."""
        return {
            "counts": {change.value: count for change, count in self.counts.items()},
            "shared": self.shared,
            "pairing": self.pairing.to_dict(),
            "judged_differently": self.judged_differently,
            "judge_alike": self.judge_alike,
        }

    @property
    def not_compared(self) -> int:
        """Items that are not compared; one id in both runs counts once, whatever it holds."""
        pairing = self.pairing
        return pairing.only_a + pairing.items_b - pairing.n


class _Change(NamedTuple):
    """An item that both runs have a score of: where it lies in each, and how it was scored."""

    item_id: str
    position_a: int
    position_b: int
    score_a: float
    score_b: float


class RunDiff:
    """The differences of two runs by metric. Counting needs scores only; `items` reads the texts as it goes.

    Args:
        store: Where both runs are.
        run_a: The earlier run.
        run_b: The later one.
        metrics: Names of metrics; None for all that both runs have.
        threshold: The least score of an item that is right; the most, where a lower value is better.
        across: Pair items by id, whatever their content.

    >>> import themis
    >>> for run_id, model in (("baseline", "fake/noisy-0.9"), ("candidate", "fake/perfect")):
    ...     report = themis.evaluate("demo", model=model, run_id=run_id, storage="runs", progress=False)
    >>> diff = RunDiff(ExperimentStorage("runs"), "baseline", "candidate", None, 0.5)
    >>> [(item.item_id, item.outputs_a, item.outputs_b) for item in diff.items(only="fixed", limit=1)]
    [('0', ('7',), ('4',))]
    """

    def __init__(
        self,
        store: ExperimentStorage,
        run_a: str,
        run_b: str,
        metrics: Iterable[str] | None,
        threshold: float,
        across: bool = False,
    ) -> None:
        if run_a == run_b:
            raise ConfigurationError(f"run {run_a!r} is given twice; a run does not differ from itself")
        self.run_a, self.run_b, self.threshold = run_a, run_b, threshold
        runs = open_scores(store, [run_a, run_b], across=across)
        overlap = overlap_of_runs(*runs)
        names = common_metrics(runs, metrics)
        directions = {metric: is_higher_better(runs, metric) for metric in names}
        # A length is neither right nor wrong.
        self.metrics = [metric for metric in names if directions[metric] is not None]
        if not self.metrics:
            raise MetricError(
                f"more {' or '.join(names)} is neither better nor worse, so no item is fixed or broken by it"
            )
        self._readers = runs[0].reader, runs[1].reader
        self.attempts = {run.run_id: run.attempts for run in runs}
        self.by_metric: dict[str, MetricDiff] = {}
        # In the first run's order.
        self._changes: dict[tuple[str, Change], list[_Change]] = {}
        for metric in self.metrics:
            self._sort_out(metric, runs, overlap, bool(directions[metric]))

    def told(self) -> list[str]:
        """How many items were paired and what was left out, who was judged differently, and how many attempts failed."""
        lines: dict[str, list[str]] = {}
        for part in self.by_metric.values():
            lines.setdefault(f"paired: {part.pairing.describe(self.run_a, self.run_b)}", []).append(part.metric)
            if part.judged_differently:
                lines.setdefault(f"judged differently: {part.judged_differently}; {part.judge_alike}", []).append(
                    part.metric
                )
        every = len(self.by_metric)
        found = [text if len(names) == every else f"{', '.join(names)}: {text}" for text, names in lines.items()]
        counts = [f"{run_id} {made.made} ({made.failed} failed)" for run_id, made in self.attempts.items()]
        return [*found, f"attempts: {', '.join(counts)}"]

    def items(
        self,
        *,
        only: Change | str | Iterable[Change | str] | None = None,
        metric: str | None = None,
        limit: int | None = None,
    ) -> Iterator[DiffItem]:
        """Broken items first, then fixed, both wrong, both right; each group in the first run's order.

        Args:
            only: The changes to go through: `broken`, `fixed`, `both-wrong`, `both-right`, or several of them; all by default.
            metric: Only of this metric.
            limit: At most so many.
        """
        left = limit
        for name in self.metrics if metric is None else [find_metric(metric, self.metrics, "those of this diff")]:
            for change in _parse_changes(only):
                changes = self._changes[name, change]
                for batch in batched(changes if left is None else changes[:left], _PAGE):
                    yield from self._read(name, change, batch)
                if left is not None:
                    left = max(0, left - len(changes))

    def to_dict(self) -> dict[str, object]:
        """The counts by metric as plain values, without the items."""
        return {
            "run_a": self.run_a,
            "run_b": self.run_b,
            "threshold": self.threshold,
            "attempts": {run_id: vars(made) for run_id, made in self.attempts.items()},
            "metrics": {name: part.to_dict() for name, part in self.by_metric.items()},
        }

    def _sort_out(self, metric: str, runs: Sequence[ScoredRun], overlap: Overlap, higher_is_better: bool) -> None:
        first, second = (run.read(metric) for run in runs)
        others = dict(zip(second.keys, zip(second.positions, second.values.tolist(), strict=True), strict=True))
        groups: dict[Change, list[_Change]] = {change: [] for change in Change}
        mine = zip(first.positions, first.item_ids, first.keys, first.values.tolist(), strict=True)
        for position, item_id, key, score in sorted(mine):
            if key in others:
                position_b, score_b = others[key]
                change = _change(score, score_b, self.threshold, higher_is_better)
                groups[change].append(_Change(item_id, position, position_b, score, score_b))
        if not any(groups.values()):
            raise MetricError(
                f"runs {self.run_a!r} and {self.run_b!r} have no item with a score of {metric} in common: "
                f"{len(first.item_ids)} and {len(second.item_ids)} items are scored"
            )
        self._changes.update({(metric, change): changes for change, changes in groups.items()})
        differences = judging_differences(runs[0], runs[1], metric)
        self.by_metric[metric] = MetricDiff(
            metric=metric,
            counts={change: len(changes) for change, changes in groups.items()},
            pairing=overlap.count(runs[0].items, runs[1].items, first.keys, second.keys),
            judged_differently=describe_differences(differences),
            judge_alike=how_to_judge_alike(runs[0], runs[1]) if differences else "",
        )

    def _read(self, metric: str, change: Change, changes: list[_Change]) -> Iterator[DiffItem]:
        records_a = dict(self._readers[0].records(positions=[one.position_a for one in changes]))
        records_b = dict(self._readers[1].records(positions=[one.position_b for one in changes]))
        for one in changes:
            record_a, record_b = records_a[one.position_a], records_b[one.position_b]
            reference = record_b.task.reference or record_a.task.reference
            yield DiffItem(
                metric=metric,
                item_id=one.item_id,
                change=change,
                score_a=one.score_a,
                score_b=one.score_b,
                input_a=record_a.task.prompt.text,
                input_b=record_b.task.prompt.text,
                reference=None if reference is None else reference.value,
                outputs_a=_outputs(record_a),
                outputs_b=_outputs(record_b),
            )


def diff_runs(
    run_a: str,
    run_b: str,
    *,
    storage: StoreLocation | None = None,
    storage_path: StoreLocation | None = None,
    metrics: Iterable[str] | None = None,
    threshold: float = 0.5,
    across: bool = False,
) -> RunDiff:
    """What changed from the first run to the second.

    Args:
        run_a: The earlier run.
        run_b: The later one.
        storage: A store that is open already, or a storage backend.
        storage_path: Instead of it, where the store is.
        metrics: Names of metrics; without them, all that both runs have.
        threshold: The least score of an item that is right; the most, where a lower value is better.
        across: Pair items by id, whatever their content; by default they are paired by what they hold.

    Raises:
        StorageError: The store or a run is not there.
        MetricError: The runs have no metric or no scored item in common, or none of the metrics says what is right.

    >>> import themis
    >>> for run_id, model in (("baseline", "fake/noisy-0.9"), ("candidate", "fake/perfect")):
    ...     report = themis.evaluate("demo", model=model, run_id=run_id, storage="runs", progress=False)
    >>> diff = diff_runs("baseline", "candidate", storage_path="runs")
    >>> diff.by_metric["ExactMatch"].counts[Change.FIXED]
    8
    """
    return RunDiff(open_store(storage, storage_path), run_a, run_b, metrics, threshold, across)


def _change(first: float, second: float, threshold: float, higher_is_better: bool) -> Change:
    if higher_is_better:
        was_right, is_right = first >= threshold, second >= threshold
    else:
        was_right, is_right = first <= threshold, second <= threshold
    if was_right and is_right:
        return Change.BOTH_RIGHT
    if was_right:
        return Change.BROKEN
    return Change.FIXED if is_right else Change.BOTH_WRONG


def _parse_changes(only: Change | str | Iterable[Change | str] | None) -> list[Change]:
    if only is None:
        return list(Change)
    asked = {parse_change(name) for name in ([only] if isinstance(only, str) else only)}
    return [change for change in Change if change in asked]


def parse_change(name: Change | str) -> Change:
    try:
        return Change(str(name).replace("_", "-"))
    except ValueError:
        raise ConfigurationError(f"a change is one of {', '.join(Change)}, got {name!r}") from None


def _outputs(record: GenerationRecord) -> tuple[str, ...]:
    return tuple(_format_output(attempt) for attempt in record.attempts or [record])


def _format_output(attempt: GenerationRecord) -> str:
    if attempt.output is not None:
        return attempt.output.text
    return f"[no answer: {attempt.error.message if attempt.error else 'no reason given'}]"


# --- files ------------------------------------------------------------------------------------------------------------


_COLUMNS = (
    *("metric", "item_id", "change", "score_a", "score_b", "input_a", "input_b", "reference", "output_a", "output_b"),
)
# A spreadsheet takes a cell that begins like this for a formula and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_diff(diff: RunDiff, items: Iterable[DiffItem], path: str | Path) -> int:
    """Writes by the file's ending and returns how many items there were. A file that exists is replaced when all is written.

    Args:
        diff: The two runs.
        items: Those of their items that are wanted, from `diff.items()`; they are written as they are read.
        path: A file ending in .csv, .jsonl or .html.
    """
    path = Path(path)
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise ConfigurationError(f"a diff is written to a file ending in {', '.join(_WRITERS)}, got {str(path)!r}")
    # The counter follows the items: it is asked for a number only when there is one more of them.
    counter = itertools.count()
    with atomic_write(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        writer(diff, (item for item, _ in zip(items, counter, strict=False)), text)
        text.flush()
        text.detach()
    return next(counter)


def item_row(item: DiffItem) -> dict[str, object]:
    """One item as JSON; several attempts are a list, one is its text."""
    outputs = {"output_a": _one_or_all(item.outputs_a), "output_b": _one_or_all(item.outputs_b)}
    row = {name: value for name, value in vars(item).items() if not name.startswith("outputs")}
    return {**row, "change": item.change.value, **outputs}


def _write_csv(diff: RunDiff, items: Iterable[DiffItem], handle: TextIO) -> None:
    writer = csv.writer(handle)
    writer.writerow(_COLUMNS)
    for item in items:
        row = item_row(item)
        writer.writerow([_cell(row[column]) for column in _COLUMNS])


def _write_json_lines(diff: RunDiff, items: Iterable[DiffItem], handle: TextIO) -> None:
    for item in items:
        handle.write(encode(item_row(item)) + "\n")


def _write_page(diff: RunDiff, items: Iterable[DiffItem], handle: TextIO) -> None:
    handle.writelines(diff_page(diff, items))


_WRITERS: dict[str, Callable[[RunDiff, Iterable[DiffItem], TextIO], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".html": _write_page,
}


def _cell(value: object) -> str | float | None:
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else encode(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _one_or_all(outputs: tuple[str, ...]) -> str | list[str]:
    return outputs[0] if len(outputs) == 1 else list(outputs)
