"""Training data: rows of (question, workers offered), drawn by seed, rows of second rounds, and rows for SFT.

Rows have what `wfdsl_rl.scoring.Row` says, the task's `kind`, the `domain` that its metadata say, and in second rounds
`revises`, the row of the first ones. TRL passes the columns on to the reward function, so all values are plain.

Recursion: a row with `revises` names the row of its first rounds. Its completion at place k continues the conversation
of that row's completion at place k, with the answer that it got. Every first round is trained on in its own iteration
and revised in a later one, so none is written or run for the revision alone. Source of forced rounds: arXiv 2512.04388,
section 4; that they are those of an earlier iteration is our choice.

Rejection sampling: for each question some workflows are drawn at random, or written by the model itself (expert
iteration), all of them are run, and the best one is what the model learns to write. Random ones teach the form, and a
part of what rewards would teach, to a model that cannot write a workflow yet. Sources of the idea: STaR, arXiv
2203.14465, and expert iteration, arXiv 1705.08439; that candidates can be random is our choice.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count, cycle, islice
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.listing import WorkerListing, list_workers
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.baseline import random_workflow
from wfdsl.files import read_json_lines, write_whole
from wfdsl.language.completion import print_completion
from wfdsl.settings import build_model
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.reward import Reward
from wfdsl_rl.scoring import Row, require_scores
from wfdsl_rl.training.config import GrpoStage, SftStage, TrainConfig
from wfdsl_rl.training.plan import Setup
from wfdsl_rl.training.samples import SampleFiles, read_samples

ROWS: Final = "rows.jsonl"
"""The file of the chosen rows in the stage's folder."""
TOGETHER: Final = 64
"""Questions whose candidates are run together. Our choice."""


def offered(pool: Pool, pick: Sequence[int], seed: int, row: int) -> WorkerListing:
    """The workers that a row offers: one of these numbers of them; without any, all.

    The indices of a subset are shuffled for each row; the whole pool keeps its own.
    """
    size = random.Random(f"count:{seed}:{row}").choice(pick) if pick else None
    config = ConductorConfig(pick=size, shuffle=size is not None and size < len(pool), seed=seed)
    return list_workers(config, pool, str(row))


def seed_of(train: TrainConfig, stage: str) -> int:
    """The seed of a stage's rows: stages of GRPO draw other questions, each its own, than those of SFT."""
    trained = [name for name, each in train.stages.items() if isinstance(each, GrpoStage)]
    return 1000 * train.seed + (100 * trained.index(stage) if stage in trained else 2)


def make_rows(reward: Reward, tasks: Sequence[Task], *, count: int, seed: int, pick: Sequence[int] = ()) -> list[Row]:
    """Make `count` rows, kinds of questions in turns, so that a step learns from all of them.

    Each kind passes through its tasks again and again, each pass in an order of its own. A trainer reads the rows once
    and in order, so that it reads the same ones after an interruption. Prompts say what the rewards check.
    """
    rows = []
    for number, task in enumerate(islice(_in_turns(tasks, seed), count)):
        row = reward.row(task, number, offered(reward.pool, pick, seed, number))
        about = {"kind": task.kind, "domain": str(task.metadata.get("domain", ""))}
        rows.append({**row, **about, "revises": None, "weight": 1.0, "previous": None})
    return rows


class _SftMessage(BaseModel):
    role: Literal["system", "user", "assistant"]
    content: str


class _SftRow(BaseModel):
    prompt: list[_SftMessage] = Field(min_length=1)
    completion: list[_SftMessage] = Field(min_length=1)


def read_rows(path: Path) -> list[Row]:
    """Rows of a file for SFT: JSON lines with `prompt` and `completion`, which are lists of messages.

    Raises:
        UsageError: the file cannot be read, or a line is not such a row.
    """
    if not path.is_file():
        raise UsageError(f"{path} is not a file; give a file of rows, `random` or `policy`")
    rows = [build_model(_SftRow, row, f"{path}:{line}").model_dump() for line, row in read_json_lines(path)]
    if not rows:
        raise UsageError(f"{path} has no rows")
    return rows


