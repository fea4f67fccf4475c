"""The best workflows of a preset: by structure, by workers, by second round. What a Conductor could reach at most.

The search goes over orders of planning, solving, verifying, refining and aggregating, and for the most promising ones
over workers, one step at a time. The results are then scored with random streams that the search has not seen. They are
lower bounds of what is possible.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wfdsl.language.tree import Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl_rl.gym.world.accuracy import Accuracy, Questions, expected_accuracy, right_answers, states_of
from wfdsl_rl.gym.world.roles import Role
from wfdsl_rl.gym.world.states import Attempt

SUBTASKS: Final[Mapping[str, tuple[Role, str]]] = {
    "P": ("plan", "Make a plan. Do not solve it yet."),
    "S": ("solve", "Solve the problem."),
    "V": ("verify", "Check the solution above and give the answer."),
    "R": ("refine", "Improve the solution above and give the answer."),
    "A": ("aggregate", "Compare the answers above and give the best one."),
}
"""A letter for each kind of step, with an instruction that asks for it."""
_PLANS: Final = 2
_KEPT: Final = 5
"""How many structures are searched for workers."""
_SWEEPS: Final = 2
_WORTH_A_CALL: Final = 0.01
"""A revision that gains less than this after some kind of reply is not worth its calls."""


@dataclass(frozen=True, slots=True)
class Found:
    """A workflow, and how good it is."""

    structure: str
    """Letters of `SUBTASKS`."""
    workers: tuple[int, ...]
    """Indices."""
    accuracies: tuple[Accuracy, ...]
    """One for each set of questions."""

    @property
    def workflow(self) -> Workflow:
        return team(self.structure, self.workers)

    @property
    def mean(self) -> float:
        """The mean over the sets of questions."""
        return sum(accuracy.value for accuracy in self.accuracies) / len(self.accuracies)

    def __str__(self) -> str:
        return " ".join(f"{letter}{worker}" for letter, worker in zip(self.structure, self.workers, strict=True))


@lru_cache(maxsize=65536)
def team(structure: str, workers: tuple[int, ...]) -> Workflow:
    """The workflow of a structure: solvers see plans only, later steps see everything."""
    steps = []
    for index, (letter, worker) in enumerate(zip(structure, workers, strict=True)):
        plans = tuple(at for at in range(index) if structure[at] == "P")
        access: Access = () if letter == "P" else plans if letter == "S" else "all"
        steps.append(Step(worker, SUBTASKS[letter][1], access))
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


def best_team(sets: Sequence[Questions], length: int, *, draws: int = 1, kept: int = _KEPT) -> Found:
    """The best workflow of this length for these sets of questions alike: one domain, or all four."""
    search = _Search(sets, draws)
    ranked = sorted(structures(length), key=lambda one: -search.score(one, search.usual_workers(one)))
    climbed = [search.climb(one, search.usual_workers(one)) for one in ranked[:kept]]
    _, structure, workers = max(climbed)
    accuracies = tuple(expected_accuracy(team(structure, workers), one, stream="judge") for one in sets)
    return Found(structure, workers, accuracies)


def best_extension(one: Found, questions: Questions, *, draws: int = 4) -> float:
    """The best accuracy of two steps that keep a single call: with a plan before it, or a second look after it."""
    (solver,) = one.workers
    indices = range(len(questions.preset.members))
    ways = [team("PS", (other, solver)) for other in indices]
    ways += [team(f"S{look}", (solver, other)) for look in "VR" for other in indices]
    return max(expected_accuracy(way, questions, draws=draws).value for way in ways)


class _Search:
    """Scores of teams on some sets of questions, with the same random streams for all."""

    def __init__(self, sets: Sequence[Questions], draws: int) -> None:
        self._sets = sets
        self._draws = draws
        preset = sets[0].preset
        self._workers = range(len(preset.members))
        single = {worker: self.score("S", (worker,)) for worker in self._workers}
        self._ranked = sorted(self._workers, key=lambda worker: -single[worker])

    def score(self, structure: str, workers: tuple[int, ...]) -> float:
        workflow = team(structure, workers)
        return sum(expected_accuracy(workflow, one, draws=self._draws).value for one in self._sets) / len(self._sets)

    def usual_workers(self, structure: str) -> tuple[int, ...]:
        """The best solvers solve, the second best plans, and the best two look in turns."""
        ranked, looks, attempts = self._ranked, 0, 0
        chosen = []
        for letter in structure:
            if letter == "S":
                chosen.append(ranked[attempts % len(ranked)])
                attempts += 1
            elif letter == "P":
                chosen.append(ranked[1])
            else:
                chosen.append(ranked[(1, 0)[looks % 2]])
                looks += 1
        return tuple(chosen)

    def climb(self, structure: str, workers: tuple[int, ...]) -> tuple[float, str, tuple[int, ...]]:
        """Change one worker at a time for as long as it helps."""
        best = self.score(structure, workers)
        for _ in range(_SWEEPS):
            before = workers
            for step, index in product(range(len(workers)), self._workers):
                changed = (*workers[:step], index, *workers[step + 1 :])
                score = self.score(structure, changed)
                if score > best:
                    best, workers = score, changed
            if workers == before:
                break
        return best, structure, workers


def random_teams(length: int, members: int, n: int, seed: int) -> Iterator[Workflow]:
    """Well-formed workflows at random: a structure that makes sense, and any workers."""
    chance = random.Random(f"{seed} {length}")
    for _ in range(n):
        structure = chance.choice(structures(length))
        yield team(structure, tuple(chance.randrange(members) for _ in structure))


@dataclass(frozen=True, slots=True)
class SecondRound:
    """What a second round is worth where only the first round's final reply is seen."""

    first: float
    """Accuracy after the first round."""
    always: float
    """After the best revision, made whatever the reply says."""
    best: float
    """After the best of revisions and keeping, by what the reply shows."""
    revised: float
    """The share of answers that the latter revises."""


