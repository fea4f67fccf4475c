"""A small world for training: three workers that each know one kind of question, and a training in it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.prompt import Prompt
from wfdsl.language.completion import print_completion
from wfdsl.language.workflow import Step, Workflow
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.reward import Reward
from wfdsl_rl.training.config import GrpoStage, SftStage, TrainConfig
from wfdsl_rl.training.samples import read_samples

if TYPE_CHECKING:
    from wfdsl_rl.training.plan import Setup

AsyncWorker: TypeAlias = Callable[[list[dict[str, Any]]], Awaitable[str]]

QUESTIONS = {"math": "What is {a} times {b}?", "choice": "Which is larger, A {a} or B {b}?", "text": "Spell {a} {b}."}
ANSWERS = {"math": ("4", "5"), "choice": ("A", "B"), "text": ("yes", "no")}
"""Right and wrong, by kind of question."""
SKILL = {"math": (0.95, 0.1, 0.1), "choice": (0.1, 0.95, 0.1), "text": (0.1, 0.1, 0.95)}


def chance(*about: object) -> float:
    """A number from 0 to 1 that the arguments fix."""
    return int(hashlib.blake2b(repr(about).encode(), digest_size=4).hexdigest(), 16) / 2**32


def a_task(number: int) -> Task:
    words: tuple[Literal["math", "choice", "text"], ...] = ("math", "choice", "text")
    word = words[number % 3]
    question = QUESTIONS[word].format(a=10 + number * 7 % 89, b=3 + number * 5 % 83)
    return Task(id=f"train-{number}", question=question, gold=ANSWERS[word][0], kind=word)


def a_worker(number: int) -> AsyncWorker:
    async def answer(messages: list[dict[str, Any]]) -> str:
        first = messages[0]["content"]
        word = next(word for word, form in QUESTIONS.items() if first.startswith(form.split("{")[0]))
        return ANSWERS[word][0 if chance(number, messages) < SKILL[word][number] else 1]

    answer.__name__ = f"worker{number}"
    return answer


WORKERS = tuple(a_worker(number) for number in range(3))
TASKS = tuple(a_task(number) for number in range(120))

BASE = GrpoStage(
    max_steps=6,
    prompts_per_step=6,
    num_generations=8,
    learning_rate=1e-3,
    max_completion_length=40,
    per_device_train_batch_size=24,
    save_steps=2,
)
REVISING = replace(
    BASE,
    max_steps=2,
    prompts_per_step=4,
    num_generations=4,
    max_completion_length=60,
    scale_rewards="batch",
    forced=0.5,
)
SFT = SftStage(kind="sft", rows="sft.jsonl", max_steps=300, prompts_per_step=32, learning_rate=4e-3, save_steps=1000)
STAGES = {"sft": SFT, "base": BASE, "recursion": REVISING}
TRAIN = TrainConfig(model="new", tasks="toy", stages=STAGES, trl={"bf16": False})
"""Weights are compared, on whatever hardware."""


def with_stage(train: TrainConfig, name: str, **changes: Any) -> TrainConfig:
    """A training with some keys of a stage changed."""
    stage = replace(train.stages[name], **changes)
    return replace(train, stages={**train.stages, name: stage})


PROMPT = Path(__file__).parent / "prompt.toml"
DESCRIPTIONS = ["m 9", "c 9", "t 9"]


def a_pool(workers: tuple[AsyncWorker, ...] = WORKERS) -> Pool:
    """The pool, or one with other workers under the same descriptions."""
    return Pool.from_functions(list(workers), descriptions=DESCRIPTIONS)


def a_prompt() -> Prompt:
    return Prompt.load(str(PROMPT))


def sft_rows() -> list[dict[str, Any]]:
    """Rows for the form: the able worker is asked twice as often as each other, so that the kind is read there."""
    prompt, listing = a_prompt(), WorkerListing.of(a_pool())
    rows = []
    for task in TASKS:
        asked = prompt.ask(task.question, listing, max_steps=5)
        for worker in (0, 1, 2, list(SKILL).index(task.kind)):
            lists = print_completion(Workflow((Step(worker, "Solve it.", ()),)), compact=True).rstrip("\n")
            said = {"role": "assistant", "content": f"{task.kind}\n{lists}"}
            rows.append({"prompt": list(asked), "completion": [said]})
    Random(0).shuffle(rows)
    return rows


def write_model(folder: Path) -> None:
    """A model of random weights, whose tokenizer knows the texts of this world."""
    from tests.rl.training.random_model import make_model, make_tokenizer, save_new

    texts = [message["content"] for row in sft_rows() for message in (*row["prompt"], *row["completion"])]
    listing = "".join(f"\n{number}: {about}" for number, about in enumerate(DESCRIPTIONS))
    tokenizer = make_tokenizer(texts, vocabulary=420, constants=[listing])
    save_new(folder, make_model(tokenizer, width=64, inner=128, layers=2, heads=2, seed=0), tokenizer)


def write_experiment(folder: Path, model: Path) -> Path:
    """An experiment of this world for the command: its workers always say the same, each what is right for one kind."""
    workers = [
        f'[[pool.workers]]\nname = "{word}"\nprovider = "scripted"\nmodel = "scripted"\n'
        f'description = "{about}"\noptions = {{ replies = ["{ANSWERS[word][0]}"], repeat = true }}\n'
        for word, about in zip(QUESTIONS, DESCRIPTIONS, strict=True)
    ]
    tasks = [{"id": each.id, "question": each.question, "gold": each.gold, "kind": each.kind} for each in TASKS]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in tasks), encoding="utf-8")
    (folder / "experiment.toml").write_text(
        "".join(workers)
        + f'''
[conductor]
prompt = "{PROMPT}"

[train]
model = "{model}"
tasks = "{folder / "tasks.jsonl"}"
task_count = 20

[train.stages.base]
max_steps = 3
prompts_per_step = 4
num_generations = 4
learning_rate = 1e-6
lr_scheduler_type = "constant"
warmup_steps = 0.0
max_completion_length = 40

[train.trl]
bf16 = false
''',
        encoding="utf-8",
    )
    return folder / "experiment.toml"


def a_reward(pool: Pool, prompt: Prompt | None = None, *, max_steps: int = 5) -> Reward:
    """What rows are made with."""
    return Reward(pool, (), prompt=prompt or a_prompt(), max_steps=max_steps)


def a_setup(out: Path) -> Setup:
    """The training, with what it says kept to itself."""
    from wfdsl_rl.training.plan import Setup

    model, rows = out / "new", out / "sft.jsonl"
    if not rows.is_file():
        write_model(model)
        rows.write_text("".join(json.dumps(row) + "\n" for row in sft_rows()), encoding="utf-8")
    return Setup(
        train=replace(with_stage(TRAIN, "sft", rows=str(rows)), model=str(model)),
        prompt=a_prompt(),
        max_steps=5,
        pool=a_pool(),
        tasks=TASKS,
        out=out,
        say=lambda _: None,
    )


def from_warmup(trained: Setup, out: Path, **base: Any) -> Setup:
    """A training of the base stage alone from the model that was warmed up, with some settings of the stage changed."""
    model = str(trained.folder("sft") / "final")
    return replace(trained, out=out, train=replace(with_stage(TRAIN, "base", **base), model=model))


def train_stage(setup: Setup, stage: str, model: str, *, checkpoint: Path | None = None) -> Path:
    """Train a GRPO stage from a model, or from a checkpoint of its own."""
    from wfdsl_rl.training.stages import train_grpo

    return train_grpo(setup, stage, model, checkpoint=checkpoint)


def same(one: Path, other: Path) -> bool:
    """Whether two folders hold the same weights, bit by bit."""
    import torch
    from safetensors.torch import load_file

    first, second = (dict(load_file(folder / "model.safetensors")) for folder in (one, other))
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def samples(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The completions that a stage kept, by file."""
    return {path.name: read_samples(path) for path in sorted(folder.glob("*.jsonl.gz"))}


def metrics(setup: Setup) -> list[dict[str, Any]]:
    """What was logged, stage by stage."""
    found = []
    for stage in setup.train.stages:
        path = setup.folder(stage) / "metrics.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        found += [{"stage": stage, **json.loads(line)} for line in lines]
    return found


def copy_until(setup: Setup, step: int, out: Path) -> Setup:
    """The folder of a training as a kill behind a checkpoint leaves it, while a later step was under way."""
    shutil.copytree(setup.out, out)
    for path in (out / "base").glob("checkpoint-*"):
        if int(path.name.rpartition("-")[2]) > step:
            shutil.rmtree(path)
    shutil.rmtree(out / "base" / "final")
    return replace(setup, out=out)
