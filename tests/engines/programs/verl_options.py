"""verl's own configuration with the options of a script: `verl_options.py SCRIPT`. Fails at one that verl lacks."""

import json
import shlex
import sys
from pathlib import Path

import verl.trainer
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

text = Path(sys.argv[1]).read_text(encoding="utf-8")
options = shlex.split(text.partition("options=(")[2].partition("\n)")[0], comments=True)
with initialize_config_dir(str(Path(verl.trainer.__file__).parent / "config"), version_base=None):
    found = compose("ppo_trainer", overrides=options)
chosen = {name: OmegaConf.select(found, name) for name in ("actor_rollout_ref.rollout.n", "data.train_batch_size")}
print(
    json.dumps(
        {"options": len(options), **chosen, "reward": OmegaConf.to_container(found.reward.custom_reward_function)}
    )
)
