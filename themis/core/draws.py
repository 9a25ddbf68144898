"""The chance that some, or all, of k attempts pass, when k of n are drawn: what pass@k and pass^k are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["all_pass", "some_pass"]

# One item's numbers, or a column of them.
Count = TypeVar("Count", float, "npt.NDArray[np.float64]")


def some_pass(passed: Count, attempts: Count, k: int) -> Count:
    """1 - C(n-c, k) / C(n, k): the unbiased estimate of pass@k from c passed ones among n >= k attempts."""
    return 1.0 - all_pass(attempts - passed, attempts, k)


def all_pass(passed: Count, attempts: Count, k: int) -> Count:
    """C(c, k) / C(n, k): the unbiased estimate of pass^k from c passed ones among n >= k attempts."""
    share: Any = 1.0
    for drawn in range(k):
        # With fewer than k passed ones a factor is zero, and no later one takes the share from there.
        share = share * (passed - drawn) / (attempts - drawn)
    # Adding zero turns a negative zero into a plain one.
    found: Count = share + 0.0
    return found
