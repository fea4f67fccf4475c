"""256 gym rewards through verl's own reward manager: in its process, and from a reward server.

Run with `python -m tests.benchmarks verl`, after `make engines` has installed verl in an environment of its own.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from tests.engines import ENVIRONMENTS
from tests.engines.conftest import GOOD, IN_PROCESS, POOL, program, write_tasks
from tests.rl.engines.conftest import RewardProcess

REWARDS, TIMES = 256, 5
ROWS = "rows.parquet"
COMPLETIONS = [
    GOOD.replace("by the plan", f"by plan {each}") if each % 8 else f"I would ask {each}." for each in range(REWARDS)
]


def main() -> None:
    """Print the figures."""
    if not (ENVIRONMENTS / "verl/bin/python").exists():
        print("rewards through verl: left out, since verl is not installed; run `make engines`")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tasks(folder, "verl", ROWS)
        in_process = seconds(folder, IN_PROCESS)
        server = RewardProcess(folder, "--port", "0", "--pool", POOL, "--quiet")
        try:
            over_http = seconds(folder, {"url": server.url})
        finally:
            server.stop()
    medians = [statistics.median(each) for each in (in_process, over_http)]
    print(f"{REWARDS} rewards through verl's reward manager, {TIMES} times: ", end="")
    for where, each, median in zip(("in process", "by HTTP"), (in_process, over_http), medians, strict=True):
        print(f"{where} {median:.2f} s ({min(each):.2f} to {max(each):.2f}), ", end="")
    print(f"{medians[1] / medians[0]:.1f} times as long")


def seconds(folder: Path, options: dict[str, str]) -> list[float]:
    """How long the rewards took each time."""
    found = program("verl", "verl_rewards", folder, ROWS, options, str(TIMES), completions=COMPLETIONS)
    rewards = [each["reward_score"] for each in found["found"]]
    assert len(rewards) == REWARDS
    assert set(rewards) == {0.0, 0.5, 1.0}
    times: list[float] = found["seconds"]
    return times
