"""Runs in which more is said than a prompt and a text: steps with tools, reasoning, refusals, images, several attempts."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from typing import Any

import themis
from themis.core.entities import GenerationRecord, GenerationTask, ModelError, ModelOutput, ToolCall
from themis.interfaces import StatelessTaskExecutor

__all__ = ["ANSWERS", "PLOT", "PNG", "STEPS", "SVG", "Speaker", "write_spoken_runs"]


def draw_png(width: int, height: int) -> bytes:
    """A picture that browsers can draw."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    def row(y: int) -> bytes:
        return b"\0" + b"".join(bytes((x * 255 // width, y * 255 // height, 160)) for x in range(width))

    rows = b"".join(row(y) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PNG, PLOT = draw_png(96, 64), draw_png(80, 24)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>window.acted = 1</script></svg>'
STEPS = (
    {
        "role": "assistant",
        "content": "Let me look.",
        "reasoning": "Both cities.",
        "tool_calls": [
            {"id": "1", "name": "weather", "arguments": {"city": "Paris"}},
            {"id": "2", "name": "weather", "arguments": {"city": "Atlantis"}},
        ],
    },
    {"role": "tool", "tool_call_id": "2", "name": "weather", "content": "LookupError: no such city", "error": True},
    {
        "role": "tool",
        "tool_call_id": "1",
        "name": "weather",
        "content": [
            {"type": "text", "text": "21 degrees"},
            {"type": "image", "media_type": "image/png", "data": base64.b64encode(PLOT).decode()},
        ],
    },
    {"role": "assistant", "content": "It is 21 degrees in Paris."},
)
ANSWERS = {
    "plain": ModelOutput("4", finish_reason="stop"),
    "steps": ModelOutput("It is 21 degrees in Paris.", transcript=STEPS, finish_reason="max_turns"),
    "thought": ModelOutput("91", reasoning="7 x 13 = 91", finish_reason="stop"),
    "called": ModelOutput(
        "",
        tool_calls=(ToolCall("search", {"query": "Paris"}, "1"), ToolCall("open", {}, "2", invalid='{"url')),
        finish_reason="tool_calls",
    ),
    "cut": ModelOutput("The first thing", finish_reason="length"),
    "refused": ModelOutput("I cannot say.", refusal="I cannot say.", finish_reason="stop"),
}


class Speaker(StatelessTaskExecutor):
    """Answers a row by its field `says`; of several attempts the second fails and the third is wrong."""

    def __init__(self, **options: Any) -> None:
        pass

    def execute(self, task: GenerationTask) -> GenerationRecord:
        if "says" in task.metadata:
            return GenerationRecord(task, ANSWERS[task.metadata["says"]], None)
        attempt = task.metadata.get("attempts", 0)
        if attempt == 1:
            return GenerationRecord(task, None, ModelError("nobody is there", "connection"))
        return GenerationRecord(task, ModelOutput("5" if attempt == 2 else "4"), None)


def write_spoken_runs(root: Path) -> None:
    """Into a store: `said` (an answer of each kind), `images`, and four attempts of which one is wrong and one failed, averaged
    (`four`) and each with its own score (`kept`)."""
    themis.register_provider("speaker", Speaker)
    fixed: dict[str, Any] = {"model": "speaker/x", "metrics": ["exact_match"], "storage": root, "progress": False}
    rows = [{"id": name, "says": name, "question": f"Say it: {name}", "answer": "4"} for name in ANSWERS]
    themis.evaluate(rows, prompt="{question}", system_prompt="Be <brief>.", run_id="said", **fixed)
    for name, content in (("cat.png", PNG), ("logo.svg", SVG), ("paper.pdf", b"%PDF-1.7")):
        (root / name).write_bytes(content)
    shown = {name: str(root / f"{name}.{kind}") for name, kind in (("cat", "png"), ("logo", "svg"), ("paper", "pdf"))}
    chat = [{"role": "system", "content": "Reply in Latin."}, {"role": "user", "content": "{question}"}]
    row = {"id": "cat", "says": "plain", "question": "What is it?", "answer": "4", **shown}
    themis.evaluate([row], prompt=chat, attach=list(shown), run_id="images", **fixed)
    several = {"num_samples": 4, "max_retries": 1, "prompt": "{question}"}
    themis.evaluate(
        [{"id": "q", "question": "2 + 2?", "answer": "4"}], reducer="average", run_id="four", **several, **fixed
    )
    themis.evaluate(
        [{"id": "q", "question": "2 + 2?", "answer": "4"}], reducer="keep", run_id="kept", **several, **fixed
    )
