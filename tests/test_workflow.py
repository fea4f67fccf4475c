"""What a workflow is: built from three lists or not at all, immutable, and given back as three lists."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from wfdsl import Step, Workflow, WorkflowError, dumps, parse


def test_three_lists_make_a_workflow_and_come_back_normalised() -> None:
    workflow = Workflow.from_lists([2, 0, 1], ["a", "b", "c"], [[], ["ALL"], (1, 0, 1)])

    lists = workflow.to_lists()

    assert lists == {"model_id": [2, 0, 1], "subtasks": ["a", "b", "c"], "access_list": [[], "all", [0, 1]]}
    assert [workflow.sees(step) for step in range(3)] == [(), (0,), (0, 1)]
    assert [step.worker for step in workflow] == [2, 0, 1]
    assert (len(workflow), workflow[1].access) == (3, "all")
    assert Workflow.from_lists(**lists) == workflow
    assert Workflow.from_lists([0] * 50, ["a"] * 50, ["all"] * 50).sees(49) == tuple(range(49))  # more than five


@pytest.mark.parametrize(
    ("model_id", "subtasks", "access_list", "codes"),
    [
        ([True], ["a"], [[]], ["worker-type"]),
        (["0"], ["a"], [[]], ["worker-type"]),
        ([-1], ["a"], [[]], ["worker-not-in-pool"]),
        ([10**20], ["a"], [[]], ["number-too-large"]),
        ([0], [3], [[]], ["subtask-type"]),
        ([0], [" \n"], [[]], ["subtask-blank"]),
        ([0], ["\ud800"], [[]], ["lone-surrogate"]),
        ([0], ["\ud83d\ude00"], [[]], ["lone-surrogate"]),
        ([0], ["a"], ["some"], ["access-type"]),
        ([0], ["a"], [0], ["access-type"]),
        ([0], ["a"], [[0.0]], ["access-type"]),
        ([0], ["a"], [[0]], ["access-not-earlier"]),
        ([0], ["a"], [[-1]], ["access-negative"]),
        ([0, 1], ["a"], [[]], ["lengths-differ"]),
        ([0], ["a"], [], ["lengths-differ"]),
        ([], [], [], ["empty-workflow"]),
    ],
)
def test_lists_that_are_no_workflow_are_an_error_that_says_why(
    model_id: list[Any], subtasks: list[Any], access_list: list[Any], codes: list[str]
) -> None:
    with pytest.raises(WorkflowError) as failed:
        Workflow.from_lists(model_id, subtasks, access_list)

    assert [found.code for found in failed.value.diagnostics] == codes
    assert str(failed.value).startswith("error[")


def test_workflows_are_equal_by_workers_subtasks_access_and_depth_and_cannot_be_changed() -> None:
    workflow = Workflow((Step(0, "a"), Step(1, "b", "all")))

    assert workflow == Workflow.from_lists([0, 1], ["a", "b"], [[], "all"])
    assert workflow != Workflow.from_lists([0, 1], ["a", "b"], [[], [0]]), (
        "a full list of indices is not the literal all"
    )
    assert workflow != Workflow((Step(0, "a"), Step(1, "b", "all", depth=1)))
    assert len({workflow, Workflow((Step(0, "a"), Step(1, "b", "all")))}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        workflow.steps[0].worker = 1  # type: ignore[misc]


def test_lists_cannot_say_a_depth_or_a_worker_without_an_index() -> None:
    workflow = Workflow((Step("planner", "a"), Step("solver", "b", (0,), depth=2)))

    with pytest.raises(WorkflowError) as failed:
        workflow.to_lists()

    assert [found.code for found in failed.value.diagnostics] == ["pool-needed", "depth-unlisted"]
    assert "`planner`, `solver`" in str(failed.value)


@pytest.mark.parametrize("subtask", ['"', "\\", "\n", "\r\n", "\x00", "\u2028", "\U0001f642", "'''", '"""', "</think>"])
def test_every_subtask_survives_printing_and_reading(subtask: str) -> None:
    workflow = Workflow.from_lists([0], [f"{subtask}x{subtask}"], [["all"]])

    assert parse(dumps(workflow)) == workflow
