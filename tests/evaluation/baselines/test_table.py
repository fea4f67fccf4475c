"""The table of baselines: every row is whole, and the calls that it states are those that are made."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.write_tables import baseline_table, parameter_table
from wfdsl.evaluation.baselines.catalogue import BASELINES
from wfdsl.evaluation.policy_names import policy_of
from wfdsl.tasks.task import save_tasks

from .toys import staff, tasks

FIXED = [name for name, row in BASELINES.items() if not row.is_fitted and not name.startswith("random")]


@pytest.mark.parametrize("name", FIXED)
async def test_as_many_calls_are_made_as_the_table_states(name: str) -> None:
    workers = staff()
    pool = workers.pool()
    values: dict[str, Any] = {parameter.name: parameter.default for parameter in BASELINES[name].parameters}
    stated = BASELINES[name].calls.replace("workers of the pool", "3")

    await policy_of(name, pool).solve("What is it?", pool)

    assert len(workers.calls) == eval(stated, {}, values)


@pytest.mark.parametrize("name", [name for name, row in BASELINES.items() if row.policy is not None])
async def test_no_more_calls_are_made_than_the_policy_says(name: str, tmp_path: Path) -> None:
    workers = staff()
    pool = workers.pool()
    save_tasks(tmp_path / "v.jsonl", tasks(2))
    tasks_to_fit = f":validation={tmp_path / 'v.jsonl'}" if BASELINES[name].is_fitted else ""
    policy: Any = policy_of(name + tasks_to_fit, pool)
    await policy.solve("What is it?", pool)
    counts = []

    for at in range(8):
        workers.calls.clear()
        await policy.solve(f"What is {at}?", pool)
        counts.append(len(workers.calls))

    assert max(counts) <= policy.most_calls(pool)
    assert max(counts) >= policy.most_calls(pool) / 5


@pytest.mark.parametrize("row", BASELINES.values(), ids=lambda row: row.name)
def test_a_row_names_its_paper_and_what_it_simplifies(row: Any) -> None:
    assert row.simplifies
    assert row.source == "none" or re.search(r"arXiv \d{4}\.\d{5}", row.source)
    assert "our choice" in row.simplifies or row.source != "none" or row.name == "best-worker-router"


def test_the_tables_have_a_row_for_everything() -> None:
    assert [f"| `{name}` |" in baseline_table() for name in BASELINES] == [True] * len(BASELINES)
    assert all(
        f"| `{each.name}` | {each.shown()} |" in parameter_table()
        for row in BASELINES.values()
        for each in row.parameters
    )
    assert not re.search(r"\| *\|", f"{baseline_table()}\n{parameter_table()}")
