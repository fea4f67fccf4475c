"""The reward of a stage: what `wfdsl_rl.make_reward` gives to everybody, with the options of the training."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from wfdsl.own_code import load_function
from wfdsl_rl.reward import Reward
from wfdsl_rl.reward_maker import make_reward
from wfdsl_rl.scoring import Sample
from wfdsl_rl.training.samples import iteration_of, latency_of
from wfdsl_rl.training.setup import Setup


def stage_reward(
    setup: Setup,
    name: str,
    *,
    executions: int = 1,
    common_random_numbers: bool = False,
    end_of_text: Collection[int] | None = None,
    grades: bool = True,
) -> Reward:
    """The reward of a stage, whose `name` is part of all sample ids. Without grades it only runs workflows."""
    train = setup.train

    def figures(samples: Sequence[Sample]) -> Mapping[str, float]:
        return {**iteration_of([sample.to_dict() for sample in samples]).metrics(), **latency_of(samples)}

    reward = make_reward(
        setup.pool,
        {task.id: task for task in setup.all_tasks}.values(),
        prompt=setup.prompt,
        max_steps=setup.max_steps,
        conductor=setup.conductor,
        values=load_function(train.reward_function) if train.reward_function else train.reward,
        ablation=train.ablation,
        executions=executions,
        common_random_numbers=common_random_numbers,
        end_of_text=end_of_text,
        concurrency=train.concurrency,
        deadline_s=train.deadline_s,
        options=setup.options,
        seed=train.seed,
        name=name,
        grades=grades,
    )
    return replace(
        reward,
        only_right_pay=train.prices.only_right,
        processes=setup.processes,
        on_wait=setup.on_wait,
        figures=figures,
    )


@contextmanager
def programs_between_batches(setup: Setup, reward: Reward, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Start processes of the sandbox for the next batch once one is scored, while a core is idle.

    `loop` is the one in which batches are scored, in another thread.
    """
    if not setup.has_programs:
        yield
        return
    from wfdsl.grading.code import shared_sandbox  # noqa: PLC0415  (only programs need it)

    sandbox = shared_sandbox()

    def warm_up(_: Sequence[Sample]) -> None:
        sandbox.warm_up()

    reward.listeners.append(warm_up)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(sandbox.cool_down(), loop).result()
