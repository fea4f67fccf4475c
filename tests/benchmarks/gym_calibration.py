"""Fit the workers' levels, so that single calls have the accuracies that the preset wants on the frozen questions.

`python -m tests.benchmarks.gym_calibration` prints the levels that `wfdsl_rl.gym.world` holds. Given its level, the
chance that a single call is right about a part of a question is Φ(margin / noise_sd), so that nothing has to be drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erf, sqrt

import numpy as np

from wfdsl_rl.gym.world.accuracy import Questions, frozen_questions
from wfdsl_rl.gym.world.presets import PRESETS, Preset
from wfdsl_rl.gym.world.profiles import DOMAINS, PROFILES

_STEPS = 18
_erf = np.vectorize(erf, otypes=[float])


def fitted_levels(preset: Preset, agent: int) -> tuple[float, ...]:
    """The level of an agent on each domain at which its single calls have the accuracy of the preset."""
    return tuple(_fitted(preset, agent, at) for at in range(len(DOMAINS)))


def _fitted(preset: Preset, agent: int, at: int) -> float:
    asked = frozen_questions(preset, DOMAINS[at])
    now, wanted, low, high = preset.level(agent, DOMAINS[at]), preset.accuracy(agent, DOMAINS[at]), -4.0, 4.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if mean_chance(asked, agent, middle - now) < wanted:
            low = middle
        else:
            high = middle
    return round((low + high) / 2, 3)


def mean_chance(asked: Sequence[Questions], agent: int, shift: float = 0.0) -> float:
    """The chance that a single call is right, as a mean over questions of the same number for each family."""
    return float(np.mean([_chance(questions, agent, shift) for questions in asked]))


def _chance(questions: Questions, agent: int, shift: float) -> float:
    constants = questions.preset.constants(questions.family)
    margins = questions.base[agent] + shift - constants.span * (constants.parts - 1)
    return float(np.mean(np.prod(0.5 * (1 + _erf(margins / constants.noise_sd / sqrt(2))), axis=0)))


def main() -> None:
    """Print the levels of all presets as source."""
    for preset in PRESETS.values():
        for agent in preset.shifts or (range(len(PROFILES)) if preset.members == tuple(range(7)) else ()):
            print(f"{preset.name}: {fitted_levels(preset, agent)},  # {PROFILES[agent].name}")


if __name__ == "__main__":
    main()
