"""TinyConfig: the table [train.tiny], the options that only the tiny model of random weights needs.

All numbers are our choice: the paper starts from a model that can read and can write the lists already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from wfdsl.workers.pool import Pool
from wfdsl_rl.gym.tiny.reasoning_prefix import Format
from wfdsl_rl.gym.tiny.synthetic import SHAPES, shapes_of
from wfdsl_rl.training.config import Counts, ModelSize, Names, SftConfig, StageName, Table, TrainConfig, missing_worker
from wfdsl_rl.training.setup import ExtensionConfig


class NetworkConfig(Table):
    """A model of random weights, of the Qwen2 architecture."""

    width: int = Field(default=96, gt=0)
    """Size of the hidden states."""
    inner: int = Field(default=192, gt=0)
    """Size of the states inside a feed-forward block."""
    layers: int = Field(default=2, gt=0)
    """Number of transformer blocks."""
    heads: int = Field(default=4, gt=0)
    """Attention heads of a block."""
    vocabulary: int = Field(default=768, ge=300)
    """The most tokens of its tokenizer, which is trained on the SFT rows."""


class ReplayConfig(Table):
    """Replay SFT after each GRPO stage, on completions of the model itself that begin with a correct annotation.

    Rewards let a small model forget how to read what they do not depend on.
    """

    greedy: bool = False
    """Whether the completions are the model's most likely ones instead of sampled ones."""
    word_noise: float = Field(default=0.0, ge=0, lt=1)
    """The fraction of the words of every second question that are left out, or replaced by words of other questions
    (arXiv 1901.11196). A model that has seen few wordings then reads new ones."""
    base: SftConfig = SftConfig()
    """After the stage `base`."""
    pools: SftConfig = SftConfig()
    """After the stage `pools`."""
    recursion: SftConfig = SftConfig()
    """After the stage `recursion`."""


class RecursionSftConfig(SftConfig):
    """SFT before the recursion stage: the model's own first rounds, and synthetic second rounds."""

    second_rounds: float = Field(default=0.5, gt=0, le=1)
    """The fraction of the completions that are second rounds."""
    heuristic_labels: float | None = Field(default=None, gt=0, lt=1)
    """The fraction of the second rounds that follow a heuristic: revise an answer that shows doubt and passes no
    check, in the words of the gym's workers, and keep any other. Without it, they follow the bias."""
    alternative_revisions: float = Field(default=0.0, ge=0, le=1)
    """The fraction of the revisions that the model writes itself, for the workers other than the first round's; the
    others are synthetic."""


