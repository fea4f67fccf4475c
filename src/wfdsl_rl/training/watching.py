"""Who looks at a training while it runs: warnings after each batch, plots and a strategy report at each checkpoint."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from transformers import TrainerCallback

from wfdsl.conductor.offer import Offer
from wfdsl.errors import UsageError
from wfdsl.workflow import Step, Workflow
from wfdsl_rl.evaluation.manifest import is_simulated
from wfdsl_rl.judge import Judge
from wfdsl_rl.strategies import strategies_of
from wfdsl_rl.training.curves import curve_of
from wfdsl_rl.training.plots import draw_stage
from wfdsl_rl.training.prior import short_lists
from wfdsl_rl.training.records import warnings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from wfdsl_rl.training.rewarding import Sample
    from wfdsl_rl.training.setting import Setting

_PATTERNS: Final = 50
"""How many distinct workflows the report shows, in the order in which they came. Source: arXiv 2512.04388."""
_ALONE: Final = "alone.json"
_PATIENCE: Final = 10  # iterations in a row before a sign counts


class Warnings:
    """Says once what has looked wrong for several iterations in a row."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._seen: dict[str, int] = {}
        self._entry: Mapping[str, Any] = {}

    def hear_entry(self, entry: Mapping[str, Any]) -> None:
        """Look at a log entry together with the batch behind it."""
        if "reward" in entry:
            self._entry = entry

    def hear_samples(self, samples: Sequence[Sample]) -> None:
        """Look at a batch."""
        if samples[0].row["split"] != "train":
            return
        found = warnings_of(self._entry, samples)
        self._seen = {sign: self._seen.get(sign, 0) + 1 for sign in found}
        for sign, count in self._seen.items():
            if count == _PATIENCE:
                self._say(f"warning: for {count} iterations: {sign}")


class Reports(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Draws plots and writes `strategies.json` whenever a stage is saved."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        pool = setting.pool
        self._folder = folder
        self._kinds = {task.id: task.kind for task in (*setting.tasks, *setting.eval_tasks)}
        self._names = {ordinal: pool.entry(ordinal).name for ordinal in pool.ordinals}
        self._simulated = is_simulated(pool)
        self._alone = read_alone(setting.out)
        self._say = setting.say
        self._plots = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write both."""
        samples = self._folder / "samples"
        iterations = curve_of(samples, self._kinds)
        self._write_strategies([workflow for each in iterations for workflow in each.workflows])
        if not self._plots:
            return
        try:
            draw_stage(
                iterations,
                curve_of(samples, self._kinds, name="eval"),
                self._folder / "plots",
                alone=self._alone,
                names=self._names,
                simulated=self._simulated,
            )
        except UsageError as error:
            self._plots = False
            self._say(f"no plots: {error}")

    def _write_strategies(self, workflows: Sequence[Workflow]) -> None:
        report = strategies_of(workflows, names=self._names, patterns=len(workflows))
        plain = report.to_dict()
        plain["patterns"] = sorted(plain["patterns"], key=lambda pattern: pattern["first"])[:_PATTERNS]
        (self._folder / "strategies.json").write_text(json.dumps(plain, indent=2) + "\n", encoding="utf-8")


def measure_alone(setting: Setting) -> None:
    """Ask each worker alone, where that costs nothing, so that plots can show what has to be beaten."""
    path = setting.out / _ALONE
    if path.is_file() or not setting.eval_tasks or not is_simulated(setting.pool):
        return
    found = asyncio.run(_alone(setting))
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def read_alone(out: Path) -> Mapping[str, float]:
    """Each worker's accuracy by its name; empty where it was not measured."""
    path = out / _ALONE
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


async def _alone(setting: Setting) -> dict[str, float]:
    judge, offer = Judge(), Offer.of(setting.pool)
    found = {}
    async with setting.pool.open():
        for ordinal in setting.pool.ordinals:
            text = short_lists(Workflow((Step(ordinal, "Solve the question."),)))
            judged = [
                await judge.judge(text, task, offer, setting.pool, sample=f"alone/{ordinal}/{task.id}")
                for task in setting.eval_tasks
            ]
            outcomes = [each.fate == "right" for each in judged if each.fate != "missing"]
            found[setting.pool.entry(ordinal).name] = sum(outcomes) / max(len(outcomes), 1)
    return found
