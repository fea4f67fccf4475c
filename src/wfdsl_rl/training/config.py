"""The table [train] of an experiment: what is trained, on what, in which stages, with which numbers.

Every number has a docstring with its unit and source. Defaults are the paper's where it gives one (arXiv 2512.04388,
section 4), and else "our choice".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wfdsl_rl.gym.tiny.synthetic import Thought

StageName: TypeAlias = Literal["warmup", "base", "pools", "recursion"]
Given: TypeAlias = Literal["nothing", "reading", "shape"]
STAGES: tuple[StageName, ...] = ("warmup", "base", "pools", "recursion")

_Counts: TypeAlias = Annotated[tuple[int, ...], Field(strict=False)]
_Names: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class NewModel(_Strict):
    """A model of random weights, of the Qwen2 architecture. Our choice, all of it."""

    width: int = Field(default=96, gt=0)
    """Size of a hidden state."""
    inner: int = Field(default=192, gt=0)
    """Size of a state inside a feed-forward block."""
    layers: int = Field(default=2, gt=0)
    heads: int = Field(default=4, gt=0)
    vocabulary: int = Field(default=768, ge=300)
    """The most tokens of its tokenizer, which is trained on the questions and on what a warm-up shows."""


class Lora(_Strict):
    """Adapters in place of full weights."""

    rank: int = Field(default=16, gt=0)
    alpha: int = Field(default=32, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)


class RewardTable(_Strict):
    """What completions are worth. Source: arXiv 2512.04388, section 4."""

    invalid: float = Field(default=0.0, allow_inf_nan=False)
    wrong: float = Field(default=0.5, allow_inf_nan=False)
    right: float = Field(default=1.0, allow_inf_nan=False)
    step: float = Field(default=0.0, allow_inf_nan=False)
    """What each step of a valid workflow adds: below 0, the price of a call. Our choice: none."""


class AblationTable(_Strict):
    """What is taken from the Conductor, to see what it is worth. Source: arXiv 2512.04388, section 5."""

    instruction: str = ""
    """What every worker is told in place of its subtask."""
    worker: int | None = None
    """The ordinal that every step asks."""
    binary_access: bool = False
    """Whether a step may see nothing or everything only."""


class Supervised(_Strict):
    """Supervised steps."""

    steps: int = Field(default=0, ge=0)
    """Optimisation steps; 0 leaves them out. The paper needs none."""
    batch: int = Field(default=64, gt=0)
    """Completions per step."""
    learning_rate: float = Field(default=2e-3, gt=0)


class Warmup(Supervised):
    """Supervised steps on well-formed workflows with random workers, for models that cannot write the lists yet."""

    sharpen: float = Field(default=1.0, gt=0)
    """What the output layer is multiplied with afterwards: the form becomes surer, even choices stay even."""
    lengths: dict[str, float] = Field(default_factory=lambda: {"1": 1.0, "2": 2.0, "3": 4.0, "4": 3.0})
    """How often workflows of each number of steps are shown: weights by number."""
    wordings: int = Field(default=1, ge=1, le=3)
    """How many wordings of each role are shown."""
    habits: float = Field(default=0.7, ge=0)
    """How much workers and shapes lean on the kind of the question, in directions drawn from the seed."""
    second_rounds: float = Field(default=0.25, ge=0, le=1)
    """The part of the completions that are second rounds, if the stage of recursion follows."""
    thought: Thought = "sketch"
    """What stands before the lists: a sketch (kind, who is advertised most for it, shape), a sketch with places (also
    who gets which role, by place in that order), the kind, or nothing."""


class Grpo(_Strict):
    """One stage of GRPO."""

    iterations: int = Field(default=200, ge=0)
    """Optimisation steps; 0 leaves the stage out. Source: arXiv 2512.04388, section 4."""
    questions: int = Field(default=4, gt=0)
    """Questions per iteration. Source: the same."""
    rollouts: int = Field(default=64, gt=1)
    """Completions per question, the group. Source: the same."""
    learning_rate: float = Field(default=1e-6, gt=0)
    """Source: the same."""
    schedule: Literal["cosine", "linear", "constant", "constant_with_warmup"] = "cosine"
    """Source: the same."""
    warmup_ratio: float = Field(default=0.03, ge=0, lt=1)
    """The part of the iterations in which the learning rate rises. Source: the same."""
    adam_beta2: float = Field(default=0.999, gt=0, lt=1)
    """Source: the same."""
    executions: int = Field(default=1, gt=0)
    """How often each workflow is run; its reward is the mean. Source: the same. More of them are less noise in what is
    learned from, where workers are cheaper than the model's own steps."""
    common_random_numbers: bool = False
    """Whether the completions of a question are run in one sample: the same call has the same reply in all of them, and
    completions that are the same are run once. Rewards then differ by what was written, and not by luck, and workers
    are called less. Source: Glasserman and Yao 1992, "Some guidelines and guarantees for common random numbers". Our
    choice: no, as in the paper, where each has a sample of its own."""
    epsilon: float = Field(default=0.2, gt=0)
    """Where the ratio of probabilities is clipped. Source: the same."""
    beta: float = Field(default=0.0, ge=0)
    """Weight of the KL term to the model that the stage starts from, at its beginning; it falls in a line. Source: the
    same, which has none."""
    beta_free: int = Field(default=0, ge=0)
    """Iterations at the end of the stage for which the weight of the KL term has come to 0. Our choice."""
    loss: str = "grpo"
    """TRL's name of the loss. Source: the same."""
    scale_rewards: Literal["group", "batch", "none"] = "group"
    """What advantages are divided by the spread of. Source: the same."""
    temperature: float = Field(default=1.0, gt=0)
    """Source: the same."""
    max_completion_tokens: int = Field(default=1024, gt=0)
    """Source: the same."""
    micro_batch: int | None = Field(default=None, gt=0)
    """Completions per forward pass; None: all of an iteration. Memory only."""
    share_prompts: bool = False
    """Whether a prompt is computed once for all of its completions: the same numbers up to rounding, in less time the
    longer prompts are. Activations are then kept, on a GPU too. Our choice."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Our choice; TRL's default."""
    entropy_coefficient: float = Field(default=0.0, ge=0)
    """Weight of an entropy bonus. Our choice: none."""
    give: Given = "nothing"
    """What is given of a thought in the completions that rewards judge: its reading, which says of the prompt what is
    so, or the reading and, in first rounds, a shape drawn from those of the warm-up, evenly. What is given is not
    taught: with readings rewards teach what is chosen and not what is read, with shapes who gets which role in each of
    them. Needs a warm-up with thoughts, and evaluations give nothing. Our choice: nothing."""
    refresh: Supervised = Supervised()
    """Supervised steps behind the rewards, on what the model itself writes behind a thought that says of its prompt
    what is so. Rewards let a small model forget how to read what they do not ask for. Our choice: none."""
    evaluate_every: int = Field(default=50, gt=0)
    """Iterations between evaluations."""
    save_every: int = Field(default=50, gt=0)
    """Iterations between checkpoints."""

    @property
    def batch(self) -> int:
        """Completions of an iteration."""
        return self.questions * self.rollouts

    @model_validator(mode="after")
    def _divides(self) -> Grpo:
        if self.micro_batch is not None and self.batch % self.micro_batch:
            raise ValueError(f"micro_batch {self.micro_batch} does not divide the {self.batch} completions")
        if self.iterations and self.beta_free > self.iterations:  # a stage that is left out has none
            raise ValueError(f"beta_free {self.beta_free} is more than the {self.iterations} iterations")
        return self


