"""How the row of a first round becomes that of a second one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from wfdsl_rl.gym.replies import signs_in
from wfdsl_rl.training.given import messages_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wfdsl.conductor.prompt import Prompt
    from wfdsl_rl.training.rewarding import Sample


def as_revision(row: Mapping[str, Any], first: Sample, prompt: Prompt, *, max_steps: int) -> dict[str, Any]:
    """The row with a first round in its prompt: what was said, and the response that came of it.

    The first round must have come to an answer.
    """
    pair = first.judged.pair
    assert pair is not None
    messages = asked_again(messages_of(row), first.completion, pair[1], prompt, max_steps=max_steps)
    return {**row, "prompt": messages, "asked": None, "begun": "", "previous": list(pair), "weight": 1.0}


def asked_again(
    messages: Sequence[Any], completion: str, response: str, prompt: Prompt, *, max_steps: int
) -> list[dict[str, Any]]:
    """The conversation that goes on behind a first round, with the last revision that may be made."""
    again = prompt.revise(response, max_steps=max_steps, rounds_left=0)
    return [*messages, {"role": "assistant", "content": completion}, dict(again)]


def first_with_answer(samples: Sequence[Sample], *, doubtful: float = 0.0) -> Mapping[int, Sample]:
    """For each row, its first sample that came to an answer.

    In the part `doubtful` of the rows, drawn by their numbers, it is the first whose answer admits a doubt, if there is
    one.
    """
    answered: dict[int, list[Sample]] = {}
    for sample in samples:
        if sample.judged.pair is not None:
            answered.setdefault(sample.row["row"], []).append(sample)
    chosen = {}
    for number, found in answered.items():
        drawn = random.Random(f"doubtful:{number}").random() < doubtful
        doubts = [sample for sample in found if _admits_doubt(sample)] if drawn else []
        chosen[number] = (doubts or found)[0]
    return chosen


def _admits_doubt(sample: Sample) -> bool:
    """Whether something speaks against its answer, and no check for it."""
    assert sample.judged.pair is not None
    signs = signs_in(sample.judged.pair[1])
    return bool(signs) and "passes" not in signs
