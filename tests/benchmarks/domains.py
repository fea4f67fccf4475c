"""Figures of the gym's four domains as one."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from wfdsl_rl.gym.world.profiles import DOMAINS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def mean_over_domains(values: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """The mean of the domains' means in percent, and its standard error."""
    means = [statistics.mean(values[domain]) for domain in DOMAINS]
    errors = [statistics.variance(values[domain]) / len(values[domain]) for domain in DOMAINS]
    return 100 * statistics.mean(means), 100 * sum(errors) ** 0.5 / len(DOMAINS)
