"""The interpreter: what a step costs beside a floor and beside LangGraph, makespan, memory, and what the journal adds.

Run with `make bench` or `python tests/benchmarks/bench_interpreter.py`. Figures are ratios within one run. The floor is
ready counters written by hand in asyncio: no prompts, no record, no error handling. LangGraph is measured where it is
installed (`pip install langgraph`), with its graph compiled once. Steps are measured in processor time, so that other
programs disturb less; makespans need a quiet machine, and both they and their floor run with the collector's thresholds
raised, as the documentation advises for many runs at once.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import time
import tracemalloc
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.table import Table
from typing_extensions import TypedDict

from wfdsl import Pool, Reply, Step, Usage, WorkerEntry, Workflow, run
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.journal import Journal
from wfdsl.pool import Prices

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wfdsl.workers.protocol import Call

WORKFLOW = Workflow(
    (
        *(Step(worker, f"Try it, {worker}.") for worker in range(3)),
        Step(0, "Compare.", (0, 1, 2)),
        Step(1, "Answer.", "all"),
    )
)
LEVELS = 3  # steps on the longest path
SEES = [(), (), (), (0, 1, 2), (0, 1, 2, 3)]
TARGET_STEP_RATIO, TARGET_LANGGRAPH_RATIO = 15.0, 5.0
TARGET_MAKESPAN, TARGET_MAKESPAN_OVER_FLOOR = 1.4, 1.3
TARGET_KIB_PER_RUN, TARGET_JOURNAL_MS = 24.0, 1.0
ROUNDS = 5
DEFAULT_GC, MANY_RUNS_GC = gc.get_threshold(), (50_000, 20, 20)
"""With thousands of runs in flight the garbage collector looks at all of them again and again and finds nothing."""
USED = Usage(40, 4)


class Sleeper:
    """A worker that takes a while, or no time at all."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s

    async def __call__(self, call: Call) -> Reply:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        return Reply("A short reply.", usage=USED)


def pool_of(delay_s: float = 0.0) -> Pool:
    free = Prices(input=0.0, output=0.0)
    return Pool.from_workers(
        [(WorkerEntry(name=f"worker {i}", provider="function", prices=free), Sleeper(delay_s)) for i in range(3)]
    )


class Floor:
    """Ready counters by hand: what asyncio itself costs."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.seen_by = [[later for later, seen in enumerate(SEES) if step in seen] for step in range(len(SEES))]

    async def run(self) -> str:
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        missing = [len(seen) for seen in SEES]
        responses = [""] * len(SEES)

        async def perform(step: int) -> None:
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            responses[step] = "A short reply."
            for later in self.seen_by[step]:
                missing[later] -= 1
                if not missing[later]:
                    loop.create_task(perform(later))  # noqa: RUF006  (the floor keeps nothing)
            if step == len(SEES) - 1:
                over.set_result(None)

        for step, seen in enumerate(SEES):
            if not seen:
                loop.create_task(perform(step))  # noqa: RUF006
        await over
        return responses[-1]


def merged(left: dict[int, str], right: dict[int, str]) -> dict[int, str]:
    """How LangGraph joins what parallel nodes write."""
    return {**left, **right}


class GraphState(TypedDict):
    """What LangGraph's nodes share."""

    responses: Annotated[dict[int, str], merged]


def langgraph_runner(delay_s: float) -> Callable[[], Awaitable[Any]] | None:
    """The same five steps as a LangGraph graph that is compiled once; None where it is not installed."""
    if find_spec("langgraph") is None:
        return None
    graphs = import_module("langgraph.graph")

    def node(step: int) -> Callable[[GraphState], Awaitable[GraphState]]:
        async def perform(state: GraphState) -> GraphState:
            if delay_s:
                await asyncio.sleep(delay_s)
            return {"responses": {step: "A short reply."}}

        return perform

    graph: Any = graphs.StateGraph(GraphState)
    for step in range(len(SEES)):
        graph.add_node(str(step), node(step))
    for step in range(3):
        graph.add_edge(graphs.START, str(step))
    graph.add_edge(["0", "1", "2"], "3")
    graph.add_edge("3", "4")
    graph.add_edge("4", graphs.END)
    compiled = graph.compile()
    return lambda: compiled.ainvoke({"responses": {}})


def everything_on(pool: Pool, **more: Any) -> Callable[[], Awaitable[Any]]:
    """A run with budget, deadlines, limits, retries, record and events."""
    budget = Budget(calls=100, tokens=10_000_000, usd=10.0)
    return lambda: run(
        WORKFLOW,
        "What is 6 times 7?",
        pool,
        budget=budget,
        concurrency=16,
        step_timeout_s=600.0,
        on_event=_ignore,
        **more,
    )


def plain(pool: Pool) -> Callable[[], Awaitable[Any]]:
    return lambda: run(WORKFLOW, "What is 6 times 7?", pool)


def _ignore(event: object) -> None:
    """A listener that costs nothing itself."""


