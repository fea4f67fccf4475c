"""The public names and where they are defined: for type checkers, and for `wfdsl.lazy`."""

from wfdsl_rl.reward import Reward as Reward
from wfdsl_rl.scoring import Ablation as Ablation
from wfdsl_rl.scoring import NoScore as NoScore
from wfdsl_rl.scoring import RewardValues as RewardValues
from wfdsl_rl.scoring import Rollout as Rollout
from wfdsl_rl.scoring import Scored as Scored

__all__: list[str]
