"""Revisions that the model writes itself, for other workers than the one who answered in the first round.

A second round drawn at random is worse than the answer that it revises, and rewards would only teach to keep. What a
model has learned of first rounds holds for second ones, too, if somebody else answers: whoever has failed on a question
is likely to fail again. Whether to revise at all is left to rewards. Source: our choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from wfdsl.conductor.listing import WorkerListing
from wfdsl_rl.gym.tiny.synthetic import named, shape_in, true_reading
from wfdsl_rl.gym.world.replies import signs_in
from wfdsl_rl.training.data import offer_of
from wfdsl_rl.training.recursion_rows import workflow_in

if TYPE_CHECKING:
    from wfdsl_rl.gym.tiny.synthetic import Prior
    from wfdsl_rl.training.setting import Setting

_LEFT: Final = 2
"""The fewest workers that a stage of random pools offers."""

Write: TypeAlias = Callable[[Sequence[Any], Sequence[str]], list[str]]
"""What the model writes for conversations, each with a beginning that it goes on from."""


def by_others(setting: Setting, prior: Prior, write: Write, rows: Sequence[dict[str, Any]]) -> list[str]:
    """For rows of second rounds, what the model writes for the others alone, said of all that the row offers.

    Nothing where that is not a valid workflow.
    """
    questions = {task.id: task.question for task in setting.tasks}
    asked = [(row, others_of(setting, row)) for row in rows]
    said = write(
        [setting.prompt.ask(questions[row["task"]], others, max_steps=setting.max_steps) for row, others in asked],
        [true_reading(prior.thought, row["kind"], others, None) for row, others in asked],
    )
    return [_said_of_all(setting, prior, *each, text) for each, text in zip(asked, said, strict=True)]


def others_of(setting: Setting, row: dict[str, Any]) -> WorkerListing:
    """The workers that a thought names, without the one who answered in the first round, numbered from 0.

    Nobody is left out of as few as stages of random pools offer.
    """
    offer = offer_of(row, setting.pool)
    left = named(offer, row["kind"])
    failed = _answered(setting, row["prompt"][-2]["content"], offer)
    if len(left) > _LEFT and failed in left:
        left.remove(failed)
    true = sorted(offer.indices[each] for each in left)
    return WorkerListing.of(setting.pool.subset(true), dict(enumerate(true)))


def _answered(setting: Setting, first: str, offer: WorkerListing) -> int | None:
    """Who is the first to be asked for an answer in a completion, and not for a plan of one."""
    workflow, shape = workflow_in(setting, first, offer), shape_in(first)
    at = len(shape) - len(shape.lstrip("P"))
    return None if workflow is None or at >= len(workflow) else int(workflow[at].worker)


def _said_of_all(setting: Setting, prior: Prior, row: dict[str, Any], others: WorkerListing, text: str) -> str:
    workflow, shape = workflow_in(setting, text, others), shape_in(text)
    if workflow is None or len(workflow) != len(shape):
        return ""
    offer = offer_of(row, setting.pool)
    signs, renumbered = signs_in(row["previous"][1]), offer.from_pool(others.to_pool(workflow))
    return prior.told(offer, row["kind"], signs, shape, renumbered)
