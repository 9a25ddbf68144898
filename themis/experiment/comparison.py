"""The name under which some programs look for `themis.comparison`.

The one place where this package knows its neighbour; nothing in the house imports it.
"""

from themis.comparison import (
    ComparisonEngine,
    ComparisonReport,
    ComparisonResult,
    StatisticalTest,
    StatisticalTestResult,
    WinLossMatrix,
    compare_runs,
)

__all__ = [
    "ComparisonEngine",
    "ComparisonReport",
    "ComparisonResult",
    "StatisticalTest",
    "StatisticalTestResult",
    "WinLossMatrix",
    "compare_runs",
]
