"""A stream of server-sent events, which ends when the client hangs up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_T = TypeVar("_T")
KEEP_ALIVE_S: Final = 15.0
"""Seconds between signs of life while nothing happens: proxies cut silent connections, most after 60 s."""
_COMMENT: Final = b": keep-alive\n\n"
DONE: Final = b"data: [DONE]\n\n"
"""The last event of a stream that has its answer."""


class ClientLeft(Exception):  # noqa: N818  (nothing has failed)
    """The client has closed the connection."""


def as_event(value: dict[str, Any]) -> bytes:
    """A value as one event."""
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


class EventStream(Response):
    """A response that sends a comment at once and then pieces as they come."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        headers: Mapping[str, str],
        keep_alive: Callable[[], bytes],
        end: Callable[[], None],
    ) -> None:
        """`keep_alive` gives what is sent while there is nothing else to send: an event, since the idle timers of some
        clients do not count comments. `end` is called at the end.
        """
        own = {"content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no"}
        self.background = None
        self.status_code = 200
        self.init_headers({**own, **headers})
        self._pieces = pieces
        self._keep_alive = keep_alive
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  (ASGI passes it)
        """Send it."""
        with suppress(ClientLeft, OSError):  # no one is left to be told
            try:
                await while_connected(receive, self._send(send))
            finally:
                self._end()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": _COMMENT, "more_body": True})
        async with aclosing(_kept_alive(self._pieces, self._keep_alive)) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def while_connected(receive: Receive, work: Coroutine[Any, Any, _T]) -> _T:
    """The result of some work, which is cancelled when the client hangs up.

    Raises:
        ClientLeft: it did.
    """
    task, gone = asyncio.create_task(work), asyncio.create_task(_hang_up(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientLeft
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _kept_alive(
    pieces: AsyncGenerator[bytes, None], keep_alive: Callable[[], bytes]
) -> AsyncGenerator[bytes, None]:
    following: asyncio.Future[bytes] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(anext(pieces))
            done, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE_S)
            if not done:
                yield keep_alive()
                continue
            try:
                piece = following.result()
            except StopAsyncIteration:
                return
            following = None
            yield piece
    finally:
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        await pieces.aclose()
