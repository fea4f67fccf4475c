"""Room for a Conductor: how often a choice among the policies of an evaluation, made for each question, would be right.

A question's policy is chosen by results that it is then not measured by: those on other questions of its domain, and
its own other repeats. So the value is what a chooser that reads the question can reach, not the luck of the best of
many draws, and of equal policies there is no room. What the choice is better by is compared at its cost.

Source: cross-fitting as in Chernozhukov et al., arXiv 1608.00060; the count towards the domain's share is our choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.evaluation.equal_cost import Rival, common_tasks, cost_cell, rival_of
from wfdsl.evaluation.report import Report, Table, between, table_of
from wfdsl.evaluation.statistics import TWO_SIDED, Interval, accuracy_of, scores_of
from wfdsl.evaluation.summary import cost_in_usd
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
    in_usd: bool
    """Whether the cost is dollars."""
    rival: Rival
    """What policies without a choice reach at this cost, and how far the choice is above it."""

    verdict: Verdict
    """`room`: the gain is certain, and at least `WORTH`; `no room`: it is certain to be less; else `not known`."""


def rooms_in(report: Report) -> dict[str, Room]:
    """What choosing among the workers alone, and among all policies, would give.

    Raises:
        UsageError: fewer than two workers were evaluated, or no task was judged for all policies.
    """
    in_usd = cost_in_usd(report.summary().policies)
    among = {"the workers": [name for name in report.policies if name.startswith("worker:")]}
    if len(among["the workers"]) < len(report.policies):
        among["all policies"] = list(report.policies)
    return {name: room_among(report.trials, each, in_usd=in_usd) for name, each in among.items()}


def room_among(trials: Sequence[Trial], among: Sequence[str], *, in_usd: bool) -> Room:
    """What a choice among some policies for each question gives; all policies of the trials are rivals.

    Raises:
        UsageError: there are fewer than two policies to choose among, or no task that was judged for all policies.
    """
    if len(among) < 2:
        raise UsageError("a choice needs at least two policies: evaluate `workers`, and workflows")
    policies = {trial.policy for trial in trials}
    scores = {name: scores_of(trial for trial in trials if trial.policy == name) for name in policies}
    by_task: dict[str, list[Trial]] = {task: [] for task in common_tasks(scores)}
    for trial in trials:
        if trial.judged and trial.task_hash in by_task:
            by_task[trial.task_hash].append(trial)
    choice = _Choice(by_task.values(), among)
    picked = [trial for found in by_task.values() for trial in choice.of(found)]
    known = [trial for found in by_task.values() for trial in found]

    def cost_of(own: Sequence[Trial]) -> float:
        return fmean((trial.list_usd or 0.0) if in_usd else trial.tokens for trial in own)

    costs = {name: cost_of([trial for trial in known if trial.policy == name]) for name in policies}
    cost = max(cost_of(picked), min(costs.values()))
    rival = rival_of(_CHOICE, {**costs, _CHOICE: cost}, {**scores, _CHOICE: scores_of(picked)})
    found = accuracy_of(picked)
    assert rival is not None  # something costs no more, by the line before the last
    assert found.value is not None  # all of them were judged
    gain, half = rival.difference, TWO_SIDED * (found.error or 0.0)
    certain = gain.high < WORTH or gain.low > 0
    return Room(
        among=tuple(among),
        tasks=len(by_task),
        accuracy=Interval(found.value, found.value - half, found.value + half),
        calls=fmean(trial.calls for trial in picked),
        cost=cost,
        in_usd=in_usd,
        rival=rival,
        verdict="not known" if not certain else "room" if gain.value >= WORTH else "no room",
    )


class _Choice:
    """A policy for each question, by the results of policies on other questions and on its other repeats."""

    def __init__(self, tasks: Iterable[Sequence[Trial]], among: Sequence[str]) -> None:
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


def room_table(rooms: Mapping[str, Room]) -> Table:
    """The table of what choosing for each question would give."""
    return table_of(
        [
            {
                "chosen for each question among": name,
                "accuracy": between(each.accuracy, sign=""),
                "calls": f"{each.calls:.2f}",
                **cost_cell(each.cost, in_usd=each.in_usd),
                "over the best without a choice at its cost": between(each.rival.difference),
                "which is": str(each.rival),
                "room": {"room": "yes", "no room": "no"}.get(each.verdict, each.verdict),
            }
            for name, each in rooms.items()
        ]
    )


ROOM: Final = (
    "A question's policy is chosen by the results on other questions of its domain and its own other repeats, so the "
    "accuracy is what a Conductor that reads the question can reach with these workflows. There is room where the gain "
    f"is certain and at least {100 * WORTH:.0f} points, and none where it is certain to be less; more tasks or repeats "
    "decide the rest."
)
