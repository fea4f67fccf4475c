"""The environment for TRL with a scripted policy and simulated workers: no key, no model."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from wfdsl import ConductorConfig, load_tasks
from wfdsl_rl import Reward
from wfdsl_rl.engines.trl_environment import WorkflowEnvironment

GYM = "gym/seven"
GOOD = 'model_id = [0]\nsubtasks = ["Solve the problem."]\naccess_list = [[]]'
KEPT = "model_id = []\nsubtasks = []\naccess_list = []"


@pytest.fixture
def reward() -> Iterator[Reward]:
    with Reward(GYM, load_tasks(GYM, limit=12), conductor=ConductorConfig(pick=3, shuffle=True)) as made:
        yield made


def test_an_episode_of_two_rounds_runs_without_a_key(reward: Reward) -> None:
    environment = WorkflowEnvironment(reward)
    for row in reward.rows():
        environment.reset(**row)
        answer = environment.run_workflow(GOOD)
        first = environment.get_reward()
        assert first == (1.0 if answer.endswith(f" {reward.tasks[row['task']].gold}.") else 0.5)
        assert environment.run_workflow(KEPT) == answer
        assert environment.get_reward() == first
        assert environment.run_workflow(GOOD) != answer
        assert environment.get_reward() == first


def test_what_is_not_a_workflow_earns_what_an_invalid_one_does(reward: Reward) -> None:
    environment = WorkflowEnvironment(reward)
    environment.reset(**reward.rows()[0])

    assert environment.get_reward() == 0.0
    assert "list-missing" in environment.run_workflow("I would ask worker 0.")
    assert "worker-not-in-pool" in environment.run_workflow(GOOD.replace("0", "5"))
    assert environment.get_reward() == 0.0


def test_the_trainer_finds_one_tool_that_it_can_describe() -> None:
    named = {name for name, _ in inspect.getmembers(WorkflowEnvironment, inspect.isfunction) if name[0] != "_"}
    assert named == {"reset", "get_reward", "run_workflow"}

    utils = pytest.importorskip("transformers.utils", reason="transformers is not installed")
    schema = utils.get_json_schema(WorkflowEnvironment.run_workflow)["function"]
    assert schema["parameters"]["required"] == ["workflow"]
