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
from typing import Any, Final, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.teams import random_workflow
from wfdsl.files import write_whole
from wfdsl.language.completion import print_completion
from wfdsl_rl.scoring import require_scores
from wfdsl_rl.training.checkpoints import ends_of
from wfdsl_rl.training.config import GrpoStage, SftStage
from wfdsl_rl.training.data import make_rows, seed_of
from wfdsl_rl.training.plan import Setup

ROWS: Final = "rows.jsonl"
"""The file of the chosen rows in the stage's folder."""
_MORE: Final = 2
"""Separates the draws from those of other stages of the same seed."""
_TOGETHER: Final = 64
"""Questions whose candidates are run together. Our choice."""
_LONGEST: Final = 1024
"""Tokens of a completion of the policy, where no stage of GRPO says it."""


Model: TypeAlias = tuple[Any, Any]
"""A tokenizer and its network."""
_Rows: TypeAlias = Sequence[Mapping[str, Any]]


def rejection_sampled(setup: Setup, name: str, model: Model) -> list[dict[str, Any]]:
    """Rows of messages `prompt` and `completion`, which are chosen once and kept in the folder of the stage.

    `model` writes the candidates, where they come from the policy.

    Raises:
        BudgetExhausted: a call does not fit into the budget any more.
        UsageError: no candidate is a valid workflow.
    """
    sft, path = setup.train.stages[name], setup.folder(name) / ROWS
    assert isinstance(sft, SftStage)  # only these have candidates
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
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def _best(setup: Setup, name: str, sft: SftStage, model: Model) -> list[dict[str, Any]]:
    """The best candidate of each question that has a valid one, and its gain: how far it is above their mean."""
    seed, count = seed_of(setup.train, name, more=_MORE), sft.candidates
    reward, found = setup.reward(name), []
    rows = make_rows(reward, setup.tasks, count=sft.questions, seed=seed)
    for begin in range(0, len(rows), _TOGETHER):
        some = rows[begin : begin + _TOGETHER]
        texts, cut = (_written if sft.rows == "policy" else _random)(setup, model, some, count)
        asked = [row for row in some for _ in range(count)]
        samples = await reward.samples(zip(asked, texts, cut, strict=True), 0)
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


def _random(setup: Setup, _: Model, rows: _Rows, count: int) -> tuple[list[str], list[bool]]:
    """Workflows for rows, in the worker indices of their prompts; none of them was cut."""
    chances = [(row, random.Random(f"candidates:{setup.train.seed}:{row['row']}")) for row in rows]
    texts = [
        print_completion(random_workflow(chance, row["shown"], max_steps=setup.max_steps), compact=True)
        for row, chance in chances
        for _ in range(count)
    ]
    return texts, [False] * len(texts)


def _written(setup: Setup, model: Model, rows: _Rows, count: int) -> tuple[list[str], list[bool]]:
    """Completions of the model itself, `count` for each row, as in the first GRPO stage, and whether each was cut."""
    import torch  # noqa: PLC0415  (random candidates need none)

    (tokenizer, network), stages = model, setup.train.stages.values()
    longest = next((each.max_completion_length for each in stages if isinstance(each, GrpoStage)), _LONGEST)
    torch.manual_seed(setup.train.seed + int(rows[0]["row"]))
    network.to("cuda" if torch.cuda.is_available() else "cpu")
    asked = tokenizer.apply_chat_template(
        [row["prompt"] for row in rows], add_generation_prompt=True, padding=True, return_dict=True, return_tensors="pt"
    ).to(network.device)
    with torch.no_grad():
        written = network.generate(
            **asked,
            do_sample=True,
            temperature=float(setup.train.trl.get("temperature", 1.0)),
            top_k=0,
            max_new_tokens=longest,
            num_return_sequences=count,
        )[:, asked["input_ids"].shape[1] :]
    ends = torch.tensor(ends_of(tokenizer, network), device=written.device)
    cut = (~torch.isin(written, ends).any(dim=1)).tolist()
    return tokenizer.batch_decode(written, skip_special_tokens=True), cut
