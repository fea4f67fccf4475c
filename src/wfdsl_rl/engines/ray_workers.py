"""What a reward server has done on a Ray cluster: programs are graded there, and local models answer there.

One process on each node grades in that node's sandbox, and each local model has a process on one of the nodes. The
server itself keeps the workers' limits, the budget and the journal. Grading costs nothing and has no effect, so a
program whose process died is graded again.
"""

from __future__ import annotations

import asyncio
import platform
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Final

import ray
from ray.exceptions import RayActorError

from wfdsl._version import __version__
from wfdsl.errors import UsageError
from wfdsl.evaluation.placing import MOST_LOSSES, NodeLost
from wfdsl.evaluation.ray_engine import answer_of, node_count, placed, reason_of
from wfdsl.grading.code import grade_program
from wfdsl.grading.sandbox import Sandbox, SandboxFailed, SandboxLimits, SandboxMissing
from wfdsl.grading.verdict import Verdict
from wfdsl.protocols import WorkerFailure
from wfdsl.tasks.task import CodeTests, Task
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.local import LocalServer, model_file, server_command
from wfdsl.workers.pool import Pool

_AHEAD: Final = 2
"""Programs that a node has at a time for each slot, so that the next one starts at once. Our choice."""
_PATIENCE_S: Final = 10.0
"""After which a server that waits for the cluster says so. Our choice."""
_LONGEST_WAIT_S: Final = 30.0
"""Between two processes that died or were refused at the same place. Our choice."""


class ClusterWork:
    """What a reward server leaves to the cluster that is connected."""

    def __init__(
        self, pool: Pool, tasks: Iterable[Task], *, slots: int | None, nodes: int | None, say: Callable[[str], None]
    ) -> None:
        """Find out what there is, and wait until a process grades, if there are programs.

        Args:
            pool: The workers.
            tasks: What is scored.
            slots: Programs at a time on a node; as many as it has CPUs unless given.
            nodes: Processes that grade; one for each node that has a CPU unless given.
            say: Takes a line for the user when a process has died or was refused.

        Raises:
            UsageError: there is nothing to place, or the first process cannot grade.
        """
        programs = any(task.kind == "code" for task in tasks)
        if not programs and not any("local" in (each.provider, each.options.get("provider")) for each in pool):
            raise UsageError(
                "--engine ray places the grading of programs, and local workers; these tasks and this pool have "
                "neither: leave it out"
            )
        self._pool = pool
        self._say = say
        self.sandbox = ClusterSandbox(slots=slots, nodes=nodes, say=say) if programs else None
        if self.sandbox is not None:
            self.sandbox.check()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the processes up inside the block, and the pool open."""
        grading = nullcontext() if self.sandbox is None else self.sandbox.open()
        async with grading, self._pool.open(start_local=partial(ClusterModel, say=self._say)):
            yield


class ClusterSandbox:
    """The sandboxes of a cluster's nodes."""

    unsafe = False

    def __init__(self, *, slots: int | None, nodes: int | None, say: Callable[[str], None]) -> None:
        """Begin to start the processes, in the cluster that is connected.

        Args:
            slots: Programs at a time on a node; as many as it has CPUs unless given.
            nodes: Processes; one for each node that has a CPU unless given.
            say: Takes a line for the user when a process has died or was refused.
        """
        self.settings = str(SandboxLimits())
        self._slots = slots
        self._say = say
        self._processes = [_Grader(slots) for _ in range(nodes or node_count())]
        self._free: asyncio.Queue[_Grader] = asyncio.Queue()

    def check(self) -> None:
        """Wait until the first process is ready.

        Raises:
            UsageError: it cannot grade; or it has died.
        """
        starting = [each.starting for each in self._processes]
        if not ray.wait(starting, num_returns=1, timeout=_PATIENCE_S)[0]:
            self._say("waiting for a node of the cluster that has a CPU free")
        (first, *_), _ = ray.wait(starting, num_returns=1)
        try:
            _require_ready(ray.get(first))
        except RayActorError as error:
            raise UsageError(f"the process that grades died: {reason_of(error)}") from error

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the processes up inside the block."""
        async with asyncio.TaskGroup() as group:
            keepers = [group.create_task(self._keep(each)) for each in self._processes]
            try:
                yield
            finally:
                for keeper in keepers:
                    keeper.cancel()

    async def grade(self, program: str, tests: CodeTests) -> Verdict:
        """Run a program's tests on a node, until one fails.

        Raises:
            SandboxFailed: five processes died while they graded it.
        """
        why = ""
        for _ in range(MOST_LOSSES):
            process = await self._next()
            try:
                return await process.grade(program, tests)
            except NodeLost as lost:
                why = str(lost)
            finally:
                self._free.put_nowait(process)
        raise SandboxFailed(f"{MOST_LOSSES} processes died while they graded this program; the last one: {why}")

    async def _next(self) -> _Grader:
        while (process := await self._free.get()).lost:
            pass
        return process

    async def _keep(self, process: _Grader) -> None:
        """Keep a process up, and its successors."""
        failures = 0
        while True:
            try:
                for _ in range(_AHEAD * await process.start()):
                    self._free.put_nowait(process)
                failures = 0
                await process.ended()
            except NodeLost as lost:
                self._say(f"a process that grades died, and its programs are placed again: {lost}")
            except UsageError as refused:
                self._say(str(refused))
            finally:
                process.close()
            await asyncio.sleep(min(failures, _LONGEST_WAIT_S))
            failures += 1
            process = _Grader(self._slots)


class _Grader:
    """The server's end of a process that grades."""

    def __init__(self, slots: int | None) -> None:
        self.lost = False
        self._actor = placed(GradingProcess, slots)
        self.starting = self._actor.start.remote()

    async def start(self) -> int:
        """Wait until there is a node for it, and it is ready; how many slots it has.

        Raises:
            NodeLost: it has died.
            UsageError: it cannot grade.
        """
        return _require_ready(await answer_of(self.starting))

    async def ended(self) -> None:
        """Wait for its end. Raises: NodeLost."""
        await answer_of(self._actor.wait.remote())

    async def grade(self, program: str, tests: CodeTests) -> Verdict:
        """Run a program's tests. Raises: NodeLost."""
        try:
            found: Verdict = await answer_of(self._actor.grade.remote(program, tests))
        except NodeLost:
            self.lost = True
            raise
        return found

    def close(self) -> None:
        """End it, if it has not ended."""
        self.lost = True
        ray.kill(self._actor)


