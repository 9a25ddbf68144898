"""The chance that some, or all, of k attempts pass, when k of n are drawn: pass@k and pass^k."""

from __future__ import annotations


def pass_at_k(passed: int, attempts: int, k: int) -> float:
    """1 - C(n-c, k) / C(n, k): the unbiased estimate of the chance that at least one of k attempts passes.

    Args:
        passed: How many of the attempts at an item passed, c.
        attempts: How many were made, n; at least k.
        k: How many are drawn.

    >>> pass_at_k(2, 4, 2)
    0.8333333333333334
    """
    return 1.0 - pass_hat_k(attempts - passed, attempts, k)


def pass_hat_k(passed: int, attempts: int, k: int) -> float:
    """C(c, k) / C(n, k): the unbiased estimate of the chance that all of k attempts pass (pass^k).

    Args:
        passed: How many of the attempts at an item passed, c.
        attempts: How many were made, n; at least k.
        k: How many are drawn.

    >>> pass_hat_k(2, 4, 2)
    0.16666666666666666
    """
    share = 1.0
    for drawn in range(k):
        # With fewer than k passed ones a factor is zero, and no later one takes the share from there.
        share = share * (passed - drawn) / (attempts - drawn)
    # Adding zero turns a negative zero into a plain one.
    return share + 0.0
