"""Running a workflow: the ways to ask for it, and what can be asked for.

`run` gives the record of a run, `stream` its events as they happen, `resume` goes on with one that the journal knows,
and `run_sync` is `run` for code without an event loop.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from wfdsl.errors import BudgetExhausted, RunFailed, UsageError
from wfdsl.interpreter.budget import UNLIMITED, Account, Budget
from wfdsl.interpreter.deadline import Watch
from wfdsl.interpreter.environment import LONGEST_WAIT_S, Clock, Environment
from wfdsl.interpreter.execution import run_workflow
from wfdsl.interpreter.gate import Gate
from wfdsl.interpreter.lines import lines_to
from wfdsl.interpreter.plan import Plan
from wfdsl.interpreter.runnable import require_runnable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from wfdsl.interpreter.budget import Ledger
    from wfdsl.interpreter.context import Question, QuestionFor
    from wfdsl.interpreter.environment import WorkerPool
    from wfdsl.interpreter.events import Event, Listener
    from wfdsl.interpreter.journal import Claimed, Journal
    from wfdsl.interpreter.journaling import RunJournal
    from wfdsl.interpreter.lines import Lines
    from wfdsl.interpreter.record import Run
    from wfdsl.language.workflow import Workflow


class RunOptions(TypedDict, total=False):
    """What `run`, `stream` and `run_sync` take by name; `run` says what each means."""

    budget: Budget | Ledger | None
    journal: Journal | str | Path | None
    concurrency: int | None
    seed: int | None
    timeout_s: float | None
    step_timeout_s: float | None
    longest_wait_s: float
    gate: Gate | None
    names: Sequence[str] | None
    question_for: QuestionFor
    previous: tuple[str, str] | None
    run_dead_steps: bool
    max_depth: int
    on_event: Listener | None
    run_id: str | None
    sample: str | None
    reuse: bool
    origin: Mapping[str, str] | None


async def run(
    workflow: Workflow,
    question: Question,
    pool: WorkerPool,
    *,
    budget: Budget | Ledger | None = None,
    journal: Journal | str | Path | None = None,
    concurrency: int | None = None,
    seed: int | None = None,
    timeout_s: float | None = None,
    step_timeout_s: float | None = None,
    longest_wait_s: float = LONGEST_WAIT_S,
    gate: Gate | None = None,
    names: Sequence[str] | None = None,
    question_for: QuestionFor = "all",
    previous: tuple[str, str] | None = None,
    run_dead_steps: bool = False,
    max_depth: int = 1,
    on_event: Listener | None = None,
    run_id: str | None = None,
    sample: str | None = None,
    reuse: bool = False,
    origin: Mapping[str, str] | None = None,
) -> Run:
    """Run a workflow on a question and give the record, whose `answer` is the last step's response.

    Args:
        workflow: What to run.
        question: A text, or a conversation of chat messages.
        pool: The workers.
        budget: The most that may be spent; or the account of a budget that several runs share.
        journal: Where each call is kept, so that the run can be resumed; a journal, or the path of one.
        concurrency: How many calls of this run may be in flight at once; None: no limit.
        seed: Makes workers that honour a seed repeatable; each step gets its own from it.
        timeout_s: The most seconds for the whole run.
        step_timeout_s: The most seconds for a step, from when it may start.
        longest_wait_s: The longest wait between two attempts, in seconds, whatever a server asks for.
        gate: Holds the calls of several runs together to a number at a time.
        names: What displays call the steps.
        question_for: "all" shows the question to every worker, "first" to step 0 only.
        previous: The final (subtask, response) of the round before; steps with access "all" see it first.
        run_dead_steps: Also run steps that cannot change the answer.
        max_depth: How many levels of Conductor nodes may be nested.
        on_event: Called with every event as it happens.
        run_id: The run's name in records; a new one unless given. One that the journal knows is resumed.
        sample: Tells calls apart that are otherwise the same; the run's id unless given.
        reuse: Use replies again that other runs have in the journal.
        origin: Where workflow and pool were found, for whoever resumes the run.

    Raises:
        RunFailed: a step failed for good; `.run` is the partial record.
        BudgetExhausted: the next call does not fit into the budget; `.run` is the partial record.
        UsageError: the workflow cannot run on this pool, or an option cannot be used.
    """
    name = run_id or new_run_id()
    limits = budget if isinstance(budget, Budget) else budget.budget if budget is not None else UNLIMITED
    plan = Plan(
        workflow,
        question if isinstance(question, str) else tuple(question),
        names=None if names is None else tuple(names),
        pool=pool.name,
        seed=seed,
        question_for=question_for,
        previous=previous,
        run_dead_steps=run_dead_steps,
        max_depth=max_depth,
        sample=name if sample is None else sample,
        budget=limits,
        origin=origin or {},
    )
    conditions = Conditions(
        ledger=None if budget is None or isinstance(budget, Budget) else budget,
        concurrency=concurrency,
        timeout_s=timeout_s,
        step_timeout_s=step_timeout_s,
        longest_wait_s=longest_wait_s,
        gate=gate,
        on_event=on_event,
        reuse=reuse,
    )
    return await _run_plan(name, plan, pool, journal, conditions)


async def resume(
    run_id: str,
    pool: WorkerPool,
    *,
    journal: Journal | str | Path,
    budget: Budget | None = None,
    concurrency: int | None = None,
    timeout_s: float | None = None,
    step_timeout_s: float | None = None,
    longest_wait_s: float = LONGEST_WAIT_S,
    gate: Gate | None = None,
    on_event: Listener | None = None,
    reuse: bool = False,
) -> Run:
    """Go on with a run that the journal knows: calls that have a reply are not made again.

    What was spent before counts towards the budget, which is the run's own unless another one is given.

    Raises:
        RunFailed, BudgetExhausted: as `run` does.
        UsageError: the journal has no such run, or another process is at work on it; or as `run` does.
    """
    from wfdsl.interpreter.journal_reading import plan_of  # noqa: PLC0415  (only those who resume need it)

    plan = plan_of(Path(journal) if isinstance(journal, str | Path) else journal.path, run_id)
    if budget is not None:
        plan = replace(plan, budget=budget)
    conditions = Conditions(
        concurrency=concurrency,
        timeout_s=timeout_s,
        step_timeout_s=step_timeout_s,
        longest_wait_s=longest_wait_s,
        gate=gate,
        on_event=on_event,
        reuse=reuse,
    )
    return await _run_plan(run_id, plan, pool, journal, conditions)


async def stream(
    workflow: Workflow, question: Question, pool: WorkerPool, **options: Unpack[RunOptions]
) -> AsyncGenerator[Event, None]:
    """Run a workflow and give its events as they happen; the last one, `RunFinished`, holds the record.

    Leaving the loop early cancels the run.

    Raises:
        RunFailed, BudgetExhausted, UsageError: as `run` does, after the last event.
    """
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    listener = options.get("on_event")

    def hear(event: Event) -> None:
        queue.put_nowait(event)
        if listener is not None:
            listener(event)

    options["on_event"] = hear
    task = asyncio.create_task(run(workflow, question, pool, **options))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])


def run_sync(workflow: Workflow, question: Question, pool: WorkerPool, **options: Unpack[RunOptions]) -> Run:
    """`run`, for code that has no event loop.

    Raises:
        RunFailed, BudgetExhausted: as `run` does.
        UsageError: an event loop is running already; or as `run` does.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run(workflow, question, pool, **options))
    raise UsageError("run_sync cannot wait inside a running event loop; write `await wfdsl.run(...)` there instead")


