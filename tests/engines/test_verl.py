"""verl's reward manager and agent loop give the rewards of this package, in process and from a reward server."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.pages import ROOT
from tests.engines import HERE
from tests.engines.conftest import COMPLETIONS, GOOD, IN_PROCESS, POOL, TASKS, program, run_in, write_tasks
from tests.rl.engines.conftest import RewardProcess
from wfdsl.conductor.checkpoint import load_prompt
from wfdsl_rl.gym.conductor import load

if TYPE_CHECKING:
    from pathlib import Path

ROWS = "rows.parquet"
CHECKPOINT = str(load("gym/seven"))
KEEP = "model_id = []\nsubtasks = []\naccess_list = []"
ALL = 'model_id = [3]\nsubtasks = ["Check the solution and give the answer."]\naccess_list = ["all"]'


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


@pytest.fixture
def gym_folder(tmp_path: Path) -> Path:
    trained = load_prompt(CHECKPOINT)
    assert trained is not None
    write_tasks(tmp_path, "verl", ROWS, trained.prompt)
    return tmp_path


def episodes(folder: Path, script: list[list[str]], **options: Any) -> dict[str, Any]:
    (folder / "script.json").write_text(json.dumps(script))
    program_file = str(HERE / "programs" / "verl_rounds.py")
    given = json.dumps({"model": CHECKPOINT, "prompt": CHECKPOINT, **options})
    said = run_in("verl", folder, "python", program_file, ROWS, "script.json", given)
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def test_a_checkpoint_revises_its_workflows_in_one_conversation_and_only_its_own_tokens_are_trained_on(
    gym_folder: Path,
) -> None:
    found = episodes(gym_folder, [], **IN_PROCESS)

    assert len(found["samples"]) == TASKS
    assert 2.0 in {each["rounds"] for each in found["samples"]}
    for number, sample in enumerate(found["samples"]):
        rounds = [call for call in found["calls"] if call["sample"] == number]
        assert sample["trained"] == [token for call in rounds for token in call["ids"]]
        assert len(rounds) == sample["rounds"] == sample["turns"] / 2
        assert sample["logprobs"] == pytest.approx([each for call in rounds for each in call["logprobs"]])
        for before, after in pairwise(rounds):
            assert after["prompt"][: len(before["prompt"]) + len(before["ids"])] == before["prompt"] + before["ids"]
        assert sample["reward"] == 0.5 * sample["valid"] + 0.5 * sample["right"]
        assert sample["at_the_end"]
        assert set(sample["between"]) <= {0.0}


def test_rounds_end_at_an_invalid_completion_a_kept_answer_or_where_no_room_is_left(gym_folder: Path) -> None:
    server = RewardProcess(gym_folder, "--port", "0", "--pool", POOL)
    full = f'model_id = [0]\nsubtasks = ["{"Solve it carefully. " * 37}"]\naccess_list = [[]]'
    script = [["I would ask worker 0."], [GOOD, KEEP], [GOOD, ALL, KEEP], [GOOD, "No lists."], [full], [GOOD * 9]]
    try:
        found = episodes(gym_folder, script, url=server.url, max_rounds=3)["samples"]
    finally:
        server.stop()

    invalid, kept, revised, spoilt, no_room, cut = found
    assert [each["rounds"] for each in found] == [1, 2, 3, 2, 1, 1]
    assert [each["valid"] for each in found] == [0, 1, 1, 0, 1, 0]
    assert invalid["reward"] == spoilt["reward"] == cut["reward"] == 0.0
    assert min(each["reward"] for each in (kept, revised, no_room, spoilt | {"reward": spoilt["first"]})) >= 0.5
    assert kept["reward"] == kept["first"]
    assert kept["steps"] == 0
    assert kept["text"].endswith(f"<|assistant|>{KEEP}<|end|>")
    assert 350 < len(no_room["trained"]) < len(cut["trained"]) == 400
    assert all(each["cost_usd"] > 0 for each in (kept, revised, spoilt, no_room))
