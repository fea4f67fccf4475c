"""Fitting the workers' levels, so that single calls on the frozen questions have the accuracies of the presets.

`python -m wfdsl_rl.gym.world.calibration` prints the levels that `wfdsl_rl.gym.world.presets` holds. Given its level,
the chance that a single call is right on a question is Φ(margin / luck), so that nothing has to be drawn.
"""

from __future__ import annotations

from math import erf, sqrt
from typing import TYPE_CHECKING

import numpy as np

from wfdsl_rl.gym.world.accuracy import frozen_questions
from wfdsl_rl.gym.world.presets import PRESETS
from wfdsl_rl.gym.world.profiles import DOMAINS, PROFILES

if TYPE_CHECKING:
    from wfdsl_rl.gym.world.presets import Preset
    from wfdsl_rl.gym.world.questions import Floats, Questions

_STEPS = 18
_erf = np.vectorize(erf, otypes=[float])


def fitted_levels(preset: Preset, voice: int) -> tuple[float, ...]:
    """The level of a voice on each domain at which its single calls have the accuracy of the preset."""
    return tuple(_fitted(preset, voice, frozen_questions(preset, domain)) for domain in DOMAINS)


def _fitted(preset: Preset, voice: int, questions: Questions) -> float:
    now = preset.level(voice, questions.domain)
    margins = questions.base[voice] - now
    luck = preset.domains[questions.domain].luck_sd
    wanted, low, high = preset.accuracy(voice, questions.domain), -4.0, 4.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _mean_chance((margins + middle) / luck) < wanted:
            low = middle
        else:
            high = middle
    return round((low + high) / 2, 3)


def _mean_chance(levels: Floats) -> float:
    return float(np.mean(0.5 * (1 + _erf(levels / sqrt(2)))))


def main() -> None:
    """Print the levels of all presets as source."""
    paper = PRESETS["gym/paper7"]
    for voice in range(len(PROFILES)):
        print(f"    {fitted_levels(paper, voice)},  # {PROFILES[voice].name}")
    for preset in PRESETS.values():
        for voice in preset.shifts:
            print(f"{preset.name}: {voice}: {fitted_levels(preset, voice)}")


if __name__ == "__main__":
    main()
