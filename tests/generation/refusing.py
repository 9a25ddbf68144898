"""Servers that refuse parameters as the vendors document it, to be given to a stub server as its answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

Answer = Callable[[web.Request, Any], Awaitable[web.StreamResponse]]

COMPLETION = {
    "id": "chatcmpl-1",
    "model": "as-served",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "model": "as-served",
    "content": [{"type": "text", "text": "42"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 2},
}


def refuse(
    message: str, param: str | None = None, code: str = "unsupported_parameter", status: int = 400
) -> web.Response:
    """An error in OpenAI's shape."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return web.json_response({"error": error}, status=status)


def find_openai_refusal(body: dict[str, Any]) -> web.Response | None:
    """What OpenAI's reasoning models say to a request, one complaint at a time."""
    if "max_tokens" in body:
        said = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return refuse(said, "max_tokens")
    for name, default in (("temperature", 1), ("top_p", 1), ("presence_penalty", 0)):
        if body.get(name, default) != default:
            said = (
                f"Unsupported value: '{name}' does not support {body[name]} with this model. "
                f"Only the default ({default}) value is supported."
            )
            return refuse(said, name, "unsupported_value")
    for name in ("stop", "logprobs"):
        if name in body:
            return refuse(f"Unsupported parameter: '{name}' is not supported with this model.", name)
    return None


async def answer_as_openai(request: web.Request, seen: Any) -> web.StreamResponse:
    return find_openai_refusal(seen.body) or web.json_response(COMPLETION)


def refuse_as_anthropic(message: str) -> web.Response:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    return web.json_response(error, status=400)


async def answer_as_anthropic(request: web.Request, seen: Any) -> web.StreamResponse:
    """What Anthropic's newer models say to a request, one complaint at a time."""
    body, thinking = seen.body, seen.body.get("thinking") or {}
    if body["max_tokens"] > 8192 + thinking.get("budget_tokens", 0):
        return refuse_as_anthropic(
            f"max_tokens: {body['max_tokens']} > 8192, which is the maximum allowed number of output tokens for this model"
        )
    if "temperature" in body and "top_p" in body:
        return refuse_as_anthropic(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        )
    if thinking.get("type") == "enabled":
        if thinking["budget_tokens"] >= body["max_tokens"]:
            return refuse_as_anthropic("`max_tokens` must be greater than `thinking.budget_tokens`.")
        if body.get("temperature", 1) != 1:
            return refuse_as_anthropic("`temperature` may only be set to 1 when thinking is enabled.")
    return web.json_response(MESSAGE)


def answering(respond: Callable[[dict[str, Any]], web.Response | None], otherwise: dict[str, Any]) -> Answer:
    """A server that says what a function of the request's body says, and else the same to everything."""

    async def answer(request: web.Request, seen: Any) -> web.StreamResponse:
        return respond(seen.body) or web.json_response(text=json.dumps(otherwise))

    return answer
