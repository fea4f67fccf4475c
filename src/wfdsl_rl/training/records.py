"""What a training leaves behind: every completion, every metric, and warnings while there is time to act.

Completions are kept a file per step, so that a step that is done again after a kill writes the same file again. Metrics
are lines of one file; those behind the step from which a training goes on are dropped.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from wfdsl.errors import WfdslError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from wfdsl.conductor.prompt import Prompt
    from wfdsl_rl.training.rewarding import Sample


class Diverged(WfdslError):  # noqa: N818  (what it says)
    """The loss or the gradient is no number any more."""


class SampleFiles:
    """Writes the completions of each batch to `step-000012.jsonl.gz`, evaluations to `eval-000012.jsonl.gz`."""

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
            new = path.with_suffix(".new")
            new.write_bytes(packed)
            new.replace(path)


def sample_to_dict(sample: Sample) -> dict[str, Any]:
    """A sample as plain values."""
    judged = sample.judged
    run = judged.run
    return {
        "step": sample.step,
        "row": sample.row["row"],
        "task": sample.row["task"],
        "index": sample.index,
        "shown": dict(zip(map(str, sample.row["shown"]), sample.row["true"], strict=True)),
        "round": 2 if sample.row.get("previous") else 1,
        "completion": sample.completion,
        "fate": judged.fate,
        "reward": sample.reward,
        "problems": list(judged.problems),
        "kept": judged.kept,
        "workflow": None if judged.workflow is None else judged.workflow.to_lists(),
        "replies": [] if run is None else [step.response for step in run.steps],
        "answer": None if run is None else run.answer,
        "extracted": None if judged.verdict is None else judged.verdict.extracted,
        "tokens": 0 if run is None else run.usage.total_tokens,
        "usd": None if run is None else run.list_usd,
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
            Diverged: a number that has to be one is none.
        """
        entry = {"stage": self._stage, "step": state.global_step, **(logs or {})}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        for name in ("loss", "grad_norm"):
            value = entry.get(name)
            if isinstance(value, float) and value != value:  # noqa: PLR0124  (not a number)
                raise Diverged(f"step {state.global_step}: {name} is not a number; take a smaller learning rate")
        for listener in self._listeners:
            listener(entry)


class PromptInCheckpoints(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Puts the prompt into each checkpoint, so that its folder can be loaded as a Conductor."""

    def __init__(self, prompt: Prompt, max_steps: int) -> None:
        self._prompt = prompt
        self._max_steps = max_steps

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write it."""
        from wfdsl.conductor.checkpoint import save_prompt  # noqa: PLC0415

        save_prompt(f"{args.output_dir}/checkpoint-{state.global_step}", self._prompt, max_steps=self._max_steps)


class KlFreeEnd(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Drops the KL term for the last iterations of a stage."""

    def __init__(self, free: int) -> None:
        self._free = free
        self.trainer: Any = None
        """Set by whoever builds the trainer."""

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Switch it off in time."""
        if state.global_step >= args.max_steps - self._free:
            self.trainer.beta = 0.0


def drop_lines_after(path: Path, stage: str, step: int) -> None:
    """Drop a stage's metrics behind a step, from where it is trained again."""
    if not path.is_file():
        return
    kept = [
        line
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.endswith("\n") and not _is_behind(json.loads(line), stage, step)
    ]
    new = path.with_suffix(".new")
    new.write_text("".join(kept), encoding="utf-8")
    new.replace(path)


def _is_behind(entry: Mapping[str, Any], stage: str, step: int) -> bool:
    return bool(entry["stage"] == stage and entry["step"] > step)


def warnings_of(entry: Mapping[str, Any], samples: Sequence[Sample]) -> list[str]:
    """Signs that a training goes wrong, a line each."""
    return [*_of_metrics(entry), *_of_samples(samples)]


def _of_metrics(entry: Mapping[str, Any]) -> list[str]:
    found = []
    if entry.get("frac_reward_zero_std", 0.0) > 0.8:
        found.append("most groups have equal rewards: nothing is learned from them; take harder or easier questions")
    if entry.get("valid", 1.0) < 0.5:
        found.append("fewer than half of the completions are valid: warm up longer, or lower the learning rate")
    if entry.get("entropy", 1.0) < 0.01:
        found.append("the entropy is nearly 0: the model always writes the same; raise beta or lower the learning rate")
    return found


def _of_samples(samples: Sequence[Sample]) -> list[str]:
    found = []
    written = [sample.judged.workflow for sample in samples if sample.judged.workflow is not None]
    if len(written) > 1 and len(set(written)) == 1:
        found.append("every completion is the same workflow")
    if any(not step.subtask.strip() for workflow in written for step in workflow):
        found.append("some subtasks are empty")
    answers = Counter(sample.judged.fate for sample in samples)
    if answers["missing"] > len(samples) / 4:
        found.append("more than a quarter of the completions have no outcome: look at the workers")
    return found