class Pools(Grpo):
    """The stage of random pools. Source of the idea: arXiv 2512.04388, section 4; the numbers are our choice."""

    iterations: int = Field(default=0, ge=0)
    pick: _Counts = ()
    """How many workers are offered: one of these numbers, drawn for each row; none: from 2 to all."""
    held_out: float = Field(default=0.25, ge=0, lt=1)
    """The part of all subsets that is never offered, so that the stage can be tested on some of them."""
    shuffle: bool = True
    """Whether ordinals are dealt out anew for each row."""


class RecursionWarmup(Supervised):
    """Supervised steps before the stage of recursion, for models to which a second round means nothing (any more).

    They show second rounds from the prior, after first rounds that the model writes itself, and in between the
    model's own first rounds, so that it stays what it is. Our choice.
    """

    second_rounds: float = Field(default=0.5, gt=0, le=1)
    """The part of the completions that are second rounds."""
    sensible: float | None = Field(default=None, gt=0, lt=1)
    """The part of the second rounds that do what the answer suggests: revise one that admits a doubt, in the words of
    the gym's workers, and no check for it, and keep any other. None: they lean as the habits of the seed do."""
    others: float = Field(default=0.0, ge=0, le=1)
    """The part of the revisions that are what the model itself writes for the workers but the one who answered in the
    first round; the rest are the prior's, with workers drawn at random."""


