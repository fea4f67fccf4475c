"""The rows of a stage's draws, and those of the warm-up: prompts with completions from the prior."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wfdsl.api import analyze
from wfdsl_rl.gym.tiny.revisions import by_others
from wfdsl_rl.gym.tiny.synthetic import KEEP, Prior, shape_in, true_reading
from wfdsl_rl.gym.world.replies import signs_in
from wfdsl_rl.training.config import STAGES, Recursion
from wfdsl_rl.training.data import Draw, falls_into, offer_of, rows_of
from wfdsl_rl.training.recursion_rows import as_revision, first_with_answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wfdsl_rl.gym.tiny.revisions import Write
    from wfdsl_rl.training.config import Grpo, Pools, StageName, TrainSettings
    from wfdsl_rl.training.rewarding import Rewarder
    from wfdsl_rl.training.setting import Setting

_SPLIT = "warmup"
_OTHERS = 500  # so that recursion has other rows than the stages before it


def warmup_rows(setting: Setting, rewarder: Rewarder, *, count: int) -> list[dict[str, Any]]:
    """Prompts with completions from the prior, as messages.

    They show some of the pool only, if the stage of pools will; and if the stage of recursion follows, some of them are
    second rounds, whose first rounds are run by `rewarder`.
    """
    train, prior = setting.train, prior_of(setting.train)
    rows = _rows(setting, count, seed=train.seed + 1 if train.pools.iterations else train.seed)
    rng = random.Random(f"warmup:{train.seed}")
    said = [prior.completion(rng, offer_of(row, setting.pool), row["kind"]) for row in rows]
    if train.recursion.iterations:
        share = train.warmup.second_rounds
        for at, row in _second_rounds(setting, rewarder, rows, said, share=share, batch=train.warmup.batch).items():
            rows[at], said[at] = row, _revised(prior, rng, row, setting)
    return [_shown(row, completion) for row, completion in zip(rows, said, strict=True)]


def recursion_warmup_rows(setting: Setting, rewarder: Rewarder, write: Write) -> list[dict[str, Any]]:
    """What is shown before the stage of recursion: the model's own first rounds, and second rounds from the prior."""
    train, warmup = setting.train, setting.train.recursion.warmup
    rows = _rows(setting, warmup.steps * warmup.batch, seed=1000 * train.seed + 2)
    prior, rng = prior_of(train), random.Random(f"recursion warmup:{train.seed}")
    said = write([row["prompt"] for row in rows], [true_reading_of(setting, row) for row in rows])
    seconds = _second_rounds(setting, rewarder, rows, said, share=warmup.second_rounds, batch=warmup.batch)
    for at, row in seconds.items():
        rows[at], said[at] = row, _revised(prior, rng, row, setting, sensible=warmup.sensible)
    again = [at for at in seconds if shape_in(said[at]) != KEEP and rng.random() < warmup.others]
    for at, completion in zip(again, by_others(setting, prior, write, [rows[at] for at in again]), strict=True):
        said[at] = completion or said[at]
    return _shown_if_valid(setting, rows, said)


def refreshing_rows(setting: Setting, rewarder: Rewarder, write: Write, name: StageName) -> list[dict[str, Any]]:
    """What is shown behind a stage: what the model itself writes behind a thought that says what is so.

    Behind the stage of recursion, some of it are second rounds.
    """
    stage: Grpo = getattr(setting.train, name)
    refresh = stage.refresh
    rows = _rows(setting, refresh.steps * refresh.batch, seed=1000 * setting.train.seed + 3 + STAGES.index(name))
    said = write([row["prompt"] for row in rows], [true_reading_of(setting, row) for row in rows])
    if isinstance(stage, Recursion):
        seconds = _second_rounds(setting, rewarder, rows, said, share=stage.forced, batch=refresh.batch)
        again = write(
            [row["prompt"] for row in seconds.values()], [true_reading_of(setting, row) for row in seconds.values()]
        )
        for (at, row), completion in zip(seconds.items(), again, strict=True):
            rows[at], said[at] = row, completion
    return _shown_if_valid(setting, rows, said)


def true_reading_of(setting: Setting, row: Mapping[str, Any]) -> str:
    """What a true thought about a row begins with."""
    offer = offer_of(dict(row), setting.pool)
    return true_reading(setting.train.warmup.thought, row["kind"], offer, row["previous"])


