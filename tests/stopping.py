"""`python -m tests.stopping`: kills and cancels many runs, each at another moment, and prints the promises they break.

python -m tests.stopping --kills 60 --cancels 500
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.interpreter.stopping import broken_by_a_cancel, broken_by_a_kill


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stopping", description=__doc__)
    parser.add_argument("--kills", type=int, default=60, metavar="N", help="processes that are killed (60)")
    parser.add_argument("--cancels", type=int, default=500, metavar="N", help="runs that are cancelled (500)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the seed of the first moment (0)")
    given = parser.parse_args()
    began, found = time.monotonic(), 0
    halves = (("kills", given.kills, broken_by_a_kill), ("cancels", given.cancels, broken_by_a_cancel))
    for what, count, broken_by in halves:
        left = repeated = other = 0
        for seed in range(given.first, given.first + count):
            with tempfile.TemporaryDirectory() as folder:
                broken = broken_by(seed, Path(folder) / "journal.db")
            left += sum(each.startswith("left over") for each in broken)
            repeated += sum(each.startswith("repeated") for each in broken)
            other += sum(not each.startswith(("left over", "repeated")) for each in broken)
            for each in broken:
                print(f"{what}, seed {seed}: {each}", flush=True)
        print(f"{count} {what}: {left} left over, {repeated} repeated, {other} other", flush=True)
        found += left + repeated + other
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
