"""The stages of a training: what each does with a model, and the rows that it reads."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import transformers

from wfdsl.conductor.checkpoint import FILE, save_prompt
from wfdsl.conductor.offer import Offer
from wfdsl_rl.judge import Ablation, Judge
from wfdsl_rl.reward import Rewards
from wfdsl_rl.training.records import (
    FallingKl,
    MetricLines,
    PromptInCheckpoints,
    SampleFiles,
    drop_lines_after,
)
from wfdsl_rl.training.recursion import RecursionTrainer
from wfdsl_rl.training.rewarding import Rewarder
from wfdsl_rl.training.rows import rows_of, with_second_rounds
from wfdsl_rl.training.settings import Recursion
from wfdsl_rl.training.sharing import share_prompts
from wfdsl_rl.training.small import make_model, make_tokenizer, save_new
from wfdsl_rl.training.trainer import grpo_config, grpo_trainer, warmup_trainer
from wfdsl_rl.training.warming import draw_of, recursion_warmup_rows, refreshing_rows, warmup_rows
from wfdsl_rl.training.watching import Reports, Warnings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wfdsl_rl.training.setting import Setting
    from wfdsl_rl.training.settings import Grpo, StageName, Supervised

_TOKENIZER_TEXTS = 4000


def new_model(setting: Setting) -> Path:
    """Make the model of random weights that the training starts from; its folder."""
    folder, new, seed = setting.out / "new", setting.train.new, setting.train.seed
    constants = between_numbers(setting.prompt.listing(Offer.of(setting.pool)))
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
    metrics = MetricLines(setting.out / "metrics.jsonl", "warmup", setting.listeners)
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
        tokenizer, network = load(model)
        rewarder = make_rewarder(setting, folder, grades=False)
        rewarder.stage = "recursion warmup"
        write = partial(_written_in_batches, setting, setting.train.recursion, (tokenizer, network))
        rows = recursion_warmup_rows(setting, rewarder, write)
        _supervise(setting, warmup, (tokenizer, network), rows, folder)
        _save(setting, folder, network, tokenizer, rounds=rounds_of("recursion"))
    return str(folder)


def _written_in_batches(
    setting: Setting,
    stage: Grpo,
    model: tuple[Any, Any],
    conversations: Sequence[Any],
    beginnings: Sequence[str],
) -> list[str]:
    """What a tokenizer's network writes, drawn as in a stage."""
    tokenizer, network = model
    torch.manual_seed(setting.train.seed)
    return [
        text
        for at in range(0, len(conversations), stage.batch)
        for text in written(
            network,
            tokenizer,
            conversations[at : at + stage.batch],
            beginnings=beginnings[at : at + stage.batch],
            max_tokens=stage.max_completion_tokens,
            temperature=stage.temperature,
        )
    ]


def written(
    network: Any,
    tokenizer: Any,
    conversations: Sequence[Any],
    *,
    max_tokens: int,
    temperature: float,
    beginnings: Sequence[str] = (),
) -> list[str]:
    """A completion for each conversation, all at once; greedy at temperature 0.

    `beginnings` are what completions begin with, if they are not the model's from the first word on.
    """
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    asked = tokenizer.apply_chat_template(list(conversations), add_generation_prompt=True, tokenize=False)
    begun = beginnings or [""] * len(asked)
    inputs = tokenizer(
        [f"{prompt}{beginning}" for prompt, beginning in zip(asked, begun, strict=True)],
        add_special_tokens=False,
        padding=True,
        return_tensors="pt",
    ).to(network.device)
    out = network.generate(**inputs, max_new_tokens=max_tokens, **sampling)
    texts = tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return [f"{beginning}{text}" for beginning, text in zip(begun, texts, strict=True)]


def reinforce(setting: Setting, name: StageName, model: str, *, checkpoint: Path | None = None) -> Path:
    """A stage of GRPO, from its beginning or from one of its checkpoints; the folder of the model that comes out."""
    stage: Grpo = getattr(setting.train, name)
    folder = setting.folder(name)
    warnings = Warnings(setting.say)
    rewarder = make_rewarder(setting, folder)
    rewarder.executions = stage.executions
    rewarder.listeners.append(warnings.hear_samples)
    if name == "recursion":
        model = warm_up_for_recursion(setting, model)
    tokenizer, network = load(model)
    falling = FallingKl(stage.beta, stage.beta_free)
    metrics_file = setting.out / "metrics.jsonl"
    trainer = grpo_trainer(
        network,
        tokenizer,
        grpo_config(
            stage,
            setting.train,
            folder,
            cpu=setting.cpu,
            evaluate=bool(setting.eval_tasks),
            resumed=checkpoint is not None,
        ),
        stage_rows(setting, name),
        rewarder,
        eval_rows=eval_rows(setting, name),
        lora=setting.train.lora,
        callbacks=[
            PromptInCheckpoints(setting.prompt, setting.max_steps, rounds_of(name)),
            MetricLines(metrics_file, name, (*setting.listeners, warnings.hear_entry)),
            Reports(setting, folder),
            *([falling] if stage.beta else []),
        ],
        kind=RecursionTrainer if isinstance(stage, Recursion) else None,
        share=stage.share_prompts,
    )
    falling.trainer = trainer
    if isinstance(trainer, RecursionTrainer):
        trainer.rewarder, trainer.prompt, trainer.max_steps_of_workflow = rewarder, setting.prompt, setting.max_steps
    if checkpoint is not None:
        drop_lines_after(metrics_file, name, int(checkpoint.name.rpartition("-")[2]))
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    if not stage.refresh.steps:
        return save_model(setting, name, trainer.model, tokenizer)
    before = save_model(setting, name, trainer.model, tokenizer, folder="before-refresh")
    return refresh(setting, name, before)