def rejection_sampled(setup: Setup, name: str, model: tuple[Any, Any]) -> list[Row]:
    """Rows of messages `prompt` and `completion`, which are chosen once and kept in the folder of the stage.

    `model`, a tokenizer and its network, writes the candidates, where they come from the policy.

    Raises:
        BudgetExhausted: a call does not fit into the budget any more.
        UsageError: no candidate is a valid workflow.
    """
    sft: SftStage = setup.train.stages[name]
    path = setup.folder(name) / ROWS
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        setup.say(f"{name}: {sft.candidates} workflows ({sft.rows}) for each of {sft.questions} questions")
        found = asyncio.run(_best(setup, name, sft, model))
        if not found:
            raise UsageError(f"train.stages.{name}: no candidate is a valid workflow; set its rows to random")
        count = sft.max_steps * sft.batch_size
        least = sorted((each["gain"] for each in found), reverse=True)[:count][-1]
        chosen = [each for each in found if each["gain"] >= least][:count]
        gain = fmean(each["gain"] for each in chosen)
        setup.say(f"{name}: {len(chosen)} of them are learned from; the best is {gain:.2f} above the mean")
        write_whole(path, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in chosen))
    return [row for _, row in read_json_lines(path)]


async def _best(setup: Setup, name: str, sft: SftStage, model: tuple[Any, Any]) -> list[Row]:
    """The best candidate of each question that has a valid one, and its gain: how far it is above their mean."""
    seed, count = seed_of(setup.train, name), sft.candidates
    reward, keep, found = setup.reward(name), SampleFiles(setup.folder(name) / "samples"), []
    rows = make_rows(reward, setup.tasks, count=sft.questions, seed=seed)
    for begin in range(0, len(rows), TOGETHER):
        some = rows[begin : begin + TOGETHER]
        asked = [row for row in some for _ in range(count)]
        if sft.rows == "policy":
            texts, cut = _written(setup, model, some, count)
        else:
            texts, cut = [text for row in some for text in _random(setup, row, count)], [False] * len(asked)
        samples = await reward.samples(zip(asked, texts, cut, strict=True), 0)
        keep(samples)
        require_scores([sample.scored for sample in samples], 0)
        for at, row in enumerate(some):
            own = samples[at * count : (at + 1) * count]
            rewarded = [(each.reward, each) for each in own if each.reward is not None]
            worth, best = max(rewarded, key=lambda pair: pair[0], default=(0.0, None))
            if best is not None and best.scored.outcome != "invalid":
                said = {"role": "assistant", "content": best.rollout.completion.rstrip("\n")}
                gain = worth - fmean(each for each, _ in rewarded)
                found.append({"prompt": row["prompt"], "completion": [said], "task": row["task"], "gain": gain})
    return found


def _random(setup: Setup, row: Row, count: int) -> list[str]:
    """Workflows for a row, in the worker indices of its prompt."""
    chance = random.Random(f"candidates:{setup.train.seed}:{row['row']}")
    drawn = (random_workflow(chance, row["shown"], max_steps=setup.max_steps) for _ in range(count))
    return [print_completion(workflow, compact=True) for workflow in drawn]


def _written(setup: Setup, model: tuple[Any, Any], rows: Sequence[Row], count: int) -> tuple[list[str], list[bool]]:
    """Completions of the model itself, `count` for each row, as in the first GRPO stage, and whether each was cut."""
    import torch  # noqa: PLC0415  (only this needs it)

    from wfdsl_rl.training.checkpoints import completions_of, device, ends_of  # noqa: PLC0415

    (tokenizer, network), stages = model, setup.train.stages.values()
    longest = next((each for each in stages if isinstance(each, GrpoStage)), GrpoStage()).max_completion_length
    torch.manual_seed(setup.train.seed + int(rows[0]["row"]))
    network.to(device())
    prompts = [row["prompt"] for row in rows]
    temperature = float(setup.train.trl.get("temperature", 1.0))
    _, written, _ = completions_of(tokenizer, network, prompts, count, temperature=temperature, longest=longest)
    ends = ends_of(tokenizer, network)
    return tokenizer.batch_decode(written, skip_special_tokens=True), [ids[-1] not in ends for ids in written]


