"""wfdsl_rl: the reward of a completion, training with GRPO, and a gym of simulated workers.

The public names. Each is imported when it is first used, so that `import wfdsl_rl` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wfdsl_rl.reward import Reward
    from wfdsl_rl.scoring import Ablation, NoScore, RewardValues, Rollout, Scored

__all__ = ["Ablation", "NoScore", "Reward", "RewardValues", "Rollout", "Scored"]
_HOMES = {name: "reward" if name == "Reward" else "scoring" for name in __all__}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'wfdsl_rl' has no attribute {name!r}")
    return getattr(import_module(f"wfdsl_rl.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
