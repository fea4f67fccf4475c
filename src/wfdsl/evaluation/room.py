"""Room for a Conductor: how often a choice among the policies of an evaluation, made for each question, would be right.

A question's policy is chosen by results that it is then not measured by: those on other questions of its domain, and
its own other repeats. So the value is what a chooser that reads the question can reach, not the luck of the best of
many draws, and of equal policies there is no room. What the choice is better by is compared at its cost.

Source: cross-fitting as in Chernozhukov et al., arXiv 1608.00060; the count towards the domain's share is our choice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.evaluation.equal_cost import Rival, rival_of
from wfdsl.evaluation.statistics import TWO_SIDED, Interval, clustered_mean, scores_of
from wfdsl.evaluation.trials import Trial

PRIOR: Final = 5.0
"""So many results' worth of a policy's share in the domain are added to its own on a question, and as many of its share
on all questions to the domain's; our choice."""
WORTH: Final = 0.03
"""The gain, as a share of right answers, below which there is no room to speak of; our choice."""
Verdict: TypeAlias = Literal["room", "no room", "not known"]
_CHOICE: Final = "the choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What choosing among some policies for each question would give."""

    among: tuple[str, ...]
    """The policies."""
    tasks: int
    """Those that were judged for all policies."""
    accuracy: Interval
    """Of the choice, with its 95 % interval."""
    calls: float
    """Calls of workers for a question, on average."""
    cost: float
    """For a question: US dollars by the price list, or tokens where a price is not known."""
    rival: Rival
    """What policies without a choice reach at this cost, and how far the choice is above it."""

    @property
    def verdict(self) -> Verdict:
        """`room`: the gain is certain, and at least `WORTH`; `no room`: it is certain to be less; else `not known`."""
        gain = self.rival.difference
        if gain.high < WORTH or gain.low > 0:
            return "room" if gain.value >= WORTH else "no room"
        return "not known"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "accuracy": self.accuracy._asdict(), "verdict": self.verdict}


def room_among(trials: Sequence[Trial], among: Sequence[str], *, in_usd: bool) -> Room:
    """What a choice among some policies for each question gives; all policies of the trials are rivals.

    Raises:
        UsageError: there are fewer than two policies to choose among, or no task that was judged for all policies.
    """
    if len(among) < 2:
        raise UsageError("a choice needs at least two policies: evaluate `workers`, and workflows")
    by_task: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.judged:
            by_task[trial.task_hash].append(trial)
    policies = {trial.policy for trial in trials}
    common = [found for found in by_task.values() if {each.policy for each in found} == policies]
    if not common:
        raise UsageError("no task was judged for all policies: evaluate them on the same tasks, and to the end")
    choice = _Choice(common, among)
    picked = [trial for found in common for trial in choice.of(found)]
    known = [trial for found in common for trial in found]
    of_policy = {name: [trial for trial in known if trial.policy == name] for name in policies}
    costs = {name: _cost(own, in_usd=in_usd) for name, own in of_policy.items()}
    cost = max(_cost(picked, in_usd=in_usd), min(costs.values()))
    scores = {name: scores_of(own) for name, own in of_policy.items()}
    rival = rival_of(_CHOICE, {**costs, _CHOICE: cost}, {**scores, _CHOICE: scores_of(picked)})
    assert rival is not None  # something costs no more, by the line before the last
    return Room(
        among=tuple(among),
        tasks=len(common),
        accuracy=_accuracy(picked),
        calls=sum(trial.calls for trial in picked) / len(picked),
        cost=cost,
        rival=rival,
    )


class _Choice:
    """A policy for each question, by the results of policies on other questions and on its other repeats."""

    def __init__(self, tasks: Sequence[Sequence[Trial]], among: Sequence[str]) -> None:
        self._among = among
        self._right: Counter[tuple[str, str]] = Counter()
        self._all: Counter[tuple[str, str]] = Counter()
        for trial in (trial for found in tasks for trial in found):
            self._count(trial, 1)

    def of(self, found: Sequence[Trial]) -> list[Trial]:
        """The trials of a question that the choice leads to, one for each repeat."""
        for trial in found:
            self._count(trial, -1)
        picked = []
        for repeat in sorted({trial.repeat for trial in found}):
            others = [trial for trial in found if trial.repeat != repeat]
            own = {trial.policy: trial for trial in found if trial.repeat == repeat and trial.policy in self._among}
            if own:
                best = max(own, key=lambda name: self._share(name, own[name], others))
                picked.append(own[best])
        for trial in found:
            self._count(trial, 1)
        return picked

    def _count(self, trial: Trial, sign: int) -> None:
        for group in ("", _group(trial)):
            self._right[trial.policy, group] += sign * (trial.outcome == "right")
            self._all[trial.policy, group] += sign

    def _share(self, policy: str, trial: Trial, others: Sequence[Trial]) -> float:
        share = self._right[policy, ""] / max(self._all[policy, ""], 1)
        domain = policy, _group(trial)
        share = (self._right[domain] + PRIOR * share) / (self._all[domain] + PRIOR)
        own = [each.outcome == "right" for each in others if each.policy == policy]
        return (sum(own) + PRIOR * share) / (len(own) + PRIOR)


def _group(trial: Trial) -> str:
    return f"{trial.source}/{trial.domain}"


def _cost(trials: Sequence[Trial], *, in_usd: bool) -> float:
    return sum((trial.list_usd or 0.0) if in_usd else trial.tokens for trial in trials) / len(trials)


def _accuracy(picked: Sequence[Trial]) -> Interval:
    by_task: dict[str, list[float]] = defaultdict(list)
    for trial in picked:
        by_task[trial.task_hash].append(float(trial.outcome == "right"))
    mean = clustered_mean(by_task.values())
    assert mean is not None  # there are tasks
    half = TWO_SIDED * (mean.error or 0.0)
    return Interval(mean.value, mean.value - half, mean.value + half)
