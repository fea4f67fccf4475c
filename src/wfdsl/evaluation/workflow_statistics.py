"""What workflows look like, and how the Conductors that write them fail.

Of a set of workflows: steps, topology, workers, roles, and how much they differ. Four signatures of failure, in
trainings and evaluations: form, misfit workers, reliance on one worker, and rounds without change.

Everything is read off live steps, those whose response can reach the answer, because no other step is run. A step
whose worker index is negative, such as the count of a vote, is computed: it is in the shape, but no worker is asked.
A step's role is read off what it sees, so a plan that one solver reads is not told from an attempt that one verifier
reads; read how roles change over a training run.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any, Final, Literal, TypeAlias

from wfdsl.graph import graph_of
from wfdsl.language.workflow import Workflow

Role: TypeAlias = Literal["planner", "refiner", "verifier", "aggregator"]
ROLES: Final[dict[Role, str]] = {
    "planner": "the only step that sees nothing, and two or more steps build directly on it",
    "refiner": "builds directly on one step, by its own worker",
    "verifier": "builds directly on one step, by another worker",
    "aggregator": "builds directly on two or more steps",
}
"""What makes a step's role; our choice. A step builds directly on the steps that it sees, but for those
that another step it sees has seen already. A step that builds on a planner alone is a solver, and has no role here."""


@dataclass(frozen=True, slots=True)
class WorkflowStatistics:
    """What a set of workflows has in common, and how much it differs. Counts are numbers of workflows unless said."""

    workflows: int = 0
    """How many there are."""
    steps: Mapping[int, int] = field(default_factory=dict)
    """Workflows by their number of live steps that a worker is asked for."""
    topologies: Mapping[str, int] = field(default_factory=dict)
    """How many are of each topology class (`wfdsl.graph.Graph.topology`)."""
    workers: Mapping[str, int] = field(default_factory=dict)
    """How many live steps, over all workflows, ask each worker; by name where names are known."""
    roles: Mapping[Role, int] = field(default_factory=dict)
    """How many have a step of the role, by `ROLES`."""
    patterns: Mapping[str, int] = field(default_factory=dict)
    """Distinct workflows, subtasks apart, the most frequent first: live steps in order, each as `worker`,
    `worker(all)` or `worker(0 2)` with the steps that it sees."""

    @property
    def distinct(self) -> int:
        """Distinct patterns."""
        return len(self.patterns)

    @property
    def pattern_bits(self) -> float:
        """The entropy of the patterns, in bits: 0 if all are the same."""
        return entropy_bits(self.patterns)

    @property
    def mean_steps(self) -> float:
        """Live steps of a workflow on average; 0 for no workflows."""
        return sum(steps * count for steps, count in self.steps.items()) / max(self.workflows, 1)

    def worker_share(self) -> dict[str, float]:
        """The part of all live steps that asks each worker."""
        total = sum(self.workers.values())
        return {worker: count / total for worker, count in self.workers.items()}

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {**asdict(self), "mean_steps": self.mean_steps, "pattern_bits": self.pattern_bits}


def statistics_of(workflows: Iterable[Workflow], *, names: Mapping[int, str] | None = None) -> WorkflowStatistics:
    """Look at a set of workflows; `names` are the workers' names by index, else `worker 0` and so on."""
    flows, called = list(workflows), names or {}
    workers = [_name(flow[step].worker, called) for flow in flows for step in asked_steps(flow)]
    roles = Counter(role for flow in flows for role in set(roles_of(flow).values()))
    return WorkflowStatistics(
        workflows=len(flows),
        steps=dict(sorted(Counter(len(asked_steps(flow)) for flow in flows).items())),
        topologies=dict(Counter(graph_of(flow).topology for flow in flows).most_common()),
        workers=dict(Counter(workers).most_common()),
        roles={role: roles[role] for role in ROLES},
        patterns=dict(Counter(_pattern_of(flow, called) for flow in flows).most_common()),
    )


def asked_steps(workflow: Workflow) -> list[int]:
    """The live steps for which a worker is asked, ascending."""
    return [step for step in sorted(graph_of(workflow).live) if not is_computed(workflow[step].worker)]


def is_computed(worker: int | str) -> bool:
    """Whether a step is computed: it selects among responses, and no worker is asked."""
    return isinstance(worker, int) and worker < 0


def roles_of(workflow: Workflow) -> dict[int, Role]:
    """The roles of live steps; steps without a role are left out. See `ROLES`."""
    live, builds_on = graph_of(workflow).live, graph_of(workflow).essential
    built_on = Counter(seen for step in live for seen in builds_on[step])
    blind = [step for step in live if not builds_on[step]]
    planners = {step for step in blind if len(blind) == 1 and built_on[step] > 1}
    roles: dict[int, Role] = dict.fromkeys(planners, "planner")
    for step in live - planners:
        seen = builds_on[step]
        if len(seen) > 1:
            roles[step] = "aggregator"
        elif seen and seen[0] not in planners:
            roles[step] = "refiner" if workflow[seen[0]].worker == workflow[step].worker else "verifier"
    return roles


def entropy_bits(counts: Mapping[Any, int]) -> float:
    """The entropy of a distribution that is given as counts, in bits."""
    total = sum(counts.values())
    return sum(count / total * math.log2(total / count) for count in counts.values() if count)


