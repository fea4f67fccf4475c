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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain, permutations
from operator import le
from typing import Final, Literal, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.evaluation.manifest import FitCost
from wfdsl.evaluation.report import UNKNOWN, Report, Table, between, cost_in_usd, percent, summarise, table_of
from wfdsl.evaluation.statistics import Interval, Mean, interval_of, scores_of
from wfdsl.evaluation.trials import Trial
from wfdsl.render.status import dollars

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
    learned: FitCost | None = None
    """What it has learned from; None if it has learned nothing."""
    efficient: bool = True
    """Whether no other policy is as good for less, or better for as much."""
    rival: Rival | None = None
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
    counts = Counter(policy for report in reports for policy in report.policies)
    for name, count in counts.items():
        if count > 1:
            raise UsageError(f"two of the folders have a policy {name!r}: evaluate it once")
    learned = {name: cost for report in reports for name, cost in report.fit_costs.items()}
    field = _Field([trial for report in reports for trial in report.trials], counts)
    rivals = named(among, field.standings)
    return [
        replace(each, learned=learned.get(name), rival=field.rival(name, rivals, each.cost))
        for name, each in field.standings.items()
    ]


class _Field:
    """Policies side by side, on the tasks that were judged for all of them."""

    def __init__(self, trials: Sequence[Trial], names: Iterable[str]) -> None:
        """Compare the trials of these policies.

        Raises:
            UsageError: they have no judged task in common.
        """
        scores = {name: scores_of(trial for trial in trials if trial.policy == name) for name in names}
        self.common = sorted(set.intersection(*map(set, scores.values())))
        """Tasks by their content."""
        if not self.common:
            raise UsageError("no task was judged for all policies: evaluate them on the same tasks, and to the end")
        self._scores = {name: [own[task] for task in self.common] for name, own in scores.items()}
        self._trials = trials

    @cached_property
    def standings(self) -> dict[str, Standing]:
        """From the cheapest, without rivals."""
        tasks = set(self.common)
        known = (trial for trial in self._trials if trial.task_hash in tasks)
        summary = summarise(known, policies=list(self._scores))
        in_usd = cost_in_usd(summary.policies)
        found = [
            Standing(each.policy, each.average, each.calls, each.cost(in_usd=in_usd), in_usd)
            for each in summary.policies
            if each.average is not None
        ]
        found.sort(key=lambda each: each.cost)
        places = [(each.cost, -each.accuracy.value) for each in found]
        return {
            each.policy: replace(each, efficient=not any(all(map(le, other, own)) for other in places if other != own))
            for each, own in zip(found, places, strict=True)
        }

    def rival(self, policy: str, rivals: Collection[str], cost: float) -> Rival | None:
        """The best that others reach at a cost, of equally good ones the cheapest; None if none costs as little."""
        costs = {name: each.cost for name, each in self.standings.items() if name in rivals and name != policy}
        mixtures = [(name, name, 1.0) for name in costs if costs[name] <= cost]
        mixtures += [
            (cheap, dear, (costs[dear] - cost) / (costs[dear] - costs[cheap]))
            for cheap, dear in permutations(costs, 2)
            if costs[cheap] <= cost < costs[dear]
        ]
        if not mixtures:
            return None
        mean = {name: sum(self._scores[name]) / len(self.common) for name in costs}
        one, other, share = max(mixtures, key=lambda mix: mix[2] * mean[mix[0]] + (1 - mix[2]) * mean[mix[1]])
        scores = zip(self._scores[policy], self._scores[one], self._scores[other], strict=True)
        return Rival(one, other, share, interval_of([own - share * a - (1 - share) * b for own, a, b in scores]))


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
    by_task: dict[str, list[Trial]] = {task: [] for task in _Field(trials, names).common}
    for trial in trials:
        if trial.judged and trial.task_hash in by_task:
            by_task[trial.task_hash].append(trial)
    picked = [replace(trial, policy=_CHOICE) for trial in _picked(list(by_task.values()), among)]
    field = _Field([*chain.from_iterable(by_task.values()), *picked], [*names, _CHOICE])
    choice = field.standings[_CHOICE]
    cost = max(choice.cost, min(field.standings[name].cost for name in names))  # the cheapest is always a rival
    rival = field.rival(_CHOICE, names, cost)
    assert rival is not None
    certain = rival.difference.high < WORTH or rival.difference.low > 0
    verdict: Verdict = "not known" if not certain else "room" if rival.difference.value >= WORTH else "no room"
    return Room(tuple(among), len(by_task), replace(choice, rival=rival), verdict)


def _picked(tasks: Sequence[Sequence[Trial]], among: Sequence[str]) -> Iterator[Trial]:
    """The trial that the choice leads to, for each task and repeat, by results on other tasks and its other repeats."""
    every = _counts(chain.from_iterable(tasks))
    for found in tasks:
        right, known = (all_ - own for all_, own in zip(every, _counts(found), strict=True))
        repeats = defaultdict[int, dict[str, Trial]](dict)
        for trial in found:
            if trial.policy in among:
                repeats[trial.repeat][trial.policy] = trial
        for repeat, own in sorted(repeats.items()):
            shares = {}
            for name, trial in own.items():
                whole, domain = (name, ""), (name, _group(trial))
                share = right[whole] / max(known[whole], 1)
                share = (right[domain] + PRIOR * share) / (known[domain] + PRIOR)
                others = [each.right for each in found if each.policy == name and each.repeat != repeat]
                shares[name] = (others.count(True) + PRIOR * share) / (len(others) + PRIOR)
            yield own[max(shares, key=shares.__getitem__)]


def _counts(trials: Iterable[Trial]) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Right results, and all, by policy and group: the domain, and "" for all of them."""
    found = [((trial.policy, group), trial.right) for trial in trials for group in ("", _group(trial))]
    return Counter(key for key, right in found if right), Counter(key for key, _ in found)


def _group(trial: Trial) -> str:
    return f"{trial.source}/{trial.domain}"


def named(patterns: Sequence[str], policies: Collection[str]) -> list[str]:
    """The policies that some names and patterns of the shell name, in their order.

    Raises:
        UsageError: one of them names no policy.
    """
    found = {each: {name for name in policies if name == each or fnmatchcase(name, each)} for each in patterns}
    for each, matching in found.items():
        if not matching:
            raise UsageError(f"no evaluation has the policy {each!r}; they have {', '.join(policies)}")
    return [name for name in policies if any(name in matching for matching in found.values())]


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