def new_run_id() -> str:
    """A name for a run: the second when it was made, so that names sort, and eight random hexadecimal digits."""
    return f"{_second(int(time.time()))}-{secrets.token_hex(4)}"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime(seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How a plan is run this time: what changes nothing about what the workers are asked."""

    ledger: Ledger | None = None
    concurrency: int | None = None
    timeout_s: float | None = None
    step_timeout_s: float | None = None
    longest_wait_s: float = LONGEST_WAIT_S
    gate: Gate | None = None
    on_event: Listener | None = None
    reuse: bool = False

    def gates(self) -> tuple[Gate, ...]:
        """The run's own gate, then the common one."""
        common = () if self.gate is None else (self.gate,)
        return common if self.concurrency is None else (Gate(self.concurrency), *common)


async def _run_plan(
    run_id: str, plan: Plan, pool: WorkerPool, journal: Journal | str | Path | None, conditions: Conditions
) -> Run:
    require_runnable(plan.workflow, pool, plan.max_depth)
    if journal is None:
        return await _run_open(run_id, plan, pool, conditions, None)
    async with _claimed(run_id, plan, journal, conditions) as kept:
        return await _run_open(run_id, plan, pool, conditions, kept)


async def _run_open(run_id: str, plan: Plan, pool: WorkerPool, conditions: Conditions, kept: _Kept | None) -> Run:
    async with _opened(pool) as workers:
        with lines_to(workers) as lines, Watch(asyncio.get_running_loop()) as watch:
            environment = _environment(run_id, plan, lines, watch=watch, conditions=conditions, kept=kept)
            work = run_workflow(
                plan.workflow,
                plan.question,
                environment,
                names=plan.names,
                previous=plan.previous,
                settings=plan.settings(),
            )
            return await (work if kept is None else kept.watch(work))


def _environment(
    run_id: str, plan: Plan, lines: Lines, *, watch: Watch, conditions: Conditions, kept: _Kept | None
) -> Environment:
    clock = Clock(asyncio.get_running_loop())
    wall_end = None if plan.budget.wall_s is None else clock.steady() + plan.budget.wall_s
    end = None if conditions.timeout_s is None else clock.steady() + conditions.timeout_s
    ends = [at for at in (wall_end, end) if at is not None]
    return Environment(
        pool=lines.pool,
        line=lines,
        clock=clock,
        watch=watch,
        run_id=run_id,
        sample=plan.sample,
        listener=conditions.on_event,
        seed=plan.seed,
        question_for=plan.question_for,
        run_dead_steps=plan.run_dead_steps,
        deadline=min(ends) if ends else None,
        step_timeout_s=conditions.step_timeout_s,
        gates=conditions.gates(),
        longest_wait_s=conditions.longest_wait_s,
        ledger=conditions.ledger or _account(plan.budget, kept),
        wall_end=wall_end,
        journal=None if kept is None else kept.journal,
        lost=() if kept is None else kept.claimed.lost,
        depth=plan.max_depth,
    )


@dataclass(slots=True)
class _Kept:
    """A run in a journal, while this process has it."""

    journal: RunJournal
    claimed: Claimed
    run: Run | None = None
    """The record to keep, once the run is over."""

    async def watch(self, work: Coroutine[Any, Any, Run]) -> Run:
        """Wait for the run, and take its record, also where it ends in an error."""
        try:
            self.run = await work
        except (RunFailed, BudgetExhausted) as error:
            self.run = error.run
            raise
        return self.run


def _account(budget: Budget, kept: _Kept | None) -> Account | None:
    """The account of a run that has a budget, or a journal whose charges it goes on counting."""
    if kept is None and budget is UNLIMITED:
        return None
    return Account(budget, None if kept is None else kept.claimed.spent)


@asynccontextmanager
async def _claimed(
    run_id: str, plan: Plan, journal: Journal | str | Path, conditions: Conditions
) -> AsyncIterator[_Kept]:
    """Take the run on in the journal, and let go of it however it ends."""
    from wfdsl.interpreter.journal import Journal as JournalFile  # noqa: PLC0415  (sqlite is loaded when it is used)
    from wfdsl.interpreter.journaling import RunJournal  # noqa: PLC0415

    store = JournalFile(journal) if isinstance(journal, str | Path) else journal
    try:
        claimed = await store.claim(run_id, plan)
        shared = plan.sample != run_id
        kept = _Kept(RunJournal(store, run_id, claimed.replies, shared_sample=shared, reuse=conditions.reuse), claimed)
        try:
            yield kept
        finally:
            run = kept.run
            store.release(run_id, "stopped" if run is None else run.status, None if run is None else run.to_json())
    finally:
        if store is not journal:
            await asyncio.to_thread(store.close)


def _opened(pool: WorkerPool) -> AbstractAsyncContextManager[Any]:
    opener = getattr(pool, "open", None)
    return nullcontext(pool) if opener is None else opener()
