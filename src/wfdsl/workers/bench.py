"""The bench: workers that have been built in one event loop, and what they share.

A client or a server belongs to the event loop in which it was opened, so each loop has a bench of its own.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from wfdsl.protocols import Worker
    from wfdsl.workers.pool import WorkerEntry


@runtime_checkable
class Closeable(Protocol):
    """Something that holds connections, a process or memory until it is told to let go."""

    async def aclose(self) -> None:
        """Let go. May be called more than once."""
        ...


_Resource = TypeVar("_Resource", bound=Closeable)


class Bench:
    """Builds each worker once; workers find here what they share, such as one server for three workers."""

    def __init__(self) -> None:
        self.users = 0
        """Open blocks; the last one to leave closes the bench."""
        self._workers: dict[str, Worker] = {}
        self._shared: dict[Hashable, Closeable] = {}
        self._kept: list[Closeable] = []

    def worker(self, entry: WorkerEntry, build: Callable[[WorkerEntry, Bench], Worker]) -> Worker:
        """The worker of this entry, built on the first call."""
        if entry.name not in self._workers:
            self._workers[entry.name] = build(entry, self)
        return self._workers[entry.name]

    def keep(self, worker: Worker) -> Worker:
        """Close this worker with the bench, if it can be closed."""
        if isinstance(worker, Closeable):
            self._kept.append(worker)
        return worker

    def shared(self, key: Hashable, make: Callable[[], _Resource]) -> _Resource:
        """The resource of this key, made on the first call; the bench closes it."""
        if key not in self._shared:
            self._shared[key] = make()
        resource: _Resource = self._shared[key]  # type: ignore[assignment]  # one key, one type: its maker's
        return resource

    async def aclose(self) -> None:
        """Close the workers, then what they shared; the bench can be used again.

        Workers stay where none of them holds anything.
        """
        closing = [*self._shared.values(), *self._kept]
        if not closing:
            return
        self._workers, self._shared, self._kept = {}, {}, []
        async with AsyncExitStack() as stack:
            for resource in closing:
                stack.push_async_callback(resource.aclose)
