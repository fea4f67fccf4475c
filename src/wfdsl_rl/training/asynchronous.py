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
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import torch
from datasets import Dataset
from transformers import AutoTokenizer, PrinterCallback
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

from wfdsl.errors import UsageError
from wfdsl_rl.reward import Listener, Reward
from wfdsl_rl.scoring import NoScore, Sample
from wfdsl_rl.training.checkpoints import ends_of, load_model, save_trained, step_of
from wfdsl_rl.training.config import GrpoStage, TrainConfig
from wfdsl_rl.training.data import stage_rows
from wfdsl_rl.training.grpo import on_cpu, peft, schedule, stage_arguments
from wfdsl_rl.training.plan import Setup
from wfdsl_rl.training.samples import HealthChecks, SampleFiles
from wfdsl_rl.training.stages import StageFiles

_SERVER: Final = "vllm_server_base_url"


def train_async(setup: Setup, stage: str, model: str, *, checkpoint: Path | None = None) -> Path:
    """Train a GRPO stage; the folder of its model.

    Raises:
        UsageError: TRL's asynchronous trainer lacks an option, or cannot run on this machine.
    """
    config, folder = setup.train.grpo(stage), setup.folder(stage)
    arguments = async_config(config, setup.train, folder)
    tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
    health, rows = HealthChecks(setup.say), stage_rows(setup, stage)
    checks = HealthChecks(print) if _SERVER in setup.train.trl else health  # TRL's own worker is another process
    listeners: list[Listener] = [SampleFiles(folder / "samples"), checks]
    reward = setup.reward(stage, listeners=[Gathered(config.batch_size, listeners)])
    policy = worker = None
    if _SERVER not in setup.train.trl:
        policy = PolicyCopy(model, arguments)
        first = 0 if checkpoint is None else step_of(checkpoint) * config.prompts_per_step
        worker = RolloutWorker(policy, tokenizer, reward, rows[first:], arguments)
        reward.end_of_text = frozenset(ends_of(tokenizer, policy.network))
    try:
        trainer = AsyncGRPOTrainer(
            model,
            reward.trl,
            arguments,
            Dataset.from_list(rows),
            processing_class=tokenizer,
            callbacks=[StageFiles(setup, stage, health.on_metrics)],
            peft_config=peft(setup.train.lora),
            rollout_worker=worker,
            weight_transfer=policy,
        )
    except (ImportError, OSError, AssertionError, ValueError) as error:
        raise UsageError(f"--async: TRL's asynchronous trainer cannot start on this machine: {error}") from error
    if reward.end_of_text is None:
        reward.end_of_text = frozenset(trainer.eos_token_ids)
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    return save_trained(setup, stage, trainer, folder / "final")


def async_config(stage: GrpoStage, train: TrainConfig, folder: Path) -> AsyncGRPOConfig:
    """TRL's arguments for a stage.

    Raises:
        UsageError: an option is set that TRL's asynchronous trainer does not have.
    """
    unknown = [key for key in train.trl if key not in {each.name for each in fields(AsyncGRPOConfig)}]
    refused = {
        "beta": stage.beta != 0,
        "scale_rewards": stage.scale_rewards != "group",
        "forced": stage.forced > 0,
        **{f"train.trl.{key}": True for key in unknown},
        "train.prefix_cache": train.prefix_cache,
        "train.fsdp": train.fsdp != "off",
    }
    if names := [name for name, is_set in refused.items() if is_set]:
        raise UsageError(f"--async: TRL's asynchronous trainer has no {', '.join(names)}; remove them, or --async")
    arguments = {
        "bf16": not on_cpu(),
        "gradient_checkpointing": not on_cpu(),
        "report_to": "none",
        "save_total_limit": 3,
        **({} if _SERVER in train.trl else {"token_budget": 0}),
        **train.trl,
        **stage_arguments(stage, train, folder),
        **schedule(stage),
        "num_generations": stage.num_generations,
        "max_completion_length": stage.max_completion_length,
        "logging_steps": 1,
    }
    return AsyncGRPOConfig(**arguments)


class Gathered:
    """A listener that passes on batches of at least `count` samples, where groups are scored one by one."""

    def __init__(self, count: int, listeners: Sequence[Listener]) -> None:
        self._count, self._listeners = count, list(listeners)
        self._kept: list[Sample] = []

    def __call__(self, samples: Sequence[Sample]) -> dict[str, float]:
        """Keep samples, or pass them on with those before."""
        self._kept += samples
        if len(self._kept) < self._count:
            return {}
        batch, self._kept = self._kept, []
        return {name: value for each in self._listeners for name, value in (each(batch) or {}).items()}


class PolicyCopy:
    """A copy of the model that writes completions, to which TRL transfers weights."""

    def __init__(self, model: str, arguments: AsyncGRPOConfig) -> None:
        _, self.network = load_model(model)
        self.network.to("cpu" if on_cpu() else "cuda").eval()
        self._lock, self._weights = threading.Lock(), dict(self.network.named_parameters())
        self._longest, self._temperature = arguments.max_completion_length, arguments.temperature

    def write(self, prompt: Sequence[int], count: int, end: int, pad: int) -> list[tuple[list[int], list[float]]]:
        """Completions of a prompt, each with the log-probabilities of its tokens."""
        ids = torch.tensor([list(prompt)] * count, device=self.network.device)
        with self._lock, torch.no_grad():
            out = self.network.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                do_sample=True,
                temperature=self._temperature,
                top_k=0,
                max_new_tokens=self._longest,
                pad_token_id=pad,
                return_dict_in_generate=True,
                output_scores=True,
            )
        written = out.sequences[:, len(prompt) :]
        scores = torch.stack(out.scores, dim=1).float().log_softmax(-1)
        chosen = scores.gather(-1, written[..., None])[..., 0].tolist()
        rows = [row[: row.index(end) + 1] if end in row else row for row in written.tolist()]
        return [(row, own[: len(row)]) for row, own in zip(rows, chosen, strict=True)]

    def init_weight_transfer(self) -> None:
        """Nothing to prepare in one process."""

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

    def destroy(self) -> None:
        """Nothing is left open."""


