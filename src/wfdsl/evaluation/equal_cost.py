"""Accuracy at equal cost: how far each policy is above all others that cost as much, and room for a Conductor.

Two policies at different costs can be mixed: a question goes to one of them by chance. So what the others reach at a
policy's cost is the best of those that cost no more, and of mixtures of a cheaper and a dearer one. The difference to
it is paired by task. The rival is chosen by the same results, which can only make it look better than it is.

Room is what a choice among the policies, made for each question, is above all of them at its cost. A question's policy
is chosen by results that it is then not measured by: those on other questions of its domain, and its own other repeats.
So the value is what a chooser that reads the question can reach, not the luck of the best of many draws, and of equal
policies there is no room. Source: cross-fitting as in Chernozhukov et al., arXiv 1608.00060; the count towards the
domain's share is our choice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Final, Literal, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.evaluation.manifest import FitCost
from wfdsl.evaluation.report import UNKNOWN, Report, Table, between, cost_in_usd, percent, summarise, table_of
from wfdsl.evaluation.statistics import Interval, Mean, interval_of, scores_of
from wfdsl.evaluation.trials import Trial
from wfdsl.render.status import dollars

Scores: TypeAlias = Mapping[str, float]
"""The score of each judged task, by its content."""
Verdict: TypeAlias = Literal["room", "no room", "not known"]
EVERYONE: Final = ("*",)
"""Patterns that every policy matches."""
PRIOR: Final = 5.0
"""So many results' worth of a policy's share in the domain are added to its own on a question, and as many of its share
on all questions to the domain's; our choice."""
WORTH: Final = 0.03
"""The gain, as a share of right answers, below which there is no room to speak of; our choice."""
_CHOICE: Final = "the choice"


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

    @property
    def figures(self) -> dict[str, str]:
        """Its accuracy, calls and cost, by the names of their columns."""
        cost = {"cost": dollars(self.cost)} if self.in_usd else {"tokens": f"{self.cost:,.0f}"}
        return {"accuracy": percent(self.accuracy), "calls": f"{self.calls:.2f}", **cost}


@dataclass(frozen=True, slots=True)
class Room:
    """What choosing among some policies for each question would give."""

    among: tuple[str, ...]
    """The policies."""
    tasks: int
    """Those that were judged for all policies."""
    choice: Standing
    """The choice among the policies without one; its rival is what these reach at its cost."""
    verdict: Verdict
    """`room`: the gain is certain, and at least `WORTH`; `no room`: it is certain to be less; else `not known`."""


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
    learned = {name: cost for report in reports for name, cost in report.fit_costs.items()}
    return _standings([trial for report in reports for trial in report.trials], names, among, learned)


def _standings(
    trials: Sequence[Trial], names: Sequence[str], among: Sequence[str], learned: Mapping[str, FitCost]
) -> list[Standing]:
    scores = _scores(trials, names)
    common = _common_tasks(scores)
    policies = summarise((trial for trial in trials if trial.task_hash in common), policies=names).policies
    in_usd = cost_in_usd(policies)
    costs = {each.policy: each.cost(in_usd=in_usd) for each in policies}
    averages = {each.policy: each.average for each in policies if each.average is not None}
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
            rival=_rival_of(each.policy, {name: costs[name] for name in {*rivals, each.policy}}, scores),
        )
        for each in sorted(policies, key=lambda each: costs[each.policy])
    ]


def rooms_in(report: Report) -> dict[str, Room]:
    """What choosing among the workers alone, and among all policies, would give.

    Raises:
        UsageError: fewer than two workers were evaluated, or no task was judged for all policies.
    """
    among = {"the workers": [name for name in report.policies if name.startswith("worker:")]}
    if len(among["the workers"]) < len(report.policies):
        among["all policies"] = list(report.policies)
    return {name: room_among(report.trials, each) for name, each in among.items()}


def room_among(trials: Sequence[Trial], among: Sequence[str]) -> Room:
    """What a choice among some policies for each question gives; all policies of the trials are rivals.

    Raises:
        UsageError: there are fewer than two policies to choose among, or no task that was judged for all policies.
    """
    if len(among) < 2:
        raise UsageError("a choice needs at least two policies: evaluate `workers`, and workflows")
    names = list(dict.fromkeys(trial.policy for trial in trials))
    scores = _scores(trials, names)
    by_task: dict[str, list[Trial]] = {task: [] for task in _common_tasks(scores)}
    for trial in trials:
        if trial.judged and trial.task_hash in by_task:
            by_task[trial.task_hash].append(trial)
    known, chooser = [trial for found in by_task.values() for trial in found], _Chooser(by_task.values(), among)
    picked = [replace(trial, policy=_CHOICE) for found in by_task.values() for trial in chooser.picked(found)]
    choice, *others = sorted(
        _standings([*known, *picked], [*names, _CHOICE], EVERYONE, {}), key=lambda each: each.policy != _CHOICE
    )
    costs = {each.policy: each.cost for each in others}
    costs[_CHOICE] = max(choice.cost, min(costs.values()))  # what costs less than all others has the cheapest as rival
    rival = _rival_of(_CHOICE, costs, {**scores, _CHOICE: scores_of(picked)})
    assert rival is not None  # by the line before the last
    certain = rival.difference.high < WORTH or rival.difference.low > 0
    verdict: Verdict = "not known" if not certain else "room" if rival.difference.value >= WORTH else "no room"
    return Room(tuple(among), len(by_task), replace(choice, rival=rival), verdict)


