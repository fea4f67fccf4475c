"""Training data: rows of (question, workers offered), drawn by seed, and the rows of second rounds.

TRL passes a row's columns on to the reward function, so all values are plain:

row         the row's number
task, kind  the task's id and kind
domain      the kind of the question, where the task's metadata say one
split       `train`, `eval`, or the name of other rows
shown       the worker indices in the prompt
true        the pool's indices of the same workers
revises     in a second round, the row of its first rounds
previous    in a second round, the final subtask and response of the first one
weight      factor on the reward

Recursion: a row with `revises` names the row of its first rounds. Its completion at place k continues the conversation
of that row's completion at place k, with the answer that it got. Every first round is trained on in its own iteration
and revised in a later one, so none is written or run for the revision alone. Source of forced rounds: arXiv 2512.04388,
section 4; that they are those of an earlier iteration is our choice.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.listing import WorkerListing, list_workers
from wfdsl.errors import UsageError
from wfdsl.settings import first_problem
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.reward import Reward
from wfdsl_rl.scoring import Row
from wfdsl_rl.training.config import GrpoStage, TrainConfig
from wfdsl_rl.training.plan import Setup
from wfdsl_rl.training.samples import read_samples

_APART: Final = 100
"""Separates the seeds of two stages."""


def offered(pool: Pool, pick: Sequence[int], seed: int, row: int) -> WorkerListing:
    """The workers that a row offers: one of these numbers of them; without any, all.

    The indices of a subset are shuffled for each row; the whole pool keeps its own.
    """
    size = random.Random(f"count:{seed}:{row}").choice(pick) if pick else None
    config = ConductorConfig(pick=size, shuffle=size is not None and size < len(pool), seed=seed)
    return list_workers(config, pool, str(row))


def seed_of(train: TrainConfig, stage: str, *, more: int = 0) -> int:
    """The seed of a stage's rows; `more` separates them from others of the same stage."""
    trained = [name for name, each in train.stages.items() if isinstance(each, GrpoStage)]
    return 1000 * train.seed + more + (_APART * trained.index(stage) if stage in trained else 0)


def make_rows(
    reward: Reward, tasks: Sequence[Task], *, count: int, seed: int, pick: Sequence[int] = (), split: str = "train"
) -> list[Row]:
    """Make `count` rows, kinds of questions in turns, so that a step learns from all of them.

    Each kind passes through its tasks again and again, each pass in an order of its own. A trainer reads the rows once
    and in order, so that it reads the same ones after an interruption. Prompts say what the rewards check.
    """
    rows = []
    for number, at in enumerate(_order(tasks, count, seed)):
        row = reward.row(tasks[at], number, offered(reward.pool, pick, seed, number), split=split)
        about = {"kind": tasks[at].kind, "domain": str(tasks[at].metadata.get("domain", ""))}
        rows.append({**row, **about, "revises": None, "weight": 1.0, "previous": None})
    return rows


class _SftMessage(BaseModel):
    role: Literal["system", "user", "assistant"]
    content: str


class _SftRow(BaseModel):
    prompt: list[_SftMessage] = Field(min_length=1)
    completion: list[_SftMessage] = Field(min_length=1)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a file for SFT: JSON lines with `prompt` and `completion`, which are lists of messages.

    Raises:
        UsageError: the file cannot be read, or a line is not such a row.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}; give a file of rows, `random` or `policy`") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(_SftRow.model_validate_json(line).model_dump())
        except ValidationError as error:
            key, reason = first_problem(error)
            raise UsageError(f"{path}:{number}: {key}: {reason}") from None
    if not rows:
        raise UsageError(f"{path} has no rows")
    return rows


def stage_rows(setup: Setup, stage: str) -> list[dict[str, Any]]:
    """The rows of a GRPO stage, each read once."""
    config = setup.train.grpo(stage)
    rows = make_rows(
        setup.reward(stage),
        setup.stage_tasks.get(stage, setup.tasks),
        count=config.max_steps * config.prompts_per_step,
        seed=seed_of(setup.train, stage),
        pick=config.pick,
    )
    if not config.forced:
        return rows
    return with_second_rounds(rows, share=config.forced, discount=config.discount, per_step=config.prompts_per_step)


