"""The baselines that are workflow files: who is asked, what they see, and that they suit any pool."""

from __future__ import annotations

from typing import Any

import pytest

from wfdsl.api import analyze
from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.evaluation.baselines.baseline import FOLDER, WorkflowFile
from wfdsl.evaluation.policy_names import BASELINES, policy_of
from wfdsl.settings import to_table

from .toys import staff

FILES = sorted(path.stem for path in FOLDER.glob("*.wf"))


def steps_of(name: str, **pool: Any) -> list[tuple[Any, Any]]:
    policy = policy_of(name, staff().pool(**pool))
    assert isinstance(policy, WorkflowPolicy)
    return [(step.worker, step.access) for step in policy.workflow]


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("self-reflection:rounds=2", [(0, ()), (0, (0,)), (0, (0, 1))]),
        ("self-reflection:worker=cy,rounds=1", [(2, ()), (2, (0,))]),
        ("consensus:n=2,aggregator=1", [(0, ()), (0, ()), (1, (0, 1))]),
        ("moa", [(0, ()), (1, ()), (2, ()), (0, (0, 1, 2))]),
        ("moa:aggregator=bob", [(0, ()), (1, ()), (2, ()), (1, (0, 1, 2))]),
        ("debate", [(0, ()), (1, ()), (0, (0, 1)), (1, (0, 1)), (2, "all")]),
        ("tree-of-agents:leaves=1", [(0, ()), (1, ()), (0, (0,)), (1, (1,)), (0, (2, 3))]),
    ],
)
def test_a_file_asks_these_workers_and_shows_them_this(name: str, steps: list[tuple[int, Any]]) -> None:
    assert steps_of(name) == steps


@pytest.mark.parametrize("name", FILES)
def test_a_file_suits_a_pool_of_one_worker_with_another_index(name: str) -> None:
    assert {worker for worker, _ in steps_of(name, indices=(2,))} == {2}


async def test_a_file_runs_and_answers_with_its_last_step() -> None:
    team = staff()
    pool = team.pool()

    solution = await policy_of("consensus:n=2,aggregator=cy", pool).solve("What?", pool)

    assert team.who == ["ann", "ann", "cy"]
    assert solution.answer == "The answer is cy2"
    assert sorted(team.calls, key=lambda call: call.path)[2].seen == ["The answer is ann0", "The answer is ann1"]
    assert solution.usage.total_tokens == 45


@pytest.mark.parametrize("name", FILES)
def test_the_table_knows_the_parameters_of_a_file_and_their_defaults(name: str) -> None:
    text = (FOLDER / f"{name}.wf").read_text("utf-8")
    written = dict(
        line.split("#")[0].removeprefix("param ").split(" = ") for line in text.splitlines() if "param " in line
    )
    checked = analyze(text, pool=staff().pool(), form="wf")

    assert (checked.ok, checked.diagnostics) == (True, ())
    assert {key: int(value) for key, value in written.items()} == to_table(BASELINES[name]())


def test_every_file_is_in_the_table() -> None:
    assert set(FILES) == {name for name, baseline in BASELINES.items() if issubclass(baseline, WorkflowFile)}
