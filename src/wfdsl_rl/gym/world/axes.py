"""What sets the families of `gym/axes` apart: each is made for another kind of workflow.

There are five axes: depth, horizon, breadth, parallel attempts and robustness; and easy families, of which one step
answers nearly all. All numbers but the fitted ones are our choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from wfdsl_rl.gym.world.constants import Behaviour, DomainConstants
from wfdsl_rl.gym.world.profiles import Domain

EASE: Final[Mapping[Domain, Mapping[str, float]]] = {
    "math": {"sums": 0.4, "chain": 0.2, "basket": 0.2},
    "choice": {"largest": 0.3, "decoy": -0.3, "pair": 0.3},
    "text": {"tally": 0.2, "long-run": -0.1, "relay": 0.9},
    "code": {"list-code": -0.1, "string-code": 0.0, "number-code": 0.1},
}
"""The families of each domain, and how much easier than it they are, for all workers alike."""

_EASY: Final = DomainConstants(
    common_share=0.70, relatives_share=0.05, worker_share=0.10, plan_gain=0.0, plan_cost=0.25, load=0.15,
    long_gain=0.06, keep=1.0, keep_slope=0.4, detect=-1.2, fix=0.0, overdone=0.9, own_vote=1.0, muddle=1.5,
)  # fmt: skip
_PARTS: Final = DomainConstants(
    common_share=0.45, relatives_share=0.10, worker_share=0.30, plan_gain=0.03, plan_cost=0.12, load=0.02,
    long_gain=0.15, keep=0.9, detect=-1.4, fix=0.0, overdone=0.6, own_vote=0.8, muddle=1.5, parts=3, span=0.16,
)  # fmt: skip
_PLANNED: Final = DomainConstants(
    common_share=0.60, relatives_share=0.08, worker_share=0.17, plan_gain=0.30, plan_cost=0.03, load=0.10,
    long_gain=0.15, keep=1.0, detect=-1.0, fix=0.0, overdone=0.6, own_vote=1.0, muddle=1.5,
)  # fmt: skip
_REVISED: Final = DomainConstants(
    common_share=0.55, relatives_share=0.08, worker_share=0.22, plan_gain=0.10, plan_cost=0.05, load=0.02,
    long_gain=0.15, keep=2.0, detect=-0.2, fix=0.1, overdone=0.3, own_vote=0.8, muddle=1.0,
)  # fmt: skip
_CHECKED: Final = DomainConstants(
    common_share=0.50, relatives_share=0.20, worker_share=0.20, plan_gain=0.0, plan_cost=0.20, load=0.12,
    long_gain=0.06, keep=1.5, detect=-0.2, fix=0.0, overdone=0.4, own_vote=1.0, muddle=1.25, relative_blind=0.8,
)  # fmt: skip
_BY_CHANCE: Final = DomainConstants(
    common_share=0.28, relatives_share=0.04, worker_share=0.11, plan_gain=0.0, plan_cost=0.20, load=0.0,
    long_gain=0.08, keep=0.6, detect=-1.3, fix=0.0, overdone=0.6, own_vote=1.0, muddle=0.1,
)  # fmt: skip

FAMILIES: Final[Mapping[str, DomainConstants]] = {
    "sums": _EASY,
    "chain": replace(_PARTS, chained=True, part_sd=0.15, method="steps", check="steps"),
    "basket": replace(_PARTS, parts=4, span=0.08, part_sd=0.22, method="list", check="steps"),
    "largest": _EASY,
    "decoy": replace(_CHECKED, check="facts"),
    "pair": replace(_PARTS, parts=2, span=0.20, part_sd=0.30, method="list", check="again"),
    "tally": replace(_BY_CHANCE, method="list"),
    "long-run": replace(_REVISED, method="steps", check="steps"),
    "relay": replace(_PARTS, chained=True, span=0.06, part_sd=0.05, method="steps", check="steps"),
    "list-code": replace(_PLANNED, method="cases", check="edges"),
    "string-code": replace(_CHECKED, method="cases", check="edges"),
    "number-code": replace(_BY_CHANCE, method="cases"),
}
"""The constants of each family."""

BEHAVIOUR: Final = Behaviour(
    family_sd=0.22,
    pull_right=-1.0,
    pull_wrong=-1.0,
    eye_share=0.85,
    by_view=True,
    method_gain=0.03,
    method_loss=0.08,
    check_gain=0.10,
    check_loss=0.10,
    misplaced_part=0.10,
    misplaced={"solve": 0.0, "verify": 0.15, "aggregate": 0.2, "refine": 0.15},
)

LEVELS: Final[tuple[tuple[float, ...], ...]] = (
    (1.537, 1.755, -0.279, -0.285),
    (1.404, 1.439, -0.3, -0.448),
    (1.111, 1.256, -0.488, 0.092),
    (1.285, 1.411, -0.595, -0.69),
    (-0.04, 0.77, -0.747, -1.652),
    (1.506, 1.24, -0.425, -0.376),
    (1.114, 1.309, -0.626, -0.612),
)
"""Of each agent, on each domain. Fitted by `tests.benchmarks.gym_calibration` to the paper's accuracies."""
