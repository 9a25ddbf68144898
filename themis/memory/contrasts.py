"""Whether agents differ: their scores on the same tests, paired, with p-values corrected for the number of pairs.

Scores are paired by test. Where the agents have held several conversations (spans, seeds), tests of one conversation are
not independent of each other, and whole conversations are what is swapped.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from themis.exceptions import MetricError

__all__ = ["Contrast", "contrast_agents"]

# A test of one agent: in which conversation, and which test.
Key = tuple[Hashable, str]


@dataclass(frozen=True)
class Contrast:
    """Two agents over the tests that both have a score of; the difference is the first minus the second."""

    first: str
    second: str
    tests: int
    difference: float = 0.0
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    corrected_p_value: float | None = None
    conversations: int = 1
    note: str = ""

    @property
    def significant(self) -> bool:
        return self.corrected_p_value is not None and self.corrected_p_value <= 0.05

    @property
    def better(self) -> str | None:
        if not self.significant or self.difference == 0:
            return None
        return self.first if self.difference > 0 else self.second


def contrast_agents(scores: Mapping[str, Mapping[Key, float]]) -> list[Contrast]:
    """Every two agents. `scores` has one number for each agent, conversation and test."""
    from themis.comparison.statistics import holm

    found = [_contrast(one, other, scores[one], scores[other]) for one, other in itertools.combinations(scores, 2)]
    tested = [contrast.p_value for contrast in found if contrast.p_value is not None]
    corrected = iter(holm(tested))
    return [
        contrast if contrast.p_value is None else replace(contrast, corrected_p_value=next(corrected))
        for contrast in found
    ]


def _contrast(first: str, second: str, a: Mapping[Key, float], b: Mapping[Key, float]) -> Contrast:
    from themis.comparison.statistics import paired_permutation_test, paired_t_test

    keys = sorted(set(a) & set(b), key=str)
    conversations = [conversation for conversation, _ in keys]
    clusters = conversations if len(set(conversations)) > 1 else None
    one, other = [a[key] for key in keys], [b[key] for key in keys]
    try:
        test = paired_permutation_test(one, other, clusters=clusters)
        around = paired_t_test(one, other, clusters=clusters)
    except MetricError as error:
        return Contrast(first, second, len(keys), note=str(error))
    return Contrast(
        first=first,
        second=second,
        tests=len(keys),
        difference=test.difference,
        # No two scores lie further apart than 1.
        interval=None if around.ci is None else (max(-1.0, around.ci[0]), min(1.0, around.ci[1])),
        p_value=test.p_value,
        conversations=len(set(conversations)),
        note=test.note,
    )
