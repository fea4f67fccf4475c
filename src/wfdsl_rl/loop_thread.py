"""An event loop in a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from wfdsl.workers.pool import Pool

_Result = TypeVar("_Result")


class LoopThread:
    """The loop and its thread, which start with the first call. A pool stays open in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._open = AsyncExitStack()

    def run(self, work: Coroutine[Any, Any, _Result], pool: Pool) -> _Result:
        """Do some work in the loop and wait for it; an interrupt while waiting cancels the work."""
        future = asyncio.run_coroutine_threadsafe(work, self._started(pool))
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Close the pool, and end the thread."""
        with self._lock:
            if self._loop is None or self._thread is None:
                return
            atexit.unregister(self.close)
            asyncio.run_coroutine_threadsafe(self._open.aclose(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None

    def _started(self, pool: Pool) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="wfdsl-reward", daemon=True)
                self._thread.start()
                atexit.register(self.close)
                asyncio.run_coroutine_threadsafe(self._open.enter_async_context(pool.open()), self._loop).result()
            return self._loop
