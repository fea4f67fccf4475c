"""SkyRL's training with the environment of wfdsl: `skyrl_conductor.py OPTION=VALUE...` (skyrl.sh)."""

import sys

import ray
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp
from skyrl.train.utils import initialize_ray, validate_cfg

from wfdsl_rl.engines.skyrl import register_environment


@ray.remote(num_cpus=1)
def train(config):
    register_environment(url="http://127.0.0.1:8700", run="base")  # in the process that scores
    BasePPOExp(config).run()


if __name__ == "__main__":
    found = SkyRLTrainConfig.from_cli_overrides(sys.argv[1:])
    validate_cfg(found)
    initialize_ray(found)
    ray.get(train.remote(found))
