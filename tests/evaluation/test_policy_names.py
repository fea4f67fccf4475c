"""Policies by name: what each name stands for, and what is said of those that stand for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.toys import pool_of
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.evaluation.manifest import description_of
from wfdsl.evaluation.policy_names import expanded, label_of, policies_of, policy_of
from wfdsl.language.diagnostics import WorkflowError
from wfdsl.workers.pool import Pool
from wfdsl.workers.scripted import ScriptedWorker


def test_results_list_a_worker_by_its_name_and_a_file_by_its_own() -> None:
    pool, _ = pool_of(["x"], ["y"])

    assert label_of("worker:1", pool) == "worker:bob"
    assert label_of("some/folder/debate.wf", pool) == "debate"
    assert label_of("openai:gpt-5-mini", pool) == "openai:gpt-5-mini"


def test_a_file_is_read_for_the_pool_with_its_parameters(tmp_path: Path) -> None:
    pool, _ = pool_of(["x"], ["y"])
    (tmp_path / "one.wf").write_text('wfdsl 1\nparam who = 0\nstep a by {who}: "Solve."\n')

    policy = policy_of(str(tmp_path / "one.wf"), pool, params={"who": "bob"})

    assert isinstance(policy, WorkflowPolicy)
    assert policy.workflow[0].worker == 1


def test_two_files_of_one_name_are_told_apart_by_their_user(tmp_path: Path) -> None:
    pool, _ = pool_of(["x"], ["y"])
    for worker in (0, 1):
        (tmp_path / str(worker)).mkdir()
        (tmp_path / str(worker) / "one.wf").write_text(f'wfdsl 1\nstep a by {worker}: "Solve."\n')

    with pytest.raises(UsageError, match="another policy called 'one'"):
        policies_of([str(tmp_path / "0" / "one.wf"), str(tmp_path / "1" / "one.wf")], pool)


def test_a_file_with_mistakes_is_the_writers_mistake(tmp_path: Path) -> None:
    pool, _ = pool_of(["x"])
    (tmp_path / "bad.wf").write_text('wfdsl 1\nstep a by 9: "Solve."\n')

    with pytest.raises(WorkflowError, match="worker-not-in-pool"):
        policy_of(str(tmp_path / "bad.wf"), pool)


def test_a_conductor_has_parameters_and_each_of_several_values_is_a_policy() -> None:
    pool = Pool.load("gym/seven")

    found = policies_of(["gym/seven:max_rounds=0/2", "gym/seven:pool=3", "gym/seven:worker=elm,max_rounds=1"], pool)

    assert list(found) == [
        "gym/seven:max_rounds=0",
        "gym/seven:max_rounds=2",
        "gym/seven:pool=3",
        "gym/seven:worker=elm,max_rounds=1",
    ]
    settings = [policy.settings for policy in found.values() if isinstance(policy, Conductor)]
    assert [each.max_rounds for each in settings] == [0, 2, 0, 1]
    assert [each.config.pick for each in settings] == [None, None, 3, None]
    assert [each.worker for each in settings] == [None, None, None, 3]
    assert expanded("gym/seven@each:worker=each", pool)[:2] == (
        "gym/seven@minimal:worker=alder",
        "gym/seven@minimal:worker=birch",
    )


def test_a_conductor_is_shown_other_examples_even_if_it_was_trained_with_none(tmp_path: Path) -> None:
    pool = Pool.load("gym/seven")
    (tmp_path / "own.toml").write_text(
        '[[examples]]\nquestion = "1 + 1?"\n'
        'completion = """model_id = [0]\nsubtasks = ["Add."]\naccess_list = [[]]"""\n'
    )

    found = policies_of(["gym/seven:examples=ood/id/none", f"gym/seven:examples={tmp_path / 'own.toml'}"], pool)

    shown = [policy.settings.prompt.examples for policy in found.values() if isinstance(policy, Conductor)]
    assert [each.name for each in shown] == ["out-of-distribution", "in-distribution", "none", "own"]
    assert len({description_of(policy)["hash"] for policy in found.values()}) == 4


async def test_every_step_of_an_ablated_conductor_asks_one_worker_the_same() -> None:
    text = 'model_id = [0, 1]\nsubtasks = ["Plan.", "Solve."]\naccess_list = [[], "all"]'
    pool, workers = pool_of(["x"], ["y"])
    conductor = Conductor(ScriptedWorker([text], repeat=True), max_rounds=0)
    ablated = conductor.changed(instruction="Answer.", worker=1)

    solution = await ablated.solve("Question?", pool)

    assert [(step.worker, step.subtask) for step in solution.rounds[0].workflow] == [(1, "Answer."), (1, "Answer.")]
    assert [len(each.calls) for each in workers] == [0, 2]
    assert description_of(conductor)["hash"] != description_of(ablated)["hash"]


def test_a_file_is_ablated_and_has_no_other_parameter(tmp_path: Path) -> None:
    pool, _ = pool_of(["x"], ["y"])
    path = tmp_path / "two.wf"
    path.write_text('wfdsl 1\nstep a by 0: "Plan."\nstep b by 0 sees a: "Solve."\n')

    found = policies_of([str(path), f"{path}:worker=each", f"{path}:instruction=none"], pool)

    assert list(found) == ["two", "two:worker=ann", "two:worker=bob", "two:instruction=none"]
    flows = [policy.workflow for policy in found.values() if isinstance(policy, WorkflowPolicy)]
    assert [[step.worker for step in flow] for flow in flows] == [[0, 0], [0, 0], [1, 1], [0, 0]]
    assert len({step.subtask for step in flows[3]}) == 1
    with pytest.raises(UsageError):
        policy_of(f"{path}:max_rounds=1", pool)


@pytest.mark.parametrize(
    "settings", ["max_round=1", "max_rounds=x", "instruction=own", "worker=zoe", "examples=no-such"]
)
def test_a_setting_that_cannot_be_used_is_refused(settings: str) -> None:
    with pytest.raises(UsageError):
        policy_of(f"gym/seven:{settings}", Pool.load("gym/seven"))


def test_an_address_is_not_a_setting() -> None:
    pool, _ = pool_of(["x"])

    found = policies_of(["openai:m@http://localhost:80/v1:max_rounds=0"], pool)

    (policy,) = found.values()
    assert isinstance(policy, Conductor)
    assert policy.entry.base_url == "http://localhost:80/v1"
    assert policy.settings.max_rounds == 0
