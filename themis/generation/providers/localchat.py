"""A chat endpoint that takes `{model, system_prompt, input}`, as a desktop model server offers it beside OpenAI's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.core.messages import Message, read_text
from themis.exceptions import ProviderCallError
from themis.generation.providers.chat import check_messages, make_usage, request_body, system_prompt_of, token_count
from themis.generation.providers.http import HttpProvider
from themis.generation.providers.wire import refuse_parts


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
        thoughts = [
            item.content for item in answer.output if item.type == "reasoning" and isinstance(item.content, str)
        ]
        output = ModelOutput(text, raw, _usage(answer.stats), reasoning="".join(thoughts) or None)
        return GenerationRecord(task=task, output=output, error=None)

    def _body(self, task: GenerationTask) -> bytes:
        system, said = system_prompt_of(task, self._system_prompt) or "", task.prompt.text
        if (given := task.metadata.get("messages")) is not None:
            system, said = _read_messages(check_messages(given, task), system)
        fields = {"model": task.model.identifier, "system_prompt": system, "input": said, **self._always}
        return request_body(task, fields)


def _read_messages(messages: list[Message], system: str) -> tuple[str, str]:
    """What the system says and what the user does: the endpoint takes one text of each."""
    refuse_parts(messages, "localchat")
    spoken = [message for message in messages if message["role"] != "system"]
    if len(spoken) != 1 or spoken[0]["role"] != "user":
        raise ProviderCallError(
            f"localchat takes one message of a user, and the row's 'messages' are {len(spoken)}; use the server's "
            "OpenAI-compatible address (lmstudio/MODEL)",
            kind="bad_request",
            retryable=False,
        )
    told = [read_text(message.get("content")) for message in messages if message["role"] == "system"]
    return "\n\n".join(told) or system, read_text(spoken[0].get("content"))


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
