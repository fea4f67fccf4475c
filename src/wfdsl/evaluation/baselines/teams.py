"""Workflows that baselines are made of: who plans, who solves, who looks again, and what a second look sees.

A team's shape is a text with a letter for each step: P plan, S solve, R refine, V verify, A aggregate. A small letter
is a look that sees only the step before it, so that earlier mistakes are out of its sight; a capital one sees all.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

from wfdsl.evaluation.baselines.baseline import SOLVE
from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow

INSTRUCTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "P": ("Write a short plan for the task. Do not solve it.",),
    "S": (
        SOLVE,
        *(f"Solve part {part} of the task only." for part in (1, 2, 3, 4)),
        "Solve the task step by step and give the final answer.",
        "Make a list, solve the task and give the final answer.",
        "Try small cases, solve the task and give the final answer.",
    ),
    "R": ("Improve the solution above and give the final answer.",),
    "V": (
        "Verify the solution above, correct what is wrong, and give the final answer.",
        "Verify each step of the solution above, correct what is wrong, and give the final answer.",
        "Verify the solution above by doing it again, correct what is wrong, and give the final answer.",
        "Verify the solution above for edge cases, correct what is wrong, and give the final answer.",
        "Verify that the solution above uses no needless facts, correct what is wrong, and give the final answer.",
    ),
    "A": ("Compare the answers above and give the soundest final answer.",),
}
"""What a search may ask of each kind of step: a part of the task, a way to solve it, something to check. Our choice."""
SUBTASKS: Final[Mapping[str, str]] = {kind: texts[0] for kind, texts in INSTRUCTIONS.items()}
"""What each kind of step is asked in a team."""
TEAMS: Final = ("S", "SV", "SR", "SRv", "PS", "PSR", "PSRv", "PSRrv", "SSA", "SSSA", "SSAv")
"""Ways to work together: alone, checked or improved, after a plan, and in groups. Our choice."""


def team(shape: str, order: Sequence[int]) -> Workflow:
    """A team with workers in the order of their worth.

    The best ones solve, the second best and the best look in turns, and the third best plans.
    """
    solvers = looks = 0
    steps = []
    for at, letter in enumerate(shape):
        kind = letter.upper()
        if kind == "S":
            place, solvers = solvers, solvers + 1
        elif kind == "P":
            place = 2
        else:
            place, looks = (looks + 1) % 2, looks + 1
        plan = tuple(earlier for earlier in range(at) if shape[earlier] == "P")  # what solvers see
        access = plan if kind in "PS" else ALL if letter.isupper() else (at - 1,)
        steps.append(Step(order[place % len(order)], SUBTASKS[kind], access))
    return Workflow(tuple(steps))


def random_workflow(chance: random.Random, workers: Sequence[int], *, max_steps: int = 5) -> Workflow:
    """A workflow of one to `max_steps` steps, as many as often; workers are drawn evenly.

    Attempts see the plans, at most two, and second looks see everything; our choice.
    """
    count = chance.randint(1, max_steps)
    plans = chance.randint(0, min(2, count - 1))
    attempts = chance.randint(1, count - plans)
    looks = "VRA" if attempts > 1 else "VR"
    steps: list[tuple[str, Access]] = [(SUBTASKS["P"], ())] * plans + [(SOLVE, tuple(range(plans)))] * attempts
    steps += [(SUBTASKS[chance.choice(looks)], ALL) for _ in range(count - len(steps))]
    return Workflow(tuple(Step(chance.choice(workers), subtask, access) for subtask, access in steps))
