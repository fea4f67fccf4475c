"""The Conductor that ships, greedy, in three runtimes: vLLM, llama.cpp and transformers write the same.

It ships as a GGUF file of 4 bits. Here all get its weights in 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vllm.server import SHORT, serving, shipped_folder
from wfdsl.api import analyze
from wfdsl.conductor.checkpoint import load_prompt
from wfdsl.conductor.listing import WorkerListing
from wfdsl.protocols import Call
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym.source import tasks as make

QUESTIONS = 24
TOKENS = 120


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shipped_folder(tmp_path_factory.mktemp("shipped") / "model")


@pytest.fixture(scope="module")
def server(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """vLLM with the Conductor that ships; its base URL."""
    log = tmp_path_factory.mktemp("server") / "log"
    with serving(checkpoint, log, "--max-model-len", str(SHORT)) as url:
        yield url


@pytest.mark.local
async def test_all_three_write_the_same(server: str, checkpoint: Path) -> None:
    pytest.importorskip("xllamacpp", reason="needs xllamacpp, in the extra local")
    trained = load_prompt(str(checkpoint))
    assert trained is not None
    offer = WorkerListing.of(Pool.load("gym/seven"))
    asked = [trained.prompt.ask(task.question, offer, max_steps=3) for task in make("gym/seven", QUESTIONS, 11)]
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
    assert all(analyze(text, pool=offer, max_steps=3).workflow for text in texts[0])
