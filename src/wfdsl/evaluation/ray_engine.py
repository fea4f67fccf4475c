"""Trials on a Ray cluster: one actor for each node runs batches of them at a time, with its own interpreter.

Ray places the actors. Results land in the driver; each machine keeps its calls in its own journal, so that a trial
that is placed there again pays for no reply twice.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import socket
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import ray
from ray.exceptions import RayError, RayTaskError

from wfdsl.conductor.policy import Policy, Solution
from wfdsl.errors import RunInUse, UsageError, WfdslError
from wfdsl.evaluation.evaluate import evaluate
from wfdsl.evaluation.manifest import differences, manifest_of
from wfdsl.evaluation.placing import Batch, Finished, NodeLost, Placement, batches
from wfdsl.evaluation.trials import Evaluation, Trial, TrialKey
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.journal import Journal
from wfdsl.workers.pool import Pool

_STORE_BYTES: Final = 100_000_000
"""Shared memory of a Ray that is started here: results are small. Our choice."""
_AHEAD: Final = 8
"""Batches that a node has at a time; half of their trials wait for a slot. Our choice."""
_PACKAGES: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "version of wfdsl": lambda manifest: manifest["versions"]["wfdsl"],
    "versions of graders": lambda manifest: manifest["graders"],
}
"""What has to be the same on every node too, of a manifest."""
_CONNECT_S: Final = 10.0
_IN_USE_S: Final = 60.0
"""How long a trial waits for the process that worked on it before, such as one that a dead driver left. Our choice."""
_CLOSE_S: Final = 30.0
"""How long a node may take to write its journal. Our choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a node is told: how to build the evaluation, from the same files as the driver."""

    build: Callable[[], Evaluation]
    """Makes the policies and the pool on the node; the tasks come with the batches."""
    evaluation_id: str
    folder: str
    """The driver's working folder; relative paths are relative to it where the node has it."""
    parallel: int
    """Trials at a time on the node."""
    journal: bool
    """Whether the node keeps calls in its journal."""


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
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()


async def evaluate_on_ray(
    evaluation: Evaluation,
    plan: Plan,
    *,
    keep: Callable[[Trial], None],
    done: Collection[TrialKey] = (),
    say: Callable[[str], None],
    nodes: int | None = None,
) -> str:
    """Evaluate on the cluster that is connected; the result is why it stopped early, and empty if it did not.

    Args:
        evaluation: What is to be evaluated.
        plan: How each node makes the same evaluation.
        keep: Takes each trial, once, as soon as its batch is there.
        done: The trials that have a result already.
        say: Takes a line for the user when a node has died or is left out.
        nodes: Processes on the cluster; one for each of its nodes that has a CPU unless given.

    Raises:
        UsageError: no node can run this evaluation, or a policy or a task cannot be used.
    """
    expected = manifest_of(replace(evaluation, tasks=()), task_sources=(), command=())
    size = max(2 * plan.parallel // _AHEAD, 1)
    placement = Placement(batches(evaluation, done, size), keep=keep, say=say)
    return await placement.work(lambda: _RayNode(plan, expected), nodes=nodes or node_count(), ahead=_AHEAD)


def node_count() -> int:
    """How many processes a cluster has unless told: one for each of its nodes that has a CPU."""
    alive = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    return max(len(alive), 1)


def placed(process: Callable[..., Any], *arguments: Any) -> Any:
    """An actor of a class, on a node that has a CPU for it and few others."""
    return ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(process).remote(*arguments)


class _RayNode:
    """The driver's end of an actor."""

    def __init__(self, plan: Plan, expected: dict[str, Any]) -> None:
        self._expected = expected
        self._started = False
        self._actor = placed(NodeProcess, plan)

    async def start(self) -> None:
        found = await answer_of(self._actor.start.remote())
        if isinstance(found, str):
            raise UsageError(found)
        self._started = True
        host, manifest = found
        changed = differences(self._expected, manifest)
        changed += [name for name, pick in _PACKAGES.items() if pick(self._expected) != pick(manifest)]
        if changed:
            raise UsageError(
                f"the node {host} has other {', '.join(changed)} than this machine; it needs the same packages, and "
                "the same files at the same paths"
            )

    async def run(self, batch: Batch) -> Finished:
        finished: Finished = await answer_of(self._actor.run.remote(batch))
        return finished

    async def close(self) -> None:
        try:
            if self._started:
                async with asyncio.timeout(_CLOSE_S):
                    await answer_of(self._actor.close.remote())
        except (NodeLost, TimeoutError):
            return
        finally:
            ray.kill(self._actor)


async def answer_of(reference: Any) -> Any:
    """What an actor answers.

    Raises:
        NodeLost: it has died, or the machine that it ran on.
    """
    try:
        return await reference
    except RayTaskError:  # a mistake of ours
        raise
    except RayError as error:
        raise NodeLost(reason_of(error)) from error


def reason_of(error: RayError) -> str:
    """What an error of Ray says, in a line."""
    return str(error).partition("\n")[0]


class NodeProcess:
    """The actor: runs batches of trials. All methods run in one event loop."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._open = AsyncExitStack()
        self._running: set[asyncio.Task[str]] = set()
        self._journal: Journal | None = None

    async def start(self) -> tuple[str, dict[str, Any]] | str:
        """The node's name and the manifest of what it would run; or why it cannot."""
        try:
            evaluation = self._built()
            manifest = manifest_of(evaluation, task_sources=(), command=())
            if self._plan.journal:
                self._journal = self._open.enter_context(Journal())
            await self._open.enter_async_context(evaluation.pool.open())
            for policy in evaluation.policies.values():
                if hasattr(policy, "open"):
                    await self._open.enter_async_context(policy.open())
        except WfdslError as error:
            return f"{error} (on the node {platform.node()})"
        slots = asyncio.Semaphore(self._plan.parallel)
        policies = {name: _Slotted(policy, slots) for name, policy in evaluation.policies.items()}
        self._evaluation = replace(evaluation, policies=policies)
        return platform.node(), manifest

    def _built(self) -> Evaluation:
        if Path(self._plan.folder).is_dir():
            os.chdir(self._plan.folder)
        return replace(self._plan.build(), tasks=(), id=self._plan.evaluation_id)

    async def run(self, batch: Batch) -> Finished:
        """Run the trials of a batch."""
        evaluation, found = replace(self._evaluation, tasks=batch.tasks), list[Trial]()
        others = set(evaluation.trials()).difference(batch.keys)
        work = asyncio.create_task(
            evaluate(
                evaluation,
                keep=found.append,
                done=others,
                journal=self._journal,
                concurrency=len(batch.keys),
            )
        )
        self._running.add(work)
        try:
            return Finished(trials=found, stopped=await work)
        except WfdslError as error:
            return Finished(trials=found, refused=f"{error} (on the node {platform.node()})")
        finally:
            self._running.discard(work)

    async def close(self) -> None:
        """Stop what runs, as an interrupted evaluation does, and keep what has been paid for."""
        for work in self._running:
            work.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._open.aclose()


@dataclass(frozen=True, slots=True)
class _Slotted:
    """A policy that waits for a slot of the node."""

    policy: Policy
    slots: asyncio.Semaphore

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        async with self.slots:
            end = time.monotonic() + _IN_USE_S
            while True:
                try:
                    return await self.policy.solve(question, pool, **options)
                except RunInUse:
                    if time.monotonic() > end:
                        raise
                    await asyncio.sleep(0.5)
