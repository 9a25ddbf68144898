"""Whether two runs differ: statistics over shared items, comparisons, differences item by item, gates.

The names are imported when they are first used: looking at this package costs nothing, its statistics need numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from themis.comparison.diff import RunDiff, diff_runs
    from themis.comparison.engine import ComparisonEngine, StatisticalTest, compare_runs, compare_scores
    from themis.comparison.gate import Gate, GateVerdict
    from themis.comparison.power import plan_comparison
    from themis.comparison.reports import ComparisonReport, ComparisonResult, StatisticalTestResult, WinLossMatrix
    from themis.comparison.sequential import StopWhenDecided

__all__ = [
    "ComparisonEngine",
    "ComparisonReport",
    "ComparisonResult",
    "Gate",
    "GateVerdict",
    "RunDiff",
    "StatisticalTest",
    "StatisticalTestResult",
    "StopWhenDecided",
    "WinLossMatrix",
    "compare_runs",
    "compare_scores",
    "diff_runs",
    "plan_comparison",
]

_HOMES = {
    "diff": ("RunDiff", "diff_runs"),
    "engine": ("ComparisonEngine", "StatisticalTest", "compare_runs", "compare_scores"),
    "gate": ("Gate", "GateVerdict"),
    "power": ("plan_comparison",),
    "reports": ("ComparisonReport", "ComparisonResult", "StatisticalTestResult", "WinLossMatrix"),
    "sequential": ("StopWhenDecided",),
}


def __getattr__(name: str) -> object:
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'themis.comparison' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"themis.comparison.{home}"), name)
    globals()[name] = value
    return value
