"""The interpreter: cost of a step compared with a floor and with LangGraph, makespan, memory, cost of the journal.

Run with `make bench` or `python -m tests.benchmarks interpreter`. The floor is ready counters written by hand in
asyncio: no prompts, no record, no error handling. LangGraph is measured where it is installed (`pip install
langgraph`), with its graph compiled once. All that is compared is measured in turn, round by round, so that other
programs disturb each alike. Steps are measured in processor time; figures are medians of the rounds, ratios medians of
the rounds' ratios. Makespans are wall time, which other programs only lengthen, so that the least of the rounds counts,
for the floor too; both run with the collector's thresholds raised, as the documentation advises for many runs at once.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
import tracemalloc
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from typing_extensions import TypedDict

from tests.benchmarks.measuring import load, show
from wfdsl import Pool, Reply, Step, Usage, WorkerEntry, Workflow, run
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.journal import Journal
from wfdsl.workers.entry import Prices

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from wfdsl.protocols import Call

    Start = Callable[[], Coroutine[Any, Any, Any]]
    Row = tuple[str, str, str, str]

WORKFLOW = Workflow(
    (
        *(Step(worker, f"Try it, {worker}.") for worker in range(3)),
        Step(0, "Compare.", (0, 1, 2)),
        Step(1, "Answer.", "all"),
    )
)
LEVELS = 3  # steps on the longest path
SEES = [(), (), (), (0, 1, 2), (0, 1, 2, 3)]
TARGET_STEP_RATIO, TARGET_LANGGRAPH_RATIO = 20.0, 3.0
TARGET_MAKESPAN, TARGET_MAKESPAN_OVER_FLOOR = 1.35, 2.0
TARGET_KIB_PER_RUN, TARGET_JOURNAL_MS, TARGET_JOURNAL_KB = 24.0, 1.0, 4.0
STEP_ROUNDS = 9
DEFAULT_GC, MANY_RUNS_GC = gc.get_threshold(), (200_000, 50, 50)
"""With thousands of runs in flight the garbage collector looks at all of them again and again and finds nothing."""
USED = Usage(40, 4)
AS_IT_COMES, FULL, LANGGRAPH = "as it comes", "everything on", "LangGraph, compiled once"


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


def langgraph_runner(delay_s: float) -> Start | None:
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


def everything_on(pool: Pool) -> Start:
    """A run with budget, deadlines, limits, retries, record and events."""
    budget = Budget(calls=100, tokens=10_000_000, usd=10.0)
    limits: dict[str, Any] = {"budget": budget, "concurrency": 16, "step_timeout_s": 600.0}
    return lambda: run(WORKFLOW, "What is 6 times 7?", pool, **limits, on_event=lambda event: None)


def plain(pool: Pool) -> Start:
    return lambda: run(WORKFLOW, "What is 6 times 7?", pool)


async def us_per_step(start: Start, runs: int) -> float:
    """Processor time per step, in microseconds."""
    for _ in range(runs // 10):
        await start()
    gc.collect()
    began = time.process_time()
    for _ in range(runs):
        await start()
    return (time.process_time() - began) / runs / len(WORKFLOW) * 1e6


async def makespan_s(start: Start, runs: int) -> float:
    """Seconds until runs that all start at once are over."""
    gc.collect()
    began = time.perf_counter()
    await asyncio.gather(*(start() for _ in range(runs)))
    return time.perf_counter() - began


async def kib_per_run(start: Start, runs: int) -> float:
    """The most memory that Python held while runs were in flight, per run, in KiB."""
    await start()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    await asyncio.gather(*(start() for _ in range(runs)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - before) / runs / 1024


class Rounds:
    """Several things measured in turn, a number of times."""

    def __init__(self, measures: dict[str, Callable[[], Coroutine[Any, Any, float]]], rounds: int) -> None:
        self._found = [{name: asyncio.run(measure()) for name, measure in measures.items()} for _ in range(rounds)]

    def of(self, name: str) -> float:
        """The median."""
        return median(found[name] for found in self._found)

    def least(self, name: str) -> float:
        """The least."""
        return min(found[name] for found in self._found)

    def ratio(self, name: str, other: str) -> float:
        """The median of what one is over another."""
        return median(found[name] / found[other] for found in self._found)


def overhead() -> Iterator[Row]:
    """What a step costs with workers that answer at once."""
    starts = {
        "floor": (Floor(0.0).run, 1000),
        AS_IT_COMES: (plain(pool_of()), 300),
        FULL: (everything_on(pool_of()), 300),
    }
    graph = langgraph_runner(0.0)
    if graph is not None:
        starts[LANGGRAPH] = (graph, 50)
    found = Rounds({name: partial(us_per_step, *start) for name, start in starts.items()}, STEP_ROUNDS)
    for name in starts:
        target = f"<= {TARGET_STEP_RATIO:g}" if name == FULL else ""
        yield f"step: {name}", f"{found.of(name):.1f} us", f"{found.ratio(name, 'floor'):.1f} x floor", target
    if graph is None:
        yield "step: LangGraph", "not installed", "skipped", ""
        return
    for name, target in ((FULL, f">= {TARGET_LANGGRAPH_RATIO:g}"), (AS_IT_COMES, "")):
        yield f"LangGraph over {name}", "", f"{found.ratio(LANGGRAPH, name):.1f} x", target


def makespans() -> Iterator[Row]:
    """How long many runs at once take beside what one would, and beside the floor."""
    gc.set_threshold(*MANY_RUNS_GC)
    for runs, delay, rounds in ((10_000, 2.0, 3), (1000, 0.05, 9)):
        starts, is_large = starts_of(delay), runs > 1000
        graph = None if is_large else langgraph_runner(delay)
        if graph is not None:
            starts[LANGGRAPH] = graph
        found = Rounds({name: partial(makespan_s, start, runs) for name, start in starts.items()}, rounds)
        unit_s, unit = (delay * LEVELS, "path") if is_large else (found.least("floor"), "floor")
        wanted = f"<= {TARGET_MAKESPAN if is_large else TARGET_MAKESPAN_OVER_FLOOR:g}"
        for name in starts:
            took_s, target = found.least(name), wanted if name in (AS_IT_COMES, FULL) else ""
            ratio = f"{took_s / unit_s:.2f} x {unit}"
            yield f"makespan: {runs} x {delay:g} s, {name}", f"{took_s:.3f} s", ratio, target
    gc.set_threshold(*DEFAULT_GC)


def starts_of(delay_s: float) -> dict[str, Start]:
    """How the floor and wfdsl start a run with workers that take so long."""
    return {"floor": Floor(delay_s).run, AS_IT_COMES: plain(pool_of(delay_s)), FULL: everything_on(pool_of(delay_s))}


def memory() -> Iterator[Row]:
    """What a run in flight holds."""
    for name, start in (("floor", Floor(1.0).run), (FULL, everything_on(pool_of(1.0)))):
        size = asyncio.run(kib_per_run(start, 1000))
        target = f"<= {TARGET_KIB_PER_RUN:g}" if name == FULL else ""
        yield f"memory per run in flight: {name}", f"{size:.1f} KiB", "", target


async def journal_cost(folder: Path) -> Row:
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
    return "journal, per call at 100 in flight", f"{added:.3f} ms", "synchronous FULL", f"< {TARGET_JOURNAL_MS:g} ms"


async def journal_size(folder: Path) -> Row:
    """What the journal keeps of a run."""
    runs, path, pool = 200, folder / "size.db", pool_of()
    with Journal(path) as journal:
        await asyncio.gather(*(run(WORKFLOW, "What is 6 times 7?", pool, journal=journal) for _ in range(runs)))
    size = (await asyncio.to_thread(path.stat)).st_size / runs / 1000
    return "journal, per run of five steps", f"{size:.1f} KB", "", f"<= {TARGET_JOURNAL_KB:g} KB"


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        journal = [asyncio.run(measure(Path(folder))) for measure in (journal_cost, journal_size)]
    rows = [*overhead(), *makespans(), *memory(), *journal]
    show(load(), ("what", "measured", "ratio", "target"), rows)
