"""The arithmetic of `wfdsl_rl.gym.world.noise` on numpy arrays, one entry a question."""

from __future__ import annotations

import numpy as np

from wfdsl_rl.gym.world.noise import (
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
