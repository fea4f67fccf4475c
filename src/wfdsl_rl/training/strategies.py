"""Strategies over a training: what the workflows of each window of iterations are like, beside accuracy.

Read from the samples that a training keeps. A correlation is Spearman's over iterations. Neighbouring iterations are
alike, so its interval comes from resampling blocks of ten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Final, NamedTuple

from wfdsl.errors import UsageError
from wfdsl.evaluation.statistics import Interval, rank_correlation
from wfdsl.evaluation.workflow_statistics import Case, WorkflowStatistics, statistics_of
from wfdsl_rl.training.samples import case_of, read_samples

HEAD: Final = ("iterations", "valid", "accuracy", "steps", "topologies", "roles", "bits", "distinct", "new")
_BLOCK: Final = 10
"""Iterations that are resampled together. Our choice."""
_RESAMPLES: Final = 400
_MEASURES: Final = {
    "pattern bits": attrgetter("statistics.pattern_bits"),
    "distinct patterns": attrgetter("statistics.distinct"),
    "steps": attrgetter("statistics.mean_steps"),
}


class Window(NamedTuple):
    """Some iterations in a row; `first` and `last` count from 0."""

    first: int
    last: int
    valid: float
    accuracy: float | None
    """Share of right answers among the graded ones; a completion counts once, however often it was run."""
    new: int
    """Distinct workflows, subtasks apart, that no earlier window has."""
    statistics: WorkflowStatistics

    @property
    def row(self) -> list[str]:
        """What a table shows under `HEAD`."""
        found, total = self.statistics, max(self.statistics.workflows, 1)
        roles = [f"{role} {count / total:.0%}" for role, count in found.roles.items() if count]
        return [
            f"{self.first}-{self.last}",
            f"{self.valid:.1%}",
            "-" if self.accuracy is None else f"{self.accuracy:.1%}",
            f"{found.mean_steps:.2f}",
            ", ".join(f"{name} {count / total:.0%}" for name, count in islice(found.topologies.items(), 2)),
            ", ".join(roles) or "-",
            f"{found.pattern_bits:.2f}",
            f"{found.distinct:,}",
            f"{self.new:,}",
        ]


@dataclass(frozen=True, slots=True)
class Strategies:
    """A stage of a training."""

    stage: str
    windows: tuple[Window, ...]
    compliant: int | None
    """The first iteration from which on all windows' shares of valid completions are at least 95 %."""
    correlations: Mapping[str, Interval]
    """Of a measure of diversity with accuracy; those that do not vary are left out."""

    @property
    def lines(self) -> list[str]:
        """What is said below the table."""
        lasts = "never lasts: stop" if self.compliant is None else f"lasts from iteration {self.compliant}: go"
        lines = [f"95 % of valid completions {lasts}"]
        for name, each in self.correlations.items():
            rank = f"{each.value:+.2f} ({each.low:+.2f} to {each.high:+.2f})"
            lines.append(f"accuracy and {name}: rank correlation {rank}")
        return lines


def strategies_of(folder: Path, *, every: int = _BLOCK) -> list[Strategies]:
    """Each stage of the training in a folder, in windows of `every` iterations.

    Raises:
        UsageError: it has no samples.
    """
    stages = sorted(path.parent for path in folder.glob("*/samples") if any(path.glob("step-*.jsonl.gz")))
    if not stages:
        raise UsageError(f"{folder} has no samples of a training: name the folder that wfdsl-train wrote (--out)")
    kept = {stage.name: map(read_samples, sorted(stage.glob("samples/step-*"))) for stage in stages}
    read = {name: [(own[0]["step"], [*map(case_of, own)]) for own in files] for name, files in kept.items()}
    return [_of_stage(name, iterations, every) for name, iterations in read.items()]


def _window(iterations: Sequence[tuple[int, list[Case]]], seen: set[str]) -> Window:
    """Iterations together; their patterns are added to those that were seen."""
    cases = [case for _, own in iterations for case in own]
    found = statistics_of(case.workflow for case in cases if case.workflow is not None)
    known, new = [case.right for case in cases if case.right is not None], found.patterns.keys() - seen
    seen |= new
    accuracy, valid = fmean(known) if known else None, 1 - fmean(case.invalid for case in cases)
    return Window(iterations[0][0], iterations[-1][0], valid, accuracy, len(new), found)


def _of_stage(stage: str, iterations: Sequence[tuple[int, list[Case]]], every: int) -> Strategies:
    seen: set[str] = set()
    windows = [_window(iterations[at : at + every], seen) for at in range(0, len(iterations), every)]
    low = [window.valid < 0.95 for window in windows]
    after = len(low) - low[::-1].index(True) if True in low else 0
    ones = [_window([each], set()) for each in iterations]
    correlations: dict[str, Interval] = {}
    for name, measure in _MEASURES.items():
        rank = _correlated([(measure(each), each.accuracy) for each in ones if each.accuracy is not None])
        correlations |= {} if rank is None else {name: rank}
    return Strategies(stage, tuple(windows), windows[after].first if after < len(windows) else None, correlations)


def _correlated(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    if len(pairs) < 2 * _BLOCK or (found := rank_correlation(*zip(*pairs, strict=True))) is None:
        return None
    draw, starts = Random(0), range(len(pairs) - _BLOCK + 1)
    blocks = [[draw.choice(starts) for _ in range(len(pairs) // _BLOCK)] for _ in range(_RESAMPLES)]
    resampled = ([pair for at in block for pair in pairs[at : at + _BLOCK]] for block in blocks)
    ranks = (rank_correlation(*zip(*each, strict=True)) for each in resampled)
    ordered = sorted(each for each in ranks if each is not None)
    return Interval(found, ordered[len(ordered) * 25 // 1000], ordered[len(ordered) * 975 // 1000])
