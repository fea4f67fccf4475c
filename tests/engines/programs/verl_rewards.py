"""Rewards through verl's own reward manager: `verl_rewards.py ROWS.parquet COMPLETIONS.json OPTIONS [TIMES]`.

Prints the results as JSON, and the seconds of each time; a reward server is asked with another `run` each time.
"""

import asyncio
import functools
import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet
import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls
from verl.utils.import_utils import load_extern_object

rows = pyarrow.parquet.read_table(sys.argv[1]).to_pylist()
completions = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
options = json.loads(sys.argv[3])
compute_score = load_extern_object("pkg://wfdsl_rl.engines.verl", "compute_score")


class Tokenizer:
    """Each completion is one token."""

    def decode(self, ids, skip_special_tokens=True):
        return completions[int(ids[0])]


def item(number):
    row = rows[number % len(rows)]
    ones = torch.ones(1, 2, dtype=torch.long)
    return DataProto.from_dict(
        tensors={"responses": torch.tensor([[number]]), "prompts": ones[:, :1], "attention_mask": ones},
        non_tensors={
            name: np.array([row[name]], dtype=object) for name in ("data_source", "reward_model", "extra_info")
        },
    )


async def main(run):
    partial = functools.partial(compute_score, **options, **({"run": run} if "url" in options else {}))
    manager = get_reward_manager_cls("naive")(OmegaConf.create({"reward": {}}), Tokenizer(), partial)
    await manager.run_single(item(0))  # loads the pool and the tasks
    begun = time.monotonic()
    found = await asyncio.gather(*(manager.run_single(item(number)) for number in range(len(completions))))
    return found, time.monotonic() - begun


times = [asyncio.run(main(f"run-{each}")) for each in range(int((*sys.argv, "1")[4]))]
print(json.dumps({"found": times[0][0], "seconds": [each[1] for each in times]}))
