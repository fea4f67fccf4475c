"""From a completion to its outcome and reward: the paper's rewards, ablations, and what has no score."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym.source import tasks as gym_tasks
from wfdsl_rl.reward import Reward
from wfdsl_rl.scoring import Ablation, RewardValues, Rollout, Scored, metrics_of, require_scores, right_share
from wfdsl_rl.scoring import NoScore as Refused

TASK = Task(id="t", question="Is it?", gold="yes", kind="text")
RIGHT = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
TWO = 'model_id = [0, 0]\nsubtasks = ["Plan it.", "Solve it."]\naccess_list = [[], [0]]'
KEEP = "model_id = []\nsubtasks = []\naccess_list = []"


def answering(*texts: str) -> Pool:
    """A worker that says these texts one after the other, and then the last one."""
    numbers = count()

    async def worker(messages: list[dict[str, Any]]) -> str:
        return texts[min(next(numbers), len(texts) - 1)]

    return Pool.from_functions([worker])


async def scored(text: str, pool: Pool, options: dict[str, Any] | None = None, **more: Any) -> Scored:
    rollout = Rollout(completion=text, task=TASK, sample_id="s", **more)
    return (await Reward(pool, [TASK], **(options or {})).score([rollout]))[0]


@pytest.mark.parametrize(
    ("completion", "reply", "outcome", "reward"),
    [
        (RIGHT, "yes", "right", 1.0),
        (RIGHT, "no", "wrong", 0.5),
        (RIGHT, "", "wrong", 0.5),
        ("no lists at all", "yes", "invalid", 0.0),
        (RIGHT.replace("[0]", "[1]"), "yes", "invalid", 0.0),
        (KEEP, "yes", "invalid", 0.0),
        (RIGHT.replace('"Solve it."', "'Solve it.'").replace("access_list", "access"), "yes", "invalid", 0.0),
    ],
)
async def test_the_papers_three_rewards(completion: str, reply: str, outcome: str, reward: float) -> None:
    found = await scored(completion, answering(reply))

    assert (found.outcome, found.score, found.has_score) == (outcome, reward, True)


async def test_steps_can_have_a_price() -> None:
    scorer, pool = {"values": RewardValues(step=-0.01)}, answering("yes")

    found = [await scored(completion, pool, scorer) for completion in (RIGHT, TWO, "no lists at all")]
    kept = await scored(KEEP, pool, scorer, previous=("Solve it.", "yes"))

    assert [each.score for each in [*found, kept]] == [0.99, 0.98, 0.0, 1.0]
    assert [each.steps for each in [*found, kept]] == [1, 2, 0, 0]


async def test_three_empty_lists_keep_the_answer_of_the_previous_round() -> None:
    kept = await scored(KEEP, answering("no"), previous=("Solve it.", "yes"))
    lost = await scored(KEEP, answering("yes"), previous=("Solve it.", "no"))

    assert (kept.kept, kept.outcome, kept.run) == (True, "right", None)
    assert (lost.kept, lost.outcome) == (True, "wrong")


async def test_an_ablation_takes_subtasks_and_workers_from_the_conductor() -> None:
    async def worker(messages: list[dict[str, Any]]) -> str:
        return "yes"

    scorer = {"ablation": Ablation(instruction="Solve the question.", worker=2)}

    found = await scored(RIGHT, Pool.from_functions([worker] * 3, names=["a", "b", "c"]), scorer)

    assert found.run is not None
    assert [(step.subtask, step.worker) for step in found.run.workflow] == [("Solve the question.", 2)]


async def test_binary_access_refuses_lists_of_steps() -> None:
    scorer = {"conductor": ConductorConfig(access="binary")}

    refused = await scored(TWO, answering("yes"), scorer)
    passed = await scored(TWO.replace("[0]]", '"all"]'), answering("yes"), scorer)

    assert (refused.outcome, refused.problems) == ("invalid", ("access-not-binary",))
    assert passed.outcome == "right"


async def test_a_worker_that_fails_gives_no_score() -> None:
    async def broken(messages: list[dict[str, Any]]) -> str:
        raise ConnectionError("gone")

    found = await scored(RIGHT, Pool.from_functions([broken]))

    assert (found.outcome, found.score, found.has_score) == ("failed", None, False)
    assert "gone" in found.problems[0]


async def test_an_answer_that_cannot_be_graded_gives_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(id="c", question="?", gold="", kind="custom", grader="tests.grading.graders:breaks")

    (found,) = await Reward(answering("yes"), [task])([RIGHT], [task])

    assert (found.outcome, found.score) == ("unjudged", None)
    assert found.problems != ()


async def test_a_workflow_that_is_run_several_times_is_worth_the_mean_of_what_has_a_score() -> None:
    asked = count()

    async def worker(messages: list[dict[str, Any]]) -> str:
        number = next(asked)
        if number == 2:
            raise ConnectionError("gone")
        return "yes" if number == 1 else "no"

    found = await scored(RIGHT, Pool.from_functions([worker]), executions=5)
    unread = await scored("no lists", answering("no"), executions=4)

    assert [each.outcome for each in found.executions] == ["wrong", "right", "failed", "wrong", "wrong"]
    assert found.score == (3 * 0.5 + 1.0) / 4
    assert len({run.id for run in found.runs}) == 5
    assert (unread.score, len(unread.executions)) == (0.0, 1)


async def test_executions_of_simulated_workers_draw_different_random_numbers() -> None:
    pool, tasks = Pool.load("gym/seven"), gym_tasks("gym/seven", 40, 5, split="train")

    found = [(await Reward(pool, [task], executions=8)([RIGHT], [task]))[0] for task in tasks if task.kind == "text"]

    assert any({each.outcome for each in one.executions} == {"right", "wrong"} for one in found)


def test_the_share_of_right_outcomes_leaves_out_what_has_no_score() -> None:
    assert right_share(["right", "wrong", "unjudged", "failed", "invalid", "right"]) == 0.5
    assert right_share(["unjudged", "failed"]) is None


async def test_metrics_say_what_a_batch_was_like() -> None:
    found = await scored(TWO, answering("yes"))
    batch = [found, Scored("wrong", score=0.5), Scored("invalid", score=0.0), Scored("failed")]

    assert metrics_of(batch) == {
        "valid": 0.75,
        "cut": 0.0,
        "accuracy": pytest.approx(1 / 3),
        "unjudged": 0.0,
        "failed": 0.25,
        "steps": 2.0,
    }


GONE, INVALID = Scored("failed", problems=("gone",)), Scored("invalid", score=0.0)
UNGRADED = Scored("unjudged", problems=("no gold",))


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        ([GONE], "gone"),
        ([UNGRADED] * 9, "no gold"),
        ([INVALID] * 20 + [GONE] * 4, "gone"),
        ([INVALID] * 20 + [GONE] * 3, None),
        ([INVALID, *[UNGRADED] * 9], None),  # answers that cannot be graded are no outage
        ([GONE, Scored("wrong", score=0.5)], None),
    ],
)
def test_a_batch_without_a_score_is_refused_where_workers_are_down(batch: list[Scored], why: str | None) -> None:
    if why is None:
        require_scores(batch, 3)
    else:
        with pytest.raises(Refused, match=f"step 3: .*{why}"):
            require_scores(batch, 3)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), "much"])
async def test_values_are_checked_and_so_is_what_a_function_of_ones_own_gives(wrong: Any) -> None:
    with pytest.raises(UsageError):
        RewardValues(right=wrong)
    with pytest.raises(UsageError, match=r"finite number or None \(got"):
        await scored(RIGHT, answering("yes"), {"values": lambda *_: wrong})
