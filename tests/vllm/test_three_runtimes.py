"""The Conductor that ships, greedy, in three runtimes: vLLM, llama.cpp and transformers write the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vllm.server import SHORT, serving
from wfdsl.api import analyze
from wfdsl.conductor.checkpoint import load_prompt
from wfdsl.conductor.listing import WorkerListing
from wfdsl.protocols import Call
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym import make
from wfdsl_rl.gym.checkpoints import load

QUESTIONS = 24
TOKENS = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """vLLM with the Conductor that ships; its base URL."""
    log = tmp_path_factory.mktemp("server") / "log"
    with serving(Path(load("gym/tiny")), log, "--max-model-len", str(SHORT)) as url:
        yield url


@pytest.mark.local
async def test_all_three_write_the_same(server: str) -> None:
    pytest.importorskip("xllamacpp", reason="needs xllamacpp, in the extra local")
    checkpoint = str(load("gym/tiny"))
    trained = load_prompt(checkpoint)
    assert trained is not None
    offer = WorkerListing.of(Pool.load("gym/seven"))
    asked = [trained.prompt.ask(task.question, offer, max_steps=5) for task in make("gym/seven", QUESTIONS, 11)]
    common: dict[str, Any] = {"model": checkpoint, "temperature": 0.0, "max_tokens": TOKENS, "retries": 0}
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
    assert all(analyze(text, pool=offer, max_steps=5).workflow for text in texts[0])
