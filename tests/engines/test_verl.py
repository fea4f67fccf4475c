"""verl's reward manager gives the rewards of this package, in its own process and from a reward server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.pages import ROOT
from tests.engines.conftest import COMPLETIONS, HERE, IN_PROCESS, POOL, program, run_in, write_tasks
from tests.rl.engines.conftest import RewardProcess

if TYPE_CHECKING:
    from pathlib import Path

ROWS = "rows.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tasks(tmp_path, "verl", ROWS)
    return tmp_path


def rewards(folder: Path, options: dict[str, Any]) -> list[dict[str, Any]]:
    found = program("verl", "verl_rewards", folder, ROWS, options)["found"]
    assert len(found) == len(COMPLETIONS)
    return [{"reward": each["reward_score"], **each["reward_extra_info"]} for each in found]


def test_right_wrong_and_invalid_completions_have_their_rewards(folder: Path) -> None:
    invalid, *valid = rewards(folder, IN_PROCESS)

    assert (invalid["reward"], invalid["valid"], invalid["steps"]) == (0.0, 0.0, 0.0)
    assert {each["reward"] for each in valid} == {0.5, 1.0}
    assert all(each["reward"] == 0.5 + 0.5 * each["right"] for each in valid)
    assert all(each["steps"] == 3 and each["cost_usd"] > 0 and not each["unscored"] for each in valid)


def test_a_reward_server_gives_rewards_too_and_pays_for_a_completion_once(folder: Path) -> None:
    server = RewardProcess(folder, "--port", "0", "--pool", POOL)
    try:
        first, again = (rewards(folder, {"url": server.url}) for _ in range(2))
    finally:
        server.stop()

    assert first == again
    assert [each["valid"] for each in first] == [0.0, *[1.0] * (len(COMPLETIONS) - 1)]
    assert {each["reward"] for each in first[1:]} == {0.5, 1.0}


def test_verl_knows_every_option_of_the_recipe(tmp_path: Path) -> None:
    recipe = ROOT / "docs/examples/engines/verl.sh"
    script = str(HERE / "programs" / "verl_options.py")

    found = json.loads(run_in("verl", tmp_path, "python", script, str(recipe)).splitlines()[-1])

    assert found["options"] > 20
    assert found["data.train_batch_size"] * found["actor_rollout_ref.rollout.n"] == 256
    assert found["reward"]["reward_kwargs"]["url"] == "http://127.0.0.1:8700"
