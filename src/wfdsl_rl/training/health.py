"""Health checks of a training: warnings about its metrics, workflows and answers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from wfdsl_rl.training.samples import Sample

_PATIENCE: Final = 10
"""Consecutive iterations before a warning is given."""
_REASONS: Final = 5
"""How many reasons for completions without a score are printed."""
_FALL: Final = 0.1
"""How far the share of valid completions may fall below its best. Our choice, as all limits here."""
_COPY: Final = 12
"""The fewest characters that count as a copy: a shorter answer may be part of its question."""


class HealthChecks:
    """Warns once about what was wrong for several iterations in a row, and why completions have no score."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._seen: dict[str, int] = {}
        self._entry: Mapping[str, Any] = {}
        self._valid: deque[float] = deque(maxlen=_PATIENCE)
        self._best_valid = 0.0
        self._told: set[str] = set()

    def on_metrics(self, entry: Mapping[str, Any]) -> None:
        """Remember a log entry; it is checked with the next batch."""
        if "reward" in entry:
            self._entry = entry

    def on_samples(self, samples: Sequence[Sample]) -> None:
        """Check a batch."""
        self._report_unscored(samples)
        if samples[0].row["split"] != "train":
            return
        found = warnings_for(self._entry, samples, best_valid=self._best_valid)
        self._valid.append(valid_share(samples))
        if len(self._valid) == _PATIENCE:
            self._best_valid = max(self._best_valid, sum(self._valid) / _PATIENCE)
        self._seen = {warning: self._seen.get(warning, 0) + 1 for warning in found}
        for warning, count in self._seen.items():
            if count == _PATIENCE:
                self._say(f"warning: for {count} iterations: {warning}")

    def _report_unscored(self, samples: Sequence[Sample]) -> None:
        """Print each reason for completions without a score once, up to a limit."""
        unscored = [sample for sample in samples if not sample.scored.has_score]
        for sample in unscored:
            reason = sample.scored.problems[0]
            if reason not in self._told and len(self._told) < _REASONS:
                self._told.add(reason)
                self._say(
                    f"warning: step {sample.step}: {len(unscored)} of {len(samples)} completions have no score and "
                    f"are left out, such as: {reason}"
                )


def warnings_for(entry: Mapping[str, Any], samples: Sequence[Sample], *, best_valid: float = 0.0) -> list[str]:
    """The warnings of one iteration.

    Args:
        entry: The latest log entry; missing metrics are absent or None.
        samples: The iteration's completions.
        best_valid: The best share of valid completions so far.
    """
    return [*_of_numbers(entry), *_of_validity(samples, best_valid), *_of_workflows(samples), *_of_answers(samples)]


def valid_share(samples: Sequence[Sample]) -> float:
    """The share of completions that hold a valid workflow."""
    return 1 - sum(sample.scored.outcome == "invalid" for sample in samples) / len(samples)


def _of_numbers(entry: Mapping[str, Any]) -> Iterator[str]:
    if (entry.get("frac_reward_zero_std") or 0.0) > 0.8:
        yield "most groups have equal rewards, so nothing is learned from them; use harder or easier questions"
    entropy = entry.get("entropy")
    if entropy is not None and entropy < 0.01:
        yield "the entropy is nearly 0: the model always writes the same; raise beta or lower the learning rate"


def _of_validity(samples: Sequence[Sample], best: float) -> Iterator[str]:
    valid = valid_share(samples)
    if valid < 0.5:
        yield "fewer than half of the completions are valid: increase the SFT steps, or lower the learning rate"
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
