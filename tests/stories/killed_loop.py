"""The program that the kill story of tool loops runs and kills: every call of the model and of the tool is written down."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import themis
from themis.core import entities as core
from themis.interfaces import StatelessTaskExecutor

LOG = os.open(os.environ["CALLS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
USAGE = {"prompt_tokens": 10, "completion_tokens": 1}


class Climber(StatelessTaskExecutor):
    """Calls the tool once a stair, then says how high it is."""

    def __init__(self, **_: Any) -> None:
        pass

    def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
        item = task.metadata["dataset_id"]
        results = [one for one in task.metadata.get("messages", []) if one["role"] == "tool"]
        os.write(LOG, f"model:{item}:{len(results)}\n".encode())
        time.sleep(0.004)
        if len(results) < int(task.prompt.context["stairs"]):
            call = core.ToolCall("climb", {"item": item, "stair": len(results)}, id=f"call-{len(results)}")
            return core.GenerationRecord(task, core.ModelOutput("", usage=USAGE, tool_calls=(call,)), None)
        return core.GenerationRecord(task, core.ModelOutput(results[-1]["content"], usage=USAGE), None)


class Stairs:
    """What is climbed; every sample has its own, and remembers how high it is."""

    def __init__(self) -> None:
        self.height = 0

    def climb(self, item: str, stair: int) -> str:
        """Goes one stair up."""
        os.write(LOG, f"tool:{item}:{stair}\n".encode())
        time.sleep(0.002)
        self.height += 1
        return str(self.height)


def main(storage: str, rows: int) -> None:
    themis.register_provider("climber", Climber)
    report = themis.evaluate(
        [{"id": str(n), "question": "How high?", "stairs": 3 + n % 5, "answer": str(3 + n % 5)} for n in range(rows)],
        model="climber/any",
        prompt="{question}",
        tools=[Stairs],
        storage=storage,
        run_id="story",
        workers=6,
        progress=False,
    )
    metric = report.metric("exact_match")
    print(metric.mean, metric.count, metric.failed, report.metadata["cost"]["token_counts"]["prompt_tokens"])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
