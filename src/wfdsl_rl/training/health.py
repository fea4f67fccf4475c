"""Signs that a training goes wrong, a line each: in its numbers, in the workflows, and in the answers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wfdsl_rl.training.rewarding import Sample

_FALL: Final = 0.1
"""How far the share of valid completions may fall behind its best. Our choice, as all limits here."""
_COPY: Final = 12
"""The fewest characters that are a copy: a shorter answer may well stand in its question."""


def signs_of(entry: Mapping[str, Any], samples: Sequence[Sample], *, best_valid: float = 0.0) -> list[str]:
    """The signs of an iteration.

    Args:
        entry: What was logged last; numbers that were not measured are absent or None.
        samples: The iteration's completions.
        best_valid: The best share of valid completions so far.
    """
    return [*_of_numbers(entry), *_of_validity(samples, best_valid), *_of_workflows(samples), *_of_answers(samples)]


def valid_share(samples: Sequence[Sample]) -> float:
    """The share of completions that hold a valid workflow."""
    return 1 - sum(sample.scored.outcome == "invalid" for sample in samples) / len(samples)


def _of_numbers(entry: Mapping[str, Any]) -> Iterator[str]:
    if (entry.get("frac_reward_zero_std") or 0.0) > 0.8:
        yield "most groups have equal rewards: nothing is learned from them; take harder or easier questions"
    entropy = entry.get("entropy")
    if entropy is not None and entropy < 0.01:
        yield "the entropy is nearly 0: the model always writes the same; raise beta or lower the learning rate"


def _of_validity(samples: Sequence[Sample], best: float) -> Iterator[str]:
    valid = valid_share(samples)
    if valid < 0.5:
        yield "fewer than half of the completions are valid: warm up longer, or lower the learning rate"
    elif valid < best - _FALL:
        yield "the share of valid completions has fallen by more than a tenth: raise beta or lower the learning rate"


def _of_workflows(samples: Sequence[Sample]) -> Iterator[str]:
    written = [sample.scored.workflow for sample in samples if sample.scored.workflow is not None]
    if len(written) < 2:
        return
    if Counter(written).most_common(1)[0][1] > 0.95 * len(written):
        yield "nearly every completion is the same workflow: raise beta, or look whether the questions need another"
    if sum(any(not step.subtask.strip() for step in each) for each in written) > len(written) / 10:
        yield "subtasks are empty: the Conductor leaves everything to the workers"


def _of_answers(samples: Sequence[Sample]) -> Iterator[str]:
    if sum(not sample.scored.has_score for sample in samples) > len(samples) / 4:
        yield "more than a quarter of the completions have no score: look at the workers and the graders"
    if sum(map(_is_copied, samples)) > len(samples) / 4:
        yield "answers are copied from the question: look at the samples, and at what the grader takes for right"


def _is_copied(sample: Sample) -> bool:
    run = sample.scored.run
    if run is None or run.answer is None or not isinstance(run.question, str):
        return False
    answer = " ".join(run.answer.split())
    return len(answer) >= _COPY and answer in " ".join(run.question.split())
