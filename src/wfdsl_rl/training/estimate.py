"""Estimate of a training before it starts (dry run): the first prompt, memory, worker calls and their cost.

The estimate uses few numbers, and prints them: the paper's mean of 3 steps, its tokens per answer, the pool's price
list. Source: arXiv 2512.04388, section 5 (1820 tokens and 3 steps per sample); the sum of memory is our choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from wfdsl.protocols import Usage
from wfdsl.workers.pool import Pool
from wfdsl_rl.training.config import StageName
from wfdsl_rl.training.data import Draw, make_rows
from wfdsl_rl.training.plan import Plan
from wfdsl_rl.training.setup import require_feasible

STEPS: Final = 3.0
"""Calls of a workflow. Source: arXiv 2512.04388, section 5."""
OUTPUT_TOKENS: Final = 500
INPUT_TOKENS: Final = 700
"""Tokens of a call. Three calls have about the paper's 1820 output tokens, and the input of their steps."""
_GIB: Final = 1 << 30
_BYTES_FULL: Final = 16
"""Per trained weight: the weight, its gradient and two moments, in 32 bits each."""
_BYTES_FROZEN: Final = 2
"""Per weight that is only read, in 16 bits."""
_LORA_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Estimate:
    """What would be run, and what it needs."""

    resolved: dict[str, Any]
    stages: tuple[str, ...]
    prompt: str
    """The first prompt that the model would get."""
    completions: int
    """The completions that GRPO trains on."""
    runs: int
    """Workflow runs: executions of the completions, evaluations, and first rounds that second rounds revise."""
    calls: int
    """Worker calls, at three steps per workflow."""
    usd: float | None
    """Their cost by the price list, in US dollars; None if a price is not known."""
    memory_gib: float | None
    """Weights, gradients and moments, without activations and caches; None if the model's size is not known."""
    at_most: bool = False
    """Whether fewer may be run, because equal completions are run once."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "stages": list(self.stages)}


def estimate_of(plan: Plan, stages: Sequence[StageName]) -> Estimate:
    """Estimate a training.

    Raises:
        UsageError: it cannot be run, or its tasks cannot be read.
    """
    train = plan.train
    require_feasible(train, plan.extension, plan.pool, stages)
    grpo = [name for name in stages if name != "sft"]
    runs = _runs(plan, grpo) + plan.extension.runs(train, stages, len(plan.eval_tasks()))
    calls, usd = round(STEPS * runs), _usd_per_call(plan.pool)
    rows = make_rows(plan.tasks(), plan.pool, plan.prompt, count=1, max_steps=plan.max_steps, draw=Draw())
    return Estimate(
        plan.resolved(),
        tuple(stages),
        "\n".join(f"[{message['role']}]\n{message['content']}" for message in rows[0]["prompt"]),
        sum(train.grpo(name).iterations * train.grpo(name).batch_size for name in grpo),
        runs,
        calls,
        None if usd is None else calls * usd,
        _memory_gib(plan),
        any(train.grpo(name).common_random_numbers for name in grpo),
    )


def _runs(plan: Plan, stages: Sequence[StageName]) -> int:
    evaluated = len(plan.eval_tasks())
    runs = 0
    for name in stages:
        stage = plan.train.grpo(name)
        completions = stage.iterations * stage.batch_size
        evaluations = evaluated * (1 + stage.iterations // stage.evaluate_every)
        forced = plan.train.recursion.forced if name == "recursion" else 0.0
        runs += completions * stage.executions_per_completion + evaluations
        runs += round(forced * completions) + evaluations * bool(forced)
    return runs


def _usd_per_call(pool: Pool) -> float | None:
    """The mean over the workers: training decides who is asked."""
    costs = [entry.cost_usd(Usage(INPUT_TOKENS, OUTPUT_TOKENS)) for entry in pool]
    known = [cost for cost in costs if cost is not None]
    return sum(known) / len(known) if len(known) == len(costs) else None


def _memory_gib(plan: Plan) -> float | None:
    train = plan.train
    weights = plan.extension.parameters() if train.model == "new" else train.parameters
    if weights is None:
        return None
    if train.lora is not None:
        return weights * (_BYTES_FROZEN + _LORA_SHARE * _BYTES_FULL) / _GIB
    reference = _BYTES_FROZEN if train.base.beta else 0
    return weights * (_BYTES_FULL + reference) / _GIB
