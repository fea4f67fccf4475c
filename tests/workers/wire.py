"""A server that sends exactly the bytes that a test wrote, and the three APIs as such bytes."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from wfdsl.protocols import Call, Reply, WorkerFailure
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

Send = "Callable[[asyncio.StreamWriter], Awaitable[None]]"

KINDS = ("chat", "responses", "anthropic")
ANSWER = "It is 42."
PIECES = ("It ", "is ", "42.")


@dataclass
class Request:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Wire:
    """A running server."""

    url: str
    requests: list[Request] = field(default_factory=list)


@contextmanager
def refusing() -> Iterator[str]:
    """The address of a port that nothing listens on, and that nothing else gets meanwhile."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{deaf.getsockname()[1]}"


@asynccontextmanager
async def serving(send: Any) -> AsyncIterator[Wire]:
    """Serve what `send` writes, or these bytes, to every request; then close the connection."""
    tasks: set[asyncio.Task[None]] = set()
    wire = Wire("")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            wire.requests.append(await _read_request(reader))
            if isinstance(send, bytes):
                writer.write(send)
            else:
                await send(writer)
            if not writer.transport.is_closing():
                await writer.drain()
        writer.close()
        tasks.discard(task)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def stalling(begin: bytes = b"") -> Any:
    """Send this, and then nothing more."""

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(begin)
        await writer.drain()
        await asyncio.Event().wait()

    return send


async def _read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(first.split()[1], headers, json.loads(body) if body else {})


def reply(
    body: bytes, *, status: int = 200, kind: str = "application/json", headers: str = "", length: int = -1
) -> bytes:
    """An HTTP reply; `length` lies about the body's length."""
    size = len(body) if length < 0 else length
    head = f"HTTP/1.1 {status} Whatever\r\ncontent-type: {kind}\r\ncontent-length: {size}\r\nconnection: close\r\n"
    return f"{head}{headers}\r\n".encode() + body


def as_json(body: dict[str, Any]) -> bytes:
    """A reply of this JSON."""
    return reply(json.dumps(body).encode())


def stream(*events: dict[str, Any] | str) -> bytes:
    """A reply of server-sent events without a length: it ends when the connection does."""
    data = (event if isinstance(event, str) else json.dumps(event) for event in events)
    body = "".join(f"event: x\r\ndata: {line}\r\n\r\n" for line in data)
    return f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}".encode()


CHAT_USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
USAGE = {"input_tokens": 11, "output_tokens": 5}


def good_body(kind: str, text: str = ANSWER, **more: Any) -> dict[str, Any]:
    """The answer that each API gives when all is well."""
    if kind == "chat":
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {
            "id": "1",
            "object": "chat.completion",
            "model": "m-1",
            "choices": [choice],
            "usage": CHAT_USAGE,
            **more,
        }
    part = {"type": "output_text" if kind == "responses" else "text", "text": text}
    message = {"type": "message", "role": "assistant", "content": [part]}
    if kind == "responses":
        return {"id": "1", "model": "m-1", "status": "completed", "output": [message], "usage": USAGE, **more}
    return {**message, "model": "m-1", "stop_reason": "end_turn", "usage": USAGE, **more}


def good_events(kind: str) -> list[dict[str, Any] | str]:
    """The same answer, piece by piece."""
    if kind == "chat":
        deltas: list[dict[str, Any]] = [{"delta": {"content": piece}} for piece in PIECES]
        choices = [*deltas, {"delta": {}, "finish_reason": "stop"}]
        chunks = [{"model": "m-1", "choices": [{"index": 0, **choice}]} for choice in choices]
        return [*chunks, {"choices": [], "usage": CHAT_USAGE}, "[DONE]"]
    if kind == "responses":
        texts = [{"type": "response.output_text.delta", "delta": piece} for piece in PIECES]
        return [*texts, {"type": "response.completed", "response": good_body(kind)}]
    begin = {"type": "message_start", "message": {"model": "m-1", "usage": {"input_tokens": 11, "output_tokens": 1}}}
    parts = [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": piece}} for piece in PIECES]
    counts = {"input_tokens": None, "output_tokens": 5}  # a count with nothing in it replaces none
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": counts}
    return [begin, {"type": "ping"}, *parts, end, {"type": "message_stop"}]


def entry_for(kind: str, url: str, **more: Any) -> WorkerEntry:
    """A worker that asks this server in this API."""
    provider = "anthropic" if kind == "anthropic" else "openai"
    base = url if kind == "anthropic" else f"{url}/v1"
    api: Literal["chat", "responses"] = "responses" if kind == "responses" else "chat"
    return WorkerEntry(name="w", provider=provider, model="m", api=api, base_url=base, **more)


def call(text: str = "What is it?", **more: Any) -> Call:
    """A call with one question."""
    return Call(({"role": "user", "content": text},), **more)


def streaming(*, streams: bool = True) -> Call:
    """The same call, whose pieces are wanted."""
    return call(on_delta=(lambda _: None) if streams else None)


async def ask(entry: WorkerEntry, asked: Call | None = None) -> Reply:
    """One call to the worker of an entry, as a pool makes it."""
    async with Pool([entry]).open() as pool:
        return await pool.worker(0)(asked or call())


async def answered(kind: str, send: Any, asked: Call | None = None, **fields: Any) -> Reply:
    """What a worker of this API makes of what `send` is for a server."""
    async with serving(send) as wire:
        return await ask(entry_for(kind, wire.url, **fields), asked)


async def sent(kind: str, asked: Call | None = None, **fields: Any) -> Request:
    """The request of a worker with these settings."""
    async with serving(as_json(good_body(kind))) as wire:
        await ask(entry_for(kind, wire.url, **fields), asked)
    return wire.requests[0]


async def failure_of(entry: WorkerEntry, asked: Call | None = None) -> WorkerFailure:
    """The failure that one call ends with; a reply is what must never come."""
    try:
        got = await ask(entry, asked)
    except WorkerFailure as failure:
        return failure
    raise AssertionError(f"a fault became an answer: {got!r}")


async def fault(kind: str, send: Any, *, streams: bool = False, **fields: Any) -> WorkerFailure:
    """The failure that `send` is to a worker of this API, after one attempt."""
    async with serving(send) as wire:
        failure = await failure_of(entry_for(kind, wire.url, **fields), streaming(streams=streams))
    assert len(wire.requests) == 1, "a worker makes one attempt"
    return failure
