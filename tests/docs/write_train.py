"""The keys of [train], from the classes of its tables."""

from __future__ import annotations

from wfdsl.settings import options_of
from wfdsl_rl.training.config import GrpoStage, SftStage, Stage, TrainConfig

from .write_config import section

_STAGES = {"train.stages.NAME": Stage, "train.stages.NAME, kind sft": SftStage, "train.stages.NAME, GRPO": GrpoStage}


def train_keys() -> str:
    """A section for each table."""
    inner = {f"train.{each.name}": each.type for each in options_of(TrainConfig) if each.is_table}
    tables = {"train": TrainConfig, **inner, **_STAGES}
    known = options_of(Stage)
    return "\n\n".join(
        section(name, table, without=() if table is Stage else [each.name for each in known])
        for name, table in tables.items()
    )
