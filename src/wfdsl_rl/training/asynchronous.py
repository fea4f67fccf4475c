"""Training with TRL's asynchronous trainer: workflows run while the model is updated (`wfdsl-train --async`).

TRL takes scored completions from a worker and gives it new weights. With `vllm_server_base_url` in [train.trl] both go
through TRL's own worker and a vLLM server; otherwise through a copy of the model in this process. Completions may be a
few updates older than the model (`max_staleness`). TRL's asynchronous trainer needs an NVIDIA GPU: it attends with a
kernel of flash attention.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

import numpy as np
import torch
from anyio.from_thread import BlockingPortal, start_blocking_portal
from datasets import Dataset
from transformers import AutoTokenizer
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

from wfdsl.errors import UsageError
from wfdsl_rl.processes import ALONE
from wfdsl_rl.reward import Listener, Reward
from wfdsl_rl.training.checkpoints import completions_of, device, load_model, step_of
from wfdsl_rl.training.config import GrpoStage, TrainConfig
from wfdsl_rl.training.data import stage_rows
from wfdsl_rl.training.plan import Setup
from wfdsl_rl.training.samples import HealthChecks, SampleFiles
from wfdsl_rl.training.stages import computing, grpo_arguments, peft, require_trl, run_trainer

_SERVER: Final = "vllm_server_base_url"


def train_async(setup: Setup, stage: str, model: str, *, checkpoint: Path | None = None) -> Path:
    """Train a GRPO stage; the folder of its model.

    Raises:
        UsageError: TRL's asynchronous trainer lacks an option, or cannot run on this machine.
    """
    config, folder, served = setup.train.stages[stage], setup.folder(stage), _SERVER in setup.train.trl
    arguments = async_config(config, setup.train, folder)
    rows, files = stage_rows(setup, stage), SampleFiles(folder / "samples")
    listeners: list[Listener] = [files] if served else [files, HealthChecks(setup.say)]  # a server's come by groups
    reward = replace(setup, processes=ALONE).reward(stage, listeners=listeners)  # only the first process has a worker
    first = 0 if checkpoint is None else step_of(checkpoint) * config.prompts_per_step
    worker = None if served else RolloutWorker(model, reward, rows[first:], arguments, config.prompts_per_step)
    try:
        trainer = AsyncGRPOTrainer(
            model,
            reward.trl,
            arguments,
            Dataset.from_list(rows),
            processing_class=AutoTokenizer.from_pretrained(model, padding_side="left"),
            peft_config=peft(setup.train.lora),
            rollout_worker=worker,
            weight_transfer=worker,
        )
    except (ImportError, OSError, AssertionError, ValueError) as error:
        raise UsageError(f"--async: TRL's asynchronous trainer cannot start on this machine: {error}") from error
    reward.end_of_text = frozenset(trainer.eos_token_ids)
    return run_trainer(setup, stage, trainer, checkpoint)


def async_config(stage: GrpoStage, train: TrainConfig, folder: Path) -> AsyncGRPOConfig:
    """TRL's arguments for a stage.

    Raises:
        UsageError: an option is set that TRL's asynchronous trainer does not have, or a value does not fit.
    """
    require_trl(train.trl, AsyncGRPOConfig)
    refused = {
        "beta": stage.beta != 0,
        "scale_rewards": stage.scale_rewards != "group",
        "forced": stage.forced > 0,
        "train.prefix_cache": train.prefix_cache,
        "train.fsdp": train.fsdp != "off",
    }
    if names := [name for name, is_set in refused.items() if is_set]:
        raise UsageError(f"--async: TRL's asynchronous trainer has no {', '.join(names)}; remove them, or --async")
    usual = {"save_total_limit": 3, **computing(train), **({} if _SERVER in train.trl else {"token_budget": 0})}
    return AsyncGRPOConfig(**{**usual, **train.trl, **grpo_arguments(stage, train, folder)})


class RolloutWorker:
    """A copy of the model that writes completions, to which TRL transfers weights. In a thread of its own, it writes
    the batches one after the other, while earlier ones are scored: a few are written and not trained on yet."""

    def __init__(
        self,
        model: str,
        reward: Reward,
        rows: Sequence[Mapping[str, Any]],
        arguments: AsyncGRPOConfig,
        prompts_per_step: int,
    ) -> None:
        self.rollout_buffer: queue.Queue[RolloutSample] = queue.Queue()
        self.metrics_queue: queue.Queue[dict[str, float]] = queue.Queue()
        self._tokenizer, self._network = load_model(model)
        self._network.to(device()).eval()
        self._lock, self._weights = threading.Lock(), dict(self._network.named_parameters())
        self._reward, self._rows, self._arguments, self._prompts = reward, rows, arguments, prompts_per_step
        self._staleness, self._version = max(arguments.max_staleness, 1), 0
        self._places = asyncio.Semaphore(self._staleness)
        self._opened = ExitStack()
        self._portal: BlockingPortal | None = None
        self._writing: Future[None]

    def init_weight_transfer(self) -> None:
        """Nothing to prepare in one process."""

    def start(self) -> None:
        """Begin to write."""
        self._portal = self._opened.enter_context(start_blocking_portal())
        self._writing = self._portal.start_task_soon(self._batches)
        self._opened.callback(self._writing.cancel)

    def stop(self) -> None:
        """End what is in progress."""
        self._opened.close()

    def destroy(self) -> None:
        """Nothing is left open."""

    def pause(self) -> None:
        """Wait for the completions that are being written."""
        self._lock.acquire()

    def send_weights(self, iterator: Iterator[tuple[str, torch.Tensor]]) -> None:
        """Take the weights of the trained model."""
        with torch.no_grad():
            for name, weight in iterator:
                if name in self._weights:
                    self._weights[name].copy_(weight)

    def resume(self) -> None:
        """Write again."""
        self._lock.release()

    def update_model_version(self, model_version: int) -> None:
        """Note which weights write from now on; an update has used up a batch."""
        self._version = model_version
        if self._portal is not None:  # not before the start, when no batch is written yet
            self._portal.call(self._places.release)

    def check_health(self, stale_after_s: float) -> None:  # noqa: ARG002  (workflows may take long; there is a deadline)
        """Raise what ended the worker.

        Raises:
            BudgetExhausted, NoScore, UsageError: as the reward does.
        """
        try:
            if self._writing.done():
                self._writing.result()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    async def _batches(self) -> None:
        scoring: asyncio.Task[list[RolloutSample]] | None = None
        async with self._reward.pool.open(), asyncio.TaskGroup() as group:
            for begin in range(0, len(self._rows), self._prompts):
                await self._places.acquire()
                rows = self._rows[begin : begin + self._prompts]
                written = await asyncio.to_thread(self._write, rows, self._version)
                scoring = group.create_task(self._scored(rows, written, scoring))
        for sample in [] if scoring is None else scoring.result():  # TRL reads a batch ahead
            self.rollout_buffer.put(replace(sample, advantage=0.0, model_version=self._version + self._staleness))

    def _write(self, rows: Sequence[Mapping[str, Any]], version: int) -> list[RolloutSample]:
        """The completions of rows, group by group, with their log-probabilities and without an advantage."""
        made, samples = self._arguments, []
        for row in rows:
            with self._lock:
                (prompt,), written, out = completions_of(
                    self._tokenizer,
                    self._network,
                    [row["prompt"]],
                    made.num_generations,
                    temperature=made.temperature,
                    longest=made.max_completion_length,
                    output_scores=True,
                )
            every = torch.stack(out.scores, dim=1).float().log_softmax(-1).cpu()
            for ids, logs in zip(written, every, strict=True):
                chosen = logs[: len(ids)].gather(-1, torch.tensor(ids)[:, None])[:, 0]
                text = self._tokenizer.decode(ids, skip_special_tokens=True)
                sample = RolloutSample(
                    prompt=list(row["prompt"]),
                    completion=[{"role": "assistant", "content": text}],
                    input_ids=np.array(prompt + ids),
                    completion_mask=np.array([0] * len(prompt) + [1] * len(ids)),
                    old_log_probs=np.array([0.0] * len(prompt) + chosen.tolist(), dtype=np.float32),
                    advantage=0.0,
                    model_version=version,
                    group_id=row["row"],
                    metrics={},
                )
                samples.append(sample)
        return samples

    async def _scored(
        self,
        rows: Sequence[Mapping[str, Any]],
        written: Sequence[RolloutSample],
        before: asyncio.Task[list[RolloutSample]] | None,
    ) -> list[RolloutSample]:
        """Score a batch, and give it to the trainer after the one before, so that it is not too old to be trained on.

        Completions without a reward teach nothing.
        """
        count, logged = self._arguments.num_generations, dict[str, float]()
        rewards = await self._reward.trl(
            [each.completion for each in written],
            completion_ids=[each.input_ids[each.completion_mask == 1].tolist() for each in written],
            log_metric=logged.__setitem__,
            **{name: [row[name] for row in rows for _ in range(count)] for name in rows[0] if name != "prompt"},
        )
        if before is not None:
            await before
        self.metrics_queue.put({**logged, "reward": fmean([each for each in rewards if each is not None] or [0.0])})
        samples = []
        for at, (sample, reward) in enumerate(zip(written, rewards, strict=True)):
            first = at - at % count
            known, advantage = [each for each in rewards[first : first + count] if each is not None], 0.0
            if reward is not None and len(known) > 1:
                advantage = (reward - fmean(known)) / (stdev(known) + 1e-4)
            samples.append(replace(sample, advantage=advantage, enqueued_at=time.time()))
            self.rollout_buffer.put(samples[-1])
        return samples
