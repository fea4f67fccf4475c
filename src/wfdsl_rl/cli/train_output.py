"""What wfdsl-train prints: estimates, and progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from wfdsl.cli.display.consoles import stderr_console
from wfdsl.files import read_json_lines
from wfdsl.render.text import counted
from wfdsl_rl.training.config import TrainConfig
from wfdsl_rl.training.estimate import LATENCY_S, PAPER_USD, Estimate
from wfdsl_rl.training.plan import METRICS

_SHOWN = ("reward", "valid", "cut", "accuracy", "steps", "entropy", "kl", "loss")
_PLAIN_EVERY = 10  # iterations
_WAITING_EVERY_S: Final = 60.0
_PROMPT_LINES = 16
"""Lines of the first prompt that a dry run shows, from its end."""
_WIDTH = 100
"""Characters of such a line."""


class Progress:
    """Shows log entries: of each iteration on a terminal, else of every tenth. The cost is the session's, by the price
    list."""

    def __init__(self, train: TrainConfig, stages: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._totals = {name: train.stages[name].max_steps for name in stages if name in train.stages}
        self._console = stderr_console()
        self._every = 1 if self._console.is_terminal else _PLAIN_EVERY
        self._clock = clock
        self._begun: dict[str, tuple[int, float]] = {}
        self._usd = 0.0
        self._waited = clock()

    def say(self, line: str) -> None:
        """Print a line."""
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)

    def on_metrics(self, entry: dict[str, Any]) -> None:
        """Show a log entry."""
        self._usd += entry.get("usd") or 0.0
        if entry["step"] % self._every == 0 and ("reward" in entry or "loss" in entry):
            place = f"{entry['stage']} {entry['step']}/{self._totals[entry['stage']]}"
            parts = [f"{name} {entry[name]:.3f}" for name in _SHOWN if isinstance(entry.get(name), float)]
            if "usd" in entry:
                parts.append(f"cost ${self._usd:,.2f}")
            self.say(f"{place}: {'  '.join(parts)}{self._left(entry)}")
        self._begun.setdefault(entry["stage"], (entry["step"], self._clock()))

    def on_wait(self, left: int, count: int) -> None:
        """Show how many workflows an iteration waits for, once a minute."""
        if self._clock() - self._waited >= _WAITING_EVERY_S:
            self._waited = self._clock()
            self.say(f"waiting for {left} of {count}")

    def _left(self, entry: dict[str, Any]) -> str:
        """The time that the stage still needs, at its speed so far; nothing before that is known."""
        step, since = self._begun.get(entry["stage"], (entry["step"], 0.0))
        if entry["step"] <= step:
            return ""
        seconds = (self._clock() - since) / (entry["step"] - step) * (self._totals[entry["stage"]] - entry["step"])
        return f"  left {timedelta(seconds=round(seconds))}"


def figures(out: Path, stages: Sequence[str]) -> list[str]:
    """What the GRPO stages of a training came to: means of their first and of their last iterations."""
    lines = []
    for stage in stages:
        trained = [entry for _, entry in read_json_lines(out / stage / METRICS) if "reward" in entry]
        if trained:
            parts = [_from_to(trained, name) for name in ("reward", "accuracy", "valid", "cut")]
            if costs := [entry["usd"] for entry in trained if "usd" in entry]:
                parts.append(f"cost ${sum(costs):,.2f}")
            lines.append(f"{stage}: {counted(len(trained), 'iteration')}: {', '.join(parts)}")
    return lines


def _from_to(entries: Sequence[dict[str, Any]], name: str) -> str:
    values = [entry[name] for entry in entries if entry.get(name) is not None]
    some = min(_PLAIN_EVERY, (len(values) + 1) // 2)
    first, last = (fmean(part) for part in (values[:some], values[-some:]))
    return f"{name} {first:.3f} -> {last:.3f}"


def estimate_text(estimate: Estimate, train: TrainConfig) -> str:
    """An estimate for people, on one page."""
    pool = estimate.resolved["pool"]
    rows = [
        ("model", f"{train.model}, {'LoRA' if train.lora else 'all weights'}"),
        ("tasks", train.tasks),
        ("pool", f"{pool['name']}, {counted(len(pool['workers']), 'worker')}"),
        *_rows("stage", [_stage(each.stage, train) for each in estimate.times]),
        ("completions", f"{estimate.completions:,}"),
        ("runs", f"about {estimate.runs:,} workflows"),
        ("calls", f"about {estimate.calls:,} ({estimate.calls // max(estimate.runs, 1)} steps per workflow)"),
        ("cost", _cost(estimate)),
        *_rows("memory", _memory(estimate, train)),
        *_rows("waiting", _waiting(estimate)),
        *_rows("missing", estimate.missing),
    ]
    prompt = estimate.prompt.splitlines()
    shown = [line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..." for line in prompt[-_PROMPT_LINES:]]
    table = "\n".join(f"{name:<12} {text}" for name, text in rows)
    end = "Nothing was started. --json prints every option and the whole prompt."
    return "\n".join([table, "", f"The first prompt has {len(prompt)} lines. Its end:", *shown, "", end])


def _rows(name: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Rows of which the first one has the name."""
    return [(name if number == 0 else "", text) for number, text in enumerate(texts)]


def _stage(name: str, train: TrainConfig) -> str:
    stage = train.stages[name]
    groups = getattr(stage, "num_generations", None)
    each = f"{stage.prompts_per_step} {'rows' if groups is None else f'questions x {groups} completions'}"
    return f"{name}: {stage.max_steps} steps x {each}, learning rate {stage.learning_rate:g}"


def _cost(estimate: Estimate) -> str:
    if estimate.usd is None:
        return "not known: a worker has no price"
    if estimate.simulated:
        return f"$0: the workers are simulated (about ${estimate.usd:,.2f} by their fictional price list)"
    paper = f"at the paper's ${PAPER_USD} a workflow, ${estimate.runs * PAPER_USD:,.2f}"
    return f"about ${estimate.usd:,.2f} by the price list; {paper}"


def _memory(estimate: Estimate, train: TrainConfig) -> list[str]:
    """What each process needs, a line for each part."""
    if not estimate.memory:
        return [f"not known: {train.model} has no config.json here; try `accelerate estimate-memory`"]
    parts = [f"{name:<16} {_size(gib):>10}" for name, gib in estimate.memory.items()]
    return [*parts, f"{'each process':<16} {_size(sum(estimate.memory.values())):>10}  without activations"]


def _waiting(estimate: Estimate) -> list[str]:
    """The wait for workers that take time."""
    if estimate.simulated:
        return []
    total = sum(each.steps * each.waiting_s for each in estimate.times)
    how = f"{estimate.in_flight} at once, {LATENCY_S:g} s each in the mean (our choice), within the limits of the pool"
    stages = [
        f"{each.stage} {_hours(each.steps * each.waiting_s)} = {each.steps} x {_hours(each.waiting_s)}"
        for each in estimate.times  # the steps wait for their slowest workflow
    ]
    return [*stages, f"all stages {_hours(total)}, without writing and updating", how]


def _hours(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _size(gib: float) -> str:
    return f"{gib:,.1f} GiB" if gib >= 0.1 else f"{1024 * gib:,.1f} MiB"
