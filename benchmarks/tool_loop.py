"""What a step of a tool loop costs beyond the calls: CPU of runs that differ only in how many steps an answer takes.

    python benchmarks/tool_loop.py [SAMPLES]

Prints the CPU a step (one call of the model, one of a tool, both stored before the next), as the slope between runs of 2 and
of 12 steps a sample, smallest of three; with a provider that answers at once and with a function in threads.
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
USAGE = {"prompt_tokens": 10, "completion_tokens": 5}


def reply(messages: list[Message], wanted: int) -> ModelOutput:
    done = sum(message["role"] == "tool" for message in messages)
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
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        report = themis.evaluate(
            rows,
            model=model,
            tools=[add],
            prompt="{question}",
            storage=Path(folder),
            max_turns=50,
            progress=False,
            workers=16,
        )
        spent = time.process_time() - began
    assert report.metric("ExactMatch").mean == 1.0
    return spent


def main(samples: int) -> None:
    themis.register_provider("loop", Instant)
    for name, model in (("instant", "loop/any"), ("function", lambda messages, row: reply(messages, row["steps"]))):
        slopes = []
        cpu_seconds(model, FEW, 20)  # what is imported and built once
        for _ in range(3):
            few, many = (cpu_seconds(model, steps, samples) for steps in (FEW, MANY))
            slopes.append((many - few) / ((MANY - FEW) * samples))
        print(f"{name}: {min(slopes) * 1000:.3f} ms of CPU a step")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
