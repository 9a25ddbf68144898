"""A rule for `evaluate(stop_when=...)`: stop as soon as the comparison with a baseline is decided.

The confidence sequence behind it may be looked at after every sample, so stopping early does not raise the rate of false alarms.
It assumes that samples come in no particular order: shuffle a dataset that is sorted by difficulty.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from themis.comparison.scores import common_metrics, direction_of, read_scores
from themis.comparison.sequential import ConfidenceSequence
from themis.comparison.store import open_store
from themis.core.entities import EvaluationRecord
from themis.exceptions import MetricError

__all__ = ["StopWhenDecided"]


_SAID: dict[bool | None, dict[str, str]] = {
    True: {"above": "better than", "below": "worse than", "equivalent": "as good as"},
    False: {"above": "worse than", "below": "better than", "equivalent": "as good as"},
    None: {"above": "above", "below": "below", "equivalent": "as"},
}


class StopWhenDecided:
    """Compares every verdict with the baseline's on the same item; says why once better, worse or equal is sure.

    `margin` is the difference that does not matter: with one, "equivalent" is a decision too. Scores are between 0 and 1.
    """

    def __init__(
        self,
        baseline: str,
        metric: str,
        *,
        storage_path: str | Path | None = None,
        storage: Any = None,
        alpha: float = 0.05,
        margin: float | None = None,
        horizon: int | None = None,
    ) -> None:
        store = open_store(storage, storage_path)
        self.baseline = baseline
        self.metric = common_metrics(store, [baseline], [metric])[0]
        found = read_scores(store, baseline, self.metric)
        if outside := next((value for value in found.values if not 0 <= value <= 1), None):
            raise MetricError(f"stopping early needs scores from 0 to 1, {self.metric} of {baseline!r} has {outside:g}")
        # A difference above zero is good, bad, or neither.
        self._said = _SAID[direction_of(store, [baseline], self.metric)]
        self.sequence = ConfidenceSequence(alpha=alpha, margin=margin, horizon=horizon)
        self._scores = dict(zip(found.item_ids, map(float, found.values), strict=True))

    def __call__(self, record: EvaluationRecord) -> str | None:
        values = [score.value for score in record.scores if score.metric_name == self.metric]
        other = self._scores.get(record.sample_id or "")
        if not values or other is None:
            return None
        self.sequence.update(sum(values) / len(values) - other)
        if self.sequence.decision == "undecided":
            return None
        low, high = self.sequence.interval
        return (
            f"{self._said[self.sequence.decision]} {self.baseline} on {self.metric} after {self.sequence.count} samples: "
            f"difference {self.sequence.mean:+.4f} [{low:+.4f}, {high:+.4f}]"
        )
