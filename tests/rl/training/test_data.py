"""The rows that trainers read: which questions, which workers, and second rounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rl.training.toy import a_reward, a_setup
from wfdsl.errors import UsageError
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.training.data import make_rows, offered, stage_rows, with_second_rounds
from wfdsl_rl.training.plan import read_plan

GYM = Pool.load("gym/seven")


def test_the_same_seed_gives_the_same_rows(tasks: tuple[Task, ...], pool: Pool) -> None:
    first, second = (make_rows(a_reward(pool), tasks, count=200, pick=(2, 3), seed=4) for _ in range(2))

    assert first == second
    assert first[:50] == make_rows(a_reward(pool), tasks, count=50, pick=(2, 3), seed=4)


def test_rows_go_through_all_tasks_before_one_comes_again(tasks: tuple[Task, ...], pool: Pool) -> None:
    rows = make_rows(a_reward(pool), tasks, count=2 * len(tasks), seed=1)

    passes = [[row["task"] for row in rows[at : at + len(tasks)]] for at in (0, len(tasks))]
    assert sorted(passes[0]) == sorted(passes[1]) == sorted(task.id for task in tasks)
    assert passes[0] != passes[1]


def test_an_offer_is_what_its_row_says(tasks: tuple[Task, ...], pool: Pool) -> None:
    reward = a_reward(pool)
    for row in make_rows(reward, tasks, count=30, pick=(2,), seed=9):
        offer = reward.rollout({**row, "task": tasks[0]}, "", sample_id="s").offer

        assert offer is not None
        assert offer == offered(pool, (2,), 9, row["row"])
        assert len(offer.indices) == 2
        for shown, true in offer.pool_indices.items():
            assert f"{shown}: {pool.entry(true).description}" in row["prompt"][-1]["content"]


@pytest.mark.parametrize(("share", "second"), [(0.0, 0), (0.25, 3), (0.5, 6)])
def test_second_rounds_revise_questions_of_earlier_iterations_each_once(
    tasks: tuple[Task, ...], pool: Pool, share: float, second: int
) -> None:
    rows = make_rows(a_reward(pool), tasks, count=16, seed=0)

    found = with_second_rounds(rows, share=share, discount=0.25, per_step=4)

    revising = [row for row in found if row["revises"] is not None]
    assert [row["row"] for row in found] == list(range(16))
    assert len(revising) == len({row["revises"] for row in revising}) == second
    assert all(row["revises"] // 4 < row["row"] // 4 for row in revising)
    assert all(row["task"] == found[row["revises"]]["task"] for row in revising)
    assert {(row["revises"] is None, row["weight"]) for row in found} <= {(True, 0.25), (False, 1.0)}


@given(st.integers(0, 5000))
def test_a_subset_has_numbers_of_its_own_and_the_whole_pool_keeps_its(row: int) -> None:
    true = offered(GYM, (6, 7), 3, row).pool_indices

    assert list(true) == list(range(len(true)))
    assert len(true) == 6 or list(true.values()) == list(range(7))


def test_a_stage_may_have_tasks_of_its_own(tasks: tuple[Task, ...], tmp_path: Path) -> None:
    own = tasks[:7]
    setup = replace(a_setup(tmp_path), stage_tasks={"recursion": own})

    assert {row["task"] for row in stage_rows(setup, "recursion")} <= {task.id for task in own}
    assert not {row["task"] for row in stage_rows(setup, "base")} <= {task.id for task in own}
    assert all(task in setup.all_tasks for task in own)


def test_tasks_of_a_stage_are_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text('{"id": "a", "question": "What is 2 + 2?", "gold": "4"}\n', encoding="utf-8")
    plan = read_plan("paper-7b", [f"train.stages.recursion.tasks={file}"])

    assert [task.id for task in plan.tasks("recursion")] == ["own/a"]
    with pytest.raises(UsageError, match=r"train\.stages\.recursion\.tasks: .*there is no such file"):
        read_plan("paper-7b").tasks("recursion")
