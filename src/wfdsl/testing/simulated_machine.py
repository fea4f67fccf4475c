"""A machine for tests: an event loop whose time jumps, a journal that is written while it is idle, a disk that fails.

What a program does then depends on nothing but the program: once all its tasks wait, the journal's writer does all its
work, then the clock moves to the next timer. The disk is that of SQLite files, and its process may be killed between
any two writes.
"""

from __future__ import annotations

import asyncio
import selectors
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from wfdsl.interpreter import journal
from wfdsl.interpreter.journal_file import JournalWriter

_WRITES = ("BEGIN", "COMMIT", "DELETE", "INSERT", "UPDATE")
_LONGEST_S = 1e7
"""When a program is taken for one that never ends, in virtual seconds. Our choice."""


class Stuck(Exception):  # noqa: N818  (an event, like StopIteration)
    """Every task waits, and nothing will ever wake one."""


class Killed(BaseException):
    """The process ends here."""


class Machine:
    """Virtual time, the turns of writers, and a disk. It runs one process at a time."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        """Seconds of virtual time."""
        self.slow_s = 0.0
        """How long work waits, in virtual time, before a writer takes it."""
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
        self._writers: list[_Writer] = []
        self._work_from = 0.0

    @contextmanager
    def process(self) -> Iterator[SimulatedLoop]:
        """The life of one process, with its event loop; the disk stays as a killed one has left it."""
        self._writes, self.killed, self._noticed = 0, False, False
        loop, connect = SimulatedLoop(self), partial(sqlite3.connect, factory=partial(_Connection, self))
        try:
            with (
                patch.object(journal, "JournalWriter", partial(_Writer, self)),
                patch.object(sqlite3, "connect", connect),
            ):
                yield loop
        finally:
            loop.close()
            self._writers.clear()
            if self.killed:
                shutil.rmtree(self.folder)
                self._left.rename(self.folder)

    def kill(self) -> None:
        """End the process: what the files hold now is what the next one finds. What this one still does is lost."""
        if not self.killed:
            shutil.copytree(self.folder, self._left)
            self.killed = True

    def idle(self, timeout: float | None) -> None:
        """Let the writers work, or move on to the time that the loop waits for.

        Raises:
            Stuck: there is neither.
            Killed: the process has been killed meanwhile.
        """
        at_work = [writer for writer in self._writers if writer.has_work()]
        if at_work and (timeout is None or self._work_from <= self.now + timeout):
            self.now = max(self.now, self._work_from)
            for writer in at_work:
                writer.catch_up()
        elif timeout is None or self.now > _LONGEST_S:
            raise Stuck("every task waits, and nothing will ever wake one")
        else:
            self.now += timeout
        if self.killed and not self._noticed:
            self._noticed = True
            raise Killed

    def adds(self, writer: _Writer) -> None:
        """Note that a writer is about to get work."""
        if writer not in self._writers:
            self._writers.append(writer)
        if not any(each.has_work() for each in self._writers):
            self._work_from = self.now + self.slow_s

    def before(self, statement: str) -> None:
        """Do what goes wrong before a statement of SQL."""
        if not statement.lstrip().upper().startswith(_WRITES):
            return
        number, self._writes = self._writes, self._writes + 1
        if number == self.kill_at:
            self.kill()
        if number in self.full and not self.killed:
            raise sqlite3.OperationalError("database or disk is full")


class _Writer(JournalWriter):
    """Works while the machine's loop is idle, instead of in a thread."""

    def __init__(self, machine: Machine, path: Path) -> None:
        self._machine = machine
        super().__init__(path)

    def start(self) -> None:
        """It has no thread."""

    def put(self, job: Any) -> None:
        self._machine.adds(self)
        super().put(job)

    def has_work(self) -> bool:
        """Whether there is a job."""
        return not self._jobs.empty()

    def catch_up(self) -> None:
        """Do all jobs."""
        while self.has_work():
            self.do_batch()

    def close(self) -> None:
        if not self.has_ended:
            self.put(None)
            self.work()
        self._connection.close()


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        super().__init__(_IdleSelector(machine))
        self.call_soon_threadsafe = self.call_soon  # type: ignore[method-assign]  # writers work only while it is idle

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
