"""Workflows by letters: plan, solve, verify, refine, aggregate; and well-formed ones at random."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Final

from wfdsl.language.tree import Access
from wfdsl.language.workflow import Step, Workflow

SUBTASKS: Final[Mapping[str, str]] = {
    "S": "Solve the problem.",
    "P": "Make a plan. Do not solve it yet.",
    "V": "Check the solution above and give the answer.",
    "R": "Improve the solution above and give the answer.",
    "A": "Compare the answers above and give the best one.",
}
"""A letter for each kind of step, with an instruction that asks for it."""
_PLANS: Final = 2


@lru_cache(maxsize=65536)
def team(structure: str, workers: tuple[int, ...]) -> Workflow:
    """The workflow of a structure: solvers see plans only, later steps see everything."""
    steps = []
    for index, (letter, worker) in enumerate(zip(structure, workers, strict=True)):
        plans = tuple(at for at in range(index) if structure[at] == "P")
        access: Access = () if letter == "P" else plans if letter == "S" else "all"
        steps.append(Step(worker, SUBTASKS[letter], access))
    return Workflow(tuple(steps))


@lru_cache(maxsize=8)
def structures(length: int) -> tuple[str, ...]:
    """The structures that make sense: plans, then attempts, then looks at them; at most one aggregation."""
    every = ("".join(letters) for letters in product("PSVRA", repeat=length))
    return tuple(structure for structure in every if _makes_sense(structure))


def _makes_sense(structure: str) -> bool:
    plans = len(structure) - len(structure.lstrip("P"))
    rest = structure[plans:]
    attempts = len(rest) - len(rest.lstrip("S"))
    looks = rest[attempts:]
    return (
        plans <= _PLANS
        and attempts > 0
        and not {"P", "S"} & set(looks)
        and looks.count("A") <= (1 if attempts > 1 else 0)
    )


def random_teams(length: int, members: int, n: int, seed: int) -> Iterator[Workflow]:
    """Well-formed workflows at random: a structure that makes sense, and any workers."""
    chance = random.Random(f"{seed} {length}")
    for _ in range(n):
        structure = chance.choice(structures(length))
        yield team(structure, tuple(chance.randrange(members) for _ in structure))
