"""The program that the memory story runs: a generator of many rows under a memory limit that the caller set."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from typing import Any

import themis


def rows(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"id": number, "question": f"say {number} " + "padding " * 30, "answer": str(number)}


def main(storage: str, count: int, limit_mb: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limit_mb * 1024**2, limit_mb * 1024**2))
    report = themis.evaluate(
        rows(count), model="fake/perfect", prompt="{question}", storage=storage, run_id="stream", progress=False
    )
    metric = report.metric("exact_match")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(metric.mean, metric.count, sum(1 for _ in report.generation_results), round(peak_mb))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
