"""`Reward`: batches of completions, from an event loop, from threads, and as TRL calls it."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.record import BudgetExhausted
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.own_code import load_function
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl import Reward
from wfdsl_rl.gym.source import tasks as gym_tasks
from wfdsl_rl.scoring import NoScore, RewardValues, Rollout

TASKS = tuple(Task(id=f"t{number}", question=f"Question {number}?", gold="yes", kind="text") for number in range(3))
RIGHT = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
END = 1
"""The token that ends a completion."""
STATE = SimpleNamespace(global_step=4)


async def up(messages: list[dict[str, Any]]) -> str:
    return "yes"


async def down(messages: list[dict[str, Any]]) -> str:
    raise ConnectionError("the line is dead")


class Counted:
    """Workers that count their calls, and how many of them are in flight."""

    def __init__(self) -> None:
        self.asked, self.inside, self.most = 0, 0, 0

    def pool(self) -> Pool:
        async def worker(messages: list[dict[str, Any]]) -> str:
            self.asked, self.inside = self.asked + 1, self.inside + 1
            self.most = max(self.most, self.inside)
            await asyncio.sleep(0)
            self.inside -= 1
            return "yes"

        return Pool.from_functions([worker])


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The rows as TRL hands them to a reward function."""
    return {"prompts": [row["prompt"] for row in rows]} | {
        key: [row[key] for row in rows] for key in rows[0] if key != "prompt"
    }


async def test_completions_in_scored_outcomes_out() -> None:
    reward = Reward(Pool.from_functions([up]), TASKS, values=RewardValues(right=2.0))

    right, invalid = await reward([RIGHT, [{"role": "assistant", "content": "nothing"}]], ["t0", TASKS[1]])

    assert (right.score, right.outcome, right.steps, right.cost_usd) == (2.0, "right", 1, 0.0)
    assert right.run is not None
    assert right.run.question == "Question 0?"
    assert (invalid.score, invalid.outcome, invalid.run) == (0.0, "invalid", None)
    assert invalid.problems != ()


async def test_concurrent_calls_share_one_limit() -> None:
    workers = Counted()
    reward = Reward(workers.pool(), TASKS, concurrency=2)

    await asyncio.gather(*(reward([RIGHT], ["t0"]) for _ in range(8)))

    assert (workers.asked, workers.most) == (8, 2)


async def test_workflows_that_are_late_have_failed_and_the_others_count() -> None:
    waited: list[tuple[int, int]] = []

    async def worker(messages: list[dict[str, Any]]) -> str:
        if "Question 1" in messages[0]["content"]:
            await asyncio.Event().wait()
        return "yes"

    pool = Pool.from_functions([worker])
    reward = Reward(pool, TASKS, deadline_s=1.5, on_wait=lambda left, count: waited.append((left, count)))

    found = await reward([RIGHT] * 3, ["t0", "t1", "t2"])

    assert [(each.outcome, each.score) for each in found] == [("right", 1.0), ("failed", None), ("right", 1.0)]
    assert set(waited) == {(1, 3)}


def test_a_reward_can_be_sent_to_another_process(tmp_path: Path) -> None:
    """As TRL's asynchronous trainer does; the journal is opened again, and what was paid is not paid twice."""
    pool = Pool.from_functions([up])
    options: dict[str, Any] = {"budget": Budget(calls=2), "end_of_text": END, "listeners": [len]}
    with Reward(pool, TASKS, journal=tmp_path / "journal.db", **options) as reward:
        scores = [each.score for each in reward.sync([RIGHT], ["t0"], sample_ids=["a"])]
        sent = pickle.dumps(reward.trl)

    with pickle.loads(sent).__self__ as other:
        again = other.sync([RIGHT, RIGHT], ["t0", "t1"], sample_ids=["a", "b"])

        assert [each.score for each in again] == [*scores, 1.0] == [1.0, 1.0]
        assert again[0].run is not None
        assert again[0].run.steps[0].replayed
        assert (other.end_of_text, other.listeners) == ({END}, [len])
        with pytest.raises(BudgetExhausted):
            other.sync([RIGHT], ["t2"])


