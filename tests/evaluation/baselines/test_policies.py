"""Policies by name: what a name stands for, how it is listed, and what is said of names that stand for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.policy import Policy, WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.catalogue import BASELINES
from wfdsl.evaluation.baselines.single_worker import alone
from wfdsl.evaluation.baselines.voting import MajorityVote
from wfdsl.evaluation.policy_names import expanded, policies_of, policy_of
from wfdsl.tasks.task import save_tasks
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

from .toys import staff, tasks

POOL = staff().pool()


def test_a_worker_is_named_or_numbered() -> None:
    assert policy_of("worker:bob", POOL) == policy_of("worker:1", POOL) == WorkflowPolicy(alone(1))


def test_workers_stand_for_each_of_them() -> None:
    assert list(policies_of(["workers"], POOL)) == ["worker:ann", "worker:bob", "worker:cy"]


def test_parameters_stand_behind_the_name() -> None:
    assert policy_of("majority-vote:worker=cy,n=3", POOL) == MajorityVote(2, 3)


def test_each_in_the_place_of_a_worker_stands_for_all_of_them() -> None:
    names = expanded("self-reflection:worker=each,rounds=1", POOL)

    assert names == tuple(f"self-reflection:worker={name},rounds=1" for name in ("ann", "bob", "cy"))


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


def test_an_untrained_model_is_a_conductor() -> None:
    assert isinstance(policy_of("openai:gpt-5", POOL), Conductor)


def test_a_file_of_ones_own_takes_its_parameters_from_the_command(tmp_path: Path) -> None:
    (tmp_path / "mine.wf").write_text('param who = 0\nstep a by {who}: "Go."\n')

    [(label, policy)] = policies_of([str(tmp_path / "mine.wf")], POOL, params={"who": "2"}).items()

    assert label == "mine"
    assert isinstance(policy, WorkflowPolicy)
    assert policy.workflow[0].worker == 2


def test_baselines_do_not_ask_conductors() -> None:
    entries = [WorkerEntry(name="boss", provider="conductor"), WorkerEntry(name="ann", provider="function")]

    policy = policy_of("moa", Pool(entries))

    assert isinstance(policy, WorkflowPolicy)
    assert {step.worker for step in policy.workflow} == {1}


def test_a_pool_of_conductors_only_has_nobody_to_ask() -> None:
    with pytest.raises(UsageError, match="Conductors only"):
        policy_of("moa", Pool([WorkerEntry(name="boss", provider="conductor")]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mao", "did you mean `moa`"),
        ("majority_vote:n=3", "did you mean `majority-vote`"),
        ("zzzzzz", "baselines are long-context"),
        ("moa:agregator=1", "no parameter 'agregator': did you mean `aggregator`"),
        ("random-router:n=1", "it has seed"),
        ("moa:aggregator", "write moa:KEY=VALUE"),
        ("moa:aggregator=1,aggregator=2", "set twice"),
        ("moa:aggregator=bop", "no worker 'bop': did you mean `bob`"),
        ("moa:aggregator=7", "it has 0=ann, 1=bob, 2=cy"),
        ("worker:bop", "did you mean `bob`"),
        ("consensus:n=0", "n=0: it is a number from 1"),
        ("consensus:n=many", "n=many: it is a number from 1"),
        ("random-router:seed=-1", "a number from 0"),
        ("cascade-router:call_price=2", "a number from 0 to 1"),
        ("majority-vote:kind=essay", "one of auto, math, choice, text, code"),
        ("baselines", "it names several"),
        ("knn-router:validation=nowhere.jsonl", "nowhere.jsonl: there is no such file"),
        ("openai:", "no Conductor"),
        ("nowhere.wf", "nowhere.wf"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused_with_what_to_write(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        policy_of(name, POOL)


def test_all_baselines_on_a_pool_without_tasks_is_an_error_that_says_how() -> None:
    with pytest.raises(UsageError, match="write baselines:validation=FILE"):
        expanded("baselines", POOL)


def test_a_parameter_that_no_baseline_has_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean `validation`"):
        expanded("baselines:validaton=x", POOL)
