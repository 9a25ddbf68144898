"""A chat endpoint that takes `{model, system_prompt, input}`, as a desktop model server offers it beside OpenAI's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.generation.providers.chat import make_usage, request_body, system_prompt_of, token_count
from themis.generation.providers.http import HttpProvider


class LocalChat(HttpProvider):
    """One POST for each task; the first output item of type `message` is the answer.

    The endpoint decides how it samples: `temperature` and the like go into `extra_body` where it understands them.
    """

    is_local: ClassVar[bool] = True

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        system_prompt: str | None = None,
        extra_headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(
            base_url or api_base or "http://localhost:1234/api/v1/chat",
            headers={**({"Authorization": f"Bearer {api_key}"} if api_key else {}), **(extra_headers or {})},
            api_key=api_key,
            timeout=timeout,
            system_prompt=system_prompt,
        )
        self._always = dict(extra_body or {})

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        reply = await self._post(self._body(task))
        answer = self._decode(reply.body, _Answer, "a list of output items")
        text = next((item.content for item in answer.output if item.type == "message"), None)
        if not isinstance(text, str):
            raise self._silent(reply.body, "a message")
        raw: dict[str, object] = {"id": answer.response_id, "model": answer.model_instance_id}
        reasoning = next((item.content for item in answer.output if item.type == "reasoning"), None)
        if reasoning:
            raw["reasoning"] = reasoning
        return GenerationRecord(
            task=task, output=ModelOutput(text=text, raw=raw, usage=_usage(answer.stats)), error=None
        )

    def _body(self, task: GenerationTask) -> bytes:
        fields = {
            "model": task.model.identifier,
            "system_prompt": system_prompt_of(task, self._system_prompt) or "",
            "input": task.prompt.text,
            **self._always,
        }
        return request_body(task, fields)


class _Item(msgspec.Struct):
    type: str = ""
    content: object = None


class _Answer(msgspec.Struct):
    output: list[_Item]
    stats: object = None
    response_id: str | None = None
    model_instance_id: str | None = None


def _usage(stats: object) -> dict[str, object] | None:
    if not isinstance(stats, dict):
        return None
    prompt, completion = token_count(stats.get("input_tokens")), token_count(stats.get("total_output_tokens"))
    return make_usage(prompt, completion, reasoning_tokens=token_count(stats.get("reasoning_output_tokens")))
