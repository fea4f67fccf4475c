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
from typing import Final

from wfdsl.errors import UsageError
from wfdsl.evaluation.fit_costs import FitCost
from wfdsl.evaluation.report import UNKNOWN, Report, Table, between, percent, table_of
from wfdsl.evaluation.statistics import Interval, Mean, interval_of, scores_of
from wfdsl.evaluation.summary import cost_in_usd, summarise
from wfdsl.render.status import dollars

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
    in_usd: bool
    """Whether the cost is dollars."""
    learned: FitCost | None
    """What it has learned from; None if it has learned nothing."""
    efficient: bool
    """Whether no other policy is as good for less, or better for as much."""
    rival: Rival | None
    """None if nothing else costs as little."""


def standings_in(reports: Sequence[Report], *, among: Sequence[str] = EVERYONE) -> list[Standing]:
    """The policies of evaluations at equal cost, from the cheapest, over the tasks that were judged for all of them.

    Rivals are those that `among` names: names and patterns of the shell, such as `worker:*`.

    Raises:
        UsageError: two evaluations have a policy of the same name, policies have no judged task in common, or
            something in `among` names no policy.
    """
    names = [policy for report in reports for policy in report.policies]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two of the folders have a policy {twice!r}: evaluate it once")
    scores = {policy: scores_of(report.of(policy)) for report in reports for policy in report.policies}
    common = common_tasks(scores)
    trials = [trial for report in reports for trial in report.trials if trial.task_hash in common]
    policies = summarise(trials, policies=names).policies
    in_usd = cost_in_usd(policies)
    costs = {each.policy: each.cost(in_usd=in_usd) for each in policies}
    averages = {each.policy: each.average for each in policies if each.average is not None}
    learned = {name: cost for report in reports for name, cost in report.fit_costs.items()}
    rivals = named(among, costs)

    def beats(other: str, one: str) -> bool:
        """Whether another policy is at least as good for no more, and better in one of the two."""
        its, mine = ((costs[name], -averages[name].value) for name in (other, one))
        return its != mine and its[0] <= mine[0] and its[1] <= mine[1]

    return [
        Standing(
            policy=each.policy,
            accuracy=averages[each.policy],
            calls=each.calls,
            cost=costs[each.policy],
            in_usd=in_usd,
            learned=learned.get(each.policy),
            efficient=not any(beats(other, each.policy) for other in costs),
            rival=rival_of(
                each.policy, {name: costs[name] for name in costs if name in {*rivals, each.policy}}, scores
            ),
        )
        for each in sorted(policies, key=lambda each: costs[each.policy])
    ]


def common_tasks(scores: Mapping[str, Scores]) -> list[str]:
    """The tasks that were judged for all policies, by their content.

    Raises:
        UsageError: there are none.
    """
    common = sorted(set.intersection(*(set(each) for each in scores.values())))
    if not common:
        raise UsageError("no task was judged for all policies: evaluate them on the same tasks, and to the end")
    return common


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
    own, common = costs[policy], common_tasks(scores)
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


def equal_cost_table(standings: Sequence[Standing]) -> Table:
    """The table of policies at equal cost."""
    return table_of(
        [
            {
                "policy": each.policy,
                "accuracy": percent(each.accuracy),
                "calls": f"{each.calls:.2f}",
                **cost_cell(each.cost, in_usd=each.in_usd),
                "learned from": UNKNOWN if each.learned is None else f"{each.learned.calls:,} calls",
                "learning cost": UNKNOWN
                if each.learned is None or each.learned.usd is None
                else dollars(each.learned.usd),
                "frontier": "yes" if each.efficient else "",
                "over all others at its cost": UNKNOWN if each.rival is None else between(each.rival.difference),
                "which are": UNKNOWN if each.rival is None else str(each.rival),
            }
            for each in standings
        ]
    )


def cost_cell(cost: float, *, in_usd: bool) -> dict[str, str]:
    """A cost in dollars or tokens, with the name of its column."""
    return {"cost": dollars(cost)} if in_usd else {"tokens": f"{cost:,.0f}"}


EQUAL_COST: Final = (
    "Accuracies are averages over the benchmarks with the half width of their 95 % interval; calls and cost are per "
    "sample, and what a policy has learned from is counted apart. On the frontier no other policy is as good for less. "
    "All others at its cost: the best of those that cost no more, or a mixture of a cheaper and a dearer one; the "
    "difference is paired by task, with its 95 % interval."
)
