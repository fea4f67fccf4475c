"""Policies by name: what a name stands for, how it is listed, and what is said of names that stand for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.policy import Policy, WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.baseline import alone
from wfdsl.evaluation.baselines.voting import MajorityVote
from wfdsl.evaluation.policy_names import BASELINES, expanded, policies_of, policy_of
from wfdsl.tasks.task import save_tasks
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

from .toys import staff, tasks

POOL = staff().pool()


def test_a_worker_is_named_or_numbered() -> None:
    assert policy_of("worker:bob", POOL) == policy_of("worker:1", POOL) == WorkflowPolicy(alone(1))


def test_parameters_stand_behind_the_name() -> None:
    assert policy_of("majority-vote:worker=cy,n=3", POOL) == MajorityVote(2, 3)


def test_a_conductor_s_name_may_have_an_effort() -> None:
    names = expanded("openai:gpt-5@each", POOL)
    found = policies_of(["openai:gpt-5@low", "openai:gpt-5"], POOL, config=ConductorConfig(effort="high"))

    assert names == tuple(f"openai:gpt-5@{effort}" for effort in ("minimal", "low", "medium", "high"))
    assert [policy.config.effort for policy in found.values()] == ["low", "high"]  # type: ignore[attr-defined]
    assert expanded("openai:gpt-5@http://localhost:1/v1", POOL) == ("openai:gpt-5@http://localhost:1/v1",)


def test_several_numbers_stand_for_a_policy_each() -> None:
    names = expanded("majority-vote:worker=each,n=1/16", POOL)

    assert names == tuple(f"majority-vote:worker={name},n={n}" for name in ("ann", "bob", "cy") for n in (1, 16))
    assert expanded("cascade-router:validation=a/b.jsonl,call_price=0/0.5", POOL) == (
        "cascade-router:validation=a/b.jsonl,call_price=0",
        "cascade-router:validation=a/b.jsonl,call_price=0.5",
    )


def test_baselines_are_all_of_them_with_the_parameters_that_they_have(tmp_path: Path) -> None:
    save_tasks(tmp_path / "v.jsonl", tasks(3))

    found = policies_of([f"baselines:validation={tmp_path / 'v.jsonl'},limit=2"], POOL)

    assert len(found) == len(POOL) + len(BASELINES)
    assert all(isinstance(policy, Policy) for policy in found.values())
    assert "moa" in found
    assert f"knn-router:validation={tmp_path / 'v.jsonl'},limit=2" in found


def test_the_gym_has_tasks_of_its_own_to_learn_on() -> None:
    pool = Pool.load("gym/seven")

    found = policies_of(["baselines:limit=3"], pool)

    router = found["best-worker-router:limit=3"]
    assert [task.split for task in router.validation.tasks] == ["train"] * 3  # type: ignore[attr-defined]


def test_the_same_policy_twice_is_one() -> None:
    assert list(policies_of(["moa", "majority-vote", "moa"], POOL)) == ["moa", "majority-vote"]


def test_baselines_do_not_ask_conductors() -> None:
    entries = [WorkerEntry(name="boss", provider="conductor"), WorkerEntry(name="ann", provider="function")]

    policy = policy_of("moa", Pool(entries))

    assert isinstance(policy, WorkflowPolicy)
    assert {step.worker for step in policy.workflow} == {1}


def test_a_pool_of_conductors_only_has_nobody_to_ask() -> None:
    with pytest.raises(UsageError, match="Conductors"):
        policy_of("moa", Pool([WorkerEntry(name="boss", provider="conductor")]))


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
        ("cascade-router:call_price=2", "at most 1"),
        ("majority-vote:kind=essay", "'math'"),
        ("baselines", "several"),
        ("knn-router:validation=nowhere.jsonl", "nowhere.jsonl"),
        ("openai:", "openai:"),
        ("nowhere.wf", "nowhere.wf"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused_with_what_to_write(name: str, part: str) -> None:
    with pytest.raises(UsageError) as refused:
        policy_of(name, POOL)
    assert part in str(refused.value)


def test_a_parameter_that_no_baseline_has_is_refused() -> None:
    with pytest.raises(UsageError, match="validation"):
        expanded("baselines:validaton=x", POOL)
