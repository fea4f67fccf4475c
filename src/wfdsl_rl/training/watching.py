"""Who looks at a training while it runs: warnings after each batch, plots and a strategy report at each checkpoint."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from transformers import TrainerCallback

from wfdsl.errors import UsageError
from wfdsl.language.workflow import Step, Workflow
from wfdsl_rl.files import write_whole
from wfdsl_rl.fingerprints import is_simulated
from wfdsl_rl.gym.tiny.synthetic import short_lists
from wfdsl_rl.scoring import Rollout, Scorer, right_share
from wfdsl_rl.training.curves import Curve
from wfdsl_rl.training.health import signs_of, valid_share
from wfdsl_rl.training.plots import draw_stage
from wfdsl_rl.workflow_statistics import statistics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from wfdsl_rl.training.rewarding import Sample
    from wfdsl_rl.training.setting import Setting

_PATTERNS: Final = 50
"""How many distinct workflows the report shows, in the order in which they came. Source: arXiv 2512.04388."""
_ALONE: Final = "alone.json"
_PATIENCE: Final = 10  # iterations in a row before a sign counts
_REASONS: Final = 5  # different reasons for completions without a score that are told


class Warnings:
    """Says once what has looked wrong for several iterations in a row, and why completions have no score."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._seen: dict[str, int] = {}
        self._entry: Mapping[str, Any] = {}
        self._valid: deque[float] = deque(maxlen=_PATIENCE)
        self._best_valid = 0.0
        self._told: set[str] = set()

    def hear_entry(self, entry: Mapping[str, Any]) -> None:
        """Look at a log entry together with the batch behind it."""
        if "reward" in entry:
            self._entry = entry

    def hear_samples(self, samples: Sequence[Sample]) -> None:
        """Look at a batch."""
        self._tell_unscored(samples)
        if samples[0].row["split"] != "train":
            return
        found = signs_of(self._entry, samples, best_valid=self._best_valid)
        self._valid.append(valid_share(samples))
        if len(self._valid) == _PATIENCE:
            self._best_valid = max(self._best_valid, sum(self._valid) / _PATIENCE)
        self._seen = {sign: self._seen.get(sign, 0) + 1 for sign in found}
        for sign, count in self._seen.items():
            if count == _PATIENCE:
                self._say(f"warning: for {count} iterations: {sign}")

    def _tell_unscored(self, samples: Sequence[Sample]) -> None:
        """Give each reason for completions without a score once, and only the first few."""
        unscored = [sample for sample in samples if not sample.scored.has_score]
        for sample in unscored:
            reason = sample.scored.problems[0]
            if reason not in self._told and len(self._told) < _REASONS:
                self._told.add(reason)
                self._say(
                    f"warning: step {sample.step}: {len(unscored)} of {len(samples)} completions have no score and "
                    f"are left out, such as: {reason}"
                )


class Reports(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Draws plots and writes `strategies.json` whenever a stage is saved."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        pool = setting.pool
        kinds = {task.id: task.kind for task in (*setting.tasks, *setting.eval_tasks)}
        self._folder = folder
        self._trained = Curve(folder / "samples", kinds)
        self._held_out = Curve(folder / "samples", kinds, name="eval")
        self._names = {ordinal: pool.entry(ordinal).name for ordinal in pool.ordinals}
        self._simulated = is_simulated(pool)
        self._alone = read_alone(setting.out)
        self._say = setting.say
        self._plots = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write both."""
        self.write(state.global_step)

    def write(self, step: int) -> None:
        """Write both, of what came before a step and of the evaluation in it."""
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


def measure_alone(setting: Setting) -> None:
    """Ask each worker alone, where that costs nothing, so that plots can show what has to be beaten."""
    path = setting.out / _ALONE
    if path.is_file() or not setting.eval_tasks or not is_simulated(setting.pool):
        return
    write_whole(path, json.dumps(asyncio.run(_alone(setting)), indent=2) + "\n")


def read_alone(out: Path) -> Mapping[str, float]:
    """Each worker's accuracy by its name; empty where it was not measured."""
    path = out / _ALONE
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


async def _alone(setting: Setting) -> dict[str, float]:
    scorer = Scorer()
    found = {}
    async with setting.pool.open():
        for ordinal in setting.pool.ordinals:
            text = short_lists(Workflow((Step(ordinal, "Solve the question."),)))
            scored = [
                await scorer.score(
                    Rollout(completion=text, task=task, sample_id=f"alone/{ordinal}/{task.id}"), setting.pool
                )
                for task in setting.eval_tasks
            ]
            found[setting.pool.entry(ordinal).name] = right_share(each.outcome for each in scored) or 0.0
    return found
