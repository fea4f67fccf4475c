"""Export a trained model as a folder for serving: merged weights, tokenizer, prompt and model card."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import transformers

from wfdsl.conductor.checkpoint import FILE, load_prompt, save_prompt
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.fitted import TRAINING_COST
from wfdsl.evaluation.baselines.validation import FitCost
from wfdsl_rl.training.card import CARD, GGUF, folders_of, model_card, stages_of
from wfdsl_rl.training.checkpoints import ADAPTER, load_merged
from wfdsl_rl.training.config import STAGES
from wfdsl_rl.training.gguf_file import Precision, write_gguf
from wfdsl_rl.training.hub import push, require_pushable


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """Options of an export."""

    gguf: Precision | None = None
    """The precision of the GGUF file, which needs no torch; None: none is written."""
    figures: Path | None = None
    """A Markdown file that is appended to the card."""
    replace: bool = False
    """Whether the folder may replace an earlier export."""
    push: str | None = None
    """The repository of the Hugging Face hub that gets the folder too, as `OWNER/NAME`."""
    public: bool = False
    """Whether a repository that is made for it can be seen by all."""


def export(folder: Path, out: Path, extras: Extras | None = None, *, say: Callable[[str], None]) -> None:
    """Write a stage's model into a new folder, completely or not at all; adapters are merged into the weights.

    Raises:
        UsageError: there is no model, the folder exists already, a GGUF file cannot hold the model, or there is no
            token for the hub.
        NotPushed: the hub did not take the folder, which is complete.
    """
    extras = extras or Extras()
    transformers.utils.logging.disable_progress_bar()
    source = _model_folder(folder)
    _require_room(out, replace=extras.replace)
    trained = load_prompt(source)
    if trained is None:
        raise UsageError(f"{source} has no {FILE}: it was not made by wfdsl-train")
    figures = _figures(extras.figures)
    if extras.push is not None:
        require_pushable(extras.push)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as kept:
        made = Path(kept) / out.name
        network = _write_model(source, made, gguf=extras.gguf)
        save_prompt(made, trained.prompt, max_steps=trained.max_steps, max_rounds=_rounds(source))
        (made / CARD).write_text(model_card(source, network, gguf=extras.gguf) + figures, encoding="utf-8")
        if (cost := _training_cost(source)) is not None:
            (made / TRAINING_COST).write_text(json.dumps(asdict(cost)) + "\n", encoding="utf-8")
        for weights in made.glob("*.safetensors"):  # safetensors makes them readable for the owner only
            weights.chmod((made / CARD).stat().st_mode)
        if out.exists():
            out.rename(Path(kept) / "before")
        made.rename(out)
    say(f"{source} -> {out}: {network.num_parameters():,} weights, prompt {trained.prompt.name}")
    say(f"ask it:   wfdsl solve --conductor {out} -q QUESTION")
    say(f"serve it: see {out / CARD}")
    if extras.push is not None:
        say(f"pushed:   {push(out, extras.push, public=extras.public)}")


def _model_folder(folder: Path) -> Path:
    """The folder itself, or the latest complete stage's."""
    candidates = [folder, *(folder / name / "final" for name in reversed(STAGES))]
    for each in candidates:
        if (each / "config.json").is_file() or (each / ADAPTER).is_file():
            return each
    raise UsageError(f"{folder} does not hold a model: give the folder of a training, or a stage's `final`")


def _require_room(out: Path, *, replace: bool) -> None:
    """Refuse to write over anything but an earlier export."""
    if out.is_file():
        raise UsageError(f"{out} is a file: use a new folder")
    if not out.exists() or not any(out.iterdir()):
        return
    if not replace:
        raise UsageError(f"{out} is not empty: use a new folder, or add --replace if an earlier export is there")
    if not (out / FILE).is_file() or any(each.is_dir() for each in out.iterdir()):
        raise UsageError(f"{out} was not made by wfdsl-train export: --replace leaves it as it is")


def _figures(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return f"\n## Figures\n\n{path.read_text(encoding='utf-8').strip()}\n"
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: the figures cannot be read: {error}") from error


def _write_model(source: Path, made: Path, *, gguf: Precision | None) -> Any:
    """Write weights and tokenizer; the network."""
    network, tokenizer = _load(source)
    network.save_pretrained(made, safe_serialization=True)
    tokenizer.save_pretrained(made)
    _remove_unknown_tokens(made, network.config.vocab_size)
    if gguf:
        write_gguf(made / GGUF, network, transformers.AutoTokenizer.from_pretrained(made), precision=gguf)
    return network


def _load(source: Path) -> tuple[Any, Any]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    if (source / ADAPTER).is_file():
        return load_merged(source), tokenizer
    return transformers.AutoModelForCausalLM.from_pretrained(source, dtype="auto"), tokenizer


def _remove_unknown_tokens(folder: Path, vocabulary: int) -> None:
    """Remove tokens for which the model has no weights, so that no text can contain one.

    transformers adds a token for unknown text to every tokenizer of the Qwen2 architecture.
    """
    tokens, settings = folder / "tokenizer.json", folder / "tokenizer_config.json"
    plain = json.loads(tokens.read_text(encoding="utf-8"))
    unknown = {each["content"] for each in plain["added_tokens"] if each["id"] >= vocabulary}
    if not unknown:
        return
    plain["added_tokens"] = [each for each in plain["added_tokens"] if each["content"] not in unknown]
    tokens.write_text(json.dumps(plain, ensure_ascii=False, indent=2), encoding="utf-8")
    values = json.loads(settings.read_text(encoding="utf-8"))
    values |= {name: None for name, value in values.items() if isinstance(value, str) and value in unknown}
    settings.write_text(json.dumps(values, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _training_cost(source: Path) -> FitCost | None:
    """What the workers of a training have cost, evaluations left out; None if samples do not say."""
    costs: list[FitCost] = []
    for folder in folders_of(source):
        files = [
            file for name in ("step-*", "first-*") for file in (folder.parent / "samples").glob(f"{name}.jsonl.gz")
        ]
        rows = [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]
        costs += [FitCost(row["calls"], row["tokens"], row["usd"]) for row in rows]
    return sum(costs, FitCost()) if costs else None


def _rounds(source: Path) -> int | None:
    """How many revisions a model was trained for: the recursion stage teaches one; None: its folder does not say."""
    stages = stages_of(source)
    return int("recursion" in stages) if stages else None
