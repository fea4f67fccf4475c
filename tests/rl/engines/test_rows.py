"""Tasks as rows of training engines: the prompt, and what finds the task again."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.cli.main import main
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.interpreter.journal_reading import summaries
from wfdsl.interpreter.record import BudgetExhausted
from wfdsl_rl import make_reward
from wfdsl_rl.engines.client import ServerGone
from wfdsl_rl.engines.rows import ENGINES, engine_rows, sample_of
from wfdsl_rl.engines.source import InProcess, RewardSource, SourceOptions, numbers_of, reward_source
from wfdsl_rl.gym.source import tasks as gym_tasks

if TYPE_CHECKING:
    from pathlib import Path

TASKS = [task for task in gym_tasks("gym/seven", 20, seed=1) if task.kind == "math"]
OF_GYM = ["--pool", "gym/seven", "--tasks", "gym/seven"]
ONE = 'model_id = [{worker}]\nsubtasks = ["Solve it."]\naccess_list = [[]]'


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_has_the_prompt_and_the_tasks_id(engine: str) -> None:
    reward = make_reward("gym/seven", TASKS)

    rows = list(engine_rows(reward, engine))

    assert [row["prompt"] for row in rows] == [row["prompt"] for row in reward.rows()]
    assert [task_of(row) for row in rows] == [task.id for task in TASKS]


def task_of(row: dict[str, Any]) -> str:
    held = row.get("reward_model", row.get("reward_spec"))
    return str(row["label"] if held is None else held["ground_truth"])


async def test_what_comes_back_is_scored_on_the_workers_that_the_prompt_lists() -> None:
    shuffled = ConductorConfig(pick=3, shuffle=True, seed=5)
    reward = make_reward("gym/seven", TASKS, conductor=shuffled)
    rows = list(engine_rows(reward, "verl"))

    samples = [sample_of(row["extra_info"], ONE.format(worker=2)) for row in rows]
    results = await InProcess(reward).score(samples)

    names = [reward.pool.entry(row["extra_info"]["true"][row["extra_info"]["shown"].index(2)]).name for row in rows]
    assert [list(result["workers"]) for result in results] == [[name] for name in names]
    assert len(set(names)) > 1


@pytest.mark.parametrize("engine", ["slime", "openrlhf"])
def test_rows_that_cannot_name_workers_refuse_other_lists_of_them(engine: str) -> None:
    reward = make_reward("gym/seven", TASKS, conductor=ConductorConfig(pick=3))

    with pytest.raises(UsageError, match="leave out pick and shuffle"):
        list(engine_rows(reward, engine))


def test_a_completion_without_a_score_is_counted_and_gets_a_number() -> None:
    result = {"score": None, "outcome": "failed", "steps": None, "cost_usd": None}

    numbers = numbers_of(result, 0.5)

    assert numbers == {"score": 0.5, "right": 0, "valid": 1, "unscored": 1, "steps": 0, "cost_usd": 0}


def test_a_thread_without_a_loop_is_scored_too() -> None:
    source = InProcess(make_reward("gym/seven", TASKS))

    found = source.score_sync([{"task": TASKS[0].id, "completion": "nothing"}])

    assert [each["outcome"] for each in found] == ["invalid"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give url, the address of a reward server, or pool and tasks"),
        ({"pool": "gym/seven"}, "or pool and tasks"),
        ({"uri": "http://x"}, "a reward source has no option uri"),
        ({"url": "http://x", "budget_usd": 1.0}, "the reward server keeps the budget: leave budget_usd out"),
        ({"url": "http://x", "journal": "j.db"}, "the reward server keeps the journal: leave journal out"),
    ],
)
def test_options_that_name_no_source_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        reward_source(SourceOptions.of(options))


def test_the_patience_with_a_server_is_an_option() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        source = opened({"url": f"http://127.0.0.1:{held.getsockname()[1]}", "patience_s": 0.2})
        with pytest.raises(ServerGone, match="does not answer"):
            source.score_sync([{"task": "t0", "completion": ""}])


def test_a_process_spends_no_more_than_its_budget_also_after_a_restart(tmp_path: Path) -> None:
    tasks, journal, budget_usd = tmp_path / "tasks.jsonl", tmp_path / "j.db", 0.04
    tasks.write_text("".join(task.model_dump_json() + "\n" for task in TASKS))
    options = {"pool": "gym/seven", "tasks": str(tasks), "journal": str(journal), "budget_usd": budget_usd}
    sample = {"task": TASKS[0].id, "completion": ONE.format(worker=0)}
    before = 0.0
    for _ in range(2):
        with pytest.raises(BudgetExhausted, match="the budget of"):
            opened(options).score_sync([sample] * 200)

        spent = sum(each.charged.usd for each in summaries(journal))
        assert before <= spent <= budget_usd
        before = spent
    assert spent > 0


def opened(options: dict[str, Any]) -> RewardSource:
    """A source as a new process has it."""
    reward_source.cache_clear()
    return reward_source(SourceOptions.of(options))


def test_the_command_writes_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "rows.jsonl"

    code = main(["serve", "--score", "--rows", "slime", *OF_GYM, "--limit", "3", "-o", str(out)])

    assert code == 0
    assert f"3 rows in {out}" in capsys.readouterr().err
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [sorted(row) for row in rows] == [["label", "prompt"]] * 3
