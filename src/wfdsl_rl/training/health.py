"""Health checks of a training: warnings about its metrics, workflows and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from wfdsl.evaluation.signatures import signatures_of
from wfdsl_rl.scoring import CUT, Sample
from wfdsl_rl.training.samples import Iteration, iteration_of

_PATIENCE: Final = 10
"""Consecutive iterations before a warning is given."""
_REASONS: Final = 5
"""How many reasons for completions without a score are printed."""
_CONSTANT: Final = 0.8
"""The share of groups with equal rewards above which next to nothing is learned. Our choice, as all limits here."""
_WINDOW: Final = 3
"""Iterations over which a worker's share is averaged, to look for a collapse."""
_COLLAPSED: Final = 0.9
"""The share of one worker in a collapse."""
_SPREAD: Final = 0.75
"""The highest share of that worker before it."""


class HealthChecks:
    """Warns once about what was wrong for several iterations in a row, about a collapse at once, and says why
    completions have no score."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._seen: dict[str, int] = {}
        self._entry: Mapping[str, Any] = {}
        self._told: set[str] = set()
        self._iterations: list[Iteration] = []
        self._collapsed = False

    def on_metrics(self, entry: Mapping[str, Any]) -> None:
        """Remember a log entry; it is checked with the next batch."""
        if "reward" in entry:
            self._entry = entry

    def on_samples(self, samples: Sequence[Sample]) -> None:
        """Check a batch."""
        self._report_unscored(samples)
        if samples[0].row["split"] != "train":
            return
        iteration = iteration_of(samples)
        self._iterations.append(iteration)
        if not self._collapsed and (warning := collapse_of(self._iterations)) is not None:
            self._collapsed = True
            self._say(f"warning: step {iteration.step}: {warning}")
        found = warnings_for(self._entry, samples, iteration)
        if len(self._iterations) >= _PATIENCE:
            last = (case for each in self._iterations[-_PATIENCE:] for case in each.cases)
            signs = signatures_of(last).warnings
            found |= {code: signs[code] for code in ("mismatch", "loops") if code in signs}
        self._seen = {code: self._seen.get(code, 0) + 1 for code in found}
        for code, count in self._seen.items():
            if count == _PATIENCE:
                self._say(f"warning: for {count} iterations: {found[code]}")

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


def collapse_of(iterations: Sequence[Iteration]) -> str | None:
    """The warning that nearly all calls of the last iterations ask one worker, and did not before; None if not so."""
    if len(iterations) <= _WINDOW:
        return None
    last, calls = iterations[-_WINDOW:], iterations[-1].workers
    worker = max(calls, key=calls.__getitem__, default=-1)
    now = fmean(each.share(worker) for each in last)
    if now < _COLLAPSED:
        return None
    before = min(
        fmean(each.share(worker) for each in iterations[at : at + _WINDOW]) for at in range(len(iterations) - _WINDOW)
    )
    if before > _SPREAD:
        return None
    return (
        f"nearly all steps ask worker {worker} ({now:.0%}, {before:.0%} before), whatever the question: lower the "
        "learning rate, ask more questions per step of equal numbers of each kind, or raise beta"
    )


def warnings_for(entry: Mapping[str, Any], samples: Sequence[Sample], iteration: Iteration) -> dict[str, str]:
    """The warnings of one iteration that are given once they last, by what they are about.

    Args:
        entry: The latest log entry; missing metrics are absent or None.
        samples: The iteration's completions.
        iteration: Their statistics.
    """
    entropy, found = entry.get("entropy"), {}
    cut = sum(CUT in sample.scored.problems for sample in samples)
    unscored = sum(not sample.scored.has_score for sample in samples)
    if iteration.constant_groups > _CONSTANT:
        found["constant-groups"] = (
            "most groups have equal rewards, so nothing is learned from them; use harder or easier questions"
        )
    if entropy is not None and entropy < 0.01:
        found["low-entropy"] = (
            "the entropy is nearly 0: the model always writes the same; raise beta or lower the learning rate"
        )
    if cut > len(samples) / 10:
        found["cut"] = (
            "more than a tenth of the completions are cut: raise max_completion_length, or show shorter ones in SFT"
        )
    if iteration.valid < 0.5:
        found["few-valid"] = (
            "fewer than half of the completions are valid: increase the SFT steps, or lower the learning rate"
        )
    if unscored > len(samples) / 4:
        found["no-score"] = "more than a quarter of the completions have no score: look at the workers and the graders"
    return found