def _name(worker: int | str, names: Mapping[int, str]) -> str:
    if is_computed(worker):
        return "computed"
    return worker if isinstance(worker, str) else names.get(worker, f"worker {worker}")


def _pattern_of(workflow: Workflow, names: Mapping[int, str]) -> str:
    live = sorted(graph_of(workflow).live)
    number = {step: place for place, step in enumerate(live)}
    parts = []
    for step in live:
        sees = [number[seen] for seen in workflow.sees(step) if seen in number]
        shown = "all" if len(sees) == number[step] else " ".join(map(str, sees))
        parts.append(_name(workflow[step].worker, names) + (f"({shown})" if sees else ""))
    return ", ".join(parts)


_FEWEST: Final = 8
"""Answers of a worker, or later rounds, from which something is concluded. Our choice, as the limits of warnings."""
_VALID: Final = 0.95
"""Source: arXiv 2512.04388 wants more than this share early."""
_LOST: Final = 0.1
"""Share of right answers by which another worker has to be better."""
_RELIES: Final = 0.9
_UNCHANGED: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question that a Conductor answered."""

    kind: str
    workflow: Workflow | None = None
    """The last one that ran; the worker of its last step answered."""
    right: float | None = None
    """The share of right answers; None: not graded."""
    completions: int = 0
    invalid: int = 0
    """Completions that were not valid."""
    later: int = 0
    """Rounds after round 0 that ran a workflow."""
    unchanged: int = 0
    """Those that gave the answer of the round before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signatures:
    """The numbers, with a warning for each that is out of its limits."""

    valid: float | None
    """Share of completions that are valid; None for fixed workflows."""
    lost: Mapping[str, Mapping[str, float]]
    """By kind of question and worker that answered: the accuracy that is lost because the kind's best worker did not
    answer, times how often that worker did. The best one is among those that answered at least 8 questions."""
    share: Mapping[str, Mapping[str, float]]
    """By kind and worker, the part of all calls."""
    entropy_bits: Mapping[str, float]
    """By kind, of these shares."""
    unchanged: float | None
    """Share of later rounds that gave the answer of the round before; None if no later round ran."""
    warnings: Mapping[str, str] = field(default_factory=dict)
    """By what they are about: form, mismatch, reliance, loops. A fixed workflow has none."""

    @property
    def mismatch(self) -> float:
        """The accuracy that is lost because the best worker of a kind did not answer: a mean over kinds."""
        return sum(sum(each.values()) for each in self.lost.values()) / max(len(self.lost), 1)

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain values."""
        return {**asdict(self), "mismatch": self.mismatch}


def signatures_of(cases: Iterable[Case], *, names: Mapping[int, str] | None = None) -> Signatures:
    """Look at some cases; `names` are the workers' names by index."""
    every, called = list(cases), names or {}
    calls: dict[str, Counter[str]] = defaultdict(Counter)
    answers: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for case in every:
        flow = case.workflow
        asked = [_name(flow[step].worker, called) for step in asked_steps(flow)] if flow else []
        calls[case.kind].update(asked)
        if asked and case.right is not None:
            answers[case.kind][asked[-1]].append(case.right)
    completions, later = sum(case.completions for case in every), sum(case.later for case in every)
    valid = 1 - sum(case.invalid for case in every) / completions if completions else None
    unchanged = sum(case.unchanged for case in every) / later if later else None
    known = {kind: own for kind, own in sorted(calls.items()) if own}
    whole, lost, warnings = sum(known.values(), Counter[str]()), dict[str, dict[str, float]](), dict[str, str]()
    if valid is not None and valid < _VALID and completions >= _FEWEST:
        warnings["form"] = f"{valid:.0%} of the completions are valid, fewer than {_VALID:.0%}"
    for name, count in whole.most_common(1):
        if len(known) > 1 and count > _RELIES * whole.total() and whole.total() >= _FEWEST:
            warnings["reliance"] = f"{count / whole.total():.0%} of all calls ask {name}, whatever the kind of question"
    if unchanged is not None and unchanged > _UNCHANGED and later >= _FEWEST:
        warnings["loops"] = f"{unchanged:.0%} of the rounds after round 0 give the same answer again"
    for kind, own in answers.items():
        right = {name: fmean(each) for name, each in own.items()}
        usual, total = max(own, key=lambda name: len(own[name])), sum(map(len, own.values()))
        best = max((name for name in own if len(own[name]) >= _FEWEST), key=right.__getitem__, default=None)
        gaps = {} if best is None else {name: right[best] - right[name] for name in sorted(own)}
        lost[kind] = {name: len(own[name]) / total * max(gap, 0.0) for name, gap in gaps.items()}
        noise = 2 * math.sqrt(sum(0.25 / len(own[name]) for name in (best or usual, usual)))
        if best is not None and gaps[usual] > max(_LOST, noise):
            warnings["mismatch"] = (
                f"{kind}: {usual} answers most often, and is right in {right[usual]:.0%}; {best} is right in "
                f"{right[best]:.0%}"
            )
    return Signatures(
        valid=valid,
        lost=dict(sorted(lost.items())),
        share={kind: {name: count / own.total() for name, count in own.most_common()} for kind, own in known.items()},
        entropy_bits={kind: entropy_bits(own) for kind, own in known.items()},
        unchanged=unchanged,
        warnings=warnings if completions else {},
    )
