"""The extension `tiny` of a training: a new model, its SFT phases, and what helps so small a model under rewards."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch

from wfdsl.conductor.checkpoint import FILE, save_prompt
from wfdsl.conductor.listing import WorkerListing
from wfdsl_rl.gym.tiny.config import TinyConfig
from wfdsl_rl.gym.tiny.drawn_shapes import DrawnShapes
from wfdsl_rl.gym.tiny.forced_first_rounds import TinyRecursionTrainer, forced_rows
from wfdsl_rl.gym.tiny.generation import force_prefix, write_all, write_only_prefixes
from wfdsl_rl.gym.tiny.random_model import make_model, make_tokenizer, save_new
from wfdsl_rl.gym.tiny.reasoning_prefix import annotation_in
from wfdsl_rl.gym.tiny.recursion import TinyRevisions
from wfdsl_rl.gym.tiny.sft_rows import SftRows, correct_annotation_of
from wfdsl_rl.gym.tiny.small_vocabulary import dataset_of, use_small_vocabulary_loss
from wfdsl_rl.scoring import Sample
from wfdsl_rl.training.callbacks import MetricLines
from wfdsl_rl.training.checkpoints import load_model, save_model
from wfdsl_rl.training.config import SftConfig, StageName
from wfdsl_rl.training.grpo import RecursionTrainer
from wfdsl_rl.training.prefix_cache import share_prompts
from wfdsl_rl.training.rewarding import stage_reward
from wfdsl_rl.training.setup import Extension
from wfdsl_rl.training.stages import fine_tune

_TOKENIZER_TEXTS: Final = 4000
"""SFT rows that a tokenizer is trained on. Our choice."""
_STREAM: Final = {"new": "new", "sft": "warmup", "recursion": "recursion warmup"}
"""Names of random streams for simulated replies. With other names, a seed gives another training."""


class TinyExtension(Extension):
    """The hooks."""

    config: TinyConfig

    def before(self, stage: StageName, model: str) -> str:
        """Make the new model; before recursion, train the SFT phase."""
        if model == "new":
            model = str(self.setup.processes.on_first(self._new_model))
        sft, folder = self.config.recursion_sft, self.setup.folder("recursion") / "sft"
        if stage != "recursion" or not sft.steps:
            return model
        if not self.setup.processes.on_first((folder / FILE).is_file):  # the prompt is written last
            folder.mkdir(parents=True, exist_ok=True)
            self.setup.say(f"recursion: {sft.steps} SFT steps from {model}")
            tokenizer, network = loaded = self._load(model)
            rows = self._sft_rows(_STREAM[stage]).before_recursion(self._write(stage, loaded))
            self._fine_tune("recursion sft", sft, loaded, rows, folder)
            save_model(self.setup, stage, network, tokenizer, folder)
        return str(folder)

    def rows(self, stage: StageName, rows: Sequence[dict[str, Any]], tokenizer: Any) -> Sequence[Any]:
        """Synthetic rows for SFT; forced prefixes for rewards."""
        if stage == "sft":
            sft = self.setup.train.sft
            made = self._sft_rows(_STREAM[stage]).before_rewards(sft.steps * sft.batch_size)
            tokenized: Sequence[Any] = dataset_of(tokenizer, made)
            return tokenized
        if stage == "recursion":
            rows = forced_rows(self.setup)
        if stage not in self.config.forced_prefix:
            return rows
        return [force_prefix(row, self._annotation(row), tokenizer) for row in rows]

    def on_trainer(self, stage: StageName, trainer: Any) -> None:
        """The loss of a small vocabulary, completions that end with their prefix, and the revisions of recursion."""
        if stage == "sft":
            use_small_vocabulary_loss(trainer)
            return
        if stage in self.config.drawn_shapes:
            synthetic = self._sft_rows(_STREAM["sft"]).synthetic
            DrawnShapes(trainer, synthetic, stage, fills=self.config.fills, softness=self.config.softness)
        if self.config.only_prefix:
            write_only_prefixes(trainer)
            reward = trainer.reward_funcs[0].__self__
            trainer.reward_funcs[0] = replace(reward, end_of_text=frozenset(trainer.eos_token_ids)).trl
        if isinstance(trainer, RecursionTrainer):
            (reward,), tokenizer = trainer.reward_funcs, trainer.processing_class
            tiny: Any = trainer
            tiny.__class__ = TinyRecursionTrainer
            tiny.revisions = TinyRevisions(self.setup, reward.__self__, self.config, tokenizer)
            if tiny.eval_dataset is not None:
                first = tiny.eval_dataset["first"]
                tiny.eval_dataset = first.add_column("forced", [True] * len(first))

    def on_samples(self, samples: Sequence[Sample]) -> Mapping[str, float]:
        """The share of completions with a correct annotation of their prompt; no reward depends on it."""
        if self.config.reasoning_prefix == "none" or not self.setup.train.sft.steps:
            return {}
        correct = [annotation_in(sample.completion) == self._annotation(sample.row) for sample in samples]
        return {"annotation_accuracy": sum(correct) / len(correct)}

    def after(self, stage: StageName, folder: Path) -> bool:
        """Scale the logits after SFT; replay SFT after rewards."""
        if stage == "sft":
            self.setup.processes.on_first(lambda: self._scale_logits(folder))
            return False
        sft, before = self.config.replay_of(stage), folder.parent / "before-replay"
        if not sft.steps:
            return False
        self.setup.processes.on_first(lambda: _copy(folder, before))
        self.setup.say(f"{stage}: {sft.steps} replay SFT steps from {before}")
        tokenizer, network = loaded = self._load(str(before))
        write = self._write(stage, loaded, greedy=self.config.replay.greedy)
        rows = self._sft_rows(f"{stage} refresh").replay(write, stage)
        self._fine_tune(f"{stage} replay", sft, loaded, rows, before)
        save_model(self.setup, stage, network, tokenizer, folder)
        return True

    def _scale_logits(self, folder: Path) -> None:
        _, network = load_model(str(folder))
        scale_logits(network, self.config.logit_scale)
        network.save_pretrained(folder)

    def _annotation(self, row: Mapping[str, Any]) -> str:
        return correct_annotation_of(self.setup, self.config.reasoning_prefix, row)

    def _sft_rows(self, stream: str) -> SftRows:
        return SftRows(self.setup, self.config, stage_reward(self.setup, stream, grades=False))

    def _load(self, model: str) -> tuple[Any, Any]:
        """A tokenizer and its network that write as they do in a GRPO stage."""
        tokenizer, network = load_model(model)
        if self.setup.train.prefix_cache:
            share_prompts(network)
        return tokenizer, network

    def _write(self, stage: StageName, model: tuple[Any, Any], *, greedy: bool = False) -> Any:
        config, only_prefix = self.setup.train.grpo(stage), self.config.only_prefix
        return partial(write_all, config, self.setup.train.seed, model, greedy=greedy, only_prefix=only_prefix)

    def _fine_tune(
        self, name: str, sft: SftConfig, model: tuple[Any, Any], rows: Sequence[dict[str, Any]], folder: Path
    ) -> None:
        metrics = MetricLines(folder / "metrics.jsonl", name)
        fine_tune(self.setup, self, model, dataset_of(model[0], rows), folder, sft=sft, metrics=metrics)

    def _new_model(self) -> Path:
        """The model of random weights and its tokenizer; its folder."""
        setup, new, folder = self.setup, self.config.network, self.setup.out / "new"
        if (folder / FILE).is_file():  # the prompt is written last
            return folder
        made = self._sft_rows(_STREAM["new"])
        rows = made.before_rewards(_TOKENIZER_TEXTS)
        texts = [message["content"] for row in rows for message in (*row["prompt"], *row["completion"])]
        constants = between_numbers(setup.prompt.written_workers(WorkerListing.of(setup.pool)))
        if self.config.drawn_shapes:  # a shape is one decision: one token
            constants += [f" {shape}" for shape in made.synthetic.every_shape if len(shape) > 1]
        tokenizer = make_tokenizer(texts, vocabulary=new.vocabulary, constants=constants)
        model = make_model(
            tokenizer, width=new.width, inner=new.inner, layers=new.layers, heads=new.heads, seed=setup.train.seed
        )
        save_new(folder, model, tokenizer)
        save_prompt(folder, setup.prompt, max_steps=setup.max_steps)
        return folder


def _copy(folder: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)


def scale_logits(network: Any, factor: float) -> None:
    """Multiply the logits of a network, by scaling the last norm before the output layer."""
    if factor != 1.0:
        with torch.no_grad():
            network.model.norm.weight.mul_(factor)


def between_numbers(listing: str) -> list[str]:
    """The texts that occur repeatedly between the digits of a listing, sorted."""
    pieces = Counter(piece for line in listing.splitlines() for piece in re.split(r"\d+", line) if len(piece) > 1)
    return sorted(piece for piece, count in pieces.items() if count > 1)
