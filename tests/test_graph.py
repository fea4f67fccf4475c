"""The DAG and the shape of a workflow; networkx's own algorithms are the oracle for our passes."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfdsl.graph import graph_of, to_dag
from wfdsl.language.tree import Access
from wfdsl.language.workflow import Step, Workflow


@st.composite
def workflows(draw: st.DrawFn, max_steps: int = 9) -> Workflow:
    steps = []
    for index in range(draw(st.integers(1, max_steps))):
        listed = st.sets(st.integers(0, index - 1)).map(lambda seen: tuple(sorted(seen))) if index else st.just(())
        access: Access = draw(st.one_of(listed, listed, st.just("all")))
        steps.append(Step(draw(st.integers(0, 2)), draw(st.sampled_from(["Solve.", "Check."])), access))
    return Workflow(tuple(steps))


def shape(*access: Access, workers: list[int] | None = None, subtasks: list[str] | None = None) -> Workflow:
    """A workflow with these access entries; workers differ unless given."""
    return Workflow(
        tuple(
            Step(workers[i] if workers else i, subtasks[i] if subtasks else f"Do part {i}.", entry)
            for i, entry in enumerate(access)
        )
    )


@given(workflows())
def test_there_is_an_edge_for_exactly_each_step_that_a_step_sees(workflow: Workflow) -> None:
    dag = to_dag(workflow)

    assert set(dag.edges) == {(seen, i) for i in range(len(workflow)) for seen in workflow.sees(i)}
    assert list(dag.nodes) == list(range(len(workflow)))
    assert all(earlier < later for earlier, later in dag.edges)


def test_nodes_and_edges_carry_what_the_step_says() -> None:
    workflow = Workflow((Step(3, "Plan.", (), 2), Step(1, "Look."), Step(4, "Join.", "all")))

    dag = to_dag(workflow, names=["plan", "look", "join"], conductors={4})

    said = {"worker": 3, "subtask": "Plan.", "access": (), "depth": 2, "name": "plan"}
    assert dag.nodes[0] == {**said, "conductor": True, "live": True}
    assert [dag.nodes[i]["conductor"] for i in dag] == [True, False, True]
    assert dag.edges[0, 2] == {"access": "all"}
    assert to_dag(shape((), (0,))).edges[0, 1]["access"] == "listed"
    with pytest.raises(ValueError, match="zip"):
        to_dag(workflow, names=["only one"])
    assert dag.graph == {"answer": 2, "topology": "independent-then-aggregate"}


@given(workflows())
def test_live_steps_are_the_last_one_and_its_ancestors(workflow: Workflow) -> None:
    last = len(workflow) - 1

    expected = nx.ancestors(to_dag(workflow), last) | {last}

    assert graph_of(workflow).live == expected


@given(workflows(), st.booleans())
def test_the_schedule_counts_down_the_edges_of_the_graph(workflow: Workflow, run_dead_steps: bool) -> None:
    graph = graph_of(workflow)
    dag = to_dag(workflow)
    run = set(dag) if run_dead_steps else set(graph.live)

    schedule = graph.schedule(run_dead_steps=run_dead_steps)

    assert schedule.missing == tuple(dag.in_degree(step) if step in run else -1 for step in dag)
    assert schedule.first == tuple(step for step in dag if step in run and dag.in_degree(step) == 0)
    assert schedule.seen_by == tuple(tuple(sorted(run & set(dag.successors(step)))) for step in dag)
    assert schedule.pruned == tuple(sorted(set(dag) - run))


def test_equal_workflows_share_a_graph_that_cannot_be_changed() -> None:
    graph = graph_of(shape((), (0,)))

    assert graph_of(shape((), (0,))) is graph
    with pytest.raises(nx.NetworkXError, match=r"[Ff]rozen"):
        graph.dag.add_edge(1, 0)
    to_dag(shape((), (0,))).add_edge(1, 0)
    assert list(graph.dag.edges) == [(0, 1)]


@given(workflows())
def test_essential_edges_are_the_transitive_reduction(workflow: Workflow) -> None:
    reduced = nx.transitive_reduction(to_dag(workflow))

    assert {(seen, i) for i, kept in enumerate(graph_of(workflow).essential) for seen in kept} == set(reduced.edges)


@given(workflows())
def test_depth_and_width_agree_with_the_longest_path_and_the_generations(workflow: Workflow) -> None:
    live = to_dag(workflow).subgraph(graph_of(workflow).live)

    generations = list(nx.topological_generations(live))

    assert graph_of(workflow).depth == nx.dag_longest_path_length(live) + 1 == len(generations)
    assert graph_of(workflow).width == max(map(len, generations))
    assert all(graph_of(workflow).waves[step] == wave for wave, steps in enumerate(generations) for step in steps)


SOLVE5 = ["Solve."] * 5


@pytest.mark.parametrize(
    ("workflow", "expected"),
    [
        (shape(()), "single"),
        (shape("all"), "single"),
        (shape((), ()), "single"),
        (shape((), (0,)), "chain"),
        (shape((), (0,), (1,)), "chain"),
        (shape((), "all", "all"), "chain"),
        (shape((), (0,), (0, 1)), "chain"),
        (shape((), (), (0,), (2,)), "chain"),
        (shape((), (), "all", workers=[1, 1, 1], subtasks=["Solve.", "Solve.", "Pick."]), "best-of-n"),
        (shape((), (), (), (), (0, 1, 2, 3), workers=[2, 2, 2, 2, 0], subtasks=SOLVE5), "best-of-n"),
        (shape((), (), (0, 1), workers=[1, 2, 1], subtasks=["Solve."] * 3), "independent-then-aggregate"),
        (shape((), (), (0, 1), workers=[1, 1, 1]), "independent-then-aggregate"),
        (shape((), (), (), (0, 2), workers=[1, 2, 1, 1], subtasks=["Solve."] * 4), "best-of-n"),
        (shape((), (), (0, 1), (), (2, 3)), "tree"),
        (shape((), (), (0, 1), (), (), (3, 4), (2, 5)), "tree"),
        (shape((), (), (0, 1), (), "all"), "tree"),
        (shape((), (), (0, 1), (2,)), "tree"),
        (shape((), (0,), (0,), (1, 2)), "general"),
        (shape((), (), (0, 1), (0, 1), (2, 3)), "general"),
    ],
)
def test_each_topology_class_by_example(workflow: Workflow, expected: str) -> None:
    assert graph_of(workflow).topology == expected


@given(workflows())
def test_topology_depends_on_the_order_of_information_only(workflow: Workflow) -> None:
    reduced = Workflow(
        tuple(Step(s.worker, s.subtask, kept) for s, kept in zip(workflow, graph_of(workflow).essential, strict=True))
    )
    closure = nx.transitive_closure_dag(to_dag(workflow))
    closed = Workflow(
        tuple(Step(s.worker, s.subtask, tuple(sorted(closure.predecessors(i)))) for i, s in enumerate(workflow))
    )

    assert graph_of(workflow).topology == graph_of(reduced).topology == graph_of(closed).topology


@given(workflows())
def test_topology_ignores_dead_steps(workflow: Workflow) -> None:
    live = sorted(graph_of(workflow).live)
    place = {step: index for index, step in enumerate(live)}
    pruned = Workflow(
        tuple(Step(workflow[i].worker, workflow[i].subtask, tuple(place[j] for j in workflow.sees(i))) for i in live)
    )

    assert graph_of(workflow).topology == graph_of(pruned).topology
    assert (graph_of(workflow).depth, graph_of(workflow).width) == (graph_of(pruned).depth, graph_of(pruned).width)


def test_no_steps_have_no_shape_and_thousands_need_no_recursion() -> None:
    empty = graph_of(Workflow(()))
    workflow = Workflow(tuple(Step(0, "Refine.", (i - 1,) if i else ()) for i in range(5000)))

    assert (empty.depth, empty.width, empty.topology) == (0, 0, "single")
    assert graph_of(workflow).topology == "chain"
    assert graph_of(workflow).depth == 5000
