"""Accuracy at equal cost: what each policy takes and has learned from, and how far it is above all others that cost as
much.

Two policies at different costs can be mixed: a question goes to one of them by chance. So what the others reach at a
policy's cost is the best of those that cost no more, and of mixtures of a cheaper and a dearer one. The difference to
it is paired by task. The rival is chosen by the same results, which can only make it look better than it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.evaluation.fit_costs import FitCost
from wfdsl.evaluation.statistics import Interval, Mean, interval_of
from wfdsl.evaluation.summary import PolicySummary

Scores = Mapping[str, float]
"""The score of each judged task, by its content."""
EVERYONE: Final = ("*",)
"""Patterns that every policy matches."""


@dataclass(frozen=True, slots=True)
class Rival:
    """What others reach at a policy's cost."""

    policy: str
    other: str
    """The dearer policy of a mixture; the same one if it is none."""
    share: float
    """The share of questions that goes to `policy`."""
    difference: Interval
    """How much more often the policy was right than its rival."""

    def __str__(self) -> str:
        if self.policy == self.other:
            return self.policy
        return f"{self.share:.0%} {self.policy}, {1 - self.share:.0%} {self.other}"

    def to_dict(self) -> dict[str, Any]:
        """The rival as plain values."""
        mixed = {"policy": self.policy, "other": self.other, "share": self.share}
        return {**mixed, "difference": self.difference._asdict()}


@dataclass(frozen=True, slots=True)
class Standing:
    """A policy among the others."""

    policy: str
    accuracy: Mean
    """The average over benchmarks."""
    calls: float
    """Per sample."""
    cost: float
    """Per sample: US dollars by the price list, or tokens where a price is not known."""
    learned: FitCost | None
    """What it has learned from; None if it has learned nothing."""
    efficient: bool
    """Whether no other policy is as good for less, or better for as much."""
    rival: Rival | None
    """None if nothing else costs as little."""

    def to_dict(self) -> dict[str, Any]:
        """The standing as plain values."""
        learned = None if self.learned is None else {name: getattr(self.learned, name) for name in FitCost.__slots__}
        return {
            "policy": self.policy,
            "accuracy": self.accuracy._asdict(),
            "calls": self.calls,
            "cost": self.cost,
            "learned": learned,
            "efficient": self.efficient,
            "rival": None if self.rival is None else self.rival.to_dict(),
        }


def standings_of(
    policies: Sequence[PolicySummary],
    scores: Mapping[str, Scores],
    learned: Mapping[str, FitCost],
    *,
    among: Sequence[str] = EVERYONE,
) -> list[Standing]:
    """Each policy among the others, from the cheapest to the most expensive; rivals are those that `among` names.

    `among` holds names and patterns of the shell, such as `worker:*`.

    Raises:
        UsageError: a policy has no judged answers in a benchmark, there is no task with a score of all policies, or
            something in `among` names no policy.
    """
    in_usd = cost_in_usd(policies)
    costs = {each.policy: (each.list_usd or 0.0) if in_usd else each.tokens for each in policies}
    rivals = named(among, costs)
    shown = sorted(policies, key=lambda each: costs[each.policy])
    return [
        Standing(
            each.policy,
            _known(each),
            each.calls,
            costs[each.policy],
            learned.get(each.policy),
            not any(_beats(other, each, costs) for other in policies),
            rival_of(each.policy, {name: costs[name] for name in costs if name in {*rivals, each.policy}}, scores),
        )
        for each in shown
    ]


def cost_in_usd(policies: Sequence[PolicySummary]) -> bool:
    """Whether costs are dollars: all prices are known, and not all are zero. Else they are tokens."""
    return all(each.list_usd is not None for each in policies) and any(each.list_usd for each in policies)


def named(patterns: Sequence[str], policies: Collection[str]) -> set[str]:
    """The policies that some names and patterns of the shell name.

    Raises:
        UsageError: one of them names no policy.
    """
    found = {each: {name for name in policies if name == each or fnmatchcase(name, each)} for each in patterns}
    unmatched = next((each for each, matching in found.items() if not matching), None)
    if unmatched is not None:
        raise UsageError(f"no evaluation has the policy {unmatched!r}; they have {', '.join(policies)}")
    return set().union(*found.values())


def rival_of(policy: str, costs: Mapping[str, float], scores: Mapping[str, Scores]) -> Rival | None:
    """The best that other policies reach at the cost of this one; None if none costs as little.

    Raises:
        UsageError: two policies have no judged task in common.
    """
    own = costs[policy]
    common = sorted(set.intersection(*(set(each) for each in scores.values())))
    if not common:
        raise UsageError("the policies have no task in common that was judged for all: evaluate them on the same tasks")
    accuracy = {name: sum(scores[name][task] for task in common) / len(common) for name in costs}
    cheap = [name for name in costs if name != policy and costs[name] <= own]
    dear = [name for name in costs if costs[name] > own]
    mixtures = [(one, one, 1.0) for one in cheap]
    mixtures += [(a, b, (costs[b] - own) / (costs[b] - costs[a])) for a, b in product(cheap, dear)]
    if not mixtures:
        return None
    one, other, share = max(mixtures, key=lambda mix: mix[2] * accuracy[mix[0]] + (1 - mix[2]) * accuracy[mix[1]])
    differences = [
        scores[policy][task] - share * scores[one][task] - (1 - share) * scores[other][task] for task in common
    ]
    return Rival(one, other, share, interval_of(differences))


def _known(policy: PolicySummary) -> Mean:
    if policy.average is None:
        raise UsageError(
            f"policy {policy.policy!r} has no judged answers to some tasks; `wfdsl eval --resume` tries again"
        )
    return policy.average


def _beats(other: PolicySummary, one: PolicySummary, costs: Mapping[str, float]) -> bool:
    """Whether another policy is at least as good for no more, and better in one of the two."""
    mine, its = (costs[one.policy], -_known(one).value), (costs[other.policy], -_known(other).value)
    return its != mine and its[0] <= mine[0] and its[1] <= mine[1]
