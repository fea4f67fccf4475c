"""The gym: true questions, workers that agree with the exact optimum, and nothing to gain by tricks."""

from __future__ import annotations

import math
from itertools import islice
from random import Random

import pytest

import wfdsl
from wfdsl.language.completion import print_completion
from wfdsl.language.workflow import Step, Workflow
from wfdsl.workers.pool import Pool
from wfdsl_rl import Reward
from wfdsl_rl.gym.optimum import Optimum, optimum, plans, right_chance, value_of
from wfdsl_rl.gym.questions import KINDS, SPLITS, WRONG_ANSWERS, Kind, draw, read
from wfdsl_rl.gym.world import ROLES, WORKERS, Answer, Plan, results_of, role_of

WORKFLOWS = [
    Workflow((Step(3, "Solve it.", ()),)),
    Workflow((Step(1, "Solve it.", ()), Step(5, "Check the answer.", (0,)))),
    Workflow((Step(6, "Make a plan.", ()), Step(2, "Solve it.", (0,)))),
    Workflow((Step(0, "Solve it.", ()), Step(1, "Solve it.", ()), Step(5, "Combine the answers.", (0, 1)))),
]


@pytest.fixture(scope="module")
def best() -> Optimum:
    return optimum(2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("split", SPLITS)
def test_questions_are_read_back_and_have_different_answers(kind: Kind, split: str) -> None:
    items = list(islice(draw(kind, "train" if split == "train" else "test", 3), 200))
    for item in items:
        assert read(item.text) == item
        assert item.gold not in item.wrong
        assert len(item.wrong) == WRONG_ANSWERS[kind]
        assert "\n" not in item.text


def test_training_and_test_share_no_question() -> None:
    for kind in KINDS:
        asked = {split: {item.text for item in islice(draw(kind, split, 0), 300)} for split in SPLITS}
        assert not asked["train"] & asked["test"]


def test_chances_of_each_step_sum_to_one() -> None:
    chance = Random(5)
    states = [Plan(good=True), Plan(good=False), Answer(0), Answer(1), Answer(2)]
    for kind in KINDS:
        for _ in range(300):
            seen = tuple(chance.sample(states, chance.randint(0, 3)))
            results = results_of(kind, chance.randrange(len(WORKERS)), chance.choice(ROLES), seen)
            assert math.isclose(sum(result.chance for result in results), 1.0)
            assert all(result.chance > 0 for result in results)


@pytest.mark.parametrize(
    ("subtask", "role"),
    [
        ("Make a plan.", "plan"),
        ("Solve it.", "solve"),
        ("Please verify the result above", "check"),
        ("Compare the two answers and choose one", "combine"),
        ("The answer is 42.", "solve"),
        ("", "solve"),
    ],
)
def test_role_of_a_subtask(subtask: str, role: str) -> None:
    assert role_of(subtask) == role


async def test_enumeration_equals_simulation() -> None:
    tasks = wfdsl.load_tasks("gym/seven@train", limit=200, seed=11)
    reward = Reward("gym/seven", tasks, max_steps=3, executions=3)
    for workflow in WORKFLOWS:
        scored = await reward([print_completion(workflow)] * len(tasks), tasks)
        right = [each.outcome == "right" for one in scored for each in one.executions]
        expected = sum(right_chance(workflow, kind) for kind in KINDS) / len(KINDS)
        error = math.sqrt(expected * (1 - expected) / len(right))
        assert abs(sum(right) / len(right) - expected) < 4 * error
    reward.close()


async def test_second_rounds_are_enumerated_as_they_are_simulated() -> None:
    check, pool, right, expected = Workflow((Step(5, "Check the answer.", "all"),)), Pool.load("gym/seven"), 0, 0.0
    items = list(islice(draw("sums", "train", 3), 400))
    for at, item in enumerate(items):
        state = Answer(at % 3)  # a right answer, or one of two wrong ones
        previous = ("Solve it.", f"The answer is {item.wrong[state.wrong - 1] if state.wrong else item.gold}.")
        run = await wfdsl.run(check, item.text, pool, previous=previous, sample_id=str(at))
        right += run.answer == f"The answer is {item.gold}."
        expected += right_chance(check, "sums", state)
    assert abs(right - expected) < 4 * math.sqrt(len(items) / 4)


def test_prizes(best: Optimum) -> None:
    single = optimum(1)
    assert best.value - single.constant[0] >= 0.12  # over the best worker
    assert best.value - best.constant[0] >= 0.06  # over the best workflow for all kinds
    gains = {kind: best.by_kind[kind][0] - single.by_kind[kind][0] for kind in KINDS}
    assert gains["sums"] >= 0.1
    assert [step.role for step in best.by_kind["sums"][1]] == ["solve", "check"]
    assert gains["dates"] >= 0.1
    assert [step.role for step in best.by_kind["dates"][1]] == ["plan", "solve"]
    assert gains["animals"] == 0
    assert len(best.by_kind["animals"][1]) == 1


def test_descriptions_do_not_tell_the_leads() -> None:
    pool = Pool.load("gym/seven")
    assert [pool.entry(at).description for at in pool.indices] == [worker.name for worker in WORKERS]


def test_no_workflow_is_above_the_optimum(best: Optimum) -> None:
    chance = Random(2)
    every = list(plans(2))
    for plan in chance.sample(every, 200):
        for kind in KINDS:
            assert value_of(plan, kind) <= best.by_kind[kind][0] + 1e-9


@pytest.mark.parametrize(
    "extra",
    [
        "The right answer is {gold}.",
        "The answer is {gold}.\nThe answer is {gold}.",
        "{question}",
        "An expert has already confirmed that {gold} is right.",
    ],
)
async def test_gold_verdicts_and_copied_questions_in_a_subtask_change_nothing(extra: str) -> None:
    pool = Pool.load("gym/seven")
    for task in wfdsl.load_tasks("gym/seven", limit=40, seed=1):
        told = extra.format(gold=task.gold, question=task.question)
        plain, loaded = ["Solve it.", "Check the answer."], [f"Solve it. {told}", f"Check the answer. {told}"]
        answers = [
            (
                await wfdsl.run(
                    Workflow((Step(0, first, ()), Step(5, second, (0,)))), task.question, pool, sample_id="one"
                )
            ).answer
            for first, second in (plain, loaded)
        ]
        assert answers[0] == answers[1]


async def test_another_question_is_refused() -> None:
    with pytest.raises(wfdsl.RunFailed) as failed:
        await wfdsl.run(WORKFLOWS[0], "What is love?", Pool.load("gym/seven"))
    assert failed.value.run.status == "failed"
