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
    from wfdsl_rl.training.plan import Setup

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "train.md"
SMALL = f"""
[pool]
use = "gym/seven"

[conductor]
prompt = "{PROMPT}"

[train]
model = "toy"
tasks = "toy"

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


def trained_with(settings: list[str], trained: Setup, folder: Path) -> tuple[Setup, list[dict[str, Any]]]:
    """The plan of a training with these settings, and the completions that were run in it."""
    (folder / "small.toml").write_text(SMALL, "utf-8")
    plan = read_plan(str(folder / "small.toml"), [setting.replace('"', "") for setting in settings])
    model = str(trained.folder("sft") / "final")
    changed = replace(
        trained,
        train=replace(plan.train, model=model),
        prompt=plan.prompt,
        experiment=plan.experiment,
        out=folder / "out",
    )
    run_pipeline(changed, ("base",))
    assert [entry["step"] for entry in metrics(changed) if "reward" in entry] == [1, 2]
    kept = [each for batch in samples(changed.folder("base") / "samples").values() for each in batch]
    return plan, [each for each in kept if each["workflow"] is not None]


def test_settings_of_the_table_take_from_the_conductor_and_change_rewards(trained: Setup, tmp_path: Path) -> None:
    settings = [each for each in shown() if each.startswith("train.") and not each.endswith("step=0")]

    plan, ran = trained_with(settings, trained, tmp_path)

    assert (plan.train.trl["loss_type"], plan.train.stages["base"].scale_rewards) == ("dapo", "none")
    assert {text for each in ran for text in each["workflow"]["subtasks"]} == {"Solve the question."}
    assert {worker for each in ran for worker in each["workflow"]["model_id"]} == {2}
    for each in ran:
        steps, outcomes = len(each["workflow"]["subtasks"]), each["outcomes"]
        assert each["reward"] == pytest.approx(outcomes.count("right") / 8 - 0.01 * steps)
        assert len(outcomes) == 8


def test_access_to_all_or_nothing_is_trained(trained: Setup, tmp_path: Path) -> None:
    settings = [each for each in shown() if each.startswith("conductor.access")]

    _, ran = trained_with(settings, trained, tmp_path)

    assert settings == ["conductor.access=binary"]
    assert all(access in ([], "all") for each in ran for access in each["workflow"]["access_list"])


def test_few_shot_sets_of_the_table_are_those_of_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL, "utf-8")
    names = [each.partition("=")[2] for each in shown() if each.startswith("conductor.examples")]

    plans = [read_plan(str(tmp_path / "small.toml"), [f"conductor.examples={name}"]) for name in names]

    assert len(names) == 4
    assert [plan.prompt.examples.name for plan in plans] == names
