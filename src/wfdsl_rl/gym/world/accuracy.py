"""Expected accuracy of a workflow over a fixed set of questions, computed with numpy for all questions at once.

The questions and their latent difficulty are fixed, so that only the randomness of calls has to be averaged out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from wfdsl.language.workflow import Workflow
from wfdsl_rl.gym.world.behaviour import WorkerOnQuestion
from wfdsl_rl.gym.world.families.form import Item
from wfdsl_rl.gym.world.making import items
from wfdsl_rl.gym.world.presets import Preset
from wfdsl_rl.gym.world.profiles import DOMAINS, Domain
from wfdsl_rl.gym.world.questions import USUAL_TOKENS, known_item, stream_of, token_limit
from wfdsl_rl.gym.world.randomness import (
    CENTRE_BOTTOM,
    CENTRE_TOP,
    FACTORS,
    MASK,
    STRIDE,
    TAIL,
    TAIL_BOTTOM,
    TAIL_TOP,
    UNIT,
    Numbers,
    Truths,
    polynomial,
)
from wfdsl_rl.gym.world.simulate import SimulationInput, check_workers, simulate_states
from wfdsl_rl.gym.world.states import RIGHT, WRONG, Attempt, State


class Arrays:
    """Arithmetic on arrays; keys are arrays of `uint64`, whose products wrap around."""

    def joined(self, key: Numbers, salt: int) -> Numbers:
        return _mixed(key ^ np.uint64(salt))

    def uniform(self, key: Numbers, stream: int) -> Numbers:
        mixed = _mixed(key + np.uint64(((stream + 1) * STRIDE) & MASK))
        return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * UNIT

    def normal(self, key: Numbers, stream: int) -> Numbers:
        share = self.uniform(key, stream)
        q = share - 0.5
        r = q * q
        centre = polynomial(CENTRE_TOP, r) * q / polynomial(CENTRE_BOTTOM, r)
        outside = np.flatnonzero(np.abs(q) > 0.5 - TAIL)
        if outside.size:
            q = np.sqrt(-2 * np.log(np.minimum(share[outside], 1 - share[outside])))
            size = polynomial(TAIL_TOP, q) / polynomial(TAIL_BOTTOM, q)
            centre[outside] = np.where(share[outside] < TAIL, size, -size)
        return centre

    def where(self, condition: Truths, then: Numbers, otherwise: Numbers) -> Numbers:
        return np.where(condition, then, otherwise)

    def no(self, condition: Truths) -> Truths:
        return np.logical_not(condition)


def _mixed(x: Numbers) -> Numbers:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(FACTORS[0])
    x = (x ^ (x >> np.uint64(27))) * np.uint64(FACTORS[1])
    return x ^ (x >> np.uint64(31))


Floats: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True)
class Questions:
    """Questions of one family for the workers of a preset."""

    preset: Preset
    family: str
    keys: NDArray[np.uint64]
    base: Floats
    """Ability less hardness: (agents, parts, questions)."""
    blindness: Floats
    """One row a agent."""
    shared_errors: NDArray[np.int64]
    """One row a family of models."""

    @classmethod
    def of(cls, preset: Preset, items: Sequence[Item]) -> Questions:
        """The questions of these items, which are all of one family."""
        (family,) = {item.family for item in items}
        hidden = [known_item(preset, item).latents for item in items]
        ability = np.array([preset.abilities[agent, family] for agent in range(len(preset.relatives))])
        hardness = np.array([latents.hardness for latents in hidden]).T
        return cls(
            preset,
            family,
            np.array([latents.key for latents in hidden], dtype=np.uint64),
            ability[:, :, None] - hardness,
            np.array([latents.blindness for latents in hidden]).T,
            np.array([latents.shared_errors for latents in hidden]).T,
        )

    def worker(self, agent: int, limit: float = 0.0) -> WorkerOnQuestion:
        """A worker on all of them."""
        shared_error = self.shared_errors[self.preset.relatives[agent]]
        return WorkerOnQuestion(agent, tuple(self.base[agent]), shared_error, self.blindness[agent], limit)

    @property
    def input(self) -> SimulationInput:
        """All of them as what a workflow is simulated on."""
        return SimulationInput(_ARRAYS, self.preset, self.family, self.worker, self.keys)

    def __len__(self) -> int:
        return len(self.keys)


FROZEN_SEED = 2512
"""The series of questions that published figures are for (our choice)."""
FROZEN_SIZE = 3600
"""Questions of each domain; a multiple of the numbers of families."""

_ARRAYS = Arrays()


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A share of right answers, averaged over the randomness of calls."""

    value: float
    error: float
    """Standard error of `value`, for these very questions."""