def refresh(setting: Setting, name: StageName, model: Path) -> Path:
    """The supervised steps behind a stage, from the model that its rewards made; the folder of what comes out."""
    stage: Grpo = getattr(setting.train, name)
    setting.say(f"{name}: {stage.refresh.steps} supervised steps from {model}")
    tokenizer, network = load(str(model))
    if stage.share_prompts:
        share_prompts(network)
    rewarder = make_rewarder(setting, model, grades=False)
    rewarder.stage = f"{name} refresh"
    write = partial(_written_in_batches, setting, stage, (tokenizer, network))
    rows = refreshing_rows(setting, rewarder, write, name)
    _supervise(setting, stage.refresh, (tokenizer, network), rows, model)
    return save_model(setting, name, network, tokenizer)


def _supervise(
    setting: Setting, steps: Supervised, model: tuple[Any, Any], rows: list[dict[str, Any]], folder: Path
) -> None:
    """Supervised steps of a tokenizer and its network that belong to another stage, with metrics of their own."""
    tokenizer, network = model
    metrics = MetricLines(folder / "metrics.jsonl", f"{folder.parent.name} {folder.name}")
    warmup_trainer(
        network, tokenizer, rows, folder, warmup=steps, train=setting.train, cpu=setting.cpu, callbacks=[metrics]
    ).train()


def make_rewarder(setting: Setting, folder: Path, *, grades: bool = True) -> Rewarder:
    """What judges the completions of a stage, or only runs them."""
    train = setting.train
    ablation = Ablation(**train.ablation.model_dump())
    return Rewarder(
        {task.id: task for task in (*setting.tasks, *setting.eval_tasks)},
        setting.pool,
        Judge(max_steps=setting.max_steps, options=setting.options, ablation=ablation, grades=grades),
        Rewards(**train.reward.model_dump()),
        train.seed,
        train.concurrency,
        [SampleFiles(folder / "samples")],
        stage=folder.name,
        thought=train.warmup.thought if "warmup" in train.stages() and train.warmup.thought != "none" else None,
    )


def stage_rows(setting: Setting, name: StageName) -> list[dict[str, Any]]:
    """The rows of a stage: as many as it reads, so that it reads each once."""
    stage: Grpo = getattr(setting.train, name)
    rows = rows_of(
        setting.tasks,
        setting.pool,
        setting.prompt,
        count=stage.iterations * stage.questions,
        max_steps=setting.max_steps,
        draw=draw_of(setting, name),
    )
    if isinstance(stage, Recursion):
        return with_second_rounds(rows, share=stage.forced, discount=stage.discount)
    return rows


def eval_rows(setting: Setting, name: StageName) -> list[dict[str, Any]]:
    """The rows of an evaluation during a stage."""
    if not setting.eval_tasks:
        return []
    return rows_of(
        setting.eval_tasks,
        setting.pool,
        setting.prompt,
        count=len(setting.eval_tasks),
        max_steps=setting.max_steps,
        draw=draw_of(setting, name, more=1, unseen=True),
        split="eval",
    )


def load(model: str) -> tuple[Any, Any]:
    """Tokenizer and network of a folder or a name of the hub."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model, padding_side="left")
    return tokenizer, transformers.AutoModelForCausalLM.from_pretrained(model, dtype="auto")


def sharpen(network: Any, factor: float) -> None:
    """Multiply what the output layer gives, by scaling the last norm before it. Shapes stay."""
    if factor != 1.0:
        with torch.no_grad():
            network.model.norm.weight.mul_(factor)


def rounds_of(name: StageName) -> int:
    """How many revisions a stage trains for: a model that was never shown one makes answers worse by it."""
    return int(name == "recursion")


def save_model(setting: Setting, name: StageName, network: Any, tokenizer: Any, *, folder: str = "final") -> Path:
    """Keep the model that came out of a stage, with its prompt."""
    if hasattr(network, "merge_and_unload"):  # the next stage trains adapters of its own
        network = network.merge_and_unload()
    return _save(setting, setting.folder(name) / folder, network, tokenizer, rounds=rounds_of(name))


def _save(setting: Setting, folder: Path, network: Any, tokenizer: Any, *, rounds: int) -> Path:
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    save_prompt(folder, setting.prompt, max_steps=setting.max_steps, rounds=rounds)
    return folder


def between_numbers(listing: str) -> list[str]:
    """What stands between the digits of a listing again and again, sorted."""
    pieces = Counter(piece for line in listing.splitlines() for piece in re.split(r"\d+", line) if len(piece) > 1)
    return sorted(piece for piece, count in pieces.items() if count > 1)


def _texts(setting: Setting) -> Sequence[str]:
    """What the tokenizer is trained on."""
    rows = warmup_rows(setting, make_rewarder(setting, setting.out / "new", grades=False), count=_TOKENIZER_TEXTS)
    return [message["content"] for row in rows for message in (*row["prompt"], *row["completion"])]
