"""A machine for tests: an event loop whose time jumps, threads that work only while it is idle, and a disk that fails.

What a program does then depends on nothing but the program: once all its tasks wait, other threads do all their work,
then the clock moves to the next timer. The threads are those that get their work from a `queue.SimpleQueue`, as the
journal's writer does; the disk is that of SQLite files, and its process may be killed between any two writes.
"""

from __future__ import annotations

import asyncio
import queue
import selectors
import shutil
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

_WRITES = ("BEGIN", "COMMIT", "DELETE", "INSERT", "UPDATE")
_LONGEST_S = 1e7
"""When a program is taken for one that never ends, in virtual seconds. Our choice, as is the next."""
_PATIENCE_S = 60
"""How long a thread may work without coming back for more, in real seconds."""


class Stuck(Exception):  # noqa: N818  (an event, like StopIteration)
    """Every task waits, and nothing will ever wake one."""


class Killed(BaseException):
    """The process ends here."""


class Machine:
    """Virtual time, the turns of threads, and a disk. It runs one process at a time."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        """Seconds of virtual time."""
        self.slow_s = 0.0
        """How long work waits, in virtual time, before a thread takes it."""
        self.folder = folder
        """What the disk holds."""
        self.full = range(0)
        """The writes of this process that fail; a write is a statement that changes a file or a transaction."""
        self.kill_at: int | None = None
        """The write before which the process ends."""
        self.killed = False
        self._noticed = False
        self._writes = 0
        self._left = folder.with_name("left")
        self._turns = threading.Condition()
        self._open = False  # whether threads may take work although the loop runs
        self._working: set[int] = set()
        self._queues: list[_Queue] = []
        self._work_from = 0.0

    @contextmanager
    def process(self) -> Iterator[SimulatedLoop]:
        """The life of one process, with its event loop; the disk stays as a killed one has left it."""
        self._writes, self.killed, self._noticed = 0, False, False
        self._loop = loop = SimulatedLoop(self)
        simple_queue, connect = queue.SimpleQueue, sqlite3.connect
        queue.SimpleQueue = partial(_Queue, self)  # type: ignore[assignment,misc]
        sqlite3.connect = partial(connect, factory=partial(_Connection, self))  # type: ignore[assignment]
        try:
            yield loop
        finally:
            queue.SimpleQueue, sqlite3.connect = simple_queue, connect  # type: ignore[misc]
            loop.close()
            self._queues.clear()
            if self.killed:
                shutil.rmtree(self.folder)
                self._left.rename(self.folder)

    def kill(self) -> None:
        """End the process: what the files hold now is what the next one finds. What this one still does is lost."""
        if not self.killed:
            shutil.copytree(self.folder, self._left)
            self.killed = True

    def idle(self, timeout: float | None) -> None:
        """Let the threads work, or move on to the time that the loop waits for.

        Raises:
            Stuck: there is neither.
            Killed: the process has been killed meanwhile.
        """
        if self.has_work() and (timeout is None or self._work_from <= self.now + timeout):
            self.now = max(self.now, self._work_from)
            with self._turns:
                self._open = True
                self._turns.notify_all()
                if not self._turns.wait_for(lambda: not self._working and not self.has_work(), _PATIENCE_S):
                    raise Stuck(f"a thread has not finished its work within {_PATIENCE_S} s")
                self._open = False
        elif timeout is None or self.now > _LONGEST_S:
            raise Stuck("every task waits, and nothing will ever wake one")
        else:
            self.now += timeout
        if self.killed and not self._noticed:
            self._noticed = True
            raise Killed

    def has_work(self) -> bool:
        """Whether there is work that no thread has taken."""
        return any(each.work for each in self._queues)

    def lets_threads_work(self) -> bool:
        """Whether threads may take work."""
        return self._open or not self._loop.is_running()

    def before(self, statement: str) -> None:
        """Do what goes wrong before a statement of SQL."""
        if not statement.lstrip().upper().startswith(_WRITES):
            return
        number, self._writes = self._writes, self._writes + 1
        if number == self.kill_at:
            self.kill()
        if number in self.full and not self.killed:
            raise sqlite3.OperationalError("database or disk is full")


class _Queue:
    """A `queue.SimpleQueue` that gives its items while the machine allows it. None is the usual request to end."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._turns = machine, machine._turns
        self._items: deque[Any] = deque()
        self.work = 0
        machine._queues.append(self)

    def put(self, item: Any) -> None:
        machine = self._machine
        with self._turns:
            if item is not None:
                machine._work_from = machine._work_from if machine.has_work() else machine.now + machine.slow_s
                self.work += 1
            self._items.append(item)
            if machine.lets_threads_work() or item is None:
                self._turns.notify_all()

    def get(self) -> Any:
        with self._turns:
            self._machine._working.discard(threading.get_ident())
            self._turns.notify_all()
            self._turns.wait_for(lambda: self._items and (self._machine.lets_threads_work() or self._items[0] is None))
            return self.get_nowait()

    def get_nowait(self) -> Any:
        with self._turns:
            if not self._items:
                raise queue.Empty
            item = self._items.popleft()
            if item is not None:
                self.work -= 1
                self._machine._working.add(threading.get_ident())
            return item

    def empty(self) -> bool:
        return not self._items


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        super().__init__(_IdleSelector(machine))
        self.call_soon_threadsafe = self.call_soon  # type: ignore[method-assign]  # threads work only while it is idle

    def time(self) -> float:
        """The virtual time."""
        return self._machine.now


class _IdleSelector(selectors.SelectSelector):
    """Waits for no socket: where a loop would wait, the machine decides what happens next."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            self._machine.idle(timeout)
        return []


class _Connection(sqlite3.Connection):
    def __init__(self, machine: Machine, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._machine = machine

    def execute(self, statement: str, /, *parameters: Any) -> sqlite3.Cursor:
        self._machine.before(statement)
        return super().execute(statement, *parameters)