async def test_a_trainer_that_does_not_say_its_step_asks_again_in_each_epoch(tmp_path: Path) -> None:
    workers = Counted()

    with Reward(workers.pool(), TASKS, journal=tmp_path / "journal.db") as reward:
        for _ in range(2):
            await reward.trl([RIGHT] * 3, **columns(reward.rows()))

    assert workers.asked == 6


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ({"role": "assistant", "tool_calls": []}, "invalid"),
        ({"role": "assistant", "content": None}, "invalid"),
        ({"role": "assistant", "content": [{"type": "text", "text": RIGHT}]}, "right"),
    ],
)
async def test_messages_of_other_forms_are_read(message: dict[str, Any], outcome: str) -> None:
    (found,) = await Reward(Pool.from_functions([up]), TASKS)([[message]], ["t0"])

    assert found.outcome == outcome


async def test_a_reward_of_ones_own_is_a_function_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def score(scored, task):\n    return scored.steps / 4 if scored.outcome == 'right' else None\n")
    reward = Reward(Pool.from_functions([up]), TASKS, values=load_function(f"{file}:score"))

    found = await reward([RIGHT, "nothing"], ["t0", "t1"])

    assert [each.score for each in found] == [0.25, None]


async def test_a_spent_budget_ends_a_batch_and_earlier_sessions_count(tmp_path: Path) -> None:
    def a_reward() -> Any:
        return Reward(Pool.from_functions([up]), TASKS, budget=Budget(calls=4), journal=tmp_path / "journal.db")

    with a_reward() as reward:
        await reward([RIGHT] * 3, ["t0", "t1", "t2"])
    with a_reward() as reward, pytest.raises(BudgetExhausted):
        await reward([RIGHT] * 3, ["t0", "t1", "t2"])


async def test_an_unknown_task_repeated_ids_and_a_wait_inside_a_running_loop_are_refused() -> None:
    pool = Pool.from_functions([up])

    with pytest.raises(UsageError, match="unknown task 'x'"):
        await Reward(pool, TASKS)([RIGHT], ["x"])
    with pytest.raises(UsageError, match="two tasks have the id 't0'"):
        Reward(pool, [TASKS[0], TASKS[0].model_copy(), TASKS[0].model_copy(update={"question": "Another?"})])
    with pytest.raises(UsageError, match="write `await reward"):
        Reward(pool, TASKS).sync([RIGHT], ["t0"])


def test_sync_from_many_threads_shares_one_loop_and_ends_with_close() -> None:
    workers, before = Counted(), threading.active_count()

    with Reward(workers.pool(), TASKS, concurrency=3) as reward, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: reward.sync([RIGHT, "nothing"], ["t0", "t1"]), range(16)))
        with pytest.raises(UsageError):
            reward.sync([RIGHT], ["x"])
        reward.close()
        assert reward.sync([RIGHT], ["t0"])[0].score == 1.0  # it can be used again

    assert [[each.score for each in pair] for pair in found] == [[1.0, 0.0]] * 16
    assert (workers.asked, workers.most <= 3) == (17, True)
    assert threading.active_count() == before


