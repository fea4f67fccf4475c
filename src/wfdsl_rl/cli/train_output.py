"""What wfdsl-train prints: estimates, and progress as a bar on a terminal, as plain lines or as JSON lines."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from wfdsl.cli.consoles import stderr_console, stdout_console
from wfdsl.cli.output import print_json
from wfdsl_rl.training.config import StageName, TrainConfig
from wfdsl_rl.training.estimate import INPUT_TOKENS, OUTPUT_TOKENS, STEPS, Estimate

_SHOWN = ("reward", "valid", "accuracy", "steps", "kept", "entropy", "kl", "loss")
_PLAIN_EVERY = 10  # iterations


class Progress:
    """Shows log entries; each stage has a bar. The cost is the session's, by the price list."""

    def __init__(
        self,
        train: TrainConfig,
        stages: Sequence[StageName],
        *,
        as_json: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._totals = {name: train.steps(name) for name in stages}
        self._json = as_json
        self._console = stdout_console() if self._json else stderr_console()
        self._bar: Bar | None = None
        self._bars: dict[str, Any] = {}
        self._clock = clock
        self._begun: dict[str, tuple[int, float]] = {}
        self._usd = 0.0

    def __enter__(self) -> Progress:
        if self._console.is_terminal and not self._json:
            self._bar = Bar(
                TextColumn("{task.description:<9}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[numbers]}"),
                console=self._console,
            )
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, line: str) -> None:
        """Print a line."""
        if self._json:
            print_json({"message": line})
        else:
            self._console.print(line, highlight=False, soft_wrap=True, markup=False)

    def on_metrics(self, entry: dict[str, Any]) -> None:
        """Show a log entry."""
        self._usd += entry.get("usd") or 0.0
        if self._json:
            print_json(entry)
        elif "eval_accuracy" in entry:
            self.say(f"{entry['stage']} {entry['step']}: held out: {numbers_of(entry, 'eval_')}")
        elif self._bar is not None:
            self._advance(entry)
        elif entry["step"] % _PLAIN_EVERY == 0 and ("reward" in entry or "loss" in entry):
            place = f"{entry['stage']} {entry['step']}/{self._totals[entry['stage']]}"
            self.say(f"{place}: {self._numbers(entry)}{self._left(entry)}")
        self._begun.setdefault(entry["stage"], (entry["step"], self._clock()))

    def _advance(self, entry: dict[str, Any]) -> None:
        assert self._bar is not None  # the caller looked
        stage = entry["stage"]
        if stage not in self._bars:
            self._bars[stage] = self._bar.add_task(stage, total=self._totals[stage], numbers="")
        self._bar.update(self._bars[stage], completed=entry["step"], numbers=self._numbers(entry))

    def _numbers(self, entry: dict[str, Any]) -> str:
        return "  ".join(filter(None, (numbers_of(entry), f"cost ${self._usd:,.2f}" if "usd" in entry else "")))

    def _left(self, entry: dict[str, Any]) -> str:
        """The time that the stage still needs, at its speed so far; nothing before that is known."""
        step, since = self._begun.get(entry["stage"], (entry["step"], 0.0))
        if entry["step"] <= step:
            return ""
        seconds = (self._clock() - since) / (entry["step"] - step) * (self._totals[entry["stage"]] - entry["step"])
        return f"  left {timedelta(seconds=round(seconds))}"


def numbers_of(entry: dict[str, Any], prefix: str = "") -> str:
    """The main metrics in one line."""
    found = [(name, entry.get(prefix + name)) for name in _SHOWN]
    return "  ".join(f"{name} {value:.3f}" for name, value in found if isinstance(value, float))


def estimate_text(estimate: Estimate) -> str:
    """An estimate for people."""
    about = "at most" if estimate.at_most else "about"
    cost = "not known: a worker has no price"
    if estimate.usd is not None:
        cost = f"{about} ${estimate.usd:,.2f} by the price list"
    memory = "not known: set train.parameters" if estimate.memory_gib is None else _size(estimate.memory_gib)
    return "\n".join(
        [
            json.dumps(estimate.resolved, indent=2),
            "",
            "The first prompt:",
            estimate.prompt,
            "",
            f"stages       {', '.join(estimate.stages)}",
            f"completions  {estimate.completions:,}",
            f"runs         {about} {estimate.runs:,}, evaluations included",
            f"calls        {about} {estimate.calls:,} ({STEPS:g} steps per workflow)",
            f"cost         {cost} ({INPUT_TOKENS} + {OUTPUT_TOKENS} tokens per call)",
            f"memory       {memory} for weights and optimizer; activations are not included",
            "Nothing was started.",
        ]
    )


def _size(gib: float) -> str:
    return f"{gib:,.2f} GiB" if gib >= 0.1 else f"{1024 * gib:,.1f} MiB"
