"""Estimate of a training before it starts (dry run): calls, cost, memory, disk, time, and what is missing.

The estimate uses few numbers, and prints them: the paper's mean of 3 steps (arXiv 2512.04388, section 5), the tokens
of a call, the pool's price list, and speeds.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from wfdsl.conductor.config import MAX_RESPONSE_CHARS
from wfdsl.errors import UsageError
from wfdsl.evaluation.fingerprints import is_simulated
from wfdsl.protocols import Message, Usage
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.training.config import ModelSize, StageName, TrainConfig
from wfdsl_rl.training.data import Draw, make_rows
from wfdsl_rl.training.memory import Disk, Host, Memory, Pass, disk_of, host_of, most_memory, pass_of, recomputes
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
"""Mean seconds of a call; our choice, for the estimate of time."""
LATENCY_SPREAD: Final = 0.8
"""Standard deviation of a call's logarithm: one call in twenty takes 2.7 times the mean. Our choice."""
COMPLETION_TOKENS: Final = 300
"""Of a usual completion, where max_completion_tokens is not less. Our choice."""
CORE_SPEED: Final = 5e10
"""Floating point operations of a CPU core in a second; our choice, about what a free core reaches in training."""
WRITING_SPEED: Final = 3e13
"""The same of a GPU while vLLM writes many completions at once; our choice, about 2,000 tokens of a 7B model."""
UPDATING_SPEED: Final = 1e14
"""The same of a GPU in training; our choice, a third of what an A100 is sold with (312e12 in 16 bits, NVIDIA)."""
QUESTION_TOKENS: Final = 1500
"""Of the longest question, where the tasks are missing. Our choice: a long task of LiveCodeBench."""
SIMULATED_TOKENS: Final = 100
"""Of a simulated worker's longest reply, which has some six sentences."""
_BATCHES: Final = 20
_MOST_SIMULATED: Final = 2048
"""Batches that are simulated, and the most workflows of one."""
_CHARS_PER_TOKEN: Final = 3
"""Of a prompt, which has digits and brackets. Our choice."""
_NO_TASK: Final = Task(id="none", question="(the first question; the tasks are missing)", gold="none", kind="text")


@dataclass(frozen=True, slots=True)
class StageTime:
    """How long a stage takes: three parts of each step, and what is done beside the steps."""

    stage: StageName
    steps: int
    tokens: float
    """That are written in each step, all completions at full length."""
    writing_s: float
    calls: float
    """Of workers, in each step."""
    waiting_s: float
    operations: float
    """Of the passes of training, in each step."""
    updating_s: float
    beside_s: float
    """Evaluations, or rejection sampling, in all."""

    @property
    def seconds(self) -> float:
        """The whole stage."""
        return self.steps * (self.writing_s + self.waiting_s + self.updating_s) + self.beside_s


