"""Trainer callbacks: metrics as JSON lines, prompts in checkpoints, and the KL schedule."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from wfdsl.conductor.checkpoint import save_prompt
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import WfdslError
from wfdsl.files import write_whole


class Diverged(WfdslError):  # noqa: N818  (what it says)
    """The loss or the gradient is not a finite number."""


class MetricLines(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Appends every log entry to a file, and stops a training whose loss is not finite."""

    def __init__(self, path: Path, stage: str, listeners: Sequence[Callable[[dict[str, Any]], None]] = ()) -> None:
        self._path = path
        self._stage = stage
        self._listeners = tuple(listeners)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:  # noqa: ARG002
        """Write an entry.

        Raises:
            Diverged: the loss or the gradient is not a finite number.
        """
        entry = {"stage": self._stage, "step": state.global_step, **(logs or {})}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        for name in ("loss", "grad_norm"):
            value = entry.get(name)
            if isinstance(value, float) and not math.isfinite(value):
                raise Diverged(
                    f"step {state.global_step}: {name} is {value}, and no checkpoint of this step is kept; use a "
                    f"smaller learning rate for the stage {self._stage}, and start again"
                )
        for listener in self._listeners:
            listener(entry)


class PromptInCheckpoints(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Puts the prompt into each checkpoint once it is complete, so that its folder can be loaded as a Conductor."""

    def __init__(self, prompt: Prompt, max_steps: int, rounds: int) -> None:
        self._prompt = prompt
        self._max_steps = max_steps
        self._rounds = rounds

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write it."""
        folder = f"{args.output_dir}/checkpoint-{state.global_step}"
        save_prompt(folder, self._prompt, max_steps=self._max_steps, max_rounds=self._rounds)


class KlSchedule(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Lowers the weight of the KL term linearly, to 0 at the end of a stage."""

    def __init__(self, beta: float) -> None:
        self._beta = beta
        self.trainer: Any = None
        """Set once it is built."""

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Set the weight for the iteration."""
        self.trainer.beta = self._beta * (1.0 - state.global_step / args.max_steps)


def drop_lines_after(path: Path, stage: str, step: int) -> None:
    """Drop a stage's metrics after a step, from which it is trained again."""
    if not path.is_file():
        return
    kept = [
        line
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.endswith("\n") and not _is_after(json.loads(line), stage, step)
    ]
    write_whole(path, "".join(kept))


def _is_after(entry: Mapping[str, Any], stage: str, step: int) -> bool:
    return bool(entry["stage"] == stage and entry["step"] > step)