def given_to(setting: Setting, stage: Grpo, row: Mapping[str, Any]) -> str:
    """What a stage gives of the thought about a row: nothing in evaluations, and no shape in further rounds."""
    if stage.give == "nothing" or row["split"] != "train":
        return ""
    reading = true_reading_of(setting, row)
    if stage.give == "reading" or row["previous"]:
        return reading
    return f"{reading} {prior_of(setting.train).any_shape(row['row'])}"


def _shown_if_valid(setting: Setting, rows: Sequence[dict[str, Any]], said: Sequence[str]) -> list[dict[str, Any]]:
    """The rows whose completions are strictly valid."""
    return [
        _shown(row, completion)
        for row, completion in zip(rows, said, strict=True)
        if analyze(
            completion,
            pool=offer_of(row, setting.pool),
            max_steps=setting.max_steps,
            recursion=row["previous"] is not None,
            depth_left=0,
        ).ok
    ]


def _rows(setting: Setting, count: int, *, seed: int) -> list[dict[str, Any]]:
    """Questions with workers on offer: some of the pool only, if the stage of pools is there."""
    draw = replace(draw_of(setting, "pools" if setting.train.pools.iterations else "base"), seed=seed)
    return rows_of(
        setting.tasks, setting.pool, setting.prompt, count=count, max_steps=setting.max_steps, draw=draw, split=_SPLIT
    )


def prior_of(train: TrainSettings) -> Prior:
    """What a warm-up draws from."""
    return Prior(
        lengths={int(key): weight for key, weight in train.warmup.lengths.items()},
        thought=train.warmup.thought,
        wordings=train.warmup.wordings,
        habits=train.warmup.habits,
        seed=train.seed,
    )


def _shown(row: dict[str, Any], completion: str) -> dict[str, Any]:
    return {"prompt": row["prompt"], "completion": [{"role": "assistant", "content": completion}]}


def _revised(
    prior: Prior, rng: random.Random, row: dict[str, Any], setting: Setting, *, sensible: float | None = None
) -> str:
    """What the prior writes in a second round, whose row this is."""
    return prior.revision(rng, offer_of(row, setting.pool), row["kind"], signs_in(row["previous"][1]), sensible)


def _second_rounds(
    setting: Setting,
    rewarder: Rewarder,
    rows: Sequence[dict[str, Any]],
    said: Sequence[str],
    *,
    share: float,
    batch: int,
) -> dict[int, dict[str, Any]]:
    """Some of the rows as second rounds, by their place: what was said, and what came of it, stand in their prompts.

    They fill whole batches: their prompts are more than twice as long, and all of a batch are padded to the longest.
    """
    chosen = [at for at in range(len(rows)) if falls_into(share, at // batch)]
    samples = asyncio.run(rewarder.first_rounds([rows[at] for at in chosen], [said[at] for at in chosen], 0))
    answered = first_with_answer(samples)
    return {
        at: as_revision(rows[at], answered[number], setting.prompt, max_steps=setting.max_steps)
        for at in chosen
        if (number := rows[at]["row"]) in answered
    }


def draw_of(setting: Setting, name: StageName, *, more: int = 0, unseen: bool = False) -> Draw:
    """What is drawn for the rows of a stage; `more` tells its draws from others of the same seed.

    Recursion goes on with some of the pool, if it comes behind the stage of pools, so that reading which is not
    forgotten; its evaluations ask the whole pool.
    """
    train, pools = setting.train, setting.train.pools
    seed = 1000 * train.seed + more
    if name == "recursion":
        seed += _OTHERS
    if name == "base" or (name == "recursion" and (unseen or not pools.iterations)):
        return Draw(seed=seed)
    pick = _picks(setting, pools)
    if unseen and pools.held_out:  # the whole pool is never held out
        pick = tuple(count for count in pick if count < len(setting.pool))
        return Draw(pick=pick, shuffle=pools.shuffle, held_out=pools.held_out, unseen=True, seed=seed)
    return Draw(pick=pick, shuffle=pools.shuffle, held_out=pools.held_out, seed=seed)


def _picks(setting: Setting, pools: Pools) -> tuple[int, ...]:
    return pools.pick or tuple(range(2, len(setting.pool) + 1))
