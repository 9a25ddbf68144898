"""Keeps the answers of another provider in a file, and answers from it: tests of a paid model that run for nothing.

The cassette is JSON lines, one answer each, found again by a hash of everything that was sent. It holds what was asked
and answered; provider options never reach it, nor does a key that an answer repeats.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from themis.core.codec import decode, encode
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput, ModelSpec
from themis.core.fingerprint import fingerprint
from themis.core.redaction import Redactor
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.generation.providers import create_provider, parse_model
from themis.generation.providers.conversation import attempt_index, item_name, messages_of
from themis.interfaces import StatelessTaskExecutor

__all__ = ["Recording"]

_MODES = ("auto", "record", "replay")
# Options that say how the endpoint is reached and who asks; they do not change what it answers.
_ONLY_THE_WAY = {
    *("api_key", "base_url", "api_base", "organization", "extra_headers"),
    *("timeout", "proxy", "ca_file", "verify", "max_response_bytes"),
}


class Recording(StatelessTaskExecutor):
    """`recording:openai/gpt-4o` with `cassette="answers.jsonl"`.

    `mode="record"` always calls and keeps the newest answer, `"replay"` never calls, `"auto"` calls for what is not
    there. `options` are the recorded provider's own.
    """

    def __init__(
        self,
        *,
        cassette: str | os.PathLike[str],
        mode: str = "auto",
        options: Mapping[str, Any] | None = None,
        model_identifier: str = "",
    ) -> None:
        if mode not in _MODES:
            raise ConfigurationError(f"a recording's mode is one of {', '.join(_MODES)}, got {mode!r}")
        self._mode = mode
        self._cassette = _Cassette(Path(cassette))
        self._options = dict(options or {})
        self._recorded: StatelessTaskExecutor | None = None
        self._model = parse_model(model_identifier, self._options) if model_identifier else None
        if self._model is not None and mode != "replay":
            self._recorded = self._provider_of(self._model)

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        recorded_task = replace(task, model=self._model or parse_model(task.model.identifier, self._options))
        key = self._key(recorded_task)
        output = None if self._mode == "record" else self._cassette.find(key)
        if output is None and self._mode == "replay":
            raise ProviderCallError(
                f"{self._cassette.path} holds no answer of {recorded_task.model.model_key} for item {item_name(task)}; "
                f"mode='auto' would ask for it",
                kind="not_recorded",
                retryable=False,
            )
        if output is not None:
            return GenerationRecord(
                task=task, output=output, error=None, metrics={"replayed": str(self._cassette.path)}
            )
        record = await self._ask(recorded_task)
        if record.output is not None and record.error is None:
            self._cassette.add(key, recorded_task, record.output)
        return replace(record, task=task)

    async def aclose(self) -> None:
        close = getattr(self._recorded, "aclose", None) or getattr(self._recorded, "close", None)
        if close is not None:
            closing = close()
            if inspect.isawaitable(closing):
                await closing

    async def _ask(self, task: GenerationTask) -> GenerationRecord:
        if self._recorded is None:
            self._recorded = self._provider_of(task.model)
        execute = self._recorded.execute
        # A sync provider may block, which this loop must not.
        is_async = inspect.iscoroutinefunction(execute)
        answer = execute(task) if is_async else await asyncio.to_thread(execute, task)
        return await answer if inspect.isawaitable(answer) else answer

    def _key(self, task: GenerationTask) -> str:
        sampling = task.sampling
        return fingerprint(
            {
                "model": task.model.model_key,
                "messages": messages_of(task, None),
                "sampling": [sampling.temperature, sampling.top_p, sampling.max_tokens],
                "attempt": attempt_index(task),
                "options": {name: value for name, value in self._options.items() if name not in _ONLY_THE_WAY},
            }
        )

    def _provider_of(self, model: ModelSpec) -> StatelessTaskExecutor:
        return create_provider(model.provider, self._options, model_identifier=model.identifier)


class _Cassette:
    """The file and what is in it. Lines are only ever added; of two with one key the later counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._redactor = Redactor()
        self._lock = threading.Lock()
        self._lines: dict[str, dict[str, Any]] | None = None

    def find(self, key: str) -> ModelOutput | None:
        with self._lock:
            line = self._read().get(key)
        return ModelOutput(text=line["text"], raw=line.get("raw"), usage=line.get("usage")) if line else None

    def add(self, key: str, task: GenerationTask, output: ModelOutput) -> None:
        line = {
            "key": key,
            "model": task.model.model_key,
            "prompt": task.prompt.text,
            "text": self._redactor.values(output.text),
            "raw": self._redactor.data(output.raw),
            "usage": output.usage,
        }
        with self._lock:
            known = self._read()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(encode(line).encode("utf-8") + b"\n")
            known[key] = line

    def _read(self) -> dict[str, dict[str, Any]]:
        if self._lines is None:
            self._lines = {}
            if self.path.exists():
                for number, text in enumerate(self.path.read_bytes().splitlines(), start=1):
                    line = self._parsed(text, number)
                    if line is not None:
                        self._lines[line["key"]] = line
        return self._lines

    def _parsed(self, text: bytes, number: int) -> dict[str, Any] | None:
        try:
            line = decode(text)
        except json.JSONDecodeError:
            return None  # the line that a killed process was writing
        if not isinstance(line, dict) or not isinstance(line.get("text"), str) or "key" not in line:
            raise ConfigurationError(f"{self.path}, line {number}, is not a recorded answer")
        return line
