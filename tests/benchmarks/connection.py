"""Requests that are written by hand, because a client library would take more time than the server that is measured."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import suppress


class Connection:
    """A connection to a server on this machine, which is kept open."""

    def __init__(self, port: int, path: str) -> None:
        self._port = port
        self._path = path
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.failures = 0

    async def ask(self, body: bytes) -> tuple[float, bytes]:
        """Post a body; the seconds until all of the reply was there, and the reply's body.

        The server closes connections on which nothing happens for a while; such a one is opened again.
        """
        try:
            return await self._ask(body)
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.close()
            self._reader = None
            return await self._ask(body)

    async def _ask(self, asked: bytes) -> tuple[float, bytes]:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = f"POST {self._path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(asked)}\r\n\r\n"
        began = time.perf_counter()
        self._writer.write(head.encode() + asked)
        answered = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answered)
        body = await self._reader.readexactly(int(length[1])) if length else b""
        seconds = time.perf_counter() - began
        if not answered.startswith(b"HTTP/1.1 200"):
            self.failures += 1
        return seconds, body

    async def close(self) -> None:
        """End it."""
        if self._writer is not None:
            self._writer.close()
            with suppress(ConnectionError):
                await self._writer.wait_closed()
