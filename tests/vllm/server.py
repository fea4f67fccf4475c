"""A vLLM server on this machine's CPU, and a model of random weights for it.

The model has the tokenizer and the prompt of the shipped Conductor, and takes longer texts.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wfdsl.conductor.checkpoint import FILE
from wfdsl.protocols import Message
from wfdsl_rl.gym.source import NAME, conductors

PYTHON = os.environ.get("WFDSL_VLLM_PYTHON", "")
"""The Python of the environment that has vLLM; `make vllm` makes it and sets this."""
POSITIONS = 8192
"""The longest text that the model is made for, in tokens."""
SHORT = 1024
"""The same, as the second server is told."""
_START_S = 600
_STOP_S = 60


def shipped_folder(folder: Path) -> Path:
    """The weights of the shipped Conductor in 32 bits, for transformers and as a GGUF file, with its prompt."""
    from wfdsl_rl.training.checkpoints import import_gguf, load_model
    from wfdsl_rl.training.export import write_gguf

    shipped = conductors(NAME)
    tokenizer, network = load_model(import_gguf(str(shipped / "model.gguf"), folder))
    write_gguf(folder / "model.gguf", network, tokenizer)
    shutil.copy(shipped / FILE, folder)
    return folder


def make_folder(folder: Path, *, seed: int = 0) -> Path:
    """A checkpoint of random weights with the tokenizer and the prompt of the shipped Conductor."""
    import torch
    from transformers import AutoModelForCausalLM

    from wfdsl_rl.training.checkpoints import import_gguf, load_model

    tokenizer, network = load_model(import_gguf(str(conductors(NAME) / "model.gguf"), folder.with_name("shipped")))
    config = network.config
    config.hidden_size, config.intermediate_size, config.num_hidden_layers = 64, 128, 2
    config.num_attention_heads = config.num_key_value_heads = 2
    config.head_dim, config.max_position_embeddings = 32, POSITIONS
    torch.manual_seed(seed)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    shutil.copy(conductors(NAME) / FILE, folder)
    return folder


@contextmanager
def serving(folder: Path, log: Path, *options: str) -> Iterator[str]:
    """Serve a checkpoint as the model `conductor`; the base URL. The server's output goes to `log`."""
    port = _free_port()
    name = ("--served-model-name", "conductor", "--port", str(port))
    # vLLM makes 16 bits of a checkpoint's 32 unless told. On a CPU it ends ("CPU Generator does not use offset") if a
    # request has a seed and its prompt is read in parts.
    fixed = (*name, "--dtype", "float32", "--enforce-eager", "--no-enable-chunked-prefill")
    command = [PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), *fixed, *options]
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    with (
        log.open("wb") as out,
        subprocess.Popen(
            command, stdout=out, stderr=out, env=environment, cwd=log.parent, start_new_session=True
        ) as process,
    ):
        try:
            _wait(process, f"http://127.0.0.1:{port}/health", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            _stop(process)


def greedy(folder: Path, messages: Sequence[Message], tokens: int) -> tuple[str, int]:
    """transformers' greedy completion, and the tokens of the prompt."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    inputs = tokenizer.apply_chat_template(
        list(messages), add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    prompt = inputs["input_ids"].shape[1]
    out = model.generate(**inputs, do_sample=False, max_new_tokens=tokens)[0]
    return tokenizer.decode(out[prompt:], skip_special_tokens=True), prompt


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise AssertionError(f"vLLM ended with {process.returncode}:\n{log.read_text(errors='replace')[-3000:]}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(1)
    raise AssertionError(f"vLLM did not start within {_START_S} s:\n{log.read_text(errors='replace')[-3000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and the engine, which is a process of its own in the same group."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
