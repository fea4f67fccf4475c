"""The environment for TRL with a scripted policy and simulated workers: no key, no model."""

from __future__ import annotations

import inspect

import pytest

from wfdsl import load_tasks
from wfdsl.workers.pool import pool_names
from wfdsl_rl import make_reward
from wfdsl_rl.engines.trl_environment import WorkflowEnvironment
from wfdsl_rl.reward import Reward

GYM = next(name for name in pool_names() if name.endswith("/seven"))
GOOD = 'model_id = [0]\nsubtasks = ["Solve the problem."]\naccess_list = [[]]'
KEPT = "model_id = []\nsubtasks = []\naccess_list = []"


@pytest.fixture
def reward() -> Reward:
    return make_reward(GYM, load_tasks(GYM, limit=12))


def test_an_episode_of_two_rounds_runs_without_a_key(reward: Reward) -> None:
    environment = WorkflowEnvironment(reward)
    scores = set()
    for row in reward.rows():
        assert environment.reset(**row) is None  # type: ignore[func-returns-value]
        answer = environment.run_workflow(GOOD)
        first = environment.get_reward()
        assert environment.run_workflow(KEPT) == answer
        assert environment.get_reward() == first
        assert "2" in environment.run_workflow(GOOD)
        scores.add(first)

    assert scores == {0.5, 1.0}, "valid and wrong, and right"


def test_what_is_not_a_workflow_earns_what_an_invalid_one_does(reward: Reward) -> None:
    environment = WorkflowEnvironment(reward)
    environment.reset(**reward.rows()[0])

    assert environment.get_reward() == 0.0
    assert environment.run_workflow("I would ask worker 0.").startswith("invalid: list-missing")
    assert environment.get_reward() == 0.0


def test_the_trainer_finds_one_tool_that_it_can_describe() -> None:
    tools = [
        name
        for name, _ in inspect.getmembers(WorkflowEnvironment, inspect.isfunction)
        if not name.startswith("_") and name not in {"reset", "get_reward"}
    ]
    assert tools == ["run_workflow"]

    utils = pytest.importorskip("transformers.utils", reason="transformers is not installed")
    schema = utils.get_json_schema(WorkflowEnvironment.run_workflow)["function"]
    assert schema["parameters"]["required"] == ["workflow"]
