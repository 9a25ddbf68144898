"""Batches as OpenAI has them: a file of requests is uploaded, a batch made from it, its results are files again.

The batch is found again by our token, which is in its metadata and in the name of its file.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import BinaryIO

import aiohttp
import msgspec
from yarl import URL

from themis.core.batches import Batch
from themis.core.entities import GenerationTask
from themis.exceptions import ProviderCallError
from themis.generation.batches.endpoint import CLOCK_MARGIN_SECONDS, BatchEndpoint, BatchStatus, ItemResult, Search

_PATH = "/chat/completions"
# What requests of a batch are addressed to, wherever the server is.
_ENDPOINT = "/v1/chat/completions"
_TOKEN = "themis_batch"
_INPUT = "input"
_PAGE = 100
_OVER = ("completed", "failed", "expired", "cancelled")
_OVER_LIMIT = "token_limit_exceeded"
# Of an item that has no answer: nobody has asked the model.
_UNTRIED = ("batch_expired", "batch_cancelled")


class OpenAIBatches(BatchEndpoint):
    """Batches of chat completions."""

    most_items = 50_000
    most_bytes = 200_000_000

    def write_item(self, name: str, task: GenerationTask) -> bytes:
        request = {
            "custom_id": name,
            "method": "POST",
            "url": _ENDPOINT,
            "body": msgspec.Raw(self._calls.write(task)),
        }
        return msgspec.json.encode(request)

    async def submit(self, content: Path, batch: Batch, note: Callable[[], None]) -> BatchStatus:
        if _INPUT not in batch.files:
            batch.files[_INPUT] = await self._upload(content, batch.token)
            note()
        fields = {
            "input_file_id": batch.files[_INPUT],
            "endpoint": _ENDPOINT,
            "completion_window": "24h",
            "metadata": {_TOKEN: batch.token},
        }
        return self._read_status(await self._ask("POST", self._list_url, msgspec.json.encode(fields)))

    async def _upload(self, content: Path, token: str) -> str:
        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        form.add_field("file", _open(content), filename=f"{token}.jsonl", content_type="application/jsonl")
        written = form()
        headers = {"Content-Type": written.headers["Content-Type"]}
        return self._decode(await self._ask("POST", self._url("/files"), written, headers), _Object).id

    async def find(self, batch: Batch, known: Collection[str]) -> Search:
        since = batch.created_at - CLOCK_MARGIN_SECONDS
        listed = [one async for one in self._list(self._list_url, since) if one.id not in known]
        for one in listed:
            if (one.metadata or {}).get(_TOKEN) == batch.token:
                return Search(_status_of(one))
        # For servers that keep no metadata.
        if _INPUT not in batch.files and (uploaded := await self._find_file(batch.token, since)):
            batch.files[_INPUT] = uploaded
        for one in listed:
            if one.input_file_id and one.input_file_id == batch.files.get(_INPUT):
                return Search(_status_of(one))
        return Search()

    async def _find_file(self, token: str, since: float) -> str:
        async for file in self._list(self._url("/files").update_query(purpose="batch", order="desc"), since):
            if file.filename == f"{token}.jsonl":
                return file.id
        return ""

    async def _list(self, url: URL, since: float) -> AsyncIterator[_Object]:
        """Page by page, the newest first, as far back as that moment."""
        query: dict[str, str | int] = {"limit": _PAGE}
        while True:
            page = self._decode(await self._ask("GET", url.update_query(query)), _Page)
            young = [one for one in page.data if one.created_at >= since]
            for one in young:
                yield one
            if not page.has_more or not young:
                return
            query["after"] = page.data[-1].id

    async def retrieve(self, batch_id: str) -> BatchStatus:
        return self._read_status(await self._ask("GET", self._url(f"/batches/{batch_id}")))

    async def cancel(self, batch_id: str) -> BatchStatus:
        return self._read_status(await self._ask("POST", self._url(f"/batches/{batch_id}/cancel")))

    async def fetch(self, status: BatchStatus, file: BinaryIO) -> None:
        for name in status.results:
            await self._download(self._url(f"/files/{name}/content"), file)
            file.write(b"\n")

    def read_result(self, line: bytes) -> ItemResult | None:
        found: _Line | None
        try:
            found = _LINES.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = _read_loosely(line)
        if found is None or not found.custom_id:
            return None
        if found.response is None:
            said = found.error or _Error()
            error = ProviderCallError(
                f"{self.label} did not answer in the batch: {said.message or said.code or 'no reason given'}",
                kind=said.code or "server_error",
                retryable=True,
            )
            return ItemResult(found.custom_id, error=error, is_untried=said.code in _UNTRIED)
        body = bytes(found.response.body)
        if found.response.status_code != 200:
            return ItemResult(found.custom_id, error=self._calls.refuse(found.response.status_code, body))
        return ItemResult(found.custom_id, body)

    async def discard(self, batch: Batch) -> None:
        if uploaded := batch.files.get(_INPUT):
            await self._ask("DELETE", self._url(f"/files/{uploaded}"))

    def _read_status(self, body: bytes) -> BatchStatus:
        return _status_of(self._decode(body, _Object))

    @property
    def _list_url(self) -> URL:
        return self._url("/batches")

    def _url(self, path: str) -> URL:
        url = self._calls.url
        return url.with_path(url.path.removesuffix(_PATH) + path, keep_query=True)


class _Counts(msgspec.Struct):
    total: int = 0
    completed: int = 0
    failed: int = 0


class _Error(msgspec.Struct):
    code: str | None = None
    message: str | None = None
    line: int | None = None


class _Errors(msgspec.Struct):
    data: list[_Error] | None = None


class _Object(msgspec.Struct):
    """A batch or a file, as far as it is needed."""

    id: str
    status: str = ""
    created_at: float = 0.0
    filename: str = ""
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    request_counts: _Counts | None = None
    errors: _Errors | None = None
    metadata: dict[str, object] | None = None


class _Page(msgspec.Struct):
    data: list[_Object]
    has_more: bool = False


class _Response(msgspec.Struct):
    status_code: int = 200
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    custom_id: str = ""
    response: _Response | None = None
    error: _Error | None = None


_LINES = msgspec.json.Decoder(_Line)


def _status_of(batch: _Object) -> BatchStatus:
    counts, errors = batch.request_counts or _Counts(), (batch.errors and batch.errors.data) or []
    has_failed = batch.status == "failed"
    return BatchStatus(
        id=batch.id,
        said=batch.status,
        created_at=batch.created_at,
        is_over=batch.status in _OVER,
        total=counts.total,
        done=counts.completed + counts.failed,
        answered=counts.completed,
        results=tuple(name for name in (batch.output_file_id, batch.error_file_id) if name),
        failure=("; ".join(map(_explain, errors[:3])) or "no reason given") if has_failed else "",
        is_over_limit=has_failed and any(error.code == _OVER_LIMIT for error in errors),
        was_cancelled=batch.status == "cancelled",
    )


def _explain(error: _Error) -> str:
    where = f" (line {error.line} of its file)" if error.line else ""
    return f"{error.code}: {error.message}{where}"


def _read_loosely(line: bytes) -> _Line | None:
    """What strict JSON would lose: NaN among log probabilities, halves of surrogate pairs, bytes that are not UTF-8."""
    try:
        content = json.loads(line.decode("utf-8", "replace"))
        body = json.dumps((content.get("response") or {}).pop("body", None)).encode()
        found = msgspec.convert(content, _Line)
    except (ValueError, AttributeError, RecursionError):
        return None
    if found.response is not None:
        found.response.body = msgspec.Raw(body)
    return found


def _open(path: Path) -> BinaryIO:
    return path.open("rb")
