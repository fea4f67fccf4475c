"""A pool of worker processes that compare expressions, each replaced when it dies of its limit of time or memory.

A thread writes a request to a process and waits for the reply; the process ends itself when it takes too long. Threads,
not tasks, so that the pool outlives an event loop: `grade_sync` in a row starts no new processes, and an event loop
only ever waits for a future.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache

LIMIT_S = 5.0
"""The longest that one comparison may take, in seconds. Our choice, as math-verify's."""
MEMORY_BYTES = 3 * 2**29
"""The most memory that a process may reserve, in bytes. Our choice: it has 400 MiB when it starts."""
_KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH", "TMPDIR")


class MathProcesses:
    """The pool. It starts nothing before it is used, and runs two comparisons at a time, of a few milliseconds each."""

    def __init__(self, *, processes: int = 2, limit_s: float = LIMIT_S, memory_bytes: int = MEMORY_BYTES) -> None:
        self._limits = (str(limit_s), str(memory_bytes))
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="wfdsl-math")
        self._idle: list[subprocess.Popen[bytes]] = []

    async def compare(self, gold: str, answer: str) -> str:
        """How two expressions compare: `right`, `wrong`, or in a sentence why that is not known."""
        return await asyncio.wrap_future(self._threads.submit(self._compare, gold, answer))

    def close(self) -> None:
        """Wait for the comparisons that are running, and end all processes."""
        self._threads.shutdown(cancel_futures=True)
        while self._idle:
            _end(self._idle.pop())

    def _compare(self, *request: str) -> str:
        process = self._idle.pop() if self._idle else self._started()
        if process.poll() is not None:
            _end(process)
            process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):  # it has ended: so has its output
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        if (reply := process.stdout.readline()).endswith(b"\n"):
            self._idle.append(process)
            return str(json.loads(reply))
        code = process.wait()
        _end(process)
        if code == -signal.SIGALRM:
            return f"comparing the expressions took longer than {float(self._limits[0]):g} s"
        return f"the process that compares expressions died with exit code {code}"

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "wfdsl.grading.math_worker", *self._limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it and reap it: no zombie stays, no pipe stays open."""
    with contextlib.suppress(OSError), process:
        process.kill()


def shared_processes() -> MathProcesses:
    """The pool of this process, which ends with the interpreter. A process that was forked has another one."""
    return _pool_of(os.getpid())


@cache
def _pool_of(owner: int) -> MathProcesses:
    pool = MathProcesses()
    atexit.register(lambda: pool.close() if os.getpid() == owner else None)
    return pool
