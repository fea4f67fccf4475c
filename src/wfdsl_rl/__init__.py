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

__all__ = ["Ablation", "NoScore", "Reward", "RewardValues", "Rollout", "Scored"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'wfdsl_rl' has no attribute {name!r}")
    return getattr(import_module("wfdsl_rl.reward" if name == "Reward" else "wfdsl_rl.scoring"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
