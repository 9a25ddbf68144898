"""Run ids short enough for a table or a plot, and still told apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

__all__ = ["telling_names"]


def telling_names(run_ids: Sequence[str], longest: int) -> dict[str, str]:
    """Ids as they are where they fit, else the part in which they differ; all in full if that told fewer of them apart."""
    long = [run_id for run_id in run_ids if len(run_id) > longest]
    alike = list(takewhile(lambda letters: len(set(letters)) == 1, zip(*long, strict=False))) if len(long) > 1 else []
    # Back to where the differing word begins.
    start = max((gap.end() for gap in re.finditer(r"[^A-Za-z0-9]", long[0][: len(alike)])), default=0) if alike else 0
    names = {run_id: _part(run_id, start, longest) if run_id in long else run_id for run_id in run_ids}
    return names if len(set(names.values())) == len(names) else {run_id: run_id for run_id in run_ids}


def _part(run_id: str, start: int, longest: int) -> str:
    """The end of an id if the differing part lies in it, else that part with a little of the end."""
    room = longest - 1
    if len(run_id) - start <= room:
        return f"…{run_id[-room:]}"
    tail = longest // 3
    head = room - tail - (1 if start else 0)
    return f"{'…' if start else ''}{run_id[start : start + head]}…{run_id[-tail:]}"
