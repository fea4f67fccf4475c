"""Fitting the workers' levels, so that single calls on the frozen questions have the accuracies of the presets.

`python -m tests.benchmarks.gym_calibration` prints the levels that `wfdsl_rl.gym.world.presets` holds. Given its level,
the chance that a single call is right on a question is Φ(margin / noise_sd), so that nothing has to be drawn.
"""

from __future__ import annotations

from math import erf, sqrt

import numpy as np

from wfdsl_rl.gym.world.accuracy import Floats, Questions, frozen_questions
from wfdsl_rl.gym.world.presets import PRESETS, Preset
from wfdsl_rl.gym.world.profiles import DOMAINS, PROFILES

_STEPS = 18
_erf = np.vectorize(erf, otypes=[float])


def fitted_levels(preset: Preset, agent: int) -> tuple[float, ...]:
    """The level of a agent on each domain at which its single calls have the accuracy of the preset."""
    return tuple(_fitted(preset, agent, frozen_questions(preset, domain)) for domain in DOMAINS)


def _fitted(preset: Preset, agent: int, questions: Questions) -> float:
    now = preset.level(agent, questions.domain)
    margins = questions.base[agent] - now
    noise_sd = preset.domains[questions.domain].noise_sd
    wanted, low, high = preset.accuracy(agent, questions.domain), -4.0, 4.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _mean_chance((margins + middle) / noise_sd) < wanted:
            low = middle
        else:
            high = middle
    return round((low + high) / 2, 3)


def _mean_chance(levels: Floats) -> float:
    return float(np.mean(0.5 * (1 + _erf(levels / sqrt(2)))))


def main() -> None:
    """Print the levels of all presets as source."""
    paper = PRESETS["gym/paper7"]
    for agent in range(len(PROFILES)):
        print(f"    {fitted_levels(paper, agent)},  # {PROFILES[agent].name}")
    for preset in PRESETS.values():
        for agent in preset.shifts:
            print(f"{preset.name}: {agent}: {fitted_levels(preset, agent)}")


if __name__ == "__main__":
    main()
