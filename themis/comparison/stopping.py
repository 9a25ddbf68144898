"""A rule for `evaluate(stop_when=...)`: stop as soon as the comparison with a baseline is decided.

The confidence sequence behind it may be looked at after every sample, so stopping early does not raise the rate of false alarms.
It assumes that samples come in no particular order: shuffle a dataset that is sorted by difficulty.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from themis.comparison.scores import read_scores
from themis.comparison.sequential import ConfidenceSequence
from themis.comparison.store import open_store
from themis.core.entities import EvaluationRecord

__all__ = ["StopWhenDecided"]


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
        found = read_scores(open_store(storage, storage_path), baseline, metric)
        self.baseline = baseline
        self.metric = metric
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
        said = {"above": "better than", "below": "worse than", "equivalent": "as good as"}[self.sequence.decision]
        return (
            f"{said} {self.baseline} on {self.metric} after {self.sequence.count} samples: "
            f"difference {self.sequence.mean:+.4f} [{low:+.4f}, {high:+.4f}]"
        )
