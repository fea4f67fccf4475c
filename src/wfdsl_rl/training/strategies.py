"""Strategies over a training: what the workflows of each window of iterations are like, beside accuracy.

Read from the samples that a training keeps. A correlation is Spearman's over iterations. Neighbouring iterations are
alike, so its interval comes from resampling blocks of ten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Final, NamedTuple

from wfdsl.errors import UsageError
from wfdsl.evaluation.statistics import Interval, rank_correlation
from wfdsl.evaluation.workflow_statistics import WorkflowStatistics, statistics_of
from wfdsl.language.workflow import Workflow
from wfdsl_rl.scoring import right_share
from wfdsl_rl.training.samples import read_samples

HEAD: Final = ("iterations", "valid", "accuracy", "steps", "topologies", "roles", "bits", "distinct", "new")
_BLOCK: Final = 10
"""Iterations that are resampled together. Our choice."""
_RESAMPLES: Final = 400
_MEASURES: Final[dict[str, Callable[[WorkflowStatistics], float]]] = {
    "pattern bits": lambda found: found.pattern_bits,
    "distinct patterns": lambda found: found.distinct,
    "steps": lambda found: found.mean_steps,
}


class _Iteration(NamedTuple):
    step: int
    valid: float
    accuracy: float | None
    """Share of right answers among the graded ones; a completion counts once, however often it was run."""
    workflows: list[Workflow]


@dataclass(frozen=True, slots=True)
class Window:
    """Some iterations in a row; `first` and `last` count from 0."""

    first: int
    last: int
    valid: float
    accuracy: float | None
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
            ", ".join(f"{name} {count / total:.0%}" for name, count in Counter(found.topologies).most_common(2)),
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
    return [_of_stage(stage.name, [*map(_read, sorted(stage.glob("samples/step-*")))], every) for stage in stages]


def _read(path: Path) -> _Iteration:
    rows = read_samples(path)
    shares = [share for row in rows if (share := right_share(row["outcomes"])) is not None]
    return _Iteration(
        rows[0]["step"],
        1 - sum(row["outcome"] == "invalid" for row in rows) / len(rows),
        fmean(shares) if shares else None,
        [Workflow.from_lists(**row["workflow"]) for row in rows if row["workflow"] is not None],
    )


def _of_stage(stage: str, iterations: Sequence[_Iteration], every: int) -> Strategies:
    windows: list[Window] = []
    seen: set[str] = set()
    for at in range(0, len(iterations), every):
        part = iterations[at : at + every]
        flows = [flow for each in part for flow in each.workflows]
        found = statistics_of(flows)
        known = [each.accuracy for each in part if each.accuracy is not None]
        valid, accuracy = fmean(each.valid for each in part), fmean(known) if known else None
        windows.append(Window(part[0].step, part[-1].step, valid, accuracy, len(found.patterns.keys() - seen), found))
        seen |= found.patterns.keys()
    low = [window.valid < 0.95 for window in windows]
    after = len(low) - low[::-1].index(True) if True in low else 0
    graded = [(statistics_of(each.workflows), each.accuracy) for each in iterations if each.accuracy is not None]
    pairs = {name: [(of(found), accuracy) for found, accuracy in graded] for name, of in _MEASURES.items()}
    correlations = {name: rank for name, own in pairs.items() if (rank := _correlated(own)) is not None}
    return Strategies(stage, tuple(windows), windows[after].first if after < len(windows) else None, correlations)


def _correlated(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    found = _rank(pairs)
    if found is None or len(pairs) < 2 * _BLOCK:
        return None
    draw, starts, resampled = Random(0), range(len(pairs) - _BLOCK + 1), []
    for _ in range(_RESAMPLES):
        chosen = [draw.choice(starts) for _ in range(len(pairs) // _BLOCK)]
        resampled.append(_rank([pair for start in chosen for pair in pairs[start : start + _BLOCK]]))
    ordered = sorted(each for each in resampled if each is not None)
    return Interval(found, ordered[len(ordered) * 25 // 1000], ordered[len(ordered) * 975 // 1000])


def _rank(pairs: Sequence[tuple[float, float]]) -> float | None:
    return rank_correlation([value for value, _ in pairs], [accuracy for _, accuracy in pairs])
