"""Building a Conductor's prompt: what one costs, with each shipped template set.

Run with `make bench` or `python -m tests.benchmarks prompt`.
"""

from __future__ import annotations

import timeit

from tests.benchmarks.measuring import show
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
    title = f"prompts of seven workers (target {TARGET_MICROSECONDS:g} µs)"
    show(title, ("template set", "µs"), ((name, f"{microseconds(name):.1f}") for name in shipped_prompts()))
