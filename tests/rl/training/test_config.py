"""Presets, settings and what the command says, none of which needs torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.rl.training.qwen import SEVEN
from wfdsl.cli.main import parsed
from wfdsl.settings import options_of, to_table
from wfdsl_rl.cli.train import main
from wfdsl_rl.scoring import Ablation, RewardValues
from wfdsl_rl.training.config import GrpoStage, LoraConfig, SftStage, TrainConfig
from wfdsl_rl.training.estimate import GIB, INPUT_TOKENS, OUTPUT_TOKENS, PAPER_USD, STEPS, memory_of
from wfdsl_rl.training.plan import preset_names, read_plan

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("preset", ["paper-7b", "paper-3b"])
def test_the_paper_presets_have_the_papers_numbers(preset: str) -> None:
    """Source: arXiv 2512.04388, section 4."""
    plan = read_plan(preset)
    base, recursion = plan.train.stages["base"], plan.train.stages["recursion"]

    assert (base.max_steps, base.prompts_per_step, base.num_generations, base.batch_size) == (200, 4, 64, 256)
    assert (base.learning_rate, base.lr_scheduler_type, base.warmup_steps) == (1e-6, "cosine", 0.03)
    assert (base.beta, base.scale_rewards, base.max_completion_length) == (0.0, "group", 1024)
    assert to_table(plan.train.reward) == {"invalid": 0.0, "wrong": 0.5, "right": 1.0, "step": 0.0}
    assert (plan.train.task_count, plan.max_steps, [*plan.train.stages]) == (960, 5, ["base", "pools", "recursion"])
    assert (recursion.forced, recursion.discount, plan.train.processes) == (0.5, 0.25, 2)
    assert plan.prompt.examples.name == "out-of-distribution"
    assert len(plan.prompt.examples.examples) == 4
    assert len(plan.pool) == 7
    assert {entry.max_tokens for entry in plan.pool} == {4096}


def test_the_estimate_uses_the_papers_steps_tokens_and_cost() -> None:
    """Source: arXiv 2512.04388, section 5: 3 steps, 1820 tokens (of output, or of all) and $0.0238 a sample."""
    assert (STEPS, PAPER_USD) == (3, 0.0238)
    assert STEPS * OUTPUT_TOKENS <= 1820 <= STEPS * (INPUT_TOKENS + OUTPUT_TOKENS)


def test_presets_are_those_that_the_documentation_names_and_whole() -> None:
    names = "gym gym-second gym-sft gym-stages paper-3b paper-7b qwen2.5-0.5b-lora smollm2-135m"
    assert " ".join(preset_names()) == names
    for plan in map(read_plan, preset_names()):
        assert plan.train.stages
        assert json.loads(json.dumps(plan.resolved()))["train"]["tasks"] == plan.train.tasks


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.stages.base.num_generation=8", 'base has no key "num_generation". Did you mean num_generations?'),
        ("train.lora.rnk=8", 'train.lora has no key "rnk". Known: r, lora_alpha'),
        ("train.stage.iterations=8", 'train has no key "stage". Did you mean stages?'),
        ("train.stages.base.num_generations=1", "train.stages.base.num_generations must be "),
        ("train.stages.base.max_steps=0", "train.stages.base.max_steps must be "),
        ("train.stages.base.per_device_train_batch_size=7", "cannot share 128 completions evenly, 7 at a time"),
        ("train.stages.more.kind=sft", "train.stages.more.rows must be given"),
        ("trane.seed=1", 'there is no table "trane"'),
        ("train.trl.max_steps=3", "train.trl.max_steps: set train.stages.NAME.max_steps instead"),
        ("train.trl.num_generations=2", "set train.stages.NAME.num_generations instead"),
        ("train.trl.output_dir=x", "set --out instead"),
        ("train.trl.seed=3", "set train.seed instead"),
        ("train.trl.use_cpu=true", "train.trl.use_cpu is fixed"),
        ("train.trl.eval_strategy=steps", "train.trl.eval_strategy is fixed"),
        ("train.trl.num_iterations=2", "train.trl.num_iterations is fixed"),
        ("train.trl.logging_strategy=no", "train.trl.logging_strategy is fixed"),
        ("train.trl.gradient_checkpointing=true", "set train.trl.activation_checkpointing instead"),
        ("train.trl.activation_checkpointing=true", "train.prefix_cache: set it to false"),
        ("train.stages={'..' = {}}", "train.stages: '..' cannot be the folder of a stage"),
        ("train.seed=-1", "train.seed must be at least 0"),
        ("train.reward=x", "train.reward"),
        ("train.fsdp=on", "train.prefix_cache: set it to false"),
        ("conductor.pick=2", "conductor.pick"),
        ("conductor.shuffle=true", "conductor.shuffle"),
        ("conductor.max_rounds=2", "conductor.max_rounds"),
        ("conductor.seed=3", "conductor.seed"),
        ("conductor.model=local", "conductor.model"),
        ("conductor.effort=low", "conductor.effort"),
        ("conductor.temperature=0.5", "conductor.temperature"),
        ("train.ablation.worker=9", "train.ablation.worker: the pool gym/seven has no worker 9; it has 0, 1, 2, 3"),
        ("train.stages.base.pick=[3, 9]", "train.stages.base.pick: of 7 workers, 1 to 7 can be offered"),
        ("train.processes=3", "3 processes cannot share 128 completions evenly"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(setting: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["gym", "--dry-run", "--set", setting])

    assert code == 2
    assert message in capsys.readouterr().err


def test_keys_are_few_and_those_of_trl_have_its_names_and_types() -> None:
    tables = (TrainConfig, RewardValues, Ablation, LoraConfig)
    top = [each.name for table in tables for each in options_of(table) if not each.is_table]
    of_stages = {each.name for stage in (SftStage, GrpoStage) for each in options_of(stage)}

    assert len({*top} - {"trl", "stages"}) + len(of_stages) <= 45
    assert all(hasattr(parsed(["serve", "--score"]), each.name) for each in options_of(RewardValues))


def test_a_setting_can_change_one_stage_and_stages_keep_their_order() -> None:
    plan = read_plan("paper-7b", ["train.stages.pools.max_steps=7"])

    assert [(name, stage.max_steps) for name, stage in plan.train.stages.items()] == [
        ("base", 200),
        ("pools", 7),
        ("recursion", 20),
    ]


OF_ADAPTERS = 28 * (3584 + 3584 + 2 * (3584 + 512) + 3584 + 3584 + 3 * (3584 + 18944))
"""Weights of Qwen2.5-7B's adapters for each rank: of queries, keys and values, the output and the MLP."""
WEIGHTS = 7.615e9
"""Of Qwen2.5-7B, as its card says: 7.61 billion."""


