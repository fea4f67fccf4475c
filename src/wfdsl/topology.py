"""What the shape of a workflow says: live steps, topology class, depth, width, critical path, calls.

Everything here is decided on *live* steps, those from which information flows to the last step, because no other step
is run. Each function is one pass of its own over the workflow and needs no graph library.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from wfdsl.language.workflow import Step, Workflow

Topology: TypeAlias = Literal["single", "chain", "best-of-n", "independent-then-aggregate", "tree", "general"]


class CriticalPath(NamedTuple):
    """The chain of live steps that a run cannot be faster than, and the sum of its costs (in the unit of the costs)."""

    length: float
    steps: tuple[int, ...]


def live_steps(workflow: Workflow) -> frozenset[int]:
    """The steps whose response can reach the answer; the last step is always one of them."""
    live: set[int] = set()
    waiting = [len(workflow) - 1] if len(workflow) else []
    while waiting:
        step = waiting.pop()
        if step not in live:
            live.add(step)
            waiting.extend(seen for seen in workflow.sees(step) if seen not in live)
    return frozenset(live)


def dead_steps(workflow: Workflow) -> frozenset[int]:
    """The steps that nothing on the way to the answer sees: they are not run unless asked for."""
    return frozenset(range(len(workflow))) - live_steps(workflow)


def essential(workflow: Workflow) -> tuple[tuple[int, ...], ...]:
    """For each step, what it sees without the shortcuts: the steps seen that no other step seen has (in)directly seen.

    These are the edges of the DAG's transitive reduction, over all steps, dead ones too.
    """
    before: list[int] = []  # bit j of before[i]: information flows from step j to step i
    kept: list[tuple[int, ...]] = []
    for step in range(len(workflow)):
        covered = 0
        sees = workflow.sees(step)
        for seen in sees:
            covered |= before[seen]
        before.append(covered | sum(1 << seen for seen in sees))
        kept.append(tuple(seen for seen in sees if not covered >> seen & 1))
    return tuple(kept)


def topology(workflow: Workflow) -> Topology:
    """The class of a workflow's shape; the first of these that fits, so the classes do not overlap.

    Shortcuts do not count: a step that sees a step which reaches it on a longer way too, as with `"all"` in a chain,
    adds no order. So each rule reads the transitive reduction of the live steps.

    - `single`: one live step.
    - `chain`: each live step but the first sees the live step before it, and perhaps earlier ones.
    - `best-of-n`: two or more steps that see nothing, all with one worker and one subtask; the last step sees them all.
    - `independent-then-aggregate`: the same shape with attempts that differ in worker or subtask.
    - `tree`: each live step but the last feeds exactly one other, and it is none of the above.
    - `general`: anything else, such as a plan that two solvers share, or a debate in rounds.

    Source: the topologies named in arXiv 2512.04388, section 3; the exact rules are our choice.
    """
    live = sorted(live_steps(workflow))
    sees = essential(workflow)
    attempts, last = live[:-1], live[-1:]
    if len(live) <= 1:
        return "single"
    if all(sees[step] == (before,) for before, step in pairwise(live)):
        return "chain"
    if sees[last[0]] == tuple(attempts):
        same = len({(workflow[step].worker, workflow[step].subtask) for step in attempts}) == 1
        return "best-of-n" if same else "independent-then-aggregate"
    is_tree = sum(len(sees[step]) for step in live) == len(attempts)
    return "tree" if is_tree else "general"


def waves(workflow: Workflow) -> tuple[int, ...]:
    """For each step, how many steps must end one after the other before it can start; 0 for one that sees nothing."""
    found: list[int] = []
    for step in range(len(workflow)):
        found.append(max((found[seen] + 1 for seen in workflow.sees(step)), default=0))
    return tuple(found)


def depth(workflow: Workflow) -> int:
    """How many live steps run one after the other at least: the number of steps on the longest path to the answer."""
    return waves(workflow)[-1] + 1 if len(workflow) else 0


def width(workflow: Workflow) -> int:
    """How many live steps run at once at most, if each starts as early as it can and all take equally long."""
    when = waves(workflow)
    counts: dict[int, int] = {}
    for step in live_steps(workflow):
        counts[when[step]] = counts.get(when[step], 0) + 1
    return max(counts.values(), default=0)


def calls(workflow: Workflow) -> int:
    """How many steps a run calls: the live ones. What a Conductor node calls in turn is not known before it runs."""
    return len(live_steps(workflow))


def critical_path(workflow: Workflow, costs: Sequence[float] | Mapping[int, float]) -> CriticalPath:
    """The most expensive path to the answer under the given cost of each step, such as seconds.

    Among equally expensive paths, each step is reached from the earliest step possible.

    Raises:
        ValueError: a live step has no cost, or one that is negative or not a number.
    """
    arrival: dict[int, float] = {}
    came_from: dict[int, int | None] = {}
    for step in sorted(live_steps(workflow)):
        came_from[step] = max(workflow.sees(step), key=arrival.__getitem__, default=None)
        arrival[step] = _cost(costs, step) + _arrival(arrival, came_from[step])
    if not arrival:
        return CriticalPath(0.0, ())
    return CriticalPath(arrival[len(workflow) - 1], tuple(reversed(list(_back(came_from, len(workflow) - 1)))))


def is_conductor(step: Step, conductors: Collection[int]) -> bool:
    """Whether a step is a Conductor node: its worker is a Conductor, or it has a recursion depth of its own."""
    return step.depth is not None or step.worker in conductors


def _arrival(arrival: Mapping[int, float], step: int | None) -> float:
    return 0.0 if step is None else arrival[step]


def _back(came_from: Mapping[int, int | None], last: int) -> Iterable[int]:
    step: int | None = last
    while step is not None:
        yield step
        step = came_from[step]


def _cost(costs: Sequence[float] | Mapping[int, float], step: int) -> float:
    try:
        cost = float(costs[step])
    except (IndexError, KeyError):
        raise ValueError(f"step {step} has no cost: give one for every live step") from None
    if not cost >= 0:
        raise ValueError(f"the cost of step {step} is {cost}: give a number that is 0 or more")
    return cost
