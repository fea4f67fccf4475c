"""All that is learned from completions that are shown: the warm-up, and the steps before and behind other stages."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from wfdsl.conductor.checkpoint import FILE, save_prompt
from wfdsl.conductor.listing import WorkerListing
from wfdsl_rl.gym.tiny.prefix_cache import share_prompts
from wfdsl_rl.gym.tiny.random_model import make_model, make_tokenizer, save_new
from wfdsl_rl.gym.tiny.sft_rows import recursion_warmup_rows, refreshing_rows, warmup_rows
from wfdsl_rl.training.grpo import warmup_trainer
from wfdsl_rl.training.judging import make_rewarder
from wfdsl_rl.training.networks import load, rounds_of, save, save_model, sharpen, written_in_batches
from wfdsl_rl.training.records import MetricLines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wfdsl_rl.training.config import Grpo, StageName, Supervised
    from wfdsl_rl.training.setting import Setting

_TOKENIZER_TEXTS = 4000


def new_model(setting: Setting) -> Path:
    """Make the model of random weights that the training starts from; its folder."""
    folder, new, seed = setting.out / "new", setting.train.new, setting.train.seed
    constants = between_numbers(setting.prompt.written_workers(WorkerListing.of(setting.pool)))
    tokenizer = make_tokenizer(_texts(setting), vocabulary=new.vocabulary, constants=constants)
    model = make_model(tokenizer, width=new.width, inner=new.inner, layers=new.layers, heads=new.heads, seed=seed)
    save_new(folder, model, tokenizer)
    save_prompt(folder, setting.prompt, max_steps=setting.max_steps)
    return folder


def warm_up(setting: Setting, model: str) -> Path:
    """The stage of supervised steps; the folder of the model that comes out."""
    warmup, folder = setting.train.warmup, setting.folder("warmup")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, network = load(model)
    rows = warmup_rows(setting, make_rewarder(setting, folder, grades=False), count=warmup.steps * warmup.batch)
    metrics = MetricLines(setting.metrics_file, "warmup", setting.listeners)
    warmup_trainer(
        network, tokenizer, rows, folder, warmup=warmup, train=setting.train, cpu=setting.cpu, callbacks=[metrics]
    ).train()
    sharpen(network, warmup.sharpen)
    return save_model(setting, "warmup", network, tokenizer)


def warm_up_for_recursion(setting: Setting, model: str) -> str:
    """The supervised steps before the stage of recursion, if it has any; the folder of the model that it starts from.

    A training that goes on finds the folder, so that the stage has the model that it was begun with.
    """
    warmup, folder = setting.train.recursion.warmup, setting.folder("recursion") / "warmup"
    if not warmup.steps:
        return model
    if not (folder / FILE).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        setting.say(f"recursion: {warmup.steps} supervised steps from {model}")
        tokenizer, network = _writer(setting.train.recursion, model)
        rewarder = make_rewarder(setting, folder, grades=False)
        rewarder.stage = "recursion warmup"
        write = partial(written_in_batches, setting, setting.train.recursion, (tokenizer, network))
        rows = recursion_warmup_rows(setting, rewarder, write)
        _supervise(setting, warmup, (tokenizer, network), rows, folder)
        save(setting, folder, network, tokenizer, rounds=rounds_of("recursion"))
    return str(folder)


def refresh(setting: Setting, name: StageName, model: Path) -> Path:
    """The supervised steps behind a stage, from the model that its rewards made; the folder of what comes out."""
    stage: Grpo = getattr(setting.train, name)
    setting.say(f"{name}: {stage.refresh.steps} supervised steps from {model}")
    tokenizer, network = _writer(stage, str(model))
    rewarder = make_rewarder(setting, model, grades=False)
    rewarder.stage = f"{name} refresh"
    write = partial(written_in_batches, setting, stage, (tokenizer, network))
    rows = refreshing_rows(setting, rewarder, write, name)
    _supervise(setting, stage.refresh, (tokenizer, network), rows, model)
    return save_model(setting, name, network, tokenizer)


def _writer(stage: Grpo, model: str) -> tuple[Any, Any]:
    """A tokenizer and its network that write as they do in a stage."""
    tokenizer, network = load(model)
    if stage.share_prompts:
        share_prompts(network)
    return tokenizer, network


def _supervise(
    setting: Setting, steps: Supervised, model: tuple[Any, Any], rows: list[dict[str, Any]], folder: Path
) -> None:
    """Supervised steps of a tokenizer and its network that belong to another stage, with metrics of their own."""
    tokenizer, network = model
    metrics = MetricLines(folder / "metrics.jsonl", f"{folder.parent.name} {folder.name}")
    warmup_trainer(
        network, tokenizer, rows, folder, warmup=steps, train=setting.train, cpu=setting.cpu, callbacks=[metrics]
    ).train()


def between_numbers(listing: str) -> list[str]:
    """What stands between the digits of a listing again and again, sorted."""
    pieces = Counter(piece for line in listing.splitlines() for piece in re.split(r"\d+", line) if len(piece) > 1)
    return sorted(piece for piece, count in pieces.items() if count > 1)


def _texts(setting: Setting) -> Sequence[str]:
    """What the tokenizer is trained on."""
    rows = warmup_rows(setting, make_rewarder(setting, setting.out / "new", grades=False), count=_TOKENIZER_TEXTS)
    return [message["content"] for row in rows for message in (*row["prompt"], *row["completion"])]