@dataclass(frozen=True, slots=True)
class Time:
    """How long a training takes, and by which speeds."""

    stages: tuple[StageTime, ...]
    in_flight: int
    """The most calls at the same time: the training's concurrency, and the workers' limits."""
    latency_s: float
    """Of a call."""
    writers: int
    """GPUs that write, or cores: that of a vLLM server, or all that train."""
    trainers: int
    devices: int
    """All of them."""
    tokens_per_s: float | None
    """That a device writes; None if the model's size is not known, and then only the waiting is counted."""
    operations_per_s: float
    """Of a device, in training."""

    @property
    def seconds(self) -> float:
        """All stages."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def device_hours(self) -> float:
        """What is rented."""
        return self.devices * self.seconds / 3600


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
    """Workflow runs."""
    runs_by_purpose: dict[str, int]
    """Their parts."""
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
    host: Host | None
    """The machine's memory of a training on GPUs; None if the model's size is not known."""
    disk: Disk | None
    """What is written; None if the model's size is not known."""
    time: Time
    operations: float | None
    """Floating point operations of the model, all completions at full length; None if its size is not known."""
    missing: tuple[str, ...]
    """What this machine does not have, and options that would fail, each with what to do."""
    at_most: bool = False
    """Whether fewer may be run, because equal completions are run once."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values, with what is computed from them."""
        plain = {**asdict(self), "stages": list(self.stages), "missing": list(self.missing)}
        for name, needed in (("memory", self.memory), ("host", self.host), ("disk", self.disk)):
            if needed is not None:
                plain[name] |= {"gib": needed.gib, "fits": needed.fits}
        plain["assumed"] = {"steps": STEPS, "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
        plain["time"] |= {"seconds": self.time.seconds, "device_hours": self.time.device_hours}
        for stage, known in zip(plain["time"]["stages"], self.time.stages, strict=True):
            stage["seconds"] = known.seconds
        return plain


def estimate_of(plan: Plan, stages: Sequence[StageName], *, out: Path, launch: str) -> Estimate:
    """Estimate a training in the folder `out` that the command `launch` starts.

    Tasks that cannot be read are among what is missing.

    Raises:
        UsageError: the options cannot be run.
    """
    train, pool = plan.train, plan.pool
    require_feasible(train, pool, stages)
    read = _read(plan, stages)
    passes = {name: _pass(plan, name, read) for name in stages}
    works = [_work(plan, name, passes[name], len(read.evaluation)) for name in stages]
    purposes = _purposes(works)
    runs, per_call, size = purposes.total(), _usd_per_call(pool), _size(plan)
    on_cpu = runs_on_cpu(train)
    host = None if size is None or on_cpu else host_of(train, size)
    disk = None if size is None else disk_of(train, size, stages, out)
    return Estimate(
        resolved=plan.resolved(),
        stages=tuple(stages),
        launch=launch,
        prompt="\n".join(f"[{message['role']}]\n{message['content']}" for message in _prompt(plan, read.training)),
        completions=sum(work.steps * work.completions for work in works if work.stage != "sft"),
        runs=runs,
        runs_by_purpose=dict(purposes),
        calls=_calls(plan) * runs,
        usd=None if per_call is None else _calls(plan) * runs * per_call,
        paper_usd=runs * PAPER_USD,
        simulated=is_simulated(pool),
        memory=None if size is None else most_memory(train, size, passes, on_cpu=on_cpu),
        host=host,
        disk=disk,
        time=_time(plan, works, on_cpu=on_cpu),
        operations=None if size is None else sum(work.operations for work in works),
        missing=(*read.missing, *missing_for(plan, read.all, passes, host, disk)),
        at_most=any(train.grpo(name).common_random_numbers for name in stages if name != "sft"),
    )


class _Read(NamedTuple):
    """Tasks, as far as they can be read, and why they cannot."""

    training: tuple[Task, ...]
    evaluation: tuple[Task, ...]
    own: dict[StageName, tuple[Task, ...]]
    """Those of stages that have their own."""
    missing: list[str]

    @property
    def all(self) -> tuple[Task, ...]:
        return (*self.training, *self.evaluation, *(task for tasks in self.own.values() for task in tasks))


def _read(plan: Plan, stages: Sequence[StageName]) -> _Read:
    missing: list[str] = []

    def read(tasks: Callable[[], Iterable[Task]]) -> tuple[Task, ...]:
        try:
            return tuple(tasks())
        except UsageError as error:
            missing.append(f"tasks: {error}")
            return ()

    def own(stage: StageName) -> Iterable[Task]:
        return plan.stage_tasks([stage])[stage]

    have = [name for name in stages if name != "sft" and plan.train.grpo(name).tasks]
    of_stages: dict[StageName, tuple[Task, ...]] = {name: read(partial(own, name)) for name in have}
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


def _pass(plan: Plan, stage: StageName, read: _Read) -> Pass:
    table = plan.train.sft if stage == "sft" else plan.train.grpo(stage)
    tasks = sorted(read.own.get(stage, read.training), key=lambda task: len(task.question))
    usual = _tokens(_prompt(plan, tasks[len(tasks) // 2 :][:1])) + (0 if tasks else QUESTION_TOKENS)
    longest = _prompt_tokens(plan, stage, read)
    return pass_of(plan.train, table, prompt_tokens=longest, usual_prompt_tokens=usual)


def _prompt_tokens(plan: Plan, stage: StageName, read: _Read) -> int:
    """The longest prompt of a stage. That of a second round has the first prompt, its completion and the reply."""
    tasks = read.own.get(stage, read.training)
    longest = [max(tasks, key=lambda task: len(task.question))] if tasks else []
    tokens = _tokens(_prompt(plan, longest)) + (0 if tasks else QUESTION_TOKENS)
    if stage != "recursion" or not plan.train.recursion.forced:
        return tokens
    asked = _tokens([plan.prompt.revise("", max_steps=plan.max_steps, rounds_left=0)])
    return tokens + plan.train.recursion.max_completion_tokens + asked + _reply_tokens(plan.pool)


def _reply_tokens(pool: Pool) -> int:
    """The longest reply that a second round shows, which is abridged."""
    if is_simulated(pool):
        return SIMULATED_TOKENS
    return min(max(entry.max_tokens for entry in pool), MAX_RESPONSE_CHARS // _CHARS_PER_TOKEN)


def _tokens(messages: Sequence[Message]) -> int:
    return sum(len(message["content"]) for message in messages) // _CHARS_PER_TOKEN


class _Work(NamedTuple):
    """What a stage does. Its steps are alike; evaluations, and rejection sampling, are beside them."""

    stage: StageName
    steps: int
    completions: int
    """That each step trains on."""
    written_tokens: float
    """Of each step."""
    executions: int
    """Of each completion."""
    beside_runs: int
    beside_tokens: float
    updating: float
    """Operations of each step in training."""
    operations: float
    """Of the stage."""


def _calls(plan: Plan) -> int:
    """Of a workflow."""
    return min(STEPS, plan.max_steps)


def _work(plan: Plan, stage: StageName, longest: Pass, evaluated: int) -> _Work:
    """Operations are two for each weight and token that is read, and twice as many again for gradients, or once with
    adapters, which only pass them on.

    They are once more where activations are recomputed, where TRL compares vLLM's probabilities with the trainer's, and
    where it computes those of the first model (`beta`).
    Source: Kaplan et al., arXiv 2001.08361, section 2.1. Completions of SFT count as prompts of the same length.
    """
    train, each = plan.train, _of_token(plan)
    if stage == "sft":
        sft = train.sft
        updating = _of_sft(plan, sft.batch_size, longest)
        runs = sft.questions * sft.candidates * sft.executions_per_candidate
        return _Work(stage, sft.steps, sft.batch_size, 0, 0, runs, 0, updating, sft.steps * updating)
    config = train.grpo(stage)
    forced = train.recursion.forced if stage == "recursion" else 0.0
    length = min(longest.completion_tokens, COMPLETION_TOKENS)
    read = length + longest.usual_prompt_tokens / (config.group_size if train.prefix_cache else 1)
    compared = bool(train.trl.get("use_vllm")) + bool(config.beta)
    updating = each * (_learned(train) + compared) * config.batch_size * read
    beside = evaluated * (1 + config.iterations // config.evaluate_every) * (1 + bool(forced))
    return _Work(
        stage,
        config.iterations,
        config.batch_size,
        config.batch_size * length,
        config.executions_per_completion,
        beside,
        beside * length,
        updating,
        config.iterations * (updating + each * config.batch_size * read) + each * beside * longest.row_tokens,
    )


def _learned(train: TrainConfig) -> int:
    """The passes of a step that learns, in units of one that reads."""
    return (3 if train.lora is None else 2) + recomputes(train, on_cpu=runs_on_cpu(train))


def _of_token(plan: Plan) -> float:
    """The operations of reading a token; 0 if the model's size is not known."""
    size = _size(plan)
    return 0.0 if size is None else 2 * size.parameters


def _of_sft(plan: Plan, rows: int, longest: Pass) -> float:
    """The operations of SFT on a number of rows."""
    return _of_token(plan) * _learned(plan.train) * rows * longest.prompt_tokens * 2


def _purposes(works: Sequence[_Work]) -> Counter[str]:
    """Workflow runs by what they are for."""
    runs: Counter[str] = Counter({"completions": 0, "evaluations": 0, "rejection sampling": 0})
    for work in works:
        runs["completions"] += work.steps * work.completions * work.executions
        runs["rejection sampling" if work.stage == "sft" else "evaluations"] += work.beside_runs
    return runs


def _usd_per_call(pool: Pool) -> float | None:
    """The mean over the workers: training decides who is asked."""
    costs = [entry.cost_usd(Usage(INPUT_TOKENS, OUTPUT_TOKENS)) for entry in pool]
    known = [cost for cost in costs if cost is not None]
    return sum(known) / len(known) if len(known) == len(costs) else None


def _size(plan: Plan) -> ModelSize | None:
    return plan.train.size


def _time(plan: Plan, works: Sequence[_Work], *, on_cpu: bool) -> Time:
    """The time of all stages. Evaluations count as one batch, as does rejection sampling."""
    train, size = plan.train, _size(plan)
    trainers, server = train.processes or 1, has_server(train)
    writers = 1 if server else trainers
    writing, updating = (CORE_SPEED, CORE_SPEED) if on_cpu else (WRITING_SPEED, UPDATING_SPEED)
    tokens_per_s = None if size is None else writing / (2 * size.parameters)
    wait = _Waiting.of(plan)

    def stage_time(work: _Work) -> StageTime:
        writing_s = 0.0 if tokens_per_s is None else 1 / tokens_per_s / writers
        return StageTime(
            work.stage,
            work.steps,
            work.written_tokens,
            work.written_tokens * writing_s,
            _calls(plan) * work.completions * work.executions,
            wait.seconds(work.completions * work.executions),
            work.updating,
            work.updating / updating / trainers,
            work.beside_tokens * writing_s + wait.seconds(work.beside_runs),
        )

    stages = tuple(stage_time(work) for work in works)
    devices = (writers, trainers, trainers + server)
    return Time(stages, wait.in_flight, wait.latency_s, *devices, tokens_per_s, updating)


class _Waiting(NamedTuple):
    """The wait for workers, as if calls were spread evenly over them."""

    in_flight: int
    per_minute: float
    latency_s: float
    calls: int
    """Of a workflow, one after another."""
    deadline_s: float

    @classmethod
    def of(cls, plan: Plan) -> _Waiting:
        limits = [entry.limits for entry in plan.pool]
        in_flight = sum(math.inf if each.concurrency is None else each.concurrency for each in limits)
        per_minute = sum(math.inf if each.requests_per_minute is None else each.requests_per_minute for each in limits)
        latency = 0.0 if is_simulated(plan.pool) else LATENCY_S
        deadline = math.inf if plan.train.deadline_s is None else plan.train.deadline_s
        return cls(int(min(plan.train.concurrency, in_flight)), per_minute, latency, _calls(plan), deadline)

    def seconds(self, runs: int) -> float:
        """Of workflows that begin together: the mean of some simulated batches, each as long as its slowest workflow,
        and no more calls than the limits allow."""
        if not runs or not self.latency_s:
            return 0.0
        batches = [self._batch(min(runs, _MOST_SIMULATED), random.Random(seed)) for seed in range(_BATCHES)]
        larger = max(1.0, runs / _MOST_SIMULATED)
        return min(self.deadline_s, max(larger * sum(batches) / _BATCHES, 60 * self.calls * runs / self.per_minute))

    def _batch(self, runs: int, chance: random.Random) -> float:
        """Each workflow begins as soon as another one has ended."""
        mean = math.log(self.latency_s) - LATENCY_SPREAD**2 / 2
        free = [0.0] * self.in_flight
        for _ in range(runs):
            chain = sum(chance.lognormvariate(mean, LATENCY_SPREAD) for _ in range(self.calls))
            heapq.heapreplace(free, free[0] + chain)
        return max(free)
