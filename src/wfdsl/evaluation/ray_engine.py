"""Trials on a Ray cluster: an actor for each node runs some at a time, with its own interpreter and journal.

Ray places the actors, and starts those of a node that died again, with their trials. Results land in the driver. Each
machine keeps its calls in its own journal, so that a trial that is run there again pays for no reply twice.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import socket
from collections.abc import Callable, Container, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import ray
from ray.exceptions import RayError

from wfdsl.errors import UsageError, WfdslError
from wfdsl.evaluation.evaluate import evaluate, first_of, opened
from wfdsl.evaluation.manifest import differences, manifest_of
from wfdsl.evaluation.trials import Evaluation, Trial, TrialKey, named_tasks
from wfdsl.interpreter.journal import Journal
from wfdsl.tasks.task import Task

MOST_RESTARTS: Final = 5
"""How often a process that died is started again, with its trials. Our choice."""
_STORE_BYTES: Final = 100_000_000
"""Shared memory of a Ray that is started here: results are small. Our choice."""


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Connect to a Ray cluster: that of an address, or of RAY_ADDRESS, or one that is started on this machine.

    Raises:
        UsageError: there is none at the address.
    """
    address = address or os.environ.get("RAY_ADDRESS")
    own = {} if address else {"include_dashboard": False, "object_store_memory": _STORE_BYTES}
    try:
        _require_listening(address)
        ray.init(address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"no Ray cluster can be used at {address or 'this machine'}: {error}; start one with: ray start --head"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _require_listening(address: str | None) -> None:
    """Look whether anything listens at HOST:PORT: Ray itself asks for twelve minutes. Raises: OSError."""
    host, _, port = (address or "").rpartition(":")
    if host and "/" not in host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()  # seconds


async def evaluate_on_ray(
    evaluation: Evaluation,
    build: Callable[[], Evaluation],
    *,
    keep: Callable[[Trial], None],
    done: Container[TrialKey] = (),
    nodes: int | None = None,
    parallel: int = 32,
    journal: bool = True,
) -> None:
    """Evaluate on the cluster that is connected.

    Args:
        evaluation: What is to be evaluated.
        build: Makes the same policies and pool on a node, from the same files; each trial comes with its task.
        keep: Takes each trial, once, as soon as it is there.
        done: The trials that have a result already.
        nodes: Processes on the cluster; one for each of its nodes that has a CPU unless given.
        parallel: Trials at a time on each node.
        journal: Whether each node keeps calls in its journal.

    Raises:
        UsageError: a node cannot run this evaluation, or a process has died more often than `MOST_RESTARTS`.
    """
    tasks, left = named_tasks(evaluation.tasks), iter([key for key in evaluation.trials() if key not in done])
    expected = manifest_of(replace(evaluation, tasks=()))
    with_cpu = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    process = ray.remote(num_cpus=1, scheduling_strategy="SPREAD", max_restarts=MOST_RESTARTS, max_task_retries=-1)

    async def feed(actor: Any) -> None:
        for key in left:
            found = await actor.run.remote(key, tasks[key.task])
            if isinstance(found, str):
                raise UsageError(found)
            keep(found)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(nodes or max(len(with_cpu), 1)):
                actor = process(NodeProcess).remote(build, expected, str(Path.cwd()), journal=journal)
                for _ in range(parallel):
                    group.create_task(feed(actor))
    except BaseExceptionGroup as several:
        first = first_of(several)
        if isinstance(first, RayError):
            said = str(first).partition("\n")[0]
            raise UsageError(f"a process died {MOST_RESTARTS + 1} times; the last time: {said}") from first
        raise first from several


class NodeProcess:
    """The actor. All trials run in one event loop, on a pool and policies that are opened with the first one."""

    def __init__(
        self, build: Callable[[], Evaluation], expected: dict[str, Any], folder: str, *, journal: bool
    ) -> None:
        """Relative paths are relative to the driver's working folder, where the node has it."""
        if Path(folder).is_dir():
            os.chdir(folder)
        self._build = build
        self._expected = expected
        self._keeps_calls = journal
        self._held = AsyncExitStack()  # open until the process ends
        self._journal: Journal | None = None
        self._opening: asyncio.Task[Evaluation] | None = None

    async def run(self, key: TrialKey, task: Task) -> Trial | str:
        """The result of a trial of a task; or why this node cannot run it."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._opened())
        found: list[Trial] = []
        try:
            evaluation = replace(await self._opening, tasks=[task])
            others = set(evaluation.trials()) - {key}
            await evaluate(evaluation, keep=found.append, done=others, journal=self._journal)
        except WfdslError as error:
            return f"{error} (on the node {platform.node()})"
        return found[0]

    async def _opened(self) -> Evaluation:
        evaluation = replace(self._build(), tasks=(), id=self._expected["id"])
        manifest = manifest_of(evaluation)
        changed = [each for what in ("same", "packages") for each in differences(self._expected, manifest, what)]
        if changed:
            raise UsageError(
                f"a node has other {', '.join(changed)} than this machine; it needs the same packages, and the same "
                "files at the same paths"
            )
        self._journal = Journal() if self._keeps_calls else None
        await self._held.enter_async_context(opened(evaluation))
        return evaluation
