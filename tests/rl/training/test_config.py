"""Presets, settings and what the command says, none of which needs torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.errors import UsageError
from wfdsl.settings import to_table
from wfdsl_rl.cli.train import main
from wfdsl_rl.training.config import GrpoConfig, LoraConfig, ModelSize, TrainConfig
from wfdsl_rl.training.estimate import GIB, INPUT_TOKENS, OUTPUT_TOKENS, PAPER_USD, STEPS, memory_of, pass_of
from wfdsl_rl.training.plan import preset_names, read_plan

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("preset", ["paper-7b", "paper-3b"])
def test_the_paper_presets_have_the_papers_numbers(preset: str) -> None:
    """Source: arXiv 2512.04388, section 4."""
    plan = read_plan(preset)
    base = plan.train.base

    assert (base.iterations, base.prompts_per_step, base.group_size, base.batch_size) == (200, 4, 64, 256)
    assert (base.learning_rate, base.schedule, base.warmup_ratio, base.adam_beta2) == (1e-6, "cosine", 0.03, 0.999)
    assert (base.epsilon, base.beta, base.loss, base.scale_rewards) == (0.2, 0.0, "grpo", "group")
    assert (base.temperature, base.max_completion_tokens) == (1.0, 1024)
    assert to_table(plan.train.reward) == {"invalid": 0.0, "wrong": 0.5, "right": 1.0, "step": 0.0}
    assert (plan.train.task_count, plan.max_steps, plan.train.stages()) == (960, 5, ("base", "pools", "recursion"))
    assert (plan.train.recursion.forced, plan.train.recursion.discount) == (0.5, 0.25)
    assert (plan.train.processes, plan.train.gpu_gib) == (2, 80.0)
    assert plan.prompt.examples.name == "out-of-distribution"
    assert len(plan.prompt.examples.examples) == 4
    assert len(plan.pool) == 7
    assert {entry.max_tokens for entry in plan.pool} == {4096}


def test_the_estimate_uses_the_papers_steps_tokens_and_cost() -> None:
    """Source: arXiv 2512.04388, section 5: 3 steps, 1820 tokens (of output, or of all) and $0.0238 a sample."""
    assert (STEPS, PAPER_USD) == (3, 0.0238)
    assert STEPS * OUTPUT_TOKENS <= 1820 <= STEPS * (INPUT_TOKENS + OUTPUT_TOKENS)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_whole(name: str) -> None:
    plan = read_plan(name)

    assert plan.train.stages()
    assert json.loads(json.dumps(plan.resolved()))["train"]["tasks"] == plan.train.tasks


def test_presets_are_those_that_the_documentation_names() -> None:
    assert preset_names() == (
        "gym",
        "gym-sft",
        "paper-3b",
        "paper-7b",
        "qwen2.5-0.5b-lora",
        "smollm2-135m",
    )


def test_prices_that_no_prompt_says_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gym", "--dry-run", "--set", "train.prices.low=0.01"]) == 2
    assert 'the template set "gym" does not say the effort' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.base.group_siz=8", 'train.base has no key "group_siz". Did you mean group_size?'),
        ("train.lora.rnk=8", 'train.lora has no key "rnk". Did you mean rank?'),
        ("train.bse.iterations=8", 'train has no key "bse". Did you mean base?'),
        ("train.sft.xyz=8", 'train.sft has no key "xyz". Known: steps, batch_size, learning_rate'),
        ("train.base.group_size=1", "train.base.group_size: "),
        ("train.base.micro_batch=7", "micro_batch 7 does not divide the 128 completions"),
        ("train.base.loss=3", "train.base.loss: "),
        ("trane.seed=1", 'there is no table "trane"'),
        ("train.base.loss=nonsense", "train.base.loss: there is no loss 'nonsense'; TRL has grpo, "),
        ("train.ablation.worker=9", "train.ablation.worker: the pool gym/seven has no worker 9; it has 0 to 6"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(setting: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["gym", "--dry-run", "--set", setting])

    assert code == 2
    assert message in capsys.readouterr().err


def test_more_workers_than_there_are_cannot_be_offered(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("train.pools.iterations=3", "train.pools.pick=[3, 9]")

    code = main(["gym", "--dry-run", *(word for setting in settings for word in ("--set", setting))])

    assert code == 2
    assert "train.pools.pick: of 7 workers, 1 to 7 can be offered" in capsys.readouterr().err


def test_a_stage_without_steps_cannot_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["smollm2-135m", "--dry-run", "--stage", "pools"])

    assert code == 2
    assert "train.pools.iterations is 0, so the stage pools has nothing to do" in capsys.readouterr().err


OF_ADAPTERS = 28 * (3584 + 3584 + 2 * (3584 + 512) + 3584 + 3584 + 3 * (3584 + 18944))
"""Weights of Qwen2.5-7B's adapters for each rank: of queries, keys and values, the output and the MLP."""
SEVEN = ModelSize(parameters=7.6e9, layers=28, width=3584, vocabulary=152064)


