"""Workers on a transformers model in this process; calls that arrive together are generated together.

Generation runs in a thread, one batch at a time; while a batch runs, the next one forms. Only calls with the same
sampling settings share a batch. A seed makes a batch reproducible, so a sampled reply depends on who shared its batch.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch
import transformers
from pydantic import Field

from wfdsl.errors import UsageError
from wfdsl.protocols import Call, Message, Reply, Usage, Worker, WorkerFailure
from wfdsl.workers.call_settings import Sampling, as_content, in_time, priced, require_no_tools, sampling, with_system
from wfdsl.workers.constrained_decoding import GrammarLogits, grammar_tokenizer
from wfdsl.workers.endings import ended
from wfdsl.workers.entry import Options, WorkerEntry
from wfdsl.workers.registry import OpenWorkers


class _Options(Options):
    device: str = "auto"
    dtype: str = "auto"
    batch: int = Field(default=8, gt=0)
    """Calls that are generated together. Our choice."""
    template: dict[str, Any] = Field(default={})
    """What the chat template is given."""


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> Worker:
    """The worker of an entry whose provider is `transformers`; `model` is a local directory or a Hugging
    Face model id.

    Raises:
        UsageError: there is no model, or an option does not fit.
    """
    if not entry.model:
        raise UsageError(
            f'worker "{entry.name}" needs a model: set model to a local directory or a Hugging Face model id'
        )
    options = entry.options_as(_Options)
    key = (entry.model, options.device, options.dtype, options.batch)
    engine = open_workers.shared(key, lambda: Engine(*key))

    async def answer(call: Call) -> Reply:
        """Answer once. The text comes in one piece."""
        asked = sampling(entry, call)
        require_no_tools(call, f'worker "{entry.name}"')
        async with in_time(call, entry.timeout_s):
            reply = await engine.reply(with_system(entry, as_content(call.messages)), asked, dict(options.template))
        if call.on_delta is not None and reply.text:
            call.on_delta(reply.text)
        return priced(entry, reply)

    return answer


_ONE_AT_A_TIME: Final = threading.Lock()
"""transformers builds models under a default device of the whole process, so that two threads that load models at the
same time spoil each other's."""


@dataclass(eq=False)
class _Batch:
    """Calls that are generated together."""

    asked: Sampling
    prompts: list[tuple[list[Message], dict[str, Any]]] = field(default_factory=list)
    gone: int = 0
    """Callers that no longer wait."""
    stop: threading.Event = field(default_factory=threading.Event)


