"""What a training leaves behind: every completion and every metric.

Completions are kept a file per step, so that a step that is done again after a kill writes the same file again. Metrics
are lines of one file; those behind the step from which a training goes on are dropped.
"""

from __future__ import annotations

import gzip
import json
import math
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from wfdsl.errors import WfdslError
from wfdsl.interpreter.record import total_usd
from wfdsl_rl.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from wfdsl.conductor.prompt import Prompt
    from wfdsl_rl.training.rewarding import Sample


class Diverged(WfdslError):  # noqa: N818  (what it says)
    """The loss or the gradient is no number any more."""


class SampleFiles:
    """Writes the completions of each batch to `step-000012.jsonl.gz`.

    Those of an evaluation go to `eval-000012.jsonl.gz`, and the first rounds that a second one builds on to
    `first-000012.jsonl.gz`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: Path | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, samples: Sequence[Sample]) -> None:
        """Keep a batch."""
        first = samples[0]
        name = "step" if first.row["split"] == "train" else str(first.row["split"])
        path = self._folder / f"{name}-{first.step:06d}.jsonl.gz"
        lines = "".join(json.dumps(sample_to_dict(sample), ensure_ascii=False) + "\n" for sample in samples)
        packed = gzip.compress(lines.encode(errors="replace"), compresslevel=1, mtime=0)
        if path == self._open:  # an evaluation comes in several batches
            with path.open("ab") as file:
                file.write(packed)
        else:
            self._open = path
            write_whole(path, packed)


def sample_to_dict(sample: Sample) -> dict[str, Any]:
    """A sample as plain values."""
    scored = sample.scored
    run, runs = scored.run, sample.runs
    return {
        "step": sample.step,
        "row": sample.row["row"],
        "task": sample.row["task"],
        "index": sample.index,
        "shown": dict(zip(map(str, sample.row["shown"]), sample.row["true"], strict=True)),
        "answering": dict(zip(map(str, sample.row["shown"]), sample.row["answering"], strict=True)),
        "round": 2 if sample.row.get("previous") else 1,
        "completion": sample.completion,
        "outcome": scored.outcome,
        "outcomes": [each.outcome for each in sample.executions],
        "reward": sample.reward,
        "problems": list(scored.problems),
        "kept": scored.kept,
        "read": sample.read,
        "workflow": None if scored.workflow is None else scored.workflow.to_lists(),
        "replies": [] if run is None else [step.response for step in run.steps],
        "answer": None if run is None else run.answer,
        "extracted": None if scored.verdict is None else scored.verdict.extracted,
        "shared": sample.shared,
        "tokens": sum(each.usage.total_tokens for each in runs),
        "usd": total_usd(each.list_usd for each in runs) if runs or sample.shared else None,
    }


class MetricLines(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Appends every log entry to a file, and stops a training whose numbers are none."""

    def __init__(self, path: Path, stage: str, listeners: Sequence[Callable[[dict[str, Any]], None]] = ()) -> None:
        self._path = path
        self._stage = stage
        self._listeners = tuple(listeners)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:  # noqa: ARG002
        """Keep an entry.

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
                    f"step {state.global_step}: {name} is {value}, and no checkpoint of this step is kept; take a "
                    f"smaller learning rate for the stage {self._stage}, and start anew"
                )
        for listener in self._listeners:
            listener(entry)


class PromptInCheckpoints(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Puts the prompt into each checkpoint, so that its folder can be loaded as a Conductor."""

    def __init__(self, prompt: Prompt, max_steps: int, rounds: int) -> None:
        self._prompt = prompt
        self._max_steps = max_steps
        self._rounds = rounds

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write it."""
        from wfdsl.conductor.checkpoint import save_prompt  # noqa: PLC0415

        folder = f"{args.output_dir}/checkpoint-{state.global_step}"
        save_prompt(folder, self._prompt, max_steps=self._max_steps, max_rounds=self._rounds)


class FallingKl(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Lets the weight of the KL term fall in a line, to 0 for the last iterations of a stage."""

    def __init__(self, beta: float, free: int) -> None:
        self._beta = beta
        self._free = free
        self.trainer: Any = None
        """Set by whoever builds the trainer."""

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Set the weight that the iteration counts with."""
        until = args.max_steps - self._free
        self.trainer.beta = self._beta * max(0.0, 1.0 - state.global_step / until) if until else 0.0


def drop_lines_after(path: Path, stage: str, step: int) -> None:
    """Drop a stage's metrics behind a step, from where it is trained again."""
    if not path.is_file():
        return
    kept = [
        line
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.endswith("\n") and not _is_behind(json.loads(line), stage, step)
    ]
    write_whole(path, "".join(kept))


def _is_behind(entry: Mapping[str, Any], stage: str, step: int) -> bool:
    return bool(entry["stage"] == stage and entry["step"] > step)