def mean_of(parts: Sequence[Accuracy]) -> Accuracy:
    """The mean over sets of questions of the same size."""
    error = float(np.sqrt(sum(one.error**2 for one in parts))) / len(parts)
    return Accuracy(sum(one.value for one in parts) / len(parts), error)


def frozen_questions(preset: Preset, domain: Domain, *, size: int = FROZEN_SIZE) -> list[Questions]:
    """The first questions of the frozen test series, family by family, for the workers of a preset."""
    asked = _frozen_items(preset.name, domain, size)
    return [Questions.of(preset, [item for item in asked if item.family == name]) for name in preset.ease[domain]]


@lru_cache(maxsize=16)
def _frozen_items(preset: str, domain: Domain, size: int) -> tuple[Item, ...]:
    return tuple(items(preset, domain, size, FROZEN_SEED))


def frozen_fingerprint(preset: str = "gym/paper7") -> str:
    """SHA-256 of the frozen questions with their answers; 16 digits of it. The levels are fitted on them."""
    digest = sha256()
    for domain in DOMAINS:
        for item in _frozen_items(preset, domain, FROZEN_SIZE):
            digest.update("\0".join((item.question, item.gold, *item.wrong[:WRONG], f"{item.difficulty:.4f}")).encode())
    return digest.hexdigest()[:16]


def states_of(
    workflow: Workflow,
    questions: Questions,
    sample_id: str,
    *,
    max_tokens: int = USUAL_TOKENS,
    prefix: tuple[int, ...] = (),
    previous: State | None = None,
) -> list[State]:
    """The states of all steps, each field an array; as `simulate` has them with this sample."""
    stream, limit = stream_of(sample_id, {}), token_limit(max_tokens)
    return simulate_states(questions.input, workflow, stream=stream, limit=limit, prefix=prefix, previous=previous)


def right_answers(state: State, size: int) -> NDArray[np.bool_]:
    """Where a final state is right; a plan or the result of one part never is."""
    if isinstance(state, Attempt) and not state.part:
        return np.broadcast_to(np.asarray(state.answer == RIGHT), (size,))
    return np.zeros(size, dtype=bool)


def expected_accuracy(
    workflow: Workflow, questions: Questions, *, draws: int = 16, max_tokens: int = USUAL_TOKENS, stream: str = "draw"
) -> Accuracy:
    """The share of right answers of a workflow on these questions, with the randomness of calls averaged out.

    Raises:
        UsageError: a worker is not in the preset.
    """
    check_workers(workflow, questions.preset)
    size = len(questions)
    total = np.zeros(size)
    for draw in range(draws):
        final = states_of(workflow, questions, f"{stream} {draw}", max_tokens=max_tokens)[-1]
        total += right_answers(final, size)
    chance = total / draws
    error = float(np.sqrt(np.sum(chance * (1 - chance) / max(draws - 1, 1))) / size)
    return Accuracy(float(chance.mean()), error)


@dataclass(frozen=True)
class Exam:
    """The questions of all families for the workers of a preset."""

    preset: Preset
    size: int = FROZEN_SIZE

    @cached_property
    def questions(self) -> Mapping[Domain, Sequence[Questions]]:
        """Of each domain, family by family; all families have as many, give or take one."""
        return {domain: frozen_questions(self.preset, domain, size=self.size) for domain in DOMAINS}

    @property
    def families(self) -> Mapping[str, Questions]:
        """Of each family."""
        return {each.family: each for found in self.questions.values() for each in found}

    def accuracies(self, workflow: Workflow, *, draws: int = 16, max_tokens: int = USUAL_TOKENS) -> list[Accuracy]:
        """On each domain, in their order.

        Raises:
            UsageError: a worker is not in the preset.
        """
        return [
            mean_of([expected_accuracy(workflow, one, draws=draws, max_tokens=max_tokens) for one in found])
            for found in self.questions.values()
        ]
