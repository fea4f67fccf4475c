"""What a training would need, before it is started: one prompt, memory, worker calls and what they cost.

The estimates are made of few numbers on purpose, all of which are shown: the paper's mean of 3 steps, its tokens per
answer, the pool's price list. Source: arXiv 2512.04388, section 5 (1820 tokens and 3 steps per sample); how memory adds
up is our choice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from wfdsl.protocols import Usage
from wfdsl_rl.training.config import Recursion
from wfdsl_rl.training.data import Draw, rows_of
from wfdsl_rl.training.feasible import require_feasible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.workers.pool import Pool
    from wfdsl_rl.training.config import Grpo, RecursionWarmup, StageName, Warmup
    from wfdsl_rl.training.setup import Planned

STEPS: Final = 3.0
"""Calls of a workflow. Source: arXiv 2512.04388, section 5."""
OUTPUT_TOKENS: Final = 500
INPUT_TOKENS: Final = 700
"""Tokens of a call; their sum over three calls is about the paper's 1820 output tokens and what steps are shown."""
_GIB: Final = 1 << 30
_BYTES_FULL: Final = 16
"""Per trained weight: the weight, its gradient and two moments, in 32 bits each."""
_BYTES_FROZEN: Final = 2
"""Per weight that is only read, in 16 bits."""
_LORA_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would be run, and what that needs."""

    resolved: dict[str, Any]
    stages: tuple[str, ...]
    prompt: str
    """The first prompt that the model would be shown."""
    completions: int
    """That are trained on, besides the warm-up's."""
    runs: int
    """Of workflows: executions of those, evaluations, and first rounds that are shown to second ones."""
    calls: int
    """Worker calls, at three steps a workflow."""
    usd: float | None
    """What they cost by the price list, in US dollars; None if a price is not known."""
    memory_gib: float | None
    """Weights, gradients and moments, without activations and caches; None if the size is not known."""
    at_most: bool = False
    """Whether less may be run, because completions that are the same are run once."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "resolved": self.resolved,
            "stages": list(self.stages),
            "prompt": self.prompt,
            "completions": self.completions,
            "runs": self.runs,
            "calls": self.calls,
            "usd": self.usd,
            "memory_gib": self.memory_gib,
            "at_most": self.at_most,
        }

    def to_text(self) -> str:
        """For people."""
        about = "at most" if self.at_most else "about"
        cost = "not known: a worker has no price" if self.usd is None else f"{about} ${self.usd:,.2f} by the price list"
        memory = "not known: set train.parameters" if self.memory_gib is None else _size(self.memory_gib)
        return "\n".join(
            [
                json.dumps(self.resolved, indent=2),
                "",
                "The first prompt:",
                self.prompt,
                "",
                f"stages       {', '.join(self.stages)}",
                f"completions  {self.completions:,}",
                f"runs         {about} {self.runs:,}, evaluations included",
                f"calls        {about} {self.calls:,} ({STEPS:g} steps a workflow)",
                f"cost         {cost} ({INPUT_TOKENS} + {OUTPUT_TOKENS} tokens a call)",
                f"memory       {memory} for weights and optimizer; activations come on top",
                "Nothing was started.",
            ]
        )


def _size(gib: float) -> str:
    return f"{gib:,.2f} GiB" if gib >= 0.1 else f"{1024 * gib:,.1f} MiB"


def forecast_of(planned: Planned, stages: Sequence[StageName]) -> Forecast:
    """What a training would need.

    Raises:
        UsageError: it cannot be run, or its tasks cannot be read.
    """
    require_feasible(planned.train, planned.pool, stages)
    reinforced: list[Grpo] = [getattr(planned.train, name) for name in stages if name != "warmup"]
    runs = _runs(planned, reinforced)
    if "warmup" in stages and planned.train.recursion.iterations:
        runs += _first_rounds(planned.train.warmup)
    calls = round(STEPS * runs)
    usd = _usd_per_call(planned.pool)
    return Forecast(
        planned.resolved(),
        tuple(stages),
        _first_prompt(planned),
        sum(stage.iterations * stage.batch for stage in reinforced),
        runs,
        calls,
        None if usd is None else calls * usd,
        _memory_gib(planned),
        any(stage.common_random_numbers for stage in reinforced),
    )


def _runs(planned: Planned, stages: Sequence[Grpo]) -> int:
    evaluated = len(planned.eval_tasks())
    runs = 0
    for stage in stages:
        runs += stage.iterations * stage.batch * stage.executions
        evaluations = 1 + stage.iterations // stage.evaluate_every + bool(stage.refresh.steps)
        runs += evaluated * evaluations
        if isinstance(stage, Recursion):
            runs += evaluated * evaluations * bool(stage.forced)
            runs += round(stage.forced * stage.iterations * stage.batch)
            runs += _first_rounds(stage.warmup)
            runs += round(stage.forced * stage.refresh.steps * stage.refresh.batch)
    return runs


def _first_rounds(warmup: Warmup | RecursionWarmup) -> int:
    """What is run for the second rounds that a warm-up shows."""
    return round(warmup.second_rounds * warmup.steps * warmup.batch)


def _first_prompt(planned: Planned) -> str:
    row = rows_of(
        planned.tasks(), planned.pool, planned.prompt, count=1, max_steps=planned.max_steps, draw=Draw(seed=0)
    )[0]
    return "\n".join(f"[{message['role']}]\n{message['content']}" for message in row["prompt"])


def _usd_per_call(pool: Pool) -> float | None:
    """The mean over the workers: who is asked is what training decides."""
    costs = [entry.cost_usd(Usage(INPUT_TOKENS, OUTPUT_TOKENS)) for entry in pool]
    known = [cost for cost in costs if cost is not None]
    return sum(known) / len(known) if len(known) == len(costs) else None


def _memory_gib(planned: Planned) -> float | None:
    train, new = planned.train, planned.train.new
    if train.model == "new":
        weights = new.width * (new.vocabulary + new.layers * (4 * new.width + 3 * new.inner))
    elif train.parameters is not None:
        weights = round(train.parameters)
    else:
        return None
    if train.lora is not None:
        return weights * (_BYTES_FROZEN + _LORA_SHARE * _BYTES_FULL) / _GIB
    reference = _BYTES_FROZEN if train.base.beta else 0
    return weights * (_BYTES_FULL + reference) / _GIB
