"""Policies by name: what each name stands for, and what is said of those that stand for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.toys import pool_of
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.evaluation.policy_names import expanded, label_of, policies_of, policy_of
from wfdsl.language.diagnostics import WorkflowError
from wfdsl.workers.pool import Pool


@pytest.mark.parametrize(("name", "index"), [("worker:bob", 1), ("worker:1", 1), ("worker:0", 0)])
def test_a_worker_alone_goes_by_name_or_index(name: str, index: int) -> None:
    pool, _ = pool_of(["x"], ["y"])

    policy = policy_of(name, pool)

    assert isinstance(policy, WorkflowPolicy)
    assert [step.worker for step in policy.workflow] == [index]


def test_results_list_a_worker_by_its_name_and_a_file_by_its_own() -> None:
    pool, _ = pool_of(["x"], ["y"])

    assert label_of("worker:1", pool) == "worker:bob"
    assert label_of("some/folder/debate.wf", pool) == "debate"
    assert label_of("openai:gpt-5-mini", pool) == "openai:gpt-5-mini"


def test_a_group_is_expanded_and_nothing_is_evaluated_twice() -> None:
    pool, _ = pool_of(["x"], ["y"])

    assert expanded("workers", pool) == ("worker:ann", "worker:bob")
    assert list(policies_of(["workers", "worker:0"], pool)) == ["worker:ann", "worker:bob"]


def test_all_baselines_hold_every_worker_alone() -> None:
    pool = Pool.load("gym/seven")

    assert set(expanded("workers", pool)) < set(expanded("baselines", pool))


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


def test_a_model_is_a_conductor() -> None:
    pool, _ = pool_of(["x"])

    assert isinstance(policy_of("openai:gpt-5-mini", pool), Conductor)


def test_a_name_that_stands_for_nothing_is_refused() -> None:
    pool, _ = pool_of(["x"], ["y"])

    with pytest.raises(UsageError, match="'toys' has no worker '2': it has 0=ann, 1=bob"):
        policy_of("worker:2", pool)
    with pytest.raises(UsageError, match="no-such-policy"):
        policy_of("no-such-policy", pool)


def test_a_file_with_mistakes_is_the_writers_mistake(tmp_path: Path) -> None:
    pool, _ = pool_of(["x"])
    (tmp_path / "bad.wf").write_text('wfdsl 1\nstep a by 9: "Solve."\n')

    with pytest.raises(WorkflowError, match="worker-not-in-pool"):
        policy_of(str(tmp_path / "bad.wf"), pool)
