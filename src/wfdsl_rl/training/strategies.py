"""Strategies over a training: what the workflows of each window of iterations are like, beside accuracy.

Read from the samples that a training keeps. A correlation is Spearman's over iterations. Neighbouring iterations are
alike, so its interval comes from resampling blocks of ten.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Final

from wfdsl.errors import UsageError
from wfdsl.evaluation.statistics import Interval, rank_correlation
from wfdsl.evaluation.workflow_statistics import WorkflowStatistics, statistics_of
from wfdsl.language.workflow import Workflow
from wfdsl_rl.scoring import right_share

_BLOCK: Final = 10
"""Iterations that are resampled together. Our choice."""
_RESAMPLES: Final = 400


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one batch of completions was like."""

    step: int
    valid: float
    accuracy: float | None
    """Share of right answers among the graded ones; a completion counts once, however often it was run."""
    workflows: tuple[Workflow, ...]
    """The valid ones."""


@dataclass(frozen=True, slots=True)
class Window:
    """Some iterations in a row."""

    first: int
    """Counted from 0, as `last`."""
    last: int
    valid: float
    accuracy: float | None
    new: int
    """Distinct workflows, subtasks apart, that no earlier window has."""
    statistics: WorkflowStatistics


@dataclass(frozen=True, slots=True)
class Strategies:
    """A stage of a training."""

    stage: str
    windows: tuple[Window, ...]
    compliant: int | None
    """The first iteration from which on all windows' shares of valid completions are at least 95 %."""
    correlations: Mapping[str, Interval]
    """Of a measure of diversity with accuracy; those that do not vary are left out."""


def strategies_of(folder: Path, *, every: int = _BLOCK) -> list[Strategies]:
    """Each stage of the training in a folder, in windows of `every` iterations.

    Raises:
        UsageError: it has no samples.
    """
    stages = sorted(path.parent for path in folder.glob("*/samples") if any(path.glob("step-*.jsonl.gz")))
    if not stages:
        raise UsageError(f"{folder} has no samples of a training: name the folder that wfdsl-train wrote (--out)")
    return [_of_stage(stage.name, _read(stage / "samples"), every) for stage in stages]


def _read(samples: Path) -> list[Iteration]:
    found = []
    for path in sorted(samples.glob("step-*.jsonl.gz")):
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        flows = [Workflow.from_lists(**row["workflow"]) for row in rows if row["workflow"] is not None]
        shares = [share for row in rows if (share := right_share(row["outcomes"])) is not None]
        valid = 1 - sum(row["outcome"] == "invalid" for row in rows) / len(rows)
        found.append(Iteration(rows[0]["step"], valid, fmean(shares) if shares else None, tuple(flows)))
    return found


def _of_stage(stage: str, iterations: Sequence[Iteration], every: int) -> Strategies:
    windows: list[Window] = []
    seen: set[str] = set()
    for at in range(0, len(iterations), every):
        part = iterations[at : at + every]
        flows = list(chain.from_iterable(each.workflows for each in part))
        found = statistics_of(flows)
        graded = [each.accuracy for each in part if each.accuracy is not None]
        valid, accuracy = fmean(each.valid for each in part), fmean(graded) if graded else None
        windows.append(Window(part[0].step, part[-1].step, valid, accuracy, len(found.patterns.keys() - seen), found))
        seen |= found.patterns.keys()
    low = [window.valid < 0.95 for window in windows]
    after = len(low) - low[::-1].index(True) if True in low else 0
    return Strategies(
        stage,
        tuple(windows),
        windows[after].first if after < len(windows) else None,
        {name: rank for name, of in _MEASURES.items() if (rank := _correlated(iterations, of)) is not None},
    )


_MEASURES: Final[dict[str, Callable[[WorkflowStatistics], float]]] = {
    "pattern bits": lambda found: found.pattern_bits,
    "distinct patterns": lambda found: found.distinct,
    "steps": lambda found: found.mean_steps,
}


def _correlated(iterations: Sequence[Iteration], measure: Callable[[WorkflowStatistics], float]) -> Interval | None:
    pairs = [(measure(statistics_of(each.workflows)), each.accuracy) for each in iterations]
    known = [(value, accuracy) for value, accuracy in pairs if accuracy is not None]
    found = _rank(known)
    if found is None or len(known) < 2 * _BLOCK:
        return None
    draw, starts = Random(0), range(len(known) - _BLOCK + 1)
    resampled = []
    for _ in range(_RESAMPLES):
        chosen = [draw.choice(starts) for _ in range(len(known) // _BLOCK)]
        resampled.append(_rank([pair for start in chosen for pair in known[start : start + _BLOCK]]))
    ordered = sorted(each for each in resampled if each is not None)
    return Interval(found, ordered[len(ordered) * 25 // 1000], ordered[len(ordered) * 975 // 1000])


def _rank(pairs: Sequence[tuple[float, float]]) -> float | None:
    return rank_correlation([value for value, _ in pairs], [accuracy for _, accuracy in pairs])


def head_and_rows(found: Strategies) -> tuple[list[str], list[list[str]]]:
    """The table of a stage's windows."""
    head = ["iterations", "valid", "accuracy", "steps", "topologies", "roles", "bits", "distinct", "new"]
    return head, [_row(window) for window in found.windows]


def _row(window: Window) -> list[str]:
    found, total = window.statistics, max(window.statistics.workflows, 1)
    return [
        f"{window.first}-{window.last}",
        f"{window.valid:.1%}",
        "-" if window.accuracy is None else f"{window.accuracy:.1%}",
        f"{found.mean_steps:.2f}",
        ", ".join(f"{name} {count / total:.0%}" for name, count in Counter(found.topologies).most_common(2)),
        ", ".join(f"{role} {count / total:.0%}" for role, count in found.roles.items() if count) or "-",
        f"{found.pattern_bits:.2f}",
        f"{found.distinct:,}",
        f"{window.new:,}",
    ]


def lines_of(found: Strategies) -> list[str]:
    """What is said below the table."""
    reached = "never lasts" if found.compliant is None else f"lasts from iteration {found.compliant}"
    lines = [f"95 % of valid completions {reached}: {'stop' if found.compliant is None else 'go'}"]
    for name, each in found.correlations.items():
        lines.append(f"accuracy and {name}: rank correlation {each.value:+.2f} ({each.low:+.2f} to {each.high:+.2f})")
    return lines
