"""Building a Conductor's prompt: what one costs, with each shipped template set.

Run with `make bench` or `python -m tests.benchmarks.bench_prompt`.
"""

from __future__ import annotations

import timeit

from rich.console import Console
from rich.table import Table

from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.prompt import Prompt, shipped_prompts
from wfdsl.workers.pool import Pool

TARGET_MICROSECONDS = 50.0
_NUMBER = 1000


def microseconds(name: str) -> float:
    """The shortest time of several, for one prompt."""
    prompt, offer = Prompt.load(name), WorkerListing.of(Pool.load("paper"))
    build = timeit.Timer(lambda: prompt.ask("What is 17 * 23?", offer, max_steps=5))
    return min(build.repeat(5, _NUMBER)) / _NUMBER * 1e6


def main() -> None:
    """Print the table."""
    table = Table("template set", "µs", title=f"prompts of seven workers (target {TARGET_MICROSECONDS:g} µs)")
    for name in shipped_prompts():
        table.add_row(name, f"{microseconds(name):.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
