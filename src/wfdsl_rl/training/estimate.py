"""Estimate of a training before it starts (dry run): calls, cost, memory, time, and what is missing.

The estimate uses few numbers, and prints them: the paper's mean of 3 steps, its tokens per answer, the pool's price
list. Source: arXiv 2512.04388, section 5 (1820 tokens and 3 steps per sample).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.protocols import Message, Usage
from wfdsl.workers.pool import Pool
from wfdsl_rl.fingerprints import is_simulated
from wfdsl_rl.tasks.task import Task
from wfdsl_rl.training.config import GrpoConfig, ModelSize, SftConfig, StageName, TrainConfig
from wfdsl_rl.training.data import Draw, make_rows
from wfdsl_rl.training.memory import GIB, Memory, memory_of, pass_of
from wfdsl_rl.training.missing import missing_for, runs_on_cpu
from wfdsl_rl.training.plan import Plan
from wfdsl_rl.training.setup import require_feasible

STEPS: Final = 3
"""Calls of a workflow. Source: arXiv 2512.04388, section 5."""
OUTPUT_TOKENS: Final = 500
INPUT_TOKENS: Final = 700
"""Tokens of a call. Three calls have about the paper's 1820 output tokens, and the input of their steps."""
PAPER_USD: Final = 0.0238
"""What a workflow costs in US dollars. Source: arXiv 2512.04388, section 5."""
LATENCY_S: Final = 20.0
"""Seconds of a call; our choice, for the estimate of time."""
CORE_SPEED: Final = 5e10
"""Floating point operations of a CPU core in a second; our choice, about what a free core reaches in training."""
_CHARS_PER_TOKEN: Final = 3
"""Of a prompt, which has digits and brackets. Our choice."""
_NO_TASK: Final = Task(id="none", question="(the first question; the tasks are missing)", gold="none", kind="text")


