"""Whether several servers on one home keep a key's budget together: 1,000 requests, with and without a kill.

Run with `make bench` or `python -m tests.benchmarks shared_budget`. The budget is enough for half of the
requests. What was paid is counted at the provider.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tests.benchmarks.measuring import show
from tests.server.provider import Provider
from tests.server.shared_budget import spend

REQUESTS: Final = 1_000


def main() -> None:
    """Print the table."""
    rows = []
    for processes, kill in ((2, False), (2, True), (4, False), (4, True)):
        provider = Provider()
        with tempfile.TemporaryDirectory() as folder:
            found = spend(Path(folder), provider, processes=processes, requests=REQUESTS, kill=kill)
        provider.close()
        statuses = found.statuses
        share = f"{found.paid_usd / found.limit_usd:.1%}" + (", EXCEEDED" if found.paid_usd > found.limit_usd else "")
        name = f"{processes}, one killed" if kill else str(processes)
        counts = statuses[200], statuses[429], statuses[0]
        rows.append((name, *map(str, counts), share, f"{REQUESTS / found.seconds:.0f}"))
        if other := {status: count for status, count in statuses.items() if status not in (0, 200, 429)}:
            print(f"{name}: other statuses {other}")
    headings = "servers", "answered", "refused", "lost", "paid of the budget", "requests a second"
    show(f"{REQUESTS} requests with one key", headings, rows)