class TinyConfig(ExtensionConfig):
    """The table [train.tiny]."""

    hooks: ClassVar[str] = "wfdsl_rl.gym.tiny.extension:TinyExtension"
    network: NetworkConfig = NetworkConfig()
    """The size of the new model."""
    reasoning_prefix: Format = "sketch"
    """The text before the lists: `sketch` (kind of question, workers by advertisement, shape), `roles` (a sketch that
    also says which worker has which role), or `none`."""
    lengths: dict[str, float] = Field(default_factory=lambda: {"1": 1.0, "2": 2.0, "3": 4.0, "4": 3.0})
    """Synthetic workflows by number of steps: weights."""
    wordings: int = Field(default=1, ge=1, le=3)
    """How many wordings of each role are used."""
    parts: bool = False
    """Whether synthetic workflows are those for questions in parts: some steps do one part, some revise, and a prefix
    with roles has a letter for each, which `only_prefix` needs."""
    checks: bool = False
    """Whether verifiers are told what to look at, by one of four sentences."""
    bias: float = Field(default=0.7, ge=0)
    """How strongly synthetic workers and shapes depend on the kind of question, in directions drawn from the seed."""
    thrift: float = Field(default=0.0, ge=0)
    """How much shorter synthetic workflows are at lower efforts: each step and effort changes their weights by this
    number's exponential. A pretrained model knows it from the words."""
    only_prefix: bool = False
    """Whether completions in GRPO stages end with their reasoning prefix (`roles`), and code writes the lists that it
    stands for: rewards then train the choices only, in a quarter of the tokens. Evaluations write whole completions."""
    second_rounds: float = Field(default=0.25, ge=0, le=1)
    """The fraction of the SFT completions that are second rounds, if a recursion stage follows."""
    logit_scale: float = Field(default=1.0, gt=0)
    """Factor on the logits after SFT: the format becomes more certain, even choices stay even."""
    forced_prefix: Names = ()
    """Stages whose training completions begin with the correct annotation of their prompt, which is not trained."""
    drawn_shapes: Names = ()
    """Those of these stages in which the shapes of completions are drawn by what they were worth for a family of
    questions, and imitated. Shapes that the model samples itself are soon all alike."""
    fills: int = Field(default=2, ge=2)
    """Completions of a question that share a drawn shape."""
    softness: float = Field(default=0.003, gt=0)
    """What a difference of 1 between two log-probabilities stands for in such a stage, in units of reward: 0.003 is 0.6
    points of accuracy by the default rewards."""
    class_balanced_groups: bool = False
    """Whether the fraction of forced groups that revise a doubtful answer equals the recent fraction of kept ones."""
    swapped_descriptions: float = Field(default=0.0, ge=0, le=1)
    """The fraction of the forced rows in which two workers answer for each other, so that only replies show it."""
    never_swapped: Counts = ()
    """Indices of workers whose descriptions stay correct."""
    replay: ReplayConfig = ReplayConfig()
    """Replay SFT after each GRPO stage."""
    recursion_sft: RecursionSftConfig = RecursionSftConfig()
    """SFT before the recursion stage."""

    def replay_of(self, stage: StageName) -> SftConfig:
        """The replay SFT after a stage."""
        return SftConfig() if stage == "sft" else getattr(self.replay, stage)

    def problems(self, train: TrainConfig, pool: Pool, stages: Sequence[StageName]) -> Iterable[str]:
        """Options that cannot be run."""
        if self.only_prefix and not (self.parts and self.reasoning_prefix == "roles"):
            yield (
                "train.tiny.only_prefix: only a prefix with a letter for each role stands for lists; "
                'set reasoning_prefix to "roles", and parts to true'
            )
        if not train.sft.steps or self.reasoning_prefix == "none":
            without = "without an SFT stage that teaches a reasoning prefix there is nothing to"
            for name in stages:
                if self.replay_of(name).steps:
                    yield f"train.tiny.replay.{name}: {without} replay; set steps to 0"
                if name in self.forced_prefix:
                    yield f"train.tiny.forced_prefix: {without} force; set it to []"
        yield from self._problems_of_shapes(train, stages)
        if train.lora is not None and any(self.replay_of(name).steps for name in stages):
            yield "train.tiny.replay: it trains all weights, not LoRA adapters; set steps to 0, or remove train.lora"
        if "recursion" in stages:
            for worker in set(self.never_swapped) - set(pool.indices):
                yield missing_worker("train.tiny.never_swapped", worker, pool)
        known = {str(length) for length in SHAPES}
        weights = self.lengths.values()
        if not weights or not set(self.lengths) <= known or min(weights) < 0 or not sum(weights) > 0:
            yield f"train.tiny.lengths: give weights by number of steps, {min(known)} to {max(known)}, not all 0"

    def _problems_of_shapes(self, train: TrainConfig, stages: Sequence[StageName]) -> Iterable[str]:
        shapes = sum(len(shapes_of(length, parts=self.parts)) for length in SHAPES if self.lengths.get(str(length)))
        for name in stages:
            if name == "sft" or name not in self.drawn_shapes:
                continue
            size = train.grpo(name).group_size
            if name not in self.forced_prefix or not self.only_prefix:
                yield f"train.tiny.drawn_shapes: {name} needs train.tiny.only_prefix, and {name} in forced_prefix, too"
            if train.grpo(name).scale_rewards != "none":
                yield f'train.{name}.scale_rewards: drawn shapes need rewards in their own units; set it to "none"'
            if size % self.fills:
                yield f"train.tiny.fills: {self.fills} does not divide the {size} of train.{name}.group_size"
            elif size // self.fills > shapes:
                yield f"train.{name}.group_size: {size // self.fills} shapes are wanted for a question, of {shapes}"

    def size(self) -> ModelSize:
        """The size of the new model."""
        new = self.network
        weights = new.width * (new.vocabulary + new.layers * (4 * new.width + 3 * new.inner))
        return ModelSize(parameters=weights, layers=new.layers, width=new.width, vocabulary=new.vocabulary)

    def sft_rows(self, stages: Sequence[StageName]) -> Mapping[StageName, int]:
        """Replay, and the SFT before the recursion stage."""
        added = {name: [self.replay_of(name)] for name in stages}
        if "recursion" in stages:
            added["recursion"].append(self.recursion_sft)
        return {name: sum(sft.steps * sft.batch_size for sft in phases) for name, phases in added.items()}

    def runs(self, train: TrainConfig, stages: Sequence[StageName], evaluated: int) -> int:
        """Evaluations after replay, the first rounds of second rounds in SFT, and those of class-balanced groups."""
        runs = 0.0
        if "sft" in stages and train.recursion.iterations:
            runs += self.second_rounds * train.sft.steps * train.sft.batch_size
        for name in stages:
            replay, forced = self.replay_of(name), train.recursion.forced if name == "recursion" else 0.0
            runs += evaluated * bool(replay.steps) * (1 + bool(forced)) + forced * replay.steps * replay.batch_size
        if "recursion" in stages:
            sft, grpo = self.recursion_sft, train.recursion
            first = grpo.batch_size if self.class_balanced_groups else grpo.prompts_per_step
            runs += grpo.forced * grpo.iterations * first
            runs += sft.second_rounds * sft.steps * sft.batch_size
        return round(runs)