def eval_rows(setup: Setup, stage: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of a stage's evaluations: of first rounds, and with recursion of second ones after them."""
    if not setup.eval_tasks:
        return {}
    config, tasks = setup.train.grpo(stage), setup.eval_tasks
    seed = seed_of(setup.train, stage, more=1)
    rows = make_rows(setup.reward(stage), tasks, count=len(tasks), seed=seed, pick=config.pick, split="eval")
    if not config.forced:
        return {"first": rows}
    second = [{**row, "row": len(rows) + row["row"], "revises": row["row"]} for row in rows]
    return {"first": rows, "second": second}


def with_second_rounds(
    rows: Sequence[dict[str, Any]], *, share: float, discount: float, per_step: int
) -> list[dict[str, Any]]:
    """As many rows, of which a share are second rounds of rows of earlier iterations; first rounds are weighted.

    There are fewer second rounds where no first round waits for one, as in the first iteration.
    """
    found: list[dict[str, Any]] = []
    fresh, waiting = iter(rows), deque[dict[str, Any]]()
    for at in range(len(rows)):
        is_second = int((at + 1) * share) > int(at * share)  # evenly spread
        if is_second and waiting and waiting[0]["row"] < at - at % per_step:
            first = waiting.popleft()
            found.append({**first, "row": at, "revises": first["row"], "weight": 1.0})
        else:
            found.append({**next(fresh), "row": at, "weight": discount})
            waiting.append(found[-1])
    return found


def _order(tasks: Sequence[Task], rows: int, seed: int) -> list[int]:
    """The places of the tasks of `rows` rows: kinds in turns, the tasks of each in a new order in each pass.

    Steps of few questions that are not balanced by kind move what all kinds have in common before kinds separate.
    """
    kinds: dict[tuple[str, ...], list[int]] = {}
    for at, task in enumerate(tasks):
        domain = task.metadata.get("domain")
        kinds.setdefault((str(domain),) if domain else (task.source, task.kind), []).append(at)
    turns = [_passes(places, f"order:{seed}:{'/'.join(kind)}") for kind, places in sorted(kinds.items())]
    return list(islice((next(turn) for turn in cycle(turns)), rows))


def _passes(places: Sequence[int], key: str) -> Iterator[int]:
    for number in count():
        passed = list(places)
        random.Random(f"{key}:{number}").shuffle(passed)
        yield from passed


class FirstRounds:
    """Makes the rows of second rounds, from the samples that a stage keeps; so an interrupted stage resumes alike."""

    def __init__(self, setup: Setup, stage: GrpoStage, samples: Path) -> None:
        self._setup = setup
        self._stage = stage
        self._samples = samples
        self._known: tuple[Any, list[dict[str, Any]]] = (None, [])

    def revised(self, rows: list[dict[str, Any]], step: int) -> list[dict[str, Any]]:
        """The rows of this process's part of a batch, with the prompts of second rounds."""
        key = (step, [row["row"] for row in rows])
        if self._known[0] != key:  # the trainer asks once for each pass of an iteration

            async def work(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
                return self._second_rounds(every, step)

            found, own = asyncio.run(self._setup.processes.on_all(rows, work))
            self._known = (key, found[own])
        return self._known[1]

    def _second_rounds(self, rows: Sequence[dict[str, Any]], step: int) -> list[dict[str, Any]]:
        seen = Counter[int]()
        read: dict[str, dict[int, list[dict[str, Any]]]] = {}
        made = []
        for row in rows:
            place = seen[row["row"]]
            seen[row["row"]] += 1
            if row["revises"] is None:
                made.append(row)
                continue
            first = row["revises"] // self._stage.prompts_per_step
            name = f"eval-{step:06d}" if row["split"] == "eval" else f"step-{first:06d}"
            if name not in read:
                by_row = read[name] = dict[int, list[dict[str, Any]]]()
                for sample in read_samples(self._samples / f"{name}.jsonl.gz"):
                    by_row.setdefault(sample["row"], []).append(sample)
            made.append(self._second(row, read[name].get(row["revises"], []), place))
        return made

    def _second(self, row: dict[str, Any], rounds: Sequence[dict[str, Any]], place: int) -> dict[str, Any]:
        """The row of a second round: of its own first round, or of the next one that has an answer.

        Without any answer to revise, it is a first round.
        """
        turned = (*rounds[place:], *rounds[:place])
        first = next((each for each in turned if each["workflow"] is not None and each["answer"] is not None), None)
        if first is None:
            return {**row, "weight": self._stage.discount}
        asked = self._setup.prompt.revise(first["answer"], max_steps=self._setup.max_steps, rounds_left=0)
        messages = [*row["prompt"], {"role": "assistant", "content": first["completion"]}, dict(asked)]
        return {**row, "prompt": messages, "previous": [first["workflow"]["subtasks"][-1], first["answer"]]}
