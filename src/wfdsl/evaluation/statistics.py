"""Statistics of trials: accuracies with standard errors and bounds, and paired differences between policies.

Answers to one question are not independent, so a question is the unit of every standard error (a cluster), whatever its
tasks are called; with one repeat this is the usual standard error of a share. Unjudged answers and failed runs are in
no accuracy: they are counted next to it, and the bounds say what it would be if all of them were wrong, or all right.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist, StatisticsError, correlation, fmean
from typing import NamedTuple

from wfdsl.evaluation.trials import Trial

TWO_SIDED = NormalDist().inv_cdf(0.975)
"""Standard errors in half of a 95 % interval."""
_MOST_REPEATS = 1000  # differences are fractions of repeats: floats are read back as such


class Mean(NamedTuple):
    """A figure and its standard error; the error is None where one task alone gives no idea of it."""

    value: float
    error: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """How often a policy was right."""

    tasks: int
    """Tasks with at least one judged answer; tasks with the same content count once."""
    right: int
    wrong: int
    unanswered: int
    """Wrong ones that state no answer."""
    unjudged: int
    failed: int
    value: float | None
    """Right answers among judged ones; None if nothing was judged."""
    error: float | None
    """The standard error of `value`, clustered by task; None with fewer than two tasks.

    Where all tasks agree, it is the half width of Wilson's interval for one standard error: 0 of 50 is not certain.
    """
    low: float
    """The accuracy if everything that is not judged were wrong; 0 without results."""
    high: float
    """The accuracy if everything that is not judged were right; 1 without results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much more often the first of two policies was right, on the tasks that both were judged on."""

    tasks: int
    all_tasks: int
    """Tasks that either has a result for: those that are not compared are the rest."""
    first: float
    """The accuracy of the first on these tasks, each task counting once."""
    second: float
    value: float
    """first - second."""
    low: float
    """The lower end of the 95 % confidence interval."""
    high: float
    better: int
    """Tasks on which the first did better."""
    worse: int
    p_value: float
    """Of the two-sided exact sign-flip test on the differences (with one repeat, McNemar's exact test)."""


def accuracy_of(trials: Iterable[Trial]) -> Accuracy:
    """The accuracy over some trials of one policy."""
    found = list(trials)
    scores, counts = _judged(found), Counter(trial.outcome for trial in found)
    mean = clustered_mean(scores.values())
    if mean is not None and mean.error == 0:
        mean = Mean(mean.value, wilson_error(mean.value, len(scores)))
    return Accuracy(
        tasks=len(scores),
        right=counts["right"],
        wrong=counts["wrong"],
        unanswered=sum(trial.outcome == "wrong" and trial.extracted is None for trial in found),
        unjudged=counts["unjudged"],
        failed=counts["failed"],
        value=None if mean is None else mean.value,
        error=None if mean is None else mean.error,
        low=counts["right"] / max(len(found), 1),
        high=1 - counts["wrong"] / max(len(found), 1),
    )


def clustered_mean(clusters: Iterable[Sequence[float]]) -> Mean | None:
    """The mean over all values, and its standard error when values of a cluster go together; None without values.

    With clusters i of sizes n_i, N values in all and G clusters: error² = G / (G - 1) · Σ_i (Σ_j (x_ij - mean))² / N².
    """
    groups = [list(cluster) for cluster in clusters if len(cluster)]
    total = sum(map(len, groups))
    if not total:
        return None
    mean = sum(map(sum, groups)) / total
    if len(groups) < 2:
        return Mean(mean, None)
    squares = sum(sum(value - mean for value in group) ** 2 for group in groups)
    return Mean(mean, math.sqrt(len(groups) / (len(groups) - 1) * squares) / total)


def wilson_error(share: float, count: int) -> float:
    """How far Wilson's interval of one standard error reaches from a share of this many.

    Source: Wilson, Probable inference, the law of succession, and statistical inference, 1927.
    """
    centre = (share + 1 / (2 * count)) / (1 + 1 / count)
    half = math.sqrt(share * (1 - share) / count + 1 / (4 * count**2)) / (1 + 1 / count)
    return half + abs(centre - share)


def mean_of(means: Sequence[Mean]) -> Mean | None:
    """The unweighted mean of independent means, such as the average over benchmarks."""
    if not means:
        return None
    known = [each.error for each in means if each.error is not None]
    error = math.hypot(*known) / len(known) if len(known) == len(means) else None
    return Mean(fmean(each.value for each in means), error)


def difference_of(first: Iterable[Trial], second: Iterable[Trial]) -> Difference | None:
    """Compare two policies task by task; None if they have no judged task in common.

    Tasks are the same if their content is, whatever they are called.
    """
    trials = [list(first), list(second)]
    one, other = (scores_of(each) for each in trials)
    common = sorted(one.keys() & other.keys())
    if not common:
        return None
    differences = [one[task] - other[task] for task in common]
    return Difference(
        tasks=len(common),
        all_tasks=len({trial.task_hash for each in trials for trial in each}),
        first=fmean(one[task] for task in common),
        second=fmean(other[task] for task in common),
        **interval_of(differences)._asdict(),
        better=sum(value > 0 for value in differences),
        worse=sum(value < 0 for value in differences),
        p_value=sign_flip_test(differences),
    )


def sign_flip_test(differences: Sequence[float]) -> float:
    """The two-sided exact p-value of a sum of differences, if each is as likely with the other sign."""
    parts = [Fraction(abs(value)).limit_denominator(_MOST_REPEATS) for value in differences if value]
    unit = math.lcm(*(part.denominator for part in parts))
    sizes = [int(part * unit) for part in parts]
    shares = {0: 1.0}
    for size in sizes:
        following: dict[int, float] = defaultdict(float)
        for total, share in shares.items():
            following[total + size] += share / 2
            following[total - size] += share / 2
        shares = following
    found = abs(round(sum(differences) * unit))
    return min(1.0, sum(share for total, share in shares.items() if abs(total) >= found))


def scores_of(trials: Iterable[Trial]) -> dict[str, float]:
    """The mean over repeats of each judged task, by the task's content."""
    return {task: fmean(values) for task, values in _judged(trials).items()}


def _judged(trials: Iterable[Trial]) -> dict[str, list[bool]]:
    found: dict[str, list[bool]] = defaultdict(list)
    for trial in trials:
        if trial.right is not None:
            found[trial.task_hash].append(trial.right)
    return found


class Interval(NamedTuple):
    """A mean with its 95 % confidence interval."""

    value: float
    low: float
    high: float


def interval_of(values: Sequence[float]) -> Interval:
    """The mean of independent differences from -1 to 1, with an interval that holds near the edges too.

    One task more is counted as better and one as worse, so that 30 tasks without a difference are not certain.
    Source: Bonett and Price, Adjusted Wald confidence interval for a difference of binomial proportions based on paired
    data, 2012; values between -1 and 1, of several repeats, are our extension.
    """
    count = len(values) + 2
    centre = sum(values) / count
    variance = (sum(value * value for value in values) + 2) / count - centre**2
    half = TWO_SIDED * math.sqrt(variance / count)
    return Interval(sum(values) / len(values), max(centre - half, -1.0), min(centre + half, 1.0))


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rank correlation of pairs; equal values share their mean rank. None where one side is constant.

    Source: Spearman, The proof and measurement of association between two things, 1904.
    """
    try:
        return correlation(_ranks(first), _ranks(second))
    except StatisticsError:
        return None


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]
