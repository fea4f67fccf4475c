"""What `wfdsl-train export` makes of a training's model, and what it refuses."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.conductor.checkpoint import save_prompt
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.named import named_conductor

torch = pytest.importorskip("torch", reason="needs torch, in the extra rl")
transformers = pytest.importorskip("transformers", reason="needs transformers, in the extra rl")
pytest.importorskip("gguf", reason="needs gguf, in the extra rl")

from tests.rl.training.random_model import make_model, make_tokenizer, save_new  # noqa: E402  (it needs torch)
from wfdsl_rl.cli.train import main  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl.conductor.prompt import Prompt

MADE = [
    "README.md",
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.gguf",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "wfdsl-prompt.json",
]


@pytest.fixture
def training(tmp_path: Path, prompt: Prompt) -> Path:
    """The folder of a training whose stages warm-up and base are over."""
    folder = tmp_path / "runs" / "one"
    previous = "start/model"
    for seed, stage in enumerate(("sft", "base")):
        final = folder / stage / "final"
        _keep_model(final, prompt, seed=seed)
        (final / "done.json").write_text(json.dumps({"stage": stage, "from": previous}), encoding="utf-8")
        previous = str(final)
    train = {"model": "start/model", "tasks": "gym/seven", "task_count": 77, "seed": 5}
    resolved = {"experiment": "gym", "pool": {"name": "gym/seven"}, "train": train}
    (folder / "resolved.json").write_text(json.dumps(resolved), encoding="utf-8")
    return folder


def _keep_model(folder: Path, prompt: Prompt, *, seed: int, width: int = 64) -> None:
    tokenizer = make_tokenizer(["What is 2 times 3?"], vocabulary=300)
    save_new(folder, make_model(tokenizer, width=width, inner=8, layers=1, heads=2, seed=seed), tokenizer)
    loaded = transformers.AutoTokenizer.from_pretrained(folder)  # as stages load and save it
    loaded.save_pretrained(folder)
    save_prompt(folder, prompt, max_steps=5)


def test_the_latest_stage_becomes_a_folder_that_every_runtime_loads(training: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    code = main(["export", str(training), "-o", str(out), "--gguf"])

    assert code == 0
    assert sorted(path.name for path in out.iterdir()) == MADE
    assert all(path.stat().st_mode & 0o004 for path in out.iterdir())
    assert _weights(out) == _weights(training / "base" / "final")
    assert list(out.parent.glob(".out*")) == []
    card = (out / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlibrary_name: transformers\n")
    for said in ("start/model", "gym/seven", "sft -> base", "vllm serve", '"task_count": 77', "llama.cpp"):
        assert said in card


def _weights(folder: Path) -> dict[str, Any]:
    network = transformers.AutoModelForCausalLM.from_pretrained(folder)
    return {name: each.tolist() for name, each in network.state_dict().items()}


def test_what_is_in_the_way_stays(training: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("years", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))

    assert main(["export", str(training), "-o", str(out)]) == 2

    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("rounds", [0, 1])
def test_an_export_is_asked_as_it_was_trained_and_revises_only_if_it_learned_to(
    training: Path, tmp_path: Path, prompt: Prompt, rounds: int
) -> None:
    save_prompt(training / "base" / "final", prompt, max_steps=5, max_rounds=rounds)

    main(["export", str(training), "-o", str(tmp_path / "out")])

    settings = named_conductor(ConductorConfig(model=str(tmp_path / "out"))).settings
    assert (settings.prompt, settings.max_steps, settings.max_rounds) == (prompt, 5, rounds)


def test_an_export_says_what_the_workers_of_its_training_have_cost(training: Path, tmp_path: Path) -> None:
    batches = {"base/samples/step-000001": [(3, 100, 0.5), (2, 50, 0.25)], "sft/samples/step-000001": [(4, 40, 0.25)]}
    for name, rows in batches.items():
        (training / name).parent.mkdir(exist_ok=True)
        lines = [
            json.dumps({"calls": calls, "tokens": {"all": tokens}, "cost_usd": usd}) for calls, tokens, usd in rows
        ]
        (training / f"{name}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))

    main(["export", str(training), "-o", str(tmp_path / "out")])

    cost = json.loads((tmp_path / "out" / "training_cost.json").read_text(encoding="utf-8"))
    assert cost == {"calls": 9, "tokens": 190, "usd": 1.0}
