"""One checkpoint with heads of 32, greedy, in three runtimes: vLLM, llama.cpp and transformers write the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vllm.server import SHORT, make_folder, serving
from wfdsl.conductor.checkpoint import load_prompt
from wfdsl.conductor.listing import WorkerListing
from wfdsl.protocols import Call
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym import make

QUESTIONS = 12
TOKENS = 48


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of random weights that writes visible text, also as a GGUF file."""
    pytest.importorskip("xllamacpp", reason="needs xllamacpp, in the extra local")
    pytest.importorskip("gguf", reason="needs gguf, in the extra rl")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from wfdsl_rl.gym.tiny.gguf_file import write_gguf

    folder = make_folder(tmp_path_factory.mktemp("both"))
    network, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    special = [index for index, token in tokenizer.added_tokens_decoder.items() if token.special]
    with torch.no_grad():  # else it repeats the token before, which is one that no text shows
        network.model.embed_tokens.weight[special] = 0
    network.save_pretrained(folder)
    write_gguf(folder / "model.gguf", network, tokenizer)
    return folder


@pytest.fixture(scope="module")
def server(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """vLLM with this model; its base URL."""
    with serving(checkpoint, tmp_path_factory.mktemp("server") / "log", "--max-model-len", str(SHORT)) as url:
        yield url


@pytest.mark.local
async def test_all_three_write_the_same(server: str, checkpoint: Path) -> None:
    trained = load_prompt(checkpoint)
    assert trained is not None
    offer = WorkerListing.of(Pool.load("gym/paper7"))
    asked = [trained.prompt.ask(task.question, offer, max_steps=5) for task in make("gym/paper7", QUESTIONS, 11)]
    common: dict[str, Any] = {"model": str(checkpoint), "temperature": 0.0, "max_tokens": TOKENS, "retries": 0}
    pool = Pool(
        [
            WorkerEntry(**{**common, "name": "vllm", "provider": "openai", "model": "conductor", "base_url": server}),
            WorkerEntry(**{**common, "name": "llama.cpp", "provider": "local"}),
            WorkerEntry(**{**common, "name": "transformers", "provider": "transformers"}),
        ]
    )

    async with pool.open():
        texts = [[(await pool.worker(at)(Call(each))).text for each in asked] for at in pool.indices]

    assert texts[0] == texts[1] == texts[2]
    assert len(set(texts[0])) > 3
    assert all(texts[0])