def parts(*, on_cpu: bool = False, **options: Any) -> dict[str, float]:
    """GiB of the stage `base`, with rows of 2,024 tokens."""
    train = TrainConfig(model="x", tasks="y", **{"base": GrpoConfig(micro_batch=8), **options})
    return memory_of(train, SEVEN, "base", pass_of(train, "base", 1000), on_cpu=on_cpu).parts


def test_memory_is_that_of_how_the_weights_are_trained_and_divided() -> None:
    whole = parts()
    assert whole["weights"] == pytest.approx(4 * 7.6e9 / GIB)
    assert whole["optimizer"] == 2 * whole["weights"] == 2 * whole["gradients"]
    assert parts(processes=8, sharding="fsdp")["weights"] == pytest.approx(whole["weights"] / 8)
    assert parts(sharding="fsdp")["weights"] == whole["weights"]  # one process divides nothing
    assert parts(base=GrpoConfig(micro_batch=8, beta=0.1))["weights"] == 2 * whole["weights"]  # the reference
    assert "weights" not in parts(processes=2, sharding="fsdp", offload=True)
    assert parts(trl={"use_vllm": True, "vllm_gpu_memory_utilization": 0.25})["vLLM"] == 20.0
    assert "vLLM" not in parts(trl={"use_vllm": True, "vllm_mode": "server"})


@pytest.mark.parametrize("rank", [16, 256])
def test_adapters_need_as_much_as_their_rank_says_beside_frozen_weights(rank: int) -> None:
    lora, of_adapters = LoraConfig(rank=rank), OF_ADAPTERS * rank / GIB
    plain, cpu = parts(lora=lora), parts(lora=lora, on_cpu=True)

    assert plain["optimizer"] == pytest.approx(8 * of_adapters, rel=0.01)
    assert plain["weights"] == pytest.approx(2 * 7.6e9 / GIB + 4 * of_adapters, rel=0.01)
    for mode in ("colocate", "server"):  # for vLLM, adapters are added to 32-bit weights
        merged = parts(lora=lora, trl={"use_vllm": True, "vllm_mode": mode})
        assert merged["weights"] == cpu["weights"] == pytest.approx(plain["weights"] + 2 * 7.6e9 / GIB)


def test_activations_grow_with_the_completions_of_a_pass_and_are_kept_on_a_cpu() -> None:
    one, two, eight = (parts(base=GrpoConfig(micro_batch=rows))["activations"] for rows in (1, 2, 8))

    assert two == pytest.approx(2 * one)
    assert 4 * one < eight < 8 * one  # logits have a largest tile
    assert parts(on_cpu=True)["activations"] > 10 * eight


