"""The recipes of the paper for each engine: they can be read, every option has a comment, the numbers are the paper's.

Names of options are compared with verl's configuration by `make engines`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.docs.pages import ROOT

from .conftest import Provider, Serve, completion

RECIPES = ROOT / "docs/examples/engines"
PAPER = tomllib.loads((ROOT / "src/wfdsl_rl/training/presets/paper-7b.toml").read_text(encoding="utf-8"))
BASE = {**PAPER["train"]["trl"], **PAPER["train"]["stages"]["base"]}
COMPLETIONS = BASE["prompts_per_step"] * BASE["num_generations"]
WARM_UP = round(BASE["max_steps"] * BASE["warmup_steps"])
RECORDER = '#!/bin/sh\nprintf "%s\\n" "$@" > said.txt\n'
SAYS: dict[str, dict[str, Any]] = {
    "verl.sh": {
        "trainer.total_training_steps": BASE["max_steps"],
        "data.train_batch_size": BASE["prompts_per_step"],
        "actor_rollout_ref.rollout.n": BASE["num_generations"],
        "data.max_response_length": BASE["max_completion_length"],
        "actor_rollout_ref.actor.optim.lr": BASE["learning_rate"],
        "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio": BASE["warmup_steps"],
        "actor_rollout_ref.actor.clip_ratio": BASE["epsilon"],
        "actor_rollout_ref.rollout.temperature": BASE["temperature"],
        "actor_rollout_ref.model.path": PAPER["train"]["model"],
    },
    "skyrl.sh": {
        "trainer.max_training_steps": BASE["max_steps"],
        "trainer.train_batch_size": BASE["prompts_per_step"],
        "generator.n_samples_per_prompt": BASE["num_generations"],
        "environment.skyrl_gym.max_env_workers": COMPLETIONS,
        "generator.sampling_params.max_generate_length": BASE["max_completion_length"],
        "trainer.policy.optimizer_config.lr": BASE["learning_rate"],
        "trainer.policy.optimizer_config.num_warmup_steps": WARM_UP,
        "trainer.algorithm.eps_clip_low": BASE["epsilon"],
        "trainer.algorithm.eps_clip_high": BASE["epsilon"],
        "generator.sampling_params.temperature": BASE["temperature"],
        "trainer.policy.model.path": PAPER["train"]["model"],
    },
    "slime.sh": {
        "--num-rollout": BASE["max_steps"],
        "--rollout-batch-size": BASE["prompts_per_step"],
        "--n-samples-per-prompt": BASE["num_generations"],
        "--global-batch-size": COMPLETIONS,
        "--rollout-max-response-len": BASE["max_completion_length"],
        "--lr": BASE["learning_rate"],
        "--lr-warmup-fraction": BASE["warmup_steps"],
        "--eps-clip": BASE["epsilon"],
        "--rollout-temperature": BASE["temperature"],
    },
    "openrlhf.sh": {
        "--data.max_samples": BASE["max_steps"] * BASE["prompts_per_step"],
        "--rollout.batch_size": BASE["prompts_per_step"],
        "--rollout.n_samples_per_prompt": BASE["num_generations"],
        "--train.batch_size": COMPLETIONS,
        "--rollout.max_new_tokens": BASE["max_completion_length"],
        "--actor.adam.lr": BASE["learning_rate"],
        "--actor.lr_warmup_ratio": BASE["warmup_steps"],
        "--actor.eps_clip": BASE["epsilon"],
        "--rollout.temperature": BASE["temperature"],
        "--algo.kl.init_coef": BASE["beta"],
        "--actor.model_name_or_path": PAPER["train"]["model"],
    },
}


@pytest.mark.parametrize("name", SAYS)
def test_a_script_starts_its_engine_with_the_papers_numbers(name: str, tmp_path: Path) -> None:
    for program in ("python", "ray"):
        (tmp_path / program).write_text(RECORDER)
        (tmp_path / program).chmod(0o755)
    (tmp_path / "scripts/models").mkdir(parents=True)
    (tmp_path / "scripts/models/qwen2.5-7B.sh").write_text("MODEL_ARGS=()\n")
    found_in = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    subprocess.run(["bash", str(RECIPES / name)], cwd=tmp_path, env=found_in, timeout=60, check=True)

    words = (tmp_path / "said.txt").read_text().splitlines()
    pairs = dict(pairwise(words)) | dict(word.split("=", 1) for word in words if "=" in word)
    found = {option: pairs[option] for option in SAYS[name]}
    assert {
        option: value if isinstance(SAYS[name][option], str) else float(value) for option, value in found.items()
    } == SAYS[name]


@pytest.mark.parametrize("name", SAYS)
def test_every_option_of_a_script_has_a_comment(name: str) -> None:
    _, _, rest = (RECIPES / name).read_text(encoding="utf-8").partition("options=(\n")
    options = rest.partition("\n)")[0].splitlines()

    assert len(options) > 20
    assert [line for line in options if " # " not in line] == []


def test_the_file_for_prime_rl_has_the_papers_numbers() -> None:
    found = tomllib.loads((RECIPES / "prime-rl.toml").read_text(encoding="utf-8"))
    orchestrator = found["orchestrator"]

    assert found["max_steps"] == BASE["max_steps"]
    assert (orchestrator["batch_size"], orchestrator["group_size"]) == (COMPLETIONS, BASE["num_generations"])
    assert orchestrator["train"]["sampling"] == {
        "temperature": BASE["temperature"],
        "max_completion_tokens": BASE["max_completion_length"],
    }
    assert found["trainer"]["optim"]["lr"] == BASE["learning_rate"]
    assert found["trainer"]["scheduler"] == {"type": BASE["lr_scheduler_type"], "warmup_steps": WARM_UP}
    assert found["trainer"]["loss"]["kl_tau"] == BASE["beta"]


def test_the_program_for_skyrl_can_be_read_and_the_page_names_every_recipe() -> None:
    compile(program := (RECIPES / "skyrl_conductor.py").read_text(encoding="utf-8"), "skyrl_conductor.py", "exec")
    assert {"WFDSL_REWARD_URL", "WFDSL_SERVER_KEY"} <= {*re.findall(r"WFDSL_\w+", program)}
    page = (ROOT / "docs/howto/engines.md").read_text(encoding="utf-8")

    assert [path.name for path in RECIPES.iterdir() if f"../examples/engines/{path.name}" not in page] == []


def recipe(name: str) -> Any:
    """A recipe as a module."""
    spec = spec_from_file_location(name, RECIPES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("engine", ["verl", "skyrl", "slime", "openrlhf"])
def test_rows_have_the_prompt_and_name_the_task(engine: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    recipe("rows").main(engine, "gym/seven", "gym/seven", str(out))

    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    named = [row.get("reward_model", row.get("reward_spec", {"ground_truth": row.get("label")})) for row in rows]
    assert len({each["ground_truth"] for each in named}) == len(rows) > 0
    assert all(row["prompt"][-1]["role"] == "user" for row in rows)


async def test_reward_functions_ask_a_reward_server_about_each_completion_anew(
    serve: Serve, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFDSL_REWARD_URL", serve().url)
    rewards, one = recipe("rewards"), completion("Solve it now.")

    for _ in range(2):
        verl = await rewards.compute_score("wfdsl", one, "t0", {"shown": [0, 1], "true": [0, 1]})
    slime = await rewards.custom_rm(None, SimpleNamespace(label="t0", response="no lists"))
    openrlhf = await asyncio.to_thread(rewards.reward_func, [f"Q{one}", "Qno lists"], ["Q", "Q"], ["t0", "t0"])
    rewards.client().close()

    assert verl == {"score": 1.0, "right": 1.0, "steps": 1.0}
    assert slime == 0.0
    assert openrlhf["rewards"] == [1.0, 0.0]
    assert len(provider.asked) == 3
