"""The card of an exported model: what it is, what it was trained on, and what its training's evaluations say of it."""

from __future__ import annotations

import json
from importlib.resources import files
from math import sqrt
from pathlib import Path
from string import Template
from typing import Any, Final

from wfdsl.conductor.checkpoint import FILE
from wfdsl.evaluation.fingerprints import SIMULATED
from wfdsl_rl.training.config import STAGES
from wfdsl_rl.training.samples import Curve, Iteration
from wfdsl_rl.training.setup import DONE, RESOLVED

CARD: Final = "README.md"
GGUF: Final = "model.gguf"
_UNKNOWN: Final = "not known"
_ABOUT_GGUF: Final = f"""
`{GGUF}` holds the same weights, in the precision that was asked for. With the extra `local` of wfdsl, llama.cpp runs
it, and torch is not needed. With 32 bits, greedy completions are the same.
"""


def model_card(source: Path, network: Any, *, gguf: str | None) -> str:
    """The card of a stage's model, in Markdown, with the header that the Hugging Face hub reads."""
    resolved = _resolved(source)
    train = resolved.get("train", {})
    return Template((files("wfdsl_rl.training") / "model_card.md").read_text(encoding="utf-8")).substitute(
        base_model=_base_model(train),
        weights=f"{network.num_parameters():,}",
        architecture=network.config.model_type,
        start=_start(train),
        experiment=resolved.get("experiment", _UNKNOWN),
        tasks=train.get("tasks", _UNKNOWN),
        task_count=train.get("task_count", "?"),
        seed=train.get("seed", _UNKNOWN),
        pool=resolved.get("pool", {}).get("name", _UNKNOWN),
        stages=" -> ".join(stages_of(source)) or _UNKNOWN,
        prompt_file=FILE,
        gguf=_ABOUT_GGUF if gguf else "",
        evaluations=_evaluations(source, simulated=_is_simulated(resolved)),
        settings=json.dumps(train, indent=2),
    )


def stages_of(source: Path) -> list[str]:
    """The stages that led to a model, in their order, as far as its folder and those before it say."""
    return [str(json.loads((each / DONE).read_text(encoding="utf-8"))["stage"]) for each in folders_of(source)]


def folders_of(source: Path) -> list[Path]:
    """The folders of the stages that led to a model, in their order."""
    found: list[Path] = []
    while (path := source / DONE).is_file() and len(found) < len(STAGES):
        found.insert(0, source)
        source = Path(json.loads(path.read_text(encoding="utf-8"))["from"])
    return found


def _resolved(source: Path) -> dict[str, Any]:
    for folder in source.parents:
        path = folder / RESOLVED
        if path.is_file():
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found
    return {}


def _base_model(train: dict[str, Any]) -> str:
    """A line of the header, if the training began with a model of the hub."""
    model = train.get("model")
    return f"\nbase_model: {model}" if model and not Path(model).exists() else ""


def _start(train: dict[str, Any]) -> str:
    return str(train.get("model", _UNKNOWN))


def _is_simulated(resolved: dict[str, Any]) -> bool:
    return any(worker.get("provider") in SIMULATED for worker in resolved.get("pool", {}).get("workers", ()))


def _evaluations(source: Path, *, simulated: bool) -> str:
    """A table of each stage's first and last evaluation; empty without any."""
    rows = []
    for folder in folders_of(source):
        found = Curve(folder.parent / "samples", name="eval").all()
        rows += [_row(folder.parent.name, each) for each in found[:: max(1, len(found) - 1)]]
    if not rows:
        return ""
    about = " The workers are simulated, so no figure is about a real model." if simulated else ""
    return "\n".join(
        (
            "\n## Held-out tasks",
            "",
            f"The first and the last evaluation of each stage: one completion a task, with the standard error.{about}",
            "",
            "| stage | iteration | accuracy | valid | steps | tasks |",
            "|---|---:|---:|---:|---:|---:|",
            *rows,
            "",
        )
    )


def _row(stage: str, found: Iteration) -> str:
    accuracy = _UNKNOWN
    if found.accuracy is not None:
        error = sqrt(found.accuracy * (1 - found.accuracy) / found.count)
        accuracy = f"{100 * found.accuracy:.1f} ± {100 * error:.1f} %"
    steps = "-" if found.mean_steps is None else f"{found.mean_steps:.2f}"
    return f"| {stage} | {found.step} | {accuracy} | {100 * found.valid:.1f} % | {steps} | {found.count} |"
