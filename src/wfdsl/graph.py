"""The DAG of a workflow: a networkx graph with its live steps, topology class and schedule.

A graph is made once per workflow and cached; the interpreter runs from its schedule. Which steps are live is decided
in one place, `wfdsl.language.check.live_steps`, which the checker uses too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from wfdsl.language.check import live_steps
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow

if TYPE_CHECKING:  # start-up: networkx takes as long to import as everything else that a check needs
    import networkx as nx

Topology: TypeAlias = Literal["single", "chain", "best-of-n", "independent-then-aggregate", "tree", "general"]
_CACHED: Final = 1024  # graphs; our choice: training and evaluation run the same workflows many times


class Schedule(NamedTuple):
    """Which steps run, and when each may start: as soon as every step that it sees has finished."""

    first: tuple[int, ...]
    """The steps that may start at once, ascending."""
    missing: tuple[int, ...]
    """For each step, how many steps have to finish before it may start; -1 for a step that never runs."""
    seen_by: tuple[tuple[int, ...], ...]
    """For each step, the steps to run that see it, ascending."""
    pruned: tuple[int, ...]
    """The dead steps that are left out."""
    workers: tuple[int | str, ...]
    """The workers of the steps to run, each once."""


@lru_cache(maxsize=_CACHED)
def graph_of(workflow: Workflow) -> Graph:
    """The graph of a workflow; equal workflows share one."""
    return Graph(workflow)


class Graph:
    """What the shape of a workflow says. Everything is computed when it is first asked for, and kept."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.sees: Final = tuple(workflow.sees(step) for step in range(len(workflow)))
        """For each step, the earlier steps that it is shown, ascending."""
        self._schedules: dict[bool, Schedule] = {}

    @cached_property
    def dag(self) -> nx.DiGraph[int]:
        """The networkx graph: a node for each step index, an edge from each step to those that see it; frozen.

        Nodes stand in index order, which is a topological order. `to_dag` gives a copy with attributes.
        """
        import networkx as nx  # noqa: PLC0415  (start-up: pictures and statistics need no graph)

        dag: nx.DiGraph[int] = nx.DiGraph()
        dag.add_nodes_from(range(len(self.sees)))
        dag.add_edges_from((seen, step) for step, earlier in enumerate(self.sees) for seen in earlier)
        nx.freeze(dag)
        return dag

    @cached_property
    def live(self) -> frozenset[int]:
        """The steps whose response can reach the answer, the last step among them. Only they are called in a run."""
        return frozenset(live_steps(self.sees))

    @cached_property
    def essential(self) -> tuple[tuple[int, ...], ...]:
        """For each step, what it sees without shortcuts: without steps that another step it sees has (in)directly seen.

        These are the edges of the DAG's transitive reduction, over all steps, dead ones too.
        """
        before: list[int] = []  # bit j of before[i]: information flows from step j to step i
        kept: list[tuple[int, ...]] = []
        for sees in self.sees:
            covered = 0
            for seen in sees:
                covered |= before[seen]
            before.append(covered | sum(1 << seen for seen in sees))
            kept.append(tuple(seen for seen in sees if not covered >> seen & 1))
        return tuple(kept)

    @cached_property
    def topology(self) -> Topology:
        """The class of the shape; the first of these that fits, so the classes do not overlap.

        Shortcuts do not count: a step that sees a step which reaches it on a longer way too, as with `"all"` in a
        chain, adds no order. So each rule reads the transitive reduction of the live steps.

        - `single`: one live step.
        - `chain`: each live step but the first sees the live step before it, and perhaps earlier ones.
        - `best-of-n`: two or more steps that see nothing, all with one worker and one subtask; the last sees them all.
        - `independent-then-aggregate`: the same shape with attempts that differ in worker or subtask.
        - `tree`: each live step but the last feeds exactly one other, and it is none of the above.
        - `general`: anything else, such as a plan that two solvers share, or a debate in rounds.

        Source: the topologies named in arXiv 2512.04388, section 3; the exact rules are our choice.
        """
        live, sees = sorted(self.live), self.essential
        attempts, last = live[:-1], live[-1:]
        if len(live) <= 1:
            return "single"
        if all(sees[step] == (before,) for before, step in pairwise(live)):
            return "chain"
        if sees[last[0]] == tuple(attempts):
            same = len({(self.workflow[step].worker, self.workflow[step].subtask) for step in attempts}) == 1
            return "best-of-n" if same else "independent-then-aggregate"
        is_tree = sum(len(sees[step]) for step in live) == len(attempts)
        return "tree" if is_tree else "general"

    @cached_property
    def waves(self) -> tuple[int, ...]:
        """For each step, how many steps must end one after the other before it can start; 0 if it sees nothing."""
        found: list[int] = []
        for sees in self.sees:
            found.append(max((found[seen] + 1 for seen in sees), default=0))
        return tuple(found)

    @property
    def depth(self) -> int:
        """The number of live steps on the longest path to the answer."""
        return self.waves[-1] + 1 if self.waves else 0

    @cached_property
    def width(self) -> int:
        """The most live steps that run at once, if each starts as early as it can and all take equally long."""
        return max(Counter(self.waves[step] for step in self.live).values(), default=0)

    def schedule(self, *, run_dead_steps: bool = False) -> Schedule:
        """What the interpreter runs from; `run_dead_steps` keeps the steps that cannot change the answer."""
        if run_dead_steps in self._schedules:
            return self._schedules[run_dead_steps]
        dag, steps = self.dag, range(len(self.sees))
        run = frozenset(steps) if run_dead_steps else self.live
        # The ready counters of the subgraph: its in-degrees and successors.
        found = self._schedules[run_dead_steps] = Schedule(
            first=tuple(step for step in steps if step in run and not dag.pred[step]),
            missing=tuple(dag.in_degree(step) if step in run else -1 for step in steps),
            seen_by=tuple(tuple(later for later in dag.succ[step] if later in run) for step in steps),
            pruned=tuple(step for step in steps if step not in run),
            workers=tuple(dict.fromkeys(self.workflow[step].worker for step in steps if step in run)),
        )
        return found


