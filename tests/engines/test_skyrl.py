"""The environment for SkyRL: one completion, one reward, and only right answers count as passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.engines.conftest import COMPLETIONS, IN_PROCESS, POOL, program, write_tasks
from tests.rl.engines.conftest import RewardProcess

if TYPE_CHECKING:
    from pathlib import Path


def test_only_right_answers_have_a_positive_reward(tmp_path: Path) -> None:
    write_tasks(tmp_path, "skyrl", "rows.jsonl")

    said = program("skyrl", "skyrl_episodes", tmp_path, "rows.jsonl", IN_PROCESS)

    require_rewards(said)


def test_a_reward_server_gives_the_rewards_too_and_pays_for_a_completion_once(tmp_path: Path) -> None:
    write_tasks(tmp_path, "skyrl", "rows.jsonl")
    server = RewardProcess(tmp_path, "--port", "0", "--pool", POOL)
    try:
        first, again = (
            program("skyrl", "skyrl_episodes", tmp_path, "rows.jsonl", {"url": server.url}, *how)
            for how in ([], ["registered"])
        )
    finally:
        server.stop()

    assert first == again
    require_rewards(first)
    assert {each["reward"] for each in first["found"]} == {-0.5, 0.0, 0.5}


def require_rewards(said: dict[str, Any]) -> None:
    invalid, *valid = said["found"]
    assert (invalid["reward"], invalid["score"], invalid["valid"]) == (-0.5, 0.0, 0.0)
    assert {each["reward"] for each in valid} <= {0.0, 0.5}
    assert all((each["reward"] > 0) == (each["right"] == 1) for each in valid)
    assert said["mean"]["valid"] == pytest.approx(1 - 1 / len(COMPLETIONS))
    assert said["mean"]["score"] == pytest.approx(sum(each["score"] for each in said["found"]) / len(COMPLETIONS))
