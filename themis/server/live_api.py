"""Live: server-sent events at `/api/events` and `/api/runs/{id}/events`, and the WebSocket `/ws`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, HTTPException, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse

from themis.server.api import PROBLEMS
from themis.server.live import ALL_RUNS, Hub, Subscription
from themis.server.state import AppState, State

router = APIRouter(tags=["live"])

_HEARTBEAT_SECONDS = 15.0
_MOST_TOPICS = 100
_MOST_CHARACTERS = 10_000
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "A stream that does not end by itself", "content": {"text/event-stream": {}}}
}


@router.get("/api/events", summary="Changes of runs as they happen", responses={**_STREAM, **PROBLEMS})
async def all_events(state: State) -> StreamingResponse:
    """`run` events whenever a run is written to."""
    return _stream(state.hub, ALL_RUNS)


@router.get("/api/runs/{run_id}/events", summary="One run as it goes on", responses={**_STREAM, **PROBLEMS})
async def run_events(state: State, run_id: str) -> StreamingResponse:
    """First how the run stands, then `run`, `sample` and `turn` events as they are committed."""
    await asyncio.to_thread(state.reader, run_id)
    return _stream(state.hub, run_id)


def _stream(hub: Hub, topic: str) -> StreamingResponse:
    return StreamingResponse(
        _lines(hub, topic),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _lines(hub: Hub, topic: str) -> AsyncIterator[str]:
    with hub.subscribe() as listener:
        listener.topics.add(topic)
        # Tells the browser how long to wait before it comes back, and that the stream is open.
        yield "retry: 2000\n\n"
        if topic != ALL_RUNS and (now := await hub.snapshot(topic)) is not None:
            yield f"event: {now.kind}\ndata: {now.text}\n\n"
        while True:
            try:
                event = await asyncio.wait_for(listener.next(), _HEARTBEAT_SECONDS)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if event is None:
                return
            yield f"event: {event.kind}\ndata: {event.text}\n\n"


@router.get("/ws", include_in_schema=False)
async def no_upgrade(request: Request) -> None:
    """Reached when a WebSocket was wanted but the server program cannot speak it, or none was wanted."""
    if request.headers.get("upgrade", "").lower() == "websocket":
        raise HTTPException(501, "WebSockets need the package websockets on the server; /api/events works without it")
    raise HTTPException(426, "this address speaks WebSocket; /api/events has the same as server-sent events")


@router.websocket("/ws")
async def websocket(socket: WebSocket) -> None:
    """Takes `{"type": "ping" | "subscribe" | "unsubscribe", "run_id": id}`; subscribing to `*` watches all runs."""
    state: AppState = socket.app.state.themis
    hub = state.hub
    await socket.accept()
    with hub.subscribe() as listener:
        sender = asyncio.create_task(_forward(socket, listener))
        try:
            while True:
                answer = _reply_to(listener, await _receive_text(socket))
                await socket.send_text(json.dumps(answer))
                if answer["type"] == "subscribed":
                    await _watch(hub, listener, answer["run_id"])
        except (WebSocketDisconnect, RuntimeError):
            pass  # the other side is gone, or the server stops
        finally:
            sender.cancel()


async def _receive_text(socket: WebSocket) -> str:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    text: str = message.get("text") or (message.get("bytes") or b"").decode("utf-8", "replace")
    return text


def _reply_to(listener: Subscription, text: str) -> dict[str, str]:
    try:
        parsed = json.loads(text) if len(text) <= _MOST_CHARACTERS else None
    except (ValueError, RecursionError):
        return {"type": "error", "message": "Invalid JSON"}
    message: dict[str, object] = parsed if isinstance(parsed, dict) else {}
    kind = message.get("type")
    if kind == "ping":
        return {"type": "pong"}
    if kind not in ("subscribe", "unsubscribe"):
        return {"type": "error", "message": f"Unknown message type: {kind!r}; known: ping, subscribe, unsubscribe"}
    run_id = message.get("run_id")
    if not isinstance(run_id, str) or not run_id:
        return {"type": "error", "message": f"{kind} needs the run_id, a string"}
    if kind == "unsubscribe":
        listener.topics.discard(run_id)
        return {"type": "unsubscribed", "run_id": run_id}
    if len(listener.topics) >= _MOST_TOPICS:
        return {"type": "error", "message": f"one connection watches at most {_MOST_TOPICS} runs"}
    return {"type": "subscribed", "run_id": run_id}


async def _watch(hub: Hub, listener: Subscription, run_id: str) -> None:
    listener.topics.add(run_id)
    if run_id != ALL_RUNS and (now := await hub.snapshot(run_id)) is not None:
        listener.offer(now)


async def _forward(socket: WebSocket, listener: Subscription) -> None:
    while (event := await listener.next()) is not None:
        await socket.send_text(event.text)
    await socket.close(1001)
