"""Rejection sampling: SFT rows from workflows that did well on their question.

For each question some workflows are drawn at random, or written by the model itself (expert iteration), all of them are
run, and the best one is what the model learns to write. Random ones teach the form, and a part of what rewards would
teach, to a model that cannot write a workflow yet. Sources of the idea: STaR, arXiv 2203.14465, and expert iteration,
arXiv 1705.08439; that candidates can be random is our choice.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.random_policies import random_workflow
from wfdsl.files import write_whole
from wfdsl.language.completion import print_completion
from wfdsl_rl.reward import Reward
from wfdsl_rl.training.checkpoints import ends_of
from wfdsl_rl.training.data import draw_of, setup_rows
from wfdsl_rl.training.rewarding import stage_reward
from wfdsl_rl.training.setup import Setup

ROWS: Final = "rows.jsonl"
"""The file of the chosen rows in the stage's folder."""
_MORE: Final = 2
"""Separates the draws from those of other stages of the same seed."""
_TOGETHER: Final = 64
"""Questions whose candidates are run together. Our choice."""


class _Best(NamedTuple):
    """The best candidate of a question."""

    row: dict[str, Any]
    text: str
    gain: float
    """Its mean reward, less the mean of all candidates of the question."""


Model: TypeAlias = tuple[Any, Any]
"""A tokenizer and its network."""


def rejection_sampled(setup: Setup, model: Model | None = None) -> list[dict[str, Any]]:
    """Rows of messages `prompt` and `completion`, which are chosen once and kept in the folder of the stage `sft`.

    `model` writes the candidates, where they come from the policy.

    Raises:
        BudgetExhausted: a call does not fit into the budget any more.
    """
    sft, path = setup.train.sft, setup.folder("sft") / ROWS
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        setup.say(f"sft: {sft.candidates} workflows ({sft.candidates_from}) for each of {sft.questions} questions")
        found = asyncio.run(_best(setup, model))
        if not found:
            raise UsageError("train.sft: no candidate is a valid workflow; set train.sft.candidates_from to random")
        count = sft.steps * sft.batch_size
        least = sorted((each.gain for each in found), reverse=True)[:count][-1]
        chosen = [each for each in found if each.gain >= least][:count]
        setup.say(f"sft: {len(chosen)} of them are learned from; the best is {fmean(e.gain for e in chosen):.2f} above")
        lines = (json.dumps(_shown(each), ensure_ascii=False) + "\n" for each in chosen)
        write_whole(path, "".join(lines))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def _best(setup: Setup, model: Model | None) -> list[_Best]:
    sft = setup.train.sft
    rows = setup_rows(setup, setup.tasks, count=sft.questions, draw=draw_of(setup, "base", more=_MORE))
    reward = stage_reward(setup, "sft", executions=sft.executions_per_candidate)
    found: list[_Best] = []
    for at in range(0, len(rows), _TOGETHER):
        found += await _best_of(setup, model, reward, rows[at : at + _TOGETHER])
    return found


async def _best_of(setup: Setup, model: Model | None, reward: Reward, rows: Sequence[dict[str, Any]]) -> list[_Best]:
    count = setup.train.sft.candidates
    if setup.train.sft.candidates_from == "policy" and model is not None:
        texts, cut = _written(setup, model, rows, count)
    else:
        texts = [text for row in rows for text in _candidates(setup, row, count)]
        cut = [False] * len(texts)
    samples = await reward.batch([row for row in rows for _ in range(count)], texts, 0, cut)
    best = []
    for at, row in enumerate(rows):
        own = samples[at * count : (at + 1) * count]
        rewards = {each.index: each.reward for each in own if each.reward is not None}
        first = max(rewards, key=rewards.__getitem__, default=None)
        if first is not None and own[first].scored.outcome != "invalid":
            best.append(_Best(row, own[first].completion, rewards[first] - fmean(rewards.values())))
    return best


def _candidates(setup: Setup, row: Mapping[str, Any], count: int) -> list[str]:
    """Workflows for a row, in the worker indices of its prompt."""
    chance = random.Random(f"candidates:{setup.train.seed}:{row['row']}")
    return [
        print_completion(random_workflow(chance, row["shown"], max_steps=setup.max_steps), compact=True)
        for _ in range(count)
    ]


def _written(setup: Setup, model: Model, rows: Sequence[Mapping[str, Any]], count: int) -> tuple[list[str], list[bool]]:
    """Completions of the model itself, `count` for each row, sampled as in the base stage, and whether each was cut."""
    import torch  # noqa: PLC0415  (random candidates need none)

    (tokenizer, network), stage = model, setup.train.base
    torch.manual_seed(setup.train.seed + int(rows[0]["row"]))
    network.to("cuda" if torch.cuda.is_available() else "cpu")
    asked = tokenizer.apply_chat_template(
        [row["prompt"] for row in rows],
        add_generation_prompt=True,
        padding=True,
        return_dict=True,
        return_tensors="pt",
    ).to(network.device)
    with torch.no_grad():
        written = network.generate(
            **asked,
            do_sample=True,
            temperature=stage.temperature,
            top_k=0,
            max_new_tokens=stage.max_completion_tokens,
            num_return_sequences=count,
        )[:, asked["input_ids"].shape[1] :]
    ends = torch.tensor(ends_of(tokenizer, network), device=written.device)
    cut = (~torch.isin(written, ends).any(dim=1)).tolist()
    return tokenizer.batch_decode(written, skip_special_tokens=True), cut


def _shown(best: _Best) -> dict[str, Any]:
    return {
        "prompt": best.row["prompt"],
        "completion": [{"role": "assistant", "content": best.text.rstrip("\n")}],
        "task": best.row["task"],
        "gain": best.gain,
    }