class _Chooser:
    """A policy for each question, by the results of policies on other questions and on its other repeats."""

    def __init__(self, tasks: Iterable[Sequence[Trial]], among: Sequence[str]) -> None:
        self._among = among
        self._right: Counter[tuple[str, str]] = Counter()
        self._all: Counter[tuple[str, str]] = Counter()
        for found in tasks:
            self._count(found, 1)

    def picked(self, found: Sequence[Trial]) -> list[Trial]:
        """The trials of a question that the choice leads to, one for each repeat."""
        self._count(found, -1)
        repeats = defaultdict[int, dict[str, Trial]](dict)
        for trial in found:
            if trial.policy in self._among:
                repeats[trial.repeat][trial.policy] = trial
        picked = []
        for repeat, own in sorted(repeats.items()):
            others = [trial for trial in found if trial.repeat != repeat]
            picked.append(own[max(own, key=lambda name: self._share(own[name], others))])
        self._count(found, 1)
        return picked

    def _count(self, found: Iterable[Trial], sign: int) -> None:
        for trial in found:
            for group in ("", _group(trial)):
                self._right[trial.policy, group] += sign * (trial.outcome == "right")
                self._all[trial.policy, group] += sign

    def _share(self, trial: Trial, others: Sequence[Trial]) -> float:
        whole, domain = (trial.policy, ""), (trial.policy, _group(trial))
        share = self._right[whole] / max(self._all[whole], 1)
        share = (self._right[domain] + PRIOR * share) / (self._all[domain] + PRIOR)
        own = [each.outcome == "right" for each in others if each.policy == trial.policy]
        return (sum(own) + PRIOR * share) / (len(own) + PRIOR)


def _group(trial: Trial) -> str:
    return f"{trial.source}/{trial.domain}"


def _scores(trials: Sequence[Trial], names: Iterable[str]) -> dict[str, Scores]:
    return {name: scores_of(trial for trial in trials if trial.policy == name) for name in names}


def _common_tasks(scores: Mapping[str, Scores]) -> list[str]:
    """The tasks that were judged for all policies, by their content. Raises: UsageError, if there are none."""
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


def _rival_of(policy: str, costs: Mapping[str, float], scores: Mapping[str, Scores]) -> Rival | None:
    """The best that other policies reach at the cost of this one; None if none costs as little."""
    own, common = costs[policy], _common_tasks(scores)
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
    rows = []
    for each in standings:
        learned, rival = each.learned, each.rival
        row = {"policy": each.policy, **each.figures}
        row["learned from"] = UNKNOWN if learned is None else f"{learned.calls:,} calls"
        row["learning cost"] = UNKNOWN if learned is None or learned.usd is None else dollars(learned.usd)
        row["frontier"] = "yes" if each.efficient else ""
        row["over all others at its cost"] = UNKNOWN if rival is None else between(rival.difference)
        row["which are"] = UNKNOWN if rival is None else str(rival)
        rows.append(row)
    return table_of(rows)


def room_table(rooms: Mapping[str, Room]) -> Table:
    """The table of what choosing for each question would give."""
    rows = []
    for name, each in rooms.items():
        rival = each.choice.rival
        row = {"chosen for each question among": name, **each.choice.figures}
        row["over the best without a choice at its cost"] = UNKNOWN if rival is None else between(rival.difference)
        row["which is"] = str(rival)
        row["room"] = {"room": "yes", "no room": "no"}.get(each.verdict, each.verdict)
        rows.append(row)
    return table_of(rows)


EQUAL_COST: Final = (
    "Accuracies are averages over the benchmarks with the half width of their 95 % interval; calls and cost are per "
    "sample, and what a policy has learned from is counted apart. On the frontier no other policy is as good for less. "
    "All others at its cost: the best of those that cost no more, or a mixture of a cheaper and a dearer one; the "
    "difference is paired by task, with its 95 % interval."
)
ROOM: Final = (
    "A question's policy is chosen by the results on other questions of its domain and its own other repeats, so the "
    "accuracy is what a Conductor that reads the question can reach with these workflows. There is room where the gain "
    f"is certain and at least {100 * WORTH:.0f} points, and none where it is certain to be less; more tasks or repeats "
    "decide the rest."
)
