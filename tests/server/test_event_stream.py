"""What is sent while nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from wfdsl.server import endpoints
from wfdsl.server.endpoints import EventStream


async def test_a_long_silence_is_filled_with_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "KEEP_ALIVE_S", 0.0)
    silences, over = 0, asyncio.Event()

    def keep_alive() -> bytes:
        nonlocal silences
        silences += 1
        if silences == 80:  # 20 minutes of 15 s each
            over.set()
        return f"data: {silences}\n\n".encode()

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"data: begun\n\n"
        await over.wait()
        yield b"data: done\n\n"

    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    async def receive() -> Any:
        await asyncio.Event().wait()

    await EventStream(pieces(), {}, keep_alive, over.set)({}, receive, send)

    assert sent[1] == b": keep-alive\n\n"
    assert [each for each in sent if each == b": keep-alive\n\n"] == [b": keep-alive\n\n"]
    assert silences == 80
    assert sent[2:] == [b"data: begun\n\n", *(f"data: {n}\n\n".encode() for n in range(1, 81)), b"data: done\n\n", b""]
