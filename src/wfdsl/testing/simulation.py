"""Simulation: random schedules of faults around the real interpreter and journal, each repeatable by its seed.

A schedule has a few runs in one journal, providers that refuse, fail and lie, a disk that is full for a while, users
who cancel, and processes that are killed between two writes and started again, all in virtual time.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import threading
import traceback
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

from wfdsl.errors import JournalFailure, UsageError
from wfdsl.interpreter.budget import NOTHING_SPENT, UNLIMITED, Budget, BudgetUsage
from wfdsl.interpreter.config import RunConfig
from wfdsl.interpreter.events import Event, StepFinished
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import BudgetExhausted, Run, RunFailed
from wfdsl.interpreter.running import resume, run
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call, Usage, Worker
from wfdsl.testing.generators import Choices, random_workflow
from wfdsl.testing.simulated_machine import Killed, Machine, SimulatedLoop, Stuck
from wfdsl.testing.simulated_provider import CALM, Manner, SimulatedProvider, Trouble, digest
from wfdsl.workers.entry import Limits, Prices, WorkerEntry
from wfdsl.workers.pool import Pool

T = TypeVar("T")
CHECKS = {
    "answer": "a run gives the answer that it gives undisturbed, however often it was interrupted and resumed",
    "budget": "a run knows of all that it was charged, and ends only where the next call may exceed its budget",
    "ends": "a run ends, with its record or an error that says why",
    "identity": "a run id that is used again for another question or workflow is refused, and nothing is bought",
    "left": "a run leaves no task, thread, call in flight, place at a worker or file",
    "makespan": "a run takes at most 1.5 times as long as its provider's rate allows",
    "twice": "a reply that was used is never bought again, not by a later process either",
}
"""What is checked, by name."""

_IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_FAULTS = ("none", "kill", "kill at a write", "cancel", "full disk")
_MAX_TOKENS = 16
_MUCH = Budget(calls=10**6, tokens=10**9, usd=10.0**6)
_PRICES = Prices(input=100.0, output=500.0)
_ROUNDING = 1e-9
_SHARE_OF_RUSHES = 0.02
_FIRST_WAITS_S = 2.0
"""What the first refusals may cost until a rate is found. Our choice."""


class Violation(NamedTuple):
    """A promise that a schedule has broken."""

    seed: int
    """The schedule's."""
    check: str
    """A name of `CHECKS`."""
    what: str
    """How it was broken."""

    def __str__(self) -> str:
        again = f'python -c "from wfdsl.testing import simulate; simulate(1, first={self.seed}, trace=print)"'
        return f"{self.check}: {self.what}\n{again}"


def simulate(
    schedules: int = 1000,
    *,
    first: int = 0,
    workflow: Workflow | None = None,
    workers: Sequence[Worker] = (),
    skip: Collection[str] = (),
    trace: Callable[[str], None] | None = None,
) -> list[Violation]:
    """Play schedules; gives the first promise that each breaks.

    Args:
        schedules: how many.
        first: the seed of the first one; the others follow.
        workflow: your own, for all runs; without it, random ones.
        workers: your own; the same messages must give the same reply. Refusals, failures and waits are put around them.
        skip: names of `CHECKS` that are left out.
        trace: called with what happens, line by line.

    Raises:
        UsageError: there is no such check.
    """
    unknown = set(skip) - CHECKS.keys()
    if unknown:
        raise UsageError(f"there is no check {min(unknown)!r}; there are {', '.join(CHECKS)}")
    played = (_Schedule(seed, workflow, workers, skip, trace).play() for seed in range(first, first + schedules))
    return [violation for found in played for violation in found[:1]]


class _Asked(NamedTuple):
    """A run of a schedule."""

    id: str
    workflow: Workflow
    question: str
    config: RunConfig
    answer: str
    """The answer that it gives undisturbed."""
    largest: BudgetUsage
    """No call takes more."""
    budget: Budget | None


