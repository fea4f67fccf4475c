"""Trials that are placed on processes of other machines: batches, processes that die, results that land once.

A batch whose process died is placed again; a trial whose result has landed is not. This module knows no cluster: what
starts the processes, such as Ray (`ray_engine`), gives `Node`s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from wfdsl.errors import UsageError, WfdslError
from wfdsl.evaluation.evaluate import first_of
from wfdsl.evaluation.fingerprints import task_hash
from wfdsl.evaluation.trials import Evaluation, Trial, TrialKey, domain_of, named_tasks
from wfdsl.tasks.task import Task

MOST_LOSSES: Final = 5
"""Processes that may die with the same work, or one after the other before any result. Our choice."""


class NodeLost(WfdslError):  # noqa: N818  (a state of the world, as ServerGone is)
    """A process, or the machine that it ran on, has died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Trials that one process is asked for together."""

    keys: tuple[TrialKey, ...]
    tasks: tuple[Task, ...]
    """The tasks of these trials, each once."""
    losses: int = 0
    """How many processes have died with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a process answers to a batch."""

    trials: Sequence[Trial] = ()
    stopped: str = ""
    """Why trials are missing that a later session can run: the budget is spent."""
    refused: str = ""
    """Why trials are missing that cannot be run at all."""


class Node(Protocol):
    """A process that runs trials. Every method but `close` may raise `NodeLost`."""

    async def start(self) -> None:
        """Wait until there is a machine for it, and it is ready.

        Raises:
            UsageError: it cannot run this evaluation.
        """
        ...

    async def run(self, batch: Batch) -> Finished:
        """Run a batch; several at a time share the process's slots."""
        ...

    async def close(self) -> None:
        """End it, if it has not ended."""
        ...


def batches(evaluation: Evaluation, done: Collection[TrialKey], size: int) -> list[Batch]:
    """The trials that are left, in their order, in batches of `size`."""
    known, tasks = set(done), named_tasks(evaluation.tasks)
    left = [key for key in evaluation.trials() if key not in known]
    chunks = [tuple(left[at : at + size]) for at in range(0, len(left), size)]
    return [
        Batch(keys=keys, tasks=tuple(tasks[name] for name in dict.fromkeys(key.task for key in keys)))
        for keys in chunks
    ]


class Placement:
    """Keeps processes busy until every trial has landed, or the budget is spent."""

    def __init__(self, left: Sequence[Batch], *, keep: Callable[[Trial], None], say: Callable[[str], None]) -> None:
        """`keep` takes each trial once; `say` takes a line for the user when a process has died or is left
        out.
        """
        self._keep = keep
        self._say = say
        self._left = {key for batch in left for key in batch.keys}
        self._waiting: asyncio.Queue[Batch] = asyncio.Queue()
        for batch in left:
            self._waiting.put_nowait(batch)
        self._placed = 0
        self._places = 0
        """Processes that are not left out."""
        self._ended = asyncio.Event()
        self._stopped = ""

    async def work(self, new_node: Callable[[], Node], *, nodes: int, ahead: int) -> str:
        """Run everything; the result is why it stopped early, and empty if every trial has its result.

        Args:
            new_node: Makes a process, which replaces one that died.
            nodes: Processes at a time.
            ahead: Batches that a process has at a time.

        Raises:
            UsageError: no process can run this evaluation, or processes die as soon as they are started.
        """
        self._places = nodes
        self._look()
        try:
            async with asyncio.TaskGroup() as group:
                places = [group.create_task(self._place(new_node, ahead)) for _ in range(nodes)]
                await self._ended.wait()
                for place in places:
                    place.cancel()
        except BaseExceptionGroup as several:
            raise first_of(several) from several
        return self._stopped

    async def _place(self, new_node: Callable[[], Node], ahead: int) -> None:
        """Keep one process busy, and its successors, until one of them cannot run this evaluation."""
        losses = 0
        while True:
            node, landed = new_node(), len(self._left)
            try:
                if not await self._started(node):
                    return
                await self._feed_all(node, ahead)
            except NodeLost as lost:
                losses = losses + 1 if landed == len(self._left) else 1
                if losses == MOST_LOSSES:
                    raise UsageError(f"{losses} processes died without a result; the last one: {lost}") from lost
                self._say(f"a process died, and its trials are placed again: {lost}")
            finally:
                await node.close()

    async def _started(self, node: Node) -> bool:
        """Start a process; False if it cannot run this evaluation, and others are left.

        Raises:
            NodeLost: it has died.
            UsageError: it cannot run this evaluation, and none is left.
        """
        try:
            await node.start()
        except UsageError as refused:
            self._places -= 1
            if not self._places:
                raise
            self._say(f"a process is left out: {refused}")
            return False
        return True

    async def _feed_all(self, node: Node, ahead: int) -> None:
        """Give a process batches until one raises; a task group could drop a cancellation at that moment."""
        feeding = [asyncio.create_task(self._feed(node)) for _ in range(ahead)]
        try:
            ended, _ = await asyncio.wait(feeding, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in feeding:
                task.cancel()
            await asyncio.gather(*feeding, return_exceptions=True)
        for task in ended:
            task.result()

    async def _feed(self, node: Node) -> None:
        while True:
            batch = await self._waiting.get()
            self._placed += 1
            try:
                finished = await node.run(batch)
            except (NodeLost, asyncio.CancelledError) as error:
                self._again(batch, str(error))
                raise
            finally:
                self._placed -= 1
            self._land(finished)

    def _again(self, batch: Batch, why: str) -> None:
        """Place a batch again, or give its trials up."""
        if batch.losses + 1 < MOST_LOSSES:
            self._waiting.put_nowait(replace(batch, losses=batch.losses + 1))
            return
        tasks = named_tasks(batch.tasks)
        reason = f"{MOST_LOSSES} processes died while they ran this and other trials; the last one: {why}"
        self._land(Finished(trials=[_failed(key, tasks[key.task], reason) for key in batch.keys]))

    def _land(self, finished: Finished) -> None:
        for trial in finished.trials:
            if trial.key in self._left:
                self._left.remove(trial.key)
                self._keep(trial)
        if finished.refused:
            raise UsageError(finished.refused)
        if finished.stopped:
            self._stopped = finished.stopped
            while not self._waiting.empty():
                self._waiting.get_nowait()
        self._look()

    def _look(self) -> None:
        if not self._left or (self._stopped and not self._placed):
            self._ended.set()


def _failed(key: TrialKey, task: Task, reason: str) -> Trial:
    return Trial(
        **key._asdict(),
        task_hash=task_hash(task),
        source=task.source,
        domain=domain_of(task),
        outcome="failed",
        reason=reason,
        workers={},
    )