class GradingProcess:
    """The actor that grades: one for each node."""

    def __init__(self, slots: int | None) -> None:
        self._slots = slots

    async def start(self) -> tuple[str, str, int] | str:
        """The node's name, its version of wfdsl and its slots; or why it cannot grade."""
        slots = self._slots or _cpus()
        try:
            self._sandbox = Sandbox(slots=slots)
            await self._sandbox.probe()
        except (SandboxMissing, SandboxFailed) as error:
            return f"{error} (on the node {platform.node()})"
        return platform.node(), __version__, slots

    async def grade(self, program: str, tests: CodeTests) -> Verdict:
        """Run a program's tests; the caller has the cache of verdicts."""
        return await grade_program(program, tests, sandbox=self._sandbox, verdicts=None)

    async def wait(self) -> None:
        """Never answer, so that the caller hears of this process's end."""
        await asyncio.Event().wait()


def _require_ready(found: tuple[str, str, int] | str) -> int:
    """The slots of a process that has started.

    Raises:
        UsageError: it cannot grade.
    """
    if isinstance(found, str):
        raise UsageError(found)
    host, version, slots = found
    if version != __version__:
        raise UsageError(f"the node {host} has wfdsl {version}, and this machine {__version__}; install the same one")
    return slots


def _cpus() -> int:
    """The CPUs of this node, as Ray was told."""
    own = ray.get_runtime_context().get_node_id()
    return next(max(int(each["Resources"].get("CPU", 1)), 1) for each in ray.nodes() if each["NodeID"] == own)


class ClusterModel:
    """The server of a local model on a node. It starts when its address is asked for, again if it has died."""

    def __init__(self, entry: WorkerEntry, say: Callable[[str], None]) -> None:
        """`say` takes a line for the user when its process has died."""
        self.key = secrets.token_urlsafe(24)
        self._entry = entry
        self._bytes = model_file(entry).stat().st_size
        self._say = say
        self._starting = asyncio.Lock()
        self._actor: Any = None
        self._url = ""

    async def url(self) -> str:
        """Where the server listens.

        Raises:
            WorkerFailure: it does not start.
        """
        async with self._starting:
            self._url = self._url or await self._start()
            return self._url

    async def settle(self) -> None:
        """After a failed call: let the next one ask the node for the address."""
        self._url = ""

    async def aclose(self) -> None:
        """End it."""
        self._url = ""
        if self._actor is not None:
            ray.kill(self._actor)
            self._actor = None

    async def _start(self) -> str:
        why = ""
        for _ in range(MOST_LOSSES):
            if self._actor is None:
                self._actor = placed(ModelProcess, self._entry, self._bytes, self.key)
            try:
                url, problem = await answer_of(self._actor.url.remote())
            except NodeLost as lost:
                why, self._actor = str(lost), None
                self._say(f"the process of {self._entry.name} died, and is placed again: {lost}")
                continue
            if problem:
                raise WorkerFailure(problem, retryable=False, sent=False)
            return str(url)
        raise WorkerFailure(
            f"{MOST_LOSSES} processes of this model died; the last one: {why}", retryable=False, sent=False
        )


class ModelProcess:
    """The actor that has a local model's server."""

    def __init__(self, entry: WorkerEntry, size: int, key: str) -> None:
        self._entry = entry
        self._bytes = size
        self._key = key
        self._server: LocalServer | None = None

    async def url(self) -> tuple[str, str]:
        """Where the server listens for the other nodes; or why it does not start."""
        try:
            if self._server is None:
                self._server = self._made()
            await self._server.settle()
            return await self._server.url(), ""
        except (UsageError, WorkerFailure) as error:
            return "", f"{error} (on the node {platform.node()})"

    def _made(self) -> LocalServer:
        file = model_file(self._entry)
        if file.stat().st_size != self._bytes:
            raise UsageError(f"{file} is another model here than at the reward server; copy the same file to all nodes")
        return LocalServer(server_command(self._entry), host=ray.util.get_node_ip_address(), key=self._key)
