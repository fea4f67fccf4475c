"""Policies by name: what each name stands for, how it is listed, and what is said of names that stand for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.baselines.toys import staff
from tests.evaluation.baselines.toys import tasks as toy_tasks
from tests.evaluation.toys import policy_of, pool_of
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.policy import Policy, WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.baseline import MajorityVote, alone
from wfdsl.evaluation.manifest import description_of
from wfdsl.evaluation.policy_names import BASELINES, policies_of
from wfdsl.language.diagnostics import WorkflowError
from wfdsl.tasks.task import save_tasks
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl.workers.scripted import ScriptedWorker

POOL = staff().pool()
GYM = Pool.load("gym/seven")


def test_a_worker_has_a_name_or_a_number_a_baseline_parameters_and_the_same_policy_twice_is_one() -> None:
    assert policies_of(["worker:1", "worker:bob"], POOL) == {"worker:bob": WorkflowPolicy(alone(1))}
    assert policy_of("majority-vote:worker=cy,n=3", POOL) == MajorityVote(2, 3)
    assert list(policies_of(["moa", "majority-vote", "moa"], POOL)) == ["moa", "majority-vote"]


def test_several_values_stand_for_a_policy_each(tmp_path: Path) -> None:
    save_tasks(tmp_path / "v.jsonl", toy_tasks(3))
    router = f"knn-router:validation={tmp_path / 'v.jsonl'},k="

    votes = list(policies_of(["majority-vote:worker=each,n=1/16"], POOL))

    assert votes == [f"majority-vote:worker={name},n={n}" for name in ("ann", "bob", "cy") for n in (1, 16)]
    assert list(policies_of([f"{router}1/2"], POOL)) == [f"{router}1", f"{router}2"]
    found = list(policies_of(["gym/seven@each:max_rounds=0/1"], GYM))
    assert found[1:3] == ["gym/seven@minimal:max_rounds=1", "gym/seven@low:max_rounds=0"]


def test_a_conductors_name_may_have_an_effort_and_an_address_is_neither_effort_nor_setting() -> None:
    names = list(policies_of(["openai:gpt-5@each"], POOL))
    found = policies_of(["openai:gpt-5@low", "openai:gpt-5"], POOL, config=ConductorConfig(effort="high"))
    [away] = policies_of(["openai:m@http://localhost:80/v1:max_rounds=0"], POOL).values()

    assert names == [f"openai:gpt-5@{effort}" for effort in ("minimal", "low", "medium", "high")]
    assert [policy.config.effort for policy in found.values()] == ["low", "high"]  # type: ignore[attr-defined]
    assert isinstance(away, Conductor)
    assert (away.entry.base_url, away.settings.max_rounds) == ("http://localhost:80/v1", 0)


def test_a_conductor_has_parameters() -> None:
    names = ["gym/seven:max_rounds=0/2", "gym/seven:pool=3", "gym/seven:worker=elm,max_rounds=1"]

    found = policies_of(names, GYM)

    assert list(found) == ["gym/seven:max_rounds=0", "gym/seven:max_rounds=2", *names[1:]]
    settings = [policy.settings for policy in found.values() if isinstance(policy, Conductor)]
    assert [(each.max_rounds, each.config.pick, each.worker) for each in settings] == [
        (0, None, None), (2, None, None), (0, 3, None), (1, None, 3)
    ]  # fmt: skip
    assert [each.config.shuffle for each in settings] == [False, False, True, False]


def test_a_conductor_is_shown_other_examples_even_if_it_was_trained_with_none(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        '[[examples]]\nquestion = "1 + 1?"\n'
        'completion = """model_id = [0]\nsubtasks = ["Add."]\naccess_list = [[]]"""\n'
    )

    found = policies_of(["gym/seven:examples=ood/id/none", f"gym/seven:examples={tmp_path / 'own.toml'}"], GYM)

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


def test_a_file_is_read_for_the_pool_with_its_parameters_and_can_be_ablated(tmp_path: Path) -> None:
    path = tmp_path / "two.wf"
    path.write_text('wfdsl 1\nparam who = 0\nstep a by {who}: "Plan."\nstep b by {who} sees a: "Solve."\n')
    names = [str(path), f"{path}:worker=each", f"{path}:instruction=none"]

    found = policies_of(names, POOL, params={"who": "bob"})

    assert list(found) == ["two", *(f"two:worker={name}" for name in POOL.names), "two:instruction=none"]
    flows = [policy.workflow for policy in found.values() if isinstance(policy, WorkflowPolicy)]
    assert [[step.worker for step in flow] for flow in flows] == [[1, 1], [0, 0], [1, 1], [2, 2], [1, 1]]
    assert [len({step.subtask for step in flow}) for flow in flows] == [2, 2, 2, 2, 1]


def test_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    for worker in (0, 1, 9):
        (tmp_path / str(worker)).mkdir()
        (tmp_path / str(worker) / "one.wf").write_text(f'wfdsl 1\nstep a by {worker}: "Solve."\n')

    with pytest.raises(UsageError, match="another policy called 'one'"):
        policies_of([str(tmp_path / "0" / "one.wf"), str(tmp_path / "1" / "one.wf")], POOL)
    with pytest.raises(UsageError):
        policy_of(f"{tmp_path / '0' / 'one.wf'}:max_rounds=1", POOL)
    with pytest.raises(WorkflowError, match="worker-not-in-pool"):
        policy_of(str(tmp_path / "9" / "one.wf"), POOL)


def test_baselines_are_all_of_them_with_the_parameters_that_they_have(tmp_path: Path) -> None:
    save_tasks(tmp_path / "v.jsonl", toy_tasks(3))

    found = policies_of([f"baselines:validation={tmp_path / 'v.jsonl'},limit=2"], POOL)

    assert len(found) == len(POOL) + len(BASELINES)
    assert all(isinstance(policy, Policy) for policy in found.values())
    assert {"moa", f"knn-router:validation={tmp_path / 'v.jsonl'},limit=2"} <= found.keys()
    with pytest.raises(UsageError, match="validation"):
        policies_of(["baselines:validaton=x"], POOL)


def test_fitted_baselines_need_tasks_and_the_gym_has_its_own() -> None:
    router: Any = policies_of(["baselines:limit=3"], GYM)["knn-router:limit=3"]

    assert [task.split for task in router.tasks] == ["train"] * 3
    with pytest.raises(UsageError, match="write knn-router:validation=FILE"):
        policy_of("knn-router", POOL)


def test_baselines_ask_no_conductors() -> None:
    boss = WorkerEntry(name="boss", provider="conductor")

    policy = policy_of("moa", Pool([boss, WorkerEntry(name="ann", provider="function")]))

    assert isinstance(policy, WorkflowPolicy)
    assert {step.worker for step in policy.workflow} == {1}
    with pytest.raises(UsageError, match="Conductors"):
        policy_of("moa", Pool([boss]))


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("mao", "moa"),
        ("majority_vote:n=3", "majority-vote"),
        ("zzzzzz", "long-context"),
        ("moa:agregator=1", "aggregator"),
        ("random-router:n=1", "seed"),
        ("moa:aggregator", "moa:KEY=VALUE"),
        ("moa:aggregator=1,aggregator=2", "aggregator"),
        ("moa:aggregator=bop", "bob"),
        ("moa:aggregator=7", "0=ann, 1=bob, 2=cy"),
        ("worker:bop", "bob"),
        ("consensus:n=0", "at least 1"),
        ("consensus:n=many", "whole number"),
        ("random-router:seed=-1", "at least 0"),
        ("knn-router:validation=nowhere.jsonl", "nowhere.jsonl"),
        ("openai:", "openai:"),
        ("nowhere.wf", "nowhere.wf"),
        ("gym/seven:max_round=1", "max_rounds"),
        ("gym/seven:max_rounds=x", "whole number"),
        ("gym/seven:instruction=own", "none"),
        ("gym/seven:worker=zoe", "zoe"),
        ("gym/seven:examples=no-such", "no-such"),
        ("gym/seven:pool=2,worker=ann", "worker"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused_with_what_to_write(name: str, part: str) -> None:
    with pytest.raises(UsageError) as refused:
        policy_of(name, POOL)
    assert part in str(refused.value)
