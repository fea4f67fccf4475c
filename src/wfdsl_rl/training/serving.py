"""A folder for serving, out of what a training made: whole weights, tokenizer, prompt, a card and how to serve it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import transformers

from wfdsl.conductor.checkpoint import FILE, load_prompt
from wfdsl.errors import UsageError
from wfdsl_rl.training.course import DONE
from wfdsl_rl.training.settings import STAGES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def export(folder: Path, out: Path, *, say: Callable[[str], None]) -> None:
    """Write a stage's model into a new folder; adapters are merged into the weights.

    Raises:
        UsageError: there is no model, or the new folder is not empty.
    """
    source = _model_folder(folder)
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty: take a new folder")
    trained = load_prompt(source)
    if trained is None:
        raise UsageError(f"{source} has no {FILE}: it was not made by wfdsl-train")
    network, tokenizer = _load(source)
    network.save_pretrained(out, safe_serialization=True)
    tokenizer.save_pretrained(out)
    shutil.copyfile(source / FILE, out / FILE)
    (out / "README.md").write_text(_card(source, out, network), encoding="utf-8")
    say(f"{source} -> {out}: {network.num_parameters():,} weights, prompt {trained.prompt.name}")
    say(f"ask it:   wfdsl solve --conductor {out} -q QUESTION")
    say(f"serve it: see {out / 'README.md'}")


def _model_folder(folder: Path) -> Path:
    """The folder itself, or that of the latest stage that is over."""
    candidates = [folder, *(folder / name / "final" for name in reversed(STAGES))]
    for each in candidates:
        if (each / "config.json").is_file() or (each / "adapter_config.json").is_file():
            return each
    raise UsageError(f"{folder} holds no model: give the folder of a training, or a stage's `final`")


def _load(source: Path) -> tuple[Any, Any]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    if (source / "adapter_config.json").is_file():
        from peft import AutoPeftModelForCausalLM  # noqa: PLC0415  (an optional package)

        return AutoPeftModelForCausalLM.from_pretrained(source).merge_and_unload(), tokenizer
    return transformers.AutoModelForCausalLM.from_pretrained(source, dtype="auto"), tokenizer


def _card(source: Path, out: Path, network: Any) -> str:
    resolved = _resolved(source)
    train = resolved.get("train", {})
    return f"""# A Conductor trained with wfdsl

| | |
|---|---|
| weights | {network.num_parameters():,} ({network.config.model_type}) |
| experiment | {resolved.get("experiment", "not known")} |
| trained on | {train.get("tasks", "not known")}, {train.get("task_count", "?")} tasks, seed {train.get("seed", "?")} |
| pool | {resolved.get("pool", {}).get("name", "not known")} |
| last stage | {_stage(source)} |

It is asked with the prompt in `{FILE}`, whose hash is checked: `wfdsl solve --conductor {out} -q QUESTION`.

## Serving

    vllm serve {out} --served-model-name conductor
    wfdsl solve --conductor openai:conductor --base-url http://localhost:8000/v1 --prompt {out / FILE} -q QUESTION

This recipe was not run against a vLLM server by the authors of wfdsl.

## Settings

```json
{json.dumps(train, indent=2)}
```
"""


def _resolved(source: Path) -> dict[str, Any]:
    for folder in source.parents:
        path = folder / "resolved.json"
        if path.is_file():
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found
    return {}


def _stage(source: Path) -> str:
    path = source / DONE
    return str(json.loads(path.read_text(encoding="utf-8"))["stage"]) if path.is_file() else "not known"
