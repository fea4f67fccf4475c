"""What a second round is worth: the best revision for each kind of final reply, chosen on half of the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.gym_teams import team
from wfdsl.language.workflow import Workflow
from wfdsl_rl.gym.world.accuracy import Questions, right_answers, states_of
from wfdsl_rl.gym.world.states import Attempt

_WORTH_A_CALL: Final = 0.01
"""A revision that gains less than this after some kind of reply is not worth its calls."""


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


def second_round(first: Workflow, sets: Sequence[Questions], *, draws: int = 8) -> SecondRound:
    """Choose on half of the questions what to do after each kind of final reply, and judge it on the other half.

    A reply shows whether a check failed or came out, whether it hedges, leaves something open, or was cut. A revision
    makes no more calls than the first round, so that there are at most twice as many altogether.
    """
    options = [(), *_revisions(len(sets[0].preset.members), min(len(first), 2))]
    played = [_played_on(first, options, questions, draws) for questions in sets]
    seen, outcomes = (np.concatenate([pair[at] for pair in played], axis=-1) for at in (0, 1))
    learned = np.arange(seen.shape[-1]) % 2 == 0
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
