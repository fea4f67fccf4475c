"""What TRL is told for the preset `paper-7b`, argument by argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

from wfdsl.errors import UsageError  # noqa: E402
from wfdsl_rl.training.grpo import completions_per_process, grpo_config  # noqa: E402
from wfdsl_rl.training.plan import read_plan  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

PAPERS: dict[str, Any] = {
    "max_steps": 200,  # iterations
    "num_generations": 64,  # group_size of each question
    "learning_rate": 1e-6,
    "lr_scheduler_type": "cosine",
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
    "importance_sampling_level": "token",
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "max_completion_length": 1024,
}
"""Source: arXiv 2512.04388, section 4. Where it says nothing on sampling or the ratio: GRPO's own, without cuts."""
OURS: dict[str, Any] = {
    "num_iterations": 1,
    "shuffle_dataset": False,
    "mask_truncated_completions": False,
    "entropy_coef": 0.0,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "seed": 0,
    "use_vllm": True,
}
"""What the paper leaves open."""


@pytest.mark.parametrize(("name", "value"), [*PAPERS.items(), *OURS.items()])
def test_an_argument_is_the_papers_or_the_choice_that_we_name(name: str, value: Any, tmp_path: Path) -> None:
    train = read_plan("paper-7b").train

    config = grpo_config(train.base, train, tmp_path, evaluate=False, resumed=False)

    found = getattr(config, name)
    assert (found.value if hasattr(found, "value") else found) == value


@pytest.mark.parametrize("preset", ["paper-7b", "paper-3b"])
def test_recursion_has_the_papers_numbers_and_tasks_of_its_own(preset: str, tmp_path: Path) -> None:
    """Source: arXiv 2512.04388, section 4: 20 iterations on 350 samples, half of each batch forced, discount 0.25."""
    train = read_plan(preset).train
    recursion = train.recursion

    assert train.stages() == ("base", "pools", "recursion")
    assert (recursion.iterations, recursion.task_count, recursion.batch_size) == (20, 350, 256)
    assert (recursion.forced, recursion.discount) == (0.5, 0.25)
    assert recursion.tasks != train.tasks
    for name in ("pools", "recursion"):
        config = grpo_config(train.grpo(name), train, tmp_path, evaluate=False, resumed=False)
        assert (config.num_generations, config.learning_rate, config.beta, config.temperature) == (64, 1e-6, 0.0, 1.0)


def test_an_iteration_is_256_completions_of_4_questions(tmp_path: Path) -> None:
    train = read_plan("paper-7b").train

    config = grpo_config(train.base, train, tmp_path, evaluate=False, resumed=False)

    generated = config.per_device_train_batch_size * config.steps_per_generation
    assert generated == config.per_device_train_batch_size * config.gradient_accumulation_steps == 256
    assert config.per_device_train_batch_size == 8
    assert generated / config.num_generations == 4


def test_processes_share_the_completions_of_an_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completions_per_process(256, 64) == 256
    monkeypatch.setenv("WORLD_SIZE", "2")

    assert completions_per_process(256, 64) == completions_per_process(256, 256) == 128
    with pytest.raises(UsageError, match="2 processes cannot share 255 completions evenly, 1 at a time"):
        completions_per_process(255, 1)
    with pytest.raises(UsageError, match="change prompts_per_step, group_size or micro_batch"):
        completions_per_process(256, 96)
