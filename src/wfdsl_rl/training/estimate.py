"""Estimate of a training before it starts (dry run): runs, calls, cost, memory, the wait for workers, what is missing.

The estimate uses few numbers, and prints them: the paper's mean of 3 steps (arXiv 2512.04388, section 5), the tokens
and the time of a call, and the pool's price list.
"""

from __future__ import annotations

import heapq
import math
import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from wfdsl.conductor.config import MAX_RESPONSE_CHARS
from wfdsl.errors import UsageError
from wfdsl.evaluation.fingerprints import is_simulated
from wfdsl.protocols import Message, Usage
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.training.config import ModelSize, StageName, TrainConfig, share_of
from wfdsl_rl.training.data import Draw, make_rows
from wfdsl_rl.training.missing import has_server, missing_for, runs_on_cpu
from wfdsl_rl.training.plan import Plan
from wfdsl_rl.training.setup import require_feasible

STEPS: Final = 3
"""Calls of a workflow. Source: arXiv 2512.04388, section 5."""
OUTPUT_TOKENS: Final = 500
INPUT_TOKENS: Final = 700
"""Tokens of a call; our choice. The paper counts 1820 a sample, and does not say of what (section 5)."""
PAPER_USD: Final = 0.0238
"""What a workflow costs in US dollars. Source: arXiv 2512.04388, section 5."""
LATENCY_S: Final = 20.0
"""Mean seconds of a call; our choice."""
LATENCY_SPREAD: Final = 0.8
"""Standard deviation of a call's logarithm: one call in twenty takes 2.7 times the mean. Our choice."""
GIB: Final = 1 << 30
_QUESTION_TOKENS: Final = 1500
"""Of the longest question, where the tasks are missing. Our choice: a long task of LiveCodeBench."""
_CHARS_PER_TOKEN: Final = 3
"""Of a prompt, which has digits and brackets. Our choice."""
_LORA_WIDTHS: Final = 25
"""Weights of adapters for each rank and layer, in units of its width: 25.1 in Qwen2.5-7B, 17.7 in SmolLM2-135M."""
_RECOMPUTED_BYTES: Final = 66
"""Of activations for each token and unit of width, of the one layer that is recomputed, in 16 bits. Measured on a CPU
with the proportions of Qwen2.5-7B: 63.5 where all weights are trained, 68 with adapters."""
_KEPT_BYTES: Final = {16: 50, 32: 80}
"""The same of each layer that is not recomputed, by the bits. Measured on SmolLM2-135M with adapters, on a CPU."""
_TILE: Final = (4096, 32768)
"""Tokens and vocabulary for which TRL 1.16 has logits at a time."""
_LOGIT_BYTES: Final = {"GPU": 8, "CPU": 20}
"""Bytes for each of them: a 32-bit number and its gradient; on a CPU there are copies (measured)."""
_BATCHES: Final = 20
_MOST_SIMULATED: Final = 2048
"""Batches that are simulated, and the most workflows of one."""
_NO_TASK: Final = Task(id="none", question="(the first question; the tasks are missing)", gold="none", kind="text")


@dataclass(frozen=True, slots=True)
class Memory:
    """What each process needs, in the stage that needs most."""

    stage: str
    parts: dict[str, float]
    """GiB by purpose."""
    gib: float
    limit_gib: float
    """Of a GPU, or of the machine where there is none."""
    fits: bool
    on_cpu: bool


