"""What is new in the journal: its runs in memory, and a stream of events that tells a page when they have changed."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from wfdsl.errors import JournalFailure
from wfdsl.interpreter.events import Delta, Event, FellBack, Retried, StepFinished
from wfdsl.interpreter.journal_file import connect, failure
from wfdsl.interpreter.journal_reading import RunSummary, summaries

_LOOK_S: Final = 0.5
"""Seconds between two looks at the journal while a page waits for news. Our choice."""
_SLOW_S: Final = 0.05
"""Seconds from which on reading the list counts as slow. Our choice."""
_PAUSE: Final = 10.0
"""How many times as long as reading took nothing is read again after a slow read. Our choice."""
_QUIET_LOOKS: Final = 30
"""Looks without news after which a comment is sent, so that nothing on the way takes the stream for dead."""


class RunIndex:
    """The runs of a journal, one line each, newest first. They are read again only where the journal has changed."""

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self.live: list[Callable[[str], Sequence[Event]]] = []
        """What gives the events so far of a run that is in progress in this process, by its id."""
        self.is_closing = False
        """Whether the server ends, so that streams end too."""
        self._lock = threading.Lock()
        self._runs: tuple[RunSummary, ...] = ()
        self._revision = 0
        self._read_after = 0.0
        self._connection: sqlite3.Connection | None = None
        self._version: tuple[int, int] | None = None

    def runs(self, *, now: bool = False) -> tuple[RunSummary, ...]:
        """All runs; none if there is no journal yet.

        Reading a long list takes a while, so that of a journal that changes all the time it is read less often; `now`
        reads it in any case.

        Raises:
            JournalFailure: the journal cannot be read.
        """
        with self._lock:
            if not self.journal.exists():
                return ()
            version = self._file_version()
            # A process that dies changes nothing in the file.
            is_old = version != self._version or any(run.status == "running" for run in self._runs)
            began = time.monotonic()
            if is_old and (now or began >= self._read_after):
                found = tuple(summaries(self.journal))
                took = time.monotonic() - began
                self._read_after = began + (took * _PAUSE if took > _SLOW_S else 0.0)
                self._revision += found != self._runs
                self._runs, self._version = found, version
            return self._runs

    def find(self, run_id: str) -> RunSummary | None:
        """The run with an id; None: the journal has no such run."""
        found = next((run for run in self.runs() if run.id == run_id), None)
        return found or next((run for run in self.runs(now=True) if run.id == run_id), None)

    def version(self, run_id: str | None = None) -> str:
        """What differs whenever the list has changed, or one of its runs."""
        runs = self.runs()
        if run_id is None:
            return str(self._revision)
        found = next((run for run in runs if run.id == run_id), None)
        return hashlib.sha256(repr((found, self.texts(run_id))).encode()).hexdigest()[:16]

    def texts(self, run_id: str) -> dict[tuple[int, ...], str]:
        """What workers have written so far in steps that run in this process, by the paths of the steps."""
        found: dict[tuple[int, ...], str] = {}
        for event in (each for events_of in self.live for each in events_of(run_id)):
            if isinstance(event, Delta):
                found[event.path] = found.get(event.path, "") + event.text
            elif isinstance(event, (Retried, FellBack, StepFinished)):
                found.pop(event.path, None)
        return found

    def close(self) -> None:
        """Let go of the file, and end all streams."""
        self.is_closing = True
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _file_version(self) -> tuple[int, int]:
        """Which file the journal is, and a number that differs after each change of it by another connection."""
        inode = self.journal.stat().st_ino
        try:
            if self._connection is not None and self._version is not None and self._version[0] != inode:
                self._connection.close()
                self._connection = None
            if self._connection is None:
                self._connection = connect(self.journal, any_thread=True)
            return inode, int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error as error:
            raise failure(self.journal, error) from error


def event_stream(request: Request) -> Response:
    """An event `change` whenever the runs, or the run that the query names, have another version than its `since`."""
    index: RunIndex = request.app.state.index
    query = request.query_params
    events = _events(index, partial(index.version, query.get("run")), query.get("since", ""))
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


async def _events(index: RunIndex, current: Callable[[], str], known: str) -> AsyncIterator[str]:
    quiet = 0
    yield "retry: 2000\n\n"
    while not index.is_closing:
        try:
            version = await run_in_threadpool(current)
        except JournalFailure:
            version = "unreadable"  # the page that is asked for next says why
        if version != known:
            yield f"event: change\ndata: {version}\n\n"
            known, quiet = version, 0
        elif (quiet := quiet + 1) > _QUIET_LOOKS:
            yield ": no news\n\n"
            quiet = 0
        await asyncio.sleep(_LOOK_S)
