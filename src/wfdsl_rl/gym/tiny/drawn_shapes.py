"""GRPO in which the shapes of completions are drawn by what they were worth, and imitated.

Shapes that a model samples are soon all alike: each step has its price, and is worth something only with the right
workers. Here a table remembers what each shape was worth for a family of questions, shapes are drawn by it, and the
model learns to write them. Workers that a model samples are soon all alike, too, so completions with the same shape
differ in one step, which code has changed. Our choice.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from string import digits
from typing import Any, Final

import torch
from torch import Tensor
from transformers import TrainerCallback

from wfdsl.errors import UsageError
from wfdsl_rl.gym.tiny.reasoning_prefix import assigned_in
from wfdsl_rl.gym.tiny.synthetic import CHECKS, SyntheticWorkflows
from wfdsl_rl.training.config import StageName

_PROMPTS, _TOKENS, _COMPLETIONS = 0, 1, 3
"""Places in the result of TRL's `_generate`, a private name that a contract test holds: the tokens of the prompts, the
tokens of the completions, and the completions."""
_IMITATION: Final = 0.1
"""What the shapes of a question get together, in units of reward. Our choice: about as much as other tokens."""
_COPIED: Final = 0.05
"""What a token gets that code has put there: a worker index in a role, or a step of a replaced line. Our choice."""
_PLACE: Final = re.compile(r" ([a-z])(\d+)\b")
_ROLE: Final = re.compile(r"( \w([a-z]))(\d+)")
_SHRUNK, _RECENT = 4, 0.007
"""How many questions on which it was worth as much as others a shape begins with; the weight of the latest question, at
least, because workers get better. Our choice."""
_FILE: Final = "shapes.json"
"""The table, in a checkpoint."""


class DrawnShapes(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """A trainer's completions begin with drawn shapes, `fills` with each, and tokens have advantages of their own.

    - Half of a question's shapes are drawn by what they were worth for its family, less the price of their steps, in
      units of `softness`; the others by their lengths only.
    - The first completion of a shape is the model's own, and the worth of the shape is judged by it. If it does not fit
      the shape, code replaces it by steps with workers at random, which are imitated, so that the format is kept.
    - The others have another worker, or another check, in one of its steps.
    - The token of a shape gets its share of what all shapes would be drawn with.
    - The tokens that differ between completions of a shape get what their completion has over the mean, less `softness`
      times what their log-probability has over the mean, so that workers stay as likely as they are good. Those that
      do not differ get nothing.
    - Worker indices are copied by code from the annotation, and get a constant.

    The table is part of checkpoints. With several processes, each has one of its own, and the first one's is kept.
    """

    def __init__(
        self, trainer: Any, synthetic: SyntheticWorkflows, stage: StageName, *, fills: int, softness: float
    ) -> None:
        """The shapes are those of `synthetic`.

        Raises:
            UsageError: there are fewer than a question of the stage needs.
        """
        self.trainer, self.synthetic, self.stage, self.fills, self.softness = trainer, synthetic, stage, fills, softness
        every, wanted = synthetic.every_shape, trainer.num_generations // fills
        if wanted > len(every):
            raise UsageError(
                f"train.{stage}.group_size: {wanted} shapes are wanted for a question, of {len(every)}; "
                "lower it, or allow more lengths"
            )
        self.worth: dict[str, ShapeWorth] = defaultdict(lambda: ShapeWorth(every))
        """By family of questions."""
        self._generate, self._score = trainer._generate, trainer._generate_and_score_completions
        self._rows: Sequence[Mapping[str, Any]] = ()
        self._shapes: list[str] = []
        self._replaced: list[bool] = []
        self._digits = [ids[0] for ids in trainer.processing_class([*digits], add_special_tokens=False).input_ids]
        trainer.add_callback(self)
        trainer._generate = self.generate
        trainer._generate_and_score_completions = self.score

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Read the table of the checkpoint that the training continues from."""
        file = _file(args, state)
        for family, found in json.loads(file.read_text("utf-8")).items() if file.is_file() else ():
            self.worth[family].restore(**found)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write the table into a checkpoint."""
        if state.is_world_process_zero:
            known = {family: {"values": worth.values, "counts": worth.counts} for family, worth in self.worth.items()}
            _file(args, state).write_text(json.dumps(known), "utf-8")

    def generate(self, prompts: Any) -> Any:
        """Completions of prompts, each of which is repeated for its group, that begin with the drawn shapes."""
        if not self.trainer.model.training:
            return self._generate(prompts)
        size, step = self.trainer.num_generations, self.trainer.state.global_step
        drawn = [shape for at in range(0, len(prompts), size) for shape in self._drawn(self._rows[at], f"{step}:{at}")]
        self._shapes = [shape for shape in drawn for _ in range(self.fills)]
        begun = [f" {shape}" for shape in self._shapes]
        found = list(self._generate([f"{prompt}{shape}" for prompt, shape in zip(prompts, begun, strict=True)]))
        tokens = self.trainer.processing_class(begun, add_special_tokens=False).input_ids
        found[_PROMPTS] = [ids[: -len(own)] for ids, own in zip(found[_PROMPTS], tokens, strict=True)]
        texts = [with_indices(*each) for each in zip(prompts, found[_COMPLETIONS], strict=True)]
        self._replaced = []
        for at in range(0, len(texts), self.fills):
            rng, own = random.Random(f"variants:{step}:{at}"), texts[at]
            texts[at] = own if fits(prompts[at], begun[at], own) else steps_at_random(prompts[at], begun[at], rng)
            texts[at + 1 : at + self.fills] = variants(prompts[at], texts[at], self.fills - 1, rng)
            self._replaced += [texts[at] != own] * self.fills
        found[_COMPLETIONS] = [f"{shape}{text}" for shape, text in zip(begun, texts, strict=True)]
        found[_TOKENS] = self.trainer.processing_class(found[_COMPLETIONS], add_special_tokens=False).input_ids
        return tuple(found)

    def _drawn(self, row: Mapping[str, Any], key: str) -> list[str]:
        """The shapes of a question."""
        count, rng = self.trainer.num_generations // self.fills, random.Random(f"worth:{key}")
        worth = self.worth[row["family"]].log_weights(row["price"], self.softness)
        order = sorted(worth, key=lambda shape: worth[shape] - math.log(rng.expovariate(1.0)), reverse=True)
        best = order[: count // 2]
        return [*best, *self.synthetic.shapes(f"{self.stage}:{key}", count - len(best), best)]

    def score(self, inputs: Any) -> Any:
        """TRL's batch, in training with an advantage for each token."""
        self._rows = inputs
        batch = self._score(inputs)
        if not self.trainer.model.training:
            return batch
        asked, written = (
            (batch["prompt_ids"], batch["prompt_mask"]),
            (batch["completion_ids"], batch["completion_mask"]),
        )
        ids, mask = (torch.cat(pair, dim=1) for pair in zip(asked, written, strict=True))
        with torch.no_grad():
            known, *_ = self.trainer._get_per_token_logps_and_entropies(
                self.trainer.model, ids, mask, written[0].shape[1]
            )
        copied = torch.isin(written[0], torch.tensor(self._digits, device=known.device))
        first = torch.arange(known.shape[1], device=known.device) == 0
        groups = written[0].view(-1, self.fills, known.shape[1])
        differs = (groups != groups[:, :1]).any(dim=1).repeat_interleave(self.fills, dim=0) & ~copied
        rest = (known * written[1] * differs).sum(dim=1)
        advantages, softness = batch["advantages"], self.softness
        of_rest = advantages - _means(advantages, self.fills) - softness * (rest - _means(rest, self.fills))
        of_first = torch.tensor(self._imitated(advantages.tolist())).to(advantages)
        replaced = torch.tensor(self._replaced, device=known.device)[:, None] & ~differs
        others = torch.where(copied | replaced, _COPIED, of_rest[:, None] * differs)
        batch["advantages"] = torch.where(first, of_first[:, None], others)
        return batch

    def _imitated(self, advantages: Sequence[float]) -> list[float]:
        """What the token of each completion's shape gets; the advantages of first completions are remembered."""
        size, found = self.trainer.num_generations, list[float]()
        for at in range(0, len(advantages), size):
            row, shapes = self._rows[at], self._shapes[at : at + size]
            worth = self.worth[row["family"]]
            shares = worth.log_weights(row["price"], self.softness)
            most = max(shares.values())
            total = sum(math.exp(share - most) for share in shares.values())
            found += [_IMITATION * math.exp(shares[shape] - most) / total for shape in shapes]
            gained = dict(zip(shapes[:: self.fills], advantages[at : at + size : self.fills], strict=True))
            worth.add({shape: each + row["price"] * len(shape) for shape, each in gained.items()})
        return found


