"""What a step of a tool loop costs beyond the calls, beside what a trivial sample costs in the same sitting: CPU.

    python benchmarks/tool_loop.py [SAMPLES]

A step is one call of the model and one of a tool, both stored before the next; its cost is the slope between runs that
differ only in how many steps an answer takes, 2 and 12. A trivial sample has no tools and one call; its cost is the
slope between 1,000 and 6,000 of them. All runs take turns, five rounds, and of each the smallest counts; with a
provider that answers at once and with a function in threads.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import themis
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput, ToolCall
from themis.core.messages import Message
from themis.interfaces import StatelessTaskExecutor

FEW, MANY = 2, 12
SMALL, LARGE = 1_000, 6_000
ROUNDS = 5
USAGE = {"prompt_tokens": 10, "completion_tokens": 5}


def reply(messages: list[Message], wanted: int) -> ModelOutput:
    done = sum(message["role"] == "tool" for message in messages) if wanted else 0
    if done < wanted:
        return ModelOutput("", usage=USAGE, tool_calls=(ToolCall("add", {"a": done, "b": 1}, id=f"call-{done}"),))
    return ModelOutput(str(done), usage=USAGE)


class Instant(StatelessTaskExecutor):
    """Calls the tool as often as the row says, then answers."""

    instant = True
    is_local = True

    def execute(self, task: GenerationTask) -> GenerationRecord:
        messages = task.metadata.get("messages", [])
        return GenerationRecord(task, reply(messages, task.metadata["steps"]), None)


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def cpu_seconds(model: object, steps: int, samples: int) -> float:
    rows = [{"id": str(n), "question": "How many?", "steps": steps, "answer": str(steps)} for n in range(samples)]
    tools = {"tools": [add], "max_turns": 50} if steps else {}
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        report = themis.evaluate(
            rows, model=model, prompt="{question}", storage=Path(folder), progress=False, workers=16, **tools
        )
        spent = time.process_time() - began
    assert report.metric("ExactMatch").mean == 1.0
    return spent


def main(samples: int) -> None:
    themis.register_provider("loop", Instant)
    for name, model in (("instant", "loop/any"), ("function", lambda messages, row: reply(messages, row["steps"]))):
        runs = [(FEW, samples), (MANY, samples), (0, SMALL), (0, LARGE)]
        cpu_seconds(model, FEW, 20)  # what is imported and built once
        rounds = [[cpu_seconds(model, *run) for run in runs] for _ in range(ROUNDS)]
        few, many, small, large = (min(found) for found in zip(*rounds, strict=True))
        step, sample = (many - few) / ((MANY - FEW) * samples), (large - small) / (LARGE - SMALL)
        print(f"{name}: {step * 1000:.3f} ms of CPU a step, {sample * 1000:.3f} ms a trivial sample", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
