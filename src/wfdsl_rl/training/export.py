"""Export a trained model as a folder for serving: merged weights, tokenizer, prompt and model card."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Final

import transformers

from wfdsl.conductor.checkpoint import FILE, load_prompt, save_prompt
from wfdsl.errors import UsageError
from wfdsl.evaluation.manifest import TRAINING_COST, FitCost
from wfdsl_rl.training.checkpoints import ADAPTER, load_merged
from wfdsl_rl.training.gguf_file import Precision, write_gguf
from wfdsl_rl.training.plan import DONE, RESOLVED
from wfdsl_rl.training.samples import read_samples

CARD: Final = "README.md"
GGUF: Final = "model.gguf"


def export(folder: Path, out: Path, *, gguf: Precision | None = None, say: Callable[[str], None]) -> None:
    """Write a stage's model into a new folder, completely or not at all; adapters are merged into the weights.

    Args:
        folder: Of a training, or of a stage's model.
        out: The folder to make.
        gguf: The precision of a GGUF file, which needs no torch; None: none is written.
        say: Takes lines for people.

    Raises:
        UsageError: there is no model, the folder exists already, or a GGUF file cannot hold the model.
    """
    transformers.utils.logging.disable_progress_bar()
    source = _model_folder(folder)
    if out.exists() and (out.is_file() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty: use a new folder")
    trained = load_prompt(source)
    if trained is None:
        raise UsageError(f"{source} has no {FILE}: it was not made by wfdsl-train")
    stages = _stages(source)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as kept:
        made = Path(kept) / out.name
        network = _write_model(source, made, gguf=gguf)
        save_prompt(made, trained.prompt, max_steps=trained.max_steps, max_rounds=trained.max_rounds)
        (made / CARD).write_text(_card(stages, network, gguf=gguf), encoding="utf-8")
        if (cost := _training_cost(stages)) is not None:
            (made / TRAINING_COST).write_text(json.dumps(asdict(cost)) + "\n", encoding="utf-8")
        for weights in made.glob("*.safetensors"):  # safetensors makes them readable for the owner only
            weights.chmod((made / CARD).stat().st_mode)
        if out.exists():
            out.rmdir()
        made.rename(out)
    say(f"{source} -> {out}: {network.num_parameters():,} weights, prompt {trained.prompt.name}")
    say(f"ask it:   wfdsl solve --conductor {out} -q QUESTION")
    say(f"serve it: see {out / CARD}")


def _model_folder(folder: Path) -> Path:
    """The folder itself, or that of the latest complete stage."""
    finished = sorted(folder.glob(f"*/final/{DONE}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for each in (folder, *(path.parent for path in finished)):
        if (each / "config.json").is_file() or (each / ADAPTER).is_file():
            return each
    raise UsageError(f"{folder} does not hold a model: give the folder of a training, or a stage's `final`")


def _stages(source: Path) -> list[Path]:
    """The folders of the stages that led to a model, in their order."""
    found: list[Path] = []
    while (path := source / DONE).is_file() and source not in found:
        found.insert(0, source)
        source = Path(json.loads(path.read_text(encoding="utf-8"))["from"])
    return found


def _write_model(source: Path, made: Path, *, gguf: Precision | None) -> Any:
    """Write weights and tokenizer; the network."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    if (source / ADAPTER).is_file():
        network = load_merged(source)
    else:
        network = transformers.AutoModelForCausalLM.from_pretrained(source, dtype="auto")
    network.save_pretrained(made, safe_serialization=True)
    tokenizer.save_pretrained(made)
    if gguf:
        write_gguf(made / GGUF, network, tokenizer, precision=gguf)
    return network


def _training_cost(stages: list[Path]) -> FitCost | None:
    """What the workers of a training have cost, evaluations left out; None if samples do not say."""
    kept = [file for folder in stages for file in (folder.parent / "samples").glob("step-*.jsonl.gz")]
    rows = (row for file in kept for row in read_samples(file))
    costs = [FitCost(row["calls"], sum(row["tokens"].values()), row["cost_usd"]) for row in rows]
    return sum(costs, FitCost(0, 0, 0.0)) if costs else None


def _card(stages: list[Path], network: Any, *, gguf: str | None) -> str:
    """The model card, in Markdown, with the header that the Hugging Face hub reads."""
    out = stages[-1].parent.parent if stages else Path()
    resolved: dict[str, Any] = {}
    if (out / RESOLVED).is_file():
        resolved = json.loads((out / RESOLVED).read_text(encoding="utf-8"))
    train = resolved.get("train", {})
    model = train.get("model", "not known")
    return Template((files("wfdsl_rl.training") / "model_card.md").read_text(encoding="utf-8")).substitute(
        base_model=f"\nbase_model: {model}" if train and not Path(model).exists() else "",
        weights=f"{network.num_parameters():,}",
        architecture=network.config.model_type,
        start=model,
        tasks=train.get("tasks", "not known"),
        pool=resolved.get("pool", {}).get("name", "not known"),
        stages=" -> ".join(folder.parent.name for folder in stages) or "not known",
        prompt_file=FILE,
        gguf=f"\n`{GGUF}` holds the same weights for llama.cpp, in {gguf}; torch is not needed.\n" if gguf else "",
        settings=json.dumps(train, indent=2),
    )