def test_a_program_that_forgets_to_close_ends_all_the_same() -> None:
    program = (
        "import wfdsl, wfdsl_rl\n"
        "async def up(messages): return 'yes'\n"
        "from wfdsl.workers.pool import Pool\n"
        "task = wfdsl.Task(id='t', question='?', gold='yes', kind='text')\n"
        f"print(wfdsl_rl.Reward(Pool.from_functions([up]), [task]).sync([{RIGHT!r}], ['t'])[0].score)\n"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1.0\n", "")


async def test_trl_is_given_a_score_per_completion_and_the_batch_is_logged() -> None:
    reward, logged = Reward(Pool.from_functions([up]), TASKS, end_of_text=END), dict[str, float]()

    scores = await reward.trl(
        completions=[[{"role": "assistant", "content": text}] for text in (RIGHT, "nothing", RIGHT)],
        trainer_state=STATE,
        log_metric=logged.__setitem__,
        log_extra=None,
        completion_ids=[[5, END], [END], [6, 5, END]],
        **columns(reward.rows()),
    )

    assert scores == [1.0, 0.0, 1.0]
    shares = {"valid": 2 / 3, "cut": 0.0, "accuracy": 2 / 3, "unjudged": 0.0, "failed": 0.0}
    assert logged == {**shares, "steps": 1.0, "usd": 0.0}
    own: dict[str, Any] = {"prompts": ["a", "b"], "task": ["t2", "t0"], "true": ["4", "0"]}  # a data set of one's own
    assert await reward.trl([RIGHT, "nothing"], **own) == [1.0, 0.0]


async def test_a_completion_without_its_end_is_invalid_whatever_it_holds() -> None:
    reward, logged = Reward(Pool.from_functions([up]), TASKS, end_of_text=[END, 9]), dict[str, float]()
    found = columns(reward.rows())

    scores = await reward.trl(
        [RIGHT] * 3, completion_ids=[[5, END], [5, 6], [9]], log_metric=logged.__setitem__, **found
    )

    assert scores == [1.0, 0.0, 1.0]
    assert (logged["cut"], logged["valid"]) == (1 / 3, 2 / 3)
    (scored,) = await reward.score([Rollout(completion=RIGHT, task=TASKS[0], sample_id="s", cut=True)])
    assert (scored.outcome, scored.problems, scored.run) == ("invalid", ("completion-cut",), None)
    with pytest.raises(UsageError):  # it cannot tell which are cut
        await Reward(reward.pool, TASKS).trl([RIGHT] * 3, completion_ids=[[5]] * 3, **found)


@pytest.mark.parametrize("question_for", ["all", "first"])
@pytest.mark.parametrize("access", ["lists", "binary"])
@pytest.mark.parametrize("recursion", [False, True])
async def test_the_examples_of_a_prompt_earn_the_full_reward(
    access: Any, question_for: Any, *, recursion: bool
) -> None:
    """What the prompt teaches is what the reward pays, under every rule."""
    reward = Reward(
        Pool.from_functions([up] * 3),
        TASKS,
        conductor=ConductorConfig(access=access),
        options={"question_for": question_for},
    )
    row = reward.rows()[0]
    asked, texts = row["prompt"][-1]["content"], reward.prompt.texts
    fitting = [each.fitting(row["shown"], DEFAULT_MAX_STEPS, access) for each in reward.prompt.examples.examples]
    shown = [example.completion for example in fitting if example is not None]

    scored = await reward(
        shown, [row["task"]] * len(shown), previous=[("Solve it.", "no")] * len(shown) if recursion else None
    )

    assert len(shown) == 4
    assert all(text in asked for text in [*shown, texts[f"access_{access}"], texts[f"question_for_{question_for}"]])
    assert [each.score for each in scored] == [1.0] * len(shown)


async def test_a_step_that_trl_repeats_makes_no_call_twice_and_may_have_other_completions(tmp_path: Path) -> None:
    workers, asked, other = Counted(), [], RIGHT.replace("Solve", "Try")

    for step, texts in ((1, [RIGHT] * 6), (1, [RIGHT] * 6), (1, [RIGHT, other] * 3), (2, [RIGHT] * 6)):
        with Reward(workers.pool(), TASKS, journal=tmp_path / "journal.db") as reward:
            rows = [row for row in reward.rows() for _ in range(2)]
            await reward.trl(texts, trainer_state=SimpleNamespace(global_step=step), **columns(rows))
        asked.append(workers.asked)

    assert asked == [6, 6, 9, 15]


async def test_a_training_batch_without_a_score_stops_and_an_evaluation_does_not() -> None:
    reward = Reward(Pool.from_functions([down]), TASKS)

    with pytest.raises(NoScore, match="step 4: no valid completion has a score: "):
        await reward.trl([RIGHT] * 3, trainer_state=STATE, **columns(reward.rows()))

    assert await reward.trl([RIGHT] * 3, trainer_state=STATE, **columns(reward.rows(split="test"))) == [None] * 3


async def test_each_completion_of_a_group_in_an_evaluation_has_its_own_score() -> None:
    reward = Reward(Pool.from_functions([up]), TASKS)

    scores = await reward.trl([RIGHT, "nothing"] * 3, **columns(2 * reward.rows(split="test")))

    assert scores == [1.0, 0.0] * 3


async def test_rows_offer_a_subset_and_completions_are_read_in_its_numbering() -> None:
    pool = Pool.load("gym/seven")
    tasks = gym_tasks("gym/seven", 6, 5, split="train")
    reward = Reward(pool, tasks, conductor=ConductorConfig(pick=2, shuffle=True), prompt="tiny")

    rows = reward.rows()
    found = await reward([RIGHT] * len(rows), rows)

    assert {len(row["shown"]) for row in rows} == {2}
    asked = [each.run.workflow[0].worker for each in found if each.run is not None]
    assert asked == [row["true"][row["shown"].index(0)] for row in rows]
    assert len(set(asked)) > 1
