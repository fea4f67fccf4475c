"""Verdicts that are known already: the same program with the same tests is run once.

What is remembered is a finding of right or wrong that running again would only repeat. A program that ran out of time
is not remembered: it may have been the machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import OrderedDict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from wfdsl_rl.grading.verdict import Verdict
    from wfdsl_rl.tasks.task import CodeTests

ENTRIES = 1 << 16  # about 30 MB. Our choice


class VerdictMemo:
    """The last so many verdicts. Safe to share between tasks and threads."""

    def __init__(self, *, entries: int = ENTRIES) -> None:
        self._most = entries
        self._known: OrderedDict[bytes, Verdict] = OrderedDict()
        self._lock = threading.Lock()
        self._running: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[bytes, asyncio.Lock]] = (
            WeakKeyDictionary()
        )

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: bytes) -> Verdict | None:
        """What is known, which then counts as used."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def put(self, key: bytes, verdict: Verdict) -> None:
        """Remember; what has not been used for longest goes."""
        with self._lock:
            self._known[key] = verdict
            self._known.move_to_end(key)
            if len(self._known) > self._most:
                self._known.popitem(last=False)

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._known.clear()

    @asynccontextmanager
    async def alone(self, key: bytes) -> AsyncIterator[None]:
        """Wait for others in this event loop that are judging the same."""
        locks = self._running.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        lock = locks.setdefault(key, asyncio.Lock())
        async with lock:
            yield


def key_of(program: str, tests: CodeTests, settings: str) -> bytes:
    """What a verdict depends on, as a hash."""
    digest = hashlib.sha256()
    for part in (program, tests.model_dump_json(), settings):
        text = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(text) + text)
    return digest.digest()
