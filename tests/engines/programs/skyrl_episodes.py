"""Episodes of the SkyRL environment: `skyrl_episodes.py ROWS.jsonl COMPLETIONS.json OPTIONS [registered]`.

The options are the environment's configuration or, with the last word, those with which it is registered, as SkyRL's
trainer needs them. Prints each episode's reward, metadata and metrics as JSON.
"""

import json
import sys
from pathlib import Path

import skyrl_gym
from omegaconf import OmegaConf
from skyrl_gym.metrics import aggregate_for_environment

from wfdsl_rl.engines.skyrl import register_environment

options = json.loads(sys.argv[3])
configured = {} if sys.argv[4:] == ["registered"] else options
register_environment(uri="replaced by the next call")
register_environment(**({} if configured else options))
rows = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
found, metrics = [], []
for number, completion in enumerate(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))):
    row = dict(rows[number % len(rows)])
    prompt, name = row.pop("prompt"), row.pop("env_class")
    env = skyrl_gym.make(name, env_config=OmegaConf.create(configured), extras=row)
    assert env.init(prompt)[0] == prompt
    step = env.step(completion)
    assert step["done"]
    found.append({"reward": step["reward"], **step["metadata"]})
    metrics.append(env.get_metrics())
    env.close()
print(json.dumps({"found": found, "mean": aggregate_for_environment("wfdsl", metrics)}))
