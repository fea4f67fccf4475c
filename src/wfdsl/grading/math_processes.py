"""A pool of worker processes that compare expressions, each replaced when it hangs or dies.

A thread writes a request to a process and waits for the reply with a deadline. Threads, not tasks, so that the pool
outlives an event loop: `grade_sync` in a row starts no new processes, and an event loop only ever waits for a future.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, cast

PROCESSES = 2
"""How many comparisons run at the same time. Our choice: one alone takes a few milliseconds."""
LIMIT_S = 5.0
"""The longest that one comparison may take, in seconds. Our choice, as math-verify's."""
START_LIMIT_S = 60.0
"""The longest that a process may take to start, in seconds: importing sympy on a busy machine is slow."""
MEMORY_BYTES = 3 * 2**29
"""The most memory that a process may reserve, in bytes. Our choice: it has 400 MiB when it starts."""
_KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two expressions."""

    outcome: str
    """`right`, `wrong`, `unread-gold`, `unread-answer`, `failed`, or `not-started` if the process never was ready."""
    reason: str = ""


class MathProcesses:
    """The pool. It starts nothing before it is used; after `close` it starts again when it is used."""

    def __init__(
        self, *, processes: int = PROCESSES, limit_s: float = LIMIT_S, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self._processes = processes
        self._limit_s = limit_s
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._idle: list[_Process] = []

    async def compare(self, gold: str, answer: str, digits: int = 0) -> Comparison:
        """Compare two expressions. A comparison that takes too long, or too much memory, is `failed` with a reason."""
        with self._lock:
            self._threads = self._threads or ThreadPoolExecutor(self._processes, thread_name_prefix="wfdsl-math")
            future = self._threads.submit(self._compare, gold, answer, digits)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Wait for the comparisons that are running, and end all processes."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=True, cancel_futures=True)
        while self._idle:
            self._idle.pop().end()

    def forget(self) -> None:
        """After a fork, in the child: the threads are not here, and the processes are the parent's."""
        self._not_ours = self._idle
        self._lock, self._threads, self._idle = threading.Lock(), None, []

    def _compare(self, gold: str, answer: str, digits: int) -> Comparison:
        process = self._idle.pop() if self._idle else _Process(self._memory_bytes)
        if not process.is_alive():
            process.end()
            process = _Process(self._memory_bytes)
        try:
            found = process.ask({"gold": gold, "answer": answer, "digits": digits}, self._limit_s)
        except _ProcessLost as lost:
            process.end()
            return Comparison("failed" if process.is_ready else "not-started", str(lost))
        self._idle.append(process)
        return found


class _ProcessLost(Exception):  # noqa: N818  (a state, as in ModuleNotFound)
    """The process took too long, used too much memory, or died. The text says which."""


class _Process:
    """One process. It is started at once, and is waited for with the first request."""

    def __init__(self, memory_bytes: int) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "wfdsl.grading.math_worker", str(memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
        )
        self._stdin = cast("IO[bytes]", self._popen.stdin)
        self._stdout = cast("IO[bytes]", self._popen.stdout)
        self.is_ready = False

    def ask(self, request: dict[str, object], limit_s: float) -> Comparison:
        if not self.is_ready:
            self._line(START_LIMIT_S)
            self.is_ready = True
        with contextlib.suppress(OSError):  # it has ended: so has its output
            self._stdin.write(json.dumps({**request, "limit_s": limit_s + 1}).encode() + b"\n")
            self._stdin.flush()
        return Comparison(**json.loads(self._line(limit_s)))

    def is_alive(self) -> bool:
        return self._popen.poll() is None

    def end(self) -> None:
        """Kill it and reap it: no zombie stays, no pipe stays open."""
        self._popen.kill()
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._stdout.close()
        self._popen.wait()

    def _line(self, limit_s: float) -> bytes:
        deadline, line = time.monotonic() + limit_s, b""
        while not line.endswith(b"\n"):
            if not select.select([self._stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise _ProcessLost(f"comparing the expressions took longer than {limit_s:g} s")
            if not (chunk := os.read(self._stdout.fileno(), 65536)):
                code = self._popen.wait()
                raise _ProcessLost(f"the process that compares expressions died with exit code {code}")
            line += chunk
        return line


_SHARED = MathProcesses()


def shared_processes() -> MathProcesses:
    """The pool of this process. It ends with the interpreter; `close` ends it before."""
    return _SHARED


atexit.register(_SHARED.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SHARED.forget)
