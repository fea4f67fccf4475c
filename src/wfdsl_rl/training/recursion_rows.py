"""How the row of a first round becomes that of a second one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    messages = asked_again(row["prompt"], first.completion, pair[1], prompt, max_steps=max_steps)
    return {**row, "prompt": messages, "previous": list(pair), "weight": 1.0}


def asked_again(
    messages: Sequence[Any], completion: str, response: str, prompt: Prompt, *, max_steps: int
) -> list[dict[str, Any]]:
    """The conversation that goes on behind a first round, with the last revision that may be made."""
    again = prompt.revise(response, max_steps=max_steps, rounds_left=0)
    return [*messages, {"role": "assistant", "content": completion}, dict(again)]


def first_with_answer(samples: Sequence[Sample]) -> Mapping[int, Sample]:
    """The first sample of each row that came to an answer, by the row's number."""
    chosen: dict[int, Sample] = {}
    for sample in samples:
        if sample.judged.pair is not None:
            chosen.setdefault(sample.row["row"], sample)
    return chosen
