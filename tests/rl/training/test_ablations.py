"""The ablations, with the settings that the documentation gives for them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

from tests.rl.training.toy import PROMPT, metrics, samples  # noqa: E402
from wfdsl_rl.training.pipeline import run_pipeline  # noqa: E402
from wfdsl_rl.training.plan import read_plan  # noqa: E402

if TYPE_CHECKING:
    from wfdsl_rl.training.plan import Plan, Setup

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*_checkpointing.*deprecated:FutureWarning"),  # trl's use of transformers
]

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "train.md"
SMALL = f"""
[pool]
use = "gym/seven"

[conductor]
prompt = "{PROMPT}"

[train]
model = "toy"
tasks = "toy"
eval_count = 0

[train.stages.base]
max_steps = 2
prompts_per_step = 2
num_generations = 4
max_completion_length = 40
"""
"""A training of the toy, but for what an ablation changes. Its pool only stands in for the toy's."""


def shown() -> list[str]:
    """The settings of the table of ablations, each as it is typed."""
    table = PAGE.read_text(encoding="utf-8").partition("## Ablations")[2]
    return re.findall(r"`--set ([^`]+)`", table)


def planned_with(setting: str, folder: Path) -> Plan:
    path = folder / "small.toml"
    path.write_text(SMALL, "utf-8")
    return read_plan(str(path), [setting.replace('"', "")])


def test_the_table_names_every_ablation() -> None:
    keys = {setting.partition("=")[0] for setting in shown()}

    assert keys == {
        "train.ablation.instruction",
        "train.ablation.worker",
        "conductor.access",
        "conductor.examples",
        "train.stages.base.executions",
        "train.trl.loss_type",
        "train.stages.base.scale_rewards",
        "train.reward.step",
        "train.reward.wrong",
    }


@pytest.mark.parametrize("setting", shown())
def test_an_ablation_is_trained_with(setting: str, trained: Setup, tmp_path: Path) -> None:
    plan = planned_with(setting, tmp_path)
    model = str(trained.folder("sft") / "final")
    changed = replace(
        trained,
        train=replace(plan.train, model=model),
        prompt=plan.prompt,
        conductor=plan.experiment.conductor,
        eval_tasks=(),
        out=tmp_path / "out",
    )

    run_pipeline(changed, ("base",))

    assert [entry["step"] for entry in metrics(changed) if "reward" in entry] == [1, 2]
    kept = [each for batch in samples(changed.folder("base") / "samples").values() for each in batch]
    assert_ablated(setting, [each for each in kept if each["workflow"] is not None], changed)


def assert_ablated(setting: str, ran: list[dict[str, Any]], changed: Setup) -> None:
    """The completions that were run show what was taken from the Conductor."""
    key, _, value = setting.partition("=")
    if key == "train.ablation.instruction":
        assert ran
        assert {text for each in ran for text in each["workflow"]["subtasks"]} == {value.strip('"')}
    elif key == "train.ablation.worker":
        assert ran
        assert {worker for each in ran for worker in each["workflow"]["model_id"]} == {int(value)}
    elif key == "conductor.access":
        assert all(access in ([], "all") for each in ran for access in each["workflow"]["access_list"])
    elif key == "train.stages.base.executions":
        assert {len(each["outcomes"]) for each in ran} == {int(value)}
    elif key == "conductor.examples":
        assert changed.prompt.examples.name == value
    elif key == "train.reward.wrong":
        assert {each["reward"] for each in ran if each["outcome"] == "wrong"} <= {float(value)}
