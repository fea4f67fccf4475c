"""The tables of replies: how many right ones are lost, and wrong ones accepted; and replies that were reported."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.grading.sandboxes import needs_sandbox, the_sandbox
from tests.grading.tables import TABLES, cases, rows
from wfdsl import Task, grade

MOST = {
    "replies": {"form": (0.01, 0.02), "prose": (0.02, 0.03)},
    "independent": {"form": (0.03, 0.02), "prose": (0.11, 0.06)},  # its author's prose is far from any statement
    "exam": {"form": (0.04, 0.02), "prose": (0.10, 0.04)},
    "blind": {"form": (0.03, 0.02), "prose": (0.10, 0.04)},
    "unseen": {"form": (0.05, 0.02), "prose": (0.11, 0.04)},
    "unseen_kept": {"form": (0.03, 0.02), "prose": (0.23, 0.04)},
    "fresh": {"form": (0.07, 0.02), "prose": (0.17, 0.04)},
}
"""The largest shares of right replies that are lost, and of wrong ones that are accepted."""


@pytest.mark.parametrize("table", TABLES)
async def test_few_right_replies_are_lost_and_fewer_wrong_ones_accepted(table: str) -> None:
    counts = Counter[tuple[str, bool, bool]]()
    for case in cases(table):
        counts[case.form, case.is_right, (await grade(case.task, case.reply)).outcome == "right"] += 1

    for form in ("form", "prose"):
        wrong, accepted = counts[form, False, False], counts[form, False, True]
        right, lost = counts[form, True, True], counts[form, True, False]
        most_lost, most_accepted = (MOST.get(table) or MOST[table.removesuffix("_kept")])[form]
        assert accepted <= most_accepted * (wrong + accepted)
        assert lost <= most_lost * (right + lost)


@pytest.mark.parametrize(
    "case", [pytest.param(row, marks=needs_sandbox if row["kind"] == "code" else ()) for row in rows("reported")]
)
async def test_replies_that_were_once_graded_wrongly_are_not_any_more(case: dict[str, Any]) -> None:
    task = Task.model_validate({"id": "1", "question": "?", "gold": "", **case_of(case)})

    verdict = await grade(task, case["reply"], sandbox=the_sandbox() if task.kind == "code" else None)

    assert verdict.outcome == case["expected"], verdict


def case_of(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("kind", "gold", "tests") if name in row}
