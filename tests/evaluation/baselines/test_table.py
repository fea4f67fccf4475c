"""The table of baselines: every row is whole, and the calls that it states are those that are made."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.write_tables import baseline_table, parameter_table
from wfdsl.evaluation.baselines.fitting import Fitted
from wfdsl.evaluation.estimate import estimate_policies
from wfdsl.evaluation.policy_names import BASELINES, policies_of, policy_of
from wfdsl.evaluation.trials import Evaluation
from wfdsl.settings import options_of
from wfdsl.tasks.task import save_tasks

from .toys import staff, tasks

FIXED = [name for name, row in BASELINES.items() if not issubclass(row, Fitted) and not name.startswith("random")]


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
    assert all(f"| `{each.name}` |" in parameter_table() for each in options_of(row))


def test_the_tables_have_no_empty_cell() -> None:
    assert not re.search(r"\| *\|", f"{baseline_table()}\n{parameter_table()}")
