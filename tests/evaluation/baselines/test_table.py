"""The table of baselines, the workflow files of it, and those of one call: which workers are asked, and how often."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.write_tables import baseline_table, parameter_table
from tests.evaluation.toys import policy_of
from wfdsl.api import analyze
from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.evaluation.baselines.baseline import FOLDER, SOLVE, SUBTASKS, RandomRouter, WorkflowFile, random_workflow
from wfdsl.evaluation.baselines.fitting import Fitted
from wfdsl.evaluation.evaluate import estimate_policies
from wfdsl.evaluation.policy_names import BASELINES, policies_of
from wfdsl.evaluation.trials import Evaluation
from wfdsl.graph import graph_of
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.record import BudgetExhausted
from wfdsl.settings import options_of, to_table
from wfdsl.tasks.task import save_tasks

from .toys import staff, tasks

FIXED = [name for name, row in BASELINES.items() if not issubclass(row, Fitted) and not name.startswith("random")]
FILES = sorted(path.stem for path in FOLDER.glob("*.wf"))
PAGE = (Path(__file__).parents[3] / "docs" / "explanation" / "baselines.md").read_text("utf-8")


@pytest.mark.parametrize("name", FIXED)
async def test_as_many_calls_are_made_as_the_table_states(name: str) -> None:
    workers = staff()
    pool = workers.pool()
    values: dict[str, Any] = {parameter.name: parameter.default for parameter in options_of(BASELINES[name])}
    stated = BASELINES[name].calls.replace("workers of the pool", "3")

    await policy_of(name, pool).solve("What is it?", pool)

    assert len(workers.calls) == eval(stated, {}, values)


@pytest.mark.parametrize("name", BASELINES)
async def test_no_more_calls_are_made_and_no_more_is_spent_than_the_estimate_says(name: str, tmp_path: Path) -> None:
    if name == "routerdc":
        pytest.importorskip("torch")
    workers = staff()
    pool = workers.pool()
    save_tasks(tmp_path / "v.jsonl", tasks(2))
    settings = {"validation": tmp_path / "v.jsonl", "search_calls": 40}
    own = {option.name for option in options_of(BASELINES[name])}
    given = ",".join(f"{key}={value}" for key, value in settings.items() if key in own)
    [(label, policy)] = policies_of([f"{name}:{given}" if given else name], pool).items()
    [found] = estimate_policies(Evaluation(policies={label: policy}, tasks=tasks(1), pool=pool))
    assert found.calls is not None
    assert found.usd_at_most is not None
    await policy.solve("What is it?", pool)
    counts = []

    for at in range(8):
        workers.calls.clear()
        solution = await policy.solve(f"Name the red thing {at}.", pool)
        counts.append(len(workers.calls))
        assert (solution.list_usd or 0) <= found.usd_at_most

    assert found.calls / 5 <= max(counts) <= found.calls


@pytest.mark.parametrize("row", BASELINES.values(), ids=lambda row: row.name)
def test_a_row_names_its_paper_and_what_it_simplifies(row: Any) -> None:
    assert row.source == "none" or re.search(r"arXiv \d{4}\.\d{5}", row.source)
    assert "our choice" in row.simplifies or row.source != "none"
    assert f"| `{row.name}` |" in baseline_table()
    assert f"`{row.name}`" in PAGE
    assert all(f"| `{each.name}` |" in parameter_table() for each in options_of(row))


def test_the_tables_have_no_empty_cell_and_every_file() -> None:
    assert set(FILES) == {name for name, baseline in BASELINES.items() if issubclass(baseline, WorkflowFile)}
    assert not re.search(r"\| *\|", f"{baseline_table()}\n{parameter_table()}")


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


async def test_long_context_asks_once_for_a_reply_five_times_as_long_for_which_a_budget_reserves() -> None:
    team = staff()
    pool = team.pool()
    policy = policy_of("long-context:worker=1", pool)

    solution = await policy.solve("What?", pool, seed=3)

    assert [(call.worker, call.settings["max_tokens"]) for call in team.calls] == [("bob", 500)]
    assert team.calls[0].settings.keys() == {"max_tokens", "seed"}
    assert solution.answer == "The answer is bob0"
    with pytest.raises(BudgetExhausted):
        await policy.solve("What?", pool, budget=Budget(tokens=400))


async def test_the_random_router_draws_by_seed_question_and_run() -> None:
    async def drawn(seed: int, run_seed: int) -> list[str]:
        team = staff()
        pool = team.pool()
        for question in "abcdefgh":
            await RandomRouter(seed).solve(question, pool, seed=run_seed)
        return [call.worker for call in team.calls]

    first = await drawn(0, 0)

    assert set(first) == {"ann", "bob", "cy"}
    assert first == await drawn(0, 0)
    assert first != await drawn(1, 0)
    assert first != await drawn(0, 1)


def test_random_workflows_plan_first_attempt_next_and_look_last() -> None:
    chance = random.Random(1)
    workflows = [random_workflow(chance, (3, 5)) for _ in range(300)]
    kinds = {SUBTASKS["P"]: "P", SOLVE: "S"}

    for workflow in workflows:
        letters = "".join(kinds.get(step.subtask, "L") for step in workflow)
        assert letters == "".join(sorted(letters, key="PSL".index))
        assert "S" in letters
        assert {step.worker for step in workflow} <= {3, 5}
        assert len(workflow) - 1 in graph_of(workflow).live
    assert {len(workflow) for workflow in workflows} == {1, 2, 3, 4, 5}
