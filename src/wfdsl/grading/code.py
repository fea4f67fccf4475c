"""Grading of programs: run in the sandbox against their tests, with a cache of verdicts.

A verdict is made from values that came out of the sandbox, compared outside. So a program that ends early, patches
whatever it finds or forges messages can only return other values, and needs the right ones.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from weakref import WeakKeyDictionary, WeakValueDictionary

from wfdsl.grading.code_tests import run_tests
from wfdsl.grading.sandbox import Sandbox, SandboxFailed, SandboxMissing
from wfdsl.grading.sandbox.sandbox import UNSAFE
from wfdsl.grading.verdict import Verdict
from wfdsl.tasks.task import CodeTests


class VerdictCache:
    """The most recently used verdicts, by program and tests. Safe to share between tasks and threads."""

    def __init__(self, *, entries: int = 1 << 16) -> None:
        """`entries` is how many verdicts are kept; the default, about 30 MB, is our choice."""
        self._most = entries
        self._verdicts: OrderedDict[bytes, Verdict] = OrderedDict()
        self._lock = threading.Lock()
        self._running: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[bytes, asyncio.Lock]] = (
            WeakKeyDictionary()
        )

    def __len__(self) -> int:
        return len(self._verdicts)

    def get(self, key: bytes) -> Verdict | None:
        """The verdict of this key, which then counts as used."""
        with self._lock:
            found = self._verdicts.get(key)
            if found is not None:
                self._verdicts.move_to_end(key)
            return found

    def put(self, key: bytes, verdict: Verdict) -> None:
        """Keep a verdict; the least recently used one is dropped."""
        with self._lock:
            self._verdicts[key] = verdict
            self._verdicts.move_to_end(key)
            if len(self._verdicts) > self._most:
                self._verdicts.popitem(last=False)

    def clear(self) -> None:
        """Drop all verdicts."""
        with self._lock:
            self._verdicts.clear()

    @asynccontextmanager
    async def exclusive(self, key: bytes) -> AsyncIterator[None]:
        """Wait for other tasks of this event loop that are grading the same."""
        locks = self._running.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        lock = locks.setdefault(key, asyncio.Lock())
        async with lock:
            yield


SHARED_CACHE = VerdictCache()
"""The verdicts of this process."""


async def grade_program(
    program: str,
    tests: CodeTests,
    *,
    sandbox: Sandbox | None = None,
    verdicts: VerdictCache | None = SHARED_CACHE,
) -> Verdict:
    """Run a program's tests until one fails.

    Without `sandbox`, one that all callers share is used. `verdicts` answers for programs that were graded with the
    same tests before; None runs each one again. Where programs cannot be run safely, or a run says nothing about the
    program, the verdict is unjudged and its reason says why: it is never wrong and never right.
    """
    if not program.strip():
        return Verdict("wrong", None, "the program is empty")
    try:
        sandbox = sandbox or shared_sandbox()
        verdict = await _cached(program, tests, sandbox, verdicts)
    except (SandboxMissing, SandboxFailed) as problem:
        return Verdict("unjudged", program, str(problem))
    return replace(verdict, reason=f"{UNSAFE}{verdict.reason}") if sandbox.unsafe else verdict


@cache
def shared_sandbox() -> Sandbox:
    """The sandbox that is used by default. Raises: SandboxMissing."""
    return Sandbox()


def key_of(program: str, tests: CodeTests, settings: str) -> bytes:
    """A hash of everything that a verdict depends on."""
    digest = hashlib.sha256()
    for part in (program, tests.model_dump_json(), settings):
        text = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(text) + text)
    return digest.digest()


async def _cached(program: str, tests: CodeTests, sandbox: Sandbox, verdicts: VerdictCache | None) -> Verdict:
    if verdicts is None:
        return await _graded(program, tests, sandbox)
    key = key_of(program, tests, sandbox.settings)
    if (known := verdicts.get(key)) is not None:
        return known
    async with verdicts.exclusive(key):
        verdict = verdicts.get(key)
        if verdict is None:
            verdict = await _graded(program, tests, sandbox)
            if verdict.outcome != "unjudged" and not verdict.timed_out:  # the machine may have been busy
                verdicts.put(key, verdict)
        return verdict


async def _graded(program: str, tests: CodeTests, sandbox: Sandbox) -> Verdict:
    async with sandbox.slot() as slot:
        return await run_tests(program, tests, slot)
