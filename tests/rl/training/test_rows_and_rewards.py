"""Rows, the prior, judging and rewards: all that needs no torch."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import combinations, count
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfdsl.api import analyze, parse
from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError
from wfdsl.experiment import Experiment
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.record import BudgetExhausted
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym import make
from wfdsl_rl.gym.tiny.config import TinyConfig
from wfdsl_rl.gym.tiny.reasoning_prefix import Format, annotation, annotation_in, by_advertisement, placed
from wfdsl_rl.gym.tiny.synthetic import SHAPES, SyntheticWorkflows, short_lists
from wfdsl_rl.gym.world import wording
from wfdsl_rl.gym.world.replies import signs_in
from wfdsl_rl.reward import make_reward, offer_of
from wfdsl_rl.scoring import NoScore
from wfdsl_rl.tasks.task import Task
from wfdsl_rl.training.config import SftConfig, TrainConfig
from wfdsl_rl.training.data import Draw, is_held_out, make_rows, with_second_rounds
from wfdsl_rl.training.plan import run_options
from wfdsl_rl.training.rewarding import Rewarder
from wfdsl_rl.training.setup import Extension, Setup

GYM = Pool.load("gym/paper7")
RIGHT = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
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


@pytest.mark.parametrize(("share", "forced"), [(0.0, 0), (0.5, 8), (0.25, 4), (1.0, 16)])
def test_second_rounds_are_forced_in_their_share_of_every_stretch(
    tasks: tuple[Task, ...], pool: Pool, prompt: Prompt, share: float, forced: int
) -> None:
    rows = make_rows(tasks, pool, prompt, count=16, max_steps=5, draw=Draw())

    changed = with_second_rounds(rows, share=share, discount=0.25)

    assert sum(row["forced"] for row in changed) == forced
    assert abs(sum(row["forced"] for row in changed[:8]) - forced / 2) <= 1
    assert {row["weight"] for row in changed} <= {1.0, 0.25}
    assert all(row["weight"] == (1.0 if row["forced"] else 0.25) for row in changed)


KINDS = st.sampled_from(["math", "choice", "text", "code"])


@given(st.integers(), st.sets(st.integers(0, 6), min_size=1), KINDS)
def test_what_the_prior_writes_is_strictly_valid(seed: int, indices: set[int], kind: str) -> None:
    offer = WorkerListing.of(GYM.subset(sorted(indices)))

    written = SyntheticWorkflows().completion(random.Random(seed), offer, kind)

    checked = analyze(written, pool=7, max_steps=5)
    assert checked.ok
    assert checked.diagnostics == ()
    assert checked.workflow is not None
    assert {step.worker for step in checked.workflow} <= indices
    sketch, lists = written.split("\n", 1)
    assert lists == short_lists(checked.workflow)
    assert sketch.split()[:-1] == [kind, *map(str, by_advertisement(offer, kind)[:4])]
    assert len(sketch.split()[-1]) == len(checked.workflow)


@given(st.integers(), st.sets(st.integers(0, 6), min_size=1), KINDS)
def test_a_sketch_with_roles_says_who_gets_which_role(seed: int, indices: set[int], kind: str) -> None:
    offer = WorkerListing.of(GYM.subset(sorted(indices)))
    ranked = by_advertisement(offer, kind)[:4]

    written = SyntheticWorkflows(form="roles").completion(random.Random(seed), offer, kind)

    checked = analyze(written, pool=7, max_steps=5)
    assert checked.ok
    assert checked.workflow is not None
    sketch, lists = written.split("\n", 1)
    assert lists == short_lists(checked.workflow)
    listing = placed(range(len(ranked)), ranked)
    assert sketch.split()[: len(ranked) + 1] == [kind, *listing]
    shape, *roles = sketch.split()[len(ranked) + 1 :]
    assert [int(each[1:]) for each in roles] == [step.worker for step in checked.workflow]
    assert len(shape) == len(roles)
    assert set(roles) <= set(listing)


@given(st.integers(0, 10_000), KINDS)
def test_workers_stand_by_what_is_advertised_of_them(row: int, kind: str) -> None:
    offer = Draw(pick=(2, 3, 4, 5, 6, 7), shuffle=True).offer(GYM, row)

    ranked = by_advertisement(offer, kind)

    assert sorted(ranked) == list(offer.indices)
    advertised = dict(zip(offer.indices, offer.descriptions, strict=True))
    numbers = [int(advertised[ordinal].split(f"{kind} ")[1].split()[0]) for ordinal in ranked]
    assert numbers == sorted(numbers, reverse=True)


@given(st.integers(), st.sets(st.integers(0, 6), min_size=1), KINDS, st.sampled_from(get_args(Format)), st.booleans())
def test_what_the_prior_says_of_a_prompt_is_so(
    seed: int, indices: set[int], kind: str, form: Format, again: bool
) -> None:
    offer, prior, rng = (
        WorkerListing.of(GYM.subset(sorted(indices))),
        SyntheticWorkflows(form=form),
        random.Random(seed),
    )
    signs = ("hedged", "passes") if again else ()

    written = prior.revision(rng, offer, kind, signs) if again else prior.completion(rng, offer, kind)

    if form != "none":
        assert annotation_in(written) == annotation(form, kind, by_advertisement(offer, kind), signs)


@pytest.mark.parametrize("form", get_args(Format))
def test_the_prior_writes_for_more_workers_than_there_are_letters(form: Format) -> None:
    offer = WorkerListing(tuple(range(40)), (), ("",) * 40, {})

    written = SyntheticWorkflows(form=form).completion(random.Random(0), offer, "math")

    assert analyze(written, pool=40, max_steps=5).ok


def test_workers_that_say_nothing_stand_in_the_order_of_the_offer() -> None:
    assert by_advertisement(WorkerListing((0, 1, 3), (), ("", "strong at code 9 times", "code 3"), {}), "code") == [
        1,
        3,
        0,
    ]
    assert by_advertisement(WorkerListing((2, 5), (), ("", ""), {}), "code") == [2, 5]


def asked_by(prior: SyntheticWorkflows, kind: str) -> Counter[int | str]:
    rng = random.Random(0)
    offer = WorkerListing((0, 1, 2, 3), (), ("", "", "", ""), {})
    written = (prior.completion(rng, offer, kind) for _ in range(3000))
    return Counter(step.worker for text in written for step in parse(text, pool=4))


def test_the_prior_without_habits_asks_every_worker_equally_often() -> None:
    asked = asked_by(SyntheticWorkflows(bias=0.0), "math")

    assert max(asked.values()) / min(asked.values()) < 1.1


def test_habits_differ_by_kind_and_come_from_the_seed_alone() -> None:
    math, code, other = (
        asked_by(SyntheticWorkflows(seed=seed), kind) for seed, kind in ((0, "math"), (0, "code"), (1, "math"))
    )

    assert math.most_common() != code.most_common()
    assert math.most_common() != other.most_common()
    assert math == asked_by(SyntheticWorkflows(seed=0), "math")


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


def test_shapes_are_as_long_as_they_say() -> None:
    assert all(len(shape) == length for length, shapes in SHAPES.items() for shape in shapes)
    assert all(shape[-1] != "P" for shapes in SHAPES.values() for shape in shapes)


def answering(text: str) -> Pool:
    async def worker(messages: list[dict[str, Any]]) -> str:
        return text

    return Pool.from_functions([worker])


def rewarder(pool: Pool, tasks: tuple[Task, ...], **more: Any) -> Rewarder:
    return Rewarder(make_reward(pool, tasks, **more))


async def test_the_function_for_trl_gives_a_reward_per_completion(
    pool: Pool, tasks: tuple[Task, ...], prompt: Prompt
) -> None:
    rows = make_rows(tasks, pool, prompt, count=3, max_steps=5, draw=Draw())
    columns = {key: [row[key] for row in rows] for key in rows[0] if key != "prompt"}
    logged: dict[str, float] = {}

    rewards = await rewarder(pool, tasks).workflow_reward(
        [row["prompt"] for row in rows],
        [[{"role": "assistant", "content": text}] for text in (RIGHT, "nothing", RIGHT)],
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


def tiny_extension(tasks: tuple[Task, ...], prompt: Prompt, form: Format) -> Extension:
    pytest.importorskip("trl", reason="needs trl: pip install 'wfdsl[rl]'")
    train = TrainConfig(model="new", tasks="gym", sft=SftConfig(steps=1))
    tiny = TinyConfig(reasoning_prefix=form)
    return tiny.build(Setup(train=train, prompt=prompt, max_steps=5, pool=GYM, tasks=tasks, eval_tasks=(), out=Path()))


async def test_annotations_that_are_correct_are_counted(prompt: Prompt) -> None:
    asked = tuple(make("gym/paper7", 8, 5, split="train"))
    judging = replace(rewarder(GYM, asked), on_samples=tiny_extension(asked, prompt, "kind").on_samples)
    rows = make_rows(asked, GYM, prompt, count=len(asked), max_steps=5, draw=Draw())
    kinds = {task.id: task.kind for task in asked}
    true = [f"A {kinds[row['task']]} question.\n{RIGHT}" for row in rows]
    logged: dict[str, float] = {}

    await judging.workflow_reward(
        [row["prompt"] for row in rows],
        [*true[:4], *[RIGHT] * 4],
        trainer_state=type("State", (), {"global_step": 0}),
        log_metric=logged.__setitem__,
        **{key: [row[key] for row in rows] for key in rows[0] if key != "prompt"},
    )

    assert logged["annotation_accuracy"] == 0.5


async def test_a_second_round_has_to_read_the_answer_before(prompt: Prompt) -> None:
    asked = tuple(make("gym/paper7", 4, 5, split="train")[:1])
    row = make_rows(asked, GYM, prompt, count=1, max_steps=5, draw=Draw())[0]
    row["previous"] = ("Solve it.", f"{wording.HEDGES[0]}\nAnswer: 1")
    extension = tiny_extension(asked, prompt, "sketch")
    signs = signs_in(row["previous"][1])
    ranked = by_advertisement(offer_of(row, GYM), asked[0].kind)

    texts = [f"{annotation('sketch', asked[0].kind, ranked, said)} keep\n{KEEP}" for said in (signs, ("cut",))]
    found = await rewarder(GYM, asked).batch([row] * 2, texts, 0)

    assert signs
    assert [extension.on_samples([one]) for one in found] == [
        {"annotation_accuracy": 1.0},
        {"annotation_accuracy": 0.0},
    ]


async def test_executions_have_luck_of_their_own(prompt: Prompt) -> None:
    asked = tuple(task for task in make("gym/paper7", 40, 5, split="train") if task.kind == "text")
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


async def test_a_bug_in_a_grader_is_not_hidden(pool: Pool, tasks: tuple[Task, ...], prompt: Prompt) -> None:
    rows = make_rows(tasks, pool, prompt, count=2, max_steps=5, draw=Draw())
    broken = rewarder(pool, ())

    with pytest.raises(KeyError):
        await broken.batch(rows, [RIGHT, RIGHT], 0)