class Recursion(Grpo):
    """The stage of recursion. Source: arXiv 2512.04388, section 4."""

    iterations: int = Field(default=0, ge=0)
    forced: float = Field(default=0.5, ge=0, le=1)
    """The part of the rows in which a second round is forced. Source: the same."""
    balanced: bool = False
    """Whether the part of the forced groups that revise an answer which admits a doubt, in the words of the gym's
    workers, is as large as the part of second rounds that kept theirs lately; the others revise one that admits none.
    So neither keeping nor revising can win before what the answer says is looked at. Our choice: no."""
    exchanged: float = Field(default=0.0, ge=0, le=1)
    """The part of the forced rows in which one of the workers of the first round and one that it did not ask answer
    for each other: their descriptions are wrong, and only replies can show it. Our choice: none."""
    never_exchanged: _Counts = ()
    """Ordinals of workers whose descriptions stay right. Our choice: none."""
    discount: float = Field(default=0.25, ge=0)
    """What rewards of the first round are multiplied with. Source: the same."""
    scale_rewards: Literal["group", "batch", "none"] = "batch"
    """Across rounds: so that the discount counts. Our reading of "normalised across rounds"."""
    warmup: RecursionWarmup = RecursionWarmup()


class TrainSettings(_Strict):
    """The table [train]."""

    model: str = "new"
    """`new` for random weights, else a folder or a name of the hub."""
    new: NewModel = NewModel()
    parameters: float | None = Field(default=None, gt=0)
    """How many weights the model has, for the estimate of memory; of a new model it is known."""
    lora: Lora | None = None
    tasks: str
    """What is trained on: as for `wfdsl_rl.load_tasks`."""
    task_count: int = Field(default=960, gt=0)
    """How many tasks. Source: arXiv 2512.04388, section 4."""
    eval_tasks: str = ""
    """What evaluations ask; empty: the test split of `tasks`, if it is a gym."""
    eval_count: int = Field(default=200, ge=0)
    """How many tasks an evaluation asks, once each; 0: no evaluation."""
    seed: int = 0
    reward: RewardTable = RewardTable()
    ablation: AblationTable = AblationTable()
    concurrency: int = Field(default=64, gt=0)
    """Workflows in flight while rewards are computed."""
    report_to: _Names = ()
    """Where TRL reports metrics besides our files, such as `tensorboard`."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of TRL's GRPOConfig, for what has no name here (vLLM, bf16, gradient checkpointing)."""
    warmup: Warmup = Warmup()
    base: Grpo = Grpo()
    pools: Pools = Pools()
    recursion: Recursion = Recursion()

    def stages(self) -> tuple[StageName, ...]:
        """The stages that have any steps, in order."""
        counts = {
            "warmup": self.warmup.steps,
            "base": self.base.iterations,
            "pools": self.pools.iterations,
            "recursion": self.recursion.iterations,
        }
        return tuple(name for name in STAGES if counts[name])
