"""How long an answer took: measured, or for workers of the gym, what the same calls would take.

Simulated workers answer at once, so their seconds are those of the price list's sort: a time to the first token and a
speed for each profile, along the critical path of each round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfdsl.graph import graph_of

if TYPE_CHECKING:
    from wfdsl.conductor.policy import Solution
    from wfdsl.interpreter.record import Run
    from wfdsl.workers.pool import Pool

_GYM = "gym"


def latency_of(solution: Solution, pool: Pool, *, replayed: int) -> float | None:
    """Seconds from question to answer; None if it was measured and a part of it came from the journal."""
    if any(entry.provider == _GYM for entry in pool):
        return sum(_simulated(run, pool) for run in solution.rounds)
    return None if replayed else solution.run.seconds


def _simulated(run: Run, pool: Pool) -> float:
    from wfdsl_rl.gym.world.profiles import PROFILES, seconds_of  # noqa: PLC0415  (most pools are none of the gym's)

    profiles = {profile.name: profile for profile in PROFILES}
    seconds = [0.0] * len(run.steps)
    for step in run.steps:
        if step.nested:
            seconds[step.step] = sum(_simulated(nested, pool) for nested in step.nested)
        elif step.status == "done" and step.worker in pool.ordinals:
            profile = profiles.get(str(pool.entry(step.worker).options.get("profile")))
            seconds[step.step] = 0.0 if profile is None else seconds_of(profile, step.usage)
    return graph_of(run.workflow).critical_path(seconds).length
