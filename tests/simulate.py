"""`make simulate`: plays many schedules of `wfdsl.testing.simulate` on all cores, and prints the promises they break.

python -m tests.simulate --schedules 100000
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from wfdsl.testing import Violation, simulate
from wfdsl.testing.simulation import CHECKS

_AT_ONCE = 100
"""Schedules that a process plays before it reports."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulate", description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000, metavar="N", help="how many (1000)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the seed of the first one (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (one a core)")
    parser.add_argument("--progress", action="store_true", help="say how far it is, after each hundred")
    parser.add_argument("--skip", nargs="+", default=(), choices=CHECKS, metavar="CHECK", help=", ".join(CHECKS))
    given = parser.parse_args()
    began, count, found = time.monotonic(), 0, 0
    starts = range(given.first, given.first + given.schedules, _AT_ONCE)
    sizes = [min(_AT_ONCE, given.first + given.schedules - start) for start in starts]
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as processes:
        for played, violations in processes.map(partial(_play, skip=given.skip), starts, sizes):
            count, found = count + played, found + len(violations)
            if given.progress:
                print(f"{count} schedules, {found} with a violation", flush=True)
            for each in violations:
                print(each, flush=True)
    print(f"{count} schedules, {found} with a violation, {time.monotonic() - began:.0f} s")
    return 1 if found else 0


def _play(first: int, schedules: int, *, skip: tuple[str, ...]) -> tuple[int, list[Violation]]:
    return schedules, simulate(schedules, first=first, skip=skip)


if __name__ == "__main__":
    sys.exit(main())