def with_indices(prompt: str, text: str) -> str:
    """A text after the annotation at the end of a prompt, with the worker index of each place that it names."""
    places = dict(_PLACE.findall(prompt.splitlines()[-1]))
    return _ROLE.sub(lambda found: f"{found[1]}{places.get(found[2], found[3])}", text)


def fits(prompt: str, shape: str, text: str) -> bool:
    """Whether a text has a step for each role of its shape, at places that the prompt names."""
    places = dict(_PLACE.findall(prompt.splitlines()[-1]))
    return assigned_in(f"{shape}{text}") is not None and all(place in places for _, place, _ in _ROLE.findall(text))


def steps_at_random(prompt: str, shape: str, rng: random.Random) -> str:
    """A step for each role of a shape, at places and with checks drawn at random."""
    places = _PLACE.findall(prompt.splitlines()[-1])
    roles = [rng.choice([*CHECKS]) if role == "V" else role for role in shape.strip()]
    drawn = rng.choices(places, k=len(roles))
    return "".join(f" {role}{place}{index}" for role, (place, index) in zip(roles, drawn, strict=True)) + "\n"


def variants(prompt: str, text: str, count: int, rng: random.Random) -> list[str]:
    """So many texts that differ from one in a step, which has another of the prompt's places, or another check.

    They are repeated if there are fewer.
    """
    places = dict(_PLACE.findall(prompt.splitlines()[-1]))
    chosen = rng.choice([*_ROLE.finditer(text)])
    role, place, index = chosen[1][1], chosen[2], chosen[3]
    others = [f" {role}{other}{places[other]}" for other in places if other != place]
    if role in CHECKS:
        others += [f" {check}{place}{index}" for check in CHECKS if check != role]
    rng.shuffle(others)
    drawn = islice(cycle(others or [chosen[0]]), count)
    return [f"{text[: chosen.start()]}{other}{text[chosen.end() :]}" for other in drawn]


