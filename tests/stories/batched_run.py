"""The program that is killed while its batches are under way: rows that are numbers, a model that says them.

With DIES_AFTER it kills itself when so many answers are stored: in the middle of the results.
"""

from __future__ import annotations

import os
import signal
import sys

import themis


def main(model: str, base_url: str, storage: str, rows: int) -> None:
    left = int(os.environ.get("DIES_AFTER", "0"))

    def count(record: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    report = themis.evaluate(
        [{"id": str(n), "question": f"say {n}", "answer": str(n)} for n in range(rows)],
        model=model,
        prompt="{question}",
        storage=storage,
        run_id="story",
        batch=True,
        batch_size=int(os.environ.get("BATCH_SIZE", "100000")),
        batch_poll_seconds=0.02,
        provider_options={"base_url": base_url, "api_key": "key-one"},
        progress=False,
        on_result=count if left else None,
    )
    metric = report.metric("exact_match")
    print(metric.mean, metric.count, report.metadata["cost"]["total_cost"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
