"""A real HTTP server to call, tasks to call it with, and the embedded model."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from themis.core.entities import GenerationTask, ModelSpec, PromptRender, PromptSpec, Reference, SamplingConfig
from themis.generation.models import install_model


@dataclass
class Seen:
    """A request as the server saw it."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    raw: bytes
    peer: tuple[str, int]


Answer = Callable[[web.Request, Seen], Awaitable[web.StreamResponse]]


@dataclass
class StubServer:
    """Listens on a free port of this machine in a thread of its own, and answers as it is told."""

    answer: Answer | None = None
    tls: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)
    port: int = 0

    def says(self, content: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """From now on: this text, bytes or JSON."""
        body = (
            content
            if isinstance(content, bytes)
            else (content if isinstance(content, str) else json.dumps(content)).encode()
        )

        async def answer(request: web.Request, seen: Seen) -> web.StreamResponse:
            return web.Response(body=body, status=status, headers=headers, content_type="application/json")

        self.answer = answer

    def address(self, path: str = "") -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}{path}"

    @property
    def last(self) -> Seen:
        return self.seen[-1]

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._runner = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> web.ServerRunner:
        runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.01)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self.tls, backlog=1024).start()
        self.port = runner.addresses[0][1]
        return runner

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()
        peer = request.transport.get_extra_info("peername") if request.transport else ("", 0)
        seen = Seen(
            path=request.path,
            query=dict(request.query),
            headers={name.lower(): value for name, value in request.headers.items()},
            body=json.loads(raw) if raw else None,
            raw=raw,
            peer=peer,
        )
        self.seen.append(seen)
        assert self.answer is not None
        return await self.answer(request, seen)  # type: ignore[arg-type]


def chat_completion(text: str | None = "95 - (21 / 3)", **changes: Any) -> dict[str, Any]:
    """What an OpenAI-compatible server answers."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "model-as-served",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 31, "completion_tokens": 9, "total_tokens": 40},
        **changes,
    }


def make_task(
    text: str = "How do 3, 21 and 95 make 88?",
    *,
    model: str = "some-model",
    provider: str = "openai",
    reference: Any = None,
    metadata: dict[str, Any] | None = None,
    **sampling: Any,
) -> GenerationTask:
    return GenerationTask(
        prompt=PromptRender(spec=PromptSpec(name="default", template="{question}"), text=text),
        model=ModelSpec(identifier=model, provider=provider),
        sampling=SamplingConfig(**sampling),
        metadata={"dataset_id": "row-7", **(metadata or {})},
        reference=None if reference is None else Reference(kind="answer", value=reference),
    )


@pytest.fixture
def task() -> Callable[..., GenerationTask]:
    return make_task


@pytest.fixture
def completion() -> Callable[..., dict[str, Any]]:
    return chat_completion


@pytest.fixture
def server() -> Iterator[StubServer]:
    stub = StubServer()
    stub.says(chat_completion())
    stub.start()
    yield stub
    stub.stop()


@pytest.fixture
def tls_server(certificate: Path) -> Iterator[StubServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    stub = StubServer(tls=context)
    stub.says(chat_completion())
    stub.start()
    yield stub
    stub.stop()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and the certificate that it signed for itself, for 127.0.0.1 until 2120. It protects nothing."""
    path = tmp_path / "certificate.pem"
    path.write_text(_CERTIFICATE)
    return path


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The embedded model, in the user's cache. Installing is locked, so parallel test processes fetch it once."""
    return install_model("smollm2")


@pytest.fixture(autouse=True)
def no_keys_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "OPENROUTER", "GEMINI", "GOOGLE", "GROQ", "MISTRAL", "TOGETHER", "VLLM"):
        for suffix in ("API_KEY", "BASE_URL"):
            monkeypatch.delenv(f"{name}_{suffix}", raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


_CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+AoBwmDsJsc2Et2X
vfSzsiz+2nnR5iPBGx4Z6Zk7bSShRANCAAT3mnwgi6LWBZ75NSvu5/1gUpowTgtB
sXwMVLe/UBVRBOS43Kr0ZOoCDpHQNV5Y50PEi/zZCgtrPmD5psnPGiU5
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBazCCARGgAwIBAgIBATAKBggqhkjOPQQDAjAWMRQwEgYDVQQDDAt0aGVtaXMg
dGVzdDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowFjEUMBIGA1UE
AwwLdGhlbWlzIHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAT3mnwgi6LW
BZ75NSvu5/1gUpowTgtBsXwMVLe/UBVRBOS43Kr0ZOoCDpHQNV5Y50PEi/zZCgtr
PmD5psnPGiU5o04wTDAaBgNVHREEEzARhwR/AAABgglsb2NhbGhvc3QwDwYDVR0T
AQH/BAUwAwEB/zAdBgNVHQ4EFgQUZBz48AiZ25xTpm2G7B01foXGLWgwCgYIKoZI
zj0EAwIDSAAwRQIhAPd79o2DHJPeydrSwXjEkUEXZzWT5RKZOrjMVLEEw/HrAiBX
/R3lrmduJJMubkawjjAJKhNfKYKyxI5UJmxwxJ7V6g==
-----END CERTIFICATE-----
"""