@dataclass
class _Schedule:
    """One schedule, drawn from its seed."""

    seed: int
    workflow: Workflow | None
    workers: Sequence[Worker]
    skip: Collection[str]
    trace: Callable[[str], None] | None

    def play(self) -> list[Violation]:
        """Play it; gives the promises that it breaks."""
        self._rng, self._found = random.Random(self.seed), list[Violation]()
        self._used: set[tuple[str, tuple[int, ...]]] = set()  # runs and paths of the calls whose replies were used
        state = random.getstate()
        random.seed(self.seed)
        with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as folder:
            self._machine = Machine(Path(folder) / "disk")
            try:
                if self.workflow is None and self._rng.random() < _SHARE_OF_RUSHES:
                    self._rush()
                else:
                    self._storms()
            except Stuck as error:
                self._violate("ends", str(error))
        random.setstate(state)
        return self._found

    def _tell(self, line: str) -> None:
        if self.trace is not None:
            self.trace(f"{self._machine.now:.6f} {line}".replace(str(self._machine.folder), "DISK"))

    def _violate(self, check: str, what: str) -> None:
        if check not in self.skip:
            self._found.append(Violation(self.seed, check, what))
            self._tell(f"VIOLATION {check}: {what}")

    def _provider(self, answer: Worker = digest) -> SimulatedProvider:
        return SimulatedProvider(_PRICES, self._rng, self._on_call, answer)

    def _on_call(self, call: Call, ending: str) -> None:
        who = f"{call.sample_id} step {'/'.join(map(str, call.path))}"
        self._tell(f"{who} {ending}")
        if (call.sample_id, call.path) in self._used:
            self._violate("twice", f"asked again after its reply was used: {who}")

    def _bought(self, run_id: str) -> BudgetUsage:
        parts = (provider.bought.get(run_id, NOTHING_SPENT) for provider in self._providers)
        return reduce(BudgetUsage.plus, parts, NOTHING_SPENT)

    def _storms(self) -> None:
        """Processes with faults, and a last one without any, which has to finish all runs."""
        draw, folder = self._rng.choice, self._machine.folder
        with self._machine.process():
            Journal(folder / "journal.db").close()
        files = sorted(path.name for path in folder.iterdir())
        hurry = draw((False, False, True))
        self._pool = self._draw_pool(hurry=hurry)
        self._runs = [self._draw_run(f"run{number}", hurry=hurry) for number in range(draw((1, 1, 1, 2)))]
        possible = [each for each in get_args(Trouble) if hurry or each != "silent"]
        troubles = tuple(self._rng.sample(possible, draw((0, 1, 2, 3))))
        for fault in (*self._rng.choices(_FAULTS, k=draw((1, 1, 2))), ""):
            for provider in self._providers:
                provider.manner = self._draw_manner(troubles) if fault else CALM
            self._live(fault)
            if self._found:
                return
        if files != sorted(path.name for path in folder.iterdir()):
            self._violate("left", f"files: {sorted(path.name for path in folder.iterdir())}")

    def _draw_pool(self, *, hurry: bool) -> Pool:
        draw = self._rng.choice
        self._providers = [self._provider(worker) for worker in self.workers or [digest] * 3]
        names = [f"w{index}" for index in range(len(self._providers))]
        entries = [
            WorkerEntry(
                name=name,
                provider="function",
                prices=_PRICES,
                max_tokens=_MAX_TOKENS,
                retries=draw((0, 1, 4)),
                fallback=draw((None, None, *(other for other in names if other != name and not self.workers))),
                limits=Limits(
                    concurrency=draw((None, 1, 2)), requests_per_minute=draw((None, 3)) if not hurry else None
                ),
            )
            for name in names
        ]
        return Pool.from_workers(zip(entries, self._providers, strict=True))

    def _draw_run(self, run_id: str, *, hurry: bool) -> _Asked:
        draw, question = self._rng.choice, f"What is {run_id}?"
        drawn = random_workflow(Choices(self._rng), pool_size=len(self._providers), max_steps=draw((2, 4, 6)))
        workflow = self.workflow or drawn
        config = RunConfig(
            concurrency=draw((None, None, 1, 2)),
            step_timeout_s=draw((3.0, 30.0)) if hurry else None,
            timeout_s=draw((None, 20.0)) if hurry else None,
        )
        with closing(SimulatedLoop(self._machine)) as loop:
            done = self._drive(loop, run(workflow, question, self._pool, run_id="undisturbed"))
        shown = [sum(len(message["content"].encode()) for message in step.messages) for step in done.steps]
        calls, most = sum(map(bool, shown)), Usage(max(shown), _MAX_TOKENS)
        largest, share = BudgetUsage(1, most.total_tokens, _PRICES.usd(most)), self._rng.uniform(0.2, 1.2)
        budget = Budget(
            calls=draw((None, None, calls - 1, calls, calls + 4)),
            tokens=draw((None, None, int(largest.tokens * calls * share))),
            usd=draw((None, None, largest.usd * calls * share)),
        )
        return _Asked(run_id, workflow, question, config, done.answer or "", largest, draw((None, budget)))

    def _draw_manner(self, troubles: tuple[Trouble, ...]) -> Manner:
        draw = self._rng.choice
        return Manner(
            latencies_s=tuple(self._rng.choices((0.0, 0.1, 0.1, 1.0, 1.0, 5.0, 25.0), k=3)),
            rate=draw((None, 0.5, 2.0)),
            burst=draw((1, 2, 3)),
            status=draw((429, 429, 529)),
            retry_after=draw((None, 0.01, 1.0, 20.0)),
            troubles=troubles,
            trouble_share=draw((0.1, 0.5)) if troubles else 0.0,
        )

    def _live(self, fault: str) -> None:
        """The life of one process: it opens the journal, asks all runs, and ends by a fault or by itself."""
        draw, machine, before = self._rng.choice, self._machine, set(threading.enumerate())
        self._tell(f"process: {fault or 'no fault'}")
        machine.slow_s = draw((0.0, 0.0, 0.01, 1.0)) if fault else 0.0
        start = draw(range(40))
        with machine.process() as loop, closing(Journal(machine.folder / "journal.db")) as self._journal:
            machine.full = range(start, start + draw((1, 5, 1000))) if fault == "full disk" else range(0)
            machine.kill_at = start if fault == "kill at a write" else None
            with suppress(Killed):
                self._drive(loop, self._process(fault))
        if left := set(threading.enumerate()) - before:
            self._violate("left", f"threads: {[thread.name for thread in left]}")

    def _drive(self, loop: SimulatedLoop, work: Coroutine[Any, Any, T]) -> T:
        """Do some work; if its process ends before it does, end its tasks, which change nothing any more."""
        try:
            return loop.run_until_complete(work)
        except (Killed, Stuck) as end:
            self._tell(f"ended: {end!r}")
            self._machine.kill_at, tasks = None, asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.wait(tasks))
            raise

    async def _process(self, fault: str) -> None:
        loop, draw = asyncio.get_running_loop(), self._rng.choice
        tasks = [loop.create_task(self._follow(asked, fault)) for asked in self._runs]
        when_s = draw((0.0, 0.5, 1.0, 2.0, 5.0, 12.0)) + draw((0.0, 0.05))
        if fault == "kill":
            loop.call_later(when_s, self._machine.kill)
        elif fault == "cancel":
            loop.call_later(when_s, lambda: [task.cancel() for task in tasks])
        await asyncio.wait(tasks)
        for task in tasks:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self._violate("ends", "".join(traceback.format_exception(error)).strip())
        await self._look_for_leftovers()

    async def _follow(self, asked: _Asked, fault: str) -> None:
        """Ask or resume a run, and look at how it ends; in the last process, also at what happens after that."""
        await asyncio.sleep(self._rng.choice((0.0, 0.0, 0.3)))
        resumed = self._rng.random() < 0.5 and self._bought(asked.id).calls > 0
        if fault:
            with suppress(JournalFailure):
                await self._ask(asked, asked.budget, resumed=resumed)
            return
        ended = await self._ask(asked, asked.budget, resumed=resumed)
        if ended.status == "budget":
            ended = await self._ask(asked, _MUCH, resumed=True)
        if ended.status != "done":
            self._violate("ends", f"{asked.id} is not done, without a fault: {ended.error}")
            return
        before = self._bought(asked.id)
        await self._ask(asked, _MUCH, resumed=False)
        if self._bought(asked.id) != before:
            self._violate("twice", f"{asked.id} was done, and bought calls when it was asked again")
        if "identity" not in self.skip:
            await self._ask_something_else(asked)

    async def _ask(self, asked: _Asked, budget: Budget | None, *, resumed: bool) -> Run:
        """Ask or resume a run, and look at its record."""
        self._tell(f"{asked.id} {'resumed' if resumed else 'asked'}")
        options: dict[str, Any] = {"journal": self._journal, "budget": budget, "on_event": partial(self._hear, asked)}
        try:
            if resumed:
                ended = await resume(asked.id, self._pool, **options)
            else:
                ended = await run(asked.workflow, asked.question, self._pool, asked.config, run_id=asked.id, **options)
        except (BudgetExhausted, RunFailed) as error:
            ended = error.run
        charged, bought, limits = ended.charged, self._bought(asked.id), budget or UNLIMITED
        self._tell(f"{asked.id} {ended.status}: {ended.answer or ended.error}; {charged}")
        if ended.status == "done" and ended.answer != asked.answer:
            self._violate("answer", f"{asked.id} gives {ended.answer!r}, undisturbed {asked.answer!r}")
        if charged is not None and (_exceeds(bought, Budget(**charged._asdict())) or _exceeds(bought, limits)):
            self._violate("budget", f"{asked.id} has bought {bought}, and was charged {charged} of {limits}")
        if ended.status == "budget" and charged is not None and not _exceeds(charged.plus(asked.largest), limits):
            self._violate("budget", f"{asked.id} ended, although {charged} leaves room in {limits}")
        return ended

    def _hear(self, asked: _Asked, event: Event) -> None:
        if isinstance(event, StepFinished) and event.record.status == "done" and not self._machine.killed:
            self._used.add((asked.id, event.path))

    async def _ask_something_else(self, asked: _Asked) -> None:
        before, longer = self._bought(asked.id), Workflow((*asked.workflow.steps, Step(0, "Check it.", "all")))
        for workflow, question in ((asked.workflow, "What else?"), (longer, asked.question)):
            work = run(workflow, question, self._pool, asked.config, journal=self._journal, run_id=asked.id)
            (result,) = await asyncio.gather(work, return_exceptions=True)
            if not isinstance(result, UsageError) or self._bought(asked.id) != before:
                self._violate("identity", f"{asked.id} was asked something else, which gave {result!r}")

    async def _look_for_leftovers(self) -> None:
        await asyncio.sleep(0)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        in_flight = sum(provider.in_flight for provider in self._providers)
        if tasks or in_flight:
            self._violate("left", f"{in_flight} calls in flight, tasks: {tasks}")
        for provider in self._providers:
            provider.manner = CALM
        places = [index for index in self._pool.indices for _ in range(self._pool.entry(index).limits.concurrency or 1)]
        every = Workflow(tuple(Step(index, "Is there a place?") for index in places))
        await run(every, "Say yes.", self._pool, run_id="places", run_dead_steps=True)  # stuck if one is missing

    def _rush(self) -> None:
        """Many calls at once, to a provider that lets a few a second pass and refuses the others."""
        draw, provider = self._rng.choice, self._provider()
        rate, count, latency_s = draw((2.0, 5.0, 20.0)), draw(range(30, 120)), draw((0.0, 0.1, 1.0, 3.0))
        burst, retry_after = draw((1, int(rate))), draw((None, 0.01, 1.0))
        provider.manner = Manner((latency_s,), rate, burst, retry_after=retry_after)
        pool = Pool.from_workers([(WorkerEntry(name="w0", provider="function", retries=4), provider)])
        workflow = Workflow((*(Step(0, f"Part {number}.") for number in range(count)), Step(0, "Join them.", "all")))
        with closing(SimulatedLoop(self._machine)) as loop:
            done = self._drive(loop, run(workflow, "How fast?", pool, run_id="rush"))
        took_s = (done.finished or 0.0) - done.started
        best_s = (count - burst + 1) / rate + 2 * latency_s
        self._tell(f"{count} calls took {took_s:.3f} s, where {best_s:.3f} s are possible")
        if took_s > 1.5 * best_s + _FIRST_WAITS_S:
            self._violate("makespan", f"{count} calls took {took_s:.1f} s instead of {best_s:.1f}: {provider.manner}")


def _exceeds(amount: BudgetUsage, limits: Budget) -> bool:
    pairs = zip(amount, (limits.calls, limits.tokens, limits.usd), strict=True)
    return any(limit is not None and part > limit * (1 + _ROUNDING) for part, limit in pairs)
