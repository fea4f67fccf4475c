"""The sandbox: what a run costs, whether many gradings keep the event loop awake, and HumanEval from end to end.

`WFDSL_DATA` names the folder that has `HumanEval.jsonl.gz`; without it the last part is left out.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.measuring import load, show
from wfdsl.grading.code import grade_program
from wfdsl.grading.sandbox import Sandbox
from wfdsl.tasks.task import CodeTests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

RUNS = 50
PARALLEL = 100
TICK_S = 0.005
FUNCTION = CodeTests(style="function", inputs=("[1]", "[2]", "[3]"), expected=("2", "3", "4"), entry_point="f")
CHECKER = CodeTests(style="program", entry_point="f", checker="assert f(1) == 2\nassert f(2) == 3\nassert f(3) == 4")


async def timed(act: Callable[[], Awaitable[object]], runs: int) -> list[float]:
    """Milliseconds of each of so many runs, one after the other."""
    taken = []
    for _ in range(runs):
        begun = time.perf_counter()
        await act()
        taken.append((time.perf_counter() - begun) * 1e3)
    return taken


async def costs(sandbox: Sandbox) -> None:
    """Print what one run of each kind takes."""
    program = "def f(x): return x + 1"

    async def run() -> object:
        return await sandbox.run("print(1)")

    kinds: dict[str, Callable[[], Awaitable[object]]] = {
        "run a program": run,
        "function, 3 tests": lambda: grade_program(program, FUNCTION, sandbox=sandbox),
        "checking text, 3 calls (two processes)": lambda: grade_program(program, CHECKER, sandbox=sandbox),
    }
    rows = []
    for name, act in kinds.items():
        await act()
        taken = await timed(act, RUNS)
        rows.append((name, f"{statistics.median(taken):.2f}", f"{min(taken):.2f}"))
    show(f"one after the other, {RUNS} times; {load()}", ("what", "median ms", "fastest ms"), rows)


async def lag(sandbox: Sandbox) -> str:
    """How late the event loop is while so many gradings run."""
    late: list[float] = []

    async def tick() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(TICK_S)
            late.append((time.perf_counter() - begun - TICK_S) * 1e3)

    ticking = asyncio.create_task(tick())
    begun = time.perf_counter()
    verdicts = await asyncio.gather(
        *(grade_program(f"def f(x): return x + {n}", FUNCTION, sandbox=sandbox) for n in range(PARALLEL))
    )
    seconds = time.perf_counter() - begun
    ticking.cancel()
    found = dict(Counter(verdict.outcome for verdict in verdicts))
    typical, most = statistics.median(late), statistics.quantiles(late, n=100)[-1]
    return (
        f"{PARALLEL} gradings at one time on {sandbox.slots} slots: {seconds / PARALLEL * 1e3:.1f} ms each, {found}; "
        f"the event loop was late by {typical:.1f} ms (median), {most:.1f} ms (99 %), {max(late):.1f} ms (most)"
    )


async def human_eval(sandbox: Sandbox, rows: list[dict[str, str]]) -> str:
    """All solutions of HumanEval, and all empty bodies."""

    async def outcomes(body: Callable[[dict[str, str]], str]) -> dict[str, int]:
        verdicts = await asyncio.gather(*(grade_program(body(row), tests_of(row), sandbox=sandbox) for row in rows))
        return dict(Counter(verdict.outcome for verdict in verdicts))

    begun = time.perf_counter()
    solutions = await outcomes(lambda row: row["canonical_solution"])
    each = (time.perf_counter() - begun) / len(rows) * 1e3
    empty = await outcomes(lambda _: "    pass\n")
    return f"HumanEval, {len(rows)} problems: solutions {solutions}, empty bodies {empty}, {each:.0f} ms each"


def tests_of(row: dict[str, str]) -> CodeTests:
    """A row of HumanEval."""
    return CodeTests(style="program", checker=row["test"], entry_point=row["entry_point"], preamble=row["prompt"])


def rows_of(folder: str | None) -> list[dict[str, str]]:
    """The problems, or none."""
    if not folder:
        return []
    packed = (Path(folder) / "HumanEval.jsonl.gz").read_bytes()
    return [json.loads(line) for line in gzip.decompress(packed).splitlines()]


async def report(rows: list[dict[str, str]]) -> None:
    """Print everything."""
    sandbox = Sandbox()
    begun = time.perf_counter()
    await sandbox.probe()
    print(f"test of the isolation, once for each process: {(time.perf_counter() - begun) * 1e3:.0f} ms")
    await costs(sandbox)
    print(await lag(sandbox))
    print(await human_eval(sandbox, rows) if rows else "HumanEval left out: WFDSL_DATA names no folder")


def main() -> None:
    """Run the benchmark."""
    asyncio.run(report(rows_of(os.environ.get("WFDSL_DATA"))))


if __name__ == "__main__":
    main()
