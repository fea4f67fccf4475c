"""The recipes of the paper for each engine: they can be read, every option has a comment, the numbers are the paper's.

Names of options are compared with verl's configuration by `make engines`.
"""

from __future__ import annotations

import ast
import os
import subprocess
import tomllib
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from wfdsl_rl.engines.source import SourceOptions

from tests.docs.pages import ROOT

RECIPES = ROOT / "docs/examples/engines"
PAPER = tomllib.loads((ROOT / "src/wfdsl_rl/training/presets/paper-7b.toml").read_text(encoding="utf-8"))
BASE = PAPER["train"]["base"]
COMPLETIONS = BASE["prompts_per_step"] * BASE["group_size"]
WARM_UP = round(BASE["iterations"] * BASE["warmup_ratio"])
RECORDER = '#!/bin/sh\nprintf "%s\\n" "$@" > said.txt\n'
SAYS: dict[str, dict[str, Any]] = {
    "verl.sh": {
        "trainer.total_training_steps": BASE["iterations"],
        "data.train_batch_size": BASE["prompts_per_step"],
        "actor_rollout_ref.rollout.n": BASE["group_size"],
        "data.max_response_length": BASE["max_completion_tokens"],
        "actor_rollout_ref.actor.optim.lr": BASE["learning_rate"],
        "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio": BASE["warmup_ratio"],
        "actor_rollout_ref.actor.clip_ratio": BASE["epsilon"],
        "actor_rollout_ref.rollout.temperature": BASE["temperature"],
        "actor_rollout_ref.model.path": PAPER["train"]["model"],
    },
    "skyrl.sh": {
        "trainer.max_training_steps": BASE["iterations"],
        "trainer.train_batch_size": BASE["prompts_per_step"],
        "generator.n_samples_per_prompt": BASE["group_size"],
        "environment.skyrl_gym.max_env_workers": COMPLETIONS,
        "generator.sampling_params.max_generate_length": BASE["max_completion_tokens"],
        "trainer.policy.optimizer_config.lr": BASE["learning_rate"],
        "trainer.policy.optimizer_config.num_warmup_steps": WARM_UP,
        "trainer.algorithm.eps_clip_low": BASE["epsilon"],
        "trainer.algorithm.eps_clip_high": BASE["epsilon"],
        "generator.sampling_params.temperature": BASE["temperature"],
        "trainer.policy.model.path": PAPER["train"]["model"],
    },
    "slime.sh": {
        "--num-rollout": BASE["iterations"],
        "--rollout-batch-size": BASE["prompts_per_step"],
        "--n-samples-per-prompt": BASE["group_size"],
        "--global-batch-size": COMPLETIONS,
        "--rollout-max-response-len": BASE["max_completion_tokens"],
        "--lr": BASE["learning_rate"],
        "--lr-warmup-fraction": BASE["warmup_ratio"],
        "--eps-clip": BASE["epsilon"],
        "--rollout-temperature": BASE["temperature"],
    },
    "openrlhf.sh": {
        "--data.max_samples": BASE["iterations"] * BASE["prompts_per_step"],
        "--rollout.batch_size": BASE["prompts_per_step"],
        "--rollout.n_samples_per_prompt": BASE["group_size"],
        "--train.batch_size": COMPLETIONS,
        "--rollout.max_new_tokens": BASE["max_completion_tokens"],
        "--actor.adam.lr": BASE["learning_rate"],
        "--actor.lr_warmup_ratio": BASE["warmup_ratio"],
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
    orchestrator, (source,) = found["orchestrator"], found["orchestrator"]["train"]["source"]

    assert found["max_steps"] == BASE["iterations"]
    assert (orchestrator["batch_size"], orchestrator["group_size"]) == (COMPLETIONS, BASE["group_size"])
    assert orchestrator["train"]["sampling"] == {
        "temperature": BASE["temperature"],
        "max_completion_tokens": BASE["max_completion_tokens"],
    }
    assert found["trainer"]["optim"]["lr"] == BASE["learning_rate"]
    assert found["trainer"]["scheduler"] == {"type": BASE["schedule"], "warmup_steps": WARM_UP}
    assert found["trainer"]["loss"]["kl_tau"] == BASE["beta"]
    assert source["env"]["taskset"]["task"].keys() <= {each.name for each in fields(SourceOptions)}


def test_the_task_set_for_verifiers_has_every_option_of_a_source() -> None:
    module = ast.parse((ROOT / "src/wfdsl_rl/engines/verifiers.py").read_text(encoding="utf-8"))
    config = next(each for each in module.body if isinstance(each, ast.ClassDef) and each.name == "WorkflowTaskConfig")
    names = {
        each.target.id for each in config.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }

    assert names == {each.name for each in fields(SourceOptions)} | {"unscored"}


def test_the_program_for_skyrl_can_be_read_and_the_page_names_every_recipe() -> None:
    ast.parse((RECIPES / "skyrl_conductor.py").read_text(encoding="utf-8"))
    page = (ROOT / "docs/howto/engines.md").read_text(encoding="utf-8")

    assert [path.name for path in RECIPES.iterdir() if f"../examples/engines/{path.name}" not in page] == []