async def us_per_step(start: Callable[[], Awaitable[Any]], runs: int) -> float:
    """The least processor time per step over several rounds, in microseconds."""
    for _ in range(runs // 10):
        await start()
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        began = time.process_time()
        for _ in range(runs):
            await start()
        best = min(best, time.process_time() - began)
    return best / runs / len(WORKFLOW) * 1e6


async def makespan_s(start: Callable[[], Awaitable[Any]], runs: int) -> float:
    """Seconds until runs that all start at once are over."""
    gc.collect()
    began = time.perf_counter()
    await asyncio.gather(*(start() for _ in range(runs)))
    return time.perf_counter() - began


async def kib_per_run(start: Callable[[], Awaitable[Any]], runs: int) -> float:
    """The most memory that Python held while runs were in flight, per run, in KiB."""
    await start()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    await asyncio.gather(*(start() for _ in range(runs)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - before) / runs / 1024


def overhead(table: Table) -> None:
    """What a step costs with workers that answer at once."""
    floor = asyncio.run(us_per_step(Floor(0.0).run, 2000))
    rows = [("floor", floor)]
    rows.append(("wfdsl, as it comes", asyncio.run(us_per_step(plain(pool_of()), 1000))))
    full = asyncio.run(us_per_step(everything_on(pool_of()), 1000))
    rows.append(("wfdsl, everything on", full))
    graph = langgraph_runner(0.0)
    for name, each in rows:
        target = f"<= {TARGET_STEP_RATIO:g}" if name.endswith("on") else ""
        table.add_row(f"step: {name}", f"{each:.1f} us", f"{each / floor:.1f} x floor", target)
    if graph is None:
        table.add_row("step: LangGraph", "not installed", "skipped", "")
        return
    lang = asyncio.run(us_per_step(graph, 100))
    table.add_row("step: LangGraph, compiled once", f"{lang:.1f} us", f"{lang / floor:.1f} x floor", "")
    table.add_row("LangGraph over everything on", "", f"{lang / full:.1f} x", f">= {TARGET_LANGGRAPH_RATIO:g}")


def makespans(table: Table, *, full_size: bool) -> None:
    """How long many runs at once take beside what one would."""
    gc.set_threshold(*MANY_RUNS_GC)
    runs, delay = (10_000, 2.0) if full_size else (1_000, 0.5)
    path = delay * LEVELS
    for name, start in (
        ("floor", Floor(delay).run),
        ("wfdsl, as it comes", plain(pool_of(delay))),
        ("wfdsl, everything on", everything_on(pool_of(delay))),
    ):
        took = asyncio.run(makespan_s(start, runs))
        target = f"<= {TARGET_MAKESPAN:g}" if name.endswith("on") else ""
        table.add_row(f"makespan: {runs} x {delay:g} s, {name}", f"{took:.2f} s", f"{took / path:.2f} x path", target)
    pool = pool_of(0.05)
    floor = min(asyncio.run(makespan_s(Floor(0.05).run, 1000)) for _ in range(3))
    table.add_row("makespan: 1000 x 50 ms, floor", f"{floor:.3f} s", f"{floor / 0.15:.2f} x path", "")
    target = f"<= {TARGET_MAKESPAN_OVER_FLOOR:g}"
    for name, start in (("as it comes", plain(pool)), ("everything on", everything_on(pool))):
        took = min(asyncio.run(makespan_s(start, 1000)) for _ in range(3))
        table.add_row(f"makespan: 1000 x 50 ms, {name}", f"{took:.3f} s", f"{took / floor:.2f} x floor", target)
    graph = langgraph_runner(0.05)
    if graph is not None:
        took = asyncio.run(makespan_s(graph, 1000))
        table.add_row("makespan: 1000 x 50 ms, LangGraph", f"{took:.3f} s", f"{took / floor:.2f} x floor", "")
    gc.set_threshold(*DEFAULT_GC)


def memory(table: Table) -> None:
    """What a run in flight holds."""
    for name, start in (("floor", Floor(1.0).run), ("wfdsl, everything on", everything_on(pool_of(1.0)))):
        size = asyncio.run(kib_per_run(start, 1000))
        target = f"<= {TARGET_KIB_PER_RUN:g}" if name.endswith("on") else ""
        table.add_row(f"memory per run in flight: {name}", f"{size:.1f} KiB", "", target)


async def journal_cost(table: Table, folder: Path) -> None:
    """What the journal adds to a call with a hundred calls in flight."""
    wide = Workflow((*(Step(0, f"Try {index}.") for index in range(100)), Step(0, "Pick.", "all")))
    pool, rounds = pool_of(), 10
    times = {}
    with Journal(folder / "journal.db") as journal:
        for name, store in (("without", None), ("with", journal)):
            await run(wide, "Q", pool, journal=store)
            began = time.perf_counter()
            for _ in range(rounds):
                await run(wide, "Q", pool, journal=store)
            times[name] = (time.perf_counter() - began) / rounds / len(wide) * 1e3
    added = times["with"] - times["without"]
    table.add_row(
        "journal, per call at 100 in flight", f"{added:.3f} ms", "synchronous FULL", f"< {TARGET_JOURNAL_MS:g} ms"
    )


def main() -> None:
    """Print the table; `--full` also runs the 10 000 runs of 2 s."""
    table = Table("what", "measured", "ratio", "target")
    overhead(table)
    makespans(table, full_size="--full" in sys.argv)
    memory(table)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(journal_cost(table, Path(folder)))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
