"""The table of replies that was written before the rules: how many right ones are lost, and wrong ones accepted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from wfdsl import Task, grade

DATA = Path(__file__).parent / "data"
MOST_WRONG = {"form": 0.02, "prose": 0.04}
MOST_LOST = {"form": 0.05, "prose": 0.18}


def _tasks() -> dict[int, Task]:
    tasks = {}
    for line in (DATA / "reply_questions.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        options = row["question"].split("\n")[1:] if row["kind"] == "choice" else []
        given = {"question": row["question"], "gold": row["gold"], "kind": row["kind"]}
        tasks[row["id"]] = Task(id=str(row["id"]), choices=tuple(option[3:] for option in options), **given)
    return tasks


@pytest.mark.parametrize("half", ["replies.jsonl", "replies_kept.jsonl"])
async def test_few_right_replies_are_lost_and_fewer_wrong_ones_accepted(half: str) -> None:
    tasks, counts = _tasks(), Counter[tuple[str, str, bool]]()
    for line in (DATA / half).read_text("utf-8").splitlines():
        task, truth, style, _, reply = json.loads(line)
        counts[style, truth, (await grade(tasks[task], reply)).outcome == "right"] += 1

    for style in ("form", "prose"):
        wrong, accepted = counts[style, "wrong", False], counts[style, "wrong", True]
        right, lost = counts[style, "right", True], counts[style, "right", False]
        assert accepted <= MOST_WRONG[style] * (wrong + accepted)
        assert lost <= MOST_LOST[style] * (right + lost)
