"""Conductors that benchmarks look at, and what they write: many completions at a time, without asking again."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfdsl.api import analyze
from wfdsl.conductor.checkpoint import load_prompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl import Workflow
    from wfdsl.conductor.effort import Effort
    from wfdsl.conductor.listing import WorkerListing
    from wfdsl.tasks.task import Task

SHIPPED = "src/wfdsl_rl/gym/checkpoints/gym-tiny"
_AT_A_TIME, _MOST_TOKENS = 250, 140


def conductors() -> list[Path]:
    """The folders in WFDSL_CONDUCTORS, parted by colons; else the one that ships."""
    return [Path(folder) for folder in os.environ.get("WFDSL_CONDUCTORS", SHIPPED).split(":")]


class Writer:
    """A checkpoint that writes workflows."""

    def __init__(self, folder: Path, seed: int) -> None:
        from wfdsl_rl.training.checkpoints import load_model
        from wfdsl_rl.training.prefix_cache import share_prompts

        self.folder = folder
        self._seed = seed
        self._tokenizer, self._network = load_model(str(folder))
        share_prompts(self._network)
        trained = load_prompt(folder)
        assert trained is not None, f"{folder} says nothing of a prompt"
        self.prompt, self.max_steps, self.rounds = trained.prompt, trained.max_steps, trained.max_rounds

    def asked(
        self, tasks: Sequence[Task], offers: Sequence[WorkerListing], effort: Effort | None = None
    ) -> list[list[Any]]:
        """The messages of first rounds."""
        ask = partial(self.prompt.ask, max_steps=self.max_steps, effort=effort)
        return [
            [dict(message) for message in ask(task.question, offer)] for task, offer in zip(tasks, offers, strict=True)
        ]

    def workflows(
        self,
        tasks: Sequence[Task],
        offers: Sequence[WorkerListing],
        temperature: float,
        effort: Effort | None = None,
    ) -> list[Workflow | None]:
        """A workflow for each task, in the pool's numbering; None where the completion is not strictly valid."""
        texts = self.texts(self.asked(tasks, offers, effort), temperature)
        return [self.read(text, offer) for text, offer in zip(texts, offers, strict=True)]

    def read(self, text: str, offer: WorkerListing) -> Workflow | None:
        """The workflow of a first round; None if it is not strictly valid."""
        checked = analyze(text, pool=offer, max_steps=self.max_steps, recursion=False, depth_left=0)
        return offer.to_pool(checked.workflow) if checked.ok and checked.workflow is not None else None

    def texts(self, asked: Sequence[Any], temperature: float) -> list[str]:
        """A completion for each conversation."""
        import torch

        from wfdsl_rl.gym.tiny.generation import write

        texts: list[str] = []
        for at in range(0, len(asked), _AT_A_TIME):
            torch.manual_seed(self._seed)
            texts += write(
                self._network,
                self._tokenizer,
                asked[at : at + _AT_A_TIME],
                max_tokens=_MOST_TOKENS,
                temperature=temperature,
            )
        return texts
