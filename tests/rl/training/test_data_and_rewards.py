"""Rows, the prior, judging and rewards: all that needs no torch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rl.training.toy import PROMPT, a_setup
from wfdsl.conductor.effort import EFFORTS
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError
from wfdsl.experiment import Experiment
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.record import BudgetExhausted
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym.source import tasks as gym_tasks
from wfdsl_rl.reward import Reward
from wfdsl_rl.reward import Reward
from wfdsl_rl.rows import offer_of
from wfdsl_rl.scoring import NoScore
from wfdsl_rl.training.config import PricesConfig
from wfdsl_rl.training.data import Draw, is_held_out, make_rows, stage_rows, with_second_rounds
from wfdsl_rl.training.plan import read_plan, run_options

GYM = Pool.load("gym/seven")
RIGHT = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
END = 1
"""The token that ends a completion."""
KEEP = "model_id = []\nsubtasks = []\naccess_list = []"


def test_the_same_seed_gives_the_same_rows(tasks: tuple[Task, ...], pool: Pool, prompt: Prompt) -> None:
    draw = Draw(pick=(2, 3), shuffle=True, seed=4)

    first, second = (make_rows(tasks, pool, prompt, count=200, max_steps=5, draw=draw) for _ in range(2))

    assert first == second
    assert first[:50] == make_rows(tasks, pool, prompt, count=50, max_steps=5, draw=draw)


def test_rows_go_through_all_tasks_before_one_comes_again(tasks: tuple[Task, ...], pool: Pool, prompt: Prompt) -> None:
    rows = make_rows(tasks, pool, prompt, count=2 * len(tasks), max_steps=5, draw=Draw(seed=1))

    passes = [[row["task"] for row in rows[at : at + len(tasks)]] for at in (0, len(tasks))]
    assert sorted(passes[0]) == sorted(passes[1]) == sorted(task.id for task in tasks)
    assert passes[0] != passes[1]


def test_an_offer_is_what_its_row_says(tasks: tuple[Task, ...], pool: Pool, prompt: Prompt) -> None:
    draw = Draw(pick=(2,), shuffle=True, seed=9)

    for row in make_rows(tasks, pool, prompt, count=30, max_steps=5, draw=draw):
        offer = offer_of(row, pool)

        assert offer == draw.offer(pool, row["row"])
        assert len(offer.indices) == 2
        for shown, true in offer.pool_indices.items():
            assert f"{shown}: {pool.entry(true).description}" in row["prompt"][-1]["content"]


PRICES = PricesConfig(minimal=0.04, low=0.015, medium=0.005)


def test_an_effort_is_drawn_for_each_row_and_said_in_its_prompt(
    tasks: tuple[Task, ...], pool: Pool, tmp_path: Path
) -> None:
    file = tmp_path / "prompt.toml"
    texts = "".join(f'effort_{effort} = "{effort} effort"\n' for effort in EFFORTS)
    file.write_text(PROMPT.read_text("utf-8").replace("{examples}", "\\n{effort}{examples}", 1) + texts, "utf-8")
    prompt = Prompt.load(str(file))

    rows = make_rows(tasks, pool, prompt, count=200, max_steps=5, draw=Draw(), prices=PRICES)

    drawn = Counter(row["effort"] for row in rows)
    assert set(drawn) == set(EFFORTS)
    assert min(drawn.values()) > 30
    assert all(row["prompt"][-1]["content"].splitlines()[-1].startswith(row["effort"]) for row in rows)
    assert all(row["price"] == PRICES.of(row["effort"]) for row in rows)


def test_a_prompt_without_efforts_has_no_price(tasks: tuple[Task, ...], pool: Pool) -> None:
    rows = make_rows(tasks, pool, Prompt.load("tiny"), count=20, max_steps=5, draw=Draw(), prices=PRICES)

    assert {(row["effort"], row["price"]) for row in rows} == {("", 0.0)}


@pytest.mark.parametrize(("only_right", "reward"), [(False, 0.75 - 2 * 0.1), (True, 0.75 - 2 * 0.1 / 2)])
async def test_each_step_costs_the_price_of_the_row(
    tasks: tuple[Task, ...], prompt: Prompt, *, only_right: bool, reward: float
) -> None:
    replies = iter(["yes", "yes", "no", "no"])  # the first execution is right, the second is wrong

    async def worker(messages: list[dict[str, Any]]) -> str:
        return next(replies)

    two = 'model_id = [0, 0]\nsubtasks = ["Solve it.", "Check it."]\naccess_list = [[], [0]]'
    pool = Pool.from_functions([worker])
    (row,) = make_rows(tasks[2:3], pool, prompt, count=1, max_steps=5, draw=Draw())
    priced = replace(rewarder(pool, tasks, executions=2), only_right_pay=only_right)

    found, invalid = await priced.batch([{**row, "price": 0.1}] * 2, [two, "no lists"], 0)

    assert found.reward == pytest.approx(reward)
    assert invalid.reward == 0.0


@pytest.mark.parametrize(("share", "second"), [(0.0, 0), (0.25, 3), (0.5, 6)])
def test_second_rounds_revise_questions_of_earlier_iterations_each_once(
    tasks: tuple[Task, ...], pool: Pool, prompt: Prompt, share: float, second: int
) -> None:
    rows = make_rows(tasks, pool, prompt, count=16, max_steps=5, draw=Draw())

    found = with_second_rounds(rows, share=share, discount=0.25, per_step=4)

    revising = [row for row in found if row["revises"] is not None]
    assert [row["row"] for row in found] == list(range(16))
    assert len(revising) == len({row["revises"] for row in revising}) == second
    assert all(row["revises"] // 4 < row["row"] // 4 for row in revising)
    assert all(row["task"] == found[row["revises"]]["task"] for row in revising)
    assert {(row["revises"] is None, row["weight"]) for row in found} <= {(True, 0.25), (False, 1.0)}


@given(st.integers(0, 5000), st.booleans())
def test_subsets_that_are_held_out_are_never_trained_on(row: int, unseen: bool) -> None:
    draw = Draw(pick=(2, 3, 4, 5, 6), shuffle=True, held_out=0.25, unseen=unseen)

    assert is_held_out(list(draw.offer(GYM, row).pool_indices.values()), 0.25) == unseen


@given(st.integers(0, 5000))
def test_a_subset_is_numbered_anew_and_the_whole_pool_as_it_is(row: int) -> None:
    draw = Draw(pick=(6, 7), shuffle=True, seed=3)

    true = draw.offer(GYM, row).pool_indices

    assert list(true) == list(range(len(true)))
    assert len(true) == 6 or list(true.values()) == list(range(7))


def test_some_subsets_of_every_size_are_held_out_and_most_are_not() -> None:
    for size in range(2, 7):
        held = [is_held_out(subset, 0.25) for subset in combinations(range(7), size)]
        assert 0 < sum(held) < len(held) / 2


def test_a_pool_that_is_never_held_out_cannot_be_asked_for() -> None:
    with pytest.raises(UsageError, match="widen `pick`"):
        Draw(pick=(7,), held_out=0.25, unseen=True).offer(GYM, 0)


def answering(text: str) -> Pool:
    async def worker(messages: list[dict[str, Any]]) -> str:
        return text

    return Pool.from_functions([worker])


def rewarder(pool: Pool, tasks: tuple[Task, ...], **more: Any) -> Reward:
    return Reward(pool, tasks, end_of_text=END, **more)


async def test_the_function_for_trl_gives_a_reward_per_completion(
    pool: Pool, tasks: tuple[Task, ...], prompt: Prompt
) -> None:
    rows = make_rows(tasks, pool, prompt, count=3, max_steps=5, draw=Draw())
    columns = {key: [row[key] for row in rows] for key in rows[0] if key != "prompt"}
    logged: dict[str, float] = {}

    rewards = await rewarder(pool, tasks).trl(
        [[{"role": "assistant", "content": text}] for text in (RIGHT, "nothing", RIGHT)],
        completion_ids=[[7, END]] * 3,
        trainer_state=type("State", (), {"global_step": 0}),
        log_metric=lambda name, value: logged.update({name: value}),
        log_extra=None,
        **columns,
    )

    assert rewards[1] == 0.0
    assert {rewards[0], rewards[2]} <= {0.5, 1.0}
    assert logged["valid"] == pytest.approx(2 / 3)
    assert logged["steps"] == 1.0


async def test_a_workflow_that_is_run_several_times_is_worth_the_mean(tasks: tuple[Task, ...], prompt: Prompt) -> None:
    replies = iter(["no", "yes", "no", "no"])

    async def worker(messages: list[dict[str, Any]]) -> str:
        return next(replies)

    pool = Pool.from_functions([worker])
    (row,) = make_rows(tasks[2:3], pool, prompt, count=1, max_steps=5, draw=Draw())
    patient = rewarder(pool, tasks, executions=4)

    found, unread = await patient.batch([row, row], [RIGHT, "no lists"], 0)

    assert [judged.outcome for judged in found.scored.executions] == ["wrong", "right", "wrong", "wrong"]
    assert found.reward == pytest.approx((3 * 0.5 + 1.0) / 4)
    assert (unread.reward, len(unread.scored.executions)) == (0.0, 1)


async def test_executions_have_luck_of_their_own(prompt: Prompt) -> None:
    asked = tuple(task for task in gym_tasks("gym/seven", 40, 5, split="train") if task.kind == "text")
    rows = make_rows(asked, GYM, prompt, count=len(asked), max_steps=5, draw=Draw())

    found = await rewarder(GYM, asked, executions=8).batch(rows, [RIGHT] * len(rows), 0)

    assert any({each.outcome for each in sample.scored.executions} == {"right", "wrong"} for sample in found)


async def test_an_execution_without_an_outcome_is_left_out_of_the_mean(tasks: tuple[Task, ...], prompt: Prompt) -> None:
    asked = count()

    async def worker(messages: list[dict[str, Any]]) -> str:
        if next(asked) == 1:
            raise ConnectionError("gone")
        return "yes"

    pool = Pool.from_functions([worker])
    (row,) = make_rows(tasks[2:3], pool, prompt, count=1, max_steps=5, draw=Draw())

    (found,) = await rewarder(pool, tasks, executions=3).batch([row], [RIGHT], 0)

    assert sorted(judged.outcome for judged in found.scored.executions) == ["failed", "right", "right"]
    assert found.reward == 1.0


async def test_a_batch_without_any_outcome_stops_the_training(tasks: tuple[Task, ...], prompt: Prompt) -> None:
    async def broken(messages: list[dict[str, Any]]) -> str:
        raise ConnectionError("gone")

    pool = Pool.from_functions([broken])
    rows = make_rows(tasks, pool, prompt, count=2, max_steps=5, draw=Draw())

    with pytest.raises(NoScore, match="gone"):
        await rewarder(pool, tasks).batch(rows, [RIGHT, RIGHT], 0)


@pytest.mark.parametrize(("common", "calls"), [(False, (4, 8)), (True, (2, 4))])
async def test_a_step_that_is_done_again_makes_no_call_twice(
    tasks: tuple[Task, ...], prompt: Prompt, tmp_path: Path, *, common: bool, calls: tuple[int, int]
) -> None:
    asked: list[str] = []

    async def worker(messages: list[dict[str, Any]]) -> str:
        asked.append(messages[-1]["content"])
        return "yes"

    pool = Pool.from_functions([worker])
    rows = make_rows(tasks, pool, prompt, count=2, max_steps=5, draw=Draw())

    for _ in range(2):
        with run_options(Experiment(), pool, tmp_path) as options:
            shared = rewarder(pool, tasks, options=options, common_random_numbers=common)
            await shared.batch([*rows, *rows], [RIGHT] * 4, 0)
    again = len(asked)
    with run_options(Experiment(), pool, tmp_path) as options:
        shared = rewarder(pool, tasks, options=options, common_random_numbers=common)
        await shared.batch([*rows, *rows], [RIGHT] * 4, 1)

    assert (again, len(asked)) == calls


async def test_a_spent_budget_stops_the_training_and_counts_earlier_sessions(
    tasks: tuple[Task, ...], prompt: Prompt, tmp_path: Path
) -> None:
    pool = answering("yes")
    rows = make_rows(tasks, pool, prompt, count=3, max_steps=5, draw=Draw())
    experiment = Experiment(budget=Budget(calls=4))

    with run_options(experiment, pool, tmp_path) as options:
        await rewarder(pool, tasks, options=options).batch(rows, [RIGHT] * 3, 0)

    with run_options(experiment, pool, tmp_path) as options, pytest.raises(BudgetExhausted):
        await rewarder(pool, tasks, options=options).batch(rows, [RIGHT] * 3, 1)


async def test_a_row_of_an_unknown_task_is_an_error(pool: Pool, tasks: tuple[Task, ...], prompt: Prompt) -> None:
    rows = make_rows(tasks, pool, prompt, count=2, max_steps=5, draw=Draw())
    broken = rewarder(pool, ())

    with pytest.raises(UsageError, match="unknown task"):
        await broken.batch(rows, [RIGHT, RIGHT], 0)


def test_a_stage_may_have_tasks_of_its_own(tasks: tuple[Task, ...], tmp_path: Path) -> None:
    own = tasks[:7]
    setup = replace(a_setup(tmp_path), stage_tasks={"recursion": own})

    assert {row["task"] for row in stage_rows(setup, "recursion")} <= {task.id for task in own}
    assert not {row["task"] for row in stage_rows(setup, "base")} <= {task.id for task in own}
    assert all(task in setup.all_tasks for task in own)


def test_tasks_of_a_stage_are_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text('{"id": "a", "question": "What is 2 + 2?", "gold": "4"}\n', encoding="utf-8")
    plan = read_plan("paper-7b", [f"train.recursion.tasks={file}", "train.recursion.task_count=1"])

    assert [task.id for task in plan.stage_tasks(["base", "recursion"])["recursion"]] == ["own/a"]
    with pytest.raises(UsageError, match=r"train\.recursion\.tasks: .*there is no such file"):
        read_plan("paper-7b").stage_tasks(["recursion"])
