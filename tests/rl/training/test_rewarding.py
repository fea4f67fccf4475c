"""What a stage's reward logs and keeps of a batch, and that its calls are made once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.rl.training.toy import a_reward
from wfdsl.experiment import Experiment
from wfdsl.workers.pool import Pool
from wfdsl_rl.reward import Reward
from wfdsl_rl.training.data import make_rows
from wfdsl_rl.training.plan import run_options
from wfdsl_rl.training.samples import latency_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wfdsl.conductor.prompt import Prompt
    from wfdsl.tasks.task import Task

RIGHT = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
CHECKED = 'model_id = [0, 1]\nsubtasks = ["Solve it.", "Check it."]\naccess_list = [[], [0]]'
END = 1


async def up(messages: list[dict[str, Any]]) -> str:
    return "yes"


def rows(tasks: Sequence[Task], prompt: Prompt, pool: Pool | None = None) -> list[dict[str, Any]]:
    return make_rows(a_reward(pool or Pool.from_functions([up]), prompt), tasks, count=2, seed=0)


async def asked(reward: Reward, batch: list[dict[str, Any]], texts: list[str], step: int = 0) -> dict[str, float]:
    """What is logged of a batch, as TRL asks for it."""
    logged: dict[str, float] = {}
    await reward.trl(
        texts,
        completion_ids=[[7, END]] * len(texts),
        trainer_state=type("State", (), {"global_step": step}),
        log_metric=logged.__setitem__,
        **{name: [row[name] for row in batch] for name in batch[0] if name != "prompt"},
    )
    return logged


async def test_costs_of_evaluations_are_logged_with_the_next_iteration(
    tasks: tuple[Task, ...], prompt: Prompt, tmp_path: Path
) -> None:
    file = tmp_path / "pool.toml"
    file.write_text(
        '[[pool.workers]]\nname = "a"\nprovider = "scripted"\noptions = { replies = ["yes"], repeat = true }\n'
        "prices = { input = 0.0, output = 1000000.0 }\n"
    )
    reward = Reward(str(file), tasks, end_of_text=END)
    given = rows(tasks, prompt, pool=reward.pool)

    evaluated = await asked(reward, [{**row, "split": "eval"} for row in given], [RIGHT, RIGHT])
    first, second = [(await asked(reward, given, [RIGHT, RIGHT], step))["usd"] for step in (0, 1)]

    assert "usd" not in evaluated
    assert first == pytest.approx(2 * second)
    assert second > 0


async def test_a_step_that_is_repeated_makes_no_call_twice_and_another_stage_makes_its_own(
    tasks: tuple[Task, ...], prompt: Prompt, tmp_path: Path
) -> None:
    made: list[str] = []

    async def counted(messages: list[dict[str, Any]]) -> str:
        made.append(messages[-1]["content"])
        return "yes"

    for stage, calls in (("base", 2), ("base", 2), ("pools", 4)):
        pool = Pool.from_functions([counted])
        with run_options(Experiment(), pool, tmp_path) as options:
            reward = Reward(pool, tasks, end_of_text=END, options=options, seed=f"0/{stage}")
            await asked(reward, rows(tasks, prompt), [RIGHT, RIGHT])
        assert len(made) == calls


async def test_the_slowest_worker_is_logged(tasks: tuple[Task, ...], prompt: Prompt) -> None:
    async def slow(messages: list[dict[str, Any]]) -> str:
        await asyncio.sleep(0.05)
        return "yes"

    pool = Pool.from_functions([up, slow], names=["up", "slow"])
    reward = Reward(pool, tasks, end_of_text=END)
    given = rows(tasks, prompt, pool=pool)

    found = latency_of(await reward.samples([(row, CHECKED, False) for row in given], 0))

    assert found["slowest_worker"] == 1.0
    assert found["latency_p50_s"] <= found["latency_p95_s"]
    assert found["slowest_worker_s"] >= 0.05
    assert latency_of(await reward.samples([(row, "nothing", False) for row in given], 0)) == {}


async def test_a_kept_sample_says_what_was_asked_and_names_its_runs(tasks: tuple[Task, ...], prompt: Prompt) -> None:
    given = rows(tasks, prompt)
    reward = Reward(Pool.from_functions([up]), tasks, executions=2)

    items = zip(given, (CHECKED.replace("[0]]", "[]]").replace("1]", "0]"), "no lists"), (False, False), strict=True)
    kept, invalid = (sample.to_dict() for sample in await reward.samples(items, 3))

    questions = {task.id: (task.question, task.kind) for task in tasks}
    assert [(each["question"], each["kind"]) for each in (kept, invalid)] == [questions[row["task"]] for row in given]
    assert kept["runs"] == [f"0/train/3/{given[0]['row']}/0", f"0/train/3/{given[0]['row']}/0/1"]
    assert (kept["calls"], invalid["runs"], invalid["calls"], invalid["cost_usd"]) == (2, [], 0, 0.0)  # one is dead
