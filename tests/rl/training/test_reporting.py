"""Metrics in the places where people look at trainings: TensorBoard and Weights & Biases, for every stage."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

for package in ("torch", "transformers", "trl", "tensorboard", "wandb"):
    pytest.importorskip(package, reason=f"needs {package}, in the extras rl and dev")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402

from tests.rl.training.toy import a_setup, with_stage  # noqa: E402
from wfdsl_rl.training.pipeline import run_pipeline  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*_checkpointing.*deprecated:FutureWarning"),
]


def test_each_stage_has_curves_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    setup = a_setup(tmp_path / "shown")
    train = with_stage(with_stage(setup.train, "sft", max_steps=10), "base", max_steps=2)
    train = replace(train, trl={"report_to": ["tensorboard", "wandb"]})

    run_pipeline(replace(setup, train=train), ("sft", "base"))

    assert "train/loss" in scalars(setup.folder("sft"))
    assert {"train/reward", "eval/reward"} <= scalars(setup.folder("base"))
    first, second = (path.read_bytes() for path in sorted(tmp_path.glob("wandb/offline-run-*/*.wandb")))
    kept = {name for name in ("shown-sft", "shown-base") if name.encode() in first}
    others = {name for name in ("shown-sft", "shown-base") if name.encode() in second}
    assert kept | others == {"shown-sft", "shown-base"}
    assert len(kept) == len(others) == 1


def scalars(folder: Path) -> set[str]:
    """The names of the curves in TensorBoard's files."""
    found = EventAccumulator(str(next(folder.rglob("events.out.tfevents.*")).parent))
    found.Reload()
    return set(found.Tags()["scalars"])