def to_dag(
    workflow: Workflow, *, names: Sequence[str] | None = None, conductors: Collection[int] = ()
) -> nx.DiGraph[int]:
    """The graph of a workflow with attributes, as a copy of its own.

    Node attributes: `worker`, `subtask`, `access` (`"all"` or a tuple), `conductor` (its worker is in `conductors`, or
    it has a depth), `depth`, `name` (or None) and `live`. Edge attribute: `access`, `"all"` or `"listed"`, by how the
    later step asked. Graph attributes: `answer` (the last step's index) and `topology`. Nodes stand in index order,
    which is a topological order.

    Raises:
        ValueError: `names` has not one name for each step.
    """
    import networkx as nx  # noqa: PLC0415  (start-up)

    graph = graph_of(workflow)
    dag: nx.DiGraph[int] = nx.DiGraph(graph.dag, answer=len(workflow) - 1, topology=graph.topology)
    labels = names if names is not None else [None] * len(workflow)
    for index, (step, name) in enumerate(zip(workflow, labels, strict=True)):
        said = {"worker": step.worker, "subtask": step.subtask, "access": step.access, "depth": step.depth}
        conducts = is_conductor(step, conductors)
        dag.add_node(index, **said, conductor=conducts, name=name, live=index in graph.live)
        how = ALL if step.access == ALL else "listed"
        dag.add_edges_from((seen, index, {"access": how}) for seen in graph.sees[index])
    return dag


def is_conductor(step: Step, conductors: Collection[int]) -> bool:
    """Whether a step is a Conductor node: its worker is a Conductor, or it has a recursion depth of its own."""
    return step.depth is not None or step.worker in conductors