@dataclass(frozen=True, slots=True)
class StageTime:
    """How long a stage waits for workers."""

    stage: StageName
    steps: int
    runs: int
    """Workflows of each step."""
    calls: int
    waiting_s: float
    """For the slowest workflow of a step."""
    beside: int
    """Workflows beside the steps, in all: of evaluations, or of rejection sampling."""
    beside_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Time:
    """How long a training waits for workers."""

    stages: tuple[StageTime, ...]
    in_flight: int
    """The most calls at the same time: the training's concurrency, and the workers' limits."""
    latency_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """What would be run, and what it needs."""

    resolved: dict[str, Any]
    stages: tuple[str, ...]
    launch: str
    """The command that starts it."""
    prompt: str
    """The first prompt that the model would get."""
    completions: int
    """The completions that GRPO trains on."""
    runs: int
    """Workflow runs, and their parts."""
    runs_by_purpose: dict[str, int]
    calls: int
    """Worker calls, at three steps per workflow or fewer: an estimate, as is all that follows from it."""
    usd: float | None
    """Their cost by the price list, in US dollars; None if a price is not known."""
    paper_usd: float
    """The cost of as many workflows at the paper's price."""
    simulated: bool
    """Whether the workers are simulated, so that the cost is fictional."""
    memory: Memory | None
    """The memory of each process; None if the model's size is not known."""
    time: Time
    missing: tuple[str, ...]
    """What this machine does not have, and options that would fail, each with what to do."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values, with what is assumed."""
        assumed = {"steps": STEPS, "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
        return {**asdict(self), "assumed": assumed}


def estimate_of(plan: Plan, stages: Sequence[StageName], *, launch: str) -> Estimate:
    """Estimate a training that the command `launch` starts.

    Tasks that cannot be read are among what is missing.

    Raises:
        UsageError: the options cannot be run.
    """
    train, pool = plan.train, plan.pool
    require_feasible(train, pool, stages)
    read = _read(plan, stages)
    passes = {name: pass_of(train, name, _prompt_tokens(plan, name, read)) for name in stages}
    time = _time(plan, stages, len(read.evaluation))
    purposes = {
        "completions": sum(each.steps * each.runs for each in time.stages),
        "evaluations": sum(each.beside for each in time.stages if each.stage != "sft"),
        "rejection sampling": sum(each.beside for each in time.stages if each.stage == "sft"),
    }
    runs, per_call = sum(purposes.values()), _usd_per_call(pool)
    memory, on_cpu = None, runs_on_cpu(train)
    if train.size is not None:
        needed = [memory_of(train, train.size, *each, on_cpu=on_cpu) for each in passes.items()]
        memory = max(needed, key=lambda each: each.gib)
    tasks = (*read.training, *read.evaluation, *(task for own in read.own.values() for task in own))
    prompt = (f"[{message['role']}]\n{message['content']}" for message in _prompt(plan, read.training))
    return Estimate(
        resolved=plan.resolved(),
        stages=tuple(stages),
        launch=launch,
        prompt="\n".join(prompt),
        completions=sum(train.steps(name) * train.grpo(name).batch_size for name in stages if name != "sft"),
        runs=runs,
        runs_by_purpose=purposes,
        calls=_calls(plan) * runs,
        usd=None if per_call is None else _calls(plan) * runs * per_call,
        paper_usd=runs * PAPER_USD,
        simulated=is_simulated(pool),
        memory=memory,
        time=time,
        missing=(*read.missing, *missing_for(plan, tasks, {name: each.row for name, each in passes.items()})),
    )


class Pass(NamedTuple):
    """A micro batch: its rows, and the tokens of the longest completion and of the longest row."""

    rows: int
    completion: int
    row: int


def pass_of(train: TrainConfig, stage: StageName, prompt_tokens: int) -> Pass:
    """A stage's largest pass. A completion of SFT counts as long as the longest of the stage `base`.

    Raises:
        UsageError: the processes cannot share the completions of a step evenly.
    """
    table = train.sft if stage == "sft" else train.grpo(stage)
    micro = None if stage == "sft" else train.grpo(stage).micro_batch
    share = share_of(table.batch_size, micro or 1, train.processes or 1)
    completion = train.grpo("base" if stage == "sft" else stage).max_completion_tokens
    return Pass(min(micro or share, share), completion, prompt_tokens + completion)


def memory_of(train: TrainConfig, size: ModelSize, stage: StageName, largest: Pass, *, on_cpu: bool = False) -> Memory:
    """The memory of each process: 4 bytes for each weight (2 where frozen in 16 bits), 4 for its gradient and 8 for
    Adam's moments, by the share of a process, or nothing if offloaded; and activations of a micro batch.

    These are one recomputed layer with checkpoints between layers (arXiv 2205.05198, section 4), or all layers, and
    logits. Not counted: libraries, copies of weights, and layers that are gathered.
    """
    shards = (train.processes or 1) if train.divides else 1
    unit = 0.0 if train.offload and train.divides else 1 / (GIB * shards)
    trained, frozen = size.parameters, 0.0
    if train.lora is not None:
        trained = _LORA_WIDTHS * size.layers * size.width * train.lora.rank
        frozen = (2 if train.half_frozen(on_cpu=on_cpu) else 4) * size.parameters
    elif stage != "sft" and train.grpo(stage).beta:
        frozen = 4 * size.parameters  # the reference of the KL term
    of_token = size.layers * _KEPT_BYTES[16 if train.trl.get("bf16", not on_cpu) else 32]
    if train.recomputes(on_cpu=on_cpu):
        of_token = size.layers * 2 + _RECOMPUTED_BYTES
    scored = min(_TILE[0], largest.rows * largest.completion) * min(_TILE[1], size.vocabulary)
    logits = scored * _LOGIT_BYTES["CPU" if on_cpu else "GPU"]
    parts = {
        "weights": (4 * trained + frozen) * unit,
        "gradients": 4 * trained * unit,
        "optimizer": 8 * trained * unit,
        "activations": (largest.rows * largest.row * size.width * of_token + logits) / GIB,
    }
    if train.trl.get("use_vllm") and not has_server(train):
        parts["vLLM"] = float(train.trl.get("vllm_gpu_memory_utilization", 0.3)) * train.gpu_gib  # TRL's default
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB if on_cpu else train.gpu_gib
    gib = sum(parts.values())
    return Memory(stage, {name: part for name, part in parts.items() if part}, gib, limit, gib <= limit, on_cpu)


class _Read(NamedTuple):
    """Tasks, as far as they can be read, and why they cannot; `own` are those of stages that have their own."""

    training: Sequence[Task]
    evaluation: Sequence[Task]
    own: dict[StageName, Sequence[Task]]
    missing: list[str]


def _read(plan: Plan, stages: Sequence[StageName]) -> _Read:
    missing: list[str] = []

    def read(tasks: Callable[..., Iterable[Task]], *of: StageName) -> Sequence[Task]:
        try:
            return tuple(tasks(*of))
        except UsageError as error:
            missing.append(f"tasks: {error}")
            return ()

    def own(stage: StageName) -> Iterable[Task]:
        return plan.stage_tasks([stage])[stage]

    have: list[StageName] = [name for name in stages if name != "sft" and plan.train.grpo(name).tasks]
    of_stages = {name: read(own, name) for name in have}
    return _Read(read(plan.tasks), read(plan.eval_tasks), of_stages, missing)


def _prompt(plan: Plan, tasks: Sequence[Task]) -> Sequence[Message]:
    rows = make_rows(
        tasks or [_NO_TASK],
        plan.pool,
        plan.prompt,
        count=1,
        max_steps=plan.max_steps,
        access=plan.experiment.conductor.access,
        question_for=plan.experiment.run.question_for,
        draw=Draw(),
    )
    prompt: Sequence[Message] = rows[0]["prompt"]
    return prompt


def _prompt_tokens(plan: Plan, stage: StageName, read: _Read) -> int:
    """The longest prompt of a stage. That of a second round has the first prompt, its completion and the reply."""
    tasks = read.own.get(stage, read.training)
    longest = [max(tasks, key=lambda task: len(task.question))] if tasks else []
    tokens = _tokens(_prompt(plan, longest)) + (0 if tasks else _QUESTION_TOKENS)
    if stage != "recursion" or not plan.train.recursion.forced:
        return tokens
    asked = _tokens([plan.prompt.revise("", max_steps=plan.max_steps, rounds_left=0)])
    reply = min(max(entry.max_tokens for entry in plan.pool), MAX_RESPONSE_CHARS // _CHARS_PER_TOKEN)  # abridged
    return tokens + plan.train.recursion.max_completion_tokens + asked + reply


def _tokens(messages: Sequence[Message]) -> int:
    return sum(len(message["content"]) for message in messages) // _CHARS_PER_TOKEN


def _calls(plan: Plan) -> int:
    """Of a workflow."""
    return min(STEPS, plan.max_steps)


def _usd_per_call(pool: Pool) -> float | None:
    """The mean over the workers: training decides who is asked."""
    costs = [entry.cost_usd(Usage(INPUT_TOKENS, OUTPUT_TOKENS)) for entry in pool]
    known = [cost for cost in costs if cost is not None]
    return sum(known) / len(known) if len(known) == len(costs) else None


def _time(plan: Plan, stages: Sequence[StageName], evaluated: int) -> Time:
    """The wait of all stages, as if calls were spread evenly over the workers."""
    limits, calls = [entry.limits for entry in plan.pool], _calls(plan)
    per_minute = sum(each.requests_per_minute or math.inf for each in limits)
    at_once = int(min(plan.train.concurrency, sum(each.concurrency or math.inf for each in limits)))
    latency = 0.0 if is_simulated(plan.pool) else LATENCY_S

    def seconds(runs: int) -> float:
        if not runs or not latency:
            return 0.0
        waited = max(_slowest(runs, at_once, calls), 60 * calls * runs / per_minute)
        return min(waited, plan.train.deadline_s or math.inf)

    def of_stage(stage: StageName) -> StageTime:
        steps, (runs, beside) = plan.train.steps(stage), _runs(plan.train, stage, evaluated)
        step_s, beside_s = seconds(runs), seconds(beside)  # all evaluations count as one batch
        return StageTime(stage, steps, runs, calls * runs, step_s, beside, beside_s, steps * step_s + beside_s)

    times = tuple(map(of_stage, stages))
    return Time(times, at_once, latency, sum(each.seconds for each in times))


def _runs(train: TrainConfig, stage: StageName, evaluated: int) -> tuple[int, int]:
    """Workflows of each step of a stage, and beside its steps."""
    if stage == "sft":
        return 0, train.sft.questions * train.sft.candidates * train.sft.executions_per_candidate
    config = train.grpo(stage)
    rounds = 2 if stage == "recursion" and train.recursion.forced else 1
    evaluations = 1 + config.iterations // config.evaluate_every
    return config.batch_size * config.executions_per_completion, evaluated * evaluations * rounds


def _slowest(runs: int, at_once: int, calls: int) -> float:
    """Seconds until the last of some workflows has ended: the mean of simulated batches, in which each workflow begins
    as soon as another one has ended."""
    mean, total = math.log(LATENCY_S) - LATENCY_SPREAD**2 / 2, 0.0
    for seed in range(_BATCHES):
        chance, free = random.Random(seed), [0.0] * at_once
        for _ in range(min(runs, _MOST_SIMULATED)):
            chain = sum(chance.lognormvariate(mean, LATENCY_SPREAD) for _ in range(calls))
            heapq.heapreplace(free, free[0] + chain)
        total += max(free)
    return max(1.0, runs / _MOST_SIMULATED) * total / _BATCHES