def second_round(first: Workflow, questions: Questions, *, draws: int = 8) -> SecondRound:
    """Choose on half of the questions what to do after each kind of final reply, and judge it on the other half.

    A reply shows whether a check failed or came out, whether it hedges, leaves something open, or was cut. A revision
    makes no more calls than the first round, so that there are at most twice as many altogether.
    """
    options = [(), *_revisions(len(questions.preset.members), min(len(first), 2))]
    seen, outcomes = _played_on(first, options, questions, draws)
    learned = np.arange(len(questions)) % 2 == 0
    judged = ~learned
    choice = np.zeros(seen.max() + 1, dtype=int)
    for pattern in np.unique(seen):
        here = (seen == pattern) & learned
        if here.any():
            gains = outcomes[:, here].mean(axis=1)
            gains[0] += _WORTH_A_CALL
            choice[pattern] = int(np.argmax(gains))
    chosen = choice[seen[:, judged]]
    picked = np.take_along_axis(outcomes[:, :, judged], chosen[None], axis=0)[0]
    always = 1 + int(np.argmax(outcomes[1:, :, learned].mean(axis=(1, 2))))
    return SecondRound(
        float(outcomes[0][:, judged].mean()),
        float(outcomes[always][:, judged].mean()),
        float(picked.mean()),
        float((chosen > 0).mean()),
    )


def _revisions(members: int, longest: int) -> list[tuple[tuple[str, int], ...]]:
    """Second looks by one or two workers, and new attempts that do not look back."""
    indices = range(members)
    one: list[tuple[tuple[str, int], ...]] = [((letter, worker),) for letter in "VRS" for worker in indices]
    if longest < 2:
        return one
    return one + [
        ((first, left), (second, right))
        for first, second in ("RV", "VR", "SV", "PS")
        for left, right in product(indices, repeat=2)
    ]


def _played_on(
    first: Workflow, options: list[tuple[tuple[str, int], ...]], questions: Questions, draws: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each draw and question the pattern of the first answer, and for each option too whether it ends right."""
    seen, outcomes = [], []
    for draw in range(draws):
        final = states_of(first, questions, f"rounds {draw}", prefix=(0, 0))[-1]
        assert isinstance(final, Attempt)  # a first round that is worth a second does not end with a plan
        seen.append(_pattern(final))
        rights = [right_answers(final, len(questions))]
        for option in options[1:]:
            workflow, sees = _revision(option)
            previous = final if sees else None
            last = states_of(workflow, questions, f"rounds {draw}", prefix=(0, 1), previous=previous)[-1]
            rights.append(right_answers(last, len(questions)))
        outcomes.append(np.array(rights))
    return np.array(seen), np.stack(outcomes, axis=1)


def _revision(option: tuple[tuple[str, int], ...]) -> tuple[Workflow, bool]:
    letters = "".join(letter for letter, _ in option)
    return team(letters, tuple(worker for _, worker in option)), letters[0] in "VR"


def _pattern(final: Attempt) -> NDArray[np.int64]:
    shown = np.asarray(final.check) + 3 * np.asarray(final.hedged) + 6 * np.asarray(final.slipped)
    return np.where(final.cut, 12, shown).astype(np.int64)