class RolloutWorker:
    """Writes groups of completions and has them scored, several groups at a time, in a thread of its own."""

    def __init__(
        self,
        policy: PolicyCopy,
        tokenizer: Any,
        reward: Reward,
        rows: Sequence[Mapping[str, Any]],
        arguments: AsyncGRPOConfig,
    ) -> None:
        self.rollout_buffer: queue.Queue[RolloutSample] = queue.Queue()
        self.metrics_queue: queue.Queue[dict[str, float]] = queue.Queue()
        self._policy, self._tokenizer, self._reward, self._rows = policy, tokenizer, reward, rows
        self._count, self._version = arguments.num_generations, 0
        self._batch = arguments.per_device_train_batch_size * arguments.gradient_accumulation_steps
        self._staleness = max(arguments.max_staleness, 1)
        self._places = asyncio.Semaphore(self._staleness * self._batch)  # completions that are not trained on yet
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="wfdsl-rollouts", daemon=True)
        self._writing: asyncio.Task[None]
        self._error: BaseException | None = None
        self._last: RolloutSample | None = None
        self._dropped = 0

    def start(self) -> None:
        """Begin to write."""
        self._writing = self._loop.create_task(self._groups())
        self._thread.start()

    def stop(self) -> None:
        """End what is in progress."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._writing.cancel)
            self._thread.join()

    def update_model_version(self, model_version: int) -> None:
        """Note which weights write from now on; an update has used up a batch of completions."""
        self._version = model_version
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._free, self._batch)

    def _free(self, count: int) -> None:
        for _ in range(count):
            self._places.release()

    def check_health(self, stale_after_s: float) -> None:  # noqa: ARG002  (workflows may take long; there is a deadline)
        """Raise what ended the worker.

        Raises:
            BudgetExhausted, NoScore, UsageError: as the reward does.
        """
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with suppress(asyncio.CancelledError):  # by `stop`
                self._loop.run_until_complete(self._writing)
        except BaseExceptionGroup as errors:
            self._error = errors.exceptions[0]
        except Exception as error:  # noqa: BLE001  (raised again in the thread of the trainer)
            self._error = error
        finally:
            self._loop.close()

    async def _groups(self) -> None:
        """Write the groups one after the other, while earlier ones are scored."""
        end, pad = self._tokenizer.eos_token_id, self._tokenizer.pad_token_id
        async with self._reward.pool.open(), asyncio.TaskGroup() as group:
            for number, row in enumerate(self._rows):
                for _ in range(self._count):
                    await self._places.acquire()
                version = self._version
                prompt = self._tokenizer.apply_chat_template(
                    row["prompt"], add_generation_prompt=True, return_dict=False
                )
                written = await asyncio.to_thread(self._policy.write, prompt, self._count, end, pad)
                group.create_task(self._scored(number, row, version, list(prompt), written))
        self._fill()

    def _fill(self) -> None:
        """Give samples that teach nothing for those without a reward, and for the batch that TRL reads ahead."""
        if self._last is None:
            raise NoScore("no group of completions has a score")
        filled = replace(self._last, advantage=0.0, model_version=self._version + self._staleness)
        for _ in range(self._dropped + self._batch):
            self.rollout_buffer.put(filled)

    async def _scored(
        self,
        number: int,
        row: Mapping[str, Any],
        version: int,
        prompt: list[int],
        written: Sequence[tuple[list[int], list[float]]],
    ) -> None:
        """Score a group, and give its completions that have a reward to the trainer, unless they are too old by now."""
        texts = [self._tokenizer.decode(ids, skip_special_tokens=True) for ids, _ in written]
        messages = [[{"role": "assistant", "content": text}] for text in texts]
        columns = {name: [value] * len(written) for name, value in row.items() if name != "prompt"}
        logged: dict[str, float] = {}
        rewards = await self._reward.trl(
            messages,
            completion_ids=[ids for ids, _ in written],
            trainer_state=SimpleNamespace(global_step=version),
            log_metric=logged.__setitem__,
            **columns,
        )
        known = [reward for reward in rewards if reward is not None]
        mean, spread = (fmean(known), stdev(known)) if len(known) > 1 else (0.0, 0.0)
        self.metrics_queue.put({**logged, "reward": mean})
        for message, (ids, logprobs), reward in zip(messages, written, rewards, strict=True):
            if reward is None or len(known) < 2 or self._version - version > self._staleness:
                self._dropped += 1
                self._free(1)
                continue
            self._last = RolloutSample(
                prompt=list(row["prompt"]),
                completion=message,
                input_ids=np.array(prompt + ids),
                completion_mask=np.array([0] * len(prompt) + [1] * len(ids)),
                old_log_probs=np.array([0.0] * len(prompt) + logprobs, dtype=np.float32),
                advantage=(reward - mean) / (spread + 1e-4),
                model_version=version,
                group_id=number,
                metrics={},
                enqueued_at=time.time(),
            )
            self.rollout_buffer.put(self._last)
