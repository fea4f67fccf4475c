"""SkyRL's training with an environment that asks a reward server: `skyrl_conductor.py OPTION=VALUE...` (skyrl.sh)."""

import os
import sys
from uuid import uuid4

import ray
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp
from skyrl.train.utils import initialize_ray, validate_cfg
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
from skyrl_gym.envs.registration import register

from wfdsl_rl.engines.client import RewardClient

WRONG = 0.5


class ConductorEnv(BaseTextEnv):
    """One completion, one reward. SkyRL counts a positive one as a pass: 0.5 right, 0 wrong, -0.5 invalid."""

    def __init__(self, env_config=None, extras=None):  # noqa: ARG002
        super().__init__()
        url = os.environ.get("WFDSL_REWARD_URL", "http://127.0.0.1:8700")
        self.client = RewardClient(url, os.environ.get("WFDSL_SERVER_KEY"), run="base")
        self.extra = extras["extra_info"]

    def step(self, action):
        workers = {name: [int(each) for each in self.extra[name]] for name in ("shown", "true")}
        sample = {"task": self.extra["task"], "completion": action, "sample_id": uuid4().hex, **workers}
        (result,) = self.client.score_sync([sample])  # with an id of its own, an equal completion is run again
        self.client.close()
        reward = 0.0 if result["score"] is None else result["score"] - WRONG
        return BaseTextEnvStepOutput(observations=[], reward=reward, done=True, metadata={"steps": result["steps"]})


@ray.remote(num_cpus=1)
def train(config):
    register(id="wfdsl", entry_point=ConductorEnv)  # in the process that scores
    BasePPOExp(config).run()


if __name__ == "__main__":
    found = SkyRLTrainConfig.from_cli_overrides(sys.argv[1:])
    validate_cfg(found)
    initialize_ray(found)
    ray.get(train.remote(found))
