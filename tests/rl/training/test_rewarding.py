"""What the function that TRL calls counts and tells, besides rewards."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.experiment import Experiment
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym.source import tasks as gym_tasks
from wfdsl_rl.reward import Reward
from wfdsl_rl.reward import Reward
from wfdsl_rl.scoring import NoScore, Scorer
from wfdsl_rl.training.data import Draw, make_rows
from wfdsl_rl.training.plan import run_options
from wfdsl_rl.training.samples import latency_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from wfdsl.conductor.prompt import Prompt
    from wfdsl.tasks.task import Task
    from wfdsl_rl.scoring import Sample

RIGHT = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
CHECKED = 'model_id = [0, 1]\nsubtasks = ["Solve it.", "Check it."]\naccess_list = [[], [0]]'
GONE = "the line is dead"


async def down(messages: list[dict[str, Any]]) -> str:
    raise ConnectionError(GONE)


async def up(messages: list[dict[str, Any]]) -> str:
    return "yes"


def numbering(asked: list[str]) -> Callable[[list[dict[str, Any]]], Awaitable[str]]:
    """A worker that numbers its replies and keeps what it was asked."""

    async def counted(messages: list[dict[str, Any]]) -> str:
        asked.append(messages[-1]["content"])
        return f"reply {len(asked)}"

    return counted


def rewarder(workers: Any, tasks: Sequence[Task], told: list[Sequence[Sample]] | None = None, **more: Any) -> Reward:
    pool = workers if isinstance(workers, Pool) else Pool.from_functions([workers])
    reward = Reward(pool, tasks, end_of_text=1, **more)
    return replace(reward, listeners=[] if told is None else [told.append])


def rows(tasks: tuple[Task, ...], prompt: Prompt, split: str) -> list[dict[str, Any]]:
    return make_rows(tasks, Pool.from_functions([up]), prompt, count=2, max_steps=5, draw=Draw(), split=split)


async def test_an_evaluation_without_outcomes_does_not_stop_a_training(tasks: tuple[Task, ...], prompt: Prompt) -> None:
    told: list[Sequence[Sample]] = []

    samples = await rewarder(down, tasks, told).batch(rows(tasks, prompt, "eval"), [RIGHT, RIGHT], 0)

    assert [sample.reward for sample in samples] == [None, None]
    assert told == [samples]


async def test_a_training_whose_answers_nobody_grades_stops_with_a_sentence(
    tasks: tuple[Task, ...], prompt: Prompt
) -> None:
    graded = Reward(Pool.from_functions([up]), tasks)
    ungraded = replace(graded, scorer=Scorer(grades=False))

    with pytest.raises(NoScore, match="step 3: no valid completion has a score: nothing was graded"):
        await ungraded.batch(rows(tasks, prompt, "train"), [RIGHT, RIGHT], 3)


@pytest.mark.parametrize(("split", "runs"), [("train", 6), ("eval", 4)])
async def test_equal_completions_of_a_question_are_run_once_in_one_sample(
    tasks: tuple[Task, ...], prompt: Prompt, split: str, runs: int
) -> None:
    asked: list[str] = []
    counted = numbering(asked)
    told: list[Sequence[Sample]] = []
    judging = rewarder(counted, tasks, told, executions=2, common_random_numbers=True)
    one, other = rows(tasks, prompt, split)
    longer = RIGHT.replace("Solve it.", "Solve it, please.")

    samples = await judging.batch([one, one, one, other], [RIGHT, longer, RIGHT, RIGHT], 0)

    assert len(asked) == runs  # two different ones and one of another question, twice each; evaluations run each once
    assert [sample.index for sample in samples] == [0, 1, 2, 0]
    assert [sample.shared for sample in samples] == [False, False, split == "train", False]
    assert (samples[0].scored is samples[2].scored) == (split == "train")
    assert samples[0].reward == samples[2].reward
    assert told == [samples]


async def test_second_rounds_of_different_answers_share_nothing(tasks: tuple[Task, ...], prompt: Prompt) -> None:
    judging = rewarder(up, tasks, common_random_numbers=True)
    row = rows(tasks, prompt, "train")[0]
    revising = [{**row, "previous": ("Solve it.", answer)} for answer in ("yes", "no", "yes")]

    samples = await judging.batch(revising, [RIGHT] * 3, 0)

    assert [sample.shared for sample in samples] == [False, False, True]


@pytest.mark.parametrize("common", [True, False])
async def test_completions_of_a_question_can_have_the_same_luck(prompt: Prompt, *, common: bool) -> None:
    """What the first worker says is then no difference between a workflow and one with a step more."""
    pool, tasks = Pool.load("gym/seven"), gym_tasks("gym/seven", 4, 5, split="train")
    judging = rewarder(pool, tasks, executions=3, common_random_numbers=common)
    drawn = make_rows(tasks, pool, prompt, count=4, max_steps=5, draw=Draw())

    samples = await judging.batch([row for row in drawn for _ in "ab"], [RIGHT, CHECKED] * 4, 0)

    said = [
        [each.run.steps[0].response for each in sample.scored.executions if each.run is not None] for sample in samples
    ]
    assert any(len(set(each)) > 1 for each in said)  # executions differ
    assert (said[::2] == said[1::2]) is common
    assert len({run.id for sample in samples for run in sample.runs}) == 8 * 3


async def test_a_call_that_completions_have_in_common_is_made_once(
    tasks: tuple[Task, ...], prompt: Prompt, tmp_path: Path
) -> None:
    asked: list[str] = []
    counted = numbering(asked)
    pool = Pool.from_functions([counted, up])
    row = make_rows(tasks, pool, prompt, count=1, max_steps=5, draw=Draw())[0]
    with run_options(Experiment(), pool, tmp_path) as options:
        judging = rewarder(pool, tasks, executions=2, common_random_numbers=True, concurrency=1, options=options)
        await judging.batch([row, row], [RIGHT, CHECKED], 0)

    assert len(asked) == 2  # the step that both begin with, once for each execution


async def test_a_stage_is_not_given_the_replies_of_another(
    tasks: tuple[Task, ...], prompt: Prompt, tmp_path: Path
) -> None:
    asked: list[str] = []

    async def counted(messages: list[dict[str, Any]]) -> str:
        asked.append(messages[-1]["content"])
        return "yes"

    found = []
    for stage in ("base", "base", "pools"):
        pool = Pool.from_functions([counted])
        with run_options(Experiment(), pool, tmp_path) as options:
            judging = rewarder(pool, tasks, options=options, name=stage)
            await judging.batch(rows(tasks, prompt, "train"), [RIGHT, RIGHT], 0)
        found.append(len(asked))

    assert found == [2, 2, 4]


@pytest.mark.parametrize(("costs", "usd"), [([2.0, 3.0], 5.0), ([0.25, None], None), ([], 0.0)])
async def test_what_an_iteration_cost_is_logged_once_with_its_evaluation(
    tasks: tuple[Task, ...], prompt: Prompt, costs: list[float | None], usd: float | None
) -> None:
    judging = rewarder(up, tasks)
    given = rows(tasks, prompt, "train")
    columns = {key: [row[key] for row in given] for key in given[0] if key != "prompt"}

    async def logged() -> dict[str, float]:
        found: dict[str, float] = {}
        await judging.trl(
            [RIGHT, "nothing"],
            completion_ids=[[7, 1], [7, 1]],
            trainer_state=type("State", (), {"global_step": 0}),
            log_metric=found.__setitem__,
            **columns,
        )
        return found

    await judging.batch([{**row, "split": "eval"} for row in given], [RIGHT, RIGHT], 0)
    judging._spent.extend(costs)  # the calls of these workers are free

    assert (await logged()).get("usd") == usd
    assert (await logged())["usd"] == 0.0


async def test_the_slowest_worker_is_logged(tasks: tuple[Task, ...], prompt: Prompt) -> None:
    async def slow(messages: list[dict[str, Any]]) -> str:
        await asyncio.sleep(0.05)
        return "yes"

    pool = Pool.from_functions([up, slow], names=["up", "slow"])
    judging = rewarder(pool, tasks)
    asked = make_rows(tasks, pool, prompt, count=2, max_steps=5, draw=Draw())

    found = latency_of(await judging.batch(asked, [CHECKED, CHECKED], 0))

    assert found["slowest_worker"] == 1.0
    assert found["latency_p50_s"] <= found["latency_p95_s"]
    assert found["slowest_worker_s"] >= 0.05
    assert latency_of(await judging.batch(asked, ["nothing"] * 2, 0)) == {}


async def test_a_kept_sample_says_what_was_asked_and_names_its_runs(tasks: tuple[Task, ...], prompt: Prompt) -> None:
    asked = rows(tasks, prompt, "train")
    one = await rewarder(up, tasks, executions=2).batch(asked, [RIGHT, "no lists"], 3)

    kept, invalid = (sample.to_dict() for sample in one)

    questions = {task.id: (task.question, task.kind) for task in tasks}
    assert [(each["question"], each["kind"]) for each in (kept, invalid)] == [questions[row["task"]] for row in asked]
    assert kept["runs"] == [f"0/train/3/{asked[0]['row']}/0", f"0/train/3/{asked[0]['row']}/0/1"]
    assert invalid["runs"] == []
