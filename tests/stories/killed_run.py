"""The program that the kill story runs and kills: 2,000 rows, a provider of 5 ms that writes down every call.

While the file named by HELD_BY exists, no call ends.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import themis
from themis.core import entities as core
from themis.interfaces import StatelessTaskExecutor


class LoggingProvider(StatelessTaskExecutor):
    def __init__(self, **_: Any) -> None:
        # Not an option: options are part of what a run is.
        self._log = os.open(os.environ["CALLS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
        os.write(self._log, f"{task.metadata['dataset_id']}\n".encode())
        time.sleep(0.005)
        while os.path.exists(os.environ.get("HELD_BY", "")):
            time.sleep(0.005)
        number = int(task.metadata["dataset_id"])
        text = str(number + 1) if number % 3 else "wrong"
        return core.GenerationRecord(task=task, output=core.ModelOutput(text=text), error=None)


def main(storage: str, rows: int) -> None:
    themis.register_provider("logging", LoggingProvider)
    report = themis.evaluate(
        [{"id": n, "question": f"{n} + 1?", "answer": str(n + 1)} for n in range(rows)],
        model="logging:m",
        prompt="{question}",
        storage=storage,
        run_id="story",
        workers=8,
        progress=False,
    )
    metric = report.metric("exact_match")
    print(metric.mean, metric.count, metric.failed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
