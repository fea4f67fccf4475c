"""What wfdsl-train prints: estimates, and progress as a bar on a terminal, as plain lines or as JSON lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from wfdsl.cli.display.consoles import stderr_console, stdout_console
from wfdsl.cli.output import print_json
from wfdsl_rl.training.config import StageName, TrainConfig
from wfdsl_rl.training.estimate import CORE_SPEED, PAPER_USD, STEPS, Estimate
from wfdsl_rl.training.memory import Memory

_SHOWN = ("reward", "valid", "accuracy", "steps", "kept", "entropy", "kl", "loss")
_PLAIN_EVERY = 10  # iterations
_PROMPT_LINES = 16
"""Lines of the first prompt that a dry run shows, from its end."""
_WIDTH = 100
"""Characters of such a line."""


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
    """An estimate for people, on one page."""
    train = estimate.resolved["train"]
    rows = [
        ("model", f"{train['model']}, {'LoRA' if train['lora'] else 'all weights'}"),
        ("tasks", train["tasks"]),
        ("pool", f"{estimate.resolved['pool']['name']}, {_count(estimate.resolved['pool']['workers'], 'worker')}"),
        *(("stage" if number == 0 else "", _stage(name, train)) for number, name in enumerate(estimate.stages)),
        *_work(estimate),
        *_memory(estimate.memory),
        *_time(estimate),
        *_computing(estimate),
        *(("missing" if number == 0 else "", line) for number, line in enumerate(estimate.missing)),
    ]
    prompt = estimate.prompt.splitlines()
    shown = [line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..." for line in prompt[-_PROMPT_LINES:]]
    return "\n".join(
        [
            *(f"{name:<12} {text}" for name, text in rows),
            "",
            f"The first prompt has {len(prompt)} lines. Its end:",
            *shown,
            "",
            "Nothing was started. --json prints every option and the whole prompt.",
        ]
    )


def _stage(name: str, train: dict[str, Any]) -> str:
    stage = train[name]
    if name == "sft":
        return f"sft: {stage['steps']} steps x {stage['batch_size']} completions"
    groups = f"{stage['prompts_per_step']} questions x {stage['group_size']} completions"
    return f"{name}: {stage['iterations']} iterations x {groups}, learning rate {stage['learning_rate']:g}"


def _work(estimate: Estimate) -> list[tuple[str, str]]:
    about = "at most" if estimate.at_most else "about"
    cost = "not known: a worker has no price"
    if estimate.usd is not None:
        each = f"${estimate.usd / max(estimate.runs, 1):.4f} a workflow; in the paper ${PAPER_USD}"
        cost = f"{about} ${estimate.usd:,.2f} by the price list ({each})"
        if estimate.simulated:
            cost = f"$0: the workers are simulated ({about} ${estimate.usd:,.2f} by their fictional price list)"
    return [
        ("completions", f"{estimate.completions:,}"),
        ("runs", f"{about} {estimate.runs:,}, evaluations included"),
        ("calls", f"{about} {estimate.calls:,} ({STEPS} steps per workflow)"),
        ("cost", cost),
    ]


_SMALLER: Final = {
    False: ("more GPUs (train.processes)", "train.offload", "train.lora", "or a smaller micro_batch"),
    True: ("a smaller micro_batch", "train.extra.activation_checkpointing = true", "or a GPU"),
}
"""What to change where memory is short, by whether the training runs on a CPU."""


def _memory(memory: Memory | None) -> list[tuple[str, str]]:
    """What each process needs, a line for each part, and what to change if there is less."""
    if memory is None:
        return [("memory", "not known: set train.size")]
    rows = [("memory", f"{part.name:<16} {_size(part.gib):>10}  {part.how}") for part in memory.parts]
    where = "this machine" if memory.on_cpu else "a GPU"
    verdict = (
        f"{'of' if memory.fits else 'more than'} the {memory.limit_gib:.3g} GiB of {where}, in the stage {memory.stage}"
    )
    rows.append(("", f"{'each process':<16} {_size(memory.gib):>10}  {verdict}"))
    if memory.host_gib:
        rows.append(("", f"{'machine':<16} {_size(memory.host_gib):>10}  weights, gradients and moments"))
    if not memory.fits:
        rows.append(("", f"use {', '.join(_SMALLER[memory.on_cpu])}"))
    return [(name if number == 0 else "", text) for number, (name, text) in enumerate(rows)]


def _time(estimate: Estimate) -> list[tuple[str, str]]:
    time = estimate.time
    if time is None or not time.latency_s:
        return []
    each = timedelta(seconds=round(time.seconds))
    calls = f"{time.calls:,} calls, {time.in_flight} at once, {time.latency_s:g} s a call"
    return [
        ("time", "each iteration: writing the completions + waiting for the workers + the update"),
        ("", f"waiting for the workers: {each} ({calls}), as far as their limits are in the pool file"),
    ]


def _computing(estimate: Estimate) -> list[tuple[str, str]]:
    if estimate.operations is None:
        return []
    each = timedelta(seconds=round(estimate.operations / CORE_SPEED))
    return [
        ("computing", f"at most {estimate.operations:.1e} operations: {each} on a core with {CORE_SPEED:.0e} a second")
    ]


def _count(items: Sequence[Any], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _size(gib: float) -> str:
    return f"{gib:,.1f} GiB" if gib >= 0.1 else f"{1024 * gib:,.1f} MiB"
