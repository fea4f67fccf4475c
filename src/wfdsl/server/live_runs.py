"""Runs in progress: which requests wait for which run, what they see of it, and what ends a run that no one waits for.

A client that hangs up ends its run; replies that were paid for stay in the journal. A client that gives up because its
own time limit is over will ask again, as OpenAI's clients do by themselves: its run continues for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from wfdsl.errors import JournalFailure, RunInUse, UsageError
from wfdsl.interpreter.conductor_node import OWN_STEP
from wfdsl.interpreter.events import (
    CompletionFinished,
    CompletionStarted,
    Delta,
    Event,
    FellBack,
    Listener,
    Path,
    Retried,
    RunStarted,
    StepFinished,
    StepStarted,
)
from wfdsl.interpreter.record import Run, RunEnded
from wfdsl.render.text import counted
from wfdsl.server.api_errors import NO_RETRY, ApiError, journal_failed, of_run, shutting_down

_T = TypeVar("_T")
Work: TypeAlias = Callable[[Listener], Coroutine[Any, Any, _T]]
"""What runs a run, and tells its events to a listener."""
LINGER_S = 60.0
"""How long a run continues after its client's time is over. OpenAI's clients wait at most 8 s before they ask again."""


class LiveRun(Generic[_T]):
    """A run in progress, with what has happened in it so far."""

    def __init__(self, work: Work[_T], observe: Listener, about: str) -> None:
        self.about = about  # in the words of the request that started it
        self.events: list[Event] = []
        self._observe = observe
        self._news = asyncio.Event()
        self.waiting = 0
        self.task = asyncio.create_task(work(self._hear))
        self.task.add_done_callback(lambda _: self._news.set())

    async def result(self) -> _T:
        """What it comes to; what has ended it is raised as the `ApiError` that a client is sent."""
        await asyncio.wait([self.task])
        if self.task.cancelled():
            raise shutting_down()
        try:
            return self.task.result()
        except RunEnded as error:
            raise of_run(error) from error
        except RunInUse as error:
            raise ApiError(409, str(error), code="run_in_progress", headers={"retry-after": "5"}) from error
        except JournalFailure as error:
            raise journal_failed(error) from error
        except UsageError as error:
            raise ApiError(500, str(error), code="run_refused", headers=NO_RETRY) from error

    async def follow(self) -> AsyncIterator[Event]:
        """All events of the run from its beginning, as they happen."""
        seen = 0
        while True:
            while seen < len(self.events):
                yield self.events[seen]
                seen += 1
            if self.task.done():
                return
            await self._news.wait()

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        self._news.set()
        self._news = asyncio.Event()
        self._observe(event)


class LiveRuns:
    """The runs in progress, by their ids."""

    def __init__(self) -> None:
        self._runs: dict[str, LiveRun[Any]] = {}

    def events_of(self, run_id: str) -> Sequence[Event]:
        """What has happened so far in a run in progress."""
        found = self._runs.get(run_id)
        return () if found is None else tuple(found.events)

    @asynccontextmanager
    async def waiting(
        self, run_id: str, work: Work[_T], observe: Listener, *, linger_s: Callable[[], float | None], about: str = ""
    ) -> AsyncIterator[LiveRun[_T]]:
        """Wait inside the block for a run, which is started if it is not in progress; `observe` is told what happens.

        `linger_s` says for how many seconds the run may continue when the block ends early; None: to its end.
        """
        while (run := self._runs.get(run_id)) is not None and run.task.cancelling():
            await asyncio.wait([run.task])
        if run is None:
            run = self._runs[run_id] = LiveRun(work, observe, about)
            run.task.add_done_callback(lambda task: self._over(run_id, task))
        run.waiting += 1
        try:
            yield run
        finally:
            run.waiting -= 1
            if not run.waiting and not run.task.done() and (seconds := linger_s()) is not None:
                asyncio.get_running_loop().call_later(seconds, lambda: run.waiting or run.task.cancel())

    async def end(self) -> None:
        """End all runs; what they have paid for is in the journal."""
        tasks = [run.task for run in self._runs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, run_id: str, task: asyncio.Task[Any]) -> None:
        self._runs.pop(run_id, None)
        if not task.cancelled():
            task.exception()  # without this, asyncio would complain about an error that no request waited for


class Said(NamedTuple):
    """A piece of the reasoning, or of the answer."""

    text: str
    reasoning: bool


class Progress:
    """Turns the events of a run into reasoning and answer.

    The answer is shown while it is written only if it cannot be revised: it is that of a workflow file's last step, or
    of the last step of a Conductor's last round.
    """

    def __init__(self, last_round: int | None, before: Run | None = None) -> None:
        """`before` is the run as an earlier turn left it; of what was over then, nothing is said."""
        self._last_round = last_round
        self._over = frozenset(_over(before, ())) if before is not None else frozenset()
        self._runs: dict[Path, RunStarted] = {}
        self._answering: Path | None = None

    def said(self, event: Event) -> Iterator[Said]:
        """What an event adds."""
        if isinstance(event, Delta):
            if event.path == self._answering:
                yield Said(event.text, reasoning=False)
            return
        line = self._line(event)
        if line and event.path not in self._over:
            yield Said(f"{line}\n", reasoning=True)

    def _line(self, event: Event) -> str:
        match event:
            case RunStarted():
                return self._begun(event)
            case StepStarted() if not event.conductor:
                return f"{self._title(event.path)}: worker {event.worker_name}"
            case StepFinished() if event.path[:-1] in self._runs and not event.record.nested:
                took = "" if event.record.seconds is None else f" after {event.record.seconds:.1f} s"
                why = f": {event.record.error}" if event.record.error else ""
                return f"{self._title(event.path)}: {event.record.status}{took}{why}"
            case CompletionStarted():
                return f"round {event.path[-2]}: {event.worker_name} writes the workflow"
            case CompletionFinished() if event.error:
                return f"round {event.path[-2]}: the Conductor failed: {event.error}"
            case Retried():
                return f"{self._title(event.path)}: tried again in {event.wait_s:.0f} s: {event.reason}"
            case FellBack():
                return f"{self._title(event.path)}: worker {event.worker_name} is asked instead: {event.reason}"
        return ""

    def _begun(self, event: RunStarted) -> str:
        self._runs[event.path] = event
        count = len(event.workflow)
        if event.path == (() if self._last_round is None else (0, self._last_round)):
            self._answering = (*event.path, count - 1)
        if not event.path:
            return ""
        return f"round {event.path[-1]}: a workflow of {counted(count, 'step')}"

    def _title(self, path: Path) -> str:
        run = self._runs.get(path[:-1])
        if run is None or path[-1] < 0:
            return "the Conductor"
        inside = "  " * (len(path) // 2 - (self._last_round is not None))
        name = f" ({run.names[path[-1]]})" if run.names else ""
        return f"{inside}step {path[-1] + 1} of {len(run.workflow)}{name}"


def _over(run: Run, path: Path) -> Iterator[Path]:
    """The paths of what was over in a run that is suspended: steps that are done, and the beginnings of nested runs."""
    for step in run.steps:
        at = (*path, step.step)
        if step.status == "done":
            yield at
        for number, nested in enumerate(step.nested):
            yield (*at, number)
            yield (*at, number, OWN_STEP)
            yield from _over(nested, (*at, number))
