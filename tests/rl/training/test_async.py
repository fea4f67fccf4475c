"""`wfdsl-train --async`: steps on TRL's asynchronous trainer, what it refuses, and that slow workers do not hold it up.

On a CPU, the kernel of flash attention is replaced by a reference, and one function of TRL that asks for a GPU.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

import torch  # noqa: E402
from transformers import AttentionInterface  # noqa: E402

from tests.rl.training.toy import (  # noqa: E402
    BASE,
    TRAIN,
    WORKERS,
    a_pool,
    from_warmup,
    metrics,
    same,
    samples,
    with_stage,
)
from wfdsl.errors import UsageError  # noqa: E402
from wfdsl_rl.processes import Processes  # noqa: E402
from wfdsl_rl.training.pipeline import run_pipeline  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from tests.rl.training.toy import AsyncWorker
    from wfdsl_rl.training.plan import Setup

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:You are importing from 'trl.experimental'"),
]
FAST = {"max_steps": 3, "prompts_per_step": 4, "num_generations": 4, "per_device_train_batch_size": 16, "save_steps": 1}


def attend(
    module: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    attention_mask: Any,
    *,
    tree_kv_index: torch.Tensor,
    tree_cu_seqlens_q: torch.Tensor,
    tree_cu_seqlens_k: torch.Tensor,
    tree_max_seqlen_q: int,
    tree_max_seqlen_k: int,
    scaling: float,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """What the kernel computes, sequence by sequence."""
    out = torch.zeros_like(q)
    queries, keys = tree_cu_seqlens_q.tolist(), tree_cu_seqlens_k.tolist()
    for a, b, c, d in zip(queries, queries[1:], keys, keys[1:], strict=False):
        own = tree_kv_index[c:d]
        scores = (q[0][:, a:b] @ k[0][:, own].transpose(-1, -2)) * scaling
        seen = torch.ones(b - a, d - c, dtype=torch.bool).tril(d - c - (b - a))
        out[0][:, a:b] = scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v[0][:, own]
    return out.transpose(1, 2), None


@pytest.fixture
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from trl.experimental.async_grpo import async_grpo_trainer

    AttentionInterface.register("tree_fa3", attend)
    monkeypatch.setattr(async_grpo_trainer, "register_tree_attention", lambda: None)
    monkeypatch.setattr(async_grpo_trainer, "get_peak_flops_per_device", lambda *_, **__: 1e12)


def slow(worker: AsyncWorker, delay_s: float) -> AsyncWorker:
    async def answer(messages: list[dict[str, Any]]) -> str:
        await asyncio.sleep(delay_s)
        return await worker(messages)

    return answer


def seconds_of(setup: Setup) -> float:
    begun = time.monotonic()
    run_pipeline(setup, ("base",))
    return time.monotonic() - begun


@pytest.mark.usefixtures("on_a_cpu")
def test_a_training_takes_real_steps_and_overlaps_slow_workers(trained: Setup, tmp_path: Path) -> None:
    pool = a_pool(tuple(slow(worker, 0.5) for worker in WORKERS))
    setup = replace(from_warmup(trained, tmp_path / "async", **FAST), pool=pool, overlap=True)
    plain = replace(setup, out=tmp_path / "plain", overlap=False)

    overlapped, waited = seconds_of(setup), seconds_of(plain)
    for name in ("checkpoint-2", "checkpoint-3", "final"):
        shutil.rmtree(setup.folder("base") / name)
    run_pipeline(setup, ("base",), resume=True)

    kept = [*samples(setup.folder("base") / "samples").values()]
    assert [entry["step"] for entry in metrics(setup) if "loss" in entry] == [1, 2, 3]
    assert [sorted({each["row"] // 4 for each in batch}) for batch in kept] == [[0], [1], [2]]
    assert {each["outcome"] for batch in kept for each in batch} >= {"right", "wrong"}
    assert not same(setup.folder("base") / "final", trained.folder("sft") / "final")
    assert waited >= 1.5  # each of the three iterations waits for its workers
    print(f"asynchronous {overlapped:.1f} s, synchronous {waited:.1f} s")


def test_one_of_several_processes_scores(trained: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wfdsl_rl.training import asynchronous

    def made(_: str, reward: Any, *about: Any, **named: Any) -> None:
        raise OSError(f"{reward.__self__.processes.count} scores")

    monkeypatch.setattr(asynchronous, "AsyncGRPOTrainer", made)
    setup = replace(from_warmup(trained, tmp_path, **FAST), processes=Processes(0, 2))

    with pytest.raises(UsageError, match="1 scores"):
        asynchronous.train_async(setup, "base", setup.train.model)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"beta": 0.1}, "beta"),
        ({"scale_rewards": "batch"}, "scale_rewards"),
        ({"forced": 0.5}, "forced"),
        ({"trl": {"loss_type": "dapo"}}, 'AsyncGRPOConfig has no key "loss_type"'),
        ({"trl": {"max_staleness": "few"}}, "train.trl.max_staleness"),
        ({"prefix_cache": True}, "train.prefix_cache"),
    ],
)
def test_what_its_configuration_lacks_is_refused(changes: dict[str, Any], named: str, tmp_path: Path) -> None:
    from wfdsl_rl.training.asynchronous import async_config

    of_train = changes.keys() & {"trl", "prefix_cache"}
    train = replace(TRAIN, **changes) if of_train else with_stage(TRAIN, "base", **changes)

    with pytest.raises(UsageError, match=named):
        async_config(train.stages["base"], train, tmp_path)


def test_it_has_the_numbers_of_the_stage(tmp_path: Path) -> None:
    from wfdsl_rl.training.asynchronous import async_config

    config = async_config(BASE, TRAIN, tmp_path)

    assert (config.num_generations, config.max_steps, config.max_completion_length) == (8, 6, 40)
    assert config.per_device_train_batch_size * config.gradient_accumulation_steps == BASE.batch_size
