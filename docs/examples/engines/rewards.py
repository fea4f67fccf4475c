"""Reward functions of verl, slime and OpenRLHF, which ask a reward server: `wfdsl serve --score`.

Copy what your engine needs. A completion about which nothing is known (a worker failed, or an answer could not be
graded) gets the reward of a wrong answer, because these engines need a number.
"""

import os
from functools import lru_cache
from uuid import uuid4

from wfdsl_rl.engines.client import RewardClient

URL = os.environ.get("WFDSL_REWARD_URL", "http://127.0.0.1:8700")
UNSCORED = 0.5


@lru_cache
def client():
    return RewardClient(URL, os.environ.get("WFDSL_SERVER_KEY"), run=os.environ.get("WFDSL_RUN", ""))


def sample_of(task, completion, **workers):
    """With an id of its own: an equal completion, of a later iteration too, is run again."""
    return {"task": task, "completion": completion, "sample_id": uuid4().hex, **workers}


def number(result):
    return UNSCORED if result["score"] is None else result["score"]


async def compute_score(data_source, solution_str, ground_truth, extra_info, **_):  # noqa: ARG001
    """verl: reward.custom_reward_function.path=rewards.py, .name=compute_score."""
    workers = {name: [int(each) for each in extra_info[name]] for name in ("shown", "true")}
    (result,) = await client().score([sample_of(ground_truth, solution_str, **workers)])
    return {"score": number(result), "right": float(result["outcome"] == "right"), "steps": float(result["steps"])}


async def custom_rm(args, sample, **_):  # noqa: ARG001
    """slime: --custom-rm-path rewards.custom_rm."""
    (result,) = await client().score([sample_of(sample.label, sample.response)])
    return number(result)


def reward_func(queries, prompts, labels, **_):
    """OpenRLHF: --reward.remote_url rewards.py. A query is the prompt and the response in one text."""
    samples = [
        sample_of(label, query.removeprefix(prompt))
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]
    numbers = [number(result) for result in client().score_sync(samples)]
    return {"rewards": numbers, "scores": numbers, "extra_logs": {}}
