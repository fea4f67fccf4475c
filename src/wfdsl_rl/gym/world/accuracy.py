"""Expected accuracy of any workflow over a fixed set of questions, with numpy: as exact as one has patience for.

Questions and what is hidden in them are fixed, so that only the luck of calls has to be averaged over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from wfdsl_rl.gym.world.arrays import Arrays
from wfdsl_rl.gym.world.making import items
from wfdsl_rl.gym.world.play import Board, play
from wfdsl_rl.gym.world.profiles import DOMAINS, Domain
from wfdsl_rl.gym.world.questions import Questions
from wfdsl_rl.gym.world.simulate import check_workers
from wfdsl_rl.gym.world.states import RIGHT, WRONG, Attempt
from wfdsl_rl.gym.world.workers import USUAL_TOKENS, luck_of, token_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from wfdsl.language.workflow import Workflow
    from wfdsl_rl.gym.world.item import Item
    from wfdsl_rl.gym.world.presets import Preset
    from wfdsl_rl.gym.world.states import State

FROZEN_SEED = 2512
"""The series of questions that published figures are for (our choice)."""
FROZEN_SIZE = 3600
"""Questions of each domain; a multiple of the numbers of families."""

_ARRAYS = Arrays()


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A share of right answers, averaged over the luck of calls."""

    value: float
    error: float
    """Standard error of `value`, for these very questions."""


def frozen_questions(preset: Preset, domain: Domain, *, size: int = FROZEN_SIZE) -> Questions:
    """The first questions of the frozen test series, before the workers of a preset."""
    return Questions.of(preset, _frozen_items(domain, size))


@lru_cache(maxsize=16)
def _frozen_items(domain: Domain, size: int) -> tuple[Item, ...]:
    return tuple(items(domain, size, FROZEN_SEED))


def frozen_fingerprint() -> str:
    """SHA-256 of the frozen questions with their answers; 16 digits of it. The levels are fitted on them."""
    digest = sha256()
    for domain in DOMAINS:
        for item in _frozen_items(domain, FROZEN_SIZE):
            digest.update("\0".join((item.question, item.gold, *item.wrong[:WRONG], f"{item.difficulty:.4f}")).encode())
    return digest.hexdigest()[:16]


def states_of(
    workflow: Workflow,
    questions: Questions,
    sample: str,
    *,
    max_tokens: int = USUAL_TOKENS,
    prefix: tuple[int, ...] = (),
    previous: State | None = None,
) -> list[State]:
    """The states of all steps, each field an array; as `simulate` has them with this sample."""
    board = Board(_ARRAYS, questions.preset, questions.domain, questions.seat, questions.keys)
    limit = token_limit(max_tokens)
    return play(board, workflow, luck=luck_of(sample, {}), limit=limit, prefix=prefix, previous=previous)


def right_answers(state: State, size: int) -> NDArray[np.bool_]:
    """Where a final state is right; a plan never is."""
    if isinstance(state, Attempt):
        return np.broadcast_to(np.asarray(state.answer == RIGHT), (size,))
    return np.zeros(size, dtype=bool)


def expected_accuracy(
    workflow: Workflow, questions: Questions, *, draws: int = 16, max_tokens: int = USUAL_TOKENS, luck: str = "draw"
) -> Accuracy:
    """The share of right answers of a workflow on these questions, with the luck of calls averaged out.

    Raises:
        UsageError: a worker is not in the preset.
    """
    check_workers(workflow, questions.preset)
    size = len(questions)
    total = np.zeros(size)
    for draw in range(draws):
        final = states_of(workflow, questions, f"{luck} {draw}", max_tokens=max_tokens)[-1]
        total += right_answers(final, size)
    chance = total / draws
    error = float(np.sqrt(np.sum(chance * (1 - chance) / max(draws - 1, 1))) / size)
    return Accuracy(float(chance.mean()), error)


@dataclass(frozen=True)
class Exam:
    """The questions of all four domains before the workers of a preset."""

    preset: Preset
    size: int = FROZEN_SIZE

    @cached_property
    def questions(self) -> Mapping[Domain, Questions]:
        return {domain: frozen_questions(self.preset, domain, size=self.size) for domain in DOMAINS}

    def accuracies(self, workflow: Workflow, *, draws: int = 16, max_tokens: int = USUAL_TOKENS) -> list[Accuracy]:
        """On each domain, in their order.

        Raises:
            UsageError: a worker is not in the preset.
        """
        return [
            expected_accuracy(workflow, self.questions[domain], draws=draws, max_tokens=max_tokens)
            for domain in DOMAINS
        ]
