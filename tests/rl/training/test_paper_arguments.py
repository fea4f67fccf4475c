"""What TRL is told for the paper's presets, argument by argument, and the page that lists our own choices."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

from tests.rl.training.toy import a_reward  # noqa: E402
from wfdsl.conductor.config import MAX_RESPONSE_CHARS  # noqa: E402
from wfdsl.tasks.task import Task  # noqa: E402
from wfdsl_rl.training.data import make_rows  # noqa: E402
from wfdsl_rl.training.plan import read_plan  # noqa: E402
from wfdsl_rl.training.stages import grpo_config  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
PRESETS = ("paper-7b", "paper-3b")
CHARS_PER_TOKEN = 3
"""Of prompts and replies; fewer than measured, so that the tokens are an upper bound."""
LONGEST_QUESTION = 4500
"""Characters. Our choice, above nearly all problems of LiveCodeBench."""
PAPERS: dict[str, Any] = {
    "max_steps": 200,  # iterations
    "num_generations": 64,  # of each question
    "learning_rate": 1e-6,
    "lr_scheduler_type": "cosine_warmup_with_min_lr",  # a cosine; the first step of its warm-up is not 0
    "warmup_steps": 0.03,  # below 1 it is a ratio
    "optim": "adamw_torch_fused",
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "epsilon": 0.2,
    "epsilon_high": None,  # the same on both sides
    "beta": 0.0,  # no KL term
    "sync_ref_model": False,
    "loss_type": "grpo",
    "scale_rewards": "group",
    "temperature": 1.0,
    "max_completion_length": 1024,
}
"""Source: arXiv 2512.04388, section 4."""
OURS: dict[str, Any] = {
    "num_iterations": 1,
    "shuffle_dataset": False,
    "importance_sampling_level": "token",
    "top_p": 1.0,
    "top_k": 0,
    "min_p": None,
    "repetition_penalty": 1.0,
    "mask_truncated_completions": False,
    "entropy_coef": 0.0,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "seed": 0,
    "use_vllm": True,
    "vllm_mode": "colocate",
    "vllm_gpu_memory_utilization": 0.3,
    "vllm_max_model_length": 12288,
    "vllm_importance_sampling_correction": True,
    "vllm_importance_sampling_mode": "sequence_mask",
    "vllm_importance_sampling_clip_max": 3.0,
    "vllm_importance_sampling_clip_min": None,
}
"""What the paper leaves open."""


@pytest.mark.parametrize("preset", PRESETS)
def test_arguments_are_the_papers_or_the_choices_that_we_name(preset: str, tmp_path: Path) -> None:
    train, wanted = read_plan(preset).train, {**PAPERS, **OURS}

    config = grpo_config(train.stages["base"], train, tmp_path)

    found = {name: getattr(config, name) for name in wanted}
    assert {name: getattr(each, "value", each) for name, each in found.items()} == wanted
    generated = config.per_device_train_batch_size * config.steps_per_generation
    assert generated == config.per_device_train_batch_size * config.gradient_accumulation_steps == 256
    assert generated / config.num_generations == 4
    assert config.per_device_train_batch_size == 8


@pytest.mark.parametrize("preset", PRESETS)
def test_recursion_has_the_papers_numbers_and_tasks_of_its_own(preset: str, tmp_path: Path) -> None:
    """Source: arXiv 2512.04388, section 4: 20 iterations, half of each batch forced, discount 0.25."""
    train = read_plan(preset).train
    recursion = train.stages["recursion"]

    assert [*train.stages] == ["base", "pools", "recursion"]
    assert (recursion.max_steps, recursion.batch_size) == (20, 256)
    assert (recursion.forced, recursion.discount) == (0.5, 0.25)
    assert recursion.tasks != train.tasks
    for name in train.stages:
        config = grpo_config(train.stages[name], train, tmp_path)
        assert (config.num_generations, config.learning_rate, config.beta, config.temperature) == (64, 1e-6, 0.0, 1.0)
        assert 2 * config.save_steps < config.max_steps  # a checkpoint before its end


@pytest.mark.parametrize("preset", PRESETS)
def test_vllm_has_room_for_the_longest_second_round(preset: str) -> None:
    plan = read_plan(preset)
    task = Task(id="longest", question="q" * LONGEST_QUESTION, gold="1", kind="text")
    row = make_rows(a_reward(plan.pool, plan.prompt, max_steps=plan.max_steps), [task], count=1, seed=0)[0]
    stage = plan.train.stages["recursion"]
    first = "c" * (CHARS_PER_TOKEN * stage.max_completion_length)
    reply = "r" * (MAX_RESPONSE_CHARS + 1)

    again = plan.prompt.revise(reply, max_steps=plan.max_steps, rounds_left=0)
    messages = [*row["prompt"], {"content": first}, again]

    prompt_tokens = sum(len(message["content"]) for message in messages) / CHARS_PER_TOKEN
    longest = prompt_tokens + stage.max_completion_length
    assert longest == pytest.approx(12_100, abs=50)  # the preset says so
    assert longest + 100 < plan.train.trl["vllm_max_model_length"]  # and the chat template's words


@pytest.mark.parametrize("preset", PRESETS)
def test_each_choice_that_a_preset_marks_is_on_the_page_with_its_value_and_a_reason(preset: str) -> None:
    choices = marked_choices(ROOT / f"src/wfdsl_rl/training/presets/{preset}.toml")

    assert {"run.question_for", "train.seed", "train.trl.vllm_max_model_length"} <= choices.keys()
    choices["train.stages.pools.pick"] = "[2, 3, 4, 5, 6, 7]"
    assert [f"{key} = {value}" for key, value in choices.items() if f"`{key} = {value}`" not in chosen()] == []


def test_each_argument_of_ours_is_on_the_page_with_its_value_and_a_reason() -> None:
    written = {f"{name} = {'none' if value is None else json.dumps(value)}" for name, value in OURS.items()}

    assert [each for each in written if f"`{each}`" not in chosen() and f"`train.trl.{each}`" not in chosen()] == []
    assert len(rows_of_the_page()) > 25
    assert all(len(row) == 3 and all(row) for row in rows_of_the_page())


def marked_choices(path: Path) -> dict[str, str]:
    """The keys of a preset that are marked as our choice, or are in a table that is, with their values."""
    found: dict[str, str] = {}
    table, whole = "", False
    for line in path.read_text(encoding="utf-8").splitlines():
        ours = "our choice" in line
        if line.startswith("["):
            table, whole = line[1 : line.index("]")], ours
        elif (entry := re.match(r"(\w+) = (.*?) *(?:#.*)?$", line)) and (ours or whole):
            found[f"{table}.{entry[1]}"] = entry[2]
    return found


def rows_of_the_page() -> list[list[str]]:
    """The rows of the tables about what the paper leaves open."""
    page = (ROOT / "docs/explanation/paper.md").read_text(encoding="utf-8")
    section = page.partition("## What the paper leaves open about training\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows if row[0].strip() != "open"]


def chosen() -> str:
    """All of its second column."""
    return "\n".join(row[1] for row in rows_of_the_page())