class ShapeWorth:
    """What each shape was worth for a family of questions, on a scale without a zero."""

    def __init__(self, shapes: Sequence[str]) -> None:
        self.values = dict.fromkeys(shapes, 0.0)
        self.counts = dict.fromkeys(shapes, 0)

    def restore(self, values: Mapping[str, float], counts: Mapping[str, int]) -> None:
        """Continue with what is known of these shapes."""
        self.values = {shape: values.get(shape, 0.0) for shape in self.values}
        self.counts = {shape: counts.get(shape, 0) for shape in self.counts}

    def log_weights(self, price: float, softness: float) -> dict[str, float]:
        """What each shape is worth at a price of a step, in units of `softness`."""
        return {shape: (value - price * len(shape)) / softness for shape, value in self.values.items()}

    def add(self, gained: Mapping[str, float]) -> None:
        """Take in what some shapes had on one question, of which only the differences count."""
        mean = sum(self.values[shape] - each for shape, each in gained.items()) / len(gained)
        for shape, each in gained.items():
            self.counts[shape] += 1
            step = max(1 / (_SHRUNK + self.counts[shape]), _RECENT)
            self.values[shape] += step * (each - self.values[shape] + mean)


def _means(values: Tensor, count: int) -> Tensor:
    """The mean of `count` values at a time, in the place of each."""
    return values.view(-1, count).mean(dim=1).repeat_interleave(count)


def _file(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}" / _FILE