def stage_rows(setup: Setup, stage: str) -> list[Row]:
    """The rows of a GRPO stage, each read once."""
    config: GrpoStage = setup.train.stages[stage]
    tasks, count = setup.stage_tasks.get(stage, setup.tasks), config.max_steps * config.prompts_per_step
    rows = make_rows(setup.reward(stage), tasks, count=count, seed=seed_of(setup.train, stage), pick=config.pick)
    rows = with_second_rounds(rows, config) if config.forced else rows
    return [{**row, "step": at // config.prompts_per_step} for at, row in enumerate(rows)]


def with_second_rounds(rows: Sequence[Row], stage: GrpoStage) -> list[Row]:
    """As many rows, of which a share are second rounds of rows of earlier iterations; first rounds are weighted.

    There are fewer second rounds where no first round waits for one, as in the first iteration.
    """
    found: list[Row] = []
    fresh, waiting = iter(rows), deque[Row]()
    for at in range(len(rows)):
        is_second = int((at + 1) * stage.forced) > int(at * stage.forced)  # evenly spread
        if is_second and waiting and waiting[0]["row"] < at - at % stage.prompts_per_step:
            first = waiting.popleft()
            found.append({**first, "row": at, "revises": first["row"], "weight": 1.0})
        else:
            found.append({**next(fresh), "row": at, "weight": stage.discount})
            waiting.append(found[-1])
    return found


def _in_turns(tasks: Sequence[Task], seed: int) -> Iterator[Task]:
    """Tasks without an end: kinds in turns, the tasks of each in a new order in each pass.

    Steps of few questions that are not balanced by kind move what all kinds have in common before kinds separate.
    """
    kinds: dict[tuple[str, ...], list[Task]] = defaultdict(list)
    for task in tasks:
        domain = task.metadata.get("domain")
        kinds[(str(domain),) if domain else (task.source, task.kind)].append(task)

    def passes(kind: tuple[str, ...]) -> Iterator[Task]:
        for number in count():
            passed = list(kinds[kind])
            random.Random(f"order:{seed}:{'/'.join(kind)}:{number}").shuffle(passed)
            yield from passed

    for turn in cycle([passes(kind) for kind in sorted(kinds)]):
        yield next(turn)


class FirstRounds:
    """Makes the rows of second rounds, from the samples that a stage keeps; so an interrupted stage resumes alike."""

    def __init__(self, setup: Setup, stage: str) -> None:
        self._setup, self._stage = setup, setup.train.stages[stage]
        self._samples = setup.folder(stage) / "samples"
        self._known: tuple[int, list[Row]] = (-1, [])

    def revised(self, rows: list[Row], step: int) -> list[Row]:
        """The rows of this process's part of a batch, with the prompts of second rounds."""
        if self._known[0] != step:  # the trainer asks once for each pass of an iteration
            found, own = asyncio.run(self._setup.processes.on_all(rows, self._second_rounds))
            self._known = (step, found[own])
        return self._known[1]

    async def _second_rounds(self, rows: Sequence[Row]) -> list[Row]:
        kept = cache(lambda step: read_samples(self._samples / f"step-{step:06d}.jsonl.gz"))
        seen, made = Counter[int](), []
        for row in rows:
            place, first = seen[row["row"]], row["revises"]
            seen[row["row"]] += 1
            made.append(row if first is None else self._second(row, place, kept(first // self._stage.prompts_per_step)))
        return made

    def _second(self, row: Row, place: int, samples: Sequence[Row]) -> Row:
        """The row of a second round, of the first round at a place among the samples of its iteration, or of the next
        one that has an answer. Without any answer to revise, it is a first round.
        """
        own = [each for each in samples if each["row"] == row["revises"]]
        rounds = (*own[place:], *own[:place])
        first = next((each for each in rounds if each["workflow"] is not None and each["answer"] is not None), None)
        if first is None:
            return {**row, "weight": self._stage.discount}
        asked = self._setup.prompt.revise(first["answer"], max_steps=self._setup.max_steps, rounds_left=0)
        messages = [*row["prompt"], {"role": "assistant", "content": first["completion"]}, dict(asked)]
        return {**row, "prompt": messages, "previous": [first["workflow"]["subtasks"][-1], first["answer"]]}