@dataclass(frozen=True, slots=True)
class Time:
    """How long one iteration waits for the workers."""

    calls: int
    in_flight: int
    """The most calls at the same time: the training's concurrency, and the workers' limits."""
    latency_s: float
    seconds: float
    """At that latency: `calls / in_flight` of them one after another, within the requests per minute."""


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
    simulated: bool
    """Whether the workers are simulated, so that the cost is fictional."""
    memory: Memory | None
    """The memory of each process; None if the model's size is not known."""
    time: Time | None
    """The wait for the workers in each iteration; None without a GRPO stage."""
    operations: float | None
    """Floating point operations of the model at most, all completions at full length; None if its size is not known.
    """
    missing: tuple[str, ...]
    """What this machine does not have, each with what to do."""
    at_most: bool = False
    """Whether fewer may be run, because equal completions are run once."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        plain = {**asdict(self), "stages": list(self.stages), "missing": list(self.missing)}
        if self.memory is not None:
            plain["memory"] |= {"gib": self.memory.gib, "fits": self.memory.fits}
        return plain


def estimate_of(plan: Plan, stages: Sequence[StageName]) -> Estimate:
    """Estimate a training. Tasks that cannot be read are among what is missing.

    Raises:
        UsageError: the options cannot be run.
    """
    train, pool = plan.train, plan.pool
    require_feasible(train, plan.extension, pool, stages)
    tasks, eval_tasks, own, missing = _tasks(plan, stages)
    grpo = [name for name in stages if name != "sft"]
    evaluated = len(eval_tasks)
    runs = _runs(plan, grpo, evaluated) + plan.extension.runs(train, stages, evaluated)
    if "sft" in stages:
        runs += train.sft.questions * train.sft.candidates * train.sft.executions_per_candidate
    per_call = _usd_per_call(pool)
    prompt = _first_prompt(plan, tasks)
    prompt_tokens = sum(len(message["content"]) for message in prompt) // _CHARS_PER_TOKEN
    return Estimate(
        plan.resolved(),
        tuple(stages),
        "\n".join(f"[{message['role']}]\n{message['content']}" for message in prompt),
        sum(train.grpo(name).iterations * train.grpo(name).batch_size for name in grpo),
        runs,
        STEPS * runs,
        None if per_call is None else STEPS * runs * per_call,
        is_simulated(pool),
        _memory(plan, stages, prompt_tokens),
        _time(plan, train.grpo(grpo[0])) if grpo else None,
        _operations(plan, stages, prompt_tokens, evaluated),
        (*missing, *missing_for(plan, (*tasks, *eval_tasks, *own))),
        any(train.grpo(name).common_random_numbers for name in grpo),
    )


def _tasks(plan: Plan, stages: Sequence[StageName]) -> tuple[Sequence[Task], Sequence[Task], Sequence[Task], list[str]]:
    """Tasks of training, of evaluation and of single stages, as far as they can be read, and why they cannot."""
    missing: list[str] = []

    def read(tasks: Callable[[], Iterable[Task]]) -> tuple[Task, ...]:
        try:
            return tuple(tasks())
        except UsageError as error:
            missing.append(f"tasks: {error}")
            return ()

    def own(name: StageName) -> Iterable[Task]:
        return plan.stage_tasks([name]).get(name, ())

    of_stages = tuple(task for name in stages for task in read(partial(own, name)))
    return read(plan.tasks), read(plan.eval_tasks), of_stages, missing


def _first_prompt(plan: Plan, tasks: Sequence[Task]) -> Sequence[Message]:
    rows = make_rows(tasks or [_NO_TASK], plan.pool, plan.prompt, count=1, max_steps=plan.max_steps, draw=Draw())
    prompt: Sequence[Message] = rows[0]["prompt"]
    return prompt


def _runs(plan: Plan, stages: Sequence[StageName], evaluated: int) -> int:
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


def _size(plan: Plan) -> ModelSize | None:
    return plan.extension.size() if plan.train.model == "new" else plan.train.size


def _memory(plan: Plan, stages: Sequence[StageName], prompt_tokens: int) -> Memory | None:
    """That of the stage that needs most."""
    size, train = _size(plan), plan.train
    if size is None:
        return None
    machine_gib = _machine_gib() if runs_on_cpu(train) else None
    passes = {name: pass_of(train, _table(train, name), prompt_tokens=prompt_tokens) for name in stages}
    needed = (memory_of(train, size, name, largest, machine_gib=machine_gib) for name, largest in passes.items())
    return max(needed, key=lambda of: of.gib)


def _table(train: TrainConfig, stage: StageName) -> GrpoConfig | SftConfig:
    return train.sft if stage == "sft" else train.grpo(stage)


def _machine_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB


def _operations(plan: Plan, stages: Sequence[StageName], prompt_tokens: int, evaluated: int) -> float | None:
    """Two for each weight and token that is read, and twice as many again for gradients, or once with adapters.

    Source: Kaplan et al., arXiv 2001.08361, section 2.1. Completions of SFT count as prompts of the same length.
    """
    size, train = _size(plan), plan.train
    if size is None:
        return None
    learned = 1 + (3 if train.lora is None else 2)  # read to be written, then read with gradients
    tokens = 0.0
    for name in stages:
        if name == "sft":
            tokens += (learned - 1) * train.sft.steps * train.sft.batch_size * prompt_tokens * 2
            continue
        stage = train.grpo(name)
        copies = 1 / stage.group_size if train.prefix_cache else 1
        read = stage.max_completion_tokens + prompt_tokens * copies
        tokens += learned * stage.iterations * stage.batch_size * read
        evaluations = 1 + stage.iterations // stage.evaluate_every
        tokens += evaluations * evaluated * (stage.max_completion_tokens + prompt_tokens)
    return 2 * size.parameters * tokens


def _time(plan: Plan, stage: GrpoConfig) -> Time:
    """The wait of an iteration, as if calls were spread evenly over the workers."""
    calls = STEPS * stage.batch_size * stage.executions_per_completion
    limits = [entry.limits for entry in plan.pool]
    in_flight = sum(math.inf if each.concurrency is None else each.concurrency for each in limits)
    in_flight = int(min(plan.train.concurrency, in_flight, calls))
    per_minute = sum(math.inf if each.requests_per_minute is None else each.requests_per_minute for each in limits)
    latency = 0.0 if is_simulated(plan.pool) else LATENCY_S
    seconds = max(STEPS * latency, calls / in_flight * latency, 60 * calls / per_minute)
    return Time(calls, in_flight, latency, seconds)
