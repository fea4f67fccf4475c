"""wfdsl_rl: the reward of a completion, training with GRPO, and a gym of simulated workers.

The public names. Each is imported when it is first used, so that `import wfdsl_rl` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wfdsl_rl.reward import Reward as Reward
    from wfdsl_rl.scoring import Ablation as Ablation
    from wfdsl_rl.scoring import NoScore as NoScore
    from wfdsl_rl.scoring import RewardValues as RewardValues
    from wfdsl_rl.scoring import Rollout as Rollout
    from wfdsl_rl.scoring import Scored as Scored

_HOMES = {
    "Ablation": "scoring",
    "NoScore": "scoring",
    "Reward": "reward",
    "RewardValues": "scoring",
    "Rollout": "scoring",
    "Scored": "scoring",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605  (names of this very table)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'wfdsl_rl' has no attribute {name!r}")
    return getattr(import_module(f"wfdsl_rl.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