def parts(**options: Any) -> dict[str, float]:
    """GiB of a stage."""
    train = TrainConfig(model="x", tasks="y", stages={"base": GrpoStage(**options.pop("stage", {}))}, **options)
    return memory_of(train, SEVEN, "base")


def test_memory_is_that_of_how_the_weights_are_trained_and_divided() -> None:
    whole = parts()
    assert whole["weights"] == pytest.approx(4 * WEIGHTS / GIB, rel=1e-3)
    assert whole["optimizer"] == 2 * whole["weights"] == 2 * whole["gradients"]
    assert parts(processes=8, fsdp="on")["weights"] == pytest.approx(whole["weights"] / 8)
    assert parts(fsdp="on")["weights"] == whole["weights"]  # one process divides nothing
    assert parts(stage={"beta": 0.1})["weights"] == 2 * whole["weights"]  # the reference
    assert "weights" not in parts(processes=2, fsdp="offload")
    assert parts(trl={"use_vllm": True, "vllm_gpu_memory_utilization": 0.25})["vLLM"] == 20.0
    assert "vLLM" not in parts(trl={"use_vllm": True, "vllm_mode": "server"})


@pytest.mark.parametrize("rank", [16, 256])
def test_adapters_need_as_much_as_their_rank_says_beside_frozen_weights(rank: int) -> None:
    found, of_adapters = parts(lora=LoraConfig(r=rank)), OF_ADAPTERS * rank / GIB

    assert found["optimizer"] == pytest.approx(8 * of_adapters, rel=0.01)
    assert found["weights"] == pytest.approx(4 * WEIGHTS / GIB + 4 * of_adapters, rel=0.01)


def test_a_dry_run_shows_a_prompt_and_what_it_would_need(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("conductor.max_steps=3", "train.stages.base.max_steps=10")
    code = main(["gym", "--dry-run", "--json", *(word for setting in settings for word in ("--set", setting))])

    shown = json.loads(capsys.readouterr().out)
    assert code == 0
    assert shown["completions"] == 10 * 16 * 8
    assert shown["runs"] == 4 * shown["completions"]
    assert shown["calls"] == 3 * shown["runs"]
    assert shown["usd"] > 0
    assert shown["simulated"]
    assert "1: birch" in shown["prompt"]
    assert not [line for line in shown["missing"] if line.startswith("tasks")]


def test_a_dry_run_counts_the_candidates_of_rejection_sampling(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("rows=random", "candidates=4", "max_steps=100", "prompts_per_step=16", "kept=0.5")
    words = [word for setting in settings for word in ("--set", f"train.stages.sft.{setting}")]

    assert main(["gym-sft", "--dry-run", "--json", *words]) == 0

    assert json.loads(capsys.readouterr().out)["runs"] == 4 * 100 * 16 / 0.5


def test_a_dry_run_of_the_paper_is_a_page_with_its_calls_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a new machine: no tasks, keys or GPUs."""
    monkeypatch.chdir(tmp_path)
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(variable, raising=False)

    code = main(["paper-7b", "--dry-run"])

    out = capsys.readouterr().out
    assert code == 0
    assert len(out.splitlines()) <= 60
    assert "about 61,440 workflows\n" in out
    assert "calls        about 184,320 (3 steps per workflow)" in out
    assert "mix.jsonl: there is no such file; write it with `wfdsl data select`" in out
    assert "set the environment variable OPENAI_API_KEY" in out
    assert "$1,462.27" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no experiment given"),
        (["mine.toml"], "the table [train] is missing"),
        (["no-such-preset"], "there is no preset and no file 'no-such-preset'; presets are gym, gym-second"),
        (["--resume", "nowhere"], "nowhere does not hold a training"),
        (["--resume", "nowhere", "--stage", "pools"], "remove the experiment, --stage"),
        (["smollm2-135m", "--dry-run", "--stage", "pools"], "there is no stage 'pools'; train.stages has sft, base"),
        (["gym", "--json"], "add --dry-run"),
        (["export", "nowhere", "-o", "out"], "nowhere does not hold a model"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_exit_code(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if arguments[:1] == ["export"]:
        pytest.importorskip("transformers", reason="needs transformers, in the extra rl")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('[pool]\nuse = "local"\n', encoding="utf-8")

    code = main(arguments)

    assert code == 2
    assert message in capsys.readouterr().err