def test_what_was_measured_of_smollm2_is_near_what_the_dry_run_says(capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for stage in ("base", "sft"):
        assert main(["smollm2-135m", "--dry-run", "--json", "--stage", stage]) == 0
        memory = json.loads(capsys.readouterr().out)["memory"]
        if not memory["on_cpu"]:
            pytest.skip("this machine has a GPU")
        found[stage] = memory["gib"]

    assert found["base"] == pytest.approx(11.4, rel=0.25)  # resident memory at its highest, 16 iterations
    assert found["sft"] == pytest.approx(5.5, rel=0.25)


def test_a_dry_run_says_that_a_model_does_not_fit_and_what_to_change(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["paper-7b", "--dry-run", "--set", "train.offload=false"])

    out = capsys.readouterr().out
    assert code == 0
    assert "more than the 80 GiB of a GPU" in out
    assert "use more GPUs (train.processes), train.offload, train.lora" in out


def test_offloading_needs_sharding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper-7b", "--dry-run", "--set", "train.sharding=none"]) == 2

    assert "train.offload moves what is divided among processes" in capsys.readouterr().err


def test_a_dry_run_shows_a_prompt_and_what_it_would_need(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("conductor.max_steps=3", "train.base.iterations=10", "train.eval_count=256")
    code = main(["gym", "--dry-run", "--json", *(word for setting in settings for word in ("--set", setting))])

    shown = json.loads(capsys.readouterr().out)
    assert code == 0
    assert shown["completions"] == 10 * 16 * 8
    assert shown["runs"] == 4 * shown["completions"] + 256  # an evaluation before the first iteration
    assert shown["calls"] == 3 * shown["runs"]
    assert shown["usd"] > 0
    assert shown["simulated"]
    assert "1: medium" in shown["prompt"]
    assert not [line for line in shown["missing"] if line.startswith("tasks")]


def test_a_dry_run_counts_the_candidates_of_rejection_sampling(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("rows=", "candidates=4", "steps=100", "batch_size=16", "kept=0.5")
    words = [word for setting in settings for word in ("--set", f"train.sft.{setting}")]

    assert main(["gym-sft", "--dry-run", "--json", *words]) == 0

    assert json.loads(capsys.readouterr().out)["runs_by_purpose"]["rejection sampling"] == 4 * 100 * 16 / 0.5


def test_a_dry_run_of_the_paper_counts_its_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mix = tmp_path / "mix.jsonl"
    mix.write_text('{"id": "a", "question": "What is 2 + 2?", "gold": "4", "kind": "math"}\n', encoding="utf-8")

    code = main(["paper-7b", "--dry-run", "--set", f"train.tasks={mix}"])

    out = capsys.readouterr().out
    assert code == 0
    assert "about 61,440 workflows: 61,440 for completions\n" in out
    assert "calls        about 184,320 (3 steps per workflow)" in out
    assert "What is 2 + 2?" in out
    assert "Nothing was started." in out


def test_a_dry_run_of_the_paper_is_a_page_that_says_what_is_missing(
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
    assert "mix.jsonl: there is no such file; write it with `wfdsl data select`" in out
    assert "set the environment variable OPENAI_API_KEY" in out
    assert "at the paper's $0.0238 a workflow, $1,462.27" in out
    assert "launch       torchrun --nproc_per_node 2 -m wfdsl_rl.cli.train paper-7b" in out
    assert "of 80 GiB" in out


def test_the_cost_of_simulated_workers_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gym", "--dry-run"]) == 0

    assert "$0: the workers are simulated" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no experiment given"),
        (["no-such-preset"], "there is no preset and no file 'no-such-preset'; presets are gym, gym-sft"),
        (["--resume", "nowhere"], "nowhere does not hold a training"),
        (["gym", "--resume", "nowhere"], "remove the experiment"),
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

    code = main(arguments)

    assert code == 2
    assert message in capsys.readouterr().err


def test_a_file_without_the_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[pool]\nuse = "local"\n', encoding="utf-8")

    with pytest.raises(UsageError, match=r"the table \[train\] is missing"):
        read_plan(str(path))


def test_stages_without_steps_are_left_out() -> None:
    assert TrainConfig(model="m", tasks="x").stages() == ("base",)
    settings = TrainConfig.model_validate(
        {"model": "m", "tasks": "x", "sft": {"steps": 1}, "recursion": {"iterations": 2}}
    )
    assert settings.stages() == ("sft", "base", "recursion")
