"""How the row of a first round becomes that of a second one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from wfdsl.api import analyze
from wfdsl_rl.gym.tiny.forced_prefix import messages_of
from wfdsl_rl.gym.tiny.synthetic import admits_doubt
from wfdsl_rl.gym.world.replies import signs_in
from wfdsl_rl.training.data import offer_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wfdsl.conductor.listing import WorkerListing
    from wfdsl.conductor.prompt import Prompt
    from wfdsl.language.workflow import Workflow
    from wfdsl_rl.training.rewarding import Sample
    from wfdsl_rl.training.setting import Setting


def as_revision(row: Mapping[str, Any], first: Sample, prompt: Prompt, *, max_steps: int) -> dict[str, Any]:
    """The row with a first round in its prompt: what was said, and the response that came of it.

    The first round must have come to an answer.
    """
    pair = first.scored.pair
    assert pair is not None
    messages = asked_again(messages_of(row), first.completion, pair[1], prompt, max_steps=max_steps)
    return {**row, "prompt": messages, "asked": None, "begun": "", "previous": list(pair), "weight": 1.0}


def asked_again(
    messages: Sequence[Any], completion: str, response: str, prompt: Prompt, *, max_steps: int
) -> list[dict[str, Any]]:
    """The conversation that goes on behind a first round, with the last revision that may be made."""
    again = prompt.revise(response, max_steps=max_steps, rounds_left=0)
    return [*messages, {"role": "assistant", "content": completion}, dict(again)]


def workflow_in(setting: Setting, completion: str, offer: WorkerListing) -> Workflow | None:
    """What a completion of a first round says, in the offer's numbering; None if it is not valid."""
    return analyze(completion, pool=offer, max_steps=setting.max_steps, depth_left=0).workflow


def exchanged(setting: Setting, row: dict[str, Any], first: str) -> dict[str, Any]:
    """The row with one of the workers of its first round exchanged, in some rows of a training: somebody who was not
    asked answers in their place, and the other way round. What the prompt says of both stays as it was.
    """
    stage, rng = setting.train.recursion, random.Random(f"exchanged:{setting.train.seed}:{row['row']}")
    if row["split"] != "train" or rng.random() >= stage.exchanged:
        return row
    offer = offer_of(row, setting.pool)
    asked = {step.worker for step in workflow_in(setting, first, offer) or ()}
    fixed = {*stage.never_exchanged, *setting.pool.conductors}
    movable = [ordinal for ordinal in offer.ordinals if offer.indices[ordinal] not in fixed]
    sides = [[ordinal for ordinal in movable if (ordinal in asked) is side] for side in (True, False)]
    if not all(sides):
        return row
    one, other = (row["shown"].index(rng.choice(side)) for side in sides)
    answering = list(row["answering"])
    answering[one], answering[other] = answering[other], answering[one]
    return {**row, "answering": answering}


def first_with_answer(samples: Sequence[Sample], *, doubtful: float | None = None) -> Mapping[int, Sample]:
    """For each row, its first sample that came to an answer.

    With `doubtful`, it is the first whose answer admits a doubt in that part of the rows, drawn by their numbers, and
    the first whose answer admits none in the others, as far as there is one.
    """
    answered: dict[int, list[Sample]] = {}
    for sample in samples:
        if sample.scored.pair is not None:
            answered.setdefault(sample.row["row"], []).append(sample)
    if doubtful is None:
        return {number: found[0] for number, found in answered.items()}
    chosen = {}
    for number, found in answered.items():
        drawn = random.Random(f"doubtful:{number}").random() < doubtful
        chosen[number] = next((sample for sample in found if _is_doubtful(sample) is drawn), found[0])
    return chosen


def _is_doubtful(sample: Sample) -> bool:
    assert sample.scored.pair is not None
    return admits_doubt(signs_in(sample.scored.pair[1]))