class Engine:
    """A model and its tokenizer, loaded with the first call."""

    def __init__(self, model: str, device: str, dtype: str, batch: int) -> None:
        self._name = model
        self._device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        self._dtype = dtype
        self._batch_size = batch
        self._turn = asyncio.Lock()
        self._forming: dict[Sampling, _Batch] = {}
        self._running: dict[_Batch, asyncio.Task[list[Reply]]] = {}
        self._loaded: tuple[Any, Any] | None = None
        self._grammar_tokenizer: Any = None

    async def reply(self, messages: list[Message], asked: Sampling, template: dict[str, Any]) -> Reply:
        """The reply to one call, generated with whatever else waits.

        Raises:
            WorkerFailure: the model cannot be loaded, or cannot generate.
        """
        batch = self._forming.get(asked)
        if batch is None or len(batch.prompts) >= self._batch_size:
            batch = self._forming[asked] = _Batch(asked)
            self._running[batch] = asyncio.create_task(self._run(batch))
        index = len(batch.prompts)
        batch.prompts.append((messages, template))
        try:
            return (await asyncio.shield(self._running[batch]))[index]
        except asyncio.CancelledError:
            batch.gone += 1
            if batch.gone == len(batch.prompts):
                batch.stop.set()
            raise

    async def aclose(self) -> None:
        """Stop generating, and let go of the model."""
        for batch in self._running:
            batch.stop.set()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        self._loaded = None

    async def _run(self, batch: _Batch) -> list[Reply]:
        try:
            async with self._turn:
                if self._forming.get(batch.asked) is batch:
                    del self._forming[batch.asked]
                return await asyncio.to_thread(self._generate, batch)
        finally:
            batch.stop.set()
            del self._running[batch]

    def _generate(self, batch: _Batch) -> list[Reply]:
        asked = batch.asked
        try:
            model, tokenizer = self._load()
            texts = [
                tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **template)
                for messages, template in batch.prompts
            ]
            shape = {"return_tensors": "pt", "padding": True, "return_token_type_ids": False}
            inputs = tokenizer(texts, add_special_tokens=False, **shape).to(model.device)
            settings = _settings(batch, tokenizer, model.generation_config)
            if asked.grammar is not None:  # in llguidance's dialect
                if self._grammar_tokenizer is None:
                    self._grammar_tokenizer = grammar_tokenizer(tokenizer, vocabulary=model.config.vocab_size)
                held = GrammarLogits(self._grammar_tokenizer, asked.grammar, inputs["input_ids"].shape[1])
                settings["logits_processor"] = [held]
            with torch.random.fork_rng(), torch.inference_mode():
                if asked.seed is not None:
                    torch.manual_seed(asked.seed)
                output = model.generate(**inputs, **settings)
        except (RuntimeError, ValueError, IndexError, OSError) as error:
            raise WorkerFailure(f"{self._name} cannot generate: {error}", retryable=False) from error
        return _replies(tokenizer, inputs, output, asked, self._name)

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            with _ONE_AT_A_TIME, _no_progress_bars():
                tokenizer = transformers.AutoTokenizer.from_pretrained(self._name, padding_side="left")
                model = transformers.AutoModelForCausalLM.from_pretrained(self._name, dtype=self._dtype)
            if tokenizer.pad_token is None:
                tokenizer.pad_token = tokenizer.eos_token
            self._loaded = model.to(self._device).eval(), tokenizer
        return self._loaded


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Loading must not write into the middle of a live display."""
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers.utils.logging.enable_progress_bar()


_TOP_K_OF_TRANSFORMERS = 50
"""What transformers cuts the distribution to by default. A temperature means the whole distribution."""


def _settings(batch: _Batch, tokenizer: Any, own: Any) -> dict[str, Any]:
    def is_cancelled(input_ids: Any, *_: Any, **__: Any) -> Any:
        return torch.full((input_ids.shape[0],), batch.stop.is_set(), device=input_ids.device, dtype=torch.bool)

    asked = batch.asked
    settings: dict[str, Any] = {
        "max_new_tokens": asked.max_tokens,
        "pad_token_id": tokenizer.pad_token_id,
        "stopping_criteria": transformers.StoppingCriteriaList([is_cancelled]),
    }
    if asked.temperature == 0:
        settings |= {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    elif asked.temperature is not None:
        settings |= {"do_sample": True, "temperature": asked.temperature}
    if asked.top_p is not None and asked.temperature != 0:
        settings |= {"do_sample": True, "top_p": asked.top_p}
    if settings.get("do_sample") and own.top_k in (None, _TOP_K_OF_TRANSFORMERS):  # the model's folder asks for none
        settings["top_k"] = 0
    if asked.stop:
        settings |= {"stop_strings": list(asked.stop), "tokenizer": tokenizer}
    return settings


def _replies(tokenizer: Any, inputs: Any, output: Any, asked: Sampling, model: str) -> list[Reply]:
    prompt_length = inputs["input_ids"].shape[1]
    ends = {tokenizer.eos_token_id, tokenizer.pad_token_id}
    replies = []
    for row, mask in zip(output[:, prompt_length:].tolist(), inputs["attention_mask"].tolist(), strict=True):
        end = next((index for index, token in enumerate(row) if token in ends), len(row))
        text = tokenizer.decode(row[:end], skip_special_tokens=True)
        stops = [place for stop in asked.stop if (place := text.find(stop)) >= 0]
        text = text[: min(stops, default=None)]
        cut = end == len(row) and end >= asked.max_tokens and not stops
        finish = ended(text, "length" if cut else "stop")
        replies.append(Reply(text, finish, Usage(sum(mask), end), model))
    return replies
