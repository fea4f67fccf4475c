"""Rows for the form: valid workflows, after one line of thought, with no route in them."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import wfdsl
from wfdsl.errors import UsageError
from wfdsl.language.tree import ALL
from wfdsl_rl.gym.questions import KINDS
from wfdsl_rl.gym.start import sft_rows, stage_rows
from wfdsl_rl.gym.world import WORKERS, role_of
from wfdsl_rl.training.data import read_rows

PER_KIND = 20 * len(WORKERS)


@pytest.mark.parametrize("max_steps", [1, 3])
def test_rows_are_valid_and_balanced_by_kind_shape_and_place(max_steps: int) -> None:
    rows = sft_rows(PER_KIND, max_steps=max_steps)
    workers: Counter[tuple[object, ...]] = Counter()
    for at, row in enumerate(rows):
        kind = KINDS[at % len(KINDS)]
        text = row["completion"][0]["content"]
        checked = wfdsl.analyze(text, pool=len(WORKERS), max_steps=max_steps)
        assert checked.ok
        assert checked.workflow is not None
        lists = checked.workflow.to_lists()
        done = [
            f"{role_of(subtask)} {worker}" for subtask, worker in zip(lists["subtasks"], lists["model_id"], strict=True)
        ]
        lead, *others = text.partition("\n")[0].removeprefix(f"{kind}:").split(" ", 1)
        first = next(each for each in done if each.startswith("solve"))
        done.remove(first)
        assert (f"solve {lead}", others) == (first, [" ".join(done)] if done else [])
        shape = (tuple(lists["subtasks"]), str(lists["access_list"]))
        workers.update((kind, shape, place, worker) for place, worker in enumerate(lists["model_id"]))
    for found in list(workers):
        counts = [workers[(*found[:3], worker)] for worker in range(len(WORKERS))]
        assert len(set(counts)) == 1


def test_rows_of_stages_offer_some_workers_and_revise() -> None:
    rows, checkers, first = stage_rows(4 * len(WORKERS)), Counter[tuple[str, str]](), Counter[tuple[int, int]]()
    for at, row in enumerate(rows):
        kind, turn, text = KINDS[at % len(KINDS)], at // len(KINDS) % 4, row["completion"][0]["content"]
        listed = re.findall(r"^(\w+) (\d+)$", row["prompt"][1]["content"], re.MULTILINE)
        assert [number for _, number in listed] == [str(number) for number in range(len(listed))]
        assert 2 <= len(listed) <= len(WORKERS)
        checked = wfdsl.analyze(text, pool=len(listed), max_steps=3, recursion=turn > 1)
        assert checked.ok
        assert (len(row["prompt"]), checked.passthrough) == (4 if turn > 1 else 2, turn == 2)
        thought, steps = text.partition("\n")[0], list(checked.workflow or ())
        named = [f"{listed[int(step.worker)][0]} {step.worker}" for step in steps]
        assert all(each in thought for each in named)
        if turn == 3:
            assert (thought, steps[0].access) == (f"{kind}:check {named[0]}", ALL)
            checkers[kind, listed[int(steps[0].worker)][0]] += 1
        first[turn, len(steps)] += 1
    assert set(checkers.values()) == {1}
    assert {length for turn, length in first if turn < 2} == {1, 2, 3}


def test_rows_of_second_rounds_alone_keep_or_check_one_call() -> None:
    rows = stage_rows(2, second_rounds=True)
    read = [wfdsl.analyze(row["completion"][0]["content"], pool=7, max_steps=1, recursion=True) for row in rows]
    assert [each.passthrough for each in read] == [True] * len(KINDS) + [False] * len(KINDS)
    assert {len(row["prompt"]) for row in rows} == {4}


def test_rows_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = sft_rows(1)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert read_rows(file) == rows


@pytest.mark.parametrize("text", ["", "{}\n", '{"prompt": [], "completion": []}\n', "no json\n"])
def test_files_without_rows_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(text, "utf-8")
    with pytest.raises(UsageError):
        read_rows(file)
    with pytest.raises(UsageError):
        read_rows(tmp_path / "missing.jsonl")
