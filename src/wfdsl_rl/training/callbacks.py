"""Trainer callbacks: metrics as JSON lines, prompts in checkpoints, the KL schedule, plots and strategy reports."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from transformers import TrainerCallback

from wfdsl.conductor.checkpoint import save_prompt
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError, WfdslError
from wfdsl.evaluation.fingerprints import is_simulated
from wfdsl.evaluation.workflow_statistics import statistics_of
from wfdsl.files import write_whole
from wfdsl.language.workflow import Workflow
from wfdsl_rl.reward import make_reward
from wfdsl_rl.scoring import right_share
from wfdsl_rl.training.plots import draw_stage
from wfdsl_rl.training.samples import Curve
from wfdsl_rl.training.setup import SINGLE_WORKERS, Setup, read_single_workers

_PATTERNS: Final = 50
"""How many distinct workflows the report shows, in order of appearance. Source: arXiv 2512.04388."""


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
    """Puts the prompt into each checkpoint, so that its folder can be loaded as a Conductor."""

    def __init__(self, prompt: Prompt, max_steps: int, rounds: int) -> None:
        self._prompt = prompt
        self._max_steps = max_steps
        self._rounds = rounds

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write it."""
        folder = f"{args.output_dir}/checkpoint-{state.global_step}"
        save_prompt(folder, self._prompt, max_steps=self._max_steps, max_rounds=self._rounds)


class KlSchedule(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Lowers the weight of the KL term linearly, to 0 for the last iterations of a stage."""

    def __init__(self, beta: float, free: int) -> None:
        self._beta = beta
        self._free = free
        self.trainer: Any = None
        """Set once it is built."""

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Set the weight for the iteration."""
        until = args.max_steps - self._free
        self.trainer.beta = self._beta * max(0.0, 1.0 - state.global_step / until) if until else 0.0


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


class Reports(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Draws plots and writes `strategies.json` whenever a stage is saved."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        pool = setup.pool
        self._folder = folder
        self._trained = Curve(folder / "samples")
        self._held_out = Curve(folder / "samples", name="eval")
        self._names = {index: pool.entry(index).name for index in pool.indices}
        self._simulated = is_simulated(pool)
        self._alone = read_single_workers(setup.out)
        self._say = setup.say
        self._plots = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write both."""
        self.write(state.global_step)

    def write(self, step: int) -> None:
        """Write both, about the iterations before a step and the evaluations up to it."""
        iterations = self._trained.until(step)
        self._write_strategies([workflow for each in iterations for workflow in each.workflows])
        if not self._plots:
            return
        try:
            draw_stage(
                iterations,
                self._held_out.until(step + 1),
                self._folder / "plots",
                alone=self._alone,
                names=self._names,
                simulated=self._simulated,
            )
        except UsageError as error:
            self._plots = False
            self._say(f"no plots: {error}")

    def _write_strategies(self, workflows: Sequence[Workflow]) -> None:
        report = statistics_of(workflows, names=self._names, patterns=len(workflows))
        plain = report.to_dict()
        plain["patterns"] = sorted(plain["patterns"], key=lambda pattern: pattern["first"])[:_PATTERNS]
        write_whole(self._folder / "strategies.json", json.dumps(plain, indent=2) + "\n")


def measure_single_workers(setup: Setup) -> None:
    """Measure each worker alone, where it costs nothing, as the baseline that plots show."""
    path = setup.out / SINGLE_WORKERS
    if path.is_file() or not setup.eval_tasks or not is_simulated(setup.pool):
        return
    write_whole(path, json.dumps(asyncio.run(_accuracies(setup)), indent=2) + "\n")


async def _accuracies(setup: Setup) -> dict[str, float]:
    reward, found = make_reward(setup.pool, setup.eval_tasks, max_steps=1), {}
    for index in setup.pool.indices:
        text = f'model_id = [{index}]\nsubtasks = ["Solve the question."]\naccess_list = [[]]'
        scored = await reward(
            [text] * len(setup.eval_tasks),
            setup.eval_tasks,
            sample_ids=[f"alone/{index}/{task.id}" for task in setup.eval_tasks],
        )
        found[setup.pool.entry(index).name] = right_share(each.outcome for each in scored) or 0.0
    return found
