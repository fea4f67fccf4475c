"""Benchmark: pages on a journal of 10,000 runs, a run of 50 MB and a workflow of 200 steps, in Chromium.

Run it with `make bench-browser`. Figures are medians; the times of the browser are those of its own clock, from the
start of a navigation, and include the server's. They are printed, never tested: they depend on the machine.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import wfdsl
from wfdsl.interpreter.journal import Journal
from wfdsl.workers.entry import WorkerEntry

from .conftest import BROWSER, FLAGS, Viewer, Watched, open_context

RUNS = int(os.environ.get("WFDSL_BENCH_RUNS", "10000"))
TIMES = 5
CHAIN = wfdsl.Workflow.from_lists([0, 0, 0], ["Plan it.", "Solve it.", "Check it."], [[], [0], [0, 1]])
PAINT = """() => ({
  paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0,
  loaded: performance.getEntriesByType("navigation")[0].loadEventEnd,
  nodes: document.getElementsByTagName("*").length,
})"""


async def write_runs(path: Path) -> dict[str, str]:
    """The journal; the ids of the run of 50 MB and of the one of 200 steps."""

    async def short(messages: list[dict[str, str]]) -> str:
        return "Some words of an answer. " * 40

    async def long(messages: list[dict[str, str]]) -> str:
        return "x" * 199_000

    found = {}
    with Journal(path) as journal:
        pool = wfdsl.Pool.from_functions([short])
        large = wfdsl.Pool.from_workers([(WorkerEntry(name="long", provider="function"), _worker(long))])
        wide = wfdsl.Workflow.from_lists([0] * 260, [f"Part {n}." for n in range(260)], [[] for _ in range(260)])
        run = await wfdsl.run(wide, "A run of 50 MB?", large, journal=journal, run_dead_steps=True)
        found["50 MB"] = run.id
        steps = 200
        access = [[n - 1] if n % 10 else [] for n in range(steps - 1)]
        chain = wfdsl.Workflow.from_lists(
            [0] * steps, [f"Do part {n} of it." for n in range(steps)], [*access, list(range(9, steps - 1, 10))]
        )
        found["200 steps"] = (await wfdsl.run(chain, "A run of 200 steps?", pool, journal=journal)).id
        for start in range(0, RUNS, 200):
            await asyncio.gather(
                *(
                    wfdsl.run(CHAIN, f"Question {n} of many: what is {n} + {n}?", pool, journal=journal)
                    for n in range(start, min(start + 200, RUNS))
                )
            )
    return found


def _worker(function: Any) -> Any:
    async def answer(call: Any) -> Any:
        return wfdsl.Reply(await function(call.messages))

    return answer


def measured(watched: Watched, path: str, times: int = TIMES) -> dict[str, float]:
    """Medians of a page's first paint, load and elements."""
    found = []
    for _ in range(times):
        watched.page.goto("about:blank")
        page = watched.go(path)
        page.wait_for_load_state("load")
        page.wait_for_timeout(100)
        found.append(page.evaluate(PAINT))
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def main() -> None:
    """Print the tables."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        ids = asyncio.run(write_runs(home / "journal.db"))
        size = sum(file.stat().st_size for file in home.glob("journal.db*") if file.is_file()) / 1e6
        print(f"journal: {RUNS + 2:,} runs, {size:,.0f} MB")
        viewer = Viewer(home)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
            watched = Watched(open_context(browser, viewer), viewer.root)
            paths = {"list": "/", "list, filtered": "/?text=999"}
            for name, run in ids.items():
                paths |= {f"{name}, {view}": f"/runs/{run}?view={view}" for view in ("conversation", "graph", "time")}
            paths["200 steps, graph drawn"] = f"/runs/{ids['200 steps']}?view=graph&draw=1"
            print(f"{'page':28} {'first paint':>12} {'loaded':>10} {'elements':>9} {'largest answer':>15}")
            for name, path in paths.items():
                watched.sizes.clear()
                found = measured(watched, path)
                largest = max(watched.sizes.values(), default=0) / 1000
                print(
                    f"{name:28} {found['paint']:9.0f} ms {found['loaded']:7.0f} ms {found['nodes']:9.0f} "
                    f"{largest:12,.0f} kB"
                )
            print("faults:", watched.faults or "none", file=sys.stderr)
            browser.close()
        viewer.stop()


if __name__ == "__main__":
    main()
