"""Statistics of a set of workflows: steps, topology, workers, roles, and how much the workflows differ.

Everything is read off live steps, those whose response can reach the answer, because no other step is run. A step
whose worker index is negative, such as the count of a vote, is computed: it is in the shape, but no worker is asked.
A step's role is read off what it sees, so a plan that one solver reads is not told from an attempt that one verifier
reads; read how roles change over a training run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
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
    flows = list(workflows)

    def call(worker: int | str) -> str:
        if is_computed(worker):
            return "computed"
        return worker if isinstance(worker, str) else (names or {}).get(worker, f"worker {worker}")

    roles = Counter(role for flow in flows for role in set(roles_of(flow).values()))
    return WorkflowStatistics(
        workflows=len(flows),
        steps=dict(sorted(Counter(len(asked_steps(flow)) for flow in flows).items())),
        topologies=dict(Counter(graph_of(flow).topology for flow in flows).most_common()),
        workers=dict(Counter(call(flow[step].worker) for flow in flows for step in asked_steps(flow)).most_common()),
        roles={role: roles[role] for role in ROLES},
        patterns=dict(Counter(_pattern_of(flow, call) for flow in flows).most_common()),
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


def _pattern_of(workflow: Workflow, call: Callable[[int | str], str]) -> str:
    live = sorted(graph_of(workflow).live)
    number = {step: place for place, step in enumerate(live)}
    parts = []
    for step in live:
        sees = [number[seen] for seen in workflow.sees(step) if seen in number]
        shown = "all" if len(sees) == number[step] else " ".join(map(str, sees))
        parts.append(call(workflow[step].worker) + (f"({shown})" if sees else ""))
    return ", ".join(parts)
