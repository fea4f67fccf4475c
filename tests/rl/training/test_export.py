"""What `wfdsl-train export` makes of a training's model, and what it refuses."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.conductor.checkpoint import save_prompt
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.named import named_conductor

torch = pytest.importorskip("torch", reason="needs torch, in the extra rl")
transformers = pytest.importorskip("transformers", reason="needs transformers, in the extra rl")
pytest.importorskip("gguf", reason="needs gguf, in the extra rl")

from tests.rl.training.hub import Hub  # noqa: E402
from tests.rl.training.random_model import make_model, make_tokenizer, save_new  # noqa: E402  (it needs torch)
from wfdsl_rl.cli.train import main  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_httpserver import HTTPServer

    from wfdsl.conductor.prompt import Prompt
    from wfdsl_rl.training.plan import Setup

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
    figures = tmp_path / "figures.md"
    figures.write_text("| accuracy | 0.7 |\n", encoding="utf-8")
    out = tmp_path / "out"

    code = main(["export", str(training), "-o", str(out), "--gguf", "--figures", str(figures)])

    assert code == 0
    assert sorted(path.name for path in out.iterdir()) == MADE
    assert all(path.stat().st_mode & 0o004 for path in out.iterdir())
    assert _weights(out) == _weights(training / "base" / "final")
    assert list(out.parent.glob(".out*")) == []


def _weights(folder: Path) -> dict[str, Any]:
    network = transformers.AutoModelForCausalLM.from_pretrained(folder)
    return {name: each.tolist() for name, each in network.state_dict().items()}


def test_the_card_says_where_the_model_comes_from(training: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures.md"
    figures.write_text("| accuracy | 0.7 |\n", encoding="utf-8")

    main(["export", str(training), "-o", str(tmp_path / "out"), "--gguf", "--figures", str(figures)])

    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    for line in (
        "| started from | start/model |",
        "| trained on | gym/seven, 77 tasks |",
        "| seed | 5, for weights, tasks and rollouts |",
        "| stages | sft -> base |",
        "vllm serve FOLDER",
        '"task_count": 77',
        "llama.cpp",
    ):
        assert line in card
    assert card.endswith("## Figures\n\n| accuracy | 0.7 |\n")


def test_no_text_leads_to_a_token_without_weights(training: Path, tmp_path: Path) -> None:
    assert max(_tokens(training / "base" / "final")) < _vocabulary(training / "base" / "final")
    other = tmp_path / "other"  # another tokenizer's name for its padding: transformers adds its own
    shutil.copytree(training, other)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        path = other / "base" / "final" / name
        plain = path.read_text(encoding="utf-8").replace("<|endoftext|>", "<|pad|>")
        path.write_text(plain.replace('"unk_token": "<|pad|>"', '"unk_token": "<|endoftext|>"'), encoding="utf-8")
    assert max(_tokens(other / "base" / "final")) >= _vocabulary(other / "base" / "final")

    main(["export", str(other), "-o", str(tmp_path / "out")])

    assert max(_tokens(tmp_path / "out")) < _vocabulary(tmp_path / "out")
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "out").decode(_tokens(tmp_path / "out")) == STRANGE


STRANGE = "a <|endoftext|> b"


def _tokens(folder: Path) -> list[int]:
    found: list[int] = transformers.AutoTokenizer.from_pretrained(folder)(STRANGE)["input_ids"]
    return found


def _vocabulary(folder: Path) -> int:
    found: int = json.loads((folder / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    return found


def test_an_earlier_export_is_replaced_only_when_asked(
    training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", str(training), "-o", str(tmp_path / "out")]
    assert main([*command, "--gguf"]) == 0

    assert main(command) == 2
    assert "add --replace if an earlier export is there" in capsys.readouterr().err
    assert (tmp_path / "out" / "model.gguf").is_file()
    assert main([*command, "--replace"]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [name for name in MADE if name != "model.gguf"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--replace"], "was not made by wfdsl-train export"),
        (["--figures", "nowhere.md"], "nowhere.md: the figures cannot be read"),
    ],
)
def test_what_is_in_the_way_stays(
    training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    out = tmp_path / "mine"
    if "--replace" in more:
        out.mkdir()
        (out / "thesis.txt").write_text("years", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))

    code = main(["export", str(training), "-o", str(out), *more])

    assert code == 2
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(("last", "rounds"), [("base", 0), ("recursion", 1), (None, 1)])
def test_an_export_is_asked_as_it_was_trained_and_revises_only_if_it_learned_to(
    training: Path, tmp_path: Path, prompt: Prompt, last: str | None, rounds: int
) -> None:
    done = training / "base" / "final" / "done.json"
    if last is None:
        done.unlink()
    else:
        done.write_text(json.dumps({"stage": last, "from": "start/model"}), encoding="utf-8")

    main(["export", str(training), "-o", str(tmp_path / "out")])

    settings = named_conductor(ConductorConfig(model=str(tmp_path / "out"))).settings
    assert (settings.prompt, settings.max_steps, settings.max_rounds) == (prompt, 5, rounds)


def test_an_export_says_what_the_workers_of_its_training_have_cost(training: Path, tmp_path: Path) -> None:
    batches = {
        "base/samples/step-000001": [(3, 100, 0.5), (2, 50, 0.25)],
        "base/samples/first-000001": [(1, 10, 0.0)],
        "sft/samples/step-000001": [(4, 40, 0.25)],
    }
    for name, rows in batches.items():
        (training / name).parent.mkdir(exist_ok=True)
        lines = [json.dumps({"calls": calls, "tokens": tokens, "usd": usd}) for calls, tokens, usd in rows]
        (training / f"{name}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))

    main(["export", str(training), "-o", str(tmp_path / "out")])

    cost = json.loads((tmp_path / "out" / "training_cost.json").read_text(encoding="utf-8"))
    assert cost == {"calls": 10, "tokens": 200, "usd": 1.0}


LIBRARY = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
"""huggingface_hub uploads in a way that httpx deprecates."""


@pytest.fixture
def hub(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Hub:
    found = Hub(httpserver)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", found.url)
    monkeypatch.setattr("huggingface_hub.hf_api.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    return found


@LIBRARY
def test_a_hub_gets_the_whole_folder_in_a_repository_that_is_private_unless_told(
    training: Path, tmp_path: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    for more in ([], ["--public", "--replace"]):
        assert main(["export", str(training), "-o", str(out), "--push-to-hub", "me/conductor", *more]) == 0

    assert hub.files == {path.name: path.read_bytes() for path in out.iterdir()}
    assert [made["visibility"] for made in hub.made] == ["private", "public"]
    assert hub.files["README.md"].startswith(b"---\nlibrary_name: transformers\n")
    assert f"pushed:   {hub.url}/me/conductor" in capsys.readouterr().out


@LIBRARY
def test_an_export_stays_when_the_hub_does_not_take_it(
    training: Path, tmp_path: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.broken = True

    code = main(["export", str(training), "-o", str(tmp_path / "out"), "--push-to-hub", "me/conductor"])

    assert code == 3
    assert f"try again with: hf upload me/conductor {tmp_path / 'out'}" in capsys.readouterr().err
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_a_hub_that_cannot_be_used_is_told_before_anything_is_written(
    training: Path, tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["export", str(training), "-o", str(out), "--push-to-hub", "conductor"]) == 2
    assert "OWNER/NAME" in capsys.readouterr().err
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.utils._auth.constants.HF_TOKEN_PATH", str(tmp_path / "none"))

    assert main(["export", str(training), "-o", str(out), "--push-to-hub", "me/conductor"]) == 2

    assert "set HF_TOKEN" in capsys.readouterr().err
    assert not out.exists()
    assert not hub.made


def test_the_card_has_what_held_out_tasks_said(trained: Setup, tmp_path: Path) -> None:
    assert main(["export", str(trained.out), "-o", str(tmp_path / "out")]) == 0

    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert re.search(r"\| base \| 0 \| \d+\.\d ± \d+\.\d % \| \d+\.\d % \| \d\.\d\d \| 30 \|", card)
    assert "| base | 6 |" in card
