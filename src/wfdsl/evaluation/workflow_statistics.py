"""Statistics of a set of workflows: steps, topology, workers, roles, and how much the workflows differ.

Everything is read off live steps, those whose response can reach the answer, because no other step is run. A step
whose worker index is negative, such as the count of a vote, is computed: it is in the shape, but no worker is asked.
Roles are counted twice, by two independent rules of ours: by what a step sees (`roles_by_structure`), and by the words
of its subtask (`roles_by_wording`). Neither is the truth; read how both change over a training run.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Literal, TypeAlias

from wfdsl.graph import graph_of
from wfdsl.language.workflow import Workflow

Role: TypeAlias = Literal["planner", "refiner", "verifier", "aggregator"]
ROLES: Final[tuple[Role, ...]] = ("planner", "refiner", "verifier", "aggregator")

STRUCTURE_RULES: Final[dict[Role, str]] = {
    "planner": "the only step that sees nothing, and two or more steps build directly on it",
    "refiner": "builds directly on one step, by its own worker",
    "verifier": "builds directly on one step, by another worker",
    "aggregator": "builds directly on two or more steps",
}
"""What makes a step's role by structure; our choice. A step builds directly on the steps that it sees, but for those
that another step it sees has seen already. A step that builds on a planner alone is a solver, and has no role here."""

WORDING_RULES: Final[dict[Role, str]] = {
    "planner": r"\b(?:plan|planning|outline|decompos\w+|break (?:it|this|the \w+) (?:down|into)|strategy|roadmap)\b",
    "refiner": r"\b(?:refin\w+|improv\w+|revis\w+|correct (?:it|any|the)|fix\w*|mend\w*|rework\w*|polish\w*|rewrite)\b"
    r"|\bwrite the \w+ again\b",
    "verifier": r"\b(?:verif\w+|(?:double-?)?check\w*|validat\w+|review\w*|criti(?:qu|ci)\w+|inspect\w*|test)\b"
    r"|\b(?:look for|find|spot)(?: any| the| all)? (?:mistakes?|errors?|bugs?)\b|\bgoes? wrong\b",
    "aggregator": r"\b(?:aggregat\w+|combin\w+|synthesi[sz]\w+|merg\w+|vot(?:e|ing)|majority|consensus|reconcil\w+)\b"
    r"|\b(?:choose|pick|select|decide|compare|agree)\b.*\b(?:attempts|answers|proposals|solutions|candidates|supported)\b"
    r"|\b(?:attempts|answers|proposals|solutions|candidates|views)\b.*\b(?:choose|pick|select|decide|compare|agree)\b",
}
"""A step has a role by wording if its subtask holds one of these words, in upper or lower case; it may have several."""

_WORDS: Final = {role: re.compile(rule, re.IGNORECASE | re.DOTALL) for role, rule in WORDING_RULES.items()}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A distinct workflow, subtasks apart."""

    text: str
    """Its live steps in order, each as `worker`, `worker(all)` or `worker(0 2)` with the steps that it sees."""
    count: int
    """How many workflows are like it."""
    first: int
    """The place of the first of them in the set, from 0."""


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
    roles_by_structure: Mapping[Role, int] = field(default_factory=dict)
    """How many have a step of the role, by `STRUCTURE_RULES`."""
    roles_by_wording: Mapping[Role, int] = field(default_factory=dict)
    """How many have a step of the role, by `WORDING_RULES`."""
    structures: int = 0
    """Distinct structures: who sees whom among the live steps, workers apart."""
    structure_bits: float = 0.0
    """The entropy of the structures, in bits: 0 if all are the same."""
    distinct: int = 0
    """Distinct patterns: structures with their workers."""
    pattern_bits: float = 0.0
    """The entropy of the patterns, in bits."""
    patterns: tuple[Pattern, ...] = ()
    """The most frequent patterns, the earlier first among equals."""

    @property
    def mean_steps(self) -> float:
        """Live steps of a workflow on average; 0 for no workflows."""
        return sum(steps * count for steps, count in self.steps.items()) / max(self.workflows, 1)

    def worker_share(self) -> dict[str, float]:
        """The part of all live steps that asks each worker."""
        total = sum(self.workers.values())
        return {worker: count / total for worker, count in self.workers.items()}

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values, with shares instead of counts where shares are compared."""
        total = max(self.workflows, 1)
        return {
            "workflows": self.workflows,
            "mean_steps": self.mean_steps,
            "steps": {str(steps): count / total for steps, count in self.steps.items()},
            "topologies": {name: count / total for name, count in self.topologies.items()},
            "worker_share": self.worker_share(),
            "roles_by_structure": {role: count / total for role, count in self.roles_by_structure.items()},
            "roles_by_wording": {role: count / total for role, count in self.roles_by_wording.items()},
            "structures": self.structures,
            "structure_bits": self.structure_bits,
            "distinct": self.distinct,
            "pattern_bits": self.pattern_bits,
            "patterns": [{"pattern": each.text, "count": each.count, "first": each.first} for each in self.patterns],
        }


def statistics_of(
    workflows: Iterable[Workflow], *, names: Mapping[int, str] | None = None, patterns: int = 10
) -> WorkflowStatistics:
    """Look at a set of workflows.

    Args:
        workflows: The set, in the order in which they came.
        names: The workers' names by index; without it they are called `worker 0` and so on.
        patterns: How many of the most frequent patterns to keep.
    """
    call = _namer(names or {})
    everything = list(workflows)
    found = [_pattern_of(workflow, call) for workflow in everything]
    structures = Counter(_structure_of(workflow) for workflow in everything)
    counts = Counter(found)
    first = {text: place for place, text in reversed(list(enumerate(found)))}
    steps = Counter(len(asked_steps(workflow)) for workflow in everything)
    return WorkflowStatistics(
        workflows=len(everything),
        steps=dict(sorted(steps.items())),
        topologies=_by_count(Counter(graph_of(workflow).topology for workflow in everything)),
        workers=_by_count(Counter(call(flow[step].worker) for flow in everything for step in asked_steps(flow))),
        roles_by_structure=_having([set(roles_by_structure(flow).values()) for flow in everything]),
        roles_by_wording=_having([set(chain(*roles_by_wording(flow).values())) for flow in everything]),
        structures=len(structures),
        structure_bits=entropy_bits(structures),
        distinct=len(counts),
        pattern_bits=entropy_bits(counts),
        patterns=tuple(
            Pattern(text, counts[text], first[text])
            for text in sorted(counts, key=lambda text: (-counts[text], first[text]))[:patterns]
        ),
    )


def asked_steps(workflow: Workflow) -> list[int]:
    """The live steps for which a worker is asked, ascending."""
    return [step for step in sorted(graph_of(workflow).live) if not is_computed(workflow[step].worker)]


def is_computed(worker: int | str) -> bool:
    """Whether a step is computed: it selects among responses, and no worker is asked."""
    return isinstance(worker, int) and worker < 0


def roles_by_structure(workflow: Workflow) -> dict[int, Role]:
    """The roles of live steps by what they build on; steps without a role are left out. See `STRUCTURE_RULES`."""
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


def roles_by_wording(workflow: Workflow) -> dict[int, tuple[Role, ...]]:
    """The roles of live steps by the words of their subtasks; steps without one are left out. See `WORDING_RULES`."""
    found = {step: wording_roles(workflow[step].subtask) for step in sorted(graph_of(workflow).live)}
    return {step: roles for step, roles in found.items() if roles}


def wording_roles(subtask: str) -> tuple[Role, ...]:
    """The roles that the words of a subtask name."""
    return tuple(role for role in ROLES if _WORDS[role].search(subtask))


def entropy_bits(counts: Mapping[Any, int]) -> float:
    """The entropy of a distribution that is given as counts, in bits."""
    total = sum(counts.values())
    return sum(count / total * math.log2(total / count) for count in counts.values() if count)


def _namer(names: Mapping[int, str]) -> Callable[[int | str], str]:
    def call(worker: int | str) -> str:
        if is_computed(worker):
            return "computed"
        return worker if isinstance(worker, str) else names.get(worker, f"worker {worker}")

    return call


def _by_count(counts: Counter[Any]) -> dict[Any, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _having(found: list[set[Role]]) -> dict[Role, int]:
    return {role: sum(role in roles for roles in found) for role in ROLES}


def _structure_of(workflow: Workflow) -> Hashable:
    """Who sees whom among the live steps, numbered from 0."""
    live = sorted(graph_of(workflow).live)
    number = {step: place for place, step in enumerate(live)}
    return tuple(tuple(number[seen] for seen in workflow.sees(step) if seen in number) for step in live)


def _pattern_of(workflow: Workflow, call: Callable[[int | str], str]) -> str:
    live = sorted(graph_of(workflow).live)
    number = {step: place for place, step in enumerate(live)}
    parts = []
    for step in live:
        sees = [number[seen] for seen in workflow.sees(step) if seen in number]
        shown = "all" if len(sees) == number[step] else " ".join(map(str, sees))
        parts.append(call(workflow[step].worker) + (f"({shown})" if sees else ""))
    return ", ".join(parts)
