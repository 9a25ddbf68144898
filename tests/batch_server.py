"""A server that keeps batches as OpenAI and Anthropic document theirs, and single calls beside them.

It runs in a thread of a test, or as a process of its own: `python tests/batch_server.py` prints its port. `GET /_seen` tells how
often each prompt was accepted in a batch and singly; `POST /_control` changes how it behaves (`Behaviour`). Marks in a prompt say
what becomes of its item in a batch: [400], [500], [timeout], [expires], [canceled], [empty]; a single call of [400] is refused
too, and [single 500] fails singly.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

PROMPT_TOKENS, ANSWER_TOKENS = 40, 10
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass
class Behaviour:
    """What the server does; `POST /_control` sets any of it."""

    validating_seconds: float = 0.02
    working_seconds: float = 0.05
    # While it is closed no batch ends.
    is_open: bool = True
    # Where a response is withheld until this is empty again: upload-before, upload-after, create-before, create-after,
    # results-half. What is held "before" is never accepted.
    hold: str = ""
    # So many seconds a batch is on its way before it is accepted.
    create_delay_seconds: float = 0.0
    # Answers of the next requests to make a batch: a status each, 0 for a cut connection; "taken" accepts it nevertheless.
    create_answers: list[Any] = field(default_factory=list)
    # How many requests may wait in batches of one account; batches beyond it fail.
    most_enqueued: int = 1_000_000
    keeps_metadata: bool = True
    has_batches: bool = True
    # Codes with which the next batches fail as a whole.
    fails_with: list[str] = field(default_factory=list)
    # Results are kept no longer.
    results_are_gone: bool = False
    # Answers of the next requests for a batch's status, as `create_answers`.
    status_answers: list[int] = field(default_factory=list)
    # So many of the next downloads end early, in the middle of a line, and say nothing of it.
    cut_downloads: int = 0
    # Where they end behind a whole line instead.
    cuts_behind_lines: bool = False
    # So many of the next answers about an ended batch do not name its files yet (OpenAI).
    hidden_results: int = 0


@dataclass
class Item:
    custom_id: str
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        return prompt_of(self.body)


@dataclass
class KeptBatch:
    id: str
    account: str
    items: list[Item]
    created: float
    input_file_id: str = ""
    metadata: dict[str, str] | None = None
    failure: str = ""
    ended: float = 0.0
    cancelled: float = 0.0
    files: dict[str, str] = field(default_factory=dict)


@dataclass
class KeptFile:
    id: str
    account: str
    filename: str
    purpose: str
    content: bytes
    created: float


def prompt_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def answer_to(prompt: str) -> str:
    """`say 12 [500]` is answered with `12`."""
    return re.sub(r"\s*\[[^\]]*\]", "", prompt).removeprefix("say ").strip()


class BatchServer:
    """What is kept, and how it is served."""

    def __init__(self) -> None:
        self.behaviour = Behaviour()
        self.accepted: Counter[str] = Counter()
        self.singly: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.files: dict[str, KeptFile] = {}
        self.batches: dict[str, KeptBatch] = {}
        self.held: list[str] = []
        self.port = 0
        # How OpenAI's results are written.
        self.write_line = openai_line

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def application(self) -> web.Application:
        app = web.Application(client_max_size=2**30)
        app.router.add_post("/_control", self._control)
        app.router.add_get("/_seen", self._seen)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files", self._list_files)
        app.router.add_get("/v1/files/{id}/content", self._content)
        app.router.add_delete("/v1/files/{id}", self._delete_file)
        app.router.add_post("/v1/batches", self._create_openai)
        app.router.add_get("/v1/batches", self._list_openai)
        app.router.add_get("/v1/batches/{id}", self._retrieve_openai)
        app.router.add_post("/v1/batches/{id}/cancel", self._cancel_openai)
        app.router.add_post("/v1/messages", self._message)
        app.router.add_post("/v1/messages/batches", self._create_anthropic)
        app.router.add_get("/v1/messages/batches", self._list_anthropic)
        app.router.add_get("/v1/messages/batches/{id}", self._retrieve_anthropic)
        app.router.add_post("/v1/messages/batches/{id}/cancel", self._cancel_anthropic)
        app.router.add_get("/v1/messages/batches/{id}/results", self._results)
        app.middlewares.append(self._count)
        return app

    @web.middleware
    async def _count(self, request: web.Request, handler: Any) -> web.StreamResponse:
        pattern = request.match_info.route.resource.canonical if request.match_info.route.resource else request.path
        self.requests[f"{request.method} {pattern}"] += 1
        if "batches" in request.path and not self.behaviour.has_batches:
            raise web.HTTPNotFound(text='{"error": {"message": "no such route"}}')
        try:
            response: web.StreamResponse = await handler(request)
        except _CutError:
            assert request.transport is not None
            request.transport.abort()
            raise
        return response

    # --- for tests in other processes -------------------------------------------------------------------------------

    async def _control(self, request: web.Request) -> web.Response:
        self.behaviour = replace(self.behaviour, **await request.json())
        return web.json_response(asdict(self.behaviour))

    async def _seen(self, request: web.Request) -> web.Response:
        return web.json_response(self.seen())

    def seen(self) -> dict[str, Any]:
        return {
            "accepted": self.accepted,
            "singly": self.singly,
            "requests": self.requests,
            "held": self.held,
            "batches": [{"id": one.id, "items": len(one.items)} for one in self.batches.values()],
            "files": [one.filename for one in self.files.values()],
        }

    async def _hold(self, stage: str) -> None:
        """Withholds the response while the stage is held; before anything was accepted, for good."""
        if self.behaviour.hold != stage:
            return
        self.held.append(stage)
        while self.behaviour.hold == stage:  # noqa: ASYNC110 -- tests change the behaviour from other threads
            await asyncio.sleep(0.01)
        if stage.endswith("before"):
            raise web.HTTPServiceUnavailable

    # --- single calls -----------------------------------------------------------------------------------------------

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        return self._answer_singly(body, completion(body), {"error": {"message": "Invalid 'messages'", "code": None}})

    async def _message(self, request: web.Request) -> web.Response:
        body = await request.json()
        return self._answer_singly(body, message(body), anthropic_error("invalid_request_error"))

    def _answer_singly(self, body: dict[str, Any], answer: dict[str, Any], refusal: dict[str, Any]) -> web.Response:
        prompt = prompt_of(body)
        self.singly[prompt] += 1
        if "[400]" in prompt:
            return web.json_response(refusal, status=400)
        if "[single 500]" in prompt:
            return web.json_response({"error": {"message": "broken"}}, status=500)
        return web.json_response(answer)

    # --- what both have ---------------------------------------------------------------------------------------------

    async def _accept(self, batch: KeptBatch) -> None:
        """Takes a batch, or does what the behaviour says instead."""
        await self._hold("create-before")
        told = self.behaviour.create_answers.pop(0) if self.behaviour.create_answers else 200
        status, is_taken = (told[0], told[1] == "taken") if isinstance(told, list | tuple) else (told, False)
        if self.behaviour.create_delay_seconds:
            await asyncio.shield(asyncio.sleep(self.behaviour.create_delay_seconds))
        if status == 200 or is_taken:
            self.batches[batch.id] = batch
            batch.created = time.time()
            waiting = sum(len(one.items) for one in self.batches.values() if not self._is_over(one))
            if waiting > self.behaviour.most_enqueued:
                batch.failure = "token_limit_exceeded"
            elif self.behaviour.fails_with:
                batch.failure = self.behaviour.fails_with.pop(0)
            if not batch.failure:
                self.accepted.update(item.prompt for item in batch.items)
        await self._hold("create-after")
        if status == 0:
            raise _CutError
        if status != 200:
            headers = {"Retry-After": "0.05"} if status == 429 else {}
            raise _refusal(status, headers)

    def _find(self, request: web.Request) -> KeptBatch:
        if self.behaviour.status_answers and request.method == "GET":
            raise _refusal(self.behaviour.status_answers.pop(0), {})
        batch = self.batches.get(request.match_info["id"])
        if batch is None or batch.account != account_of(request):
            raise _refusal(404, {})
        return batch

    def _worked(self, batch: KeptBatch) -> float:
        """The share of its time that a batch has had."""
        behaviour, age = self.behaviour, time.time() - batch.created
        if batch.ended:
            return 1.0
        if not behaviour.is_open and not batch.cancelled:
            return min(0.5, max(0.0, age - behaviour.validating_seconds))
        return max(0.0, age - behaviour.validating_seconds) / max(1e-9, behaviour.working_seconds)

    def _is_over(self, batch: KeptBatch) -> bool:
        if not batch.ended and (batch.failure or batch.cancelled or self._worked(batch) >= 1.0):
            late = time.time() - batch.created > self.behaviour.validating_seconds
            if late:
                batch.ended = time.time()
        return bool(batch.ended)

    def _fate(self, batch: KeptBatch, place: int) -> str:
        """What became of an item: `succeeded`, or the mark in its prompt."""
        item = batch.items[place]
        if batch.cancelled:
            # The half that had been worked off when it was cancelled.
            return "succeeded" if place < len(batch.items) // 2 else "canceled"
        marks = re.findall(r"\[(400|500|timeout|expires|canceled|empty)\]", item.prompt)
        # What failed in one batch is answered in the next.
        earlier = [one for one in self.batches.values() if one is not batch and not one.failure]
        if marks and marks[0] != "400" and any(other.prompt == item.prompt for one in earlier for other in one.items):
            return "succeeded"
        return marks[0] if marks else "succeeded"

    # --- OpenAI -----------------------------------------------------------------------------------------------------

    async def _upload(self, request: web.Request) -> web.Response:
        fields: dict[str, Any] = {}
        async for part in await request.multipart():
            fields[str(part.name)] = (part.filename, bytes(await part.read()))
        await self._hold("upload-before")
        if fields.get("purpose", ("", b""))[1] != b"batch" or not str(fields["file"][0]).endswith(".jsonl"):
            raise _refusal(400, {})
        file = self._keep_file(request, str(fields["file"][0]), fields["file"][1], "batch")
        await self._hold("upload-after")
        return web.json_response(describe_file(file))

    def _keep_file(self, request: web.Request, name: str, content: bytes, purpose: str) -> KeptFile:
        file = KeptFile(f"file-{secrets.token_hex(6)}", account_of(request), name, purpose, content, time.time())
        self.files[file.id] = file
        return file

    async def _list_files(self, request: web.Request) -> web.Response:
        account = account_of(request)
        mine = [one for one in self.files.values() if one.account == account]
        wanted = [one for one in mine if one.purpose == request.query.get("purpose", one.purpose)]
        return page([describe_file(one) for one in reversed(wanted)], request, "after", 10_000)

    async def _content(self, request: web.Request) -> web.StreamResponse:
        file = self.files.get(request.match_info["id"])
        if file is None or self.behaviour.results_are_gone:
            raise _refusal(404, {})
        return await self._stream(request, file.content)

    async def _stream(self, request: web.Request, content: bytes) -> web.StreamResponse:
        """In pieces; half of it only while results are held."""
        response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
        await response.prepare(request)
        if self.behaviour.cut_downloads:
            self.behaviour.cut_downloads -= 1
            first = content.find(b"\n")
            content = content[: first + 1 if self.behaviour.cuts_behind_lines else first * 3 // 2]
        half = len(content) // 2
        with suppress(ConnectionError):
            await response.write(content[:half])
            await self._hold("results-half")
            await response.write(content[half:])
            await response.write_eof()
        return response

    async def _delete_file(self, request: web.Request) -> web.Response:
        if self.files.pop(request.match_info["id"], None) is None:
            raise _refusal(404, {})
        return web.json_response({"id": request.match_info["id"], "object": "file", "deleted": True})

    async def _create_openai(self, request: web.Request) -> web.Response:
        asked = await request.json()
        file = self.files.get(asked["input_file_id"])
        if file is None or asked["endpoint"] != "/v1/chat/completions" or asked["completion_window"] != "24h":
            raise _refusal(400, {})
        lines = [json.loads(line) for line in file.content.splitlines() if line.strip()]
        batch = KeptBatch(
            id=f"batch_{secrets.token_hex(6)}",
            account=account_of(request),
            items=[Item(line["custom_id"], line["body"]) for line in lines],
            created=time.time(),
            input_file_id=file.id,
            metadata=asked.get("metadata") if self.behaviour.keeps_metadata else None,
        )
        if len({item.custom_id for item in batch.items}) < len(batch.items) or len(batch.items) > 50_000:
            batch.failure = "invalid_file"
        if any(line["url"] != asked["endpoint"] or line["method"] != "POST" for line in lines):
            batch.failure = "mismatched_url"
        await self._accept(batch)
        return web.json_response(self._describe_openai(request, batch))

    async def _list_openai(self, request: web.Request) -> web.Response:
        account = account_of(request)
        mine = [one for one in self.batches.values() if one.account == account]
        return page([self._describe_openai(request, one) for one in reversed(mine)], request, "after", 20)

    async def _retrieve_openai(self, request: web.Request) -> web.Response:
        return web.json_response(self._describe_openai(request, self._find(request)))

    async def _cancel_openai(self, request: web.Request) -> web.Response:
        batch = self._find(request)
        if self._is_over(batch):
            raise _refusal(400, {})
        batch.cancelled = time.time()
        return web.json_response(self._describe_openai(request, batch))

    def _describe_openai(self, request: web.Request, batch: KeptBatch) -> dict[str, Any]:
        status, age = "in_progress", time.time() - batch.created
        if self._is_over(batch):
            fates = [self._fate(batch, place) for place in range(len(batch.items))]
            status = "cancelled" if batch.cancelled else "expired" if "expires" in fates else "completed"
            status = "failed" if batch.failure else status
            if not batch.files and not batch.failure:
                self._write_results(request, batch, fates)
        elif batch.cancelled:
            status = "cancelling"
        elif age < self.behaviour.validating_seconds:
            status = "validating"
        total = 0 if status in ("validating", "failed") else len(batch.items)
        failed = sum(self._fate(batch, place) != "succeeded" for place in range(total)) if batch.ended else 0
        files = batch.files
        if files and self.behaviour.hidden_results:
            self.behaviour.hidden_results -= 1
            files = {}
        errors = [{"code": batch.failure, "message": f"it is {batch.failure}", "param": None, "line": None}]
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "errors": {"object": "list", "data": errors} if batch.failure and batch.ended else None,
            "input_file_id": batch.input_file_id,
            "completion_window": "24h",
            "status": status,
            "output_file_id": files.get("output"),
            "error_file_id": files.get("error"),
            "created_at": int(batch.created),
            "expires_at": int(batch.created) + 86_400,
            "request_counts": {
                "total": total,
                "completed": int(total * min(1.0, self._worked(batch))) - failed if total else 0,
                "failed": failed,
            },
            "metadata": batch.metadata,
        }

    def _write_results(self, request: web.Request, batch: KeptBatch, fates: list[str]) -> None:
        lines: dict[str, list[bytes]] = {"output": [], "error": []}
        for item, fate in sorted(zip(batch.items, fates, strict=True), key=lambda pair: pair[0].custom_id[::-1]):
            kind = "output" if fate in ("succeeded", "empty") else "error"
            lines[kind].append(json.dumps(self.write_line(item, fate)).encode())
        for kind, written in lines.items():
            if written:
                file = self._keep_file(request, f"{kind}.jsonl", b"\n".join(written) + b"\n", "batch_output")
                batch.files[kind] = file.id

    # --- Anthropic --------------------------------------------------------------------------------------------------

    async def _create_anthropic(self, request: web.Request) -> web.Response:
        items = [Item(one["custom_id"], one["params"]) for one in (await request.json())["requests"]]
        names = [item.custom_id for item in items]
        if not all(map(_CUSTOM_ID.fullmatch, names)) or len(set(names)) < len(names) or len(items) > 100_000:
            raise _refusal(400, {})
        batch = KeptBatch(f"msgbatch_{secrets.token_hex(6)}", account_of(request), items, time.time())
        await self._accept(batch)
        return web.json_response(self._describe_anthropic(batch))

    async def _list_anthropic(self, request: web.Request) -> web.Response:
        account = account_of(request)
        mine = [one for one in self.batches.values() if one.account == account]
        return page([self._describe_anthropic(one) for one in reversed(mine)], request, "after_id", 20)

    async def _retrieve_anthropic(self, request: web.Request) -> web.Response:
        return web.json_response(self._describe_anthropic(self._find(request)))

    async def _cancel_anthropic(self, request: web.Request) -> web.Response:
        batch = self._find(request)
        if self._is_over(batch):
            raise _refusal(400, {})
        batch.cancelled = time.time()
        return web.json_response(self._describe_anthropic(batch))

    async def _results(self, request: web.Request) -> web.StreamResponse:
        batch = self._find(request)
        if not self._is_over(batch) or self.behaviour.results_are_gone:
            raise _refusal(404, {})
        fates = [self._fate(batch, place) for place in range(len(batch.items))]
        lines = [json.dumps(anthropic_line(*pair)) for pair in zip(batch.items, fates, strict=True)]
        return await self._stream(request, ("\n".join(reversed(lines)) + "\n").encode())

    def _describe_anthropic(self, batch: KeptBatch) -> dict[str, Any]:
        is_over = self._is_over(batch)
        counts: Counter[str] = Counter()
        if is_over:
            names = {"expires": "expired", "canceled": "canceled", "succeeded": "succeeded", "empty": "succeeded"}
            counts.update(names.get(self._fate(batch, place), "errored") for place in range(len(batch.items)))
        kinds = ("processing", "succeeded", "errored", "canceled", "expired")
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if is_over else "canceling" if batch.cancelled else "in_progress",
            "request_counts": {kind: counts[kind] for kind in kinds}
            | ({} if is_over else {"processing": len(batch.items)}),
            "created_at": moment(batch.created),
            "expires_at": moment(batch.created + 86_400),
            "ended_at": moment(batch.ended) if is_over else None,
            "cancel_initiated_at": moment(batch.cancelled) if batch.cancelled else None,
            "archived_at": None,
            "results_url": f"https://api.anthropic.com/v1/messages/batches/{batch.id}/results" if is_over else None,
        }


class _CutError(Exception):
    """The connection is cut without an answer."""


def _refusal(status: int, headers: dict[str, str]) -> web.HTTPException:
    kinds = {
        400: web.HTTPBadRequest,
        401: web.HTTPUnauthorized,
        404: web.HTTPNotFound,
        413: web.HTTPRequestEntityTooLarge,
        429: web.HTTPTooManyRequests,
        500: web.HTTPInternalServerError,
        503: web.HTTPServiceUnavailable,
    }
    said = json.dumps({"error": {"message": f"refused with {status}", "type": "stub_error"}})
    extra: dict[str, Any] = {"max_size": 1, "actual_size": 2} if status == 413 else {}
    return kinds[status](text=said, headers=headers, content_type="application/json", **extra)


def account_of(request: web.Request) -> str:
    """Batches and files are seen by the key that made them."""
    key = request.headers.get("Authorization") or request.headers.get("x-api-key")
    if not key:
        raise _refusal(401, {})
    return key


def page(objects: list[dict[str, Any]], request: web.Request, cursor: str, default: int) -> web.Response:
    """The newest first, after the object that the cursor names."""
    after, limit = request.query.get(cursor), int(request.query.get("limit", default))
    start = next((place + 1 for place, one in enumerate(objects) if one["id"] == after), 0) if after else 0
    shown = objects[start : start + limit]
    ends = {"first_id": shown[0]["id"] if shown else None, "last_id": shown[-1]["id"] if shown else None}
    return web.json_response({"object": "list", "data": shown, **ends, "has_more": start + limit < len(objects)})


def describe_file(file: KeptFile) -> dict[str, Any]:
    described = {"id": file.id, "object": "file", "bytes": len(file.content), "created_at": int(file.created)}
    return described | {"filename": file.filename, "purpose": file.purpose, "status": "processed"}


def completion(body: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": ANSWER_TOKENS}
    answer = {"role": "assistant", "content": answer_to(prompt_of(body)) if text is None else text}
    return {
        "id": f"chatcmpl-{secrets.token_hex(4)}",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [{"index": 0, "message": answer, "finish_reason": "stop"}],
        "usage": usage | {"total_tokens": PROMPT_TOKENS + ANSWER_TOKENS},
    }


def message(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_{secrets.token_hex(4)}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": answer_to(prompt_of(body))}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": PROMPT_TOKENS, "output_tokens": ANSWER_TOKENS},
    }


def openai_line(item: Item, fate: str) -> dict[str, Any]:
    line: dict[str, Any] = {"id": f"batch_req_{secrets.token_hex(4)}", "custom_id": item.custom_id, "error": None}
    codes = {"expires": "batch_expired", "canceled": "batch_cancelled", "timeout": "request_timeout"}
    if fate in codes:
        return line | {"response": None, "error": {"code": codes[fate], "message": f"This request {fate}."}}
    body = completion(item.body)
    if fate == "empty":
        body = completion(item.body) | {"choices": []}
    elif fate != "succeeded":
        body = {"error": {"message": f"it is {fate}", "type": "invalid_request_error", "code": None}}
    status = int(fate) if fate.isdigit() else 200
    return line | {"response": {"status_code": status, "request_id": secrets.token_hex(4), "body": body}}


def anthropic_line(item: Item, fate: str) -> dict[str, Any]:
    if fate in ("succeeded", "empty"):
        return {"custom_id": item.custom_id, "result": {"type": "succeeded", "message": message(item.body)}}
    if fate in ("expires", "canceled"):
        return {"custom_id": item.custom_id, "result": {"type": "expired" if fate == "expires" else fate}}
    kind = {"400": "invalid_request_error", "500": "api_error", "timeout": "timeout_error"}[fate]
    return {"custom_id": item.custom_id, "result": {"type": "errored", "error": anthropic_error(kind)}}


def anthropic_error(kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": f"it is {kind}"}, "request_id": "req_1"}


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


async def _listen(server: BatchServer) -> web.AppRunner:
    runner = web.AppRunner(server.application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    return runner


@contextmanager
def batch_server() -> Iterator[BatchServer]:
    """In a thread of this process."""
    server, loop = BatchServer(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(_listen(server), loop).result()
    try:
        yield server
    finally:
        server.behaviour.hold = ""
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(timeout=30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _serve() -> None:
    server = BatchServer()
    await _listen(server)
    print(server.port, flush=True)
    # Until whoever started it closes its end.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
