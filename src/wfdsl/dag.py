"""A workflow as a networkx graph, for whoever wants graph algorithms on it.

Building it costs as much as a parse, so whatever only needs the shape of a workflow asks `wfdsl.topology` instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx

from wfdsl.language.tree import ALL
from wfdsl.topology import is_conductor, live_steps, topology

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from wfdsl.language.workflow import Step, Workflow


def to_dag(
    workflow: Workflow, *, names: Sequence[str] | None = None, conductors: Collection[int] = ()
) -> nx.DiGraph[int]:
    """Build the graph: a node for each step index, an edge for each step that a step sees, along the information.

    Node attributes: `worker`, `subtask`, `access` (`"all"` or a tuple), `conductor` (its worker is in `conductors`, or
    it has a depth), `depth`, `name` (or None) and `live`. Edge attribute: `access`, `"all"` or `"listed"`, by how the
    later step asked. Graph attributes: `answer` (the last step's index) and `topology`. Nodes stand in index order,
    which is a topological order.

    Raises:
        ValueError: `names` has not one name for each step.
    """
    labels = names if names is not None else [None] * len(workflow)
    dag: nx.DiGraph[int] = nx.DiGraph(answer=len(workflow) - 1, topology=topology(workflow))
    live = live_steps(workflow)
    for index, (step, name) in enumerate(zip(workflow, labels, strict=True)):
        dag.add_node(index, **_attributes(step, conductors), name=name, live=index in live)
        how = ALL if step.access == ALL else "listed"
        dag.add_edges_from((seen, index, {"access": how}) for seen in workflow.sees(index))
    return dag


def _attributes(step: Step, conductors: Collection[int]) -> dict[str, Any]:
    return {
        "worker": step.worker,
        "subtask": step.subtask,
        "access": step.access,
        "conductor": is_conductor(step, conductors),
        "depth": step.depth,
    }
