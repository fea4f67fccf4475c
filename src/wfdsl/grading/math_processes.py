"""A pool of worker processes that compare expressions, each replaced when it hangs or dies.

Each process belongs to one thread, which writes a request, waits for the reply with a deadline, and watches how much
memory the process uses. Threads, not tasks, so that the pool outlives an event loop: `grade_sync` in a row starts no
new processes, and an event loop only ever waits for a future.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import queue
import select
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

PROCESSES = 2
"""How many comparisons run at the same time. Our choice: one alone takes a few milliseconds."""
LIMIT_S = 5.0
"""The longest that one comparison may take, in seconds. Our choice, as math-verify's."""
START_LIMIT_S = 60.0
"""The longest that a process may take to start, in seconds: importing sympy on a busy machine is slow."""
MEMORY_BYTES = 768 * 2**20
"""The most memory that a process may use, in bytes. Our choice: it has 100 MiB when it starts."""
COMPARISONS_PER_PROCESS = 2_000
"""After how many comparisons a process is replaced: sympy keeps what it has seen. Our choice."""
_PATIENCE_S = 0.05
_KEPT_VARIABLES = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONHOME",
    "PYTHONPATH",
    "SYSTEMROOT",
    "TMPDIR",
)


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
        self._idle: queue.LifoQueue[_Process] = queue.LifoQueue()

    async def compare(self, gold: str, answer: str, digits: int = 0) -> Comparison:
        """Compare two expressions. A comparison that takes too long, or too much memory, is `failed` with a reason."""
        return await asyncio.wrap_future(self._started().submit(self._compare, gold, answer, digits))

    def close(self) -> None:
        """Wait for the comparisons that are running, and end all processes."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=True, cancel_futures=True)
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().end()

    def forget(self) -> None:
        """After a fork, in the child: the threads are not here, and the processes are the parent's."""
        self._not_ours = self._idle
        self._lock, self._threads, self._idle = threading.Lock(), None, queue.LifoQueue()

    def _started(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._processes, thread_name_prefix="wfdsl-math")
            return self._threads

    def _compare(self, gold: str, answer: str, digits: int) -> Comparison:
        process = self._taken()
        try:
            found = process.ask(gold, answer, digits, limit_s=self._limit_s, memory_bytes=self._memory_bytes)
        except _ProcessLost as lost:
            process.end()
            return Comparison("failed" if process.asked else "not-started", str(lost))
        except BaseException:
            process.end()
            raise
        if process.asked >= COMPARISONS_PER_PROCESS:
            process.end()
        else:
            self._idle.put(process)
        return found

    def _taken(self) -> _Process:
        with contextlib.suppress(queue.Empty):
            while True:
                process = self._idle.get_nowait()
                if process.is_alive():
                    return process
                process.end()
        return _Process()


class _ProcessLost(Exception):  # noqa: N818  (a state, as in ModuleNotFound)
    """The process took too long, used too much memory, or died. The text says which."""


class _Process:
    """One process. It is started at once, and is waited for with the first request."""

    def __init__(self) -> None:
        environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "wfdsl.grading.math_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self._stdin = cast("IO[bytes]", self._popen.stdin)
        self._stdout = cast("IO[bytes]", self._popen.stdout)
        self._unread = b""
        self.asked = 0

    def ask(self, gold: str, answer: str, digits: int, *, limit_s: float, memory_bytes: int) -> Comparison:
        if not self.asked:
            self._line(START_LIMIT_S, MEMORY_BYTES)
        self.asked += 1
        request = json.dumps({"gold": gold, "answer": answer, "digits": digits, "limit_s": limit_s + 1})
        try:
            self._stdin.write(request.encode() + b"\n")
            self._stdin.flush()
        except OSError as error:
            raise _ProcessLost(f"the process that compares expressions ended: {error}") from error
        return Comparison(**json.loads(self._line(limit_s, memory_bytes)))

    def is_alive(self) -> bool:
        return self._popen.poll() is None

    def end(self) -> None:
        """Kill it and reap it: no zombie stays, no pipe stays open."""
        self._popen.kill()
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._stdout.close()
        self._popen.wait()

    def _line(self, limit_s: float, memory_bytes: int) -> bytes:
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._unread:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise _ProcessLost(f"comparing the expressions took longer than {limit_s:g} s")
            if select.select([self._stdout], [], [], min(left_s, _PATIENCE_S))[0]:
                self._read()
            elif _resident_bytes(self._popen.pid) > memory_bytes:
                raise _ProcessLost(f"comparing the expressions took more than {memory_bytes // 2**20} MiB of memory")
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _read(self) -> None:
        chunk = os.read(self._stdout.fileno(), 65536)
        if not chunk:
            code = self._popen.wait()
            raise _ProcessLost(f"the process that compares expressions died with exit code {code}")
        self._unread += chunk


def _resident_bytes(pid: int) -> int:
    """How much memory a process uses; 0 where there is no /proc, and only the limit inside the process holds."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


_SHARED = MathProcesses()


def shared_processes() -> MathProcesses:
    """The pool of this process. It ends with the interpreter; `close` ends it before."""
    return _SHARED


atexit.register(_SHARED.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SHARED.forget)
